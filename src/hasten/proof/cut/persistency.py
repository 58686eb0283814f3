"""Persistency: a step that fixes labels which some cheapest labelling has, of problems that are nearly cuts.

Each variable gets a second node, for its labels exchanged; pairs against agreeing are crossed, so that all are for it.
A variable whose nodes a smallest cut separates has a label that some cheapest labelling has (roof duality: Hammer,
Hansen & Simeone 1984): it is *fixed*. The rest mostly falls to pieces, which are eliminated, or left to later steps.

That is not taken on trust. Giving the fixed variables F their labels changes the cost of a labelling by a term for each
variable of F and each pair that touches it; with the messages of the flow none is above zero but for rounding. The most
that each can be is summed: that sum is what fixing may lose, and it is subtracted from all bounds with F fixed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hasten.jit import driver, keep, kernel, part, split
from hasten.kernels.layout import COST, VARIABLE, Arrays, BatchArrays, Graph, instance_of, labels_of, together
from hasten.kernels.score import total_cost
from hasten.kernels.tolerance import allowance
from hasten.proof import outcome as status
from hasten.proof.buckets import FULL_ELIMINATION, eliminate_buckets
from hasten.proof.buckets.plan import plan_buckets
from hasten.proof.cut import CUTTING
from hasten.proof.cut.flow import Arcs, is_near, maximise
from hasten.proof.cut.network import network_at
from hasten.proof.cut.pairs import Cut, build, find_wants, make_cut, read_variables, sizes_for, weigh
from hasten.proof.outcome import (
    UNFIXED,
    Fixed,
    Fixing,
    Proofs,
    State,
    copy_labels,
    rounding,
    rule_out,
    take_bound,
    take_labels,
)
from hasten.proof.plan import ProofPlan, RecordPlan, Work
from hasten.support.arrays import IntArray
from hasten.support.clock import CURRENT, STOP_ALL

WORTH = 0.1  # of the tolerance of a proof: fixing may not lose more
SLOWER = 4.0  # times as long as a cut
MOST_UNFIXED = 600  # variables for which a plan is tried


class Persistency:
    """The step: fix labels, and eliminate the rest if that is affordable."""

    def plan(self, plan: ProofPlan) -> RecordPlan | None:
        """Returns the network of a structure that is free of rules and not fully eliminated."""
        network: RecordPlan | None = plan.part(CUTTING)
        free = network is not None and plan.shape.is_free and plan.part(FULL_ELIMINATION) is None
        return network if free else None

    def run(self, work: Work, problems: IntArray) -> None:
        """Fixes labels of problems, and eliminates the rest where that is affordable."""
        if not work.fixing.labels.size:
            n = work.proofs.facts.shape[1]
            work.fixing = Fixing(np.full(len(work.proofs.labels), UNFIXED), np.zeros(n))
        seconds, shared = SLOWER * work.seconds(self, problems), ((*work.fixing,),)
        work.run(fix_some, problems, work.addresses(self, problems), shared=shared, seconds=seconds)
        problems, at, labels = work.still_open(problems), work.arrays.place[:, VARIABLE], work.fixing.labels
        graphs = [plan.shape.graph for plan in work.plans_of(problems)]
        rest = []
        for graph, p in zip(graphs, problems.tolist(), strict=True):
            mine = labels[at[p] : at[p + 1]]
            n_unfixed = int((mine == UNFIXED).sum())
            affordable = n_unfixed < len(mine) and n_unfixed <= MOST_UNFIXED
            rest.append(plan_buckets(graph, mine) if affordable else None)
        chosen, plans = np.array([each is not None for each in rest], dtype=bool), [each for each in rest if each]
        if plans:
            places, seconds = np.concatenate([each.addresses for each in plans]), sum(each.seconds for each in plans)
            work.run(eliminate_buckets, problems[chosen], places, shared=shared, seconds=seconds)


PERSISTENCY = Persistency()


def only_fixed(arrays: BatchArrays, graphs: Sequence[Graph], problems: IntArray, fixing: Fixing) -> BatchArrays:
    """Returns problems, each with its graph, in which fixed variables have no other labels."""
    if not fixing.labels.size:
        return arrays
    cost = arrays.cost.copy()
    for graph, p in zip(graphs, problems.tolist(), strict=True):
        place, first = arrays.place[p], graph.first
        labels = fixing.labels[place[VARIABLE] : place[VARIABLE] + len(first) - 1]
        (fixed,) = ((labels != UNFIXED) & (np.diff(first) == 2)).nonzero()
        cost[place[COST] + first[fixed] + 1 - labels[fixed]] = np.inf
    return arrays._replace(cost=cost)


@kernel
def take_sides(graph: Graph, cut: Cut) -> int:
    """Fixes the variables whose nodes are on different sides of the cut; returns how many."""
    n, n_fixed = graph.order.size, 0
    for v in range(n):
        one, two = is_near(cut.flow, v), is_near(cut.flow, n + v)
        label = 0 if one else 1
        cut.labels[v] = UNFIXED if one == two or label >= graph.first[v + 1] - graph.first[v] else label
        n_fixed += cut.labels[v] != UNFIXED
    return n_fixed


@driver
def fix_some(
    arrays: Arrays, problems: IntArray, state: State, networks: IntArray, given: Fixed, stop_flag: IntArray
) -> None:
    """Fixes labels of open problems without rules; `networks` has the address of each one's network."""
    batch, proofs, fixing = BatchArrays(*arrays), Proofs(*state), Fixing(*given)
    n_floats, n_ints = sizes_for(networks, 2)
    floats, ints = np.empty(together(n_floats)), np.zeros(together(n_ints), dtype=np.int64)
    cut = make_cut(split(floats, n_floats), split(ints, n_ints))
    stop = part(stop_flag, 0, stop_flag.size)
    for x in range(problems.size):
        p = problems[x]
        stop_flag[CURRENT] = x + 1
        graph, cost, table = instance_of(batch, p)
        network, fixed, n = network_at(networks[x]), labels_of(batch, fixing.labels, p), graph.order.size
        fixing.loss[p] = 0.0
        for v in range(n):
            fixed[v] = UNFIXED
        size = np.inf if stop_flag[STOP_ALL] else read_variables(graph, network, cost, table, cut)
        if size == np.inf or size < 0.0:  # other steps tell
            continue
        forbid = 8.0 * size if size > 0.0 else 1.0
        first, head, sister = cut.arcs
        arcs = Arcs(part(first, 0, 2 * n + 1), part(head, 0, 2 * network.head.size), sister)
        find_wants(graph, network, table, cut)
        build(graph, network, table, cut, forbid, arcs, True)
        if not maximise(arcs, cut.flow, stop):
            continue
        n_fixed = take_sides(graph, cut)
        bound, _, _, loss = weigh(graph, network, table, cut, True)
        if bound > 0.25 * forbid:
            rule_out(proofs, p, status.CUT)
            continue
        bound -= rounding(graph, size)
        proofs.values[status.SIZE, p] = size
        if n_fixed and loss <= WORTH * allowance(bound, size):
            fixing.loss[p] = loss
            copy_labels(cut.labels, fixed)
            if n_fixed == n:
                take_labels(batch, proofs, p, fixed, total_cost(graph, cost, table, fixed), status.CUT)
        take_bound(proofs, p, bound, size)
        if proofs.facts[status.OUTCOME, p] == status.PROVED:
            proofs.facts[status.STEP, p] = status.CUT
    stop_flag[CURRENT] = 0
    keep((floats, ints, stop_flag))

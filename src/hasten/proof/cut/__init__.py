"""Cut: a step for problems of two labels a variable, joined two by two, which are smallest cuts of a network.

Where all pairs are for agreeing (*submodular*), if need be after `relabel`ling some variables, the cheapest labelling
is a smallest cut. Rules over two variables are tables here; others are left out, and checked afterwards. Where a
problem is not a cut, `persistency` fixes some of its labels.
"""

from __future__ import annotations

import numpy as np

from hasten.jit import driver, keep, part
from hasten.kernels.layout import Arrays, BatchArrays, costs_of, graph_of, tables_of
from hasten.kernels.score import total_cost
from hasten.kernels.stopping import stopped
from hasten.proof.cut.kernels import cut_one
from hasten.proof.cut.network import is_binary, is_small, network_at, plan_network
from hasten.proof.cut.relabel import find_relabelling, make_scratch, n_numbers, read_variables, space_for
from hasten.proof.eliminate import ELIMINATING
from hasten.proof.outcome import (
    BEST,
    CUT,
    INFEASIBLE,
    OPEN,
    OUTCOME,
    SIZE,
    STEP,
    STOPPED,
    Proofs,
    State,
    rule_out,
    take_bound,
    take_labels,
)
from hasten.proof.plan import ProofPlan, RecordPlan, Work
from hasten.support.arrays import IntArray
from hasten.support.clock import ALL, AT


class Cutting:
    """The step: cut. It is the first; problems that are no cut are left to the next."""

    def plan(self, plan: ProofPlan) -> RecordPlan | None:
        """Returns the network of a structure, if cutting it can do better than eliminating."""
        graph = plan.shape.graph
        if plan.max_join is not None or not is_binary(graph):
            return None
        if is_small(graph) and plan.part(ELIMINATING) is not None:  # which is then faster
            return None
        return plan.shape.made(plan_network)

    def run(self, work: Work, problems: IntArray) -> None:
        """Cuts problems."""
        work.run(cut_some, problems, work.addresses(self, problems), seconds=work.seconds(self, problems))


CUTTING = Cutting()


@driver
def cut_some(arrays: Arrays, problems: IntArray, state: State, networks: IntArray, watch: IntArray) -> None:
    """Cuts some problems; `networks` has, for each, the address of its network. Problems that are no cut stay as is."""
    batch, proofs = BatchArrays(*arrays), Proofs(*state)
    space = space_for(networks)
    n_floats, n_ints = n_numbers(space, 1)
    floats, ints = np.empty(n_floats), np.zeros(n_ints, dtype=np.int64)
    cut = make_scratch(space, 1, floats, ints)
    values, facts, stop = proofs.values, proofs.facts, part(watch, 0, watch.size)
    for x in range(problems.size):
        p = problems[x]
        watch[AT] = x + 1
        if watch[ALL]:
            continue
        graph, network, table = graph_of(batch, p), network_at(networks[x]), tables_of(batch, p)
        size = read_variables(graph, network, costs_of(batch, p), table, cut)
        if size == np.inf or (size >= 0.0 and not find_relabelling(graph, network, table, cut)):
            continue
        facts[STEP, p], values[SIZE, p] = CUT, max(size, 0.0)
        outcome, found, bound = INFEASIBLE, np.inf, np.inf
        if size >= 0.0:
            outcome, found, bound = cut_one(graph, network, table, cut, size, stop)
        if outcome == INFEASIBLE:
            rule_out(proofs, p, CUT)
            continue
        if found < values[BEST, p] < np.inf:  # the same labels must cost the same
            found = total_cost(graph, costs_of(batch, p), table, cut.labels)
        take_labels(batch, proofs, p, cut.labels, found, CUT)
        take_bound(proofs, p, bound, size)
        if facts[OUTCOME, p] == OPEN and stopped(stop):
            facts[OUTCOME, p] = STOPPED
    watch[AT] = 0
    keep((floats, ints, watch))

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

from hasten.jit import driver, inlined_kernel, keep, kernel, part, split
from hasten.kernels.layout import COST, VARIABLE, Arrays, BatchArrays, Graph, instance_of, labels_of, together
from hasten.kernels.score import total_cost
from hasten.kernels.tolerance import EPS, allowance
from hasten.proof import outcome as status
from hasten.proof.buckets import FULL_ELIMINATION, eliminate_buckets
from hasten.proof.buckets.plan import plan_buckets
from hasten.proof.cut import CUTTING, add, least_left, least_of_labels, put_terms, relabel
from hasten.proof.cut.flow import Arcs, Flow, is_near, maximise
from hasten.proof.cut.network import Network, network_at
from hasten.proof.cut.relabel import Cut
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
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.clock import ALL, AT

WORTH = 0.1  # of what a proof allows: fixing may not lose more
SLOWER = 4.0  # times what a cut takes
MOST_UNFIXED = 600  # variables for which a plan is tried


class Persistency:
    """The step: fix labels, and eliminate the rest if that is affordable."""

    def plan(self, plan: ProofPlan) -> RecordPlan | None:
        """Returns the network of a structure that is free of rules and not fully eliminated."""
        network: RecordPlan | None = plan.part(CUTTING)
        free = network is not None and plan.shape.is_free and plan.part(FULL_ELIMINATION) is None
        return network if free else None

    def run(self, work: Work, problems: IntArray) -> None:
        """Fixes labels of problems, and eliminates the rest of those with an affordable plan."""
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


@inlined_kernel
def join(arcs: Arcs, flow: Flow, ends: tuple[int, int], both: tuple[int, int], widths: tuple[float, float]) -> None:
    """Joins two nodes by two arcs, each the other's sister, that can carry so much."""
    there, back = both
    arcs.head[there], arcs.sister[there] = ends[1], back
    arcs.head[back], arcs.sister[back] = ends[0], there
    flow.room[2 * there] = flow.room[2 * back + 1] = widths[0]
    flow.room[2 * back] = flow.room[2 * there + 1] = widths[1]


@kernel
def double(graph: Graph, network: Network, table: FloatArray, cut: Cut, forbid: float, arcs: Arcs) -> None:
    """Makes the network with two nodes for each variable, v and V + v. Pairs that are `UNLIKE` are crossed."""
    n, n_arcs, n_forms = graph.order.size, network.head.size, network.form_at.size
    excess, terms = cut.flow.excess, cut.terms
    for v in range(n):
        excess[v] = relabel.preference(cut.value[2 * v], cut.value[2 * v + 1], forbid)
        arcs.first[v], arcs.first[n + v] = network.arc_first[v], n_arcs + network.arc_first[v]
    arcs.first[2 * n] = 2 * n_arcs
    for k in range(network.pair_low.size):
        u, v, a = network.pair_low[k], network.pair_high[k], network.pair_arc[k]
        back, crossed, at = network.sister[a], int(cut.wants[n_forms + k] == relabel.UNLIKE), 4 * (4 * n_forms + k)
        relabel.read_pair(graph, network, table, k, cut)
        put_terms(cut, at // 4, crossed, forbid)
        excess[u] += terms[at]
        excess[v] += -terms[at + 1] if crossed else terms[at + 1]
        other, wide, narrow = 1 - crossed, terms[at + 2], terms[at + 3]
        join(arcs, cut.flow, (u, v + crossed * n), (a, back + crossed * n_arcs), (wide, narrow))
        join(arcs, cut.flow, (n + u, v + other * n), (n_arcs + a, back + other * n_arcs), (narrow, wide))
    for v in range(n):
        excess[n + v] = -excess[v]


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


@kernel
def most_lost(cut: Cut, to_u: float, to_v: float, crossed: int, error: float, labels: tuple[int, int]) -> float:
    """Returns how much more, at most, the pair that was read costs once its fixed variables get their labels."""
    one, two = labels
    most = 0.0
    for x in range(4):
        i, j = x >> 1, x & 1
        y = 2 * (i if one == UNFIXED else one) + (j if two == UNFIXED else two)
        if y == x or cut.entry[x] == np.inf:
            continue
        if cut.entry[y] == np.inf:
            return np.inf
        before_u, before_v = to_u if i else 0.0, to_v if j != crossed else 0.0
        after_u, after_v = to_u if y >> 1 else 0.0, to_v if y & 1 != crossed else 0.0
        after, before = cut.entry[y] - after_u - after_v, cut.entry[x] - before_u - before_v
        off = cut.size[x] + cut.size[y] + 2.0 * (abs(to_u) + abs(to_v))
        most = max(most, (after - before) + error * off)
    return most


@kernel
def weigh_fixed(graph: Graph, network: Network, table: FloatArray, cut: Cut) -> tuple[float, float]:
    """Returns the bound that the messages of the flow give, summed as `weigh` does, and what fixing may lose."""
    total, lost, size, loss, n_arcs = 0.0, 0.0, 0.0, 0.0, network.head.size
    value, weight, labels, terms, n_forms = cut.value, cut.weight, cut.labels, cut.terms, network.form_at.size
    room = cut.flow.room
    for k in range(network.pair_low.size):
        u, v, a, at = network.pair_low[k], network.pair_high[k], network.pair_arc[k], 4 * (4 * n_forms + k)
        crossed = int(cut.wants[n_forms + k] == relabel.UNLIKE)
        there, back = terms[at + 2], terms[at + 3]  # the narrower arc is exact; its two places may differ: their mean
        if there > back:
            flow = 0.5 * ((room[2 * a + 1] - back) + (room[2 * (n_arcs + a)] - back))
        else:
            flow = 0.5 * ((there - room[2 * a]) + (there - room[2 * (n_arcs + a) + 1]))
        to_u, to_v = terms[at] - flow, terms[at + 1] + flow
        relabel.read_pair(graph, network, table, k, cut)
        error = EPS * (network.part_first[k + 1] - network.part_first[k] + 6)
        least = least_left(cut, to_u, to_v, 0, crossed, error)
        if least == np.inf:
            return np.inf, 0.0
        total, lost = add(total, lost, least)
        size += abs(least)
        if labels[u] != UNFIXED or labels[v] != UNFIXED:
            loss += most_lost(cut, to_u, to_v, crossed, error, (labels[u], labels[v]))
        value[2 * u + 1] += to_u
        weight[2 * u + 1] += abs(to_u)
        value[2 * v + 1 - crossed] += to_v
        weight[2 * v + 1 - crossed] += abs(to_v)
    for v in range(graph.order.size):
        least = least_of_labels(cut, v)
        total, lost = add(total, lost, least)
        size += abs(least)
        if labels[v] != UNFIXED:
            mine, other, error = 2 * v + labels[v], 2 * v + 1 - labels[v], EPS * cut.n_added[v]
            if value[mine] == np.inf:
                loss = np.inf
            elif value[other] < np.inf:
                loss += max(0.0, (value[mine] - value[other]) + 2.0 * error * (weight[mine] + weight[other]))
    n_terms = network.pair_low.size + graph.order.size
    bound = (total + lost) - 2.0 * EPS * abs(total + lost) - 4.0 * (n_terms * EPS) * (n_terms * EPS) * size
    return bound if abs(bound) < np.inf else -np.inf, loss * (1.0 + 2.0 * n_terms * EPS)


@driver
def fix_some(
    arrays: Arrays, problems: IntArray, state: State, networks: IntArray, given: Fixed, watch: IntArray
) -> None:
    """Fixes labels of some open problems without rules; `networks` has the address of each one's network."""
    batch, proofs, fixing = BatchArrays(*arrays), Proofs(*state), Fixing(*given)
    space = relabel.space_for(networks, 2)
    floats = np.empty(together(relabel.cut_floats(space, 2)))
    ints = np.zeros(together(relabel.cut_ints(space)), dtype=np.int64)
    ends = np.zeros(2 * space.variables + 1 + 8 * space.pairs, dtype=np.int64)
    cut = relabel.make_cut(space, 2, floats, ints)
    first, head, sister = split(ends, (2 * space.variables + 1, 4 * space.pairs, 4 * space.pairs))
    stop = part(watch, 0, watch.size)
    for x in range(problems.size):
        p = problems[x]
        watch[AT] = x + 1
        graph, cost, table = instance_of(batch, p)
        network, fixed, n = network_at(networks[x]), labels_of(batch, fixing.labels, p), graph.order.size
        fixing.loss[p] = 0.0
        for v in range(n):
            fixed[v] = UNFIXED
        size = np.inf if watch[ALL] else relabel.read_variables(graph, network, cost, table, cut)
        if size == np.inf or size < 0.0:  # other steps tell
            continue
        forbid = 8.0 * size if size > 0.0 else 1.0
        arcs = Arcs(part(first, 0, 2 * n + 1), part(head, 0, 2 * network.head.size), sister)
        relabel.find_wants(graph, network, table, cut)
        double(graph, network, table, cut, forbid, arcs)
        if not maximise(arcs, cut.flow, stop):
            continue
        n_fixed = take_sides(graph, cut)
        bound, loss = weigh_fixed(graph, network, table, cut)
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
    watch[AT] = 0
    keep((floats, ints, ends, watch))

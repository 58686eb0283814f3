"""Roof duality: labels that some cheapest labelling has, of problems of two labels a variable that are not cuts.

Where pairs are for and against agreeing in a way that no flips mend, each variable gets a second node, which stands for
its labels exchanged. A pair that is against agreeing joins a variable with the other's second node, so that all pairs
are for agreeing. A largest flow then gives the best bound that messages can give, and a variable whose two nodes are on
different sides of the cut has a label that some cheapest labelling has (Hammer, Hansen & Simeone 1984): it is *fixed*.

That is not taken on trust. Let F be the fixed variables, y their labels. For each labelling x, giving F the labels y
changes the cost by a sum of terms, one for each variable of F and each pair that touches it. With the messages of the
flow, none of these is above zero but for rounding. The most that each can be is summed here, rounding included; that
sum is what fixing may lose, and it is subtracted from all bounds of the problem with F fixed.
"""

from __future__ import annotations

import numpy as np

from hasten.jit import driver, inlined_kernel, keep, kernel, part, split
from hasten.kernels.layout import BatchArrays, Graph, instance_of, labels_of
from hasten.kernels.network import Network, network_at
from hasten.kernels.proof.cut import add, least_left, least_of_labels, put_terms
from hasten.kernels.proof.flips import UNLIKE, Cut, find_wants, preference, read_pair, read_variables
from hasten.kernels.proof.flow import Arcs, Flow, is_near, maximise
from hasten.kernels.proof.look import rounding
from hasten.kernels.proof.outcome import (
    BEST,
    BOUND,
    CUT,
    INFEASIBLE,
    LABELS_BY,
    OUTCOME,
    PROVED,
    SIZE,
    STEP,
    Fixing,
    Proofs,
)
from hasten.kernels.score import total_cost
from hasten.kernels.thin import LOOSE
from hasten.kernels.tolerance import EPS, allowance, is_proved
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.clock import ALL, AT

WORTH = 0.1  # of what a proof allows: fixing may not lose more


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
        excess[v] = preference(cut.value[2 * v], cut.value[2 * v + 1], forbid)
        arcs.first[v], arcs.first[n + v] = network.arc_first[v], n_arcs + network.arc_first[v]
    arcs.first[2 * n] = 2 * n_arcs
    for k in range(network.pair_low.size):
        u, v, a = network.pair_low[k], network.pair_high[k], network.pair_arc[k]
        back, crossed, at = network.sister[a], int(cut.wants[n_forms + k] == UNLIKE), 4 * (4 * n_forms + k)
        read_pair(graph, network, table, k, cut)
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
        cut.labels[v] = LOOSE if one == two else 0 if one else 1
        if cut.labels[v] >= graph.first[v + 1] - graph.first[v]:
            cut.labels[v] = LOOSE
        n_fixed += cut.labels[v] != LOOSE
    return n_fixed


@inlined_kernel
def flow_of(cut: Cut, a: int, second: int, there: float, back: float) -> float:
    """Returns what flows along the arc `a`, the mean of what both of its places say; the narrower width is exact."""
    room = cut.flow.room
    if there > back:
        return float(0.5 * ((room[2 * a + 1] - back) + (room[2 * second] - back)))
    return float(0.5 * ((there - room[2 * a]) + (there - room[2 * second + 1])))


@kernel
def most_lost(cut: Cut, to_u: float, to_v: float, crossed: int, error: float, labels: tuple[int, int]) -> float:
    """Returns by how much, at most, the pair that was read gets dearer as its fixed variables get their labels."""
    one, two = labels
    most = 0.0
    for x in range(4):
        i, j = x >> 1, x & 1
        y = 2 * (i if one == LOOSE else one) + (j if two == LOOSE else two)
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
def weigh_roof(graph: Graph, network: Network, table: FloatArray, cut: Cut) -> tuple[float, float]:
    """Returns the bound that the messages of the flow give, summed as `weigh` does, and what fixing may lose."""
    total, lost, size, loss, n_arcs = 0.0, 0.0, 0.0, 0.0, network.head.size
    value, weight, labels, terms, n_forms = cut.value, cut.weight, cut.labels, cut.terms, network.form_at.size
    for k in range(network.pair_low.size):
        u, v, a, at = network.pair_low[k], network.pair_high[k], network.pair_arc[k], 4 * (4 * n_forms + k)
        crossed = int(cut.wants[n_forms + k] == UNLIKE)
        flow = flow_of(cut, a, n_arcs + a, terms[at + 2], terms[at + 3])
        to_u, to_v = terms[at] - flow, terms[at + 1] + flow
        read_pair(graph, network, table, k, cut)
        error = EPS * (network.part_first[k + 1] - network.part_first[k] + 6)
        least = least_left(cut, to_u, to_v, 0, crossed, error)
        if least == np.inf:
            return np.inf, 0.0
        total, lost = add(total, lost, least)
        size += abs(least)
        if labels[u] != LOOSE or labels[v] != LOOSE:
            loss += most_lost(cut, to_u, to_v, crossed, error, (labels[u], labels[v]))
        value[2 * u + 1] += to_u
        weight[2 * u + 1] += abs(to_u)
        value[2 * v + 1 - crossed] += to_v
        weight[2 * v + 1 - crossed] += abs(to_v)
    for v in range(graph.order.size):
        least = least_of_labels(cut, v)
        total, lost = add(total, lost, least)
        size += abs(least)
        if labels[v] != LOOSE:
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
    batch: BatchArrays, networks: IntArray, problems: IntArray, proofs: Proofs, fixing: Fixing, watch: IntArray
) -> None:
    """Fixes what can be fixed of some open problems without rules; `networks` has the address of each one's network.

    Where that is everything, or the bound shows it, the problem is settled.
    """
    n, n_pairs, n_forms = 0, 0, 0
    for x in range(problems.size):
        network = network_at(networks[x])
        n, n_pairs = max(n, network.arc_first.size - 1), max(n_pairs, network.pair_low.size)
        n_forms = max(n_forms, network.form_at.size)
    real = (8 * n_pairs, 2 * n, 2 * n, 2 * n, 4, 4, 16 * n_forms + 4 * n_pairs, 0)
    whole = (8 * n, 2 * n, 2 * n, 2 * n, n, 0, 0, n, n_forms + n_pairs, 5, 2 * n + 1, 4 * n_pairs, 4 * n_pairs)
    floats = np.empty(12 * n_pairs + 6 * n + 16 * n_forms + 8)
    ints = np.zeros(18 * n + 9 * n_pairs + n_forms + 6, dtype=np.int64)
    room, excess, value, weight, entry, sizes, terms, still = split(floats, real)
    node, active, waits, orphans, n_added, flip, queue, labels, wants, ends, first, head, sister = split(ints, whole)
    values, facts, looked = proofs.values, proofs.facts, part(watch, 0, watch.size)
    cut = Cut(
        Flow(room, excess, node, active, waits, orphans, ends),
        value, weight, n_added, entry, sizes, terms, still, flip, wants, queue, labels,
    )  # fmt: skip
    for x in range(problems.size):
        p = problems[x]
        watch[AT] = x + 1
        graph, cost, table = instance_of(batch, p)
        network = network_at(networks[x])
        mine, fixed, n_mine = labels_of(batch, proofs.labels, p), labels_of(batch, fixing.labels, p), graph.order.size
        fixing.loss[p] = 0.0
        for v in range(n_mine):
            fixed[v] = LOOSE
        size = np.inf if watch[ALL] else read_variables(graph, network, cost, table, cut)
        if size == np.inf or size < 0.0:  # other steps tell
            continue
        forbid = 8.0 * size if size > 0.0 else 1.0
        arcs = Arcs(part(first, 0, 2 * n_mine + 1), part(head, 0, 2 * network.head.size), sister)
        find_wants(graph, network, table, cut)
        double(graph, network, table, cut, forbid, arcs)
        if not maximise(arcs, cut.flow, looked):
            continue
        n_fixed = take_sides(graph, cut)
        bound, loss = weigh_roof(graph, network, table, cut)
        if bound > 0.25 * forbid:
            facts[OUTCOME, p], facts[STEP, p], values[BEST, p], values[BOUND, p] = INFEASIBLE, CUT, np.inf, np.inf
            continue
        bound -= rounding(graph, size)
        values[SIZE, p] = size
        if n_fixed and loss <= WORTH * allowance(bound, size):
            fixing.loss[p] = loss
            for v in range(n_mine):
                fixed[v] = cut.labels[v]
            if n_fixed == n_mine:
                found = total_cost(graph, cost, table, fixed)
                if found < values[BEST, p]:
                    values[BEST, p], facts[LABELS_BY, p] = found, CUT
                    for v in range(n_mine):
                        mine[v] = fixed[v]
        values[BOUND, p] = min(max(bound, values[BOUND, p]), values[BEST, p])
        if is_proved(values[BEST, p], values[BOUND, p], size):
            facts[OUTCOME, p], facts[STEP, p] = PROVED, CUT
    watch[AT] = 0
    keep((floats, ints, watch))

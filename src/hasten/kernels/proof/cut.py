"""Cutting: what has two labels a variable, and joins none of them against the others, is a smallest cut.

A pair of variables is *for* agreeing if its table costs at most as much where they agree as where they differ:
t(0, 0) + t(1, 1) <= t(0, 1) + t(1, 0). Where all pairs are (*submodular*), the cheapest labelling is a smallest cut of
a network. Where some are against agreeing, exchanging the labels of some variables, the *flips*, may make them be for
it; whether it does is seen by going through the graph once.

A largest flow in the network is a proof: it is a way to send messages, and the bound of these messages is the cut. The
bound is summed anew from the costs and tables as they were given (`weigh`), so that nothing hangs on the flow.
Forbidden labels and tuples cost `forbid`, more than any labelling can; where even the cheapest cut pays that, which the
bound then shows, there is no valid labelling.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import driver, inlined_kernel, keep, kernel, part, split
from hasten.kernels.layout import BatchArrays, Graph, costs_of, graph_of, labels_of, tables_of
from hasten.kernels.network import Network, network_at
from hasten.kernels.proof.flow import FREE, Flow, maximise
from hasten.kernels.proof.look import OVERFLOW
from hasten.kernels.proof.outcome import (
    BEST,
    BOUND,
    CUT,
    GIVEN,
    INFEASIBLE,
    LABELS_BY,
    N_NODES,
    N_SWEEPS,
    OPEN,
    OUTCOME,
    PROVED,
    SIZE,
    STEP,
    STOPPED,
    UNTRIED,
    Proofs,
)
from hasten.kernels.proof.watch import stopped
from hasten.kernels.rows import rows_hold
from hasten.kernels.score import total_cost
from hasten.kernels.tolerance import EPS, is_proved
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.clock import ALL, AT

EITHER, ALIKE, UNLIKE = 0, 1, 2  # what a pair wants of its variables' flips: anything, the same, one of the two
UNSEEN = 2  # in place of a flip


class Cut(NamedTuple):
    """Scratch space for one network: V variables, P pairs."""

    flow: Flow
    value: FloatArray  # (2 V,) what each label costs; later, with messages
    weight: FloatArray  # (2 V,) the magnitudes of what was added up to that
    n_added: IntArray  # (V,) how many numbers that were, at most
    entry: FloatArray  # (4,) what the labels 00, 01, 10, 11 of one pair cost
    size: FloatArray  # (4,) the magnitudes of what was added up to that
    sent: FloatArray  # (2 P,) what each pair adds to label 1, flipped, of its variables
    width: FloatArray  # (2 P,) what its two arcs can carry
    flip: IntArray  # (V,) 1 where the labels are exchanged
    wants: IntArray  # (P,)
    queue: IntArray  # (V,) for going through the graph
    labels: IntArray  # (V,)


@kernel
def read_variables(graph: Graph, network: Network, cost: FloatArray, table: FloatArray, cut: Cut) -> float:
    """Sums what the labels of each variable cost by themselves; returns the size of all terms, as looking does.

    That is inf if sums may overflow, and -1 if a variable has no label that is allowed.
    """
    value, weight, size = cut.value, cut.weight, 0.0
    for v in range(graph.order.size):
        largest, at, n = 0.0, graph.first[v], graph.first[v + 1] - graph.first[v]
        for i in range(2):
            mine = cost[at + i] if i < n else np.inf
            value[2 * v + i], weight[2 * v + i] = mine, abs(mine)
            if mine < np.inf:
                largest = max(largest, abs(mine))
        size += largest
        cut.n_added[v] = 4 + network.arc_first[v + 1] - network.arc_first[v]
    for x in range(graph.soft_at.size):
        largest = 0.0
        for at in range(graph.soft_at[x], graph.soft_at[x] + graph.soft_size[x]):
            if table[at] < np.inf:
                largest = max(largest, abs(table[at]))
        size += largest * graph.soft_count[x]
    for x in range(network.single.size):
        v, at = network.single[x], network.single_at[x]
        for i in range(graph.first[v + 1] - graph.first[v]):
            added = network.own[at + i] if network.single_own[x] else table[at + i * network.single_step[x]]
            value[2 * v + i] += added
            weight[2 * v + i] += abs(added)
        cut.n_added[v] += 1
    for v in range(graph.order.size):
        if value[2 * v] == np.inf and value[2 * v + 1] == np.inf:
            return -1.0
    return size if size < OVERFLOW else np.inf


@kernel
def read_parts(graph: Graph, network: Network, table: FloatArray, k: int, cut: Cut) -> None:
    """Sums what the four labellings of pair `k` cost, and the magnitudes of that; what does not exist costs inf."""
    u, v = network.pair_low[k], network.pair_high[k]
    for i in range(2):
        for j in range(2):
            total, size = 0.0, 0.0
            if i >= graph.first[u + 1] - graph.first[u] or j >= graph.first[v + 1] - graph.first[v]:
                total = np.inf
            else:
                for x in range(network.part_first[k], network.part_first[k + 1]):
                    at = network.part_at[x] + i * network.part_low[x] + j * network.part_high[x]
                    value = network.own[at] if network.part_own[x] else table[at]
                    total += value
                    size += abs(value)
            cut.entry[2 * i + j], cut.size[2 * i + j] = total, size


@inlined_kernel
def read_pair(graph: Graph, network: Network, table: FloatArray, k: int, cut: Cut) -> None:
    """Does the same: the short way where pair `k` is one table of the problem over two labels each, as most are."""
    if network.plain[k]:
        x = network.part_first[k]
        at, low, high = network.part_at[x], network.part_low[x], network.part_high[x]
        cut.entry[0], cut.entry[1], cut.entry[2] = table[at], table[at + high], table[at + low]
        cut.entry[3] = table[at + low + high]
        for y in range(4):
            cut.size[y] = abs(cut.entry[y])
    else:
        read_parts(graph, network, table, k, cut)


@inlined_kernel
def wanted(e00: float, e01: float, e10: float, e11: float) -> int:
    """Returns what a pair wants of its flips. Where a variable may have only one label, it wants nothing."""
    agreeing, differing = e00 + e11, e01 + e10
    if agreeing == differing:
        return EITHER
    rounding = 4.0 * EPS * (abs(e00) + abs(e01) + abs(e10) + abs(e11))
    if rounding < np.inf and abs(agreeing - differing) <= rounding:
        return EITHER
    return ALIKE if agreeing < differing else UNLIKE


@kernel
def find_flips(graph: Graph, network: Network, table: FloatArray, cut: Cut) -> bool:
    """Chooses flips with which each pair is for agreeing; false if there are none."""
    flip, wants, unlike = cut.flip, cut.wants, False
    for k in range(network.pair_low.size):
        read_pair(graph, network, table, k, cut)
        wants[k] = wanted(cut.entry[0], cut.entry[1], cut.entry[2], cut.entry[3])
        unlike |= wants[k] == UNLIKE
    for v in range(graph.order.size):
        flip[v] = UNSEEN if unlike else 0
    for start in range(graph.order.size if unlike else 0):
        if flip[start] != UNSEEN:
            continue
        flip[start] = 0
        cut.queue[0] = start
        at, end = 0, 1
        while at < end:
            u = cut.queue[at]
            at += 1
            for a in range(network.arc_first[u], network.arc_first[u + 1]):
                want, v = wants[network.arc_pair[a]], network.head[a]
                if want == EITHER:
                    continue
                mine = flip[u] if want == ALIKE else 1 - flip[u]
                if flip[v] == UNSEEN:
                    flip[v] = mine
                    cut.queue[end] = v
                    end += 1
                elif flip[v] != mine:
                    return False
    return True


@inlined_kernel
def preference(zero: float, one: float, forbid: float) -> float:
    """Returns by how much label 1 is dearer than label 0."""
    if one == np.inf:
        return 0.0 if zero == np.inf else forbid
    return -forbid if zero == np.inf else one - zero


@inlined_kernel
def as_arcs(e00: float, e01: float, e10: float, e11: float, forbid: float) -> tuple[float, float, float, float]:
    """Returns what a pair, flipped, adds to label 1 of its variables, and what its two arcs carry.

    The arc from the first to the second is cut where they are 0 and 1, the other where they are 1 and 0.
    """
    if (e00 == np.inf or e11 == np.inf) and (e01 == np.inf or e10 == np.inf):
        if e00 == np.inf and e01 == np.inf:  # the first is 1
            return -forbid, preference(e10, e11, forbid), 0.0, 0.0
        if e10 == np.inf and e11 == np.inf:
            return forbid, preference(e00, e01, forbid), 0.0, 0.0
        if e00 == np.inf:  # and so is e10: the second is 1
            return preference(e01, e11, forbid), -forbid, 0.0, 0.0
        return preference(e00, e10, forbid), forbid, 0.0, 0.0
    if e01 == np.inf and e10 == np.inf:
        half = 0.5 * (e11 - e00)
        return half, (e11 - e00) - half, forbid, forbid
    if e01 == np.inf:
        return e10 - e00, e11 - e10, forbid, 0.0
    if e10 == np.inf:
        return e11 - e01, e01 - e00, 0.0, forbid
    both = max(0.0, (e01 - e00) + (e10 - e11))
    half = 0.5 * both
    return e10 - e00 - (both - half), e01 - e00 - half, half, both - half


@kernel
def build(graph: Graph, network: Network, table: FloatArray, cut: Cut, forbid: float) -> None:
    """Makes the network of one problem, given its flips."""
    room, excess, flip, entry = cut.flow.room, cut.flow.excess, cut.flip, cut.entry
    for v in range(graph.order.size):
        excess[v] = preference(cut.value[2 * v + flip[v]], cut.value[2 * v + 1 - flip[v]], forbid)
    for k in range(network.pair_low.size):
        u, v = network.pair_low[k], network.pair_high[k]
        read_pair(graph, network, table, k, cut)
        at = 2 * flip[u] + flip[v]
        low, high, there, back = as_arcs(entry[at], entry[at ^ 1], entry[at ^ 2], entry[at ^ 3], forbid)
        excess[u] += low
        excess[v] += high
        cut.sent[2 * k], cut.sent[2 * k + 1] = low, high
        cut.width[2 * k], cut.width[2 * k + 1] = there, back
        a = network.pair_arc[k]
        room[a], room[network.sister[a]] = there, back


@kernel
def take_side(graph: Graph, cut: Cut) -> bool:
    """Labels each variable by its side of the cut; false if a variable has no such label."""
    for v in range(graph.order.size):
        near = cut.flow.parent[v] != FREE and not cut.flow.in_sink[v]
        cut.labels[v] = cut.flip[v] if near else 1 - cut.flip[v]
        if cut.labels[v] >= graph.first[v + 1] - graph.first[v]:
            return False
    return True


@inlined_kernel
def carried(network: Network, cut: Cut, k: int) -> float:
    """Returns what flows from the first variable of pair `k` to the second; the narrower arc tells it more exactly."""
    there, back = network.pair_arc[k], network.sister[network.pair_arc[k]]
    if cut.width[2 * k] > cut.width[2 * k + 1]:
        return float(cut.flow.room[back] - cut.width[2 * k + 1])
    return float(cut.width[2 * k] - cut.flow.room[there])


@inlined_kernel
def add(total: float, lost: float, value: float) -> tuple[float, float]:
    """Returns a sum with one more number in it, and all that rounding took from it."""
    after = total + value
    kept = after - total
    return after, lost + ((total - (after - kept)) + (value - kept))


@kernel
def weigh(graph: Graph, network: Network, table: FloatArray, cut: Cut) -> tuple[float, float, float]:
    """Returns what `cut.labels` cost, how far that sum can be off, and the bound that the messages give.

    A flow is a way to send messages: what an arc carries, its tail no longer pays and its head does. They are taken as
    the numbers they are: any will do. A sum of n numbers is off by less than n * eps times the sum of their magnitudes,
    which is subtracted from each label's and each tuple's sum. The least of these are summed together with what
    rounding takes from that sum, which leaves errors of its square.
    """
    total, lost, size, found, spent = 0.0, 0.0, 0.0, 0.0, 0.0
    n_terms, n_parts = network.pair_low.size + graph.order.size, network.part_at.size + network.single.size
    value, weight, flip, labels = cut.value, cut.weight, cut.flip, cut.labels
    for v in range(graph.order.size):
        found += value[2 * v + labels[v]]
        spent += weight[2 * v + labels[v]]
    for k in range(network.pair_low.size):
        u, v, flow = network.pair_low[k], network.pair_high[k], carried(network, cut, k)
        to_u, to_v = cut.sent[2 * k] - flow, cut.sent[2 * k + 1] + flow
        read_pair(graph, network, table, k, cut)
        error, least = EPS * (network.part_first[k + 1] - network.part_first[k] + 4), np.inf
        for x in range(4):
            from_u, from_v = to_u if x >> 1 != flip[u] else 0.0, to_v if x & 1 != flip[v] else 0.0
            lower = (cut.entry[x] - from_u - from_v) - error * (cut.size[x] + abs(from_u) + abs(from_v))
            if lower < least:  # never where the entry is inf: then this is not a number
                least = lower
        if least == np.inf:
            return np.inf, 0.0, np.inf
        total, lost = add(total, lost, least)
        size += abs(least)
        found += cut.entry[2 * labels[u] + labels[v]]
        spent += cut.size[2 * labels[u] + labels[v]]
        i, j = 2 * u + 1 - flip[u], 2 * v + 1 - flip[v]
        value[i] += to_u
        weight[i] += abs(to_u)
        value[j] += to_v
        weight[j] += abs(to_v)
    for v in range(graph.order.size):
        least, error = np.inf, EPS * cut.n_added[v]
        for at in range(2 * v, 2 * v + 2):
            lower = value[at] - error * weight[at]
            if lower < least:
                least = lower
        total, lost = add(total, lost, least)
        size += abs(least)
    bound = (total + lost) - 2.0 * EPS * abs(total + lost) - 4.0 * (n_terms * EPS) * (n_terms * EPS) * size
    if not abs(bound) < np.inf:
        bound = -np.inf
    return found, EPS * (4 + graph.order.size + n_parts) * spent, bound


@kernel
def cut_one(
    graph: Graph, network: Network, table: FloatArray, cut: Cut, size: float, watch: IntArray
) -> tuple[int, float, float]:
    """Cuts one problem that was read; returns the outcome, the cost of `cut.labels` (inf: not valid), and a bound."""
    forbid = 8.0 * size if size > 0.0 else 1.0  # no valid labelling costs more than `size`
    build(graph, network, table, cut, forbid)
    maximise(network, cut.flow, watch)
    exists = take_side(graph, cut)
    found, slip, bound = weigh(graph, network, table, cut)
    if bound > 0.25 * forbid:
        return INFEASIBLE, np.inf, np.inf
    if not exists or not found < np.inf or (graph.row_low.size and not rows_hold(graph, cut.labels)):
        return OPEN, np.inf, bound
    return OPEN, found, bound - slip if size > 0.0 else 0.0  # of terms that are all zero every sum is


@driver
def cut_some(batch: BatchArrays, networks: IntArray, problems: IntArray, proofs: Proofs, watch: IntArray) -> None:
    """Cuts some problems; `networks` has, for each, the address of its network.

    What is no cut stays `UNTRIED`.
    """
    n, n_pairs = 0, 0
    for x in range(problems.size):
        network = network_at(networks[x])
        n, n_pairs = max(n, network.arc_first.size - 1), max(n_pairs, network.pair_low.size)
    pairs, whole = 2 * n_pairs, (n, n, n, n, n, n, n, n, n, n, n, n_pairs, 5)
    floats, ints = np.empty(3 * pairs + 5 * n + 8), np.zeros(11 * n + n_pairs + 5, dtype=np.int64)
    room, sent, width, excess, value, weight, entry, sizes = split(floats, (pairs, pairs, pairs, n, 2 * n, 2 * n, 4, 4))
    parent, in_sink, time, distance, active, waits, orphans, n_added, flip, queue, labels, wants, ends = split(
        ints, whole
    )
    flow = Flow(room, excess, parent, in_sink, time, distance, active, waits, orphans, ends)
    cut = Cut(flow, value, weight, n_added, entry, sizes, sent, width, flip, wants, queue, labels)
    values, facts, looked = proofs.values, proofs.facts, part(watch, 0, watch.size)
    for x in range(problems.size):
        p = problems[x]
        watch[AT] = x + 1
        facts[OUTCOME, p] = UNTRIED
        if watch[ALL]:
            continue
        graph, given, network, table = graph_of(batch, p), values[BEST, p], network_at(networks[x]), tables_of(batch, p)
        size = read_variables(graph, network, costs_of(batch, p), table, cut)
        if size == np.inf:
            continue
        facts[STEP, p], facts[LABELS_BY, p], facts[N_SWEEPS, p], facts[N_NODES, p] = CUT, GIVEN, 0, 0
        outcome, found, bound = INFEASIBLE, np.inf, np.inf
        if size >= 0.0:
            if not find_flips(graph, network, table, cut):
                continue
            outcome, found, bound = cut_one(graph, network, table, cut, size, looked)
        facts[OUTCOME, p], values[SIZE, p] = outcome, max(size, 0.0)
        if outcome == INFEASIBLE:
            values[BEST, p] = values[BOUND, p] = np.inf
            continue
        if found < given < np.inf:  # the same labels must cost the same
            found = total_cost(graph, costs_of(batch, p), table, cut.labels)
        if found < given:
            values[BEST, p], facts[LABELS_BY, p] = found, CUT
            mine = labels_of(batch, proofs.labels, p)
            for v in range(graph.order.size):
                mine[v] = cut.labels[v]
        values[BOUND, p] = min(bound, values[BEST, p])
        if is_proved(values[BEST, p], values[BOUND, p], size):
            facts[OUTCOME, p] = PROVED
        elif stopped(looked):
            facts[OUTCOME, p] = STOPPED
    watch[AT] = 0
    keep((floats, ints, watch))

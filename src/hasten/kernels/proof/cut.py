"""Cutting: what has two labels a variable, and joins none of them against the others, is a smallest cut.

Where all pairs are for agreeing (*submodular*; `hasten.kernels.proof.flips`), if need be after exchanging the labels of
some variables, the cheapest labelling is a smallest cut of a network.

A largest flow in the network is a proof: it is a way to send messages, and the bound of these messages is the cut. The
bound is summed anew from the costs and tables as they were given (`weigh`), so that nothing hangs on the flow.
Forbidden labels and tuples cost `forbid`, more than any labelling can; where even the cheapest cut pays that, which the
bound then shows, there is no valid labelling.
"""

from __future__ import annotations

import numpy as np

from hasten.jit import driver, inlined_kernel, keep, kernel, part, split
from hasten.kernels.layout import BatchArrays, Graph, costs_of, graph_of, labels_of, tables_of
from hasten.kernels.network import Network, network_at
from hasten.kernels.proof.flips import Cut, as_arcs, find_flips, preference, read_form, read_pair, read_variables
from hasten.kernels.proof.flow import Arcs, Flow, is_near, maximise
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


@inlined_kernel
def least_left(cut: Cut, to_u: float, to_v: float, flip_u: int, flip_v: int, error: float) -> float:
    """Returns what the pair that was read costs at least once its messages are taken out, less their rounding."""
    least = np.inf
    for x in range(4):
        from_u, from_v = to_u if x >> 1 != flip_u else 0.0, to_v if x & 1 != flip_v else 0.0
        lower = (cut.entry[x] - from_u - from_v) - error * (cut.size[x] + abs(from_u) + abs(from_v))
        if lower < least:  # never where the entry is inf: then this is not a number
            least = lower
    return least


@inlined_kernel
def least_of_labels(cut: Cut, v: int) -> float:
    """Returns what variable `v` costs at least with its messages, less their rounding."""
    least, error = np.inf, EPS * cut.n_added[v]
    for at in range(2 * v, 2 * v + 2):
        lower = cut.value[at] - error * cut.weight[at]
        if lower < least:
            least = lower
    return least


@inlined_kernel
def put_terms(cut: Cut, place: int, flips: int, forbid: float) -> None:
    """Writes the terms of the pair that was read, given the flips of its variables, 2 * the first's + the second's."""
    entry, at, terms = cut.entry, flips, cut.terms
    terms[4 * place], terms[4 * place + 1], terms[4 * place + 2], terms[4 * place + 3] = as_arcs(
        entry[at], entry[at ^ 1], entry[at ^ 2], entry[at ^ 3], forbid
    )


@inlined_kernel
def place_of(network: Network, cut: Cut, k: int) -> int:
    """Returns where the terms of pair `k` are, in fours."""
    if network.form[k] >= 0:
        return int(4 * network.form[k] + 2 * cut.flip[network.pair_low[k]] + cut.flip[network.pair_high[k]])
    return int(4 * network.form_at.size + k)


@kernel
def build(graph: Graph, network: Network, table: FloatArray, cut: Cut, forbid: float) -> None:
    """Makes the network of one problem, given its flips."""
    room, excess, flip, terms = cut.flow.room, cut.flow.excess, cut.flip, cut.terms
    for v in range(graph.order.size):
        excess[v] = preference(cut.value[2 * v + flip[v]], cut.value[2 * v + 1 - flip[v]], forbid)
    for m in range(network.form_at.size):
        read_form(network, table, m, cut)
        for flips in range(4):
            at = 4 * (4 * m + flips)
            put_terms(cut, 4 * m + flips, flips, forbid)
            cut.still[4 * m + flips] = least_left(cut, terms[at], terms[at + 1], flips >> 1, flips & 1, 5 * EPS)
    for k in range(network.pair_low.size):
        u, v, at = network.pair_low[k], network.pair_high[k], 4 * place_of(network, cut, k)
        if network.form[k] < 0:
            read_pair(graph, network, table, k, cut)
            put_terms(cut, at // 4, 2 * flip[u] + flip[v], forbid)
        if terms[at] != 0.0:
            excess[u] += terms[at]
        if terms[at + 1] != 0.0:
            excess[v] += terms[at + 1]
        a = network.pair_arc[k]
        back = network.sister[a]
        room[2 * a] = room[2 * back + 1] = terms[at + 2]
        room[2 * back] = room[2 * a + 1] = terms[at + 3]


@kernel
def take_side(graph: Graph, cut: Cut) -> bool:
    """Labels each variable by its side of the cut; false if a variable has no such label."""
    for v in range(graph.order.size):
        cut.labels[v] = cut.flip[v] if is_near(cut.flow, v) else 1 - cut.flip[v]
        if cut.labels[v] >= graph.first[v + 1] - graph.first[v]:
            return False
    return True


@inlined_kernel
def carried(network: Network, cut: Cut, k: int, there: float, back: float) -> float:
    """Returns what flows from the first variable of pair `k` to the second; the narrower arc tells it more exactly."""
    a = network.pair_arc[k]
    if there > back:
        return float(cut.flow.room[2 * a + 1] - back)
    return float(there - cut.flow.room[2 * a])


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
    value, weight, flip, labels, terms = cut.value, cut.weight, cut.flip, cut.labels, cut.terms
    for v in range(graph.order.size):
        found += value[2 * v + labels[v]]
        spent += weight[2 * v + labels[v]]
    for k in range(network.pair_low.size):
        u, v, place = network.pair_low[k], network.pair_high[k], place_of(network, cut, k)
        at, m = 4 * place, network.form[k]
        flow = carried(network, cut, k, terms[at + 2], terms[at + 3])
        to_u, to_v = terms[at] - flow, terms[at + 1] + flow
        if m >= 0:
            entry = table[network.form_at[m] + network.form_low[m] * labels[u] + network.form_high[m] * labels[v]]
            found += entry
            spent += abs(entry)
        if m >= 0 and flow == 0.0:
            least = cut.still[place]
        else:
            if m >= 0:
                read_form(network, table, m, cut)
            else:
                read_pair(graph, network, table, k, cut)
                found += cut.entry[2 * labels[u] + labels[v]]
                spent += cut.size[2 * labels[u] + labels[v]]
            error = EPS * (network.part_first[k + 1] - network.part_first[k] + 4)
            least = least_left(cut, to_u, to_v, flip[u], flip[v], error)
        if least == np.inf:
            return np.inf, 0.0, np.inf
        if least != 0.0:
            total, lost = add(total, lost, least)
            size += abs(least)
        if to_u != 0.0:
            value[2 * u + 1 - flip[u]] += to_u
            weight[2 * u + 1 - flip[u]] += abs(to_u)
        if to_v != 0.0:
            value[2 * v + 1 - flip[v]] += to_v
            weight[2 * v + 1 - flip[v]] += abs(to_v)
    for v in range(graph.order.size):
        least = least_of_labels(cut, v)
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
    maximise(Arcs(network.arc_first, network.head, network.sister), cut.flow, watch)
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

    What is not a cut stays `UNTRIED`.
    """
    n, n_pairs, n_forms = 0, 0, 0
    for x in range(problems.size):
        network = network_at(networks[x])
        n, n_pairs = max(n, network.arc_first.size - 1), max(n_pairs, network.pair_low.size)
        n_forms = max(n_forms, network.form_at.size)
    real = (4 * n_pairs, n, 2 * n, 2 * n, 4, 4, 16 * n_forms + 4 * n_pairs, 4 * n_forms)
    whole = (4 * n, n, n, n, n, n, n, n, n_forms + n_pairs, 5)
    floats = np.empty(8 * n_pairs + 5 * n + 20 * n_forms + 8)
    ints = np.zeros(11 * n + n_pairs + n_forms + 5, dtype=np.int64)
    room, excess, value, weight, entry, sizes, terms, still = split(floats, real)
    node, active, waits, orphans, n_added, flip, queue, labels, wants, ends = split(ints, whole)
    flow = Flow(room, excess, node, active, waits, orphans, ends)
    cut = Cut(flow, value, weight, n_added, entry, sizes, terms, still, flip, wants, queue, labels)
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

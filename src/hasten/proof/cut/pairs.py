"""The pairs of a network: the costs of labels and pairs, the relabelling of variables, the capacities of arcs.

A pair is *for* agreeing if t(0, 0) + t(1, 1) <= t(0, 1) + t(1, 0). Exchanging the labels of some variables (a *flip*)
may make all pairs be for it; whether it does is seen by going through the graph once. Where it does not, the network is
*doubled*: each variable gets a second node, for its labels exchanged, and pairs against agreeing are crossed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hasten.jit import inlined_kernel, kernel
from hasten.kernels.layout import Graph
from hasten.kernels.tolerance import EPS
from hasten.proof.cut.flow import Arcs, Flow
from hasten.proof.cut.network import Network, network_at
from hasten.proof.outcome import OVERFLOW, UNFIXED, tables_alone
from hasten.support.arrays import FloatArray, IntArray

EITHER, ALIKE, UNLIKE = 0, 1, 2  # how a pair wants its variables flipped: anyhow, alike, one of the two
UNSEEN = 2  # in place of a flip


class Cut(NamedTuple):
    """Scratch space for one network: V variables, P pairs."""

    flow: Flow
    arcs: Arcs  # of a doubled network
    value: FloatArray  # (2 V,) the cost of each label; later, with messages
    weight: FloatArray  # (2 V,) the magnitudes of its terms
    entry: FloatArray  # (4,) the costs of the labels 00, 01, 10, 11 of one pair
    size: FloatArray  # (4,) the magnitudes of their terms
    terms: FloatArray  # (4 P,) what each pair adds to label 1, flipped, of its variables, and the widths of its arcs
    n_added: IntArray  # (V,) how many numbers were added to the costs of labels, at most
    flip: IntArray  # (V,) 1 where the labels are exchanged
    queue: IntArray  # (V,) for going through the graph
    labels: IntArray  # (V,)
    wants: IntArray  # (P,)


@inlined_kernel
def sizes_for(networks: IntArray, copies: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns how many floats, and how many integers, each field of a `Cut` takes; a variable has `copies` nodes."""
    v, pairs, more = 0, 0, copies - 1
    for x in range(networks.size):
        network = network_at(networks[x])
        v, pairs = max(v, network.arc_first.size - 1), max(pairs, network.pair_low.size)
    nodes, arcs = copies * v, copies * 2 * pairs
    n_floats = 2 * arcs, nodes, 2 * v, 2 * v, 4, 4, 4 * pairs
    n_ints = 4 * nodes, nodes, nodes, nodes, 5, more * (nodes + 1), more * arcs, more * arcs, v, v, v, v, pairs
    return n_floats, n_ints


@inlined_kernel
def make_cut(floats: tuple[Any, ...], ints: tuple[Any, ...]) -> Cut:
    """Returns scratch space of spans that have these sizes."""
    return Cut(Flow(*(floats[:2] + ints[:5])), Arcs(*ints[5:8]), *(floats[2:] + ints[8:]))


@kernel
def read_variables(graph: Graph, network: Network, cost: FloatArray, table: FloatArray, cut: Cut) -> float:
    """Sums the costs of the labels of each variable by themselves; returns the size of all terms, as looking does.

    The size is inf if sums may overflow, and -1 if a variable has no allowed label.
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
    _, in_tables = tables_alone(graph, table, 0.0)
    size += in_tables
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
def read_pair(graph: Graph, network: Network, table: FloatArray, k: int, cut: Cut) -> None:
    """Reads pair `k`: the costs of its labellings, and the magnitudes of their terms; missing labels cost inf."""
    x, entry, u, v = network.part_first[k], cut.entry, network.pair_low[k], network.pair_high[k]
    if network.plain[k]:  # one table of the problem over two labels each, as most are
        at, low, high = network.part_at[x], network.part_low[x], network.part_high[x]
        entry[0], entry[1], entry[2], entry[3] = table[at], table[at + high], table[at + low], table[at + low + high]
        for y in range(4):
            cut.size[y] = abs(entry[y])
        return
    for y in range(4):
        i, j, total, size = y >> 1, y & 1, 0.0, 0.0
        if i >= graph.first[u + 1] - graph.first[u] or j >= graph.first[v + 1] - graph.first[v]:
            total = np.inf
        else:
            for x in range(network.part_first[k], network.part_first[k + 1]):
                at = network.part_at[x] + i * network.part_low[x] + j * network.part_high[x]
                value = network.own[at] if network.part_own[x] else table[at]
                total += value
                size += abs(value)
        entry[y], cut.size[y] = total, size


@inlined_kernel
def wanted(e00: float, e01: float, e10: float, e11: float) -> int:
    """Returns how a pair wants its variables flipped. Where one may have only one label, any way will do."""
    agreeing, differing = e00 + e11, e01 + e10
    if agreeing == differing:
        return EITHER
    rounding = 4.0 * EPS * (abs(e00) + abs(e01) + abs(e10) + abs(e11))
    if rounding < np.inf and abs(agreeing - differing) <= rounding:
        return EITHER
    return ALIKE if agreeing < differing else UNLIKE


@kernel
def find_wants(graph: Graph, network: Network, table: FloatArray, cut: Cut) -> bool:
    """Notes how each pair wants its variables flipped; returns whether one wants them unlike."""
    entry, unlike = cut.entry, False
    for k in range(network.pair_low.size):
        read_pair(graph, network, table, k, cut)
        cut.wants[k] = wanted(entry[0], entry[1], entry[2], entry[3])
        unlike |= cut.wants[k] == UNLIKE
    return unlike


@kernel
def find_relabelling(graph: Graph, network: Network, table: FloatArray, cut: Cut) -> bool:
    """Chooses flips with which each pair is for agreeing; false if there are none."""
    flip = cut.flip
    unlike = find_wants(graph, network, table, cut)
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
                want, v = cut.wants[network.arc_pair[a]], network.head[a]
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
    """Returns how much more label 1 costs than label 0."""
    if one == np.inf:
        return 0.0 if zero == np.inf else forbid
    return -forbid if zero == np.inf else one - zero


@inlined_kernel
def as_arcs(e00: float, e01: float, e10: float, e11: float, forbid: float) -> tuple[float, float, float, float]:
    """Returns what a pair, flipped, adds to label 1 of its variables, and the widths of its two arcs.

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


@inlined_kernel
def widen(flow: Flow, there: int, back: int, width: float, back_width: float) -> None:
    """Sets the widths of two arcs, each the other's sister."""
    flow.room[2 * there] = flow.room[2 * back + 1] = width
    flow.room[2 * back] = flow.room[2 * there + 1] = back_width


@inlined_kernel
def join(arcs: Arcs, there: int, back: int, tail: int, head: int) -> None:
    """Joins two nodes by two arcs."""
    arcs.head[there], arcs.sister[there] = head, back
    arcs.head[back], arcs.sister[back] = tail, there


@kernel
def build(
    graph: Graph, network: Network, table: FloatArray, cut: Cut, forbid: float, arcs: Arcs, doubled: bool
) -> None:
    """Makes the network of one problem: with its flips, or doubled, with the nodes v and V + v for each variable."""
    n, n_arcs, flow, excess, flip, entry, terms = (
        graph.order.size, network.head.size, cut.flow, cut.flow.excess, cut.flip, cut.entry, cut.terms,
    )  # fmt: skip
    for v in range(n):
        excess[v] = preference(cut.value[2 * v + flip[v]], cut.value[2 * v + 1 - flip[v]], forbid)
        if doubled:
            arcs.first[v], arcs.first[n + v] = network.arc_first[v], n_arcs + network.arc_first[v]
    for k in range(network.pair_low.size):
        u, v, there, t = network.pair_low[k], network.pair_high[k], network.pair_arc[k], 4 * k
        back, crossed = network.sister[there], int(doubled and cut.wants[k] == UNLIKE)
        read_pair(graph, network, table, k, cut)
        y = 2 * flip[u] + (flip[v] ^ crossed)
        terms[t], terms[t + 1], terms[t + 2], terms[t + 3] = as_arcs(
            entry[y], entry[y ^ 1], entry[y ^ 2], entry[y ^ 3], forbid
        )
        excess[u] += terms[t]
        excess[v] += -terms[t + 1] if crossed else terms[t + 1]
        widen(flow, there, back + crossed * n_arcs, terms[t + 2], terms[t + 3])
        if doubled:
            again, other = n_arcs + there, 1 - crossed
            widen(flow, again, back + other * n_arcs, terms[t + 3], terms[t + 2])
            join(arcs, there, back + crossed * n_arcs, u, v + crossed * n)
            join(arcs, again, back + other * n_arcs, n + u, v + other * n)
    if doubled:
        arcs.first[2 * n] = 2 * n_arcs
        for v in range(n):
            excess[n + v] = -excess[v]


@inlined_kernel
def least_left(cut: Cut, to_u: float, to_v: float, flip_u: int, flip_v: int, error: float) -> float:
    """Returns the least cost of the pair that was read, once its messages are taken out, less their rounding."""
    least = np.inf
    for x in range(4):
        from_u, from_v = to_u if x >> 1 != flip_u else 0.0, to_v if x & 1 != flip_v else 0.0
        lower = (cut.entry[x] - from_u - from_v) - error * (cut.size[x] + abs(from_u) + abs(from_v))
        if lower < least:  # never where the entry is inf: then this is not a number
            least = lower
    return least


@inlined_kernel
def flow_of(cut: Cut, there: int, k: int, n_arcs: int, doubled: bool) -> float:
    """Returns the flow in the first arc of pair `k`, by the narrower of both arcs, which is more exact.

    In a doubled network it stands in two places, which may differ: their mean counts.
    """
    room, width, back_width = cut.flow.room, cut.terms[4 * k + 2], cut.terms[4 * k + 3]
    if width > back_width:
        one, two = room[2 * there + 1] - back_width, room[2 * (n_arcs + there)] - back_width if doubled else 0.0
    else:
        one, two = width - room[2 * there], width - room[2 * (n_arcs + there) + 1] if doubled else 0.0
    return float(0.5 * (one + two) if doubled else one)


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


@inlined_kernel
def add(total: float, lost: float, value: float) -> tuple[float, float]:
    """Returns a sum with one more number in it, and all that rounding took from it."""
    after = total + value
    kept = after - total
    return after, lost + ((total - (after - kept)) + (value - kept))


@kernel
def weigh(
    graph: Graph, network: Network, table: FloatArray, cut: Cut, doubled: bool
) -> tuple[float, float, float, float]:
    """Returns the bound by the messages of the flow, the cost of `cut.labels`, the magnitudes of its terms, and a loss.

    In a doubled network labels may be unfixed: their cost is given as 0, and the loss is what fixing may lose. A flow
    is a way to send messages: an arc moves a cost from its tail to its head. Messages are taken as the floating-point
    numbers they are: any will do. A sum of n numbers is off by less than n * eps times the sum of their magnitudes,
    which is subtracted from the sum of each label and each tuple. The least of these are summed together with the
    rounding of that sum, which leaves errors of its square.
    """
    total, lost, size, found, spent, loss = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    value, weight, labels, flip = cut.value, cut.weight, cut.labels, cut.flip
    for v in range(0 if doubled else graph.order.size):
        found += value[2 * v + labels[v]]
        spent += weight[2 * v + labels[v]]
    for k in range(network.pair_low.size):
        u, v = network.pair_low[k], network.pair_high[k]
        flip_u, flip_v = flip[u], flip[v] ^ int(doubled and cut.wants[k] == UNLIKE)
        flow = flow_of(cut, network.pair_arc[k], k, network.head.size, doubled)
        to_u, to_v = cut.terms[4 * k] - flow, cut.terms[4 * k + 1] + flow
        read_pair(graph, network, table, k, cut)
        error = EPS * (network.part_first[k + 1] - network.part_first[k] + (6 if doubled else 4))
        least = least_left(cut, to_u, to_v, flip_u, flip_v, error)
        if least == np.inf:
            return np.inf, np.inf, 0.0, 0.0
        total, lost = add(total, lost, least)
        size += abs(least)
        if not doubled:
            found += cut.entry[2 * labels[u] + labels[v]]
            spent += cut.size[2 * labels[u] + labels[v]]
        elif labels[u] != UNFIXED or labels[v] != UNFIXED:
            loss += most_lost(cut, to_u, to_v, flip_v, error, (labels[u], labels[v]))
        value[2 * u + 1 - flip_u] += to_u
        weight[2 * u + 1 - flip_u] += abs(to_u)
        value[2 * v + 1 - flip_v] += to_v
        weight[2 * v + 1 - flip_v] += abs(to_v)
    for v in range(graph.order.size):
        least, error = np.inf, EPS * cut.n_added[v]
        for at in range(2 * v, 2 * v + 2):
            lower = value[at] - error * weight[at]
            if lower < least:
                least = lower
        total, lost = add(total, lost, least)
        size += abs(least)
        if doubled and labels[v] != UNFIXED:
            mine, other = 2 * v + labels[v], 2 * v + 1 - labels[v]
            if value[mine] == np.inf:
                loss = np.inf
            elif value[other] < np.inf:
                loss += max(0.0, (value[mine] - value[other]) + 2.0 * error * (weight[mine] + weight[other]))
    n_terms = network.pair_low.size + graph.order.size
    bound = (total + lost) - 2.0 * EPS * abs(total + lost) - 4.0 * (n_terms * EPS) * (n_terms * EPS) * size
    return bound if abs(bound) < np.inf else -np.inf, found, spent, loss * (1.0 + 2.0 * n_terms * EPS)

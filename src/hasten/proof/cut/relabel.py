"""Reading a problem for a cut: what labels and pairs cost, and the relabelling that makes all pairs submodular.

A pair is *for* agreeing if t(0, 0) + t(1, 1) <= t(0, 1) + t(1, 0). Exchanging the labels of some variables (a *flip*)
may make all pairs be for it; whether it does is seen by going through the graph once. Pairs that read the same table in
the same way have one *form*, which is worked out once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import inlined_kernel, kernel, split
from hasten.kernels.layout import Graph
from hasten.kernels.tolerance import EPS
from hasten.proof.cut.flow import Flow
from hasten.proof.cut.network import Network, network_at
from hasten.proof.outcome import OVERFLOW, tables_alone
from hasten.support.arrays import FloatArray, IntArray

EITHER, ALIKE, UNLIKE = 0, 1, 2  # what a pair wants of its variables' flips: anything, the same, one of the two
UNSEEN = 2  # in place of a flip


class Cut(NamedTuple):
    """Scratch space for one network: V variables, P pairs, F forms."""

    flow: Flow
    value: FloatArray  # (2 V,) what each label costs; later, with messages
    weight: FloatArray  # (2 V,) the magnitudes of what was added up to that
    entry: FloatArray  # (4,) what the labels 00, 01, 10, 11 of one pair cost
    size: FloatArray  # (4,) the magnitudes of what was added up to that
    terms: FloatArray  # (4 (4 F + P),) of each form with each flips, then of each pair of no form: what it adds to
    #   label 1, flipped, of its variables, and what its two arcs can carry
    still: FloatArray  # (4 F,) what each form, with each flips, costs at least where nothing flows
    n_added: IntArray  # (V,) how many numbers were added to the costs of labels, at most
    flip: IntArray  # (V,) 1 where the labels are exchanged
    queue: IntArray  # (V,) for going through the graph
    labels: IntArray  # (V,)
    wants: IntArray  # (F + P,) of each form, and of each pair


class Space(NamedTuple):
    """How much scratch space the largest of some networks needs; each variable has one node, or two."""

    variables: int
    pairs: int
    forms: int
    nodes: int


@kernel
def space_for(networks: IntArray, copies: int) -> Space:
    """Returns the space that networks at some addresses need, with so many nodes for each variable."""
    n = Space(0, 0, 0, 0)
    for x in range(networks.size):
        network = network_at(networks[x])
        v, pairs = max(n.variables, network.arc_first.size - 1), max(n.pairs, network.pair_low.size)
        n = Space(v, pairs, max(n.forms, network.form_at.size), copies * v)
    return n


@inlined_kernel
def cut_floats(n: Space, copies: int) -> tuple[int, ...]:
    """Returns how many floats each field of a `Flow` and of a `Cut` takes that holds some."""
    v, pairs, forms = n.variables, n.pairs, n.forms
    return 4 * copies * pairs, n.nodes, 2 * v, 2 * v, 4, 4, 16 * forms + 4 * pairs, 4 * forms


@inlined_kernel
def cut_ints(n: Space) -> tuple[int, ...]:
    """Returns how many integers each of them takes that holds some."""
    v, nodes = n.variables, n.nodes
    return 4 * nodes, nodes, nodes, nodes, 5, v, v, v, v, n.forms + n.pairs


@inlined_kernel
def make_cut(n: Space, copies: int, floats: FloatArray, ints: IntArray) -> Cut:
    """Returns scratch space within some numbers."""
    reals, wholes = split(floats, cut_floats(n, copies)), split(ints, cut_ints(n))
    return Cut(Flow(*(reals[:2] + wholes[:5])), *(reals[2:] + wholes[5:]))


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


@inlined_kernel
def read_table(table: FloatArray, at: int, low: int, high: int, cut: Cut) -> None:
    """Reads what the four labellings of a pair cost in one table, given how far apart the labels of each are in it."""
    cut.entry[0], cut.entry[1], cut.entry[2], cut.entry[3] = (
        table[at], table[at + high], table[at + low], table[at + low + high],
    )  # fmt: skip
    for y in range(4):
        cut.size[y] = abs(cut.entry[y])


@inlined_kernel
def read_form(network: Network, table: FloatArray, m: int, cut: Cut) -> None:
    """Reads the pairs of form `m`."""
    read_table(table, network.form_at[m], network.form_low[m], network.form_high[m], cut)


@kernel
def read_pair(graph: Graph, network: Network, table: FloatArray, k: int, cut: Cut) -> None:
    """Reads pair `k`: what its labellings cost, and the magnitudes of that; what does not exist costs inf."""
    x = network.part_first[k]
    if network.plain[k]:  # one table of the problem over two labels each, as most are
        read_table(table, network.part_at[x], network.part_low[x], network.part_high[x], cut)
        return
    u, v = network.pair_low[k], network.pair_high[k]
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
        cut.entry[y], cut.size[y] = total, size


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
def find_wants(graph: Graph, network: Network, table: FloatArray, cut: Cut) -> bool:
    """Notes what each pair wants of its flips; returns whether one wants them to be unlike."""
    wants, entry, unlike, n_forms = cut.wants, cut.entry, False, network.form_at.size
    for m in range(n_forms):
        read_form(network, table, m, cut)
        wants[m] = wanted(entry[0], entry[1], entry[2], entry[3])
        unlike |= wants[m] == UNLIKE
    for k in range(network.pair_low.size):
        if network.form[k] >= 0:
            wants[n_forms + k] = wants[network.form[k]]
        else:
            read_pair(graph, network, table, k, cut)
            wants[n_forms + k] = wanted(entry[0], entry[1], entry[2], entry[3])
            unlike |= wants[n_forms + k] == UNLIKE
    return unlike


@kernel
def find_relabelling(graph: Graph, network: Network, table: FloatArray, cut: Cut) -> bool:
    """Chooses flips with which each pair is for agreeing; false if there are none."""
    flip, n_forms = cut.flip, network.form_at.size
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
                want, v = cut.wants[n_forms + network.arc_pair[a]], network.head[a]
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

"""The search with one node: what `advance` does with a beam of width 1 and no look-ahead, but faster.

Every sum is that of the general search, in the same order, so the answers are the same to the last bit, unless sums
overflow: a forbidden candidate costs inf here. Without enforcing, a forbidden tuple costs nothing, as there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import inlined_kernel, kernel
from hasten.kernels.layout import Graph, Instance
from hasten.kernels.rows import breaks_row, narrow, rows_can_hold, rows_hold, start_ranges
from hasten.kernels.search.nodes import KNOWN, UNKNOWN, Beam, Options
from hasten.support.arrays import FloatArray, IntArray


class Walker(NamedTuple):
    """The only node, and the candidates of a step."""

    labels: IntArray  # (V,)
    low: FloatArray  # (R,) the least that each row can still come to
    high: FloatArray  # (R,) and the most
    g: FloatArray  # (labels of a variable,)
    h: FloatArray  # (labels of a variable,)


NONE, UNSEEN = -1, -2  # instead of a label: all are forbidden; the costs decide


@kernel
def walk(instance: Instance, weights: FloatArray, options: Options, beam: Beam) -> bool:
    """Labels one variable after the other, in the first node; false at a dead end. All costs are there."""
    graph, cost, table = instance
    known, walker = beam.known, start_walk(graph, beam, KNOWN if options.theta == np.inf else UNKNOWN)
    path, weight = 0.0, 0.0
    for t in range(graph.order.size):
        k = graph.order[t]
        expand_one(graph, table, weights, options.enforce, walker, t, weight)
        chosen = choose_unseen(graph, options, k, walker) if options.theta < np.inf else UNSEEN
        if chosen == UNSEEN:
            known[k] = KNOWN
            chosen = choose_one(graph, cost, options.enforce, k, path, walker)
        if chosen == NONE:
            return False
        path, weight = assign_one(graph, cost, known, walker, k, chosen, path)
    return graph.order.size > 0 or not options.enforce or rows_hold(graph, walker.labels)


@inlined_kernel
def start_walk(graph: Graph, beam: Beam, state: int) -> Walker:
    """Returns what walks; sets what is known of the costs, and the ranges of rows."""
    nodes, scratch, known = beam
    for v in range(graph.order.size):
        known[v] = state
    start_ranges(graph, nodes.row_low[0], nodes.row_high[0])
    return Walker(nodes.labels[0], nodes.row_low[0], nodes.row_high[0], scratch.g, scratch.h)


@inlined_kernel
def expand_one(
    graph: Graph, table: FloatArray, weights: FloatArray, enforce: bool, walker: Walker, t: int, weight: float
) -> None:
    """Writes what each label of step `t` costs in tables, inf if it is forbidden, and its heuristic."""
    labels, low, high, g, h = walker
    k = graph.order[t]
    first = graph.first[k]
    n = graph.first[k + 1] - first
    for i in range(n):
        g[i] = 0.0
        h[i] = weight
    for x in range(graph.done_first[t], graph.done_first[t + 1]):
        f = graph.done[x]
        table_at = graph.table_at[f]
        if table_at < 0 and weights.size == 0:
            continue
        base, stride = 0, 0
        for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
            v = graph.scope[a]
            if v == k:
                stride = graph.stride[a]
            else:
                base += graph.stride[a] * labels[v]
        if table_at >= 0:
            for i in range(n):
                value = table[table_at + base + i * stride]
                if enforce or value < np.inf:
                    g[i] += value
        if weights.size and graph.weight_at[f] >= 0:
            for i in range(n):
                h[i] -= weights[graph.weight_at[f] + base + i * stride]
    if enforce and graph.row_low.size:
        hopeless = t == 0 and not rows_can_hold(graph)
        for i in range(n):
            if hopeless or breaks_row(graph, low, high, k, first + i):
                g[i] = np.inf


@inlined_kernel
def choose_unseen(graph: Graph, options: Options, k: int, walker: Walker) -> int:
    """Returns the label that the heuristic alone chooses, by a gap above theta, or that its costs must be seen."""
    g, h = walker.g, walker.h
    best, least, second = NONE, np.inf, np.inf
    for i in range(graph.first[k + 1] - graph.first[k]):
        if g[i] < np.inf or not options.enforce:
            if h[i] < least:
                best, least, second = i, h[i], least
            else:
                second = min(second, h[i])
    return best if best == NONE or options.theta == 0.0 or second - least > options.theta else UNSEEN


@inlined_kernel
def choose_one(graph: Graph, cost: FloatArray, enforce: bool, k: int, path: float, walker: Walker) -> int:
    """Returns the label of the least cost and heuristic, unless all are forbidden."""
    g, h = walker.g, walker.h
    best, least = NONE if enforce else 0, np.inf
    for i in range(graph.first[k + 1] - graph.first[k]):
        value = (g[i] + path) + cost[graph.first[k] + i] + h[i]
        if value < least:
            best, least = i, value
    return best


@inlined_kernel
def assign_one(
    graph: Graph, cost: FloatArray, known: IntArray, walker: Walker, k: int, chosen: int, path: float
) -> tuple[float, float]:
    """Gives variable `k` its label; returns the path cost, without costs that nobody asked for, and the heuristic."""
    walker.labels[k] = chosen
    narrow(graph, walker.low, walker.high, k, graph.first[k] + chosen)
    path = walker.g[chosen] + path
    if known[k] == KNOWN:
        path += cost[graph.first[k] + chosen]
    return path, walker.h[chosen]

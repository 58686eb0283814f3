"""The candidates of a step: each node with each label of the next variable; what they cost, and which are best.

Candidates stand node by node and label by label, in arrays of `Scratch`; `best` names them by `BITS`.
"""

from __future__ import annotations

import numpy as np

from hasten.jit import inlined_kernel, kernel
from hasten.kernels.layout import Graph
from hasten.kernels.rows import breaks_row, rows_can_hold
from hasten.kernels.search.ahead import look_ahead
from hasten.kernels.search.nodes import BITS, KNOWN, Nodes, Options, Scratch
from hasten.support.arrays import FloatArray, IntArray


@inlined_kernel
def expand(
    graph: Graph,
    cost: FloatArray,
    table: FloatArray,
    weights: FloatArray,
    options: Options,
    known: IntArray,
    nodes: Nodes,
    n_nodes: int,
    t: int,
    scratch: Scratch,
) -> None:
    """Writes the candidates of step `t`, node by node and label by label, but for the costs of their labels."""
    open_candidates(graph, nodes, n_nodes, t, scratch)
    for x in range(graph.done_first[t], graph.done_first[t + 1]):
        f = graph.done[x]
        if graph.table_at[f] >= 0 or weights.size:
            complete(graph, table, weights, options.enforce, nodes.labels, n_nodes, t, f, scratch)
    if options.enforce and graph.row_low.size:
        remove_by_rows(graph, nodes, n_nodes, t, scratch.out)
    if options.ahead:
        look_ahead(graph, cost, table, options.enforce, known, nodes, n_nodes, t, scratch)


@inlined_kernel
def open_candidates(graph: Graph, nodes: Nodes, n_nodes: int, t: int, scratch: Scratch) -> None:
    """Starts the candidates of step `t`, node by node and label by label."""
    k = graph.order[t]
    n_labels = graph.first[k + 1] - graph.first[k]
    for b in range(n_nodes):
        for c in range(b * n_labels, (b + 1) * n_labels):
            scratch.g[c] = 0.0
            scratch.h[c] = nodes.h[b]
            scratch.rest[c] = 0.0
            scratch.out[c] = False


@inlined_kernel
def complete(
    graph: Graph,
    table: FloatArray,
    weights: FloatArray,
    enforce: bool,
    labels: IntArray,
    n_nodes: int,
    t: int,
    f: int,
    scratch: Scratch,
) -> None:
    """Adds to the candidates of step `t` what factor `f`, which they complete, costs and weighs."""
    k = graph.order[t]
    n_labels = graph.first[k + 1] - graph.first[k]
    for b in range(n_nodes):
        base, stride = 0, 0
        for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
            if graph.scope[a] == k:
                stride = graph.stride[a]
            else:
                base += graph.stride[a] * labels[b, graph.scope[a]]
        c = b * n_labels
        if graph.table_at[f] >= 0:
            at = graph.table_at[f] + base
            for i in range(n_labels):
                value = table[at + i * stride]
                if value < np.inf:
                    scratch.g[c + i] += value
                elif enforce:
                    scratch.out[c + i] = True
        if weights.size and graph.weight_at[f] >= 0:
            at = graph.weight_at[f] + base
            for i in range(n_labels):
                scratch.h[c + i] -= weights[at + i * stride]


@kernel
def remove_by_rows(graph: Graph, nodes: Nodes, n_nodes: int, t: int, out: IntArray) -> None:
    """Removes the candidates of step `t` with which some row can no longer hold."""
    k = graph.order[t]
    n_labels = graph.first[k + 1] - graph.first[k]
    hopeless = t == 0 and not rows_can_hold(graph)
    for b in range(n_nodes):
        for i in range(n_labels):
            if hopeless or breaks_row(graph, nodes.row_low[b], nodes.row_high[b], k, graph.first[k] + i):
                out[b * n_labels + i] = True


@inlined_kernel
def add_costs(
    graph: Graph,
    cost: FloatArray,
    enforce: bool,
    known: IntArray,
    g: FloatArray,
    n_nodes: int,
    t: int,
    scratch: Scratch,
) -> None:
    """Adds the path costs of their nodes, and the label's own if it is known, to the candidates of step `t`."""
    k = graph.order[t]
    n_labels = graph.first[k + 1] - graph.first[k]
    for b in range(n_nodes):
        for i in range(n_labels):
            c = b * n_labels + i
            scratch.g[c] += g[b]
            if known[k] == KNOWN:
                scratch.g[c] += cost[graph.first[k] + i]
            if enforce and scratch.g[c] == np.inf:
                scratch.out[c] = True


@inlined_kernel
def rank_by_heuristic(graph: Graph, n_nodes: int, t: int, width: int, scratch: Scratch) -> tuple[int, float]:
    """Ranks the candidates of step `t` by `h` alone; returns how many and the gap at the beam's edge."""
    k = graph.order[t]
    n_labels = graph.first[k + 1] - graph.first[k]
    n_best = 0
    for b in range(n_nodes):
        for i in range(n_labels):
            c = b * n_labels + i
            if not scratch.out[c]:
                n_best = select(scratch.rank, scratch.best, n_best, width + 1, (b << BITS) | i, scratch.h[c])
    gap = np.inf if n_best <= width else scratch.rank[width] - scratch.rank[width - 1]
    return n_best, gap


@inlined_kernel
def rank_by_priority(graph: Graph, n_nodes: int, t: int, width: int, spread: float, scratch: Scratch) -> int:
    """Ranks the candidates of step `t` by `g + h`, and look-ahead; returns how many the beam keeps."""
    k = graph.order[t]
    n_labels = graph.first[k + 1] - graph.first[k]
    n_best = 0
    for b in range(n_nodes):
        for i in range(n_labels):
            c = b * n_labels + i
            if not scratch.out[c]:
                priority = scratch.g[c] + scratch.h[c] + scratch.rest[c]
                n_best = select(scratch.rank, scratch.best, n_best, width, (b << BITS) | i, priority)
    while n_best > 1 and scratch.rank[n_best - 1] > scratch.rank[0] + spread:
        n_best -= 1
    return n_best


@inlined_kernel
def select(rank: FloatArray, best: IntArray, n_best: int, capacity: int, candidate: int, priority: float) -> int:
    """Inserts a candidate into the best so far, after its equals; returns how many there are."""
    if n_best == capacity:
        if not priority < rank[capacity - 1]:
            return n_best
        n_best -= 1
    at = n_best
    while at > 0 and priority < rank[at - 1]:
        rank[at] = rank[at - 1]
        best[at] = best[at - 1]
        at -= 1
    rank[at] = priority
    best[at] = candidate
    return n_best + 1

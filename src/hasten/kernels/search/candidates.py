"""The candidates of a step: each node with each label of the next variable; their costs, and which are best.

Candidates stand node by node and label by label, in arrays of `Scratch`; `best` names them by `BITS`. Looking ahead
adds the least that unassigned variables can still cost. Only those that a step *opens*, by leaving a table one variable
short, can have a new least.
"""

from __future__ import annotations

import numpy as np

from hasten.jit import inlined_kernel, kernel
from hasten.kernels.layout import Graph, Instance
from hasten.kernels.rows import breaks_row, rows_can_hold
from hasten.kernels.search.nodes import BITS, KNOWN, Beam, Nodes, Options, Scratch
from hasten.support.arrays import FloatArray, IntArray


@inlined_kernel
def expand(instance: Instance, weights: FloatArray, options: Options, beam: Beam, n_nodes: int, t: int) -> None:
    """Writes the candidates of step `t`, node by node and label by label, but for the costs of their labels."""
    graph = instance.graph
    open_candidates(graph, beam.nodes, n_nodes, t, beam.scratch)
    for x in range(graph.done_first[t], graph.done_first[t + 1]):
        f = graph.done[x]
        if graph.table_at[f] >= 0 or weights.size:
            complete(instance, weights, options, beam, n_nodes, t, f)
    if options.enforce and graph.row_low.size:
        remove_by_rows(graph, beam.nodes, n_nodes, t, beam.scratch.out)
    if options.ahead:
        look_ahead(instance, options, beam, n_nodes, t)


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
    instance: Instance, weights: FloatArray, options: Options, beam: Beam, n_nodes: int, t: int, f: int
) -> None:
    """Adds the cost and the weight of factor `f`, which the candidates of step `t` complete, to them."""
    graph, _, table = instance
    labels, scratch = beam.nodes.labels, beam.scratch
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
                elif options.enforce:
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
def add_costs(instance: Instance, options: Options, beam: Beam, n_nodes: int, t: int) -> None:
    """Adds the path costs of their nodes, and the label's own if it is known, to the candidates of step `t`."""
    graph, cost, _ = instance
    scratch = beam.scratch
    k = graph.order[t]
    n_labels = graph.first[k + 1] - graph.first[k]
    for b in range(n_nodes):
        for i in range(n_labels):
            c = b * n_labels + i
            scratch.g[c] += beam.nodes.g[b]
            if beam.known[k] == KNOWN:
                scratch.g[c] += cost[graph.first[k] + i]
            if options.enforce and scratch.g[c] == np.inf:
                scratch.out[c] = True


@inlined_kernel
def rank_by_heuristic(graph: Graph, options: Options, n_nodes: int, t: int, scratch: Scratch) -> tuple[int, float]:
    """Ranks the candidates of step `t` by `h` alone; returns how many and the gap at the beam's edge."""
    k, width = graph.order[t], options.width
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
def rank_by_priority(graph: Graph, options: Options, n_nodes: int, t: int, scratch: Scratch) -> int:
    """Ranks the candidates of step `t` by `g + h`, and look-ahead; returns how many the beam keeps."""
    k, width = graph.order[t], options.width
    n_labels = graph.first[k + 1] - graph.first[k]
    n_best = 0
    for b in range(n_nodes):
        for i in range(n_labels):
            c = b * n_labels + i
            if not scratch.out[c]:
                priority = scratch.g[c] + scratch.h[c] + scratch.rest[c]
                n_best = select(scratch.rank, scratch.best, n_best, width, (b << BITS) | i, priority)
    while n_best > 1 and scratch.rank[n_best - 1] > scratch.rank[0] + options.spread:
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


@kernel
def look_ahead(instance: Instance, options: Options, beam: Beam, n_nodes: int, t: int) -> None:
    """Writes the least that each candidate of step `t` must still cost; removes those that cannot go on."""
    graph = instance.graph
    nodes, scratch = beam.nodes, beam.scratch
    k = graph.order[t]
    n_labels = graph.first[k + 1] - graph.first[k]
    for b in range(n_nodes):
        for i in range(n_labels):
            c = b * n_labels + i
            scratch.rest[c] = nodes.rest[b] - nodes.ahead[b, k]
            nodes.labels[b, k] = i
            for x in range(graph.open_first[t], graph.open_first[t + 1]):
                u = opened(graph, beam.known, t, x)
                if u >= 0 and not scratch.out[c]:
                    least = least_cost(instance, nodes.labels, b, t, u)
                    if least < np.inf:
                        scratch.rest[c] += least - nodes.ahead[b, u]
                    elif options.enforce:
                        scratch.out[c] = True


@kernel
def keep_ahead(instance: Instance, beam: Beam, n_nodes: int, t: int) -> None:
    """Keeps, for the nodes that step `t` made, the least that each variable it opened can cost."""
    graph, nodes = instance.graph, beam.nodes
    for b in range(n_nodes):
        for x in range(graph.open_first[t], graph.open_first[t + 1]):
            u = opened(graph, beam.known, t, x)
            if u >= 0:
                least = least_cost(instance, nodes.labels, b, t, u)
                if least < np.inf:
                    nodes.ahead[b, u] = least


@kernel
def opened(graph: Graph, known: IntArray, t: int, x: int) -> int:
    """Returns the variable that the `x`-th opened factor of step `t` lacks; -1 if unknown or opened before."""
    u: int = graph.last[graph.open[x]]
    if known[u] != KNOWN:
        return -1
    for y in range(graph.open_first[t], x):
        if graph.last[graph.open[y]] == u:
            return -1
    return u


@kernel
def least_cost(instance: Instance, labels: IntArray, b: int, t: int, u: int) -> float:
    """Returns the least that variable `u` can cost, given the labels up to step `t` and its tables with them."""
    graph, cost, table = instance
    least = np.inf
    for j in range(graph.first[u + 1] - graph.first[u]):
        value = cost[graph.first[u] + j]
        for x in range(graph.touch_first[u], graph.touch_first[u + 1]):
            slot = graph.touch[x]
            f = graph.factor_of[slot]
            if graph.table_at[f] < 0 or graph.last[f] != u or value == np.inf:
                continue
            at = graph.table_at[f] + j * graph.stride[slot]
            short = True
            for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
                if a != slot:
                    short &= graph.position[graph.scope[a]] <= t
                    at += graph.stride[a] * labels[b, graph.scope[a]]
            if short:
                value += table[at]
        least = min(least, value)
    return least

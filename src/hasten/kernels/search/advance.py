"""One search, from the empty labelling to its answer, that stops where it needs costs and can be resumed."""

from __future__ import annotations

import numpy as np

from hasten.jit import inlined_kernel, kernel
from hasten.kernels.layout import Graph, Instance
from hasten.kernels.rows import narrow, rows_hold, start_ranges
from hasten.kernels.search.ahead import keep_ahead
from hasten.kernels.search.candidates import add_costs, expand, rank_by_heuristic, rank_by_priority
from hasten.kernels.search.nodes import BITS, KNOWN, MASK, UNKNOWN, WANTED, Beam, Nodes, Options, Scratch
from hasten.support.arrays import FloatArray, IntArray

DONE, BLOCKED, DEAD_END = 0, 1, 2


@kernel
def begin(graph: Graph, cost: FloatArray, options: Options, known: IntArray, nodes: Nodes) -> None:
    """Puts the empty labelling in the beam."""
    nodes.g[0] = 0.0
    nodes.h[0] = 0.0
    nodes.rest[0] = 0.0
    start_ranges(graph, nodes.row_low[0], nodes.row_high[0])
    if options.ahead:
        for v in range(graph.order.size):
            least = np.inf
            if known[v] == KNOWN:
                for at in range(graph.first[v], graph.first[v + 1]):
                    least = min(least, cost[at])
            nodes.ahead[0, v] = least if least < np.inf else 0.0
            nodes.rest[0] += nodes.ahead[0, v]


@kernel
def advance(
    instance: Instance, weights: FloatArray, options: Options, lazy: bool, beam: Beam, n_nodes: int, t: int
) -> tuple[int, int, int]:
    """Searches from step `t` until done, blocked or at a dead end; returns which, the nodes and the step."""
    graph, cost, table = instance
    nodes, scratch, known = beam
    n_variables, width = graph.order.size, options.width
    pending = options.theta < np.inf or lazy  # otherwise every cost is known
    while t < n_variables:
        n_best = 0
        skip = False
        expand(graph, cost, table, weights, options, known, nodes, n_nodes, t, scratch)
        if options.theta < np.inf:
            n_best, gap = rank_by_heuristic(graph, n_nodes, t, width, scratch)
            skip = options.theta == 0.0 or gap > options.theta
        if pending and not skip and not settle(graph, cost, lazy, known, nodes, n_nodes, t):
            return BLOCKED, n_nodes, t
        add_costs(graph, cost, options.enforce, known, nodes.g, n_nodes, t, scratch)
        if not skip:
            n_best = rank_by_priority(graph, n_nodes, t, width, options.spread, scratch)
        n_nodes = min(n_best, width)
        if n_nodes == 0:
            return DEAD_END, 0, t
        keep_best(graph, cost, table, options, known, nodes, n_nodes, t, scratch)
        t += 1
    if n_variables == 0 and options.enforce and not rows_hold(graph, scratch.best):
        return DEAD_END, 0, t
    if options.theta < np.inf and n_nodes > 1:
        return choose(graph, cost, options, lazy, known, nodes, n_nodes), n_nodes, t
    return DONE, n_nodes, t


@kernel
def choose(
    graph: Graph,
    cost: FloatArray,
    options: Options,
    lazy: bool,
    known: IntArray,
    nodes: Nodes,
    n_nodes: int,
) -> int:
    """Puts the answer first: the rule of every step once more, with a beam of one."""
    first, second = np.inf, np.inf
    best = 0
    for b in range(n_nodes):
        if nodes.h[b] < first:
            first, second, best = nodes.h[b], first, b
        else:
            second = min(second, nodes.h[b])
    if options.theta > 0.0 and not second - first > options.theta:
        if not settle(graph, cost, lazy, known, nodes, n_nodes, graph.order.size):
            return BLOCKED
        best = 0
        for b in range(1, n_nodes):
            if nodes.g[b] + nodes.h[b] < nodes.g[best] + nodes.h[best]:
                best = b
        if options.enforce and nodes.g[best] == np.inf:
            return DEAD_END
    for v in range(graph.order.size):
        nodes.labels[0, v] = nodes.labels[best, v]
    return DONE


@inlined_kernel
def settle(graph: Graph, cost: FloatArray, lazy: bool, known: IntArray, nodes: Nodes, n_nodes: int, t: int) -> bool:
    """Brings the costs that ranking step `t` by `g + h` needs into `g`; false if some must be computed first."""
    ready = True
    last = min(t + 1, graph.order.size)
    start = t if n_nodes == 1 else 0  # one node agrees with itself: what it was never asked for stays pending
    for s in range(start, last):
        v = graph.order[s]
        if known[v] == UNKNOWN and (s == t or disagree(nodes, n_nodes, v)):
            known[v] = WANTED
            ready = not lazy and ready
    if ready:
        for s in range(start, last):
            v = graph.order[s]
            if known[v] == WANTED:
                known[v] = KNOWN
                for b in range(n_nodes if s < t else 0):
                    nodes.g[b] += cost[graph.first[v] + nodes.labels[b, v]]
    return ready


@kernel
def disagree(nodes: Nodes, n_nodes: int, v: int) -> bool:
    """Whether the nodes give an assigned variable different labels."""
    for b in range(1, n_nodes):
        if nodes.labels[b, v] != nodes.labels[0, v]:
            return True
    return False


@inlined_kernel
def keep_best(
    graph: Graph,
    cost: FloatArray,
    table: FloatArray,
    options: Options,
    known: IntArray,
    nodes: Nodes,
    n_best: int,
    t: int,
    scratch: Scratch,
) -> None:
    """Makes the best candidates of step `t` the nodes of the beam."""
    for b in range(n_best):
        if scratch.best[b] >> BITS != b:
            copy_nodes(graph, nodes, scratch.next, scratch.best, n_best, True, options.ahead)
            copy_nodes(graph, scratch.next, nodes, scratch.best, n_best, False, options.ahead)
            break
    assign(graph, nodes, n_best, t, scratch)
    if options.ahead:
        keep_ahead(graph, cost, table, known, nodes, n_best, t)


@inlined_kernel
def copy_nodes(
    graph: Graph, source: Nodes, target: Nodes, best: IntArray, n_best: int, parents: bool, ahead: bool
) -> None:
    """Copies nodes to their own places, or each candidate's parent to the candidate's place."""
    for b in range(n_best):
        x = best[b] >> BITS if parents else b
        for v in range(graph.order.size):
            target.labels[b, v] = source.labels[x, v]
        for r in range(graph.row_low.size):
            target.row_low[b, r], target.row_high[b, r] = source.row_low[x, r], source.row_high[x, r]
        if ahead:
            for v in range(graph.order.size):
                target.ahead[b, v] = source.ahead[x, v]


@inlined_kernel
def assign(graph: Graph, nodes: Nodes, n_best: int, t: int, scratch: Scratch) -> None:
    """Gives the nodes, which already stand in their parents' places, their labels of step `t`."""
    k = graph.order[t]
    n_labels = graph.first[k + 1] - graph.first[k]
    for b in range(n_best):
        i = scratch.best[b] & MASK
        c = (scratch.best[b] >> BITS) * n_labels + i
        nodes.labels[b, k] = i
        nodes.g[b] = scratch.g[c]
        nodes.h[b] = scratch.h[c]
        nodes.rest[b] = scratch.rest[c]
        narrow(graph, nodes.row_low[b], nodes.row_high[b], k, graph.first[k] + i)

"""Looking ahead: the least that the variables a node has not assigned can still cost.

A table that is one variable short says, with the labels so far, what each label of that variable would add. Only
the variables that a step *opens*, by leaving a table one short, can have a new least: the others keep theirs.
"""

from __future__ import annotations

import numpy as np

from hasten.jit import kernel
from hasten.kernels.layout import Graph
from hasten.kernels.search.nodes import KNOWN, Nodes, Scratch
from hasten.support.arrays import FloatArray, IntArray


@kernel
def look_ahead(
    graph: Graph,
    cost: FloatArray,
    table: FloatArray,
    enforce: bool,
    known: IntArray,
    nodes: Nodes,
    n_nodes: int,
    t: int,
    scratch: Scratch,
) -> None:
    """Writes the least that each candidate of step `t` must still cost; removes those that cannot go on."""
    k = graph.order[t]
    n_labels = graph.first[k + 1] - graph.first[k]
    for b in range(n_nodes):
        for i in range(n_labels):
            c = b * n_labels + i
            scratch.rest[c] = nodes.rest[b] - nodes.ahead[b, k]
            nodes.labels[b, k] = i
            for x in range(graph.open_first[t], graph.open_first[t + 1]):
                u = opened(graph, known, t, x)
                if u >= 0 and not scratch.out[c]:
                    least = least_cost(graph, cost, table, nodes.labels, b, t, u)
                    if least < np.inf:
                        scratch.rest[c] += least - nodes.ahead[b, u]
                    elif enforce:
                        scratch.out[c] = True


@kernel
def keep_ahead(
    graph: Graph,
    cost: FloatArray,
    table: FloatArray,
    known: IntArray,
    nodes: Nodes,
    n_nodes: int,
    t: int,
) -> None:
    """Keeps, for the nodes that step `t` made, the least that each variable it opened can cost."""
    for b in range(n_nodes):
        for x in range(graph.open_first[t], graph.open_first[t + 1]):
            u = opened(graph, known, t, x)
            if u >= 0:
                least = least_cost(graph, cost, table, nodes.labels, b, t, u)
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
def least_cost(
    graph: Graph,
    cost: FloatArray,
    table: FloatArray,
    labels: IntArray,
    b: int,
    t: int,
    u: int,
) -> float:
    """Returns the least that variable `u` can cost, given the labels up to step `t` and its tables with them."""
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

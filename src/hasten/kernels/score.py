"""The cost of a labelling, and whether it is valid; every labelling in turn, which all else is tested against."""

from __future__ import annotations

import numpy as np

from hasten.jit import driver, open_kernel
from hasten.kernels.layout import BatchArrays, Graph, costs_of, graph_of, labels_of, tables_of
from hasten.kernels.rows import rows_hold
from hasten.support.arrays import BoolArray, FloatArray, IntArray


@open_kernel
def entry(graph: Graph, f: int, labels: IntArray) -> int:
    """Returns where a labelling's entry is in the table, or the weights, of factor `f`."""
    at = 0
    for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
        at += graph.stride[a] * labels[graph.scope[a]]
    return at


@open_kernel
def total_cost(graph: Graph, cost: FloatArray, table: FloatArray, labels: IntArray) -> float:
    """Returns the cost of a labelling: its labels' and its tables'."""
    total = 0.0
    for v in range(graph.order.size):
        total += cost[graph.first[v] + labels[v]]
    for f in range(graph.table_at.size):
        if graph.table_at[f] >= 0:
            total += table[graph.table_at[f] + entry(graph, f, labels)]
            if total == np.inf:
                break
    return total


@driver
def score_batch(batch: BatchArrays, labels: IntArray, total: FloatArray, valid: BoolArray) -> None:
    """Writes the cost and the validity of each problem's labelling; one with a label that does not exist costs inf."""
    for p in range(total.size):
        graph, mine = graph_of(batch, p), labels_of(batch, labels, p)
        exists = True
        for v in range(graph.order.size):
            exists &= 0 <= mine[v] < graph.first[v + 1] - graph.first[v]
        if not exists:
            total[p], valid[p] = np.inf, False
            continue
        total[p] = total_cost(graph, costs_of(batch, p), tables_of(batch, p), mine)
        valid[p] = total[p] < np.inf and rows_hold(graph, mine)


@open_kernel
def enumerate_labellings(
    graph: Graph, cost: FloatArray, table: FloatArray, labels: IntArray, n: int, best: IntArray, best_cost: float
) -> float:
    """Visits `n` labellings from `labels` on, the last variable fastest, and leaves `labels` at the next one.

    Writes the cheapest valid one to `best` if it costs less than `best_cost`, and returns its cost; a tie
    goes to the earlier one.
    """
    for _ in range(n):
        total = total_cost(graph, cost, table, labels)
        if total < best_cost and rows_hold(graph, labels):
            best_cost = total
            for v in range(labels.size):
                best[v] = labels[v]
        for v in range(labels.size - 1, -1, -1):
            labels[v] += 1
            if labels[v] < graph.first[v + 1] - graph.first[v]:
                break
            labels[v] = 0
    return best_cost

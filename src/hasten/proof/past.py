"""Past answers to problems of the same structure: labellings to start from."""

from __future__ import annotations

import numpy as np

from hasten.jit import driver, keep, part
from hasten.kernels.layout import BatchArrays, costs_of, graph_of, labels_of, tables_of
from hasten.kernels.score import rows_hold, total_cost
from hasten.support.arrays import FloatArray, IntArray


@driver
def best_of_some(
    batch: BatchArrays, pool: IntArray, problems: IntArray, which: IntArray, labels: IntArray, best: FloatArray
) -> None:
    """Writes which labelling of a pool is each problem's cheapest valid one, -1 for none, with its labels and cost."""
    space = np.empty(max(1, pool.shape[1]), dtype=np.int64)
    for p in problems:
        graph, cost, table = graph_of(batch, p), costs_of(batch, p), tables_of(batch, p)
        n, mine = graph.order.size, labels_of(batch, labels, p)
        which[p], best[p] = -1, np.inf
        for e in range(pool.shape[0]):
            for v in range(n):
                space[v] = pool[e, v]
            tried = part(space, 0, n)
            found = total_cost(graph, cost, table, tried)
            if found < best[p] and rows_hold(graph, tried):
                which[p], best[p] = e, found
        for v in range(n):
            mine[v] = pool[which[p], v] if which[p] >= 0 else -1
    keep(space)

"""Every labelling, one after the other: the reference that everything else is tested against."""

from __future__ import annotations

from hasten.jit import open_kernel
from hasten.kernels.layout import Graph
from hasten.kernels.rows import rows_hold
from hasten.kernels.score import total_cost
from hasten.support.arrays import FloatArray, IntArray


@open_kernel
def enumerate_labellings(
    graph: Graph,
    cost: FloatArray,
    table: FloatArray,
    labels: IntArray,
    n: int,
    best: IntArray,
    best_cost: float,
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

"""What a second-best label costs above the best: the scale of a learner's step."""

from __future__ import annotations

import numpy as np

from hasten.jit import driver
from hasten.kernels.layout import VARIABLE, BatchArrays, costs_of, graph_of
from hasten.support.arrays import FloatArray


@driver
def cost_gaps(batch: BatchArrays, gap: FloatArray) -> None:
    """Writes for each variable what its second-best label costs above the best; nan if it has none."""
    for p in range(batch.place.shape[0] - 1):
        graph, cost = graph_of(batch, p), costs_of(batch, p)
        for v in range(graph.order.size):
            best, second = np.inf, np.inf
            for at in range(graph.first[v], graph.first[v + 1]):
                if cost[at] < best:
                    best, second = cost[at], best
                elif cost[at] < second:
                    second = cost[at]
            gap[batch.place[p, VARIABLE] + v] = second - best if second < np.inf else np.nan

"""What a second-best label costs above the best: the scale of a learner's step."""

from __future__ import annotations

import numpy as np

from hasten.jit import driver
from hasten.kernels.layout import Pool, view
from hasten.support.arrays import FloatArray, IntArray


@driver
def cost_gaps(
    pool: Pool,
    structure: IntArray,
    cost: FloatArray,
    cost_at: IntArray,
    variable_at: IntArray,
    gap: FloatArray,
) -> None:
    """Writes for each variable what its second-best label costs above the best; nan if it has none."""
    for p in range(structure.size):
        graph = view(pool, structure[p])
        for v in range(graph.order.size):
            best, second = np.inf, np.inf
            for at in range(cost_at[p] + graph.first[v], cost_at[p] + graph.first[v + 1]):
                if cost[at] < best:
                    best, second = cost[at], best
                elif cost[at] < second:
                    second = cost[at]
            gap[variable_at[p] + v] = second - best if second < np.inf else np.nan

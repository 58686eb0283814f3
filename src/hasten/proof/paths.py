"""The cheapest path through a decision diagram (`hasten.programs.diagrams`): an optimum, proved by one pass.

The least that a node costs to the end is that of the cheaper of its two successors, with the cost of the value that
leads there. A bound allows for rounding: one for each addition, of at most the sum of all magnitudes.
"""

from __future__ import annotations

import numpy as np

from hasten.jit import driver
from hasten.support.arrays import FloatArray, IntArray

END, DEAD = -1, -2
ROUNDING = 4.0 * 2.0**-53  # of one addition, and of its terms


@driver
def cheapest_paths(
    variable: IntArray, successor: IntArray, costs: tuple[FloatArray, FloatArray], values: FloatArray, bound: FloatArray
) -> None:
    """Writes the values along the cheapest path, and a bound on what it costs, for each row of costs of 0 and of 1.

    Without a path the bound is inf, and values are nan.
    """
    zero, one = costs
    n_nodes = variable.size
    least, choice = np.empty(n_nodes), np.empty(n_nodes, dtype=np.int64)
    for p in range(zero.shape[0]):
        for node in range(n_nodes):
            v, left, right = variable[node], successor[node, 0], successor[node, 1]
            cheap = zero[p, v] + (0.0 if left == END else np.inf if left == DEAD else least[left])
            dear = one[p, v] + (0.0 if right == END else np.inf if right == DEAD else least[right])
            choice[node] = 1 if dear < cheap else 0
            least[node] = min(cheap, dear)
        if not least[n_nodes - 1] < np.inf:
            bound[p] = np.inf
            for j in range(values.shape[1]):
                values[p, j] = np.nan
            continue
        node, size = n_nodes - 1, 0.0
        while node != END:
            values[p, variable[node]] = choice[node]
            node = successor[node, choice[node]]
        for j in range(values.shape[1]):
            size += (abs(zero[p, j]) if zero[p, j] < np.inf else 0.0) + (abs(one[p, j]) if one[p, j] < np.inf else 0.0)
        bound[p] = least[n_nodes - 1] - ROUNDING * values.shape[1] * size

"""The terms of a problem, its costs and table entries: their size, their rounding, and whether they are integral.

Where all costs are integers, so is every labelling's cost, and a bound may be rounded up to one.
"""

from __future__ import annotations

import numpy as np

from hasten.jit import kernel
from hasten.kernels.layout import Graph, Instance
from hasten.kernels.tolerance import EPS
from hasten.support.arrays import FloatArray, IntArray

OVERFLOW = 1e297  # costs of this size: their sums may reach inf, which means forbidden
MOST = 2.0**32  # of integral terms together: such sums are exact, and rounding in bounds is far below 1
SURE = 2.0**-20  # how much less than 1 a gap must be at least


@kernel
def cheapest(graph: Graph, cost: FloatArray, table: FloatArray, labels: IntArray) -> tuple[float, float]:
    """Labels each variable at its cheapest; returns the least that any labelling can cost, and the size of its terms.

    The least is that of each variable and of each table by itself. The size is the sum of each variable's largest
    finite cost and each table's largest finite entry, in magnitude.
    """
    first, total, size = graph.first, 0.0, 0.0
    for v in range(first.size - 1):
        least, chosen, largest = np.inf, first[v], 0.0
        for at in range(first[v], first[v + 1]):
            value = cost[at]
            if value < least:
                least, chosen = value, at
            if value < np.inf:
                largest = max(largest, abs(value))
        labels[v] = chosen - first[v]
        total += least
        size += largest
    total, in_tables = tables_alone(graph, table, total)
    return total, size + in_tables


@kernel
def tables_alone(graph: Graph, table: FloatArray, total: float) -> tuple[float, float]:
    """Returns a total with the least entry of each table added, and the size of all tables' terms."""
    size = 0.0
    for x in range(graph.soft_at.size):
        least, largest = np.inf, 0.0
        for at in range(graph.soft_at[x], graph.soft_at[x] + graph.soft_size[x]):
            if table[at] < np.inf:
                least, largest = min(least, table[at]), max(largest, abs(table[at]))
        total += least * graph.soft_count[x]
        size += largest * graph.soft_count[x]
    return total, size


@kernel
def rounding(graph: Graph, size: float) -> float:
    """Returns how far, at most, any sum of one cost per variable and one entry per table can be off.

    A sum of n numbers, however it is ordered, is off by less than n * eps times the sum of their magnitudes.
    """
    n_terms = 4 + graph.order.size
    for x in range(graph.soft_count.size):
        n_terms += graph.soft_count[x]
    return n_terms * EPS * size


@kernel
def integral_gap(instance: Instance, size: float, slip: float) -> float:
    """Returns how far below a labelling's cost a bound may be with no other cost between; 0: costs are not integral.

    `slip` is how far rounding can put a bound off.
    """
    graph, cost, table = instance
    if not size < MOST:
        return 0.0
    for at in range(graph.first[graph.order.size]):
        if cost[at] != np.floor(cost[at]):  # forbidden ones are equal
            return 0.0
    for x in range(graph.soft_at.size):
        for at in range(graph.soft_at[x], graph.soft_at[x] + graph.soft_size[x]):
            if table[at] != np.floor(table[at]):
                return 0.0
    return max(1.0 - 2.0 * slip - SURE, 0.0)

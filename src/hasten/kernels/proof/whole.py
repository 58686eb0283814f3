"""Whole-number costs: every labelling costs a whole number, so that a bound may be rounded up to one."""

from __future__ import annotations

import numpy as np

from hasten.jit import kernel
from hasten.kernels.layout import Instance

MOST = 2.0**32  # of the terms together: such sums are exact, and rounding in bounds is far below 1
SURE = 2.0**-20  # how much less than 1 a gap must be at least


@kernel
def whole_gap(instance: Instance, size: float, slip: float) -> float:
    """Returns how far below a labelling's cost a bound may be and leave no other cost between; 0: costs are not whole.

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

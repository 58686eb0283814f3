"""How a certification ends: what is known of a problem, and by which step."""

from __future__ import annotations

import numpy as np

from hasten.jit import inlined_kernel

TOLERANCE = 1e-6  # an answer is proved when it costs no more than this, relatively, above the bound
PROVED, OPEN, INFEASIBLE = 0, 1, 2
GIVEN, SIGHT, MENDING, ELIMINATION, SWEEPS, BRANCHING = 0, 1, 2, 3, 4, 5  # labels may also be those given


@inlined_kernel
def is_proved(cost: float, bound: float) -> bool:
    """Whether a cost is an optimum, given a lower bound on it."""
    return cost < np.inf and cost - bound <= TOLERANCE * max(1.0, abs(cost))

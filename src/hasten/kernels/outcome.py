"""How a certification ends: what is known of a problem, and by which step."""

from __future__ import annotations

import numpy as np

from hasten.jit import inlined_kernel

TOLERANCE = 1e-6  # an answer is proved when it costs no more than this share of its scale above the bound
FINE = 1e-3  # how much finer than that to prune
PROVED, OPEN, INFEASIBLE = 0, 1, 2
GIVEN, SIGHT, MENDING, ELIMINATION, SWEEPS, BRANCHING = 0, 1, 2, 3, 4, 5  # labels may also be those given


@inlined_kernel
def allowance(cost: float, size: float) -> float:
    """Returns how far above a bound a cost may be and be proved: relative to itself or, near zero, to 1.

    `size`, the sum of the largest magnitudes of all terms, is the most that a cost can be; where even that is below 1
    it takes the place of 1, so that tiny costs are told apart as well as others.
    """
    return TOLERANCE * max(abs(cost), min(1.0, size))


@inlined_kernel
def is_proved(cost: float, bound: float, size: float) -> bool:
    """Whether a cost is an optimum, given a lower bound on it and the size of its terms."""
    return cost < np.inf and cost - bound <= allowance(cost, size)

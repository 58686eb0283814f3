"""Tolerances: how far rounding goes, how far a row may miss its limit, when a cost meets a bound."""

from __future__ import annotations

import numpy as np

from hasten.jit import inlined_kernel, kernel

EPS = 2.220446049250313e-16  # of float64: what rounding scales with
LEAST = 5e-324  # the smallest float64 above 0: what a product that underflows may be off by
EXACT = 2.0**53  # sums of integers below this are exact
SLACK = 1e-6  # how far, relatively, a row may be from its limit and still hold: the solvers' own tolerance
TOLERANCE = 1e-6  # an answer is proved when it costs no more than this share of its scale above the bound
FINE = 1e-3  # how much finer than that to prune


@inlined_kernel
def allowance(cost: float, size: float) -> float:
    """Returns how far above a bound a cost may be and be proved: relative to itself or, near zero, to 1.

    `size`, the sum of the largest magnitudes of all terms, is the most that a cost can be; where even that is below 1
    it takes the place of 1, so that tiny costs are told apart as well as others.
    """
    # Relative to the cost, not to the size of its terms: large terms that cancel must not widen what counts as proved.
    return TOLERANCE * max(abs(cost), min(1.0, size))


@inlined_kernel
def is_proved(cost: float, bound: float, size: float) -> bool:
    """Whether a cost is an optimum, given a lower bound on it and the size of its terms."""
    return cost < np.inf and cost - bound <= allowance(cost, size)


@inlined_kernel
def is_closed(cost: float, bound: float, size: float, gap: float) -> bool:
    """Whether a bound proves a cost, or leaves no more than a gap in which there is nothing (`integral_gap`)."""
    return is_proved(cost, bound, size) or cost - bound <= gap


@kernel
def prune_above(best_cost: float, size: float, margin: float) -> float:
    """Returns the bound from which on a part of the tree cannot hold a better labelling worth having."""
    if best_cost == np.inf:
        return np.inf
    # A part that is pruned may hold a labelling that is better by this much. So a tree that was searched to its end
    # proves this value as its bound, not the best cost; FINE keeps that far within what `is_proved` allows.
    return best_cost - FINE * allowance(best_cost, size) - margin

"""Bounds and labellings of many problems: which are proved, and how bounds change between the steps of a proof."""

from __future__ import annotations

import numpy as np

from hasten.kernels.tolerance import TOLERANCE
from hasten.proof.outcome import BEST, BOUND, OPEN, OUTCOME, PROVED, SIZE, STOPPED, Fixing, Proofs
from hasten.support.arrays import BoolArray, FloatArray, IntArray


def are_proved(cost: FloatArray, bound: FloatArray, size: FloatArray) -> BoolArray:
    """Tells which costs are optima, given bounds and sizes of terms: `kernels.tolerance.is_proved`, for arrays."""
    with np.errstate(invalid="ignore", under="ignore"):  # inf - inf; tiny costs
        met = cost - bound <= TOLERANCE * np.maximum(np.abs(cost), np.minimum(1.0, size))
    return np.asarray(np.isfinite(cost) & met)


def prove_met(proofs: Proofs, problems: IntArray) -> None:
    """Calls those of some problems proved whose best labellings cost no more than their bounds, as `is_proved` says."""
    met = are_proved(*(proofs.values[row, problems] for row in (BEST, BOUND, SIZE)))
    outcome = proofs.facts[OUTCOME, problems]
    proofs.facts[OUTCOME, problems[met & ((outcome == OPEN) | (outcome == STOPPED))]] = PROVED


def keep_bounds(proofs: Proofs, problems: IntArray, before: FloatArray) -> None:
    """Gives problems the bounds that they had before where later steps ended with lower ones."""
    values = proofs.values
    lower = values[BOUND].take(problems) < before
    if not lower.any():
        return
    problems, before = problems[lower], before[lower]
    values[BOUND, problems] = np.minimum(before, values[BEST, problems])
    prove_met(proofs, problems)


def take_loss(proofs: Proofs, problems: IntArray, fixing: Fixing) -> None:
    """Subtracts what fixing may lose from the bounds of problems, and says anew whether they are proved."""
    if not fixing.labels.size:
        return
    values, facts = proofs.values, proofs.facts
    some = problems[(fixing.loss[problems] > 0.0) & np.isfinite(values[BOUND, problems])]
    values[BOUND, some] -= fixing.loss[some]
    met = are_proved(values[BEST, some], values[BOUND, some], values[SIZE, some])
    facts[OUTCOME, some[(facts[OUTCOME, some] == PROVED) & ~met]] = OPEN

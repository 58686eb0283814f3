"""Finding out what a black box forbids: tuples that its costs wanted, time and again, and that it never gave.

That a tuple never occurs says little: perhaps no costs ever wanted it. So *opportunities* are counted: places where
another label of one variable would make the answer cheaper and break nothing that is known (`count_tuples`). If the
black box took opportunities at a rate q, it would pass over n of them with a chance of (1 - q)^n; so a tuple that it
refused n times, and never showed, is forbidden with a confidence of 1 - (1 - q)^n. The rate is that of the tuples
which do occur: how often they were shown, of all the times that they were shown or refused.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hasten.kernels.learning.tables import count_tuples
from hasten.model.batch import Batch
from hasten.support.arrays import BoolArray, FloatArray, IntArray

TINY = 1e-9  # of the largest cost: a label that saves less may have been refused by rounding


@dataclass(frozen=True, eq=False)
class Evidence:
    """What some answers show of each label tuple, and what they refuse."""

    shown: IntArray  # (n_weights,) how often answers have it
    refused: IntArray  # (n_weights,) how often costs wanted it, and answers do not have it

    @classmethod
    def of(cls, batch: Batch, labels: IntArray, problems: IntArray) -> Evidence:
        """Counts over some problems of a batch with its flat answers."""
        n = batch.structures[0].schema.n_weights if batch.structures else 0
        shown, refused = np.zeros((2, n), dtype=np.int64)
        finite = np.abs(batch.cost[np.isfinite(batch.cost)])
        least = TINY * float(finite.max()) if finite.size else 0.0
        count_tuples(batch.arrays, labels.copy(), problems, least, shown, refused)
        return cls(shown, refused)

    @property
    def rate(self) -> float:
        """How often a tuple that occurs was given where it was wanted."""
        given = self.shown > 0
        shown, refused = int(self.shown[given].sum()), int(self.refused[given].sum())
        return shown / (shown + refused) if shown else 0.0

    @property
    def confidence(self) -> FloatArray:
        """How sure it is that a tuple is forbidden; 0 for those that occur."""
        with np.errstate(divide="ignore"):
            sure = -np.expm1(self.refused * np.log1p(-min(self.rate, 1 - 1e-12)))
        return np.where(self.shown > 0, 0.0, sure)

    def forbidden(self, confidence: float) -> BoolArray:
        """Returns the tuples that are forbidden with this confidence; with 0, all that never occur."""
        return np.asarray((self.shown == 0) & (self.confidence >= confidence))

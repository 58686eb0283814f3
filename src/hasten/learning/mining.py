"""Finding out what a black box forbids: tuples that had every opportunity to occur, and never did.

That a tuple never occurs says little: perhaps no costs ever wanted it. So *opportunities* are counted, of two kinds:

- *Refusals*: places where another label of one variable would make the answer cheaper and break nothing that is
  known, and where nothing but this tuple can be to blame; where several can, each has its share
  (`hasten.learning.tuples`). A tuple that is allowed may be refused as well, for reasons that no declared
  factor tells. How often, the tuples that do occur say: let q be how often they were given, of all the times that they
  were given, or refused without another to blame. If a tuple were as they are, it would be passed over n times with a
  chance of (1 - q)^n.
- *Chance*: how often its labels would have met, in the roles that they have, if the labels of a factor had nothing to
  do with each other. If that is m times, a tuple is missed by chance alone with a chance of exp(-m).

So a tuple that never occurs is forbidden with a confidence of 1 - (1 - q)^n exp(-m).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hasten.learning.tuples import FORBIDDEN, SHOWN, UNSEEN, count_refused, count_shown
from hasten.model.batch import Batch
from hasten.model.schema import Schema
from hasten.support.arrays import BoolArray, FloatArray, IntArray

TINY = 1e-9  # of the largest cost: a label that saves less may have been refused by rounding
KNOWN = 0.98  # confidence, by refusals alone, from which on a tuple is to blame for what it explains
ROUNDS = 3  # of sharing out the blame
LARGEST_RATE = 0.99  # so that one refusal alone never makes sure


@dataclass(frozen=True, eq=False)
class Evidence:
    """Counts of what some answers say of each label tuple."""

    shown: IntArray  # (n_weights,) how often answers have it
    refused: FloatArray  # (n_weights,) how often the costs wanted it, and nothing else was to blame
    chance: FloatArray  # (n_weights,) how often its labels would have met by chance

    @classmethod
    def of(cls, batch: Batch, labels: IntArray, problems: IntArray) -> Evidence:
        """Gathers it from some problems of a batch with its flat answers."""
        schema, labels = batch.structures[0].schema, labels.copy()
        shown = np.zeros(schema.n_weights, dtype=np.int64)
        finite = np.abs(batch.cost[np.isfinite(batch.cost)])
        least = TINY * float(finite.max()) if finite.size else 0.0
        count_shown(batch.arrays, labels, problems, shown)
        known, chance = np.where(shown > 0, SHOWN, UNSEEN), chances(schema, shown)
        for _ in range(ROUNDS):
            found = cls(shown, np.zeros(schema.n_weights), chance)
            count_refused(batch.arrays, labels, problems, least, known, found.refused)
            sure = (known == UNSEEN) & (found.sure_by_refusals >= KNOWN)
            if not sure.any():
                break
            known[sure] = FORBIDDEN
        return found

    @property
    def rate(self) -> float:
        """How often a tuple that occurs was given where it was wanted: q."""
        given = self.shown > 0
        shown, refused = float(self.shown[given].sum()), float(self.refused[given].sum())
        return min(shown / (shown + refused), LARGEST_RATE) if shown else 0.0

    @property
    def sure_by_refusals(self) -> FloatArray:
        """How sure refusals alone make it that a tuple is forbidden, if it never occurs."""
        sure: FloatArray = -np.expm1(self.refused * np.log1p(-self.rate))
        return sure

    @property
    def confidence(self) -> FloatArray:
        """How sure it is that a tuple is forbidden; 0 for those that occur."""
        return np.where(self.shown > 0, 0.0, 1.0 - (1.0 - self.sure_by_refusals) * np.exp(-self.chance))

    def forbidden(self, confidence: float) -> BoolArray:
        """Returns the tuples that are forbidden with this confidence; with 0, all that never occur."""
        return np.asarray((self.shown == 0) & (self.confidence >= confidence))


def chances(schema: Schema, shown: IntArray) -> FloatArray:
    """Returns how often the labels of each tuple would have met if those of a factor were drawn one by one."""
    found = np.zeros(len(shown))
    for kind in schema.factors.values():
        if not kind.learned:
            continue
        mine = slice(kind.weight_at, kind.weight_at + kind.size)
        counts = shown[mine].reshape(kind.shape)
        total, expected = counts.sum(), np.full(kind.shape, float(counts.sum()))
        for role in range(counts.ndim):
            others = tuple(axis for axis in range(counts.ndim) if axis != role)
            expected = expected * (counts.sum(axis=others, keepdims=True) / max(total, 1))
        found[mine] = expected.ravel()
    return found

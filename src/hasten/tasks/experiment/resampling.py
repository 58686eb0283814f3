"""How sure a measured F1 is: intervals by the bootstrap, sentences drawn anew with replacement.

Every row is measured on the same resamples, and so is every seed: a sentence that is in the test sets of several seeds
is drawn equally often in each. So the intervals of a mean over seeds do not take one sentence for several.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hasten.support.arrays import FloatArray, IntArray

N_RESAMPLES = 1000
CONFIDENCE = 0.95


def f1_of(counts: FloatArray) -> FloatArray:
    """Returns F1 from counts (…, 2): labels that both sides name alike, and labels that either side names.

    Where nobody names anything, all is right.
    """
    right, named = counts[..., 0], counts[..., 1]
    return np.where(named > 0, 2.0 * right / np.maximum(named, 1), 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Resamples:
    """How often each test sentence is drawn: for each seed an array (n_resamples, n_test)."""

    drawn: tuple[FloatArray, ...]

    @classmethod
    def of(cls, tests: Sequence[IntArray], seed: int = 0, n: int = N_RESAMPLES) -> Resamples:
        """Draws from all sentences that test anything; `tests` has their numbers for each seed."""
        known, place = np.unique(np.concatenate(tests), return_inverse=True)
        share = np.full(known.size, 1.0 / known.size)
        drawn = np.random.default_rng(seed).multinomial(known.size, share, size=n).astype(float)
        ends = np.cumsum([len(test) for test in tests])[:-1]
        return cls(tuple(drawn[:, mine] for mine in np.split(place, ends)))

    def intervals(self, counts: Sequence[FloatArray]) -> FloatArray:
        """Returns intervals (n_scores, 2) of the mean F1 over seeds; `counts` of a seed are (n_test, n_scores, 2)."""
        f1 = [
            f1_of((drawn @ mine.reshape(len(mine), -1)).reshape(len(drawn), *mine.shape[1:]))
            for drawn, mine in zip(self.drawn, counts, strict=True)
        ]
        tail = 50.0 * (1.0 - CONFIDENCE)
        limits: FloatArray = np.percentile(np.mean(f1, axis=0), [tail, 100.0 - tail], axis=0).T
        return limits

"""What a student may promise: that few of the answers it gives are not the black box's.

An answer is given where its confidence reaches a threshold. Candidates come from answers that the test does not see;
they are tested one after the other, each by the exact binomial limit of the share of wrong answers among those given,
from the one with the most power on, until one fails (fixed-sequence testing). So with the stated confidence the share
is at most `risk` among inputs like those tested, which neither the student nor its confidence learned from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hasten.speedup.audit import upper_limit
from hasten.support.arrays import BoolArray, FloatArray

N_CANDIDATES = 100
MOST_TIMES = 1024  # as many answers as there are: the most that `needed` looks ahead


@dataclass(frozen=True, slots=True)
class Promise:
    """A threshold of confidence, and the test that it rests on; inf where nothing can be promised yet."""

    risk: float
    confidence: float
    threshold: float  # of the logarithm of the probability
    n_tested: int
    n_given: int  # of those tested, answers that reach the threshold
    n_wrong: int  # of these, other than the black box's
    needed: int | None = (
        None  # about how many more tested answers a promise takes; None if nobody can tell, or it holds
    )

    @classmethod
    def none(cls) -> Promise:
        """Returns the promise of a student that was not tested: none."""
        return cls(0.0, 1.0, math.inf, 0, 0, 0)

    @property
    def holds(self) -> bool:
        """Whether there is a promise."""
        return self.threshold < math.inf

    @property
    def coverage(self) -> float:
        """The share of inputs that the student answers."""
        return self.n_given / self.n_tested if self.n_tested else 0.0

    def __str__(self) -> str:
        if self.holds:
            return (
                f"answers {self.coverage:.1%} of the inputs; at most {self.risk:.1%} of these answers differ from the "
                f"black box's, with confidence {self.confidence:.0%} ({self.n_wrong} of {self.n_given:,} did)"
            )
        more = "a better student" if self.needed is None else f"about {self.needed:,} more answers to test on"
        return f"no promise of at most {self.risk:.1%} yet: that needs {more}, after {self.n_tested:,}"


def promise(
    risk: float, confidence: float, seen: tuple[FloatArray, BoolArray], tested: tuple[FloatArray, BoolArray]
) -> Promise:
    """Returns what can be promised, given the log probabilities of answers, and which were right.

    Candidates come from the answers `seen`; those `tested` must be others, drawn from the inputs at random.
    """
    thresholds = candidates(risk, *seen)
    log_p, right = tested
    chosen: Promise | None = None
    for threshold in thresholds.tolist():
        given = log_p >= threshold
        n, wrong = int(given.sum()), int((given & ~right).sum())
        if upper_limit(wrong, n, confidence) > risk:
            break
        chosen = Promise(risk, confidence, threshold, len(right), n, wrong)
    return chosen or Promise(risk, confidence, math.inf, len(right), 0, 0, _needed(risk, confidence, *tested))


def candidates(risk: float, log_p: FloatArray, right: BoolArray) -> FloatArray:
    """Returns thresholds to test: from the one where the promise is surest, down."""
    if not len(log_p):
        return np.zeros(0)
    order = np.argsort(-log_p, kind="stable")
    n, wrong = np.arange(1, len(order) + 1), np.cumsum(~right[order])
    at = np.unique(np.linspace(1, len(order), N_CANDIDATES, dtype=np.int64)) - 1
    power = (risk * n - wrong)[at] / np.sqrt(risk * (1 - risk) * n[at])
    return log_p[order][at[int(np.argmax(power)) :]]


def _needed(risk: float, confidence: float, log_p: FloatArray, right: BoolArray) -> int | None:
    """Returns about how many more answers like these would allow a promise."""
    order = np.argsort(-log_p, kind="stable")
    wrong = np.cumsum(~right[order])
    times = 1.0
    while len(order) and (times := times * 1.25) < MOST_TIMES:
        for n in np.unique(np.linspace(1, len(order), N_CANDIDATES, dtype=np.int64)).tolist():
            rate = (wrong[n - 1] + 0.5) / (n + 1)
            if rate < risk and upper_limit(round(rate * n * times), round(n * times), confidence) <= risk:
                return math.ceil(len(order) * (times - 1))
    return None if len(order) else math.ceil(math.log1p(-confidence) / math.log1p(-risk))

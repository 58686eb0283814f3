"""How often an unproved search agrees with the black box: estimated, limited, and acted upon.

Audits are independent draws: agreed or not. Their share over a sliding window, with exact binomial limits
(Clopper and Pearson), is the estimate. Whether the search may be trusted is decided on several stretches at
once, the last 16 audits, the last 32, and so on up to the window: a sudden drift is seen after a few audits,
a slow one in the long run. Each stretch has its share of the doubt, so that together they err no more often
than one would. The rule has a hysteresis: trust ends when some stretch says that agreement is surely below
the level, and returns when some stretch since then says that it is surely not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hasten.support.arrays import BoolArray, FloatArray

SHORTEST = 16  # audits of the shortest stretch
LONGEST = 512  # at least, of the longest: the window
SURE = 0.99  # confidence of a change of trust


@dataclass(frozen=True, slots=True)
class Agreement:
    """An estimate of a share, with its limits, from `n` audits; without any it is nan between 0 and 1."""

    estimate: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, n_agreed: int, n: int, confidence: float = 0.95) -> Agreement:
        """Returns the estimate and both exact limits."""
        side = 1 - (1 - confidence) / 2
        low, high = lower_limit(n_agreed, n, side), upper_limit(n_agreed, n, side)
        return cls(n_agreed / n if n else math.nan, low, high, n)

    def __str__(self) -> str:
        if not self.n:
            return "not audited yet"
        return f"{self.estimate:.4f} (between {self.low:.4f} and {self.high:.4f}, {self.n} audits)"


class Audit:
    """The last audits, and whether they leave the search trusted; `level` None trusts it for ever.

    `distrust` is the agreement that ended the trust, until trust returns.
    """

    def __init__(self, level: float | None = 0.95) -> None:
        self.level = level
        self.trusted = True
        self.distrust: Agreement | None = None
        self.recent: BoolArray = np.zeros(0, dtype=bool)

    @property
    def window(self) -> int:
        """How many audits are kept: enough to regain trust when a quarter of them do."""
        stretch = LONGEST
        while self.level is not None and stretch * -math.log(self.level) < 4 * -math.log((1 - SURE) / 16):
            stretch *= 2
        return stretch

    @property
    def agreement(self) -> Agreement:
        """The estimate over the window. When trust ends that begins anew; until new audits come, what ended it."""
        if self.distrust is not None and not len(self.recent):
            return self.distrust
        return Agreement.of(int(np.count_nonzero(self.recent)), len(self.recent))

    def observe(self, agreed: BoolArray) -> bool:
        """Takes in audits, oldest first; returns whether they changed the trust."""
        self.recent = np.concatenate([self.recent, np.asarray(agreed, dtype=bool)])[-self.window :]
        if self.level is None or not len(agreed):
            return False
        stretches = [SHORTEST]
        while stretches[-1] < self.window:
            stretches.append(2 * stretches[-1])
        sure = 1 - (1 - SURE) / len(stretches)
        for n in stretches:
            if n > len(self.recent):
                break
            n_agreed = int(self.recent[-n:].sum())
            if self.trusted and upper_limit(n_agreed, n, sure) < self.level:
                self.trusted, self.distrust = False, Agreement.of(n_agreed, n)
                self.recent = self.recent[:0]  # what was before says nothing of what comes
                return True
            if not self.trusted and lower_limit(n_agreed, n, sure) >= self.level:
                self.trusted, self.distrust = True, None
                self.recent = self.recent[-n:]
                return True
        return False


@lru_cache(maxsize=65536)
def upper_limit(k: int, n: int, confidence: float) -> float:
    """Returns the upper limit of a share: that for which at most `k` of `n` has the chance 1 - confidence."""
    if k >= n:
        return 1.0
    terms = _log_choose(k, n)
    aim = math.log1p(-confidence)
    low, high = k / n, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _log_at_most(terms, n, middle) > aim:
            low = middle
        else:
            high = middle
    return high


def lower_limit(k: int, n: int, confidence: float) -> float:
    """Returns the exact lower limit of a share, of which `k` of `n` were seen."""
    return 1.0 - upper_limit(n - k, n, confidence)


def _log_choose(k: int, n: int) -> FloatArray:
    """Returns the logarithms of n over 0, 1, …, k."""
    i = np.arange(1, k + 1)
    return np.concatenate([[0.0], np.cumsum(np.log(n - i + 1) - np.log(i))])


def _log_at_most(terms: FloatArray, n: int, share: float) -> float:
    """Returns the logarithm of the chance of at most k successes."""
    if share >= 1.0:
        return -math.inf
    i = np.arange(len(terms))
    logs = terms + i * math.log(share) + (n - i) * math.log1p(-share) if share > 0 else terms[:1]
    top = float(logs.max())
    with np.errstate(under="ignore"):  # chances that are too small to count
        return top + math.log(float(np.exp(logs - top).sum()))

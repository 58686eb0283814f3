"""How much to try before the solver is asked: nothing, a proof, or a proof and branching further.

Problems that we prove are often those that the solver finds easy, so what a proof saves cannot be told from what the
solver takes on the others. So each structure compares whole ways to answer, with each solver: the mean time of a
problem from the question to the answer. The way that has been fastest is taken. The solver alone is tried often, since
that costs no more than asking it always would; the others are tried for a small share of all time. As long as every
proof succeeds there is nothing to compare.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import IntEnum

FEW = 2  # times that each way is tried, once a proof has failed
OFTEN = 8  # once in so many problems the solver is asked at once, where that may be faster
SHARE = 0.02  # of all time may be lost by trying others
CLEARLY = 4.0  # how many times as fast as the solver alone a way must be for that not to be tried
RECENT = 0.02  # weight of the latest problem, at least


class Effort(IntEnum):
    """What to try before the solver is asked."""

    NONE = 0
    PROOF = 1
    FURTHER = 2


@dataclass(slots=True)
class Efforts:
    """What each effort has taken for a problem of one structure, on average."""

    seconds: list[float] = field(default_factory=lambda: [0.0] * len(Effort))
    n: list[int] = field(default_factory=lambda: [0] * len(Effort))
    spent: float = 0.0
    lost: float = 0.0  # by trying others than the best
    n_problems: int = 0  # since a proof failed

    def choose(self) -> Effort:
        """Returns what to try on the next problem."""
        if not self.n_problems:
            return Effort.PROOF
        least = min(Effort, key=self.n.__getitem__)
        if self.n[least] < FEW:
            return least
        best = self.best
        if self.n_problems % OFTEN == 0 and self.seconds[Effort.NONE] < CLEARLY * self.seconds[best]:
            return Effort.NONE
        spare = SHARE * self.spent - self.lost
        others = [effort for effort in Effort if 0.0 < self.seconds[effort] - self.seconds[best] < spare]
        return min(others, key=self.n.__getitem__, default=best)

    @property
    def best(self) -> Effort:
        """What has been fastest so far."""
        return min(Effort, key=self.seconds.__getitem__)

    def took(self, effort: Effort, seconds: float, n: int = 1) -> None:
        """Takes note of what some problems took with an effort, to the end."""
        self.n_problems += n
        self.n[effort] += n
        self.spent += seconds
        weight = max(n / self.n[effort], min(1.0, n * RECENT))
        self.seconds[effort] += weight * (seconds / n - self.seconds[effort])
        self.lost += max(0.0, seconds - n * self.seconds[self.best])

    def failed(self) -> None:
        """Takes note that a proof failed for the first time, of a problem whose time does not count."""
        self.n_problems += 1

    def rules_out(self, effort: Effort) -> None:
        """Never tries an effort again."""
        self.n[effort], self.seconds[effort] = FEW, math.inf

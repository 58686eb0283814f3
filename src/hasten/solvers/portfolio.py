"""Which of several ways to answer is the fastest, learned from the seconds that each takes.

One mechanism for everything that chooses by speed: `solver="auto"` chooses among solvers, a speedup and an adopted
program between the solver alone and a proof before it (`hasten.speedup.effort`). A `Race` is a small bandit: it takes
the way that was fastest so far, and spends a small share of all time on trying the others again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

SHARE = 0.01  # of all time may be lost by trying slower ways
RECENT = 0.02  # weight of the latest problem in an average, at least
NEARLY = 4.0  # how many times as slow as the fastest a first try may be to be repeated: it may have been bad luck


class Race:
    """The seconds that a problem takes by each of several ways, on average.

    ways
        Their names, in the order in which they are first tried.
    tries
        How often each is tried before the fastest is chosen. With 0, the first is chosen until others were tried.
    """

    def __init__(self, ways: Sequence[str], tries: int = 0) -> None:
        self.ways, self.tries = tuple(ways), tries
        self.seconds: dict[str, float] = {}
        self.n = dict.fromkeys(self.ways, 0)  # problems answered
        self.spent = 0.0
        self.lost = 0.0  # by trying slower ways

    @property
    def spare(self) -> float:
        """How many seconds may be lost by trying slower ways now."""
        return SHARE * self.spent - self.lost

    def ranked(self) -> list[str]:
        """Returns the ways, the fastest first; untried ones come behind the fastest."""
        known = sorted((way for way in self.ways if way in self.seconds), key=self.seconds.__getitem__)
        return [*known[:1], *(way for way in self.ways if way not in self.seconds), *known[1:]]

    def choose(self) -> str:
        """Returns the way to take next: the fastest or, where there is time to spare, another."""
        for way in self.ways:
            tried = self.n[way]
            if tried < self.tries and (not tried or self.seconds[way] < NEARLY * self._best_but(way)):
                return way
        seconds, spare = self.seconds, self.spare
        fastest = min(seconds, key=seconds.__getitem__, default=self.ways[0])
        for way, each in seconds.items():
            if way != fastest and each - seconds[fastest] < spare:
                return way
        return fastest

    def took(self, way: str, seconds: float, n: int = 1, finished: bool = True) -> None:
        """Records the seconds that `n` problems took, to the end or until they were given up."""
        each = seconds / n * (1.0 if finished else 2.0)  # to the end it would have taken longer
        before, self.n[way] = self.n[way], self.n[way] + n
        known = self.seconds.get(way)
        if known is None or (before == 1 and each < known):  # the first call may have loaded what the second used
            self.seconds[way] = each
        else:
            self.seconds[way] = known + max(n / self.n[way], min(1.0, n * RECENT)) * (each - known)
        self.spent += seconds
        best = self._best_but(way)
        if not finished:
            self.lost += seconds
        elif best < self.seconds[way]:
            self.lost += max(0.0, seconds - n * best)

    def exclude(self, way: str) -> None:
        """Never chooses a way again: it failed."""
        self.seconds[way], self.n[way] = math.inf, max(self.n[way], self.tries)

    def gain(self, way: str) -> float:
        """Returns how many times as fast a way is as the best of the others; 0 as long as that is not known."""
        best = self._best_but(way) if len(self.seconds) == len(self.ways) else 0.0
        return best / self.seconds[way] if best and self.seconds[way] else 0.0

    def _best_but(self, way: str) -> float:
        return min([each for other, each in self.seconds.items() if other != way], default=math.inf)

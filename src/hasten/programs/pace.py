"""Whether to prove first, or to ask the solver at once: whichever took less time lately, with a look at the other."""

from __future__ import annotations

FIRST = 3  # calls that prove first, whatever they take
LOOKS = {4, 5, *(4**n for n in range(2, 31))}  # calls that look at the way that lost; the first of each does not count
AGAIN = 1024  # calls after which to look again in any case
MEMORY = 0.9  # how much of what was seen before counts, with each new call
QUICK = 1e-3  # seconds: few solvers take less


class Pace:
    """What each way took lately, in seconds a problem. Proving first includes the solver where no proof was found.

    `looking` says that the call under way is only to see how the pace is: a single problem will do.
    """

    def __init__(self) -> None:
        self._calls = 0
        self._proving, self._solving = _Mean(), _Mean()
        self.looking = False

    def prove_first(self) -> bool:
        """Whether to prove first this time."""
        self._calls += 1
        proving, solving = self._proving.mean, self._solving.mean
        if self._calls <= FIRST or proving <= QUICK:
            self.looking = self._calls <= FIRST
            return True
        self.looking = self._calls in LOOKS or self._calls % AGAIN == 0
        wins = not solving or proving <= solving
        return wins != self.looking

    def took(self, proving_first: bool, n: int, seconds: float) -> None:
        """Takes note of how long `n` problems took."""
        (self._proving if proving_first else self._solving).add(n, seconds)


class _Mean:
    """A mean that forgets; the first value, which loads and plans what others find there, does not count."""

    def __init__(self) -> None:
        self._count = self._sum = 0.0
        self._started = False

    @property
    def mean(self) -> float:
        """The mean; 0 while there is none."""
        return self._sum / self._count if self._count else 0.0

    def add(self, n: int, seconds: float) -> None:
        """Adds a value for `n` problems."""
        if self._started:
            self._count = MEMORY * self._count + n
            self._sum = MEMORY * self._sum + seconds
        self._started = True

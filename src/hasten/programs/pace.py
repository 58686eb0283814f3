"""Whether proving pays: where it seldom succeeds, and takes long, the solver is asked at once."""

from __future__ import annotations

FIRST = 4  # proofs that are tried whatever they take
AGAIN = 64  # calls after which a proof is tried again
MEMORY = 0.9  # how much of what was seen before counts, with each new call
CLEARLY = 0.8  # how much of the time that proofs save they may take: both are measured, and measured badly
MARGIN = 0.03  # the share of a solver's time that a proof may take where it has hardly ever succeeded


class Pace:
    """What proofs and solver calls took lately, and how many proofs succeeded."""

    def __init__(self) -> None:
        self._calls = 0
        self._started = False
        self._proofs = self._proved = self._proof_time = 0.0
        self._solved = self._solve_time = 0.0

    def proof_pays(self) -> bool:
        """Whether a proof is expected to save more time than it takes."""
        self._calls += 1
        if self._calls <= FIRST or self._calls % AGAIN == 0 or not self._solved or not self._proofs:
            return True
        solver = self._solve_time / self._solved
        return self._proof_time / self._proofs < max(MARGIN, CLEARLY * self._proved / self._proofs) * solver

    def proved(self, n: int, n_proved: int, seconds: float) -> None:
        """Takes note of some proofs; not of the first, which loads and plans what others find there."""
        self._started, started = True, self._started
        if started:
            self._proofs = MEMORY * self._proofs + n
            self._proved = MEMORY * self._proved + n_proved
            self._proof_time = MEMORY * self._proof_time + seconds

    def solved(self, seconds: float) -> None:
        """Takes note of a call of the solver."""
        self._solved = MEMORY * self._solved + 1
        self._solve_time = MEMORY * self._solve_time + seconds

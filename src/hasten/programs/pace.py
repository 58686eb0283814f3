"""Whether proving pays: where it seldom succeeds, and takes as long as the solver, the solver is asked at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

FIRST = 4  # proofs that are tried whatever they take
AGAIN = 64  # calls after which a proof is tried again
MEMORY = 0.9  # how much of what was seen before counts, with each new call


class Pace:
    """What proofs and solver calls took lately, and how many proofs succeeded."""

    def __init__(self) -> None:
        self._calls = 0
        self._n_proofs = self._proved = self._proof_time = 0.0
        self._n_solved = self._solve_time = 0.0

    def proof_pays(self) -> bool:
        """Whether a proof is expected to save more time than it takes."""
        self._calls += 1
        if (
            (self._n_proofs < FIRST - 0.5 and self._calls <= 2 * FIRST)
            or self._calls % AGAIN == 0
            or not self._n_solved
        ):
            return True
        chance = self._proved / self._n_proofs
        return self._proof_time / self._n_proofs < chance * self._solve_time / self._n_solved

    @contextmanager
    def proving(self) -> Iterator[Callable[[bool], None]]:
        """Times a proof; what it gives is told whether it succeeded."""
        told: list[bool] = []
        started = time.perf_counter()
        yield told.append
        self._n_proofs = MEMORY * self._n_proofs + 1
        self._proved = MEMORY * self._proved + any(told)
        self._proof_time = MEMORY * self._proof_time + time.perf_counter() - started

    @contextmanager
    def solving(self) -> Iterator[None]:
        """Times a call of the solver."""
        started = time.perf_counter()
        yield
        self._n_solved = MEMORY * self._n_solved + 1
        self._solve_time = MEMORY * self._solve_time + time.perf_counter() - started

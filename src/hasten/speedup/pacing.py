"""How many problems to prove at a time, before the solver has answered those that could not be.

A batch of one structure may be one on which proofs never succeed. So it is answered a few problems at a time until it
is known what pays (`hasten.speedup.efforts`). Where proofs take microseconds, or have never failed, all problems are
proved together.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from hasten.model.structure import Structure
from hasten.proof.certifier import n_loaded
from hasten.solvers import Solver, is_ours
from hasten.speedup.budget import ACCOUNTS, Budget
from hasten.speedup.efforts import Effort

FIRST = 4  # problems that are answered at a time as long as it is not known what pays
SWIFT = 5e-5  # seconds: where an answer takes less, proofs are tried in any case


def account(structure: Structure, asked: Solver | None) -> Budget | None:
    """Returns the budget of a structure with a solver, or with none yet; a solver of the user's own has no budget."""
    if asked is None:
        return ACCOUNTS.of(structure.compiled, "")
    return ACCOUNTS.of(structure.compiled, asked.name) if is_ours(asked) else None


class Pace:
    """How many problems of one structure to answer at a time, and with what effort; without one, all of them."""

    def __init__(self, structure: Structure | None, asked: Solver | None, most: int) -> None:
        self.budget = None if structure is None else account(structure, asked)
        self._structure, self._most, self._size = structure, most, FIRST
        self._began, self._loaded = 0.0, 0
        self._sure = self.budget is None or _surely(self.budget)

    def step(self, left: int) -> tuple[Effort, int]:
        """Returns the effort for the problems that come next, and how many of them to answer."""
        if self.budget is None or self._sure:
            return Effort.PROOF, min(self._most, left)
        return self.budget.efforts.choose(), min(self._size, self._most, left)

    def begin(self) -> None:
        """Takes the time, unless it is known what pays."""
        if not self._sure:
            self._began, self._loaded = time.perf_counter(), n_loaded()

    def end(self, effort: Effort, n: int, solver: Callable[[], Solver] | None) -> None:
        """Takes note of what some problems took; `solver` is who was asked about those that were not proved."""
        if self.budget is None or self._structure is None or not n:
            return
        if self._sure:
            if solver is not None and (budget := account(self._structure, solver())) is not None:
                budget.efforts.failed()
            return
        seconds, first = time.perf_counter() - self._began, False
        if solver is not None:
            before, self.budget = self.budget, account(self._structure, solver())
            first = before is not self.budget  # it was loaded for these problems
        if self.budget is None or self._loaded != n_loaded():
            return
        if effort is Effort.PROOF and solver is None:
            self.budget.proof_seconds = seconds / n
            self._size *= 8
        if first:
            self.budget.efforts.failed()
        elif self.budget.efforts.n_problems or solver is not None:
            self.budget.efforts.took(effort, seconds, n)


def _surely(budget: Budget) -> bool:
    """Whether proofs have been swift, or have never failed."""
    tried = budget.proof_seconds > 0.0
    return tried and (budget.proof_seconds < SWIFT or not budget.efforts.n_problems)

"""Prove where that pays, solve elsewhere: for problems of one shape that come again and again.

`prove_or_solve` asks the solver about what could not be proved, and nothing else as long as proofs pay. Whoever reuses
a solver's model wants to be no slower than that solver, so here the structure's budget decides before each proof
(`hasten.speedup.budget`), and the solver is also asked to see what it takes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from hasten.model.batch import Batch
from hasten.model.elimination import reduce
from hasten.model.problem import Problem
from hasten.model.relaxing import whole_plan
from hasten.model.solution import Solution, Solutions
from hasten.model.structure import Structure
from hasten.model.tallying import tally_of
from hasten.proof.certifier import Certifier, n_loaded
from hasten.solvers import Progress, Solver
from hasten.solvers.failures import OnError
from hasten.speedup.black_box import solve_open, unknown
from hasten.speedup.budget import ACCOUNTS, Budget

FIRST, MOST = 8, 4096  # problems that are proved at a time, at first and in the end
FEW = 8  # problems that are solved before proofs are thought of again
STEADY = 64  # proofs in a row without the solver, after which many are proved at a time at once
SELDOM = 8  # one in so many may need the solver for more to be proved at a time
WITHOUT_LIMIT = Certifier()


class Thrift:
    """Answers problems of one structure by proof or by a solver, whichever pays, by a clock."""

    def __init__(self, solver: Solver, clock: Callable[[], float] = time.perf_counter) -> None:
        self._solver, self._clock = solver, clock

    def one(self, problem: Problem, seconds: float = math.inf) -> Solution:
        """Answers one problem, in so many seconds: half to prove it, the rest to solve it."""
        budget, deadline = self._budget(problem.structure), time.monotonic() + seconds
        if not budget.proves():
            return self._ask(Solutions.of(problem.batch, [unknown(problem)]), seconds, harder=False).only(problem)
        began, loaded = self._clock(), n_loaded()
        found = certifier(seconds)(problem)
        if loaded == n_loaded():
            budget.proved(self._clock() - began, 1, int(found.status.optimal))
        if found.status.optimal:
            return found
        left = deadline - time.monotonic()
        return self._ask(Solutions.of(problem.batch, [found]), left, harder=True).only(problem)

    def many(self, batch: Batch, seconds: float = math.inf, progress: Progress | None = None) -> Solutions:
        """Answers a batch of one structure; each problem has so many seconds."""
        parts: list[Solutions] = []
        start, size = 0, FIRST
        while start < len(batch):
            budget = self._budget(batch.structures[0])
            if budget.n_unasked >= STEADY:
                size = MOST
            tries = budget.proves()
            n = min(size if tries else 1 if budget.compares() else FEW, len(batch) - start)
            part = batch.select(range(start, start + n))
            if tries:
                began, loaded = self._clock(), n_loaded()
                found = certifier(seconds)(part)
                n_proved = int(found.optimal.sum())
                if loaded == n_loaded():
                    budget.proved(self._clock() - began, n, n_proved)
                size = min(MOST, 4 * size) if SELDOM * (n - n_proved) <= n else FIRST
            else:
                found = Solutions.of(part, [unknown(part[p]) for p in range(n)])

            def tell(done: int, _: int, before: int = start) -> None:
                if progress is not None:
                    progress(before + done, len(batch))

            parts.append(self._ask(found, seconds, tries, tell))
            start += n
            tell(n, n)
        return Solutions.joined(batch, parts)

    def _budget(self, structure: Structure) -> Budget:
        budget = ACCOUNTS.of(structure.compiled, self._solver.name)
        if not budget.planned:
            plan(structure)
        return budget

    def _ask(self, found: Solutions, seconds: float, harder: bool, progress: Progress | None = None) -> Solutions:
        """Asks the solver about what is not proved."""
        asked: Callable[[], Solver] = lambda: self._solver  # noqa: E731
        limits = seconds, math.inf
        return solve_open(found, asked, progress, OnError.RAISE, limits, harder, self._clock)[0]


def plan(structure: Structure) -> None:
    """Plans the proofs of a structure, all of them, so that none is timed with its plan."""
    reduce(structure.compiled, None)
    whole_plan(structure.compiled, None)
    tally_of(structure.compiled)


def certifier(seconds: float) -> Certifier:
    """Returns what proves: it has half of the time that there is."""
    return WITHOUT_LIMIT if math.isinf(seconds) else Certifier(time_limit=seconds / 2)

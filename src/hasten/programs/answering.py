"""How the answers to a program come about: proved where that pays, the solver's elsewhere.

The solver is given the program as it was stated, where it takes one, and what was recognised elsewhere. Whatever it
says is checked against both.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from hasten.errors import ProgramError, SolverWrong
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.solution import Solution, Solutions, Source, Status
from hasten.programs.labels import Space
from hasten.programs.native import NATIVE, Native, highs_is_elsewhere, make_native
from hasten.programs.pace import Pace
from hasten.programs.statement import Statement
from hasten.proof.certifier import Certifier, n_loaded
from hasten.solvers import Progress, Solver, make_solver, solve_within
from hasten.solvers.base import answer
from hasten.speedup.black_box import better
from hasten.support.arrays import FloatArray, IntArray

WITHOUT_LIMIT = Certifier()
FIRST, MOST = 8, 4096  # problems that are proved at a time, at first and in the end


def certifier(seconds: float) -> Certifier:
    """Returns what proves: it has half of the time that there is."""
    return WITHOUT_LIMIT if math.isinf(seconds) else Certifier(time_limit=seconds / 2)


def clock_for(solver: str | Solver) -> Callable[[], float]:
    """Returns what to time a solver with: processor time, which a busy machine disturbs less, if it works here."""
    here = solver == "gurobi" or (solver == "highs" and not highs_is_elsewhere())
    return time.process_time if here else time.perf_counter


class Answering:
    """Everything that is kept between calls: solvers with their models, and what proofs took."""

    def __init__(self, statement: Statement) -> None:
        self.statement = statement
        self._natives: dict[str, Native] = {}
        self._solvers: dict[str, Solver] = {}
        self.pace = Pace()
        self._size = FIRST  # problems that are proved at a time

    def native(self, solver: str) -> Native:
        """Returns the program as a solver holds it."""
        if solver not in self._natives:
            self._natives[solver] = make_native(self.statement, solver)
        return self._natives[solver]

    def solve_one(
        self, problem: Problem, cost: FloatArray, space: Space, solver: str | Solver, seconds: float, prove: bool
    ) -> Solution:
        """Answers one problem, and tries to prove it first or not; `cost` is what the columns cost."""
        now = clock_for(solver)
        started, loaded, deadline = now(), n_loaded(), time.monotonic() + seconds
        found: Solution | None = None
        if prove:
            found = certifier(seconds)(problem)
        if found is None or not found.status.optimal:
            found = self._ask(problem, cost, space, found, solver, deadline)
        if loaded == n_loaded():
            self.pace.took(prove, 1, now() - started)
        return found

    def solve_many(
        self,
        batch: Batch,
        costs: FloatArray,
        space: Space,
        solver: str | Solver,
        seconds: float,
        progress: Progress | None = None,
    ) -> Solutions:
        """Answers a batch; each problem has so many seconds."""
        parts, start, now = [], 0, clock_for(solver)
        while start < len(batch):
            began, loaded, prove = now(), n_loaded(), self.pace.prove_first()
            size = 1 if self.pace.looking else self._size if prove else FIRST
            part = batch.select(range(start, min(start + size, len(batch))))
            found: Solutions | None = None
            if prove:
                found = certifier(seconds)(part)
            left = np.arange(len(part)) if found is None else np.flatnonzero(~found.optimal)
            answers = []
            for p in left.tolist():
                before, cost = None if found is None else found[p], costs[start + p]
                answers.append(self._ask(part[p], cost, space, before, solver, time.monotonic() + seconds))
                if progress is not None:
                    progress(start + p + 1, len(batch))
            if found is None:
                found = Solutions.of(part, answers)
            elif answers:
                found = found.replace(left, Solutions.of(part.select(left), answers))
            parts.append(found)
            if loaded == n_loaded():
                self.pace.took(prove, len(part), now() - began)
            if prove and not self.pace.looking:
                often = 8 * len(answers) > len(part)  # where the solver is asked often, mind the pace
                self._size = FIRST if often else min(MOST, 4 * self._size)
            start += len(part)
            if progress is not None:
                progress(start, len(batch))
        return Solutions.joined(batch, parts)

    def _ask(
        self,
        problem: Problem,
        cost: FloatArray,
        space: Space,
        found: Solution | None,
        solver: str | Solver,
        deadline: float,
    ) -> Solution:
        """Asks the solver, and keeps what was found where that is better."""
        asked, seconds = self._solver_for(cost, space, solver), deadline - time.monotonic()
        return solve_within(asked, problem, seconds) if found is None else better(found, asked, seconds)

    def takes_as_given(self, solver: str | Solver) -> bool:
        """Whether a solver can be given the program as it is."""
        plain = not self.statement.tables and not len(self.statement.products.left)
        return isinstance(solver, str) and solver in NATIVE and plain

    def _solver_for(self, cost: FloatArray, space: Space, solver: str | Solver) -> Solver:
        if isinstance(solver, str) and self.takes_as_given(solver):
            return _AsGiven(self, cost, space, solver)
        if not isinstance(solver, str):
            return make_solver(solver)
        if solver not in self._solvers:
            self._solvers[solver] = make_solver(solver)
        return self._solvers[solver]


class _AsGiven:
    """A solver that is asked about a program as it was given."""

    def __init__(self, answering: Answering, cost: FloatArray, space: Space, name: str) -> None:
        self.name = name
        self.interruptible = True  # it keeps time limits
        self._answering, self._cost, self._space = answering, cost, space

    def solve(self, problem: Problem, time_limit: float | None = None, start: IntArray | None = None) -> Solution:
        """Asks it, from its own last answer on. It was checked against the rows as they were given, which are all."""
        said = self._answering.native(self.name).solve(self._cost, math.inf if time_limit is None else time_limit)
        if said.x is None:
            if said.status is Status.FAILED:
                raise ProgramError(said.reason)
            return answer(problem, said.status, bound=said.bound)
        labels = self._space.labels(said.x)
        if labels.min() < 0:
            raise SolverWrong(f"{self.name} returned values that no label stands for.")
        total = float(problem.cost[self._space.first[:-1] + labels].sum())
        bound = total if said.status is Status.SOLVED else min(said.bound, total)
        return Solution(problem, said.status, Source.SOLVER, labels, total, bound, True, len(labels))

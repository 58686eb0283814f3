"""How the answers to a program come about: proved where that pays, the solver's elsewhere.

The solver is given the program as it was stated, where it takes one, and what was recognised elsewhere. Whatever it
says is checked against both. Which way pays, the budget of the structure says (`hasten.speedup.thrift`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

from hasten.errors import ProgramError, SolverWrong
from hasten.model.problem import Problem
from hasten.model.solution import Solution, Source, Status
from hasten.model.structure import Structure
from hasten.programs.labels import Space
from hasten.programs.native import NATIVE, Native, highs_is_elsewhere, make_native
from hasten.programs.statement import Statement
from hasten.solvers import Solver, make_solver
from hasten.solvers.base import answer
from hasten.speedup.budget import ACCOUNTS, Budget
from hasten.speedup.thrift import Thrift
from hasten.support.arrays import FloatArray, IntArray

_SHARED: dict[str, Solver] = {}  # by name, for all programs: some take long to load, and "auto" learns from all of them


def clock_for(solver: str | Solver) -> Callable[[], float]:
    """Returns what to time a solver with: processor time, which a busy machine disturbs less, if it works here."""
    here = solver == "gurobi" or (solver == "highs" and not highs_is_elsewhere())
    return time.process_time if here else time.perf_counter


class Direct(NamedTuple):
    """What says whether the solver is asked at once about a structure's program."""

    structure: Structure
    budget: Budget
    clock: Callable[[], float]


class Solving:
    """Everything that is kept between calls: solvers with their models."""

    def __init__(self, statement: Statement) -> None:
        self.statement = statement
        self._natives: dict[str, Native] = {}
        self._direct: dict[str, Direct] = {}

    def native(self, solver: str) -> Native:
        """Returns the program as a solver holds it."""
        if solver not in self._natives:
            self._natives[solver] = make_native(self.statement, solver)
        return self._natives[solver]

    def thrift(self, solver: str | Solver, costs: FloatArray, space: Space) -> Thrift:
        """Returns what answers problems; problem number `id` has the row `costs[id]` for its columns."""
        return Thrift(self._solver_for(costs, space, solver), clock_for(solver))

    def direct(self, solver: str, structure: Structure) -> Direct:
        """Returns the short way to a solver that takes the program as it is."""
        way = self._direct.get(solver)
        if way is None or way.structure is not structure:
            budget = ACCOUNTS.of(structure.compiled, solver)
            way = self._direct[solver] = Direct(structure, budget, clock_for(solver))
        return way

    def takes_as_given(self, solver: str | Solver) -> bool:
        """Whether a solver can be given the program as it is."""
        plain = not self.statement.tables and not len(self.statement.products.left)
        return isinstance(solver, str) and solver in NATIVE and plain

    def _solver_for(self, costs: FloatArray, space: Space, solver: str | Solver) -> Solver:
        if isinstance(solver, str) and self.takes_as_given(solver):
            return _AsGiven(self, costs, space, solver)
        if not isinstance(solver, str):
            return make_solver(solver)
        if solver not in _SHARED:
            _SHARED[solver] = make_solver(solver)
        return _SHARED[solver]


class _AsGiven:
    """A solver that is asked about a program as it was given."""

    def __init__(self, solving: Solving, costs: FloatArray, space: Space, name: str) -> None:
        self.name = name
        self.interruptible = True  # it keeps time limits
        self._solving, self._costs, self._space = solving, costs, space

    def solve(self, problem: Problem, time_limit: float | None = None, start: IntArray | None = None) -> Solution:
        """Asks it, from its own last answer on. It was checked against the rows as they were given, which are all."""
        seconds = math.inf if time_limit is None else time_limit
        said = self._solving.native(self.name).solve(self._costs[problem.id], seconds)
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

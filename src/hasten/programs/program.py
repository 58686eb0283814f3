"""The program that a user brought: problems and batches of it, answers to it, and what was recognised."""

from __future__ import annotations

import logging
import math
import time
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hasten.errors import ProgramError
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.model.solution import Solution, Solutions, Status, numbered
from hasten.model.structure import Structure
from hasten.programs.answer import UNBOUNDED, Answer, Answers, without_values
from hasten.programs.costs import CostMap
from hasten.programs.describe import describe
from hasten.programs.kinds import Kinds
from hasten.programs.libraries import check_variables, state
from hasten.programs.native import NATIVE, Said
from hasten.programs.recognise import Recognised, recognise
from hasten.programs.solving import Solving
from hasten.programs.statement import Statement
from hasten.proof import outcome as kernels
from hasten.solvers import Progress, Solver, check_solver
from hasten.solvers.failures import OnError
from hasten.speedup.black_box import prove_or_solve
from hasten.speedup.pacing import Pace
from hasten.support.arrays import FloatArray, all_finite, floats
from hasten.support.checks import check_limit
from hasten.support.forms import short
from hasten.support.words import count

log = logging.getLogger(__name__)
PROVED = Status.PROVED.value
OFTEN = 3  # calls in a row that bring other constraints, after which that is worth a word


class Program:
    """A program that was read or adopted. Made by `hasten.read` and `hasten.adopt`.

    `problem` and `batch` take objectives in the model's order of variables, and go wherever problems and batches go. A
    solution's `cost` is the model's objective, constant included; where the model maximises, its `score` is. `solve`
    answers in the model's own words. `describe` says what was recognised.
    """

    def __init__(self, statement: Statement, like: Program | None = None) -> None:
        if like is not None and not isinstance(like, Program):
            raise ProgramError(f"like is a program, of hasten.read or hasten.adopt; got {short(like)}.")
        self.statement = statement
        self._like = like
        self._found: Recognised | str | None = None
        self._kinds: Kinds | None = None
        self._last: Kinds | None = None  # those before the constraints changed
        self._solving = Solving(statement)
        self._checked: set[str] = set()  # names of solvers that are there
        self._changed = 0  # calls in a row that brought other constraints

    @property
    def _sign(self) -> float:
        """What turns the model's objective into costs."""
        return -1.0 if self.statement.maximize else 1.0

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the variables, in the model's order."""
        return self.statement.columns

    @property
    def only_solver(self) -> str:
        """Why only the solver can answer this; "" where that is not so."""
        found = self._recognised
        return f"Only the solver can answer this: {found}." if isinstance(found, str) else ""

    @property
    def _recognised(self) -> Recognised | str:
        if self._found is None:
            started = time.monotonic()
            self._found = recognise(self.statement)
            log.debug("Recognised %s in %.3f s.", self.statement.name or "a program", time.monotonic() - started)
        return self._found

    @property
    def recognised(self) -> Recognised:
        """What was recognised, or an error that says why nothing was."""
        found = self._recognised
        if isinstance(found, str):
            raise ProgramError(f"{self.only_solver} Use program.solve().")
        return found

    @property
    def kinds(self) -> Kinds:
        """The kinds of its variables and tables: those of the program that it is `like`, if they suffice."""
        if self._kinds is None:
            parts = self.recognised.parts
            if self._like is not None and self._like.kinds.know(parts):
                self._kinds = self._like.kinds
            elif self._last is not None and self._last.know(parts):
                self._kinds = self._last
            else:
                if self._like is not None:
                    log.warning("The other program lacks some kinds of this one: nothing learned carries over.")
                self._kinds = Kinds([parts])
        return self._kinds

    def use(self, kinds: Kinds) -> None:
        """Takes kinds that know all parts of this program, in place of its own."""
        self._kinds = kinds
        self._forget()

    @property
    def schema(self) -> Schema:
        """The kinds that were recognised, as a schema."""
        return self.kinds.schema

    @cached_property
    def structure(self) -> Structure:
        """The variables, tables and rules that were recognised."""
        return self.recognised.structure(self.kinds, self.statement.rows)

    def problem(self, objective: npt.ArrayLike | None = None) -> Problem:
        """Returns the program as a problem, under its own objective or another, in the model's order of variables."""
        c = self._objective(objective)
        return self.structure.problem(self._map.many(c[None], self._sign, self.statement.constant)[0])

    def batch(self, objectives: npt.ArrayLike) -> Batch:
        """Returns many problems at once, from a matrix with an objective in each row."""
        matrix = self._matrix(objectives)
        return self.structure.batch(self._map.many(matrix, self._sign, self.statement.constant))

    def values(self, answers: Solution | Solutions) -> FloatArray:
        """Returns the value of each variable of the model, or a row of them for each problem; nan without an answer."""
        for structure in [answers.problem.structure] if isinstance(answers, Solution) else answers.batch.structures:
            self._check_own(structure)
        x = self._map.values(answers.labels, 1 if isinstance(answers, Solution) else len(answers))
        return x[0] if isinstance(answers, Solution) else x

    def answer(self, solution: Solution, objective: npt.ArrayLike | None = None) -> Answer:
        """Returns a solution in the model's own words; `objective` is that of its problem, if not the model's own."""
        c = self._objective(objective)
        x = None if solution.values is None else self.values(solution)
        how = f"{solution.status.value} ({solution.source.value})"
        return self._answer(c, solution.status, x, solution.bound, solution.proved, how, solution.reason)

    def solve(
        self,
        model: Any = None,
        *,
        objective: npt.ArrayLike | None = None,
        solver: str | Solver = "highs",
        time_limit: float | None = None,
    ) -> Answer:
        """Returns the best answer: proved where we can, the solver's elsewhere.

        model
            The model again, after its objective was changed; changed constraints make a new structure. None takes the
            program as it is.
        objective
            Another objective, in the model's order of variables.
        solver
            Who is asked where nothing is proved: a name, or a solver of yours. "highs" and "gurobi" are given the model
            as it is, others what was recognised.
        time_limit
            Seconds of the wall clock; what runs out of time is the best found so far, and says so.
        """
        self._check(solver, time_limit)
        if model is not None:
            self.renew(model)
        c, seconds = self._objective(objective), math.inf if time_limit is None else time_limit
        found = self._recognised
        if isinstance(found, str):
            return self._solve_as_given(c, solver, seconds)
        structure, sign, space = self.structure, self._sign, found.space
        seen, constant = self._map.glance(c, sign), sign * self.statement.constant
        if not seen.proved and seconds == math.inf:
            seen = self._solving.settle(self._solving.way(solver, structure), self._map, seen)
        if seen.proved:
            return self._answer(c, Status.PROVED, seen.x, seen.bound + constant, True, PROVED, "")
        if seen.outcome == kernels.INFEASIBLE:
            return self._answer(c, Status.INFEASIBLE, None, math.inf, True, Status.INFEASIBLE.value, "")
        costs, way = c if sign > 0 else -c, self._solving.way(solver, structure)
        if way.as_given and not way.efforts.proves():
            said = self._solving.alone(way, costs, seconds)
            if said is not None:
                return self._said(c, said)
        problem = Problem(structure, seen.cost, None, structure.graph.table, 0)
        answer = self._solving.prove(way, problem, seen, costs, space, seconds)
        x = None if answer.values is None else self._map.values(answer.values, 1)[0]
        return self._answer(
            c, answer.status, x, answer.bound + constant, answer.proved, answer.status.value, answer.reason
        )

    def solve_all(
        self,
        objectives: npt.ArrayLike,
        *,
        solver: str | Solver = "highs",
        time_limit: float | None = None,
        progress: Progress | None = None,
    ) -> Answers:
        """Returns the best answers under many objectives, a row of a matrix each; settings are those of `solve`.

        `time_limit` is for each of them. `progress` is told how many are done, of how many.
        """
        self._check(solver, time_limit)
        matrix = self._matrix(objectives)
        if isinstance(self._recognised, str) or math.isfinite(self.statement.cutoff):
            answers = [self.solve(objective=c, solver=solver, time_limit=time_limit) for c in matrix]
            return Answers.of(self.statement, answers)
        n, seen = len(matrix), self._map.glance_at_all(matrix, self._sign)
        if time_limit is None:
            self._solving.settle_few(self._solving.way(solver, self.structure), self._map, seen)
        (left,) = (seen.outcome != kernels.PROVED).nonzero()

        def tell(done: int, of: int) -> None:
            if progress is not None and n:
                progress(n - of + done, n)

        tell(0, len(left))
        status, proved, reasons = np.full(n, numbered(Status.PROVED)), np.ones(n, dtype=bool), dict[int, str]()
        if left.size:
            found = self._solve_rest(matrix[left], seen.cost[left], solver, time_limit, tell if progress else None)
            status[left], proved[left], seen.bound[left] = found.status, found.proved, found.bound
            seen.x[left], reasons = self.values(found), {int(left[p]): why for p, why in found.reasons.items()}
        value, bound = self.statement.values_of(seen.x, matrix), self._sign * seen.bound + self.statement.constant
        return Answers(self.statement, status, seen.x, value, bound, proved, reasons)

    def _solve_rest(
        self, matrix: FloatArray, cost: FloatArray, solver: str | Solver, limit: float | None, progress: Progress | None
    ) -> Solutions:
        """Answers what a glance left open, given objectives and what labels cost."""
        way = self._solving.way(solver, self.structure)
        asked = self._solving.solver_for(way, self._sign * matrix, self.recognised.space)
        pace = Pace(self.structure, asked, limit is not None, way.clock)
        batch = self.structure.batch(cost)
        return prove_or_solve(
            batch, lambda: asked, time_limit=limit, progress=progress, on_error=OnError.RAISE, pace=pace
        )[0]

    def renew(self, model: Any) -> None:
        """Takes what its model says now: another objective, or other constraints, which take a new structure."""
        new = state(model)
        check_variables(model, new.columns, self.columns)
        old, self.statement = self.statement, new
        if old.same_constraints(new):
            self._changed = 0
            return
        self._changed += 1
        level = logging.WARNING if self._changed == OFTEN else logging.INFO
        log.log(
            level,
            "%s brings other constraints%s: what was recognised is built anew.",
            new.name or "The model",
            f" in {self._changed} calls in a row" if self._changed > 1 else "",
        )
        self._last = self._kinds or self._last
        self._found, self._kinds, self._solving = None, None, Solving(new)
        self._forget()

    def describe(self) -> str:
        """Returns what was recognised, in words and as a small table."""
        return describe(self)

    def _forget(self) -> None:
        """Drops what was made of constraints, or kinds, that have changed."""
        for made in ("structure", "_map"):
            self.__dict__.pop(made, None)

    def _check_own(self, structure: Structure) -> None:
        """Refuses the structure of another program's problems."""
        own = self.structure
        if structure is not own and [kind.labels for kind in structure.kinds] != [kind.labels for kind in own.kinds]:
            raise ProgramError(
                f"These are answers to problems of {structure.n_variables:,} variables that are not this program's, "
                f"which has {own.n_variables:,}. Give answers to problems that program.problem or program.batch made."
            )

    def _check(self, solver: str | Solver, time_limit: float | None) -> None:
        """Refuses what is not a solver, each once, and what is not a limit."""
        check_limit("time_limit", time_limit)
        if not isinstance(solver, str) or solver not in self._checked:
            check_solver(solver)
            if isinstance(solver, str):
                self._checked.add(solver)

    def _solve_as_given(self, c: FloatArray, solver: str | Solver, seconds: float) -> Answer:
        if not isinstance(solver, str) or solver not in NATIVE:
            raise ProgramError(f"{self.only_solver} That takes one of the solvers {' and '.join(NATIVE)}.")
        if self.statement.tables or len(self.statement.products.left):
            raise ProgramError(
                f"{self.only_solver} But no solver here takes tables or products with such variables. Make them whole "
                "and bound them closely, or solve the model with its own library."
            )
        return self._said(c, self._solving.native(solver).solve(self._sign * c, seconds), f"{self.only_solver} ")

    def _said(self, c: FloatArray, said: Said, why: str = "") -> Answer:
        """Returns what a solver says of the program as it is."""
        bound = said.bound + self._sign * self.statement.constant
        how = why + (UNBOUNDED if said.reason == UNBOUNDED else said.status.value)
        return self._answer(c, said.status, said.x, bound, False, how, said.reason)

    def _answer(
        self, c: FloatArray, status: Status, x: FloatArray | None, bound: float, proved: bool, how: str, reason: str
    ) -> Answer:
        """Returns an answer, given a bound on what is minimised."""
        program, sign = self.statement, self._sign
        value = without_values(program.maximize, reason)
        if x is not None:
            value = program.value(x, c)
            bound = sign * value if status is Status.SOLVED else bound
            if sign * value >= program.cutoff:
                status = Status.INFEASIBLE if status.optimal else Status.NO_TIME
                bound = math.inf if status is Status.INFEASIBLE else bound
                x, value = None, sign * math.inf
                reason = _CUT.format(sign * program.cutoff, "less" if program.maximize else "more")
        return Answer(program, status, x, value, sign * bound, proved, how, reason)

    def _objective(self, objective: npt.ArrayLike | None) -> FloatArray:
        if objective is None:
            return self.statement.objective
        try:
            c = floats(objective)
        except (TypeError, ValueError) as error:
            raise ProgramError(f"An objective is a row of numbers ({error}).") from None
        if c.shape != (self.statement.n_columns,):
            raise ProgramError(
                f"Got an objective of shape {c.shape} for {self.statement.n_columns} variables. Give a coefficient for "
                "each, in the model's order (program.columns)."
            )
        if not all_finite(c):
            at = int(np.flatnonzero(~np.isfinite(c))[0])
            raise ProgramError(f"The objective of {self.columns[at]!r} is {c[at]}. Give finite numbers.")
        return c

    def _matrix(self, objectives: npt.ArrayLike) -> FloatArray:
        try:
            matrix = floats(objectives)
        except (TypeError, ValueError) as error:
            raise ProgramError(f"Objectives are a matrix of numbers ({error}).") from None
        if matrix.ndim != 2 or matrix.shape[1] != self.statement.n_columns:
            raise ProgramError(
                f"Got objectives of shape {matrix.shape}; this needs (problems, {self.statement.n_columns}): a row for "
                "each problem, with a coefficient for each variable of the model."
            )
        if not all_finite(matrix):
            row, at = np.argwhere(~np.isfinite(matrix))[0].tolist()
            raise ProgramError(
                f"The objective of {self.columns[at]!r} in row {row} is {matrix[row, at]}. Give finite numbers."
            )
        return matrix

    @cached_property
    def _map(self) -> CostMap:
        """What labels cost under an objective."""
        found = self.recognised
        return CostMap(found.space, found.base, found.constant, self.structure)

    def __repr__(self) -> str:
        program = self.statement
        return f"Program({program.name!r}, {count(program.n_columns, 'variable')}, {count(program.n_rows, 'row')})"


_CUT = "Only answers were found whose objective is {:g} or {}, which the file rules out."

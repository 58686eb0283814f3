"""The program that a user brought: problems and batches of it, answers to it, and its description."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hasten.errors import ProgramError, SolverWrong
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.model.solution import Solution, Solutions, Status, numbered
from hasten.model.structure import Structure
from hasten.programs.answer import UNBOUNDED, Answer, Answers
from hasten.programs.kinds import Kinds
from hasten.programs.libraries import check_variables, front_end
from hasten.programs.native import NATIVE, Checker
from hasten.programs.objectives import Objective, ObjectiveReader, Objectives, Order
from hasten.programs.recognise import describe
from hasten.programs.solving import Asked, Solving
from hasten.programs.state import FirstLook, Recognised
from hasten.programs.statement import Statement
from hasten.proof import outcome as kernels
from hasten.solvers import OnProgress, Solver, check_solver
from hasten.speedup.effort import AIDED, ALONE, CLEARLY
from hasten.support.arrays import FloatArray
from hasten.support.checks import brief, check_limit, check_number, check_type
from hasten.support.clock import deadline_after, now, seconds_loading
from hasten.support.forms import short
from hasten.support.words import count

if TYPE_CHECKING:
    from hasten.certificates import Certificate

log = logging.getLogger(__name__)
HANDED_GAP = 1e-4  # HiGHS' own, for programs that only it can answer
OFTEN = 3  # calls in a row that bring other constraints, after which that is worth a word


class Program:
    """A program that was read or adopted. Made by `hasten.read` and `hasten.adopt`.

    `problem` and `batch` go wherever problems and batches go. A solution's `cost` is the model's objective, constant
    included; where the model maximises, its `score` is. `solve` answers in the model's own words. `describe` says what
    was recognised.

    An objective is an array in the order of `columns`, or a mapping from variables to coefficients, where those that
    are not named have 0. A variable is named by its name, or by the library's own object. With `order`, a list of
    variables, arrays are in that order instead.
    """

    def __init__(self, statement: Statement, like: Program | None = None) -> None:
        if like is not None and not isinstance(like, Program):
            raise ProgramError(f"like is a program, of hasten.read or hasten.adopt; got {short(like)}.")
        self.statement = statement
        self._like: tuple[Solving, ...] = () if like is None else (like._solving,)
        self._solving: Solving = Solving(statement, self._like, True) if self._like else Solving.of(statement)
        self._objectives = ObjectiveReader(statement)
        self._changed = 0  # calls in a row that brought other constraints

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the variables, in the order in which arrays of coefficients and values have them."""
        return self.statement.columns

    @property
    def only_solver(self) -> str:
        """Why only the solver can answer this; "" where that is not so."""
        why = "" if self._solving.network is not None else self._solving.found.only_solver
        return f"Only the solver can answer this: {why}." if why else ""

    @property
    def recognised(self) -> Recognised:
        """Everything that was recognised, or an error that says why nothing was."""
        return self._own.found

    @property
    def kinds(self) -> Kinds:
        """The kinds of its variables and tables."""
        return self._own.kinds

    @property
    def schema(self) -> Schema:
        """The kinds that were recognised, as a schema."""
        return self._own.kinds.schema

    @property
    def structure(self) -> Structure:
        """The variables, tables and rules that were recognised."""
        return self._own.structure

    @property
    def _own(self) -> Solving:
        """Everything that was made of the constraints, or an error that says why nothing was."""
        if self._solving.found.only_solver:
            why = self.only_solver or f"This is a network that is no problem: {self._solving.found.only_solver}."
            raise ProgramError(f"{why} Use program.solve().")
        return self._solving

    def problem(self, objective: Objective | None = None, *, order: Order = None) -> Problem:
        """Returns the program as a problem, under its own objective or another."""
        c = self._objectives.one(objective, order)
        return self.structure.problem(self._costs(c[None])[0])

    def batch(self, objectives: Objectives, *, order: Order = None) -> Batch:
        """Returns many problems at once, from a matrix with an objective in each row, or a list of mappings."""
        matrix = self._objectives.many(objectives, order)
        return self.structure.batch(self._costs(matrix))

    def _costs(self, matrix: FloatArray) -> FloatArray:
        return self._own.costs.many(matrix, self.statement.sign, self.statement.constant)

    def values(self, answers: Solution | Solutions) -> FloatArray:
        """Returns the value of each variable of the model, or a row of them for each problem; nan without an answer."""
        if not isinstance(answers, Solution | Solutions):
            raise ProgramError(f"Give a Solution, or Solutions, of problems of this program; got {brief(answers)}.")
        for structure in [answers.problem.structure] if isinstance(answers, Solution) else answers.batch.structures:
            self._check_own(structure)
        x = self._own.costs.values(answers.labels, 1 if isinstance(answers, Solution) else len(answers))
        return x[0] if isinstance(answers, Solution) else x

    def answer(self, solution: Solution, objective: Objective | None = None) -> Answer:
        """Returns a solution in the model's own words; `objective` is that of its problem, if not the model's own."""
        check_type(solution, Solution, "An answer")
        c = self._objectives.one(objective)
        x = None if solution.values is None else self.values(solution)
        how = f"{solution.status.value} ({solution.source.value})"
        return Answer.of(self.statement, c, solution.status, x, solution.bound, solution.proved, how, solution.reason)

    def solve(
        self,
        model: Any = None,
        *,
        objective: Objective | None = None,
        order: Order = None,
        solver: str | Solver = "highs",
        time_limit: float | None = None,
        gap: float = 0.0,
        start: FloatArray | None = None,
        on_better: Callable[[float, float], None] | None = None,
    ) -> Answer:
        """Returns the best answer: proved where we can, the solver's elsewhere.

        model
            The model again, after its objective was changed; changed constraints make a new structure. None takes the
            program as it is.
        objective, order
            Another objective, and the order of its variables if that is not `columns`.
        solver
            Who is asked where nothing is proved: a name, or a solver of yours. "highs" and "gurobi" are given the model
            as it is, others what was recognised.
        time_limit
            Seconds of the wall clock; what runs out of time is the best found so far, and says so.
        gap
            The relative gap at which a solver that is given the model as it is may stop.
        start
            Values to start from, in the order of `columns`, nan for none. An answer that is not optimal is never worse.
        on_better
            Is called with the objective and the bound of each better answer that we find within limited time.
        """
        self._check(solver, time_limit, gap)
        start = self._objectives.start(start)
        if isinstance(model, np.ndarray | Sequence | Mapping) and not isinstance(model, str):
            raise ProgramError(
                f"{brief(model)} is not a model. One objective is solve(objective=...), several are solve_all(...)."
            )
        if model is not None:
            self.renew(model)
        c, how = self._objectives.one(objective, order), Asked(solver, gap, start, on_better)
        if time_limit is None:
            return self._by_network(c) or self._solve_recognised(c, math.inf, how)
        return self._by_network(c) or self._raced(c, time_limit, how)

    def solve_fast(
        self, *, time_limit: float | None = None, gap: float | None = None, start: FloatArray | None = None
    ) -> Answer:
        """Returns the best answer under the program's own objective, by a proof or by HiGHS alone: whoever is faster.

        That is learned from programs alike. Drop-in solvers ask so. Other settings are those of `solve`; without a gap,
        it is 1e-4 where only HiGHS can answer, which is HiGHS' own, and none elsewhere.
        """
        self._check("highs", time_limit, gap)
        start = self._objectives.start(start)
        c, seconds = self._objectives.one(None, None), math.inf if time_limit is None else time_limit
        return self._by_network(c) or self._raced(c, seconds, Asked("highs", gap, start))

    def _by_network(self, c: FloatArray) -> Answer | None:
        """Returns the answer of a network, if that is what the program is."""
        if self._solving.network is None:
            return None
        sign, constant = self.statement.sign, self.statement.sign * self.statement.constant
        flow = self._solving.network.solve(sign * c[None]).one(0)
        return None if flow.outcome == kernels.OPEN else self._proved(c, flow, constant)

    def _raced(self, c: FloatArray, seconds: float, how: Asked) -> Answer:
        """Returns the best answer by what was recognised or, for a program not seen before, by HiGHS alone."""
        race, deadline = self._solving.first_time(how.solver), now() + seconds
        began, loading = time.process_time(), seconds_loading()
        if race is not None and race.choose() == ALONE:
            patience = max(race.seconds[AIDED], CLEARLY * race.seconds.get(ALONE, 0.0))
            with suppress(SolverWrong):
                answer = self._solve_as_given(c, min(seconds, patience), how)
                finished = answer.status not in (Status.TIME_LIMIT, Status.NO_TIME) or patience >= seconds
                race.took(ALONE, time.process_time() - began, finished=finished)
                if finished:
                    return self._or_start(answer, c, how.start)
            race, seconds = None, max(0.0, deadline - now())
        answer = self._solve_recognised(c, seconds, how)
        if race is not None and loading == seconds_loading():
            race.took(AIDED, time.process_time() - began)
        return answer

    def _solve_recognised(self, c: FloatArray, seconds: float, how: Asked) -> Answer:
        """Returns the best answer by what was recognised."""
        solving, sign, constant = self._solving, self.statement.sign, self.statement.sign * self.statement.constant
        if solving.found.only_solver:
            handed = how if how.gap is not None else how._replace(gap=HANDED_GAP)
            return self._or_start(self._solve_as_given(c, seconds, handed), c, how.start)
        seen = solving.costs.look(c, sign)
        if seen.outcome in (kernels.PROVED, kernels.INFEASIBLE):
            return self._proved(c, seen, constant)
        way = solving.way(how.solver)._replace(gap=how.gap or 0.0, start=how.start)

        def report(better: Solution) -> None:
            if how.on_better is not None:
                how.on_better(sign * (better.cost + constant), sign * (better.bound + constant))

        found = solving.prove_one(way, seen, c if sign > 0 else -c, seconds, report)
        x, said = None if found.values is None else solving.costs.values(found.values, 1)[0], found.status.value
        answer = Answer.of(self.statement, c, found.status, x, found.bound + constant, found.proved, said, found.reason)
        return self._or_start(answer, c, how.start)

    def solve_all(
        self,
        objectives: Objectives,
        *,
        order: Order = None,
        solver: str | Solver = "highs",
        time_limit: float | None = None,
        progress: OnProgress | None = None,
    ) -> Answers:
        """Returns the best answers under many objectives: rows of a matrix, or a list of mappings.

        `order` are the variables of the matrix, one for each of its columns. Other settings are those of `solve`.
        `time_limit` is for each of them. `progress` is told how many are done, of how many.
        """
        self._check(solver, time_limit)
        if progress is not None and not callable(progress):
            raise ProgramError(f"progress must be a function, or None; got {brief(progress)}.")
        matrix = self._objectives.many(objectives, order)
        solving, sign, n = self._solving, self.statement.sign, len(matrix)
        flows = None if solving.network is None else solving.network.solve(sign * matrix)
        if flows is not None and (flows.outcome == kernels.PROVED).all():
            seen = flows
        elif solving.found.only_solver or math.isfinite(self.statement.cutoff):
            answers = [self.solve(objective=c, solver=solver, time_limit=time_limit) for c in matrix]
            return Answers.of(self.statement, answers)
        else:
            seen = solving.costs.look_at_all(matrix, sign)
        (left,) = (seen.outcome != kernels.PROVED).nonzero()

        def report(done: int, of: int) -> None:
            if progress is not None and n:
                progress(n - of + done, n)

        report(0, len(left))
        status, proved, reasons = np.full(n, numbered(Status.PROVED)), np.ones(n, dtype=bool), dict[int, str]()
        if left.size:
            show = report if progress else None
            found = solving.prove_many(solving.way(solver), seen.cost[left], sign * matrix[left], time_limit, show)
            status[left], proved[left], seen.bound[left] = found.status, found.proved, found.bound
            seen.x[left], reasons = self.values(found), {int(left[p]): why for p, why in found.reasons.items()}
        value, bound = self.statement.values_of(seen.x, matrix), sign * seen.bound + self.statement.constant
        return Answers(self.statement, status, seen.x, value, bound, proved, reasons)

    def certificate(
        self,
        objective: Objective | None = None,
        *,
        order: Order = None,
        answer: Answer | None = None,
        solver: str | Solver = "highs",
        time_limit: float | None = None,
    ) -> Certificate:
        """Writes down a proof on the program's own rows, which `python -m hasten.certificate` checks.

        `answer` is one that `solve` gave; without, it is asked for, and other settings are those of `solve`. The limits
        are of costs: of minus the objective, where that is maximised. Where the proof is the solver's, ours is written
        if there is one; otherwise the lower limit is what does hold. Columns must be whole, and stated with bounds.
        `time_limit` is for all of it: half of it at most for an answer, then the proof is written as far as it comes.
        """
        from hasten.programs.certifying import answer_to_certify, certify

        self._check(solver, time_limit)
        c, deadline = self._objectives.one(objective, order), deadline_after(time_limit)
        half = None if time_limit is None else 0.5 * time_limit
        found = answer_to_certify(self, answer, objective=c, solver=solver, time_limit=half)
        return certify(self.statement, self._solving.found.groups, c, found, deadline)

    def renew(self, model: Any) -> None:
        """Reads its model again: another objective, or other constraints, which take a new structure."""
        new = front_end(model).state(model)
        check_variables(model, new.columns, self.columns)
        self.restate(new)

    def restate(self, new: Statement) -> None:
        """Takes another statement about the same variables."""
        old, self.statement, self._objectives.statement = self.statement, new, new
        if old.digest() == new.digest():
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
        self._solving = Solving(new, (*self._like, self._solving), bool(self._like))

    def describe(self) -> str:
        """Describes the recognised structure, in words and as a small table."""
        return describe(self)

    def _check_own(self, structure: Structure) -> None:
        own = self.structure
        if structure is not own and [kind.labels for kind in structure.kinds] != [kind.labels for kind in own.kinds]:
            raise ProgramError(
                f"These are answers to problems of {structure.n_variables:,} variables that are not this program's, "
                f"which has {own.n_variables:,}. Give answers to problems that program.problem or program.batch made."
            )

    def _check(self, solver: str | Solver, time_limit: float | None, gap: float | None = None) -> None:
        """Checks a solver, each name once, a time limit and a gap."""
        check_limit("time_limit", time_limit)
        check_number("gap", 0.0 if gap is None else gap)
        if not isinstance(solver, str) or solver not in _CHECKED:
            check_solver(solver)
            if isinstance(solver, str):
                _CHECKED.add(solver)

    def _proved(self, c: FloatArray, seen: FirstLook, constant: float) -> Answer:
        """Returns an answer without the solver: the best, or that there is none."""
        known = Status.PROVED, seen.x, float(seen.bound) + constant
        status, x, bound = known if seen.outcome != kernels.INFEASIBLE else (Status.INFEASIBLE, None, math.inf)
        return Answer.of(self.statement, c, status, x, bound, True, status.value, "")

    def _or_start(self, answer: Answer, c: FloatArray, start: FloatArray | None) -> Answer:
        """Returns the values that it started from, if they are complete and valid, and better than an answer."""
        if start is None or answer.optimal or answer.reason == UNBOUNDED or np.isnan(start).any():
            return answer
        try:
            x = Checker(self.statement, "The start")(start)
        except SolverWrong:
            return answer
        value, sign = self.statement.value(x, c), self.statement.sign
        is_better = sign * value < min(sign * answer.objective, self.statement.cutoff)
        if not is_better or not np.allclose(x, start, atol=1e-6):
            return answer
        how = "Ran out of time; nothing was found that is better than the start."
        return replace(answer, status=Status.TIME_LIMIT, values_found=x, objective=value, how=how)

    def _solve_as_given(self, c: FloatArray, seconds: float, how: Asked) -> Answer:
        if not isinstance(how.solver, str) or how.solver not in NATIVE:
            raise ProgramError(f"{self.only_solver} That takes one of the solvers {' and '.join(NATIVE)}.")
        if self.statement.tables or len(self.statement.products.left):
            raise ProgramError(
                f"{self.only_solver} But no solver here takes tables or products with such variables. Make them whole "
                "and bound them closely, or solve the model with its own library."
            )
        sign, why = self.statement.sign, f"{self.only_solver} " if "found" in vars(self._solving) else ""
        said = self._solving.ask_native(how.solver, sign * c, seconds, how.gap or 0.0, how.start)
        bound, status = said.bound + sign * self.statement.constant, said.status
        told = f"{why}{UNBOUNDED if said.reason == UNBOUNDED else status.value}"
        return Answer.of(self.statement, c, status, said.x, bound, False, told, said.reason)

    def __repr__(self) -> str:
        program = self.statement
        return f"Program({program.name!r}, {count(program.n_columns, 'variable')}, {count(program.n_rows, 'row')})"


_CHECKED: set[str] = set()  # names of solvers that are there


def share_kinds(programs: Sequence[Program]) -> list[Program]:
    """Gives programs, of any sizes, one schema with the kinds of all that were recognised; returns them."""
    able = [program for program in programs if not program._solving.found.only_solver]
    if able:
        kinds = Kinds([program.recognised.parts for program in able])
        for program in able:
            program._solving = program._solving.with_kinds(kinds)
    return list(programs)

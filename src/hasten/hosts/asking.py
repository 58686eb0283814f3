"""One program asked as hosts ask: options, outcomes, messages, and programs that are known already.

A program is adopted once. A model with the same variables and rows, whatever its objective, is recognised by a digest
of them, and answered by what was made of the first.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from hasten.errors import MissingExtra, SolverError
from hasten.model.solution import Status
from hasten.programs.answer import UNBOUNDED, Answer, Answers
from hasten.programs.program import Program
from hasten.programs.statement import Statement
from hasten.support.arrays import FloatArray
from hasten.support.checks import check_limit
from hasten.support.words import count


class Outcome(Enum):
    """The outcomes that hosts tell apart."""

    OPTIMAL = "optimal"  # or within the gap that was allowed
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    FEASIBLE = "feasible"  # the time was up
    NOTHING = "nothing"  # the time was up, and nothing was found
    FAILED = "failed"


@dataclass(frozen=True, slots=True, eq=False)
class Asking:
    """How a program is asked.

    time_limit
        Seconds of the wall clock.
    gap
        The relative gap that is enough. None is none, and HiGHS' own default where only HiGHS can answer.
    start
        Values to start from, nan where there are none.
    say
        Where to print messages to; None prints none.
    """

    time_limit: float | None = None
    gap: float | None = None
    start: FloatArray | None = None
    say: Callable[[str], object] | None = None

    def __post_init__(self) -> None:
        check_limit("time_limit", self.time_limit)
        if self.gap is not None and not 0 <= self.gap < math.inf:
            raise SolverError(f"The relative gap must be a number of at least 0, not {self.gap}.")

    def one(self, statement: Statement) -> Answer:
        """Answers a program under its own objective."""
        began, program = time.perf_counter(), Program(statement)
        answer = program.solve_fast(time_limit=self.time_limit, gap=self.gap, start=self.start)
        self._tell(program, in_words(answer), began)
        return answer

    def all(self, statement: Statement, objectives: FloatArray) -> Answers:
        """Answers a program under the objectives in the rows of a matrix."""
        began, program = time.perf_counter(), Program(statement)
        answers = program.solve_all(objectives, time_limit=self.time_limit)
        proved, optimal = int(answers.proved.sum()), int(answers.optimal.sum())
        self._tell(program, f"{proved:,} of {len(answers):,} objectives proved, {optimal:,} optimal.", began)
        return answers

    def _tell(self, program: Program, result: str, began: float) -> None:
        """Prints what was recognised and found."""
        if self.say is None:
            return
        statement, solving = program.statement, program._solving
        head = f"hasten: {count(statement.n_columns, 'variable')}, {count(statement.n_rows, 'row')}"
        known = ", known already" if solving.statement is not statement else ""
        if solving.network is not None:
            self.say(f"{head}; recognised a network{known}.")
        elif "found" not in vars(solving):
            self.say(f"{head}. HiGHS answers programs like this one faster: it was asked alone.")
        elif program.only_solver:
            self.say(f"{head}. {program.only_solver} It is handed to HiGHS.")
        else:
            found = solving.found
            n_parts = (found.space.n_variables, len(found.tables.table), found.rules.n_rows)
            parts = ", ".join(count(n, what) for n, what in zip(n_parts, ("variable", "table", "rule"), strict=True))
            self.say(f"{head}; recognised {parts}{known}.")
        self.say(f"{result} {time.perf_counter() - began:.3g} s.")


def outcome(answer: Answer) -> Outcome:
    """Returns what a host is told about an answer."""
    if answer.reason == UNBOUNDED:
        return Outcome.UNBOUNDED
    if answer.status is Status.INFEASIBLE:
        return Outcome.INFEASIBLE
    if answer.values_found is not None:
        return Outcome.OPTIMAL if answer.optimal or answer.status is Status.WITHIN_GAP else Outcome.FEASIBLE
    return Outcome.NOTHING if answer.status is Status.NO_TIME else Outcome.FAILED


def relative_gap(answer: Answer | Answers) -> Any:
    """Returns how far an objective may be from the best there is, relative to it: 0 if optimal, inf without values."""
    value, bound = np.asarray(answer.objective), np.asarray(answer.bound)
    with np.errstate(invalid="ignore"):
        gap = np.abs(value - bound) / np.maximum(np.abs(value), 1e-10)
    return np.where(np.isfinite(value), np.where(answer.optimal, 0.0, gap), math.inf)[()]


def in_words(answer: Answer) -> str:
    """Returns a sentence or two for a host's message."""
    said = f"{answer.how} {answer.reason}".rstrip()
    if answer.values_found is None:
        return said
    gap = float(relative_gap(answer))
    return f"{said} Objective {answer.objective:.10g}, bound {answer.bound:.10g}, gap {gap:.2%}."


def handed_over(why: str) -> str:
    """Returns the sentence for a program that was not ours to answer."""
    return f"hasten handed this to HiGHS: {why}."


def activity(statement: Statement, x: FloatArray) -> FloatArray:
    """Returns what each row sums up to."""
    summed = np.bincount(statement.row_of_term, statement.row_weight * x[statement.row_column], statement.n_rows)
    return np.asarray(summed, dtype=np.float64)


def start_of(values: Iterable[float | None]) -> FloatArray:
    """Returns values to start from, nan where a variable has none."""
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


def refuse_options(given: Sequence[str], known: Sequence[str], host: str) -> None:
    """Refuses options that a host's users may expect and that do nothing here."""
    unknown = [name for name in given if name not in known]
    if unknown:
        raise SolverError(f"hasten.{host} has no option {unknown[0]!r}. It takes {', '.join(known)}.")


def missing(library: str, error: ImportError) -> MissingExtra:
    """Returns the error for a host that is not installed, or too old."""
    return MissingExtra(f'hasten.{library} needs {library}: pip install "hasten[{library}]" ({error}).')

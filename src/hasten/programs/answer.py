"""An answer in the model's own words: values by variable name, as a vector, or written back into the model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np

from hasten.errors import NoAnswerError, ProgramError
from hasten.model.solution import STATUSES, Status, numbered
from hasten.programs.libraries import check_variables, front_end, place_of
from hasten.programs.statement import Statement, unique_names
from hasten.support.arrays import BoolArray, FloatArray, IntArray
from hasten.support.forms import short

UNBOUNDED = "The objective is unbounded. Bound its variables."
_CUT = "Only answers were found whose objective is {:g} or {}, which the file rules out."


@dataclass(frozen=True, slots=True, eq=False)
class Answer(Mapping[str, float]):
    """The best values of a program's variables, by name or by the library's own object.

    `x` is the same as a vector, in the model's order.

    `objective` is the model's own, constant included, in its own sense; `bound` is what it cannot beat. Without values,
    the objective is infinitely bad or, where it is unbounded, infinitely good; `reason` says which.
    """

    program: Statement = field(repr=False)
    status: Status
    values_found: FloatArray | None = field(repr=False)
    objective: float
    bound: float
    proved: bool  # whether it is optimal, or surely has no answer, without the solver
    how: str  # it came about, in words
    reason: str = ""

    @classmethod
    def of(
        cls,
        program: Statement,
        c: FloatArray,
        status: Status,
        x: FloatArray | None,
        bound: float,
        proved: bool,
        how: str,
        reason: str,
    ) -> Answer:
        """Returns an answer under an objective, given a bound on the cost."""
        value, sign = without_values(program.maximize, reason), program.sign
        if x is not None:
            value = program.value(x, c)
            bound = sign * value if status is Status.SOLVED else bound
            if sign * value >= program.cutoff:
                status = Status.INFEASIBLE if status.optimal else Status.NO_TIME
                bound = math.inf if status is Status.INFEASIBLE else bound
                x, value = None, sign * math.inf
                reason = _CUT.format(sign * program.cutoff, "less" if program.maximize else "more")
        return cls(program, status, x, value, sign * bound, proved, how, reason)

    @property
    def x(self) -> FloatArray:
        """The value of each variable."""
        if self.values_found is None:
            raise NoAnswerError(f"{self.status} {self.reason}".rstrip())
        return self.values_found

    @property
    def optimal(self) -> bool:
        """Whether nothing is left to find out."""
        return self.status.optimal

    @property
    def gap(self) -> float:
        """How far the objective may be from the best there is."""
        return math.inf if self.values_found is None else abs(self.objective - self.bound)

    def __getitem__(self, variable: Any) -> float:
        n, at = len(self.x), -1
        with suppress(ProgramError):
            named = variable if isinstance(variable, str) else place_of(variable)
            at = named if isinstance(named, int) else self.program.place.get(str(named), -1)
        if not 0 <= at < n:
            raise KeyError(f"There is no variable {short(variable)}. See answer.keys().")
        return self._plain(at)

    def __iter__(self) -> Iterator[str]:
        return iter(self.program.columns)

    def __len__(self) -> int:
        return self.program.n_columns

    def chosen(self) -> dict[str, float]:
        """Returns the variables that are not 0, by name."""
        return {self.program.columns[j]: self._plain(j) for j in np.flatnonzero(self.x).tolist()}

    def write_to(self, model: Any) -> None:
        """Writes the values into a model's own objects; `docs/adopting.md` says what each library can hold."""
        x, end = self.x, front_end(model)
        check_variables(model, unique_names(end.names(model), "x"), self.program.columns)
        end.write(model, x, self.optimal)

    def _plain(self, at: int) -> float:
        value = float(self.x[at])
        return int(value) if self.program.whole[at] else value

    def __repr__(self) -> str:
        found = "no values" if self.values_found is None else f"objective={self.objective:.10g}"
        return f"Answer({found}, {f'{self.status} {self.reason}'.rstrip()!r})"


def without_values(maximize: bool, reason: str) -> float:
    """Returns the objective of an answer without values: the worst there is, the best where it is unbounded."""
    worst = -math.inf if maximize else math.inf
    return -worst if reason == UNBOUNDED else worst


@dataclass(frozen=True, slots=True, eq=False)
class Answers(Sequence[Answer]):
    """The answers under many objectives, as arrays; an index gives one `Answer`."""

    program: Statement = field(repr=False)
    status: IntArray  # (n,) numbers in STATUSES
    x: FloatArray = field(repr=False)  # (n, columns); nan without an answer
    objective: FloatArray  # (n,); nan without an answer
    bound: FloatArray  # (n,)
    proved: BoolArray  # (n,)
    reasons: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, program: Statement, answers: Sequence[Answer]) -> Answers:
        """Gathers single answers."""
        x = np.full((len(answers), program.n_columns), np.nan)
        for n, answer in enumerate(answers):
            if answer.values_found is not None:
                x[n] = answer.values_found
        return cls(
            program,
            numbered(*(answer.status for answer in answers)),
            x,
            np.array([np.nan if answer.values_found is None else answer.objective for answer in answers]),
            np.array([answer.bound for answer in answers]),
            np.array([answer.proved for answer in answers], dtype=bool),
            {n: answer.reason for n, answer in enumerate(answers) if answer.reason},
        )

    @property
    def optimal(self) -> BoolArray:
        """Which answers leave nothing to find out."""
        return np.array([STATUSES[status].optimal for status in self.status], dtype=bool)

    def __len__(self) -> int:
        return len(self.status)

    @overload
    def __getitem__(self, n: int) -> Answer: ...
    @overload
    def __getitem__(self, n: slice) -> Sequence[Answer]: ...
    def __getitem__(self, n: int | slice) -> Answer | Sequence[Answer]:
        if isinstance(n, slice):
            return [self[k] for k in range(*n.indices(len(self)))]
        status, found = STATUSES[self.status[n]], not np.isnan(self.objective[n])
        x = self.x[n] if found else None
        reason = self.reasons.get(n % len(self), "")
        value = float(self.objective[n]) if found else without_values(self.program.maximize, reason)
        proved, bound = bool(self.proved[n]), float(self.bound[n])
        return Answer(self.program, status, x, value, bound, proved, status.value, reason)

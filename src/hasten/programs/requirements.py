"""Requirements on labels that may each hold or not: clauses and parities, and the nearest labelling that keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hasten.errors import ProgramError
from hasten.kernels.tolerance import TOLERANCE
from hasten.model.formulas import Clause, read_formula
from hasten.programs.diagrams import Diagram, Parity, make_diagram
from hasten.programs.program import Program
from hasten.programs.statement import Builder
from hasten.proof.paths import cheapest_paths
from hasten.support.arrays import BoolArray, FloatArray, floats
from hasten.support.checks import brief, check_switch, is_text, listed

AT_ONCE = 4096  # rows of scores in one call: Ctrl-C is heard in between


@dataclass(frozen=True, slots=True, eq=False)
class Labellings:
    """The best labellings under rows of scores; where none keeps the requirements, nothing holds, the score is nan."""

    labels: tuple[str, ...] = field(repr=False)
    holds: BoolArray = field(repr=False)  # (rows, labels)
    score: FloatArray  # (rows,) the sum of the scores of labels that hold
    bound: FloatArray  # (rows,) that no labelling beats
    proved: BoolArray  # (rows,) whether it is the best, or there surely is none

    def __len__(self) -> int:
        return len(self.score)

    def __getitem__(self, row: int) -> list[str]:
        """Returns the labels that hold in one of them."""
        return [label for label, holds in zip(self.labels, self.holds[row].tolist(), strict=True) if holds]


class Requirements:
    """Labels, of which any may hold, and what must be true of them.

    >>> rules = Requirements(["car", "moving", "parked", "road"])
    >>> rules.clause("(car and not moving) -> parked")
    >>> rules.clause(["-moving", "-parked"])
    >>> rules.nearest([[2.0, -1.5, -0.5, 1.0]])[0]
    ['car', 'parked', 'road']
    """

    def __init__(self, labels: Iterable[str]) -> None:
        self.labels: tuple[str, ...] = tuple(listed(labels, "The labels", ProgramError))
        wrong = [f"{brief(label)} is none" for label in self.labels if not is_text(label) or not label]
        if not wrong:
            wrong = [f"{label!r} comes twice" for label in self.labels if self.labels.count(label) > 1]
        if wrong or not self.labels:
            raise ProgramError(f"Labels are names, each of which comes once; {[*wrong, 'got none'][0]}.")
        self._number = {label: n for n, label in enumerate(self.labels, start=1)}
        self.clauses: list[Clause] = []
        self.parities: list[Parity] = []

    def clause(self, said: str | Iterable[str]) -> None:
        """Requires a formula, `"(a and not b) -> c"`, or that one of some labels holds, or does not: `["a", "-b"]`."""
        if isinstance(said, str):
            self._require(read_formula(said, self._number))
        else:
            self._require([frozenset(self._signed(each) for each in listed(said, "A clause", ProgramError))])

    def one_of(self, labels: Iterable[str]) -> None:
        """Requires that exactly one of some labels holds."""
        numbers = [self._signed(each) for each in listed(labels, "The labels", ProgramError)]
        pairs = [frozenset([-one, -other]) for k, one in enumerate(numbers) for other in numbers[:k]]
        self._require([frozenset(numbers), *pairs])

    def parity(self, labels: Iterable[str], odd: bool = False) -> None:
        """Requires that an even number of some labels holds, or an odd one; give one of them to have it per row."""
        numbers = [self._signed(each) for each in listed(labels, "The labels", ProgramError)]
        if len(set(map(abs, numbers))) < len(numbers):
            raise ProgramError("A parity names each label once; a label twice says nothing. Leave both out.")
        check_switch("odd", odd)
        flipped = sum(number < 0 for number in numbers) % 2 == 1
        self.parities.append(Parity(frozenset(map(abs, numbers)), bool(odd) != flipped))
        self._forget()

    def _require(self, clauses: Iterable[Clause]) -> None:
        self.clauses += [clause for clause in clauses if not any(-each in clause for each in clause)]
        self._forget()

    def _forget(self) -> None:
        for made in ("diagram", "program"):
            self.__dict__.pop(made, None)

    def _signed(self, label: Any) -> int:
        number = self._number.get(label) if is_text(label) else None
        if number is None and is_text(label) and label[:1] == "-":
            number = -self._number.get(label[1:], 0)
        if not number:
            raise ProgramError(f"There is no label {brief(label)}. A label that must not hold has a - before it.")
        return number

    @cached_property
    def diagram(self) -> Diagram | None:
        """Everything that the requirements allow, as a graph; None where it would be too large."""
        return make_diagram(len(self.labels), self.clauses, self.parities)

    @cached_property
    def program(self) -> Program:
        """The requirements as a program to maximise, one column a label; a parity has a column for half its sum."""
        build = Builder(name="requirements", maximize=True)
        for label in self.labels:
            build.column(label, 0, 1, True)
        for clause in self.clauses:
            columns, signs = [abs(each) - 1 for each in clause], [1.0 if each > 0 else -1.0 for each in clause]
            build.row(columns, signs, low=1.0 - signs.count(-1.0))
        for n, parity in enumerate(self.parities):
            half = build.column(f"half of parity {n}", 0, len(parity.variables) // 2, True)
            columns, weights = [*(v - 1 for v in parity.variables), half], [1.0] * len(parity.variables) + [-2.0]
            build.row(columns, weights, float(parity.odd), float(parity.odd))
        return Program(build.statement())

    def nearest(
        self,
        scores: npt.ArrayLike,
        *,
        given: Mapping[str, npt.ArrayLike] | None = None,
        time_limit: float | None = None,
    ) -> Labellings:
        """Returns, for each row of scores, the labelling of the best score that keeps the requirements.

        scores
            A row for each input with a score for each label: above 0 it should hold, below 0 it should not. The best
            labelling is the one for which the scores of labels that had to change sides add up to least.
        given
            Labels that are known, each with a value, 0 or 1, for each row or for all: measured parities, for example.
        time_limit
            Seconds for each row; without effect where a diagram answers.
        """
        matrix = np.atleast_2d(self._numbers(scores))
        if matrix.ndim != 2 or matrix.shape[1] != len(self.labels):
            n = len(self.labels)
            raise ProgramError(f"Got scores of shape {matrix.shape}; this needs (rows, {n}), a column for each label.")
        if not np.isfinite(matrix).all():
            row, at = np.argwhere(~np.isfinite(matrix))[0].tolist()
            raise ProgramError(
                f"The score of {self.labels[at]!r} in row {row} is {matrix[row, at]}. "
                "Give finite numbers; what is known goes to `given`."
            )
        known = self._known(given or {}, len(matrix))
        return (
            self._by_diagram(self.diagram, matrix, known)
            if self.diagram
            else self._by_program(matrix, known, time_limit)
        )

    def _numbers(self, values: npt.ArrayLike) -> FloatArray:
        try:
            return floats(values)
        except (TypeError, ValueError) as error:
            raise ProgramError(f"Scores are numbers ({error}).") from None

    def _known(self, given: Mapping[str, npt.ArrayLike], n_rows: int) -> FloatArray:
        """Returns the values of labels that are known, nan for all others."""
        known = np.full((n_rows, len(self.labels)), np.nan)
        for label, values in given.items():
            at = abs(self._signed(label)) - 1
            column = self._numbers(values)
            if column.shape not in ((), (n_rows,)) or not np.isin(column, (0, 1)).all():
                raise ProgramError(f"What is given for {label!r} is 0 or 1, for each of {n_rows:,} rows or for all.")
            known[:, at] = column
        return known

    def _by_diagram(self, diagram: Diagram, scores: FloatArray, known: FloatArray) -> Labellings:
        one, zero = np.where(known == 0, np.inf, -scores), np.where(known == 1, np.inf, 0.0)
        values, bound = np.empty(scores.shape), np.empty(len(scores))
        for begin in range(0, len(scores), AT_ONCE):
            some = slice(begin, begin + AT_ONCE)
            costs = zero[some], one[some]
            cheapest_paths(diagram.variable, diagram.successor, costs, values[some], bound[some])
        return self._labellings(values, scores, -bound, np.ones(len(scores), dtype=bool))

    def _by_program(self, scores: FloatArray, known: FloatArray, time_limit: float | None) -> Labellings:
        objectives = np.zeros((len(scores), self.program.statement.n_columns))
        free = np.isnan(known)
        force = 1.0 + 2.0 * np.abs(np.where(free, scores, 0.0)).sum(axis=1, keepdims=True)  # worth more than all others
        objectives[:, : len(self.labels)] = np.where(free, scores, np.where(known == 1, force, -force))
        answers = self.program.solve_all(objectives, time_limit=time_limit)
        x, proved, value = answers.x[:, : len(self.labels)], answers.optimal.copy(), answers.bound.copy()
        x[((x != known) & ~free).any(axis=1)] = np.nan  # what is given cannot be kept
        held = np.where(free, 0.0, np.where(known == 1, force - scores, 0.0)).sum(axis=1)
        return self._labellings(x, scores, value - held, proved)

    def _labellings(self, x: FloatArray, scores: FloatArray, bound: FloatArray, proved: BoolArray) -> Labellings:
        score = np.einsum("ij,ij->i", np.nan_to_num(x), scores)
        score[np.isnan(x).any(axis=1)] = np.nan
        allowed = TOLERANCE * np.maximum(np.abs(score), np.minimum(1.0, np.abs(scores).sum(axis=1)))
        near = np.isnan(score) | (bound - score <= allowed)
        return Labellings(self.labels, x == 1.0, score, bound, proved & near)

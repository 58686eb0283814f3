"""Writing a certificate: the problem, a proved answer, and steps that show that nothing costs less."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hasten import certificate as checker
from hasten.certificates.vipr import to_vipr
from hasten.errors import ProblemError
from hasten.kernels.tolerance import EXACT, FINE, TOLERANCE
from hasten.model.problem import Problem
from hasten.model.solution import Solution
from hasten.support.arrays import FloatArray
from hasten.support.checks import check_type
from hasten.support.clock import now
from hasten.support.files import write_whole
from hasten.support.words import count

UNPROVED = -(1 << 1099)  # a lower limit that holds of everything
Step = tuple[Any, ...]
Outline = Callable[["Draft", Problem, float, float], Iterable[Step]]


class Draft:
    """A certificate in the making: its lines so far, and the state in which the checker is after them.

    `variables` and `rows` are those of a problem that is to be proved, as the lines count them.
    """

    def __init__(self, statement: Iterable[Step], labels: list[int] | None, unit: int, deadline: float) -> None:
        self.state, self.lines, self.deadline = checker.State(), list[str](), deadline
        for name, *given in statement:
            self.step(name, *given)
        self.variables, self.rows = [*range(len(self.state.sizes))], [*range(len(self.state.rows))]
        self.upper, self.place = math.inf, len(self.lines)
        if labels is not None:
            each = ((entries, tuple(labels[v] for v in scope)) for scope, entries, _ in self.state.functions.values())
            self.upper = 0.0 - _below(-sum(entries.get(chosen, checker.INFINITE) for entries, chosen in each))
        self.claim = "inf" if labels is None else self.upper, labels, unit
        self.step("claim", UNPROVED, *self.claim)

    def step(self, name: str, *given: Any) -> None:
        """Takes a step."""
        getattr(self.state, name)(*given)
        self.lines.append(_line(name, *given))

    def least(self) -> float:
        """Returns the least that any labelling can cost: that of each variable and of each table by itself."""
        try:
            return _below(self.state.constant + sum(least for _, _, least in self.state.functions.values()))
        except ProblemError:
            return -math.inf

    def left(self) -> float:
        """Returns how many seconds are left."""
        return self.deadline - now()

    def finished(self, steps: Iterable[Step]) -> Certificate:
        """Takes the last steps, as many as there is time for, and claims what all of them show."""

        def write() -> Iterator[str]:
            n_open = 1  # parts that are to be proved
            for name, *given in steps:
                if self.left() < 0.0:
                    break
                self.lines.append(_line(name, *given))
                yield self.lines[-1]
                n_open += len(given[1]) - 1 if name == "split" else -1 if name == "sum" else 0
            for _ in range(n_open):  # what is shown so far holds
                self.lines.append(_line("sum"))
                yield self.lines[-1]

        lower = _below(checker.check(write(), self.state)[0])
        self.lines[self.place] = _line("claim", "inf" if lower == math.inf else lower, *self.claim)
        return Certificate(lower, self.upper, tuple(self.lines))


@dataclass(frozen=True, slots=True)
class Certificate:
    """A proof that no labelling costs less than `lower`, and that the answer costs at most `upper`.

    Made by `Certifier.certificate`. `hasten.certificate`, which shares no code with the package, checks its lines.
    """

    lower: float
    upper: float
    lines: tuple[str, ...] = field(repr=False)

    @classmethod
    def of(
        cls, proof: Solution, outline: Outline, answer: Solution | None = None, deadline: float = math.inf
    ) -> Certificate:
        """Writes down why an answer is proved; of one that is not, what every labelling costs at least.

        `outline` takes steps and returns the last: given the problem, what they have to show and, if that is too much,
        to aim at. The upper limit is what another answer costs, if one is given.
        """
        problem, unit = proof.problem, unit_of(np.concatenate([proof.problem.cost, proof.problem.table]))
        given = proof if answer is None else answer
        check_type(given, Solution, "The answer that is certified")
        if given.problem.structure is not problem.structure:
            raise ProblemError("The answer is one to a problem of another structure. Give an answer to this problem.")
        target = goal(problem, math.inf if proof.values is None else proof.cost, unit)
        labels = None if given.values is None or not given.valid else given.values.tolist()
        draft = Draft(stated(problem), labels, unit, deadline)
        return draft.finished(outline(draft, problem, target if proof.proved else -math.inf, target))

    def save(self, path: str | Path, format: str = "hasten") -> None:
        """Writes the file that `python -m hasten.certificate` checks or, in the format "vipr", scipopt's `viprchk`.

        VIPR knows no eliminations: `Certifier(max_join=0)` writes proofs without. Its file states an integer program
        over the indicators of labels, which is written beside it, too, as an `.lp` file.
        """
        if format not in ("hasten", "vipr"):
            raise ProblemError(f"The formats of certificates are 'hasten' and 'vipr'; got {format!r}.")
        if format == "vipr":
            text, program = to_vipr(self.lines)
            write_whole(Path(path).with_suffix(".lp"), program.encode())
        else:
            text = "".join(f"{line}\n" for line in self.lines)
        write_whole(Path(path), text.encode())

    def vipr(self) -> str:
        """Returns the text of the file in VIPR's format."""
        return to_vipr(self.lines)[0]

    def __str__(self) -> str:
        if self.lower == math.inf:
            return f"No labelling is valid, in {count(len(self.lines), 'step')}."
        said = f"{self.lower!r} ≤ optimum ≤ {self.upper!r}, in {count(len(self.lines), 'step')}."
        slack = TOLERANCE * max(1.0, abs(self.upper))
        return said if self.upper - self.lower <= slack else f"{said} The proof stays open."


def stated(problem: Problem) -> Iterator[Step]:
    """Yields the steps that state a problem: its variables, tables and rows."""
    graph = problem.graph
    first = graph.first.tolist()
    for v in range(len(first) - 1):
        yield "variable", *numbers(problem.cost[first[v] : first[v + 1]])
    for f, at in enumerate(graph.table_at.tolist()):
        if at >= 0:
            scope = graph.scope[graph.scope_first[f] : graph.scope_first[f + 1]].tolist()
            size = math.prod(first[v + 1] - first[v] for v in scope)
            yield "table", scope, numbers(problem.table[at : at + size])
    for r, limits in enumerate(zip(graph.row_least.tolist(), graph.row_most.tolist(), strict=True)):
        cells = slice(graph.row_first[r], graph.row_first[r + 1])
        names = graph.row_variable[cells].tolist(), graph.row_label[cells].tolist(), graph.row_weight[cells].tolist()
        terms = [[v, at - first[v], weight] for v, at, weight in zip(*names, strict=True)]
        yield "row", terms, *(limit if math.isfinite(limit) else None for limit in limits)


def _line(*step: Any) -> str:
    return json.dumps(step, separators=(",", ":"))


def numbers(values: FloatArray) -> list[float | str]:
    """Returns numbers as a certificate has them."""
    return ["inf" if value == math.inf else value for value in values.tolist()]


def goal(problem: Problem, cost: float, unit: int) -> float:
    """Returns the bound that proves a cost, where all costs are multiples of a unit, or of nothing: 0."""
    if not math.isfinite(cost):
        return cost
    every = np.concatenate([problem.cost, problem.table])
    size = float(np.abs(every[np.isfinite(every)]).max(initial=0.0))  # so that tiny costs are told apart, too
    return cost - (unit * (1.0 - TOLERANCE) if unit else FINE * TOLERANCE * max(abs(cost), min(1.0, size)))


def unit_of(costs: FloatArray) -> int:
    """Returns the largest whole number that all costs are multiples of; 0 if they are not all whole."""
    entries = costs[np.isfinite(costs)]
    if not np.array_equal(entries, np.floor(entries)) or (np.abs(entries) >= EXACT / (1 + entries.size)).any():
        return 0
    return int(np.gcd.reduce(entries.astype(np.int64), initial=0))


def _below(exact: int) -> float:
    """Returns the largest double that is not above an exact number."""
    if exact >= checker.INFINITE >> 1:
        return math.inf
    try:
        nearest = exact / checker.UNIT
    except OverflowError:
        raise ProblemError("The costs are too large to certify: their sums are beyond what a float holds.") from None
    return nearest if checker.exact(nearest) <= exact else math.nextafter(nearest, -math.inf)

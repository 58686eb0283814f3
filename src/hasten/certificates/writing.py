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
from hasten.errors import ProblemError
from hasten.kernels.tolerance import EXACT, FINE, TOLERANCE
from hasten.model.problem import Problem
from hasten.model.solution import Solution
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.files import write_whole
from hasten.support.words import count

UNPROVED = -(1 << 1099)  # a lower limit that holds of everything
Step = tuple[Any, ...]
Outline = Callable[[Problem, float, float], Iterable[Step]]


@dataclass(frozen=True, slots=True)
class Certificate:
    """A proof that no labelling costs less than `lower`, and that the answer costs at most `upper`.

    Made by `Certifier.certificate`. `hasten.certificate`, which shares no code with the package, checks its lines.
    """

    lower: float
    upper: float
    lines: tuple[str, ...] = field(repr=False)

    @classmethod
    def of(cls, answer: Solution, outline: Outline) -> Certificate:
        """Writes down why an answer is proved; of one that is not, what every labelling costs at least.

        `outline` returns the steps: given the problem, what they have to show and, if that is too much, to aim at.
        """
        problem, values, unit = answer.problem, answer.values, _unit(answer.problem)
        cost, upper = (math.inf, "inf") if values is None else (answer.cost, _upper(problem, values))
        labels, target = None if values is None else values.tolist(), cost
        if math.isfinite(cost):
            slack = FINE * TOLERANCE * max(abs(cost), min(1.0, _size(problem)))
            target = cost - (unit - slack if unit else slack)
        lines = [_line(step) for step in stated(problem)]
        at = len(lines)
        lines.append(_line(("claim", UNPROVED, upper, labels, unit)))
        lines += map(_line, outline(problem, target if answer.proved else -math.inf, target))
        lower = _below(checker.check(lines)[0])
        lines[at] = _line(("claim", "inf" if lower == math.inf else lower, upper, labels, unit))
        return cls(lower, math.inf if values is None else float(upper), tuple(lines))

    def save(self, path: str | Path) -> None:
        """Writes the file that `python -m hasten.certificate` checks."""
        write_whole(Path(path), "".join(f"{line}\n" for line in self.lines).encode())

    def __str__(self) -> str:
        if self.lower == math.inf:
            return f"No labelling is valid, in {count(len(self.lines), 'step')}."
        return f"{self.lower!r} ≤ optimum ≤ {self.upper!r}, in {count(len(self.lines), 'step')}."


def stated(problem: Problem) -> Iterator[Step]:
    """Yields the steps that state a problem: its variables, tables and rows."""
    graph = problem.graph
    first = graph.first.tolist()
    for v in range(len(first) - 1):
        yield "variable", *_numbers(problem.cost[first[v] : first[v + 1]])
    for f, at in enumerate(graph.table_at.tolist()):
        if at >= 0:
            scope = graph.scope[graph.scope_first[f] : graph.scope_first[f + 1]].tolist()
            size = math.prod(first[v + 1] - first[v] for v in scope)
            yield "table", scope, _numbers(problem.table[at : at + size])
    for r, limits in enumerate(zip(graph.row_least.tolist(), graph.row_most.tolist(), strict=True)):
        cells = slice(graph.row_first[r], graph.row_first[r + 1])
        names = graph.row_variable[cells].tolist(), graph.row_label[cells].tolist(), graph.row_weight[cells].tolist()
        terms = [[v, at - first[v], weight] for v, at, weight in zip(*names, strict=True)]
        yield "row", terms, *(limit if math.isfinite(limit) else None for limit in limits)


def _line(step: Step) -> str:
    return json.dumps(step, separators=(",", ":"))


def _numbers(values: FloatArray) -> list[float | str]:
    """Returns numbers as a certificate has them."""
    return ["inf" if value == math.inf else value for value in values.tolist()]


def _size(problem: Problem) -> float:
    """Returns the size of the terms of a problem, as proofs take it."""
    graph = problem.graph
    largest = np.abs(np.where(np.isfinite(problem.cost), problem.cost, 0.0))
    return float(np.maximum.reduceat(largest, graph.first[:-1]).sum()) if len(largest) else 0.0


def _unit(problem: Problem) -> int:
    """Returns the largest whole number that all costs are multiples of; 0 if they are not all whole."""
    every = np.concatenate([problem.cost, problem.table])
    entries = every[np.isfinite(every)]
    if not np.array_equal(entries, np.floor(entries)) or (np.abs(entries) >= EXACT / (1 + entries.size)).any():
        return 0
    return int(np.gcd.reduce(entries.astype(np.int64), initial=0))


def _upper(problem: Problem, values: IntArray) -> float:
    """Returns what a labelling costs, rounded up."""
    graph = problem.graph
    terms = [problem.cost[graph.first[v] + label] for v, label in enumerate(values.tolist())]
    for f, at in enumerate(graph.table_at.tolist()):
        slots = slice(graph.scope_first[f], graph.scope_first[f + 1])
        if at >= 0:
            terms.append(problem.table[at + int(graph.stride[slots] @ values[graph.scope[slots]])])
    return 0.0 - _below(-sum(checker.exact(float(term)) for term in terms))


def _below(exact: int) -> float:
    """Returns the largest double that is not above an exact number."""
    if exact >= checker.INFINITE >> 1:
        return math.inf
    try:
        nearest = exact / checker.UNIT
    except OverflowError:
        raise ProblemError("The costs are too large to certify: their sums are beyond what a float holds.") from None
    return nearest if checker.exact(nearest) <= exact else math.nextafter(nearest, -math.inf)

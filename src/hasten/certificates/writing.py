"""Writing a certificate: the problem, a proved answer, and steps that show that nothing costs less."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from hasten.support.clock import Clock, now
from hasten.support.files import write_whole
from hasten.support.words import count

UNPROVED = -(1 << 1099)  # a lower limit that holds of everything
Step = tuple[Any, ...]
Outline = Callable[..., Iterable[Step]]


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

        `outline` returns the steps: given the problem, what they have to show, what to aim at if that is too much, and
        a clock. The upper limit is what another answer costs, if one is given.
        """
        problem, unit = proof.problem, unit_of(np.concatenate([proof.problem.cost, proof.problem.table]))
        given = proof if answer is None else answer
        check_type(given, Solution, "The answer that is certified")
        if given.problem.structure is not problem.structure:
            raise ProblemError("The answer is one to a problem of another structure. Give an answer to this problem.")
        target = goal(problem, math.inf if proof.values is None else proof.cost, unit)
        labels = None if given.values is None or not given.valid else given.values.tolist()
        steps = outline(problem, target if proof.proved else -math.inf, target, clock=share(deadline))
        return cls.written(list(stated(problem)), labels, unit, steps, deadline)

    @classmethod
    def written(
        cls,
        statement: Sequence[Step],
        labels: list[int] | None,
        unit: int,
        steps: Iterable[Step],
        deadline: float = math.inf,
    ) -> Certificate:
        """Writes down a statement, an answer to it, and steps that prove; claims what these show by a deadline."""
        upper = math.inf if labels is None else 0.0 - _below(-cost_of(statement, labels))
        claim, lines = ("inf" if labels is None else upper, labels, unit), list[str]()

        def write() -> Iterator[str]:
            n_open = 1  # parts that are to be proved
            for name, *given in (*statement, ("claim", UNPROVED, *claim), *steps):
                if now() > deadline and len(lines) > len(statement):
                    break
                lines.append(json.dumps((name, *given), separators=(",", ":")))
                yield lines[-1]
                n_open += len(given[1]) - 1 if name == "split" else -1 if name == "sum" else 0
            for _ in range(n_open):  # what is shown so far holds
                lines.append('["sum"]')
                yield lines[-1]

        lower = _below(checker.check(write())[0])
        claimed = "claim", "inf" if lower == math.inf else lower, *claim
        lines[len(statement)] = json.dumps(claimed, separators=(",", ":"))
        return cls(lower, upper, tuple(lines))

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


def cost_of(statement: Sequence[Step], labels: list[int]) -> int:
    """Returns what a labelling costs, as the checker counts."""
    total, sizes = 0, list[int]()
    for name, *given in statement:
        if name == "variable":
            sizes.append(len(given))
        if name != "row":
            scope, costs = ([len(sizes) - 1], given) if name == "variable" else given
            at = 0
            for v in scope:
                at = at * sizes[v] + labels[v]
            total += checker.INFINITE if costs[at] == "inf" else checker.exact(costs[at])
    return total


def numbers(values: FloatArray) -> list[float | str]:
    """Returns numbers as a certificate has them."""
    return ["inf" if value == math.inf else value for value in values.tolist()]


def share(deadline: float) -> Clock:
    """Returns a clock for the half of the time until a deadline that laying a proof out may take."""
    return Clock(None, 0.5 * (deadline - now()))


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

"""Gathering problems into a batch: what several share is there once; what is not a problem is refused, with a hint."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hasten.errors import ProblemError
from hasten.model.problem import Problem, Scorer, check_costs
from hasten.model.structure import Structure
from hasten.support.arrays import FloatArray, IntArray, floats

if TYPE_CHECKING:
    from hasten.model.batch import Batch


def told_apart(structures: Iterable[Structure]) -> tuple[list[Structure], IntArray]:
    """Returns the structures of some problems, those of one shape once, and the number of each problem's."""
    numbers: dict[int, int] = {}
    known: list[Structure] = []
    found = []
    for structure in structures:
        key = id(structure.compiled)
        if key not in numbers:
            numbers[key] = len(known)
            known.append(structure)
        found.append(numbers[key])
    return known, np.array(found, dtype=np.int64)


def gather_tables(problems: Sequence[Problem]) -> tuple[FloatArray, IntArray]:
    """Joins the problems' tables, those that several share once; says where those of each problem start."""
    blocks: list[FloatArray] = []
    starts: dict[int, int] = {}
    table_at = np.zeros(len(problems), dtype=np.int64)
    size = 0
    for p, problem in enumerate(problems):
        if id(problem.table) not in starts:
            starts[id(problem.table)] = size
            blocks.append(problem.table)
            size += problem.table.size
        table_at[p] = starts[id(problem.table)]
    return join(blocks), table_at


def join_scorers(scorers: Sequence[Scorer | None]) -> Scorer | None:
    """Returns one scorer for problems that bring their own."""
    if all(scorer == scorers[0] for scorer in scorers):  # not `is`: a bound method is a new object each time
        return scorers[0]
    raise ProblemError(
        "The lazy problems of one batch must share one scorer, told apart by their `id`. "
        "Pass the same scorer object to each Structure.problem(scorer, id=...)."
    )


def join(parts: Sequence[FloatArray]) -> FloatArray:
    """Returns arrays one after the other."""
    return np.concatenate(parts) if len(parts) else np.zeros(0)


def in_short(given: object) -> str:
    """Returns what something is, for an error."""
    if isinstance(given, np.ndarray):
        return f"an array of shape {given.shape}"
    return "None" if given is None else f"an object of type {type(given).__name__}"


def hint(given: object) -> str:
    """Returns how to make a problem of something that is not one."""
    if isinstance(given, Structure):
        return " A structure has no costs: pass structure.problem(costs), or structure.batch(a row of costs for each)."
    if isinstance(given, np.ndarray | list | tuple | float | int | np.number):
        return " Costs alone say nothing of labels: pass structure.problem(costs), or structure.batch(rows of costs)."
    return ""


def as_costs(costs: FloatArray) -> FloatArray:
    """Returns costs as an array of our own, or says that they are not numbers."""
    try:
        return floats(costs, copy=True)
    except (TypeError, ValueError) as error:
        raise ProblemError(f"Costs are numbers, one for each label of each problem ({error}).") from None


def check_each(batch: Batch, scores: bool) -> None:
    """Refuses a batch with costs that are neither finite nor inf, and names the first."""
    if np.isfinite(batch.cost).all():
        return
    wrong = np.isnan(batch.cost) | np.isneginf(batch.cost)
    if wrong.any():
        p = int(np.searchsorted(batch.cost_at, np.flatnonzero(wrong)[0], side="right")) - 1
        try:
            flat = batch.cost[batch.cost_at[p] : batch.cost_at[p + 1]]
            check_costs(batch.structures[batch.structure[p]], flat, scores)
        except ProblemError as error:
            raise ProblemError(f"Problem {p}: {error}") from None

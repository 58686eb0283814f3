"""Many problems, of one shape or of several, as flat arrays: what kernels read. A problem is a batch of one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from operator import index
from types import EllipsisType
from typing import Any, overload

import numpy as np

from hasten.errors import OutOfRange, ProblemError
from hasten.kernels.layout import COST, GRAPH, TABLE, VARIABLE, BatchArrays
from hasten.model.compiled import NO_SLOTS
from hasten.model.costs import (
    Scorer,
    Tables,
    add_loss,
    as_costs,
    ask,
    bring_to_all,
    check_costs,
    first_wrong,
    rows_of_costs,
)
from hasten.model.problem import Problem
from hasten.model.soft import add_prices, complete, with_prices
from hasten.model.structure import Structure
from hasten.support.arrays import Chosen, FloatArray, IntArray, ints, offsets, plain, ranges, sizes_of
from hasten.support.checks import brief, check_switch, chosen_numbers, listed, whole_numbers
from hasten.support.words import count

ONLY = np.zeros(1, dtype=np.int64)  # the number of the only problem, of its structure, and where its tables start


@dataclass(frozen=True, eq=False)
class Batch:
    """Many problems, of one shape or of several, as the flat arrays that kernels read.

    Problem `p` has structure `structures[structure[p]]`, the costs `cost[cost_at[p]:cost_at[p + 1]]` and, in
    flat labellings of all graphs, the variables `variable_at[p]:variable_at[p + 1]`. Users make one with `of`, `stack`
    or `build`.
    """

    structures: tuple[Structure, ...]
    structure: IntArray  # (n,)
    cost: FloatArray  # zeros, and the prices of soft rules, where the costs are lazy
    cost_at: IntArray  # (n + 1,)
    table: FloatArray
    table_at: IntArray  # (n,) where the problem's tables start
    scorer: Scorer | None = None
    ids: IntArray | None = None  # (n,) what scorers and cheap features call the problems; None: 0, 1, 2, …

    @classmethod
    def of(cls, problems: Iterable[Problem]) -> Batch:
        """Gathers problems; those with lazy costs keep them lazy, unless others have costs given."""
        if not isinstance(problems, Iterable) or (isinstance(problems, np.ndarray) and problems.dtype != object):
            raise ProblemError(f"Expected a problem, several or a batch, got {brief(problems)}.{_hint(problems)}")
        known = list(problems)
        for p, problem in enumerate(known):
            if not isinstance(problem, Problem):
                raise ProblemError(f"Expected problems; number {p} is {brief(problem)}.{_hint(problem)}")
        numbers, structures, structure = dict[int, int](), list[Structure](), list[int]()
        for problem in known:
            number = numbers.setdefault(id(problem.structure.compiled), len(structures))
            if number == len(structures):  # those of one shape once
                structures.append(problem.structure)
            structure.append(number)
        lazy = bool(known) and all(problem.lazy for problem in known)
        tables = {id(problem.table): problem.table for problem in known}  # those that several share once
        starts = dict(zip(tables, offsets(map(len, tables.values())).tolist(), strict=False))
        cost = _join([_no_costs(problem) if lazy else problem.cost for problem in known])
        cost_at = offsets(problem.graph.first[-1] for problem in known)
        table, table_at = _join(list(tables.values())), ints(starts[id(problem.table)] for problem in known)
        scorer, ids = _shared_scorer(known) if lazy else None, ints(problem.id for problem in known)
        return cls(tuple(structures), ints(structure), cost, cost_at, table, table_at, scorer, ids)

    @classmethod
    def of_one(cls, problem: Problem) -> Batch:
        """Makes a batch of one problem, fast: everything but its costs and tables comes from its structure."""
        compiled, scorer = problem.structure.compiled, problem.scorer if problem.lazy else None
        cost, ids = problem.cost if scorer is None else _no_costs(problem), np.array([problem.id], dtype=np.int64)
        batch = cls((problem.structure,), ONLY, cost, compiled.cost_at, problem.table, ONLY, scorer, ids)
        batch.__dict__.update(
            variable_at=compiled.variable_at,
            n_variables=compiled.n_variables,
            order=ONLY,
            arrays=BatchArrays(compiled.place, plain(batch.cost), plain(batch.table)),
        )
        return batch

    @classmethod
    def stack(
        cls, structure: Structure, costs: FloatArray, *, maximize: bool = False, table: FloatArray | None = None
    ) -> Batch:
        """Makes a batch of one shape from a matrix with a row of flat costs, or of scores to maximise, per problem.

        `table` holds the tables that all of them bring, if the structure has slots for some.
        """
        check_switch("maximize", maximize)
        if table is None:
            structure = _without_slots(structure)
        flat, numbers = rows_of_costs(structure, costs, maximize)
        tables = structure.graph.table if table is None else table, np.zeros_like(numbers)
        return cls._make([structure], numbers, flat, tables, scores=maximize)

    @classmethod
    def build(
        cls, structures: Sequence[Structure], structure: IntArray, costs: FloatArray | Scorer, ids: Any = None
    ) -> Batch:
        """Makes a batch of several shapes: the number of each problem's structure, and all costs in a row.

        Given a scorer instead of costs, the batch is lazy; the scorer is told `ids` (by default 0, 1, 2, …), and so
        are the cheap features of a gate. Arrays are copied: the batch does not change with the caller's arrays.
        """
        shapes = [_without_slots(each) for each in listed(structures, "The structures of a batch")]
        numbers = whole_numbers(structure, "The numbers of the problems' structures")
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < len(shapes):
            raise ProblemError(f"A structure number is out of range: there are {len(shapes)} structures, from 0.")
        if ids is not None:
            ids = whole_numbers(ids, "The ids of problems")
            if len(ids) != len(numbers):
                raise ProblemError(
                    f"Got {count(len(ids), 'id')} for {count(len(numbers), 'problem')}. Give one for each."
                )
        n_labels = int(ints(each.n_labels for each in shapes)[numbers].sum())
        flat = np.zeros(n_labels) if callable(costs) else as_costs(costs)
        if flat.shape != (n_labels,):
            raise ProblemError(f"Got costs of shape {flat.shape} for {n_labels} labels. Give one per label.")
        tables = [each.graph.table for each in shapes]
        joined = _join(tables), offsets(map(len, tables))[numbers]
        return cls._make(shapes, numbers, flat, joined, costs if callable(costs) else None, ids)

    @classmethod
    def _make(
        cls,
        structures: Sequence[Structure],
        structure: IntArray,
        flat: FloatArray,
        tables: tuple[FloatArray, IntArray],
        scorer: Scorer | None = None,
        ids: IntArray | None = None,
        scores: bool = False,
    ) -> Batch:
        """Makes a batch of costs that lack the prices of soft rules; `scores` says that minus these were given."""
        cost_at = offsets(ints(each.graph.first[-1] for each in structures)[structure])
        cost, ids = add_prices(structures, structure, flat), np.arange(len(structure)) if ids is None else ids
        at = first_wrong(cost)
        if at is not None:
            p = int(np.searchsorted(cost_at, at, side="right")) - 1
            mine = cost[cost_at[p] : cost_at[p + 1]]
            check_costs(structures[structure[p]], mine, scores, f"Problem {p}: the")
        return cls(tuple(structures), structure, cost, cost_at, *tables, scorer, ids)

    def augmented(self, labels: IntArray, weight: float | FloatArray = 1.0) -> Batch:
        """Returns these problems with a loss in their costs, as `Problem.augmented`; labels are flat, or a row each."""
        batch = self.resolved()
        return replace(batch, cost=add_loss(batch, labels, weight))

    @cached_property
    def arrays(self) -> BatchArrays:
        """The arrays that kernels are given."""
        place = np.zeros((len(self) + 1, 4), dtype=np.int64)
        if len(self):
            graphs = np.array([structure.graph.address for structure in self.structures], dtype=np.int64)
            place[:-1, GRAPH] = graphs[self.structure]
            place[:-1, TABLE] = self.table_at
        place[:, COST] = self.cost_at
        place[:, VARIABLE] = self.variable_at
        return BatchArrays(place, plain(self.cost), plain(self.table))

    @cached_property
    def order(self) -> IntArray:
        """The problems, those of one structure together: kernels then find its graph still in the cache."""
        if len(self.structures) == 1:
            return np.arange(len(self))
        return np.argsort(self.structure, kind="stable")

    @cached_property
    def variable_at(self) -> IntArray:
        """Where each problem's variables start in a flat labelling of all graphs."""
        return offsets(self.n_variables)

    @cached_property
    def n_variables(self) -> IntArray:
        """How many variables the graph of each problem has, with the indicators of soft rules."""
        return ints(len(structure.graph.order) for structure in self.structures)[self.structure]

    @cached_property
    def soft(self) -> bool:
        """Whether some problem has soft rules, and so indicators behind its variables."""
        return any(structure.compiled.indicators is not None for structure in self.structures)

    @cached_property
    def labels_at(self) -> IntArray:
        """Where each problem's variables start in a flat labelling as users see it: without indicators."""
        if not self.soft:
            return self.variable_at
        return offsets(ints(structure.n_variables for structure in self.structures)[self.structure])

    def labels(self, values: IntArray) -> IntArray:
        """Returns a flat labelling of all graphs as users see it: without indicators."""
        return values[ranges(self.variable_at[:-1], sizes_of(self.labels_at))] if self.soft else values

    def values(self, labels: IntArray) -> IntArray:
        """Returns a flat labelling as users give it with indicators; one that does not fit stays as it is."""
        if not self.soft or labels.shape != (self.labels_at[-1],):
            return labels
        values = np.full(self.variable_at[-1], -1, dtype=np.int64)
        values[ranges(self.variable_at[:-1], sizes_of(self.labels_at))] = labels
        return complete(self, values)

    @property
    def label_costs(self) -> FloatArray:
        """The costs of labels as users give them, flat: without the prices of soft rules."""
        if not self.soft:
            return self.cost
        return self.cost[ranges(self.cost_at[:-1], ints(each.n_labels for each in self.structures)[self.structure])]

    @property
    def lazy(self) -> bool:
        """Whether costs are computed on demand."""
        return self.scorer is not None

    @property
    def shape(self) -> tuple[int]:
        """As an array has one: a single axis, the problems. scikit-learn then indexes the batch as a whole."""
        return (len(self),)

    def __len__(self) -> int:
        return len(self.structure)

    @overload
    def __getitem__(self, p: int) -> Problem: ...
    @overload
    def __getitem__(self, p: Chosen | tuple[Chosen, EllipsisType]) -> Batch: ...
    def __getitem__(self, p: int | Chosen | tuple[Chosen, EllipsisType]) -> Problem | Batch:
        """Returns one problem, by number, or the batch of several, as `select` does."""
        try:
            p = index(p)  # type: ignore[arg-type]
        except TypeError:
            if isinstance(p, tuple) and len(p) == 2 and p[1] is Ellipsis:
                return self[p[0]]  # scikit-learn's way to index the first axis
            return self.select(p)  # type: ignore[arg-type]
        if not -len(self) <= p < len(self):
            raise OutOfRange(f"There is no problem {brief(p)}; the batch has {len(self)}.")
        p %= len(self)
        structure = self.structures[self.structure[p]]
        table = self.table[self.table_at[p] : self.table_at[p] + len(structure.graph.table)]
        cost = None if self.lazy else self.cost[self.cost_at[p] : self.cost_at[p + 1]]
        return Problem(structure, cost, self.scorer, table, p if self.ids is None else int(self.ids[p]))

    def score(self, problems: IntArray, variables: IntArray) -> FloatArray:
        """Asks the scorer for the costs of some variables of some problems, and checks its answer."""
        return ask(self, problems, variables)

    def label_ranges(self, problems: IntArray, variables: IntArray) -> tuple[IntArray, IntArray]:
        """Returns where the labels of some variables start, each in its problem, and how many there are."""
        first, starts = self._firsts
        at = starts[self.structure[problems]] + variables
        return first[at], first[at + 1] - first[at]

    @cached_property
    def _firsts(self) -> tuple[IntArray, IntArray]:
        """Where labels start, structure after structure, and where each structure's part of that starts."""
        firsts = [structure.graph.first for structure in self.structures]
        return np.concatenate([ints(()), *firsts]), offsets(len(first) for first in firsts)

    def resolved(self) -> Batch:
        """Returns this batch with all costs computed."""
        if self.scorer is None:
            return self
        problems = np.repeat(np.arange(len(self)), self.n_variables)
        cost = self.score(problems, np.arange(self.variable_at[-1]) - self.variable_at[problems])
        return replace(self, cost=cost, scorer=None)

    def select(self, problems: Chosen) -> Batch:
        """Returns the batch of some of the problems: by number, as a slice, or by a mask that is true for each."""
        chosen = chosen_numbers(problems, len(self))
        sizes, ids = sizes_of(self.cost_at)[chosen], None if self.ids is None else self.ids[chosen]
        cost, table_at = self.cost[ranges(self.cost_at[chosen], sizes)], self.table_at[chosen]
        parts = self.structure[chosen], cost, offsets(sizes), self.table, table_at, self.scorer, ids
        return Batch(self.structures, *parts)

    def with_tables(self, tables: Tables) -> Batch:
        """Returns these problems with other tables for all factors of some kinds, by the kind or its name.

        Nothing is compiled for tables that come again with other costs, so this is the way to change them in training.
        """
        structures, table, table_at = bring_to_all(self, tables)
        return replace(self, structures=structures, table=table, table_at=table_at)

    def __getstate__(self) -> dict[str, Any]:
        """Returns the fields, to be copied or pickled: nothing derived, since that holds addresses."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def places(self, problems: IntArray) -> IntArray:
        """Returns where the variables of some problems are in a flat labelling of all graphs."""
        return ranges(self.variable_at[problems], self.n_variables[problems])

    def __repr__(self) -> str:
        lazy = ", lazy" if self.lazy else ""
        return f"Batch({count(len(self), 'problem')}, {count(len(self.structures), 'structure')}{lazy})"


def arrays_of(problem: Problem) -> BatchArrays:
    """Returns the arrays that kernels are given of one problem."""
    return BatchArrays(problem.structure.compiled.place, plain(problem.cost), plain(problem.table))


def as_batch(problems: Problem | Batch | Iterable[Problem]) -> Batch:
    """Returns problems, however they are given, as a batch."""
    if isinstance(problems, Batch):
        return problems
    return problems.batch if isinstance(problems, Problem) else Batch.of(problems)


def _without_slots(structure: object) -> Structure:
    if not isinstance(structure, Structure):
        raise ProblemError(f"Expected a structure, got {brief(structure)}. Make one: schema.structure().")
    return structure._with_slots(NO_SLOTS)


def _no_costs(problem: Problem) -> FloatArray:
    return with_prices(problem.structure, np.zeros(problem.structure.n_labels))


def _shared_scorer(problems: Sequence[Problem]) -> Scorer | None:
    scorer = problems[0].scorer
    if all(problem.scorer == scorer for problem in problems):  # not `is`: a bound method is a new object each time
        return scorer
    raise ProblemError(
        "The lazy problems of one batch must share one scorer, told apart by their `id`. "
        "Pass the same scorer object to each Structure.problem(scorer, id=...)."
    )


def _join(parts: Sequence[FloatArray]) -> FloatArray:
    return np.concatenate(parts) if len(parts) else np.zeros(0)


def _hint(given: object) -> str:
    if isinstance(given, Structure):
        return " A structure has no costs: pass structure.problem(costs), or structure.batch(a row of costs for each)."
    if isinstance(given, np.ndarray | list | tuple | float | int | np.number):
        return " Costs alone say nothing of labels: pass structure.problem(costs), or structure.batch(rows of costs)."
    return ""

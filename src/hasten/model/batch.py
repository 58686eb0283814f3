"""Many problems, of one shape or of several, as flat arrays: what kernels read. A problem is a batch of one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from operator import index
from types import EllipsisType
from typing import Any, overload

import numpy as np

from hasten.errors import ProblemError
from hasten.kernels.layout import COST, GRAPH, TABLE, VARIABLE, BatchArrays
from hasten.model import hidden
from hasten.model.gathering import as_costs, check_each, gather_tables, hint, in_short, join, join_scorers, told_apart
from hasten.model.problem import Problem, Scorer, loss_weights
from hasten.model.structure import Structure
from hasten.model.tables import Blocks, Brought, Tables, check_tables, filled, read_by_kind, refilled, widened
from hasten.support.arrays import Chosen, FloatArray, IntArray, chosen_numbers, ints, offsets, plain, ranges
from hasten.support.words import count

ONLY = np.zeros(1, dtype=np.int64)  # the number of the only problem, of its structure, and where its tables start


@dataclass(frozen=True, eq=False)
class Batch:
    """Many problems, of one shape or of several, as the flat arrays that kernels read.

    Problem `p` has structure `structures[structure[p]]`, the costs `cost[cost_at[p]:cost_at[p + 1]]` and, in
    flat labellings of the whole batch, the variables `variable_at[p]:variable_at[p + 1]`.
    """

    structures: tuple[Structure, ...]
    structure: IntArray  # (n,)
    cost: FloatArray  # zeros where the costs are lazy
    cost_at: IntArray  # (n + 1,)
    table: FloatArray
    table_at: IntArray  # (n,) where the problem's tables start
    scorer: Scorer | None = None
    ids: IntArray | None = None  # (n,) what scorers and cheap features call the problems; None: 0, 1, 2, …

    @classmethod
    def of(cls, problems: Sequence[Problem]) -> Batch:
        """Gathers problems; those with lazy costs keep them lazy, unless others have costs given."""
        structures, structure = told_apart(problem.structure for problem in problems)
        lazy = bool(problems) and all(problem.lazy for problem in problems)
        table, table_at = gather_tables(problems)
        sizes = np.array([problem.graph.first[-1] for problem in problems], dtype=np.int64)
        return cls(
            tuple(structures),
            structure,
            join([np.zeros(size) if lazy else problem.cost for problem, size in zip(problems, sizes, strict=True)]),
            offsets(sizes),
            table,
            table_at,
            join_scorers([problem.scorer for problem in problems]) if lazy else None,
            np.array([problem.id for problem in problems], dtype=np.int64),
        )

    @classmethod
    def of_one(cls, problem: Problem) -> Batch:
        """Makes a batch of one problem, fast: everything but its costs and tables comes from its structure."""
        compiled = problem.structure.compiled
        lazy = problem.lazy
        batch = cls(
            (problem.structure,),
            ONLY,
            np.zeros(compiled.cost_at[-1]) if lazy else problem.cost,
            compiled.cost_at,
            problem.table,
            ONLY,
            problem.scorer if lazy else None,
            np.array([problem.id], dtype=np.int64),
        )
        batch.__dict__.update(
            variable_at=compiled.variable_at,
            n_variables=compiled.n_variables,
            order=ONLY,
            arrays=BatchArrays(compiled.place, plain(batch.cost), plain(batch.table)),
        )
        return batch

    @classmethod
    def alike(cls, problem: Problem, costs: FloatArray) -> Batch:
        """Makes a batch of problems that differ from one in their costs alone: a matrix with a row for each."""
        matrix = as_costs(costs)
        if matrix.ndim != 2 or matrix.shape[1] != problem.structure.n_labels:
            raise ProblemError(
                f"Got costs of shape {matrix.shape}; this problem needs (problems, {problem.structure.n_labels}): "
                "a row per problem with one cost per label, in the order of the variables."
            )
        n, matrix = len(matrix), hidden.widened(problem.structure, matrix)
        sizes = np.full(n, matrix.shape[1], dtype=np.int64)
        none = np.zeros(n, dtype=np.int64)
        return cls((problem.structure,), none, matrix.ravel(), offsets(sizes), problem.table, none)

    @classmethod
    def stack(cls, structure: Structure, costs: FloatArray, *, maximize: bool = False) -> Batch:
        """Makes a batch of one shape from a matrix with a row of flat costs, or of scores to maximise, per problem."""
        matrix = as_costs(costs)
        if maximize:
            np.negative(matrix, out=matrix)
        if matrix.ndim != 2 or matrix.shape[1] != structure.n_labels:
            raise ProblemError(
                f"Got costs of shape {matrix.shape}; this structure needs (problems, {structure.n_labels}): "
                "a row per problem with one cost per label, in the order of the variables."
            )
        return cls._build([structure], np.zeros(len(matrix), dtype=np.int64), matrix.ravel(), None, maximize)

    @classmethod
    def build(
        cls,
        structures: Sequence[Structure],
        structure: IntArray,
        costs: FloatArray | Scorer,
        ids: IntArray | None = None,
    ) -> Batch:
        """Makes a batch of several shapes: the number of each problem's structure, and all costs in a row.

        Given a scorer instead of costs, the batch is lazy; the scorer is told `ids` (by default 0, 1, 2, …), and so
        are the cheap features of a gate.
        What is given is copied: the batch stays what it is when the caller's arrays change.
        """
        numbers = np.array(structure, dtype=np.int64, order="C")
        return cls._build(structures, numbers, costs if callable(costs) else as_costs(costs), ids)

    @classmethod
    def _build(
        cls,
        structures: Sequence[Structure],
        structure: IntArray,
        costs: FloatArray | Scorer,
        ids: IntArray | None,
        scores: bool = False,
    ) -> Batch:
        """Does what `build` says with arrays that nobody else holds; `scores` says that minus these were given."""
        structures = [each.opened(()) if each._own else each for each in structures]
        if ids is not None and len(ids) != len(structure):
            raise ProblemError(
                f"Got {count(len(ids), 'id')} for {count(len(structure), 'problem')}. Give one for each."
            )
        if structure.size and not (structure.min() >= 0 and structure.max() < len(structures)):
            raise ProblemError(f"A structure number is out of range: there are {len(structures)} structures, from 0.")
        sizes = np.array([each.n_labels for each in structures], dtype=np.int64)
        cost_at = offsets(sizes[structure] if structure.size else ())
        table_first = offsets([len(each.graph.table) for each in structures])
        lazy = callable(costs)
        flat = np.zeros(cost_at[-1]) if callable(costs) else costs
        if flat.shape != (cost_at[-1],):
            raise ProblemError(f"Got costs of shape {flat.shape} for {cost_at[-1]} labels. Give one per label.")
        if any(each.compiled.prices is not None for each in structures):
            flat, cost_at = hidden.put_prices(structures, structure, flat, cost_at)
        batch = cls(
            tuple(structures),
            structure,
            flat,
            cost_at,
            join([each.graph.table for each in structures]),
            table_first[:-1][structure] if structure.size else np.zeros(0, dtype=np.int64),
            costs if callable(costs) else None,
            np.arange(len(structure)) if ids is None else np.array(ids, dtype=np.int64),
        )
        if not lazy:
            check_each(batch, scores)
        return batch

    def augmented(self, labels: IntArray, weight: float = 1.0) -> Batch:
        """Returns these problems with a loss in their costs, as `Problem.augmented`; labels are flat, or a row each."""
        batch = self.resolved()
        given, seen = np.asarray(labels), batch.seen_at
        if given.ndim == 2 and given.shape[0] == len(batch) and (np.diff(seen) == given.shape[1]).all():
            given = given.ravel()
        if given.shape != (seen[-1],) or given.dtype.kind not in "iu":
            raise ProblemError(f"Got labels of shape {given.shape} for {seen[-1]} variables. Give numbers, flat.")
        problems = np.arange(len(batch)).repeat(np.diff(seen))
        starts, sizes = batch.label_ranges(problems, np.arange(len(given)) - seen[problems])
        wrong = np.flatnonzero((given < 0) | (given >= sizes))
        if wrong.size:
            raise ProblemError(f"Problem {problems[wrong[0]]}: there is no label number {given[wrong[0]]}.")
        cost, mine = batch.cost.copy(), ranges(batch.cost_at[problems] + starts, sizes) if batch.priced else slice(None)
        cost[mine] -= loss_weights(weight, 1)
        right = batch.cost_at[problems] + starts + given.astype(np.int64)
        cost[right] = batch.cost[right]
        return replace(batch, cost=cost)

    @cached_property
    def arrays(self) -> BatchArrays:
        """What kernels are given of it."""
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
        """Where each problem's variables start in a flat labelling of the batch."""
        return offsets(self.n_variables)

    @cached_property
    def n_variables(self) -> IntArray:
        """How many variables each problem has, with the indicators of rules that may be broken."""
        counts = np.array([len(structure.graph.order) for structure in self.structures], dtype=np.int64)
        return counts[self.structure] if len(self.structure) else np.zeros(0, dtype=np.int64)

    @cached_property
    def priced(self) -> bool:
        """Whether some problem has rules that may be broken, and so indicators behind its variables."""
        return any(structure.compiled.prices is not None for structure in self.structures)

    @cached_property
    def seen_at(self) -> IntArray:
        """Where each problem's variables start in a flat labelling as users see it: without indicators."""
        if not self.priced:
            return self.variable_at
        counts = np.array([structure.n_variables for structure in self.structures], dtype=np.int64)
        return offsets(counts[self.structure] if len(self.structure) else ())

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
            raise IndexError(f"There is no problem {p}; the batch has {len(self)}.")
        p %= len(self)
        structure = self.structures[self.structure[p]]
        table = self.table[self.table_at[p] : self.table_at[p] + len(structure.graph.table)]
        if self.scorer is not None and self.ids is not None:
            return Problem(structure, None, self.scorer, table, int(self.ids[p]))
        id = p if self.ids is None else int(self.ids[p])
        return Problem(structure, self.cost[self.cost_at[p] : self.cost_at[p + 1]], None, table, id)

    def score(self, problems: IntArray, variables: IntArray) -> FloatArray:
        """Asks the scorer for the costs of some variables of some problems, and checks what it says."""
        if self.scorer is None or self.ids is None:
            raise ProblemError("This batch has its costs given; there is no scorer to ask.")
        if not len(problems):
            return np.zeros(0)
        if self.priced:
            return hidden.score(self, self._ask, problems, variables)
        return self._ask(problems, variables)

    def _ask(self, problems: IntArray, variables: IntArray) -> FloatArray:
        scorer: Any = self.scorer
        ids: Any = self.ids
        costs = as_costs(scorer(ids[problems], variables))
        _, sizes = self.label_ranges(problems, variables)
        if costs.shape != (sizes.sum(),):
            raise ProblemError(
                f"The scorer returned costs of shape {costs.shape} for {len(problems)} requests that need "
                f"{sizes.sum()}. Return all labels of the first requested variable, then of the second, and so on."
            )
        wrong = np.isnan(costs) | np.isneginf(costs)
        if wrong.any():
            r = int(np.searchsorted(np.cumsum(sizes), np.flatnonzero(wrong)[0], side="right"))
            raise ProblemError(
                f"The scorer returned {costs[wrong][0]} for variable {variables[r]} of problem "
                f"{ids[problems[r]]}. Costs are finite, or inf to forbid a label."
            )
        return costs

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
        counts = self.n_variables
        problems = np.repeat(np.arange(len(self)), counts)
        variables = np.arange(self.variable_at[-1]) - np.repeat(self.variable_at[:-1], counts)
        cost = self.score(problems, variables)
        return Batch(self.structures, self.structure, cost, self.cost_at, self.table, self.table_at, ids=self.ids)

    def select(self, problems: Chosen) -> Batch:
        """Returns the batch of some of the problems: by number, as a slice, or by a mask that is true for each."""
        chosen = chosen_numbers(problems, len(self))
        sizes = np.diff(self.cost_at)[chosen]
        cost_at = offsets(sizes)
        source = np.repeat(self.cost_at[chosen] - cost_at[:-1], sizes) + np.arange(cost_at[-1])
        return Batch(
            self.structures,
            self.structure[chosen],
            self.cost[source],
            cost_at,
            self.table,
            self.table_at[chosen],
            self.scorer,
            None if self.ids is None else self.ids[chosen],
        )

    def with_tables(self, tables: Tables) -> Batch:
        """Returns these problems with other tables for all factors of some kinds, by the kind or its name.

        Nothing is compiled for tables that come again with other costs, so this is the way to change them in training.
        """
        check_tables(tables)
        structures, blocks = list(self.structures), Blocks()
        table_at, brought = np.zeros(len(self), dtype=np.int64), dict[int, Brought]()
        for s in np.unique(self.structure).tolist():
            given = structures[s]
            if id(given.schema) not in brought:
                brought[id(given.schema)] = read_by_kind(given.schema, tables)
            mine = brought[id(given.schema)]
            structures[s] = wide = widened(given, mine)
            if not given._own:
                table_at[self.structure == s] = blocks.put(filled(wide, mine))
                continue
            for p in np.flatnonzero(self.structure == s).tolist():
                table_at[p] = blocks.put(refilled(given, self.table[self.table_at[p] :], wide, mine))
        known = tuple(structures)
        return Batch(known, self.structure, self.cost, self.cost_at, blocks.table, table_at, self.scorer, self.ids)

    def __getstate__(self) -> dict[str, Any]:
        """What is copied or pickled: nothing derived, since that holds addresses."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def places(self, problems: IntArray) -> IntArray:
        """Returns where the variables of some problems are in a flat labelling of the batch."""
        sizes = self.n_variables[problems]
        ends = np.cumsum(sizes)
        return np.repeat(self.variable_at[problems] - (ends - sizes), sizes) + np.arange(sizes.sum())

    def __repr__(self) -> str:
        lazy = ", lazy" if self.lazy else ""
        return f"Batch({count(len(self), 'problem')}, {count(len(self.structures), 'structure')}{lazy})"

    def _repr_html_(self) -> str:
        from hasten.model.display import of_batch

        return of_batch(self)


def arrays_of(problem: Problem) -> BatchArrays:
    """Returns what kernels are given of one problem."""
    return BatchArrays(problem.structure.compiled.place, plain(problem.cost), plain(problem.table))


def as_batch(problems: Problem | Batch | Iterable[Problem]) -> Batch:
    """Returns problems, however they are given, as a batch."""
    if isinstance(problems, Batch):
        return problems
    if isinstance(problems, Problem):
        return problems.batch
    if not isinstance(problems, Iterable) or (isinstance(problems, np.ndarray) and problems.dtype != object):
        raise ProblemError(f"Expected a problem, several or a batch, got {in_short(problems)}.{hint(problems)}")
    listed = list(problems)
    for p, problem in enumerate(listed):
        if not isinstance(problem, Problem):
            raise ProblemError(f"Expected problems; number {p} is {in_short(problem)}.{hint(problem)}")
    return Batch.of(listed)

"""The third step: a structure with costs. A `Problem` is one input; a `Batch` is many, as flat arrays.

Costs are given (an array per variable, or one flat array) or *lazy*: a scorer is asked for the costs of
single variables, when and if the search needs them (paper §4.1). Kernels read batches; a problem is a batch
of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from hasten.errors import ProblemError
from hasten.graph import FloatArray, IntArray, Pool
from hasten.schema import check_table
from hasten.structure import Rule, Structure, pool_of

if TYPE_CHECKING:
    from hasten.check import Check


class Scorer(Protocol):
    """Answers requests for costs: those of variable `variables[r]` of problem `problems[r]`, one after the other."""

    def __call__(self, problems: IntArray, variables: IntArray, /) -> FloatArray:
        """Returns the costs of the requested variables, all labels of the first, then of the second, …"""
        ...


Costs: TypeAlias = "FloatArray | Sequence[Sequence[float] | FloatArray] | Scorer"


class Problem:
    """One input: minimise the costs of its labels and tables, subject to its tables and rules.

    Made by `Structure.problem`. `cost` is flat: variable `v` owns `cost[first[v]:first[v + 1]]`; a cost of
    `inf` forbids a label.
    """

    def __init__(
        self, structure: Structure, cost: FloatArray | None, scorer: Scorer | None, table: FloatArray, id: int
    ) -> None:
        self.structure = structure
        self.graph = structure.graph
        self.table = table
        self.scorer = scorer
        self.id = id
        self._cost = cost

    @classmethod
    def of(
        cls,
        structure: Structure,
        costs: Costs,
        *,
        tables: Mapping[int, FloatArray],
        rules: tuple[Rule, ...],
        id: int,
    ) -> Problem:
        """Checks costs, tables and rules against their structure."""
        if tables or structure._own_tables:  # another problem's tables are not this one's
            structure = structure.opened(tables)
        if rules:
            structure = structure.with_rules(rules)
        graph = structure.graph
        table = graph.table
        if tables:
            table = table.copy()
            for f, given in tables.items():
                kind = structure.factors[f].kind
                table[graph.table_at[f] : graph.table_at[f] + kind.size] = check_table(given, kind).ravel()
        if callable(costs):
            return cls(structure, None, costs, table, id)
        return cls(structure, _flat_costs(structure, costs), None, table, id)

    @property
    def lazy(self) -> bool:
        """Whether costs are computed on demand."""
        return self._cost is None

    @property
    def cost(self) -> FloatArray:
        """The flat costs; a lazy problem computes all of them, and keeps them."""
        if self._cost is None:
            self._cost = self.batch.resolved().cost
            del self.batch  # the lazy one; from now on the costs are given
        return self._cost

    @cached_property
    def batch(self) -> Batch:
        """This problem as a batch of one."""
        return Batch.of([self])

    @property
    def n_variables(self) -> int:
        """The number of variables."""
        return len(self.graph.order)

    @property
    def n_outputs(self) -> int:
        """The number of labellings, valid or not."""
        n = 1
        for size in np.diff(self.graph.first).tolist():
            n *= size
        return n

    def costs_of(self, variable: int) -> FloatArray:
        """Returns the costs of one variable's labels."""
        return self.cost[self.graph.first[variable] : self.graph.first[variable + 1]]

    def total(self, labels: Sequence[int] | IntArray) -> float:
        """Returns the cost of a labelling: inf if a table or a label's cost forbids it. Rules do not count."""
        from hasten.kernels.score import total_cost

        return float(total_cost(self.graph, self.cost, self.table, self.labels(labels)))

    def check(self, labels: Sequence[int] | Sequence[str] | IntArray) -> Check:
        """Says whether a labelling is valid, and names each constraint that it breaks."""
        from hasten.check import check

        return check(self, self.labels(labels))

    def labels(self, labels: Sequence[int] | Sequence[str] | IntArray) -> IntArray:
        """Returns a labelling, given by label numbers or names, as numbers; one that does not fit is an error."""
        kinds = self.structure.kinds
        if len(labels) != len(kinds):
            raise ProblemError(f"Got {len(labels)} labels for {len(kinds)} variables. Give one for each.")
        numbers = np.empty(len(kinds), dtype=np.int64)
        for v, (kind, label) in enumerate(zip(kinds, labels, strict=True)):
            numbers[v] = kind.label(label) if isinstance(label, str) else int(label)
            if not 0 <= numbers[v] < len(kind):
                raise ProblemError(
                    f"Variable {v} ({kind.name}) has no label number {label}; it has {len(kind)} labels, from 0."
                )
        return numbers

    def names(self, labels: IntArray) -> list[str]:
        """Returns the names of a labelling's labels."""
        return [kind.labels[label] for kind, label in zip(self.structure.kinds, labels, strict=True)]

    def __repr__(self) -> str:
        return f"Problem({self.n_variables} variables{', lazy' if self.lazy else ''})"


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
    ids: IntArray | None = None  # (n,) what a scorer calls the problems

    @classmethod
    def of(cls, problems: Sequence[Problem]) -> Batch:
        """Gathers problems; those with lazy costs keep them lazy, unless others have costs given."""
        numbers: dict[int, int] = {}
        structures: list[Structure] = []
        structure = np.empty(len(problems), dtype=np.int64)
        for p, problem in enumerate(problems):
            key = id(problem.structure.compiled)
            if key not in numbers:
                numbers[key] = len(structures)
                structures.append(problem.structure)
            structure[p] = numbers[key]
        lazy = bool(problems) and all(problem.lazy for problem in problems)
        table, table_at = _gather_tables(problems, structures, structure)
        sizes = np.array([problem.graph.first[-1] for problem in problems], dtype=np.int64)
        return cls(
            tuple(structures),
            structure,
            _join([np.zeros(size) if lazy else problem.cost for problem, size in zip(problems, sizes, strict=True)]),
            _offsets(sizes),
            table,
            table_at,
            _join_scorers([problem.scorer for problem in problems]) if lazy else None,
            np.array([problem.id for problem in problems], dtype=np.int64) if lazy else None,
        )

    @classmethod
    def stack(cls, structure: Structure, costs: FloatArray) -> Batch:
        """Makes a batch of one shape from a matrix with a row of flat costs per problem."""
        costs = np.asarray(costs, dtype=np.float64)
        if costs.ndim != 2 or costs.shape[1] != structure.n_labels:
            raise ProblemError(
                f"Got costs of shape {costs.shape}; this structure needs (problems, {structure.n_labels}): "
                "a row per problem with one cost per label, in the order of the variables."
            )
        return cls.build([structure], np.zeros(len(costs), dtype=np.int64), costs.ravel())

    @classmethod
    def build(
        cls,
        structures: Sequence[Structure],
        structure: IntArray,
        costs: FloatArray | Scorer,
        ids: IntArray | None = None,
    ) -> Batch:
        """Makes a batch of several shapes: the number of each problem's structure, and all costs in a row.

        Given a scorer instead of costs, the batch is lazy; the scorer is told `ids` (by default 0, 1, 2, …).
        """
        structures = [each.opened(()) if each._own_tables else each for each in structures]
        structure = np.ascontiguousarray(structure, dtype=np.int64)
        if ids is not None and len(ids) != len(structure):
            raise ProblemError(f"Got {len(ids)} ids for {len(structure)} problems. Give one for each.")
        if structure.size and not (structure.min() >= 0 and structure.max() < len(structures)):
            raise ProblemError(f"A structure number is out of range: there are {len(structures)} structures, from 0.")
        sizes = np.array([each.graph.first[-1] for each in structures], dtype=np.int64)
        cost_at = _offsets(sizes[structure] if structure.size else ())
        table_first = _offsets([len(each.graph.table) for each in structures])
        lazy = callable(costs)
        flat = np.zeros(cost_at[-1]) if callable(costs) else np.ascontiguousarray(costs, dtype=np.float64)
        if flat.shape != (cost_at[-1],):
            raise ProblemError(f"Got costs of shape {flat.shape} for {cost_at[-1]} labels. Give one per label.")
        batch = cls(
            tuple(structures),
            structure,
            flat,
            cost_at,
            _join([each.graph.table for each in structures]),
            table_first[:-1][structure] if structure.size else np.zeros(0, dtype=np.int64),
            costs if callable(costs) else None,
            (np.arange(len(structure)) if ids is None else np.asarray(ids, dtype=np.int64)) if lazy else None,
        )
        if not lazy:
            _check_costs(batch)
        return batch

    @cached_property
    def pool(self) -> Pool:
        """The graphs of its structures."""
        return pool_of(tuple(structure.compiled for structure in self.structures))

    @cached_property
    def variable_at(self) -> IntArray:
        """Where each problem's variables start in a flat labelling of the batch."""
        counts = np.array([structure.n_variables for structure in self.structures], dtype=np.int64)
        return _offsets(counts[self.structure] if len(self.structure) else ())

    @property
    def lazy(self) -> bool:
        """Whether costs are computed on demand."""
        return self.scorer is not None

    def __len__(self) -> int:
        return len(self.structure)

    def __getitem__(self, p: int) -> Problem:
        if not -len(self) <= p < len(self):
            raise IndexError(f"There is no problem {p}; the batch has {len(self)}.")
        p %= len(self)
        structure = self.structures[self.structure[p]]
        table = self.table[self.table_at[p] : self.table_at[p] + len(structure.graph.table)]
        if self.scorer is not None and self.ids is not None:
            return Problem(structure, None, self.scorer, table, int(self.ids[p]))
        return Problem(structure, self.cost[self.cost_at[p] : self.cost_at[p + 1]], None, table, p)

    def score(self, problems: IntArray, variables: IntArray) -> FloatArray:
        """Asks the scorer for the costs of some variables of some problems, and checks what it says."""
        if self.scorer is None or self.ids is None:
            raise ProblemError("This batch has its costs given; there is no scorer to ask.")
        if not len(problems):
            return np.zeros(0)
        costs = np.asarray(self.scorer(self.ids[problems], variables), dtype=np.float64)
        graphs, at = (
            self.pool.graphs,
            self.pool.at[self.structure[problems], 0] + self.structure[problems] + variables,
        )
        sizes = graphs.first[at + 1] - graphs.first[at]
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
                f"{self.ids[problems[r]]}. Costs are finite, or inf to forbid a label."
            )
        return costs

    def resolved(self) -> Batch:
        """Returns this batch with all costs computed."""
        if self.scorer is None:
            return self
        counts = np.diff(self.variable_at)
        problems = np.repeat(np.arange(len(self)), counts)
        variables = np.arange(self.variable_at[-1]) - np.repeat(self.variable_at[:-1], counts)
        cost = self.score(problems, variables)
        return Batch(self.structures, self.structure, cost, self.cost_at, self.table, self.table_at)

    def select(self, problems: Sequence[int] | IntArray) -> Batch:
        """Returns the batch of some of the problems, by number."""
        chosen = np.arange(len(self))[np.asarray(problems, dtype=np.int64)]  # a negative one from the end
        sizes = np.diff(self.cost_at)[chosen]
        cost_at = _offsets(sizes)
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

    def __repr__(self) -> str:
        lazy = ", lazy" if self.lazy else ""
        return f"Batch({len(self)} problems, {len(self.structures)} structures{lazy})"


def as_batch(problems: Problem | Batch | Sequence[Problem]) -> Batch:
    """Returns problems, however they are given, as a batch."""
    if isinstance(problems, Batch):
        return problems
    if isinstance(problems, Problem):
        return problems.batch
    return Batch.of(problems)


def _flat_costs(structure: Structure, costs: FloatArray | Sequence[Sequence[float] | FloatArray]) -> FloatArray:
    n_labels = structure.n_labels
    if isinstance(costs, np.ndarray) and costs.ndim == 1 and costs.dtype.kind in "biuf":
        flat = np.array(costs, dtype=np.float64)
        if flat.size != n_labels:
            raise ProblemError(
                f"Got {flat.size} costs for {n_labels} labels. "
                "Give one cost per label, in the order of the structure's variables."
            )
    else:
        try:
            parts = [np.asarray(part, dtype=np.float64) for part in costs]
        except (TypeError, ValueError):
            raise ProblemError(
                "Costs are numbers. Give an array for each variable, one flat NumPy array, or a scorer."
            ) from None
        if len(parts) != structure.n_variables:
            raise ProblemError(
                f"Got costs for {len(parts)} variables; the structure has {structure.n_variables}. "
                "Give an array of costs for each variable, or one flat NumPy array."
            )
        for v, (kind, part) in enumerate(zip(structure.kinds, parts, strict=True)):
            if part.shape != (len(kind),):
                raise ProblemError(
                    f"Variable {v} ({kind.name}) got costs of shape {part.shape}; "
                    f"it needs one for each of {', '.join(kind.labels)}."
                )
        flat = _join(parts)
    wrong = np.isnan(flat) | np.isneginf(flat)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        v = int(np.searchsorted(structure.graph.first, at, side="right")) - 1
        label = structure.kinds[v].labels[at - structure.graph.first[v]]
        raise ProblemError(
            f"The cost of variable {v} ({structure.kinds[v].name}) for label {label} is {flat[at]}. "
            "Costs are finite, or inf to forbid a label."
        )
    return flat


def _check_costs(batch: Batch) -> None:
    if np.isfinite(batch.cost).all():
        return
    wrong = np.isnan(batch.cost) | np.isneginf(batch.cost)
    if wrong.any():
        p = int(np.searchsorted(batch.cost_at, np.flatnonzero(wrong)[0], side="right")) - 1
        try:
            _flat_costs(batch.structures[batch.structure[p]], batch[p].cost)
        except ProblemError as error:
            raise ProblemError(f"Problem {p}: {error}") from None


def _gather_tables(
    problems: Sequence[Problem], structures: Sequence[Structure], structure: IntArray
) -> tuple[FloatArray, IntArray]:
    """Puts the schema's tables first, once for each structure, then those that problems brought."""
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
    return _join(blocks), table_at


def _join_scorers(scorers: Sequence[Scorer | None]) -> Scorer | None:
    """Returns one scorer for problems that bring their own."""
    if all(scorer == scorers[0] for scorer in scorers):  # not `is`: a bound method is a new object each time
        return scorers[0]
    raise ProblemError(
        "The lazy problems of one batch must share one scorer, told apart by their `id`. "
        "Pass the same scorer object to each Structure.problem(scorer, id=...)."
    )


def _join(parts: Sequence[FloatArray]) -> FloatArray:
    return np.concatenate(parts) if len(parts) else np.zeros(0)


def _offsets(counts: Sequence[int] | IntArray) -> IntArray:
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets

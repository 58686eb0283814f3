"""Exact elimination: variables of low degree are minimised out, once and for all, before anything is bounded.

Minimising a variable out of the factors that touch it leaves one table over its neighbours; nothing is lost.
Which variables go, and which sums and minima that takes, depends on the structure alone: it is planned here
once, as flat lists of what to add, and carried out for each problem by `hasten.kernels.eliminate`. A chain is
thereby solved (it is Viterbi's algorithm), as is any tree; the entity-relation problem of the paper loses all
its relations, and with few entities those too.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hasten.kernels.eliminate import Plan
from hasten.kernels.layout import Graph
from hasten.model.compile import FactorPart, RowPart, compile_graph
from hasten.model.structure import Compiled, Structure
from hasten.support.arrays import BoolArray, IntArray, ints, offsets, strides

MAX_JOIN = 768  # how many sums eliminating one variable may take
MAX_SCOPE = 32  # how many variables these may range over


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """A factor during elimination: the tuples it allows, and where its values are read."""

    scope: tuple[int, ...]
    allowed: BoolArray
    at: int  # in the problem's tables or, if derived, in the working space
    derived: bool
    silent: bool  # all its allowed tuples cost nothing: never read
    start_at: int = 0  # where the starting messages of its kind start


@dataclass(frozen=True, eq=False)
class Reduction:
    """A plan, and the graph of what it leaves."""

    plan: Plan
    graph: Graph

    @cached_property
    def addresses(self) -> IntArray:
        """Where both lie, for kernels: a row."""
        return np.array([[self.plan.address, self.graph.address]])


def reduce(compiled: Compiled, max_join: int = MAX_JOIN) -> Reduction:
    """Plans the elimination of every variable that costs at most `max_join` sums; once for a shape."""
    made = compiled.reductions.get(max_join)
    if made is None:
        made = compiled.reductions[max_join] = _Elimination(compiled, max_join).run()
    return made


def addresses(structures: Iterable[Structure], max_join: int) -> IntArray:
    """Returns for each structure the addresses of its plan and of the graph that it leaves, for kernels."""
    none = np.zeros((0, 2), dtype=np.int64)
    return np.concatenate([none, *(reduce(structure.compiled, max_join).addresses for structure in structures)])


class _Elimination:
    """The variables and tables that are left, and the steps so far."""

    def __init__(self, compiled: Compiled, max_join: int) -> None:
        graph = self.graph = compiled.graph
        self.max_join = max_join
        self.sizes: list[int] = np.diff(graph.first).tolist()
        self.tables: dict[int, _Table] = {}
        self.touching: list[set[int]] = [set() for _ in self.sizes]
        self.in_rows = set(graph.row_variable.tolist())
        self.n_entries = 0  # of derived tables
        self.out_first, self.combo_counts = [0], [ints(())]
        self.combo_label, self.combo_partner = [ints(())], [ints(())]
        self.reads, self.read_at = [ints(())], [0]
        self.n_static: list[int] = []
        self.n_derived: list[int] = []
        self.steps: list[tuple[tuple[int, ...], tuple[int, ...]]] = []  # who goes, and their neighbours
        self.constants: list[int] = []
        soft = set(graph.soft_at.tolist())
        for f in range(len(graph.table_at)):
            at = int(graph.table_at[f])
            if at < 0:
                continue
            scope = tuple(graph.scope[graph.scope_first[f] : graph.scope_first[f + 1]].tolist())
            shape = tuple(self.sizes[v] for v in scope)
            values = graph.table[at : at + math.prod(shape)].reshape(shape)
            allowed = ~np.isposinf(values)
            silent = at not in soft
            start_at = int(graph.start_at[graph.scope_first[f]])
            self._put(_Table(scope, allowed, at, False, silent, start_at))

    def run(self) -> Reduction:
        """Eliminates the cheapest variable again and again."""
        queue = [(self._join(v), v) for v in range(len(self.sizes)) if v not in self.in_rows]
        heapq.heapify(queue)
        gone: set[int] = set()
        while queue:
            join, v = heapq.heappop(queue)
            if v in gone or join != self._join(v):
                continue  # a later entry has its price
            if join > self.max_join:
                break
            group = self._with_partner(v)
            gone.update(group)
            for u in self._eliminate(group):
                if u not in self.in_rows:
                    heapq.heappush(queue, (self._join(u), u))
        return self._finish([int(v) for v in self.graph.order if v not in gone])

    def _neighbours(self, group: tuple[int, ...]) -> list[int]:
        return sorted({u for v in group for f in self.touching[v] for u in self.tables[f].scope} - set(group))

    def _with_partner(self, v: int) -> tuple[int, ...]:
        """Returns `v`, and a neighbour to eliminate with it in one step where that takes fewer sums than two.

        It does where tables forbid much, as with the two relations of one pair of entities.
        """
        alone, _ = self._possible((v,))
        best: tuple[int, ...] = (v,)
        fewest = math.inf
        around = self._neighbours((v,))
        for u in around:
            if u in self.in_rows or not set(self._neighbours((u,))) <= {*around, v}:
                continue
            group = (u, v)
            if math.prod(self.sizes[w] for w in (*group, *self._neighbours(group))) > 4 * self.max_join:
                continue
            together, _ = self._possible(group)
            after = together.reshape(-1, self.sizes[v]).any(axis=1)
            n_two_steps, n_one = alone.sum() + after.sum(), together.sum()
            if n_one < min(n_two_steps, fewest):
                best, fewest = group, n_one
        return best

    def _possible(self, group: tuple[int, ...]) -> tuple[BoolArray, IntArray]:
        """Returns which labellings of a group's neighbours and of the group its tables allow, and all of these."""
        variables = [*self._neighbours(group), *group]
        shape = [self.sizes[u] for u in variables]
        grid = np.indices(shape).reshape(len(shape), -1)
        axis = {u: i for i, u in enumerate(variables)}
        possible = np.ones(grid.shape[1], dtype=bool)
        for f in {f for v in group for f in self.touching[v]}:
            table = self.tables[f]
            entry = strides(table.allowed.shape) @ grid[[axis[u] for u in table.scope]]
            possible &= table.allowed.ravel()[entry]
        return possible, grid

    def _join(self, v: int) -> int:
        size = self.sizes[v]
        seen = {v}
        for f in self.touching[v]:
            for u in self.tables[f].scope:
                if u not in seen:
                    seen.add(u)
                    size *= self.sizes[u]
            if size > self.max_join or len(seen) > MAX_SCOPE:
                return self.max_join + 1
        return size

    def _put(self, table: _Table) -> None:
        number = len(self.tables) + len(self.steps) + 1
        while number in self.tables:
            number += 1
        self.tables[number] = table
        for v in table.scope:
            self.touching[v].add(number)

    def _eliminate(self, group: tuple[int, ...]) -> list[int]:
        """Plans one step: for each labelling of the neighbours, which labels are allowed and what they add."""
        around = self._neighbours(group)
        possible, grid = self._possible(group)
        axis = {u: i for i, u in enumerate([*around, *group])}
        combos = np.flatnonzero(possible)
        static, derived = list[IntArray](), list[IntArray]()
        for f in sorted({f for v in group for f in self.touching[v]}):
            table = self.tables.pop(f)
            for u in table.scope:
                self.touching[u].discard(f)
            entry = strides(table.allowed.shape) @ grid[[axis[u] for u in table.scope]][:, combos]
            if not table.silent:
                (derived if table.derived else static).append(table.at + entry)
        n_inside = math.prod(self.sizes[v] for v in group)
        n_out = possible.size // n_inside
        self.steps.append((group, tuple(around)))
        self.combo_counts.append(np.bincount(combos // n_inside, minlength=n_out))
        labels = [self.graph.first[v] + grid[axis[v]][combos] for v in group]
        self.combo_label.append(labels[-1])
        self.combo_partner.append(labels[0] if len(group) > 1 else np.zeros_like(labels[0]))
        reads = static + derived
        self.reads.append(np.stack(reads, axis=1).ravel() if reads else ints(()))
        self.read_at.append(self.read_at[-1] + len(reads) * len(combos))
        self.n_static.append(len(static))
        self.n_derived.append(len(derived))
        at, self.n_entries = self.n_entries, self.n_entries + n_out
        self.out_first.append(self.n_entries)
        if around:
            allowed = np.asarray(possible.reshape(*(self.sizes[u] for u in around), n_inside).any(axis=-1))
            self._put(_Table(tuple(around), allowed, at, True, False))
        else:
            self.constants.append(at)
        return around

    def _finish(self, kept: list[int]) -> Reduction:
        graph = self.graph
        number = {v: i for i, v in enumerate(sorted(kept))}
        kept_first = offsets(self.sizes[v] for v in sorted(kept))
        keep_label = [np.arange(graph.first[v], graph.first[v + 1]) for v in sorted(kept)]
        parts, fold_from, fold_to = [], [], []
        for f, table in sorted(self.tables.items()):
            if len(table.scope) == 1 and table.derived:
                v = number[table.scope[0]]
                fold_from.append(np.arange(table.at, table.at + table.allowed.size))
                fold_to.append(np.arange(kept_first[v], kept_first[v + 1]))
                continue
            scope = tuple(number[v] for v in table.scope)
            values = np.where(table.allowed, 0.0, np.inf)
            part = FactorPart(scope, table.allowed.shape, values, f, start_at=table.start_at)
            parts.append((part, table))
        small = compile_graph(
            [self.sizes[v] for v in sorted(kept)],
            [number[v] for v in kept],
            [part for part, _ in parts],
            self._rows(number, kept_first),
        )
        small.table_at[:] = self._table_places(parts)
        plan = Plan.pack(
            variable=ints(group[-1] for group, _ in self.steps),
            partner=ints(group[0] if len(group) > 1 else -1 for group, _ in self.steps),
            out_first=ints(self.out_first),
            read_at=ints(self.read_at[:-1]),
            n_static=ints(self.n_static),
            n_derived=ints(self.n_derived),
            scope_first=offsets(len(scope) for _, scope in self.steps),
            scope=ints(v for _, scope in self.steps for v in scope),
            stride=ints(stride for _, scope in self.steps for stride in strides([self.sizes[v] for v in scope])),
            combo_first=offsets(np.concatenate(self.combo_counts)),
            combo_label=np.concatenate(self.combo_label),
            combo_partner=np.concatenate(self.combo_partner),
            reads=np.concatenate(self.reads),
            constant=ints(self.constants),
            keep=ints(sorted(kept)),
            keep_label=np.concatenate([ints(()), *keep_label]),
            fold_from=np.concatenate([ints(()), *fold_from]),
            fold_to=np.concatenate([ints(()), *fold_to]),
            copy_from=self._copied(parts),
        )
        return Reduction(plan, small)

    def _table_places(self, parts: Sequence[tuple[FactorPart, _Table]]) -> IntArray:
        """Derived tables stand first in the working space, then copies of the original ones that are left."""
        places, at = [], self.n_entries
        for _, table in parts:
            places.append(table.at if table.derived else at)
            at += 0 if table.derived else table.allowed.size
        return ints(places)

    def _copied(self, parts: Sequence[tuple[FactorPart, _Table]]) -> IntArray:
        blocks = [np.arange(t.at, t.at + t.allowed.size) for _, t in parts if not t.derived]
        return np.concatenate([ints(()), *blocks])

    def _rows(self, number: dict[int, int], kept_first: IntArray) -> list[RowPart]:
        graph = self.graph
        parts = []
        for r in range(len(graph.row_low)):
            weights = {}
            for c in range(graph.row_first[r], graph.row_first[r + 1]):
                v = int(graph.row_variable[c])
                label = int(kept_first[number[v]] + graph.row_label[c] - graph.first[v])
                weights[label] = float(graph.row_weight[c])
            parts.append(RowPart(weights, float(graph.row_low[r]), float(graph.row_high[r])))
        return parts

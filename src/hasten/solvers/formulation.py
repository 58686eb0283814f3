"""The integer program of a structure, in its strong form, as plain arrays.

A column for each label says whether it is chosen; those of one variable sum to one. Tables of one variable are part of
labels' costs. A larger table becomes *Hall rows* or *clauses* where it only forbids and these are as strong, and else
*tuple columns*: one for each allowed tuple; for each slot and label, those that have it sum to the label's column.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from hasten.kernels.layout import Graph
from hasten.solvers.objective import Objective
from hasten.solvers.rules import LARGE, LEAST, rule_rows, scaled_row
from hasten.support.arrays import BoolArray, FloatArray, IntArray

INTEGRAL = 1e-6  # how far from 0 or 1 a column may be
HallRow = tuple[tuple[int, ...], tuple[int, ...]]  # S and N(S)
PairRows = tuple[int, int, list[HallRow]]  # the slot of S, the slot of N(S), the rows


@dataclass(frozen=True, slots=True, eq=False)
class Formulation:
    """Columns: the labels, in the graph's order, then a column per tuple. All are between 0 and 1."""

    first: IntArray  # (variables + 1,) variable v owns the labels first[v]:first[v + 1]
    entry: IntArray  # (tuples,) which entry of the problem's tables each tuple column costs
    dead: BoolArray  # (columns,) labels that no tuple allows
    row_first: IntArray  # (rows + 1,) row r owns the cells row_first[r]:row_first[r + 1]
    column: IntArray  # (cells,)
    weight: FloatArray  # (cells,)
    low: FloatArray  # (rows,)
    high: FloatArray  # (rows,)

    @property
    def n_labels(self) -> int:
        """The number of labels: of the first columns, which are whole."""
        return int(self.first[-1])

    @property
    def n_columns(self) -> int:
        """The number of columns."""
        return len(self.dead)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.low)

    def columns_of(self, objective: Objective) -> tuple[FloatArray, BoolArray]:
        """Returns the cost of each column, and which may be chosen."""
        cost = np.concatenate([objective.label, objective.table[self.entry]])
        return cost, np.concatenate([objective.label_allowed, objective.table_allowed[self.entry]]) & ~self.dead

    def chosen(self, x: Any, within: float = INTEGRAL) -> IntArray | None:
        """Returns the labels whose columns are one, each variable's; None where some column is fractional."""
        z = np.array(x[: self.n_labels], dtype=np.float64)
        chosen = np.flatnonzero(z > 0.5)
        if len(chosen) != len(self.first) - 1:
            return None
        z[chosen] -= 1.0
        return None if np.abs(z).max() > within else chosen - self.first[:-1]

    def columns_chosen(self, labels: IntArray) -> FloatArray:
        """Returns the values of the labels' columns, given the label of each variable."""
        return np.bincount(self.first[:-1] + labels, minlength=self.n_labels).astype(np.float64)

    def arrays(self, whole: bool) -> dict[str, Any]:
        """Returns the program by the names of its arrays, the labels' columns whole or not (`highs_program`)."""
        integer = np.arange(self.n_columns) < (self.n_labels if whole else 0)
        return {
            "low": np.zeros(self.n_columns),
            "high": ~self.dead,
            "whole": integer,
            "row_first": self.row_first,
            "row_column": self.column,
            "row_weight": self.weight,
            "row_low": self.low,
            "row_high": self.high,
        }

    def scaled(self) -> Formulation:
        """Returns the same program for solvers that compute with floats, within tolerances: see `scaled_row`."""
        size = np.abs(self.weight)
        if size.min(initial=1.0) >= LEAST and size.max(initial=1.0) <= LARGE:
            return self
        weight, low, high = self.weight.copy(), self.low.copy(), self.high.copy()
        for r in range(self.n_rows):
            cells = slice(self.row_first[r], self.row_first[r + 1])
            weight[cells], low[r], high[r] = scaled_row(weight[cells], float(low[r]), float(high[r]))
        return replace(self, weight=weight, low=low, high=high)


def formulate(graph: Graph, cuts: Iterable[Sequence[int]] = ()) -> Formulation:
    """Returns the integer program of a structure. `cuts` are sets of labels that are not to be chosen all at once."""
    rows, n_labels = _Rows(), int(graph.first[-1])
    for v in range(len(graph.order)):
        rows.add(range(graph.first[v], graph.first[v + 1]), (), 1.0, 1.0)
    entries: list[int] = []
    dead = np.zeros(n_labels, dtype=bool)
    soft = set(graph.soft_at.tolist())  # whose tuples may cost something, if only in some problems
    hall: dict[int, tuple[list[PairRows], list[tuple[int, int]]] | None] = {}
    clauses: dict[int, IntArray | None] = {}
    for f in range(len(graph.table_at)):
        slots = slice(graph.scope_first[f], graph.scope_first[f + 1])
        starts = graph.first[graph.scope[slots]]
        at, listing = int(graph.table_at[f]), int(graph.listing[f])
        if at < 0 or len(starts) < 2:
            continue
        if at not in hall:
            hall[at] = None if at in soft else _hall_form(*_table(graph, f))
            clauses[at] = None if at in soft or hall[at] is not None else _clauses(*_table(graph, f))
        form = hall[at]
        if form is not None:
            for left, right, pairs in form[0]:
                for subset, needed in pairs:
                    rows.add(starts[left] + np.array(subset), starts[right] + np.array(needed), -np.inf, 0.0)
            dead[[starts[slot] + label for slot, label in form[1]]] = True
            continue
        forbidden = clauses[at]
        if forbidden is not None:
            for labels in forbidden:
                rows.add(starts + labels, (), -np.inf, len(starts) - 1.0)
            continue
        tuples = slice(graph.list_first[listing], graph.list_first[listing + 1])
        labels_at, n_tuples = int(graph.list_label_at[listing]), tuples.stop - tuples.start
        labels = graph.list_label[labels_at : labels_at + n_tuples * len(starts)].reshape(n_tuples, len(starts))
        first_column = n_labels + len(entries)
        entries.extend((at + graph.list_entry[tuples]).tolist())
        for slot, start in enumerate(starts):
            size = int(graph.first[graph.scope[slots][slot] + 1] - start)
            for label in range(size if slot == 0 else size - 1):  # the last label's row follows from the others
                chosen = first_column + np.flatnonzero(labels[:, slot] == label)
                rows.add(chosen, (start + label,), 0.0, 0.0)
    for r in range(len(graph.row_low)):
        for columns, weights, low, high in rule_rows(graph, r):
            if low > high:
                dead[:] = True
            else:
                rows.append(columns, weights, low, high)
    for cut in cuts:
        rows.add(cut, (), -np.inf, len(cut) - 1.0)
    return rows.joined(graph.first, np.array(entries, dtype=np.int64), dead)


def hall_rows(allowed: BoolArray, limit: int) -> list[HallRow] | None:
    """Returns S and N(S) for each connected set of the first axis' labels; None if above `limit` in all.

    N(S) are the labels that some member of S allows. Two variables have the marginals x and y of some mixture of
    allowed pairs iff x(S) <= y(N(S)) for every S: Hall's condition. Sets that fall apart are sums of others.
    Labels that allow nothing, or that nothing allows, are not mentioned.
    """
    neighbours = [sum(1 << int(j) for j in np.flatnonzero(row)) for row in allowed]
    alive = [i for i, near in enumerate(neighbours) if near]
    everything = sum(1 << int(j) for j in np.flatnonzero(allowed.any(axis=0)))
    found: dict[int, None] = {}  # in the order found
    waiting = [neighbours[i] for i in reversed(alive)]
    while waiting:
        needed = waiting.pop()
        if needed in found or needed == everything:
            continue
        found[needed] = None
        if len(found) > limit:
            return None
        waiting += [needed | neighbours[i] for i in alive if neighbours[i] & needed and neighbours[i] & ~needed]
    n_labels = allowed.shape[1]
    return [
        (
            tuple(i for i in alive if not neighbours[i] & ~needed),
            tuple(j for j in range(n_labels) if needed >> j & 1),
        )
        for needed in found
    ]


def _table(graph: Graph, f: int) -> tuple[FloatArray, tuple[int, ...]]:
    scope = graph.scope[graph.scope_first[f] : graph.scope_first[f + 1]]
    shape = tuple(int(graph.first[v + 1] - graph.first[v]) for v in scope)
    return graph.table[graph.table_at[f] : graph.table_at[f] + int(np.prod(shape))], shape


def _hall_form(table: FloatArray, shape: tuple[int, ...]) -> tuple[list[PairRows], list[tuple[int, int]]] | None:
    """Returns a table's Hall rows and the (slot, label)s that no tuple allows; None without such a form."""
    allowed = np.isfinite(table).reshape(shape)
    if allowed.all() or table[np.isfinite(table)].any():
        return None
    best: list[PairRows] | None = None
    limit = int(allowed.sum())  # more rows than tuples would be no gain
    for pivot in range(len(shape)):
        form = _star(allowed, pivot, limit)
        if form is not None:
            n_rows = sum(len(rows) for _, _, rows in form)
            if n_rows <= limit:
                best, limit = form, n_rows - 1
    if best is None:
        return None
    dead = [
        (slot, int(label))
        for slot in range(len(shape))
        for label in np.flatnonzero(~allowed.any(axis=_others(shape, slot)))
    ]
    return best, dead


def _clauses(table: FloatArray, shape: tuple[int, ...]) -> IntArray | None:
    """Returns the tuples that a table forbids, if no two of them differ in a single slot; None without such a form."""
    forbidden = np.isinf(table).reshape(shape)
    if not forbidden.any() or table[np.isfinite(table)].any():
        return None
    alone = all((forbidden.sum(axis=slot) <= 1).all() for slot in range(len(shape)))
    return np.argwhere(forbidden) if alone else None


def _star(allowed: BoolArray, pivot: int, limit: int) -> list[PairRows] | None:
    """Returns the Hall rows between a pivot and each other slot, if it makes the others independent."""
    together = np.ones_like(allowed)
    form: list[PairRows] = []
    for slot in range(allowed.ndim):
        if slot == pivot:
            continue
        pairs = allowed.any(axis=_others(allowed.shape, slot, pivot), keepdims=True)
        together &= pairs
        matrix = pairs.reshape(allowed.shape[min(slot, pivot)], allowed.shape[max(slot, pivot)])
        left, right = min(slot, pivot), max(slot, pivot)
        sides = [
            (first, second, rows)
            for first, second, each in ((left, right, matrix), (right, left, matrix.T))
            if (rows := hall_rows(each, limit)) is not None
        ]
        if not sides:
            return None
        form.append(min(sides, key=lambda side: len(side[2])))
    return form if np.array_equal(together, allowed) else None


def _others(shape: tuple[int, ...], *slots: int) -> tuple[int, ...]:
    return tuple(axis for axis in range(len(shape)) if axis not in slots)


class _Rows:
    """Rows, gathered; one that is there already is not added again."""

    def __init__(self) -> None:
        self.rows: dict[tuple[tuple[int, ...], tuple[float, ...], float, float], None] = {}

    def add(self, plus: Iterable[int], minus: Iterable[int], low: float, high: float) -> None:
        ones, negative = list(map(int, plus)), list(map(int, minus))
        self.append([*ones, *negative], [1.0] * len(ones) + [-1.0] * len(negative), low, high)

    def append(self, columns: Iterable[int], weights: Iterable[float], low: float, high: float) -> None:
        self.rows[tuple(map(int, columns)), tuple(map(float, weights)), float(low), float(high)] = None

    def joined(self, first: IntArray, entry: IntArray, dead: BoolArray) -> Formulation:
        sizes = [len(columns) for columns, _, _, _ in self.rows]
        return Formulation(
            first,
            entry,
            np.concatenate([dead, np.zeros(len(entry), dtype=bool)]),
            np.concatenate([[0], np.cumsum(np.array(sizes, dtype=np.int64))]).astype(np.int64),
            np.fromiter(chain.from_iterable(row[0] for row in self.rows), dtype=np.int64),
            np.fromiter(chain.from_iterable(row[1] for row in self.rows), dtype=np.float64),
            np.array([row[2] for row in self.rows], dtype=np.float64),
            np.array([row[3] for row in self.rows], dtype=np.float64),
        )

"""Rows over few variables as tables: all rows of one scope are one table, whichever way they were written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from hasten.programs.labels import Cells, Space, keep_rows, scopes
from hasten.programs.statement import Statement
from hasten.support.arrays import BoolArray, FloatArray, IntArray, sizes_of

MAX_ENTRIES = 512  # of a table made of rows, by default
MAX_PAIR = 16_384  # of one over two variables
MAX_ARITY = 8
Scope = tuple[int, ...]


@dataclass(slots=True)
class Tables:
    """Tables by their scopes, sorted, and the names of what each was made of."""

    table: dict[Scope, FloatArray] = field(default_factory=dict)  # equal ones are one array
    name: dict[Scope, str] = field(default_factory=dict)
    n_rows: int = 0  # that became tables
    _arrays: dict[tuple[Scope, bytes], FloatArray] = field(default_factory=dict)

    def add(self, scope: Scope, costs: FloatArray, name: str) -> None:
        """Adds costs to what there is for a scope, whose variables come in any order."""
        order = np.argsort(scope)
        scope, costs = tuple(scope[i] for i in order), costs.transpose(order)
        known = self.table.get(scope)
        costs = np.ascontiguousarray(costs if known is None else known + costs)
        self.table[scope] = self._arrays.setdefault((costs.shape, costs.tobytes()), costs.copy())
        self.name.setdefault(scope, name)


def small_rows(space: Space, cells: Cells) -> BoolArray:
    """Returns which rows are over so few variables that they become tables."""
    first, variable = scopes(space, cells)
    arity = sizes_of(first)
    entries = np.exp(
        np.bincount(np.arange(cells.n_rows).repeat(arity), np.log(sizes_of(space.first)[variable]), cells.n_rows)
    )
    small = (arity <= MAX_ARITY) & (entries <= MAX_ENTRIES + 0.5)
    return np.asarray(small | ((arity == 2) & (entries <= MAX_PAIR + 0.5)))


def rows_to_tables(space: Space, cells: Cells, names: tuple[str, ...], tables: Tables) -> Cells:
    """Makes tables of the rows over few variables, and returns the other rows."""
    small = small_rows(space, cells)
    for rows, scope, allowed in tabulated(space, cells, small):
        _merge(cells, names, rows, scope, allowed, tables)
    tables.n_rows += int(small.sum())
    return keep_rows(cells, ~small)


def tabulated(space: Space, cells: Cells, which: BoolArray) -> Iterator[tuple[IntArray, IntArray, BoolArray]]:
    """Yields some rows, part by part, with their scopes and which label tuples each allows.

    Those of a part have scopes of one shape, and those of one scope stand together.
    """
    first, variable = scopes(space, cells)
    arity = sizes_of(first)
    for size in np.unique(arity[which]).tolist():
        rows = np.flatnonzero(which & (arity == size))
        scope = variable[first[rows][:, None] + np.arange(size)]  # (rows, size)
        shapes = sizes_of(space.first)[scope]
        shape_list, shape_of = np.unique(shapes, axis=0, return_inverse=True)
        for s, shape in enumerate(shape_list.tolist()):
            some = np.flatnonzero(shape_of.ravel() == s)
            per_row = max(1, int(np.prod(shape)))
            some = some[np.lexsort(scope[some].T[::-1])]
            for part in np.array_split(some, max(1, len(some) * per_row // 4_000_000)):
                yield rows[part], scope[part], _allowed(space, cells, rows[part], scope[part], tuple(shape))


def _merge(
    cells: Cells, names: tuple[str, ...], rows: IntArray, scope: IntArray, allowed: BoolArray, tables: Tables
) -> None:
    """Adds the tables of rows whose scopes have one shape; rows of one scope stand together."""
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (scope[1:] != scope[:-1]).any(axis=1)
    at = np.flatnonzero(new)
    merged = np.logical_and.reduceat(allowed, at, axis=0)
    costs = np.where(merged, 0.0, np.inf)
    for n, start in enumerate(at.tolist()):
        tables.add(tuple(scope[start].tolist()), costs[n], names[cells.source[rows[start]]])


def _allowed(space: Space, cells: Cells, rows: IntArray, scope: IntArray, shape: Scope) -> BoolArray:
    """Returns which label tuples each of some rows allows."""
    number = np.full(cells.n_rows, -1)
    number[rows] = np.arange(len(rows))
    some = number[cells.row] >= 0
    row, label, weight = number[cells.row[some]], cells.label[some], cells.weight[some]
    variable = space.variable[label]
    slot = (scope[row] == variable[:, None]).argmax(axis=1)
    total = np.zeros((len(rows), *shape))
    for s, size in enumerate(shape):
        here = slot == s
        added = np.zeros((len(rows), size))
        added[row[here], label[here] - space.first[variable[here]]] = weight[here]
        total += added.reshape(len(rows), *(size if axis == s else 1 for axis in range(len(shape))))
    wide = (-1, *[1] * len(shape))
    noise = np.where(cells.whole[rows], 0.0, 1e-12).reshape(wide) * np.abs(total).max(initial=0.0)
    least, most = cells.least[rows].reshape(wide) - noise, cells.most[rows].reshape(wide) + noise
    return np.asarray((total >= least) & (total <= most))


def products_to_tables(program: Statement, space: Space, base: FloatArray, tables: Tables) -> float:
    """Adds the products of an objective to tables, or to the costs of labels; returns what is constant."""
    products, sign, constant = program.products, -1.0 if program.maximize else 1.0, 0.0
    if not len(products.left):
        return 0.0
    by_column = np.argsort(space.column, kind="stable")
    first = np.searchsorted(space.column[by_column], np.arange(program.n_columns + 1))
    variable = space.variable
    for i, j, weight in zip(products.left.tolist(), products.right.tolist(), products.weight.tolist(), strict=True):
        of_i, of_j = by_column[first[i] : first[i + 1]], by_column[first[j] : first[j + 1]]
        weight *= sign
        if not of_i.size and not of_j.size:
            constant += weight * space.fixed[i] * space.fixed[j]
        elif not of_i.size or not of_j.size:
            labels, other = (of_j, i) if of_j.size else (of_i, j)
            base[labels] += weight * space.fixed[other] * space.value[labels]
        elif variable[of_i[0]] == variable[of_j[0]]:
            if i == j:
                base[of_i] += weight * space.value[of_i] ** 2  # two columns of one variable are never both 1
        else:
            scope = int(variable[of_i[0]]), int(variable[of_j[0]])
            left, right = (np.zeros(int(space.first[v + 1] - space.first[v])) for v in scope)
            left[of_i - space.first[scope[0]]] = space.value[of_i]
            right[of_j - space.first[scope[1]]] = space.value[of_j]
            tables.add(scope, weight * np.outer(left, right), "products")
    return constant


def given_tables(program: Statement, space: Space, origin: FloatArray, base: FloatArray, tables: Tables) -> float:
    """Adds the tables that a program states to tables, or to the costs of labels; returns what is constant.

    `origin` holds the value of each column that its axes begin with.
    """
    constant, variable = 0.0, space.variable
    by_column = np.argsort(space.column, kind="stable")
    first = np.searchsorted(space.column[by_column], np.arange(program.n_columns + 1))
    for t, table in enumerate(program.tables):
        costs, scope = table.costs, list[int]()
        for axis, j in reversed(list(enumerate(table.scope))):
            labels = by_column[first[j] : first[j + 1]]
            values = space.value[labels] if labels.size else space.fixed[[j]]
            costs = costs.take((values - origin[j]).astype(np.int64), axis=axis)
            if labels.size:
                scope.insert(0, int(variable[labels[0]]))
            else:
                costs = costs.squeeze(axis)
        if not scope:
            constant += float(costs)
        elif len(scope) == 1:
            base[space.first[scope[0]] : space.first[scope[0] + 1]] += costs
        else:
            tables.add(tuple(scope), costs, f"table {t}")
    return constant

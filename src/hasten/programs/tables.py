"""Rows over few variables, products and given tables as tables: all rows of one scope are one table."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hasten.programs.labels import Shares
from hasten.programs.state import Cells, Recognised, Scope, Space
from hasten.support.arrays import BoolArray, IntArray, offsets, sizes_of

MAX_ENTRIES = 512  # of a table made of rows, by default
MAX_PAIR = 16_384  # of one over two variables
MAX_ARITY = 8


def scopes(space: Space, cells: Cells) -> tuple[IntArray, IntArray]:
    """Returns where each row's variables start, and the variables."""
    shares = Shares(space, cells)
    return offsets(np.bincount(shares.row, minlength=cells.n_rows)), shares.variable


def small_rows(space: Space, cells: Cells) -> BoolArray:
    """Returns which rows are over so few variables that they become tables."""
    first, variable = scopes(space, cells)
    arity = sizes_of(first)
    sizes = np.bincount(np.arange(cells.n_rows).repeat(arity), np.log(space.sizes[variable]), cells.n_rows)
    entries = np.exp(sizes)
    small = (arity <= MAX_ARITY) & (entries <= MAX_ENTRIES + 0.5)
    return np.asarray(small | ((arity == 2) & (entries <= MAX_PAIR + 0.5)))


def tabulate_rows(found: Recognised) -> None:
    """Makes tables of the rows over few variables; cliques, which come last, and other rows stay rules."""
    cells, names = found.rules, found.statement.rows
    small = small_rows(found.space, cells)
    small[cells.n_rows - found.n_cliques :] = False
    for rows, scope, allowed in tabulated(found.space, cells, small):
        new = np.ones(len(rows), dtype=bool)
        new[1:] = (scope[1:] != scope[:-1]).any(axis=1)
        at = np.flatnonzero(new)
        costs = np.where(np.logical_and.reduceat(allowed, at, axis=0), 0.0, np.inf)
        for n, start in enumerate(at.tolist()):
            found.tables.add(tuple(scope[start].tolist()), costs[n], names[cells.source[rows[start]]])
    found.tables.n_rows, found.rules = int(small.sum()), cells.only_rows(~small)


def tabulated(space: Space, cells: Cells, which: BoolArray) -> Iterator[tuple[IntArray, IntArray, BoolArray]]:
    """Yields some rows, part by part, with their scopes and which label tuples each allows.

    The rows of a part have scopes of one shape, and rows of one scope stand together.
    """
    first, variable = scopes(space, cells)
    arity = sizes_of(first)
    for size in np.unique(arity[which]).tolist():
        rows = np.flatnonzero(which & (arity == size))
        scope = variable[first[rows][:, None] + np.arange(size)]  # (rows, size)
        shape_list, shape_of = np.unique(space.sizes[scope], axis=0, return_inverse=True)
        for s, shape in enumerate(shape_list.tolist()):
            some = np.flatnonzero(shape_of.ravel() == s)
            some = some[np.lexsort(scope[some].T[::-1])]
            per_row = max(1, int(np.prod(shape)))
            for part in np.array_split(some, max(1, len(some) * per_row // 4_000_000)):
                yield rows[part], scope[part], _allowed(space, cells, rows[part], scope[part], tuple(shape))


def _allowed(space: Space, cells: Cells, rows: IntArray, scope: IntArray, shape: Scope) -> BoolArray:
    """Returns which label tuples each of some rows allows."""
    number = np.full(cells.n_rows, -1)
    number[rows] = np.arange(len(rows))
    some = cells.only(number[cells.row] >= 0)
    row, variable = number[some.row], space.variable[some.label]
    slot = (scope[row] == variable[:, None]).argmax(axis=1)
    total = np.zeros((len(rows), *shape))
    for s, size in enumerate(shape):
        here = slot == s
        added = np.zeros((len(rows), size))
        added[row[here], some.label[here] - space.first[variable[here]]] = some.weight[here]
        total += added.reshape(len(rows), *(size if axis == s else 1 for axis in range(len(shape))))
    wide = (-1, *[1] * len(shape))
    noise = np.where(cells.whole[rows], 0.0, 1e-12).reshape(wide) * np.abs(total).max(initial=0.0)
    least, most = cells.least[rows].reshape(wide) - noise, cells.most[rows].reshape(wide) + noise
    return np.asarray((total >= least) & (total <= most))


def add_products(found: Recognised) -> None:
    """Adds the products of the objective to tables, to the costs of labels, or to the constant."""
    program, space, base = found.statement, found.space, found.base
    products, sign = program.products, -1.0 if program.maximize else 1.0
    for i, j, weight in zip(products.left.tolist(), products.right.tolist(), products.weight.tolist(), strict=True):
        of_i, of_j = space.of_column(i), space.of_column(j)
        weight *= sign
        if not of_i.size and not of_j.size:
            found.constant += weight * space.fixed[i] * space.fixed[j]
        elif not of_i.size or not of_j.size:
            labels, other = (of_j, i) if of_j.size else (of_i, j)
            base[labels] += weight * space.fixed[other] * space.value[labels]
        elif space.variable[of_i[0]] == space.variable[of_j[0]]:
            if i == j:
                base[of_i] += weight * space.value[of_i] ** 2  # two columns of one variable are never both 1
        else:
            scope = int(space.variable[of_i[0]]), int(space.variable[of_j[0]])
            left, right = (np.zeros(int(space.sizes[v])) for v in scope)
            left[of_i - space.first[scope[0]]] = space.value[of_i]
            right[of_j - space.first[scope[1]]] = space.value[of_j]
            found.tables.add(scope, weight * np.outer(left, right), "products")


def add_given_tables(found: Recognised) -> None:
    """Adds the tables that the program states to tables, to the costs of labels, or to the constant."""
    space, constant = found.space, 0.0
    for t, table in enumerate(found.statement.tables):
        costs, scope = table.costs, list[int]()
        for axis, j in reversed(list(enumerate(table.scope))):
            labels = space.of_column(j)
            values = space.value[labels] if labels.size else space.fixed[[j]]
            costs = costs.take((values - found.origin[j]).astype(np.int64), axis=axis)
            if labels.size:
                scope.insert(0, int(space.variable[labels[0]]))
            else:
                costs = costs.squeeze(axis)
        if not scope:
            constant += float(costs)
        elif len(scope) == 1:
            found.base[space.first[scope[0]] : space.first[scope[0] + 1]] += costs
        else:
            found.tables.add(tuple(scope), costs, f"table {t}")
    found.constant += constant

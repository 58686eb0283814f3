"""Rows over few variables, products and given tables as tables; rows over pairs that exclude each other as one rule.

Pairs are weak: each variable may be half of what it must not be. A rule that at most one of all of them is chosen
leaves a proof little to do. Rules keep variables from being eliminated, so only variables that have other rules are
looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hasten.programs.labels import Shares
from hasten.programs.state import Cells, Recognised, Scope, Space
from hasten.proof.elimination.cliques import MAX_PAIRS, Exclusions, Node
from hasten.proof.sweep.multipliers import MAX_COUNT
from hasten.support.arrays import BoolArray, FloatArray, IntArray, ints, offsets, sizes_of

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
    products = program.products
    for i, j, weight in zip(products.left.tolist(), products.right.tolist(), products.weight.tolist(), strict=True):
        of_i, of_j = space.of_column(i), space.of_column(j)
        weight *= program.sign
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


@dataclass(frozen=True, slots=True, eq=False)
class Clique:
    """Labels of different variables: at most one variable has one of its own."""

    nodes: list[Node]
    rows: list[int]  # that say so of pairs


def merge_pairs(found: Recognised) -> None:
    """Puts a rule for each clique in place of the rows that say the same of pairs, behind the other rows."""
    cells = found.rules
    cliques = find_cliques(found.space, cells)
    kept = np.ones(cells.n_rows, dtype=bool)
    kept[[row for clique in cliques for row in clique.rows]] = False
    found.rules = cells.only_rows(kept).joined(_clique_cells(found.space, cells, cliques))
    found.n_merged, found.n_cliques = int((~kept).sum()), len(cliques)


def find_cliques(space: Space, cells: Cells) -> list[Clique]:
    """Returns cliques that save more tables than they add rules; a row of several that make a table counts in part."""
    tabled, (first, variable) = small_rows(space, cells), scopes(space, cells)
    ruled = np.zeros(space.n_variables, dtype=bool)
    ruled[variable[~tabled.repeat(sizes_of(first))]] = True
    pairs = tabled & (sizes_of(first) == 2)
    left, right = variable[first[:-1][pairs]], variable[first[:-1][pairs] + 1]
    some = ruled[left] & ruled[right]
    pairs[pairs] = some
    if not 3 <= pairs.sum() <= MAX_PAIRS:
        return []
    scope = left[some] * space.n_variables + right[some]
    _, scope_of, count = np.unique(scope, return_inverse=True, return_counts=True)
    share = np.zeros(cells.n_rows)
    share[pairs] = 1.0 / count[scope_of.ravel()]
    return _worthwhile(_exclusions(space, cells, pairs), share)


def _exclusions(space: Space, cells: Cells, pairs: BoolArray) -> Exclusions:
    found = Exclusions()
    for rows, scope, allowed in tabulated(space, cells, pairs):
        forbidden = ~allowed
        left, right = np.asarray(forbidden.any(axis=2)), np.asarray(forbidden.any(axis=1))
        alike = (forbidden == left[:, :, None] & right[:, None, :]).all(axis=(1, 2)) & left.any(axis=1)
        for n in np.flatnonzero(alike).tolist():
            v, u = space.first[scope[n]].tolist()
            found.add(_node(v, left[n]), _node(u, right[n]), int(rows[n]))
    return found


def _node(first: int, chosen: BoolArray) -> Node:
    """Returns the chosen labels of a variable, given its first one."""
    return tuple((first + np.flatnonzero(chosen)).tolist())


def _worthwhile(pairs: Exclusions, share: FloatArray) -> list[Clique]:
    """Returns cliques of three or more, each pair in the first that was found with it."""
    found: list[Clique] = []
    covered: set[tuple[int, int]] = set()
    names = list(pairs.nodes)
    for a, b in pairs.rows:
        if (a, b) in covered:
            continue
        clique = pairs.largest_around(a, b)
        new = [(c, d) for c in clique for d in clique if c < d and (c, d) not in covered]
        rows = [row for pair in new for row in pairs.rows[pair]]
        if len(clique) >= 3 and share[rows].sum() > 1.0:
            covered.update(new)
            found.append(Clique([names[node] for node in clique], rows))
    return found


def _clique_cells(space: Space, cells: Cells, cliques: list[Clique]) -> Cells:
    """Returns a row for each clique: it counts the variables that have one of its labels, or that have none."""
    label: list[int] = []
    least, most, sizes = [], [], []
    for clique in cliques:
        chosen, k = sorted(at for node in clique.nodes for at in node), len(clique.nodes)
        variables = [int(space.variable[node[0]]) for node in clique.nodes]
        others = sorted({at for v in variables for at in range(space.first[v], space.first[v + 1])}.difference(chosen))
        inverted = len(others) < len(chosen) and k <= MAX_COUNT
        label += others if inverted else chosen
        sizes.append(len(others) if inverted else len(chosen))
        least.append(k - 1.0 if inverted else -np.inf)
        most.append(np.inf if inverted else 1.0)
    n = len(cliques)
    source = cells.source[[clique.rows[0] for clique in cliques]]
    row, whole = np.arange(n).repeat(ints(sizes)), np.ones(n, dtype=bool)
    return Cells(row, ints(label), np.ones(len(label)), np.array(least), np.array(most), whole, source)

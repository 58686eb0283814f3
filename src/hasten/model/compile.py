"""From flat lists of scopes, tables and rows to the fields of a `Graph`.

Nothing here loops over factors, labels or cells: what all factors of a kind have in common is worked out once for
each schema (`hasten.model.moulds`), and the rest is arithmetic on whole arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.kernels.layout import Graph
from hasten.kernels.tolerance import EPS, SLACK
from hasten.model.moulds import NO_INTS, Fields
from hasten.support.arrays import BoolArray, FloatArray, IntArray, all_of, offsets, sizes_of, stable_order

ROW_FIELDS = (
    *("row_first", "row_label", "row_variable", "row_weight", "row_low", "row_high", "row_least", "row_most"),
    *("row_counts", "cell_first", "cell_row", "cell_weight", "link_first", "link_row", "link_low", "link_high"),
    *("range_low", "range_high", "row_margin"),
)
EXACT = 2.0**53  # sums of whole numbers below this are exact
NOISE = 1e-9  # how far, relatively, a limit may be from the whole number that it stands for


class Rows(NamedTuple):
    """The rows to compile: the terms of row `r` are `first[r]:first[r + 1]`, in any order, some perhaps twice."""

    first: IntArray  # (R + 1,)
    label: IntArray  # (terms,) label numbers
    weight: FloatArray  # (terms,)
    low: FloatArray  # (R,)
    high: FloatArray  # (R,)


def compile_graph(variables: Fields, factors: Fields, rows: Fields) -> Graph:
    """Returns the graph with some variables, factors and rows."""
    return Graph.pack(**variables, **factors, **rows)


def compile_variables(first: IntArray, order: IntArray) -> Fields:
    """Returns the fields of variables that own the labels `first` and are searched in `order`."""
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    return {"first": first, "order": order, "position": position}


def compile_factors(variables: Fields, scope: IntArray, factors: Fields) -> Fields:
    """Returns the fields of factors, given those of their variables, who these are, and what is cast of the factors."""
    order, position = variables["order"], variables["position"]
    starts, table_at, n_variables = factors["scope_first"][:-1], factors["table_at"], len(order)
    step = position[scope]
    completed_at = np.maximum.reduceat(step, starts)
    before_last = np.maximum.reduceat(np.where(step < completed_at[factors["factor_of"]], step, -1), starts)
    opened = ((before_last >= 0) & (table_at >= 0)).nonzero()[0]
    opened_at = before_last[opened]
    return {
        **factors,
        "scope": scope,
        "done_first": _starts(completed_at, n_variables),
        "done": stable_order(completed_at, n_variables),
        "open_first": _starts(opened_at, n_variables),
        "open": opened[stable_order(opened_at, n_variables)],
        "last": order[completed_at],
        "touch_first": _starts(scope, n_variables),
        "touch": stable_order(scope, n_variables),
    }


class _Cells(NamedTuple):
    """The cells of all rows: sorted by row and label, each once, without those that add nothing."""

    first: IntArray  # (R + 1,) where those of each row start
    row: IntArray
    label: IntArray
    variable: IntArray
    weight: FloatArray


def compile_rows(variables: Fields, rows: Rows) -> Fields:
    """Returns the fields of some rows, given those of their variables."""
    first, n_rows = variables["first"], len(rows.low)
    n_labels = int(first[-1])
    if not n_rows:
        return no_rows(len(first) - 1, n_labels)
    cells = _cells(first, rows)
    by_label = stable_order(cells.label, n_labels)
    whole = counts = np.ones(n_rows, dtype=bool)
    one = cells.weight == 1.0
    if not all_of(one):
        counts = np.bincount(cells.row[~one], minlength=n_rows) == 0
        broken = cells.weight != np.rint(cells.weight)
        if broken.any():
            whole = np.bincount(cells.row[broken], minlength=n_rows) == 0
    return {
        "row_first": cells.first,
        "row_label": cells.label,
        "row_variable": cells.variable,
        "row_weight": cells.weight,
        "row_low": rows.low,
        "row_high": rows.high,
        "row_least": row_limits(rows.low, whole, -1),
        "row_most": row_limits(rows.high, whole, 1),
        "row_counts": counts,
        "cell_first": _starts(cells.label, n_labels),
        "cell_row": cells.row[by_label],
        "cell_weight": cells.weight[by_label],
        **_links(first, cells, whole),
    }


def no_rows(n_variables: int, n_labels: int) -> Fields:
    """Returns the fields of a graph without rows."""
    starts = {"row_first": 0, "cell_first": n_labels, "link_first": n_variables}
    return dict.fromkeys(ROW_FIELDS, NO_INTS) | {name: np.zeros(n + 1, dtype=np.int64) for name, n in starts.items()}


def _starts(group: IntArray, n: int) -> IntArray:
    """Returns where each of `n` groups starts once things are sorted by theirs, and where the last one ends."""
    return offsets(np.bincount(group, minlength=n))


def _is_new(number: IntArray) -> BoolArray:
    """Returns which numbers, of sorted ones, are the first of their kind."""
    new = np.ones(len(number), dtype=bool)
    np.not_equal(number[1:], number[:-1], out=new[1:])
    return new


def _cells(first: IntArray, rows: Rows) -> _Cells:
    n_labels, n_rows, sizes = int(first[-1]), len(rows.low), sizes_of(first)
    row_first, label, weight = rows.first, rows.label, rows.weight
    row = np.arange(n_rows).repeat(sizes_of(row_first))
    number = row * n_labels + label
    if not all_of(number[1:] > number[:-1]):
        by_number = stable_order(number, n_rows * n_labels)
        number, label, weight = number[by_number], label[by_number], weight[by_number]  # each row stays where it is
        new = _is_new(number)
        if not all_of(new):
            terms, weight = weight, np.zeros(np.count_nonzero(new))
            np.add.at(weight, new.cumsum() - 1, terms)  # in their order
            row, label = row[new], label[new]
    if not all_of(weight != 0.0):
        some = weight.nonzero()[0]
        row, label, weight = row[some], label[some], weight[some]
    if len(row) < len(rows.label):
        row_first = _starts(row, n_rows)
    return _Cells(row_first, row, label, np.arange(len(sizes)).repeat(sizes)[label], weight)


def _links(first: IntArray, cells: _Cells, whole: BoolArray) -> Fields:
    """Returns the links of variables to rows, and what rows can come to."""
    n_rows, sizes = len(whole), sizes_of(first)
    n_variables = len(sizes)
    row, variable, low, high, n_cells = cells.row, cells.variable, cells.weight, cells.weight, len(cells.row)
    new = _is_new(row * n_variables + variable)
    each: IntArray | int = 1  # cells of a variable in a row
    if not all_of(new):
        at = new.nonzero()[0]
        row, variable, each = row[at], variable[at], sizes_of(np.concatenate((at, [n_cells])))
        low, high = np.minimum.reduceat(low, at), np.maximum.reduceat(high, at)
    others = each < sizes[variable]  # whether a variable has labels that add nothing
    if all_of(others):
        low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    else:
        low, high = np.where(others & (low > 0.0), 0.0, low), np.where(others & (high < 0.0), 0.0, high)
    by_variable = stable_order(variable, n_variables)
    return {
        "link_first": _starts(variable, n_variables),
        "link_row": row[by_variable],
        "link_low": low[by_variable],
        "link_high": high[by_variable],
        "range_low": np.bincount(row, low, n_rows),
        "range_high": np.bincount(row, high, n_rows),
        "row_margin": _margins(row, low, high, whole),
    }


def _margins(row: IntArray, low: FloatArray, high: FloatArray, whole: BoolArray) -> FloatArray:
    """Returns how far rounding can put what rows can come to off, given the row and the range of each link."""
    n_rows, size = len(whole), np.maximum(-low, high)
    if all_of(whole) and size.max(initial=0.0) * len(size) < EXACT:
        return np.zeros(n_rows)
    sizes, n_links = np.bincount(row, size, n_rows), np.bincount(row, minlength=n_rows)
    return np.where(whole & (sizes < EXACT), 0.0, 8 * EPS * (n_links + 4) * sizes)


def row_limits(limits: FloatArray, whole: BoolArray, side: int) -> FloatArray:
    """Returns how far rows may go to one side of their limits.

    A sum of whole weights stops at the last whole number within the limit, which may be off by what writing it as a
    float takes; others have the slack of a solver.
    """
    nearest = np.rint(limits)
    if all_of(whole) and all_of(nearest == limits):
        return nearest + 0.0  # no negative zero
    size = np.maximum(1.0, np.abs(limits))
    with np.errstate(invalid="ignore"):  # inf - inf
        meant = np.abs(limits - nearest) <= np.minimum(SLACK, NOISE * size)
    stop = np.where(meant, nearest, np.floor(limits) if side > 0 else np.ceil(limits))
    return np.where(whole, stop, limits + side * SLACK * size) + 0.0


def is_forest(graph: Graph) -> bool:
    """Whether the tables join variables without ever going round in a circle."""
    if not graph.table_at.size or int((sizes_of(graph.scope_first) - 1).sum()) >= len(graph.order):
        return False
    above = list(range(len(graph.order)))  # of each variable, one of its tree; itself at the top
    scopes, firsts = graph.scope.tolist(), graph.scope_first.tolist()
    for f, at in enumerate(graph.table_at.tolist()):
        tops = []
        for v in scopes[firsts[f] : firsts[f + 1]] if at >= 0 else ():
            while above[v] != v:
                above[v] = v = above[above[v]]
            tops.append(v)
        if len(set(tops)) < len(tops):
            return False
        for v in tops:
            above[v] = tops[0]
    return True

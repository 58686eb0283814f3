"""From flat lists of scopes, tables and rows to the fields of a `Graph`.

Nothing here loops over factors, labels or cells: what all factors of a kind have in common is worked out once for
each schema (`hasten.model.moulds`), rows are made of terms by a kernel (`hasten.kernels.cells`), and the rest is
arithmetic on whole arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.kernels.cells import row_fields
from hasten.kernels.layout import Graph
from hasten.kernels.tolerance import SLACK
from hasten.model.moulds import NO_FLOATS, NO_INTS, Fields
from hasten.support.arrays import BoolArray, FloatArray, IntArray, all_of, offsets, sizes_of, stable_order

ROW_FIELDS = (
    *("row_first", "row_label", "row_variable", "row_weight", "row_low", "row_high", "row_least", "row_most"),
    *("row_counts", "cell_first", "cell_row", "cell_weight", "link_first", "link_row", "link_low", "link_high"),
    *("range_low", "range_high", "row_margin"),
)
NOISE = 1e-9  # how far, relatively, a limit may be from the whole number that it stands for


class Rows(NamedTuple):
    """The rows to compile: the terms of row `r` are `first[r]:first[r + 1]`, in any order, some perhaps twice."""

    first: IntArray  # (R + 1,)
    label: IntArray  # (terms,) label numbers
    weight: FloatArray  # (terms,)
    low: FloatArray  # (R,)
    high: FloatArray  # (R,)

    def then(self, other: Rows) -> Rows:
        """Returns these, then others."""
        if not len(self.low):
            return other
        return Rows(
            np.concatenate([self.first, self.first[-1] + other.first[1:]]),
            np.concatenate([self.label, other.label]),
            np.concatenate([self.weight, other.weight]),
            np.concatenate([self.low, other.low]),
            np.concatenate([self.high, other.high]),
        )


NO_ROWS = Rows(offsets(()), NO_INTS, NO_FLOATS, NO_FLOATS, NO_FLOATS)


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


def compile_rows(variables: Fields, rows: Rows) -> Fields:
    """Returns the fields of some rows, given those of their variables."""
    first, n_rows = variables["first"], len(rows.low)
    n_labels = int(first[-1])
    if not n_rows:
        return no_rows(len(first) - 1, n_labels)
    fields: Fields = row_fields(first, rows.first, rows.label, rows.weight)
    whole = fields.pop("row_whole").astype(bool)
    return fields | {
        "row_low": rows.low,
        "row_high": rows.high,
        "row_least": row_limits(rows.low, whole, -1),
        "row_most": row_limits(rows.high, whole, 1),
    }


def no_rows(n_variables: int, n_labels: int) -> Fields:
    """Returns the fields of a graph without rows."""
    starts = {"row_first": 0, "cell_first": n_labels, "link_first": n_variables}
    return dict.fromkeys(ROW_FIELDS, NO_INTS) | {name: np.zeros(n + 1, dtype=np.int64) for name, n in starts.items()}


def _starts(group: IntArray, n: int) -> IntArray:
    """Returns where each of `n` groups starts once things are sorted by theirs, and where the last one ends."""
    return offsets(np.bincount(group, minlength=n))


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

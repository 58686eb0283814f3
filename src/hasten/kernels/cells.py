"""The later layers of a graph: scopes, in the order of the search, and rows, whose terms are added up and sorted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.kernels.layout import Graph
from hasten.kernels.tolerance import EPS, EXACT, SLACK
from hasten.support.arrays import BoolArray, FloatArray, IntArray, offsets, sizes_of, stable_order

NOISE = 1e-9  # how far, relatively, a limit may be from the whole number that it stands for
SIDES = np.array([[-SLACK], [SLACK]])
NO_INTS, NO_FLOATS = np.zeros(0, dtype=np.int64), np.zeros(0)


class Rows(NamedTuple):
    """The rows to compile: the terms of row `r` are `first[r]:first[r + 1]`, in any order, some perhaps twice."""

    first: IntArray  # (R + 1,)
    label: IntArray  # (terms,) label numbers
    weight: FloatArray  # (terms,)
    low: FloatArray  # (R,)
    high: FloatArray  # (R,)

    def then(self, more: Rows) -> Rows:
        """Returns these rows, then others."""
        if not len(self.low):
            return more
        label, weight = np.concatenate([self.label, more.label]), np.concatenate([self.weight, more.weight])
        first = np.concatenate([self.first, self.first[-1] + more.first[1:]])
        return Rows(first, label, weight, np.concatenate([self.low, more.low]), np.concatenate([self.high, more.high]))


NO_ROWS = Rows(offsets(NO_INTS), NO_INTS, NO_FLOATS, NO_FLOATS, NO_FLOATS)


def with_rows(graph: Graph, rows: Rows) -> Graph:
    """Returns a graph with some rows, in place of its own if it has any."""
    first, n_rows = graph.first, len(rows.low)
    n, n_labels = len(first) - 1, int(first[-1])
    if not n_rows:
        nothing = np.zeros(n_labels + n + 2, dtype=np.int64)
        return graph.then(row_first=nothing[:1], cell_first=nothing[: n_labels + 1], link_first=nothing[: n + 1])
    term_row = np.arange(n_rows).repeat(sizes_of(rows.first))
    cell, weight = term_row * n_labels + rows.label, rows.weight
    if not (cell[1:] > cell[:-1]).all():
        cell, which = np.unique(cell, return_inverse=True)
        weight = np.bincount(which, weight, len(cell)).astype(float)  # adds up a label's terms in a row, in their order
    if not weight.all():
        cell, weight = cell[weight != 0.0], weight[weight != 0.0]
    row, label = cell // max(1, n_labels), cell % max(1, n_labels)
    variable = np.arange(n).repeat(sizes_of(first))[label]
    links = link(row, variable, weight, sizes_of(first))
    by_label, by_variable = stable_order(label, n_labels), stable_order(links.variable, n)
    low, high, size = (
        np.bincount(links.row, each, n_rows) for each in (links.low, links.high, np.maximum(-links.low, links.high))
    )
    integral = np.bincount(row, weight != np.rint(weight), n_rows) == 0
    # Whole weights add up exactly. Other sums have a term for each link, each of which rounds by EPS of `size` at most;
    # a search adds and takes away two numbers for each, and the factor leaves room for that and for limits.
    margin = 8 * EPS * (np.bincount(links.row, minlength=n_rows) + 4) * size
    least, most = row_limits(rows.low, rows.high, integral)
    return graph.then(
        row_first=starts(row, n_rows),
        cell_first=starts(label, n_labels),
        link_first=starts(links.variable, n),
        row_counts=np.bincount(row, weight != 1.0, n_rows) == 0,
        range_low=low,
        range_high=high,
        row_margin=np.where(integral & (size < EXACT), 0.0, margin),
        row_low=rows.low,
        row_high=rows.high,
        row_least=least,
        row_most=most,
        row_label=label,
        row_variable=variable,
        row_weight=weight,
        cell_row=row[by_label],
        cell_weight=weight[by_label],
        link_row=links.row[by_variable],
        link_low=links.low[by_variable],
        link_high=links.high[by_variable],
    )


class Links(NamedTuple):
    """The least and the most that each variable can add to each row that it is in, row after row."""

    row: IntArray
    variable: IntArray
    low: FloatArray
    high: FloatArray


def link(row: IntArray, variable: IntArray, weight: FloatArray, sizes: IntArray) -> Links:
    """Returns the links of cells that are sorted by row and variable; variables have `sizes` labels."""
    if not len(row):
        return Links(NO_INTS, NO_INTS, NO_FLOATS, NO_FLOATS)
    at = np.flatnonzero(np.append(True, (row[1:] != row[:-1]) | (variable[1:] != variable[:-1])))
    least, most = np.minimum.reduceat(weight, at), np.maximum.reduceat(weight, at)
    silent = sizes[variable[at]] > np.diff(at, append=len(row))  # some label adds nothing
    low, high = np.where(silent, np.minimum(least, 0.0), least), np.where(silent, np.maximum(most, 0.0), most)
    return Links(row[at], variable[at], low, high)


def starts(group: IntArray, n: int) -> IntArray:
    """Returns where each of `n` groups starts once things are sorted by group, and where the last one ends."""
    return offsets(np.bincount(group, minlength=n))


def row_limits(low: FloatArray, high: FloatArray, integral: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Returns how far rows may go below and above their limits, given which of them have integral weights only.

    A sum of integral weights stops at the last whole number within the limit, which may be off by what writing it as a
    float takes; others have the slack of a solver.
    """

    limits, is_finite = np.array([low, high]), np.isfinite([low, high])
    finite = np.where(is_finite, limits, 0.0)
    size, stop = np.maximum(1.0, abs(finite)), np.rint(finite)
    is_off = abs(finite - stop) > np.minimum(SLACK, NOISE * size)  # 0.1 + 0.2 + 0.7 stands for 1; 0.999 does not
    stop = np.where(is_off, [np.ceil(finite[0]), np.floor(finite[1])], stop)
    found = np.where(integral, stop, finite + SIDES * size) + 0.0  # no negative zero
    least, most = np.where(is_finite, found, limits)
    return least, most


def with_scopes(graph: Graph, first: IntArray, order: IntArray, scope: IntArray) -> Graph:
    """Returns a graph of factors alone with variables: `scope` in their slots."""
    n, position = len(order), np.empty_like(order)
    position[order] = np.arange(n)
    at, begins = position[scope], graph.scope_first[:-1]
    late = np.maximum.reduceat(at, begins) if len(scope) else NO_INTS  # the last step that assigns a variable of each
    at[at == late[graph.factor_of]] = -1
    before = np.maximum.reduceat(at, begins) if len(scope) else NO_INTS  # and the last but one; -1 if there is none
    left = np.flatnonzero((before >= 0) & (graph.table_at >= 0))
    return graph.then(
        first=first,
        order=order,
        position=position,
        scope=scope,
        done_first=starts(late, n),
        done=stable_order(late, n),
        last=order[late],
        touch_first=starts(scope, n),
        touch=stable_order(scope, n),
        open_first=starts(before[left], n),
        open=left[stable_order(before[left], n)],
    )

"""Columns as variables with labels, and rows over labels: what can be ruled out before anything is searched.

A label sets one column to one value, or none: the columns of a variable that its label does not name are 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hasten.kernels.cells import row_limits
from hasten.kernels.tolerance import EXACT
from hasten.programs.columns import row_numbers
from hasten.programs.grouping import Group
from hasten.programs.statement import Statement
from hasten.support.arrays import BoolArray, FloatArray, IntArray, offsets, ranges, sizes_of

SCALES = (2.0, 4.0, 5.0, 8.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6)  # that make decimals whole
ROUNDS = 20  # of ruling labels out


@dataclass(frozen=True, eq=False)
class Space:
    """Variables and their labels: those of variable `v` are `first[v]:first[v + 1]`."""

    first: IntArray  # (V + 1,)
    column: IntArray  # (L,) the column that a label sets, -1 for none
    value: FloatArray  # (L,) the value that it sets it to
    fixed: FloatArray  # (n,) the columns that no variable has: their values; 0 for all others

    @property
    def n_variables(self) -> int:
        """The number of variables."""
        return len(self.first) - 1

    @cached_property
    def variable(self) -> IntArray:
        """(L,) the variable of each label."""
        return np.arange(self.n_variables).repeat(sizes_of(self.first))

    @cached_property
    def _place(self) -> IntArray:
        """(L,) which label of its variable each is."""
        return np.arange(len(self.column)) - self.first[self.variable]

    @cached_property
    def _defaults(self) -> IntArray:
        """(V,) the label that sets no column, -1 for variables without one."""
        none = np.flatnonzero(self.column < 0)
        found = np.full(self.n_variables, -1, dtype=np.int64)
        found[self.variable[none]] = self._place[none]
        return found

    def labels(self, x: FloatArray) -> IntArray:
        """Returns the label of each variable, given the value of each column; -1 where no label says that."""
        at = np.flatnonzero((np.abs(x[self.column] - self.value) < 0.5) & (self.column >= 0))
        found = self._defaults.copy()
        found[self.variable[at]] = self._place[at]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Rows over labels, sorted by row and label; limits are exact, slack included."""

    row: IntArray
    label: IntArray
    weight: FloatArray
    least: FloatArray  # (m,)
    most: FloatArray  # (m,)
    whole: BoolArray  # (m,) whether all weights are whole numbers: then sums are exact
    source: IntArray  # (m,) the row of the statement

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.least)


def make_space(program: Statement, groups: list[Group]) -> Space:
    """Makes a variable of each group and of each other column, in the order of their first columns."""
    n = program.n_columns
    grouped = np.zeros(n, dtype=bool)
    for group in groups:
        grouped[group.columns] = True
    alone = np.flatnonzero(~grouped)
    low, high = program.low[alone], program.high[alone]
    counts = (high - low).astype(np.int64) + 1
    owner = np.arange(len(alone)).repeat(counts)
    parts = [(alone[owner], low[owner] + ranges(np.zeros(len(alone), dtype=np.int64), counts))]
    sizes, leaders = [counts], [alone]
    for group in groups:
        columns = np.append(group.columns, -1) if group.none else group.columns
        parts.append((columns, (columns >= 0).astype(np.float64)))
    sizes.append(np.array([len(group.columns) + group.none for group in groups], dtype=np.int64))
    leaders.append(np.array([group.columns[0] for group in groups], dtype=np.int64))
    size, leader = np.concatenate(sizes), np.concatenate(leaders)
    column, value = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.argsort(leader, kind="stable")
    at = ranges(offsets(size)[:-1][order], size[order])
    return Space(offsets(size[order]), column[at].astype(np.int64), value[at] + 0.0, np.zeros(n))


def make_cells(program: Statement, space: Space) -> Cells:
    """Returns the rows over labels, decimals scaled to whole numbers where a small factor does that."""
    row, column, weight = row_numbers(program), program.row_column, program.row_weight
    by_column = np.argsort(space.column, kind="stable")
    first = np.searchsorted(space.column[by_column], np.arange(program.n_columns + 1))
    sizes = sizes_of(first)[column]
    label = by_column[ranges(first[:-1][column], sizes)]
    row, weight = row.repeat(sizes), weight.repeat(sizes)
    low, high = program.row_low.copy(), program.row_high.copy()
    _scale(row, weight, low, high)
    weight = weight * space.value[label]
    some = weight != 0.0
    row, label, weight = row[some], label[some], weight[some]
    order = np.lexsort((label, row))
    row, label, weight = row[order], label[order], weight[order]
    m = program.n_rows
    whole = np.bincount(row[weight != np.rint(weight)], minlength=m) == 0
    whole &= np.bincount(row, np.abs(weight), m) < EXACT
    least, most = row_limits(low, high, whole)
    return Cells(row, label, weight, least, most, whole, np.arange(m))


def _scale(row: IntArray, weight: FloatArray, low: FloatArray, high: FloatArray) -> None:
    """Multiplies rows of decimals so that they are whole, in place, by the first of some factors that does."""
    m = len(low)
    left = np.bincount(row[weight != np.rint(weight)], minlength=m) > 0
    for factor in SCALES:
        if not left.any():
            return
        scaled = weight * factor
        off = np.abs(scaled - np.rint(scaled)) > 1e-12 * np.maximum(1.0, np.abs(scaled))
        off |= (np.rint(scaled) == 0.0) & (weight != 0.0)
        fits = left & (np.bincount(row[off], minlength=m) == 0)
        weight[fits[row]] = np.rint(scaled[fits[row]])
        low[fits] *= factor
        high[fits] *= factor
        left &= ~fits


@dataclass(frozen=True, slots=True, eq=False)
class _Segments:
    """The share of each variable in each row: the least and the most that its labels add."""

    at: IntArray  # (S + 1,) where its cells start
    row: IntArray
    variable: IntArray
    partial: BoolArray  # whether some label adds nothing
    least: FloatArray
    most: FloatArray


def _segments(space: Space, cells: Cells) -> _Segments:
    variable = space.variable[cells.label]
    number = cells.row * max(1, space.n_variables) + variable
    new = np.ones(len(number), dtype=bool)
    np.not_equal(number[1:], number[:-1], out=new[1:])
    at = np.append(np.flatnonzero(new), len(number))
    starts = at[:-1]
    partial = sizes_of(at) < sizes_of(space.first)[variable[starts]]
    if not len(starts):
        none = np.zeros(0)
        return _Segments(at, cells.row, variable, partial, none, none)
    least, most = np.minimum.reduceat(cells.weight, starts), np.maximum.reduceat(cells.weight, starts)
    least, most = np.where(partial, np.minimum(least, 0.0), least), np.where(partial, np.maximum(most, 0.0), most)
    return _Segments(at, cells.row[starts], variable[starts], partial, least, most)


def rule_out(space: Space, cells: Cells) -> tuple[Space, Cells] | None:
    """Drops labels that some row rules out, rows that always hold, and variables of one label; None if nothing is left.

    A variable of one label is moved into the limits of its rows, and into `fixed`.
    """
    for _ in range(ROUNDS):
        dead = _dead(space, cells)
        if not dead.any():
            break
        if (np.add.reduceat(~dead, space.first[:-1]) == 0).any():
            return None
        space, cells = _without(space, cells, dead)
    parts = _segments(space, cells)
    least, most = np.bincount(parts.row, parts.least, cells.n_rows), np.bincount(parts.row, parts.most, cells.n_rows)
    margin = _margins(parts, cells)
    if ((least > cells.most + margin) | (most < cells.least - margin)).any():
        return None
    space, cells = _without_single(space, cells)
    parts = _segments(space, cells)
    least, most = np.bincount(parts.row, parts.least, cells.n_rows), np.bincount(parts.row, parts.most, cells.n_rows)
    margin = _margins(parts, cells)
    needed = (least < cells.least + margin) & np.isfinite(cells.least) & ~(cells.whole & (least >= cells.least))
    needed |= (most > cells.most - margin) & np.isfinite(cells.most) & ~(cells.whole & (most <= cells.most))
    needed &= np.bincount(cells.row, minlength=cells.n_rows) > 0  # those without cells hold, or all was over before
    return space, keep_rows(cells, needed)


def _margins(parts: _Segments, cells: Cells) -> FloatArray:
    """Returns how far the sums of rows may be off: not at all where all is whole."""
    size = np.bincount(parts.row, np.maximum(np.abs(parts.least), np.abs(parts.most)), cells.n_rows)
    return np.where(cells.whole, 0.0, 1e-12 * size)


def _dead(space: Space, cells: Cells) -> BoolArray:
    """Returns the labels with which some row cannot hold, whatever the others are."""
    parts = _segments(space, cells)
    m = cells.n_rows
    least, most = np.bincount(parts.row, parts.least, m), np.bincount(parts.row, parts.most, m)
    margin = _margins(parts, cells)
    room = (cells.most + margin)[parts.row] - (least[parts.row] - parts.least)  # what this variable may add at most
    need = (cells.least - margin)[parts.row] - (most[parts.row] - parts.most)
    of_cell = np.arange(len(parts.row)).repeat(sizes_of(parts.at))
    dead = np.zeros(len(space.column), dtype=bool)
    dead[cells.label[(cells.weight > room[of_cell]) | (cells.weight < need[of_cell])]] = True
    zeros = np.flatnonzero(parts.partial & ((room < 0.0) | (need > 0.0)))  # labels without a cell there
    if zeros.size:
        v = parts.variable[zeros]
        sizes = sizes_of(space.first)[v]
        label = ranges(space.first[v], sizes)
        n_labels = len(space.column)
        named = cells.row * n_labels + cells.label
        dead[label[~np.isin(parts.row[zeros].repeat(sizes) * n_labels + label, named)]] = True
    return dead


def _without(space: Space, cells: Cells, dead: BoolArray) -> tuple[Space, Cells]:
    """Drops labels."""
    alive = ~dead
    number = np.cumsum(alive) - 1
    first = offsets(np.add.reduceat(alive, space.first[:-1], dtype=np.int64))
    some = alive[cells.label]
    return (
        Space(first, space.column[alive], space.value[alive], space.fixed),
        Cells(
            cells.row[some],
            number[cells.label[some]],
            cells.weight[some],
            cells.least,
            cells.most,
            cells.whole,
            cells.source,
        ),
    )


def _without_single(space: Space, cells: Cells) -> tuple[Space, Cells]:
    """Moves variables of one label into the limits of their rows."""
    single = sizes_of(space.first) == 1
    if not single.any():
        return space, cells
    label = space.first[:-1][single]
    fixed = space.fixed.copy()
    set_by = label[space.column[label] >= 0]
    fixed[space.column[set_by]] = space.value[set_by]
    gone = single[space.variable]
    of_gone = gone[cells.label]
    shift = np.bincount(cells.row[of_gone], cells.weight[of_gone], cells.n_rows)
    alive = ~gone
    number = np.cumsum(alive) - 1
    some = ~of_gone
    return (
        Space(offsets(sizes_of(space.first)[~single]), space.column[alive], space.value[alive], fixed),
        Cells(
            cells.row[some],
            number[cells.label[some]],
            cells.weight[some],
            cells.least - shift,
            cells.most - shift,
            cells.whole,
            cells.source,
        ),
    )


def keep_rows(cells: Cells, needed: BoolArray) -> Cells:
    """Returns some of the rows."""
    some = needed[cells.row]
    number = np.cumsum(needed) - 1
    return Cells(
        number[cells.row[some]],
        cells.label[some],
        cells.weight[some],
        cells.least[needed],
        cells.most[needed],
        cells.whole[needed],
        cells.source[needed],
    )


def join_rows(cells: Cells, more: Cells) -> Cells:
    """Returns the rows of both, one after the other."""
    return Cells(
        np.concatenate([cells.row, more.row + cells.n_rows]),
        *(
            np.concatenate([getattr(cells, name), getattr(more, name)])
            for name in ("label", "weight", "least", "most", "whole", "source")
        ),
    )


def scopes(space: Space, cells: Cells) -> tuple[IntArray, IntArray]:
    """Returns where each row's variables start, and the variables."""
    parts = _segments(space, cells)
    return offsets(np.bincount(parts.row, minlength=cells.n_rows)), parts.variable


def clip(space: Space, cells: Cells) -> Cells:
    """Makes weights no larger than they need be: a label with which a row holds anyway need not add less than that.

    That is for rows with one limit and whole weights, where it is exact, and turns a "big M" into the smallest one.
    """
    parts = _segments(space, cells)
    if not len(parts.row):
        return cells
    m = cells.n_rows
    of_cell = np.arange(len(parts.row)).repeat(sizes_of(parts.at))
    weight = cells.weight.copy()
    for limit, other, side in ((cells.most, cells.least, 1.0), (cells.least, cells.most, -1.0)):
        one_sided = np.isfinite(limit) & np.isinf(other) & cells.whole
        most = np.bincount(parts.row, side * (parts.most if side > 0 else parts.least), m)
        own = side * (parts.most if side > 0 else parts.least)
        enough = side * limit[parts.row] - (most[parts.row] - own)  # what holds whatever the others add
        at = one_sided[cells.row] & (side * weight < enough[of_cell])
        weight[at] = side * enough[of_cell][at]
    some = weight != 0.0
    return Cells(cells.row[some], cells.label[some], weight[some], cells.least, cells.most, cells.whole, cells.source)

"""Columns as variables with labels, and rows over labels: labels and rows that can be ruled out before any search."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hasten.kernels.cells import row_limits
from hasten.kernels.tolerance import EXACT
from hasten.programs.state import Cells, Group, Recognised, Space, without_labels
from hasten.programs.statement import Statement
from hasten.support.arrays import BoolArray, FloatArray, IntArray, offsets, ranges

SCALES = (2.0, 4.0, 5.0, 8.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6)  # that make decimals whole
ROUNDS = 20  # of ruling labels out


def make_labels(found: Recognised) -> None:
    """Makes variables and rows over their labels, without the labels that a given table over one column forbids."""
    program, space = found.statement, make_space(found.statement, found.groups)
    dead = np.zeros(len(space.column), dtype=bool)
    for table in program.tables:
        if table.costs.size == 1 and np.isposinf(table.costs).all():
            return found.has_no_answer()
        if len(table.scope) == 1:
            labels = space.of_column(table.scope[0])
            values = (space.value[labels] - found.origin[table.scope[0]]).astype(np.int64)
            dead[labels[np.isposinf(table.costs[values])]] = True
    allowed = without_labels(space, found.rules, dead)[0]  # there are no rows yet
    if allowed.n_variables < space.n_variables:
        return found.has_no_answer()
    found.space, found.rules = allowed, make_cells(program, allowed)
    return None


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
    for group in groups:
        columns = np.append(group.columns, -1) if group.none else group.columns
        parts.append((columns, (columns >= 0).astype(np.float64)))
    size = np.append(counts, np.array([len(columns) for columns, _ in parts[1:]], dtype=np.int64))
    leader = np.append(alone, np.array([group.columns[0] for group in groups], dtype=np.int64))
    column, value = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.argsort(leader, kind="stable")
    at = ranges(offsets(size)[:-1][order], size[order])
    return Space(offsets(size[order]), column[at].astype(np.int64), value[at] + 0.0, np.zeros(n))


def make_cells(program: Statement, space: Space) -> Cells:
    """Returns the rows over labels, decimals scaled to whole numbers where a small factor does that."""
    label, sizes = space.of_columns(program.row_column)
    row, weight = program.row_of_term.repeat(sizes), program.row_weight.repeat(sizes)
    low, high = program.row_low.copy(), program.row_high.copy()
    _scale(row, weight, low, high)
    weight = weight * space.value[label]
    some = np.flatnonzero(weight)
    some = some[np.lexsort((label[some], row[some]))]
    row, label, weight = row[some], label[some], weight[some]
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


class Shares:
    """The share of each variable in each row: the least and the most that its labels add; and the sums of rows."""

    def __init__(self, space: Space, cells: Cells) -> None:
        variable, m = space.variable[cells.label], cells.n_rows
        new = np.ones(len(variable), dtype=bool)
        new[1:] = (cells.row[1:] != cells.row[:-1]) | (variable[1:] != variable[:-1])
        starts = np.flatnonzero(new)
        self.of_cell = np.cumsum(new) - 1
        self.row, self.variable = cells.row[starts], variable[starts]
        self.partial = np.bincount(self.of_cell, minlength=len(starts)) < space.sizes[self.variable]  # some add nothing
        least, most = (op.reduceat(cells.weight, starts) for op in (np.minimum, np.maximum))
        self.least = np.where(self.partial, np.minimum(least, 0.0), least)
        self.most = np.where(self.partial, np.maximum(most, 0.0), most)
        self.row_least, self.row_most = np.bincount(self.row, self.least, m), np.bincount(self.row, self.most, m)
        size = np.bincount(self.row, np.maximum(np.abs(self.least), np.abs(self.most)), m)
        self.margin = np.where(cells.whole, 0.0, 1e-12 * size)  # how far these sums may be off


def rule_out_labels(found: Recognised) -> None:
    """Drops labels that some row rules out, rows that always hold, and variables of one label.

    A variable of one label is moved into the limits of its rows, and into `fixed`.
    """
    space, cells = found.space, found.rules
    for _ in range(ROUNDS):
        dead = dead_labels(space, cells)
        if not dead.any():
            break
        n_variables = space.n_variables
        space, cells = without_labels(space, cells, dead)
        if space.n_variables < n_variables:
            return found.has_no_answer()
    sums = Shares(space, cells)
    if ((sums.row_least > cells.most + sums.margin) | (sums.row_most < cells.least - sums.margin)).any():
        return found.has_no_answer()
    space, cells = _fix_single(space, cells)
    if found.defined is not None:
        space = replace(space, fixed=space.fixed + found.defined.offset)
    sums = Shares(space, cells)
    least, most, margin = sums.row_least, sums.row_most, sums.margin
    needed = (least < cells.least + margin) & np.isfinite(cells.least) & ~(cells.whole & (least >= cells.least))
    needed |= (most > cells.most - margin) & np.isfinite(cells.most) & ~(cells.whole & (most <= cells.most))
    needed &= np.bincount(cells.row, minlength=cells.n_rows) > 0  # rows without cells hold, as was checked
    found.space, found.rules, found.base = space, cells.only_rows(needed), np.zeros(len(space.column))
    return None


def dead_labels(space: Space, cells: Cells) -> BoolArray:
    """Returns the labels with which some row cannot hold, whatever the others are."""
    shares, dead, n_labels = Shares(space, cells), np.zeros(len(space.column), dtype=bool), len(space.column)
    row = shares.row
    room = (cells.most + shares.margin)[row] - (shares.row_least[row] - shares.least)  # what a variable may add at most
    need = (cells.least - shares.margin)[row] - (shares.row_most[row] - shares.most)
    dead[cells.label[(cells.weight > room[shares.of_cell]) | (cells.weight < need[shares.of_cell])]] = True
    zeros = np.flatnonzero(shares.partial & ((room < 0.0) | (need > 0.0)))  # labels without a cell there
    if zeros.size:
        v = shares.variable[zeros]
        label = ranges(space.first[v], space.sizes[v])
        named = cells.row * n_labels + cells.label
        dead[label[~np.isin(row[zeros].repeat(space.sizes[v]) * n_labels + label, named)]] = True
    return dead


def _fix_single(space: Space, cells: Cells) -> tuple[Space, Cells]:
    label = space.first[:-1][space.sizes == 1]
    if not label.size:
        return space, cells
    fixed, gone = space.fixed.copy(), np.zeros(len(space.column), dtype=bool)
    gone[label] = True
    set_by = label[space.column[label] >= 0]
    fixed[space.column[set_by]] = space.value[set_by]
    of_gone = cells.only(gone[cells.label])
    shift = np.bincount(of_gone.row, of_gone.weight, cells.n_rows)
    space, cells = without_labels(space, cells, gone)
    return replace(space, fixed=fixed), replace(cells, least=cells.least - shift, most=cells.most - shift)


def clip_weights(found: Recognised) -> None:
    """Makes weights no larger than they need be: a label with which a row holds anyway need not add less than that.

    That is for rows with one limit and whole weights, where it is exact, and turns a "big M" into the smallest one.
    """
    cells = found.rules
    shares, weight = Shares(found.space, cells), cells.weight.copy()
    for limit, other, side in ((cells.most, cells.least, 1.0), (cells.least, cells.most, -1.0)):
        one_sided = np.isfinite(limit) & np.isinf(other) & cells.whole
        own, total = (shares.most, shares.row_most) if side > 0 else (shares.least, shares.row_least)
        enough = side * (limit[shares.row] - (total[shares.row] - own))  # what holds whatever the others add
        at = one_sided[cells.row] & (side * weight < enough[shares.of_cell])
        weight[at] = side * enough[shares.of_cell][at]
    found.rules = replace(cells, weight=weight).only(weight != 0.0)

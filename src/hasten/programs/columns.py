"""What can be said of columns before they become labels: tighter bounds, and which are whole though not declared so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hasten.programs.statement import Statement, round_inwards
from hasten.support.arrays import BoolArray, FloatArray, IntArray

ROUNDS = 8  # of tightening: each may make the next one possible


def row_numbers(program: Statement) -> IntArray:
    """Returns the row of each term."""
    return np.arange(program.n_rows).repeat(np.diff(program.row_first))


def prepare(program: Statement) -> Statement:
    """Returns the program with whole columns told as such, and the bounds of whole columns as tight as is easy."""
    program = replace(program, whole=program.whole | implied_whole(program))
    return tighten(program)


def implied_whole(program: Statement) -> BoolArray:
    """Returns which continuous columns are whole in some optimum, whatever the objective.

    Given the whole columns, the others have a box with whole ends and rows of weights 1 and -1 with whole limits. If
    no column is in two rows that hold several of them, these rows do not meet: every vertex of such a set is whole, and
    a linear objective has its optimum at one.
    """
    row, column, weight = row_numbers(program), program.row_column, program.row_weight
    n, m = program.n_columns, program.n_rows
    continuous = ~program.whole[column]
    found = ~program.whole & _are_whole(program.low) & _are_whole(program.high)
    found[program.products.left] = found[program.products.right] = False
    for table in program.tables:
        found[list(table.scope)] = False
    shared = np.bincount(row[continuous], minlength=m) > 1
    twice = np.bincount(column[continuous & shared[row]], minlength=n) > 1
    found &= ~twice
    odd = ~_are_whole(program.row_low) | ~_are_whole(program.row_high)
    odd |= np.bincount(row[weight != np.rint(weight)], minlength=m) > 0
    odd |= np.bincount(row[continuous & (np.abs(weight) != 1.0)], minlength=m) > 0
    while found.any():
        bad = odd | (np.bincount(row[continuous & ~found[column]], minlength=m) > 0)
        left = found & (np.bincount(column[bad[row]], minlength=n) == 0)
        if np.array_equal(left, found):
            break
        found = left
    return found


def tighten(program: Statement) -> Statement:
    """Returns the program with the bounds that its rows imply for whole columns, each a whole number."""
    low, high = program.low.copy(), program.high.copy()
    row, column, weight = row_numbers(program), program.row_column, program.row_weight
    wide = program.whole & ~((low >= 0) & (high <= 1))  # binaries are left to recognition
    some = np.isin(row, row[wide[column]])
    row, column, weight = row[some], column[some], weight[some]
    for _ in range(ROUNDS if wide.any() else 0):
        before = low.copy(), high.copy()
        least, most = _implied(program, row, column, weight, low, high)
        at = wide[column]
        np.maximum.at(low, column[at], least[at])
        np.minimum.at(high, column[at], most[at])
        round_inwards(low, high, program.whole)
        if (np.array_equal(before[0], low) and np.array_equal(before[1], high)) or (low > high).any():
            break
    return replace(program, low=low, high=high)


def _implied(
    program: Statement, row: IntArray, column: IntArray, weight: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Returns the bounds that each term's row implies for its column."""
    up = weight > 0
    at_least, at_most = (
        weight * np.where(up, low[column], high[column]),
        weight * np.where(up, high[column], low[column]),
    )
    others = []
    for each in (at_least, at_most):
        infinite = np.isinf(each)
        finite = np.where(infinite, 0.0, each)
        count = np.bincount(row[infinite], minlength=program.n_rows)
        total = np.bincount(row, finite, program.n_rows)
        rest = total[row] - finite
        others.append(np.where(count[row] - infinite > 0, np.inf, rest))
    rest_least, rest_most = np.where(others[0] == np.inf, -np.inf, others[0]), others[1]
    size = np.bincount(row, np.where(np.isinf(at_least), 0.0, np.abs(at_least)), program.n_rows)
    margin = 1e-6 + 1e-9 * size[row]  # of rounding, and of the slack that rows have
    with np.errstate(invalid="ignore"):
        over = (program.row_high[row] - rest_least + margin) / weight
        under = (program.row_low[row] - rest_most - margin) / weight
    return np.where(up, under, over), np.where(up, over, under)


def _are_whole(values: FloatArray) -> BoolArray:
    return np.asarray(np.isinf(values) | (values == np.rint(values)))

"""Columns that equalities define by others: they are put in for wherever they stand, before anything is recognised.

A row `3 y - 2 a = 6`, in which y alone is continuous, says that y is 2 + 2/3 a; so does one in which y alone takes too
many whole values to be labels. A row `a + b - c = 0` of binaries in no group says that c is a + b. Their coefficients
go to a and b, and their bounds become the limits of these rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hasten.programs.native import Checker
from hasten.programs.statement import Statement, sorted_terms
from hasten.support.arrays import BoolArray, FloatArray, IntArray, ranges, sizes_of

MAX_TERMS = 1000  # that a whole column may become
MAX_VALUES = 1024  # of a whole column that becomes labels


@dataclass(frozen=True, slots=True, eq=False)
class Definitions:
    """Columns that are defined: each is an offset plus the sum of some factors times columns that stay."""

    statement: Statement  # without them: they are fixed to 0
    target: IntArray  # (terms,) the column that is defined
    source: IntArray  # (terms,) a column that stays
    factor: FloatArray  # (terms,)
    offset: FloatArray  # (n,) 0 for columns that stay
    n_continuous: int
    checked: Checker | None  # what values are checked by, where factors may have been rounded

    def objectives(self, objectives: FloatArray) -> FloatArray:
        """Returns objectives without columns that are defined, but for their offsets."""
        found = objectives.copy()
        np.add.at(found.T, self.source, objectives[:, self.target].T * self.factor[:, None])
        return found

    def values(self, x: FloatArray) -> FloatArray:
        """Returns the values of all columns, given those that stay, and the offsets of all others."""
        found = x.copy()
        np.add.at(found.T, self.target, x[:, self.source].T * self.factor[:, None])
        return found if self.checked is None else np.array([self.checked(each) for each in found]).reshape(x.shape)


def unfit_columns(program: Statement) -> Iterator[tuple[list[str], str]]:
    """Yields the names of columns whose values cannot be labels, and why not."""
    for which, what in (
        (~program.whole, "is continuous"),
        (~np.isfinite(program.low) | ~np.isfinite(program.high), "has no bounds"),
        (program.high - program.low >= MAX_VALUES, f"takes more than {MAX_VALUES:,} values"),
    ):
        if which.any():
            yield [program.columns[j] for j in np.flatnonzero(which).tolist()], what


def define(program: Statement, grouped: BoolArray) -> Definitions | None:
    """Returns the columns that equalities define; None if there are none. Columns in groups stay."""
    n, m, row = program.n_columns, program.n_rows, program.row_of_term
    column, weight = program.row_column, program.row_weight
    barred = np.zeros(n, dtype=bool)
    for table in program.tables:
        barred[list(table.scope)] = True
    barred[program.products.left] = barred[program.products.right] = True
    continuous = ~program.whole
    large = continuous | ~(program.high - program.low < MAX_VALUES)
    own = large[column]
    equal = (program.row_low == program.row_high) & np.isfinite(program.row_low)
    alone = equal & (np.bincount(row[own], minlength=m) == 1)
    terms = np.flatnonzero(own & alone[row] & ~barred[column])  # each the large one of its row
    odd = _fractions(program, terms)
    terms = terms[continuous[column[terms]] | ~odd]
    terms = terms[np.unique(column[terms], return_index=True)[1]]
    n_continuous = len(terms)
    if n_continuous < large.sum():
        return None  # a solver must answer it anyway
    terms = np.concatenate([terms, _whole_sums(program, barred | grouped, terms)])
    if not len(terms):
        return None
    defined, by = column[terms], row[terms]
    cells = ranges(program.row_first[by], sizes_of(program.row_first)[by])
    owner = np.arange(len(terms)).repeat(sizes_of(program.row_first)[by])
    cells, owner = cells[cells != terms[owner]], owner[cells != terms[owner]]
    target, source, factor = defined[owner], column[cells], -weight[cells] / weight[terms][owner]
    offset = np.zeros(n)
    offset[defined] = program.row_low[by] / weight[terms]
    reduced = _reduced(program, terms, (target, source, factor), offset)
    checked = Checker(program, "The definition of a column") if n_continuous else None
    return Definitions(reduced, target, source, factor, offset, n_continuous, checked)


def _fractions(program: Statement, terms: IntArray) -> BoolArray:
    """Returns whether the rows of some terms may give their columns values that are not whole, terms in order."""
    row, found = program.row_of_term, np.zeros(program.n_rows, dtype=bool)
    unit = np.zeros(program.n_rows)
    unit[row[terms]] = program.row_weight[terms]
    some = unit[row] != 0.0
    ratio = program.row_weight[some] / unit[row[some]]
    found[row[some][(ratio != np.rint(ratio)) | ~program.whole[program.row_column[some]]]] = True
    with np.errstate(divide="ignore", invalid="ignore"):
        limit = program.row_low / unit
    return np.asarray((found | (limit != np.rint(limit)))[row[terms]])


def _whole_sums(program: Statement, barred: BoolArray, terms: IntArray) -> IntArray:
    """Returns the terms of binaries that are the sum of other binaries, all of which are barred nowhere."""
    first, row, m = program.row_first, program.row_of_term, program.n_rows
    column, weight = program.row_column, program.row_weight
    odd = barred[column] | ~program.binary[column] | (np.abs(weight) != 1.0)
    usable = (program.row_low == 0.0) & (program.row_high == 0.0) & (np.bincount(row[odd], minlength=m) == 0)
    n_up, size = np.bincount(row[weight > 0], minlength=m), sizes_of(first)
    often = np.bincount(column, minlength=program.n_columns)
    used = np.zeros(program.n_columns, dtype=bool)  # by another definition
    for r in row[terms].tolist():
        used[column[first[r] : first[r + 1]]] = True
    gone, found = np.zeros(program.n_columns, dtype=bool), []
    for r in np.flatnonzero(usable & (size >= 2) & ((n_up == 1) | (size - n_up == 1))).tolist():
        at = np.arange(first[r], first[r + 1])
        single = at[weight[at] > 0] if n_up[r] == 1 else at[weight[at] < 0]
        j = int(column[single[0]])
        others = column[at[at != single[0]]]
        if not (used[j] or gone[column[at]].any()) and often[j] * len(others) <= MAX_TERMS:
            gone[j], used[others] = True, True
            found.append(int(single[0]))
    return np.array(found, dtype=np.int64)


def _reduced(
    program: Statement, terms: IntArray, parts: tuple[IntArray, IntArray, FloatArray], offset: FloatArray
) -> Statement:
    """Returns the program in which defined columns are put in for, and fixed to 0."""
    (target, source, factor), row, column, weight = parts, program.row_of_term, program.row_column, program.row_weight
    defined, by = column[terms], row[terms]
    number = np.full(program.n_columns, -1)  # of the definition of each column
    number[defined] = np.arange(len(terms))
    stays = ~np.isin(row, by)  # what defines a column says its bounds from now on
    row, column, weight = row[stays], column[stays], weight[stays]
    shift = np.bincount(row, weight * offset[column], program.n_rows)
    row_low, row_high = program.row_low - shift, program.row_high - shift
    row_low[by], row_high[by] = program.low[defined] - offset[defined], program.high[defined] - offset[defined]
    kept, order = number[column] < 0, np.argsort(number[target], kind="stable")
    starts = np.searchsorted(number[target][order], np.arange(len(terms) + 1))
    many = sizes_of(starts)[number[column[~kept]]]
    at = order[ranges(starts[number[column[~kept]]], many)]
    rows = np.concatenate([row[kept], row[~kept].repeat(many), by[number[target]]])
    columns = np.concatenate([column[kept], source[at], source])
    weights = np.concatenate([weight[kept], weight[~kept].repeat(many) * factor[at], factor])
    first, columns, weights = sorted_terms(program.n_rows, program.n_columns, rows, columns, weights)
    low, high, whole = program.low.copy(), program.high.copy(), program.whole.copy()
    low[defined], high[defined], whole[defined] = 0.0, 0.0, True
    return replace(
        program,
        low=low,
        high=high,
        whole=whole,
        row_first=first,
        row_column=columns,
        row_weight=weights,
        row_low=row_low,
        row_high=row_high,
    )

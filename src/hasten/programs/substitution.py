"""Continuous columns that an equality defines by whole ones: they are put in for wherever they stand.

A row `3 y - 2 a - 4 b = 6`, in which y alone is continuous, says that y is 2 + 2/3 a + 4/3 b. The program without y has
the same answers: y's coefficients go to a and b, and its bounds become the limits of that row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hasten.programs.statement import Builder, Statement
from hasten.support.arrays import FloatArray, IntArray, ranges, sizes_of


@dataclass(frozen=True, slots=True, eq=False)
class Substitution:
    """A program with fewer columns. A column that was defined is `offset` plus `factor` times columns that are kept."""

    reduced: Statement
    kept: IntArray  # the columns that are left, by their numbers in the whole program
    target: IntArray  # (terms,) the column that is defined
    source: IntArray  # (terms,) a column of the reduced program
    factor: FloatArray  # (terms,)
    offset: FloatArray  # (n,)

    @property
    def n_defined(self) -> int:
        """The number of columns that were put in for."""
        return len(self.offset) - len(self.kept)

    def objectives(self, objectives: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Returns objectives of the reduced program, and a constant for each."""
        found = objectives[:, self.kept]
        np.add.at(found.T, self.source, objectives[:, self.target].T * self.factor[:, None])
        return found, objectives @ self.offset

    def values(self, x: FloatArray) -> FloatArray:
        """Returns the values of all columns, given rows of those of the reduced program."""
        found = np.tile(self.offset, (len(x), 1))
        found[:, self.kept] = x
        np.add.at(found.T, self.target, x[:, self.source].T * self.factor[:, None])
        return found


def substitute(program: Statement) -> Substitution | None:
    """Returns a program without the continuous columns that equalities define; None if there are none."""
    continuous, n = ~program.whole, program.n_columns
    barred = np.zeros(n, dtype=bool)
    for table in program.tables:
        barred[list(table.scope)] = True
    barred[program.products.left] = barred[program.products.right] = True
    row, column = program.row_of_term, program.row_column
    own = continuous[column]
    alone = np.bincount(row[own], minlength=program.n_rows) == 1
    equal = (program.row_low == program.row_high) & np.isfinite(program.row_low)
    defines = np.flatnonzero(own & (alone & equal)[row] & ~barred[column])  # terms, each the continuous one of its row
    _, first = np.unique(column[defines], return_index=True)
    terms = defines[first]
    if not terms.size or np.isfinite(program.cutoff):  # a limit to the objective would need the constant of each
        return None
    defined, by = column[terms], row[terms]
    kept = np.flatnonzero(~np.isin(np.arange(n), defined))
    number = np.full(n, -1)
    number[kept] = np.arange(len(kept))
    sizes = sizes_of(program.row_first)[by]
    cells = ranges(program.row_first[by], sizes)
    owner = np.arange(len(terms)).repeat(sizes)
    other = cells != terms[owner]
    cells, owner = cells[other], owner[other]
    scale = program.row_weight[terms]
    offset = np.zeros(n)
    offset[defined] = program.row_low[by] / scale
    target, source, factor = defined[owner], number[column[cells]], -program.row_weight[cells] / scale[owner]
    return Substitution(
        _reduced(program, kept, number, (defined, by), (target, source, factor), offset),
        kept,
        target,
        source,
        factor,
        offset,
    )


def _reduced(
    program: Statement,
    kept: IntArray,
    number: IntArray,
    definitions: tuple[IntArray, IntArray],
    parts: tuple[IntArray, IntArray, FloatArray],
    offset: FloatArray,
) -> Statement:
    """Returns the program over the columns that are kept."""
    (defined, by), (target, source, factor) = definitions, parts
    build = Builder(name=program.name, maximize=program.maximize)
    build.add_columns(
        [program.columns[j] for j in kept.tolist()],
        program.low[kept],
        program.high[kept],
        program.whole[kept],
        np.zeros(len(kept)),
    )
    row, column, weight = program.row_of_term, program.row_column, program.row_weight
    stays = ~np.isin(row, by)  # what defines a column says its bounds from now on
    row, column, weight = row[stays], column[stays], weight[stays]
    low, high = program.row_low.copy(), program.row_high.copy()
    shift = np.bincount(row, weight * offset[column], program.n_rows)
    low, high = low - shift, high - shift
    low[by], high[by] = program.low[defined] - offset[defined], program.high[defined] - offset[defined]
    plain = number[column] >= 0
    order = np.argsort(target, kind="stable")
    begin = np.searchsorted(target[order], column[~plain])
    many = np.searchsorted(target[order], column[~plain], side="right") - begin
    at = order[ranges(begin, many)]
    row_of = np.zeros(program.n_columns, dtype=np.int64)
    row_of[defined] = by
    rows = np.concatenate([row[plain], row[~plain].repeat(many), row_of[target]])
    columns = np.concatenate([number[column[plain]], source[at], source])
    weights = np.concatenate([weight[plain], weight[~plain].repeat(many) * factor[at], factor])
    sort = np.argsort(rows, kind="stable")
    sizes = np.bincount(rows, minlength=program.n_rows)
    build.add_rows(sizes, columns[sort], weights[sort], low, high, program.rows)
    build.tables = [type(table)(tuple(number[list(table.scope)].tolist()), table.costs) for table in program.tables]
    products = program.products
    for left, right, price in zip(number[products.left], number[products.right], products.weight, strict=True):
        build.product(int(left), int(right), float(price))
    return build.statement()

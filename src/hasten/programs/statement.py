"""A program as arrays: columns with bounds, rows with limits, an objective, names.

    minimise objective · x + products + tables + constant, or maximise objective · x + products − tables + constant
    subject to row_low <= A x <= row_high, low <= x <= high, x[whole] whole numbers

Every file format and every library ends here. Logical conditions are written as rows (`Builder`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from hasten.errors import ProgramError
from hasten.support.arrays import BoolArray, FloatArray, IntArray, floats, offsets
from hasten.support.words import count

MAX_COLUMNS = MAX_ROWS = 5_000_000
MAX_ENTRIES = 50_000_000  # of all tables together
INFINITE = 1e20  # what solvers take for infinity, in bounds and limits
NOISE = 1e-9  # how far, relatively, a bound may be from the whole number that it stands for
HUGE = 1e15  # of a coefficient: beyond, no solver takes it


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """Terms `weight * x[left] * x[right]` of an objective."""

    left: IntArray
    right: IntArray
    weight: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class CostTable:
    """Costs of the values of some columns, an axis for each, from the column's lower bound on; inf forbids."""

    scope: tuple[int, ...]
    costs: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """A program as data. The terms of row `r` are `row_first[r]:row_first[r + 1]`; no column is twice in a row."""

    name: str
    columns: tuple[str, ...]  # names
    low: FloatArray  # (n,)
    high: FloatArray  # (n,)
    whole: BoolArray  # (n,)
    objective: FloatArray  # (n,)
    constant: float
    maximize: bool
    rows: tuple[str, ...]  # names
    row_first: IntArray  # (m + 1,)
    row_column: IntArray  # (terms,)
    row_weight: FloatArray  # (terms,)
    row_low: FloatArray  # (m,)
    row_high: FloatArray  # (m,)
    products: Products
    tables: tuple[CostTable, ...] = ()
    cutoff: float = math.inf  # an answer must cost less; where scores are maximised, minus its score must be less
    sorted_by: str = ""  # the library that has sorted the columns by name, if that is not how they were made
    place: dict[str, int] = field(init=False, repr=False)  # of the columns, by name

    def __post_init__(self) -> None:
        object.__setattr__(self, "place", {name: j for j, name in enumerate(self.columns)})

    @property
    def n_columns(self) -> int:
        """The number of columns."""
        return len(self.low)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.row_low)

    @property
    def sign(self) -> float:
        """The factor that turns the objective into costs, which are minimised."""
        return -1.0 if self.maximize else 1.0

    @property
    def row_of_term(self) -> IntArray:
        """(terms,) the row of each term."""
        return np.arange(self.n_rows).repeat(np.diff(self.row_first))

    @property
    def binary(self) -> BoolArray:
        """(n,) which columns are 0 or 1, and nothing else."""
        return np.asarray(self.whole & (self.low == 0.0) & (self.high == 1.0))

    def value(self, x: FloatArray, objective: FloatArray | None = None) -> float:
        """Returns the objective of some values, in the model's own sense, the constant included."""
        c = self.objective if objective is None else objective
        if self.products.left.size or self.tables:
            return float(self.values_of(x[None], c[None])[0])
        return float(c.dot(x)) + self.constant

    def values_of(self, x: FloatArray, objectives: FloatArray) -> FloatArray:
        """Returns the objective of each row of values, each under an objective of its own; nan where values are."""
        value = np.einsum("ij,ij->i", x, objectives) + self.constant
        if len(self.products.left):
            value += (self.products.weight * x[:, self.products.left] * x[:, self.products.right]).sum(axis=1)
        if self.tables:
            at = np.nan_to_num((x - self.low).T).astype(np.int64)  # the values of one column lie side by side
            for table in self.tables:
                value += self.sign * table.costs[tuple([at[j] for j in table.scope])]
        return np.asarray(value)

    def digest(self) -> bytes:
        """Returns a key that statements with the same constraints and names share, and no others."""
        quadratic = self.products.left, self.products.right, self.products.weight
        rows = self.row_first, self.row_column, self.row_weight, self.row_low, self.row_high
        tables = (table.costs for table in self.tables)
        constraints: list[Any] = [self.low, self.high, self.whole, *rows, *quadratic, *tables]
        maximize = self.maximize and self.products.left.size > 0
        said = [table.scope for table in self.tables], maximize, [np.shape(each) for each in constraints]
        found = blake2b(repr(said).encode(), digest_size=16)
        for names in (self.columns, self.rows):
            found.update("\0".join(names).encode())
        for array in constraints:
            found.update(np.ascontiguousarray(array).data)
        return found.digest()

    def __repr__(self) -> str:
        return f"Statement({self.name!r}, {count(self.n_columns, 'column')}, {count(self.n_rows, 'row')})"


@dataclass
class Builder:
    """Collects a statement piece by piece. Front ends and file formats write to it."""

    name: str = ""
    maximize: bool = False
    constant: float = 0.0
    columns: list[str] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    objective: list[float] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)
    row_low: list[float] = field(default_factory=list)
    row_high: list[float] = field(default_factory=list)
    row_size: list[int] = field(default_factory=list)
    row_column: list[int] = field(default_factory=list)
    row_weight: list[float] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    product_weight: list[float] = field(default_factory=list)
    tables: list[CostTable] = field(default_factory=list)
    cutoff: float = math.inf
    sorted_by: str = ""  # the library that has sorted the columns by name, if any
    n_entries: int = 0  # of all tables

    def column(
        self, name: str, low: float = 0.0, high: float = math.inf, whole: bool = False, cost: float = 0.0
    ) -> int:
        """Adds a column and returns its number."""
        if len(self.columns) >= MAX_COLUMNS:
            raise ProgramError(f"There are more than {MAX_COLUMNS:,} columns.")
        self.columns.append(name)
        self.low.append(low)
        self.high.append(high)
        self.whole.append(whole)
        self.objective.append(cost)
        return len(self.columns) - 1

    def row(
        self,
        columns: Iterable[int],
        weights: Iterable[float],
        low: float = -math.inf,
        high: float = math.inf,
        name: str = "",
    ) -> None:
        """Adds a row; a column may be named twice."""
        if len(self.rows) >= MAX_ROWS:
            raise ProgramError(f"There are more than {MAX_ROWS:,} rows.")
        before = len(self.row_column)
        self.row_column.extend(columns)
        self.row_weight.extend(weights)
        self.row_size.append(len(self.row_column) - before)
        self.row_low.append(low)
        self.row_high.append(high)
        self.rows.append(name)

    def product(self, left: int, right: int, weight: float) -> None:
        """Adds `weight * x[left] * x[right]` to the objective."""
        self.left.append(left)
        self.right.append(right)
        self.product_weight.append(weight)

    def table(self, scope: Sequence[int], costs: FloatArray) -> None:
        """Adds costs of the values of some columns, an axis for each, from its lower bound on; inf forbids."""
        self.n_entries += costs.size
        if self.n_entries > MAX_ENTRIES:
            raise ProgramError(f"The tables have more than {MAX_ENTRIES:,} entries together.")
        self.tables.append(CostTable(tuple(scope), costs))

    def indicator(
        self,
        switches: Sequence[tuple[int, int]],
        columns: Sequence[int],
        weights: Sequence[float],
        low: float,
        high: float,
        name: str,
    ) -> None:
        """Adds a row that must hold where each of some binary columns, the switches, has its value, 0 or 1."""
        least = sum(w * (self.low[j] if w > 0 else self.high[j]) for j, w in zip(columns, weights, strict=True) if w)
        most = sum(w * (self.high[j] if w > 0 else self.low[j]) for j, w in zip(columns, weights, strict=True) if w)
        switched = [column for column, _ in switches]
        for limit, reach, upper in ((high, most, True), (low, least, False)):
            large = reach - limit  # how far the row is relaxed while a switch is off
            if not math.isfinite(limit) or (large <= 0 if upper else large >= 0):
                continue
            if not math.isfinite(reach):
                raise ProgramError(f"The indicator {name!r} is about a sum without a bound. Give its variables bounds.")
            relaxing = [large if value else -large for _, value in switches]
            relaxed = limit + large * sum(value for _, value in switches)
            if upper:
                self.row([*columns, *switched], [*weights, *relaxing], high=relaxed, name=name)
            else:
                self.row([*columns, *switched], [*weights, *relaxing], low=relaxed, name=name)

    def conjunction(self, result: int, parts: Sequence[int], name: str) -> None:
        """Says that a binary is 1 exactly if all of some binaries are."""
        for part in parts:
            self.row([result, part], [1.0, -1.0], high=0.0, name=name)
        self.row([*parts, result], [*[1.0] * len(parts), -1.0], high=len(parts) - 1.0, name=name)

    def disjunction(self, result: int, parts: Sequence[int], name: str) -> None:
        """Says that a binary is 1 exactly if one of some binaries is, or more."""
        for part in parts:
            self.row([part, result], [1.0, -1.0], high=0.0, name=name)
        self.row([*parts, result], [*[-1.0] * len(parts), 1.0], high=0.0, name=name)

    def add_columns(
        self, names: Sequence[str], low: npt.ArrayLike, high: npt.ArrayLike, whole: npt.ArrayLike, costs: npt.ArrayLike
    ) -> None:
        """Adds columns that are given as arrays."""
        given = [floats(each).tolist() for each in (low, high, whole, costs)]
        if any(len(each) != len(names) for each in given):
            sizes = "{} lower and {} upper bounds, {} kinds and {} costs".format(*map(len, given))
            raise ProgramError(f"There are {sizes} for {len(names)} names. Give one of each for every variable.")
        self.low.extend(given[0])
        self.high.extend(given[1])
        self.whole.extend(map(bool, given[2]))
        self.objective.extend(given[3])
        self.columns.extend(names)

    def add_rows(
        self,
        sizes: npt.ArrayLike,
        columns: npt.ArrayLike,
        weights: npt.ArrayLike,
        low: npt.ArrayLike,
        high: npt.ArrayLike,
        names: Sequence[str] = (),
    ) -> None:
        """Adds rows that are given as arrays: how many terms each has, the terms, and limits."""
        self.row_size.extend(np.asarray(sizes).tolist())
        self.row_column.extend(np.asarray(columns).tolist())
        self.row_weight.extend(floats(weights).tolist())
        self.row_low.extend(floats(low).tolist())
        self.row_high.extend(floats(high).tolist())
        self.rows.extend(names or [""] * len(floats(low)))

    def statement(self) -> Statement:
        """Checks the pieces, makes names unique, adds up terms of one row and column, and takes 1e20 for infinity.

        The bounds of whole columns become whole: HiGHS may miss the optimum, or find none, where they are not.
        """
        low, high = _limits(self.low, "lower bounds"), _limits(self.high, "upper bounds")
        row_low, row_high = _limits(self.row_low, "lower limits"), _limits(self.row_high, "upper limits")
        objective, whole, n = _finite(self.objective, "The objective"), np.array(self.whole, dtype=bool), len(low)
        if not math.isfinite(self.constant):
            raise ProgramError(f"The objective's constant must be finite, got {self.constant}.")
        weight = _finite(self.row_weight, "The coefficients of the rows")
        column = np.array(self.row_column, dtype=np.int64)
        if column.size and not (column.min() >= 0 and column.max() < n):
            raise ProgramError(f"A row names a column that is not there; there are {n:,}, from 0.")
        m = len(row_low)
        first, column, weight = sorted_terms(m, n, np.arange(m).repeat(self.row_size), column, weight)
        left, right = np.array(self.left, dtype=np.int64), np.array(self.right, dtype=np.int64)
        round_inwards(low, high, whole)
        return Statement(
            str(self.name),
            unique_names(self.columns, "x"),
            low,
            high,
            whole,
            objective,
            float(self.constant),
            bool(self.maximize),
            unique_names(self.rows, "row"),
            first,
            column,
            weight,
            row_low,
            row_high,
            Products(left, right, _finite(self.product_weight, "The products of the objective")),
            tuple(self.tables),
            float(self.cutoff),
            self.sorted_by,
        )


def limits_of(sense: str, value: float) -> tuple[float, float]:
    """Returns the least and the most that a sum may be if it is `<`, `>` or `=` a number."""
    return (-math.inf if sense == "<" else value), (math.inf if sense == ">" else value)


def round_inwards(low: FloatArray, high: FloatArray, whole: BoolArray) -> None:
    """Moves the bounds of whole columns to whole numbers."""
    size = NOISE * np.maximum(1.0, np.abs(np.where(np.isinf(low), 0.0, low)))
    low[whole] = np.ceil(low - size)[whole] + 0.0
    size = NOISE * np.maximum(1.0, np.abs(np.where(np.isinf(high), 0.0, high)))
    high[whole] = np.floor(high + size)[whole] + 0.0


def unique_names(names: Sequence[str], letter: str) -> tuple[str, ...]:
    """Returns unique names: missing and repeated ones get a number."""
    given = [str(name) if name is not None else "" for name in names]
    if len(set(given)) == len(given) and "" not in given:
        return tuple(given)
    taken, found = set(given), []
    seen: set[str] = set()
    for n, name in enumerate(given):
        chosen = name
        if not name or name in seen:
            chosen = f"{name}#{n}" if name else f"{letter}{n}"
            while chosen in taken:
                chosen += "'"
            taken.add(chosen)
        seen.add(chosen)
        found.append(chosen)
    return tuple(found)


def _limits(values: Any, what: str) -> FloatArray:
    found = floats(values, copy=True)
    if np.isnan(found).any():
        raise ProgramError(f"The {what} hold nan. Give numbers, or inf where there is no limit.")
    found[found >= INFINITE], found[found <= -INFINITE] = math.inf, -math.inf
    return found


def _finite(values: Any, what: str) -> FloatArray:
    found = floats(values, copy=True)
    if found.size and not np.abs(found).max() <= HUGE:  # or nan
        raise ProgramError(f"{what} must be finite numbers of at most {HUGE:g}. Scale the model, or correct it.")
    return found


def sorted_terms(
    n_rows: int, n_columns: int, row: IntArray, column: IntArray, weight: FloatArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Returns where rows start, and their terms sorted by column, those of one column added up, without zeros."""
    number = row * max(1, n_columns) + column
    if number.size and not (number[1:] > number[:-1]).all():
        number, at = np.unique(number, return_inverse=True)
        total = np.zeros(len(number))
        np.add.at(total, at, weight)
        row, column, weight = number // n_columns, number % n_columns, total
    some = weight != 0.0
    return offsets(np.bincount(row[some], minlength=n_rows)), column[some], weight[some]

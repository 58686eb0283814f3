"""The state that recognition passes from step to step: variables with labels, rows over labels, tables.

A label sets one column to one value, or none: the columns of a variable that its label does not name are 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from hasten.programs.definitions import Definitions
from hasten.programs.statement import Statement
from hasten.support.arrays import BoolArray, FloatArray, IntArray, ints, offsets, ranges, sizes_of

Scope = tuple[int, ...]
VariableKey = tuple[str, tuple[str, ...], str]  # a name, labels, a colour
FactorKey = tuple[tuple[VariableKey, ...], bytes]  # its variables, and its costs


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Binary columns of which exactly one is 1 or, where there may be `none`, at most one."""

    columns: IntArray
    none: bool


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
    def sizes(self) -> IntArray:
        """(V,) the number of labels of each variable."""
        return sizes_of(self.first)

    @cached_property
    def variable(self) -> IntArray:
        """(L,) the variable of each label."""
        return np.arange(self.n_variables).repeat(self.sizes)

    @cached_property
    def _by_column(self) -> tuple[IntArray, IntArray]:
        """The labels sorted by column, and where those of each column start."""
        order = np.argsort(self.column, kind="stable")
        return order, np.searchsorted(self.column[order], np.arange(len(self.fixed) + 1))

    def of_columns(self, columns: IntArray) -> tuple[IntArray, IntArray]:
        """Returns the labels that set each of some columns, column after column, and how many each has."""
        order, first = self._by_column
        sizes = sizes_of(first)[columns]
        return order[ranges(first[columns], sizes)], sizes

    def of_column(self, j: int) -> IntArray:
        """Returns the labels that set a column."""
        order, first = self._by_column
        return order[first[j] : first[j + 1]]

    def labels(self, x: FloatArray) -> IntArray:
        """Returns the label of each variable, given the value of each column; -1 where no label says that."""
        found = np.full(self.n_variables, -1, dtype=np.int64)
        sets = self.column >= 0
        for at in (np.flatnonzero(~sets), np.flatnonzero(sets & (np.abs(x[self.column] - self.value) < 0.5))):
            v = self.variable[at]
            found[v] = at - self.first[v]
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

    def only(self, cells: BoolArray) -> Cells:
        """Returns all rows, with some of their cells."""
        return replace(self, row=self.row[cells], label=self.label[cells], weight=self.weight[cells])

    def only_rows(self, rows: BoolArray) -> Cells:
        """Returns some of the rows."""
        some, number = self.only(rows[self.row]), np.cumsum(rows) - 1
        limits = {name: getattr(self, name)[rows] for name in ("least", "most", "whole", "source")}
        return replace(some, row=number[some.row], **limits)

    def joined(self, more: Cells) -> Cells:
        """Returns the rows of both, one after the other."""
        names = ("label", "weight", "least", "most", "whole", "source")
        both = (np.concatenate([getattr(self, name), getattr(more, name)]) for name in names)
        return Cells(np.concatenate([self.row, more.row + self.n_rows]), *both)


def without_labels(space: Space, cells: Cells, dead: BoolArray) -> tuple[Space, Cells]:
    """Drops labels, and the variables that have none left."""
    alive = ~dead
    size = np.bincount(space.variable[alive], minlength=space.n_variables)
    some = cells.only(alive[cells.label])
    kept = replace(some, label=(np.cumsum(alive) - 1)[some.label])
    return Space(offsets(size[size > 0]), space.column[alive], space.value[alive], space.fixed), kept


@dataclass(slots=True)
class Tables:
    """Tables by their scopes, sorted, each with the name of a row or table that it was made of."""

    table: dict[Scope, FloatArray] = field(default_factory=dict)  # equal ones are one array
    name: dict[Scope, str] = field(default_factory=dict)
    n_rows: int = 0  # that became tables
    _arrays: dict[tuple[Scope, bytes], FloatArray] = field(default_factory=dict)

    def add(self, scope: Scope, costs: FloatArray, name: str) -> None:
        """Adds costs to the table of a scope, whose variables come in any order."""
        order = sorted(range(len(scope)), key=scope.__getitem__)
        scope, costs = tuple([scope[i] for i in order]), costs.transpose(order)
        known = self.table.get(scope)
        if known is not None:
            costs = known + costs
        key = costs.shape, costs.tobytes()
        if key not in self._arrays:
            self._arrays[key] = np.array(costs, order="C")
        self.table[scope] = self._arrays[key]
        self.name.setdefault(scope, name)


@dataclass(slots=True)
class Parts:
    """The part that each variable and each table of a program plays, as a key."""

    variables: list[VariableKey] = field(default_factory=list)
    factors: list[tuple[Scope, FactorKey, str]] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Recognised:
    """The state of recognition; every step of recognition adds to it, or ends it with a verdict."""

    statement: Statement
    origin: FloatArray  # (n,) lower bounds as stated, from which given tables count values
    defined: Definitions | None = None  # columns that are put in for
    groups: list[Group] = field(default_factory=list)
    space: Space = field(init=False)
    rules: Cells = field(init=False)
    tables: Tables = field(default_factory=Tables)
    base: FloatArray = field(default_factory=lambda: np.zeros(1))  # (L,) costs of labels under every objective
    constant: float = 0.0  # cost of everything that is decided already
    parts: Parts = field(default_factory=Parts)
    n_merged: int = 0  # rows over pairs that became cliques
    n_cliques: int = 0  # rules that say that at most one is chosen of several
    only_solver: str = ""  # why only a solver can answer this
    infeasible: bool = False

    def __post_init__(self) -> None:
        self.fix_all(np.zeros(self.statement.n_columns))

    def fix_all(self, fixed: FloatArray) -> None:
        """Leaves nothing to choose: one variable with one label."""
        none, nothing = ints(()), np.zeros(0)
        self.space = Space(np.array([0, 1]), np.array([-1]), np.zeros(1), fixed)
        self.rules = Cells(none, none, nothing, nothing, nothing, np.zeros(0, dtype=bool), none)
        self.tables, self.base = Tables(), np.zeros(1)
        self.parts = Parts([("nothing to choose", ("as it is",), "")])

    def has_no_answer(self) -> None:
        """Ends recognition: no values within the bounds keep all rows."""
        self.infeasible, self.groups, self.constant, self.n_merged, self.n_cliques = True, [], 0.0, 0, 0
        self.fix_all(np.zeros(self.statement.n_columns))


class FirstLook(NamedTuple):
    """The result of a first look at an objective, or of a cheapest flow; with one more axis, for several."""

    outcome: Any
    bound: Any
    size: Any  # of the terms
    cost: FloatArray  # (labels,)
    x: FloatArray  # (columns,) the values, where they are proved

    def one(self, p: int) -> FirstLook:
        """Returns the result for one of several objectives."""
        return FirstLook(*(each[p] for each in self))

"""From flat lists of scopes, tables and rows to the fields of a `Graph`.

Nothing here loops over factors, labels or cells: what all factors of a kind have in common is worked out once for
each schema (`Moulds`), and the rest is arithmetic on whole arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from hasten.kernels.layout import Graph
from hasten.kernels.tolerance import EPS, SLACK
from hasten.model.kinds import FactorKind
from hasten.support.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    ints,
    offsets,
    ranges,
    sizes_of,
    stable_order,
    strides,
)
from hasten.support.cache import Cache

Fields = dict[str, Any]  # of a graph, by name
SCOPE_FIELDS = (
    *("scope_first", "scope", "stride", "message_at", "start_at", "done_first", "done", "open_first", "open"),
    *("last", "touch_first", "touch", "factor_of"),
)
ROW_FIELDS = (
    *("row_first", "row_label", "row_variable", "row_weight", "row_low", "row_high", "row_least", "row_most"),
    *("row_counts", "cell_first", "cell_row", "cell_weight", "link_first", "link_row", "link_low", "link_high"),
    *("range_low", "range_high", "row_margin"),
)
NO_INTS, NO_FLOATS = ints(()), np.zeros(0)
EXACT = 2.0**53  # sums of whole numbers below this are exact
NOISE = 1e-9  # how far, relatively, a limit may be from the whole number that it stands for
MAX_LAYOUTS = 64  # of one schema's tables that are kept


class Own(NamedTuple):
    """Which tables problems bring, in place of the schema's; false if none."""

    factors: frozenset[int] = frozenset()  # one for each of these factors
    kinds: frozenset[int] = frozenset()  # one for all factors of each of these kinds, forbidding what the schema does
    free: frozenset[int] = frozenset()  # likewise, but what the schema forbids may be allowed

    def __bool__(self) -> bool:
        return any(map(len, self))


NONE_OWN = Own()


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table as graphs hold it: its costs, and the list of its tuples that are not forbidden."""

    values: FloatArray  # (size,)
    entries: IntArray  # (tuples,) where they are in the table
    labels: IntArray  # (tuples * arity,) slot by slot
    soft: bool  # whether it may do more than forbid

    @staticmethod
    def of(values: FloatArray, soft: bool) -> Table:
        """Makes a table from costs with an axis per slot, `inf` where forbidden."""
        tuples = np.argwhere(~np.isposinf(values))
        return Table(values.ravel(), tuples @ strides(values.shape), tuples.ravel(), soft)


@dataclass(frozen=True, slots=True, eq=False)
class TableLayout:
    """Tables, one after the other; -1 for those that are not there."""

    place: IntArray  # where each starts
    number: IntArray  # the number of its tuple list
    soft: IntArray  # the numbers of those that may do more than forbid
    fields: Fields  # what graphs hold of them, however many factors use each

    @staticmethod
    def of(tables: Sequence[Table | None], used: Sequence[int]) -> TableLayout:
        """Lays tables out in the order in which they are used."""
        used = [t for t in used if tables[t] is not None]
        chosen: list[Any] = [tables[t] for t in used]
        sizes = ints(len(table.values) for table in chosen)
        size_first = offsets(sizes)
        place, number = np.full((2, len(tables)), -1)
        place[used], number[used] = size_first[:-1], np.arange(len(used))
        soft = ints(t for t, table in enumerate(chosen) if table.soft)
        fields = {
            "soft_at": size_first[soft],
            "soft_size": sizes[soft],
            "list_first": offsets(len(table.entries) for table in chosen),
            "list_entry": np.concatenate([NO_INTS, *[table.entries for table in chosen]]),
            "list_label_at": offsets(len(table.labels) for table in chosen)[:-1],
            "list_label": np.concatenate([NO_INTS, *[table.labels for table in chosen]]),
            "table": np.concatenate([NO_FLOATS, *[table.values for table in chosen]]),
        }
        return TableLayout(place, number, soft, fields)


class Moulds:
    """What factors have in common with others of their kind, for all kinds of a schema: factors are cast in these."""

    def __init__(self, kinds: Iterable[FactorKind]) -> None:
        self.kinds = list(kinds)
        self.arity = ints(len(kind.roles) for kind in self.kinds)
        self.slot_first = offsets(self.arity)
        self.stride = np.concatenate([NO_INTS, *[strides(kind.shape) for kind in self.kinds]])
        self.start_at = np.concatenate(
            [NO_INTS, *[kind.message_at + offsets(kind.shape)[:-1] for kind in self.kinds]]
        )  # where the starting messages of each role start
        self.weight_at = ints(kind.weight_at for kind in self.kinds)
        self.tables = [_table_of(kind) for kind in self.kinds]
        self.layouts = Cache[tuple[int, ...], TableLayout](MAX_LAYOUTS)  # by the kinds in the order of their first use

    def cast(self, kind_of: IntArray, scope: IntArray, own: Own = NONE_OWN) -> Factors:
        """Returns the factors of some kinds and scopes; problems bring the tables that `own` lists."""
        arity = self.arity[kind_of]
        slots = ranges(self.slot_first[kind_of], arity)
        table_of, tables = kind_of, self.tables
        if own:
            table_of, tables = kind_of.copy(), list(tables)
            for k in own.kinds:
                tables[k] = self._changing(k)
            for k in own.free:
                tables[k] = self._free(k)
            for f in sorted(own.factors):
                table_of[f] = len(tables)
                tables.append(self._free(int(kind_of[f])))
        used = tuple(dict.fromkeys(table_of.tolist()))
        layout = None if own else self.layouts.get(used)
        if layout is None:
            layout = TableLayout.of(tables, used)
            if not own:
                self.layouts.put(used, layout)
        return Factors(
            arity, scope, self.stride[slots], self.start_at[slots], self.weight_at[kind_of], table_of, layout
        )

    def _changing(self, k: int) -> Table:
        """Returns the table of a kind in whose place problems bring others, which forbid at least the same."""
        table = self.tables[k]
        return self._free(k) if table is None else replace(table, soft=True)

    def _free(self, k: int) -> Table:
        """Returns a table in whose place problems bring others, which forbid whatever they like."""
        return Table.of(np.zeros(self.kinds[k].shape), soft=True)

    @cached_property
    def forbidden(self) -> list[IntArray]:
        """The entries that the table of each kind forbids."""
        return [NO_INTS if table is None else np.isposinf(table.values).nonzero()[0] for table in self.tables]


def _table_of(kind: FactorKind) -> Table | None:
    values = kind.table
    return None if values is None else Table.of(values, soft=bool(values[np.isfinite(values)].any()))


class Factors(NamedTuple):
    """The factors to compile; those with the same number in `table_of` share one table."""

    arity: IntArray  # (F,)
    scope: IntArray  # (slots,)
    stride: IntArray  # (slots,)
    start_at: IntArray  # (slots,)
    weight_at: IntArray  # (F,)
    table_of: IntArray  # (F,) which table of the layout
    layout: TableLayout


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


def compile_factors(variables: Fields, factors: Factors) -> Fields:
    """Returns the fields of some factors, given those of their variables."""
    first, order, position = variables["first"], variables["order"], variables["position"]
    n_variables, n_factors = len(order), len(factors.arity)
    scope, scope_first = factors.scope, offsets(factors.arity)
    factor_of = np.arange(n_factors).repeat(factors.arity)
    step = position[scope]
    completed_at = np.maximum.reduceat(step, scope_first[:-1])
    layout = factors.layout
    table_at, listing = layout.place[factors.table_of], layout.number[factors.table_of]
    before_last = np.maximum.reduceat(np.where(step < completed_at[factor_of], step, -1), scope_first[:-1])
    opened = ((before_last >= 0) & (table_at >= 0)).nonzero()[0]
    opened_at = before_last[opened]
    return {
        "scope_first": scope_first,
        "scope": scope,
        "stride": factors.stride,
        "message_at": offsets(sizes_of(first)[scope])[:-1],
        "start_at": factors.start_at,
        "table_at": table_at,
        "weight_at": factors.weight_at,
        "listing": listing,
        "done_first": offsets(np.bincount(completed_at, minlength=n_variables)),
        "done": stable_order(completed_at, n_variables),
        "open_first": offsets(np.bincount(opened_at, minlength=n_variables)),
        "open": opened[stable_order(opened_at, n_variables)],
        "last": order[completed_at],
        "touch_first": offsets(np.bincount(scope, minlength=n_variables)),
        "touch": stable_order(scope, n_variables),
        "factor_of": factor_of,
        "soft_count": np.bincount(listing[listing >= 0], minlength=len(layout.number))[layout.soft],
        **layout.fields,
    }


class _Cells(NamedTuple):
    """The cells of all rows: sorted by row and label, each once, without those that add nothing."""

    row: IntArray
    label: IntArray
    variable: IntArray
    weight: FloatArray


def compile_rows(variables: Fields, rows: Rows) -> Fields:
    """Returns the fields of some rows, given those of their variables."""
    n_labels, n_rows = int(variables["first"][-1]), len(rows.low)
    cells = _cells(variables, rows)
    by_label = stable_order(cells.label, n_labels)
    whole = counts = np.ones(n_rows, dtype=bool)
    if not (cells.weight == 1.0).all():
        counts = np.bincount(cells.row[cells.weight != 1.0], minlength=n_rows) == 0
        whole = np.bincount(cells.row[cells.weight != np.rint(cells.weight)], minlength=n_rows) == 0
    return {
        "row_first": offsets(np.bincount(cells.row, minlength=n_rows)),
        "row_label": cells.label,
        "row_variable": cells.variable,
        "row_weight": cells.weight,
        "row_low": rows.low,
        "row_high": rows.high,
        "row_least": row_limits(rows.low, whole, -1),
        "row_most": row_limits(rows.high, whole, 1),
        "row_counts": counts.astype(np.int64),
        "cell_first": offsets(np.bincount(cells.label, minlength=n_labels)),
        "cell_row": cells.row[by_label],
        "cell_weight": cells.weight[by_label],
        **_links(variables["first"], cells, n_rows, whole),
    }


def _cells(variables: Fields, rows: Rows) -> _Cells:
    first = variables["first"]
    label, weight = rows.label, rows.weight
    row = np.arange(len(rows.low)).repeat(sizes_of(rows.first))
    number = row * first[-1] + label
    if not (number[1:] > number[:-1]).all():
        by_number = number.argsort(kind="stable")
        number, label, weight = number[by_number], label[by_number], weight[by_number]  # each row stays where it is
        new = np.ones(len(number), dtype=bool)
        np.not_equal(number[1:], number[:-1], out=new[1:])
        if not new.all():
            terms, weight = weight, np.zeros(np.count_nonzero(new))
            np.add.at(weight, new.cumsum() - 1, terms)  # in their order
            row, label = row[new], label[new]
    if not weight.all():
        some = weight.nonzero()[0]
        row, label, weight = row[some], label[some], weight[some]
    return _Cells(row, label, np.arange(len(first) - 1).repeat(sizes_of(first))[label], weight)


def _links(first: IntArray, cells: _Cells, n_rows: int, whole: BoolArray) -> Fields:
    """Returns the links of variables to rows, and what rows can come to."""
    n_variables = len(first) - 1
    number = cells.row * n_variables + cells.variable
    new = np.ones(len(number), dtype=bool)  # the first cell of a variable in a row
    np.not_equal(number[1:], number[:-1], out=new[1:])
    at = new.nonzero()[0]
    row, variable = cells.row[at], cells.variable[at]
    low = high = NO_FLOATS
    if len(at):
        others = sizes_of(np.append(at, len(number))) < sizes_of(first)[variable]  # labels that add nothing
        low, high = np.minimum.reduceat(cells.weight, at), np.maximum.reduceat(cells.weight, at)
        low, high = np.where(others & (low > 0.0), 0.0, low), np.where(others & (high < 0.0), 0.0, high)
    by_variable = stable_order(variable, n_variables)
    return {
        "link_first": offsets(np.bincount(variable, minlength=n_variables)),
        "link_row": row[by_variable],
        "link_low": low[by_variable],
        "link_high": high[by_variable],
        "range_low": np.bincount(row, low, n_rows),
        "range_high": np.bincount(row, high, n_rows),
        "row_margin": _margins(row, np.maximum(-low, high), whole),
    }


def _margins(row: IntArray, size: FloatArray, whole: BoolArray) -> FloatArray:
    """Returns how far rounding can put what rows can come to off, given the row and the size of each link."""
    n_rows = len(whole)
    if whole.all() and size.sum() < EXACT:
        return np.zeros(n_rows)
    sizes, n_links = np.bincount(row, size, n_rows), np.bincount(row, minlength=n_rows)
    return np.where(whole & (sizes < EXACT), 0.0, 8 * EPS * (n_links + 4) * sizes)


def row_limits(limits: FloatArray, whole: BoolArray, side: int) -> FloatArray:
    """Returns how far rows may go to one side of their limits.

    A sum of whole weights stops at the last whole number within the limit, which may be off by what writing it as a
    float takes; others have the slack of a solver.
    """
    nearest = np.rint(limits)
    if whole.all() and (nearest == limits).all():
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

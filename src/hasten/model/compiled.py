"""The compiled form of a shape, shared by all structures of the shape, and what later rooms made of it.

It lives as long as one of these structures does and, up to `MAX_KEPT` bytes of all shapes together, until others have
been used since.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from hasten.kernels.layout import Graph
from hasten.model.kinds import FactorKind
from hasten.model.soft import Indicators
from hasten.support.arrays import FloatArray, IntArray, ints, offsets, ranges, sizes_of, strides
from hasten.support.threads import Cache

MAX_KEPT = 64 * 2**20  # bytes of compiled shapes, used last, that are kept although no structure has them
Made = TypeVar("Made")


class Compiled:
    """The arrays that all structures of one shape share."""

    def __init__(self, graph: Graph, row_names: tuple[str, ...], indicators: Indicators | None = None) -> None:
        self.graph = graph
        self.row_names = row_names
        self.indicators = indicators  # of soft rules
        self.plans: dict[Hashable, Any] = {}  # what later rooms made of it: see `made`
        self.n_bytes = graph.buffer.nbytes

    def __reduce__(self) -> tuple[type[Compiled], tuple[Graph, tuple[str, ...], Indicators | None]]:
        return Compiled, (self.graph, self.row_names, self.indicators)  # plans hold addresses: they are made anew

    def keep(self) -> None:
        """Counts as using it: it is kept until enough others have been used since."""
        _KEPT.put(self, self, self.n_bytes)

    def made(self, make: Callable[..., Made], *settings: Hashable) -> Made:
        """Returns what a function makes of this shape with some settings; it is made once, and its `n_bytes` count."""
        key = (make, *settings)
        made: Made | None = self.plans.get(key)
        if made is None and key not in self.plans:
            made = self.plans.setdefault(key, make(self, *settings))
            self.n_bytes += getattr(made, "n_bytes", 0)
            self.keep()
        return made  # type: ignore[return-value]

    @cached_property
    def is_forest(self) -> bool:
        """Whether its tables join variables without ever going round in a circle."""
        graph = self.graph
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

    @cached_property
    def is_free(self) -> bool:
        """Whether no rule forbids anything: none counts a label, and none that counts nothing is broken by that."""
        least, most = self.graph.row_least, self.graph.row_most
        return not self.graph.row_label.size and bool((least <= 0.0).all() and (most >= 0.0).all())

    @cached_property
    def may_be_valid(self) -> bool:
        """Whether no rule that counts nothing, whatever the labels, is broken by that."""
        first, least, most = self.graph.row_first, self.graph.row_least, self.graph.row_most
        empty = first[1:] == first[:-1]
        return bool((least[empty] <= 0.0).all() and (most[empty] >= 0.0).all())

    @cached_property
    def place(self) -> IntArray:
        """(2, 4) where a single problem of this shape has what kernels read (`hasten.kernels.layout.BatchArrays`)."""
        graph = self.graph
        return np.array([graph.address, 0, 0, 0, 0, int(graph.first[-1]), 0, len(graph.order)]).reshape(2, 4)

    @cached_property
    def n_variables(self) -> IntArray:
        """(1,) how many variables a problem has."""
        return np.array([len(self.graph.order)])

    @cached_property
    def variable_at(self) -> IntArray:
        """(2,) where the variables of one problem start and end in a labelling."""
        return offsets(self.n_variables)

    @cached_property
    def cost_at(self) -> IntArray:
        """(2,) where the costs of one problem start and end."""
        return offsets(self.graph.first[-1:])


_KEPT = Cache[Compiled, Compiled](MAX_KEPT)


Fields = dict[str, Any]  # of a graph, by name
NO_INTS, NO_FLOATS = ints(()), np.zeros(0)
MAX_CASTS = 2**22  # bytes of one schema's factors that are kept


class Slots(NamedTuple):
    """The tables that problems bring in place of the schema's; false if none."""

    factors: frozenset[int] = frozenset()  # one for each of these factors
    kinds: frozenset[int] = frozenset()  # one for all factors of each of these kinds, forbidding what the schema does
    free: frozenset[int] = frozenset()  # likewise, but tuples that the schema forbids may be allowed

    def __bool__(self) -> bool:
        return any(map(len, self))


NO_SLOTS = Slots()


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
    fields: Fields  # the fields of a graph that describe them, however many factors use each

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


class Templates:
    """The factor templates of all kinds of a schema."""

    def __init__(self, kinds: Iterable[FactorKind]) -> None:
        self.kinds = list(kinds)
        self.arity = ints(len(kind.roles) for kind in self.kinds)
        self.role_first = offsets(self.arity)
        self.n_labels = ints(n for kind in self.kinds for n in kind.shape)  # of each role
        self.stride = np.concatenate([NO_INTS, *[strides(kind.shape) for kind in self.kinds]])
        self.weight_at = ints(kind.weight_at for kind in self.kinds)
        self.tables = [_table_of(kind) for kind in self.kinds]
        self.casts = Cache[tuple[bytes, Slots], Graph](MAX_CASTS)  # by the kinds of all factors

    def cast(self, kinds: array[int], slots: Slots = NO_SLOTS) -> Graph:
        """Returns the part of a graph that depends on the kinds of its factors, whatever variables these join.

        Problems bring the tables that `slots` lists.
        """
        key = kinds.tobytes(), slots
        graph = self.casts.get(key)
        if graph is None:
            kind_of, table_of, tables = np.array(kinds), np.array(kinds), self._tables_with(slots)
            for f in sorted(slots.factors):
                table_of[f] = len(tables)
                tables.append(self._free(int(kind_of[f])))
            arity = self.arity[kind_of]
            roles = ranges(self.role_first[kind_of], arity)
            form = Form(arity, self.n_labels[roles], self.stride[roles], self.weight_at[kind_of])
            layout = TableLayout.of(tables, tuple(dict.fromkeys(table_of.tolist())))
            graph = Graph.start(**cast(form, table_of, layout))
            if graph.buffer.nbytes <= MAX_CASTS:
                self.casts.put(key, graph, graph.buffer.nbytes)
        return graph

    def _tables_with(self, slots: Slots) -> list[Table | None]:
        """Returns the tables of all kinds, those in whose place problems bring others as these may be."""
        tables = list(self.tables)
        for k in slots.kinds:
            table = tables[k]
            tables[k] = self._free(k) if table is None else replace(table, soft=True)
        for k in slots.free:
            tables[k] = self._free(k)
        return tables

    def _free(self, k: int) -> Table:
        return Table.of(np.zeros(self.kinds[k].shape), soft=True)

    @cached_property
    def forbidden(self) -> list[IntArray]:
        """The entries that the table of each kind forbids."""
        return [NO_INTS if table is None else np.isposinf(table.values).nonzero()[0] for table in self.tables]


def _table_of(kind: FactorKind) -> Table | None:
    values = kind.table
    return None if values is None else Table.of(values, soft=bool(values[np.isfinite(values)].any()))


class Form(NamedTuple):
    """The form of some factors, whatever variables they join."""

    arity: IntArray  # (F,)
    n_labels: IntArray  # (slots,)
    stride: IntArray  # (slots,)
    weight_at: IntArray  # (F,)


def cast(form: Form, table_of: IntArray, layout: TableLayout) -> Fields:
    """Returns the fields of a graph that describe some factors, given the number of each one's table in a layout."""
    listing = layout.number[table_of]
    return {
        "scope_first": offsets(form.arity),
        "factor_of": np.arange(len(table_of)).repeat(form.arity),
        "stride": form.stride,
        "message_at": offsets(form.n_labels)[:-1],
        "table_at": layout.place[table_of],
        "weight_at": form.weight_at,
        "listing": listing,
        "soft_count": np.bincount(listing[listing >= 0], minlength=len(layout.number))[layout.soft],
        **layout.fields,
    }

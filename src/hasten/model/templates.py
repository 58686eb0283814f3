"""Factor templates: the parts of a graph that all factors of a kind share, worked out once for each schema."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from hasten.kernels.layout import Graph
from hasten.model.kinds import FactorKind
from hasten.support.arrays import FloatArray, IntArray, ints, offsets, ranges, strides
from hasten.support.cache import Cache

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

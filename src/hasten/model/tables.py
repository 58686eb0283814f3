"""Tables that problems bring in place of the schema's: of single factors, or of all factors of a kind.

The compiled arrays of a structure depend on which tables there are and on what they forbid, not on their costs. So a
kind whose table changes, as in training, is given a slot once (`Slots`); problems are then answered with other costs
without compiling anything. A table that forbids at least what the schema's does keeps the plans made for that one; a
table that allows more takes a plan in which everything is possible.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from hasten.errors import SchemaError
from hasten.model.kinds import FactorKind, check_table, check_tables
from hasten.model.schema import Schema
from hasten.model.structure import Structure
from hasten.model.templates import NO_SLOTS, Slots
from hasten.support.arrays import FloatArray, IntArray, all_of
from hasten.support.checks import brief, is_whole

if TYPE_CHECKING:
    from hasten.model.batch import Batch

Tables: TypeAlias = Mapping[Any, FloatArray]  # by a factor's number, or by a factor kind or its name

NONE = np.zeros(0)


class Brought(NamedTuple):
    """Given tables, flat, by factor and by factor kind, and the slots that they need."""

    slots: Slots
    factors: dict[int, FloatArray]
    kinds: dict[int, FloatArray]


def read_tables(schema: Schema, tables: Tables, structure: Structure | None = None) -> Brought:
    """Reads tables given by factor kind or, for one structure, by factor; refuses those that do not fit."""
    factors, kinds, free = {}, {}, set()
    for key, given in tables.items():
        if structure is not None and not isinstance(key, str | FactorKind):
            factors[int(key) if is_whole(key) else -1] = check_table(given, _kind_of(structure, key)).ravel()
            continue
        kind = schema.factor_kind(key)
        flat = kinds[kind.index] = check_table(given, kind).ravel()
        forbidden = schema._templates.forbidden[kind.index]
        if len(forbidden) and not all_of(flat[forbidden] == np.inf):
            free.add(kind.index)
    return Brought(Slots(frozenset(factors), frozenset(kinds) - free, frozenset(free)), factors, kinds)


def bring(structure: Structure, tables: Tables) -> tuple[Structure, FloatArray]:
    """Returns a structure with slots for given tables alone, and all its tables: the given ones, and the schema's."""
    if not tables:
        structure = structure._with_slots(NO_SLOTS)
        return structure, structure.graph.table
    brought = read_tables(structure.schema, tables, structure)
    structure = structure._with_slots(brought.slots)
    return structure, filled(structure, brought)


def bring_to_all(batch: Batch, tables: Tables) -> tuple[tuple[Structure, ...], FloatArray, IntArray]:
    """Returns the structures of problems with slots for given tables, all tables, and where those of each start."""
    check_tables(tables)
    structures, blocks = list(batch.structures), Blocks()
    table_at, brought = np.zeros(len(batch), dtype=np.int64), dict[int, Brought]()
    for s in np.unique(batch.structure).tolist():
        given = structures[s]
        if id(given.schema) not in brought:
            brought[id(given.schema)] = read_tables(given.schema, tables)
        mine = brought[id(given.schema)]
        structures[s] = wide = widened(given, mine)
        if not given._slots:
            table_at[batch.structure == s] = blocks.put(filled(wide, mine))
            continue
        for p in np.flatnonzero(batch.structure == s).tolist():
            table_at[p] = blocks.put(filled(wide, mine, given, batch.table[batch.table_at[p] :]))
    return tuple(structures), blocks.table, table_at


def widened(structure: Structure, brought: Brought) -> Structure:
    """Returns a structure with slots for given tables and for those that its problems bring already.

    A table for all factors of a kind takes the place of those that single ones had.
    """
    if not structure._slots:
        return structure._with_slots(brought.slots)
    (factors, kinds, free), now, given = structure._slots, brought.slots, brought.kinds.keys()
    staying = [f for f in factors if structure.factors[f].kind.index not in given]
    return structure._with_slots(
        Slots(now.factors.union(staying), now.kinds | (kinds - given), now.free | (free - given))
    )


def filled(wide: Structure, brought: Brought, before: Structure | None = None, own: FloatArray = NONE) -> FloatArray:
    """Returns all tables of a structure with slots: the given ones, those that a problem had before, the schema's."""
    table = wide.graph.table.copy()
    for kind, start, at in () if before is None else shared_slots(before, wide):
        table[at : at + kind.size] = own[start : start + kind.size]
    for k, flat in brought.kinds.items():
        at = wide._table_starts.get(k, -1)
        if at >= 0:  # it has factors of this kind
            table[at : at + len(flat)] = flat
    for f, flat in brought.factors.items():
        at = int(wide.graph.table_at[f])
        table[at : at + len(flat)] = flat
    return table


def shared_slots(structure: Structure, wide: Structure) -> list[tuple[FactorKind, int, int]]:
    """Returns the tables that problems of one structure bring and that another one has, and where both have them."""
    kinds, (of_factors, of_kinds, free) = structure.schema._templates.kinds, structure._slots
    here, there = structure.graph.table_at, wide.graph.table_at
    shared = [k for k in structure._table_starts if k in of_kinds or k in free]
    found = [(kinds[k], structure._table_starts[k], wide._table_starts[k]) for k in shared]
    chosen = of_factors & wide._slots.factors
    return found + [(structure.factors[f].kind, int(here[f]), int(there[f])) for f in chosen]


class Blocks:
    """The tables of some problems, one after the other, equal ones once."""

    def __init__(self) -> None:
        self.size = 0
        self._tables: list[FloatArray] = []
        self._starts: dict[tuple[bytes, bytes], int] = {}

    def put(self, table: FloatArray, mark: bytes = b"") -> int:
        """Adds some tables, unless equal ones with the same mark are there; returns where they start."""
        at = self._starts.setdefault((table.tobytes(), mark), self.size)
        if at == self.size:
            self._tables.append(table)
            self.size += len(table)
        return at

    @property
    def table(self) -> FloatArray:
        """All of them."""
        return np.concatenate([np.zeros(0), *self._tables])


def _kind_of(structure: Structure, f: Any) -> FactorKind:
    if not is_whole(f) or not 0 <= f < structure.n_factors:
        raise SchemaError(
            f"There is no factor {brief(f)}. This structure has {structure.n_factors}, numbered from 0; "
            "a table for all factors of a kind is given by the kind's name."
        )
    return structure.factors[f].kind

"""Tables that problems bring in place of the schema's: of single factors, or of all factors of a kind.

What is compiled for a structure depends on which tables there are and on what they forbid, not on their costs. So a
kind whose table changes, as in training, is given a slot once (`Own`), and then a problem is answered with other costs
without compiling anything. A table that forbids at least what the schema's does keeps what was planned for that one;
a table that allows more takes a plan in which everything is possible.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from hasten.errors import SchemaError
from hasten.model.kinds import FactorKind, check_table
from hasten.model.moulds import Own
from hasten.model.schema import Schema
from hasten.model.structure import Structure
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.forms import short

Tables: TypeAlias = Mapping[Any, FloatArray]  # by a factor's number, or by a factor kind or its name


Way: TypeAlias = tuple[Structure, list[tuple[FactorKind, int, int, IntArray]]]  # kinds, where from and to, forbidden


class Brought(NamedTuple):
    """Tables that were given, flat, and of which factors and kinds they are."""

    own: Own
    factors: dict[int, FloatArray]
    kinds: dict[int, FloatArray]


NOTHING = Brought(Own(), {}, {})


def check_tables(tables: object) -> None:
    """Refuses tables that do not say whose they are."""
    if type(tables) is not dict and not isinstance(tables, Mapping):
        raise SchemaError(
            "Tables are given by the number of their factor, or by its kind: tables={'agree': table}; got "
            f"{short(tables)}."
        )


def read_by_kind(schema: Schema, tables: Tables) -> Brought:
    """Reads tables given by factor kind, or says which of them does not fit."""
    kinds, free = {}, set()
    for key, given in tables.items():
        kind = _kind(schema, key)
        flat = check_table(given, kind).ravel()
        forbidden = schema._moulds.forbidden[kind.index]
        if len(forbidden) and not np.isposinf(flat[forbidden]).all():
            free.add(kind.index)
        kinds[kind.index] = flat
    return Brought(Own(frozenset(), frozenset(kinds.keys() - free), frozenset(free)), {}, kinds)


def read_tables(structure: Structure, tables: Tables) -> Brought:
    """Reads tables given by factor or by factor kind, or says which of them does not fit."""
    of_kinds = {key: given for key, given in tables.items() if isinstance(key, str | FactorKind)}
    (_, changing, free), _, kinds = read_by_kind(structure.schema, of_kinds)
    factors = {}
    for f, given in tables.items() if len(of_kinds) < len(tables) else ():
        if f not in of_kinds:
            factors[f] = check_table(given, _factor(structure, f)).ravel()
    return Brought(Own(frozenset(factors), changing, free), factors, kinds)


def bring(structure: Structure, tables: Tables) -> tuple[Structure, FloatArray]:
    """Returns a structure with slots for these tables, and all its tables: these, and the schema's.

    Tables by the names of kinds, as they come in training, go the short way: all but their costs is known from before.
    """
    names = tuple(tables)
    way = structure._ways.get(names)
    if way is None and all(isinstance(name, str) for name in names):
        way = _way(structure, names)
        structure._ways.put(names, way)
    if way is not None:
        opened, slots = way
        before: FloatArray = opened.graph.table
        table = before
        for given, (kind, at, end, forbidden) in zip(tables.values(), slots, strict=True):
            flat = check_table(given, kind).ravel()
            if len(forbidden) and not np.isposinf(flat[forbidden]).all():
                break
            if at == 0 and end == before.size:  # it is the only one
                table = flat.copy()
            elif at >= 0:
                table = before.copy() if table is before else table
                table[at:end] = flat
        else:
            return opened, table
    brought = read_tables(structure, tables)
    structure = structure._bringing(brought.own)
    return structure, filled(structure, brought)


def _way(structure: Structure, names: tuple[str, ...]) -> Way:
    """Returns where tables given by the names of kinds go."""
    schema = structure.schema
    kinds = [_kind(schema, name) for name in names]
    opened = structure._bringing(Own(kinds=frozenset(kind.index for kind in kinds)))
    starts = [opened._slots.get(kind.index, -1) for kind in kinds]
    forbidden = [schema._moulds.forbidden[kind.index] for kind in kinds]
    return opened, [(k, at, at + k.size, no) for k, at, no in zip(kinds, starts, forbidden, strict=True)]


def filled(structure: Structure, brought: Brought) -> FloatArray:
    """Returns all tables of a structure that has slots for these: these, and the schema's."""
    table = structure.graph.table.copy()
    _fill(table, structure, brought)
    return table


def widened(structure: Structure, brought: Brought) -> Structure:
    """Returns a structure with slots for these tables and for those that its problems have of their own.

    A table for all factors of a kind takes the place of what single ones had.
    """
    if not structure._own:
        return structure._bringing(brought.own)
    (factors, kinds, free), now = structure._own, brought.own
    staying = [f for f in factors if structure.factors[f].kind.index not in brought.kinds]
    given = brought.kinds.keys()
    return structure._bringing(Own(now.factors.union(staying), now.kinds | (kinds - given), now.free | (free - given)))


def refilled(structure: Structure, table: FloatArray, wide: Structure, brought: Brought) -> FloatArray:
    """Returns all tables of a problem that has some of its own, under its widened structure, with others brought."""
    found = wide.graph.table.copy()
    for kind, start, at in shared_slots(structure, wide) if structure._own else ():
        found[at : at + kind.size] = table[start : start + kind.size]
    _fill(found, wide, brought)
    return found


def shared_slots(structure: Structure, wide: Structure) -> list[tuple[FactorKind, int, int]]:
    """Returns the tables that problems of one structure bring and that another one has, and where both have them."""
    kinds, (of_factors, of_kinds, free) = structure.schema._moulds.kinds, structure._own
    here, there = structure.graph.table_at, wide.graph.table_at
    found = [(kinds[k], at, wide._slots[k]) for k, at in structure._slots.items() if k in of_kinds or k in free]
    chosen = of_factors & wide._own.factors
    return found + [(structure.factors[f].kind, int(here[f]), int(there[f])) for f in chosen]


def _fill(table: FloatArray, structure: Structure, brought: Brought) -> None:
    """Puts tables into their slots; those of kinds that this structure lacks are left out."""
    slots = structure._slots if brought.kinds else {}
    for k, flat in brought.kinds.items():
        at = slots.get(k, -1)
        if at >= 0:
            table[at : at + len(flat)] = flat
    for f, flat in brought.factors.items():
        at = int(structure.graph.table_at[f])
        table[at : at + len(flat)] = flat


class Blocks:
    """The tables of some problems, one after the other, those that are alike once."""

    def __init__(self) -> None:
        self.size = 0
        self._tables: list[FloatArray] = []
        self._starts: dict[tuple[bytes, bytes], int] = {}

    def put(self, table: FloatArray, mark: bytes = b"") -> int:
        """Adds some tables, unless there are such, of the same mark; returns where they start."""
        at = self._starts.setdefault((table.tobytes(), mark), self.size)
        if at == self.size:
            self._tables.append(table)
            self.size += len(table)
        return at

    @property
    def table(self) -> FloatArray:
        """All of them."""
        return np.concatenate([np.zeros(0), *self._tables])


def _kind(schema: Schema, key: object) -> FactorKind:
    name = key.name if isinstance(key, FactorKind) else key
    kind = schema.factors.get(name) if isinstance(name, str) else None
    if kind is None:
        hint = " Factors are numbered in each structure: use problem.with_tables." if isinstance(key, int) else ""
        raise SchemaError(
            f"There is no factor kind {name!r}. This schema has {', '.join(schema.factors) or 'none'}.{hint}"
        )
    return kind


def _factor(structure: Structure, f: object) -> FactorKind:
    if not isinstance(f, int | np.integer) or isinstance(f, bool) or not 0 <= f < len(structure.factors):
        raise SchemaError(
            f"There is no factor {f!r}. This structure has {len(structure.factors)}, numbered from 0; "
            "a table for all factors of a kind is given by the kind's name."
        )
    return structure.factors[f].kind

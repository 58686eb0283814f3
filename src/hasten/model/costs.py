"""The costs of problems, however they are given: arrays, lists, scores to maximise, or a scorer asked on demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from hasten.errors import ProblemError, SchemaError
from hasten.model.compiled import NO_SLOTS, Slots
from hasten.model.kinds import FactorKind, check_table, check_tables
from hasten.model.schema import Schema
from hasten.model.soft import with_prices
from hasten.model.structure import Structure
from hasten.support.arrays import FloatArray, IntArray, all_finite, all_of, floats, offsets, ranges, sizes_of
from hasten.support.checks import brief, is_whole, whole_numbers
from hasten.support.words import count

if TYPE_CHECKING:
    from hasten.model.batch import Batch


class Scorer(Protocol):
    """Answers requests for costs: those of variable `variables[r]` of problem `problems[r]`, one after the other."""

    def __call__(self, problems: IntArray, variables: IntArray, /) -> FloatArray:
        """Returns the costs of the requested variables, all labels of the first, then of the second, …"""
        ...


@dataclass(frozen=True, slots=True)
class Negated:
    """A scorer whose scores are maximised."""

    scorer: Scorer

    def __call__(self, problems: IntArray, variables: IntArray, /) -> FloatArray:
        """Returns minus the scores."""
        return -floats(self.scorer(problems, variables))


Given: TypeAlias = FloatArray | Sequence[float] | Sequence[Sequence[float] | FloatArray]
Costs: TypeAlias = Given | Scorer


def read_costs(structure: Structure, costs: Given, maximize: bool) -> FloatArray:
    """Returns given costs, or scores, as one flat array of costs, with the prices of soft rules behind them."""
    try:
        if isinstance(costs, np.ndarray) and costs.ndim == 1 and costs.dtype.kind in "biuf":
            flat = floats(costs, copy=True)
        else:
            flat = _joined(structure, [floats(part) for part in (floats(costs) if hasattr(costs, "detach") else costs)])
    except (TypeError, ValueError):
        raise ProblemError(
            "Costs are numbers. Give a list or array for each variable, one flat list or array, or a scorer."
        ) from None
    if flat.size != structure.n_labels and flat.size == structure.graph.first[-1]:
        flat = flat[: structure.n_labels]  # the costs of another problem, with the prices of soft rules
    if flat.size != structure.n_labels:
        raise ProblemError(
            f"Got {count(flat.size, 'cost')} for {count(structure.n_labels, 'label')}. "
            "Give one cost per label, in the order of the structure's variables."
        )
    if maximize:
        np.negative(flat, out=flat)
    check_costs(structure, flat, maximize)
    return with_prices(structure, flat)


def _joined(structure: Structure, parts: Sequence[FloatArray]) -> FloatArray:
    if parts and all(part.ndim == 0 for part in parts):
        return np.array(parts)
    if len(parts) != structure.n_variables:
        raise ProblemError(
            f"Got costs for {count(len(parts), 'variable')}; the structure has {structure.n_variables:,}. "
            "Give a list or array of costs for each variable, or one flat list or array."
        )
    for v, (kind, part) in enumerate(zip(structure.kinds, parts, strict=True)):
        if part.shape != (len(kind),):
            raise ProblemError(
                f"Variable {v} ({kind.name}) got costs of shape {part.shape}; "
                f"it needs one for each of {', '.join(kind.labels)}."
            )
    return np.concatenate(parts) if parts else np.zeros(0)


def first_wrong(costs: FloatArray) -> int | None:
    """Returns where the first cost stands that is neither finite nor inf; None if all are."""
    if all_finite(costs):
        return None
    wrong = np.flatnonzero(np.isnan(costs) | np.isneginf(costs))
    return int(wrong[0]) if wrong.size else None


def check_costs(structure: Structure, flat: FloatArray, scores: bool = False, where: str = "The") -> None:
    """Refuses costs that are neither finite nor inf, and names the first; `scores` says that minus these were given."""
    at = first_wrong(flat)
    if at is not None:
        v = int(np.searchsorted(structure.graph.first, at, side="right")) - 1
        label = structure.kinds[v].labels[at - structure.graph.first[v]]
        what, value, forbids = ("score", -flat[at], "-inf") if scores else ("cost", flat[at], "inf")
        raise ProblemError(
            f"{where} {what} of variable {v} ({structure.kinds[v].name}) for label {label} is {value}. "
            f"{what.title()}s are finite, or {forbids} to forbid a label."
        )


def as_costs(costs: object) -> FloatArray:
    """Returns costs as an array of our own, or says that they are not numbers."""
    try:
        return floats(costs, copy=True)
    except (TypeError, ValueError) as error:
        raise ProblemError(f"Costs are numbers, one for each label of each problem ({error}).") from None


def rows_of_costs(structure: Structure, costs: object, maximize: bool) -> tuple[FloatArray, IntArray]:
    """Returns a matrix with a row of costs, or scores, for each problem as flat costs, and zeros for each problem."""
    matrix = as_costs(costs)
    if matrix.ndim != 2 or matrix.shape[1] != structure.n_labels:
        raise ProblemError(
            f"Got costs of shape {matrix.shape}; this structure needs (problems, {structure.n_labels}): "
            "a row per problem with one cost per label, in the order of the variables."
        )
    if maximize:
        np.negative(matrix, out=matrix)
    return matrix.ravel(), np.zeros(len(matrix), dtype=np.int64)


def ask(batch: Batch, problems: IntArray, variables: IntArray) -> FloatArray:
    """Asks the scorer of a batch for the costs of some variables of some problems; prices of soft rules are known."""
    if batch.scorer is None:
        raise ProblemError("This batch has its costs given; there is no scorer to ask.")
    starts, sizes = batch.label_ranges(problems, variables)
    asked = np.flatnonzero(variables < sizes_of(batch.labels_at)[problems])
    if not len(problems) or len(asked) == len(problems):
        return _scored(batch.scorer, batch.ids, problems, variables, sizes) if len(problems) else np.zeros(0)
    cost, at = batch.cost[ranges(batch.cost_at[problems] + starts, sizes)], ranges(offsets(sizes)[asked], sizes[asked])
    if asked.size:
        cost[at] = _scored(batch.scorer, batch.ids, problems[asked], variables[asked], sizes[asked])
    return cost


def _scored(
    scorer: Scorer, ids: IntArray | None, problems: IntArray, variables: IntArray, sizes: IntArray
) -> FloatArray:
    """Asks a scorer for the costs of variables with so many labels, and checks its answer."""
    ids = problems if ids is None else ids[problems]
    costs = as_costs(scorer(ids, variables))
    if costs.shape != (sizes.sum(),):
        raise ProblemError(
            f"The scorer returned costs of shape {costs.shape} for {len(problems)} requests that need "
            f"{sizes.sum()}. Return all labels of the first requested variable, then of the second, and so on."
        )
    at = first_wrong(costs)
    if at is not None:
        r = int(np.searchsorted(np.cumsum(sizes), at, side="right"))
        raise ProblemError(
            f"The scorer returned {costs[at]} for variable {variables[r]} of problem {ids[r]}. "
            "Costs are finite, or inf to forbid a label."
        )
    return costs


def add_loss(batch: Batch, labels: Any, weight: float | FloatArray) -> FloatArray:
    """Returns the costs of problems in which every label but the given one is cheaper by `weight`."""
    at, given = batch.labels_at, whole_numbers(labels, "Labels", n_axes=None)
    if given.ndim == 2 and given.shape[0] == len(batch) and (sizes_of(at) == given.shape[1]).all():
        given = given.ravel()
    if given.shape != (at[-1],):
        raise ProblemError(f"Got labels of shape {given.shape} for {at[-1]} variables. Give numbers, flat.")
    problems = np.arange(len(batch)).repeat(sizes_of(at))
    starts, sizes = batch.label_ranges(problems, np.arange(len(given)) - at[problems])
    wrong = np.flatnonzero((given < 0) | (given >= sizes))
    if wrong.size:
        raise ProblemError(f"Problem {problems[wrong[0]]}: there is no label number {given[wrong[0]]}.")
    try:
        loss = np.broadcast_to(floats(weight), given.shape)
    except (TypeError, ValueError):
        raise ProblemError(f"The weight of a loss is a number, or one for each of {len(given)} variables.") from None
    if not (np.isfinite(loss).all() and (loss >= 0).all()):
        raise ProblemError("The weight of a loss must be finite, and 0 or more.")
    cost, starts = batch.cost.copy(), starts + batch.cost_at[problems]
    with np.errstate(over="ignore"):
        cost[ranges(starts, sizes)] -= loss.repeat(sizes)
    cost[starts + given] = batch.cost[starts + given]
    if np.isneginf(cost).any():
        raise ProblemError("With this loss, a cost is no longer finite. Scale the weight or the costs down.")
    return cost


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

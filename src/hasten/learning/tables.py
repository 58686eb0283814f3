"""The costs of the declared factors, as learned from a black box's answers: a value that problems can be proved with.

A factor of a schema names a scope. What its label tuples cost may be known (its table), or only to the black box.
Learned tables say for each tuple of each learned factor kind whether it is forbidden, and what it costs on top of what
the schema says. With them added, a problem is an ordinary problem, so the certifier finds its optimum and proves it.
That is an optimum *for the learned tables*: how often it is the black box's answer, only comparing them can tell.

Tables belong to kinds of factors, not to structures: what was learned on small inputs holds on larger ones.

A tuple is *mined* as forbidden if it never occurs, although its labels would have met by chance. If the labels of a
factor had nothing to do with each other, these would be expected to meet m times, in the roles that they have, and
would never meet with a chance of exp(-m). So the tuple is forbidden with a confidence of 1 - exp(-m).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from hasten.errors import ProblemError
from hasten.learning.heuristic import learned_kinds
from hasten.model.batch import Batch
from hasten.model.compiled import Slots
from hasten.model.costs import Blocks, shared_slots
from hasten.model.kinds import FactorKind
from hasten.model.schema import Schema
from hasten.model.structure import Structure
from hasten.support.arrays import BoolArray, FloatArray, IntArray, ints, offsets, ranges, sizes_of


@dataclass(frozen=True, eq=False)
class Evidence:
    """How often some answers show each label tuple, and how often its labels would have met by chance."""

    shown: IntArray  # (n_weights,)
    chance: FloatArray  # (n_weights,)

    @classmethod
    def of(cls, batch: Batch, labels: IntArray, problems: IntArray) -> Evidence:
        """Gathers it from some problems of a batch with its flat answers."""
        schema, structure = batch.structures[0].schema, batch.structure[problems]
        shown = np.zeros(schema.n_weights, dtype=np.int64)
        for s in np.unique(structure).tolist():
            graph = batch.structures[s].graph
            learned = graph.weight_at >= 0
            if learned.any():
                places = batch.variable_at[problems[structure == s]][:, None] + graph.scope
                entries = np.add.reduceat(graph.stride * labels[places], graph.scope_first[:-1], axis=1)
                shown += np.bincount((graph.weight_at + entries)[:, learned].ravel(), minlength=len(shown))
        return cls(shown, chances(schema, shown))

    @property
    def confidence(self) -> FloatArray:
        """How sure it is that a tuple is forbidden; 0 for those that occur."""
        return np.where(self.shown > 0, 0.0, -np.expm1(-self.chance))

    def forbidden(self, confidence: float) -> BoolArray:
        """Returns the tuples that are forbidden with this confidence; with 0, all that never occur."""
        return np.asarray((self.shown == 0) & (self.confidence >= confidence))


def chances(schema: Schema, shown: IntArray) -> FloatArray:
    """Returns how often the labels of each tuple would have met if those of a factor were drawn one by one."""
    found = np.zeros(len(shown))
    for kind in learned_kinds(schema):
        mine = slice(kind.weight_at, kind.weight_at + kind.size)
        counts = shown[mine].reshape(kind.shape)
        total, expected = counts.sum(), np.full(kind.shape, float(counts.sum()))
        for role in range(counts.ndim):
            others = tuple(axis for axis in range(counts.ndim) if axis != role)
            expected = expected * (counts.sum(axis=others, keepdims=True) / max(total, 1))
        found[mine] = expected.ravel()
    return found


@dataclass(frozen=True, eq=False)
class LearnedTables:
    """For each label tuple of each learned factor kind: whether it is forbidden, and what it costs.

    Labels may have costs by themselves as well, those of their kind of variable, wherever they are.
    """

    schema: Schema
    forbidden: BoolArray  # (n_weights,)
    cost: FloatArray  # (n_weights,) finite
    label_cost: FloatArray | None = None  # (labels of all variable kinds,) of labels by themselves; None: nothing

    def __post_init__(self) -> None:
        n, of_labels = self.schema.n_weights, np.zeros(0) if self.label_cost is None else self.label_cost
        wrong = self.label_cost is not None and of_labels.shape != (n_labels(self.schema),)
        if wrong or self.forbidden.shape != (n,) or self.cost.shape != (n,):
            raise ProblemError(
                f"Learned tables of shapes {self.forbidden.shape}, {self.cost.shape}, {of_labels.shape} for a schema "
                f"with {n} label tuples of learned factors and {n_labels(self.schema)} labels. Use tables that were "
                "learned with this schema."
            )
        if not (np.isfinite(self.cost).all() and np.isfinite(of_labels).all()):
            raise ProblemError("Learned costs must be finite. What is forbidden is said apart from them.")

    @classmethod
    def that_forbid(cls, schema: Schema, forbidden: BoolArray) -> LearnedTables:
        """Returns tables that forbid some tuples, and else say no more than the schema does."""
        return cls(schema, forbidden, np.zeros(schema.n_weights))

    @property
    def n_forbidden(self) -> int:
        """How many tuples are forbidden."""
        return int(self.forbidden.sum())

    @property
    def n_costly(self) -> int:
        """How many tuples that are allowed, and labels, cost something, more or less than nothing."""
        labels = 0 if self.label_cost is None else int(np.count_nonzero(self.label_cost))
        return int(np.count_nonzero(self.cost[~self.forbidden])) + labels

    @property
    def weights(self) -> FloatArray:
        """Minus the costs of tuples, then of labels."""
        labels = np.zeros(n_labels(self.schema)) if self.label_cost is None else self.label_cost
        return -np.concatenate([self.cost, labels])

    def table(self, name: str) -> FloatArray:
        """Returns what the tuples of a factor kind cost, the schema's own table included: an axis per role."""
        if name not in self.schema.factors:
            raise ProblemError(f"There is no factor {name!r}. There are {', '.join(self.schema.factors) or 'none'}.")
        return self._table(self.schema.factors[name])

    def _table(self, kind: FactorKind) -> FloatArray:
        known = np.zeros(kind.shape) if kind.table is None else kind.table
        if not kind.learned:
            return known
        mine = slice(kind.weight_at, kind.weight_at + kind.size)
        added: FloatArray = np.where(self.forbidden[mine], np.inf, self.cost[mine]).reshape(kind.shape)
        return known + added

    def added_to(self, batch: Batch) -> Batch:
        """Returns problems with these tables added to their own."""
        batch = batch.resolved()
        if self.forbidden.any() or self.cost.any():
            learned = np.where(self.forbidden, np.inf, self.cost)
            batch = _under(batch, self._schema, self._twins, learned)[0]
        if self.label_cost is not None:
            cost = batch.cost + self.label_cost[Labels.of(batch).of_cost]
            batch = Batch(batch.structures, batch.structure, cost, batch.cost_at, batch.table, batch.table_at)
        return batch

    @cached_property
    def _schema(self) -> Schema:
        said = self.forbidden | (self.cost != 0)
        adds = [each for each in learned_kinds(self.schema) if said[each.weight_at : each.weight_at + each.size].any()]
        return self.schema.with_tables({kind.name: self._table(kind) for kind in adds})

    @cached_property
    def _twins(self) -> Twins:
        return WeakKeyDictionary()

    def __getstate__(self) -> dict[str, Any]:
        kept = ("schema", "forbidden", "cost", "label_cost")
        return {name: getattr(self, name) for name in kept}

    def __repr__(self) -> str:
        return f"LearnedTables({self.n_forbidden} tuples forbidden, {self.n_costly} with a cost)"


class Changing:
    """Some problems under tables that forbid the same tuples for good, and whose costs are still being learned."""

    def __init__(self, batch: Batch, forbidden: BoolArray) -> None:
        schema = batch.structures[0].schema
        hard = LearnedTables.that_forbid(schema, forbidden)
        kinds = learned_kinds(schema)
        tables, learned = {kind.name: hard._table(kind) for kind in kinds}, frozenset(kind.index for kind in kinds)
        self.forbidden = forbidden
        hardened, added = schema.with_tables(tables), np.where(forbidden, np.inf, 0.0)
        self.batch, weight_of = _under(batch, hardened, WeakKeyDictionary(), added, learned)
        self.there = np.flatnonzero(weight_of >= 0)
        self.weight_of = weight_of[self.there]
        self.known = self.batch.table[self.there]
        self.labels, self.n_tuples = Labels.of(batch), schema.n_weights

    def some(self, problems: IntArray, weights: FloatArray, cost: FloatArray | None = None) -> Batch:
        """Returns some of the problems, each tuple and each label costing minus its weight.

        The weights of labels follow those of tuples. `cost` is in place of all costs that the problems have.
        """
        every = self.batch
        used, numbers = np.unique(every.structure[problems], return_inverse=True)
        table = every.table.copy()
        table[self.there] = self.known - weights[self.weight_of]
        cost_at = offsets(np.diff(every.cost_at)[problems])
        source = ranges(every.cost_at[problems], sizes_of(cost_at))
        structures = tuple([every.structures[s] for s in used.tolist()])
        chosen = (every.cost if cost is None else cost)[source]
        if len(weights) > self.n_tuples:
            chosen = chosen - weights[self.n_tuples + self.labels.of_cost[source]]
        return Batch(structures, numbers, chosen, cost_at, table, every.table_at[problems])


class Labels(NamedTuple):
    """Which labels, counted over all kinds of variables, the costs of some problems are those of."""

    first: IntArray  # (variables of all problems,) the first label of each
    of_cost: IntArray  # (costs of all problems,)

    @classmethod
    def of(cls, batch: Batch) -> Labels:
        """Looks them up."""
        if batch.soft:
            raise ProblemError(
                "Tables are learned where rules must be kept; these problems have rules with a price. State such rules "
                "as tables with costs, or use another mode."
            )
        found: dict[int, tuple[IntArray, IntArray]] = {}
        for s in np.unique(batch.structure).tolist():
            structure = batch.structures[s]
            kind_first = offsets(len(kind) for kind in structure.schema.variables.values())
            kinds = np.array(structure._scopes.kind, dtype=np.int64)
            found[s] = kind_first[kinds], ranges(kind_first[kinds], np.diff(kind_first)[kinds])
        numbers = batch.structure.tolist()
        return cls(*(np.concatenate([ints(()), *(found[s][x] for s in numbers)]) for x in range(2)))


def n_labels(schema: Schema) -> int:
    """Returns how many labels the variables of all kinds have."""
    return sum(len(kind) for kind in schema.variables.values())


Twins = WeakKeyDictionary[Structure, Structure]


def _under(
    batch: Batch, schema: Schema, twins: Twins, learned: FloatArray, changing: frozenset[int] = frozenset()
) -> tuple[Batch, IntArray]:
    """Returns problems under a schema with other tables; and the number of each table entry's tuple, -1 for others.

    Where problems bring tables of their own, `learned` is added to those. The costs of `changing` kinds may change.
    """
    structures, blocks = list(batch.structures), _Blocks()
    table_at = np.zeros(len(batch), dtype=np.int64)
    for s in np.unique(batch.structure).tolist():
        given = structures[s]
        if given not in twins:
            factors, kinds, free = given._slots
            twins[given] = given.under(schema)._with_slots(Slots(factors, kinds | (changing - free), free))
        structures[s] = twin = twins[given]
        mine = np.flatnonzero(batch.structure == s)
        if not given._slots:
            table_at[mine] = blocks.of(twin.graph.table, twin)
            continue
        for p in mine.tolist():
            table = _with_own(batch.table[batch.table_at[p] :], given, twin, learned)
            table_at[p] = blocks.of(table, twin)
    under = Batch(tuple(structures), batch.structure, batch.cost, batch.cost_at, blocks.table, table_at)
    return under, blocks.weight_of


class _Blocks(Blocks):
    """The tables of some problems, and the number of the tuple that each entry is of; -1 if it is not learned."""

    def __init__(self) -> None:
        super().__init__()
        self._weights: list[IntArray] = [ints(())]

    def of(self, table: FloatArray, structure: Structure) -> int:
        """Adds the tables of a structure, unless they are there; returns where they start."""
        weights, size = _tuples_of(structure), self.size
        at = self.put(table, weights.tobytes())
        if self.size > size:
            self._weights.append(weights)
        return at

    @property
    def weight_of(self) -> IntArray:
        """The number of the tuple of each entry."""
        return np.concatenate(self._weights)


def _tuples_of(structure: Structure) -> IntArray:
    """Returns for each entry of a structure's tables the number of its tuple; -1 if it is not learned."""
    graph, found = structure.graph, np.full(len(structure.graph.table), -1)
    with_table = np.flatnonzero((graph.table_at >= 0) & (graph.weight_at >= 0))
    _, once = np.unique(graph.table_at[with_table], return_index=True)
    for f in with_table[once].tolist():
        size, at = structure.factors[f].kind.size, int(graph.table_at[f])
        found[at : at + size] = np.arange(graph.weight_at[f], graph.weight_at[f] + size)
    return found


def _with_own(own: FloatArray, given: Structure, twin: Structure, learned: FloatArray) -> FloatArray:
    """Returns the tables of a problem that brings some of its own, with what was learned added to these."""
    table = twin.graph.table.copy()
    for kind, was, at in shared_slots(given, twin):
        table[at : at + kind.size] = own[was : was + kind.size]
        if kind.learned:
            table[at : at + kind.size] += learned[kind.weight_at : kind.weight_at + kind.size]
    return table

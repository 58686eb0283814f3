"""The second step: the topology of one shape of input, compiled once to flat arrays.

A structure lists variables, the factors that connect them, and rules. Inputs of the same shape share it (two
sentences with four entities differ in their costs alone); two structures built alike share their compiled
arrays, and with them every solver's model, through their schema (`hasten.model.compiled`).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from hasten.errors import SchemaError
from hasten.kernels.cells import Rows, with_rows, with_scopes
from hasten.kernels.layout import Graph
from hasten.model.compiled import NO_SLOTS, Compiled, Slots
from hasten.model.kinds import FactorKind, VariableKind
from hasten.model.rules import OwnRule, Rule, RuleBuilder, rows_of
from hasten.model.schema import Schema
from hasten.model.soft import Indicators, lower
from hasten.support.arrays import FloatArray, IntArray, ints, offsets, packed, ranges, sizes_of
from hasten.support.checks import brief, check_switch, check_type, check_whole, listed, whole_numbers
from hasten.support.threads import Cache
from hasten.support.words import count

if TYPE_CHECKING:
    from hasten.model.batch import Batch
    from hasten.model.costs import Costs, Tables
    from hasten.model.problem import Problem

MAX_VARIANTS = 64  # of a structure with slots for tables that are kept


@dataclass(frozen=True, slots=True)
class Factor:
    """One factor of a structure: its kind, and the variable in each of its roles."""

    kind: FactorKind
    scope: tuple[int, ...]


class Scopes:
    """The variables and factors of a structure, as flat arrays that grow."""

    def __init__(self) -> None:
        self.kind = array("q")  # of each variable
        self.first = [0]  # where the labels of each start
        self.factor_kind = array("q")
        self.scope = array("q")

    @cached_property
    def key(self) -> tuple[bytes, ...]:
        """A value that differs for scopes that differ; only once they no longer grow."""
        return self.kind.tobytes(), self.factor_kind.tobytes(), self.scope.tobytes()


class Structure(RuleBuilder):
    """A topology: `add` variables, `connect` factors, state `rule`s; then make problems of it.

    The search assigns variables in the order they were added, unless `search_order` says otherwise. The first
    problem closes the structure.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.kinds: list[VariableKind] = []
        self._order: tuple[int, ...] | None = None
        self._slots = NO_SLOTS  # for the tables that each problem brings
        self._closed = False
        self._scopes = Scopes()
        self._shared: Graph | None = None  # the graph without rows, once structures with more rules share it
        self._factors: list[Factor] = []  # made when they are asked for
        self._rules: list[OwnRule] = []
        self._distinct = False

    def add(self, kind: VariableKind) -> int:
        """Adds a variable and returns its number."""
        self._check_open()
        if not isinstance(kind, VariableKind) or self.schema.variables.get(kind.name) is not kind:
            raise SchemaError(
                f"{brief(kind)} is not a variable kind of this schema. Give the object that schema.variable returned, "
                "or schema.variables[name]."
            )
        self.kinds.append(kind)
        scopes, v = self._scopes, len(self.kinds) - 1
        scopes.kind.append(kind.index)
        scopes.first.append(scopes.first[v] + len(kind.labels))
        return v

    def connect(self, kind: FactorKind, **roles: int) -> int:
        """Adds a factor over some variables, by role, and returns its number."""
        self._check_open()
        if not isinstance(kind, FactorKind) or self.schema.factors.get(kind.name) is not kind:
            raise SchemaError(
                f"{brief(kind)} is not a factor kind of this schema. Give the object that schema.factor returned, "
                "or schema.factors[name]."
            )
        kinds, scopes, scope = self.kinds, self._scopes, []
        n = len(kinds)
        for role, wanted in kind.roles.items():
            v = roles.get(role)
            if type(v) is not int or not 0 <= v < n or kinds[v] is not wanted or v in scope:
                break
            scope.append(v)
        if not len(scope) == len(roles) == len(kind.roles):
            scope = self._checked_scope(kind, roles)
        scopes.factor_kind.append(kind.index)
        scopes.scope.fromlist(scope)
        return len(scopes.factor_kind) - 1

    def _checked_scope(self, kind: FactorKind, roles: Mapping[str, int]) -> list[int]:
        if roles.keys() != kind.roles.keys():
            raise SchemaError(f"{kind.name} needs the roles {', '.join(kind.roles)}, got {', '.join(roles) or 'none'}.")
        scope = [self._check_variable(roles[role], kind.name, role) for role in kind.roles]
        for (role, wanted), variable in zip(kind.roles.items(), scope, strict=True):
            if self.kinds[variable] is not wanted:
                raise SchemaError(
                    f"{kind.name}: {role} must be of kind {wanted.name}, "
                    f"but variable {variable} is of kind {self.kinds[variable].name}."
                )
        if len({*scope}) < len(scope):
            raise SchemaError(f"{kind.name} joins a variable with itself: {scope}. Its variables must differ.")
        return scope

    def checked_scopes(self, kind: FactorKind, scopes: object) -> list[list[int]]:
        """Returns the scopes of factors of a kind, rows of variables in the order of its roles; refuses wrong ones."""
        found = whole_numbers(scopes, f"The scopes of {kind.name}", SchemaError, n_axes=2)
        if len(found) and found.shape[1] != len(kind.roles):
            raise SchemaError(f"The scopes of {kind.name} need a column for each role: {', '.join(kind.roles)}.")
        return [self._checked_scope(kind, dict(zip(kind.roles, scope, strict=True))) for scope in found.tolist()]

    def search_order(self, variables: Sequence[int]) -> None:
        """Says in which order the search assigns the variables."""
        self._check_open()
        order = whole_numbers(variables, "The variables of a search order", SchemaError).tolist()
        if sorted(order) != list(range(len(self.kinds))):
            raise SchemaError(
                f"A search order names each of the {len(self.kinds)} variables once, got {brief(variables)}."
            )
        self._order = tuple(order)

    def problem(
        self,
        costs: Costs,
        *,
        maximize: bool = False,
        tables: Tables | None = None,
        rules: Iterable[Rule] = (),
        id: int = 0,
    ) -> Problem:
        """Returns this structure with costs: a list or array per variable, one flat one, or a lazy scorer.

        With `maximize` they are scores: costs are minus these, and -inf forbids. Tables hold costs all the same.
        `tables` gives this problem other tables: of single factors, by number, or of all factors of a kind, by the
        kind or its name. `rules` adds rows to it. `id` is what a lazy scorer is told of which problem is meant.
        """
        from hasten.model.problem import Problem

        check_switch("maximize", maximize)
        check_whole("id", id, least=-(2**63), most=2**63 - 1)
        given = rules if type(rules) is tuple else listed(rules, "The rules of a problem", SchemaError)
        return Problem.of(self, costs, maximize, {} if tables is None else tables, given, id)

    def batch(self, costs: FloatArray, *, maximize: bool = False) -> Batch:
        """Returns many problems of this shape at once, from a matrix with a row of flat costs, or scores, for each."""
        from hasten.model.batch import Batch

        return Batch.stack(self, costs, maximize=maximize)

    @property
    def n_variables(self) -> int:
        """The number of variables."""
        return len(self.kinds)

    @property
    def n_factors(self) -> int:
        """The number of factors."""
        return len(self._scopes.factor_kind)

    @property
    def factors(self) -> list[Factor]:
        """The factors, by number."""
        if len(self._factors) < self.n_factors:
            kinds, scope = list(self.schema.factors.values()), iter(self._scopes.scope)
            chosen = [kinds[k] for k in self._scopes.factor_kind]
            self._factors = [Factor(kind, tuple(islice(scope, len(kind.roles)))) for kind in chosen]
        return self._factors

    @property
    def all_kinds(self) -> list[VariableKind]:
        """The kinds of the variables of its graph: its own, then the indicators of soft rules."""
        indicators = self.compiled.indicators
        return self.kinds if indicators is None else [*self.kinds, *indicators.kinds]

    @cached_property
    def distinct(self) -> Structure:
        """The structure with a graph in which each labelling of its variables is one labelling of the graph's."""
        return self if self.compiled.indicators is None else self._variant(_distinct=True)

    @property
    def n_labels(self) -> int:
        """The number of labels of all variables together: the length of a flat cost array."""
        return self._scopes.first[-1]

    @property
    def graph(self) -> Graph:
        """The flat arrays."""
        return self.compiled.graph

    @cached_property
    def compiled(self) -> Compiled:
        """The flat arrays and what belongs to them, shared by all structures of this shape."""
        self._closed = True
        key = (self._scopes.key, self._order, self._slots, tuple(self._rules), self._distinct)
        compiled = self.schema._compiled.get(key)
        if compiled is None:
            names = (*self.schema.rules, *(rule.name for rule in self._rules))
            first, charges = packed(self._scopes.first), self._charges()
            rows, names, indicators = lower(first, self._rows(), names, charges, self._distinct)
            graph = with_rows(self._without_rows(indicators), rows)
            compiled = self.schema._compiled.setdefault(key, Compiled(graph, names, indicators))
        compiled.keep()
        return compiled

    def _charges(self) -> dict[int, tuple[float, bool]]:
        rules = self.schema.rules.values()
        charges = [None if rule.price is None else (float(rule.price), rule.per_unit) for rule in rules]
        charges += [rule.charge for rule in self._rules]
        return {r: charge for r, charge in enumerate(charges) if charge is not None}

    def _without_rows(self, indicators: Indicators | None = None) -> Graph:
        if indicators is None and self._shared is not None:
            return self._shared
        scopes, order = self._scopes, self._search_order
        first = packed(scopes.first)
        if indicators is not None:
            n = len(order)
            first = np.concatenate([first, indicators.label_first[1:]])
            order = np.append(order, np.arange(n, n + len(indicators)))
        factors = self.schema._templates.cast(scopes.factor_kind, self._slots)
        return with_scopes(factors, first, order, np.array(scopes.scope, dtype=np.int64))

    @property
    def _search_order(self) -> IntArray:
        if self._order is None:
            return np.arange(len(self.kinds))
        if len(self._order) != len(self.kinds):
            raise SchemaError("Variables were added after search_order. Call it last.")
        return ints(self._order)

    def _rows(self) -> Rows:
        rules = self.schema.rules.values()
        if not rules:
            return rows_of(self._rules)
        kind_first = offsets(len(kind) for kind in self.schema.variables.values())
        kinds = np.array(self._scopes.kind)
        of_kind = ranges(kind_first[kinds], sizes_of(kind_first)[kinds])  # of each label, its place among all kinds'
        weights = np.zeros((len(rules), int(kind_first[-1])))
        for r, rule in enumerate(rules):
            for k, weight in rule.weights.items():
                weights[r, kind_first[k] : kind_first[k + 1]] = weight
        row, label = np.nonzero(weights[:, of_kind])
        first = offsets(np.bincount(row, minlength=len(rules)))
        low, high = np.array([(rule.low, rule.high) for rule in rules]).T.copy()
        return Rows(first, label, weights[row, of_kind[label]], low, high).then(rows_of(self._rules))

    def _with_slots(self, slots: Slots) -> Structure:
        if slots is self._slots or slots == self._slots:
            return self
        variant = self._variants.get(slots)
        if variant is None:
            variant = self._variant(_slots=slots)
            if not self._slots:  # variants of variants of variants would be kept otherwise
                self._variants.put(slots, variant)
        return variant

    @cached_property
    def _variants(self) -> Cache[Slots, Structure]:
        return Cache(MAX_VARIANTS)

    @cached_property
    def _table_starts(self) -> dict[int, int]:
        """Where the table that all factors of a kind share starts, by kind; for those that have one."""
        kinds, table_at = np.array(self._scopes.factor_kind), self.graph.table_at
        shared = table_at >= 0
        shared[list(self._slots.factors)] = False
        used, first = np.unique(kinds[shared], return_index=True)
        return dict(zip(used.tolist(), table_at[shared][first].tolist(), strict=True))

    def with_rules(self, rules: Iterable[Rule]) -> Structure:
        """Returns this structure with more rules."""
        given = listed(rules, "Rules", SchemaError, Rule, "Make one: Rule.of(name, terms, at_most=...).")
        self._shared = self._without_rows()
        other = self._variant(_shared=self._shared, _rules=self._rules[:])
        for rule in given:
            other._add_rule(rule)
        return other

    def under(self, schema: Schema) -> Structure:
        """Returns this structure under a schema that differs in its tables alone (`Schema.with_tables`)."""
        check_type(schema, Schema, "The other schema", SchemaError)
        schema._closed = True
        return self._variant(schema=schema)

    def _variant(self, **changes: object) -> Structure:
        """Returns a structure that shares its variables and factors, with some attributes changed; closes both."""
        self._closed = True
        other = Structure(self.schema)
        shared = ("kinds", "_order", "_scopes", "_slots", "_rules", "_distinct", "_closed")
        other.__dict__.update({name: getattr(self, name) for name in shared} | changes)
        return other

    def __repr__(self) -> str:
        parts = {"variable": len(self.kinds), "factor": self.n_factors, "rule": self.n_rules}
        return f"Structure({', '.join(count(n, name) for name, n in parts.items())})"

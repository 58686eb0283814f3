"""The second step: the topology of one shape of input, compiled once to flat arrays.

A structure lists variables, the factors that connect them, and rules. Inputs of the same shape share it (two
sentences with four entities differ in their costs alone); two structures built alike share their compiled
arrays, and with them every solver's model, through their schema's cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from hasten.errors import SchemaError
from hasten.kernels.layout import Graph
from hasten.model.compile import FactorPart, RowPart, compile_graph
from hasten.model.schema import FactorKind, Schema, VariableKind, check_weight, read_limits
from hasten.support.arrays import FloatArray, IntArray, offsets

if TYPE_CHECKING:
    from hasten.model.batch import Batch
    from hasten.model.elimination import Reduction
    from hasten.model.problem import Costs, Problem

Term = tuple[int, str] | tuple[int, str, float]
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Factor:
    """One factor of a structure: its kind, and the variable in each of its roles."""

    kind: FactorKind
    scope: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """A linear row over indicators: `low <= sum of weight * [variable = label] <= high`.

    >>> Rule.of("one of two", [(0, "person"), (1, "person")], exactly=1).high
    1.0
    """

    name: str
    terms: tuple[tuple[int, str, float], ...]
    low: float
    high: float

    @staticmethod
    def of(
        name: str,
        terms: Iterable[Term],
        *,
        at_most: float | None = None,
        at_least: float | None = None,
        exactly: float | None = None,
    ) -> Rule:
        """Makes a rule from (variable, label) or (variable, label, weight) terms."""
        low, high = read_limits(name, at_most, at_least, exactly)
        weighted = tuple(_read_term(name, term) for term in _listed(terms, f"Rule {name!r}: the terms"))
        if not weighted:
            raise SchemaError(f"Rule {name!r} counts nothing. Give (variable, label) terms.")
        return Rule(name, weighted, low, high)


def _read_term(rule: str, term: Term) -> tuple[int, str, float]:
    if not isinstance(term, tuple | list) or len(term) not in (2, 3):
        raise SchemaError(f"Rule {rule!r}: a term is (variable, label) or (variable, label, weight), got {term!r}.")
    return term[0], term[1], check_weight(term[2] if len(term) == 3 else 1.0, rule, term[1])


def _listed(given: Iterable[Item], what: str) -> tuple[Item, ...]:
    """Returns several things as a tuple, or says that there should be several."""
    try:
        return tuple(given)
    except TypeError:
        raise SchemaError(f"{what} must be a list, got {given!r}.") from None


@dataclass(frozen=True, eq=False)
class Compiled:
    """What all structures of one shape share."""

    graph: Graph
    row_names: tuple[str, ...]
    reductions: dict[int, Reduction] = field(default_factory=dict)  # by the effort they may take

    @cached_property
    def place(self) -> IntArray:
        """Where a single problem of this shape has what kernels read (`BatchArrays`)."""
        return np.array([[self.graph.address, 0, 0, 0], [0, self.graph.first[-1], 0, len(self.graph.order)]])


class Structure:
    """A topology: `add` variables, `connect` factors, state `rule`s; then make problems of it.

    The search assigns variables in the order they were added, unless `search_order` says otherwise. The first
    problem closes the structure.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.kinds: list[VariableKind] = []
        self.factors: list[Factor] = []
        self.rules: list[Rule] = []
        self._order: tuple[int, ...] | None = None
        self._own_tables: frozenset[int] = frozenset()  # factors whose tables each problem brings
        self._closed = False
        self._opened: dict[frozenset[int], Structure] = {}

    def add(self, kind: VariableKind) -> int:
        """Adds a variable and returns its number."""
        self._check_open()
        if self.schema.variables.get(getattr(kind, "name", "")) is not kind:
            raise SchemaError(f"{kind!r} is not a variable kind of this schema.")
        self.kinds.append(kind)
        return len(self.kinds) - 1

    def connect(self, kind: FactorKind, **roles: int) -> int:
        """Adds a factor over some variables, by role, and returns its number."""
        self._check_open()
        if self.schema.factors.get(getattr(kind, "name", "")) is not kind:
            raise SchemaError(f"{kind!r} is not a factor kind of this schema.")
        if set(roles) != set(kind.roles):
            raise SchemaError(f"{kind.name} needs the roles {', '.join(kind.roles)}, got {', '.join(roles) or 'none'}.")
        scope = tuple(self._check_variable(roles[role], f"{kind.name}: {role}") for role in kind.roles)
        for (role, wanted), variable in zip(kind.roles.items(), scope, strict=True):
            if self.kinds[variable] is not wanted:
                raise SchemaError(
                    f"{kind.name}: {role} must be of kind {wanted.name}, "
                    f"but variable {variable} is of kind {self.kinds[variable].name}."
                )
        if len(set(scope)) < len(scope):
            raise SchemaError(f"{kind.name} joins a variable with itself: {roles}. Its variables must differ.")
        self.factors.append(Factor(kind, scope))
        return len(self.factors) - 1

    def rule(
        self,
        name: str,
        terms: Iterable[Term],
        *,
        at_most: float | None = None,
        at_least: float | None = None,
        exactly: float | None = None,
    ) -> int:
        """Adds a linear rule over (variable, label) or (variable, label, weight) terms; returns its number."""
        self._check_open()
        rule = Rule.of(name, terms, at_most=at_most, at_least=at_least, exactly=exactly)
        self._row(rule)  # before it is kept: a refused rule leaves no trace
        self.rules.append(rule)
        return len(self.rules) - 1

    def search_order(self, variables: Sequence[int]) -> None:
        """Says in which order the search assigns the variables."""
        self._check_open()
        if sorted(variables) != list(range(len(self.kinds))):
            raise SchemaError(
                f"A search order names each of the {len(self.kinds)} variables once, got {list(variables)}."
            )
        self._order = tuple(variables)

    def problem(
        self,
        costs: Costs,
        *,
        tables: Mapping[int, FloatArray] | None = None,
        rules: Iterable[Rule] = (),
        id: int = 0,
    ) -> Problem:
        """Returns this structure with costs: a list or array per variable, one flat one, or a lazy scorer.

        `tables` gives factors, by number, a table of their own for this problem; `rules` adds rows to it. `id`
        is what a lazy scorer is told of which problem is meant.
        """
        from hasten.model.problem import Problem

        return Problem.of(self, costs, tables=tables or {}, rules=_listed(rules, "The rules of a problem"), id=id)

    def batch(self, costs: FloatArray) -> Batch:
        """Returns many problems of this shape at once, from a matrix with a row of flat costs for each."""
        from hasten.model.batch import Batch

        return Batch.stack(self, costs)

    @property
    def n_variables(self) -> int:
        """The number of variables."""
        return len(self.kinds)

    @property
    def n_labels(self) -> int:
        """The number of labels of all variables together: the length of a flat cost array."""
        return sum(len(kind) for kind in self.kinds)

    @property
    def graph(self) -> Graph:
        """The flat arrays."""
        return self.compiled.graph

    @cached_property
    def compiled(self) -> Compiled:
        """The flat arrays and what belongs to them, shared by all structures of this shape."""
        self._closed = True
        if self._order is not None and len(self._order) != len(self.kinds):
            raise SchemaError("Variables were added after search_order. Call it last.")
        key = (
            tuple(kind.index for kind in self.kinds),
            tuple((factor.kind.index, factor.scope) for factor in self.factors),
            tuple(self.rules),
            self._order,
            self._own_tables,
        )
        cache = self.schema._compiled
        if key not in cache:
            cache[key] = self._compile()
        return cache[key]

    def opened(self, factors: Iterable[int]) -> Structure:
        """Returns this structure with a table slot of its own for each of some factors."""
        chosen = frozenset(factors)
        for factor in chosen:
            if not 0 <= factor < len(self.factors):
                raise SchemaError(f"There is no factor {factor}. This structure has {len(self.factors)}.")
        self._closed = True
        if chosen not in self._opened:
            copy = self._copy()
            copy._own_tables = chosen
            self._opened[chosen] = copy
        return self._opened[chosen]

    def with_rules(self, rules: Iterable[Rule]) -> Structure:
        """Returns this structure with more rules."""
        self._closed = True
        copy = self._copy()
        copy._own_tables = self._own_tables
        for rule in rules:
            if not isinstance(rule, Rule):
                raise SchemaError(f"{rule!r} is no rule. Make one: Rule.of(name, terms, at_most=...).")
            copy._row(rule)
            copy.rules.append(rule)
        return copy

    def _copy(self) -> Structure:
        copy = Structure(self.schema)
        copy.kinds, copy.factors, copy._order = list(self.kinds), list(self.factors), self._order
        copy.rules = list(self.rules)
        return copy

    def _check_open(self) -> None:
        if self._closed:
            raise SchemaError("This structure is in use: its first problem closed it. Start another one.")

    def _check_variable(self, variable: int, what: str) -> int:
        if not isinstance(variable, int | np.integer) or not 0 <= variable < len(self.kinds):
            raise SchemaError(f"{what}: there is no variable {variable!r}. This structure has {len(self.kinds)}.")
        return int(variable)

    def _row(self, rule: Rule) -> dict[int, float]:
        """Returns a rule's weights by label number, for rules that name existing variables and labels."""
        first = np.cumsum([0, *(len(kind) for kind in self.kinds)])
        weights: dict[int, float] = {}
        for variable, label, weight in rule.terms:
            self._check_variable(variable, f"Rule {rule.name!r}")
            at = int(first[variable]) + self.kinds[variable].label(label)
            weights[at] = weights.get(at, 0.0) + weight
        return weights

    def _compile(self) -> Compiled:
        sizes = [len(kind) for kind in self.kinds]
        order = range(len(self.kinds)) if self._order is None else self._order
        names = [*self.schema.rules, *(rule.name for rule in self.rules)]
        graph = compile_graph(sizes, order, self._factor_parts(), self._row_parts())
        return Compiled(graph, tuple(names))

    def _factor_parts(self) -> list[FactorPart]:
        tables = {kind.index: kind.table for kind in self.schema.factors.values()}
        parts = []
        for f, (kind, scope) in enumerate((factor.kind, factor.scope) for factor in self.factors):
            own = f in self._own_tables  # each problem brings its own
            table = np.zeros(kind.shape) if own else tables[kind.index]
            key = ("own", f) if own else ("kind", kind.index)
            soft = own or (table is not None and bool(table[np.isfinite(table)].any()))
            parts.append(FactorPart(scope, kind.shape, table, key, kind.weight_at, kind.message_at, soft))
        return parts

    def _row_parts(self) -> list[RowPart]:
        first = offsets(len(kind) for kind in self.kinds)
        parts = []
        for rule in self.schema.rules.values():
            weights = {
                int(first[v]) + i: float(weight)
                for v, kind in enumerate(self.kinds)
                for i, weight in enumerate(rule.weights.get(kind.index, ()))
            }
            parts.append(RowPart(weights, rule.low, rule.high))
        parts.extend(RowPart(self._row(rule), rule.low, rule.high) for rule in self.rules)
        return parts

    def __repr__(self) -> str:
        return f"Structure({len(self.kinds)} variables, {len(self.factors)} factors, {len(self.rules)} rules)"

    def _repr_html_(self) -> str:
        from hasten.model.display import of_structure

        return of_structure(self)

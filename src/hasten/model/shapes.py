"""Structures straight from arrays: one, or many of different shapes at once, without a call for each variable.

Variables, factors and rules of all shapes are given in a row, and checked together; offsets say where those of each
shape start. Variables are numbered from 0 within each shape, labels from 0 within each variable.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hasten.errors import SchemaError
from hasten.model.kinds import MAX_WEIGHT, FactorKind, VariableKind, check_tables
from hasten.model.rules import RuleList, check_rule_name
from hasten.model.schema import Schema
from hasten.model.structure import Structure
from hasten.support.arrays import FloatArray, IntArray, floats, offsets, ranges, sizes_of
from hasten.support.checks import brief, check_switch, whole_numbers
from hasten.support.words import count

Kinds = IntArray | Sequence[int] | Sequence[str] | Sequence[VariableKind]
Scopes = Mapping[Any, Any]  # by a factor kind or its name: a row of variables for each factor


@dataclass(frozen=True, slots=True, eq=False)
class RuleArrays:
    """Rules as arrays: the terms of rule `r` are `first[r]:first[r + 1]`; each is a variable, its label and a weight.

    `low` and `high` are a number for each rule, -inf and inf where it has no such limit, or one for all. So are the
    weights of the terms, and the `price` of breaking a rule: 0 means that it must be kept.
    """

    first: IntArray  # (rules + 1,)
    variable: IntArray  # (terms,)
    label: IntArray  # (terms,) by number
    weight: FloatArray | float = 1.0  # (terms,)
    low: FloatArray | float = -np.inf  # (rules,)
    high: FloatArray | float = np.inf  # (rules,)
    price: FloatArray | float = 0.0  # (rules,)
    per_unit: bool = False
    name: str = "rule"  # of all of them

    def __post_init__(self) -> None:
        check_rule_name(self.name)
        check_switch("per_unit", self.per_unit)
        variable = whole_numbers(self.variable, "The variables of rules", SchemaError)
        label = whole_numbers(self.label, "The labels of rules", SchemaError)
        first = _offsets("first", self.first, len(variable), "terms of rules")
        if len(label) != len(variable):
            raise SchemaError(
                f"Rules have {count(len(variable), 'variable')} and {count(len(label), 'label')}. Give one for each."
            )
        checked: dict[str, Any] = {"first": first, "variable": variable, "label": label}
        for name, n in ("weight", len(variable)), ("low", len(first) - 1), ("high", len(first) - 1):
            checked[name] = _numbers(f"The {name}s of rules", getattr(self, name), n)
        checked["price"] = _numbers("The prices of rules", self.price, len(first) - 1)
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        self._check_numbers(np.arange(len(first) - 1).repeat(sizes_of(first)))

    def _check_numbers(self, rule: IntArray) -> None:
        """Refuses weights, limits and prices that no rule can have, given the rule of each term."""
        weight, low, high, price = (np.asarray(each) for each in (self.weight, self.low, self.high, self.price))
        total = weight
        if np.abs(weight).max(initial=0.0) > MAX_WEIGHT / (1 + len(weight)):  # some label may be named twice
            _, same = np.unique(np.stack([rule, self.variable, self.label]), axis=1, return_inverse=True)
            total = np.bincount(same.ravel(), weight)[same.ravel()]
        for t in np.flatnonzero(~(np.abs(weight) <= MAX_WEIGHT) | ~(np.abs(total) <= MAX_WEIGHT))[:1].tolist():
            raise SchemaError(
                f"Term {t} of the rules has the weight {total[t]:g}, added up; beyond {MAX_WEIGHT:g} sums cannot "
                "be told apart from rounding. Scale the rule down."
            )
        for r in np.flatnonzero(~(low <= high) | (np.isinf(low) & np.isinf(high)))[:1].tolist():
            raise SchemaError(f"Rule {r} asks for at least {low[r]:g} and at most {high[r]:g}, which limits nothing.")
        for r in np.flatnonzero(~(price >= 0.0) | np.isinf(price))[:1].tolist():
            raise SchemaError(f"Rule {r} has the price {price[r]:g}. Prices are above 0; 0 means that it must hold.")
        for t in np.flatnonzero((price[rule] != 0.0) & (weight != np.rint(weight)))[:1].tolist():
            raise SchemaError(
                f"Term {t} of the rules has the weight {weight[t]:g}. Rules with a price need whole weights."
            )

    def part(self, begin: int, end: int, labels: IntArray) -> RuleList:
        """Returns some of the rules, given the labels of all terms, numbered through all variables."""
        weight, low, high, price = (np.asarray(each) for each in (self.weight, self.low, self.high, self.price))
        first, rules = self.first[begin : end + 1], RuleList()
        terms, limits = slice(int(first[0]), int(first[-1])), slice(begin, end)
        rows = first - first[0], labels[terms], weight[terms], low[limits], high[limits]
        for to, given in zip(rules.arrays, rows, strict=True):
            to[:] = _array(to.typecode, given)
        rules.names = [self.name] * (end - begin)
        rules.charges = {r: (float(price[begin + r]), self.per_unit) for r in price[limits].nonzero()[0].tolist()}
        return rules


def build_shape(schema: Schema, kinds: Kinds, factors: Scopes, rules: RuleArrays | None) -> Structure:
    """Returns the structure with variables of some kinds, and factors by kind, a row of variables for each."""
    numbers = _kind_numbers(schema, kinds)
    check_tables(factors)
    one = {key: (given, None) for key, given in factors.items()}
    both = None if rules is None else (rules, None)
    return build_shapes(schema, numbers, np.array([0, len(numbers)]), one, both)[0]


def build_shapes(
    schema: Schema,
    kinds: Kinds,
    variable_at: IntArray,
    factors: Mapping[Any, tuple[Any, IntArray | None]],
    rules: tuple[RuleArrays, IntArray | None] | None = None,
) -> list[Structure]:
    """Returns the structures that flat arrays describe, or says which of their numbers is wrong."""
    numbers = _kind_numbers(schema, kinds)
    at = _offsets("variable_at", variable_at, len(numbers), "variables")
    sizes = np.array([len(kind) for kind in schema.variables.values()], dtype=np.int64)
    shapes = _Shapes(schema, numbers, at, offsets(sizes[numbers]))
    check_tables(factors)
    given = [_factors(shapes, key, *_pair(value)) for key, value in factors.items()]
    factor_kind, factor_first, scope, scope_first = _sorted(given, len(at) - 1)
    stated, rule_at = (None, np.zeros(0)) if rules is None else _pair(rules)
    if rules is not None:
        rule_at, labels = _labels(shapes, stated, rule_at)
    known, found = list(schema.variables.values()), []
    for s in range(len(at) - 1):
        shape, mine = Structure(schema), slice(at[s], at[s + 1])
        shape.kinds = [known[k] for k in numbers[mine].tolist()]
        scopes = shape._scopes
        scopes.kind = _array("q", numbers[mine])
        scopes.places = {v: kind.places for v, kind in enumerate(shape.kinds)}
        scopes.first = (shapes.label_at[at[s] : at[s + 1] + 1] - shapes.label_at[at[s]]).tolist()
        scopes.factor_kind = _array("q", factor_kind[factor_first[s] : factor_first[s + 1]])
        scopes.scope = _array("q", scope[scope_first[s] : scope_first[s + 1]])
        if stated is not None:
            shape._rules = stated.part(int(rule_at[s]), int(rule_at[s + 1]), labels)
        found.append(shape)
    return found


def factor_scopes(structure: Structure, kind: FactorKind, scopes: Any) -> IntArray:
    """Returns scopes for factors of a kind, a row of variables each, or says which of them is wrong."""
    numbers = np.array(structure._scopes.kind)
    shapes = _Shapes(structure.schema, numbers, np.array([0, len(numbers)]), np.array(structure._scopes.first))
    return _factors(shapes, kind, scopes, None)[1]


class _Shapes(NamedTuple):
    """The variables of all shapes in a row."""

    schema: Schema
    kind: IntArray
    at: IntArray  # where those of each shape start
    label_at: IntArray  # where the labels of each variable start

    def offsets(self, what: str, given: IntArray | None, n: int, of: str) -> IntArray:
        """Returns where each shape's part of `n` things starts; without offsets the only shape has all of them."""
        if given is None:
            return np.array([0, n])
        found = _offsets(what, given, n, of)
        if len(found) != len(self.at):
            raise SchemaError(
                f"{what} are for {len(found) - 1} shapes; there are {len(self.at) - 1}. Give one for each, and where "
                "the last one ends."
            )
        return found

    def check(self, variable: IntArray, shape: IntArray, what: Callable[[int], str]) -> IntArray:
        """Returns the places of variables, given by shape and number, among all; refuses those that are not there."""
        n_variables = sizes_of(self.at)[shape]
        for f in np.flatnonzero((variable < 0) | (variable >= n_variables))[:1].tolist():
            raise SchemaError(
                f"{what(f)}{self.name(shape[f])}: there is no variable {variable[f]}. This shape has {n_variables[f]}, "
                "numbered from 0."
            )
        return self.at[shape] + variable

    def name(self, shape: int) -> str:
        """Names a shape, if there are several."""
        return f" (shape {shape})" if len(self.at) > 2 else ""


def _labels(shapes: _Shapes, rules: Any, rule_at: Any) -> tuple[IntArray, IntArray]:
    """Returns where the rules of each shape start, and the labels of all terms, numbered through each shape."""
    if not isinstance(rules, RuleArrays):
        raise SchemaError(f"Rules as arrays are RuleArrays(first, variable, label, ...), got {brief(rules)}.")
    of_shape = shapes.offsets("rule_at", rule_at, len(rules.first) - 1, "rules")
    shape = np.arange(len(shapes.at) - 1).repeat(sizes_of(of_shape)).repeat(sizes_of(rules.first))
    place = shapes.check(rules.variable, shape, lambda t: f"Term {t} of the rules")
    for t in np.flatnonzero((rules.label < 0) | (rules.label >= sizes_of(shapes.label_at)[place]))[:1].tolist():
        kind = list(shapes.schema.variables.values())[shapes.kind[place[t]]]
        raise SchemaError(
            f"Term {t} of the rules{shapes.name(shape[t])}: variable {rules.variable[t]} ({kind.name}) has no label "
            f"number {rules.label[t]}; it has {len(kind)} labels, from 0."
        )
    return of_shape, shapes.label_at[place] - shapes.label_at[shapes.at[shape]] + rules.label


def _factors(shapes: _Shapes, key: Any, scopes: Any, factor_at: IntArray | None) -> tuple[int, IntArray, IntArray]:
    """Returns the number of a factor kind, its scopes, and the shape of each, or says what is wrong with them."""
    kind = shapes.schema.factor_kind(key)
    scope = whole_numbers(scopes, f"The scopes of {kind.name}", SchemaError, n_axes=2)
    if not len(scope):
        scope = scope.reshape(0, len(kind.roles))
    if scope.shape[1] != len(kind.roles):
        raise SchemaError(
            f"The scopes of {kind.name} have {scope.shape[1]} columns; give one for each role: {', '.join(kind.roles)}."
        )
    first = shapes.offsets(f"The offsets of {kind.name}", factor_at, len(scope), "factors")
    shape = np.arange(len(shapes.at) - 1).repeat(sizes_of(first))
    for r, (role, wanted) in enumerate(kind.roles.items()):
        place = shapes.check(scope[:, r], shape, lambda f, role=role: f"Factor {f} of {kind.name}, {role}")  # type: ignore[misc]
        for f in np.flatnonzero(shapes.kind[place] != wanted.index)[:1].tolist():
            raise SchemaError(
                f"Factor {f} of {kind.name}{shapes.name(shape[f])}: {role} must be of kind {wanted.name}, but variable "
                f"{scope[f, r]} is of kind {list(shapes.schema.variables)[shapes.kind[place[f]]]}."
            )
    ordered = np.sort(scope, axis=1)
    for f in np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))[:1].tolist():
        raise SchemaError(
            f"Factor {f} of {kind.name}{shapes.name(shape[f])} joins a variable with itself: {scope[f].tolist()}. Its "
            "variables must differ."
        )
    return kind.index, scope, shape


def _sorted(given: list[tuple[int, IntArray, IntArray]], n: int) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Returns the kinds and the scopes of all factors, shape by shape, and where those of each shape start."""
    none = np.zeros(0, dtype=np.int64)
    kind = np.concatenate([none, *(np.full(len(scope), k) for k, scope, _ in given)])
    arity = np.concatenate([none, *(np.full(len(scope), scope.shape[1]) for _, scope, _ in given)])
    shape = np.concatenate([none, *(shape for *_, shape in given)])
    flat = np.concatenate([none, *(scope.ravel() for _, scope, _ in given)])
    order = shape.argsort(kind="stable")
    scope = flat[ranges(offsets(arity)[:-1][order], arity[order])]
    n_slots = np.bincount(shape, arity, n).astype(np.int64)
    return kind[order], offsets(np.bincount(shape, minlength=n)), scope, offsets(n_slots)


def _kind_numbers(schema: Schema, kinds: Any) -> IntArray:
    """Returns the numbers of kinds, given by number, by name or as they are."""
    names = list(schema.variables)
    if isinstance(kinds, list | tuple) and any(isinstance(kind, str | VariableKind) for kind in kinds):
        given = [kind.name if isinstance(kind, VariableKind) else kind for kind in kinds]
        for name in given:
            if not isinstance(name, str) or name not in schema.variables:
                raise SchemaError(f"There is no variable kind {brief(name)}. There are {', '.join(names)}.")
        return np.array([schema.variables[name].index for name in given], dtype=np.int64)
    numbers = whole_numbers(kinds, "The kinds of variables", SchemaError)
    for v in np.flatnonzero((numbers < 0) | (numbers >= len(names)))[:1].tolist():
        raise SchemaError(
            f"Variable {v} has kind number {numbers[v]}; the schema has {len(names)} kinds of variables, "
            f"from 0: {', '.join(names)}."
        )
    return numbers


def _numbers(what: str, given: Any, n: int) -> FloatArray:
    try:
        return np.array(np.broadcast_to(floats(given), (n,)))
    except (TypeError, ValueError):
        raise SchemaError(f"{what} are numbers: one, or one for each of {n}.") from None


def _offsets(what: str, given: Any, n: int, of: str) -> IntArray:
    found = whole_numbers(given, what, SchemaError)
    if not len(found) or found[0] != 0 or found[-1] != n or (np.diff(found) < 0).any():
        raise SchemaError(
            f"{what} must rise from 0 to {n}, the number of {of}: where those of each start, and the last ones end."
        )
    return found


def _pair(given: Any) -> tuple[Any, Any]:
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise SchemaError(f"Give an array and the offsets of each shape, as a pair; got {brief(given)}.")
    return given[0], given[1]


def _array(code: str, numbers: Any) -> array[Any]:
    found = array(code)
    found.frombytes(np.ascontiguousarray(numbers).tobytes())
    return found

"""Structures straight from arrays: one, or many of different shapes at once, without a call for each variable.

Variables, factors and rules of all shapes are given in a row, and checked together; offsets say where those of each
shape start. Variables are numbered from 0 within each shape, labels from 0 within each variable.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hasten.errors import SchemaError
from hasten.kernels.cells import Rows
from hasten.model.kinds import MAX_WEIGHT, FactorKind, VariableKind
from hasten.model.rules import Packed, Terms
from hasten.model.schema import Schema
from hasten.model.structure import Structure
from hasten.support.arrays import FloatArray, IntArray, floats, offsets, ranges
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


def build_shapes(
    schema: Schema,
    kinds: Kinds,
    variable_at: IntArray,
    factors: Mapping[Any, tuple[IntArray, IntArray]],
    rules: tuple[RuleArrays, IntArray] | None = None,
) -> list[Structure]:
    """Returns the structures that flat arrays describe, or says which of their numbers is wrong."""
    numbers = _kind_numbers(schema, kinds)
    at = _offsets("variable_at", variable_at, len(numbers), "variables")
    n = len(at) - 1
    sizes = np.array([len(kind) for kind in schema.variables.values()], dtype=np.int64)
    label_at = offsets(sizes[numbers])  # of all variables in a row
    given = [_factors(schema, key, *value, numbers, at) for key, value in factors.items()]
    factor_kind, factor_first, scope, scope_first = _sorted(given, n)
    terms = None if rules is None else _terms(schema, *rules, numbers, at, label_at)
    known, found = list(schema.variables.values()), []
    for s in range(n):
        shape, mine = Structure(schema), slice(at[s], at[s + 1])
        shape.kinds = [known[k] for k in numbers[mine].tolist()]
        scopes = shape._scopes
        scopes.kind = _array("q", numbers[mine])
        scopes.places = {v: kind.places for v, kind in enumerate(shape.kinds)}
        scopes.first = (label_at[at[s] : at[s + 1] + 1] - label_at[at[s]]).tolist()
        scopes.factor_kind = _array("q", factor_kind[factor_first[s] : factor_first[s + 1]])
        scopes.scope = _array("q", scope[scope_first[s] : scope_first[s + 1]])
        if terms is not None:
            terms.put(shape, s)
        found.append(shape)
    return found


def build_shape(schema: Schema, kinds: Kinds, factors: Scopes, rules: RuleArrays | None) -> Structure:
    """Returns the structure with variables of some kinds, and factors by kind, a row of variables for each."""
    numbers = _kind_numbers(schema, kinds)
    one = {key: (given, np.array([0, len(given)])) for key, given in factors.items()}
    both = None if rules is None else (rules, np.array([0, len(rules.first) - 1]))
    return build_shapes(schema, numbers, np.array([0, len(numbers)]), one, both)[0]


def factor_scopes(structure: Structure, kind: FactorKind, scopes: Any) -> IntArray:
    """Returns scopes for factors of a kind, a row of variables each, or says which of them is wrong."""
    numbers = np.array(structure._scopes.kind)
    return _factors(structure.schema, kind, scopes, [0, len(scopes)], numbers, np.array([0, len(numbers)]))[1]


@dataclass(frozen=True, slots=True, eq=False)
class _Terms:
    """The rules of all shapes, checked; labels are numbered through the variables of each shape."""

    name: str
    per_unit: bool
    first: IntArray
    rule_at: IntArray
    label: IntArray
    weight: FloatArray
    low: FloatArray
    high: FloatArray
    price: FloatArray

    def put(self, shape: Structure, s: int) -> None:
        """Gives a shape its rules."""
        begin, end = int(self.rule_at[s]), int(self.rule_at[s + 1])
        first = self.first[begin : end + 1]
        cells, limits = slice(int(first[0]), int(first[-1])), slice(begin, end)
        rows = Rows(first - first[0], self.label[cells], self.weight[cells], self.low[limits], self.high[limits])
        prices = self.price[limits]
        charges = {r: (float(prices[r]), self.per_unit) for r in prices.nonzero()[0].tolist()}
        shape._terms = Terms([self.name] * (end - begin), charges, Packed.of(rows))


def _terms(
    schema: Schema, rules: RuleArrays, rule_at: IntArray, numbers: IntArray, at: IntArray, label_at: IntArray
) -> _Terms:
    variable, label = _whole("The variables of rules", rules.variable), _whole("The labels of rules", rules.label)
    first = _offsets("first", rules.first, len(variable), "terms of rules")
    of_shape = _offsets("rule_at", rule_at, len(first) - 1, "rules")
    if len(of_shape) != len(at):
        raise SchemaError(f"rule_at says where the rules of {len(of_shape) - 1} shapes are; there are {len(at) - 1}.")
    if len(label) != len(variable):
        raise SchemaError(
            f"Rules have {count(len(variable), 'variable')} and {count(len(label), 'label')}. Give a label for each."
        )
    shape = np.arange(len(at) - 1).repeat(np.diff(of_shape)).repeat(np.diff(first))
    _check_variables(variable, shape, at, lambda t: f"Term {t} of the rules")
    place = at[shape] + variable
    sizes = np.diff(label_at)[place]
    wrong = np.flatnonzero((label < 0) | (label >= sizes))
    if wrong.size:
        t = wrong[0]
        kind = list(schema.variables.values())[numbers[place[t]]]
        raise SchemaError(
            f"Term {t} of the rules{_of(shape[t], at)}: variable {variable[t]} ({kind.name}) has no label number "
            f"{label[t]}; it has {len(kind)} labels, from 0."
        )
    n_rules = len(first) - 1
    weight = _numbers("The weights of rules", rules.weight, len(variable))
    low, high = (
        _numbers(f"The limits of rules ({what})", given, n_rules)
        for what, given in (("low", rules.low), ("high", rules.high))
    )
    price = _numbers("The prices of rules", rules.price, n_rules)
    rule = np.arange(n_rules).repeat(np.diff(first))
    found = _Terms(
        str(rules.name),
        bool(rules.per_unit),
        first,
        of_shape,
        label_at[place] - label_at[at[shape]] + label,
        weight,
        low,
        high,
        price,
    )
    _check_rules(found, rule)
    return found


def _check_rules(terms: _Terms, rule: IntArray) -> None:
    """Refuses weights, limits and prices that no rule can have, given the rule of each term."""
    weight, low, high, price = terms.weight, terms.low, terms.high, terms.price
    total = weight
    if np.abs(weight).sum() > MAX_WEIGHT:  # some label may be named twice
        _, same = np.unique(np.stack([rule, terms.label]), axis=1, return_inverse=True)
        total = np.asarray(np.bincount(same.ravel(), weight)[same.ravel()], dtype=np.float64)
    for t in np.flatnonzero(~(np.abs(weight) <= MAX_WEIGHT) | ~(np.abs(total) <= MAX_WEIGHT))[:1].tolist():
        raise SchemaError(
            f"Term {t} of the rules has the weight {total[t]:g}, added up; beyond {MAX_WEIGHT:g} its sums cannot be "
            "told apart from rounding. Scale the rule down."
        )
    for r in np.flatnonzero(~(low <= high) | (np.isinf(low) & np.isinf(high)))[:1].tolist():
        raise SchemaError(f"Rule {r} asks for at least {low[r]:g} and at most {high[r]:g}, which limits nothing.")
    for r in np.flatnonzero(~(price >= 0.0) | np.isinf(price))[:1].tolist():
        raise SchemaError(f"Rule {r} has the price {price[r]:g}. Prices are above 0; 0 means that it must hold.")
    for t in np.flatnonzero((price[rule] != 0.0) & (weight != np.rint(weight)))[:1].tolist():
        raise SchemaError(f"Term {t} of the rules has the weight {weight[t]:g}. Rules with a price need whole weights.")


def _factors(
    schema: Schema, key: Any, scopes: Any, factor_at: Any, numbers: IntArray, at: IntArray
) -> tuple[int, IntArray, IntArray]:
    """Returns the number of a factor kind, its scopes, and the shape of each, or says what is wrong with them."""
    name = key.name if isinstance(key, FactorKind) else key
    kind = schema.factors.get(name) if isinstance(name, str) else None
    if kind is None:
        raise SchemaError(f"There is no factor kind {name!r}. This schema has {', '.join(schema.factors) or 'none'}.")
    scope = _whole(f"The scopes of {kind.name}", scopes, 2)
    if scope.shape[1] != len(kind.roles):
        raise SchemaError(
            f"The scopes of {kind.name} have {scope.shape[1]} columns; give one for each role: {', '.join(kind.roles)}."
        )
    first = _offsets(f"The offsets of {kind.name}", factor_at, len(scope), "factors")
    if len(first) != len(at):
        raise SchemaError(
            f"The offsets of {kind.name} are for {len(first) - 1} shapes; there are {len(at) - 1}. Give one for each, "
            "and where the last one ends."
        )
    shape = np.arange(len(at) - 1).repeat(np.diff(first))
    roles = list(kind.roles.items())
    for r, (role, wanted) in enumerate(roles):
        _check_variables(scope[:, r], shape, at, lambda f, role=role: f"Factor {f} of {kind.name}, {role}")
        wrong = np.flatnonzero(numbers[at[shape] + scope[:, r]] != wanted.index)
        if wrong.size:
            f = wrong[0]
            got = list(schema.variables)[numbers[at[shape[f]] + scope[f, r]]]
            raise SchemaError(
                f"Factor {f} of {kind.name}{_of(shape[f], at)}: {role} must be of kind {wanted.name}, but variable "
                f"{scope[f, r]} is of kind {got}."
            )
    ordered = np.sort(scope, axis=1)
    twice = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
    if twice.size:
        f = twice[0]
        raise SchemaError(
            f"Factor {f} of {kind.name}{_of(shape[f], at)} joins a variable with itself: {scope[f].tolist()}. Its "
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


def _check_variables(variable: IntArray, shape: IntArray, at: IntArray, what: Any) -> None:
    n_variables = np.diff(at)[shape]
    wrong = np.flatnonzero((variable < 0) | (variable >= n_variables))
    if wrong.size:
        f = wrong[0]
        raise SchemaError(
            f"{what(f)}{_of(shape[f], at)}: there is no variable {variable[f]}. This shape has {n_variables[f]}, "
            "numbered from 0."
        )


def _of(shape: int, at: IntArray) -> str:
    """Says of which shape something is, if there are several."""
    return f" (shape {shape})" if len(at) > 2 else ""


def _kind_numbers(schema: Schema, kinds: Kinds) -> IntArray:
    """Returns the numbers of kinds, given by number, by name or as they are."""
    if not isinstance(kinds, np.ndarray) and any(isinstance(kind, str | VariableKind) for kind in kinds):
        names = [kind.name if isinstance(kind, VariableKind) else str(kind) for kind in kinds]
        unknown = next((name for name in names if name not in schema.variables), None)
        if unknown is not None:
            raise SchemaError(f"There is no variable kind {unknown!r}. There are {', '.join(schema.variables)}.")
        return np.array([schema.variables[name].index for name in names], dtype=np.int64)
    numbers = _whole("The kinds of variables", kinds)
    wrong = np.flatnonzero((numbers < 0) | (numbers >= len(schema.variables)))
    if wrong.size:
        v = wrong[0]
        raise SchemaError(
            f"Variable {v} has kind number {numbers[v]}; the schema has {len(schema.variables)} kinds of variables, "
            f"from 0: {', '.join(schema.variables)}."
        )
    return numbers


def _whole(what: str, given: Any, n_axes: int = 1) -> IntArray:
    try:
        found = np.asarray(given)
    except (TypeError, ValueError):
        found = np.zeros(())
    if not found.size and found.ndim <= n_axes:
        found = np.zeros(found.shape if found.ndim == n_axes else (0,) * n_axes, dtype=np.int64)
    if found.ndim != n_axes or found.dtype.kind not in "iu":
        raise SchemaError(f"{what} are whole numbers, an array with {n_axes} ax{'i' if n_axes == 1 else 'e'}s.")
    return found.astype(np.int64)


def _numbers(what: str, given: Any, n: int) -> FloatArray:
    try:
        return np.array(np.broadcast_to(floats(given), (n,)))
    except (TypeError, ValueError):
        raise SchemaError(f"{what} are numbers: one, or one for each of {n}.") from None


def _offsets(what: str, given: Any, n: int, of: str) -> IntArray:
    found = _whole(what, given)
    if not len(found) or found[0] != 0 or found[-1] != n or (np.diff(found) < 0).any():
        raise SchemaError(
            f"{what} must rise from 0 to {n}, the number of {of}: where those of each start, and the last ones end."
        )
    return found


def _array(code: str, numbers: Any) -> array[Any]:
    found = array(code)
    found.frombytes(np.ascontiguousarray(numbers).tobytes())
    return found

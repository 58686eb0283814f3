"""Linear rules over labels: of all variables of a kind (`KindRule`), or single ones (`Rule`), and how to add them."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import countOf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hasten.errors import SchemaError
from hasten.kernels.cells import Rows
from hasten.model.kinds import MAX_WEIGHT, Pattern, VariableKind, label_names
from hasten.support.arrays import FloatArray, offsets
from hasten.support.checks import brief, finite, is_text, is_whole, listed

if TYPE_CHECKING:
    from hasten.model.structure import Scopes

Term = tuple[int, str] | tuple[int, str, float]
WITH_OR_WITHOUT = {2, 3}  # lengths of terms with or without a weight


@dataclass(frozen=True, slots=True, eq=False)
class KindRule:
    """A linear row over every variable of the named kinds, in every structure of the schema."""

    name: str
    weights: dict[int, FloatArray]  # by variable kind: one coefficient per label
    low: float
    high: float
    price: float | None = None  # the cost of breaking it; None if it must be kept
    per_unit: bool = False  # whether the price is for each unit by which it is missed


@dataclass(frozen=True, slots=True)
class Rule:
    """A linear row over labels: `low <= sum of weight * [variable = label] <= high`.

    With a `price` it may be broken, for that price or, with `per_unit`, for that much for each unit by which the sum is
    too large or too small.

    >>> Rule.of("one of two", [(0, "person"), (1, "person")], exactly=1).high
    1.0
    """

    name: str
    terms: tuple[tuple[int, str, float], ...]
    low: float
    high: float
    price: float | None = None
    per_unit: bool = False

    def __post_init__(self) -> None:
        check_rule_name(self.name)
        check_price(self.name, self.price, self.per_unit)
        object.__setattr__(self, "terms", read_terms(self.name, self.terms, soft=self.price is not None))
        if type(self.low) is not float or type(self.high) is not float or not self.low <= self.high:
            raise SchemaError(
                f"Rule {self.name!r}: low and high are floats, low the smaller one; got {brief(self.low)} and "
                f"{brief(self.high)}. Rule.of(name, terms, at_most=...) takes any numbers."
            )

    @staticmethod
    def of(
        name: str,
        terms: Iterable[Term],
        *,
        at_most: float | None = None,
        at_least: float | None = None,
        exactly: float | None = None,
        price: float | None = None,
        per_unit: bool = False,
    ) -> Rule:
        """Makes a rule from (variable, label) or (variable, label, weight) terms."""
        low, high = read_limits(name, at_most, at_least, exactly)
        return Rule(name, terms, low, high, price, per_unit)  # type: ignore[arg-type]


class OwnRule(NamedTuple):
    """A rule of a structure as it is kept; labels are numbered through all variables."""

    name: str
    low: float
    high: float
    label: bytes  # of whole numbers
    weight: bytes  # of floats
    charge: tuple[float, bool] | None  # of a soft rule: its price, and whether that is per unit


def rows_of(rules: Sequence[OwnRule]) -> Rows:
    """Returns rules as rows."""
    label = np.frombuffer(b"".join(rule.label for rule in rules), np.int64)
    weight = np.frombuffer(b"".join(rule.weight for rule in rules))
    low, high = (np.array([getattr(rule, side) for rule in rules], dtype=float) for side in ("low", "high"))
    return Rows(offsets(len(rule.label) // label.itemsize for rule in rules), label, weight, low, high)


class RuleBuilder:
    """Variables, and the rules that they must keep.

    Every rule takes a `price`: it may then be broken, for that price. With `per_unit`, the price is for each unit by
    which its sum is too large or too small. Answers pay for the rules that they break; `Problem.check` names these.
    """

    kinds: list[VariableKind]
    _scopes: Scopes
    _rules: list[OwnRule]
    _closed: bool

    def rule(
        self,
        name: str,
        terms: Iterable[Term],
        *,
        at_most: float | None = None,
        at_least: float | None = None,
        exactly: float | None = None,
        price: float | None = None,
        per_unit: bool = False,
    ) -> int:
        """Adds a linear rule over (variable, label) or (variable, label, weight) terms; returns its number."""
        self._check_open()
        low, high = read_limits(name, at_most, at_least, exactly)
        given: Any = terms if type(terms) is list else listed(terms, f"Rule {name!r}: the terms", SchemaError)
        found = self._look_up(given) if price is None and per_unit is False else None
        if found is None:
            return self._add_rule(Rule(name, given, low, high, price, per_unit))
        return self._keep(name, low, high, *found)

    def exactly_one(
        self, name: str, terms: Iterable[Term], *, price: float | None = None, per_unit: bool = False
    ) -> int:
        """Says that one of some (variable, label) terms holds, and no other; returns the rule's number."""
        return self.rule(name, terms, exactly=1, price=price, per_unit=per_unit)

    def at_most_one(
        self, name: str, terms: Iterable[Term], *, price: float | None = None, per_unit: bool = False
    ) -> int:
        """Says that no two of some (variable, label) terms hold; returns the rule's number."""
        return self.rule(name, terms, at_most=1, price=price, per_unit=per_unit)

    def all_different(
        self,
        name: str,
        variables: Iterable[int],
        *,
        but: Pattern = (),
        price: float | None = None,
        per_unit: bool = False,
    ) -> list[int]:
        """Says that no two of some variables have the same label, `but` for some labels; returns the rules' numbers.

        A price is for each label that several have; per unit, for each of the variables that has it, but one.
        """
        check_rule_name(name)
        given = listed(variables, f"Rule {name!r}: the variables", SchemaError)
        chosen = [self._check_variable(v, f"Rule {name!r}") for v in given]
        free = set(label_names(but, f"Rule {name!r}: but"))
        holders: dict[str, list[int]] = {}
        for v in dict.fromkeys(chosen):
            for label in self.kinds[v].labels:
                holders.setdefault(label, []).append(v)
        if len(set(chosen)) < len(chosen):
            raise SchemaError(f"Rule {name!r} names a variable twice, which cannot differ from itself.")
        unknown = free - holders.keys()
        if unknown:
            raise SchemaError(f"Rule {name!r}: no variable has the label {', '.join(sorted(unknown))}.")
        return [
            self.at_most_one(f"{name}: {label}", [(v, label) for v in having], price=price, per_unit=per_unit)
            for label, having in holders.items()
            if label not in free and len(having) > 1
        ]

    def implies(
        self, name: str, when: Term | Iterable[Term], then: Term | Iterable[Term], *, price: float | None = None
    ) -> int:
        """Says that where all terms of `when` hold, one of `then` does; returns the rule's number.

        A term is (variable, label). Where one factor has all of them in its scope, `FactorKind.imply` is faster.
        """
        check_rule_name(name)
        condition, result = _pairs(name, when), _pairs(name, then)
        terms = [(*term, 1.0) for term in condition] + [(*term, -1.0) for term in result]
        return self.rule(name, terms, at_most=len(condition) - 1, price=price)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules stated for it, in their order; those of the schema hold as well."""
        names = [(v, label) for v, kind in enumerate(self.kinds) for label in kind.labels]
        found = []
        for name, low, high, label, weight, charge in self._rules:
            terms = [(*names[at], of) for at, of in zip(array("q", label), array("d", weight), strict=True)]
            found.append(Rule(name, tuple(terms), low, high, *(charge or (None, False))))
        return tuple(found)

    @property
    def n_rules(self) -> int:
        """The number of these rules."""
        return len(self._rules)

    def _check_open(self) -> None:
        if self._closed:
            raise SchemaError("This structure is in use: its first problem closed it. Start another one.")

    def _check_variable(self, variable: int, *what: str) -> int:
        if not is_whole(variable) or not 0 <= variable < len(self.kinds):
            raise SchemaError(
                f"{': '.join(what)}: there is no variable {brief(variable)}. This structure has {len(self.kinds)}."
            )
        return int(variable)

    def _add_rule(self, rule: Rule) -> int:
        found = self._look_up(rule.terms)
        if found is None:
            labels = []
            for variable, label, _ in rule.terms:
                v = self._check_variable(variable, f"Rule {rule.name!r}")
                labels.append(self._scopes.first[v] + self.kinds[v].label(label))
            found = labels, [weight for *_, weight in rule.terms]
        charge = None if rule.price is None else (float(rule.price), bool(rule.per_unit))
        return self._keep(rule.name, rule.low, rule.high, *found, charge)

    def _keep(
        self,
        name: str,
        low: float,
        high: float,
        labels: list[int],
        weights: list[float],
        charge: tuple[float, bool] | None = None,
    ) -> int:
        """Adds a rule and returns its number."""
        self._rules.append(
            OwnRule(name, low, high, array("q", labels).tobytes(), array("d", weights).tobytes(), charge)
        )
        return len(self._rules) - 1

    def _look_up(self, terms: Sequence[Any]) -> tuple[list[int], list[float]] | None:
        """Returns the numbers and weights of the labels of terms; None if a term needs a closer look."""
        first, kinds, total = self._scopes.first, self.kinds, 0.0
        labels, weights = list[int](), list[float]()
        if not terms or countOf(map(type, terms), tuple) < len(terms):
            return None
        try:
            if countOf(map(len, terms), 2) == len(terms):
                return [first[v] + kinds[v].places[label] for v, label in terms], [1.0] * len(terms)
            for term in terms:
                v, label, weight = term if len(term) == 3 else (*term, 1.0)
                labels.append(first[v] + kinds[v].places[label])
                total += abs(weight)
                weights.append(float(weight))
        except (IndexError, KeyError, TypeError, ValueError, OverflowError):
            return None
        return (labels, weights) if total <= MAX_WEIGHT else None  # nan is not


def read_limits(name: str, at_most: float | None, at_least: float | None, exactly: float | None) -> tuple[float, float]:
    """Returns the lowest and the highest sum that a rule, whose name must be text, allows."""
    check_rule_name(name)
    if exactly is not None:
        if at_most is not None or at_least is not None:
            raise SchemaError(f"Rule {name!r}: give exactly, or at_most and at_least, not both.")
        at_most = at_least = exactly
    if at_most is None and at_least is None:
        raise SchemaError(f"Rule {name!r} limits nothing. Give at_most, at_least or exactly.")
    low = -math.inf if at_least is None else _limit(at_least, name, "at_least")
    high = math.inf if at_most is None else _limit(at_most, name, "at_most")
    if low > high:
        raise SchemaError(f"Rule {name!r} asks for at least {low:g} and at most {high:g}. No labelling has both.")
    return low, high


def _limit(value: float, rule: str, what: str) -> float:
    if type(value) in (int, float) and abs(value) <= MAX_WEIGHT:
        return float(value)
    return finite(value, f"Rule {rule!r}: {what}", SchemaError)


def read_terms(rule: str, terms: object, *, soft: bool = False) -> tuple[tuple[int, str, float], ...]:
    """Returns terms with their weights, or says which of them is none; those of a soft rule have whole weights."""
    found, total = [], 0.0
    for term in listed(terms, f"Rule {rule!r}: the terms", SchemaError):
        if not isinstance(term, tuple | list) or len(term) not in WITH_OR_WITHOUT or not isinstance(term[1], str):
            raise SchemaError(
                f"Rule {rule!r}: a term is (variable, label) or (variable, label, weight), got {brief(term)}."
            )
        variable, label, *weights = term
        if not is_whole(variable):
            raise SchemaError(f"Rule {rule!r}: there is no variable {brief(variable)}. Give its number.")
        weight = check_weight(weights[0], rule, label, soft) if weights else 1.0
        total += abs(weight)
        found.append((int(variable), label, weight))
    if not found:
        raise SchemaError(f"Rule {rule!r} counts nothing. Give (variable, label) terms.")
    if total > MAX_WEIGHT:  # some label may be named twice
        sums: Counter[tuple[int, str]] = Counter()
        for variable, label, weight in found:
            sums[variable, label] += weight  # type: ignore[assignment]
            check_weight(sums[variable, label], rule, label)
    return tuple(found)


def _pairs(name: str, terms: Term | Iterable[Term]) -> list[tuple[int, str]]:
    single = isinstance(terms, tuple) and len(terms) == 2 and isinstance(terms[1], str)
    given = [terms] if single else listed(terms, f"Rule {name!r}: the terms", SchemaError)
    for term in given:
        if isinstance(term, tuple | list) and len(term) == 3:
            raise SchemaError(f"Rule {name!r}: a term is (variable, label), without a weight; got {brief(term)}.")
    return list(dict.fromkeys((variable, label) for variable, label, _ in read_terms(name, given)))


def check_rule_name(name: object) -> None:
    """Refuses a rule's name that is not text."""
    if not is_text(name):
        raise SchemaError(f"A rule's name is text, got {brief(name)}.")


def check_price(rule: str, price: float | None, per_unit: bool) -> None:
    """Refuses a price that is not above 0, and a price per unit that is missing."""
    if not isinstance(per_unit, bool | np.bool_):
        raise SchemaError(f"Rule {rule!r}: per_unit must be True or False, got {brief(per_unit)}.")
    if price is None:
        if per_unit:
            raise SchemaError(f"Rule {rule!r} has no price for each unit. Give a price, such as price=1.0.")
    elif isinstance(price, bool) or not finite(price, f"Rule {rule!r}: the price", SchemaError) > 0.0:
        raise SchemaError(f"Rule {rule!r}: the price of breaking it must be above 0, got {price!r}.")


def check_weight(given: float, rule: str, label: str, soft: bool = False) -> float:
    """Returns a weight with which sums can be checked, those of soft rules exactly; refuses others."""
    if not isinstance(given, float) or not math.isfinite(given):
        given = finite(given, f"Rule {rule!r}: the weight of {label!r}", SchemaError)
    weight = float(given)
    if abs(weight) > MAX_WEIGHT:
        raise SchemaError(
            f"Rule {rule!r}: the weights of {label!r} add up to {weight:g}; beyond {MAX_WEIGHT:g} sums cannot be told "
            "apart from rounding. Scale the rule down."
        )
    if soft and weight != int(weight):
        raise SchemaError(
            f"Rule {rule!r} has a price, and the weight {weight:g} for {label!r}. Rules with a price need whole "
            "weights: multiply its weights and limits by the same number."
        )
    return weight

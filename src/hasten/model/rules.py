"""Linear rules over the labels of a structure's variables: one by one as a `Rule`, together as the flat `Terms`."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from hasten.errors import SchemaError
from hasten.model.kinds import (
    MAX_WEIGHT,
    VariableKind,
    check_price,
    check_weight,
    check_whole_weight,
    read_limits,
)

Term = tuple[int, str] | tuple[int, str, float]
Item = TypeVar("Item")
WITH_OR_WITHOUT = {2, 3}  # how long they may be
ONES = array("d", [1.0])
FREE = 0.0, 0  # what breaking a rule costs that must be kept


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
        check_price(self.name, self.price, self.per_unit)
        if self.price is not None:
            for _, label, weight in self.terms:
                check_whole_weight(self.name, weight, label)
        if not sum([abs(weight) for _, _, weight in self.terms]) <= MAX_WEIGHT:  # or one is nan
            self._check_sums()

    def _check_sums(self) -> None:
        """Refuses terms whose weights, those of one label added up, are too large."""
        total: dict[tuple[int, str], float] = {}
        for variable, label, weight in self.terms:
            check_weight(weight, self.name, label)
            total[variable, label] = total.get((variable, label), 0.0) + weight
        for (variable, label), weight in total.items():
            if abs(weight) > MAX_WEIGHT:
                raise SchemaError(
                    f"Rule {self.name!r}: the weights of {label!r} of variable {variable} add up to {weight:g}; beyond "
                    f"{MAX_WEIGHT:g} its sums cannot be told apart from rounding. Scale the rule down."
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
        weighted = tuple([_read_term(name, term) for term in listed(terms, f"Rule {name!r}: the terms")])
        if not weighted:
            raise SchemaError(f"Rule {name!r} counts nothing. Give (variable, label) terms.")
        return Rule(name, weighted, low, high, price, per_unit)


def _read_term(rule: str, term: Term) -> tuple[int, str, float]:
    if not isinstance(term, tuple | list) or len(term) not in WITH_OR_WITHOUT:
        raise SchemaError(f"Rule {rule!r}: a term is (variable, label) or (variable, label, weight), got {term!r}.")
    return term[0], term[1], 1.0 if len(term) == 2 else check_weight(term[2], rule, term[1])


def as_terms(name: str, terms: Term | Iterable[Term]) -> list[tuple[int, str]]:
    """Returns one (variable, label), or several, as a list without repetitions."""
    single = isinstance(terms, tuple) and len(terms) == 2 and isinstance(terms[1], str)
    found: list[Any] = [terms] if single else list(listed(terms, f"Rule {name!r}: the terms"))
    for term in found:
        if not isinstance(term, tuple | list) or len(term) != 2:
            raise SchemaError(f"Rule {name!r}: a term is (variable, label), got {term!r}.")
    if not found:
        raise SchemaError(f"Rule {name!r} has no terms on one side. Give (variable, label), one or several.")
    return [(variable, label) for variable, label in dict.fromkeys(map(tuple, found))]


def listed(given: Iterable[Item], what: str) -> tuple[Item, ...]:
    """Returns several things as a tuple, or says that there should be several."""
    try:
        return tuple(given)
    except TypeError:
        raise SchemaError(f"{what} must be a list, got {given!r}.") from None


class Terms:
    """The rules of a structure, as flat arrays that grow; labels are numbered through all variables."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.first = array("q", [0])
        self.label = array("q")
        self.weight = array("d")
        self.low, self.high = array("d"), array("d")
        self.price = array("d")  # 0 for rules that must be kept
        self.per_unit = array("q")

    def add(
        self,
        name: str,
        terms: tuple[list[int], array[float]],
        limits: tuple[float, float],
        charge: tuple[float, int] = FREE,
    ) -> None:
        """Adds a rule, given the label numbers and the weights of its terms, and what breaking it costs."""
        labels, weights = terms
        self.weight.extend(weights)
        self.label.fromlist(labels)
        self.first.append(len(self.label))
        self.low.append(limits[0])
        self.high.append(limits[1])
        self.price.append(charge[0])
        self.per_unit.append(charge[1])
        self.names.append(name)

    @property
    def arrays(self) -> tuple[array[Any], ...]:
        """All of them."""
        return self.first, self.label, self.weight, self.low, self.high, self.price, self.per_unit

    def copy(self) -> Terms:
        """Returns one that grows by itself."""
        copy = Terms()
        copy.names = self.names[:]
        copy.first, copy.label, copy.weight, copy.low, copy.high, copy.price, copy.per_unit = (
            each[:] for each in self.arrays
        )
        return copy

    def rules(self, kinds: Sequence[VariableKind], label_first: Sequence[int]) -> tuple[Rule, ...]:
        """Returns the rules one by one, given the variables' kinds and where the labels of each start."""
        variables = (np.searchsorted(label_first, self.label, side="right") - 1).tolist()
        terms = [
            (v, kinds[v].labels[label - label_first[v]], weight)
            for v, label, weight in zip(variables, self.label, self.weight, strict=True)
        ]
        return tuple(
            Rule(name, tuple(terms[begin:end]), low, high, price or None, bool(per_unit))
            for name, begin, end, low, high, price, per_unit in zip(
                self.names, self.first[:-1], self.first[1:], *self.arrays[3:], strict=True
            )
        )


def read_quickly(
    terms: Sequence[Any], label_first: Sequence[int], places: Sequence[dict[str, int]]
) -> tuple[list[int], array[float]] | None:
    """Returns the label numbers and weights of terms, or nothing if one of them has to be looked at more closely."""
    n, lengths = len(terms), [len(term) for term in terms if type(term) is tuple]
    if not n or len(lengths) < n:
        return None
    plain, weights, n_weighted, total = terms, ONES * n, n - lengths.count(2), float(n)
    try:
        if n_weighted:
            plain, place = [*terms], -1
            for _ in range(n_weighted):
                place = lengths.index(3, place + 1)  # there is none if another has no or too many parts
                variable, label, weights[place] = terms[place]
                plain[place] = variable, label
                total += abs(weights[place])
        labels = [label_first[v] + places[v][label] for v, label in plain if v >= 0]
    except (IndexError, KeyError, TypeError, ValueError, OverflowError):
        return None
    return (labels, weights) if len(labels) == n and total <= MAX_WEIGHT else None  # nor is a weight nan

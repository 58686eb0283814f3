"""Linear rules over the labels of a structure's variables: one by one as a `Rule`, together as the flat `Terms`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import countOf
from struct import pack
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hasten.errors import SchemaError
from hasten.kernels.cells import NO_ROWS, Rows
from hasten.model.kinds import (
    MAX_WEIGHT,
    VariableKind,
    check_price,
    check_weight,
    check_whole_weight,
    read_limits,
)
from hasten.support.checks import listed

if TYPE_CHECKING:
    from hasten.model.structure import Scopes

Term = tuple[int, str] | tuple[int, str, float]
WITH_OR_WITHOUT = {2, 3}  # how long they may be
Charge = tuple[float, bool]  # the price of breaking a rule, and whether it is for each unit


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
        weighted = tuple([_read_term(name, term) for term in listed(terms, f"Rule {name!r}: the terms", SchemaError)])
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
    found: list[Any] = [terms] if single else list(listed(terms, f"Rule {name!r}: the terms", SchemaError))
    for term in found:
        if not isinstance(term, tuple | list) or len(term) != 2:
            raise SchemaError(f"Rule {name!r}: a term is (variable, label), got {term!r}.")
    if not found:
        raise SchemaError(f"Rule {name!r} has no terms on one side. Give (variable, label), one or several.")
    return [(variable, label) for variable, label in dict.fromkeys(map(tuple, found))]


class Packed(NamedTuple):
    """Rules as bytes, by which they are told apart: where terms end, which have weights, labels, limits, weights."""

    data: bytes
    n_rules: int
    n_weights: int  # that are not 1

    @staticmethod
    def of(rows: Rows) -> Packed:
        """Packs rules that are arrays."""
        places = (rows.weight != 1.0).nonzero()[0]
        ints = np.concatenate([rows.first, places, rows.label])
        floats = np.concatenate([rows.low, rows.high, rows.weight[places]])
        return Packed(ints.tobytes() + floats.tobytes(), len(rows.low), len(places))

    @property
    def rows(self) -> Rows:
        """The same, as arrays."""
        n, ints = self.n_rules, np.frombuffer(bytearray(self.data), np.int64)
        floats = ints[len(ints) - 2 * n - self.n_weights :].view(np.float64)
        label = ints[n + 1 + self.n_weights : len(ints) - len(floats)]
        weight = np.empty(len(label))
        weight.fill(1.0)
        weight[ints[n + 1 : n + 1 + self.n_weights]] = floats[2 * n :]
        return Rows(ints[: n + 1], label, weight, floats[:n], floats[n : 2 * n])


class Stated(NamedTuple):
    """Rules as they are stated, in lists, which grow sooner than arrays."""

    label: list[int]  # of each term
    weight: dict[int, float]  # by the number of the term, where it is not 1
    limits: list[tuple[int, float, float]]  # where the terms of each rule end, and its limits

    def packed(self) -> Packed:
        """Returns the same, packed."""
        (end, low, high), weight = zip(*self.limits, strict=True), self.weight
        n, m = len(end), len(weight)
        form = f"{n + 1 + m + len(self.label)}q{2 * n + m}d"
        data = pack(form, 0, *end, *weight, *self.label, *low, *high, *weight.values())
        return Packed(data, n, m)


NO_RULES = Packed.of(NO_ROWS)


class Terms:
    """The rules of a structure; labels are numbered through all variables."""

    def __init__(
        self, names: Iterable[str] = (), charges: Mapping[int, Charge] | None = None, packed: Packed = NO_RULES
    ) -> None:
        self.names = [*names]
        self.charges = {**(charges or {})}  # of rules that may be broken
        self._parts = packed, Stated([], {}, [])

    def add(self, rule: Rule, labels: Sequence[int]) -> None:
        """Adds a rule, given the label numbers of its terms."""
        label, weight, limits = self._parts[1]
        weight |= {n: each for n, (_, _, each) in enumerate(rule.terms, len(label)) if each != 1.0}
        label += labels
        limits.append((len(label), rule.low, rule.high))
        if rule.price is not None:
            self.charges[len(self.names)] = float(rule.price), bool(rule.per_unit)
        self.names.append(rule.name)

    def take(self, name: str, terms: Sequence[Any], limits: tuple[float, float], scopes: Scopes) -> bool:
        """Adds a rule that must be kept, unless one of its terms has to be looked at more closely."""
        first, places, n = scopes.first, scopes.places, len(terms)
        label, weight, all_limits = self._parts[1]
        plain, total, weights = n, 0.0, {}
        if countOf(map(type, terms), tuple) < n:
            return False
        try:
            while plain and len(terms[plain - 1]) == 3:  # terms with a weight mostly come last
                plain -= 1
            try:
                labels = [first[v] + places[v][named] for v, named in terms[:plain]]
            except ValueError:  # or they do not
                labels, plain = [], 0
            for number, term in enumerate(terms[plain:], len(label) + plain):
                v, named, each = term if len(term) == 3 else (*term, 1.0)
                labels.append(first[v] + places[v][named])
                total += abs(each)
                if each != 1.0:
                    weights[number] = float(each)
        except (IndexError, KeyError, TypeError, ValueError, OverflowError):
            return False
        if not n or not n + total <= MAX_WEIGHT:  # or a weight is nan
            return False
        label += labels
        weight |= weights
        all_limits.append((len(label), *limits))
        self.names.append(name)
        return True

    @property
    def packed(self) -> Packed:
        """All of them, packed."""
        packed, stated = self._parts
        if stated.limits:
            more = stated.packed()
            packed = Packed.of(packed.rows.then(more.rows)) if packed.n_rules else more
            self._parts = packed, Stated([], {}, [])  # at once, since several threads may ask
        return packed

    def copy(self) -> Terms:
        """Returns one that grows by itself."""
        return Terms(self.names, self.charges, self.packed)

    def rules(self, kinds: Sequence[VariableKind], label_first: Sequence[int]) -> tuple[Rule, ...]:
        """Returns the rules one by one, given the variables' kinds and where the labels of each start."""
        rows = self.packed.rows
        variables = (np.searchsorted(label_first, rows.label, side="right") - 1).tolist()
        terms = [
            (v, kinds[v].labels[label - label_first[v]], weight)
            for v, label, weight in zip(variables, rows.label.tolist(), rows.weight.tolist(), strict=True)
        ]
        first = rows.first.tolist()
        limits = zip(self.names, first[:-1], first[1:], rows.low.tolist(), rows.high.tolist(), strict=True)
        return tuple(
            Rule(name, tuple(terms[begin:end]), low, high, *self.charges.get(r, (None, False)))
            for r, (name, begin, end, low, high) in enumerate(limits)
        )

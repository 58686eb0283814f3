"""What a schema declares: kinds of variables, kinds of factors with their tables, and rules over kinds."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from hasten.errors import SchemaError
from hasten.support.arrays import BoolArray, FloatArray, all_finite, floats

if TYPE_CHECKING:
    from hasten.model.schema import Schema

MAX_WEIGHT = 1e10  # of a rule
MAX_TABLE = 1_000_000  # entries; larger scopes belong in rules
MAX_ROLES = 32  # of a factor: NumPy's arrays have no more than 64 dimensions
MAX_LABELS = 2**15  # of one variable: the beam keeps labels in 16 bits
Predicate = Callable[..., bool]
Pattern = str | Collection[str]


@dataclass(frozen=True, slots=True, eq=False)
class VariableKind:
    """A kind of decision: its name and the labels it chooses from."""

    name: str
    labels: tuple[str, ...]
    index: int
    places: dict[str, int] = field(init=False)  # of the labels, by name

    def __post_init__(self) -> None:
        object.__setattr__(self, "places", {label: i for i, label in enumerate(self.labels)})

    def label(self, name: str) -> int:
        """Returns the position of a label, by its name."""
        try:
            return self.places[name]
        except (KeyError, TypeError):
            raise SchemaError(f"{self.name} has no label {name!r}. Its labels are {', '.join(self.labels)}.") from None

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"VariableKind({self.name!r}, {list(self.labels)})"


class FactorKind:
    """A kind of small scope: its roles, its table (if any) and whether its label tuples are speedup features.

    A fresh factor kind restricts nothing. The first `allow` forbids every tuple that no `allow` names;
    `forbid` and `cost` speak of single tuples; their order does not matter, and `forbid` wins. Patterns name a
    label, several labels, or (by leaving a role out) any label; a predicate is called with label names by role.
    """

    def __init__(
        self,
        schema: Schema,
        name: str,
        roles: Mapping[str, VariableKind],
        learned: bool,
        index: int,
        weight_at: int,
    ) -> None:
        self.name = name
        self.roles = dict(roles)
        self.learned = learned
        self.index = index
        self.weight_at = weight_at  # where its weights start in a weight vector; -1 if it is not learned
        self.shape = tuple(len(kind) for kind in self.roles.values())
        self.size = math.prod(self.shape)
        self._schema = schema
        self._allowed: BoolArray | None = None
        self._forbidden = np.zeros(self.shape, dtype=bool)
        self._costs = np.zeros(self.shape)

    @property
    def table(self) -> FloatArray | None:
        """The costs of its label tuples, an axis per role, inf where forbidden; None if it says nothing."""
        forbidden = self._forbidden if self._allowed is None else self._forbidden | ~self._allowed
        if not forbidden.any() and not self._costs.any():
            return None
        return np.where(forbidden, np.inf, self._costs)

    def allow(self, predicate: Predicate | None = None, /, **pattern: Pattern) -> FactorKind:
        """Allows the matching tuples; whatever no `allow` names is forbidden."""
        chosen = self._match(predicate, pattern)
        if not chosen.any():
            raise SchemaError(f"{self.name}: no tuple matches, so this allows nothing. Name labels, or use forbid.")
        self._allowed = chosen if self._allowed is None else self._allowed | chosen
        return self

    def forbid(self, predicate: Predicate | None = None, /, **pattern: Pattern) -> FactorKind:
        """Forbids the matching tuples."""
        self._forbidden |= self._match(predicate, pattern)
        return self

    def imply(
        self, when: Mapping[str, Pattern], then: Mapping[str, Pattern], *, price: float | None = None
    ) -> FactorKind:
        """Forbids the tuples that match `when`, by role and labels, and do not match `then`; or lets them cost a price.

        >>> import hasten
        >>> schema = hasten.Schema()
        >>> kind = schema.variable("kind", ["city", "country"])
        >>> pair = schema.factor("capital of", left=kind, right=kind)
        >>> pair.imply({"left": "city"}, {"right": "country"}).table.tolist()
        [[inf, 0.0], [0.0, 0.0]]
        """
        if not then:
            raise SchemaError(f"{self.name}: what does it imply? Give roles and labels, or use forbid.")
        wrong = self._match(None, when) & ~self._match(None, then)
        if price is not None:
            check_price(self.name, price, per_unit=False)
            return self._add_cost(wrong, price)
        self._forbidden |= wrong
        return self

    def cost(self, value: float, predicate: Predicate | None = None, /, **pattern: Pattern) -> FactorKind:
        """Adds a finite cost to the matching tuples; a forbidden tuple stays forbidden."""
        if not is_finite(value):
            raise SchemaError(
                f"{self.name}: a cost must be a finite number, got {value!r}. To rule tuples out, use forbid."
            )
        return self._add_cost(self._match(predicate, pattern), value)

    def _add_cost(self, chosen: BoolArray, value: float) -> FactorKind:
        with np.errstate(over="ignore"):
            total = self._costs[chosen] + value
        if not np.isfinite(total).all():
            raise SchemaError(
                f"{self.name}: with {value:g} more, the cost of a tuple is no longer finite. Scale the costs down."
            )
        self._costs[chosen] = total
        return self

    def set_table(self, table: FloatArray) -> FactorKind:
        """Gives the whole table at once, with one axis per role; `inf` forbids."""
        self._schema._check_open()
        table = check_table(table, self)
        self._allowed = None
        self._forbidden = np.isposinf(table)
        self._costs = np.where(self._forbidden, 0.0, table)
        return self

    def tuples(self) -> Iterator[tuple[str, ...]]:
        """Yields every label tuple by names, in table order."""
        return product(*(kind.labels for kind in self.roles.values()))

    def _match(self, predicate: Predicate | None, pattern: Mapping[str, Pattern]) -> BoolArray:
        self._schema._check_open()
        for role in pattern:
            if role not in self.roles:
                raise SchemaError(f"{self.name} has no role {role!r}. Its roles are {', '.join(self.roles)}.")
        axes = []
        for role, kind in self.roles.items():
            axis = np.ones(len(kind), dtype=bool)
            if role in pattern:
                axis[:] = False
                for name in label_names(pattern[role], f"{self.name}: {role}"):
                    axis[kind.label(name)] = True
            axes.append(axis)
        chosen = np.zeros(self.shape, dtype=bool)
        chosen[np.ix_(*axes)] = True
        if predicate is not None:
            for index in zip(*np.nonzero(chosen), strict=True):
                names_by_role = {
                    role: kind.labels[i] for (role, kind), i in zip(self.roles.items(), index, strict=True)
                }
                chosen[index] = bool(predicate(**names_by_role))
        return chosen

    def __repr__(self) -> str:
        roles = ", ".join(f"{role}={kind.name}" for role, kind in self.roles.items())
        return f"FactorKind({self.name!r}, {roles})"


@dataclass(frozen=True, slots=True, eq=False)
class KindRule:
    """A linear row over every variable of the named kinds, in every structure of the schema."""

    name: str
    weights: dict[int, FloatArray]  # by variable kind: one coefficient per label
    low: float
    high: float
    price: float | None = None  # what breaking it costs; None if it must be kept
    per_unit: bool = False  # whether that is for each unit by which it is missed


def label_names(labels: Pattern, what: str) -> Collection[str]:
    """Returns the label, or labels, that a pattern names."""
    if isinstance(labels, str):
        return [labels]
    if not isinstance(labels, Collection):
        raise SchemaError(f"{what} must be a label or several, by name; got {labels!r}.")
    return labels


def is_finite(value: float) -> bool:
    """Whether something is a number, and finite."""
    try:
        return math.isfinite(value)
    except (TypeError, OverflowError):  # a whole number may be too large for a float
        return False


def check_finite(value: float, what: str) -> float:
    """Returns a number that is finite, or says which one is not."""
    if not is_finite(value):
        raise SchemaError(f"{what} must be a finite number, got {value!r}.")
    return float(value)


def check_price(rule: str, price: float | None, per_unit: bool) -> None:
    """Refuses what is not a price for breaking a rule."""
    if price is None:
        if per_unit:
            raise SchemaError(f"Rule {rule!r} has no price for each unit. Give a price, such as price=1.0.")
    elif isinstance(price, bool) or not check_finite(price, f"Rule {rule!r}: the price") > 0.0:
        raise SchemaError(f"Rule {rule!r}: the price of breaking it must be above 0, got {price!r}.")


def check_whole_weight(rule: str, weight: float, label: str) -> None:
    """Refuses weights of rules with a price whose sums would have to be compared within a tolerance."""
    if weight != int(weight):
        raise SchemaError(
            f"Rule {rule!r} has a price, and the weight {weight:g} for {label!r}. Rules with a price need whole "
            "weights: multiply its weights and limits by the same number."
        )


def check_weight(weight: float, rule: str, label: str) -> float:
    """Returns a rule's weight that sums can be checked with, or says why it is not one."""
    if not abs(check_finite(weight, f"Rule {rule!r}: the weight of {label!r}")) <= MAX_WEIGHT:
        raise SchemaError(
            f"Rule {rule!r} has the weight {weight:g} for {label!r}; beyond {MAX_WEIGHT:g} its sums cannot be told "
            "apart from rounding. Scale the rule down."
        )
    return float(weight)


def read_limits(name: str, at_most: float | None, at_least: float | None, exactly: float | None) -> tuple[float, float]:
    """Returns the lowest and the highest value a rule allows."""
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
    return float(value) if is_finite(value) else check_finite(value, f"Rule {rule!r}: {what}")


def check_table(table: FloatArray, kind: FactorKind) -> FloatArray:
    """Returns a table that fits a factor kind, or says why it does not."""
    try:
        table = floats(table)
    except (TypeError, ValueError):
        raise SchemaError(f"{kind.name}: a table holds costs, which are numbers; got {table!r}.") from None
    if table.shape != kind.shape:
        raise SchemaError(
            f"{kind.name} needs a table of shape {kind.shape}, an axis per role "
            f"({', '.join(kind.roles)}), got {table.shape}."
        )
    if not all_finite(table) and (np.isnan(table).any() or np.isneginf(table).any()):
        raise SchemaError(f"{kind.name}: a table holds finite costs, or inf where forbidden; got nan or -inf.")
    return table

"""The parts of a schema: kinds of variables, and kinds of factors with their tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from inspect import signature
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from hasten.errors import SchemaError
from hasten.support.arrays import BoolArray, FloatArray, all_of, floats
from hasten.support.checks import brief, finite, listed
from hasten.support.words import first_few

if TYPE_CHECKING:
    from hasten.model.schema import Schema

MAX_WEIGHT = 1e10  # of a label in a rule
MAX_TABLE = 1_000_000  # entries; larger scopes belong in rules
MAX_ROLES = 32  # of a factor: NumPy's arrays have no more than 64 dimensions
MAX_LABELS = 2**15  # of one variable: the beam keeps labels in 16 bits
MOST_NAMED = 32  # labels in an error message
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
            labels = first_few(self.labels, MOST_NAMED)
            raise SchemaError(f"{self.name} has no label {brief(name)}. Its labels are {labels}.") from None

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
        self, schema: Schema, name: str, roles: Mapping[str, VariableKind], learned: bool, index: int, weight_at: int
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
        if isinstance(then, Mapping) and not then:
            raise SchemaError(f"{self.name}: what does it imply? Give roles and labels, or use forbid.")
        wrong = self._match(None, when) & ~self._match(None, then)
        if price is not None:
            if isinstance(price, bool) or not finite(price, f"{self.name}: the price", SchemaError) > 0.0:
                raise SchemaError(f"{self.name}: the price of breaking it must be above 0, got {price!r}.")
            return self._add_cost(wrong, price)
        self._forbidden |= wrong
        return self

    def cost(self, value: float, predicate: Predicate | None = None, /, **pattern: Pattern) -> FactorKind:
        """Adds a finite cost to the matching tuples; a forbidden tuple stays forbidden."""
        number = finite(value, f"{self.name}: a cost", SchemaError, "To rule tuples out, use forbid.")
        return self._add_cost(self._match(predicate, pattern), number)

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
        if not isinstance(pattern, Mapping):
            raise SchemaError(f"{self.name}: give labels by role, such as {{'{next(iter(self.roles))}': ...}}.")
        if predicate is not None and not callable(predicate):
            raise SchemaError(
                f"{self.name}: give labels by role, such as {next(iter(self.roles))}=..., or a function of the roles; "
                f"got {brief(predicate)}."
            )
        for role in pattern:
            if role not in self.roles:
                raise SchemaError(f"{self.name} has no role {brief(role)}. Its roles are {', '.join(self.roles)}.")
        try:
            _ = None if predicate is None else signature(predicate).bind(**self.roles)
        except TypeError:
            roles = ", ".join(self.roles)
            raise SchemaError(
                f"{self.name}: the function's arguments must be named as the roles are: {roles}."
            ) from None
        except ValueError:  # built-in functions say nothing of their arguments
            pass
        axes = []
        for role, kind in self.roles.items():
            named = label_names(pattern[role], f"{self.name}: {role}") if role in pattern else kind.labels
            axes.append(sorted({kind.label(name) for name in named}))
        chosen = np.zeros(self.shape, dtype=bool)
        chosen[np.ix_(*axes)] = True
        for index in zip(*np.nonzero(chosen), strict=True) if predicate is not None else ():
            names = {role: kind.labels[i] for (role, kind), i in zip(self.roles.items(), index, strict=True)}
            chosen[index] = bool(predicate(**names))  # type: ignore[misc]
        return chosen

    def __repr__(self) -> str:
        roles = ", ".join(f"{role}={kind.name}" for role, kind in self.roles.items())
        return f"FactorKind({self.name!r}, {roles})"


def label_names(labels: Pattern, what: str) -> Collection[str]:
    """Returns the label, or labels, that a pattern names."""
    if isinstance(labels, str):
        return [labels]
    names = listed(labels, f"{what}: labels", SchemaError)
    if not all(isinstance(label, str) for label in names):
        raise SchemaError(f"{what} must be a label or several, by name; got {brief(labels)}.")
    return names


def check_table(table: FloatArray, kind: FactorKind) -> FloatArray:
    """Returns a table that fits a factor kind, or says why it does not."""
    try:
        table = floats(table)
    except (TypeError, ValueError):
        raise SchemaError(f"{kind.name}: a table holds costs, which are numbers; got {brief(table)}.") from None
    if table.shape != kind.shape:
        raise SchemaError(
            f"{kind.name} needs a table of shape {kind.shape}, an axis per role "
            f"({', '.join(kind.roles)}), got {table.shape}."
        )
    if not all_of(table > -np.inf):  # nan is not
        raise SchemaError(f"{kind.name}: a table holds finite costs, or inf where forbidden; got nan or -inf.")
    return table


def check_tables(tables: object) -> None:
    """Refuses tables that do not say to which factors they belong."""
    if type(tables) is not dict and not isinstance(tables, Mapping):
        raise SchemaError(
            "Tables are given by the number of their factor, or by its kind: tables={'agree': table}; got "
            f"{brief(tables)}."
        )

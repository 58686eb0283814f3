"""Rules with a price: what breaking them costs, and the hidden variables that say so.

A rule with a price becomes rows that always hold, over one more variable, its *indicator*, whose labels say whether the
rule is kept, or by how much its sum `s` is too large or too small:

    s - (the amount of the indicator's label, if `s` is too large) <= high
    s + (the amount of the indicator's label, if `s` is too small) >= low

All labels but "kept" cost the price or, where it is per unit, the price times the amount. Indicators come behind all
other variables of a graph. They belong to no schema, and no labelling that users see or give has them: the labels of
the others determine them (`Prices.complete`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hasten.errors import SchemaError
from hasten.kernels.cells import Rows, with_rows
from hasten.kernels.layout import Graph
from hasten.model.kinds import VariableKind
from hasten.support.arrays import FloatArray, IntArray, ints, offsets, sizes_of

MAX_UNITS = 1024  # by which a rule with a price for each can be missed
MAX_AT_ONCE = 10_000_000  # terms times labellings whose indicators are looked up together
KEPT = np.zeros(1)
Row = tuple[IntArray, FloatArray, float, float]  # labels, weights and limits
Charges = Mapping[int, tuple[float, bool]]  # by row: the price of breaking a rule, and whether it is for each unit


class Indicator(NamedTuple):
    """The hidden variable of one rule; its labels are "kept", those for sums that are too large, then too small."""

    rule: int  # the number of its row
    name: str
    label: IntArray  # of its terms
    weight: FloatArray
    low: float
    high: float
    above: FloatArray  # the amounts that its labels allow beyond `high`
    below: FloatArray  # and below `low`
    reach: tuple[float, float]  # the least and the most that the sum can come to
    price: float
    per_unit: bool

    @property
    def cost(self) -> FloatArray:
        """What its labels cost."""
        amounts = np.concatenate([KEPT, self.above, self.below])
        return self.price * (amounts if self.per_unit else np.sign(amounts))

    @property
    def kind(self) -> VariableKind:
        """What it is called where it is shown, and its labels."""
        sides = [(self.above, "above"), (self.below, "below")]
        names = [f"{amount:g} {side}" if self.per_unit else side for amounts, side in sides for amount in amounts]
        return VariableKind(f"price of {self.name}", ("kept", *names), -1)

    def rows(self, at: int) -> list[Row]:
        """Returns the rows that hold whether the rule is kept or not, its own labels starting at `at`."""
        found, above, below = (
            [],
            at + 1 + np.arange(len(self.above)),
            at + 1 + len(self.above) + np.arange(len(self.below)),
        )
        if len(above):
            found.append((np.append(self.label, above), np.append(self.weight, -self.above), -np.inf, self.high))
        if len(below):
            found.append((np.append(self.label, below), np.append(self.weight, self.below), self.low, np.inf))
        return found

    def exact_rows(self, at: int) -> list[Row]:
        """Returns rows under which its label cannot say that the rule is missed by more than it is."""
        (least, most), found = self.reach, []
        above, below = at + 1 + np.arange(len(self.above)), at + 1 + len(self.above) + np.arange(len(self.below))
        if len(above):
            begins = self.high + (self.above if self.per_unit else 1.0)
            found.append((np.append(self.label, above), np.append(self.weight, least - begins), least, np.inf))
        if len(below):
            begins = self.low - (self.below if self.per_unit else 1.0)
            found.append((np.append(self.label, below), np.append(self.weight, most - begins), -np.inf, most))
        return found


class Prices:
    """The indicators of one shape of input."""

    def __init__(self, first: IntArray, indicators: Sequence[Indicator]) -> None:
        self.indicators = tuple(indicators)
        self.cost = np.concatenate([each.cost for each in indicators])
        self.least = min(each.price for each in indicators)  # that a wrong indicator costs too much, at least
        self.label_first = first[-1] + offsets(len(each.cost) for each in indicators)  # where those of each start
        self._first = first  # of the variables that users see
        self._term_first = offsets(len(each.label) for each in indicators)
        self._label = np.concatenate([each.label for each in indicators])
        self._weight = np.concatenate([each.weight for each in indicators])
        self._variable = np.arange(len(first) - 1).repeat(sizes_of(first))[self._label]
        self._low, self._high = np.array([(each.low, each.high) for each in indicators]).T
        self._per_unit = np.array([each.per_unit for each in indicators])
        self._n_above = np.array([len(each.above) for each in indicators])

    def __len__(self) -> int:
        return len(self.indicators)

    @property
    def kinds(self) -> tuple[VariableKind, ...]:
        """The kinds of the indicators, for those who show them."""
        return tuple(each.kind for each in self.indicators)

    def sums(self, labels: IntArray) -> FloatArray:
        """Returns what the rules come to, (labellings, rules), given labellings of the variables that users see."""
        chosen = self._first[self._variable] + labels[:, self._variable] == self._label
        so_far = np.zeros((len(labels), len(self._label) + 1))
        np.cumsum(chosen * self._weight, axis=1, out=so_far[:, 1:])  # of whole numbers: exact
        return so_far[:, self._term_first[1:]] - so_far[:, self._term_first[:-1]]

    def complete(self, labels: IntArray) -> IntArray:
        """Returns the indicators, (labellings, rules), of labellings; -1 for one that lacks a label."""
        found = np.empty((len(labels), len(self)), dtype=np.int64)
        at_once = max(1, MAX_AT_ONCE // (1 + len(self._label)))
        for start in range(0, len(labels), at_once):
            some = labels[start : start + at_once]
            s = self.sums(some)
            above, below = np.maximum(s - self._high, 0.0), np.maximum(self._low - s, 0.0)
            above, below = (np.where(self._per_unit, each, np.sign(each)) for each in (above, below))
            numbers = above + np.where(below > 0.0, self._n_above + below, 0.0)
            found[start : start + at_once] = np.where((some < 0).any(axis=1, keepdims=True), -1, numbers)
        return found


class Priced(NamedTuple):
    """The rows to compile of rules of which some have a price."""

    rows: Rows
    names: tuple[str, ...]  # of the rows
    prices: Prices | None  # None if no rule that can be broken has one


def put_prices(first: IntArray, rows: Rows, names: tuple[str, ...], charges: Charges, exact: bool) -> Priced:
    """Returns rows that let rules be broken for their price, over variables with labels at `first` and indicators.

    `exact` adds rows under which each labelling has one labelling of the indicators: no optimum needs them, but
    counting labellings does.
    """
    graph = with_rows(Graph.start(first=first), rows)
    reach = list(zip(graph.range_low.tolist(), graph.range_high.tolist(), strict=True))
    found = []
    for r, (price, per_unit) in charges.items():
        cells, low, high = slice(*graph.row_first[r : r + 2]), float(graph.row_least[r]), float(graph.row_most[r])
        above, below = (_amounts(by, per_unit, names[r]) for by in (reach[r][1] - high, low - reach[r][0]))
        label, weight = graph.row_label[cells], graph.row_weight[cells]
        if len(above) or len(below):  # others cannot be broken
            found.append(Indicator(r, names[r], label, weight, low, high, above, below, reach[r], price, per_unit))
    if not found:
        return Priced(rows, names, None)
    prices = Prices(first, found)
    all_rows = list(_split(rows))
    all_names = list(names)
    for each, at in zip(found, prices.label_first.tolist(), strict=False):
        all_rows[each.rule], *more = each.rows(at)
        more += each.exact_rows(at) if exact else []
        all_rows += more
        all_names += [each.name] * len(more)
    return Priced(_joined(all_rows), tuple(all_names), prices)


def _amounts(most: float, per_unit: bool, name: str) -> FloatArray:
    """Returns the amounts by which a rule can be missed to one side: all, or only the largest."""
    if not 0.0 < most < np.inf:
        return KEPT[:0]
    if not per_unit:
        return np.array([most])
    if most > MAX_UNITS:
        raise SchemaError(
            f"Rule {name!r} can be missed by {most:,.0f} units; a price for each is for up to {MAX_UNITS:,}. "
            "Scale the rule down, or give one price for breaking it."
        )
    return np.arange(1.0, most + 1)


def _split(rows: Rows) -> Iterable[Row]:
    for begin, end, low, high in zip(rows.first[:-1], rows.first[1:], rows.low, rows.high, strict=True):
        yield rows.label[begin:end], rows.weight[begin:end], float(low), float(high)


def _joined(rows: Sequence[Row]) -> Rows:
    label, weight, low, high = zip(*rows, strict=True)
    return Rows(
        offsets(map(len, label)), ints(np.concatenate(label)), np.concatenate(weight), np.array(low), np.array(high)
    )

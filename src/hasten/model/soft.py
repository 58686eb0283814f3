"""Soft rules: rules that may be broken for a price, lowered to hard rows over indicator variables.

A soft rule becomes rows that always hold, over one more variable, its *indicator*, whose labels say whether the rule is
kept, or by how much its sum `s` is too large or too small:

    s - (the amount of the indicator's label, if `s` is too large) <= high
    s + (the amount of the indicator's label, if `s` is too small) >= low

All labels but "kept" cost the price or, where it is per unit, the price times the amount. Indicators come behind all
other variables of a graph, where kernels, searches, proofs and solvers take them for ordinary variables. Users neither
give nor see them: `add_prices` puts their costs behind the given ones, `complete` derives their labels from those of
the other variables, and `Batch.labels` cuts them off.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hasten.errors import SchemaError
from hasten.kernels.cells import Rows, with_rows
from hasten.kernels.layout import Graph
from hasten.kernels.score import score_batch
from hasten.model.kinds import VariableKind
from hasten.support.arrays import FloatArray, IntArray, ints, offsets, ranges, sizes_of

if TYPE_CHECKING:
    from hasten.model.batch import Batch
    from hasten.model.structure import Structure

MAX_UNITS = 1024  # by which a rule with a price per unit can be missed
MAX_AT_ONCE = 10_000_000  # terms times labellings whose indicators are derived together
NONE = np.zeros(0)
Row = tuple[IntArray, FloatArray, float, float]  # labels, weights and limits
Charges = Mapping[int, tuple[float, bool]]  # by row: the price of breaking a rule, and whether it is per unit


class Indicator(NamedTuple):
    """The indicator of one soft rule; its labels are "kept", those for sums that are too large, then too small."""

    rule: int  # the number of its row
    name: str
    label: IntArray  # of its terms
    weight: FloatArray
    low: float
    high: float
    above: FloatArray  # the amounts that its labels allow beyond `high`
    below: FloatArray  # the amounts that its labels allow below `low`
    reach: tuple[float, float]  # the least and the most that the sum can come to
    price: float
    per_unit: bool

    @property
    def cost(self) -> FloatArray:
        """The costs of its labels."""
        amounts = np.concatenate([[0.0], self.above, self.below])
        return self.price * (amounts if self.per_unit else np.sign(amounts))

    @property
    def kind(self) -> VariableKind:
        """The name and labels of the indicator where it is shown."""
        sides = [(self.above, "above"), (self.below, "below")]
        names = [f"{amount:g} {side}" if self.per_unit else side for amounts, side in sides for amount in amounts]
        return VariableKind(f"price of {self.name}", ("kept", *names), -1)

    def rows(self, at: int, distinct: bool) -> list[Row]:
        """Returns the rows that hold whether the rule is kept or not, its own labels starting at `at`.

        The rows of `distinct` keep its label from saying that the rule is missed by more than it is.
        """
        (least, most), found = self.reach, []
        above = at + 1 + np.arange(len(self.above))
        below = at + 1 + len(self.above) + np.arange(len(self.below))
        if len(above):
            found.append(self._row(above, -self.above, -np.inf, self.high))
        if len(below):
            found.append(self._row(below, self.below, self.low, np.inf))
        if distinct and len(above):
            begins = self.high + (self.above if self.per_unit else 1.0)
            found.append(self._row(above, least - begins, least, np.inf))
        if distinct and len(below):
            begins = self.low - (self.below if self.per_unit else 1.0)
            found.append(self._row(below, most - begins, -np.inf, most))
        return found

    def _row(self, labels: IntArray, weights: FloatArray | float, low: float, high: float) -> Row:
        return np.append(self.label, labels), np.append(self.weight, weights), low, high


class Indicators:
    """The indicators of one shape of input."""

    def __init__(self, first: IntArray, indicators: Sequence[Indicator]) -> None:
        self.indicators = tuple(indicators)
        self.kinds = tuple(each.kind for each in indicators)
        self.cost = np.concatenate([each.cost for each in indicators])
        self.least = min(each.price for each in indicators)  # a wrong indicator costs this much too much, or more
        self.label_first = first[-1] + offsets(len(each.cost) for each in indicators)  # where the labels of each start
        self._first = first  # of the other variables
        self._term_first = offsets(len(each.label) for each in indicators)
        self._label = np.concatenate([each.label for each in indicators])
        self._weight = np.concatenate([each.weight for each in indicators])
        self._variable = np.arange(len(first) - 1).repeat(sizes_of(first))[self._label]
        self._low, self._high = np.array([(each.low, each.high) for each in indicators]).T
        self._per_unit = np.array([each.per_unit for each in indicators])
        self._n_above = np.array([len(each.above) for each in indicators])

    def __len__(self) -> int:
        return len(self.indicators)

    def sums(self, labels: IntArray) -> FloatArray:
        """Returns the sums of the rules, (labellings, rules), for labellings of the other variables."""
        chosen = self._first[self._variable] + labels[:, self._variable] == self._label
        so_far = np.zeros((len(labels), len(self._label) + 1))
        np.cumsum(chosen * self._weight, axis=1, out=so_far[:, 1:])  # of whole numbers: exact
        return so_far[:, self._term_first[1:]] - so_far[:, self._term_first[:-1]]

    def labels(self, labels: IntArray) -> IntArray:
        """Returns the labels of the indicators, (labellings, rules); -1 where a labelling lacks a label."""
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


class Lowered(NamedTuple):
    """The hard rows that rules become, and the indicators in them."""

    rows: Rows
    names: tuple[str, ...]  # of the rows
    indicators: Indicators | None  # None if no rule is soft and can be broken


def lower(first: IntArray, rows: Rows, names: tuple[str, ...], charges: Charges, distinct: bool) -> Lowered:
    """Lowers rules of which some are soft, over variables whose labels start at `first`.

    `distinct` adds rows under which each labelling has one labelling of the indicators: no optimum needs them, but
    ranking labellings does.
    """
    if not charges:
        return Lowered(rows, names, None)
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
        return Lowered(rows, names, None)
    indicators, all_rows, all_names = Indicators(first, found), list(_split(rows)), list(names)
    for each, at in zip(found, indicators.label_first.tolist(), strict=False):
        all_rows[each.rule], *more = each.rows(at, distinct)
        all_rows += more
        all_names += [each.name] * len(more)
    labels, weights, lows, highs = zip(*all_rows, strict=True)
    joined = Rows(
        *(offsets(map(len, labels)), ints(np.concatenate(labels)), np.concatenate(weights)),
        *(np.array(lows), np.array(highs)),
    )
    return Lowered(joined, tuple(all_names), indicators)


def _amounts(most: float, per_unit: bool, name: str) -> FloatArray:
    """Returns the amounts by which a rule can be missed to one side: all, or only the largest."""
    if not 0.0 < most < np.inf:
        return NONE
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


def with_prices(structure: Structure, flat: FloatArray) -> FloatArray:
    """Returns the flat costs of one problem with the prices of soft rules behind them."""
    indicators = structure.compiled.indicators
    return flat if indicators is None else np.append(flat, indicators.cost)


def add_prices(structures: Sequence[Structure], structure: IntArray, flat: FloatArray) -> FloatArray:
    """Returns the flat costs of problems with the prices of soft rules behind those of each problem."""
    known = [each.compiled.indicators for each in structures]
    if all(each is None for each in known):
        return flat
    prices = [NONE if each is None else each.cost for each in known]
    given, added = ints(each.n_labels for each in structures)[structure], ints(map(len, prices))[structure]
    at = offsets(given + added)
    found = np.empty(at[-1])
    found[ranges(at[:-1], given)] = flat
    found[ranges(at[1:] - added, added)] = np.concatenate([NONE, *(prices[s] for s in structure.tolist())])
    return found


def complete(batch: Batch, values: IntArray) -> IntArray:
    """Sets the indicators of a flat labelling as its other labels say, in place; returns it."""
    for s, structure in enumerate(batch.structures) if batch.soft else ():
        indicators, n = structure.compiled.indicators, structure.n_variables
        problems = np.flatnonzero(batch.structure == s)
        if indicators is not None and problems.size:
            places = batch.variable_at[problems][:, None] + np.arange(n + len(indicators))
            values[places[:, n:]] = indicators.labels(values[places[:, :n]])
    return values


def complete_answers(batch: Batch, values: IntArray, cost: FloatArray, bound: FloatArray) -> IntArray:
    """Sets the indicators of answers, in place, with their costs and bounds; returns the problems that changed.

    Kernels may leave indicators more expensive than they need to be, by a price at least: answers that are closer to
    their bounds have the right ones.
    """
    least = [each.least for s in batch.structures if (each := s.compiled.indicators) is not None]
    finite = np.isfinite(cost)
    if not least or not (cost[finite] - bound[finite] >= min(least)).any():
        return np.zeros(0, dtype=np.int64)
    total, valid = np.empty(len(batch)), np.empty(len(batch), dtype=bool)
    before = values.copy()
    score_batch(batch.arrays, complete(batch, values), total, valid)
    differs = np.repeat(np.arange(len(batch)), batch.n_variables)[before != values]
    changed = np.intersect1d(differs, finite.nonzero()[0])
    cost[changed], bound[changed] = total[changed], np.minimum(bound, total)[changed]
    return changed

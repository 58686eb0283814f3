"""Rules as counters: variables that say how much of what a rule counts has been chosen so far.

A rule is counted along the tree of an elimination: what a step's variables add, and what the steps below it counted,
is merged two by two, each time into a new variable whose label is the sum. A table that only forbids ties it to the
two. The last one decides whether the rule holds or, of a soft rule, which label its indicator has. Elimination then
needs to know nothing of rules. Counts start from 0; where all that is past some count is alike, they end there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np

from hasten.errors import TooWide
from hasten.kernels.layout import Graph
from hasten.model.compiled import Compiled
from hasten.model.soft import Indicator
from hasten.proof.elimination.joins import SILENT, FactorTable, pattern_of
from hasten.proof.elimination.plan import Elimination, Step
from hasten.support.arrays import FloatArray, IntArray

MOST_COUNTS = 4096  # of one rule
PRECISION = 10_000  # of weights as fractions
NEAR = 1e-12  # how far, relatively, a weight may be from the fraction that it stands for
BROKEN, KEPT = -1, 0
Limits = tuple[float, ...]
Outcome = Callable[[float], int]


class Source(NamedTuple):
    """A variable that counts: how much each of its labels stands for."""

    variable: int
    counts: IntArray


class Counted(NamedTuple):
    """A rule: how much each label counts, and what each count means."""

    counts: dict[int, IntArray]  # by variable, for those that matter
    outcome: IntArray  # by count, the last one for all that is more: KEPT, BROKEN, or the label of its indicator
    indicator: int  # the variable; -1 for a hard rule

    @property
    def n(self) -> int:
        """How many counts are told apart; a last one that is broken is none."""
        return len(self.outcome) - int(self.outcome[-1] == BROKEN)

    def put(self, elimination: Elimination, tree: Sequence[Sequence[int]], max_join: int) -> bool:
        """Adds counters to an elimination; `tree` has, for each step, its variables and minus the steps below, less 1.

        Returns whether the rule can hold.
        """
        found: dict[int, Source] = {}
        for n, parts in enumerate(tree if len(self.outcome) > 1 else ()):
            sources = [Source(v, self.counts[v]) for v in parts if v in self.counts]
            sources += [found[-1 - below] for below in parts if below < 0 and -1 - below in found]
            for source in sources:
                found[n] = source if n not in found else self._merge(elimination, found[n], source, max_join)
        last = found.get(len(tree) - 1)
        counts = np.zeros(1, dtype=np.int64) if last is None else np.minimum(last.counts, len(self.outcome) - 1)
        outcome, scope = self.outcome[counts], () if last is None else (last.variable,)
        if self.indicator >= 0:
            allowed = outcome[:, None] == np.arange(elimination.sizes[self.indicator])
            scope = (*scope, self.indicator)
        else:
            allowed = outcome == KEPT
        if scope and not allowed.all():
            allowed = allowed.reshape([elimination.sizes[v] for v in scope])
            elimination.put(FactorTable(scope, pattern_of(allowed), 0, SILENT))
        return bool(allowed.any())

    def _merge(self, elimination: Elimination, one: Source, other: Source, max_join: int) -> Source:
        """Adds a variable that counts what two others do."""
        both = one.counts[:, None] + other.counts
        if self.outcome[-1] != BROKEN:
            both = np.minimum(both, self.n - 1)
        n = min(int(both.max()) + 1, self.n)
        if both.size * n > max_join:
            raise TooWide(
                f"A rule counts too much to be summed exactly: up to {n:,} over {both.size:,} pairs of counts; "
                f"the limit for their product is {max_join:,}. Train with a perturbed Fenchel-Young loss, which "
                "needs the best labelling alone, or raise max_join."
            )
        new = elimination.add_variable(n)
        allowed = both[:, :, None] == np.arange(n)
        elimination.put(FactorTable((one.variable, other.variable, new), pattern_of(allowed), 0, SILENT))
        return Source(new, np.arange(n))


def rules_of(compiled: Compiled) -> list[Counted]:
    """Returns the rules of a structure, soft ones included."""
    graph, indicators = compiled.graph, compiled.indicators
    n_own = int(graph.first[-1]) if indicators is None else int(indicators.label_first[0])
    found = []
    for r in range(len(graph.row_low)):
        cells = slice(int(graph.row_first[r]), int(graph.row_first[r + 1]))
        label, weight = graph.row_label[cells], graph.row_weight[cells]
        if not (label >= n_own).any():  # else it is a row of a soft rule
            limits = float(graph.row_least[r]), float(graph.row_most[r])
            holds = partial(lambda least, most, s: KEPT if least <= s <= most else BROKEN, *limits)
            found.append(_counted(graph, (label, weight, compiled.row_names[r]), limits, holds))
    if indicators is not None:
        n = len(graph.order) - len(indicators)
        for x, each in enumerate(indicators.indicators):
            rule = each.label, each.weight, each.name
            counted = _counted(graph, rule, (each.low, each.high), partial(_label, each))
            found.append(counted._replace(indicator=n + x))
    return found


def _label(indicator: Indicator, s: float) -> int:
    """Returns which label the indicator of a soft rule has, given what it counts."""
    above, below = max(s - indicator.high, 0.0), max(indicator.low - s, 0.0)
    if above > 0.0:
        return round(above) if indicator.per_unit else 1
    return len(indicator.above) + (round(below) if indicator.per_unit else 1) if below > 0.0 else KEPT


def _counted(graph: Graph, rule: tuple[IntArray, FloatArray, str], limits: Limits, outcome: Outcome) -> Counted:
    """Returns a rule, its labels, weights and name, with counts from 0, up or down, whichever tells fewer apart."""
    label, weight, name = rule
    variables = np.unique(np.searchsorted(graph.first, label, side="right") - 1).tolist()
    for fraction in (_fraction, Fraction):
        weights = np.zeros(int(graph.first[-1]), dtype=object) + Fraction(0)
        for i, w in zip(label.tolist(), weight.tolist(), strict=True):
            weights[i] += fraction(w)
        unit = Fraction(math.gcd(*(w.numerator for w in weights)) or 1, math.lcm(*(w.denominator for w in weights)))
        whole = {v: [int(w / unit) for w in weights[graph.first[v] : graph.first[v + 1]]] for v in variables}
        shift, most = sum(map(min, whole.values())), sum(max(each) - min(each) for each in whole.values())
        if most > MOST_COUNTS:
            raise TooWide(
                f"Rule {name!r} tells {most + 1:,} sums apart, too many to sum exactly; the limit is {MOST_COUNTS:,}. "
                "Give it weights that are small whole numbers, or train with a perturbed Fenchel-Young loss, which "
                "needs the best labelling alone."
            )
        sums = [float((shift + count) * unit) for count in range(most + 1)]
        blur = NEAR * sum(max(map(abs, each)) for each in whole.values()) * float(unit)
        exact = all(fraction(w) == w for w in weight.tolist())
        if exact or not any(abs(s - limit) <= blur for s in sums for limit in limits):
            break  # else a fraction that stands for a weight could be on the other side of a limit
    means = [outcome(s) for s in sums]
    ups = {v: np.array(each) - min(each) for v, each in whole.items()}
    downs = {v: max(each) - np.array(each) for v, each in whole.items()}
    ways = [Counted(ups, _shortened(means), -1), Counted(downs, _shortened(means[::-1]), -1)]
    best = min(ways, key=lambda each: each.n)
    return best._replace(counts={v: counts for v, counts in best.counts.items() if counts.any()})


def _fraction(weight: float) -> Fraction:
    """Returns a weight as the simple fraction that it stands for, or as what it is."""
    near = Fraction(weight).limit_denominator(PRECISION)
    return near if abs(float(near) - weight) <= NEAR * abs(weight) else Fraction(weight)


def _shortened(outcome: Sequence[int]) -> IntArray:
    """Returns what counts mean without those at the end that mean the same as the one before."""
    n = len(outcome)
    while n > 1 and outcome[n - 2] == outcome[n - 1]:
        n -= 1
    return np.array(outcome[:n])


def tree_of(steps: Sequence[Step]) -> list[list[int]]:
    """Returns for each step its variables and, as -1 minus their numbers, the steps whose tables it reads.

    One more step has those that no step reads.
    """
    gone = {v: n for n, step in enumerate(steps) for v in step.group}
    tree: list[list[int]] = [list(step.group) for step in steps] + [[]]
    for n, step in enumerate(steps):
        tree[min((gone[u] for u in step.around), default=len(steps))].append(-1 - n)
    return tree

"""Finding out what a black box forbids: tuples that had every opportunity to occur, and never did.

That a tuple never occurs says little: perhaps no costs ever wanted it. So *opportunities* are counted, of two kinds:

- *Refusals*: places where another label of one variable would make the answer cheaper and break nothing that is
  known, and where nothing but this tuple can be to blame; where several that no answer shows can, each has its share.
  A tuple that is allowed may be refused as well, for reasons that no declared
  factor tells. How often, the tuples that do occur say: let q be how often they were given, of all the times that they
  were given, or refused without another to blame. If a tuple were as they are, it would be passed over n times with a
  chance of (1 - q)^n.
- *Chance*: how often its labels would have met, in the roles that they have, if the labels of a factor had nothing to
  do with each other. If that is m times, a tuple is missed by chance alone with a chance of exp(-m).

So a tuple that never occurs is forbidden with a confidence of 1 - (1 - q)^n exp(-m).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hasten.jit import driver, kernel
from hasten.kernels.layout import BatchArrays, Graph, costs_of, graph_of, labels_of, tables_of
from hasten.kernels.score import entry, rows_hold
from hasten.model.batch import Batch
from hasten.model.schema import Schema
from hasten.support.arrays import BoolArray, FloatArray, IntArray

TINY = 1e-9  # of the largest cost: a label that saves less may have been refused by rounding
KNOWN = 0.98  # confidence, by refusals alone, from which on a tuple is to blame for what it explains
ROUNDS = 3  # of sharing out the blame
UNSEEN, SHOWN, FORBIDDEN = 0, 1, 2  # what is known of a tuple
LARGEST_RATE = 0.99  # so that one refusal alone never makes sure


@dataclass(frozen=True, eq=False)
class Evidence:
    """Counts of what some answers say of each label tuple."""

    shown: IntArray  # (n_weights,) how often answers have it
    refused: FloatArray  # (n_weights,) how often the costs wanted it, and nothing else was to blame
    chance: FloatArray  # (n_weights,) how often its labels would have met by chance

    @classmethod
    def of(cls, batch: Batch, labels: IntArray, problems: IntArray) -> Evidence:
        """Gathers it from some problems of a batch with its flat answers."""
        schema, labels = batch.structures[0].schema, labels.copy()
        shown = np.zeros(schema.n_weights, dtype=np.int64)
        finite = np.abs(batch.cost[np.isfinite(batch.cost)])
        least = TINY * float(finite.max()) if finite.size else 0.0
        count_shown(batch.arrays, labels, problems, shown)
        known, chance = np.where(shown > 0, SHOWN, UNSEEN), chances(schema, shown)
        for _ in range(ROUNDS):
            found = cls(shown, np.zeros(schema.n_weights), chance)
            count_refused(batch.arrays, labels, problems, least, known, found.refused)
            sure = (known == UNSEEN) & (found.sure_by_refusals >= KNOWN)
            if not sure.any():
                break
            known[sure] = FORBIDDEN
        return found

    @property
    def rate(self) -> float:
        """How often a tuple that occurs was given where it was wanted: q."""
        given = self.shown > 0
        shown, refused = float(self.shown[given].sum()), float(self.refused[given].sum())
        return min(shown / (shown + refused), LARGEST_RATE) if shown else 0.0

    @property
    def sure_by_refusals(self) -> FloatArray:
        """How sure refusals alone make it that a tuple is forbidden, if it never occurs."""
        sure: FloatArray = -np.expm1(self.refused * np.log1p(-self.rate))
        return sure

    @property
    def confidence(self) -> FloatArray:
        """How sure it is that a tuple is forbidden; 0 for those that occur."""
        return np.where(self.shown > 0, 0.0, 1.0 - (1.0 - self.sure_by_refusals) * np.exp(-self.chance))

    def forbidden(self, confidence: float) -> BoolArray:
        """Returns the tuples that are forbidden with this confidence; with 0, all that never occur."""
        return np.asarray((self.shown == 0) & (self.confidence >= confidence))


def chances(schema: Schema, shown: IntArray) -> FloatArray:
    """Returns how often the labels of each tuple would have met if those of a factor were drawn one by one."""
    found = np.zeros(len(shown))
    for kind in schema.factors.values():
        if not kind.learned:
            continue
        mine = slice(kind.weight_at, kind.weight_at + kind.size)
        counts = shown[mine].reshape(kind.shape)
        total, expected = counts.sum(), np.full(kind.shape, float(counts.sum()))
        for role in range(counts.ndim):
            others = tuple(axis for axis in range(counts.ndim) if axis != role)
            expected = expected * (counts.sum(axis=others, keepdims=True) / max(total, 1))
        found[mine] = expected.ravel()
    return found


@driver
def count_shown(batch: BatchArrays, answers: IntArray, problems: IntArray, shown: IntArray) -> None:
    """Counts for each tuple how often some answers show it."""
    for p in problems:
        graph, mine = graph_of(batch, p), labels_of(batch, answers, p)
        for f in range(graph.weight_at.size):
            if graph.weight_at[f] >= 0:
                shown[graph.weight_at[f] + entry(graph, f, mine)] += 1


@driver
def count_refused(
    batch: BatchArrays, answers: IntArray, problems: IntArray, least: float, known: IntArray, refused: FloatArray
) -> None:
    """Adds up for each tuple how often some answers refuse it, given what is known of each.

    Only labels that would save more than `least` count. Answers are changed on the way, and put back.
    """
    for p in problems:
        graph, cost, table = graph_of(batch, p), costs_of(batch, p), tables_of(batch, p)
        mine = labels_of(batch, answers, p)
        for v in range(graph.order.size):
            given = mine[v]
            for label in range(graph.first[v + 1] - graph.first[v]):
                change = cost[graph.first[v] + label] - cost[graph.first[v] + given]
                if not change < np.inf or label == given:
                    continue
                for x in range(graph.touch_first[v], graph.touch_first[v + 1]):
                    slot = graph.touch[x]
                    f = graph.factor_of[slot]
                    if graph.table_at[f] >= 0:
                        here = graph.table_at[f] + entry(graph, f, mine)
                        change += table[here + graph.stride[slot] * (label - given)] - table[here]
                if not change < -least:
                    continue
                mine[v] = label
                if rows_hold(graph, mine):
                    blame(graph, v, mine, known, refused)
                mine[v] = given


@kernel
def blame(graph: Graph, v: int, labels: IntArray, known: IntArray, refused: FloatArray) -> None:
    """Shares the blame for a label that was refused among the tuples that it would make."""
    kind, count = SHOWN, 0
    for x in range(graph.touch_first[v], graph.touch_first[v + 1]):
        f = graph.factor_of[graph.touch[x]]
        if graph.weight_at[f] >= 0:
            state = known[graph.weight_at[f] + entry(graph, f, labels)]
            if state == FORBIDDEN and kind != FORBIDDEN:
                kind, count = FORBIDDEN, 0
            if state == UNSEEN and kind == SHOWN:
                kind, count = UNSEEN, 0
            if state == kind:
                count += 1
    for x in range(graph.touch_first[v], graph.touch_first[v + 1]):
        f = graph.factor_of[graph.touch[x]]
        if graph.weight_at[f] >= 0:
            at = graph.weight_at[f] + entry(graph, f, labels)
            if known[at] == kind:
                refused[at] += 1.0 / count

"""Trees whose rules count, proved by elimination with counters (`hasten.kernels.tally`)."""

from __future__ import annotations

import numpy as np

from hasten.jit import driver, keep, split
from hasten.kernels.layout import BatchArrays, instance_of, labels_of
from hasten.kernels.proof.dual import copy_labels
from hasten.kernels.proof.look import rounding
from hasten.kernels.proof.outcome import (
    BEST,
    BOUND,
    ELIMINATE,
    INFEASIBLE,
    LABELS_BY,
    OPEN,
    OUTCOME,
    PROVED,
    SIZE,
    STEP,
    Proofs,
)
from hasten.kernels.rows import rows_hold
from hasten.kernels.score import total_cost
from hasten.kernels.tally import Counted, count, tally_at
from hasten.kernels.tolerance import is_proved
from hasten.support.arrays import IntArray


@driver
def count_some(batch: BatchArrays, tallies: IntArray, problems: IntArray, proofs: Proofs) -> None:
    """Certifies some problems that were looked at or eliminated; `tallies` has the address of each one's tally."""
    size, n_variables = 0, 0
    for x in range(problems.size):
        if x == 0 or tallies[x] != tallies[x - 1]:
            tally = tally_at(tallies[x])
            size, n_variables = max(size, tally.size[0]), max(n_variables, tally.order.size)
    floats, ints = np.zeros(size), np.zeros(3 * n_variables + 2, dtype=np.int64)
    tables, _ = split(floats, (size, 0))
    counted_labels, states, restored = split(ints, (n_variables + 1, n_variables + 1, n_variables))
    scratch = Counted(tables, counted_labels, states)
    values, facts = proofs.values, proofs.facts
    for x in range(problems.size):
        p, tally = problems[x], tally_at(tallies[x])
        if values[SIZE, p] == np.inf:  # sums may overflow
            continue
        graph, cost, table = instance_of(batch, p)
        bound = count(tally, graph, cost, table, scratch)
        facts[STEP, p] = ELIMINATE
        if bound == np.inf:
            facts[OUTCOME, p], facts[LABELS_BY, p] = INFEASIBLE, ELIMINATE
            values[BEST, p], values[BOUND, p] = np.inf, np.inf
            continue
        for v in range(graph.order.size):
            restored[v] = counted_labels[v]
        found = total_cost(graph, cost, table, restored)
        if found < values[BEST, p] and rows_hold(graph, restored):
            copy_labels(restored, labels_of(batch, proofs.labels, p))
            values[BEST, p], facts[LABELS_BY, p] = found, ELIMINATE
        bound = min(bound - rounding(graph, values[SIZE, p]), values[BEST, p])
        values[BOUND, p] = max(bound, values[BOUND, p])
        facts[OUTCOME, p] = PROVED if is_proved(values[BEST, p], values[BOUND, p], values[SIZE, p]) else OPEN
    keep((floats, ints))

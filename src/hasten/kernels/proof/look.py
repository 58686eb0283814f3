"""Looking: where the cheapest labels break no constraint, they are the answer; where they break few, `mend` is tried.

A well-trained model leaves most problems in this state. What is not proved here goes to `hasten.kernels.proof.certify`.
"""

from __future__ import annotations

import numpy as np

from hasten.jit import driver, inlined_kernel, keep, kernel, split
from hasten.kernels.layout import GRAPH, BatchArrays, Graph, costs_of, graph_at, graph_of, labels_of, tables_of
from hasten.kernels.proof.dual import n_messages
from hasten.kernels.proof.mend import Scratch, mend, n_tuples
from hasten.kernels.proof.outcome import (
    BEST,
    BOUND,
    GIVEN,
    LABELS_BY,
    LOOK,
    MEND,
    N_NODES,
    N_SWEEPS,
    OPEN,
    OUTCOME,
    PROVED,
    SIZE,
    STEP,
    Proofs,
)
from hasten.kernels.rows import rows_hold
from hasten.kernels.score import total_cost
from hasten.kernels.tolerance import EPS, is_proved
from hasten.support.arrays import FloatArray, IntArray

SHARE = 4  # mending pays where at most one factor is broken for each so many variables
MOST_BROKEN = 32  # and where so many are broken in all
OVERFLOW = 1e297  # costs of this size: their sums may reach inf, which means forbidden


@kernel
def cheapest(graph: Graph, cost: FloatArray, table: FloatArray, labels: IntArray) -> tuple[float, float]:
    """Labels each variable at its cheapest; returns the least that any labelling can cost, and the size of its terms.

    The least is that of each variable and of each table by itself. The size is the sum of each variable's largest
    finite cost and each table's largest finite entry, in magnitude.
    """
    first, total, size = graph.first, 0.0, 0.0
    for v in range(first.size - 1):
        least, chosen, largest = np.inf, first[v], 0.0
        for at in range(first[v], first[v + 1]):
            value = cost[at]
            if value < least:
                least, chosen = value, at
            if value < np.inf:
                largest = max(largest, abs(value))
        labels[v] = chosen - first[v]
        total += least
        size += largest
    in_tables = 0.0
    for x in range(graph.soft_at.size):
        least, largest = np.inf, 0.0
        for at in range(graph.soft_at[x], graph.soft_at[x] + graph.soft_size[x]):
            if table[at] < np.inf:
                least, largest = min(least, table[at]), max(largest, abs(table[at]))
        total += least * graph.soft_count[x]
        in_tables += largest * graph.soft_count[x]
    return total, size + in_tables


@kernel
def rounding(graph: Graph, size: float) -> float:
    """Returns how far, at most, any sum of one cost per variable and one entry per table can be off.

    A sum of n numbers, however it is ordered, is off by less than n * eps times the sum of their magnitudes.
    """
    n_terms = 4 + graph.order.size
    for x in range(graph.soft_count.size):
        n_terms += graph.soft_count[x]
    return n_terms * EPS * size


@inlined_kernel
def look(
    graph: Graph, cost: FloatArray, table: FloatArray, scratch: Scratch, labels: IntArray
) -> tuple[int, float, float, float]:
    """Labels each variable at its cheapest, and mends the result if that is needed.

    Returns the last step taken, the cost (inf where the labels break a rule, or too many constraints), a bound, and
    the size of the terms (inf where their sums may overflow).
    """
    least, size = cheapest(graph, cost, table, labels)
    if not size < OVERFLOW:
        return LOOK, np.inf, -np.inf, np.inf
    slip = rounding(graph, size)  # subtracted from the bound: the bound and the cost compared with it are both sums
    step, found, bound = LOOK, total_cost(graph, cost, table, labels), least - slip
    if graph.soft_at.size == 0 and not is_proved(found, bound, size):
        step = MEND
        max_broken = min(graph.order.size // SHARE, MOST_BROKEN)
        found, bound = mend(graph, cost, table, size, max_broken, scratch, labels)
        bound -= slip
    if found < np.inf and not rows_hold(graph, labels):
        found = np.inf
    return step, found, bound, size


@driver
def look_at_some(batch: BatchArrays, problems: IntArray, proofs: Proofs) -> None:
    """Looks at some problems; what is proved replaces the labels given, if it is better than those."""
    n_labels, n_sent, n_listed, n_factors, n_variables, s = 0, 0, 0, 0, 0, -1
    for p in problems:
        if batch.place[p, GRAPH] != s:
            s = batch.place[p, GRAPH]
            graph = graph_at(s)
            n_labels = max(n_labels, graph.first[graph.order.size])
            n_sent = max(n_sent, n_messages(graph))
            n_listed = max(n_listed, n_tuples(graph))
            n_factors = max(n_factors, graph.table_at.size)
            n_variables = max(n_variables, graph.order.size)
    floats = np.empty(2 * n_labels + n_sent + n_listed)
    ints = np.zeros(4 * n_factors + n_variables, dtype=np.int64)
    belief, message, value, marginal = split(floats, (n_labels, n_sent, n_listed, n_labels))
    touched, has, waiting, waits, trial = split(ints, (n_factors, n_factors, n_factors, n_factors, n_variables))
    scratch = Scratch(belief, message, value, marginal, touched, has, waiting, waits)
    values, facts = proofs.values, proofs.facts
    for p in problems:
        graph, cost, table = graph_of(batch, p), costs_of(batch, p), tables_of(batch, p)
        step, found, bound, size = look(graph, cost, table, scratch, trial)
        outcome, labels_by = OPEN, GIVEN
        if is_proved(found, bound, size):
            outcome = PROVED
            if found < values[BEST, p]:
                labels_by, values[BEST, p] = step, found
                mine = labels_of(batch, proofs.labels, p)
                for v in range(graph.order.size):
                    mine[v] = trial[v]
            bound = min(bound, values[BEST, p])
        values[BOUND, p], values[SIZE, p] = bound, size
        facts[OUTCOME, p], facts[STEP, p], facts[LABELS_BY, p] = outcome, step, labels_by
        facts[N_SWEEPS, p], facts[N_NODES, p] = 0, 0
    keep((floats, ints))

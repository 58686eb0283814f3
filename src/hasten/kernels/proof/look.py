"""Proof at sight: where the cheapest labels break no constraint there is nothing to search, and a few can be mended.

A model that was trained well leaves most problems so. What is not proved here goes to `hasten.kernels.proof.certify`.
"""

from __future__ import annotations

import numpy as np

from hasten.jit import driver, kernel
from hasten.kernels.layout import Graph, Pool, by_structure, view
from hasten.kernels.proof.dual import n_messages
from hasten.kernels.proof.mend import Workbench, make_workbench, mend, n_tuples
from hasten.kernels.proof.outcome import GIVEN, MENDING, OPEN, PROVED, SIGHT
from hasten.kernels.rows import rows_hold
from hasten.kernels.score import total_cost
from hasten.kernels.tolerance import EPS, is_proved
from hasten.support.arrays import FloatArray, IntArray

SHARE = 4  # mending pays where at most one factor is broken for so many variables
OVERFLOW = 1e297  # costs of this size: their sums may reach inf, which is to mean forbidden


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
    for x in range(graph.soft_at.size):
        least, largest = np.inf, 0.0
        for at in range(graph.soft_at[x], graph.soft_at[x] + graph.soft_size[x]):
            if table[at] < np.inf:
                least, largest = min(least, table[at]), max(largest, abs(table[at]))
        total += least * graph.soft_count[x]
        size += largest * graph.soft_count[x]
    return total, size


@kernel
def rounding(graph: Graph, size: float) -> float:
    """Returns how far, at most, any sum of one cost per variable and one entry per table can be off.

    A sum of n numbers, however it is ordered, is off by less than n * eps times the sum of their magnitudes.
    """
    n_terms = 4 + graph.order.size
    for x in range(graph.soft_count.size):
        n_terms += graph.soft_count[x]
    return n_terms * EPS * size


@kernel
def look(
    graph: Graph, cost: FloatArray, table: FloatArray, bench: Workbench, labels: IntArray
) -> tuple[int, float, float, float]:
    """Labels each variable at its cheapest, and mends that if need be.

    Returns which of the two it was, the cost (inf where the labels break a rule, or too many constraints), a bound, and
    the size of the terms (inf where their sums may overflow).
    """
    least, size = cheapest(graph, cost, table, labels)
    if not size < OVERFLOW:
        return SIGHT, np.inf, -np.inf, np.inf
    slip = rounding(graph, size)  # off the bound it goes, for the costs that are compared with it are sums as well
    step, found, bound = SIGHT, total_cost(graph, cost, table, labels), least - slip
    if graph.soft_at.size == 0 and not is_proved(found, bound, size):
        step = MENDING
        found, bound = mend(graph, cost, table, size, graph.order.size // SHARE, bench, labels)
        bound -= slip
    if found < np.inf and not rows_hold(graph, labels):
        found = np.inf
    return step, found, bound, size


@driver
def look_range(
    pool: Pool,
    structure: IntArray,
    cost: FloatArray,
    cost_at: IntArray,
    table: FloatArray,
    table_at: IntArray,
    variable_at: IntArray,
    begin_at: int,
    end_at: int,
    labels: IntArray,
    best_cost: FloatArray,
    bound: FloatArray,
    outcome: IntArray,
    step: IntArray,
    labels_by: IntArray,
    size: FloatArray,
) -> None:
    """Looks at problems `begin_at:end_at`; what is proved replaces the labels given, if it is better than those."""
    if begin_at == end_at:
        return
    bench = largest_workbench(pool, structure, begin_at, end_at)
    trial = np.empty(np.max(np.diff(variable_at[begin_at : end_at + 1])), dtype=np.int64)
    order = by_structure(pool, structure, begin_at, end_at)
    s = structure[order[0]]
    graph = view(pool, s)
    for p in order:
        if structure[p] != s:
            s = structure[p]
            graph = view(pool, s)
        mine = cost[cost_at[p] : cost_at[p + 1]]
        step[p], found, bound[p], size[p] = look(graph, mine, table[table_at[p] :], bench, trial)
        outcome[p], labels_by[p] = OPEN, GIVEN
        if is_proved(found, bound[p], size[p]):
            outcome[p] = PROVED
            if found < best_cost[p]:
                labels_by[p], best_cost[p] = step[p], found
                for v in range(graph.order.size):
                    labels[variable_at[p] + v] = trial[v]
            bound[p] = min(bound[p], best_cost[p])


@driver
def largest_workbench(pool: Pool, structure: IntArray, begin_at: int, end_at: int) -> Workbench:
    """Returns a bench on which any of problems `begin_at:end_at` can be mended."""
    n_labels, n_sent, n_listed, n_factors = 0, 0, 0, 0
    seen = np.zeros(pool.at.shape[0], dtype=np.bool_)
    for p in range(begin_at, end_at):
        if not seen[structure[p]]:
            seen[structure[p]] = True
            graph = view(pool, structure[p])
            n_labels = max(n_labels, graph.first[-1])
            n_sent = max(n_sent, n_messages(graph))
            n_listed = max(n_listed, n_tuples(graph))
            n_factors = max(n_factors, graph.table_at.size)
    return make_workbench(n_labels, n_sent, n_listed, n_factors)

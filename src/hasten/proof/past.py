"""Past answers to problems of the same structure: proofs for new problems, or labellings to start from.

Let every other labelling of a past problem p cost more than `y` by at least `margin`; where that is negative, `y` is
within -margin of the optimum. With c(z) the cost of z in the new problem q, which has the same tables,

    c_q(z) - c_q(y)  >=  margin - excess,  for z != y,

where the excess adds up, over variables, by how much some label has come closer to y's: the largest of
(c_p(i) - c_p(y)) - (c_q(i) - c_q(y)), if that is positive. Without excess this is Theorem 1 of Srikumar, Kundu and Roth
(2012); with a margin it is Kundu, Srikumar and Roth (2013).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import driver, keep, kernel, part
from hasten.kernels.layout import BatchArrays, Graph, costs_of, graph_of, labels_of, tables_of
from hasten.kernels.score import rows_hold, total_cost
from hasten.kernels.tolerance import EPS, TOLERANCE, is_proved
from hasten.proof.outcome import OVERFLOW, cheapest, rounding
from hasten.support.arrays import FloatArray, IntArray


class Answered(NamedTuple):
    """Past problems of one structure with the same tables, and their answers."""

    cost: FloatArray  # (m, labels)
    labels: IntArray  # (m, variables)
    margin: FloatArray  # (m,) how much more every other labelling costs, at least
    size: FloatArray  # (m,) the sum of each variable's largest finite cost, in magnitude


@kernel
def excess_of(graph: Graph, cost: FloatArray, past: FloatArray, labels: IntArray, e: int, most: float) -> float:
    """Returns by how much labels have come closer to those of past answer `e`, in all; inf once it is above `most`."""
    total = 0.0
    for v in range(graph.order.size):
        first = graph.first[v]
        mine = first + labels[e, v]
        if cost[mine] == np.inf:
            return np.inf
        worst = 0.0
        for at in range(first, graph.first[v + 1]):
            if at != mine and cost[at] < np.inf:  # what is forbidden now cannot win
                worst = max(worst, (past[e, at] - past[e, mine]) - (cost[at] - cost[mine]))
        # A label that was forbidden then has come infinitely closer: the sum is inf.
        total += worst
        if total > most:
            return np.inf
    return total


@driver
def recall_some(
    batch: BatchArrays, answered: Answered, problems: IntArray, which: IntArray, labels: IntArray, values: FloatArray
) -> None:
    """Writes which past answer is proved to be each problem's, -1 for none, with its labels, cost and bound."""
    most = 1
    for p in problems:
        most = max(most, graph_of(batch, p).order.size)
    space = np.empty(most, dtype=np.int64)
    for p in problems:
        graph, cost, table = graph_of(batch, p), costs_of(batch, p), tables_of(batch, p)
        n = graph.order.size
        _, size = cheapest(graph, cost, table, part(space, 0, n))
        which[p] = -1
        if not size < OVERFLOW:
            continue
        for e in range(answered.margin.size):
            slip = rounding(graph, size) + 8.0 * (n + 4) * EPS * (size + answered.size[e])
            limit = answered.margin[e] - slip + TOLERANCE * size
            excess = excess_of(graph, cost, answered.cost, answered.labels, e, limit)
            if not excess <= limit:
                continue
            for v in range(n):
                space[v] = answered.labels[e, v]
            found = total_cost(graph, cost, table, part(space, 0, n))
            bound = found - rounding(graph, size) + min(0.0, answered.margin[e] - excess - slip)
            if is_proved(found, bound, size):
                which[p], values[0, p], values[1, p] = e, found, bound
                mine = labels_of(batch, labels, p)
                for v in range(n):
                    mine[v] = space[v]
                break
    keep(space)


@driver
def best_of_some(
    batch: BatchArrays, pool: IntArray, problems: IntArray, which: IntArray, labels: IntArray, best: FloatArray
) -> None:
    """Writes which labelling of a pool is each problem's cheapest valid one, -1 for none, with its labels and cost."""
    space = np.empty(max(1, pool.shape[1]), dtype=np.int64)
    for p in problems:
        graph, cost, table = graph_of(batch, p), costs_of(batch, p), tables_of(batch, p)
        n, mine = graph.order.size, labels_of(batch, labels, p)
        which[p], best[p] = -1, np.inf
        for e in range(pool.shape[0]):
            for v in range(n):
                space[v] = pool[e, v]
            tried = part(space, 0, n)
            found = total_cost(graph, cost, table, tried)
            if found < best[p] and rows_hold(graph, tried):
                which[p], best[p] = e, found
        for v in range(n):
            mine[v] = pool[which[p], v] if which[p] >= 0 else -1
    keep(space)

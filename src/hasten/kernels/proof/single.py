"""Sweeping and branching on a single problem, given in few arrays: Numba takes long to tell what is in named tuples."""

from __future__ import annotations

import numpy as np

from hasten.jit import driver, keep
from hasten.kernels.layout import COST, GRAPH, VARIABLE, BatchArrays, graph_at
from hasten.kernels.proof.certify import Effort, Messages, certify_each
from hasten.kernels.proof.outcome import BEST, BOUND, LABELS_BY, OPEN, OUTCOME, PROVED, SIZE, Proofs
from hasten.kernels.proof.tighten import search_nothing
from hasten.kernels.tolerance import is_proved
from hasten.support.arrays import FloatArray, IntArray


@driver
def certify_one(
    plan: IntArray, cost: FloatArray, table: FloatArray, bound: float, size: float, labels: IntArray
) -> tuple[int, float, float, int]:
    """Certifies one problem as `certify_some` does, given a bound on it and the size of its terms.

    `plan` has the addresses of its graph, of the plan that reduces it, and of the graph that this leaves; then the
    effort. Returns the outcome, the cost, the better bound, and the step that found the labels.
    """
    graph, only, watch = graph_at(plan[0]), np.zeros(1, dtype=np.int64), np.array([0, -1, 0])
    place, reduced = np.zeros((2, 4), dtype=np.int64), np.empty((1, 2), dtype=np.int64)
    place[0, GRAPH], place[1, COST], place[1, VARIABLE] = plan[0], cost.size, graph.order.size
    reduced[0, 0], reduced[0, 1] = plan[1], plan[2]
    effort = Effort(plan[3], plan[4], plan[5], plan[6], plan[7], plan[8], plan[9], plan[10])
    nothing = np.zeros(0)
    messages = Messages(nothing, nothing, np.zeros(0, dtype=np.int64))
    values, facts = np.empty((3, 1)), np.empty((5, 1), dtype=np.int64)
    values[BEST, 0], values[BOUND, 0], values[SIZE, 0] = np.inf, bound, size
    batch, proofs = BatchArrays(place, cost, table), Proofs(labels, values, facts)
    certify_each(batch, reduced, messages, effort, only, proofs, watch, False, search_nothing)
    keep((place, reduced, only, watch))
    outcome, best, raised = facts[OUTCOME, 0], values[BEST, 0], values[BOUND, 0]
    if raised < bound:
        raised = min(bound, best)
        if outcome == OPEN and is_proved(best, raised, size):
            outcome = PROVED
    return outcome, best, raised, facts[LABELS_BY, 0]

"""Sweeping and branching on a single problem, given in few arrays: Numba takes long to tell what is in named tuples."""

from __future__ import annotations

import numpy as np

from hasten.jit import driver, keep
from hasten.kernels.layout import COST, GRAPH, VARIABLE, BatchArrays, graph_at
from hasten.kernels.proof.certify import Effort, Messages, certify_each
from hasten.kernels.proof.outcome import Proofs
from hasten.kernels.proof.tighten import search_nothing
from hasten.support.arrays import FloatArray, IntArray


@driver
def certify_one(
    plan: IntArray, cost: FloatArray, table: FloatArray, labels: IntArray, values: FloatArray, facts: IntArray
) -> None:
    """Certifies one problem as `certify_some` does; the last three are its proofs.

    `plan` has the addresses of its graph, of the plan that reduces it, and of the graph that this leaves; then the
    effort.
    """
    graph, only, watch = graph_at(plan[0]), np.zeros(1, dtype=np.int64), np.array([0, -1, 0])
    place, reduced = np.zeros((2, 4), dtype=np.int64), np.empty((1, 2), dtype=np.int64)
    place[0, GRAPH], place[1, COST], place[1, VARIABLE] = plan[0], cost.size, graph.order.size
    reduced[0, 0], reduced[0, 1] = plan[1], plan[2]
    effort = Effort(plan[3], plan[4], plan[5], plan[6], plan[7], plan[8], plan[9], plan[10])
    nothing = np.zeros(0)
    messages = Messages(nothing, nothing, np.zeros(0, dtype=np.int64))
    batch, proofs = BatchArrays(place, cost, table), Proofs(labels, values, facts)
    certify_each(batch, reduced, messages, effort, only, proofs, watch, False, search_nothing)
    keep((place, reduced, only, watch))

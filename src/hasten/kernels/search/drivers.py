"""Many searches: over a range of problems whose costs are there, or in waves where they are lazy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import driver, grid, keep, part
from hasten.kernels.layout import VARIABLE, BatchArrays, instance_of, labels_of
from hasten.kernels.search.advance import DEAD_END, DONE, advance, begin
from hasten.kernels.search.nodes import KNOWN, UNKNOWN, Beam, Nodes, Options, beam_in, largest, n_floats, n_ints
from hasten.kernels.search.walk import walk
from hasten.support.arrays import FloatArray, IntArray


@driver
def search_some(
    batch: BatchArrays,
    weights: FloatArray,
    options: Options,
    problems: IntArray,
    labels: IntArray,
    outcome: IntArray,
    n_costs: IntArray,
) -> None:
    """Searches some problems, whose costs are all there."""
    n = largest(batch, problems, options.width)
    floats, ints = np.zeros(n_floats(n)), np.zeros(n_ints(n), dtype=np.int64)
    beam = beam_in(floats, ints, n)
    nodes, known = beam.nodes, beam.known
    for p in problems:
        instance = instance_of(batch, p)
        graph = instance.graph
        if options.width == 1 and not options.ahead:
            outcome[p] = DONE if walk(instance, weights, options, beam) else DEAD_END
        else:
            for v in range(graph.order.size):
                known[v] = KNOWN if options.theta == np.inf else UNKNOWN
            begin(graph, instance.cost, options, known, nodes)
            outcome[p], _, _ = advance(instance, weights, options, False, beam, 1, 0)
        mine = labels_of(batch, labels, p)
        n_costs[p] = 0
        for v in range(graph.order.size):
            mine[v] = nodes.labels[0, v] if outcome[p] == DONE else -1
            n_costs[p] += known[v] == KNOWN
    keep((floats, ints))


class Paused(NamedTuple):
    """The beams of a whole batch between two waves of requests, problem after problem."""

    labels: IntArray  # (width * variables,)
    g: FloatArray  # (width * n,)
    h: FloatArray  # (width * n,)
    rest: FloatArray  # (width * n,)
    ahead: FloatArray  # (width * variables,)
    row_low: FloatArray  # (width * rows,)
    row_high: FloatArray  # (width * rows,)
    row_at: IntArray  # (n + 1,)
    known: IntArray  # (variables,)
    step: IntArray  # (n,) -1 before the start
    n_nodes: IntArray  # (n,)


@driver
def search_wave(
    batch: BatchArrays,
    weights: FloatArray,
    options: Options,
    active: IntArray,
    paused: Paused,
    outcome: IntArray,
) -> None:
    """Continues the active problems of a lazy batch until each is done or wants costs."""
    width = options.width
    n = largest(batch, active, width)
    floats, ints = np.zeros(n_floats(n)), np.zeros(n_ints(n), dtype=np.int64)
    scratch = beam_in(floats, ints, n).scratch
    for p in active:
        instance = instance_of(batch, p)
        v0, v1 = batch.place[p, VARIABLE], batch.place[p + 1, VARIABLE]
        b0, b1, r0, r1 = p * width, (p + 1) * width, paused.row_at[p], paused.row_at[p + 1]
        nodes = Nodes(
            grid(part(paused.labels, v0 * width, v1 * width), width, v1 - v0),
            part(paused.g, b0, b1),
            part(paused.h, b0, b1),
            part(paused.rest, b0, b1),
            grid(part(paused.ahead, v0 * width, v1 * width), width, v1 - v0),
            grid(part(paused.row_low, r0 * width, r1 * width), width, r1 - r0),
            grid(part(paused.row_high, r0 * width, r1 * width), width, r1 - r0),
        )
        known = part(paused.known, v0, v1)
        if paused.step[p] < 0:
            begin(instance.graph, instance.cost, options, known, nodes)
            paused.step[p] = 0
            paused.n_nodes[p] = 1
        outcome[p], paused.n_nodes[p], paused.step[p] = advance(
            instance, weights, options, True, Beam(nodes, scratch, known), paused.n_nodes[p], paused.step[p]
        )
    keep((floats, ints))

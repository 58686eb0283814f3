"""Many searches: with costs that are there, in waves where they are lazy, and after elimination."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import driver, grid, keep, part, split
from hasten.kernels.layout import VARIABLE, BatchArrays, Instance, graph_at, instance_of, labels_of
from hasten.kernels.search.loop import DONE, advance, begin
from hasten.kernels.search.nodes import (
    GIVEN,
    LATER,
    Beam,
    Found,
    Nodes,
    Options,
    Sizes,
    Track,
    at_least,
    beam_in,
    largest,
    n_floats,
    n_ints,
    write_answer,
)
from hasten.proof.elimination.kernels import eliminate, plan_at, restore
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.clock import ALL, AT


@driver
def search_some(batch: BatchArrays, weights: FloatArray, options: Options, problems: IntArray, found: Found) -> None:
    """Searches some problems, whose costs are all there."""
    n = largest(batch, problems, options.width)
    floats, ints = np.zeros(n_floats(n)), np.zeros(n_ints(n), dtype=np.int64)
    beam = beam_in(floats, ints, n)
    for p in problems:
        instance = instance_of(batch, p)
        begin(instance, options, GIVEN, beam)
        outcome, _, _ = advance(instance, weights, options, GIVEN, beam, 1, 0)
        write_answer(batch, p, beam, outcome == DONE, found)
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

    @classmethod
    def of(cls, width: int, n_variables: IntArray, n_rows: IntArray) -> Paused:
        """Returns the empty beams of problems with so many variables and rows each."""
        n, row_at = len(n_variables), np.concatenate([[0], np.cumsum(n_rows)])
        variables, rows = int(n_variables.sum()), int(row_at[-1])
        labels, known, none = np.zeros(width * variables, np.int64), np.zeros(variables, np.int64), np.full(n, -1)
        g, h, rest = np.zeros((3, width * n))
        low, high = np.zeros((2, width * rows))
        return cls(labels, g, h, rest, np.zeros(width * variables), low, high, row_at, known, none, np.zeros_like(none))


@driver
def search_wave(
    batch: BatchArrays, weights: FloatArray, options: Options, active: IntArray, paused: Paused, outcome: IntArray
) -> None:
    """Continues the active problems of a lazy batch until each is done or wants costs."""
    width = options.width
    n = largest(batch, active, width)
    floats, ints = np.zeros(n_floats(n)), np.zeros(n_ints(n), dtype=np.int64)
    space = beam_in(floats, ints, n)
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
        beam = Beam(nodes, space.scratch, part(paused.known, v0, v1), space.track)
        if paused.step[p] < 0:
            begin(instance, options, LATER, beam)
            paused.step[p] = 0
            paused.n_nodes[p] = 1
        outcome[p], paused.n_nodes[p], paused.step[p] = advance(
            instance, weights, options, LATER, beam, paused.n_nodes[p], paused.step[p]
        )
    keep((floats, ints))


@driver
def observe_gaps(
    batch: BatchArrays, weights: FloatArray, options: Options, problems: IntArray, gap: FloatArray
) -> None:
    """Writes the heuristic's gap at each step of each search; inf for the steps after a dead end."""
    n = largest(batch, problems, options.width)
    floats, ints = np.zeros(n_floats(n)), np.zeros(n_ints(n), dtype=np.int64)
    nodes, scratch, known, track = beam_in(floats, ints, n)
    gap[:] = np.inf
    for p in problems:
        instance = instance_of(batch, p)
        mine = part(gap, batch.place[p, VARIABLE], batch.place[p + 1, VARIABLE])
        beam = Beam(nodes, scratch, known, Track(mine, track.reference, track.good, track.good_cost))
        begin(instance, options, GIVEN, beam)
        advance(instance, weights, options, GIVEN, beam, 1, 0)
    keep((floats, ints))


@driver
def search_reduced(batch: BatchArrays, reduced: IntArray, options: Options, problems: IntArray, found: Found) -> None:
    """Searches what is left of some problems after elimination; `reduced[p]` has the addresses of plan and graph."""
    n, n_work, n_kept, s = Sizes(options.width, 0, 0, 1), 0, 0, 0
    for p in problems:
        if reduced[p, 0] != s:
            s = reduced[p, 0]
            plan, n = plan_at(s), at_least(n, reduced[p, 1])
            n_work = max(n_work, plan.out_first[plan.variable.size] + plan.copy_from.size)
            n_kept = max(n_kept, plan.keep_label.size)
    floats, ints = np.zeros(n_floats(n)), np.zeros(n_ints(n), dtype=np.int64)
    beam = beam_in(floats, ints, n)
    kept, values = np.full(n.variables + 3, -1), np.zeros(n_work + n_kept)
    (kept_labels, never), no_weights = split(kept, (n.variables, 3)), np.zeros(0)
    never[ALL], never[AT] = 0, 0  # a stop flag that stops nothing
    work, kept_cost = split(values, (n_work, n_kept))
    for p in problems:
        given, mine = instance_of(batch, p), labels_of(batch, found.labels, p)
        plan, small = plan_at(reduced[p, 0]), graph_at(reduced[p, 1])
        possible = eliminate(plan, given.cost, given.table, work, kept_cost, never) < np.inf
        if possible:
            left = Instance(small, kept_cost, work)
            begin(left, options, GIVEN, beam)
            outcome, _, _ = advance(left, no_weights, options, GIVEN, beam, 1, 0)
            possible = outcome == DONE
        found.done[p] = possible
        if possible:
            for v in range(small.order.size):
                kept_labels[v] = beam.nodes.labels[0, v]
            restore(plan, given.cost, given.table, work, kept_labels, mine)
        else:
            for v in range(mine.size):
                mine[v] = -1
    keep((floats, ints, kept, values))

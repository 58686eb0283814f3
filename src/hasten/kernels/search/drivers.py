"""Many searches: with costs that are there, in waves where they are lazy, and after elimination."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import driver, keep, part, split
from hasten.kernels.layout import VARIABLE, BatchArrays, Instance, graph_at, instance_of, labels_of
from hasten.kernels.search.loop import DONE, advance, begin
from hasten.kernels.search.nodes import (
    GIVEN,
    LATER,
    Beam,
    Found,
    Options,
    Sizes,
    Track,
    at_least,
    beam_in,
    largest,
    n_floats,
    n_ints,
    nodes_in,
    write_answer,
)
from hasten.proof.elimination.kernels import eliminate, plan_at, restore
from hasten.support.arrays import FloatArray, IntArray, offsets
from hasten.support.clock import CURRENT, STOP_ALL


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
    floats: FloatArray  # problem p owns floats[at[p]:at[p + 1]]
    at: IntArray  # (n + 1,)
    known: IntArray  # (variables,)
    step: IntArray  # (n,) -1 before the start
    n_nodes: IntArray  # (n,)

    @classmethod
    def of(cls, width: int, n_variables: IntArray, n_rows: IntArray) -> Paused:
        """Returns the empty beams of problems with so many variables and rows each."""
        n, variables, at = len(n_variables), int(n_variables.sum()), offsets(width * (3 + n_variables + 2 * n_rows))
        labels, known, begun = (np.zeros(size, dtype=np.int64) for size in (width * variables, variables, n))
        return cls(labels, np.zeros(at[-1]), at, known, begun - 1, begun)


@driver
def search_wave(
    batch: BatchArrays, weights: FloatArray, options: Options, active: IntArray, paused: Paused, found: Found
) -> None:
    """Continues the active problems of a lazy batch until each is done, at a dead end, or wants costs."""
    width = options.width
    n = largest(batch, active, width)
    floats, ints = np.zeros(n_floats(n)), np.zeros(n_ints(n), dtype=np.int64)
    space = beam_in(floats, ints, n)
    for p in active:
        instance = instance_of(batch, p)
        v0, v1 = batch.place[p, VARIABLE], batch.place[p + 1, VARIABLE]
        mine, labels = part(paused.floats, paused.at[p], paused.at[p + 1]), part(paused.labels, v0 * width, v1 * width)
        nodes = nodes_in(mine, labels, Sizes(width, v1 - v0, instance.graph.row_low.size, 0))
        beam = Beam(nodes, space.scratch, part(paused.known, v0, v1), space.track)
        if paused.step[p] < 0:
            begin(instance, options, LATER, beam)
            paused.step[p] = 0
            paused.n_nodes[p] = 1
        outcome, paused.n_nodes[p], paused.step[p] = advance(
            instance, weights, options, LATER, beam, paused.n_nodes[p], paused.step[p]
        )
        write_answer(batch, p, beam, outcome == DONE, found)
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
    never[STOP_ALL], never[CURRENT] = 0, 0  # a stop flag that stops nothing
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

"""Beam search over what exact elimination leaves; the eliminated variables are put back at their best."""

from __future__ import annotations

import numpy as np

from hasten.jit import driver, keep, part, split
from hasten.kernels import search as beam
from hasten.kernels.eliminate import eliminate, plan_at, restore
from hasten.kernels.layout import BatchArrays, Instance, costs_of, graph_at, labels_of, tables_of
from hasten.support.arrays import BoolArray, IntArray


@driver
def search_some(
    batch: BatchArrays, reduced: IntArray, options: beam.Options, problems: IntArray, labels: IntArray, done: BoolArray
) -> None:
    """Searches some problems, whose costs are all there; `reduced` has, for each, the addresses of plan and graph."""
    n_variables, n_rows, n_labels, n_work, n_kept, s = 0, 0, 1, 0, 0, 0
    for x in range(problems.size):
        if reduced[x, 0] != s:
            s = reduced[x, 0]
            plan, small = plan_at(s), graph_at(reduced[x, 1])
            n_variables = max(n_variables, small.order.size)
            n_rows = max(n_rows, small.row_low.size)
            n_work = max(n_work, plan.out_first[plan.variable.size] + plan.copy_from.size)
            n_kept = max(n_kept, plan.keep_label.size)
            for v in range(small.order.size):
                n_labels = max(n_labels, small.first[v + 1] - small.first[v])
    n = beam.Sizes(options.width, n_variables, n_rows, n_labels)
    floats, ints = np.zeros(beam.n_floats(n)), np.zeros(beam.n_ints(n), dtype=np.int64)
    space = beam.beam_in(floats, ints, n)
    kept, values = np.zeros(n_variables, dtype=np.int64), np.zeros(n_work + n_kept)
    kept_labels, no_weights = part(kept, 0, n_variables), np.zeros(0)
    work, kept_cost = split(values, (n_work, n_kept))
    for x in range(problems.size):
        p = problems[x]
        cost, table = costs_of(batch, p), tables_of(batch, p)
        plan, small, mine = plan_at(reduced[x, 0]), graph_at(reduced[x, 1]), labels_of(batch, labels, p)
        possible = eliminate(plan, cost, table, work, kept_cost) < np.inf
        if possible:
            beam.begin(small, kept_cost, options, space.known, space.nodes)
            left = Instance(small, kept_cost, work)
            outcome, _, _ = beam.advance(left, no_weights, options, False, space, 1, 0)
            possible = outcome == beam.DONE
        done[p] = possible
        if possible:
            for v in range(small.order.size):
                kept_labels[v] = space.nodes.labels[0, v]
            restore(plan, cost, table, work, kept_labels, mine)
        else:
            for v in range(mine.size):
                mine[v] = -1
    keep((floats, ints, kept, values))

"""Beam search over what exact elimination leaves; the eliminated variables are put back at their best."""

from __future__ import annotations

import numpy as np

from hasten.jit import driver
from hasten.kernels import search as beam
from hasten.kernels.eliminate import PlanPool, eliminate, restore, view_plan
from hasten.kernels.layout import Pool, by_structure, view
from hasten.support.arrays import BoolArray, FloatArray, IntArray


@driver
def search_range(
    pool: Pool,
    plans: PlanPool,
    smalls: Pool,
    structure: IntArray,
    cost: FloatArray,
    cost_at: IntArray,
    table: FloatArray,
    table_at: IntArray,
    variable_at: IntArray,
    options: beam.Options,
    begin_at: int,
    end_at: int,
    labels: IntArray,
    done: BoolArray,
) -> None:
    """Searches problems `begin_at:end_at`, whose costs are all there."""
    if begin_at == end_at:
        return
    n_variables, n_rows, n_labels = beam.largest(smalls, structure, begin_at, end_at)
    nodes = beam.make_nodes(options.width, n_variables, n_rows)
    scratch = beam.make_scratch(options.width, n_variables, n_rows, n_labels)
    known = np.full(n_variables, beam.KNOWN, dtype=np.int64)
    kept = np.zeros(n_variables, dtype=np.int64)
    no_weights = np.zeros(0)
    n_work, n_kept = 0, 0
    for p in range(begin_at, end_at):
        plan = view_plan(plans, structure[p])
        n_work = max(n_work, plan.out_first[-1] + plan.copy_from.size)
        n_kept = max(n_kept, plan.keep_label.size)
    work, kept_cost = np.zeros(n_work), np.zeros(n_kept)
    order = by_structure(pool, structure, begin_at, end_at)
    s = structure[order[0]]
    graph, plan, small = view(pool, s), view_plan(plans, s), view(smalls, s)
    for p in order:
        if structure[p] != s:
            s = structure[p]
            graph, plan, small = view(pool, s), view_plan(plans, s), view(smalls, s)
        mine, tables = cost[cost_at[p] : cost_at[p + 1]], table[table_at[p] :]
        possible = eliminate(plan, mine, tables, work, kept_cost) < np.inf
        if possible:
            beam.begin(small, kept_cost, options, known, nodes)
            outcome, _, _ = beam.advance(
                small, kept_cost, work, no_weights, options, False, known, nodes, 1, 0, False, scratch
            )
            possible = outcome == beam.DONE
        answer = labels[variable_at[p] : variable_at[p + 1]]
        done[p] = possible
        if possible:
            for v in range(small.order.size):
                kept[v] = nodes.labels[0, v]
            restore(plan, graph.first, mine, tables, work, kept, answer)
        else:
            answer[:] = -1

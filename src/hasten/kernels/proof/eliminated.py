"""Problems of which elimination leaves nothing: proved one by one, or eight of one shape at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import driver, inlined_kernel, keep, kernel, part, split
from hasten.jit.simd import WIDTH
from hasten.kernels.abreast import (
    Abreast,
    cost_abreast,
    eliminate_abreast,
    labels_abreast,
    put_abreast,
    restore_abreast,
)
from hasten.kernels.eliminate import eliminate, plan_at, restore
from hasten.kernels.layout import COST, TABLE, BatchArrays, Graph, graph_of, instance_of, labels_of, tables_of
from hasten.kernels.proof.dual import copy_labels
from hasten.kernels.proof.look import OVERFLOW, cheapest, rounding
from hasten.kernels.proof.outcome import (
    BEST,
    BOUND,
    ELIMINATE,
    GIVEN,
    INFEASIBLE,
    LABELS_BY,
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
from hasten.kernels.tolerance import is_proved
from hasten.support.arrays import FloatArray, IntArray

ABREAST = WIDTH  # problems at a time


class Settled(NamedTuple):
    """How an elimination ended."""

    outcome: int
    best: float
    bound: float
    size: float
    labels_by: int


@driver
def eliminate_some(batch: BatchArrays, reduced: IntArray, problems: IntArray, proofs: Proofs) -> None:
    """Certifies some problems of which elimination leaves nothing, looked at or not.

    `reduced` is as for `certify_some`. Plans may ignore rows (`hasten.model.relaxing`): what breaks one is left open.
    A driver of its own: most problems need no other, and it is compiled in a fraction of the time.
    """
    n_work, n_variables = 0, 0
    for x in range(problems.size):
        plan = plan_at(reduced[x, 0])
        n_work = max(n_work, plan.out_first[plan.variable.size])
        n_variables = max(n_variables, graph_of(batch, problems[x]).order.size)
    floats, ints = np.zeros(n_work), np.zeros(n_variables, dtype=np.int64)
    work, nothing = split(floats, (n_work, 0))
    restored, none = split(ints, (n_variables, 0))
    values, facts = proofs.values, proofs.facts
    for x in range(problems.size):
        p = problems[x]
        graph, cost, table = instance_of(batch, p)
        plan = plan_at(reduced[x, 0])
        given, (_, size) = values[BEST, p], cheapest(graph, cost, table, restored)
        outcome, best, bound = OPEN, given, -np.inf
        if not size < OVERFLOW:  # sums may overflow
            size = np.inf
        else:
            constant = eliminate(plan, cost, table, work, nothing)
            restore(plan, cost, table, work, none, restored)
            fits = constant < np.inf and rows_hold(graph, restored)
            if constant == np.inf or (not fits and not graph.row_label.size):
                outcome, best, bound = INFEASIBLE, np.inf, np.inf
            else:
                found = total_cost(graph, cost, table, restored) if fits else np.inf
                if found < given:
                    copy_labels(restored, labels_of(batch, proofs.labels, p))
                best = min(found, given)
                bound = min(constant - rounding(graph, size), best)
                outcome = PROVED if is_proved(best, bound, size) else OPEN
        values[BEST, p], values[BOUND, p], values[SIZE, p] = best, bound, size
        facts[OUTCOME, p], facts[STEP, p], facts[N_SWEEPS, p], facts[N_NODES, p] = outcome, ELIMINATE, 0, 0
        facts[LABELS_BY, p] = ELIMINATE if best != given or given == np.inf else GIVEN
    keep((floats, ints))


@kernel
def table_size(graph: Graph, table: FloatArray) -> float:
    """Returns the sum of each table's largest finite entry, in magnitude: its share in the size of the terms."""
    size = 0.0
    for x in range(graph.soft_at.size):
        largest = 0.0
        for at in range(graph.soft_at[x], graph.soft_at[x] + graph.soft_size[x]):
            if table[at] < np.inf:
                largest = max(largest, abs(table[at]))
        size += largest * graph.soft_count[x]
    return size


@inlined_kernel
def is_alike(batch: BatchArrays, reduced: IntArray, problems: IntArray, x: int, y: int) -> bool:
    """Whether two problems have one plan and the same tables."""
    same_table = batch.place[problems[x], TABLE] == batch.place[problems[y], TABLE]
    return bool(same_table and reduced[x, 0] == reduced[y, 0])


@inlined_kernel
def settle_lane(graph: Graph, scratch: Abreast, lane: int, in_tables: float, given: float, mine: IntArray) -> Settled:
    """Returns how one of the eight problems ends; writes its labels if they are better than those given."""
    constant, size = scratch.line[lane], scratch.line[WIDTH + lane] + in_tables
    if not size < OVERFLOW:  # sums may overflow
        return Settled(OPEN, given, -np.inf, np.inf, GIVEN if given < np.inf else ELIMINATE)
    if constant == np.inf:
        return Settled(INFEASIBLE, np.inf, np.inf, size, ELIMINATE)
    found, restored = scratch.line[2 * WIDTH + lane], part(scratch.restored, 0, graph.order.size)
    if found < given or graph.row_low.size:
        labels_abreast(scratch, lane, restored)
        if not rows_hold(graph, restored):
            if not graph.row_label.size:  # a rule over nothing, whatever the labels
                return Settled(INFEASIBLE, np.inf, np.inf, size, ELIMINATE)
            found = np.inf
    if found < given:
        for v in range(restored.size):
            mine[v] = restored[v]
    best = min(found, given)
    bound = min(constant - rounding(graph, size), best)
    outcome = PROVED if is_proved(best, bound, size) else OPEN
    return Settled(outcome, best, bound, size, GIVEN if best == given < np.inf else ELIMINATE)


@driver
def eliminate_alike(batch: BatchArrays, reduced: IntArray, problems: IntArray, proofs: Proofs) -> None:
    """Certifies some problems of which elimination leaves nothing, looked at or not.

    `reduced` has the address of each one's plan; plans may ignore rows (`hasten.model.relaxing`): what breaks one is
    left open.
    """
    n_entries, n_variables, n_labels = 0, 0, 0
    for x in range(problems.size):
        if x == 0 or reduced[x, 0] != reduced[x - 1, 0]:
            plan, graph = plan_at(reduced[x, 0]), graph_of(batch, problems[x])
            n_entries = max(n_entries, plan.out_first[plan.variable.size])
            n_variables = max(n_variables, graph.order.size)
            n_labels = max(n_labels, graph.first[graph.order.size])
    floats = np.zeros(WIDTH * (2 * n_labels + 2 * n_entries + n_variables + 3))
    ints = np.zeros(WIDTH + n_variables, dtype=np.int64)
    cost, sums, work, choice, lane_labels, line = split(
        floats,
        (WIDTH * n_labels, WIDTH * n_labels, WIDTH * n_entries, WIDTH * n_entries, WIDTH * n_variables, WIDTH * 3),
    )
    start, restored = split(ints, (WIDTH, n_variables))
    scratch = Abreast(cost, sums, work, choice, lane_labels, line, start, restored)
    values, facts, costs = proofs.values, proofs.facts, part(batch.cost, 0, batch.cost.size)
    begin, in_tables = 0, 0.0
    while begin < problems.size:
        end = begin + 1
        while end < min(begin + WIDTH, problems.size) and is_alike(batch, reduced, problems, begin, end):
            end += 1
        p = problems[begin]
        graph, table, plan = graph_of(batch, p), tables_of(batch, p), plan_at(reduced[begin, 0])
        if begin == 0 or not is_alike(batch, reduced, problems, begin - 1, begin):
            in_tables = table_size(graph, table)
        for lane in range(WIDTH):
            start[lane] = batch.place[problems[min(begin + lane, end - 1)], COST]
        put_abreast(graph, costs, scratch)
        eliminate_abreast(plan, table, scratch)
        restore_abreast(plan, table, scratch)
        cost_abreast(graph, plan, table, scratch)
        for lane in range(end - begin):
            p = problems[begin + lane]
            mine = labels_of(batch, proofs.labels, p)
            settled = settle_lane(graph, scratch, lane, in_tables, values[BEST, p], mine)
            values[BEST, p], values[BOUND, p], values[SIZE, p] = settled.best, settled.bound, settled.size
            facts[OUTCOME, p], facts[STEP, p], facts[LABELS_BY, p] = settled.outcome, ELIMINATE, settled.labels_by
            facts[N_SWEEPS, p], facts[N_NODES, p] = 0, 0
        begin = end
    keep((floats, ints))

"""Eliminate: a step that minimises all variables out, exactly, where tables stay small. Chains and trees end here.

Rules are set aside at first: where the answer keeps them, it is the optimum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import driver, inlined_kernel, keep, part, split
from hasten.jit.records import WIDTH
from hasten.kernels.cells import NO_ROWS, with_rows
from hasten.kernels.layout import COST, TABLE, Arrays, BatchArrays, Graph, graph_of, instance_of, tables_of
from hasten.kernels.score import rows_hold, total_cost
from hasten.model.compiled import Compiled
from hasten.proof import outcome as status
from hasten.proof.elimination.kernels import Reduction, eliminate, plan_at, restore
from hasten.proof.elimination.lanes import Lanes, add_costs, eliminate_lanes, put_in_lanes, restore_lanes
from hasten.proof.elimination.plan import plan_reduction, reduce
from hasten.proof.outcome import (
    OVERFLOW,
    Proofs,
    State,
    cheapest,
    rounding,
    rule_out,
    tables_alone,
    take_bound,
    take_labels,
)
from hasten.proof.plan import BRIEF, ProofPlan, Work
from hasten.support.arrays import IntArray
from hasten.support.clock import CURRENT, STOP_ALL

SPEED = 5e-9  # seconds that a sum takes at most


class FullPlan(NamedTuple):
    """A plan that eliminates everything."""

    addresses: IntArray  # (1, 2) of the reduction
    relaxed: bool  # whether a bound, after looking or a cut, is the optimum without rules, which this would find again
    seconds: float


class Eliminating:
    """The step: eliminate everything, rules set aside."""

    def plan(self, plan: ProofPlan) -> FullPlan | None:
        """Returns the plan that eliminates every variable, as if there were no rules, if there is one."""
        shape, graph = plan.shape, plan.shape.graph
        if not graph.row_label.size:
            reduction: Reduction | None = reduce(shape, plan.max_join)
        else:
            reduction = shape.made(relax) if plan.max_join is None and shape.is_forest else None
        if reduction is None or not reduction.complete:
            return None
        relaxed = bool(graph.row_label.size) and not graph.soft_at.size
        return FullPlan(reduction.addresses, relaxed, SPEED * reduction.n_sums)

    def run(self, work: Work, problems: IntArray) -> None:
        """Eliminates all variables of problems, unless their optimum without rules is known already."""
        if work.plan is None or work.plan.part(self).relaxed:
            relaxed = work.of_each(self, problems, "relaxed") > 0.0
            problems = problems[~(relaxed & (work.proofs.values[status.BOUND].take(problems) > -np.inf))]
        if len(problems):
            run = eliminate_some if len(problems) < WIDTH else eliminate_alike
            work.run(run, problems, work.addresses(self, problems), seconds=work.seconds(self, problems), anyway=BRIEF)


ELIMINATING = Eliminating()


def relax(shape: Compiled) -> Reduction:
    """Plans the elimination of a shape as if there were no rules; where its answer keeps them, it is the optimum."""
    return plan_reduction(with_rows(shape.graph, NO_ROWS), None)


@inlined_kernel
def settle(
    batch: BatchArrays, proofs: Proofs, p: int, graph: Graph, least: float, found: float, size: float, labels: IntArray
) -> None:
    """Notes how an elimination ended: the least cost, and the cost of the labels that were restored."""
    values, facts = proofs.values, proofs.facts
    values[status.BOUND, p], facts[status.STEP, p] = -np.inf, status.ELIMINATE
    values[status.SIZE, p] = size if size < OVERFLOW else np.inf
    if values[status.BEST, p] == np.inf:
        facts[status.LABELS_BY, p] = status.ELIMINATE
    if not size < OVERFLOW:  # sums may overflow
        return
    if least == np.inf:
        facts[status.LABELS_BY, p] = status.ELIMINATE
        rule_out(proofs, p, status.ELIMINATE)
        return
    fits = rows_hold(graph, labels)
    if not fits and not graph.row_label.size:  # a rule over nothing, whatever the labels
        facts[status.LABELS_BY, p] = status.ELIMINATE
        rule_out(proofs, p, status.ELIMINATE)
        return
    if fits:
        take_labels(batch, proofs, p, labels, found, status.ELIMINATE)
    take_bound(proofs, p, least - rounding(graph, size), size)


@driver
def eliminate_some(arrays: Arrays, problems: IntArray, state: State, reduced: IntArray, stop_flag: IntArray) -> None:
    """Certifies problems of which elimination leaves nothing; they stay open if they break a rule."""
    batch, proofs = BatchArrays(*arrays), Proofs(*state)
    n_work, n_variables = 0, 0
    for x in range(problems.size):
        plan = plan_at(reduced[x, 0])
        n_work = max(n_work, plan.out_first[plan.variable.size])
        n_variables = max(n_variables, graph_of(batch, problems[x]).order.size)
    floats, ints = np.zeros(n_work), np.zeros(n_variables, dtype=np.int64)
    work, nothing = split(floats, (n_work, 0))
    labels, none = split(ints, (n_variables, 0))
    stop = part(stop_flag, 0, stop_flag.size)
    for x in range(problems.size):
        p, plan = problems[x], plan_at(reduced[x, 0])
        stop_flag[CURRENT] = x + 1
        if stop_flag[STOP_ALL]:
            proofs.facts[status.OUTCOME, p] = status.STOPPED
            continue
        graph, cost, table = instance_of(batch, p)
        constant, found, (_, size) = np.inf, np.inf, cheapest(graph, cost, table, labels)
        if size < OVERFLOW:
            constant = eliminate(plan, cost, table, work, nothing, stop)
            if constant != constant:
                proofs.facts[status.OUTCOME, p] = status.STOPPED
                continue
            restore(plan, cost, table, work, none, labels)
            found = total_cost(graph, cost, table, labels)
        settle(batch, proofs, p, graph, constant, found, size, labels)
    stop_flag[CURRENT] = 0
    keep((floats, ints, stop_flag))


@inlined_kernel
def is_alike(batch: BatchArrays, reduced: IntArray, problems: IntArray, x: int, y: int) -> bool:
    """Whether two problems have one plan and the same tables."""
    same_table = batch.place[problems[x], TABLE] == batch.place[problems[y], TABLE]
    return bool(same_table and reduced[x, 0] == reduced[y, 0])


@driver
def eliminate_alike(arrays: Arrays, problems: IntArray, state: State, reduced: IntArray, stop_flag: IntArray) -> None:
    """Eliminates as `eliminate_some` does, eight problems of one structure at a time."""
    batch, proofs = BatchArrays(*arrays), Proofs(*state)
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
    lanes, costs = Lanes(cost, sums, work, choice, lane_labels, line, start), part(batch.cost, 0, batch.cost.size)
    begin, in_tables, stop = 0, 0.0, part(stop_flag, 0, stop_flag.size)
    while begin < problems.size:
        end = begin + 1
        while end < min(begin + WIDTH, problems.size) and is_alike(batch, reduced, problems, begin, end):
            end += 1
        p = problems[begin]
        stop_flag[CURRENT] = begin + 1
        graph, table, plan = graph_of(batch, p), tables_of(batch, p), plan_at(reduced[begin, 0])
        finished = not stop_flag[STOP_ALL]
        if finished:
            if begin == 0 or not is_alike(batch, reduced, problems, begin - 1, begin):
                _, in_tables = tables_alone(graph, table, 0.0)
            for lane in range(WIDTH):
                start[lane] = batch.place[problems[min(begin + lane, end - 1)], COST]
            put_in_lanes(graph, costs, lanes)
            finished = eliminate_lanes(plan, table, lanes, stop)
        if not finished:
            for x in range(begin, end):
                proofs.facts[status.OUTCOME, problems[x]] = status.STOPPED
            begin = end
            continue
        restore_lanes(plan, table, lanes)
        add_costs(graph, plan, table, lanes)
        labels = part(restored, 0, graph.order.size)
        for lane in range(end - begin):
            p = problems[begin + lane]
            constant, size, found = line[lane], line[WIDTH + lane] + in_tables, line[2 * WIDTH + lane]
            if found < proofs.values[status.BEST, p] or graph.row_low.size:
                for v in range(labels.size):
                    labels[v] = int(lane_labels[WIDTH * v + lane])
            settle(batch, proofs, p, graph, constant, found, size, labels)
        begin = end
    stop_flag[CURRENT] = 0
    keep((floats, ints, stop_flag))

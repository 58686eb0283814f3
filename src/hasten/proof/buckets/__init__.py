"""Full elimination: a step that eliminates all variables of a graph of small treewidth, by large tables (*buckets*).

Branching comes first, and has about as long as this step takes, which is known beforehand: both together take at most
about twice as long as the better of the two. Tables are too large to list the entries that each sum reads. Entries are
computed in *runs* of the last neighbours' labels: over a run, a table stays the same, is read in its own order, or in
one worked out once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import driver, keep, kernel, part, split
from hasten.kernels.layout import Arrays, BatchArrays, Graph, graph_of, instance_of, labels_of, stopped
from hasten.kernels.score import total_cost
from hasten.proof import outcome as status
from hasten.proof.buckets.plan import Buckets, buckets_at, full_elimination
from hasten.proof.elimination.plan import reduce
from hasten.proof.outcome import (
    OVERFLOW,
    UNFIXED,
    Fixed,
    Fixing,
    Proofs,
    State,
    cheapest,
    rounding,
    rule_out,
    take_bound,
    take_labels,
)
from hasten.proof.plan import ProofPlan, RecordPlan, Work
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.clock import CURRENT

RUN = 128  # entries of a run at most, but for variables of more labels
SAME, IN_ORDER, SHUFFLED = 0, 1, 2  # how a run reads a table


class Run(NamedTuple):
    """Scratch space for runs."""

    shift: IntArray  # (parts * run,) where each entry of a run is read, from the place of the first
    way: IntArray  # (parts,) how a run reads each part
    base: IntArray  # (parts,) where the run begins in it
    digit: IntArray  # (neighbours,) their labels, but for those that the run goes through
    line: FloatArray  # (run,) sums of one run


@kernel
def lay_out(plan: Buckets, n: int, length: int, first: int, run: Run) -> None:
    """Works out how runs of step `n` read its parts."""
    begin, end = plan.scope_first[n], plan.scope_first[n + 1]
    for a in range(begin, first):
        run.digit[a - begin] = 0
    for x in range(plan.part_first[n], plan.part_first[n + 1]):
        k = x - plan.part_first[n]
        stride, shift = plan.stride_first[x] - begin, part(run.shift, k * length, (k + 1) * length)
        run.base[k], shift[0], filled, same, ordered = plan.part_at[x], 0, 1, True, True
        for a in range(end - 1, first - 1, -1):
            step = plan.stride[stride + a]
            if plan.sizes[a] > 1:
                same &= step == 0
                ordered &= step == filled
            for i in range(1, plan.sizes[a]):
                for e in range(filled):
                    shift[i * filled + e] = shift[e] + i * step
            filled *= plan.sizes[a]
        run.way[k] = SAME if same else IN_ORDER if ordered else SHUFFLED


@kernel
def compute_run(
    plan: Buckets, n: int, length: int, cost: FloatArray, table: FloatArray, work: FloatArray, run: Run, out: FloatArray
) -> None:
    """Computes one run of step `n`: at each entry the least sum, over the labels of the variable."""
    first, n_parts, line = plan.part_first[n], plan.part_first[n + 1] - plan.part_first[n], run.line
    for i in range(plan.n_labels[n]):
        value = cost[plan.label_at[n] + i]
        for k in range(n_parts):
            if run.way[k] == SAME:
                at = run.base[k] + i * plan.inside[first + k]
                value += work[at] if plan.derived[first + k] else table[at]
        for e in range(length):
            line[e] = value
        for k in range(n_parts):
            if run.way[k] != SAME:
                at, shift = run.base[k] + i * plan.inside[first + k], part(run.shift, k * length, (k + 1) * length)
                values = work if plan.derived[first + k] else table
                if run.way[k] == IN_ORDER:
                    for e in range(length):
                        line[e] += values[at + e]
                else:
                    for e in range(length):
                        line[e] += values[at + shift[e]]
        if i == 0:
            for e in range(length):
                out[e] = line[e]
        else:
            for e in range(length):
                out[e] = min(out[e], line[e])


@kernel
def advance(plan: Buckets, n: int, first: int, run: Run) -> None:
    """Goes on to the next run of step `n`: the neighbours before `first` have their next labels."""
    begin, a = plan.scope_first[n], first - 1
    while a >= begin:
        run.digit[a - begin] += 1
        wraps = run.digit[a - begin] == plan.sizes[a]
        move = 1 - plan.sizes[a] if wraps else 1
        for x in range(plan.part_first[n], plan.part_first[n + 1]):
            run.base[x - plan.part_first[n]] += move * plan.stride[plan.stride_first[x] + a - begin]
        if not wraps:
            return
        run.digit[a - begin] = 0
        a -= 1


@kernel
def restore_buckets(plan: Buckets, cost: FloatArray, table: FloatArray, work: FloatArray, labels: IntArray) -> None:
    """Labels every variable that is not fixed, in reverse, each at its least."""
    for back in range(plan.variable.size):
        n = plan.variable.size - 1 - back
        begin, least, chosen = plan.scope_first[n], np.inf, 0
        for i in range(plan.n_labels[n]):
            value = cost[plan.label_at[n] + i]
            for x in range(plan.part_first[n], plan.part_first[n + 1]):
                at, stride = plan.part_at[x] + i * plan.inside[x], plan.stride_first[x] - begin
                for a in range(begin, plan.scope_first[n + 1]):
                    at += plan.stride[stride + a] * labels[plan.scope[a]]
                value += work[at] if plan.derived[x] else table[at]
            if value < least:
                least, chosen = value, i
        labels[plan.variable[n]] = chosen


@kernel
def carry_out(
    plan: Buckets, cost: FloatArray, table: FloatArray, work: FloatArray, run: Run, stop_flag: IntArray
) -> tuple[bool, float]:
    """Carries out all steps; returns whether it finished, and the least cost (of all steps without neighbours)."""
    total = 0.0
    for n in range(plan.variable.size):
        if stopped(stop_flag):
            return False, 0.0
        length, first = 1, plan.scope_first[n + 1]  # of a run, and the first neighbour that it goes through
        while first > plan.scope_first[n] and (length == 1 or length * plan.sizes[first - 1] <= RUN):
            first -= 1
            length *= plan.sizes[first]
        lay_out(plan, n, length, first, run)
        for at in range(plan.out_first[n], plan.out_first[n + 1], length):
            compute_run(plan, n, length, cost, table, work, run, part(work, at, at + length))
            advance(plan, n, first, run)
        if plan.scope_first[n] == plan.scope_first[n + 1]:
            total += work[plan.out_first[n]]
    return True, total


class FullElimination:
    """The step: eliminate everything by large tables."""

    def plan(self, plan: ProofPlan) -> RecordPlan | None:
        """Returns the plan for a structure of small treewidth, without rules, that elimination does not finish."""
        if plan.max_join is not None or reduce(plan.shape).complete:
            return None
        return plan.shape.made(full_elimination)

    def run(self, work: Work, problems: IntArray) -> None:
        """Eliminates all variables that are not fixed."""
        plans, seconds = work.addresses(self, problems), work.seconds(self, problems)
        work.run(eliminate_buckets, problems, plans, shared=((*work.fixing,),), seconds=seconds)


FULL_ELIMINATION = FullElimination()


@kernel
def fix(graph: Graph, cost: FloatArray, table: FloatArray, fixed: IntArray, labels: IntArray) -> float:
    """Gives fixed variables their labels; returns their cost, with that of the tables over them alone."""
    total = 0.0
    for v in range(graph.order.size):
        labels[v] = fixed[v]
        if fixed[v] != UNFIXED:
            total += cost[graph.first[v] + fixed[v]]
    for f in range(graph.table_at.size):
        at = graph.table_at[f]
        for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
            if fixed[graph.scope[a]] == UNFIXED:
                at = -1
                break
            at += graph.stride[a] * fixed[graph.scope[a]]
        if at >= 0 and graph.table_at[f] >= 0:
            total += table[at]
    return total


@driver
def eliminate_buckets(
    arrays: Arrays, problems: IntArray, state: State, plans: IntArray, fixed: Fixed, stop_flag: IntArray
) -> None:
    """Certifies problems without rules; `plans` has the address of each one's plan for the variables not fixed."""
    batch, proofs, fixing = BatchArrays(*arrays), Proofs(*state), Fixing(*fixed)
    n_work, n_parts, n_near, n_run, n = 0, 0, 0, RUN, 0
    for x in range(problems.size):
        plan = buckets_at(plans[x])
        n_work, n = max(n_work, plan.out_first[plan.variable.size]), max(n, graph_of(batch, problems[x]).order.size)
        n_parts, n_near, n_run = max(n_parts, plan.most[0]), max(n_near, plan.most[1]), max(n_run, plan.most[2])
    floats, ints = np.empty(n_work + n_run), np.zeros(n_parts * (n_run + 2) + n_near + n, dtype=np.int64)
    work, line = split(floats, (n_work, n_run))
    shift, way, base, digit, labels = split(ints, (n_parts * n_run, n_parts, n_parts, n_near, n))
    run, facts, stop = Run(shift, way, base, digit, line), proofs.facts, part(stop_flag, 0, stop_flag.size)
    for x in range(problems.size):
        p, plan = problems[x], buckets_at(plans[x])
        stop_flag[CURRENT] = x + 1
        graph, cost, table = instance_of(batch, p)
        _, size = cheapest(graph, cost, table, labels)
        if stopped(stop):
            facts[status.OUTCOME, p] = status.STOPPED
            continue
        if not size < OVERFLOW:  # sums may overflow
            continue
        facts[status.STEP, p] = status.ELIMINATE
        finished, constant = carry_out(plan, cost, table, work, run, stop)
        if not finished:
            facts[status.OUTCOME, p] = status.STOPPED
            continue
        loss = 0.0
        if fixing.labels.size:
            constant += fix(graph, cost, table, labels_of(batch, fixing.labels, p), labels)
            loss = fixing.loss[p]
        if constant == np.inf:
            rule_out(proofs, p, status.ELIMINATE)
            continue
        restore_buckets(plan, cost, table, work, labels)
        take_labels(batch, proofs, p, labels, total_cost(graph, cost, table, labels), status.ELIMINATE)
        take_bound(proofs, p, constant - rounding(graph, size) - loss, size)
    stop_flag[CURRENT] = 0
    keep((floats, ints, stop_flag))

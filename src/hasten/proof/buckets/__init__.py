"""Full elimination: a step that eliminates all variables of a graph of small treewidth, by large tables (*buckets*).

How long that takes is known beforehand, and the same whatever the costs. Branching is quick where costs decide most
labels, and takes for ever where they decide few. So branching comes first, and has about as long as this step takes:
both together take at most about twice what the better of the two does.
"""

from __future__ import annotations

import numpy as np

from hasten.jit import driver, keep, kernel, part, split
from hasten.kernels.layout import Arrays, BatchArrays, Graph, graph_of, instance_of, labels_of
from hasten.kernels.score import total_cost
from hasten.kernels.stopping import stopped
from hasten.proof.buckets.kernels import RUN, Run, buckets_at, carry_out, restore_buckets
from hasten.proof.buckets.plan import full_elimination
from hasten.proof.elimination.plan import reduce
from hasten.proof.outcome import (
    ELIMINATE,
    OUTCOME,
    STEP,
    STOPPED,
    UNFIXED,
    Fixed,
    Fixing,
    Proofs,
    State,
    rule_out,
    take_bound,
    take_labels,
)
from hasten.proof.plan import ProofPlan, RecordPlan, Work
from hasten.proof.terms import OVERFLOW, cheapest, rounding
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.clock import AT


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
    """Gives fixed variables their labels; returns what these cost, with the tables that are over them alone."""
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
    arrays: Arrays, problems: IntArray, state: State, plans: IntArray, fixed: Fixed, watch: IntArray
) -> None:
    """Certifies some problems without rules; `plans` has, for each, the address of its plan: of what is not fixed.

    The best labelling and the bound so far are kept where they are better.
    """
    batch, proofs, fixing = BatchArrays(*arrays), Proofs(*state), Fixing(*fixed)
    n_work, n_parts, n_near, n_run, n = 0, 0, 0, RUN, 0
    for x in range(problems.size):
        plan = buckets_at(plans[x])
        n_work, n = max(n_work, plan.out_first[plan.variable.size]), max(n, graph_of(batch, problems[x]).order.size)
        n_parts, n_near, n_run = max(n_parts, plan.most[0]), max(n_near, plan.most[1]), max(n_run, plan.most[2])
    floats, ints = np.empty(n_work + n_run), np.zeros(n_parts * (n_run + 2) + n_near + n, dtype=np.int64)
    work, line = split(floats, (n_work, n_run))
    shift, way, base, digit, labels = split(ints, (n_parts * n_run, n_parts, n_parts, n_near, n))
    run, facts, stop = Run(shift, way, base, digit, line), proofs.facts, part(watch, 0, watch.size)
    for x in range(problems.size):
        p, plan = problems[x], buckets_at(plans[x])
        watch[AT] = x + 1
        graph, cost, table = instance_of(batch, p)
        _, size = cheapest(graph, cost, table, labels)
        if stopped(stop):
            facts[OUTCOME, p] = STOPPED
            continue
        if not size < OVERFLOW:  # sums may overflow
            continue
        facts[STEP, p] = ELIMINATE
        finished, constant = carry_out(plan, cost, table, work, run, stop)
        if not finished:
            facts[OUTCOME, p] = STOPPED
            continue
        loss = 0.0
        if fixing.labels.size:
            constant += fix(graph, cost, table, labels_of(batch, fixing.labels, p), labels)
            loss = fixing.loss[p]
        if constant == np.inf:
            rule_out(proofs, p, ELIMINATE)
            continue
        restore_buckets(plan, cost, table, work, labels)
        take_labels(batch, proofs, p, labels, total_cost(graph, cost, table, labels), ELIMINATE)
        take_bound(proofs, p, constant - rounding(graph, size) - loss, size)
    watch[AT] = 0
    keep((floats, ints, watch))

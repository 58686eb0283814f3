"""Proving what a thin graph's elimination solves, however large its tables (`hasten.kernels.thin`)."""

from __future__ import annotations

import numpy as np

from hasten.jit import driver, keep, kernel, part, split
from hasten.kernels.layout import BatchArrays, Graph, graph_of, instance_of, labels_of
from hasten.kernels.proof.dual import copy_labels
from hasten.kernels.proof.look import OVERFLOW, cheapest, rounding
from hasten.kernels.proof.outcome import (
    BEST,
    BOUND,
    ELIMINATE,
    INFEASIBLE,
    LABELS_BY,
    OPEN,
    OUTCOME,
    PROVED,
    STEP,
    STOPPED,
    Fixing,
    Proofs,
)
from hasten.kernels.proof.watch import stopped
from hasten.kernels.score import total_cost
from hasten.kernels.thin import LOOSE, RUN, Run, Thin, eliminate_step, restore_thin, thin_at
from hasten.kernels.tolerance import is_proved
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.clock import AT


@kernel
def carry_out(
    thin: Thin, cost: FloatArray, table: FloatArray, work: FloatArray, run: Run, watch: IntArray
) -> tuple[bool, float]:
    """Carries out all steps; returns whether it finished, and the least cost: what steps without neighbours come to."""
    total = 0.0
    for n in range(thin.variable.size):
        if stopped(watch):
            return False, 0.0
        eliminate_step(thin, n, cost, table, work, run)
        if thin.scope_first[n] == thin.scope_first[n + 1]:
            total += work[thin.out_first[n]]
    return True, total


@kernel
def fix(graph: Graph, cost: FloatArray, table: FloatArray, fixed: IntArray, labels: IntArray) -> float:
    """Gives fixed variables their labels; returns what these cost, with the tables that are over them alone."""
    total = 0.0
    for v in range(graph.order.size):
        labels[v] = fixed[v]
        if fixed[v] != LOOSE:
            total += cost[graph.first[v] + fixed[v]]
    for f in range(graph.table_at.size):
        at = graph.table_at[f]
        for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
            if fixed[graph.scope[a]] == LOOSE:
                at = -1
                break
            at += graph.stride[a] * fixed[graph.scope[a]]
        if at >= 0 and graph.table_at[f] >= 0:
            total += table[at]
    return total


@driver
def eliminate_thin(
    batch: BatchArrays, plans: IntArray, fixing: Fixing, problems: IntArray, proofs: Proofs, watch: IntArray
) -> None:
    """Certifies some problems without rules; `plans` has, for each, the address of its plan: of what is not fixed.

    What is known already, the best labelling and a bound, is kept where it is better.
    """
    n_work, n_parts, n_near, n_run, n = 0, 0, 0, RUN, 0
    for x in range(problems.size):
        thin = thin_at(plans[x])
        n_work, n = max(n_work, thin.out_first[thin.variable.size]), max(n, graph_of(batch, problems[x]).order.size)
        n_parts, n_near, n_run = max(n_parts, thin.most[0]), max(n_near, thin.most[1]), max(n_run, thin.most[2])
    floats, ints = np.empty(n_work + n_run), np.zeros(n_parts * (n_run + 2) + n_near + n, dtype=np.int64)
    work, line = split(floats, (n_work, n_run))
    shift, way, base, digit, restored = split(ints, (n_parts * n_run, n_parts, n_parts, n_near, n))
    run = Run(shift, way, base, digit, line)
    values, facts, looked = proofs.values, proofs.facts, part(watch, 0, watch.size)
    for x in range(problems.size):
        p, thin = problems[x], thin_at(plans[x])
        watch[AT] = x + 1
        graph, cost, table = instance_of(batch, p)
        given, (_, size) = values[BEST, p], cheapest(graph, cost, table, restored)
        if not size < OVERFLOW or stopped(looked):  # sums may overflow
            facts[OUTCOME, p] = STOPPED if stopped(looked) else OPEN
            continue
        facts[STEP, p] = ELIMINATE
        finished, constant = carry_out(thin, cost, table, work, run, looked)
        if not finished:
            facts[OUTCOME, p] = STOPPED
            continue
        loss = 0.0
        if fixing.labels.size:
            constant += fix(graph, cost, table, labels_of(batch, fixing.labels, p), restored)
            loss = fixing.loss[p]
        if constant == np.inf:
            facts[OUTCOME, p], values[BEST, p], values[BOUND, p] = INFEASIBLE, np.inf, np.inf
            continue
        restore_thin(thin, cost, table, work, restored)
        found, bound = total_cost(graph, cost, table, restored), constant - rounding(graph, size) - loss
        if found < given:
            copy_labels(restored, labels_of(batch, proofs.labels, p))
            values[BEST, p], facts[LABELS_BY, p] = found, ELIMINATE
        values[BOUND, p] = min(max(bound, values[BOUND, p]), values[BEST, p])
        if is_proved(values[BEST, p], values[BOUND, p], size):
            facts[OUTCOME, p] = PROVED
    watch[AT] = 0
    keep((floats, ints, watch))

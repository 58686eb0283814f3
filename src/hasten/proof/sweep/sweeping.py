"""Sweeping until a labelling is proved: after each sweep (`hasten.proof.sweep.dual`), labels are read off beliefs.

Beliefs decode greedily, one variable after the other. Where rows are all there is to keep, but for few tables, the
cheapest labels of all variables often keep them, and need no decoding. Sweeps end once few labels are *open*: they cost
less, above their variable's cheapest, than the gap between the bound and the best labelling. No other labels are in a
better labelling, and a dive (`hasten.proof.branch.dive`) is done with few of them sooner than the next sweep.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import kernel
from hasten.kernels.layout import Graph, Instance, stopped
from hasten.kernels.score import breaks_row, narrow, rows_hold, start_ranges, total_cost
from hasten.kernels.tolerance import FINE, allowance, is_closed
from hasten.proof.outcome import INFEASIBLE, OPEN, PROVED, copy_labels
from hasten.proof.sweep.dual import Dual, quick_bound, safe_bound, sweep
from hasten.proof.sweep.multipliers import least_of, two_least
from hasten.support.arrays import FloatArray, IntArray

FEW_OPEN = 8  # labels that are searched faster than they are ruled out


class Known(NamedTuple):
    """Knowledge of a problem before it is searched, but for the cost of the best labelling."""

    best: IntArray  # (V,) the best labelling so far: a better one replaces it
    size: float  # of the terms (`hasten.proof.outcome`)
    rounding: float  # how far it can put a sum of them off
    gap: float  # that is empty below a cost (`integral_gap`); 0: none is


@kernel
def take_better(instance: Instance, labels: IntArray, best_cost: float, known: Known) -> float:
    """Keeps a labelling if it is valid and better than the best so far; returns the cost of the better one."""
    value = total_cost(instance.graph, instance.cost, instance.table, labels)
    if value < best_cost and rows_hold(instance.graph, labels):
        copy_labels(labels, known.best)
        return float(value)
    return best_cost


@kernel
def decode(graph: Graph, table: FloatArray, dual: Dual, labels: IntArray) -> bool:
    """Labels greedily by beliefs and completed factors, within the constraints; false if stuck."""
    if not start_ranges(graph, dual.row_low, dual.row_high):
        return False
    for t in range(graph.order.size):
        k = graph.order[t]
        chosen = cheapest_label(graph, table, dual, labels, t, False)
        if chosen >= 0 and breaks_row(graph, dual.row_low, dual.row_high, k, graph.first[k] + chosen):
            chosen = cheapest_label(graph, table, dual, labels, t, True)
        if chosen < 0:
            return False
        labels[k] = chosen
        narrow(graph, dual.row_low, dual.row_high, k, graph.first[k] + chosen)
    return True


@kernel
def cheapest_label(graph: Graph, table: FloatArray, dual: Dual, labels: IntArray, t: int, within_rows: bool) -> int:
    """Returns the label that decoding gives the variable at place `t` of the order, rows aside or not; -1 if none."""
    k = graph.order[t]
    first = graph.first[k]
    least, chosen = np.inf, -1
    for i in range(graph.first[k + 1] - first):
        value = dual.belief[first + i]
        if value >= least:
            continue
        labels[k] = i
        for x in range(graph.done_first[t], graph.done_first[t + 1]):
            f = graph.done[x]
            if graph.table_at[f] < 0:
                continue
            at = graph.table_at[f]
            for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
                label = labels[graph.scope[a]]
                at += graph.stride[a] * label
                value -= dual.message[graph.message_at[a] + label]
            value += table[at]
            if value == np.inf:
                break
        if value < least and not (within_rows and breaks_row(graph, dual.row_low, dual.row_high, k, first + i)):
            least, chosen = value, i
    return chosen


@kernel
def cheapest_fit(graph: Graph, dual: Dual, labels: IntArray) -> bool:
    """Labels each variable at its least belief; whether that keeps all rows, where these outnumber the tables."""
    if graph.row_low.size <= graph.table_at.size:
        return False
    for v in range(graph.order.size):
        _, _, chosen = two_least(dual.belief, graph.first[v], graph.first[v + 1])
        labels[v] = max(chosen - graph.first[v], 0)
    return bool(rows_hold(graph, labels))


@kernel
def found_by(instance: Instance, dual: Dual, labels: IntArray) -> float:
    """Labels by beliefs; returns the cost, inf where a constraint is broken."""
    graph, cost, table = instance
    if cheapest_fit(graph, dual, labels):
        total = total_cost(graph, cost, table, labels)
        if total < np.inf:
            return float(total)
    if decode(graph, table, dual, labels) and rows_hold(graph, labels):
        return float(total_cost(graph, cost, table, labels))
    return np.inf


@kernel
def prove(
    instance: Instance, max_sweeps: int, dual: Dual, best_cost: float, known: Known, trial: IntArray, few: int
) -> tuple[int, float, float, int]:
    """Sweeps until the best labelling is proved, or cannot be in time, or only a `few` labels are open.

    The best labelling so far costs `best_cost` (inf: there is none); a better one that is decoded replaces it. A `few`
    of -1 is no reason to stop. Returns the outcome, the cost of the best labelling, the bound (-inf where it was not
    computed: `safe_bound` tells) and the number of sweeps. It gives up once the last sweep's gain, even if repeated by
    all sweeps left, would not close the gap.
    """
    (graph, cost, table), size, gap = instance, known.size, known.gap
    bound, before = -np.inf, -np.inf
    for n_sweeps in range(1, max_sweeps + 1):
        if not sweep(graph, table, n_sweeps % 2 == 1, dual):
            return INFEASIBLE, np.inf, np.inf, n_sweeps
        found = found_by(instance, dual, trial)
        if found < best_cost:
            best_cost = found
            copy_labels(trial, known.best)
        quick = quick_bound(graph, dual)
        if quick == np.inf:
            return INFEASIBLE, np.inf, np.inf, n_sweeps
        if is_closed(best_cost, quick, size, gap):
            bound = max(bound, safe_bound(graph, cost, table, dual))
            if is_closed(best_cost, bound, size, gap):
                return PROVED, best_cost, bound, n_sweeps
        if few >= 0 and best_cost < np.inf:
            room, n_open = best_cost - gap - quick, -graph.order.size  # the cheapest labels do not count
            for v in range(graph.order.size):
                least = least_of(dual.belief, graph.first[v], graph.first[v + 1])
                for at in range(graph.first[v], graph.first[v + 1]):
                    n_open += dual.belief[at] - least < room
            if n_open <= few:
                break
        if n_sweeps > 4 and (quick - before) * (max_sweeps - n_sweeps) < best_cost - quick and best_cost < np.inf:
            break
        if n_sweeps > 8 and quick - before < FINE * allowance(quick, size):
            break
        if stopped(dual.stop_flag):
            break
        before = quick
    return OPEN, best_cost, bound, n_sweeps

"""The k best labellings, in order: a dive that keeps several labellings.

The variables that elimination leaves are searched as in a dive. Each labelling of them is completed in every way that
is cheap enough, eliminated variables in reverse: the derived tables hold, exactly, the least cost of all variables
before one.

Each part that is left out costs at least as much as the k-th labelling less `FINE` of its allowance and rounding. While
fewer than k are known, it costs more than a *ceiling*: the cost of a few labellings that differ from the first one in
one choice. Labellings above the ceiling are dropped when it falls. A search that finds fewer than k below it starts
again with a higher one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import driver, grid, inlined_kernel, keep, kernel, part, split
from hasten.kernels.layout import BatchArrays, Instance, graph_at, instance_of, stopped, together
from hasten.kernels.score import rows_hold, total_cost
from hasten.kernels.tolerance import FINE, allowance, prune_above
from hasten.proof.branch.certify import Reduced
from hasten.proof.branch.dive import (
    FINISHED,
    LEAF,
    Cursor,
    Tree,
    assess,
    message_rounding,
    next_leaf,
    open_root,
    prepare,
)
from hasten.proof.branch.space import dual_floats, make_dual, make_tree, space_for, tree_floats, tree_ints
from hasten.proof.elimination.kernels import Plan, combine, eliminate, plan_at
from hasten.proof.outcome import INFEASIBLE, OVERFLOW, cheapest, rounding
from hasten.proof.sweep.dual import Dual, safe_bound, start_dual
from hasten.proof.sweep.sweeping import Known, prove
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.clock import CURRENT

N_FOUND, RANKED_NODES, RANKED_ALL = 0, 1, 2  # facts: labellings found, nodes taken, whether the search ended
CEILING, RANKED_BOUND = 0, 1  # values: the cost that labellings keep below; a bound on all


class Ranking(NamedTuple):
    """The best labellings so far, and the state of the search for others."""

    cost: FloatArray  # (k,) the least first
    slot: IntArray  # (k,) where the labels of each are; behind them, places that are free
    labels: IntArray  # (k, V), flat for the driver
    values: FloatArray  # (2,)
    facts: IntArray  # (3,)


class Limits(NamedTuple):
    """The limits of a search: which costs are cheap enough, and how many nodes it may take."""

    size: float  # of the terms (`hasten.proof.outcome`)
    slip: float  # how far rounding can put a sum off
    max_nodes: int
    near: int  # labellings near the first that the ceiling is above, at most k


class Restoring(NamedTuple):
    """Scratch space to put variables back: a level for each elimination step."""

    total: FloatArray  # (N + 1,) the least cost of each level
    sum: IntArray  # (N,) the next sum to try
    end: IntArray  # (N,) one past the last
    smallest: FloatArray  # (k,) for the ceiling


@inlined_kernel
def enough_to_prune(ranking: Ranking, size: float, margin: float) -> float:
    """Returns the least cost that need not be looked at any more."""
    k = ranking.cost.size
    if ranking.facts[N_FOUND] == k:
        return float(prune_above(ranking.cost[k - 1], size, margin))
    return float(np.nextafter(ranking.values[CEILING], np.inf))


@kernel
def rank(ranking: Ranking, labels: IntArray, cost: float) -> None:
    """Puts a labelling where it belongs, after its equals, if it is among the best."""
    n, k = ranking.facts[N_FOUND], ranking.cost.size
    if n == k:
        if not cost < ranking.cost[k - 1]:
            return
        n -= 1
    at, slot = n, ranking.slot[n]
    while at > 0 and cost < ranking.cost[at - 1]:
        ranking.cost[at], ranking.slot[at] = ranking.cost[at - 1], ranking.slot[at - 1]
        at -= 1
    ranking.cost[at], ranking.slot[at] = cost, slot
    ranking.facts[N_FOUND] = n + 1
    for v in range(labels.size):
        ranking.labels[slot, v] = labels[v]


@inlined_kernel
def entry_of(plan: Plan, n: int, labels: IntArray) -> int:
    """Returns the entry of elimination step `n`, from 0, that the labels of its neighbours select."""
    e = 0
    for a in range(plan.scope_first[n], plan.scope_first[n + 1]):
        e += plan.stride[a] * labels[plan.scope[a]]
    return e


@inlined_kernel
def take(plan: Plan, n: int, c: int, labels: IntArray) -> None:
    """Gives the variables of elimination step `n` the labels of sum `c`."""
    at = plan.sum_at[plan.form[n]] + c
    labels[plan.variable[n]] = plan.sum_label[at]
    if plan.partner[n] >= 0:
        labels[plan.partner[n]] = plan.sum_partner[at]


@kernel
def lower_ceiling(
    instance: Instance,
    reduced: Reduced,
    total: float,
    labels: IntArray,
    way: Restoring,
    ranking: Ranking,
    limits: Limits,
) -> None:
    """Completes the labels of the rest at their best, and lowers the ceiling to the cost of labellings near that."""
    _, cost, table = instance
    plan, work = reduced.plan, reduced.left.table
    k, n_known = limits.near, 1
    way.smallest[0] = 0.0
    for m in range(plan.variable.size):
        n = plan.variable.size - 1 - m
        form = plan.form[n]
        first = plan.entry_at[form] + entry_of(plan, n, labels)
        chosen, least = -1, np.inf
        for c in range(plan.sum_first[first], plan.sum_first[first + 1]):
            value = combine(plan, cost, table, work, n, form, c)
            if value < least:
                least, chosen = value, c
        if chosen < 0:
            return
        for c in range(plan.sum_first[first], plan.sum_first[first + 1]):
            more = combine(plan, cost, table, work, n, form, c) - least
            if c == chosen or not more < np.inf or (n_known == k and not more < way.smallest[k - 1]):
                continue
            at = n_known if n_known < k else k - 1
            n_known = at + 1
            while at > 0 and more < way.smallest[at - 1]:
                way.smallest[at] = way.smallest[at - 1]
                at -= 1
            way.smallest[at] = more
        take(plan, n, chosen, labels)
    if n_known == k:
        ceiling = total + way.smallest[k - 1]
        ceiling += FINE * allowance(ceiling, limits.size) + 4.0 * limits.slip
        ranking.values[CEILING] = min(ranking.values[CEILING], ceiling)
        while ranking.facts[N_FOUND] and ranking.cost[ranking.facts[N_FOUND] - 1] > ranking.values[CEILING]:
            ranking.facts[N_FOUND] -= 1


@kernel
def complete_all(
    instance: Instance,
    reduced: Reduced,
    total: float,
    labels: IntArray,
    way: Restoring,
    ranking: Ranking,
    limits: Limits,
    stop_flag: IntArray,
) -> bool:
    """Completes the labels of the rest, which cost `total`, in every way that is cheap enough; false if stopped."""
    graph, cost, table = instance
    plan, work = reduced.plan, reduced.left.table
    n_steps = plan.variable.size
    if ranking.facts[N_FOUND] < ranking.cost.size:
        lower_ceiling(instance, reduced, total, labels, way, ranking, limits)
    level, entering = 0, True
    way.total[0] = total
    while level >= 0:
        if level == n_steps:
            found = total_cost(graph, cost, table, labels)
            if found < np.inf:
                rank(ranking, labels, found)
            level, entering = level - 1, False
            continue
        n = n_steps - 1 - level
        form, e = plan.form[n], entry_of(plan, n, labels)
        if entering:
            first = plan.entry_at[form] + e
            way.sum[level], way.end[level] = plan.sum_first[first], plan.sum_first[first + 1]
        entering = False
        while way.sum[level] < way.end[level]:
            c = way.sum[level]
            way.sum[level] += 1
            after = way.total[level] + (combine(plan, cost, table, work, n, form, c) - work[plan.out_first[n] + e])
            if after < enough_to_prune(ranking, limits.size, 0.0):
                take(plan, n, c, labels)
                way.total[level + 1] = after
                entering = True
                break
        if not entering:
            level -= 1
            continue
        level += 1
        ranking.facts[RANKED_NODES] += 1
        if ranking.facts[RANKED_NODES] >= limits.max_nodes or stopped(stop_flag):
            return False
    return True


@kernel
def dive_for_all(
    instance: Instance,
    reduced: Reduced,
    dual: Dual,
    tree: Tree,
    labels: IntArray,
    way: Restoring,
    ranking: Ranking,
    limits: Limits,
) -> bool:
    """Searches the labellings of the rest depth first, as `dive` does, and completes each; false if stopped."""
    plan, facts = reduced.plan, ranking.facts
    small, kept_cost, work = reduced.left
    if not prepare(small, kept_cost, work, dual, tree):
        return True
    margin = limits.slip - message_rounding(small, dual)
    bound, chosen = assess(small, tree, 0)
    if bound >= enough_to_prune(ranking, limits.size, margin):
        return True
    outcome, (level, n_changed, n_rows_changed, _) = LEAF, open_root(tree, chosen)
    while outcome == LEAF:
        cursor = Cursor(level, n_changed, n_rows_changed, facts[RANKED_NODES])
        enough = enough_to_prune(ranking, limits.size, margin)
        outcome, (level, n_changed, n_rows_changed, n_nodes) = next_leaf(
            small, work, dual, tree, cursor, enough, limits.max_nodes
        )
        facts[RANKED_NODES] = n_nodes
        total = total_cost(small, kept_cost, work, tree.labels) if outcome == LEAF else np.inf
        if total < np.inf and rows_hold(small, tree.labels):
            for x in range(plan.keep.size):
                labels[plan.keep[x]] = tree.labels[x]
            if not complete_all(instance, reduced, total, labels, way, ranking, limits, dual.stop_flag):
                return False
    return bool(outcome == FINISHED)


@driver
def rank_labellings(
    batch: BatchArrays,
    reduced: IntArray,
    sweeps: int,
    max_nodes: int,
    problems: IntArray,
    given: Ranking,
    stop_flag: IntArray,
) -> None:
    """Ranks the best labellings of the only problem; `reduced` is as for `certify_some`."""
    n = space_for(batch, problems, reduced)
    k = given.cost.size
    ranking = Ranking(
        part(given.cost, 0, k),
        part(given.slot, 0, k),
        grid(part(given.labels, 0, given.labels.size), k, n.given),
        part(given.values, 0, 2),
        part(given.facts, 0, 3),
    )
    instance = instance_of(batch, 0)
    graph, cost, table = instance
    plan, small = plan_at(reduced[0, 0]), graph_at(reduced[0, 1])
    n_steps = plan.variable.size
    n_floats = n.work, n.labels, together(dual_floats(n)), together(tree_floats(n, 0)), n_steps + 1, k
    n_ints = n.variables, n.variables, n.given, together(tree_ints(n, 0)), n_steps, n_steps
    floats, ints = np.zeros(together(n_floats)), np.zeros(together(n_ints), dtype=np.int64)
    work, kept_cost, for_dual, for_tree, way_total, way_smallest = split(floats, n_floats)
    kept, trial, labels, tree_indices, way_sum, way_end = split(ints, n_ints)
    dual, tree = make_dual(n, for_dual, part(stop_flag, 0, stop_flag.size)), make_tree(n, 0, for_tree, tree_indices)
    left = Reduced(plan, Instance(small, kept_cost, work))
    way = Restoring(way_total, way_sum, way_end, way_smallest)
    facts, values = ranking.facts, ranking.values
    facts[N_FOUND], facts[RANKED_NODES], facts[RANKED_ALL] = 0, 0, 0
    values[CEILING], values[RANKED_BOUND] = np.inf, -np.inf
    _, size = cheapest(graph, cost, table, labels)
    stop_flag[CURRENT] = 1
    if size < OVERFLOW:  # else sums may overflow
        slip = rounding(graph, size)
        constant = eliminate(plan, cost, table, work, kept_cost, dual.stop_flag)
        possible = constant < np.inf  # or nan: it was stopped
        if possible and small.order.size == 0:
            values[RANKED_BOUND] = constant - slip
            possible = rows_hold(graph, kept)
        elif possible:
            for at in range(small.first[1]):  # as a part of the costs, as in `certify`
                kept_cost[at] += constant
            start_dual(small, kept_cost, dual)
            known = Known(kept, size, slip, 0.0)
            outcome, _, _, _ = prove(left.left, sweeps, dual, np.inf, known, trial, -1)
            values[RANKED_BOUND] = safe_bound(small, kept_cost, work, dual) - slip
            possible = outcome != INFEASIBLE
        if not possible and constant == constant:
            facts[RANKED_ALL], values[RANKED_BOUND] = 1, np.inf
        near = 1
        while 1 << (near - 1) < k:
            near += 1
        while possible:
            limits = Limits(size, slip, max_nodes, min(near, k))
            for x in range(k):
                ranking.slot[x] = x
            facts[N_FOUND], values[CEILING] = 0, np.inf
            if small.order.size == 0:
                facts[RANKED_ALL] = complete_all(instance, left, constant, labels, way, ranking, limits, dual.stop_flag)
            else:
                facts[RANKED_ALL] = dive_for_all(instance, left, dual, tree, labels, way, ranking, limits)
            if not facts[RANKED_ALL] or facts[N_FOUND] == k or values[CEILING] == np.inf:
                break
            near += 1 + near // 2
        if facts[N_FOUND] == k:  # where rounding is too large nothing is proved
            facts[RANKED_ALL] &= 16.0 * slip <= allowance(ranking.cost[k - 1], size)
    stop_flag[CURRENT] = 0
    keep((floats, ints, stop_flag, given))

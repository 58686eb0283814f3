"""From a problem that earlier steps left open to a proved answer: eliminate, sweep, branch, put back.

Where only rules are left, and many, another driver searches, so that no other problems wait for it to compile.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import driver, inlined_kernel, keep, part, split
from hasten.kernels.layout import Arrays, BatchArrays, Instance, graph_at, instance_of, labels_of, stopped, together
from hasten.kernels.score import total_cost
from hasten.kernels.tolerance import is_proved, prune_above
from hasten.proof import outcome as status
from hasten.proof.branch import space as room
from hasten.proof.branch.dive import FINISHED, LIMIT, Effort, Tree, branch, dive
from hasten.proof.branch.tighten import DIVED, SLOWER, Search, Tight, search_nothing, search_rows
from hasten.proof.elimination.kernels import Plan, eliminate, plan_at, restore
from hasten.proof.outcome import Proofs, State, copy_labels, integral_gap, rounding, take_bound
from hasten.proof.sweep.dual import Dual, safe_bound, start_dual
from hasten.proof.sweep.sweeping import FEW_OPEN, Known, prove
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.clock import CURRENT, STOP_ALL


class Reduced(NamedTuple):
    """A problem after elimination."""

    plan: Plan
    left: Instance  # its tables are the derived ones, of which the plan makes use to put variables back


class Scratch(NamedTuple):
    """Scratch space for the largest problem of a call."""

    work: FloatArray  # derived tables
    cost: FloatArray  # costs of the variables that elimination leaves
    dual: Dual
    tree: Tree
    kept: IntArray  # the best labelling of these
    trial: IntArray
    labels: IntArray  # a labelling of all variables
    tight: Tight


@inlined_kernel
def certify(
    instance: Instance,
    reduced: Reduced,
    effort: Effort,
    scratch: Scratch,
    labels: IntArray,
    best_cost: float,
    size: float,
    search: Search,
) -> tuple[int, float, float, int, int, int]:
    """Proves the labelling given, of `best_cost` (inf: none), or finds a better one, as far as the effort goes.

    `size` is that of the terms (`hasten.proof.outcome`); `search` goes on where there is space for that.
    Returns the outcome, the cost, the bound, the last step, and how many sweeps and nodes that took.
    """
    if size == np.inf:  # sums may overflow
        return status.OPEN, best_cost, -np.inf, status.ELIMINATE, 0, 0
    left, small, stop_flag = reduced.left, reduced.left.graph, scratch.dual.stop_flag
    slip = rounding(instance.graph, size)
    constant = eliminate(reduced.plan, instance.cost, instance.table, scratch.work, scratch.cost, stop_flag)
    if constant != constant:  # it was stopped
        return status.OPEN, best_cost, -np.inf, status.ELIMINATE, 0, 0
    if constant == np.inf:
        return status.INFEASIBLE, np.inf, np.inf, status.ELIMINATE, 0, 0
    for at in range(small.first[1]):  # so that these variables cost as much as all do
        scratch.cost[at] += constant
    gap = integral_gap(instance, size, slip)
    known = Known(scratch.kept, size, slip, gap)
    start_dual(small, scratch.cost, scratch.dual)
    few, max_nodes, by_rows = effort.first_sweeps, effort.max_nodes, scratch.tight.kept.size > 0
    if small.row_low.size:
        work = (SLOWER if by_rows else 1) * (1 + small.first[small.order.size] + small.cell_row.size)  # of a node
        few, max_nodes = effort.row_sweeps, min(max_nodes, max(effort.row_nodes, effort.row_work // work))
    few = min(few, effort.max_sweeps) if max_nodes else effort.max_sweeps
    stop_at = FEW_OPEN if max_nodes else -1
    outcome, least, bound, n_sweeps = prove(left, few, scratch.dual, best_cost, known, scratch.trial, stop_at)
    step, ended, n_nodes = status.SWEEP, LIMIT, 0
    if outcome == status.OPEN and max_nodes > 0 and not stopped(stop_flag):
        step, nodes = status.BRANCH, min(effort.dive_nodes, max_nodes)
        if by_rows:
            nodes = min(nodes, DIVED // max(small.order.size, 1))
        nodes = max(nodes, small.order.size + 1)
        if effort.strict and nodes > max_nodes:  # it would hardly reach a labelling
            nodes = 0 if by_rows else max_nodes
        if nodes:
            ended, least, n_nodes = dive(left, scratch.dual, scratch.tree, nodes, least, known)
    if outcome == status.OPEN and ended == LIMIT and by_rows:
        bound = max(bound, safe_bound(small, scratch.cost, scratch.work, scratch.dual))
        nodes = max_nodes - (n_nodes if effort.strict else n_nodes // SLOWER)
        if (nodes > 0 or not effort.strict) and not stopped(stop_flag):
            ended, least, more = search(left, scratch.dual, scratch.tight, nodes, least, known)
            n_nodes += more
    elif outcome == status.OPEN and ended == LIMIT:
        if effort.max_sweeps > n_sweeps and not stopped(stop_flag):
            few = effort.max_sweeps - n_sweeps
            outcome, least, higher, more = prove(left, few, scratch.dual, least, known, scratch.trial, -1)
            bound, n_sweeps = max(bound, higher), n_sweeps + more
        if outcome == status.OPEN:
            bound = max(bound, safe_bound(small, scratch.cost, scratch.work, scratch.dual))
            nodes = max_nodes - n_nodes
            if nodes > 0 and not stopped(stop_flag):
                ended, least, more = branch(left, scratch.dual, scratch.tree, effort, nodes, least, known)
                n_nodes += more
    if outcome == status.INFEASIBLE or (ended == FINISHED and least == np.inf):
        return status.INFEASIBLE, np.inf, np.inf, step, n_sweeps, n_nodes
    bound -= slip
    if gap > 0.0:
        bound = np.ceil(bound)
    if ended == FINISHED:
        bound = max(bound, least if gap > 0.0 else prune_above(least, size, 2.0 * slip))
    if least < best_cost:
        restore(reduced.plan, instance.cost, instance.table, scratch.work, scratch.kept, scratch.labels)
        found = total_cost(instance.graph, instance.cost, instance.table, scratch.labels)
        if found < best_cost:
            best_cost = found
            copy_labels(scratch.labels, labels)
    bound = min(bound, best_cost)
    outcome = status.PROVED if is_proved(best_cost, bound, size) else status.OPEN
    return outcome, best_cost, bound, step, n_sweeps, n_nodes


@inlined_kernel
def certify_each(
    batch: BatchArrays,
    problems: IntArray,
    proofs: Proofs,
    reduced: IntArray,
    effort: Effort,
    stop_flag: IntArray,
    by_rows: bool,
    search: Search,
) -> None:
    """Certifies some problems in scratch space for the largest of them."""
    n = room.space_for(batch, problems, reduced)
    levels = room.n_levels(n, effort.max_nodes, effort.dive_nodes) if effort.max_nodes > 0 and not by_rows else 0
    n_floats = n.work, n.labels, together(room.dual_floats(n)), together(room.tree_floats(n, levels)), n.labels + n.rows
    n_tight = n.variables, n.rows, n.variables, n.variables + 1, n.variables + 1
    n_ints = n.variables, n.variables, n.given, together(room.tree_ints(n, levels)), together(n_tight)
    floats, ints = np.zeros(together(n_floats)), np.zeros(together(n_ints), dtype=np.int64)
    nodes = np.empty(n.kept if by_rows and effort.max_nodes > 0 else 0)
    work, cost, for_dual, for_tree, for_tight = split(floats, n_floats)
    kept, trial, restored, tree_indices, tight_indices = split(ints, n_ints)
    dual = room.make_dual(n, for_dual, part(stop_flag, 0, stop_flag.size))
    tree = room.make_tree(n, levels, for_tree, tree_indices)
    by_row = split(for_tight, (n.labels, n.rows)) + split(tight_indices, n_tight) + (part(nodes, 0, nodes.size),)
    scratch = Scratch(work, cost, dual, tree, kept, trial, restored, Tight(*by_row))
    values, facts = proofs.values, proofs.facts
    for x in range(problems.size):
        p = problems[x]
        given, floor, size = values[status.BEST, p], values[status.BOUND, p], values[status.SIZE, p]
        stop_flag[CURRENT] = x + 1
        if stop_flag[STOP_ALL]:
            facts[status.OUTCOME, p], values[status.BOUND, p] = status.STOPPED, min(floor, given)
            continue
        left = Instance(graph_at(reduced[x, 1]), cost, work)
        after, mine = Reduced(plan_at(reduced[x, 0]), left), labels_of(batch, proofs.labels, p)
        outcome, best, bound, step, n_sweeps, n_nodes = certify(
            instance_of(batch, p), after, effort, scratch, mine, given, size, search
        )
        if outcome == status.OPEN and stopped(scratch.dual.stop_flag):
            outcome = status.STOPPED
        values[status.BEST, p], values[status.BOUND, p] = best, bound
        facts[status.OUTCOME, p], facts[status.STEP, p] = outcome, step
        facts[status.N_SWEEPS, p], facts[status.N_NODES, p] = n_sweeps, n_nodes
        facts[status.LABELS_BY, p] = step if best != given or given == np.inf else status.GIVEN
        if values[status.BOUND, p] < floor:  # of an earlier step
            take_bound(proofs, p, floor, size)
    stop_flag[CURRENT] = 0
    keep((floats, ints, nodes, stop_flag))


@driver
def certify_some(
    arrays: Arrays, problems: IntArray, state: State, reduced: IntArray, effort: tuple[int, ...], stop_flag: IntArray
) -> None:
    """Certifies problems that elimination leaves open, but for those of `certify_ruled`.

    `reduced` has, for each problem, the addresses of its plan and of the graph that it leaves. `stop_flag` tells the
    calling thread which problem is worked on, counted from 1, and is told whether to stop.
    """
    batch, proofs = BatchArrays(*arrays), Proofs(*state)
    certify_each(batch, problems, proofs, reduced, Effort(*effort), stop_flag, False, search_nothing)


@driver
def certify_ruled(
    arrays: Arrays, problems: IntArray, state: State, reduced: IntArray, effort: tuple[int, ...], stop_flag: IntArray
) -> None:
    """Certifies some problems of which elimination leaves rules alone, and many."""
    batch, proofs = BatchArrays(*arrays), Proofs(*state)
    certify_each(batch, problems, proofs, reduced, Effort(*effort), stop_flag, True, search_rows)

"""From a problem that was not proved at sight to a proved answer: eliminate, sweep, branch, put back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import driver, kernel
from hasten.kernels.eliminate import Plan, PlanPool, eliminate, restore, view_plan
from hasten.kernels.layout import Graph, Pool, view
from hasten.kernels.proof import dual as d
from hasten.kernels.proof.branch import FINISHED, LIMIT, Tree, branch, dive, make_tree, prune_above
from hasten.kernels.proof.look import rounding
from hasten.kernels.proof.outcome import BRANCHING, ELIMINATION, GIVEN, INFEASIBLE, OPEN, PROVED, SWEEPS
from hasten.kernels.rows import rows_hold
from hasten.kernels.score import total_cost
from hasten.kernels.tolerance import is_proved
from hasten.support.arrays import FloatArray, IntArray


class Effort(NamedTuple):
    """How hard to try."""

    first_sweeps: int  # before the first dive
    row_sweeps: int  # the same, where rows are left
    max_sweeps: int
    max_nodes: int  # 0: do not branch
    row_nodes: int  # the same, where rows are left: what sweeps do not prove then, a solver's linear program does
    node_sweeps: int  # sweeps at each split
    dive_nodes: int  # nodes of each dive


class Room(NamedTuple):
    """Working space for the largest of some problems."""

    work: FloatArray  # derived tables
    cost: FloatArray  # costs of what is left after elimination
    dual: d.Dual
    tree: Tree
    kept: IntArray  # the best labelling of what is left
    trial: IntArray
    labels: IntArray  # a whole labelling


@kernel
def certify(
    graph: Graph,
    plan: Plan,
    small: Graph,
    cost: FloatArray,
    table: FloatArray,
    start: FloatArray,
    effort: Effort,
    room: Room,
    labels: IntArray,
    best_cost: float,
    size: float,
) -> tuple[int, float, float, int, int, int]:
    """Proves the labelling given, of `best_cost` (inf: none), or finds a better one, as far as the effort goes.

    `size` is that of the terms (`hasten.kernels.proof.look`).
    Returns the outcome, the cost, the bound, the last step, and how many sweeps and nodes that took.
    """
    if size == np.inf:  # sums may overflow
        return OPEN, best_cost, -np.inf, ELIMINATION, 0, 0
    slip = rounding(graph, size)
    constant = eliminate(plan, cost, table, room.work, room.cost)
    if constant == np.inf:
        return INFEASIBLE, np.inf, np.inf, ELIMINATION, 0, 0
    if small.order.size == 0:
        if not rows_hold(graph, room.kept):
            return INFEASIBLE, np.inf, np.inf, ELIMINATION, 0, 0
        best_cost = put_back(graph, plan, cost, table, room, labels, best_cost)
        return settle(best_cost, constant - slip, size, ELIMINATION, 0, 0)
    for at in range(small.first[1]):  # as a part of the costs, so that what is left costs what the whole does
        room.cost[at] += constant
    d.start_dual(small, room.cost, start, room.dual)
    few, max_nodes = effort.first_sweeps, effort.max_nodes
    if small.row_low.size:
        few, max_nodes = effort.row_sweeps, effort.row_nodes
    few = min(few, effort.max_sweeps) if max_nodes else effort.max_sweeps
    outcome, least, bound, n_sweeps = d.prove(
        small, room.cost, room.work, few, room.dual, room.kept, best_cost, room.trial, size
    )
    step, ended, n_nodes = SWEEPS, LIMIT, 0
    if outcome == OPEN and max_nodes > 0:
        step = BRANCHING
        nodes = max(min(effort.dive_nodes, max_nodes), small.order.size + 1)
        ended, least, n_nodes = dive(
            small, room.cost, room.work, room.dual, room.tree, nodes, least, room.kept, size, slip
        )
    if outcome == OPEN and ended == LIMIT and effort.max_sweeps > n_sweeps:
        outcome, least, higher, more = d.prove(
            small, room.cost, room.work, effort.max_sweeps - n_sweeps, room.dual, room.kept, least, room.trial, size
        )
        bound, n_sweeps = max(bound, higher), n_sweeps + more
    if outcome == INFEASIBLE:
        return INFEASIBLE, np.inf, np.inf, step, n_sweeps, n_nodes
    if outcome == OPEN and ended == LIMIT and max_nodes > n_nodes:
        ended, least, more = branch(
            small, room.cost, room.work, room.dual, room.tree, d.n_messages(small),
            effort.node_sweeps, effort.dive_nodes, max_nodes - n_nodes, least, room.kept, size, slip,
        )  # fmt: skip
        n_nodes += more
    bound -= slip
    if ended == FINISHED:
        if least == np.inf:
            return INFEASIBLE, np.inf, np.inf, step, n_sweeps, n_nodes
        bound = max(bound, prune_above(least, size, 2.0 * slip))
    if least < best_cost:
        best_cost = put_back(graph, plan, cost, table, room, labels, best_cost)
    return settle(best_cost, bound, size, step, n_sweeps, n_nodes)


@kernel
def put_back(
    graph: Graph,
    plan: Plan,
    cost: FloatArray,
    table: FloatArray,
    room: Room,
    labels: IntArray,
    best_cost: float,
) -> float:
    """Completes the best labelling of what is left; returns the cost of the better of that and the one given."""
    restore(plan, graph.first, cost, table, room.work, room.kept, room.labels)
    found = total_cost(graph, cost, table, room.labels)
    if found < best_cost:
        d.copy_labels(room.labels, labels)
        return found
    return best_cost


@kernel
def settle(
    best_cost: float, bound: float, size: float, step: int, n_sweeps: int, n_nodes: int
) -> tuple[int, float, float, int, int, int]:
    """Says whether a cost is proved by a bound."""
    bound = min(bound, best_cost)
    return PROVED if is_proved(best_cost, bound, size) else OPEN, best_cost, bound, step, n_sweeps, n_nodes


@driver
def make_room(pool: Pool, plans: PlanPool, smalls: Pool, structure: IntArray, problems: IntArray, deep: bool) -> Room:
    """Returns working space for some problems."""
    most = np.zeros(8, dtype=np.int64)
    seen = np.zeros(pool.at.shape[0], dtype=np.bool_)
    for p in problems:
        s = structure[p]
        if seen[s]:
            continue
        seen[s] = True
        graph, plan, small = view(pool, s), view_plan(plans, s), view(smalls, s)
        sizes = (
            plan.out_first[-1] + plan.copy_from.size,
            small.first[-1],
            d.n_messages(small),
            small.row_low.size,
            d.n_marginals(small),
            small.order.size,
            small.table_at.size,
            graph.order.size,
        )
        for x in range(8):
            most[x] = max(most[x], sizes[x])
    return Room(
        np.zeros(most[0]),
        np.zeros(most[1]),
        d.make_dual(most[1], most[2], most[3], most[4]),
        make_tree(most[5], most[1], most[3], most[6], most[2], deep),
        np.zeros(most[5], dtype=np.int64),
        np.zeros(most[5], dtype=np.int64),
        np.zeros(most[7], dtype=np.int64),
    )


@driver
def certify_some(
    pool: Pool,
    plans: PlanPool,
    smalls: Pool,
    structure: IntArray,
    cost: FloatArray,
    cost_at: IntArray,
    table: FloatArray,
    table_at: IntArray,
    variable_at: IntArray,
    start: FloatArray,
    effort: Effort,
    problems: IntArray,
    size: FloatArray,
    labels: IntArray,
    best_cost: FloatArray,
    bound: FloatArray,
    outcome: IntArray,
    step: IntArray,
    labels_by: IntArray,
    n_sweeps: IntArray,
    n_nodes: IntArray,
    message_sum: FloatArray,
    message_count: IntArray,
) -> None:
    """Certifies some problems, best those of one structure together: it is then viewed only once.

    Adds the messages of the proved ones up, if there is room for sums.
    """
    if problems.size == 0:
        return
    room = make_room(pool, plans, smalls, structure, problems, effort.max_nodes > 0)
    s = structure[problems[0]]
    graph, plan, small = view(pool, s), view_plan(plans, s), view(smalls, s)
    for p in problems:
        if structure[p] != s:
            s = structure[p]
            graph, plan, small = view(pool, s), view_plan(plans, s), view(smalls, s)
        given = best_cost[p]
        outcome[p], best_cost[p], bound[p], step[p], n_sweeps[p], n_nodes[p] = certify(
            graph,
            plan,
            small,
            cost[cost_at[p] : cost_at[p + 1]],
            table[table_at[p] :],
            start,
            effort,
            room,
            labels[variable_at[p] : variable_at[p + 1]],
            given,
            size[p],
        )
        labels_by[p] = step[p] if best_cost[p] != given or given == np.inf else GIVEN
        if message_sum.size and outcome[p] == PROVED:
            d.add_messages(small, room.dual, message_sum, message_count)

"""From a problem that looking and mending left open to a proved answer: eliminate, sweep, branch, put back.

Where many rules are all that is left, another driver searches; nobody else waits for that to compile.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import driver, grid, inlined_kernel, keep, kernel, part, split
from hasten.kernels.eliminate import Plan, eliminate, plan_at, restore
from hasten.kernels.layout import BatchArrays, Graph, Instance, graph_at, graph_of, instance_of, labels_of
from hasten.kernels.proof import dual as d
from hasten.kernels.proof.branch import branch
from hasten.kernels.proof.dive import FINISHED, LIMIT, Known, Tree, dive
from hasten.kernels.proof.look import rounding
from hasten.kernels.proof.multipliers import NOTED, SPACE
from hasten.kernels.proof.outcome import (
    BEST,
    BOUND,
    BRANCH,
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
    STOPPED,
    SWEEP,
    Proofs,
)
from hasten.kernels.proof.sweeping import FEW_OPEN, prove
from hasten.kernels.proof.tighten import DIVED, SLOWER, Search, Tight, n_kept, search_nothing, search_rows
from hasten.kernels.proof.watch import stopped
from hasten.kernels.proof.whole import whole_gap
from hasten.kernels.score import total_cost
from hasten.kernels.tolerance import is_proved, prune_above
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.clock import ALL, AT


class Effort(NamedTuple):
    """How hard to try."""

    first_sweeps: int  # before the first dive
    row_sweeps: int  # the same, where rows are left
    max_sweeps: int
    max_nodes: int  # 0: do not branch
    row_nodes: int  # the least of them to allow where rows are left
    row_work: int  # and as many as this makes, each going through all labels and cells that are left
    node_sweeps: int  # sweeps at each split
    dive_nodes: int  # nodes of each dive


class Messages(NamedTuple):
    """Where messages start, and space to add up where they end; each empty if that is not wanted."""

    start: FloatArray  # (n_messages,) by factor kind, role and label
    total: FloatArray  # (n_messages,) over the problems that are proved
    times: IntArray  # (n_messages,) of how many


class Scratch(NamedTuple):
    """Scratch space for the largest of some problems."""

    work: FloatArray  # derived tables
    cost: FloatArray  # costs of what is left after elimination
    dual: d.Dual
    tree: Tree
    kept: IntArray  # the best labelling of what is left
    trial: IntArray
    labels: IntArray  # a whole labelling
    tight: Tight


@inlined_kernel
def certify(
    instance: Instance,
    plan: Plan,
    small: Graph,
    start: FloatArray,
    effort: Effort,
    scratch: Scratch,
    labels: IntArray,
    best_cost: float,
    size: float,
    search: Search,
) -> tuple[int, float, float, int, int, int]:
    """Proves the labelling given, of `best_cost` (inf: none), or finds a better one, as far as the effort goes.

    `size` is that of the terms (`hasten.kernels.proof.look`); `search` goes on where there is space for that.
    Returns the outcome, the cost, the bound, the last step, and how many sweeps and nodes that took.
    """
    if size == np.inf:  # sums may overflow
        return OPEN, best_cost, -np.inf, ELIMINATE, 0, 0
    slip = rounding(instance.graph, size)
    constant = eliminate(plan, instance.cost, instance.table, scratch.work, scratch.cost)
    if constant == np.inf:
        return INFEASIBLE, np.inf, np.inf, ELIMINATE, 0, 0
    for at in range(small.first[1]):  # as a part of the costs, so that what is left costs what the whole does
        scratch.cost[at] += constant
    gap = whole_gap(instance, size, slip)
    left, known = Instance(small, scratch.cost, scratch.work), Known(scratch.kept, size, slip, gap)
    d.start_dual(small, scratch.cost, start, scratch.dual)
    few, max_nodes, by_rows = effort.first_sweeps, effort.max_nodes, scratch.tight.kept.size > 0
    if small.row_low.size:
        few, max_nodes = effort.row_sweeps, nodes_with_rows(small, effort, SLOWER if by_rows else 1)
    few = min(few, effort.max_sweeps) if max_nodes else effort.max_sweeps
    outcome, least, bound, n_sweeps = prove(
        left, few, scratch.dual, scratch.kept, best_cost, scratch.trial, size, gap, FEW_OPEN if max_nodes else -1
    )
    step, ended, n_nodes = SWEEP, LIMIT, 0
    if outcome == OPEN and max_nodes > 0:
        step, nodes = BRANCH, min(effort.dive_nodes, max_nodes)
        if by_rows:
            nodes = min(nodes, DIVED // max(small.order.size, 1))
        nodes = max(nodes, small.order.size + 1)
        ended, least, n_nodes = dive(left, scratch.dual, scratch.tree, nodes, least, known)
    if outcome == OPEN and ended == LIMIT and by_rows:
        bound = max(bound, d.safe_bound(small, scratch.cost, scratch.work, scratch.dual))
        nodes = max_nodes - n_nodes // SLOWER
        ended, least, more = search(left, scratch.dual, scratch.tight, nodes, least, known)
        n_nodes += more
    if outcome == OPEN and ended == LIMIT and effort.max_sweeps > n_sweeps and not by_rows:
        few = effort.max_sweeps - n_sweeps
        outcome, least, higher, more = prove(left, few, scratch.dual, scratch.kept, least, scratch.trial, size, gap, -1)
        bound, n_sweeps = max(bound, higher), n_sweeps + more
    if outcome == OPEN and ended == LIMIT and not by_rows:
        bound = max(bound, d.safe_bound(small, scratch.cost, scratch.work, scratch.dual))
    if outcome == INFEASIBLE:
        return INFEASIBLE, np.inf, np.inf, step, n_sweeps, n_nodes
    if outcome == OPEN and ended == LIMIT and max_nodes > n_nodes and not by_rows:
        nodes = max_nodes - n_nodes
        ended, least, more = branch(
            left, scratch.dual, scratch.tree, effort.node_sweeps, effort.dive_nodes, nodes, least, known
        )
        n_nodes += more
    bound -= slip
    if gap > 0.0:
        bound = np.ceil(bound)
    if ended == FINISHED:
        if least == np.inf:
            return INFEASIBLE, np.inf, np.inf, step, n_sweeps, n_nodes
        bound = max(bound, least if gap > 0.0 else prune_above(least, size, 2.0 * slip))
    if least < best_cost:
        best_cost = put_back(instance, plan, scratch, labels, best_cost)
    return settle(best_cost, bound, size, step, n_sweeps, n_nodes)


@kernel
def nodes_with_rows(graph: Graph, effort: Effort, slower: int) -> int:
    """Returns how many nodes to allow where rows are left, given how many times as long as in a dive one takes."""
    work = slower * (1 + graph.first[graph.order.size] + graph.cell_row.size)
    nodes: int = min(effort.max_nodes, max(effort.row_nodes, effort.row_work // work))
    return nodes


@kernel
def put_back(instance: Instance, plan: Plan, scratch: Scratch, labels: IntArray, best_cost: float) -> float:
    """Completes the best labelling of what is left; returns the cost of the better of that and the one given."""
    graph, cost, table = instance
    restore(plan, cost, table, scratch.work, scratch.kept, scratch.labels)
    found = total_cost(graph, cost, table, scratch.labels)
    if found < best_cost:
        d.copy_labels(scratch.labels, labels)
        return found
    return best_cost


@kernel
def settle(
    best_cost: float, bound: float, size: float, step: int, n_sweeps: int, n_nodes: int
) -> tuple[int, float, float, int, int, int]:
    """Says whether a cost is proved by a bound."""
    bound = min(bound, best_cost)
    return PROVED if is_proved(best_cost, bound, size) else OPEN, best_cost, bound, step, n_sweeps, n_nodes


@kernel
def add_messages(graph: Graph, dual: d.Dual, message_sum: FloatArray, message_count: IntArray) -> None:
    """Adds the messages of one problem to the sums of their kinds and roles."""
    for a in range(graph.scope.size):
        if graph.table_at[graph.factor_of[a]] < 0:
            continue
        v = graph.scope[a]
        for i in range(graph.first[v + 1] - graph.first[v]):
            if dual.belief[graph.first[v] + i] < np.inf:
                message_sum[graph.start_at[a] + i] += dual.message[graph.message_at[a] + i]
                message_count[graph.start_at[a] + i] += 1


class Sizes(NamedTuple):
    """The largest of some problems, count by count."""

    work: int  # derived tables and copies of others
    labels: int  # of what is left after elimination; and so on
    messages: int
    rows: int
    marginals: int
    variables: int
    factors: int
    links: int
    most: int  # labels of one variable
    given: int  # variables before elimination
    kept: int  # numbers that a search by rows keeps


@kernel
def largest(batch: BatchArrays, reduced: IntArray, problems: IntArray) -> Sizes:
    """Returns the sizes that scratch space for some problems needs."""
    most, s = Sizes(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), 0
    for x in range(problems.size):
        if reduced[x, 0] == s:
            continue
        s = reduced[x, 0]
        graph, plan, small = graph_of(batch, problems[x]), plan_at(s), graph_at(reduced[x, 1])
        n_labels = small.first[small.order.size]
        most = Sizes(
            max(most.work, plan.out_first[plan.variable.size] + plan.copy_from.size),
            max(most.labels, n_labels),
            max(most.messages, d.n_messages(small)),
            max(most.rows, small.row_low.size),
            max(most.marginals, d.n_marginals(small)),
            max(most.variables, small.order.size),
            max(most.factors, small.table_at.size),
            max(most.links, small.link_row.size),
            max(most.most, most_labels(small)),
            max(most.given, graph.order.size),
            max(most.kept, n_kept(small)),
        )
    return most


@kernel
def most_labels(graph: Graph) -> int:
    """Returns how many labels the variable with the most has."""
    most = 0
    for v in range(graph.order.size):
        most = max(most, graph.first[v + 1] - graph.first[v])
    return most


@kernel
def numbers(sizes: tuple[int, ...]) -> int:
    """Returns how many numbers there are in all."""
    total = 0
    for size in sizes:
        total += size
    return total


@inlined_kernel
def certify_each(
    batch: BatchArrays,
    reduced: IntArray,
    messages: Messages,
    effort: Effort,
    problems: IntArray,
    proofs: Proofs,
    watch: IntArray,
    by_rows: bool,
    search: Search,
) -> None:
    """Certifies some problems in scratch space for the largest of them."""
    n = largest(batch, reduced, problems)
    levels = effort.max_nodes // max(effort.dive_nodes, 1) + 3  # each takes a dive that ran out
    levels = min(levels, n.variables + 1) if effort.max_nodes > 0 else 0
    real = (
        n.work, n.labels, n.messages, n.rows, n.labels, n.marginals, n.rows, n.rows, SPACE + NOTED * n.variables,
        n.labels, n.rows, n.rows, n.variables + 1, n.variables + 1, n.variables, n.factors, n.messages, n.links,
        n.links, levels * n.messages, levels * n.labels, levels * n.rows, n.labels, n.rows,
    )  # fmt: skip
    whole = (
        n.variables, n.variables, n.variables, n.variables, 2 * (n.variables + 1), n.messages, n.links,
        levels, levels * n.most, n.variables, n.variables, n.given, n.variables, n.rows, n.variables,
        n.variables + 1, n.variables + 1,
    )  # fmt: skip
    floats, ints = np.zeros(numbers(real)), np.zeros(numbers(whole), dtype=np.int64)
    (
        work, kept_cost, message, multiplier, belief, marginal, row_low, row_high, smallest,
        vector, tree_low, tree_high, base, rest, limit, least, before, low_before, high_before,
        messages_at, beliefs_at, multipliers_at, tight_belief, tight_multiplier,
    ) = split(floats, real)  # fmt: skip
    (
        chosen, label, free, tree_labels, marks, place, row, splits, tried, kept, trial, labels,
        n_left, due, tight_labels, tight_split, tight_chosen,
    ) = split(ints, whole)  # fmt: skip
    nodes = np.empty(n.kept if by_rows and effort.max_nodes > 0 else 0)
    scratch = Scratch(
        work,
        kept_cost,
        d.Dual(message, multiplier, belief, marginal, row_low, row_high, smallest, part(watch, 0, watch.size)),
        Tree(
            vector, tree_low, tree_high, base, rest, chosen, label, limit, free, least, tree_labels,
            grid(marks, n.variables + 1, 2), place, before, row, low_before, high_before,
            grid(messages_at, levels, n.messages), grid(beliefs_at, levels, n.labels),
            grid(multipliers_at, levels, n.rows), splits, grid(tried, levels, n.most),
        ),
        kept,
        trial,
        labels,
        Tight(
            tight_belief, tight_multiplier, n_left, due, tight_labels, part(nodes, 0, nodes.size), tight_split,
            tight_chosen,
        ),
    )  # fmt: skip
    values, facts = proofs.values, proofs.facts
    for x in range(problems.size):
        p = problems[x]
        watch[AT] = x + 1
        if watch[ALL]:
            facts[OUTCOME, p], values[BOUND, p] = STOPPED, min(values[BOUND, p], values[BEST, p])
            continue
        small, given = graph_at(reduced[x, 1]), values[BEST, p]
        facts[OUTCOME, p], values[BEST, p], values[BOUND, p], facts[STEP, p], facts[N_SWEEPS, p], facts[N_NODES, p] = (
            certify(
                instance_of(batch, p),
                plan_at(reduced[x, 0]),
                small,
                messages.start,
                effort,
                scratch,
                labels_of(batch, proofs.labels, p),
                given,
                values[SIZE, p],
                search,
            )
        )
        facts[LABELS_BY, p] = facts[STEP, p] if values[BEST, p] != given or given == np.inf else GIVEN
        if facts[OUTCOME, p] == OPEN and stopped(scratch.dual.watch):
            facts[OUTCOME, p] = STOPPED
        if messages.total.size and facts[OUTCOME, p] == PROVED:
            add_messages(small, scratch.dual, messages.total, messages.times)
    watch[AT] = 0
    keep((floats, ints, nodes, watch))


@driver
def certify_some(
    batch: tuple[IntArray, FloatArray, FloatArray],
    reduced: IntArray,
    messages: tuple[FloatArray, FloatArray, IntArray],
    effort: tuple[int, ...],
    problems: IntArray,
    proofs: tuple[IntArray, FloatArray, IntArray],
    watch: IntArray,
) -> None:
    """Certifies some problems of which elimination leaves something, but for those of `certify_ruled`.

    `batch` is `BatchArrays`, and so on, as plain tuples: Numba tells much sooner what these hold. `reduced` has, for
    each problem, the addresses of its plan and of the graph that it leaves. `watch` tells whoever waits which problem
    is worked on, counted from 1, and whether to stop.
    """
    arrays, kept, answers = BatchArrays(*batch), Messages(*messages), Proofs(*proofs)
    certify_each(arrays, reduced, kept, Effort(*effort), problems, answers, watch, False, search_nothing)


@driver
def certify_ruled(
    batch: tuple[IntArray, FloatArray, FloatArray],
    reduced: IntArray,
    messages: tuple[FloatArray, FloatArray, IntArray],
    effort: tuple[int, ...],
    problems: IntArray,
    proofs: tuple[IntArray, FloatArray, IntArray],
    watch: IntArray,
) -> None:
    """Certifies some problems of which elimination leaves rules alone, and many."""
    arrays, kept, answers = BatchArrays(*batch), Messages(*messages), Proofs(*proofs)
    certify_each(arrays, reduced, kept, Effort(*effort), problems, answers, watch, True, search_rows)

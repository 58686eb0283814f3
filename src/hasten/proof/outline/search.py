"""A proof that nothing costs less than a known optimum, logged step by step.

Depth first. At each node, labels that a table or a row leaves no room for go (`hasten.proof.outline.log`); sweeps raise
the bound, starting from the messages of the node above; then a dive tries to end it. Where that takes too many nodes,
labels that cost too much go, and in the end the node is split.

The log is only a plan. Whatever rounding does here, it is checked exactly what the steps show.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import driver, keep, kernel, part, split
from hasten.kernels.layout import Arrays, BatchArrays, Graph, Instance, graph_at, instance_of, stopped, together
from hasten.kernels.rows import in_reach
from hasten.proof.branch.dive import (
    Tree,
    assess,
    assign,
    cheapest_untried,
    next_label,
    open_level,
    prepare,
    recall,
    undo,
)
from hasten.proof.branch.space import dual_floats, make_dual, make_tree, space_for, tree_floats, tree_ints
from hasten.proof.elimination.kernels import eliminate, plan_at
from hasten.proof.outline.log import (
    DONE,
    LEAF,
    MOVE,
    NUMBERS,
    SUM,
    VIOLATED,
    WORDS,
    Log,
    is_full,
    keep_allowed,
    leave_expensive,
    leave_row,
    leave_tables,
    say,
    say_number,
    say_price,
    say_split,
)
from hasten.proof.sweep.dual import Dual, n_messages, quick_bound, start_dual, sum_anew, sweep
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.clock import AT

ROUNDS = 4  # of ruling labels out and sweeping again, before a node is split
GAIN = 1e-4  # share of the gap to the goal that sweeps must gain


class Goal(NamedTuple):
    """The limit to show, and the effort that it may take."""

    enough: float  # parts that cost so much at least are done
    target: float  # sweeps stop there
    first_sweeps: int
    node_sweeps: int
    dive_nodes: int


@kernel
def say_messages(graph: Graph, dual: Dual, tree: Tree, level: int, log: Log) -> None:
    """Logs how messages differ from those of a level, and the multipliers that do."""
    for a in range(graph.scope.size):
        f, v, m = graph.factor_of[a], graph.scope[a], graph.message_at[a]
        if graph.table_at[f] < 0 or graph.scope_first[f + 1] - graph.scope_first[f] == 1:
            continue  # what is over one variable is part of its costs
        n, differs = graph.first[v + 1] - graph.first[v], False
        for i in range(n):
            differs = differs or dual.message[m + i] != tree.message[level, m + i]
        if differs:
            say(log, MOVE)
            say(log, a)
            for i in range(n):
                say_number(log, dual.message[m + i] - tree.message[level, m + i])
    for r in range(graph.row_low.size):
        if dual.multiplier[r] != tree.multiplier[level, r]:
            say_price(log, r, -dual.multiplier[r])


@kernel
def rule_out(instance: Instance, dual: Dual, log: Log) -> bool:
    """Lets labels go that tables or rows leave no room for, until there are none; whether the node is done by that."""
    graph, _, table = instance
    again = True
    while again and not stopped(dual.watch):
        n = leave_tables(graph, table, dual, log)
        if n < 0:
            return True
        again = n > 0
        for r in range(graph.row_low.size):
            n = leave_row(graph, r, dual, log)
            if n < 0:
                return True
            again = again or n > 0
    return False


@kernel
def raise_bound(instance: Instance, dual: Dual, tree: Tree, level: int, goal: Goal, n_sweeps: int, log: Log) -> bool:
    """Sweeps; logs the messages if they are better than those of a level; whether the node is done by that."""
    graph, cost, table = instance
    first, _ = sum_anew(graph, cost, table, dual, True)
    if first >= goal.enough:
        say(log, SUM)
        return True
    before, possible = first, True
    for s in range(n_sweeps):
        possible = sweep(graph, table, s % 2 == 0, dual)
        bound = quick_bound(graph, dual)
        if not possible or stopped(dual.watch) or bound >= goal.target:
            break
        if s > 4 and bound - before < GAIN * (goal.target - bound):
            break
        before = bound
    bound, _ = sum_anew(graph, cost, table, dual, True)
    if possible and bound > first:
        say_messages(graph, dual, tree, level, log)
        keep_messages(graph, dual, tree, level)
        if bound >= goal.enough:
            say(log, SUM)
            return True
    else:
        for m in range(n_messages(graph)):
            dual.message[m] = tree.message[level, m]
        for r in range(graph.row_low.size):
            dual.multiplier[r] = tree.multiplier[level, r]
        sum_anew(graph, cost, table, dual, True)
    return False


@kernel
def open_split(graph: Graph, tree: Tree, level: int, enough: float, log: Log) -> None:
    """Logs the split of a level of a dive: labels that cost too much, then each of the others, the cheapest first."""
    v, n_parts, dear = tree.chosen[level], 0, 0
    first, rest = graph.first[v], tree.rest[level]
    for i in range(graph.first[v + 1] - first):
        if tree.vector[first + i] < np.inf:  # others are gone already
            dear += rest + tree.vector[first + i] >= enough
            n_parts += rest + tree.vector[first + i] < enough
    say_split(log, v, n_parts + (dear > 0))
    if dear:
        say(log, dear)
        for i in range(graph.first[v + 1] - first):
            if tree.vector[first + i] < np.inf and rest + tree.vector[first + i] >= enough:
                say(log, i)
    tree.label[level] = -1
    for _ in range(n_parts):
        i = next_label(graph, tree, level, v)
        say(log, 1)
        say(log, i)
        tree.label[level], tree.limit[level] = i, tree.vector[first + i]
    tree.label[level] = -1
    if dear:
        say(log, SUM)


@kernel
def dive(instance: Instance, dual: Dual, tree: Tree, goal: Goal, log: Log) -> bool:
    """Ends a node depth first, with the messages as they are; false if that takes too many nodes."""
    (graph, cost, table), enough = instance, goal.enough
    if not prepare(graph, cost, table, dual, tree):
        return False
    bound, chosen = assess(graph, tree, 0)
    if bound >= enough or chosen < 0:
        end(graph, dual, bound >= enough, log)
        return True
    level, n_nodes, n_changed, n_rows_changed = 0, 1, 0, 0
    tree.free[chosen] = False
    open_split(graph, tree, 0, enough, log)
    while level >= 0:
        v = tree.chosen[level]
        undo(tree, level, n_changed, n_rows_changed)
        n_changed, n_rows_changed = tree.marks[level, 0], tree.marks[level, 1]
        i = next_label(graph, tree, level, v)
        if i < 0 or tree.rest[level] + tree.vector[graph.first[v] + i] >= enough:
            tree.free[v] = True
            level -= 1
            continue
        if n_nodes >= max(goal.dive_nodes, graph.order.size + 1) or stopped(dual.watch):
            return False
        n_nodes += 1
        tree.label[level], tree.limit[level] = i, tree.vector[graph.first[v] + i]
        possible, n_changed, n_rows_changed = assign(graph, table, dual, tree, level, v, i)
        if not possible:
            for x in range(graph.link_first[v], graph.link_first[v + 1]):
                r = graph.link_row[x]
                if not in_reach(graph, r, tree.row_low[r], tree.row_high[r]):
                    say(log, VIOLATED)
                    say(log, r)
                    break
            continue
        bound, chosen = assess(graph, tree, level + 1)
        if bound >= enough or chosen < 0:
            end(graph, dual, bound >= enough, log)
            continue
        level += 1
        tree.marks[level, 0], tree.marks[level, 1] = n_changed, n_rows_changed
        tree.free[chosen] = False
        open_split(graph, tree, level, enough, log)
    return True


@kernel
def end(graph: Graph, dual: Dual, enough: bool, log: Log) -> None:
    """Logs the end of a part: it costs enough, or is one labelling, of which rows say no more."""
    for r in range(0 if enough else graph.row_low.size):
        if dual.multiplier[r] != 0.0:
            say_price(log, r, 0.0)
    say(log, SUM if enough else LEAF)


@kernel
def finish(instance: Instance, dual: Dual, tree: Tree, level: int, goal: Goal, n_sweeps: int, log: Log) -> bool:
    """Ends a node, which starts from the messages of a level; false if it is to be split."""
    graph, cost, table = instance
    keep_messages(graph, dual, tree, level)
    for _ in range(ROUNDS):
        if rule_out(instance, dual, log):
            return True
        if goal.enough < np.inf and raise_bound(instance, dual, tree, level, goal, n_sweeps, log):
            return True
        words, numbers = log.used[WORDS], log.used[NUMBERS]
        if dive(instance, dual, tree, goal, log):
            return True
        log.used[WORDS], log.used[NUMBERS] = words, numbers
        bound, off = sum_anew(graph, cost, table, dual, True)
        room = goal.enough - bound + 4.0 * off
        if stopped(dual.watch) or not room < np.inf or leave_expensive(graph, dual, room, log) == 0:
            break
    return False


@kernel
def keep_messages(graph: Graph, dual: Dual, tree: Tree, level: int) -> None:
    """Keeps messages and multipliers as those of a level, of which later ones are told apart."""
    for m in range(n_messages(graph)):
        tree.message[level, m] = dual.message[m]
    for r in range(graph.row_low.size):
        tree.multiplier[level, r] = dual.multiplier[r]


@kernel
def search(instance: Instance, dual: Dual, tree: Tree, goal: Goal, log: Log) -> bool:
    """Logs the whole proof; whether it is complete."""
    graph = instance.graph
    if not keep_allowed(graph, dual, log) or finish(instance, dual, tree, 0, goal, goal.first_sweeps, log):
        return True
    level, n_levels = 0, tree.split.size - 1
    split_level(graph, dual, tree, 0, log)
    while level >= 0:
        if is_full(log) or stopped(dual.watch):
            return False
        v = tree.split[level]
        i = cheapest_untried(graph, tree, level, v)
        if i < 0:
            level -= 1
            continue
        tree.tried[level, i] = True
        recall(graph, dual, tree, level)
        for at in range(graph.first[v], graph.first[v + 1]):
            if at != graph.first[v] + i:
                dual.belief[at] = np.inf
        if not finish(instance, dual, tree, level + 1, goal, goal.node_sweeps, log):
            if level + 2 > n_levels:
                return False
            level += 1
            split_level(graph, dual, tree, level, log)
    return True


@kernel
def split_level(graph: Graph, dual: Dual, tree: Tree, level: int, log: Log) -> None:
    """Logs the split of a node on its least decided variable, label by label, the cheapest first."""
    open_level(graph, dual, tree, level)
    v, n = tree.split[level], 0
    for at in range(graph.first[v], graph.first[v + 1]):
        n += dual.belief[at] < np.inf
    say_split(log, v, n)
    for _ in range(n):
        i = cheapest_untried(graph, tree, level, v)
        tree.tried[level, i] = True
        say(log, 1)
        say(log, i)
    for i in range(graph.first[v + 1] - graph.first[v]):
        tree.tried[level, i] = False


@driver
def log_proof(
    arrays: Arrays,
    problems: IntArray,
    reduced: IntArray,
    goal: tuple[float, float, int, int, int],
    n_levels: int,
    log: tuple[IntArray, FloatArray, IntArray],
    watch: IntArray,
) -> None:
    """Logs the proof of one problem, of which elimination leaves something: `reduced` has its plan and what is left."""
    batch, n = BatchArrays(*arrays), space_for(BatchArrays(*arrays), problems, reduced)
    most = max(n.marginals, n.most)
    n_floats = n.work, n.labels, together(dual_floats(n)), together(tree_floats(n, n_levels)), most
    floats, ints = np.zeros(together(n_floats)), np.zeros(together(tree_ints(n, n_levels)), dtype=np.int64)
    work, cost, for_dual, for_tree, marks = split(floats, n_floats)
    (indices,) = split(ints, (ints.size,))
    dual, tree = make_dual(n, for_dual, part(watch, 0, watch.size)), make_tree(n, n_levels, for_tree, indices)
    dual = Dual(
        dual.message, dual.multiplier, dual.belief, marks, dual.row_low, dual.row_high, dual.smallest, dual.watch
    )
    words, numbers, used = log
    said = Log(part(words, 0, words.size), part(numbers, 0, numbers.size), part(used, 0, used.size))
    plan, small, given = plan_at(reduced[0, 0]), graph_at(reduced[0, 1]), instance_of(batch, problems[0])
    watch[AT] = 1
    constant = eliminate(plan, given.cost, given.table, work, cost, dual.watch)
    if constant == np.inf:
        say(said, SUM)
        used[DONE] = 1
    elif constant == constant:  # it was not stopped
        for at in range(small.first[1]):
            cost[at] += constant
        start_dual(small, cost, dual)
        used[DONE] = search(Instance(small, cost, work), dual, tree, Goal(*goal), said)
    watch[AT] = 0
    keep((floats, ints, words, numbers, used, watch))

"""A proof that nothing costs less than a known optimum, logged event by event.

Depth first. At each node, labels that a table or a row leaves no room for go. Nodes that are split on their least
decided variable sweep, from the messages of the node above; each then begins a *dive*, whose nodes do not, and split on
their most decided one. Where that takes too many, labels that cost too much go, and the node is split for good.

The log is only a plan. Whatever rounding does here, it is checked exactly what the steps show.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import driver, inlined_kernel, keep, kernel, part, split
from hasten.kernels.layout import Arrays, BatchArrays, Graph, Instance, graph_at, instance_of, stopped, together
from hasten.proof.branch.dive import Tree, cheapest_untried, least_decided, open_level, recall
from hasten.proof.branch.space import dual_floats, make_dual, make_tree, space_for, tree_floats, tree_ints
from hasten.proof.elimination.kernels import eliminate, plan_at
from hasten.proof.sweep.dual import Dual, push, quick_bound, start_dual, sum_anew, sweep
from hasten.proof.sweep.multipliers import two_least
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.clock import AT

OUT, SPLIT, CHILD, END, CLOSE, MOVE, PRICE = 0, 1, 2, 3, 4, 5, 6  # events
COST, LEAF, FORBIDDEN, TABLE = -1, -2, -3, -4  # why labels go, or a node is done: or a row, or TABLE less a factor
GAIN = 1e-4  # share of the gap to the goal that sweeps must gain


class Log(NamedTuple):
    """Events: what happens, to what, to which label, a number or a reason."""

    said: FloatArray  # (4 events,)
    used: IntArray  # (2,) how many events, and whether the proof is complete


class Goal(NamedTuple):
    """The limit to show, and the effort that it may take."""

    enough: float  # parts that cost so much at least are done; -inf: sweep once
    target: float  # sweeps stop there
    first_sweeps: int
    node_sweeps: int
    dive_nodes: int


@inlined_kernel
def say(log: Log, event: int, n: int, i: int, x: float) -> None:
    """Adds an event, as long as there is room."""
    at = 4 * log.used[0]
    if at + 4 <= log.said.size:
        log.said[at], log.said[at + 1], log.said[at + 2], log.said[at + 3] = event, n, i, x
    log.used[0] += 1


@kernel
def drop(graph: Graph, dual: Dual, tree: Tree, v: int, i: int, reason: int, log: Log) -> bool:
    """Lets a label go; false if its variable has no other: then the node is done."""
    first = graph.first[v]
    for at in range(first, graph.first[v + 1]):
        if at != first + i and dual.belief[at] < np.inf:
            say(log, OUT, v, i, reason)
            dual.belief[first + i], tree.free[v] = np.inf, 1
            return True
    say(log, CLOSE, reason, 0, 0.0)
    return False


@kernel
def leave_table(graph: Graph, table: FloatArray, f: int, dual: Dual, tree: Tree, log: Log) -> bool:
    """Lets labels go that no tuple of factor `f` has; false if that ends the node.

    Where all but one of its variables are decided, it becomes a part of that one's costs, as it does for the checker.
    """
    a0, a1, found, n_free = graph.scope_first[f], graph.scope_first[f + 1], dual.marginal, 0
    listing, m0 = graph.listing[f], graph.message_at[a0]
    for a in range(a0, a1):
        v, m = graph.scope[a], graph.message_at[a] - m0
        for i in range(graph.first[v + 1] - graph.first[v]):
            found[m + i] = 0.0
    t0, label_at = graph.list_first[listing], graph.list_label_at[listing]
    for t in range(t0, graph.list_first[listing + 1]):
        at, possible = label_at + (t - t0) * (a1 - a0), table[graph.table_at[f] + graph.list_entry[t]] < np.inf
        for s in range(a1 - a0):
            label = graph.first[graph.scope[a0 + s]] + graph.list_label[at + s]
            possible = possible and dual.belief[label] < np.inf
        for s in range(a1 - a0 if possible else 0):
            found[graph.message_at[a0 + s] - m0 + graph.list_label[at + s]] = 1.0
    for a in range(a0, a1):
        v, m = graph.scope[a], graph.message_at[a] - m0
        for i in range(graph.first[v + 1] - graph.first[v]):
            out = dual.belief[graph.first[v] + i] < np.inf and not found[m + i]
            if out and not drop(graph, dual, tree, v, i, TABLE - f, log):
                return False
        _, second, _ = two_least(dual.belief, graph.first[v], graph.first[v + 1])
        n_free += second < np.inf
    if n_free <= 1:
        push(graph, table, f, dual)
    return True


@inlined_kernel
def span(graph: Graph, r: int, c: int, belief: FloatArray) -> tuple[float, float, int]:
    """Returns the least and the most that the variable of cell `c` adds to row `r`, and the next one's first cell."""
    v, c1 = graph.row_variable[c], graph.row_first[r + 1]
    least, most = np.inf, -np.inf
    for at in range(graph.first[v], graph.first[v + 1]):
        weight = 0.0
        if c < c1 and graph.row_label[c] == at:
            weight = graph.row_weight[c]
            c += 1
        if belief[at] < np.inf:
            least, most = min(least, weight), max(most, weight)
    return least, most, c


@kernel
def leave_row(graph: Graph, r: int, dual: Dual, tree: Tree, log: Log) -> bool:
    """Lets labels go that row `r` leaves no room for; false if that ends the node."""
    low, high, c, c1 = 0.0, 0.0, graph.row_first[r], graph.row_first[r + 1]
    while c < c1:
        least, most, c = span(graph, r, c, dual.belief)
        low, high = low + least, high + most
    top, bottom = graph.row_most[r] + graph.row_margin[r], graph.row_least[r] - graph.row_margin[r]
    if low > top or high < bottom:
        say(log, CLOSE, r, 0, 0.0)
        return False
    c = c1 if high <= top and low >= bottom else graph.row_first[r]
    while c < c1:
        x, v = c, graph.row_variable[c]
        least, most, c = span(graph, r, c, dual.belief)
        for at in range(graph.first[v], graph.first[v + 1]):
            weight = 0.0
            if x < c and graph.row_label[x] == at:
                weight = graph.row_weight[x]
                x += 1
            out = high + (weight - most) < bottom or low + (weight - least) > top
            if out and dual.belief[at] < np.inf and not drop(graph, dual, tree, v, at - graph.first[v], r, log):
                return False
    return True


@kernel
def leave_expensive(graph: Graph, dual: Dual, tree: Tree, room: float, log: Log) -> bool:
    """Lets labels go that cost `room` more than their variable's cheapest, or more; whether there are any."""
    found = False
    for v in range(graph.order.size):
        least, _, _ = two_least(dual.belief, graph.first[v], graph.first[v + 1])
        for at in range(graph.first[v], graph.first[v + 1]):
            if room <= dual.belief[at] - least < np.inf:
                found = drop(graph, dual, tree, v, at - graph.first[v], COST, log)
    return found


@kernel
def leave_forbidden(graph: Graph, dual: Dual, tree: Tree, log: Log) -> bool:
    """Lets labels of infinite costs go; false if a variable has no other, or a row without variables cannot hold."""
    for v in range(graph.order.size):
        for i in range(graph.first[v + 1] - graph.first[v]):
            if dual.belief[graph.first[v] + i] == np.inf and not drop(graph, dual, tree, v, i, FORBIDDEN, log):
                return False
        tree.free[v] = 1
        if graph.first[v + 1] - graph.first[v] == 1:  # the checker takes it out of its tables, too
            say(log, OUT, v, -1, FORBIDDEN)
    for r in range(graph.row_low.size):
        if graph.row_first[r] == graph.row_first[r + 1] and not leave_row(graph, r, dual, tree, log):
            return False
    return True


@kernel
def rule_out(instance: Instance, dual: Dual, tree: Tree, log: Log) -> bool:
    """Lets labels go that tables or rows leave no room for, around what has changed; whether the node is done."""
    graph, _, table = instance
    again = True
    while again and not stopped(dual.watch):
        again = False
        for v in range(graph.order.size):
            if not tree.free[v]:
                continue
            tree.free[v], again = 0, True
            for x in range(graph.touch_first[v], graph.touch_first[v + 1]):
                f = graph.factor_of[graph.touch[x]]
                if graph.table_at[f] >= 0 and not leave_table(graph, table, f, dual, tree, log):
                    return True
            for x in range(graph.link_first[v], graph.link_first[v + 1]):
                if not leave_row(graph, graph.link_row[x], dual, tree, log):
                    return True
    return False


@kernel
def say_messages(graph: Graph, dual: Dual, tree: Tree, level: int, log: Log) -> None:
    """Logs how messages differ from those of a level, and the multipliers that do, as certificates take them."""
    for a in range(graph.scope.size):
        f, v, m = graph.factor_of[a], graph.scope[a], graph.message_at[a]
        if graph.table_at[f] >= 0 and graph.scope_first[f + 1] - graph.scope_first[f] > 1:  # others are costs of labels
            for i in range(graph.first[v + 1] - graph.first[v]):
                if dual.message[m + i] != tree.message[level, m + i]:
                    say(log, MOVE, a, i, dual.message[m + i] - tree.message[level, m + i])
    for r in range(graph.row_low.size):
        if dual.multiplier[r] != tree.multiplier[level, r]:
            say(log, PRICE, r, 0, -dual.multiplier[r])


@kernel
def visit(instance: Instance, dual: Dual, tree: Tree, level: int, goal: Goal, n_sweeps: int, log: Log) -> bool:
    """Raises the bound of a node that is to be split at a level; whether it is done."""
    graph, cost, table = instance
    if rule_out(instance, dual, tree, log):
        return True
    bound, _ = sum_anew(graph, cost, table, dual, True)
    useful = bound < goal.enough < np.inf or goal.enough == -np.inf
    if n_sweeps and useful and least_decided(graph, dual) >= 0:
        open_level(graph, dual, tree, level)
        before, possible = bound, True
        for s in range(n_sweeps):
            possible = sweep(graph, table, s % 2 == 0, dual)
            now = quick_bound(graph, dual)
            gap = goal.target - now if goal.target < np.inf else abs(now)
            if not possible or stopped(dual.watch) or gap <= 0.0 or (s > 4 and now - before < GAIN * gap):
                break
            before = now
        raised, _ = sum_anew(graph, cost, table, dual, True)
        if possible and raised > bound:
            say_messages(graph, dual, tree, level, log)
            bound = raised
        else:
            recall(graph, dual, tree, level)
    tree.rest[level] = bound
    if bound >= goal.enough:
        say(log, CLOSE, COST, 0, 0.0)
    return bool(bound >= goal.enough)


@kernel
def open_node(graph: Graph, dual: Dual, tree: Tree, level: int, v: int, log: Log) -> bool:
    """Begins to split a node on a variable; false if none is left to split on: it is one labelling."""
    if v < 0:
        for r in range(graph.row_low.size):
            if dual.multiplier[r] != 0.0:  # rows say no more of it
                say(log, PRICE, r, 0, 0.0)
        say(log, CLOSE, LEAF, 0, 0.0)
        return False
    open_level(graph, dual, tree, level)
    tree.split[level] = v
    for i in range(graph.first[v + 1] - graph.first[v]):
        tree.tried[level, i] = False
    least, _, _ = two_least(dual.belief, graph.first[v], graph.first[v + 1])
    tree.base[level] = tree.rest[level] - least
    say(log, SPLIT, v, 0, 0.0)
    return True


@kernel
def most_decided(graph: Graph, dual: Dual) -> int:
    """Returns the variable, of those with a choice, whose two best beliefs differ most; -1 if none has a choice."""
    widest, chosen = -1.0, -1
    for v in range(graph.order.size):
        least, second, _ = two_least(dual.belief, graph.first[v], graph.first[v + 1])
        if second < np.inf and second - least > widest:
            widest, chosen = second - least, v
    return chosen


@kernel
def search(instance: Instance, dual: Dual, tree: Tree, goal: Goal, log: Log) -> bool:
    """Logs the whole proof; false if there is only the bound of the first node, since the rest takes too much."""
    graph, level = instance.graph, 0
    if not leave_forbidden(graph, dual, tree, log) or visit(instance, dual, tree, 0, goal, goal.first_sweeps, log):
        return True
    diving, n_nodes, root, mark = 0, 0, log.used[0], log.used[0]  # the level at which a dive began; -1: none
    if not open_node(graph, dual, tree, 0, most_decided(graph, dual), log):
        return True
    while level >= 0:
        if 4 * log.used[0] > log.said.size or level + 2 > tree.split.size or stopped(dual.watch):
            log.used[0] = root
            say(log, CLOSE, COST, 0, 0.0)
            return False
        if diving >= 0 and n_nodes > max(goal.dive_nodes, graph.order.size):
            level, diving, log.used[0] = diving, -1, mark
            recall(graph, dual, tree, level)
            room = goal.enough - tree.rest[level]
            done = leave_expensive(graph, dual, tree, room, log)
            done = done and visit(instance, dual, tree, level, goal, goal.node_sweeps, log)
            if done or not open_node(graph, dual, tree, level, least_decided(graph, dual), log):
                level -= 1
                continue
        v = tree.split[level]
        i = cheapest_untried(graph, tree, level, v)
        if i < 0 or tree.base[level] + tree.belief[level, graph.first[v] + i] >= goal.enough:
            say(log, END, 0, 0, 0.0)
            diving, level = -1 if level == diving else diving, level - 1
            continue
        tree.tried[level, i] = True
        say(log, CHILD, i, 0, 0.0)
        recall(graph, dual, tree, level)
        for u in range(graph.order.size):
            tree.free[u] = u == v
        for at in range(graph.first[v], graph.first[v + 1]):
            if at != graph.first[v] + i:
                dual.belief[at] = np.inf
        n_nodes += 1
        if visit(instance, dual, tree, level + 1, goal, goal.node_sweeps if diving < 0 else 0, log):
            continue
        if diving < 0:
            diving, n_nodes, mark = level + 1, 0, log.used[0]
        if open_node(graph, dual, tree, level + 1, most_decided(graph, dual), log):
            level += 1
        elif diving == level + 1:
            diving = -1
    return True


@driver
def log_proof(
    arrays: Arrays,
    problems: IntArray,
    reduced: IntArray,
    goal: tuple[float, float, int, int, int],
    n_levels: int,
    log: tuple[FloatArray, IntArray],
    watch: IntArray,
) -> None:
    """Logs the proof of one problem, of which elimination leaves something: `reduced` has its plan and what is left."""
    batch, n = BatchArrays(*arrays), space_for(BatchArrays(*arrays), problems, reduced)
    n_floats = n.work, n.labels, together(dual_floats(n)), together(tree_floats(n, n_levels))
    floats, ints = np.zeros(together(n_floats)), np.zeros(together(tree_ints(n, n_levels)), dtype=np.int64)
    work, cost, for_dual, for_tree = split(floats, n_floats)
    (indices,) = split(ints, (ints.size,))
    dual, tree = make_dual(n, for_dual, part(watch, 0, watch.size)), make_tree(n, n_levels, for_tree, indices)
    said = Log(part(log[0], 0, log[0].size), part(log[1], 0, log[1].size))
    plan, small, given = plan_at(reduced[0, 0]), graph_at(reduced[0, 1]), instance_of(batch, problems[0])
    watch[AT] = 1
    constant = eliminate(plan, given.cost, given.table, work, cost, dual.watch)
    if constant == np.inf:
        say(said, CLOSE, COST, 0, 0.0)
        said.used[1] = 1
    elif constant == constant:  # it was not stopped
        for at in range(small.first[min(1, small.order.size)]):
            cost[at] += constant
        start_dual(small, cost, dual)
        said.used[1] = search(Instance(small, cost, work), dual, tree, Goal(*goal), said)
    watch[AT] = 0
    keep((floats, ints, log[0], log[1], watch))

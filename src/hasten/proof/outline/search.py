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
from hasten.kernels.layout import Arrays, BatchArrays, Graph, Instance, graph_at, instance_of
from hasten.kernels.stopping import stopped
from hasten.proof.branch.dive import Tree
from hasten.proof.branch.space import dual_floats, make_dual, make_tree, n_tree_floats, space_for, together, tree_ints
from hasten.proof.branch.split import cheapest_untried, least_decided, open_level, recall
from hasten.proof.elimination.kernels import eliminate, plan_at
from hasten.proof.sweep.dual import Dual, n_messages, push, quick_bound, start_dual, sum_anew, sweep
from hasten.proof.sweep.multipliers import two_least
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.clock import AT

OUT, SPLIT, CHILD, END, CLOSE, MOVE, PRICE = 0, 1, 2, 3, 4, 5, 6  # events
COST, LEAF, FORBIDDEN = -1, -2, -3  # why labels go, or a node is done, if not for a row
STAYS, GOES, GONE = 0.0, 1.0, 2.0  # marks of labels
GAIN = 1e-4  # share of the gap to the goal that sweeps must gain


class Log(NamedTuple):
    """Events, each with its numbers."""

    said: FloatArray
    used: IntArray  # (2,) how many, and whether the proof is complete


class Goal(NamedTuple):
    """The limit to show, and the effort that it may take."""

    enough: float  # parts that cost so much at least are done; -inf: sweep once
    target: float  # sweeps stop there
    first_sweeps: int
    node_sweeps: int
    dive_nodes: int


@inlined_kernel
def say(log: Log, event: int, number: float) -> None:
    """Adds an event and its first number, as long as there is room."""
    add(log, event)
    add(log, number)


@inlined_kernel
def add(log: Log, number: float) -> None:
    """Adds a number, as long as there is room."""
    if log.used[0] < log.said.size:
        log.said[log.used[0]] = number
    log.used[0] += 1


@kernel
def let_go(graph: Graph, dual: Dual, tree: Tree, v: int, m: int, reason: int, log: Log) -> int:
    """Lets labels go that are marked so from `m` on, for a reason; returns how many, -1 if no others are left."""
    n_out, n_left, first = 0, 0, graph.first[v]
    for i in range(graph.first[v + 1] - first):
        n_out += dual.marginal[m + i] == GOES
        n_left += dual.marginal[m + i] == STAYS
    if n_left == 0:
        return -1
    if n_out:
        tree.free[v] = 1
        say(log, OUT, v)
        add(log, reason)
        add(log, n_out)
        for i in range(graph.first[v + 1] - first):
            if dual.marginal[m + i] == GOES:
                add(log, i)
                dual.belief[first + i] = np.inf
    return n_out


@kernel
def leave_table(graph: Graph, table: FloatArray, f: int, dual: Dual, tree: Tree, log: Log) -> bool:
    """Lets labels go that no tuple of factor `f` has; false if no tuple is left.

    Where all but one of its variables are decided, it becomes a part of that one's costs, as it does for the checker.
    """
    a0, a1, marks, found, n_free = graph.scope_first[f], graph.scope_first[f + 1], dual.marginal, False, 0
    listing, m0 = graph.listing[f], graph.message_at[a0]
    for a in range(a0, a1):
        v, m = graph.scope[a], graph.message_at[a] - m0
        for i in range(graph.first[v + 1] - graph.first[v]):
            marks[m + i] = GOES if dual.belief[graph.first[v] + i] < np.inf else GONE
    t0, label_at = graph.list_first[listing], graph.list_label_at[listing]
    for t in range(t0, graph.list_first[listing + 1]):
        at, possible = label_at + (t - t0) * (a1 - a0), table[graph.table_at[f] + graph.list_entry[t]] < np.inf
        for s in range(a1 - a0):
            possible = possible and marks[graph.message_at[a0 + s] - m0 + graph.list_label[at + s]] < GONE
        if possible:
            found = True
            for s in range(a1 - a0):
                marks[graph.message_at[a0 + s] - m0 + graph.list_label[at + s]] = STAYS
    if not found:
        say(log, CLOSE, COST)
        return False
    for a in range(a0, a1):
        v = graph.scope[a]
        let_go(graph, dual, tree, v, graph.message_at[a] - m0, COST, log)
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
    """Lets labels go that row `r` leaves no room for; false if it cannot hold."""
    low, high, marks = 0.0, 0.0, dual.marginal
    c, c1 = graph.row_first[r], graph.row_first[r + 1]
    while c < c1:
        least, most, c = span(graph, r, c, dual.belief)
        low, high = low + least, high + most
    top, bottom = graph.row_most[r] + graph.row_margin[r], graph.row_least[r] - graph.row_margin[r]
    possible = low <= top and high >= bottom
    c = graph.row_first[r] if possible and (high > top or low < bottom) else c1
    while c < c1 and possible:
        begin, v = c, graph.row_variable[c]
        least, most, c = span(graph, r, c, dual.belief)
        for side in range(2 if least < most else 0):
            x = begin
            for at in range(graph.first[v], graph.first[v + 1]):
                weight = 0.0
                if x < c and graph.row_label[x] == at:
                    weight = graph.row_weight[x]
                    x += 1
                goes = high + (weight - most) < bottom if side else low + (weight - least) > top
                marks[at - graph.first[v]] = GONE if dual.belief[at] == np.inf else GOES if goes else STAYS
            possible = possible and let_go(graph, dual, tree, v, 0, r, log) >= 0
    if not possible:
        say(log, CLOSE, r)
    return possible


@kernel
def leave_expensive(graph: Graph, dual: Dual, tree: Tree, room: float, log: Log) -> int:
    """Lets labels go that cost `room` more than their variable's cheapest, or more; returns how many."""
    n_out = 0
    for v in range(graph.order.size):
        least, _, _ = two_least(dual.belief, graph.first[v], graph.first[v + 1])
        for at in range(graph.first[v], graph.first[v + 1]):
            goes = dual.belief[at] - least >= room
            dual.marginal[at - graph.first[v]] = GONE if dual.belief[at] == np.inf else GOES if goes else STAYS
        n_out += max(0, let_go(graph, dual, tree, v, 0, COST, log))
    return n_out


@kernel
def leave_forbidden(graph: Graph, dual: Dual, tree: Tree, log: Log) -> bool:
    """Lets labels of infinite costs go; false if a variable has no other, or a row without variables cannot hold."""
    for v in range(graph.order.size):
        n = graph.first[v + 1] - graph.first[v]
        for i in range(n):
            dual.marginal[i] = STAYS if dual.belief[graph.first[v] + i] < np.inf else GOES
        n_out, tree.free[v] = let_go(graph, dual, tree, v, 0, FORBIDDEN, log), 1
        if n_out < 0:
            say(log, CLOSE, COST)
            return False
        if n == 1:  # the checker takes it out of its tables, too
            say(log, OUT, v)
            add(log, FORBIDDEN)
            add(log, 0)
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
        if graph.table_at[f] < 0 or graph.scope_first[f + 1] - graph.scope_first[f] == 1:
            continue  # what is over one variable is part of its costs
        n, differs = graph.first[v + 1] - graph.first[v], False
        for i in range(n):
            differs = differs or dual.message[m + i] != tree.message[level, m + i]
        if differs:
            say(log, MOVE, a)
            for i in range(n):
                add(log, dual.message[m + i] - tree.message[level, m + i])
    for r in range(graph.row_low.size):
        if dual.multiplier[r] != tree.multiplier[level, r]:
            say(log, PRICE, r)
            add(log, -dual.multiplier[r])


@kernel
def visit(instance: Instance, dual: Dual, tree: Tree, level: int, goal: Goal, n_sweeps: int, log: Log) -> bool:
    """Raises the bound of a node that is to be split at a level; whether it is done."""
    graph, cost, table = instance
    if rule_out(instance, dual, tree, log):
        return True
    bound, _ = sum_anew(graph, cost, table, dual, True)
    if n_sweeps and (bound < goal.enough < np.inf or goal.enough == -np.inf):
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
        say(log, CLOSE, COST)
    return bound >= goal.enough


@kernel
def open_node(graph: Graph, dual: Dual, tree: Tree, level: int, v: int, log: Log) -> bool:
    """Begins to split a node on a variable; false if none is left to split on: it is one labelling."""
    if v < 0:
        for r in range(graph.row_low.size):
            if dual.multiplier[r] != 0.0:  # rows say no more of it
                say(log, PRICE, r)
                add(log, 0.0)
        say(log, CLOSE, LEAF)
        return False
    open_level(graph, dual, tree, level)
    tree.split[level] = v
    for i in range(graph.first[v + 1] - graph.first[v]):
        tree.tried[level, i] = False
    least, _, _ = two_least(dual.belief, graph.first[v], graph.first[v + 1])
    tree.base[level] = tree.rest[level] - least
    say(log, SPLIT, v)
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
        if log.used[0] > log.said.size or level + 2 > tree.split.size or stopped(dual.watch):
            log.used[0] = root
            say(log, CLOSE, COST)
            return False
        if diving >= 0 and n_nodes > max(goal.dive_nodes, graph.order.size):
            level, diving, log.used[0] = diving, -1, mark
            recall(graph, dual, tree, level)
            room = goal.enough - tree.rest[level]
            done = leave_expensive(graph, dual, tree, room, log) > 0
            done = done and visit(instance, dual, tree, level, goal, goal.node_sweeps, log)
            if done or not open_node(graph, dual, tree, level, least_decided(graph, dual), log):
                level -= 1
                continue
        v = tree.split[level]
        i = cheapest_untried(graph, tree, level, v)
        if i < 0 or tree.base[level] + tree.belief[level, graph.first[v] + i] >= goal.enough:
            say(log, END, 0)
            diving, level = -1 if level == diving else diving, level - 1
            continue
        tree.tried[level, i] = True
        say(log, CHILD, i)
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
    n_floats = n.work, n.labels, together(dual_floats(n)), n_tree_floats(n, n_levels), max(n.marginals, n.most)
    floats, ints = np.zeros(together(n_floats)), np.zeros(together(tree_ints(n, n_levels)), dtype=np.int64)
    work, cost, for_dual, for_tree, marks = split(floats, n_floats)
    (indices,) = split(ints, (ints.size,))
    d, tree = make_dual(n, for_dual, part(watch, 0, watch.size)), make_tree(n, n_levels, for_tree, indices)
    dual = Dual(d.message, d.multiplier, d.belief, marks, d.row_low, d.row_high, d.smallest, d.watch)
    said = Log(part(log[0], 0, log[0].size), part(log[1], 0, log[1].size))
    plan, small, given = plan_at(reduced[0, 0]), graph_at(reduced[0, 1]), instance_of(batch, problems[0])
    watch[AT] = 1
    constant = eliminate(plan, given.cost, given.table, work, cost, dual.watch)
    if constant == np.inf:
        say(said, CLOSE, COST)
        said.used[1] = 1
    elif constant == constant:  # it was not stopped
        for at in range(small.first[1]):
            cost[at] += constant
        start_dual(small, cost, dual)
        said.used[1] = search(Instance(small, cost, work), dual, tree, Goal(*goal), said)
    watch[AT] = 0
    keep((floats, ints, log[0], log[1], watch))

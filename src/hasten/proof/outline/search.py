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
from hasten.kernels.layout import Arrays, BatchArrays, Graph, Instance, copy, graph_at, instance_of, stopped, together
from hasten.proof.branch.dive import Tree, cheapest_untried, least_decided, open_level, recall
from hasten.proof.branch.space import dual_floats, make_dual, make_tree, space_for, tree_floats, tree_ints
from hasten.proof.branch.tighten import (
    Tight,
    choose,
    count_left,
    most_decided,
    rule_out,
    rule_out_expensive,
    tighten_row,
)
from hasten.proof.elimination.kernels import eliminate, plan_at
from hasten.proof.sweep.dual import Dual, push, quick_bound, start_dual, sum_anew, sweep
from hasten.proof.sweep.multipliers import least_of
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.clock import CURRENT

OUT, SPLIT, CHILD, END, CLOSE, MOVE, PRICE = 0, 1, 2, 3, 4, 5, 6  # events
COST, LEAF, TABLE = -1, -2, -3  # why labels go, or a node is done: or a row, or TABLE less a factor
GAIN = 1e-4  # share of the gap to the goal that sweeps must gain


class Goal(NamedTuple):
    """The limit to show, and the effort that it may take."""

    enough: float  # parts that cost so much at least are done; -inf: sweep once
    target: float  # sweeps stop there
    first_sweeps: int
    node_sweeps: int
    dive_nodes: int


class Proof(NamedTuple):
    """A proof that is searched and logged."""

    dual: Dual
    tree: Tree  # `free` says of which variables labels went since tables were last looked at
    tight: Tight  # it shares the beliefs and multipliers
    told: FloatArray  # (L,) the beliefs when labels that went were last logged
    goal: Goal
    said: FloatArray  # (4 events,) what happens, to what, to which label, a number or a reason
    used: IntArray  # (2,) how many events, and whether the proof is complete


@inlined_kernel
def say(proof: Proof, event: int, n: int, i: int, x: float) -> None:
    """Adds an event, as long as there is room."""
    at, said = 4 * proof.used[0], proof.said
    if at + 4 <= said.size:
        said[at], said[at + 1], said[at + 2], said[at + 3] = event, n, i, x
    proof.used[0] += 1


@kernel
def tell(graph: Graph, proof: Proof, v: int, reason: int) -> bool:
    """Logs which labels of a variable went; false if none is left: then the node is done."""
    told, first, end, n_left = proof.told, graph.first[v], graph.first[v + 1], 0
    for at in range(first, end):
        n_left += told[at] < np.inf
    for at in range(first, end):
        if proof.dual.belief[at] == np.inf and told[at] < np.inf:
            if n_left == 1:
                say(proof, CLOSE, reason, 0, 0.0)
                return False
            say(proof, OUT, v, at - first, reason)
            told[at], proof.tree.free[v], n_left = np.inf, 1, n_left - 1
    return True


@kernel
def leave_table(graph: Graph, table: FloatArray, f: int, proof: Proof) -> bool:
    """Lets labels go that no tuple of factor `f` has; false if that ends the node.

    Where all but one of its variables are decided, it becomes a part of that one's costs, as it does for the checker.
    """
    dual, tight = proof.dual, proof.tight
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
            if dual.belief[graph.first[v] + i] < np.inf and not found[m + i]:
                rule_out(graph, tight, v, graph.first[v] + i)
        if not tell(graph, proof, v, TABLE - f):
            return False
        n_free += tight.n_left[v] > 1
    if n_free <= 1:
        push(graph, table, f, dual)
    return True


@kernel
def leave_row(graph: Graph, r: int, proof: Proof) -> bool:
    """Lets labels go that row `r` leaves no room for; false if that ends the node."""
    possible, last = tighten_row(graph, r, proof.tight), -1
    for c in range(graph.row_first[r], graph.row_first[r + 1]):
        if graph.row_variable[c] != last:
            last = graph.row_variable[c]
            if not tell(graph, proof, last, r):
                return False
    if not possible:
        say(proof, CLOSE, r, 0, 0.0)
    return possible


@kernel
def leave_all(instance: Instance, proof: Proof) -> bool:
    """Lets labels go that tables or rows leave no room for, around what has changed; whether the node is done."""
    graph, _, table = instance
    again, free, due = True, proof.tree.free, proof.tight.due
    while again and not stopped(proof.dual.stop_flag):
        again = False
        for v in range(graph.order.size):
            if free[v]:
                free[v], again = 0, True
                for x in range(graph.touch_first[v], graph.touch_first[v + 1]):
                    f = graph.factor_of[graph.touch[x]]
                    if graph.table_at[f] >= 0 and not leave_table(graph, table, f, proof):
                        return True
        for r in range(graph.row_low.size):
            if due[r]:
                due[r], again = 0, True
                if not leave_row(graph, r, proof):
                    return True
    return False


@kernel
def say_messages(graph: Graph, proof: Proof, level: int) -> None:
    """Logs how messages differ from those of a level, and the multipliers that do, as certificates take them."""
    dual, message, multiplier = proof.dual, proof.tree.message[level], proof.tree.multiplier[level]
    for a in range(graph.scope.size):
        f, v, m, n_free = graph.factor_of[a], graph.scope[a], graph.message_at[a], 0
        for b in range(graph.scope_first[f], graph.scope_first[f + 1]):
            n_free += proof.tight.n_left[graph.scope[b]] > 1
        if graph.table_at[f] >= 0 and n_free > 1 and proof.tight.n_left[v] > 1:  # others are costs of labels
            for i in range(graph.first[v + 1] - graph.first[v]):
                if dual.message[m + i] != message[m + i]:
                    say(proof, MOVE, a, i, dual.message[m + i] - message[m + i])
    for r in range(graph.row_low.size):
        if dual.multiplier[r] != multiplier[r]:
            say(proof, PRICE, r, 0, -dual.multiplier[r])


@kernel
def visit(instance: Instance, proof: Proof, level: int, n_sweeps: int) -> bool:
    """Raises the bound of a node that is to be split at a level; whether it is done."""
    (graph, cost, table), dual, goal = instance, proof.dual, proof.goal
    if leave_all(instance, proof):
        return True
    bound, _ = sum_anew(graph, cost, table, dual, True)
    useful = bound < goal.enough < np.inf or goal.enough == -np.inf
    if n_sweeps and useful and least_decided(graph, dual) >= 0:
        open_level(graph, dual, proof.tree, level)
        before, possible = bound, True
        for s in range(n_sweeps):
            possible = sweep(graph, table, s % 2 == 0, dual)
            now = quick_bound(graph, dual)
            gap = goal.target - now if goal.target < np.inf else abs(now)
            if not possible or stopped(dual.stop_flag) or gap <= 0.0 or (s > 4 and now - before < GAIN * gap):
                break
            before = now
        raised, _ = sum_anew(graph, cost, table, dual, True)
        if possible and raised > bound:
            say_messages(graph, proof, level)
            bound = raised
        else:
            recall(graph, dual, proof.tree, level)
    proof.tree.rest[level] = bound
    if bound >= goal.enough:
        say(proof, CLOSE, COST, 0, 0.0)
    return bool(bound >= goal.enough)


@kernel
def open_node(graph: Graph, proof: Proof, level: int, v: int) -> bool:
    """Begins to split a node on a variable; false if none is left to split on: it is one labelling."""
    tree = proof.tree
    if v < 0:
        for r in range(graph.row_low.size):
            if proof.dual.multiplier[r] != 0.0:  # rows say no more of it
                say(proof, PRICE, r, 0, 0.0)
        say(proof, CLOSE, LEAF, 0, 0.0)
        return False
    open_level(graph, proof.dual, tree, level)
    tree.split[level] = v
    for i in range(graph.first[v + 1] - graph.first[v]):
        tree.tried[level, i] = False
    tree.base[level] = tree.rest[level] - least_of(proof.dual.belief, graph.first[v], graph.first[v + 1])
    say(proof, SPLIT, v, 0, 0.0)
    return True


@kernel
def go_back(graph: Graph, proof: Proof, level: int) -> None:
    """Returns to the node of a level."""
    recall(graph, proof.dual, proof.tree, level)
    count_left(graph, proof.tight, 0)
    for v in range(graph.order.size):
        proof.tree.free[v] = 0
    copy(proof.dual.belief, proof.told, 0, graph.first[graph.order.size])


@kernel
def search(instance: Instance, proof: Proof) -> bool:
    """Logs the whole proof; false if there is only the bound of the first node, since the rest takes too much."""
    (graph, _, table), (dual, tree, tight, told, goal, _, used), level = instance, proof, 0
    for f in range(graph.table_at.size):
        a = graph.scope_first[f]
        if graph.table_at[f] >= 0 and graph.scope_first[f + 1] == a + 1:  # for the checker it is part of the costs
            for at in range(graph.first[graph.scope[a]], graph.first[graph.scope[a] + 1]):
                if table[graph.table_at[f] + at - graph.first[graph.scope[a]]] == np.inf:
                    dual.belief[at] = np.inf
    if not count_left(graph, tight, 1):
        say(proof, CLOSE, COST, 0, 0.0)
        return True
    for v in range(graph.order.size):
        tree.free[v] = 1
    copy(dual.belief, told, 0, graph.first[graph.order.size])
    if visit(instance, proof, 0, goal.first_sweeps):
        return True
    diving, n_nodes, root, mark = 0, 0, used[0], used[0]  # the level at which a dive began; -1: none
    if not open_node(graph, proof, 0, most_decided(graph, tight, False)[0]):
        return True
    while level >= 0:
        if 4 * used[0] > proof.said.size or level + 2 > tree.split.size or stopped(dual.stop_flag):
            used[0] = root
            say(proof, CLOSE, COST, 0, 0.0)
            return False
        if diving >= 0 and n_nodes > max(goal.dive_nodes, graph.order.size):
            level, diving, used[0] = diving, -1, mark
            go_back(graph, proof, level)
            done = False
            if rule_out_expensive(graph, tight, goal.enough - tree.rest[level]):
                for v in range(graph.order.size):
                    tell(graph, proof, v, COST)
                done = visit(instance, proof, level, goal.node_sweeps)
            if done or not open_node(graph, proof, level, least_decided(graph, dual)):
                level -= 1
                continue
        v = tree.split[level]
        i = cheapest_untried(graph, tree, level, v)
        if i < 0 or tree.base[level] + tree.belief[level, graph.first[v] + i] >= goal.enough:
            say(proof, END, 0, 0, 0.0)
            diving, level = -1 if level == diving else diving, level - 1
            continue
        tree.tried[level, i] = True
        say(proof, CHILD, i, 0, 0.0)
        go_back(graph, proof, level)
        choose(graph, tight, v, graph.first[v] + i)
        copy(dual.belief, told, graph.first[v], graph.first[v + 1])
        tree.free[v], n_nodes = 1, n_nodes + 1
        if visit(instance, proof, level + 1, goal.node_sweeps if diving < 0 else 0):
            continue
        if diving < 0:
            diving, n_nodes, mark = level + 1, 0, used[0]
        if open_node(graph, proof, level + 1, most_decided(graph, tight, False)[0]):
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
    stop_flag: IntArray,
) -> None:
    """Logs the proof of one problem, of which elimination leaves something: `reduced` has its plan and what is left."""
    batch, n = BatchArrays(*arrays), space_for(BatchArrays(*arrays), problems, reduced)
    n_floats = n.work, n.labels, together(dual_floats(n)), together(tree_floats(n, n_levels)), n.labels
    n_ints = together(tree_ints(n, n_levels)), n.variables, n.rows
    floats, ints = np.zeros(together(n_floats)), np.zeros(together(n_ints), dtype=np.int64)
    work, cost, for_dual, for_tree, told = split(floats, n_floats)
    indices, n_left, due = split(ints, n_ints)
    dual, tree = make_dual(n, for_dual, part(stop_flag, 0, stop_flag.size)), make_tree(n, n_levels, for_tree, indices)
    tight = Tight(dual.belief, dual.multiplier, n_left, due, tree.labels, tree.split, tree.chosen, tree.vector)
    said, used = part(log[0], 0, log[0].size), part(log[1], 0, log[1].size)
    proof = Proof(dual, tree, tight, told, Goal(*goal), said, used)
    plan, small, given = plan_at(reduced[0, 0]), graph_at(reduced[0, 1]), instance_of(batch, problems[0])
    stop_flag[CURRENT] = 1
    constant = eliminate(plan, given.cost, given.table, work, cost, dual.stop_flag)
    if constant == np.inf:
        say(proof, CLOSE, COST, 0, 0.0)
        used[1] = 1
    elif constant == constant:  # it was not stopped
        for at in range(small.first[min(1, small.order.size)]):
            cost[at] += constant
        start_dual(small, cost, dual)
        used[1] = search(Instance(small, cost, work), proof)
    stop_flag[CURRENT] = 0
    keep((floats, ints, log[0], log[1], stop_flag))

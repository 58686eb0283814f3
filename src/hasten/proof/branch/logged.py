"""A proof that nothing costs less than a known optimum, logged step by step (`hasten.proof.outline` reads the log).

Depth first. At each node, labels that a table or a row leaves no room for go; sweeps raise the bound, starting from the
messages of the node above; then a dive tries to end it. Where that takes too many nodes, labels that cost too much go,
and the node is split. What goes is a split, too: one part of it ends at once.

The log is only a plan. Whatever rounding does here, it is checked exactly what the steps show.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import driver, inlined_kernel, keep, kernel, part, split
from hasten.kernels.layout import Arrays, BatchArrays, Graph, Instance, graph_at, instance_of
from hasten.kernels.rows import in_reach
from hasten.proof.branch.dive import Tree, assess, assign, next_label, prepare, undo
from hasten.proof.branch.space import dual_floats, make_dual, make_tree, n_tree_floats, space_for, together, tree_ints
from hasten.proof.branch.split import cheapest_untried, least_decided, open_level, recall
from hasten.proof.elimination.kernels import eliminate, plan_at
from hasten.proof.outcome import stopped
from hasten.proof.sweep.dual import Dual, n_messages, quick_bound, start_dual, sum_anew, sweep
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.clock import AT

SPLIT, SUM, VIOLATED, LEAF, MOVE, PRICE = 0, 1, 2, 3, 4, 5  # what the log says
WORDS, NUMBERS, DONE = 0, 1, 2  # what is used of both, and whether the proof is complete
ROUNDS = 4  # of ruling labels out and sweeping again, before a node is split
GAIN = 1e-3  # share of the gap to the goal that sweeps must gain
STAYS, GOES, GONE = 0.0, 1.0, 2.0  # marks of labels


class Log(NamedTuple):
    """Steps, as words, with the numbers of messages and multipliers beside them."""

    words: IntArray
    numbers: FloatArray
    used: IntArray  # (3,)


class Goal(NamedTuple):
    """What is to be shown, and how."""

    enough: float  # parts that cost so much at least are done
    target: float  # sweeps stop there
    first_sweeps: int
    node_sweeps: int
    dive_nodes: int


@inlined_kernel
def say(log: Log, word: int) -> None:
    """Adds a word, as long as there is room."""
    if log.used[WORDS] < log.words.size:
        log.words[log.used[WORDS]] = word
    log.used[WORDS] += 1


@inlined_kernel
def say_number(log: Log, number: float) -> None:
    """Adds a number, as long as there is room."""
    if log.used[NUMBERS] < log.numbers.size:
        log.numbers[log.used[NUMBERS]] = number
    log.used[NUMBERS] += 1


@inlined_kernel
def is_full(log: Log) -> bool:
    """Whether there was no room for something."""
    return bool(log.used[WORDS] > log.words.size or log.used[NUMBERS] > log.numbers.size)


@inlined_kernel
def say_split(log: Log, v: int, n_parts: int) -> None:
    """Begins a split, of which the parts follow."""
    say(log, SPLIT)
    say(log, v)
    say(log, n_parts)


@kernel
def say_labels(graph: Graph, dual: Dual, v: int, m: int, mark: float, log: Log) -> None:
    """Adds a part of a split: the labels of a variable that have a mark."""
    n, place = 0, log.used[WORDS]
    say(log, 0)
    for i in range(graph.first[v + 1] - graph.first[v]):
        if dual.marginal[m + i] == mark:
            say(log, i)
            n += 1
    if place < log.words.size:
        log.words[place] = n


@kernel
def let_go(graph: Graph, dual: Dual, v: int, m: int, log: Log) -> int:
    """Logs a split into labels that go and that stay, by their marks from `m` on; returns how many go; -1: all do."""
    n_out, n_left = 0, 0
    for i in range(graph.first[v + 1] - graph.first[v]):
        n_out += dual.marginal[m + i] == GOES
        n_left += dual.marginal[m + i] == STAYS
    if n_left == 0:
        return -1
    if n_out:
        say_split(log, v, 2)
        say_labels(graph, dual, v, m, GOES, log)
        say_labels(graph, dual, v, m, STAYS, log)
        for i in range(graph.first[v + 1] - graph.first[v]):
            if dual.marginal[m + i] == GOES:
                dual.belief[graph.first[v] + i] = np.inf
    return n_out


@kernel
def keep_allowed(graph: Graph, dual: Dual, log: Log) -> bool:
    """Logs splits that take labels of infinite costs out of tables; false if a variable has no other."""
    marks = dual.marginal
    for v in range(graph.order.size):
        n_left, n = 0, graph.first[v + 1] - graph.first[v]
        for i in range(n):
            marks[i] = STAYS if dual.belief[graph.first[v] + i] < np.inf else GONE
            n_left += marks[i] == STAYS
        if n_left == 0:
            say(log, SUM)
            return False
        if n_left < n:
            say_split(log, v, 1)
            say_labels(graph, dual, v, 0, STAYS, log)
    return True


@kernel
def supported(graph: Graph, table: FloatArray, f: int, dual: Dual) -> bool:
    """Marks the labels of factor `f` that no tuple has by 1, others by 0; false if no tuple is left."""
    a0, a1 = graph.scope_first[f], graph.scope_first[f + 1]
    listing, m0, marks, found = graph.listing[f], graph.message_at[a0], dual.marginal, False
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
    return found


@kernel
def leave_tables(graph: Graph, table: FloatArray, dual: Dual, log: Log) -> int:
    """Lets labels go that a table forbids; returns how many, -1 if the node is done."""
    n_out = 0
    for f in range(graph.table_at.size):
        if graph.table_at[f] < 0:
            continue
        if not supported(graph, table, f, dual):
            say(log, SUM)
            return -1
        a0 = graph.scope_first[f]
        for a in range(a0, graph.scope_first[f + 1]):
            m = graph.message_at[a] - graph.message_at[a0]
            n = let_go(graph, dual, graph.scope[a], m, log)
            if n > 0:
                say(log, SUM)
                n_out += n
    return n_out


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
def leave_row(graph: Graph, r: int, dual: Dual, log: Log) -> int:
    """Lets labels go that row `r` leaves no room for; returns how many, -1 if the node is done."""
    low, high, n_out, marks = 0.0, 0.0, 0, dual.marginal
    c, c1 = graph.row_first[r], graph.row_first[r + 1]
    while c < c1:
        least, most, c = span(graph, r, c, dual.belief)
        low, high = low + least, high + most
    top, bottom = graph.row_most[r] + graph.row_margin[r], graph.row_least[r] - graph.row_margin[r]
    if low > top or high < bottom:
        say(log, VIOLATED)
        say(log, r)
        return -1
    c = c1 if high <= top and low >= bottom else graph.row_first[r]
    while c < c1:
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
            n = let_go(graph, dual, v, 0, log)
            if n:
                say(log, VIOLATED)
                say(log, r)
                n_out += n
            if n < 0:
                return -1
    return n_out


@kernel
def leave_expensive(graph: Graph, dual: Dual, room: float, log: Log) -> int:
    """Lets labels go that cost `room` more than their variable's cheapest, or more; returns how many."""
    n_out, marks = 0, dual.marginal
    for v in range(graph.order.size):
        least = np.inf
        for at in range(graph.first[v], graph.first[v + 1]):
            least = min(least, dual.belief[at])
        for at in range(graph.first[v], graph.first[v + 1]):
            goes = dual.belief[at] - least >= room
            marks[at - graph.first[v]] = GONE if dual.belief[at] == np.inf else GOES if goes else STAYS
        n = let_go(graph, dual, v, 0, log)
        if n > 0:
            say(log, SUM)
            n_out += n
    return n_out


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


@inlined_kernel
def say_price(log: Log, r: int, u: float) -> None:
    """Logs the multiplier of a row, as certificates take it: positive for the low limit."""
    say(log, PRICE)
    say(log, r)
    say_number(log, u)


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
    for x in range(ROUNDS):
        if rule_out(instance, dual, log):
            return True
        if goal.enough < np.inf and raise_bound(instance, dual, tree, level, goal, n_sweeps, log):
            return True
        words, numbers = log.used[WORDS], log.used[NUMBERS]
        if dive(instance, dual, tree, goal, log):
            return True
        log.used[WORDS], log.used[NUMBERS] = words, numbers
        keep_messages(graph, dual, tree, level)
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
    keep_messages(graph, dual, tree, 0)
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
        recall_above(graph, tree, level)
        if not finish(instance, dual, tree, level + 1, goal, goal.node_sweeps, log):
            if level + 2 > n_levels:
                return False
            level += 1
            split_level(graph, dual, tree, level, log)
    return True


@kernel
def recall_above(graph: Graph, tree: Tree, level: int) -> None:
    """Starts the next level with the messages of one."""
    for m in range(n_messages(graph)):
        tree.message[level + 1, m] = tree.message[level, m]
    for r in range(graph.row_low.size):
        tree.multiplier[level + 1, r] = tree.multiplier[level, r]


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
    n_floats = n.work, n.labels, together(dual_floats(n)), n_tree_floats(n, n_levels), most
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
    constant = eliminate(plan, given.cost, given.table, work, cost)
    watch[AT] = 1
    if constant == np.inf:
        say(said, SUM)
        used[DONE] = 1
    else:
        for at in range(small.first[1]):
            cost[at] += constant
        start_dual(small, cost, dual)
        used[DONE] = search(Instance(small, cost, work), dual, tree, Goal(*goal), said)
    watch[AT] = 0
    keep((floats, ints, words, numbers, used, watch))

"""Branching with the messages of sweeps as bounds: dives, and splits where a dive leaves something open.

A partial labelling must still cost the least beliefs of its free variables, plus the tables that have become one
variable short. A *dive* is depth first, the most decided variable next; going back undoes the changes, number by
number. Where it runs out of nodes, a *branch* splits on the least decided variable, raises the bound of each part by a
few sweeps, and dives there. Each pruned part costs at least the best labelling less rounding: a search that ends is a
proof.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import inlined_kernel, kernel
from hasten.kernels.layout import Graph, Instance, copy, stopped
from hasten.kernels.score import in_reach, next_weight, rows_hold, start_ranges, total_cost
from hasten.kernels.tolerance import EPS, LEAST, prune_above
from hasten.proof.sweep.dual import Dual, belief_anew, factor_minimum, n_messages, row_part, safe_bound, sweep
from hasten.proof.sweep.multipliers import two_least
from hasten.proof.sweep.sweeping import Known, decode, take_better
from hasten.support.arrays import FloatArray, IntArray

FINISHED, LIMIT, LEAF = 0, 1, 2  # nothing is left; too many nodes, or stopped; a labelling that is cheap enough


class Cursor(NamedTuple):
    """Where a depth-first search is."""

    level: int
    n_changed: int  # the lengths of both trails
    n_rows_changed: int
    n_nodes: int  # that it took so far


class Tree(NamedTuple):
    """Scratch space to branch in: a level for each variable that can be assigned.

    The *trails* list the places that were changed, with their old values; a level undoes the changes behind its marks.
    """

    vector: FloatArray  # (L,) beliefs with the tables that are one variable short
    row_low: FloatArray  # (R,) the least that each row can come to
    row_high: FloatArray  # (R,) and the most
    base: FloatArray  # (V + 1,) the least that the tables with two free variables or more, and rows, add, by level
    rest: FloatArray  # (V + 1,) the least cost of each level, without the variable that it assigns
    limit: FloatArray  # (V,) the value of the label tried last: the next one costs at least that
    least: FloatArray  # (F,) the least that each table costs without its messages
    before: FloatArray  # (messages,) the trail of the vector
    low_before: FloatArray  # (links,) that of rows
    high_before: FloatArray  # (links,)
    chosen: IntArray  # (V,) the variable assigned at each level; behind the current level stand the free ones
    label: IntArray  # (V,) its label, -1 before the first
    free: IntArray  # (V,) whether
    labels: IntArray  # (V,) a labelling
    place: IntArray  # (messages,) a place of the vector; each table gets one variable short once
    row: IntArray  # (links,) a row; each variable is assigned once
    split: IntArray  # (levels,) for branching, which has no more levels than dives: the variable that each splits on
    marks: IntArray  # (V + 1, 2) the lengths of both trails at each level
    message: FloatArray  # (levels, messages) the bound of each level
    belief: FloatArray  # (levels, L)
    multiplier: FloatArray  # (levels, R)
    tried: IntArray  # (levels, labels of a variable) whether


@kernel
def prune_from(best_cost: float, known: Known, off: float) -> float:
    """Returns the bound from which on parts are pruned; `off` is how far the rounding of messages can put one off."""
    if known.gap > 0.0:  # each pruned part costs no less than the best labelling
        return best_cost - known.gap + 2.0 * off
    return prune_above(best_cost, known.size, known.rounding - off)


@kernel
def prepare(graph: Graph, cost: FloatArray, table: FloatArray, dual: Dual, tree: Tree) -> bool:
    """Sets up the root of a dive from the messages; false if a row cannot hold."""
    for v in range(graph.order.size):
        tree.chosen[v], tree.free[v] = v, True
        for at in range(graph.first[v], graph.first[v + 1]):
            tree.vector[at] = np.inf
            if dual.belief[at] < np.inf:  # summed anew: sweeps let rounding pile up
                tree.vector[at], _ = belief_anew(graph, cost, dual, v, at)
    tree.base[0] = 0.0
    for f in range(graph.table_at.size):
        if graph.table_at[f] < 0:
            continue
        tree.least[f], _ = factor_minimum(graph, table, f, dual)
        if graph.scope_first[f + 1] - graph.scope_first[f] == 1:
            shorten(graph, table, dual, tree, f, graph.scope_first[f], 0.0, -1)
        else:
            tree.base[0] += tree.least[f]
    for r in range(graph.row_low.size):
        tree.base[0] += row_part(graph, r, dual.multiplier[r])
    tree.marks[0, 0], tree.marks[0, 1] = 0, 0
    return start_ranges(graph, tree.row_low, tree.row_high)


@inlined_kernel
def shorten(
    graph: Graph, table: FloatArray, dual: Dual, tree: Tree, f: int, slot: int, taken: float, n_changed: int
) -> int:
    """Adds what factor `f` costs, less `taken`, to the vector of its one free variable, that of `slot`.

    The old values go on the trail, of `n_changed` entries (-1: nothing will be undone); returns its new length.
    """
    at = graph.table_at[f]
    value = -taken
    for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
        if a != slot:
            label = tree.labels[graph.scope[a]]
            at += graph.stride[a] * label
            value -= dual.message[graph.message_at[a] + label]
    u = graph.scope[slot]
    for i in range(graph.first[u + 1] - graph.first[u]):
        place = graph.first[u] + i
        if n_changed >= 0:
            tree.place[n_changed], tree.before[n_changed] = place, tree.vector[place]
            n_changed += 1
        tree.vector[place] += value + table[at + i * graph.stride[slot]] - dual.message[graph.message_at[slot] + i]
    return n_changed


@kernel
def undo(tree: Tree, level: int, n_changed: int, n_rows_changed: int) -> None:
    """Undoes the changes after a level, the last one first."""
    for x in range(n_changed - 1, tree.marks[level, 0] - 1, -1):
        tree.vector[tree.place[x]] = tree.before[x]
    for x in range(n_rows_changed - 1, tree.marks[level, 1] - 1, -1):
        tree.row_low[tree.row[x]], tree.row_high[tree.row[x]] = tree.low_before[x], tree.high_before[x]


@inlined_kernel
def assess(graph: Graph, tree: Tree, level: int) -> tuple[float, int]:
    """Returns the least cost of a level, and its most decided free variable (-1: none is free), now its own."""
    bound, widest, place, lowest = tree.base[level], -1.0, -1, 0.0
    for x in range(level, graph.order.size):
        v = tree.chosen[x]
        least, second, _ = two_least(tree.vector, graph.first[v], graph.first[v + 1])
        bound += least
        if least == np.inf:
            return np.inf, v
        if second - least > widest:
            widest, place, lowest = second - least, x, least
    tree.rest[level] = bound - lowest
    if place < 0:
        return bound, -1
    chosen = tree.chosen[place]
    tree.chosen[place], tree.chosen[level] = tree.chosen[level], chosen
    return bound, chosen


@inlined_kernel
def assign(
    graph: Graph, table: FloatArray, dual: Dual, tree: Tree, level: int, v: int, i: int
) -> tuple[bool, int, int]:
    """Sets variable `v` to label `i`, one level down; returns whether all rows can hold, and both trails' lengths."""
    tree.labels[v] = i
    tree.base[level + 1] = tree.base[level] + tree.vector[graph.first[v] + i]
    n_changed = tree.marks[level, 0]
    for x in range(graph.touch_first[v], graph.touch_first[v + 1]):
        f = graph.factor_of[graph.touch[x]]
        if graph.table_at[f] < 0:
            continue
        n_free, slot = 0, -1
        for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
            if tree.free[graph.scope[a]]:
                n_free += 1
                slot = a
        if n_free == 1:
            n_changed = shorten(graph, table, dual, tree, f, slot, tree.least[f], n_changed)
    n_rows_changed, possible, c = tree.marks[level, 1], True, graph.cell_first[graph.first[v] + i]
    for x in range(graph.link_first[v], graph.link_first[v + 1]):
        r = graph.link_row[x]
        low, high = tree.row_low[r], tree.row_high[r]
        weight, c = next_weight(graph, c, graph.first[v] + i, r)
        tree.row[n_rows_changed], tree.low_before[n_rows_changed], tree.high_before[n_rows_changed] = r, low, high
        n_rows_changed += 1
        tree.row_low[r] = low + (weight - graph.link_low[x])
        tree.row_high[r] = high + (weight - graph.link_high[x])
        possible &= in_reach(graph, r, tree.row_low[r], tree.row_high[r])
    return possible, n_changed, n_rows_changed


@inlined_kernel
def next_label(graph: Graph, tree: Tree, level: int, v: int) -> int:
    """Returns the cheapest label of `v` that this level has not tried; -1 if none is left."""
    least, chosen = np.inf, -1
    last, last_value = tree.label[level], tree.limit[level]
    for i in range(graph.first[v + 1] - graph.first[v]):
        value = tree.vector[graph.first[v] + i]
        later = last < 0 or value > last_value or (value == last_value and i > last)
        if later and value < least:
            least, chosen = value, i
    return chosen


@inlined_kernel
def open_root(tree: Tree, chosen: int) -> Cursor:
    """Begins a search with a variable; all labels of it are to be tried."""
    tree.label[0] = -1
    tree.free[chosen] = False
    return Cursor(0, 0, 0, 1)


@kernel
def next_leaf(
    graph: Graph, table: FloatArray, dual: Dual, tree: Tree, cursor: Cursor, enough: float, max_nodes: int
) -> tuple[int, Cursor]:
    """Goes on, depth first, to the next labelling of all variables, leaving out parts that cost at least `enough`.

    Returns `LEAF`, with the labelling in `tree.labels`, `FINISHED` or `LIMIT`, and where the search is then.
    """
    level, n_changed, n_rows_changed, n_nodes = cursor
    while level >= 0:
        v = tree.chosen[level]
        undo(tree, level, n_changed, n_rows_changed)
        n_changed, n_rows_changed = tree.marks[level, 0], tree.marks[level, 1]
        i = next_label(graph, tree, level, v)
        if i < 0 or tree.rest[level] + tree.vector[graph.first[v] + i] >= enough:
            tree.free[v] = True  # labels are tried in the order of their costs: all later ones cost too much, too
            level -= 1
            continue
        if n_nodes >= max_nodes or stopped(dual.stop_flag):
            return LIMIT, Cursor(level, n_changed, n_rows_changed, n_nodes)
        n_nodes += 1
        tree.label[level], tree.limit[level] = i, tree.vector[graph.first[v] + i]
        possible, n_changed, n_rows_changed = assign(graph, table, dual, tree, level, v, i)
        if not possible:
            continue
        bound, chosen = assess(graph, tree, level + 1)
        if bound >= enough:
            continue
        if chosen < 0:
            return LEAF, Cursor(level, n_changed, n_rows_changed, n_nodes)
        level += 1
        tree.marks[level, 0], tree.marks[level, 1] = n_changed, n_rows_changed
        tree.label[level] = -1
        tree.free[chosen] = False
    return FINISHED, Cursor(level, n_changed, n_rows_changed, n_nodes)


@kernel
def dive(
    instance: Instance, dual: Dual, tree: Tree, max_nodes: int, best_cost: float, known: Known
) -> tuple[int, float, int]:
    """Searches all labellings depth first; returns whether it finished, the least cost and the nodes it took."""
    graph, cost, table = instance
    if not prepare(graph, cost, table, dual, tree):
        return FINISHED, best_cost, 1
    off = message_rounding(graph, dual)
    bound, chosen = assess(graph, tree, 0)
    if chosen < 0:  # no variables
        if rows_hold(graph, tree.labels):
            best_cost = min(best_cost, total_cost(graph, cost, table, tree.labels))
        return FINISHED, best_cost, 1
    enough = prune_from(best_cost, known, off)
    if bound >= enough:
        return FINISHED, best_cost, 1
    outcome, cursor = LEAF, open_root(tree, chosen)
    while outcome == LEAF:
        outcome, cursor = next_leaf(graph, table, dual, tree, cursor, enough, max_nodes)
        if outcome == LEAF:
            best_cost = take_better(instance, tree.labels, best_cost, known)
            enough = prune_from(best_cost, known, off)
    return outcome, best_cost, cursor.n_nodes


@kernel
def message_rounding(graph: Graph, dual: Dual) -> float:
    """Returns how far rounding can put a sum of beliefs and tables off that messages and multipliers take part in."""
    size, n_terms = 0.0, 4
    for a in range(graph.scope.size):
        v = graph.scope[a]
        largest = 0.0
        for i in range(graph.first[v + 1] - graph.first[v]):
            largest = max(largest, abs(dual.message[graph.message_at[a] + i]))
        size += 2.0 * largest
        n_terms += 2
    for c in range(graph.row_label.size):
        size += 2.0 * abs(dual.multiplier[graph.cell_row[c]] * graph.cell_weight[c])
        n_terms += 2
    for r in range(graph.row_low.size):
        u = dual.multiplier[r]
        if u > 0.0:
            size += 2.0 * u * abs(graph.row_most[r])
        elif u < 0.0:
            size -= 2.0 * u * abs(graph.row_least[r])
        n_terms += 2
    return n_terms * EPS * size + 2.0 * LEAST * (graph.row_label.size + graph.row_low.size)


class Effort(NamedTuple):
    """How hard to try."""

    first_sweeps: int  # before the first dive
    row_sweeps: int  # the same, where rows are left
    max_sweeps: int
    max_nodes: int  # 0: do not branch
    strict: int  # whether these are all; else a dive may take a node for each variable, even if that makes more
    row_nodes: int  # the least of them to allow where rows are left
    row_work: int  # and as many as this makes, each going through all labels and cells that are left
    node_sweeps: int  # sweeps at each split
    dive_nodes: int  # nodes of each dive


@kernel
def recall(graph: Graph, dual: Dual, tree: Tree, level: int) -> None:
    """Returns to the bound of a level."""
    copy(tree.message[level], dual.message, 0, n_messages(graph))
    copy(tree.belief[level], dual.belief, 0, graph.first[graph.order.size])
    copy(tree.multiplier[level], dual.multiplier, 0, graph.row_low.size)


@kernel
def branch(
    instance: Instance, dual: Dual, tree: Tree, effort: Effort, max_nodes: int, best_cost: float, known: Known
) -> tuple[int, float, int]:
    """Splits, bounds and dives until nothing is left; returns whether it finished, the least cost and the nodes."""
    (graph, cost, table), dive_nodes = instance, effort.dive_nodes
    enough = graph.order.size + 1  # nodes of a dive without a choice: one that is cut short had a variable to split on
    outcome, best_cost, n_nodes = dive(instance, dual, tree, min(max(dive_nodes, enough), max_nodes), best_cost, known)
    if outcome == FINISHED or n_nodes >= max_nodes or stopped(dual.stop_flag):  # there may be nothing to split on
        return outcome, best_cost, n_nodes
    level = 0
    open_level(graph, dual, tree, 0)
    while level >= 0:
        if n_nodes >= max_nodes or stopped(dual.stop_flag):
            return LIMIT, best_cost, n_nodes
        v = tree.split[level]
        i = cheapest_untried(graph, tree, level, v)
        if i < 0:
            level -= 1
            continue
        tree.tried[level, i] = True
        recall(graph, dual, tree, level)
        for j in range(graph.first[v + 1] - graph.first[v]):
            if j != i:
                dual.belief[graph.first[v] + j] = np.inf
        n_nodes += 1
        possible = True
        for s in range(effort.node_sweeps):
            possible = possible and sweep(graph, table, s % 2 == 0, dual)
        if not possible or safe_bound(graph, cost, table, dual) >= prune_from(best_cost, known, 0.0):
            continue
        if decode(graph, table, dual, tree.labels):
            best_cost = take_better(instance, tree.labels, best_cost, known)
        left = max(min(dive_nodes, max_nodes - n_nodes), enough)
        if level + 1 == tree.split.size:  # the last level: searched without further splits
            left = max_nodes - n_nodes
        if effort.strict:
            left = min(left, max_nodes - n_nodes)
            if left == 0:
                return LIMIT, best_cost, n_nodes
        outcome, best_cost, n = dive(instance, dual, tree, left, best_cost, known)
        n_nodes += n
        if outcome == FINISHED:
            continue
        if n_nodes >= max_nodes or stopped(dual.stop_flag):  # there may be nothing to split on
            return LIMIT, best_cost, n_nodes
        level += 1
        open_level(graph, dual, tree, level)
    return FINISHED, best_cost, n_nodes


@kernel
def least_decided(graph: Graph, dual: Dual) -> int:
    """Returns the variable, of those with a choice, whose two best beliefs are closest; -1 if none has a choice."""
    narrowest, chosen = np.inf, -1
    for v in range(graph.order.size):
        least, second, _ = two_least(dual.belief, graph.first[v], graph.first[v + 1])
        if second < np.inf and second - least < narrowest:
            narrowest, chosen = second - least, v
    return chosen


@kernel
def open_level(graph: Graph, dual: Dual, tree: Tree, level: int) -> None:
    """Keeps the bound as that of a level, which splits on the variable whose two best beliefs are closest."""
    copy(dual.message, tree.message[level], 0, n_messages(graph))
    copy(dual.belief, tree.belief[level], 0, graph.first[graph.order.size])
    copy(dual.multiplier, tree.multiplier[level], 0, graph.row_low.size)
    v = tree.split[level] = least_decided(graph, dual)
    for i in range(graph.first[v + 1] - graph.first[v]):
        tree.tried[level, i] = False


@kernel
def cheapest_untried(graph: Graph, tree: Tree, level: int, v: int) -> int:
    """Returns the label of least belief that a level has not tried; -1 if none is left."""
    least, chosen = np.inf, -1
    for i in range(graph.first[v + 1] - graph.first[v]):
        value = tree.belief[level, graph.first[v] + i]
        if not tree.tried[level, i] and value < least:
            least, chosen = value, i
    return chosen

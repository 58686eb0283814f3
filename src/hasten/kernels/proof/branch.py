"""Branch and bound, for what the dual bound leaves open.

Two searches, one inside the other. A *dive* is depth-first with the messages as they are: what a partial
labelling must still cost is the sum, over free variables, of their least belief plus the tables that have
become one variable short; updating it costs a few additions a node, so that small problems are finished in
microseconds. It takes the most decided variable first: that one's other labels are mostly pruned at once. Where
a dive runs out of nodes, *branch* splits on the least decided variable instead, raises the bound of each part
by a few sweeps that start from the parent's messages, and dives there.

What is pruned costs at least the best labelling less `margin`, rounding included, so that a search that ends is
a proof.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import driver, inlined_kernel, kernel
from hasten.kernels.layout import Graph
from hasten.kernels.proof.dual import Dual, copy_labels, decode, factor_minimum, safe_bound, sweep
from hasten.kernels.rows import rows_hold
from hasten.kernels.score import total_cost
from hasten.kernels.tolerance import EPS, FINE, allowance
from hasten.support.arrays import BoolArray, FloatArray, IntArray

FINISHED, LIMIT = 0, 1


class Tree(NamedTuple):
    """Room to branch in: a level for each variable that can be assigned."""

    vector: FloatArray  # (V + 1, L) beliefs with the tables that are one variable short, level by level
    row_low: FloatArray  # (V + 1, R) the least that each row can come to
    row_high: FloatArray  # (V + 1, R) and the most
    base: FloatArray  # (V + 1,) the least that the tables with two free variables or more, and rows, add
    chosen: IntArray  # (V,) the variable assigned at each level
    label: IntArray  # (V,) its label, -1 before the first
    limit: FloatArray  # (V,) the value of the label tried last: the next one costs at least that
    free: BoolArray  # (V,)
    least: FloatArray  # (F,) the least that each table costs without its messages
    labels: IntArray  # (V,) a labelling
    # for branching: the bound of each level
    message: FloatArray  # (V + 1, messages)
    belief: FloatArray  # (V + 1, L)
    multiplier: FloatArray  # (V + 1, R)
    split: IntArray  # (V + 1,) the variable that a level splits on
    tried: BoolArray  # (V + 1, labels of a variable)


@driver
def make_tree(n_variables: int, n_labels: int, n_rows: int, n_factors: int, n_messages: int, deep: bool) -> Tree:
    """Returns room to dive in and, if deep, to branch in."""
    levels = n_variables + 1 if deep else 0
    return Tree(
        np.zeros((n_variables + 1, n_labels)),
        np.zeros((n_variables + 1, n_rows)),
        np.zeros((n_variables + 1, n_rows)),
        np.zeros(n_variables + 1),
        np.zeros(n_variables, dtype=np.int64),
        np.zeros(n_variables, dtype=np.int64),
        np.zeros(n_variables),
        np.zeros(n_variables, dtype=np.bool_),
        np.zeros(n_factors),
        np.zeros(n_variables, dtype=np.int64),
        np.zeros((levels, n_messages)),
        np.zeros((levels, n_labels)),
        np.zeros((levels, n_rows)),
        np.zeros(levels, dtype=np.int64),
        np.zeros((levels, n_labels), dtype=np.bool_),
    )


@kernel
def prune_above(best_cost: float, size: float, margin: float) -> float:
    """Returns the bound from which on a part of the tree cannot hold a better labelling worth having."""
    if best_cost == np.inf:
        return np.inf
    return best_cost - FINE * allowance(best_cost, size) - margin


@kernel
def prepare(graph: Graph, cost: FloatArray, table: FloatArray, dual: Dual, tree: Tree) -> bool:
    """Sets up the root of a dive from the messages; false if a row cannot hold."""
    for v in range(graph.order.size):
        tree.free[v] = True
        for at in range(graph.first[v], graph.first[v + 1]):
            value = np.inf
            if dual.belief[at] < np.inf:  # summed anew: sweeps let rounding pile up
                value = cost[at]
                for x in range(graph.touch_first[v], graph.touch_first[v + 1]):
                    value += dual.message[graph.message_at[graph.touch[x]] + at - graph.first[v]]
                for c in range(graph.cell_first[at], graph.cell_first[at + 1]):
                    value += dual.multiplier[graph.cell_row[c]] * graph.cell_weight[c]
            tree.vector[0, at] = value
    tree.base[0] = 0.0
    for f in range(graph.table_at.size):
        if graph.table_at[f] < 0:
            continue
        tree.least[f], _ = factor_minimum(graph, table, f, dual)
        if graph.scope_first[f + 1] - graph.scope_first[f] == 1:
            shorten(graph, table, dual, tree, 0, f, graph.scope_first[f], 0.0)
        else:
            tree.base[0] += tree.least[f]
    for r in range(graph.row_low.size):
        u = dual.multiplier[r]
        if u > 0.0:
            tree.base[0] -= u * graph.row_most[r]
        elif u < 0.0:
            tree.base[0] -= u * graph.row_least[r]
        tree.row_low[0, r] = graph.rest_low[r]
        tree.row_high[0, r] = graph.rest_high[r]
        if breaks(graph, tree, 0, r):
            return False
    return True


@inlined_kernel
def shorten(
    graph: Graph, table: FloatArray, dual: Dual, tree: Tree, level: int, f: int, slot: int, taken: float
) -> None:
    """Adds what factor `f` costs, less `taken`, to the vector of its one free variable, that of `slot`."""
    at = graph.table_at[f]
    value = -taken
    for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
        if a != slot:
            label = tree.labels[graph.scope[a]]
            at += graph.stride[a] * label
            value -= dual.message[graph.message_at[a] + label]
    u = graph.scope[slot]
    for i in range(graph.first[u + 1] - graph.first[u]):
        tree.vector[level, graph.first[u] + i] += (
            value + table[at + i * graph.stride[slot]] - dual.message[graph.message_at[slot] + i]
        )


@kernel
def breaks(graph: Graph, tree: Tree, level: int, r: int) -> bool:
    """Whether row `r` can no longer hold."""
    return bool(tree.row_low[level, r] > graph.row_most[r] or tree.row_high[level, r] < graph.row_least[r])


@inlined_kernel
def assess(graph: Graph, tree: Tree, level: int) -> tuple[float, int]:
    """Returns what a level must cost at least, and its most decided free variable (-1: none is free)."""
    bound, widest, chosen = tree.base[level], -1.0, -1
    for v in range(graph.order.size):
        if not tree.free[v]:
            continue
        least, second = np.inf, np.inf
        for at in range(graph.first[v], graph.first[v + 1]):
            value = tree.vector[level, at]
            if value < least:
                least, second = value, least
            elif value < second:
                second = value
        bound += least
        if least == np.inf:
            return np.inf, v
        if second - least > widest:
            widest, chosen = second - least, v
    return bound, chosen


@inlined_kernel
def assign(graph: Graph, table: FloatArray, dual: Dual, tree: Tree, level: int, v: int, i: int) -> bool:
    """Makes the next level of one with variable `v` set to label `i`; false if some row can no longer hold."""
    tree.labels[v] = i
    tree.base[level + 1] = tree.base[level] + tree.vector[level, graph.first[v] + i]
    for at in range(graph.first[-1]):
        tree.vector[level + 1, at] = tree.vector[level, at]
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
            shorten(graph, table, dual, tree, level + 1, f, slot, tree.least[f])
    possible = True
    for r in range(graph.row_low.size):
        tree.row_low[level + 1, r] = tree.row_low[level, r]
        tree.row_high[level + 1, r] = tree.row_high[level, r]
    if graph.row_low.size:
        possible = count_rows(graph, tree, level + 1, v, i)
    return possible


@kernel
def count_rows(graph: Graph, tree: Tree, level: int, v: int, i: int) -> bool:
    """Puts the label of a variable in the place of what it could have added to the rows; false if one breaks."""
    possible = True
    for r in range(graph.row_low.size):
        low, high, weight = 0.0, 0.0, 0.0
        for at in range(graph.first[v], graph.first[v + 1]):
            value = 0.0
            for c in range(graph.cell_first[at], graph.cell_first[at + 1]):
                if graph.cell_row[c] == r:
                    value += graph.cell_weight[c]
            if at == graph.first[v]:
                low, high = value, value
            low, high = min(low, value), max(high, value)
            if at == graph.first[v] + i:
                weight = value
        tree.row_low[level, r] += weight - low
        tree.row_high[level, r] += weight - high
        possible &= not breaks(graph, tree, level, r)
    return possible


@inlined_kernel
def next_label(graph: Graph, tree: Tree, level: int, v: int) -> int:
    """Returns the cheapest label of `v` that this level has not tried; -1 if none is left."""
    least, chosen = np.inf, -1
    last, last_value = tree.label[level], tree.limit[level]
    for i in range(graph.first[v + 1] - graph.first[v]):
        value = tree.vector[level, graph.first[v] + i]
        later = last < 0 or value > last_value or (value == last_value and i > last)
        if later and value < least:
            least, chosen = value, i
    return chosen


@kernel
def dive(
    graph: Graph,
    cost: FloatArray,
    table: FloatArray,
    dual: Dual,
    tree: Tree,
    max_nodes: int,
    best_cost: float,
    best: IntArray,
    size: float,
    rounding: float,
) -> tuple[int, float, int]:
    """Searches all labellings depth first; returns whether it finished, the least cost and the nodes it took."""
    if not prepare(graph, cost, table, dual, tree):
        return FINISHED, best_cost, 1
    margin = rounding - message_rounding(graph, dual)  # whoever calls knows of the one, not of the other
    level, n_nodes = 0, 1
    bound, chosen = assess(graph, tree, 0)
    if chosen < 0:  # no variables
        if rows_hold(graph, tree.labels):
            best_cost = min(best_cost, total_cost(graph, cost, table, tree.labels))
        return FINISHED, best_cost, 1
    if bound >= prune_above(best_cost, size, margin):
        return FINISHED, best_cost, 1
    tree.chosen[0], tree.label[0] = chosen, -1
    tree.free[chosen] = False
    while level >= 0:
        v = tree.chosen[level]
        i = next_label(graph, tree, level, v)
        if i >= 0 and n_nodes < max_nodes:
            n_nodes += 1
            tree.label[level], tree.limit[level] = i, tree.vector[level, graph.first[v] + i]
            if not assign(graph, table, dual, tree, level, v, i):
                continue
            bound, chosen = assess(graph, tree, level + 1)
            if bound >= prune_above(best_cost, size, margin):
                continue
            if chosen < 0:
                value = total_cost(graph, cost, table, tree.labels)
                if value < best_cost and rows_hold(graph, tree.labels):
                    best_cost = value
                    copy_labels(tree.labels, best)
                continue
            level += 1
            tree.chosen[level], tree.label[level] = chosen, -1
            tree.free[chosen] = False
        elif i >= 0:
            return LIMIT, best_cost, n_nodes
        else:
            tree.free[v] = True
            level -= 1
    return FINISHED, best_cost, n_nodes


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
    return n_terms * EPS * size


@kernel
def store(graph: Graph, dual: Dual, tree: Tree, level: int, n_messages: int) -> None:
    """Keeps the bound of a level."""
    for m in range(n_messages):
        tree.message[level, m] = dual.message[m]
    for at in range(graph.first[-1]):
        tree.belief[level, at] = dual.belief[at]
    for r in range(graph.row_low.size):
        tree.multiplier[level, r] = dual.multiplier[r]


@kernel
def recall(graph: Graph, dual: Dual, tree: Tree, level: int, n_messages: int) -> None:
    """Returns to the bound of a level."""
    for m in range(n_messages):
        dual.message[m] = tree.message[level, m]
    for at in range(graph.first[-1]):
        dual.belief[at] = tree.belief[level, at]
    for r in range(graph.row_low.size):
        dual.multiplier[r] = tree.multiplier[level, r]


@kernel
def least_decided(graph: Graph, dual: Dual) -> int:
    """Returns the variable, of those with a choice, whose two best beliefs are closest; -1 if none has a choice."""
    narrowest, chosen = np.inf, -1
    for v in range(graph.order.size):
        least, second = np.inf, np.inf
        for at in range(graph.first[v], graph.first[v + 1]):
            value = dual.belief[at]
            if value < least:
                least, second = value, least
            elif value < second:
                second = value
        if second < np.inf and second - least < narrowest:
            narrowest, chosen = second - least, v
    return chosen


@kernel
def branch(
    graph: Graph,
    cost: FloatArray,
    table: FloatArray,
    dual: Dual,
    tree: Tree,
    n_messages: int,
    n_sweeps: int,
    dive_nodes: int,
    max_nodes: int,
    best_cost: float,
    best: IntArray,
    size: float,
    rounding: float,
) -> tuple[int, float, int]:
    """Splits, bounds and dives until nothing is left; returns whether it finished, the least cost and the nodes."""
    enough = graph.order.size + 1  # for a dive where all is decided: what it leaves open has a choice to split on
    outcome, best_cost, n_nodes = dive(
        graph, cost, table, dual, tree, min(max(dive_nodes, enough), max_nodes), best_cost, best, size, rounding
    )
    if outcome == FINISHED:
        return outcome, best_cost, n_nodes
    level = 0
    open_level(graph, dual, tree, 0, n_messages)
    while level >= 0:
        if n_nodes >= max_nodes:
            return LIMIT, best_cost, n_nodes
        v = tree.split[level]
        i = cheapest_untried(graph, tree, level, v)
        if i < 0:
            level -= 1
            continue
        tree.tried[level, i] = True
        recall(graph, dual, tree, level, n_messages)
        for j in range(graph.first[v + 1] - graph.first[v]):
            if j != i:
                dual.belief[graph.first[v] + j] = np.inf
        n_nodes += 1
        possible = True
        for s in range(n_sweeps):
            possible = possible and sweep(graph, table, s % 2 == 0, dual)
        if not possible:
            continue
        if safe_bound(graph, cost, table, dual) >= prune_above(best_cost, size, rounding):
            continue
        if decode(graph, table, dual, tree.labels):
            value = total_cost(graph, cost, table, tree.labels)
            if value < best_cost and rows_hold(graph, tree.labels):
                best_cost = value
                copy_labels(tree.labels, best)
        left = max(min(dive_nodes, max_nodes - n_nodes), enough)
        outcome, best_cost, n = dive(graph, cost, table, dual, tree, left, best_cost, best, size, rounding)
        n_nodes += n
        if outcome == FINISHED:
            continue
        level += 1
        open_level(graph, dual, tree, level, n_messages)
    return FINISHED, best_cost, n_nodes


@kernel
def open_level(graph: Graph, dual: Dual, tree: Tree, level: int, n_messages: int) -> None:
    """Keeps the bound as that of a level, and decides what to split on."""
    store(graph, dual, tree, level, n_messages)
    v = least_decided(graph, dual)
    tree.split[level] = v
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

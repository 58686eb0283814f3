"""Branch and bound by splits and dives, for problems that a dive leaves open.

Where a dive (`hasten.proof.branch.dive`) runs out of nodes, a *branch* splits on the least decided variable instead,
raises the bound of each part by a few sweeps that start from the parent's messages, and dives there. What is pruned
costs at least the best labelling less `margin`, rounding included, so that a search that ends is a proof.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import kernel
from hasten.kernels.layout import Graph, Instance, copy
from hasten.kernels.stopping import stopped
from hasten.proof.branch.dive import FINISHED, LIMIT, Tree, dive, prune_from
from hasten.proof.sweep.dual import Dual, n_messages, safe_bound, sweep
from hasten.proof.sweep.multipliers import two_least
from hasten.proof.sweep.sweeping import Known, decode, take_better


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
    """Splits, bounds and dives until nothing is left; returns whether it finished, the least cost and the nodes.

    `max_nodes` are those that are left of the effort.
    """
    (graph, cost, table), dive_nodes = instance, effort.dive_nodes
    enough = graph.order.size + 1  # for a dive where all is decided: what it leaves open has a choice to split on
    outcome, best_cost, n_nodes = dive(instance, dual, tree, min(max(dive_nodes, enough), max_nodes), best_cost, known)
    if outcome == FINISHED or n_nodes >= max_nodes or stopped(dual.watch):  # there may be nothing to split on
        return outcome, best_cost, n_nodes
    level = 0
    open_level(graph, dual, tree, 0)
    while level >= 0:
        if n_nodes >= max_nodes or stopped(dual.watch):
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
        if level + 1 == tree.split.size:  # the last: what is left is searched without further splits
            left = max_nodes - n_nodes
        if effort.strict:
            left = min(left, max_nodes - n_nodes)
            if left == 0:
                return LIMIT, best_cost, n_nodes
        outcome, best_cost, n = dive(instance, dual, tree, left, best_cost, known)
        n_nodes += n
        if outcome == FINISHED:
            continue
        if n_nodes >= max_nodes or stopped(dual.watch):  # there may be nothing to split on
            return LIMIT, best_cost, n_nodes
        level += 1
        open_level(graph, dual, tree, level)
    return FINISHED, best_cost, n_nodes


@kernel
def open_level(graph: Graph, dual: Dual, tree: Tree, level: int) -> None:
    """Keeps the bound as that of a level, which splits on the variable whose two best beliefs are closest."""
    copy(dual.message, tree.message[level], 0, n_messages(graph))
    copy(dual.belief, tree.belief[level], 0, graph.first[graph.order.size])
    copy(dual.multiplier, tree.multiplier[level], 0, graph.row_low.size)
    narrowest = np.inf
    for v in range(graph.order.size):
        least, second, _ = two_least(dual.belief, graph.first[v], graph.first[v + 1])
        if second < np.inf and second - least < narrowest:
            narrowest, tree.split[level] = second - least, v
    v = tree.split[level]
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

"""Branch and bound where rules are all that is left: each node rules out labels and raises its own bound.

Where many rules bind, the multipliers of the root soon fit the rest badly. So a node is *tightened*: labels that a row
leaves no room for, or that cost too much, are ruled out, and multipliers updated, again and again while that pays. It
goes depth first: a level that comes back rules its label out. A *plunge* finds a first labelling to compare bounds
with. Beliefs and bounds are summed anew at each node, with all that rounding can do taken off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hasten.jit import inlined_kernel, kernel, part, split
from hasten.kernels.layout import Graph, Instance, copy, stopped
from hasten.proof.branch.dive import FINISHED, LIMIT, prune_from
from hasten.proof.sweep.dual import Dual, sum_anew
from hasten.proof.sweep.multipliers import least_of, two_least, update_rows
from hasten.proof.sweep.sweeping import Known, take_better
from hasten.support.arrays import FloatArray, IntArray

SLOWER = 4  # times as long as a node of a dive, but it achieves more
DIVED = 48_000  # variables that nodes of a dive go through before, which takes about 0.1 ms
SWEEPS, FIRST_SWEEPS = 3, 30  # at a node, and at the first one
ENOUGH = 0.04  # share of the gap that a sweep must close for another one to be worth while
PLUNGE = 8  # a plunge gives one of this many free variables its label at a time


class Tight(NamedTuple):
    """Scratch space for one problem's search."""

    belief: FloatArray  # (L,) costs with all multipliers; inf for a label that is out
    multiplier: FloatArray  # (R,)
    n_left: IntArray  # (V,) how many labels are not out
    due: IntArray  # (R,) whether labels of its variables were ruled out since a row was last looked at
    labels: IntArray  # (V,) a labelling
    split: IntArray  # (V + 1,) the variable of each level
    chosen: IntArray  # (V + 1,) its label, by number
    kept: FloatArray  # (levels * (L + R),) beliefs and multipliers of each level


Search = Callable[[Instance, Dual, Tight, int, float, Known], tuple[int, float, int]]


@inlined_kernel
def rule_out(graph: Graph, tight: Tight, v: int, at: int) -> None:
    """Rules out a label of variable `v`."""
    tight.belief[at] = np.inf
    tight.n_left[v] -= 1
    for x in range(graph.link_first[v], graph.link_first[v + 1]):
        tight.due[graph.link_row[x]] = 1


@kernel
def choose(graph: Graph, tight: Tight, v: int, chosen: int) -> None:
    """Rules out all labels of variable `v` but one."""
    for at in range(graph.first[v], graph.first[v + 1]):
        if at != chosen and tight.belief[at] < np.inf:
            rule_out(graph, tight, v, at)


@inlined_kernel
def reach(graph: Graph, r: int, c: int, tight: Tight) -> tuple[float, float, int]:
    """Returns the least and the most that the variable of cell `c` adds to row `r`, and the next one's first cell."""
    v, c1 = graph.row_variable[c], graph.row_first[r + 1]
    least, most, n = np.inf, -np.inf, 0
    while c < c1 and graph.row_variable[c] == v:
        if tight.belief[graph.row_label[c]] < np.inf:
            least, most, n = min(least, graph.row_weight[c]), max(most, graph.row_weight[c]), n + 1
        c += 1
    if n < tight.n_left[v]:
        least, most = min(least, 0.0), max(most, 0.0)
    return least, most, c


@kernel
def tighten_row(graph: Graph, r: int, tight: Tight) -> bool:
    """Rules out the labels that row `r` leaves no room for; false if the row cannot hold."""
    low, high = 0.0, 0.0
    c, c1 = graph.row_first[r], graph.row_first[r + 1]
    while c < c1:
        least, most, c = reach(graph, r, c, tight)
        low += least
        high += most
    top, bottom = graph.row_most[r] + graph.row_margin[r], graph.row_least[r] - graph.row_margin[r]
    if low > top or high < bottom:
        return False
    c = c1 if high <= top and low >= bottom else graph.row_first[r]  # it holds in any case
    while c < c1:
        v, x = graph.row_variable[c], c
        least, most, c = reach(graph, r, c, tight)
        if least == most:
            continue
        for at in range(graph.first[v], graph.first[v + 1]):
            weight = 0.0
            if x < c and graph.row_label[x] == at:
                weight = graph.row_weight[x]
                x += 1
            fits = low + (weight - least) <= top and high + (weight - most) >= bottom
            if not fits and tight.belief[at] < np.inf:
                rule_out(graph, tight, v, at)
        if tight.n_left[v] == 0:
            return False
    return True


@kernel
def tighten_rows(graph: Graph, tight: Tight, stop_flag: IntArray) -> bool:
    """Rules out labels that rows leave no room for, until no more can be; false if a row cannot hold."""
    again = True
    while again and not stopped(stop_flag):
        again = False
        for r in range(graph.row_low.size):
            if tight.due[r]:
                tight.due[r], again = 0, True
                if not tighten_row(graph, r, tight):
                    return False
    return True


@kernel
def rule_out_expensive(graph: Graph, tight: Tight, room: float) -> int:
    """Rules out labels that cost `room` more than their variable's cheapest, or more; returns how many these are."""
    n_out = 0
    for v in range(graph.order.size):
        if tight.n_left[v] < 2:
            continue
        least = least_of(tight.belief, graph.first[v], graph.first[v + 1])
        for at in range(graph.first[v], graph.first[v + 1]):
            if tight.belief[at] < np.inf and tight.belief[at] - least >= room:
                rule_out(graph, tight, v, at)
                n_out += 1
    return n_out


@kernel
def tighten(graph: Graph, cost: FloatArray, dual: Dual, tight: Tight, enough: float, max_sweeps: int) -> float:
    """Tightens a node; returns its bound, inf if it has no labelling. A bound of `enough` is not raised further.

    Where it is stopped, the node is not as tight as it could be, and a node without a choice may break a row.
    """
    bound, before = -np.inf, -np.inf
    low, high, stop_flag = dual.row_low, dual.row_high, dual.stop_flag
    node = Dual(dual.message, tight.multiplier, tight.belief, dual.marginal, low, high, dual.smallest, stop_flag)
    for _ in range(max_sweeps):
        if not tighten_rows(graph, tight, stop_flag):
            return np.inf
        if stopped(stop_flag):
            return bound
        update_rows(graph, tight.belief, tight.multiplier, dual.smallest)
        bound, off = sum_anew(graph, cost, cost, node, True)  # there are no tables
        if bound >= enough:
            return bound
        n_out = rule_out_expensive(graph, tight, enough - bound + 4.0 * off)
        if n_out == 0 and not bound - before >= ENOUGH * (enough - bound):
            break
        before = bound
    return bound if tighten_rows(graph, tight, stop_flag) else np.inf


@kernel
def most_decided(graph: Graph, tight: Tight, priced: bool) -> tuple[int, int]:
    """Returns the variable, of those with a choice, whose two best beliefs are farthest apart, and its best label.

    The distance is what the variable costs more without that label. Where variables are `priced`, to find the one to
    split on, the prices that its labels pay for the rows that bind are added.
    """
    widest, chosen, label = -1.0, -1, -1
    for v in range(graph.order.size):
        if tight.n_left[v] < 2:
            continue
        least, second, best = two_least(tight.belief, graph.first[v], graph.first[v + 1])
        apart = second - least
        for at in range(graph.first[v], graph.first[v + 1] if priced else 0):
            if tight.belief[at] < np.inf:
                for c in range(graph.cell_first[at], graph.cell_first[at + 1]):
                    apart += abs(tight.multiplier[graph.cell_row[c]] * graph.cell_weight[c])
        if apart > widest:
            widest, chosen, label = apart, v, best
    return chosen, label


@kernel
def plunge(graph: Graph, tight: Tight, dual: Dual) -> bool:
    """Gives variables their best labels, the most decided first; returns whether that gives a labelling."""
    n_free = 1
    while n_free:
        n_free = 0
        for v in range(graph.order.size):
            n_free += tight.n_left[v] > 1
        for _ in range(-(-n_free // PLUNGE)):
            v, at = most_decided(graph, tight, False)
            if v < 0:
                break
            choose(graph, tight, v, at)
            if not tighten_rows(graph, tight, dual.stop_flag) or stopped(dual.stop_flag):
                return False
        update_rows(graph, tight.belief, tight.multiplier, dual.smallest)
    return True


@kernel
def take_labels(instance: Instance, tight: Tight, best_cost: float, known: Known) -> float:
    """Reads the labelling of a node without a choice; keeps it if it is better, and returns the least cost."""
    graph = instance.graph
    for v in range(graph.order.size):
        for at in range(graph.first[v], graph.first[v + 1]):
            if tight.belief[at] < np.inf:
                tight.labels[v] = at - graph.first[v]
    return float(take_better(instance, tight.labels, best_cost, known))


@kernel
def copy_level(graph: Graph, tight: Tight, level: int, keeps: bool) -> None:
    """Keeps a node as that of a level, or returns to it."""
    n_labels, n_rows = graph.first[graph.order.size], graph.row_low.size
    begin = level * (n_labels + n_rows)
    belief, multiplier = split(part(tight.kept, begin, begin + n_labels + n_rows), (n_labels, n_rows))
    if keeps:
        copy(tight.belief, belief, 0, n_labels)
        copy(tight.multiplier, multiplier, 0, n_rows)
    else:
        copy(belief, tight.belief, 0, n_labels)
        copy(multiplier, tight.multiplier, 0, n_rows)
        count_left(graph, tight, 0)


@kernel
def count_left(graph: Graph, tight: Tight, due: int) -> bool:
    """Counts the labels of each variable that are not out, and says which rows are due; false if one has none."""
    possible = True
    for v in range(graph.order.size):
        tight.n_left[v] = 0
        for at in range(graph.first[v], graph.first[v + 1]):
            tight.n_left[v] += tight.belief[at] < np.inf
        possible &= tight.n_left[v] > 0
    for r in range(graph.row_low.size):
        tight.due[r] = due
    return possible


@kernel
def start_tight(graph: Graph, dual: Dual, tight: Tight) -> bool:
    """Starts from the beliefs of sweeps; false if a variable has no label left."""
    copy(dual.belief, tight.belief, 0, graph.first[graph.order.size])
    copy(dual.multiplier, tight.multiplier, 0, graph.row_low.size)
    return bool(count_left(graph, tight, 1))


@kernel
def search_rows(
    instance: Instance, dual: Dual, tight: Tight, max_nodes: int, best_cost: float, known: Known
) -> tuple[int, float, int]:
    """Searches a graph without tables; returns whether it finished, the least cost and the nodes it took."""
    graph, cost, _ = instance
    if not start_tight(graph, dual, tight):
        return FINISHED, best_cost, 1
    levels = tight.kept.size // (graph.first[graph.order.size] + graph.row_low.size)
    bound = tighten(graph, cost, dual, tight, prune_from(best_cost, known, 0.0), FIRST_SWEEPS)
    if bound < prune_from(best_cost, known, 0.0):
        copy_level(graph, tight, 0, True)
        if plunge(graph, tight, dual):
            best_cost = take_labels(instance, tight, best_cost, known)
        copy_level(graph, tight, 0, False)
    level, n_nodes = 0, 1
    while True:
        enough = prune_from(best_cost, known, 0.0)
        bound, v, at = tighten(graph, cost, dual, tight, enough, SWEEPS), -1, -1
        if stopped(dual.stop_flag):  # part of the node may not have been looked at
            return LIMIT, best_cost, n_nodes
        if bound < enough:
            v, at = most_decided(graph, tight, True)
            if v < 0:
                best_cost = take_labels(instance, tight, best_cost, known)
        if v < 0 and level == 0:
            return FINISHED, best_cost, n_nodes
        if n_nodes >= max_nodes or (v >= 0 and level >= levels):
            return LIMIT, best_cost, n_nodes
        n_nodes += 1
        if v >= 0:
            copy_level(graph, tight, level, True)
            tight.split[level], tight.chosen[level] = v, at
            level += 1
            choose(graph, tight, v, at)
        else:
            level -= 1
            copy_level(graph, tight, level, False)
            rule_out(graph, tight, tight.split[level], tight.chosen[level])


@kernel
def search_nothing(
    instance: Instance, dual: Dual, tight: Tight, max_nodes: int, best_cost: float, known: Known
) -> tuple[int, float, int]:
    """Stands for `search_rows` in a driver that leaves it out."""
    return LIMIT, best_cost, 0

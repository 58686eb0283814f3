"""Moves: better labellings from a labelling, by solving one tree of variables after the other exactly.

A move draws a tree: no two of its variables are joined but for each with its parent. Elimination finds its best labels,
with the rules as prices; from the root on, each label chosen is the best that breaks no rule, or that breaks them
least. Rounds start from the best labelling and from that of the prices in turns. The same seed draws the same trees.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import inlined_kernel, kernel
from hasten.kernels.layout import Graph, Instance, stopped
from hasten.kernels.score import next_weight, row_sum, rows_hold, total_cost
from hasten.proof.outcome import copy_labels
from hasten.proof.sweep.dual import Dual
from hasten.proof.sweep.multipliers import two_least
from hasten.proof.sweep.sweeping import cheapest_label
from hasten.support.arrays import FloatArray, IntArray

MULTIPLIER, MODULUS = 48271, 2147483647  # of the random numbers (Park and Miller's)
SEED, OUTSIDE = 0, -2
ROUND = 1024  # moves after which it returns to the best labelling
ROOM, ROOMS = 0.01, 8  # how much more than the best a labelling may cost on the way: a share of it, times below 8
PRICES = 4  # a move has none of the prices, or one to three thirds of them


class Moves(NamedTuple):
    """A labelling, and scratch space for moves."""

    labels: IntArray  # (V,)
    before: IntArray  # (V,) the labels of a tree before a move
    tree: IntArray  # (V,) its variables, the root first
    parent: IntArray  # (V,) of each variable of the tree, -1 for the root; OUTSIDE of it elsewhere
    random: IntArray  # (1,)
    value: FloatArray  # (L,) the least that the part of the tree below costs, for each label
    joint: FloatArray  # (labels of a variable,) what a variable adds to its parent
    total: FloatArray  # (R,) what each row comes to


@inlined_kernel
def draw(moves: Moves, n: int) -> int:
    """Returns a random number below `n`."""
    moves.random[SEED] = moves.random[SEED] * MULTIPLIER % MODULUS
    return int(moves.random[SEED] * n // MODULUS)


@inlined_kernel
def broken(graph: Graph, r: int, total: float) -> float:
    """Returns by how much a sum breaks row `r`."""
    return float(max(0.0, total - graph.row_most[r], graph.row_least[r] - total))


@kernel
def joins(graph: Graph, moves: Moves, v: int, other: int) -> bool:
    """Whether `v` may join the tree as a child of `other`: no table of it has a third variable of the tree."""
    for x in range(graph.touch_first[v], graph.touch_first[v + 1]):
        f = graph.factor_of[graph.touch[x]]
        if graph.table_at[f] < 0:
            continue
        for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
            u = graph.scope[a]
            if u != v and u != other and moves.parent[u] != OUTSIDE:
                return False
    return True


@kernel
def draw_tree(graph: Graph, dual: Dual, moves: Moves, most: int) -> int:
    """Draws a tree of so many variables at most; returns how many it has."""
    root = draw(moves, graph.order.size)
    moves.tree[0], moves.parent[root], n, at = root, -1, 1, 0
    while at < n and n < most:
        v = moves.tree[at]
        at += 1
        n_slots = graph.touch_first[v + 1] - graph.touch_first[v]
        begin = draw(moves, n_slots) if n_slots else 0
        for y in range(n_slots):
            f = graph.factor_of[graph.touch[graph.touch_first[v] + (begin + y) % n_slots]]
            if graph.table_at[f] < 0:
                continue
            for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
                u = graph.scope[a]
                if moves.parent[u] == OUTSIDE and n < most and joins(graph, moves, u, v):
                    moves.tree[n], moves.parent[u] = u, v
                    n += 1
    return n


@inlined_kernel
def slot_of(graph: Graph, f: int, other: int) -> int:
    """Returns the slot of variable `other` in factor `f`; -1 if it is in none."""
    slot = -1
    for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
        if graph.scope[a] == other:
            slot = a
    return slot


@inlined_kernel
def place(graph: Graph, f: int, labels: IntArray, v: int, other: int) -> int:
    """Returns where the entries of factor `f` are, given the labels of all variables but two."""
    at = graph.table_at[f]
    for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
        if graph.scope[a] != v and graph.scope[a] != other:
            at += graph.stride[a] * labels[graph.scope[a]]
    return int(at)


@kernel
def eliminate_tree(instance: Instance, dual: Dual, moves: Moves, n: int, price: float) -> None:
    """Finds the least that each part of a tree costs, from the leaves to the root."""
    graph, cost, table = instance
    value, joint, labels = moves.value, moves.joint, moves.labels
    for x in range(n):
        v = moves.tree[x]
        first, k = graph.first[v], graph.first[v + 1] - graph.first[v]
        for i in range(k):
            at = first + i
            total = cost[at] if dual.belief[at] < np.inf or i == labels[v] else np.inf
            if price > 0.0 and total < np.inf:
                for c in range(graph.cell_first[at], graph.cell_first[at + 1]):
                    total += price * dual.multiplier[graph.cell_row[c]] * graph.cell_weight[c]
            value[at] = total
        for y in range(graph.touch_first[v], graph.touch_first[v + 1]):
            slot = graph.touch[y]
            f = graph.factor_of[slot]
            alone = graph.table_at[f] >= 0
            for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
                alone &= graph.scope[a] == v or moves.parent[graph.scope[a]] == OUTSIDE
            if alone:
                at = place(graph, f, labels, v, v)
                for i in range(k):
                    value[first + i] += table[at + i * graph.stride[slot]]
    for x in range(n - 1, 0, -1):
        v = moves.tree[x]
        parent = moves.parent[v]
        first, k = graph.first[v], graph.first[v + 1] - graph.first[v]
        above, k_above = graph.first[parent], graph.first[parent + 1] - graph.first[parent]
        n_shared, slot, other = 0, -1, -1
        for y in range(graph.touch_first[v], graph.touch_first[v + 1]):
            f = graph.factor_of[graph.touch[y]]
            found = slot_of(graph, f, parent)
            if graph.table_at[f] >= 0 and found >= 0:
                n_shared, slot, other = n_shared + 1, graph.touch[y], found
        if n_shared == 1:
            f = graph.factor_of[slot]
            at, step, jump = place(graph, f, labels, v, parent), graph.stride[slot], graph.stride[other]
            for j in range(k_above):
                least = np.inf
                if value[above + j] < np.inf:
                    for i in range(k):
                        least = min(least, value[first + i] + table[at + j * jump + i * step])
                value[above + j] += least
            continue
        for j in range(k_above):
            for i in range(k):
                joint[i] = value[first + i]
            add_shared(graph, table, moves, v, parent, j)
            least = np.inf
            for i in range(k):
                least = min(least, joint[i])
            value[above + j] += least


@kernel
def add_shared(graph: Graph, table: FloatArray, moves: Moves, v: int, parent: int, j: int) -> None:
    """Adds, for each label of `v`, what the tables cost that it shares with its parent, whose label is `j`."""
    for y in range(graph.touch_first[v], graph.touch_first[v + 1]):
        slot = graph.touch[y]
        f = graph.factor_of[slot]
        other = slot_of(graph, f, parent)
        if graph.table_at[f] >= 0 and other >= 0:
            at = place(graph, f, moves.labels, v, parent) + j * graph.stride[other]
            for i in range(graph.first[v + 1] - graph.first[v]):
                moves.joint[i] += table[at + i * graph.stride[slot]]


@kernel
def shift(graph: Graph, low: FloatArray, high: FloatArray, v: int, label: int, sign: float) -> None:
    """Moves the ranges of rows from any label of `v` to one of them (`sign` 1), or back (-1)."""
    c = graph.cell_first[label]
    for x in range(graph.link_first[v], graph.link_first[v + 1]):
        r = graph.link_row[x]
        weight, c = next_weight(graph, c, label, r)
        low[r] += sign * (weight - graph.link_low[x])
        high[r] += sign * (weight - graph.link_high[x])


@kernel
def choose_labels(instance: Instance, dual: Dual, moves: Moves, n: int) -> bool:
    """Chooses the labels of a tree from the root on; false if it finds none."""
    graph, _, table = instance
    low, high = dual.row_low, dual.row_high
    for x in range(n):
        v = moves.tree[x]
        first, k = graph.first[v], graph.first[v + 1] - graph.first[v]
        for i in range(k):
            moves.joint[i] = moves.value[first + i]
        if moves.parent[v] >= 0:
            add_shared(graph, table, moves, v, moves.parent[v], moves.labels[moves.parent[v]])
        chosen, broken_by = -1, np.inf
        ruled = graph.link_first[v + 1] > graph.link_first[v]
        while True:  # the cheapest label first: mostly it breaks nothing
            best, at = np.inf, -1
            for i in range(k):
                if moves.joint[i] < best:
                    best, at = moves.joint[i], i
            if at < 0:
                break
            moves.joint[at] = np.inf
            excess, c = 0.0, graph.cell_first[first + at]  # by which more rows are broken for certain then
            for y in range(graph.link_first[v], graph.link_first[v + 1]):
                r = graph.link_row[y]
                weight, c = next_weight(graph, c, first + at, r)
                least, most = low[r] + (weight - graph.link_low[y]), high[r] + (weight - graph.link_high[y])
                excess += max(0.0, least - graph.row_most[r]) + max(0.0, graph.row_least[r] - most)
                excess -= max(0.0, low[r] - graph.row_most[r]) + max(0.0, graph.row_least[r] - high[r])
            if chosen < 0 or excess < broken_by:
                chosen, broken_by = at, excess
            if excess <= 0.0:
                break
        if chosen < 0:
            return False
        moves.labels[v] = chosen
        if ruled:
            shift(graph, low, high, v, first + chosen, 1.0)
    return True


@kernel
def local_cost(instance: Instance, moves: Moves, n: int) -> float:
    """Returns what the labels of a tree cost, with all tables that its variables are in."""
    (graph, cost, table), total = instance, 0.0
    for x in range(n):
        v = moves.tree[x]
        total += cost[graph.first[v] + moves.labels[v]]
        for y in range(graph.touch_first[v], graph.touch_first[v + 1]):
            f = graph.factor_of[graph.touch[y]]
            if graph.table_at[f] < 0:
                continue
            at, first = graph.table_at[f], v
            for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
                u = graph.scope[a]
                at += graph.stride[a] * moves.labels[u]
                if moves.parent[u] == v:  # a table of both is its parent's
                    first = v
                elif u != v and u == moves.parent[v]:
                    first = u
            if first == v:
                total += table[at]
    return total


@kernel
def move(instance: Instance, dual: Dual, moves: Moves, most: int, excess: float, room: float) -> tuple[float, float]:
    """Solves one tree; returns by how much rows are broken then, and by how much the cost has changed."""
    graph = instance.graph
    n = draw_tree(graph, dual, moves, most)
    price = draw(moves, PRICES) / (PRICES - 1.0)
    low, high = dual.row_low, dual.row_high
    for r in range(graph.row_low.size):
        low[r] = high[r] = moves.total[r]
    before = local_cost(instance, moves, n)
    for x in range(n):
        v = moves.tree[x]
        moves.before[x] = moves.labels[v]
        shift(graph, low, high, v, graph.first[v] + moves.labels[v], -1.0)
    eliminate_tree(instance, dual, moves, n, price)
    accepted, after, now = choose_labels(instance, dual, moves, n), np.inf, np.inf
    if accepted:
        after, now = local_cost(instance, moves, n), 0.0
        for r in range(graph.row_low.size):
            now += broken(graph, r, low[r])
        accepted = after < np.inf and (now < excess or (now <= excess and after <= before + room))
    for x in range(n):
        v = moves.tree[x]
        moves.parent[v] = OUTSIDE
        if not accepted:
            moves.labels[v] = moves.before[x]
    if not accepted:
        return excess, 0.0
    for r in range(graph.row_low.size):
        moves.total[r] = low[r]
    return now, after - before


@kernel
def improve(instance: Instance, dual: Dual, moves: Moves, best: IntArray, n_moves: int, least: float) -> float:
    """Makes some moves, from the best labelling and from what prices say in turns; returns the least cost."""
    graph = instance.graph
    n_variables, scale, room, excess, cost = graph.order.size, 1, 0.0, 0.0, 0.0
    for n in range(n_moves):
        if stopped(dual.watch):
            break
        if n % ROUND == 0:
            if least < np.inf and n % (2 * ROUND):
                copy_labels(best, moves.labels)
                cost, room = least, draw(moves, ROOMS) * ROOM * abs(least)
            else:
                for t in range(n_variables):  # by beliefs and the tables that are complete, rules aside
                    v = graph.order[t]
                    chosen = cheapest_label(graph, instance.table, dual, moves.labels, t, False)
                    if chosen < 0:
                        _, _, at = two_least(dual.belief, graph.first[v], graph.first[v + 1])
                        chosen = max(at, graph.first[v]) - graph.first[v]
                    moves.labels[v] = chosen
                cost, room = total_cost(graph, instance.cost, instance.table, moves.labels), 0.0
            excess = 0.0
            for v in range(n_variables):
                moves.parent[v] = OUTSIDE
            for r in range(graph.row_low.size):
                moves.total[r], _ = row_sum(graph, r, moves.labels)
                excess += broken(graph, r, moves.total[r])
        scale = scale * 2 if scale < n_variables else 2
        most = min(1 + draw(moves, scale), n_variables)
        allowed = max(0.0, least + room - cost) if excess <= 0.0 and room > 0.0 else 0.0
        excess, change = move(instance, dual, moves, most, excess, allowed)
        cost += change
        if excess <= 0.0 and not cost >= least and rows_hold(graph, moves.labels):
            cost = total_cost(graph, instance.cost, instance.table, moves.labels)
            if cost < least:
                least = cost
                copy_labels(moves.labels, best)
    return least

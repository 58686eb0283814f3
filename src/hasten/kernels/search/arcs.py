"""Arc consistency: removing the labels that no allowed tuple, or no choice of the other labels in a row, supports."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import driver, inlined_kernel, keep, kernel, split
from hasten.kernels.layout import BatchArrays, Graph, copy, costs_of, graph_of, labels_of, tables_of
from hasten.kernels.score import entry, rows_hold
from hasten.kernels.search.nodes import Found
from hasten.support.arrays import FloatArray, IntArray


@kernel
def revise_factor(graph: Graph, table: FloatArray, f: int, alive: IntArray, support: IntArray) -> bool:
    """Removes the labels that no allowed tuple of factor `f` supports; returns whether any was removed."""
    a0, a1 = graph.scope_first[f], graph.scope_first[f + 1]
    arity = a1 - a0
    for a in range(a0, a1):
        v = graph.scope[a]
        for at in range(graph.first[v], graph.first[v + 1]):
            support[at] = False
    listing = graph.listing[f]
    t0 = graph.list_first[listing]
    for t in range(t0, graph.list_first[listing + 1]):
        if table[graph.table_at[f] + graph.list_entry[t]] == np.inf:
            continue
        at = graph.list_label_at[listing] + (t - t0) * arity
        possible = True
        for s in range(arity):
            possible = possible and alive[graph.first[graph.scope[a0 + s]] + graph.list_label[at + s]] != 0
        if possible:
            for s in range(arity):
                support[graph.first[graph.scope[a0 + s]] + graph.list_label[at + s]] = True
    changed = False
    for a in range(a0, a1):
        v = graph.scope[a]
        for at in range(graph.first[v], graph.first[v + 1]):
            if alive[at] and not support[at]:
                alive[at] = False
                changed = True
    return changed


@kernel
def revise_row(graph: Graph, r: int, alive: IntArray) -> bool:
    """Removes the labels with which row `r` cannot hold; returns whether any was removed."""
    least, most = 0.0, 0.0
    c0, c1 = graph.row_first[r], graph.row_first[r + 1]
    c = c0
    while c < c1:
        end, low, high = contribution(graph, c, c1, alive)
        least += low
        most += high
        c = end
    margin = graph.row_margin[r]
    low_limit, high_limit = graph.row_least[r] - margin, graph.row_most[r] + margin
    changed = False
    c = c0
    while c < c1:
        end, low, high = contribution(graph, c, c1, alive)
        v = graph.row_variable[c]
        x = c
        for at in range(graph.first[v], graph.first[v + 1]):
            weight = 0.0
            if x < end and graph.row_label[x] == at:
                weight = graph.row_weight[x]
                x += 1
            if alive[at] and (least - low + weight > high_limit or most - high + weight < low_limit):
                alive[at] = False
                changed = True
        c = end
    return changed


@kernel
def contribution(graph: Graph, c: int, c1: int, alive: IntArray) -> tuple[int, float, float]:
    """Returns where the cells of one variable of a row end, and the least and most that its labels can add."""
    v = graph.row_variable[c]
    low, high = np.inf, -np.inf
    x = c
    for at in range(graph.first[v], graph.first[v + 1]):
        weight = 0.0
        if x < c1 and graph.row_label[x] == at:
            weight = graph.row_weight[x]
            x += 1
        if alive[at]:
            low, high = min(low, weight), max(high, weight)
    if low == np.inf:
        return x, 0.0, 0.0  # an emptied domain is noticed by the caller
    return x, low, high


class Scratch(NamedTuple):
    """Scratch space to propagate in."""

    support: IntArray  # (L,) whether
    before: IntArray  # (L,) whether
    queue: IntArray  # (F,) factors to revise, a ring
    queued: IntArray  # (F,) whether


@inlined_kernel
def push_neighbours(graph: Graph, v: int, skip: int, scratch: Scratch, tail: int) -> int:
    """Queues the tables that touch a variable, but for one; returns the new end of the queue."""
    size = graph.table_at.size + 1
    for x in range(graph.touch_first[v], graph.touch_first[v + 1]):
        f = graph.factor_of[graph.touch[x]]
        if graph.table_at[f] >= 0 and f != skip and not scratch.queued[f]:
            scratch.queued[f] = True
            scratch.queue[tail] = f
            tail = (tail + 1) % size
    return tail


@kernel
def propagate(graph: Graph, table: FloatArray, alive: IntArray, changed: int, scratch: Scratch) -> bool:
    """Makes all consistent after variable `changed` (-1: any) lost labels; false if a domain empties."""
    size = graph.table_at.size + 1
    head, tail = 0, 0
    consistent, rows_done = True, graph.row_low.size == 0
    for v in range(graph.order.size):
        if changed < 0 or v == changed:
            consistent &= not emptied(graph, alive, v)
            tail = push_neighbours(graph, v, -1, scratch, tail)
    while consistent and (head != tail or not rows_done):
        if head != tail:
            f = scratch.queue[head]
            head = (head + 1) % size
            scratch.queued[f] = False
            a0, a1 = graph.scope_first[f], graph.scope_first[f + 1]
            for a in range(a0, a1):
                v = graph.scope[a]
                copy(alive, scratch.before, graph.first[v], graph.first[v + 1])
            if revise_factor(graph, table, f, alive, scratch.support):
                rows_done = graph.row_low.size == 0
                for a in range(a0, a1):
                    v = graph.scope[a]
                    lost = False
                    for at in range(graph.first[v], graph.first[v + 1]):
                        lost |= scratch.before[at] != alive[at]
                    if lost:
                        consistent &= not emptied(graph, alive, v)
                        tail = push_neighbours(graph, v, f, scratch, tail)
        else:
            rows_done = True
            for r in range(graph.row_low.size):
                if revise_row(graph, r, alive):
                    rows_done = False
                    for c in range(graph.row_first[r], graph.row_first[r + 1]):
                        v = graph.row_variable[c]
                        consistent &= not emptied(graph, alive, v)
                        tail = push_neighbours(graph, v, -1, scratch, tail)
                if graph.row_first[r] == graph.row_first[r + 1]:
                    consistent &= graph.row_least[r] <= 0.0 <= graph.row_most[r]
    while head != tail:
        scratch.queued[scratch.queue[head]] = False
        head = (head + 1) % size
    return consistent


@inlined_kernel
def emptied(graph: Graph, alive: IntArray, v: int) -> bool:
    """Whether a variable has no label left."""
    for at in range(graph.first[v], graph.first[v + 1]):
        if alive[at]:
            return False
    return True


@kernel
def search(
    graph: Graph,
    cost: FloatArray,
    table: FloatArray,
    alive: IntArray,
    trial: IntArray,
    scratch: Scratch,
    labels: IntArray,
) -> bool:
    """Assigns variables greedily, each the cheapest label with which all stays arc consistent; false at a dead end."""
    for at in range(alive.size):
        alive[at] = cost[at] < np.inf
    if not propagate(graph, table, alive, -1, scratch):
        return False
    for t in range(graph.order.size):
        k = graph.order[t]
        first, end = graph.first[k], graph.first[k + 1]
        while True:
            least, chosen = np.inf, -1
            for at in range(first, end):
                if alive[at]:
                    labels[k] = at - first
                    value = cost[at] + finite_tables(graph, table, t, labels)
                    if chosen < 0 or value < least:
                        least, chosen = value, at
            if chosen < 0:
                return False
            copy(alive, trial, 0, alive.size)
            for at in range(first, end):
                trial[at] = False
            trial[chosen] = True
            if propagate(graph, table, trial, k, scratch):
                copy(trial, alive, 0, alive.size)
                labels[k] = chosen - first
                break
            alive[chosen] = False
    return True


@kernel
def finite_tables(graph: Graph, table: FloatArray, t: int, labels: IntArray) -> float:
    """Returns the cost of the tables that step `t` completes, where they are finite."""
    value = 0.0
    for x in range(graph.done_first[t], graph.done_first[t + 1]):
        f = graph.done[x]
        if graph.table_at[f] >= 0:
            soft = table[graph.table_at[f] + entry(graph, f, labels)]
            if soft < np.inf:
                value += soft
    return value


@driver
def search_some(batch: BatchArrays, problems: IntArray, found: Found) -> None:
    """Searches some problems."""
    for p in problems:
        graph, mine = graph_of(batch, p), labels_of(batch, found.labels, p)
        n_labels = graph.first[graph.order.size]
        n_factors = graph.table_at.size
        ints = np.zeros(4 * n_labels + 2 * n_factors + 1, dtype=np.int64)
        alive, trial, support, before, queue, queued = split(
            ints, (n_labels, n_labels, n_labels, n_labels, n_factors + 1, n_factors)
        )
        scratch = Scratch(support, before, queue, queued)
        done = search(graph, costs_of(batch, p), tables_of(batch, p), alive, trial, scratch, mine)
        found.done[p] = done and rows_hold(graph, mine)
        if not found.done[p]:
            for v in range(mine.size):
                mine[v] = -1
        keep(ints)

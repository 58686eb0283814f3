"""Pieces: some variables, solved exactly by elimination while all others are fixed.

A piece grows from one variable, or from a few that are apart, along tables, as long as its elimination stays cheap:
each variable keeps the list of those before it that its message will be over. Elimination goes from the last variable
to the first; forwards again, each label chosen is the best that breaks no rule, or that breaks them least.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import inlined_kernel, kernel
from hasten.kernels.layout import Graph, Instance
from hasten.kernels.score import next_weight
from hasten.proof.sweep.dual import Dual
from hasten.support.arrays import FloatArray, IntArray

MULTIPLIER, MODULUS = 48271, 2147483647  # of the random numbers (Park and Miller's)
SEED, OUTSIDE = 0, -1
ROOTS = 3  # variables that a piece grows from at most
WIDTH = 4  # variables that a message is over at most
LARGEST, STORE = 2**20, 2**22  # entries of a message and of all those of a piece, its own variable's labels included
BASE, STEP, KIND, STRIDE = 0, 1, 2, 3  # of a term; one stride for each variable of the message
TERM = STRIDE + WIDTH
TABLE, MESSAGE, GUARD = 0, 1, 2  # kinds of terms


class Piece(NamedTuple):
    """A labelling, and scratch space for pieces. Variables of a piece have places in it, from 0 on."""

    labels: IntArray  # (V,)
    variable: IntArray  # (V,) by place
    place: IntArray  # (V,) of each variable, OUTSIDE elsewhere
    n_live: IntArray  # (V,) how many labels each place has
    at: IntArray  # (V,) where its message starts
    over: IntArray  # (WIDTH V,) the places that its message is over
    n_over: IntArray  # (V,)
    stride: IntArray  # (WIDTH V,) of its message
    child: IntArray  # (V,) the place whose message is the first to be added to its own; -1: none
    sibling: IntArray  # (V,) the next one
    chosen: IntArray  # (V,) its label, by number among those that are live
    trail: IntArray  # (V,) places whose messages have grown
    live: IntArray  # (L,) labels that are not out, from the first label of their variable on
    term: IntArray  # (TERM (V + slots),) what a message is summed of
    random: IntArray  # (1,)
    base: FloatArray  # (L,) what each live label costs by itself
    value: FloatArray  # (L,) with prices
    joint: FloatArray  # (labels of a variable,) with all terms
    store: FloatArray  # (STORE,) messages


@inlined_kernel
def draw(piece: Piece, n: int) -> int:
    """Returns a random number below `n`."""
    piece.random[SEED] = piece.random[SEED] * MULTIPLIER % MODULUS
    return int(piece.random[SEED] * n // MODULUS)


@inlined_kernel
def entries(piece: Piece, x: int) -> int:
    """Returns how many sums the message of place `x` takes."""
    n = int(piece.n_live[x])
    for s in range(WIDTH * x, WIDTH * x + piece.n_over[x]):
        n *= piece.n_live[piece.over[s]]
    return n


@kernel
def add_over(piece: Piece, x: int, y: int) -> bool:
    """Has the message of place `x` be over `y` as well; whether it was not."""
    for s in range(WIDTH * x, WIDTH * x + piece.n_over[x]):
        if piece.over[s] == y:
            return False
    if piece.n_over[x] < WIDTH:
        piece.over[WIDTH * x + piece.n_over[x]] = y
    piece.n_over[x] += 1
    return True


@inlined_kernel
def next_of(piece: Piece, x: int) -> int:
    """Returns the last place that the message of `x` is over: where it is added; -1 if it is over none."""
    last = -1
    for s in range(WIDTH * x, WIDTH * x + piece.n_over[x]):
        last = max(last, piece.over[s])
    return last


@kernel
def join(graph: Graph, dual: Dual, piece: Piece, n: int, v: int) -> bool:
    """Adds variable `v` to a piece of `n`, with all that its messages must then be over; false if that is too much."""
    n_live = 0
    for i in range(graph.first[v + 1] - graph.first[v]):
        n_live += dual.belief[graph.first[v] + i] < np.inf or i == piece.labels[v]
    piece.variable[n], piece.n_live[n], piece.n_over[n] = v, n_live, 0
    for y in range(graph.touch_first[v], graph.touch_first[v + 1]):
        f = graph.factor_of[graph.touch[y]]
        for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
            at = piece.place[graph.scope[a]]
            if graph.table_at[f] >= 0 and at != OUTSIDE:
                add_over(piece, n, at)
                if piece.n_over[n] > WIDTH:
                    return False
    x, n_grown = n, 0
    fits = entries(piece, n) <= LARGEST
    while fits and piece.n_over[x]:
        to, grows = next_of(piece, x), False
        for s in range(WIDTH * x, WIDTH * x + piece.n_over[x]):
            if piece.over[s] != to and add_over(piece, to, piece.over[s]):
                piece.trail[n_grown], n_grown, grows = to, n_grown + 1, True
                if piece.n_over[to] > WIDTH or n_grown == piece.trail.size:
                    fits = False
                    break
        if not (fits and grows):
            break
        x, fits = to, entries(piece, to) <= LARGEST
    if not fits:
        for y in range(n_grown):
            piece.n_over[piece.trail[y]] -= 1
        return False
    piece.place[v] = n
    return True


@kernel
def draw_piece(graph: Graph, dual: Dual, piece: Piece, most: int, room: int) -> int:
    """Draws a piece of so many variables at most; returns how many it has."""
    n, at, size, n_roots = 0, 0, 0, 1 + draw(piece, ROOTS)
    while n_roots:
        n_roots -= 1
        v, most_here, room_here = draw(piece, graph.order.size), n + (most - n) // (n_roots + 1), room // (n_roots + 1)
        if n < most_here and piece.place[v] == OUTSIDE and join(graph, dual, piece, n, v):
            size += entries(piece, n)
            n += 1
        while at < n:
            v = piece.variable[at]
            at += 1
            n_slots = graph.touch_first[v + 1] - graph.touch_first[v]
            begin = draw(piece, n_slots) if n_slots else 0
            for y in range(n_slots):
                f = graph.factor_of[graph.touch[graph.touch_first[v] + (begin + y) % n_slots]]
                if graph.table_at[f] < 0:
                    continue
                for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
                    u = graph.scope[a]
                    fits = n < most_here and size < room_here and piece.place[u] == OUTSIDE
                    if fits and join(graph, dual, piece, n, u):
                        size += entries(piece, n)
                        n += 1
    size = 0
    for x in range(n):
        size += entries(piece, x)
        if size > STORE:  # leave out the rest: messages of the first ones are over first ones only
            for y in range(x, n):
                piece.place[piece.variable[y]] = OUTSIDE
            return x
    return n


@kernel
def prepare(instance: Instance, dual: Dual, piece: Piece, n: int) -> int:
    """Lists the labels of a piece that what is fixed allows, with costs, and lays out messages; returns their sums."""
    graph, cost, table = instance
    at, n_sums = 0, 0
    for x in range(n):
        piece.child[x] = -1
    for x in range(n):
        v = piece.variable[x]
        first, k = graph.first[v], 0
        for i in range(graph.first[v + 1] - first):
            total = cost[first + i] if dual.belief[first + i] < np.inf or i == piece.labels[v] else np.inf
            for y in range(graph.touch_first[v], graph.touch_first[v + 1] if total < np.inf else 0):
                slot = graph.touch[y]
                f = graph.factor_of[slot]
                start, alone = graph.table_at[f] + i * graph.stride[slot], graph.table_at[f] >= 0
                for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
                    if graph.scope[a] != v:
                        start += graph.stride[a] * piece.labels[graph.scope[a]]
                        alone &= piece.place[graph.scope[a]] == OUTSIDE
                if alone:
                    total += table[start]
            if total < np.inf:
                piece.base[first + k], piece.live[first + k] = total, i
                k += 1
        piece.n_live[x], piece.at[x], size, to = k, at, 1, next_of(piece, x)
        n_sums += entries(piece, x)
        for s in range(WIDTH * x, WIDTH * x + piece.n_over[x]):
            piece.stride[s] = size
            size *= piece.n_live[piece.over[s]]
        at += size
        if to >= 0:
            piece.sibling[x], piece.child[to] = piece.child[to], x
    return n_sums


@kernel
def find_terms(graph: Graph, piece: Piece, x: int) -> int:
    """Lists what the message of place `x` is summed of: tables, messages of others, and guards; returns how many.

    A guard is a table of variables that the message is over: where it forbids their labels, nothing has to be summed.
    """
    n, to = 0, next_of(piece, x)
    for own in (x, to):
        v = piece.variable[own] if own >= 0 else 0
        for y in range(graph.touch_first[v], graph.touch_first[v + 1] if own >= 0 else 0):
            slot = graph.touch[y]
            f, at = graph.factor_of[slot], TERM * n
            piece.term[at + BASE], piece.term[at + STEP] = graph.table_at[f], graph.stride[slot]
            piece.term[at + KIND] = TABLE if own == x else GUARD
            for s in range(WIDTH):
                piece.term[at + STRIDE + s] = 0
            taken, n_others = graph.table_at[f] >= 0, 0
            for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
                u = graph.scope[a]
                if piece.place[u] == OUTSIDE:
                    piece.term[at + BASE] += graph.stride[a] * piece.labels[u]
                    continue
                n_others += u != v
                found = piece.place[u] == x and own == x
                for s in range(piece.n_over[x]):
                    if piece.over[WIDTH * x + s] == piece.place[u]:
                        piece.term[at + STRIDE + s], found = graph.stride[a], True
                taken &= found
            n += taken and n_others > 0
    c = piece.child[x]
    while c >= 0:
        at = TERM * n
        piece.term[at + BASE], piece.term[at + KIND] = piece.at[c], MESSAGE
        for s in range(WIDTH):
            piece.term[at + STRIDE + s] = 0
        for z in range(WIDTH * c, WIDTH * c + piece.n_over[c]):
            if piece.over[z] == x:
                piece.term[at + STEP] = piece.stride[z]
            for s in range(piece.n_over[x]):
                if piece.over[WIDTH * x + s] == piece.over[z]:
                    piece.term[at + STRIDE + s] = piece.stride[z]
        n, c = n + 1, piece.sibling[c]
    return n


@kernel
def sum_terms(graph: Graph, table: FloatArray, piece: Piece, x: int, n_terms: int) -> bool:
    """Sums what each label of place `x` costs with the labels that are chosen; false if these are forbidden."""
    first, k = graph.first[piece.variable[x]], piece.n_live[x]
    for guards in (True, False):
        for t in range(0, TERM * n_terms, TERM):
            kind, start, step = piece.term[t + KIND], piece.term[t + BASE], piece.term[t + STEP]
            if guards != (kind == GUARD):
                continue
            for s in range(piece.n_over[x]):
                y = piece.over[WIDTH * x + s]
                label = piece.chosen[y]
                if kind != MESSAGE:
                    label = piece.live[graph.first[piece.variable[y]] + label]
                start += piece.term[t + STRIDE + s] * label
            if kind == GUARD:
                if table[start] == np.inf:
                    return False
            elif kind == MESSAGE:
                for i in range(k):
                    piece.joint[i] += piece.store[start + i * step]
            else:
                for i in range(k):
                    piece.joint[i] += table[start + piece.live[first + i] * step]
        if guards:
            for i in range(k):
                piece.joint[i] = piece.value[first + i]
    return True


@kernel
def eliminate_piece(instance: Instance, piece: Piece, price: FloatArray, n: int) -> float:
    """Writes all messages, with a price for each row; returns the least that the piece costs."""
    graph, _, table = instance
    least = 0.0
    for x in range(n - 1, -1, -1):
        first = graph.first[piece.variable[x]]
        for i in range(first, first + piece.n_live[x]):
            piece.value[i], label = piece.base[i], first + piece.live[i]
            for c in range(graph.cell_first[label], graph.cell_first[label + 1]):
                piece.value[i] += price[graph.cell_row[c]] * graph.cell_weight[c]
        n_terms, m, size = find_terms(graph, piece, x), piece.n_over[x], 1
        for s in range(m):
            piece.chosen[piece.over[WIDTH * x + s]] = 0
            size *= piece.n_live[piece.over[WIDTH * x + s]]
        best = np.inf
        for at in range(piece.at[x], piece.at[x] + size):
            best = np.inf
            if sum_terms(graph, table, piece, x, n_terms):
                for i in range(piece.n_live[x]):
                    best = min(best, piece.joint[i])
            piece.store[at] = best
            for s in range(m):
                y = piece.over[WIDTH * x + s]
                piece.chosen[y] += 1
                if piece.chosen[y] < piece.n_live[y]:
                    break
                piece.chosen[y] = 0
        if m == 0:
            least += best
    return least


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
def choose_labels(instance: Instance, dual: Dual, piece: Piece, n: int, keeps_rules: bool) -> bool:
    """Chooses the labels of a piece by its messages, keeping rules or not; false if it finds none."""
    graph, _, table = instance
    low, high = dual.row_low, dual.row_high
    for x in range(n):
        v = piece.variable[x]
        first, k, chosen, broken_by = graph.first[v], piece.n_live[x], -1, np.inf
        if not sum_terms(graph, table, piece, x, find_terms(graph, piece, x)):
            return False
        ruled = graph.link_first[v + 1] > graph.link_first[v]
        while True:  # the cheapest label first: mostly it breaks nothing
            best, at = np.inf, -1
            for i in range(k):
                if piece.joint[i] < best:
                    best, at = piece.joint[i], i
            if at < 0:
                break
            piece.joint[at] = np.inf
            label = first + piece.live[first + at]
            excess, c = 0.0, graph.cell_first[label]  # by which more rows are broken for certain then
            for y in range(graph.link_first[v], graph.link_first[v + 1] if keeps_rules else 0):
                r = graph.link_row[y]
                weight, c = next_weight(graph, c, label, r)
                least, most = low[r] + (weight - graph.link_low[y]), high[r] + (weight - graph.link_high[y])
                excess += max(0.0, least - graph.row_most[r]) + max(0.0, graph.row_least[r] - most)
                excess -= max(0.0, low[r] - graph.row_most[r]) + max(0.0, graph.row_least[r] - high[r])
            if chosen < 0 or excess < broken_by:
                chosen, broken_by = at, excess
            if excess <= 0.0:
                break
        if chosen < 0:
            return False
        piece.chosen[x], piece.labels[v] = chosen, piece.live[first + chosen]
        if ruled:
            shift(graph, low, high, v, first + piece.labels[v], 1.0)
    return True


@kernel
def local_cost(instance: Instance, piece: Piece, n: int) -> float:
    """Returns what the labels of a piece cost, with all tables that its variables are in."""
    (graph, cost, table), total = instance, 0.0
    for x in range(n):
        v = piece.variable[x]
        total += cost[graph.first[v] + piece.labels[v]]
        for y in range(graph.touch_first[v], graph.touch_first[v + 1]):
            f = graph.factor_of[graph.touch[y]]
            if graph.table_at[f] < 0:
                continue
            at, last = graph.table_at[f], x
            for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
                at += graph.stride[a] * piece.labels[graph.scope[a]]
                last = max(last, piece.place[graph.scope[a]])
            if last == x:
                total += table[at]
    return total

"""Moves: better labellings from a labelling, by solving one piece of the variables after the other, all others fixed.

A *piece* grows from one variable, or from a few that are apart, along tables, as long as its elimination stays cheap:
each variable keeps the list of those before it in the piece that its message will be over. Elimination, from the last
variable to the first, finds the piece's best labels; forwards again, each label chosen is the best that breaks no
rule, or that breaks them least. Where rules bind, they get prices of their own within the piece: steps on them, by
Polyak's rule towards the cost so far, which end once the bound says that the piece has nothing better. Rounds start
from the best labelling and from that of the prices in turns. The same seed draws the same pieces.
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
SEED, OUTSIDE = 0, -1
ROUND = 2**23  # work after which it returns to the best labelling
ROOM, ROOMS = 0.01, 8  # how much more than the best a labelling may cost on the way: a share of it, times below 8
WIDTH = 4  # variables that a message is over at most
LARGEST, STORE = 2**18, 2**20  # entries of a message and of all those of a piece, its own variable's labels included
LEAST_POWER, POWERS = 8, 12  # the entries that a piece may have are drawn: 2 to the power of 8 to 19
TRIES = 6  # prices that a piece is solved with
CERTAIN = 1e-9  # share of the cost that a better labelling must gain
BASE, STEP, KIND, STRIDE = 0, 1, 2, 3  # of a term; one stride for each variable of the message
TERM = STRIDE + WIDTH
TABLE, MESSAGE, GUARD = 0, 1, 2  # kinds of terms


class Moves(NamedTuple):
    """A labelling, and scratch space for moves. Variables of a piece have places in it, from 0 on."""

    labels: IntArray  # (V,)
    before: IntArray  # (V,) the labels of a piece before a move, by place
    kept: IntArray  # (V,) its best labels in a move
    piece: IntArray  # (V,) its variables
    place: IntArray  # (V,) of each variable, OUTSIDE elsewhere
    n_live: IntArray  # (V,) how many labels each has, by place
    at: IntArray  # (V,) where its message starts
    over: IntArray  # (WIDTH V,) the places that its message is over
    n_over: IntArray  # (V,)
    stride: IntArray  # (WIDTH V,) of its message
    child: IntArray  # (V,) the last variable whose message is next added at this one; -1: none
    sibling: IntArray  # (V,) the one before
    chosen: IntArray  # (V,) the label of each place, by its number among those that are live
    trail: IntArray  # (V,) the places whose messages have grown
    live: IntArray  # (L,) labels that are not out, by the first label of their variable
    term: IntArray  # (TERM (V + slots),) what a message is summed of
    random: IntArray  # (1,)
    value: FloatArray  # (L,) what each live label costs by itself
    joint: FloatArray  # (labels of a variable,) with all terms
    store: FloatArray  # (STORE,) messages
    total: FloatArray  # (R,) what each row comes to
    price: FloatArray  # (R,) within the piece


@inlined_kernel
def draw(moves: Moves, n: int) -> int:
    """Returns a random number below `n`."""
    moves.random[SEED] = moves.random[SEED] * MULTIPLIER % MODULUS
    return int(moves.random[SEED] * n // MODULUS)


@inlined_kernel
def broken(graph: Graph, r: int, total: float) -> float:
    """Returns by how much a sum breaks row `r`."""
    return float(max(0.0, total - graph.row_most[r], graph.row_least[r] - total))


@inlined_kernel
def entries(moves: Moves, x: int) -> int:
    """Returns how many sums the message of place `x` takes."""
    n = moves.n_live[x]
    for s in range(WIDTH * x, WIDTH * x + moves.n_over[x]):
        n *= moves.n_live[moves.over[s]]
    return n


@kernel
def add_over(moves: Moves, x: int, y: int) -> bool:
    """Has the message of place `x` be over `y` as well; whether it was not."""
    for s in range(WIDTH * x, WIDTH * x + moves.n_over[x]):
        if moves.over[s] == y:
            return False
    if moves.n_over[x] < WIDTH:
        moves.over[WIDTH * x + moves.n_over[x]] = y
    moves.n_over[x] += 1
    return True


@inlined_kernel
def next_of(moves: Moves, x: int) -> int:
    """Returns the last place that the message of `x` is over: where it is added; -1 if it is over none."""
    last = -1
    for s in range(WIDTH * x, WIDTH * x + moves.n_over[x]):
        last = max(last, moves.over[s])
    return last


@kernel
def join(graph: Graph, dual: Dual, moves: Moves, n: int, v: int) -> bool:
    """Adds variable `v` to a piece of `n`, with all that its messages must then be over; false if that is too much."""
    n_live = 0
    for i in range(graph.first[v + 1] - graph.first[v]):
        n_live += dual.belief[graph.first[v] + i] < np.inf or i == moves.labels[v]
    moves.piece[n], moves.n_live[n], moves.n_over[n] = v, n_live, 0
    for y in range(graph.touch_first[v], graph.touch_first[v + 1]):
        f = graph.factor_of[graph.touch[y]]
        for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
            at = moves.place[graph.scope[a]]
            if graph.table_at[f] >= 0 and at != OUTSIDE:
                add_over(moves, n, at)
                if moves.n_over[n] > WIDTH:
                    return False
    x, n_grown = n, 0
    fits = entries(moves, n) <= LARGEST
    while fits and moves.n_over[x]:
        to, grows = next_of(moves, x), False
        for s in range(WIDTH * x, WIDTH * x + moves.n_over[x]):
            if moves.over[s] != to and add_over(moves, to, moves.over[s]):
                moves.trail[n_grown], n_grown, grows = to, n_grown + 1, True
                if moves.n_over[to] > WIDTH or n_grown == moves.trail.size:
                    fits = False
                    break
        if not (fits and grows):
            break
        x, fits = to, entries(moves, to) <= LARGEST
    if not fits:
        for y in range(n_grown):
            moves.n_over[moves.trail[y]] -= 1
        return False
    moves.place[v] = n
    return True


@kernel
def draw_piece(graph: Graph, dual: Dual, moves: Moves, most: int, room: int) -> int:
    """Draws a piece of so many variables at most; returns how many it has."""
    n, at, size, n_roots = 0, 0, 0, 1 + draw(moves, 3)
    while n_roots:
        n_roots -= 1
        v, most_here, room_here = draw(moves, graph.order.size), n + (most - n) // (n_roots + 1), room // (n_roots + 1)
        if n < most_here and moves.place[v] == OUTSIDE and join(graph, dual, moves, n, v):
            size += entries(moves, n)
            n += 1
        while at < n:
            v = moves.piece[at]
            at += 1
            n_slots = graph.touch_first[v + 1] - graph.touch_first[v]
            begin = draw(moves, n_slots) if n_slots else 0
            for y in range(n_slots):
                f = graph.factor_of[graph.touch[graph.touch_first[v] + (begin + y) % n_slots]]
                if graph.table_at[f] < 0:
                    continue
                for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
                    u = graph.scope[a]
                    if n < most_here and size < room_here and moves.place[u] == OUTSIDE:
                        if join(graph, dual, moves, n, u):
                            size += entries(moves, n)
                            n += 1
    size = 0
    for x in range(n):
        size += entries(moves, x)
        if size > STORE:  # leave out the rest: messages of the first ones are over first ones only
            for y in range(x, n):
                moves.place[moves.piece[y]] = OUTSIDE
            return x
    return n


@kernel
def price_labels(instance: Instance, moves: Moves, n: int) -> int:
    """Sums what each label costs by itself, rules as priced, and leaves out those that what is fixed forbids.

    Returns how many sums all messages take.
    """
    graph, cost, table = instance
    for x in range(n):
        moves.child[x] = -1
    at, n_sums = 0, 0
    for x in range(n):
        v = moves.piece[x]
        first, k, n_live = graph.first[v], moves.n_live[x], 0
        for i in range(first, first + k):
            label = first + moves.live[i]
            total = cost[label]
            for c in range(graph.cell_first[label], graph.cell_first[label + 1]):
                total += moves.price[graph.cell_row[c]] * graph.cell_weight[c]
            moves.value[i] = total
        for y in range(graph.touch_first[v], graph.touch_first[v + 1]):
            slot = graph.touch[y]
            f = graph.factor_of[slot]
            start, alone = graph.table_at[f], graph.table_at[f] >= 0
            for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
                if graph.scope[a] != v:
                    start += graph.stride[a] * moves.labels[graph.scope[a]]
                    alone &= moves.place[graph.scope[a]] == OUTSIDE
            if alone:
                for i in range(first, first + k):
                    moves.value[i] += table[start + moves.live[i] * graph.stride[slot]]
        for i in range(first, first + k):
            if moves.value[i] < np.inf:
                moves.value[first + n_live], moves.live[first + n_live] = moves.value[i], moves.live[i]
                n_live += 1
        moves.n_live[x], moves.at[x], size = n_live, at, 1
        n_sums += entries(moves, x)
        for s in range(WIDTH * x, WIDTH * x + moves.n_over[x]):
            moves.stride[s] = size
            size *= moves.n_live[moves.over[s]]
        at += size
        to = next_of(moves, x)
        if to >= 0:
            moves.sibling[x], moves.child[to] = moves.child[to], x
    return n_sums


@kernel
def find_terms(graph: Graph, moves: Moves, x: int) -> int:
    """Lists what the message of place `x` is summed of: tables, messages of others, and guards; returns how many.

    A guard is a table of variables that the message is over: where it forbids their labels, nothing has to be summed.
    """
    n, to = 0, next_of(moves, x)
    for own in (x, to):
        v = moves.piece[own] if own >= 0 else 0
        for y in range(graph.touch_first[v], graph.touch_first[v + 1] if own >= 0 else 0):
            slot = graph.touch[y]
            f, at = graph.factor_of[slot], TERM * n
            moves.term[at + BASE], moves.term[at + STEP] = graph.table_at[f], graph.stride[slot]
            moves.term[at + KIND] = TABLE if own == x else GUARD
            for s in range(WIDTH):
                moves.term[at + STRIDE + s] = 0
            taken, n_others = graph.table_at[f] >= 0, 0
            for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
                u = graph.scope[a]
                if moves.place[u] == OUTSIDE:
                    moves.term[at + BASE] += graph.stride[a] * moves.labels[u]
                    continue
                n_others += u != v
                found = moves.place[u] == x and own == x
                for s in range(moves.n_over[x]):
                    if moves.over[WIDTH * x + s] == moves.place[u]:
                        moves.term[at + STRIDE + s], found = graph.stride[a], True
                taken &= found
            n += taken and n_others > 0
    c = moves.child[x]
    while c >= 0:
        at = TERM * n
        moves.term[at + BASE], moves.term[at + KIND] = moves.at[c], MESSAGE
        for s in range(WIDTH):
            moves.term[at + STRIDE + s] = 0
        for z in range(WIDTH * c, WIDTH * c + moves.n_over[c]):
            if moves.over[z] == x:
                moves.term[at + STEP] = moves.stride[z]
            for s in range(moves.n_over[x]):
                if moves.over[WIDTH * x + s] == moves.over[z]:
                    moves.term[at + STRIDE + s] = moves.stride[z]
        n, c = n + 1, moves.sibling[c]
    return n


@kernel
def sum_terms(graph: Graph, table: FloatArray, moves: Moves, x: int, n_terms: int) -> bool:
    """Sums what each label of place `x` costs with the labels that are chosen; false if these are forbidden."""
    first, k = graph.first[moves.piece[x]], moves.n_live[x]
    for guards in (True, False):
        for t in range(0, TERM * n_terms, TERM):
            kind, start, step = moves.term[t + KIND], moves.term[t + BASE], moves.term[t + STEP]
            if guards != (kind == GUARD):
                continue
            for s in range(moves.n_over[x]):
                y = moves.over[WIDTH * x + s]
                label = moves.chosen[y]
                if kind != MESSAGE:
                    label = moves.live[graph.first[moves.piece[y]] + label]
                start += moves.term[t + STRIDE + s] * label
            if kind == GUARD:
                if table[start] == np.inf:
                    return False
            elif kind == MESSAGE:
                for i in range(k):
                    moves.joint[i] += moves.store[start + i * step]
            else:
                for i in range(k):
                    moves.joint[i] += table[start + moves.live[first + i] * step]
        if guards:
            for i in range(k):
                moves.joint[i] = moves.value[first + i]
    return True


@kernel
def eliminate_piece(instance: Instance, moves: Moves, n: int) -> float:
    """Writes all messages; returns the least that the piece costs with its prices."""
    graph, _, table = instance
    least = 0.0
    for x in range(n - 1, -1, -1):
        n_terms, m, size = find_terms(graph, moves, x), moves.n_over[x], 1
        for s in range(m):
            moves.chosen[moves.over[WIDTH * x + s]] = 0
            size *= moves.n_live[moves.over[WIDTH * x + s]]
        best = np.inf
        for at in range(moves.at[x], moves.at[x] + size):
            best = np.inf
            if sum_terms(graph, table, moves, x, n_terms):
                for i in range(moves.n_live[x]):
                    best = min(best, moves.joint[i])
            moves.store[at] = best
            for s in range(m):
                y = moves.over[WIDTH * x + s]
                moves.chosen[y] += 1
                if moves.chosen[y] < moves.n_live[y]:
                    break
                moves.chosen[y] = 0
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
def choose_labels(instance: Instance, dual: Dual, moves: Moves, n: int, keeps_rules: bool) -> bool:
    """Chooses the labels of a piece by its messages, keeping rules or not; false if it finds none."""
    graph, _, table = instance
    low, high = dual.row_low, dual.row_high
    for x in range(n):
        v = moves.piece[x]
        first, k, chosen, broken_by = graph.first[v], moves.n_live[x], -1, np.inf
        if not sum_terms(graph, table, moves, x, find_terms(graph, moves, x)):
            return False
        ruled = graph.link_first[v + 1] > graph.link_first[v]
        while True:  # the cheapest label first: mostly it breaks nothing
            best, at = np.inf, -1
            for i in range(k):
                if moves.joint[i] < best:
                    best, at = moves.joint[i], i
            if at < 0:
                break
            moves.joint[at] = np.inf
            label = first + moves.live[first + at]
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
        moves.chosen[x], moves.labels[v] = chosen, moves.live[first + chosen]
        if ruled:
            shift(graph, low, high, v, first + moves.labels[v], 1.0)
    return True


@kernel
def local_cost(instance: Instance, moves: Moves, n: int) -> float:
    """Returns what the labels of a piece cost, with all tables that its variables are in."""
    (graph, cost, table), total = instance, 0.0
    for x in range(n):
        v = moves.piece[x]
        total += cost[graph.first[v] + moves.labels[v]]
        for y in range(graph.touch_first[v], graph.touch_first[v + 1]):
            f = graph.factor_of[graph.touch[y]]
            if graph.table_at[f] < 0:
                continue
            at, last = graph.table_at[f], x
            for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
                at += graph.stride[a] * moves.labels[graph.scope[a]]
                last = max(last, moves.place[graph.scope[a]])
            if last == x:
                total += table[at]
    return total


@inlined_kernel
def over(graph: Graph, r: int, price: float, total: float) -> float:
    """Returns how far a sum is above the limit of row `r` that has a price, or that it breaks."""
    if price > 0.0 or (price == 0.0 and total > graph.row_most[r]):
        return float(total - graph.row_most[r])
    if price < 0.0 or total < graph.row_least[r]:
        return float(total - graph.row_least[r])
    return 0.0


@kernel
def step_prices(graph: Graph, dual: Dual, moves: Moves, least: float, target: float) -> bool:
    """Moves the prices of the rows that a piece's cheapest labels break; false if no price can gain anything.

    `least` is the least that the piece costs with its prices, of which what rows leave room for is still to be taken.
    """
    norm, total = 0.0, dual.row_low
    for r in range(graph.row_low.size):
        price = moves.price[r]
        norm += over(graph, r, price, total[r]) ** 2
        if price != 0.0:
            least += price * (moves.total[r] - (graph.row_most[r] if price > 0.0 else graph.row_least[r]))
    if not (norm > 0.0 and least < target):
        return False
    for r in range(graph.row_low.size):
        price = moves.price[r]
        after = price + (target - least) / norm * over(graph, r, price, total[r])
        moves.price[r] = max(0.0, after) if price > 0.0 else min(0.0, after) if price < 0.0 else after
    return True


@kernel
def set_ranges(graph: Graph, dual: Dual, moves: Moves, n: int) -> None:
    """Sets the ranges of rows to what they can come to with the labels outside a piece."""
    low, high = dual.row_low, dual.row_high
    for r in range(graph.row_low.size):
        low[r] = high[r] = moves.total[r]
    for x in range(n):
        v = moves.piece[x]
        for y in range(graph.link_first[v], graph.link_first[v + 1]):
            low[graph.link_row[y]] += graph.link_low[y]
            high[graph.link_row[y]] += graph.link_high[y]


@kernel
def move(instance: Instance, dual: Dual, moves: Moves, n: int, excess: float, room: float) -> tuple[float, float, int]:
    """Solves a piece; returns by how much rows are broken then, how the cost has changed, and the work it took."""
    graph, low = instance.graph, dual.row_low
    before, work = local_cost(instance, moves, n), 0
    for x in range(n):
        v = moves.piece[x]
        moves.before[x] = moves.kept[x] = moves.labels[v]
        for y in range(graph.cell_first[graph.first[v] + moves.labels[v]], graph.cell_first[graph.first[v] + moves.labels[v] + 1]):
            moves.total[graph.cell_row[y]] -= graph.cell_weight[y]
    target, best_excess, best = before + room, excess, before + room
    for t in range(TRIES):
        for x in range(n):
            v = moves.piece[x]
            k = 0
            for i in range(graph.first[v + 1] - graph.first[v]):
                if dual.belief[graph.first[v] + i] < np.inf or i == moves.before[x]:
                    moves.live[graph.first[v] + k] = i
                    k += 1
            moves.n_live[x] = k
        work += price_labels(instance, moves, n) + 64 * n + 8 * graph.row_low.size
        least = eliminate_piece(instance, moves, n)
        if not least < np.inf:
            break
        for keeps in (True, False):
            set_ranges(graph, dual, moves, n)
            if not choose_labels(instance, dual, moves, n, keeps):
                continue
            after, now = local_cost(instance, moves, n), 0.0
            for r in range(graph.row_low.size):
                now += broken(graph, r, low[r])
            if after < np.inf and (now < best_excess or (now <= best_excess and after <= best)):
                best_excess, best = now, after
                for x in range(n):
                    moves.kept[x] = moves.labels[moves.piece[x]]
        if best_excess <= 0.0:
            target = min(target, best) - CERTAIN * abs(best)
        elif excess > 0.0:
            target = least + 0.1 * abs(least)
        if not step_prices(graph, dual, moves, least, target):
            break
    for x in range(n):
        v = moves.piece[x]
        moves.place[v], moves.labels[v] = OUTSIDE, moves.kept[x]
        for y in range(graph.cell_first[graph.first[v] + moves.labels[v]], graph.cell_first[graph.first[v] + moves.labels[v] + 1]):
            moves.total[graph.cell_row[y]] += graph.cell_weight[y]
    for x in range(n):
        if moves.kept[x] != moves.before[x]:
            return best_excess, best - before, work
    return excess, 0.0, work


@kernel
def restart(instance: Instance, dual: Dual, moves: Moves) -> None:
    """Labels by beliefs and the tables that are complete, rules aside."""
    graph = instance.graph
    for t in range(graph.order.size):
        v = graph.order[t]
        chosen = cheapest_label(graph, instance.table, dual, moves.labels, t, False)
        if chosen < 0:
            _, _, at = two_least(dual.belief, graph.first[v], graph.first[v + 1])
            chosen = max(at, graph.first[v]) - graph.first[v]
        moves.labels[v] = chosen


@kernel
def improve(instance: Instance, dual: Dual, moves: Moves, best: IntArray, amount: int, least: float) -> float:
    """Makes moves that take some work, from the best labelling and from what prices say in turns; returns the least cost."""
    graph = instance.graph
    n_variables, scale, room, excess, cost = graph.order.size, 1, 0.0, 0.0, 0.0
    work, until, n_rounds = 0, 0, 0
    while work < amount and not stopped(dual.watch):
        if work >= until:
            until, n_rounds = work + ROUND, n_rounds + 1
            if least < np.inf and n_rounds % 2 == 0:
                copy_labels(best, moves.labels)
                cost, room = least, draw(moves, ROOMS) * ROOM * abs(least)
            else:
                restart(instance, dual, moves)
                cost, room = total_cost(graph, instance.cost, instance.table, moves.labels), 0.0
            excess = 0.0
            for v in range(n_variables):
                moves.place[v] = OUTSIDE
            for r in range(graph.row_low.size):
                moves.total[r], _ = row_sum(graph, r, moves.labels)
                excess += broken(graph, r, moves.total[r])
        scale = scale * 2 if scale < n_variables else 2
        most = min(1 + draw(moves, scale), n_variables)
        n = draw_piece(graph, dual, moves, most, 1 << (LEAST_POWER + draw(moves, POWERS)))
        share = draw(moves, 4) / 3.0 * draw(moves, 2)
        for r in range(graph.row_low.size):
            moves.price[r] = share * dual.multiplier[r]
        allowed = max(0.0, least + room - cost) if excess <= 0.0 and room > 0.0 else 0.0
        excess, change, worked = move(instance, dual, moves, n, excess, allowed)
        cost += change
        work += worked
        if excess <= 0.0 and not cost >= least and rows_hold(graph, moves.labels):
            cost = total_cost(graph, instance.cost, instance.table, moves.labels)
            if cost < least:
                least = cost
                copy_labels(moves.labels, best)
    return least

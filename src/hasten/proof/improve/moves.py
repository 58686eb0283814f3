"""Moves: better labellings from a labelling, by solving one piece of the variables (`pieces`) after the other.

Where rules bind, they get prices of their own within a piece: steps on them, by Polyak's rule towards the cost so far,
which end once the bound says that the piece has nothing better. Rounds start from the best labelling and from that of
the prices in turns. The same seed draws the same pieces.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import inlined_kernel, kernel
from hasten.kernels.layout import Graph, Instance, stopped
from hasten.kernels.score import row_sum, rows_hold, total_cost
from hasten.proof.improve.pieces import (
    OUTSIDE,
    Piece,
    choose_labels,
    draw,
    draw_piece,
    eliminate_piece,
    local_cost,
    prepare,
)
from hasten.proof.outcome import copy_labels
from hasten.proof.sweep.dual import Dual
from hasten.proof.sweep.multipliers import two_least
from hasten.proof.sweep.sweeping import cheapest_label
from hasten.support.arrays import FloatArray, IntArray

ROUND = 2**23  # work after which it returns to the best labelling
ROOM, ROOMS = 0.01, 8  # how much more than the best a labelling may cost on the way: a share of it, times below 8
LEAST_POWER, POWERS = 8, 12  # the entries that a piece may have are drawn: 2 to the power of 8 to 19
PRICES = 4  # a piece begins without prices or, half of them, with none to three thirds of those of the bound
TRIES = 6  # prices that a piece is solved with
AHEAD = 0.1  # how far prices aim above the bound of a piece where nothing is known yet, relative to it
BETTER = 1e-9  # share of the cost that a better labelling gains at least
PER_VARIABLE, PER_ROW = 64, 8  # work of a move besides its messages


class Moves(NamedTuple):
    """Scratch space for moves."""

    before: IntArray  # (V,) the labels of a piece before a move, by place
    kept: IntArray  # (V,) its best labels in a move
    total: FloatArray  # (R,) what each row comes to
    price: FloatArray  # (R,) within the piece


@inlined_kernel
def broken(graph: Graph, r: int, total: float) -> float:
    """Returns by how much a sum breaks row `r`."""
    return float(max(0.0, total - graph.row_most[r], graph.row_least[r] - total))


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
    if not (norm > 0.0 and least < target < np.inf):
        return False
    for r in range(graph.row_low.size):
        price = moves.price[r]
        after = price + (target - least) / norm * over(graph, r, price, total[r])
        moves.price[r] = max(0.0, after) if price > 0.0 else min(0.0, after) if price < 0.0 else after
    return True


@kernel
def add_labels(graph: Graph, piece: Piece, moves: Moves, n: int, sign: float) -> None:
    """Adds what the labels of a piece come to in rows, or takes it off (`sign` -1)."""
    for x in range(n):
        label = graph.first[piece.variable[x]] + piece.labels[piece.variable[x]]
        for c in range(graph.cell_first[label], graph.cell_first[label + 1]):
            moves.total[graph.cell_row[c]] += sign * graph.cell_weight[c]


@kernel
def set_ranges(graph: Graph, dual: Dual, piece: Piece, moves: Moves, n: int) -> None:
    """Sets the ranges of rows to what they can come to with the labels outside a piece."""
    low, high = dual.row_low, dual.row_high
    for r in range(graph.row_low.size):
        low[r] = high[r] = moves.total[r]
    for x in range(n):
        v = piece.variable[x]
        for y in range(graph.link_first[v], graph.link_first[v + 1]):
            low[graph.link_row[y]] += graph.link_low[y]
            high[graph.link_row[y]] += graph.link_high[y]


@kernel
def move(
    instance: Instance, dual: Dual, piece: Piece, moves: Moves, n: int, excess: float, room: float
) -> tuple[float, float, int]:
    """Solves a piece; returns by how much rows are broken then, how the cost has changed, and the work it took."""
    graph, before = instance.graph, local_cost(instance, piece, n)
    best_excess, best, work, changed = excess, before + room, 0, False
    for x in range(n):
        moves.before[x] = moves.kept[x] = piece.labels[piece.variable[x]]
    add_labels(graph, piece, moves, n, -1.0)
    n_sums = prepare(instance, dual, piece, n) + PER_VARIABLE * n + PER_ROW * graph.row_low.size
    for _ in range(TRIES):
        least = eliminate_piece(instance, piece, moves.price, n)
        work += n_sums
        if not least < np.inf:
            break
        for keeps_rules in (True, False):
            set_ranges(graph, dual, piece, moves, n)
            if not choose_labels(instance, dual, piece, n, keeps_rules):
                break
            after, now = local_cost(instance, piece, n), 0.0
            for r in range(graph.row_low.size):
                now += broken(graph, r, dual.row_low[r])
            if after < np.inf and (now < best_excess or (now <= best_excess and after <= best)):
                best_excess, best, changed = now, after, False
                for x in range(n):
                    moves.kept[x] = piece.labels[piece.variable[x]]
                    changed |= moves.kept[x] != moves.before[x]
        target = best - BETTER * abs(best) if best_excess <= 0.0 else least + AHEAD * abs(least)
        if not step_prices(graph, dual, moves, least, target):
            break
    for x in range(n):
        piece.place[piece.variable[x]], piece.labels[piece.variable[x]] = OUTSIDE, moves.kept[x]
    add_labels(graph, piece, moves, n, 1.0)
    return best_excess, best - before if changed else 0.0, work


@kernel
def label_by_prices(instance: Instance, dual: Dual, labels: IntArray) -> None:
    """Labels by beliefs and the tables that are complete, rules aside."""
    graph = instance.graph
    for t in range(graph.order.size):
        v = graph.order[t]
        chosen = cheapest_label(graph, instance.table, dual, labels, t, False)
        if chosen < 0:
            _, _, at = two_least(dual.belief, graph.first[v], graph.first[v + 1])
            chosen = max(at, graph.first[v]) - graph.first[v]
        labels[v] = chosen


@kernel
def improve(
    instance: Instance, dual: Dual, piece: Piece, moves: Moves, best: IntArray, amount: int, least: float
) -> float:
    """Makes moves that take some work, from the best labelling and from that of prices; returns the least cost."""
    graph = instance.graph
    n_variables, n_rows, scale, room, excess, cost = graph.order.size, graph.row_low.size, 1, 0.0, 0.0, 0.0
    work, until, from_best = 0, 0, True
    while work < amount and not stopped(dual.stop_flag):
        if work >= until:
            until, from_best, excess = work + ROUND, not from_best and least < np.inf, 0.0
            if from_best:
                copy_labels(best, piece.labels)
                cost, room = least, draw(piece, ROOMS) * ROOM * abs(least)
            else:
                label_by_prices(instance, dual, piece.labels)
                cost, room = total_cost(graph, instance.cost, instance.table, piece.labels), 0.0
            for v in range(n_variables):
                piece.place[v] = OUTSIDE
            for r in range(n_rows):
                moves.total[r], _ = row_sum(graph, r, piece.labels)
                excess += broken(graph, r, moves.total[r])
        scale = scale * 2 if scale < n_variables else 2
        most = min(1 + draw(piece, scale), n_variables)
        n = draw_piece(graph, dual, piece, most, 1 << (LEAST_POWER + draw(piece, POWERS)))
        share = draw(piece, 2) * draw(piece, PRICES) / (PRICES - 1.0)
        for r in range(n_rows):
            moves.price[r] = share * dual.multiplier[r]
        allowed = max(0.0, least + room - cost) if excess <= 0.0 and room > 0.0 else 0.0
        excess, change, worked = move(instance, dual, piece, moves, n, excess, allowed)
        cost += change
        work += worked + PER_VARIABLE
        if excess <= 0.0 and not cost >= least and rows_hold(graph, piece.labels):
            cost = total_cost(graph, instance.cost, instance.table, piece.labels)
            if cost < least:
                least = cost
                copy_labels(piece.labels, best)
    return least

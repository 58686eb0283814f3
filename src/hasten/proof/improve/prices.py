"""Prices: subgradient steps on the multipliers of rules, with sweeps of tables between them.

Ascent along one multiplier after the other ends far from the highest bound where rules overlap. So here all move at
once, along the excess of the cheapest labels over the limits, by Polyak's step to a level above the best bound; one
sweep of the tables follows. The best prices are kept. Between sweeps labels are ruled out that a row leaves no room
for, or whose reduced cost is above the gap: no better labelling has them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import kernel
from hasten.kernels.layout import Graph, Instance, copy, stopped
from hasten.kernels.tolerance import is_closed
from hasten.proof.branch.dive import prune_from
from hasten.proof.branch.tighten import Tight, count_left, rule_out_expensive, tighten_rows
from hasten.proof.outcome import copy_labels
from hasten.proof.sweep.dual import Dual, belief_anew, idle, n_messages, quick_bound, sum_anew, sweep, update_factor
from hasten.proof.sweep.multipliers import two_least
from hasten.proof.sweep.sweeping import Known, found_by
from hasten.support.arrays import FloatArray

BOUND, LEVEL, STEP, STALE = 0, 1, 2, 3  # of `Prices.values`: see there
PATIENCE, SHORTER, LONGER = 6, 0.6, 1.2  # sweeps without a gain before steps get shorter, by how much, and with a gain
AHEAD = 0.2  # how far above the bound to aim at first, relative to it
INERTIA = 0.6  # of a direction that is kept for the next one
FIRST = 32  # sweeps that move one price after the other
EVERY = 8  # sweeps between two looks at what can be ruled out
LIGHTEST, HEAVIEST = 1e-50, 1e50  # largest weights of rows that are priced, and what one may cost
GAIN = 1e-4  # share of the gap that counts as a gain


class Prices(NamedTuple):
    """The best prices so far, and the state of the steps."""

    values: FloatArray  # (4,) the bound, the bound of the prices that are kept, the step, sweeps since the last gain
    message: FloatArray  # (messages,) those of the best bound
    multiplier: FloatArray  # (R,)
    direction: FloatArray  # (R,)
    scale: FloatArray  # (R,) the square of each row's largest weight, inverted
    belief: FloatArray  # (L,) beliefs while something else changes them


@kernel
def start_prices(graph: Graph, prices: Prices) -> None:
    """Sets the scale of each row, and begins without a direction."""
    for r in range(graph.row_low.size):
        largest = 0.0
        for c in range(graph.row_first[r], graph.row_first[r + 1]):
            largest = max(largest, abs(graph.row_weight[c]))
        prices.scale[r] = 1.0 / (largest * largest) if LIGHTEST < largest < HEAVIEST else 0.0
        prices.direction[r] = 0.0
    prices.values[BOUND] = prices.values[LEVEL] = -np.inf
    prices.values[STEP], prices.values[STALE] = 0.0, 0.0


@kernel
def keep_prices(graph: Graph, dual: Dual, prices: Prices) -> None:
    """Keeps the prices as the best."""
    copy(dual.message, prices.message, 0, n_messages(graph))
    copy(dual.multiplier, prices.multiplier, 0, graph.row_low.size)


@kernel
def recall_prices(graph: Graph, cost: FloatArray, dual: Dual, prices: Prices) -> None:
    """Returns to the best prices, and sums beliefs anew; labels that are out stay out."""
    copy(prices.message, dual.message, 0, n_messages(graph))
    copy(prices.multiplier, dual.multiplier, 0, graph.row_low.size)
    for v in range(graph.order.size):
        for at in range(graph.first[v], graph.first[v + 1]):
            if dual.belief[at] < np.inf:
                dual.belief[at], _ = belief_anew(graph, cost, dual, v, at)


@kernel
def sweep_tables(graph: Graph, table: FloatArray, forward: bool, dual: Dual) -> bool:
    """Updates every factor once; false if that proved that no labelling is better than the best."""
    n = graph.table_at.size
    for x in range(n):
        f = x if forward else n - 1 - x
        if graph.table_at[f] < 0 or idle(graph, table, f, dual):
            continue
        if not update_factor(graph, table, f, dual):
            return False
        if x % 1024 == 1023 and stopped(dual.stop_flag):
            return True
    return True


@kernel
def step_prices(graph: Graph, dual: Dual, prices: Prices, ahead: float) -> None:
    """Moves all multipliers at once, by a share of the way to where the bound would be higher by `ahead`."""
    excess, direction = dual.row_high, prices.direction
    for r in range(graph.row_low.size):
        excess[r] = 0.0
    for v in range(graph.order.size):
        _, _, best = two_least(dual.belief, graph.first[v], graph.first[v + 1])
        chosen = max(best, graph.first[v])
        for c in range(graph.cell_first[chosen], graph.cell_first[chosen + 1]):
            excess[graph.cell_row[c]] += graph.cell_weight[c]
    norm, along = 0.0, 0.0
    for r in range(graph.row_low.size):
        low, high, u = graph.row_least[r], graph.row_most[r], dual.multiplier[r]
        over = 0.0
        if excess[r] > high or (u > 0.0 and high < np.inf):
            over = excess[r] - high
        elif excess[r] < low or (u < 0.0 and low > -np.inf):
            over = excess[r] - low
        direction[r] = INERTIA * direction[r] + over
        norm += direction[r] * direction[r] * prices.scale[r]
    along = ahead / norm if norm > 0.0 else np.inf
    if not abs(along) < HEAVIEST:  # there is no direction left
        return
    for r in range(graph.row_low.size):
        before = dual.multiplier[r]
        after = before + along * prices.scale[r] * direction[r]
        if graph.row_most[r] == np.inf:
            after = min(after, 0.0)
        if graph.row_least[r] == -np.inf:
            after = max(after, 0.0)
        if after == before or not after * after < HEAVIEST * HEAVIEST * prices.scale[r]:
            continue
        dual.multiplier[r] = after
        for c in range(graph.row_first[r], graph.row_first[r + 1]):
            dual.belief[graph.row_label[c]] += (after - before) * graph.row_weight[c]


@kernel
def ascend(
    instance: Instance, dual: Dual, tight: Tight, prices: Prices, n_sweeps: int, best_cost: float, known: Known
) -> tuple[bool, float]:
    """Sweeps and moves prices; returns whether nothing is left that is better, and the least cost.

    The bound is `prices.values[BOUND]`: the least of it and of `best_cost` bounds the problem.
    """
    (graph, cost, table), values, trial = instance, prices.values, tight.labels
    if values[LEVEL] == -np.inf:
        for n in range(FIRST):
            if stopped(dual.stop_flag):
                break
            if not sweep(graph, table, n % 2 == 0, dual):
                return True, best_cost
    for n in range(n_sweeps):
        if not sweep_tables(graph, table, n % 2 == 0, dual):
            return True, best_cost
        if stopped(dual.stop_flag):
            break
        found = found_by(instance, dual, trial)
        if found < best_cost:
            best_cost = found
            copy_labels(trial, known.best)
        quick = quick_bound(graph, dual)
        if quick == np.inf:
            return True, best_cost
        if not quick > -np.inf:  # nothing is said by sums that overflow
            values[STALE] = PATIENCE
        ahead = best_cost - values[LEVEL]
        if not quick <= values[LEVEL] + GAIN * min(ahead, abs(values[LEVEL])):
            values[LEVEL], values[STALE], values[STEP] = quick, 0.0, values[STEP] * LONGER
            keep_prices(graph, dual, prices)
        else:
            values[STALE] += 1.0
        if values[STALE] >= PATIENCE:
            values[STALE], values[STEP] = 0.0, values[STEP] * SHORTER
            recall_prices(graph, cost, dual, prices)
            for r in range(graph.row_low.size):
                prices.direction[r] = 0.0
        if n % EVERY == 0:
            if look(instance, dual, tight, prices, best_cost, known):
                return True, best_cost
            if is_closed(best_cost, values[BOUND], known.size, known.gap):  # the bound says so by itself
                return False, best_cost
        if values[STEP] == 0.0:
            values[STEP] = AHEAD * abs(quick)
        step_prices(graph, dual, prices, min(values[LEVEL] + values[STEP], best_cost) - quick)
    return look(instance, dual, tight, prices, best_cost, known), best_cost


@kernel
def look(instance: Instance, dual: Dual, tight: Tight, prices: Prices, best_cost: float, known: Known) -> bool:
    """Sums the bound anew and rules labels out; whether nothing is left that is better than the best labelling."""
    (graph, cost, table), values = instance, prices.values
    bound, off = sum_anew(graph, cost, table, dual, True)
    values[BOUND] = max(values[BOUND], bound)
    if not count_left(graph, tight, 1):
        return True
    enough = prune_from(best_cost, known, 0.0)
    if enough < np.inf:
        rule_out_expensive(graph, tight, enough - bound + 4.0 * off)
    return not tighten_rows(graph, tight, dual.stop_flag)

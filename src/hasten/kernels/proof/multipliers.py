"""The multipliers of rows: one step of coordinate ascent on the dual (`hasten.kernels.proof.dual`).

The bound is concave and piecewise linear in a row's multiplier. A row that counts (all its weights are 1) has its
breakpoints where a variable would change sides: its labels in the row cost as much as its others. Between two of
them the bound is flat at its highest; the middle leaves the other rows most freedom, and ascent that always takes an
end gets stuck. Other rows climb.
"""

from __future__ import annotations

import numpy as np

from hasten.jit import kernel
from hasten.kernels.layout import Graph
from hasten.support.arrays import FloatArray

MAX_COUNT = 32  # a row that counts further climbs like any other


@kernel
def update_row(graph: Graph, r: int, belief: FloatArray, multiplier: FloatArray, smallest: FloatArray) -> None:
    """Raises the bound along the multiplier of row `r`."""
    counts = graph.row_counts[r] == 1 and graph.row_first[r] < graph.row_first[r + 1]
    limit = graph.row_most[r] if graph.row_most[r] < np.inf else graph.row_least[r]
    if counts and 0.0 < limit < MAX_COUNT:
        change = level(graph, r, belief, multiplier, smallest)
    else:
        change = climb(graph, r, belief, multiplier)
    if change != 0.0:
        multiplier[r] += change
        for c in range(graph.row_first[r], graph.row_first[r + 1]):
            belief[graph.row_label[c]] += change * graph.row_weight[c]


@kernel
def level(graph: Graph, r: int, belief: FloatArray, multiplier: FloatArray, smallest: FloatArray) -> float:
    """Returns by how much the multiplier of a row that counts best changes: to the middle of the best ones."""
    u = multiplier[r]
    low, high = graph.row_least[r], graph.row_most[r]
    n_kept, n_cheaper, n_all = 0, 0, 0
    capacity = int((high if high < np.inf else low) + 1.0)
    c, c1 = graph.row_first[r], graph.row_first[r + 1]
    while c < c1:
        v = graph.row_variable[c]
        inside, outside = np.inf, np.inf
        for at in range(graph.first[v], graph.first[v + 1]):
            if c < c1 and graph.row_label[c] == at:
                inside = min(inside, belief[at])
                c += 1
            else:
                outside = min(outside, belief[at])
        if inside == np.inf and outside == np.inf:
            return 0.0  # it has no label left: later steps report this
        more = (inside - u) - outside  # what it costs more to be counted, but for the multiplier
        n_cheaper += more < 0.0
        n_all += 1
        x = n_kept
        if n_kept == capacity:
            if not more < smallest[capacity - 1]:
                continue
            x -= 1
        else:
            n_kept += 1
        while x > 0 and more < smallest[x - 1]:
            smallest[x] = smallest[x - 1]
            x -= 1
        smallest[x] = more
    price: float = best_price(low, high, n_cheaper, n_all, smallest) - u
    return price


@kernel
def best_price(low: float, high: float, n_cheaper: int, n_all: int, smallest: FloatArray) -> float:
    """Returns the middle of the best multipliers; `smallest`: what being counted costs variables, cheapest first."""
    if high < np.inf and n_cheaper >= high:
        k = int(high)
        least, most = 0.0 if low < high else -np.inf, np.inf
    elif low > -np.inf and n_cheaper <= low:
        k = min(int(low), n_all)  # more than all cannot be counted
        least, most = -np.inf, 0.0 if low < high else np.inf
    else:
        return 0.0
    if k < n_all:
        least = max(least, -smallest[k])
    if k > 0:
        most = min(most, -smallest[k - 1])
    if least == -np.inf or most == np.inf or not least <= most:
        if abs(least) < np.inf:
            return least
        return most if abs(most) < np.inf else 0.0
    return 0.5 * (least + most)


@kernel
def line(graph: Graph, r: int, u: float, belief: FloatArray, multiplier: FloatArray) -> tuple[float, float]:
    """Returns the part of the bound that row `r` touches, and its slope, were its multiplier larger by `u`."""
    total = multiplier[r] + u
    limit = graph.row_most[r]
    if total < 0.0 or (total == 0.0 and limit == np.inf):
        limit = graph.row_least[r]
    value, slope = -total * limit, -limit
    if total == 0.0:
        value = 0.0
    c, c1 = graph.row_first[r], graph.row_first[r + 1]
    while c < c1:
        v = graph.row_variable[c]
        least, weight_of_least = np.inf, 0.0
        for at in range(graph.first[v], graph.first[v + 1]):
            weight = 0.0
            if c < c1 and graph.row_label[c] == at:
                weight = graph.row_weight[c]
                c += 1
            if belief[at] + u * weight < least:
                least, weight_of_least = belief[at] + u * weight, weight
        value += least
        slope += weight_of_least
    return value, slope


@kernel
def climb(graph: Graph, r: int, belief: FloatArray, multiplier: FloatArray) -> float:
    """Returns by how much the multiplier of row `r` best changes: cuts tangents of a concave function."""
    lowest = -np.inf if graph.row_low[r] > -np.inf else -multiplier[r]  # u >= 0 without a lower limit
    highest = np.inf if graph.row_high[r] < np.inf else -multiplier[r]
    value, slope = line(graph, r, 0.0, belief, multiplier)
    best, best_value = 0.0, value
    if slope == 0.0 or value == np.inf:
        return 0.0
    # Walk uphill, with steps that double, until the slope turns: a bracket.
    step = 1.0
    left, left_value, left_slope = 0.0, value, slope
    right, right_value, right_slope = 0.0, value, slope
    for _ in range(60):
        u = min(max(step if slope > 0 else -step, lowest), highest)
        new_value, new_slope = line(graph, r, u, belief, multiplier)
        if new_value > best_value:
            best, best_value = u, new_value
        if slope > 0:
            right, right_value, right_slope = u, new_value, new_slope
            if new_slope <= 0 or u == highest:
                break
            left, left_value, left_slope = u, new_value, new_slope
        else:
            left, left_value, left_slope = u, new_value, new_slope
            if new_slope >= 0 or u == lowest:
                break
            right, right_value, right_slope = u, new_value, new_slope
        step *= 4.0
    for _ in range(30):
        if left_slope <= right_slope:
            break
        u = (right_value - left_value + left_slope * left - right_slope * right) / (left_slope - right_slope)
        if not left < u < right:
            break
        new_value, new_slope = line(graph, r, u, belief, multiplier)
        if new_value > best_value:
            best, best_value = u, new_value
        if new_slope == 0.0:
            break
        if new_slope > 0:
            if u == left:
                break
            left, left_value, left_slope = u, new_value, new_slope
        else:
            if u == right:
                break
            right, right_value, right_slope = u, new_value, new_slope
    return best

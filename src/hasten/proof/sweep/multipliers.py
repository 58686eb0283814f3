"""The multipliers of rows: one step of coordinate ascent on the dual (`hasten.proof.sweep.dual`).

The bound is concave and piecewise linear in a row's multiplier. A row that counts (all its weights are 1) has its
breakpoints where a variable would change sides; between two of them the bound is flat at its highest, and the middle
leaves the other rows most freedom. A row in which each variable has one weight walks from one breakpoint to the next,
if it must. All other rows climb.
"""

from __future__ import annotations

import numpy as np

from hasten.jit import inlined_kernel, kernel
from hasten.kernels.layout import Graph
from hasten.kernels.tolerance import EPS
from hasten.support.arrays import FloatArray

MAX_COUNT = 32  # a row that counts further walks like any other
MAX_TURNS = 64  # variables of a row that walks
SPACE = 2 * MAX_TURNS  # numbers of scratch space, and `NOTED` more for each variable
NOTED = 3


@kernel
def update_rows(graph: Graph, belief: FloatArray, multiplier: FloatArray, scratch: FloatArray) -> None:
    """Raises the bound along the multiplier of each row, one after the other."""
    if graph.row_low.size:
        for v in range(graph.order.size):
            note(graph, v, belief, scratch)
    for r in range(graph.row_low.size):
        update_row(graph, r, belief, multiplier, scratch)


@kernel
def update_row(graph: Graph, r: int, belief: FloatArray, multiplier: FloatArray, scratch: FloatArray) -> None:
    """Raises the bound along the multiplier of row `r`; the cheapest labels of its variables were noted."""
    counts = graph.row_counts[r] == 1 and graph.row_first[r] < graph.row_first[r + 1]
    limit = graph.row_most[r] if graph.row_most[r] < np.inf else graph.row_least[r]
    if counts and 0.0 < limit < MAX_COUNT:
        change = level(graph, r, belief, multiplier, scratch)
    else:
        known, change = walk(graph, r, belief, multiplier, scratch)
        if not known:
            change = climb(graph, r, belief, multiplier)
    if change != 0.0:
        multiplier[r] += change
        for c in range(graph.row_first[r], graph.row_first[r + 1]):
            at, v = graph.row_label[c], graph.row_variable[c]
            before = belief[at]
            belief[at] = before + change * graph.row_weight[c]
            note_change(graph, v, at, before, belief, scratch)


@inlined_kernel
def least_of(values: FloatArray, begin: int, end: int) -> float:
    """Returns the least of some values."""
    least = np.inf
    for at in range(begin, end):
        least = min(least, values[at])
    return least


@inlined_kernel
def two_least(values: FloatArray, begin: int, end: int) -> tuple[float, float, int]:
    """Returns the two least of some values, and the place of the least; -1 if all are inf."""
    least, second, chosen = np.inf, np.inf, -1
    for at in range(begin, end):
        value = values[at]
        if value < least:
            least, second, chosen = value, least, at
        elif value < second:
            second = value
    return least, second, chosen


@inlined_kernel
def note(graph: Graph, v: int, belief: FloatArray, scratch: FloatArray) -> None:
    """Notes the costs of the two cheapest labels of a variable, and which label is the cheapest."""
    least, second, chosen = two_least(belief, graph.first[v], graph.first[v + 1])
    noted = SPACE + NOTED * v
    scratch[noted], scratch[noted + 1], scratch[noted + 2] = least, second, chosen


@inlined_kernel
def note_change(graph: Graph, v: int, at: int, before: float, belief: FloatArray, scratch: FloatArray) -> None:
    """Renews these notes once one label has changed its cost; goes through all labels only if it must."""
    noted, value = SPACE + NOTED * v, belief[at]
    least, second = scratch[noted], scratch[noted + 1]
    if scratch[noted + 2] == at:
        if value <= second:
            scratch[noted] = value
        else:
            note(graph, v, belief, scratch)
    elif value < least:
        scratch[noted], scratch[noted + 1], scratch[noted + 2] = value, least, at
    elif value < second:
        scratch[noted + 1] = value
    elif before <= second and value > second:
        note(graph, v, belief, scratch)


@inlined_kernel
def sides(graph: Graph, r: int, c: int, belief: FloatArray, scratch: FloatArray) -> tuple[float, float, int]:
    """Returns the least cost of the variable of cell `c` in row `r` and outside, and the next variable's first cell.

    The cell is -1 where the labels of the variable have different weights.
    """
    v, c1, weight = graph.row_variable[c], graph.row_first[r + 1], graph.row_weight[c]
    if c + 1 == c1 or graph.row_variable[c + 1] != v:
        at, noted = graph.row_label[c], SPACE + NOTED * v
        return belief[at], scratch[noted + 1] if scratch[noted + 2] == at else scratch[noted], c + 1
    inside, outside, alike = np.inf, np.inf, True
    for at in range(graph.first[v], graph.first[v + 1]):
        if c < c1 and graph.row_label[c] == at:
            alike &= graph.row_weight[c] == weight
            inside = min(inside, belief[at])
            c += 1
        else:
            outside = min(outside, belief[at])
    return inside, outside, c if alike else -1


@kernel
def level(graph: Graph, r: int, belief: FloatArray, multiplier: FloatArray, smallest: FloatArray) -> float:
    """Returns by how much the multiplier of a row that counts best changes: to the middle of the best ones."""
    u = multiplier[r]
    low, high = graph.row_least[r], graph.row_most[r]
    if low > high:
        return 0.0  # it never holds: later steps report this
    n_kept, n_cheaper, n_all = 0, 0, 0
    capacity = int((high if high < np.inf else low) + 1.0)
    c, c1 = graph.row_first[r], graph.row_first[r + 1]
    while c < c1:
        inside, outside, c = sides(graph, r, c, belief, smallest)
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
    if low > n_all:
        return 0.0  # nor does this one
    price: float = best_price(low, high, n_cheaper, n_all, smallest) - u
    return price


@kernel
def best_price(low: float, high: float, n_cheaper: int, n_all: int, smallest: FloatArray) -> float:
    """Returns the middle of the best multipliers, given the `smallest` costs of being counted, cheapest first."""
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
def walk(graph: Graph, r: int, belief: FloatArray, multiplier: FloatArray, turns: FloatArray) -> tuple[bool, float]:
    """Returns whether the breakpoints of row `r` are known, and by how much its multiplier best changes."""
    u, n = multiplier[r], 0
    up, down = 0.0, 0.0  # what variables add if the multiplier is a little larger, or smaller
    c, c1 = graph.row_first[r], graph.row_first[r + 1]
    while c < c1:
        weight = graph.row_weight[c]
        inside, outside, c = sides(graph, r, c, belief, turns)
        if c < 0 or n == MAX_TURNS or (inside == np.inf and outside == np.inf):
            return False, 0.0
        more = inside - outside
        if abs(more) < EPS * (abs(inside) + abs(outside) + 2.0 * abs(u * weight)):
            more = 0.0  # it turns just here, where rounding may have put it on either side
        if more < 0.0 or (more == 0.0 and weight < 0.0):
            up += weight
        if more < 0.0 or (more == 0.0 and weight > 0.0):
            down += weight
        turns[n], turns[MAX_TURNS + n] = more, weight
        n += 1
    low, high = graph.row_least[r], graph.row_most[r]
    rising, falling = up - (high if u >= 0.0 else low), down - (high if u > 0.0 else low)
    goes_up = rising > 0.0 and (u < 0.0 or high < np.inf)
    if not goes_up and not (falling < 0.0 and (u > 0.0 or low > -np.inf)):
        return True, 0.0  # most rows: divisions would take longer than all of the above
    for x in range(n):
        turns[x] = u - turns[x] / turns[MAX_TURNS + x]
    return stride(turns, n, u, rising if goes_up else -falling, high - low, 1.0 if goes_up else -1.0)


@kernel
def stride(turns: FloatArray, n: int, u: float, slope: float, width: float, ahead: float) -> tuple[bool, float]:
    """Returns how far a multiplier `u` goes, upwards (`ahead` is 1) or downwards (-1): to where the bound is highest.

    It rises by `slope`, less the weight of each variable that turns on the way and, at zero, where the row's other
    limit counts from then on, less the `width` between both. Where it gets flat, the middle is taken.
    """
    place, before = ahead * u, ahead * u
    while slope >= 0.0:
        following, weight = np.inf, 0.0
        if place < 0.0:
            following, weight = 0.0, width
        for x in range(n):
            turn = ahead * turns[x]
            if place < turn < following:
                following, weight = turn, abs(turns[MAX_TURNS + x])
            elif turn == following and turn < np.inf:
                weight += abs(turns[MAX_TURNS + x])
        if following == np.inf:
            break
        before = place if slope == 0.0 else following
        place, slope = following, slope - weight
    return slope <= 0.0, ahead * 0.5 * (before + place) - u


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

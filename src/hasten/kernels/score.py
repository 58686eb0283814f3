"""The cost of a labelling, and whether it is valid; every labelling in turn, which all else is tested against."""

from __future__ import annotations

import numpy as np

from hasten.jit import driver, inlined_kernel, kernel, open_kernel
from hasten.kernels.layout import BatchArrays, Graph, costs_of, graph_of, labels_of, tables_of
from hasten.support.arrays import BoolArray, FloatArray, IntArray


@open_kernel
def entry(graph: Graph, f: int, labels: IntArray) -> int:
    """Returns where a labelling's entry is in the table, or the weights, of factor `f`."""
    at = 0
    for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
        at += graph.stride[a] * labels[graph.scope[a]]
    return at


@open_kernel
def total_cost(graph: Graph, cost: FloatArray, table: FloatArray, labels: IntArray) -> float:
    """Returns the cost of a labelling: its labels' and its tables'."""
    total = 0.0
    for v in range(graph.order.size):
        total += cost[graph.first[v] + labels[v]]
    for f in range(graph.table_at.size):
        if graph.table_at[f] >= 0:
            total += table[graph.table_at[f] + entry(graph, f, labels)]
            if total == np.inf:
                break
    return total


@driver
def score_batch(batch: BatchArrays, labels: IntArray, total: FloatArray, valid: BoolArray) -> None:
    """Writes the cost and the validity of each problem's labelling; one with a label that does not exist costs inf."""
    for p in range(total.size):
        graph, mine = graph_of(batch, p), labels_of(batch, labels, p)
        exists = True
        for v in range(graph.order.size):
            exists &= 0 <= mine[v] < graph.first[v + 1] - graph.first[v]
        if not exists:
            total[p], valid[p] = np.inf, False
            continue
        total[p] = total_cost(graph, costs_of(batch, p), tables_of(batch, p), mine)
        valid[p] = total[p] < np.inf and rows_hold(graph, mine)


@open_kernel
def enumerate_labellings(
    graph: Graph, cost: FloatArray, table: FloatArray, labels: IntArray, n: int, best: IntArray, best_cost: float
) -> float:
    """Visits `n` labellings from `labels` on, the last variable fastest, and leaves `labels` at the next one.

    Writes the cheapest valid one to `best` if it costs less than `best_cost`, and returns its cost; a tie
    goes to the earlier one.
    """
    for _ in range(n):
        total = total_cost(graph, cost, table, labels)
        if total < best_cost and rows_hold(graph, labels):
            best_cost = total
            for v in range(labels.size):
                best[v] = labels[v]
        for v in range(labels.size - 1, -1, -1):
            labels[v] += 1
            if labels[v] < graph.first[v + 1] - graph.first[v]:
                break
            labels[v] = 0
    return best_cost


@open_kernel
def row_sum(graph: Graph, r: int, labels: IntArray) -> tuple[float, float]:
    """Returns the left side of row `r`, and what rounding took from it."""
    total, lost = 0.0, 0.0
    for c in range(graph.row_first[r], graph.row_first[r + 1]):
        v = graph.row_variable[c]
        if graph.first[v] + labels[v] == graph.row_label[c]:
            weight = graph.row_weight[c]
            after = total + weight
            part = after - total  # Knuth's TwoSum: `total + weight` is `after` plus these two rests, exactly
            lost += (total - (after - part)) + (weight - part)
            total = after
    return total, lost


@open_kernel
def row_holds(graph: Graph, r: int, labels: IntArray) -> bool:
    """Whether a labelling satisfies row `r`."""
    # The limit is subtracted before the rest is added, so that the rest of a sum far from 0 is not rounded away.
    total, lost = row_sum(graph, r, labels)
    return bool((total - graph.row_most[r]) + lost <= 0.0 and (total - graph.row_least[r]) + lost >= 0.0)


@open_kernel
def rows_hold(graph: Graph, labels: IntArray) -> bool:
    """Whether a labelling satisfies every row."""
    for r in range(graph.row_low.size):
        if not row_holds(graph, r, labels):
            return False
    return True


@kernel
def start_ranges(graph: Graph, low: FloatArray, high: FloatArray) -> bool:
    """Sets the range of each row before anything is chosen; false if some row cannot hold."""
    for r in range(graph.row_low.size):
        low[r], high[r] = graph.range_low[r], graph.range_high[r]
    return rows_can_hold(graph)


@kernel
def rows_can_hold(graph: Graph) -> bool:
    """Whether each row, by itself, can hold for some labelling."""
    for r in range(graph.row_low.size):
        if not in_reach(graph, r, graph.range_low[r], graph.range_high[r]):
            return False
    return True


@inlined_kernel
def in_reach(graph: Graph, r: int, low: float, high: float) -> bool:
    """Whether row `r` can still hold with a range."""
    # Ranges are sums that were added to and taken from again: a row is given up only beyond all that can have rounded.
    margin = graph.row_margin[r]
    return bool(low <= graph.row_most[r] + margin and high >= graph.row_least[r] - margin)


@inlined_kernel
def next_weight(graph: Graph, c: int, label: int, r: int) -> tuple[float, int]:
    """Returns the weight of a label in row `r`, and its first cell after that, given its first cell from `r` on."""
    if c < graph.cell_first[label + 1] and graph.cell_row[c] == r:
        return float(graph.cell_weight[c]), c + 1
    return 0.0, c


@kernel
def breaks_row(graph: Graph, low: FloatArray, high: FloatArray, v: int, label: int) -> bool:
    """Whether some row can no longer hold once variable `v` chooses a label, by its number among all labels."""
    c = graph.cell_first[label]
    for x in range(graph.link_first[v], graph.link_first[v + 1]):
        r = graph.link_row[x]
        weight, c = next_weight(graph, c, label, r)
        if not in_reach(graph, r, low[r] + (weight - graph.link_low[x]), high[r] + (weight - graph.link_high[x])):
            return True
    return False


@kernel
def narrow(graph: Graph, low: FloatArray, high: FloatArray, v: int, label: int) -> None:
    """Narrows the ranges to what is left once variable `v` has chosen a label."""
    c = graph.cell_first[label]
    for x in range(graph.link_first[v], graph.link_first[v + 1]):
        r = graph.link_row[x]
        weight, c = next_weight(graph, c, label, r)
        low[r] += weight - graph.link_low[x]
        high[r] += weight - graph.link_high[x]

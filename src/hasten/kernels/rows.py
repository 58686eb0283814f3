"""Linear rows: what a labelling counts, and whether a row holds or still can.

A row holds if its sum lies between `row_least` and `row_most`. Sums of integral weights are exact; others are summed
together with what each addition rounds away. While labels are chosen, each row has a *range*, the least and the most
that it can still come to; a choice moves those of the rows that its variable is in, its *links*. Ranges are off by up
to `row_margin`; nothing is ruled out by less than that.
"""

from __future__ import annotations

from hasten.jit import inlined_kernel, kernel, open_kernel
from hasten.kernels.layout import Graph
from hasten.support.arrays import FloatArray, IntArray


@open_kernel
def row_sum(graph: Graph, r: int, labels: IntArray) -> tuple[float, float]:
    """Returns the left side of row `r`, and what rounding took from it."""
    total, lost = 0.0, 0.0
    for c in range(graph.row_first[r], graph.row_first[r + 1]):
        v = graph.row_variable[c]
        if graph.first[v] + labels[v] == graph.row_label[c]:
            weight = graph.row_weight[c]
            after = total + weight
            part = after - total
            lost += (total - (after - part)) + (weight - part)
            total = after
    return total, lost


@open_kernel
def row_holds(graph: Graph, r: int, labels: IntArray) -> bool:
    """Whether a labelling satisfies row `r`."""
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

"""Linear rows: what a labelling counts, and whether a row holds or still can."""

from __future__ import annotations

from hasten.jit import kernel, open_kernel
from hasten.kernels.layout import Graph
from hasten.support.arrays import FloatArray, IntArray


@open_kernel
def row_value(graph: Graph, r: int, labels: IntArray) -> float:
    """Returns the left side of row `r`."""
    value = 0.0
    for c in range(graph.row_first[r], graph.row_first[r + 1]):
        v = graph.row_variable[c]
        if graph.first[v] + labels[v] == graph.row_label[c]:
            value += graph.row_weight[c]
    return value


@open_kernel
def rows_hold(graph: Graph, labels: IntArray) -> bool:
    """Whether a labelling satisfies every row."""
    for r in range(graph.row_low.size):
        if not graph.row_least[r] <= row_value(graph, r, labels) <= graph.row_most[r]:
            return False
    return True


@kernel
def breaks_row(graph: Graph, row: FloatArray, b: int, t: int, label: int) -> bool:
    """Whether some row can no longer hold once node `b` chooses a label at step `t`."""
    n_rows = graph.row_low.size
    for r in range(n_rows):
        value = row[b, r]
        for c in range(graph.cell_first[label], graph.cell_first[label + 1]):
            if graph.cell_row[c] == r:
                value += graph.cell_weight[c]
        at = (t + 1) * n_rows + r
        if value + graph.rest_low[at] > graph.row_most[r] or value + graph.rest_high[at] < graph.row_least[r]:
            return True
    return False

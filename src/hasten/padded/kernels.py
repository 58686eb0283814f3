"""Between padded arrays and the flat arrays of a batch: costs in, labels in and out, tables counted."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hasten.jit import driver
from hasten.kernels.layout import BatchArrays, graph_of, labels_of
from hasten.kernels.score import entry
from hasten.support.arrays import FloatArray, IntArray

IGNORED = -100  # a gold label that is not known; the label of a cell that is no variable


class Cells(NamedTuple):
    """The cells of one field in all examples: example `b` has `row_at[b]` to `row_at[b + 1]`, in its structure's order.

    What a structure says of its cells stands at `first[b]` and behind.
    """

    row_at: IntArray  # (examples + 1,)
    row: IntArray  # (cells,) where the cell is among those of the padded array
    first: IntArray  # (examples,)
    label: IntArray  # where the labels of its variable start in its problem's costs
    width: IntArray  # how many it has
    variable: IntArray


@driver
def locate(cells: Cells, coordinate: IntArray, stride: IntArray, block: int) -> None:
    """Writes where cells are in a padded array whose examples are `block` cells apart."""
    for b in range(cells.first.size):
        at = cells.first[b]
        for c in range(cells.row_at[b], cells.row_at[b + 1]):
            row = b * block
            for a in range(stride.size):
                row += coordinate[at, a] * stride[a]
            cells.row[c] = row
            at += 1


@driver
def gather(scores: Any, cells: Cells, unit: int, sign: float, cost_at: IntArray, cost: FloatArray) -> int:
    """Writes the costs of one field's variables, `sign` times the scores; returns the first that is none, or -1.

    The scores of a cell start at `unit` times its row.
    """
    wrong = -1
    for b in range(cells.first.size):
        at, start = cells.first[b], cost_at[b]
        for c in range(cells.row_at[b], cells.row_at[b + 1]):
            source, target = cells.row[c] * unit, start + cells.label[at]
            for i in range(cells.width[at]):
                value = sign * scores[source + i]
                cost[target + i] = value
                if not value > -np.inf and wrong < 0:
                    wrong = source + i
            at += 1
    return wrong


@driver
def read_labels(padded: IntArray, cells: Cells, variable_at: IntArray, labels: IntArray) -> int:
    """Writes the labels of one field's variables, -1 where they are ignored; returns the first that is none, or -1."""
    wrong = -1
    for b in range(cells.first.size):
        at, start = cells.first[b], variable_at[b]
        for c in range(cells.row_at[b], cells.row_at[b + 1]):
            label = padded[cells.row[c]]
            labels[start + cells.variable[at]] = -1 if label == IGNORED else label
            if label != IGNORED and not 0 <= label < cells.width[at] and wrong < 0:
                wrong = cells.row[c]
            at += 1
    return wrong


@driver
def write_labels(labels: IntArray, cells: Cells, variable_at: IntArray, padded: IntArray) -> None:
    """Writes the labels of one field's variables where its cells are; there is no answer where they are negative."""
    for b in range(cells.first.size):
        at, start = cells.first[b], variable_at[b]
        for c in range(cells.row_at[b], cells.row_at[b + 1]):
            label = labels[start + cells.variable[at]]
            padded[cells.row[c]] = label if label >= 0 else IGNORED
            at += 1


@driver
def oppose(batch: BatchArrays, gold: IntArray, margin: float, raised: FloatArray, fixed: FloatArray) -> None:
    """Writes costs in which each label but the known one is cheaper by `margin`, and costs in which only it is allowed.

    Variables whose label is not known (-1) keep their costs in both.
    """
    for p in range(batch.place.shape[0] - 1):
        graph, known = graph_of(batch, p), labels_of(batch, gold, p)
        start = batch.place[p, 1]
        for v in range(graph.order.size):
            for at in range(start + graph.first[v], start + graph.first[v + 1]):
                other = known[v] >= 0 and at != start + graph.first[v] + known[v]
                raised[at] = batch.cost[at] - margin if other else batch.cost[at]
                fixed[at] = np.inf if other else batch.cost[at]


@driver
def count_tuples(batch: BatchArrays, labels: IntArray, weight: FloatArray, counted: FloatArray) -> None:
    """Adds the weight of each problem to the entries of tables that its labelling has; those without one count not."""
    for p in range(weight.size):
        graph, mine = graph_of(batch, p), labels_of(batch, labels, p)
        if mine.size and mine[0] >= 0:
            for f in range(graph.table_at.size):
                if graph.table_at[f] >= 0:
                    counted[batch.place[p, 2] + graph.table_at[f] + entry(graph, f, mine)] += weight[p]

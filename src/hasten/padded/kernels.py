"""Between padded arrays and the flat arrays of a batch: costs in, labels in and out, gradients back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hasten.jit import driver, kernel
from hasten.kernels.layout import COST, TABLE, BatchArrays, graph_of, labels_of
from hasten.kernels.score import entry
from hasten.support.arrays import FloatArray, IntArray

IGNORED = -100  # a gold label that is not known; the label of a cell that is no variable


class Cells(NamedTuple):
    """The cells of one field that are variables: those of structure `s` are `first[s]` to `first[s + 1]`, in its order.

    Where a cell is in the padded array is said by its structure or, if `row` is not empty, by a mask.
    """

    number: IntArray  # (examples,) of each one's structure
    first: IntArray  # (structures + 1,)
    label: IntArray  # (cells,) where the labels of its variable start in its problem's costs
    width: IntArray  # (cells,) how many it has
    variable: IntArray  # (cells,)
    coordinate: IntArray  # (cells, axes)
    run: IntArray  # (cells,) how many cells, from this one on, have their labels one behind the other everywhere
    stride: IntArray  # (axes + 1,) how far examples are apart in the padded array, then the entries of each axis
    row: IntArray  # (cells of all examples,) where they are in the padded array; or empty
    row_at: IntArray  # (examples,) where those of each example start; or empty


@kernel
def row_of(cells: Cells, b: int, c: int) -> int:
    """Returns where cell `c` of its structures is in example `b` of the padded array."""
    if cells.row.size:
        row: int = cells.row[cells.row_at[b] + c - cells.first[cells.number[b]]]
        return row
    row = b * cells.stride[0]
    for a in range(cells.coordinate.shape[1]):
        row += cells.coordinate[c, a] * cells.stride[a + 1]
    return row


@driver
def gather(scores: Any, cells: Cells, unit: int, sign: float, cost_at: IntArray, cost: FloatArray) -> None:
    """Writes the costs of one field's variables, `sign` times the scores; those of a cell start at `unit` times its row."""
    for b in range(cells.number.size):
        c, last = cells.first[cells.number[b]], cells.first[cells.number[b] + 1]
        while c < last:
            source, target = row_of(cells, b, c) * unit, cost_at[b] + cells.label[c]
            end = c + (1 if cells.row.size else cells.run[c])
            for i in range(cells.label[end - 1] + cells.width[end - 1] - cells.label[c]):
                cost[target + i] = sign * scores[source + i]
            c = end


@driver
def scatter(flat: FloatArray, cells: Cells, unit: int, cost_at: IntArray, padded: FloatArray) -> None:
    """Writes numbers, one for each label of one field's variables, where `gather` reads the scores of these labels."""
    for b in range(cells.number.size):
        for c in range(cells.first[cells.number[b]], cells.first[cells.number[b] + 1]):
            source, target = cost_at[b] + cells.label[c], row_of(cells, b, c) * unit
            for i in range(cells.width[c]):
                padded[target + i] = flat[source + i]


@driver
def read_labels(padded: IntArray, cells: Cells, variable_at: IntArray, labels: IntArray) -> int:
    """Writes the labels of one field's variables, -1 where they are ignored; returns the first that is none, or -1."""
    wrong = -1
    for b in range(cells.number.size):
        s = cells.number[b]
        for c in range(cells.first[s], cells.first[s + 1]):
            label, at = padded[row_of(cells, b, c)], variable_at[b] + cells.variable[c]
            labels[at] = -1 if label == IGNORED else label
            if label != IGNORED and not 0 <= label < cells.width[c] and wrong < 0:
                wrong = at
    return wrong


@driver
def write_labels(labels: IntArray, cells: Cells, variable_at: IntArray, padded: IntArray) -> None:
    """Writes the labels of one field's variables, (rows, all), where its cells are; negative ones are no answers."""
    for r in range(labels.shape[0]):
        for b in range(cells.number.size):
            s = cells.number[b]
            for c in range(cells.first[s], cells.first[s + 1]):
                label = labels[r, variable_at[b] + cells.variable[c]]
                padded[r, row_of(cells, b, c)] = label if label >= 0 else IGNORED


@driver
def spread(labels: IntArray, weight: FloatArray, start: IntArray, gradient: Any) -> None:
    """Adds the weight of each answer where its labels are: label `i` of a cell is `i` behind where the cell starts.

    Labels are (rows, examples, cells), weights (rows, examples); `gradient` is (examples, all labels).
    """
    for b in range(gradient.shape[0]):
        for r in range(labels.shape[0]):
            for c in range(labels.shape[2]):
                if labels[r, b, c] >= 0:
                    gradient[b, start[c] + labels[r, b, c]] += weight[r, b]


@driver
def oppose(batch: BatchArrays, gold: IntArray, margin: float, raised: FloatArray, fixed: FloatArray) -> None:
    """Writes costs in which each label but the known one is cheaper by `margin`, and costs in which only it is allowed.

    Variables whose label is not known (-1) keep their costs in both.
    """
    for p in range(batch.place.shape[0] - 1):
        graph, known = graph_of(batch, p), labels_of(batch, gold, p)
        for v in range(graph.order.size):
            start = batch.place[p, COST] + graph.first[v]
            for i in range(graph.first[v + 1] - graph.first[v]):
                other = known[v] >= 0 and i != known[v]
                cost = batch.cost[start + i]
                raised[start + i], fixed[start + i] = (cost - margin, np.inf) if other else (cost, cost)


@driver
def count_tuples(batch: BatchArrays, labels: IntArray, weight: FloatArray, counted: FloatArray) -> None:
    """Adds the weight of each answer to the table entries of its label tuples, where it has labels."""
    for p in range(weight.size):
        graph, mine = graph_of(batch, p), labels_of(batch, labels, p)
        if mine.size and mine[0] >= 0:
            for f in range(graph.table_at.size):
                if graph.table_at[f] >= 0:
                    counted[batch.place[p, TABLE] + graph.table_at[f] + entry(graph, f, mine)] += weight[p]

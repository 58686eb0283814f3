"""Between padded arrays and the flat arrays of a batch: costs in, labels in and out, gradients back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hasten.jit import driver, part
from hasten.kernels.layout import COST, GRAPH, TABLE, VARIABLE, BatchArrays, graph_of, labels_of
from hasten.kernels.score import entry
from hasten.support.arrays import FloatArray, IntArray

IGNORED = -100  # a gold label that is not known; the label of a cell that is no variable


class Cells(NamedTuple):
    """The cells of one field that are variables: those of structure `s` are `first[s]` to `first[s + 1]`, in its order.

    Cell `c` is at `row[at[b] + c]` of the part that example `b` has of the padded array.
    """

    number: IntArray  # (examples,) of each one's structure
    first: IntArray  # (structures + 1,)
    label: IntArray  # (cells,) where the labels of its variable start in its problem's costs
    width: IntArray  # (cells,) how many it has
    variable: IntArray  # (cells,)
    row: IntArray  # where cells are: those of each structure, or of each example if a mask says it
    at: IntArray  # (examples,)


@driver
def lay_out(number: IntArray, about: IntArray, place: IntArray, cost_at: IntArray, variable_at: IntArray) -> None:
    """Writes where each problem's graph, costs, tables and variables are, given these of its structure, or how many.

    A problem's structure is that of its example; rows of as many problems as there are examples follow one another.
    """
    cost, variable = 0, 0
    for p in range(place.shape[0]):
        cost_at[p], variable_at[p] = cost, variable
        place[p, COST], place[p, VARIABLE] = cost, variable
        if p < place.shape[0] - 1:
            s = number[p % number.size]
            place[p, GRAPH], place[p, TABLE] = about[s, GRAPH], about[s, TABLE]
            cost += about[s, COST]
            variable += about[s, VARIABLE]


@driver
def gather(scores: Any, cells: Cells, unit: int, sign: float, cost_at: IntArray, cost: FloatArray) -> None:
    """Writes the costs of one field's variables: `sign` times the scores, which start at `unit` times a cell's row.

    Cells that follow one another in both are copied together.
    """
    block = scores.size // max(1, cells.number.size)
    for b in range(cells.number.size):
        c, last, at = cells.first[cells.number[b]], cells.first[cells.number[b] + 1], cells.at[b]
        while c < last:
            source, target = b * block + cells.row[at + c] * unit, cost_at[b] + cells.label[c]
            n = cells.width[c]
            c += 1
            while (
                c < last
                and cost_at[b] + cells.label[c] == target + n
                and (b * block + cells.row[at + c] * unit == source + n)
            ):
                n += cells.width[c]
                c += 1
            given, mine = part(scores, source, source + n), part(cost, target, target + n)
            for i in range(n):
                mine[i] = sign * given[i]


@driver
def scatter(flat: FloatArray, cells: Cells, unit: int, cost_at: IntArray, padded: Any) -> None:
    """Writes numbers, one for each label of one field's variables, where `gather` reads the scores of these labels."""
    block = padded.size // max(1, cells.number.size)
    for b in range(cells.number.size):
        for c in range(cells.first[cells.number[b]], cells.first[cells.number[b] + 1]):
            source, target = cost_at[b] + cells.label[c], b * block + cells.row[cells.at[b] + c] * unit
            for i in range(cells.width[c]):
                padded[target + i] = flat[source + i]


@driver
def subtract(batch: BatchArrays, labels: IntArray, weight: FloatArray, share: FloatArray, gain: FloatArray) -> None:
    """Subtracts the weight of each labelling from the shares of its labels and, if there are any, of its tuples."""
    for p in range(weight.size):
        graph, mine = graph_of(batch, p), labels_of(batch, labels, p)
        for v in range(graph.order.size):
            share[batch.place[p, COST] + graph.first[v] + mine[v]] -= weight[p]
        for f in range(graph.table_at.size if gain.size else 0):
            if graph.table_at[f] >= 0:
                gain[batch.place[p, TABLE] + graph.table_at[f] + entry(graph, f, mine)] -= weight[p]


@driver
def read_labels(padded: IntArray, cells: Cells, variable_at: IntArray, labels: IntArray) -> int:
    """Writes the labels of one field's variables, -1 where they are ignored; returns the first that is none, or -1."""
    wrong, block = -1, padded.size // max(1, cells.number.size)
    for b in range(cells.number.size):
        for c in range(cells.first[cells.number[b]], cells.first[cells.number[b] + 1]):
            label, at = padded[b * block + cells.row[cells.at[b] + c]], variable_at[b] + cells.variable[c]
            labels[at] = -1 if label == IGNORED else label
            if label != IGNORED and not 0 <= label < cells.width[c] and wrong < 0:
                wrong = at
    return wrong


@driver
def write_labels(labels: IntArray, cells: Cells, variable_at: IntArray, padded: IntArray) -> None:
    """Writes the labels of one field's variables, (rows, all), where its cells are, and `IGNORED` elsewhere.

    Negative labels are no answers.
    """
    block = padded.shape[1] // max(1, cells.number.size)
    for r in range(labels.shape[0]):
        for b in range(cells.number.size):
            own = part(padded[r], b * block, (b + 1) * block)
            for i in range(block):
                own[i] = IGNORED
            for c in range(cells.first[cells.number[b]], cells.first[cells.number[b] + 1]):
                label = labels[r, variable_at[b] + cells.variable[c]]
                own[cells.row[cells.at[b] + c]] = label if label >= 0 else IGNORED


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

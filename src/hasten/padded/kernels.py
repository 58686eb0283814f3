"""Between padded arrays and the flat arrays of a batch: costs in, labels in and out, gradients back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hasten.jit import driver, part
from hasten.kernels.layout import COST, GRAPH, TABLE, VARIABLE, BatchArrays, graph_of, labels_of
from hasten.kernels.score import entry
from hasten.support.arrays import FloatArray, IntArray

IGNORED = -100  # a gold label that is not known; the label of a cell that is no variable


SCORE, CELL, LABEL, FIRST_VARIABLE, WIDTH, SIZE = range(6)  # columns of `Runs.at`


class Runs(NamedTuple):
    """The cells of one field that are variables, in runs: cells that follow one another, as their variables do.

    Those of example `b` are `first[number[b]]` to `first[number[b] + 1]`. Of a run there is where its scores and its
    cells start in the part of a padded array that an example has, where its labels and its variables start in the
    problem, how many labels each variable has, and how many variables there are.
    """

    number: IntArray  # (examples,) the structure of each one or, where masks say which cells count, its own number
    first: IntArray
    at: IntArray  # (runs, 6)


def runs_of(number: IntArray, owner: IntArray, n_owners: int, cells: IntArray) -> Runs:
    """Returns the runs of cells, rows of the first five numbers that a run has, which belong to owners in order."""
    step, width = np.diff(cells, axis=0), cells[:-1, WIDTH]
    wanted = np.stack([width, np.ones_like(width), width, np.ones_like(width), np.zeros_like(width)], axis=1)
    goes_on = (step == wanted).all(axis=1) & (owner[1:] == owner[:-1])
    begin = np.flatnonzero(np.append(True, ~goes_on)[: len(cells)])
    at = np.column_stack([cells[begin], np.diff(begin, append=len(cells))])
    return Runs(number, np.searchsorted(owner[begin], np.arange(n_owners + 1)), np.ascontiguousarray(at))


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
def gather(scores: Any, runs: Runs, sign: float, cost_at: IntArray, cost: FloatArray) -> None:
    """Writes the costs of one field's variables: `sign` times the scores."""
    block = scores.size // max(1, runs.number.size)
    for b in range(runs.number.size):
        for r in range(runs.first[runs.number[b]], runs.first[runs.number[b] + 1]):
            source, target = b * block + runs.at[r, SCORE], cost_at[b] + runs.at[r, LABEL]
            n = runs.at[r, SIZE] * runs.at[r, WIDTH]
            given, mine = part(scores, source, source + n), part(cost, target, target + n)
            for i in range(n):
                mine[i] = sign * given[i]


@driver
def scatter(flat: FloatArray, runs: Runs, cost_at: IntArray, padded: Any) -> None:
    """Writes numbers, one for each label of one field's variables, where `gather` reads the scores of these labels."""
    block = padded.size // max(1, runs.number.size)
    for b in range(runs.number.size):
        for r in range(runs.first[runs.number[b]], runs.first[runs.number[b] + 1]):
            source, target = cost_at[b] + runs.at[r, LABEL], b * block + runs.at[r, SCORE]
            for i in range(runs.at[r, SIZE] * runs.at[r, WIDTH]):
                padded[target + i] = flat[source + i]


@driver
def read_labels(padded: IntArray, runs: Runs, variable_at: IntArray, labels: IntArray) -> int:
    """Writes the labels of one field's variables, -1 where they are ignored; returns the first that is none, or -1."""
    wrong, block = -1, padded.size // max(1, runs.number.size)
    for b in range(runs.number.size):
        for r in range(runs.first[runs.number[b]], runs.first[runs.number[b] + 1]):
            source, target = b * block + runs.at[r, CELL], variable_at[b] + runs.at[r, FIRST_VARIABLE]
            for i in range(runs.at[r, SIZE]):
                label = padded[source + i]
                labels[target + i] = -1 if label == IGNORED else label
                if label != IGNORED and not 0 <= label < runs.at[r, WIDTH] and wrong < 0:
                    wrong = target + i
    return wrong


@driver
def write_labels(labels: IntArray, runs: Runs, variable_at: IntArray, padded: IntArray) -> None:
    """Writes the labels of one field's variables, (rows, all), where its cells are, and `IGNORED` elsewhere.

    Negative labels are no answers.
    """
    block = padded.shape[1] // max(1, runs.number.size)
    for row in range(labels.shape[0]):
        given = part(labels[row], 0, labels.shape[1])
        for b in range(runs.number.size):
            mine, cell = part(padded[row], b * block, (b + 1) * block), 0
            for r in range(runs.first[runs.number[b]], runs.first[runs.number[b] + 1]):
                shift = variable_at[b] + runs.at[r, FIRST_VARIABLE] - runs.at[r, CELL]
                while cell < runs.at[r, CELL]:
                    mine[cell] = IGNORED
                    cell += 1
                while cell < runs.at[r, CELL] + runs.at[r, SIZE]:
                    mine[cell] = given[shift + cell] if given[shift + cell] >= 0 else IGNORED
                    cell += 1
            while cell < block:
                mine[cell] = IGNORED
                cell += 1


@driver
def count_labels(batch: BatchArrays, labels: IntArray, weight: FloatArray, share: FloatArray, gain: FloatArray) -> None:
    """Adds the weight of each labelling, unless it is empty, to its labels and label tuples, where there is room.

    Rows of as many labellings as there are problems follow one another.
    """
    n = batch.place.shape[0] - 1
    size = batch.place[n, VARIABLE]
    for q in range(weight.size):
        p = q % n
        graph, mine = graph_of(batch, p), labels_of(batch, part(labels, q // n * size, (q // n + 1) * size), p)
        if mine.size and mine[0] >= 0:
            for v in range(graph.order.size if share.size else 0):
                share[batch.place[p, COST] + graph.first[v] + mine[v]] += weight[q]
            for f in range(graph.table_at.size if gain.size else 0):
                if graph.table_at[f] >= 0:
                    gain[batch.place[p, TABLE] + graph.table_at[f] + entry(graph, f, mine)] += weight[q]


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

"""Glancing: from the objective of a program to the values of its columns in one call, where looking proves them.

Each step from one to the other, in Python, would take as long as looking does. Values of other answers are written here
as well.
"""

from __future__ import annotations

import numpy as np

from hasten.jit import Record, driver, keep, kernel, part, split, viewer
from hasten.kernels.layout import Graph, graph_at
from hasten.kernels.proof.dual import n_messages
from hasten.kernels.proof.look import look
from hasten.kernels.proof.mend import Scratch, n_tuples
from hasten.kernels.proof.outcome import OPEN, PROVED, UNTRIED
from hasten.kernels.tolerance import is_proved
from hasten.support.arrays import FloatArray, IntArray


class Words(Record):
    """What a program calls the L labels of a graph: each sets one of its n columns, or none."""

    column: IntArray  # (L,) the column that a label sets, -1 for none
    value: FloatArray  # (L,) the value that it sets it to
    base: FloatArray  # (L,) what it costs whatever the objective
    fixed: FloatArray  # (n,) the columns that no label sets: their values; 0 for all others
    graph: IntArray  # (1,) the address of the graph
    looks: IntArray  # (1,) whether a proof begins with looking


words_at = viewer(Words)


@kernel
def label_costs(words: Words, graph: Graph, objective: FloatArray, sign: float, cost: FloatArray) -> None:
    """Writes what labels cost; what none decides is added to those of the first variable."""
    for label in range(cost.size):
        cost[label] = words.base[label]
        if words.column[label] >= 0:
            cost[label] += sign * (objective[words.column[label]] * words.value[label])
    shift = 0.0
    for j in range(words.fixed.size):
        shift += words.fixed[j] * objective[j]
    for label in range(graph.first[1]):
        cost[label] += sign * shift


@kernel
def set_columns(words: Words, graph: Graph, labels: IntArray, x: FloatArray) -> None:
    """Writes the value of each column, given the label of each variable; nan where one does not exist."""
    for j in range(x.size):
        x[j] = words.fixed[j]
    for v in range(graph.order.size):
        label = graph.first[v] + labels[v]
        if not graph.first[v] <= label < graph.first[v + 1]:
            for j in range(x.size):
                x[j] = np.nan
            return
        if words.column[label] >= 0:
            x[words.column[label]] = words.value[label]


@driver
def write_values(address: int, labels: IntArray, x: FloatArray) -> None:
    """Writes the values that each of some labellings, one after the other, stands for, into a row each."""
    words = words_at(address)
    graph = graph_at(words.graph[0])
    for row in range(x.shape[0]):
        begin = row * graph.order.size
        set_columns(words, graph, part(labels, begin, begin + graph.order.size), x[row])


@driver
def glance(
    address: int, objective: FloatArray, sign: float, cost: FloatArray, x: FloatArray
) -> tuple[int, float, float]:
    """Writes what labels cost and, where looking proves an answer, its values.

    `address` is that of the words, `sign` -1 where the objective is maximised. Returns the outcome, a bound, and the
    size of the terms.
    """
    words = words_at(address)
    graph = graph_at(words.graph[0])
    label_costs(words, graph, objective, sign, cost)
    if not words.looks[0]:
        return UNTRIED, -np.inf, np.inf
    n_labels, n_factors, n_variables = cost.size, graph.table_at.size, graph.order.size
    floats = np.empty(2 * n_labels + n_messages(graph) + n_tuples(graph))
    ints = np.zeros(4 * n_factors + n_variables, dtype=np.int64)
    belief, message, value, marginal = split(floats, (n_labels, n_messages(graph), n_tuples(graph), n_labels))
    touched, has, waiting, waits, labels = split(ints, (n_factors, n_factors, n_factors, n_factors, n_variables))
    scratch = Scratch(belief, message, value, marginal, touched, has, waiting, waits)
    _, found, bound, size = look(graph, cost, graph.table, scratch, labels)
    outcome = OPEN
    if is_proved(found, bound, size):
        outcome, bound = PROVED, min(bound, found)
        set_columns(words, graph, labels, x)
    keep((floats, ints))
    return outcome, bound, size

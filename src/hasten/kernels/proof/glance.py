"""Glancing: from the objective of a program to the values of its columns in one call, where looking proves them.

Each step from one to the other, in Python, would take as long as looking does. Values of other answers are written here
as well.
"""

from __future__ import annotations

import numpy as np

from hasten.jit import Record, driver, inlined_kernel, keep, kernel, split, viewer
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
    """Writes the values that each of some labellings stands for, row by row."""
    words = words_at(address)
    graph = graph_at(words.graph[0])
    for row in range(x.shape[0]):
        set_columns(words, graph, labels[row], x[row])


@kernel
def n_scratch(graph: Graph) -> tuple[int, int]:
    """Returns how many floats and whole numbers looking needs as scratch space, and for labels."""
    n_floats = 2 * graph.first[graph.order.size] + n_messages(graph) + n_tuples(graph)
    return n_floats, 4 * graph.table_at.size + graph.order.size


@inlined_kernel
def split_scratch(graph: Graph, floats: FloatArray, ints: IntArray) -> tuple[Scratch, IntArray]:
    """Returns the scratch space, and that for labels, as spans."""
    n_labels, n_factors, n_variables = graph.first[graph.order.size], graph.table_at.size, graph.order.size
    belief, message, value, marginal = split(floats, (n_labels, n_messages(graph), n_tuples(graph), n_labels))
    touched, has, waiting, waits, labels = split(ints, (n_factors, n_factors, n_factors, n_factors, n_variables))
    return Scratch(belief, message, value, marginal, touched, has, waiting, waits), labels


@inlined_kernel
def look_at_one(
    words: Words,
    objective: FloatArray,
    sign: float,
    cost: FloatArray,
    scratch: Scratch,
    labels: IntArray,
    x: FloatArray,
) -> tuple[int, float, float]:
    """Writes what labels cost and, where looking proves an answer, its values.

    `sign` is -1 where the objective is maximised. Returns the outcome, a bound, and the size of the terms.
    """
    graph = graph_at(words.graph[0])
    label_costs(words, graph, objective, sign, cost)
    outcome, bound, size = UNTRIED, -np.inf, np.inf
    if words.looks[0]:
        _, found, bound, size = look(graph, cost, graph.table, scratch, labels)
        outcome = OPEN
        if is_proved(found, bound, size):
            outcome, bound = PROVED, min(bound, found)
            set_columns(words, graph, labels, x)
    return outcome, bound, size


@driver
def glance(
    address: int, objective: FloatArray, sign: float, cost: FloatArray, x: FloatArray
) -> tuple[int, float, float]:
    """Looks at one objective of the program whose words are at an address."""
    words = words_at(address)
    graph = graph_at(words.graph[0])
    n_floats, n_ints = n_scratch(graph)
    floats, ints = np.empty(n_floats), np.zeros(n_ints, dtype=np.int64)
    scratch, labels = split_scratch(graph, floats, ints)
    seen = look_at_one(words, objective, sign, cost, scratch, labels, x)
    keep((floats, ints))
    return seen


@driver
def glance_at_all(
    address: int, objectives: FloatArray, sign: float, cost: FloatArray, x: FloatArray, seen: FloatArray
) -> None:
    """Looks at one objective after the other; each has a row of costs, of values, and of what is seen."""
    words = words_at(address)
    graph = graph_at(words.graph[0])
    n_floats, n_ints = n_scratch(graph)
    floats, ints = np.empty(n_floats), np.zeros(n_ints, dtype=np.int64)
    scratch, labels = split_scratch(graph, floats, ints)
    for p in range(objectives.shape[0]):
        found = look_at_one(words, objectives[p], sign, cost[p], scratch, labels, x[p])
        seen[p, 0], seen[p, 1], seen[p, 2] = found
    keep((floats, ints))

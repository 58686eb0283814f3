"""Looking at objectives: from the objective of a program to the values of its columns in one call.

In Python, each step on the way would take as long as looking does. The values of other answers are written here as
well.
"""

from __future__ import annotations

import numpy as np

from hasten.jit import Record, driver, inlined_kernel, keep, kernel, viewer
from hasten.kernels.layout import Graph, graph_at
from hasten.kernels.tolerance import is_proved
from hasten.proof.look import Repair, Space, look, make_scratch, n_numbers, space_for
from hasten.proof.outcome import OPEN, PROVED, UNTRIED
from hasten.support.arrays import FloatArray, IntArray


class Columns(Record):
    """The n columns of a program by the L labels of a graph: each label sets one column, or none."""

    column: IntArray  # (L,) the column that a label sets, -1 for none
    value: FloatArray  # (L,) the value that it sets it to
    base: FloatArray  # (L,) the cost of each label under every objective
    fixed: FloatArray  # (n,) the columns that no label sets: their values; 0 for all others
    graph: IntArray  # (1,) the address of the graph
    looks: IntArray  # (1,) whether a proof begins with looking


columns_at = viewer(Columns)


@kernel
def set_columns(columns: Columns, graph: Graph, labels: IntArray, x: FloatArray) -> None:
    """Writes the value of each column, given the label of each variable; nan where one does not exist."""
    for j in range(x.size):
        x[j] = columns.fixed[j]
    for v in range(graph.order.size):
        label = graph.first[v] + labels[v]
        if not graph.first[v] <= label < graph.first[v + 1]:
            for j in range(x.size):
                x[j] = np.nan
            return
        if columns.column[label] >= 0:
            x[columns.column[label]] = columns.value[label]


@driver
def write_values(address: int, labels: IntArray, x: FloatArray) -> None:
    """Writes the values of columns for each labelling, row by row."""
    columns = columns_at(address)
    graph = graph_at(columns.graph[0])
    for row in range(x.shape[0]):
        set_columns(columns, graph, labels[row], x[row])


@inlined_kernel
def look_at_one(
    columns: Columns, objective: FloatArray, sign: float, cost: FloatArray, own: tuple[Repair, IntArray], x: FloatArray
) -> tuple[int, float, float]:
    """Writes the costs of labels and, where looking proves an answer, its values.

    `sign` is -1 where the objective is maximised. Returns the outcome, a bound, and the size of the terms.
    """
    graph, (scratch, labels) = graph_at(columns.graph[0]), own
    for label in range(cost.size):
        cost[label] = columns.base[label]
        if columns.column[label] >= 0:
            cost[label] += sign * (objective[columns.column[label]] * columns.value[label])
    shift = 0.0
    for j in range(columns.fixed.size):
        shift += columns.fixed[j] * objective[j]
    for label in range(graph.first[1]):  # the rest is added to the labels of the first variable
        cost[label] += sign * shift
    outcome, bound, size = UNTRIED, -np.inf, np.inf
    if columns.looks[0]:
        _, found, bound, size = look(graph, cost, graph.table, scratch, labels)
        outcome = OPEN
        if is_proved(found, bound, size):
            outcome, bound = PROVED, min(bound, found)
            set_columns(columns, graph, labels, x)
    return outcome, bound, size


@driver
def look_at_objective(
    address: int, objective: FloatArray, sign: float, cost: FloatArray, x: FloatArray
) -> tuple[int, float, float]:
    """Looks at one objective of the program whose columns are at an address."""
    columns = columns_at(address)
    space = space_for(graph_at(columns.graph[0]), Space(0, 0, 0, 0, 0))
    n_floats, n_ints = n_numbers(space)
    floats, ints = np.empty(n_floats), np.zeros(n_ints, dtype=np.int64)
    seen = look_at_one(columns, objective, sign, cost, make_scratch(space, floats, ints), x)
    keep((floats, ints))
    return seen


@driver
def look_at_objectives(
    address: int, objectives: FloatArray, sign: float, cost: FloatArray, x: FloatArray, seen: FloatArray
) -> None:
    """Looks at one objective after the other; each has a row of costs, of values, and of results."""
    columns = columns_at(address)
    space = space_for(graph_at(columns.graph[0]), Space(0, 0, 0, 0, 0))
    n_floats, n_ints = n_numbers(space)
    floats, ints = np.empty(n_floats), np.zeros(n_ints, dtype=np.int64)
    scratch = make_scratch(space, floats, ints)
    for p in range(objectives.shape[0]):
        seen[p, 0], seen[p, 1], seen[p, 2] = look_at_one(columns, objectives[p], sign, cost[p], scratch, x[p])
    keep((floats, ints))

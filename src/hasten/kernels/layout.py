"""Problems as kernels see them: the `Graph` of each one's structure, and where its costs and tables are.

Graphs are shared: a batch of a thousand problems of one structure has its graph's address a thousand times.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from hasten.jit import Record, inlined_kernel, kernel, part, viewer
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.clock import CURRENT, STOP_ALL, STOP_ONE


class Graph(Record):
    """One compiled structure: V variables, L labels in all, F factors, T tuple lists, R rows.

    A *slot* is one place of one factor's scope. The entry of a table (or weight block) for labels `l` is
    found at `sum(l[slot] * stride[slot])` from where the table starts.

    Fields stand in three layers, each laid out behind the one before: of factors whatever variables they join
    (`hasten.model.compiled`), of variables and scopes (`hasten.kernels.cells`), and of rows (`hasten.kernels.cells`).
    """

    # factors
    scope_first: IntArray  # (F + 1,) factor f owns the slots scope_first[f]:scope_first[f + 1]
    factor_of: IntArray  # (slots,) the factor that owns each slot
    stride: IntArray  # (slots,)
    message_at: IntArray  # (slots,) where the slot's messages start: one for each label of its variable
    table_at: IntArray  # (F,) where the factor's table starts; -1 if it has none
    weight_at: IntArray  # (F,) where the weights of its kind start; -1 if it has none
    listing: IntArray  # (F,) which tuple list its table has; -1 if it has none
    # tables that do more than forbid, each once
    soft_count: IntArray  # (soft tables,) how many factors share it
    soft_at: IntArray  # (soft tables,) where it starts
    soft_size: IntArray  # (soft tables,) how many entries it has
    # tuple lists: the tuples of a table that are not forbidden by the schema
    list_first: IntArray  # (T + 1,) list t owns the tuples list_first[t]:list_first[t + 1]
    list_entry: IntArray  # (tuples,) the tuple's place in the table
    list_label_at: IntArray  # (T,) where the labels of the list's first tuple start
    list_label: IntArray  # (tuples * arity,) the labels, slot by slot
    table: FloatArray  # the schema's tables, one after the other

    # variables
    first: IntArray  # (V + 1,) variable v owns the labels first[v]:first[v + 1]
    order: IntArray  # (V,) the search assigns order[0], then order[1], ...
    position: IntArray  # (V,) the step that assigns each variable
    # scopes
    scope: IntArray  # (slots,) the variable in each slot
    done_first: IntArray  # (V + 1,) the search's step t completes the factors done[done_first[t]:done_first[t + 1]]
    done: IntArray  # (F,)
    last: IntArray  # (F,) the variable that completes each factor
    touch_first: IntArray  # (V + 1,) variable v is in the slots touch[touch_first[v]:touch_first[v + 1]]
    touch: IntArray  # (slots,) slot ids
    open_first: IntArray  # (V + 1,) step t leaves the factors open[open_first[t]:open_first[t + 1]] one variable short
    open: IntArray  # tables of two variables or more

    # rows, rows by label, and rows by variable
    row_first: IntArray  # (R + 1,) row r owns the cells row_first[r]:row_first[r + 1]
    cell_first: IntArray  # (L + 1,) label l is in the cells cell_first[l]:cell_first[l + 1] by label
    link_first: IntArray  # (V + 1,) variable v has the links link_first[v]:link_first[v + 1], one to each row it is in
    row_counts: IntArray  # (R,) 1 where all weights are 1: the row counts its variables that have one of its labels
    range_low: FloatArray  # (R,) the least that all variables together can add
    range_high: FloatArray  # (R,) and the most
    row_margin: FloatArray  # (R,) how far rounding can put such a range off; 0 if all its weights are integral
    row_low: FloatArray  # (R,)
    row_high: FloatArray  # (R,)
    row_least: FloatArray  # (R,) the limits as kernels take them: with tolerance or, of integral weights, rounded
    row_most: FloatArray  # (R,)
    row_label: IntArray  # (cells,) label number, first[v] + i, sorted by variable
    row_variable: IntArray  # (cells,)
    row_weight: FloatArray  # (cells,)
    cell_row: IntArray  # (cells,) by label
    cell_weight: FloatArray  # (cells,) by label
    link_row: IntArray  # (links,)
    link_low: FloatArray  # (links,) the least that its labels can add to the row
    link_high: FloatArray  # (links,) and the most


@inlined_kernel
def stopped(stop_flag: IntArray) -> bool:
    """Whether work on the problem at hand shall stop, by the stop flag (`hasten.support.clock`)."""
    return bool(stop_flag[STOP_ALL] != 0 or stop_flag[STOP_ONE] == stop_flag[CURRENT])


@kernel
def together(sizes: tuple[int, ...]) -> int:
    """Returns how many numbers there are in all."""
    total = 0
    for size in sizes:
        total += size
    return total


@inlined_kernel
def copy(source: Any, target: Any, begin: int, end: int) -> None:
    """Copies part of an array to the same places of another."""
    for at in range(begin, end):
        target[at] = source[at]


class BatchArrays(NamedTuple):
    """The problems of a batch: what kernels are given of it."""

    place: IntArray  # (n + 1, 4) of each problem: its graph's address, and where its costs, tables and variables start
    cost: FloatArray
    table: FloatArray


Arrays = tuple[IntArray, FloatArray, FloatArray]
"""`BatchArrays` as a plain tuple, which is handed to a driver in half the time."""


class Instance(NamedTuple):
    """One problem: what kernels are given of it."""

    graph: Graph
    cost: FloatArray
    table: FloatArray


GRAPH, COST, TABLE, VARIABLE = 0, 1, 2, 3  # the columns of `place`

graph_at = viewer(Graph)


@kernel
def graph_of(batch: BatchArrays, p: int) -> Graph:
    """Returns the graph of problem `p`."""
    graph: Graph = graph_at(batch.place[p, GRAPH])
    return graph


@kernel
def costs_of(batch: BatchArrays, p: int) -> FloatArray:
    """Returns the costs of problem `p`, as a span."""
    costs: FloatArray = part(batch.cost, batch.place[p, COST], batch.place[p + 1, COST])
    return costs


@kernel
def tables_of(batch: BatchArrays, p: int) -> FloatArray:
    """Returns the tables of problem `p`, and what follows, as a span."""
    tables: FloatArray = part(batch.table, batch.place[p, TABLE], batch.table.size)
    return tables


@kernel
def instance_of(batch: BatchArrays, p: int) -> Instance:
    """Returns problem `p`."""
    return Instance(graph_of(batch, p), costs_of(batch, p), tables_of(batch, p))


@kernel
def labels_of(batch: BatchArrays, labels: IntArray, p: int) -> IntArray:
    """Returns the labels of problem `p` among those of the batch, as a span."""
    mine: IntArray = part(labels, batch.place[p, VARIABLE], batch.place[p + 1, VARIABLE])
    return mine

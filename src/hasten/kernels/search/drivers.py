"""Many searches: over a range of problems whose costs are there, or in waves where they are lazy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hasten.jit import driver
from hasten.kernels.layout import Pool, by_structure, view
from hasten.kernels.search.advance import DEAD_END, DONE, advance, begin
from hasten.kernels.search.nodes import KNOWN, UNKNOWN, Nodes, Options, largest, make_nodes, make_scratch
from hasten.kernels.search.walk import walk
from hasten.support.arrays import FloatArray, IntArray


@driver
def search_range(
    pool: Pool,
    structure: IntArray,
    cost: FloatArray,
    cost_at: IntArray,
    table: FloatArray,
    table_at: IntArray,
    variable_at: IntArray,
    weights: FloatArray,
    options: Options,
    begin_at: int,
    end_at: int,
    labels: IntArray,
    outcome: IntArray,
    n_costs: IntArray,
) -> None:
    """Searches problems `begin_at:end_at`, whose costs are all there."""
    if begin_at == end_at:
        return
    n_variables, n_rows, n_labels = largest(pool, structure, begin_at, end_at)
    nodes = make_nodes(options.width, n_variables, n_rows)
    scratch = make_scratch(options.width, n_variables, n_rows, n_labels)
    state = np.empty(n_variables, dtype=np.int64)
    order = by_structure(pool, structure, begin_at, end_at)
    s = structure[order[0]]
    graph = view(pool, s)
    for p in order:
        if structure[p] != s:
            s = structure[p]
            graph = view(pool, s)
        mine, tables = cost[cost_at[p] : cost_at[p + 1]], table[table_at[p] :]
        if options.width == 1 and not options.ahead:
            done = walk(graph, mine, tables, weights, options, state, nodes, scratch)
            outcome[p] = DONE if done else DEAD_END
        else:
            state[:] = KNOWN if options.theta == np.inf else UNKNOWN
            begin(graph, mine, options, state, nodes)
            outcome[p], _, _ = advance(graph, mine, tables, weights, options, False, state, nodes, 1, 0, False, scratch)
        n_costs[p] = 0
        for v in range(graph.order.size):
            labels[variable_at[p] + v] = nodes.labels[0, v] if outcome[p] == DONE else -1
            n_costs[p] += state[v] == KNOWN


class Paused(NamedTuple):
    """The beams of a whole batch between two waves of requests, problem after problem."""

    labels: NDArray[np.int16]  # (width * variables,)
    g: FloatArray  # (width * n,)
    h: FloatArray  # (width * n,)
    rest: FloatArray  # (width * n,)
    ahead: FloatArray  # (width * variables,)
    row: FloatArray  # (width * rows,)
    row_at: IntArray  # (n + 1,)
    known: IntArray  # (variables,)
    step: IntArray  # (n,) -1 before the start
    n_nodes: IntArray  # (n,)


@driver
def search_wave(
    pool: Pool,
    structure: IntArray,
    cost: FloatArray,
    cost_at: IntArray,
    table: FloatArray,
    table_at: IntArray,
    variable_at: IntArray,
    weights: FloatArray,
    options: Options,
    active: IntArray,
    paused: Paused,
    outcome: IntArray,
) -> None:
    """Continues the active problems of a lazy batch until each is done or wants costs."""
    width = options.width
    n_variables, n_rows, n_labels = largest(pool, structure, 0, structure.size)
    scratch = make_scratch(width, n_variables, n_rows, n_labels)
    for p in active:
        graph = view(pool, structure[p])
        v0, v1, r0, r1 = variable_at[p], variable_at[p + 1], paused.row_at[p], paused.row_at[p + 1]
        b0, b1 = p * width, (p + 1) * width
        nodes = Nodes(
            paused.labels[v0 * width : v1 * width].reshape((width, v1 - v0)),
            paused.g[b0:b1],
            paused.h[b0:b1],
            paused.rest[b0:b1],
            paused.ahead[v0 * width : v1 * width].reshape((width, v1 - v0)),
            paused.row[r0 * width : r1 * width].reshape((width, r1 - r0)),
        )
        mine, known = cost[cost_at[p] : cost_at[p + 1]], paused.known[v0:v1]
        if paused.step[p] < 0:
            begin(graph, mine, options, known, nodes)
            paused.step[p] = 0
            paused.n_nodes[p] = 1
        outcome[p], paused.n_nodes[p], paused.step[p] = advance(
            graph,
            mine,
            table[table_at[p] :],
            weights,
            options,
            True,
            known,
            nodes,
            paused.n_nodes[p],
            paused.step[p],
            False,
            scratch,
        )

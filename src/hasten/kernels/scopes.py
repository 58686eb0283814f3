"""From who is searched when, and who is in which factor, to what the search and the messages need of both."""

from __future__ import annotations

import numpy as np

from hasten.jit import driver, keep, part, split
from hasten.kernels.cells import sort_groups
from hasten.kernels.layout import SCOPES, Graph, put_sizes
from hasten.support.arrays import IntArray


def with_scopes(graph: Graph, first: IntArray, order: IntArray, scope: IntArray) -> Graph:
    """Returns a graph of factors alone with variables: `scope` in their slots."""
    at, n, n_factors, n_slots = len(graph.buffer), len(order), len(graph.table_at), len(scope)
    ints = np.empty(at + 6 * n + 4 + 2 * n_slots + 6 * n_factors, dtype=np.int64)
    ints[:at] = graph.buffer
    end = lay_scopes(first, order, scope, graph.scope_first, graph.table_at, at, ints)
    return Graph(ints[:end])


@driver
def lay_scopes(
    first: IntArray,
    order: IntArray,
    scope: IntArray,
    scope_first: IntArray,
    table_at: IntArray,
    at: int,
    ints: IntArray,
) -> int:
    """Lays out variables and scopes behind the `at` numbers of a graph of factors alone; returns where they end.

    Behind them there is scratch space.
    """
    n, n_factors, n_slots = order.size, table_at.size, scope.size
    sizes = (n + 1, n, n, n_slots, n + 1, n_factors, n_factors, n + 1, n_slots, n + 1, n_factors)
    _, starts, steps, position, slots, done_first, done, last, touch_first, touch, open_first, left = split(
        ints, (at, *sizes)
    )
    end = at + 6 * n + 4 + 2 * n_slots + 3 * n_factors
    _, opened_at, which, by = split(ints, (end, n_factors, n_factors, n_factors))
    starts[n] = first[n]
    for step in range(n):
        v = order[step]
        starts[step], steps[step], position[v] = first[step], v, step
    n_open = 0
    for f in range(n_factors):
        late, before = -1, -1  # the last two steps that assign one of its variables
        for s in range(scope_first[f], scope_first[f + 1]):
            slots[s], step = scope[s], position[scope[s]]
            if step > late:
                late, before = step, late
            elif step > before:
                before = step
        by[f], last[f] = late, order[late]
        if before >= 0 and table_at[f] >= 0:
            opened_at[n_open], which[n_open] = before, f
            n_open += 1
    sort_groups(by, n_factors, done_first, done)
    sort_groups(slots, n_slots, touch_first, touch)
    sort_groups(opened_at, n_open, open_first, by)
    for x in range(n_open):
        left[x] = which[by[x]]
    put_sizes(part(ints, 0, at), SCOPES, at, (*sizes[:10], n_open))
    keep((first, order, scope, scope_first, table_at, ints))
    return end - n_factors + n_open

"""The flat arrays that kernels read: one structure as a `Graph`, many structures as a `Pool`.

A kernel is handed a pool and, for each problem, the number of its structure; `view` cuts that structure out.
Every id in a graph counts from that structure's own zero, so a kernel never knows whether its graph stood
alone or among others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from hasten.jit import driver
from hasten.support.arrays import FloatArray, IntArray


class Graph(NamedTuple):
    """One compiled structure: V variables, L labels in all, F factors, T tuple lists, R rows.

    A *slot* is one place of one factor's scope. The entry of a table (or weight block) for labels `l` is
    found at `sum(l[slot] * stride[slot])` from where the table starts.
    """

    first: IntArray  # (V + 1,) variable v owns the labels first[v]:first[v + 1]
    order: IntArray  # (V,) the search assigns order[0], then order[1], ...
    position: IntArray  # (V,) the step that assigns each variable
    # factors
    scope_first: IntArray  # (F + 1,) factor f owns the slots scope_first[f]:scope_first[f + 1]
    scope: IntArray  # (slots,) the variable in each slot
    stride: IntArray  # (slots,)
    message_at: IntArray  # (slots,) where the slot's messages start: one for each label of its variable
    start_at: IntArray  # (slots,) where the starting messages of its kind and role start (`Schema.n_messages` in all)
    table_at: IntArray  # (F,) where the factor's table starts; -1 if it has none
    weight_at: IntArray  # (F,) where the weights of its kind start; -1 if it has none
    listing: IntArray  # (F,) which tuple list its table has; -1 if it has none
    done_first: IntArray  # (V + 1,) the search's step t completes the factors done[done_first[t]:done_first[t + 1]]
    done: IntArray  # (F,)
    open_first: IntArray  # (V + 1,) step t leaves the factors open[open_first[t]:open_first[t + 1]] one variable short
    open: IntArray  # tables of two variables or more
    last: IntArray  # (F,) the variable that completes each factor
    touch_first: IntArray  # (V + 1,) variable v is in the slots touch[touch_first[v]:touch_first[v + 1]]
    touch: IntArray  # (slots,) slot ids
    factor_of: IntArray  # (slots,) the factor that owns each slot
    # tuple lists: the tuples of a table that are not forbidden by the schema
    list_first: IntArray  # (T + 1,) list t owns the tuples list_first[t]:list_first[t + 1]
    list_entry: IntArray  # (tuples,) the tuple's place in the table
    list_label_at: IntArray  # (T,) where the labels of the list's first tuple start
    list_label: IntArray  # (tuples * arity,) the labels, slot by slot
    # tables that do more than forbid, each once
    soft_at: IntArray  # (soft tables,) where it starts
    soft_size: IntArray  # (soft tables,) how many entries it has
    soft_count: IntArray  # (soft tables,) how many factors share it
    # rows
    row_first: IntArray  # (R + 1,) row r owns the cells row_first[r]:row_first[r + 1]
    row_label: IntArray  # (cells,) label number, first[v] + i, sorted by variable
    row_variable: IntArray  # (cells,)
    row_weight: FloatArray  # (cells,)
    row_low: FloatArray  # (R,)
    row_high: FloatArray  # (R,)
    row_least: FloatArray  # (R,) the limits as kernels take them: with their tolerance, or, of whole weights, whole
    row_most: FloatArray  # (R,)
    row_counts: IntArray  # (R,) 1 where all weights are 1: the row counts its variables that have one of its labels
    # rows by label
    cell_first: IntArray  # (L + 1,) label l is in the cells cell_first[l]:cell_first[l + 1] of:
    cell_row: IntArray  # (cells,)
    cell_weight: FloatArray  # (cells,)
    # what rows can still gain: row r of step t is at t * R + r
    rest_low: FloatArray  # ((V + 1) * R,) the least that the variables assigned from step t on can add
    rest_high: FloatArray  # ((V + 1) * R,) the most
    table: FloatArray  # the schema's tables, one after the other


T = TypeVar("T")
Groups = tuple[tuple[tuple[str, bool], ...], ...]

# Which fields grow together; a field marked True has one entry more than its group has members.
_GROUPS: Groups = (
    (
        ("order", False),
        ("position", False),
        ("first", True),
        ("done_first", True),
        ("open_first", True),
        ("touch_first", True),
    ),
    (
        ("table_at", False),
        ("weight_at", False),
        ("listing", False),
        ("done", False),
        ("last", False),
        ("scope_first", True),
    ),
    (
        ("scope", False),
        ("stride", False),
        ("message_at", False),
        ("start_at", False),
        ("touch", False),
        ("factor_of", False),
    ),
    (("list_label_at", False), ("list_first", True)),
    (("list_entry", False),),
    (("list_label", False),),
    (
        ("row_low", False),
        ("row_high", False),
        ("row_least", False),
        ("row_most", False),
        ("row_counts", False),
        ("row_first", True),
    ),
    (
        ("row_label", False),
        ("row_variable", False),
        ("row_weight", False),
        ("cell_row", False),
        ("cell_weight", False),
    ),
    (("cell_first", False),),
    (("open", False),),
    (("rest_low", False), ("rest_high", False)),
    (("table", False),),
    (("soft_at", False), ("soft_size", False), ("soft_count", False)),
)


_FLOATS = {
    "row_weight",
    "row_low",
    "row_high",
    "row_least",
    "row_most",
    "cell_weight",
    "rest_low",
    "rest_high",
    "table",
}


class Pool(NamedTuple):
    """Several graphs, field by field, one after the other."""

    at: IntArray  # (S + 1, groups) where the members of each group of fields start
    graphs: Graph  # the concatenated fields


def gather(graphs: Sequence[Graph]) -> Pool:
    """Returns the pool of some graphs."""
    return Pool(*gather_fields(graphs, Graph, _GROUPS))


def gather_fields(items: Sequence[T], make: Callable[..., T], groups: Groups) -> tuple[IntArray, T]:
    """Returns where each item's fields start, group by group, and the concatenated fields."""
    at = np.zeros((len(items) + 1, len(groups)), dtype=np.int64)
    for s, item in enumerate(items):
        at[s + 1] = at[s] + [len(getattr(item, group[0][0])) for group in groups]
    if len(items) == 1:
        return at, items[0]
    names = [name for group in groups for name, _ in group]
    nothing = {name: np.zeros(0, dtype=np.float64 if name in _FLOATS else np.int64) for name in names}
    return at, make(
        **{name: np.concatenate([nothing[name], *(getattr(item, name) for item in items)]) for name in names}
    )


@driver
def by_structure(pool: Pool, structure: IntArray, begin_at: int, end_at: int) -> IntArray:
    """Returns the problems `begin_at:end_at`, those of one structure together: it is then viewed only once."""
    n_structures = pool.at.shape[0] - 1
    place = np.zeros(n_structures + 1, dtype=np.int64)
    for p in range(begin_at, end_at):
        place[structure[p] + 1] += 1
    for s in range(n_structures):
        place[s + 1] += place[s]
    order = np.empty(end_at - begin_at, dtype=np.int64)
    for p in range(begin_at, end_at):
        order[place[structure[p]]] = p
        place[structure[p]] += 1
    return order


@driver
def view(pool: Pool, s: int) -> Graph:
    """Returns the graph of structure `s` of a pool."""
    at, end, g = pool.at[s], pool.at[s + 1], pool.graphs
    v, f, a, t, u = at[0], at[1], at[2], at[3], at[4]
    w, r, c, m, o, e, b, d = at[5], at[6], at[7], at[8], at[9], at[10], at[11], at[12]
    v_end, f_end, a_end, t_end, u_end = end[0], end[1], end[2], end[3], end[4]
    w_end, r_end, c_end, m_end = end[5], end[6], end[7], end[8]
    o_end, e_end, b_end, d_end = end[9], end[10], end[11], end[12]
    return Graph(
        g.first[v + s : v_end + s + 1],
        g.order[v:v_end],
        g.position[v:v_end],
        g.scope_first[f + s : f_end + s + 1],
        g.scope[a:a_end],
        g.stride[a:a_end],
        g.message_at[a:a_end],
        g.start_at[a:a_end],
        g.table_at[f:f_end],
        g.weight_at[f:f_end],
        g.listing[f:f_end],
        g.done_first[v + s : v_end + s + 1],
        g.done[f:f_end],
        g.open_first[v + s : v_end + s + 1],
        g.open[o:o_end],
        g.last[f:f_end],
        g.touch_first[v + s : v_end + s + 1],
        g.touch[a:a_end],
        g.factor_of[a:a_end],
        g.list_first[t + s : t_end + s + 1],
        g.list_entry[u:u_end],
        g.list_label_at[t:t_end],
        g.list_label[w:w_end],
        g.soft_at[d:d_end],
        g.soft_size[d:d_end],
        g.soft_count[d:d_end],
        g.row_first[r + s : r_end + s + 1],
        g.row_label[c:c_end],
        g.row_variable[c:c_end],
        g.row_weight[c:c_end],
        g.row_low[r:r_end],
        g.row_high[r:r_end],
        g.row_least[r:r_end],
        g.row_most[r:r_end],
        g.row_counts[r:r_end],
        g.cell_first[m:m_end],
        g.cell_row[c:c_end],
        g.cell_weight[c:c_end],
        g.rest_low[e:e_end],
        g.rest_high[e:e_end],
        g.table[b:b_end],
    )

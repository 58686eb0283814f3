"""The later layers of a graph: scopes, in the order of the search, and rows, whose terms are added up and sorted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import driver, keep, kernel, part, split
from hasten.kernels.layout import ROWS, SCOPES, Graph, put_sizes
from hasten.kernels.tolerance import EPS, EXACT, SLACK
from hasten.support.arrays import BoolArray, FloatArray, IntArray

NOISE = 1e-9  # how far, relatively, a limit may be from the whole number that it stands for


class Cells(NamedTuple):
    """The cells of rows: which label adds how much to which row."""

    row: IntArray
    label: IntArray
    variable: IntArray
    weight: FloatArray


class Links(NamedTuple):
    """The least and the most that each variable can add to each row that it is in."""

    row: IntArray
    variable: IntArray
    low: FloatArray
    high: FloatArray


class Ranges(NamedTuple):
    """The range of each row, how far rounding can put it off, and whether all weights are 1, or integral."""

    low: FloatArray
    high: FloatArray
    margin: FloatArray
    counts: IntArray
    integral: IntArray


class Rows(NamedTuple):
    """The rows to compile: the terms of row `r` are `first[r]:first[r + 1]`, in any order, some perhaps twice."""

    first: IntArray  # (R + 1,)
    label: IntArray  # (terms,) label numbers
    weight: FloatArray  # (terms,)
    low: FloatArray  # (R,)
    high: FloatArray  # (R,)

    def then(self, more: Rows) -> Rows:
        """Returns these rows, then others."""
        if not len(self.low):
            return more
        label, weight = np.concatenate([self.label, more.label]), np.concatenate([self.weight, more.weight])
        first = np.concatenate([self.first, self.first[-1] + more.first[1:]])
        return Rows(first, label, weight, np.concatenate([self.low, more.low]), np.concatenate([self.high, more.high]))


NO_ROWS = Rows(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), *np.zeros((3, 0)))


def with_rows(graph: Graph, rows: Rows) -> Graph:
    """Returns a graph with some rows, in place of its own if it has any."""
    buffer, first, n_rows, n_terms = graph.buffer, graph.first, len(rows.low), len(rows.label)
    at = buffer.item(ROWS) or len(buffer)  # where its other layers end
    if not n_rows:
        return _without_rows(buffer[:at], (1, int(first[-1]) + 1, len(first)))
    ints = np.empty(at + int(first[-1]) + len(first) + 2 + 10 * n_rows + 14 * n_terms, dtype=np.int64)
    ints[:at] = buffer[:at]
    end = lay_rows(first, rows, at, ints, ints.view(np.float64))
    ints.resize(end, refcheck=False)  # scratch space goes
    return Graph(ints)


def _without_rows(others: IntArray, starts: tuple[int, ...]) -> Graph:
    """Returns a graph without rows, given its other layers, and how many numbers say where the rows of each start."""
    at, end = len(others), len(others) + sum(starts)
    ints = np.concatenate([others, np.zeros(sum(starts), dtype=np.int64)])
    header = ints[ROWS : 2 * len(Graph._fields)].reshape(-1, 2)
    header[:] = end, 0
    header[:3] = [(at, starts[0]), (at + starts[0], starts[1]), (end - starts[2], starts[2])]
    return Graph(ints)


@driver
def lay_rows(first: IntArray, rows: Rows, at: int, ints: IntArray, floats: FloatArray) -> int:
    """Lays out rows behind the `at` numbers of a graph's other layers; returns where they end.

    `ints` and `floats` are the same memory: a field is of one or the other. Behind them there is scratch space.
    """
    row_first, label, weight, low, high = rows
    n_rows, n_terms, n_labels, n_variables = low.size, label.size, first[first.size - 1], first.size - 1
    of_rows = (n_rows, n_rows, n_rows, n_rows, n_rows, n_rows, n_rows, n_rows)
    fixed = (n_rows + 1, n_labels + 1, n_variables + 1, *of_rows)
    _, row_at, cell_first, link_first, counts, _, _, _, _, _, _, _ = split(ints, (at, *fixed))
    _, _, _, _, _, range_low, range_high, margin, row_low, row_high, row_least, row_most = split(floats, (at, *fixed))
    begin = at + 9 * n_rows + n_labels + n_variables + 3
    scratch = (begin + 8 * n_terms, n_rows, n_terms, n_terms, n_terms, n_terms, n_terms, n_terms)
    _, integral, row, order, of, which, in_row, _ = split(ints, scratch)
    _, _, _, _, _, least, most, total = split(floats, scratch)  # by then, `which` and `in_row` are no longer needed
    starts = part(first, 0, first.size)
    for r in range(n_rows):
        for t in range(row_first[r], row_first[r + 1]):
            row[t] = r
    sort_groups(part(label, 0, n_terms), n_terms, cell_first, order)
    n_cells = add_up(starts, row, part(weight, 0, n_terms), order, cell_first, Cells(in_row, which, of, total))
    of_cells = (n_cells, n_cells, n_cells, n_cells, n_cells)
    _, row_label, variable, _, cell_row, _ = split(ints, (begin, *of_cells))
    _, _, _, row_weight, _, cell_weight = split(floats, (begin, *of_cells))
    sort_groups(in_row, n_cells, row_at, order)
    for x in range(n_cells):
        c = order[x]
        row_label[x], variable[x], row_weight[x] = which[c], of[c], total[c]
        cell_row[x], cell_weight[x] = in_row[x], total[x]
    links, ranges = Links(row, of, least, most), Ranges(range_low, range_high, margin, counts, integral)
    n_links = link(starts, row_at, variable, row_weight, links, ranges)
    for r in range(n_rows):
        row_low[r], row_high[r] = low[r], high[r]
        row_least[r], row_most[r] = row_limit(low[r], integral[r], -1), row_limit(high[r], integral[r], 1)
    of_links = (n_links, n_links, n_links)
    _, link_row, _, _ = split(ints, (begin + 5 * n_cells, *of_links))
    _, _, link_low, link_high = split(floats, (begin + 5 * n_cells, *of_links))
    sort_groups(of, n_links, link_first, order)
    for x in range(n_links):
        link_row[x], link_low[x], link_high[x] = row[order[x]], least[order[x]], most[order[x]]
    put_sizes(part(ints, 0, at), ROWS, at, (*fixed, *of_cells, *of_links))
    keep((first, rows, ints, floats))
    end: int = begin + 5 * n_cells + 3 * n_links
    return end


def row_limits(low: FloatArray, high: FloatArray, integral: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Returns how far rows may go below and above their limits, given which of them have integral weights only."""
    least, most = low.copy(), high.copy()
    widen_limits(least, most, integral)
    return least, most


@driver
def widen_limits(low: FloatArray, high: FloatArray, integral: BoolArray) -> None:
    """Puts how far rows may go in place of their limits, given which of them have integral weights only."""
    for r in range(low.size):
        low[r], high[r] = row_limit(low[r], integral[r], -1), row_limit(high[r], integral[r], 1)


@kernel
def row_limit(limit: float, integral: int, side: int) -> float:
    """Returns how far a row may go to one side of its limit.

    A sum of integral weights stops at the last whole number within the limit, which may be off by what writing it as a
    float takes; others have the slack of a solver.
    """
    if np.isinf(limit):
        return limit
    size = max(1.0, abs(limit))
    if not integral:
        return limit + side * SLACK * size + 0.0  # no negative zero
    stop: float = np.rint(limit)  # a limit such as 0.1 + 0.2 + 0.7 stands for 1; 0.999 does not
    if abs(limit - stop) > min(SLACK, NOISE * size):
        stop = np.floor(limit) if side > 0 else np.ceil(limit)
    return stop + 0.0


@kernel
def sort_groups(group: IntArray, n: int, first: IntArray, order: IntArray) -> None:
    """Sorts `n` things by group, equal ones as they come: sets where each group starts, and the order."""
    for g in range(first.size):
        first[g] = 0
    for x in range(n):
        first[group[x] + 1] += 1
    for g in range(1, first.size):
        first[g] += first[g - 1]
    for x in range(n):
        order[first[group[x]]] = x
        first[group[x]] += 1
    for g in range(first.size - 1, 0, -1):
        first[g] = first[g - 1]
    first[0] = 0


@kernel
def add_up(
    first: IntArray, row: IntArray, weight: FloatArray, order: IntArray, cell_first: IntArray, cells: Cells
) -> int:
    """Adds up the terms that a label has in a row, in their order; returns how many sums are not 0.

    `order` sorts the terms by label, and `cell_first` says where those of each start; then, where its cells do.
    """
    n = 0
    for v in range(first.size - 1):
        for label in range(first[v], first[v + 1]):
            x, end = cell_first[label], cell_first[label + 1]
            cell_first[label] = n
            while x < end:
                r, total = row[order[x]], 0.0
                while x < end and row[order[x]] == r:
                    total += weight[order[x]]
                    x += 1
                if total != 0.0:
                    cells.row[n], cells.label[n], cells.variable[n], cells.weight[n] = r, label, v, total
                    n += 1
    cell_first[cell_first.size - 1] = n
    return n


@kernel
def link(
    first: IntArray, row_first: IntArray, variable: IntArray, weight: FloatArray, links: Links, ranges: Ranges
) -> int:
    """Sets what each variable can add to each row that it is in, and the ranges of the rows; returns how many links."""
    n = 0
    for r in range(ranges.low.size):
        counts, integral, low, high, size, n_before, c = 1, 1, 0.0, 0.0, 0.0, n, row_first[r]
        while c < row_first[r + 1]:
            v = variable[c]
            least, most, n_silent = np.inf, -np.inf, first[v + 1] - first[v]  # labels that add nothing
            while c < row_first[r + 1] and variable[c] == v:
                least, most = min(least, weight[c]), max(most, weight[c])
                counts &= weight[c] == 1.0
                integral &= weight[c] == np.rint(weight[c])
                n_silent -= 1
                c += 1
            if n_silent > 0:
                least, most = min(least, 0.0), max(most, 0.0)
            links.row[n], links.variable[n], links.low[n], links.high[n] = r, v, least, most
            low += least
            high += most
            size += max(-least, most)
            n += 1
        ranges.low[r], ranges.high[r], ranges.counts[r], ranges.integral[r] = low, high, counts, integral
        # Whole weights add up exactly. Other sums have a term for each link, each of which rounds by EPS of `size` at
        # most; a search adds and takes away two numbers for each, and the factor leaves room for that and for limits.
        ranges.margin[r] = 0.0 if integral and size < EXACT else 8 * EPS * (n - n_before + 4) * size
    return n


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

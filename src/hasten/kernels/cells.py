"""From the terms of rules to the rows of a graph: added up, and sorted by row, by label and by variable."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import driver, keep, kernel, part, split
from hasten.kernels.tolerance import EPS, EXACT
from hasten.support.arrays import FloatArray, IntArray


class Cells(NamedTuple):
    """What labels add to rows."""

    row: IntArray
    label: IntArray
    variable: IntArray
    weight: FloatArray


class Links(NamedTuple):
    """What variables can add to rows."""

    row: IntArray
    variable: IntArray
    low: FloatArray
    high: FloatArray


class Ranges(NamedTuple):
    """What rows can come to, how far rounding can put that off, and whether all their weights are 1, or whole."""

    low: FloatArray
    high: FloatArray
    margin: FloatArray
    counts: IntArray
    whole: IntArray


def row_fields(
    first: IntArray, row_first: IntArray, label: IntArray, weight: FloatArray
) -> dict[str, IntArray | FloatArray]:
    """Returns what a graph holds of some rows, but for their limits, and as `row_whole` which have whole weights only.

    Variables own the labels `first`; row `r` has the terms `row_first[r]:row_first[r + 1]`, in any order, some perhaps
    twice.
    """
    n_rows, n_terms, n_labels, n_variables = len(row_first) - 1, len(label), int(first[-1]), len(first) - 1
    ints = np.zeros(8 * n_terms + n_labels + n_variables + 3 * n_rows + 3, dtype=np.int64)
    floats = np.empty(6 * n_terms + 3 * n_rows)
    n_cells, n_links = lay_rows(first, row_first, label, weight, ints, floats)
    fields: dict[str, IntArray | FloatArray] = {}
    at = 0
    for name, room, size in (
        ("row_first", n_rows + 1, n_rows + 1),
        ("cell_first", n_labels + 1, n_labels + 1),
        ("link_first", n_variables + 1, n_variables + 1),
        ("row_counts", n_rows, n_rows),
        ("row_whole", n_rows, n_rows),
        ("row_label", n_terms, n_cells),
        ("row_variable", n_terms, n_cells),
        ("cell_row", n_terms, n_cells),
        ("link_row", n_terms, n_links),
    ):
        fields[name] = ints[at : at + size]
        at += room
    at = 0
    for name, room, size in (
        ("range_low", n_rows, n_rows),
        ("range_high", n_rows, n_rows),
        ("row_margin", n_rows, n_rows),
        ("row_weight", n_terms, n_cells),
        ("cell_weight", n_terms, n_cells),
        ("link_low", n_terms, n_links),
        ("link_high", n_terms, n_links),
    ):
        fields[name] = floats[at : at + size]
        at += room
    return fields


@driver
def lay_rows(
    first: IntArray, row_first: IntArray, label: IntArray, weight: FloatArray, ints: IntArray, floats: FloatArray
) -> tuple[int, int]:
    """Writes the fields that `row_fields` names into arrays, `ints` of zeros; returns how many cells and links.

    Behind the fields there is scratch space.
    """
    n_rows, n_terms, n_labels, n_variables = row_first.size - 1, label.size, first[first.size - 1], first.size - 1
    row_at, cell_first, link_first, counts, whole, row_label, variable, cell_row, link_row, order, row, at, of = split(
        ints,
        (
            *(n_rows + 1, n_labels + 1, n_variables + 1, n_rows, n_rows, n_terms, n_terms, n_terms, n_terms),
            *(n_terms, n_terms, n_terms, n_terms),
        ),
    )
    low, high, margin, row_weight, cell_weight, link_low, link_high, least, most = split(
        floats, (n_rows, n_rows, n_rows, n_terms, n_terms, n_terms, n_terms, n_terms, n_terms)
    )
    starts = part(first, 0, first.size)
    for r in range(n_rows):
        for t in range(row_first[r], row_first[r + 1]):
            row[t] = r
    sort_groups(part(label, 0, n_terms), n_terms, cell_first, order)
    by_label = Cells(cell_row, at, of, cell_weight)
    n_cells = add_up(starts, row, part(weight, 0, n_terms), order, cell_first, by_label)
    sort_groups(cell_row, n_cells, row_at, order)
    for x in range(n_cells):
        c = order[x]
        row_label[x], variable[x], row_weight[x] = at[c], of[c], cell_weight[c]
    links = Links(row, of, least, most)
    n_links = link(starts, row_at, variable, row_weight, links, Ranges(low, high, margin, counts, whole))
    sort_groups(of, n_links, link_first, order)
    for x in range(n_links):
        link_row[x], link_low[x], link_high[x] = row[order[x]], least[order[x]], most[order[x]]
    keep((first, label, weight, ints, floats))
    return n_cells, n_links


@kernel
def sort_groups(group: IntArray, n: int, first: IntArray, order: IntArray) -> None:
    """Sorts `n` things by group, equal ones as they come: sets where each group starts (0 before) and the order."""
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
        counts, whole, low, high, size, n_before, c = 1, 1, 0.0, 0.0, 0.0, n, row_first[r]
        while c < row_first[r + 1]:
            v = variable[c]
            least, most, n_silent = np.inf, -np.inf, first[v + 1] - first[v]  # labels that add nothing
            while c < row_first[r + 1] and variable[c] == v:
                least, most = min(least, weight[c]), max(most, weight[c])
                counts &= weight[c] == 1.0
                whole &= weight[c] == np.rint(weight[c])
                n_silent -= 1
                c += 1
            if n_silent > 0:
                least, most = min(least, 0.0), max(most, 0.0)
            links.row[n], links.variable[n], links.low[n], links.high[n] = r, v, least, most
            low += least
            high += most
            size += max(-least, most)
            n += 1
        ranges.low[r], ranges.high[r], ranges.counts[r], ranges.whole[r] = low, high, counts, whole
        ranges.margin[r] = 0.0 if whole and size < EXACT else 8 * EPS * (n - n_before + 4) * size
    return n

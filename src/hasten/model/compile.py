"""From lists of scopes, tables and rows to the flat arrays of a `Graph`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hasten.kernels.layout import Graph
from hasten.kernels.tolerance import EPS, SLACK, slack
from hasten.support.arrays import BoolArray, FloatArray, IntArray, ints, offsets, strides

EXACT = 2.0**53  # sums of whole numbers below it are
NOISE = 1e-9  # how far, relatively, a limit may be from a whole number and mean it


@dataclass(frozen=True, slots=True, eq=False)
class FactorPart:
    """One factor to compile; factors with the same `key` share one table."""

    scope: tuple[int, ...]
    shape: tuple[int, ...]
    table: FloatArray | None
    key: Hashable
    weight_at: int = -1
    start_at: int = 0  # where the starting messages of its kind start
    soft: bool = True  # whether its table may do more than forbid


@dataclass(frozen=True, slots=True, eq=False)
class RowPart:
    """One row to compile: a weight by label number, and its limits."""

    weights: Mapping[int, float]
    low: float
    high: float


def compile_graph(
    sizes: Sequence[int], order: Sequence[int], factors: Sequence[FactorPart], rows: Sequence[RowPart]
) -> Graph:
    """Returns the graph of variables with `sizes` labels, searched in `order`."""
    first = offsets(sizes)
    steps = ints(order)
    return Graph.pack(first=first, order=steps, **_factors(first, steps, factors), **_rows(first, steps, rows))


def _factors(first: IntArray, order: IntArray, factors: Sequence[FactorPart]) -> dict[str, Any]:
    n_variables, n_factors = len(order), len(factors)
    arities = [len(factor.scope) for factor in factors]
    scope = ints(variable for factor in factors for variable in factor.scope)
    steps_of = {shape: strides(shape) for shape in {factor.shape for factor in factors}}
    position = np.empty(n_variables, dtype=np.int64)
    position[order] = np.arange(n_variables)
    steps = [sorted(int(position[v]) for v in factor.scope) for factor in factors]
    completed_at = ints(step[-1] for step in steps)
    table_at, listing, tables = _tables(factors, steps_of)
    opened_at = ints(step[-2] if len(step) > 1 and table_at[f] >= 0 else -1 for f, step in enumerate(steps))
    opened = np.flatnonzero(opened_at >= 0)
    opened = opened[np.argsort(opened_at[opened], kind="stable")]
    return {
        "position": position,
        "scope_first": offsets(arities),
        "scope": scope,
        "stride": ints(stride for factor in factors for stride in steps_of[factor.shape]),
        "message_at": offsets(np.diff(first)[scope])[:-1],
        "start_at": ints(start for factor in factors for start in factor.start_at + offsets(factor.shape)[:-1]),
        "table_at": table_at,
        "weight_at": ints(factor.weight_at for factor in factors),
        "listing": listing,
        "done_first": offsets(np.bincount(completed_at, minlength=n_variables)),
        "done": np.argsort(completed_at, kind="stable"),
        "open_first": offsets(np.bincount(opened_at[opened], minlength=n_variables)),
        "open": ints(opened),
        "last": order[completed_at],
        "touch_first": offsets(np.bincount(scope, minlength=n_variables)),
        "touch": np.argsort(scope, kind="stable"),
        "factor_of": np.repeat(np.arange(n_factors), ints(arities)),
        **tables,
    }


def _tables(
    factors: Sequence[FactorPart], steps_of: Mapping[tuple[int, ...], IntArray]
) -> tuple[IntArray, IntArray, dict[str, Any]]:
    """Lays the distinct tables out one after the other, each with the list of its tuples that are not forbidden."""
    table_at, listing = np.full(len(factors), -1), np.full(len(factors), -1)
    blocks, entries, labels = [np.zeros(0)], [ints(())], [ints(())]
    list_first, list_label_at = [0], list[int]()
    places: dict[Hashable, tuple[int, int]] = {}
    size, n_labels = 0, 0
    for f, factor in enumerate(factors):
        if factor.key not in places:
            if factor.table is None:
                places[factor.key] = (-1, -1)
            else:
                tuples = np.argwhere(~np.isposinf(factor.table))
                places[factor.key] = (size, len(list_label_at))
                blocks.append(factor.table.ravel())
                entries.append(tuples @ steps_of[factor.shape])
                labels.append(tuples.ravel())
                list_label_at.append(n_labels)
                list_first.append(list_first[-1] + len(tuples))
                size += factor.table.size
                n_labels += tuples.size
        table_at[f], listing[f] = places[factor.key]
    shared = Counter(factor.key for factor in factors)
    soft = {factor.key: factor.table.size for factor in factors if factor.soft and factor.table is not None}
    lists = {
        "soft_at": ints(places[key][0] for key in soft),
        "soft_size": ints(soft.values()),
        "soft_count": ints(shared[key] for key in soft),
        "list_first": ints(list_first),
        "list_entry": np.concatenate(entries),
        "list_label_at": ints(list_label_at),
        "list_label": np.concatenate(labels),
        "table": np.concatenate(blocks),
    }
    return table_at, listing, lists


def _rows(first: IntArray, order: IntArray, rows: Sequence[RowPart]) -> dict[str, Any]:
    cells = [sorted((label, weight) for label, weight in row.weights.items() if weight) for row in rows]
    row_label = ints(label for row in cells for label, _ in row)
    row_weight = np.array([weight for row in cells for _, weight in row], dtype=np.float64)
    row_of = np.repeat(np.arange(len(rows)), ints(len(row) for row in cells))
    row_variable = np.searchsorted(first, row_label, side="right") - 1
    by_label = np.argsort(row_label, kind="stable")
    whole = [all(weight.is_integer() for weight in row.weights.values()) for row in rows]
    return {
        "row_first": offsets(len(row) for row in cells),
        "row_label": row_label,
        "row_variable": row_variable,
        "row_weight": row_weight,
        "row_low": np.array([row.low for row in rows], dtype=np.float64),
        "row_high": np.array([row.high for row in rows], dtype=np.float64),
        "row_least": np.array([_limit(row.low, -1, each) for row, each in zip(rows, whole, strict=True)]),
        "row_most": np.array([_limit(row.high, 1, each) for row, each in zip(rows, whole, strict=True)]),
        "row_counts": ints(all(weight in (0.0, 1.0) for weight in row.weights.values()) for row in rows),
        "cell_first": offsets(np.bincount(row_label, minlength=int(first[-1]))),
        "cell_row": row_of[by_label],
        "cell_weight": row_weight[by_label],
        **_links(first, len(rows), row_of, row_variable, row_weight, np.array(whole, dtype=bool)),
    }


def _links(
    first: IntArray, n_rows: int, row_of: IntArray, variable: IntArray, weight: FloatArray, whole: BoolArray
) -> dict[str, Any]:
    """Returns the links of variables to rows, and what follows from them, given the cells row by row."""
    n_variables = len(first) - 1
    starts = np.flatnonzero(np.diff(variable + n_variables * row_of, prepend=-1))  # the cells are sorted by variable
    row, of = row_of[starts], variable[starts]
    low, high = np.zeros(0), np.zeros(0)
    if len(starts):
        partial = np.diff(np.append(starts, len(weight))) < np.diff(first)[of]  # some label is not in the row: adds 0
        low = np.minimum(np.minimum.reduceat(weight, starts), np.where(partial, 0.0, np.inf))
        high = np.maximum(np.maximum.reduceat(weight, starts), np.where(partial, 0.0, -np.inf))
    size = np.bincount(row, np.maximum(np.abs(low), np.abs(high)), n_rows)
    exact = whole & (size < EXACT)
    by_variable = np.argsort(of, kind="stable")
    return {
        "link_first": offsets(np.bincount(of, minlength=n_variables)),
        "link_row": row[by_variable],
        "link_low": low[by_variable],
        "link_high": high[by_variable],
        "range_low": np.bincount(row, low, n_rows),
        "range_high": np.bincount(row, high, n_rows),
        "row_margin": np.where(exact, 0.0, 8 * EPS * (np.bincount(row, minlength=n_rows) + 4) * size),
    }


def _limit(limit: float, side: int, whole: bool) -> float:
    """Returns how far a row may go to one side of a limit.

    A sum of whole weights stops at the last whole number within it, be it off by what writing it as a float takes.
    """
    if math.isinf(limit):
        return limit
    if not whole:
        return limit + side * float(slack(limit))
    nearest = float(round(limit))
    if abs(limit - nearest) <= min(SLACK, NOISE * max(1.0, abs(limit))):
        return nearest
    return float(math.floor(limit) if side > 0 else math.ceil(limit))

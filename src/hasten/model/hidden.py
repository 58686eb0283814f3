"""Indicators in batches: users give costs and labels without them, and see none; kernels have them behind the others.

Indicators are the hidden variables of rules that may be broken for a price (`hasten.model.prices`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hasten.model.structure import Structure
from hasten.support.arrays import FloatArray, IntArray, offsets, ranges

if TYPE_CHECKING:
    from hasten.model.batch import Batch

NO_PRICES = np.zeros(0)


def seen(batch: Batch) -> IntArray:
    """Returns where the variables that users see are in a flat labelling of a batch."""
    return ranges(batch.variable_at[:-1], np.diff(batch.seen_at))


def complete(batch: Batch, values: IntArray) -> IntArray:
    """Sets the indicators of a flat labelling as its other labels say, in place; returns it."""
    if not batch.priced:
        return values
    for s, structure in enumerate(batch.structures):
        prices, n = structure.compiled.prices, structure.n_variables
        problems = np.flatnonzero(batch.structure == s)
        if prices is not None and problems.size:
            places = batch.variable_at[problems][:, None] + np.arange(n + len(prices))
            values[places[:, n:]] = prices.complete(values[places[:, :n]])
    return values


def completed(batch: Batch, labels: IntArray) -> IntArray:
    """Returns a flat labelling as users give it with its indicators; one that does not fit stays as it is."""
    if not batch.priced or labels.shape != (batch.seen_at[-1],):
        return labels
    values = np.full(batch.variable_at[-1], -1, dtype=np.int64)
    values[seen(batch)] = labels
    return complete(batch, values)


def widened(structure: Structure, matrix: FloatArray) -> FloatArray:
    """Returns rows of costs with the prices behind them."""
    prices = structure.compiled.prices
    if prices is None:
        return matrix
    return np.hstack([matrix, np.tile(prices.cost, (len(matrix), 1))])


def put_prices(
    structures: Sequence[Structure], structure: IntArray, flat: FloatArray, cost_at: IntArray
) -> tuple[FloatArray, IntArray]:
    """Returns the costs of problems with the prices behind those of each, and where those of each start."""
    prices = [NO_PRICES if each.compiled.prices is None else each.compiled.prices.cost for each in structures]
    more = np.array([len(each) for each in prices])[structure]
    wide_at = offsets(np.diff(cost_at) + more)
    wide = np.empty(wide_at[-1])
    wide[ranges(wide_at[:-1], np.diff(cost_at))] = flat
    wide[ranges(wide_at[1:] - more, more)] = np.concatenate([NO_PRICES, *(prices[s] for s in structure.tolist())])
    return wide, wide_at


def score(
    batch: Batch, ask: Callable[[IntArray, IntArray], FloatArray], problems: IntArray, variables: IntArray
) -> FloatArray:
    """Returns the costs of some variables: the prices of indicators are known, the scorer is asked for the others."""
    starts, sizes = batch.label_ranges(problems, variables)
    cost, at = np.empty(sizes.sum()), offsets(sizes)
    indicator = variables >= np.diff(batch.seen_at)[problems]
    for r in np.flatnonzero(indicator).tolist():
        structure = batch.structures[batch.structure[problems[r]]]
        prices, begin = structure.compiled.prices, starts[r] - structure.n_labels
        cost[at[r] : at[r + 1]] = NO_PRICES if prices is None else prices.cost[begin : begin + sizes[r]]
    asked = np.flatnonzero(~indicator)
    if asked.size:
        cost[ranges(at[asked], sizes[asked])] = ask(problems[asked], variables[asked])
    return cost

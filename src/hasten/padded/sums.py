"""Sums over all labellings of the examples of padded arrays: `hasten.sums`, from scores and back to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hasten.model.batch import Batch
from hasten.padded.kernels import scatter
from hasten.padded.search import Inference, Request
from hasten.padded.shapes import Placed
from hasten.sums.marginals import plans_for, run
from hasten.support.arrays import FloatArray, IntArray

ALONE = Request()


def problems_of(
    engine: Inference,
    placed: Placed,
    scores: Sequence[Any],
    tables: Mapping[str, FloatArray],
    gold: Sequence[IntArray] = (),
) -> Batch:
    """Returns the problems of examples; with gold, behind them those in which known labels are the only ones."""
    table, cost, n = engine.table(placed, tables), engine.costs(placed, scores), 1 + bool(gold)
    if gold:
        cost = engine.rows(placed, cost, table, gold, ALONE, n)
    return placed.batch(cost, table, n)


def log_partition(batch: Batch) -> FloatArray:
    """Returns the log-partition of each problem; -inf where no labelling is valid."""
    return -run(batch, plans_for(batch), (1, 0, 0)).value


def shares(
    engine: Inference, placed: Placed, batch: Batch, shapes: Sequence[Any], weight: FloatArray
) -> tuple[list[FloatArray], dict[str, FloatArray]]:
    """Returns the marginals of padded labels, and of tables by kind, summed over rows, examples being weighted."""
    found = run(batch, plans_for(batch), (1, 1, int(bool(placed.shapes.kinds))), weight=weight.reshape(-1))
    flat = found.share.reshape(len(weight), -1).sum(axis=0) if len(weight) > 1 else found.share
    tables = placed.shapes.brought(found.gain) if placed.shapes.kinds else {}
    return put_back(placed, flat, shapes), tables


def put_back(placed: Placed, flat: FloatArray, shapes: Sequence[Any], fill: float = 0.0) -> list[FloatArray]:
    """Returns flat numbers, one for each label, where the scores of these labels are; `fill` elsewhere."""
    found = [np.full(tuple(shape), fill) for shape in shapes]
    for padded, cells in zip(found, placed.cells, strict=True):
        scatter(flat, cells, 1 if placed.flat else padded.shape[-1], placed.cost_at, padded.reshape(-1))
    return found

"""Sums over all labellings of the examples of padded arrays: `hasten.sums`, from scores and back to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hasten.kernels.score import score_batch
from hasten.model.batch import Batch
from hasten.padded.kernels import scatter, subtract
from hasten.padded.search import Inference, Request
from hasten.padded.shapes import Placed
from hasten.sums.distribution import plans_for, run
from hasten.support.arrays import FloatArray, IntArray

ALONE, STRICT = Request(), Request(strict=True)
NONE = np.zeros(0, dtype=np.int64)


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


class Sums(NamedTuple):
    """The log-partitions of examples, with gold in a second row those of what agrees with it; and their gradients.

    Gradients are those of the first row, less the second, weighted by example; empty if not asked for.
    """

    value: FloatArray  # (rows, examples)
    fields: list[Any]  # where scores are
    tables: list[FloatArray]  # of each kind that is given


def sum_up(
    engine: Inference,
    placed: Placed,
    scores: Sequence[Any],
    tables: Mapping[str, FloatArray],
    gold: Sequence[IntArray] = (),
    weight: FloatArray | None = None,
    sharing: bool = True,
    strict: bool = False,
) -> Sums:
    """Sums over all labellings of examples and, if gold is given, over those that agree with it.

    Gold that no valid labelling agrees with is an error if `strict`.
    """
    labels = engine.read(placed, gold) if gold else NONE
    whole = bool(gold) and not placed.shapes.soft and labels.min(initial=0) >= 0  # then there is one that agrees
    batch = problems_of(engine, placed, scores, tables, () if whole else gold)
    n, rows = len(placed.number), 1 + (bool(gold) and not whole)
    signs = np.ones((rows, n)) if weight is None else np.broadcast_to(weight, (rows, n)).copy()
    signs[1:] *= -1.0
    gaining = sharing and bool(placed.shapes.kinds)
    found = run(batch, plans_for(batch), (1, int(sharing), int(gaining)), weight=signs.reshape(-1))
    value = -found.value.reshape(rows, n)
    if whole:
        total, valid = np.empty(n), np.empty(n, dtype=bool)
        score_batch(batch.arrays, labels, total, valid)
        value = np.stack([value[0], np.where(valid, -total, -np.inf)])
        if sharing:
            subtract(batch.arrays, labels, np.where(valid, signs[0], 0.0), found.share, found.gain)
    if strict and np.isneginf(value[-1]).any():
        engine.search(placed, scores, tables, gold, STRICT)  # says which, and why
    if not sharing:
        return Sums(value, [], [])
    share = found.share if rows == 1 else found.share.reshape(2, -1).sum(axis=0)
    brought = placed.shapes.brought(found.gain) if gaining else {}
    types = [np.float64 if each.dtype == np.float64 else np.float32 for each in scores]
    fields = put_back(placed, share, [each.shape for each in scores], types)
    return Sums(value, fields, [brought[name] for name in placed.shapes.kinds])


def put_back(
    placed: Placed, flat: FloatArray, shapes: Sequence[Any], types: Sequence[Any], fill: float = 0.0
) -> list[Any]:
    """Returns flat numbers, one for each label, where the scores of these labels are; `fill` elsewhere."""
    found = [np.full(tuple(shape), fill, dtype=kind) for shape, kind in zip(shapes, types, strict=True)]
    for padded, cells in zip(found, placed.cells, strict=True):
        scatter(flat, cells, 1 if placed.flat else padded.shape[-1], placed.cost_at, padded.reshape(-1))
    return found

"""Rows of results: plain data, measured once for each seed, then averaged, with intervals by the bootstrap.

A row is a dictionary that JSON can hold: the method, its scores, shares and times. The experiment of the paper and the
comparison of any task make their rows here. An interval is of the mean over seeds: an input that several seeds test on
is drawn equally often for each of them, so that it is not taken for several.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hasten.support.arrays import FloatArray, IntArray
from hasten.support.environment import package_version, processor

Row = dict[str, Any]

N_RESAMPLES = 1000
CONFIDENCE = 0.95
CHUNK = 50  # resamples drawn together: memory stays bounded
SHARES = ("validity", "exact_match", "proved", "solver_calls", "costs_computed")
TIMES = ("time_ms", "features_ms", "inference_ms", "building_ms")


class Measured(NamedTuple):
    """A row of one seed, and the counts of each test input that its scores are made of."""

    row: Row
    counts: FloatArray  # (n_test, n_scores, 2): see `f1_of`
    scores: Sequence[str]  # their keys


def f1_of(counts: FloatArray) -> FloatArray:
    """Returns F1 from counts (…, 2): labels that both sides name alike, and labels that either side names.

    Where nobody names anything, F1 is 1.
    """
    right, named = counts[..., 0], counts[..., 1]
    return np.where(named > 0, 2.0 * right / np.maximum(named, 1), 1.0)


def intervals(tests: Sequence[IntArray], counts: Sequence[FloatArray], seed: int = 0, n: int = N_RESAMPLES) -> Any:
    """Returns the limits (…, 2) of the mean F1 over seeds, by drawing test inputs anew with replacement.

    `tests` has the numbers of each seed's test inputs, `counts` their counts (n_test, …, 2).
    """
    known, place = np.unique(np.concatenate(tests), return_inverse=True)
    places = np.split(place, np.cumsum([len(test) for test in tests])[:-1])
    rng, share = np.random.default_rng(seed), np.full(known.size, 1.0 / known.size)
    means = []
    for start in range(0, n, CHUNK):
        drawn = rng.multinomial(known.size, share, size=min(CHUNK, n - start)).astype(float)
        f1 = [f1_of(np.tensordot(drawn[:, mine], each, axes=1)) for mine, each in zip(places, counts, strict=True)]
        means.append(np.mean(f1, axis=0))
    return np.moveaxis(np.percentile(np.concatenate(means), tails(), axis=0), 0, -1)


def tails() -> list[float]:
    """Returns the percentiles that an interval ends at."""
    tail = 50.0 * (1.0 - CONFIDENCE)
    return [tail, 100.0 - tail]


def over_seeds(measured: Sequence[Sequence[Measured]], tests: Sequence[IntArray], seed: int) -> list[Row]:
    """Returns a row for each method: means over seeds with standard deviations, and the intervals of its scores.

    `tests` are the numbers of each seed's test inputs. With one seed, the standard deviation of the time is that of its
    runs.
    """
    scores = measured[0][0].scores
    limits = intervals(tests, [np.stack([each.counts for each in of_seed], axis=1) for of_seed in measured], seed)
    rows = [_mean([each.row for each in of_method], scores) for of_method in zip(*measured, strict=True)]
    for row, its_limits in zip(rows, limits.tolist(), strict=True):
        row["interval"] = dict(zip(scores, its_limits, strict=True))
    return rows


def _mean(rows: Sequence[Row], scores: Sequence[str]) -> Row:
    """Returns the row of one method over seeds. Theta is the lower median of those chosen, None the largest."""
    if len(rows) == 1:
        return {**rows[0], "std": {}}
    values = {key: [row.get(key) for row in rows] for key in (*scores, *SHARES, *TIMES)}
    known = {key: [float(one) for one in each if one is not None] for key, each in values.items() if None not in each}
    std = {key: float(np.std(each, ddof=1)) for key, each in known.items()}
    notes = list(dict.fromkeys(str(row["note"]) for row in rows))
    solving = _total([row["solving_ms"] for row in rows])
    mean: Row = rows[0] | {key: float(np.mean(each)) for key, each in known.items()}
    mean |= {
        "time_ms_std": std["time_ms"],
        "note": notes[0] if len(notes) == 1 else f"with one seed: {max(notes, key=bool)}",
        "answered_by": _total([row["answered_by"] for row in rows]),
        "solving_ms": {name: ms / len(rows) for name, ms in solving.items()},
        "std": {key: std[key] for key in std if key not in TIMES},
    }
    if "theta" in mean:
        thetas = sorted(math.inf if row["theta"] is None else row["theta"] for row in rows)
        mean["theta"] = finite(thetas[(len(thetas) - 1) // 2])
    return mean


def _total(each: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Returns the sum of several counts."""
    names = dict.fromkeys(name for one in each for name in one)
    return {name: sum(one.get(name, 0) for one in each) for name in names}


def finite(value: float) -> float | None:
    """Returns a number for JSON, which has no infinity: None stands for it."""
    return value if math.isfinite(value) else None


def machine() -> dict[str, Any]:
    """Returns the versions and the processor that something is measured with."""
    return {"hasten": package_version("hasten"), "python": platform.python_version(), "machine": processor()}

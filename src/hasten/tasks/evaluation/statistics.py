"""How sure a measured F1 is: intervals by the bootstrap, sentences drawn anew with replacement.

Every row is measured on the same resamples, and so is every seed: a sentence that is in the test sets of several seeds
is drawn equally often in each. So the intervals of a mean over seeds do not take one sentence for several.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hasten.model.solution import Solutions
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.environment import package_version, processor
from hasten.tasks.evaluation.methods import Timing, same_answers

N_RESAMPLES = 1000
CONFIDENCE = 0.95


def f1_of(counts: FloatArray) -> FloatArray:
    """Returns F1 from counts (…, 2): labels that both sides name alike, and labels that either side names.

    Where nobody names anything, all is right.
    """
    right, named = counts[..., 0], counts[..., 1]
    return np.where(named > 0, 2.0 * right / np.maximum(named, 1), 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Resamples:
    """How often each test sentence is drawn: for each seed an array (n_resamples, n_test)."""

    drawn: tuple[FloatArray, ...]

    @classmethod
    def of(cls, tests: Sequence[IntArray], seed: int = 0, n: int = N_RESAMPLES) -> Resamples:
        """Draws from all sentences that test anything; `tests` has their numbers for each seed."""
        known, place = np.unique(np.concatenate(tests), return_inverse=True)
        share = np.full(known.size, 1.0 / known.size)
        drawn = np.random.default_rng(seed).multinomial(known.size, share, size=n).astype(float)
        ends = np.cumsum([len(test) for test in tests])[:-1]
        return cls(tuple(drawn[:, mine] for mine in np.split(place, ends)))

    def intervals(self, counts: Sequence[FloatArray]) -> FloatArray:
        """Returns intervals (n_scores, 2) of the mean F1 over seeds; `counts` of a seed are (n_test, n_scores, 2)."""
        f1 = [
            f1_of((drawn @ mine.reshape(len(mine), -1)).reshape(len(drawn), *mine.shape[1:]))
            for drawn, mine in zip(self.drawn, counts, strict=True)
        ]
        tail = 50.0 * (1.0 - CONFIDENCE)
        limits: FloatArray = np.percentile(np.mean(f1, axis=0), [tail, 100.0 - tail], axis=0).T
        return limits


SHARES = ("validity", "exact_match", "proved", "solver_calls", "costs_computed")
TIMES = ("time_ms", "features_ms", "inference_ms", "building_ms")


def machine() -> dict[str, Any]:
    """Says with what versions, and on what machine, something is measured."""
    return {"hasten": package_version("hasten"), "python": platform.python_version(), "machine": processor()}


def figures_of(found: Solutions, reference: Solutions, features: Timing | None, inference: Timing) -> dict[str, Any]:
    """Returns the shares and times of a row; `features` None: inference holds both."""
    total = inference if features is None else features + inference
    return {
        "validity": float(found.valid.mean()),
        "exact_match": float(same_answers(found, reference).mean()),
        "proved": float(found.proved.mean()),
        "solver_calls": 0,
        "costs_computed": float(found.n_costs.sum() / max(1, found.batch.variable_at[-1])),
        "time_ms": total.mean,
        "time_ms_std": total.std,
        "features_ms": None if features is None else features.mean,
        "inference_ms": None if features is None else inference.mean,
    }


def merged(rows: Sequence[Mapping[str, Any]], scores: Sequence[str]) -> dict[str, Any]:
    """Returns the fields of one row for the same method with several seeds: means, and standard deviations."""
    values = {key: [row.get(key) for row in rows] for key in (*scores, *SHARES, *TIMES)}
    known = {key: [float(one) for one in each if one is not None] for key, each in values.items() if None not in each}
    std = {key: float(np.std(each, ddof=1)) for key, each in known.items()}
    notes = list(dict.fromkeys(str(row.get("note") or "") for row in rows))
    means: dict[str, Any] = {key: float(np.mean(each)) for key, each in known.items()}
    solving = totals([row.get("solving_ms") or {} for row in rows])
    return means | {
        "time_ms_std": std["time_ms"],
        "note": notes[0] if len(notes) == 1 else f"with one seed: {max(notes, key=bool)}",
        "answered_by": totals([row.get("answered_by") or {} for row in rows]),
        "solving_ms": {name: ms / len(rows) for name, ms in solving.items()},
        "std": {key: std[key] for key in std if key not in TIMES},
    }


def totals(each: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Returns the sum of several counts."""
    names = dict.fromkeys(name for one in each for name in one)
    return {name: sum(one.get(name, 0) for one in each) for name in names}

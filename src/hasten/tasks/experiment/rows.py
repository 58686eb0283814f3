"""Rows of results: what is measured of any contender's answers, and the mean over seeds."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hasten.model.solution import Solutions
from hasten.support.environment import package_version, processor
from hasten.tasks.experiment.contest import same_answers
from hasten.tasks.experiment.timing import Timing

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

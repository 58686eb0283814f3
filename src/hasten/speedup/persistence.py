"""Keeping a speedup in a file, so that it goes on as if it had never stopped.

A file is safetensors with a digest of all it holds (settings, weights, counters, audits, random state),
written whole or not at all (`hasten.support.files`). One that was cut short, changed, or made for
another schema is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import astuple, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hasten.errors import ModelError
from hasten.kernels.learning.algorithm_1 import Weights
from hasten.learning.heuristic import check_schema, describe
from hasten.learning.learner import Epoch, Learner
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.solvers import Solver
from hasten.speedup.audit import Agreement, Counters
from hasten.speedup.state import Memory
from hasten.support.files import load_tensors, save_tensors

if TYPE_CHECKING:
    from hasten.speedup.predictor import Speedup

FORMAT = "hasten.speedup/1"
OWN = "a solver of your own"  # stands for one that a file cannot hold


def save(speedup: Speedup, path: Path) -> None:
    """Writes a speedup; its caller holds its lock."""
    memory = speedup._memory
    settings = speedup.get_params(deep=False)
    del settings["schema"]
    own = not isinstance(settings["solver"], str)
    settings["solver"] = OWN if own else settings["solver"]
    settings["learner"] = None if speedup.learner is None else _settings(speedup.learner)
    state: dict[str, Any] = {
        "settings": settings,
        "own_solver": own,
        "trusted": memory.audit.trusted,
        "distrust": None if memory.audit.distrust is None else astuple(memory.audit.distrust),
        "guided": memory.guided,
        "rng": memory.rng.bit_generator.state,
        "learned": None,
    }
    tensors: dict[str, Any] = {
        "recent": memory.audit.recent.astype(np.uint8),
        "counters": np.array(memory.counters.values, dtype=np.int64),
    }
    learner = memory.learned
    if learner is not None and learner.state.weights is not None:
        kept = learner.state
        state["learned"] = {
            "settings": _settings(learner),
            "step": kept.step,
            "trace": [astuple(epoch) for epoch in kept.trace],
            "counts": [kept.n_skipped, kept.n_forbidden, kept.n_single],
            "rng": None if kept.rng is None else kept.rng.bit_generator.state,
        }
        tensors |= {f"learned/{name}": np.array(value) for name, value in learner.state.weights._asdict().items()}
    about = {
        "schema": speedup.schema.digest,
        "names": json.dumps(describe(speedup.schema)),
        "state": json.dumps(state, default=np.generic.item),
    }
    save_tensors(path, FORMAT, tensors, about)


def load(
    cls: type[Speedup],
    path: Path,
    schema: Schema,
    solver: str | Solver | Callable[[Problem], Any] | None,
) -> Speedup:
    """Reads a speedup that was saved for a schema."""
    tensors, about = load_tensors(path, FORMAT, "speedup")
    check_schema(path, about, schema)
    state = json.loads(about["state"])
    if state["own_solver"] and solver is None:
        raise ModelError(f"{path} was saved with a solver of your own. Give it again: load(path, schema, solver=...).")
    settings = state["settings"]
    if solver is not None:
        settings["solver"] = solver
    if settings["learner"] is not None:
        settings["learner"] = Learner(**settings["learner"])
    speedup = cls(schema, **settings)
    memory = Memory(
        _rng(state["rng"]),
        state["guided"],
        _learner(state["learned"], tensors, schema),
        Counters(*tensors["counters"].tolist()),
    )
    memory.audit.recent, memory.audit.trusted = tensors["recent"].astype(bool), state["trusted"]
    memory.audit.distrust = Agreement(*state["distrust"]) if state.get("distrust") else None
    speedup._kept = memory
    return speedup


def _settings(learner: Learner) -> dict[str, Any]:
    return {field.name: getattr(learner, field.name) for field in fields(learner) if field.init}


def _learner(kept: dict[str, Any] | None, tensors: dict[str, Any], schema: Schema) -> Learner | None:
    if kept is None:
        return None
    learner = Learner(**kept["settings"])
    state = learner.state
    state.schema, state.step = schema, kept["step"]
    state.weights = Weights(*(tensors[f"learned/{name}"].copy() for name in Weights._fields))
    state.trace = [Epoch(*epoch) for epoch in kept["trace"]]
    state.n_skipped, state.n_forbidden, state.n_single = kept["counts"]
    if kept["rng"] is not None:
        state.rng = _rng(kept["rng"])
    return learner


def _rng(kept: Any) -> np.random.Generator:
    rng = np.random.default_rng()
    rng.bit_generator.state = kept
    return rng

"""Keeping a speedup in a file, so that it goes on as if it had never stopped.

A file is safetensors with a digest of all it holds (settings, weights, tables, counters, audits, random state),
written whole or not at all (`hasten.support.files`). One that was cut short, changed, or made for
another schema is refused; so is one that holds what no speedup ever was, even if its digest is right.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, astuple, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hasten.errors import ModelError, SolverMissing
from hasten.kernels.learning.algorithm_1 import Weights
from hasten.learning.gate import Cheap, Gate
from hasten.learning.heuristic import about_schema, check_schema
from hasten.learning.learner import Epoch, Learner
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.solvers import Solver, check_solver
from hasten.speedup.audit import Agreement, Counters
from hasten.speedup.gated import GatedSearch
from hasten.speedup.keeping import CHOICE, HISTORY, choice_of, history_of, of_choice, of_history, tensor_forms
from hasten.speedup.state import Memory
from hasten.support import forms
from hasten.support.tensors import Tensors, load_tensors, reading, save_tensors

if TYPE_CHECKING:
    from hasten.speedup.predictor import Speedup

FORMAT = "hasten.speedup/3"
OWN = "a solver of your own"  # stands for one that a file cannot hold


def save(speedup: Speedup, path: Path) -> None:
    """Writes a speedup; its caller holds its lock."""
    save_tensors(path, FORMAT, *content(speedup))


def content(speedup: Speedup) -> tuple[Tensors, dict[str, str]]:
    """Returns what a file holds of a speedup, whose caller holds its lock."""
    memory = speedup._memory
    settings = speedup.get_params(deep=False)
    del settings["schema"], settings["gate"]
    own = not isinstance(settings["solver"], str)
    settings["solver"] = OWN if own else settings["solver"]
    settings["solver_options"] = None if speedup.solver_options is None else dict(speedup.solver_options)
    settings["learner"] = None if speedup.learner is None else _settings(speedup.learner)
    state: dict[str, Any] = {
        "settings": settings,
        "own_solver": own,
        "trusted": memory.audit.trusted,
        "distrust": None if memory.audit.distrust is None else astuple(memory.audit.distrust),
        "guided": memory.guided,
        "compared": memory.n_compared,
        "follows": memory.follows,
        "rng": memory.rng.bit_generator.state,
        "counters": asdict(memory.counters),
        "learned": None,
        "history": of_history(memory.history),
        "gate": None if speedup.gate is None else _gate_settings(speedup.gate),
        "gated": None,
    }
    state["choice"], tables = of_choice(memory.choice)
    tensors: dict[str, Any] = {
        "recent": memory.audit.recent.astype(np.uint8),
        **tables,
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
    if memory.gated is not None:
        state["gated"] = {"settings": _gate_settings(memory.gated.gate), "max_doubt": memory.gated.max_doubt}
        tensors |= {f"gate/{name}": tensor for name, tensor in memory.gated.gate.tensors().items()}
    return tensors, about_schema(speedup.schema) | {"state": json.dumps(state, default=np.generic.item)}


def load(
    cls: type[Speedup],
    path: Path,
    schema: Schema,
    solver: str | Solver | Callable[[Problem], Any] | None,
    cheap: Mapping[str, Cheap | None] | None = None,
) -> Speedup:
    """Reads a speedup that was saved for a schema."""
    return of_content(cls, path, load_tensors(path, FORMAT, "speedup"), schema, solver, cheap)


def of_content(
    cls: type[Speedup],
    path: Path,
    kept: tuple[Tensors, Mapping[str, str]],
    schema: Schema,
    solver: str | Solver | Callable[[Problem], Any] | None = None,
    cheap: Mapping[str, Cheap | None] | None = None,
) -> Speedup:
    """Makes a speedup of what `content` returned, which a file holds."""
    tensors, about = kept
    check_schema(path, about, schema)
    with reading(path):
        state = forms.read_json(about.get("state", ""), "its state")
        _state_form(cls)(state, "its state")
        gate = {name: each for name, each in tensors.items() if name.startswith("gate/") and state.get("gated")}
        rest = {name: each for name, each in tensors.items() if name not in gate}
        forms.check_tensors(rest, _tensor_forms(schema, state))
    if solver is not None:
        check_solver(solver)
    elif state["own_solver"]:
        raise ModelError(f"{path} was saved with a solver of your own. Give it again: load(path, schema, solver=...).")
    _check_cheap(path, state, cheap or {})
    with reading(path):
        return _made(cls, schema, state, tensors, solver, cheap or {})


def _made(
    cls: type[Speedup],
    schema: Schema,
    state: dict[str, Any],
    tensors: Tensors,
    solver: str | Solver | Callable[[Problem], Any] | None,
    cheap: Mapping[str, Cheap | None],
) -> Speedup:
    """Makes a speedup of what a file holds; each value has its form, but together they may still make no sense."""
    settings = state["settings"]
    if solver is not None:
        settings["solver"] = solver
    if settings.get("learner") is not None:
        settings["learner"] = Learner(**settings["learner"])
    gate = state.get("gate")
    speedup = cls(schema, **settings, gate=None if gate is None else _gate(gate, cheap))
    with suppress(SolverMissing):  # it will be missed with the first problems
        speedup._settle()
    memory = Memory(
        _rng(state["rng"]),
        state["guided"],
        _learner(state["learned"], tensors, schema),
        Counters(**state["counters"]),
    )
    memory.audit.recent, memory.audit.trusted = tensors["recent"].astype(bool), state["trusted"]
    if state.get("distrust"):
        memory.audit.distrust = distrust = Agreement(*state["distrust"])
        if state["trusted"] or not distrust.low <= distrust.estimate <= distrust.high:
            raise forms.Misfit(f"it says that the trust in its search ended with an agreement of {distrust}")
    memory.choice = choice_of(state["choice"], tensors, schema)
    memory.history = history_of(state["history"], memory.counted.problems)
    if memory.choice is not None:
        memory.lessons.learned(memory.choice.n_answers)
    memory.n_compared, memory.follows = state.get("compared", 0), state.get("follows", False)
    if state.get("gated"):
        learned = _gate(state["gated"]["settings"], cheap)
        prefix = "gate/"
        kept = {name.removeprefix(prefix): each for name, each in tensors.items() if name.startswith(prefix)}
        learned.learn_from_tensors(schema, kept)
        memory.gated = GatedSearch(learned, state["gated"]["max_doubt"])
    speedup._kept = memory
    return speedup


def _gate_settings(gate: Gate) -> dict[str, Any]:
    settings = {field.name: getattr(gate, field.name) for field in fields(gate) if field.init}
    return settings | {"cheap": sorted(gate.cheap)}


def _gate(settings: Mapping[str, Any], cheap: Mapping[str, Cheap | None]) -> Gate:
    return Gate(**{**settings, "cheap": {kind: cheap[kind] for kind in settings["cheap"]}})


def _check_cheap(path: Path, state: Mapping[str, Any], cheap: Mapping[str, Cheap | None]) -> None:
    """Refuses to read a gate without the functions that it was made with: no file can hold them."""
    gates = state.get("gate"), (state.get("gated") or {}).get("settings")
    wanted = {kind for gate in gates if gate is not None for kind in gate["cheap"]}
    if not wanted <= set(cheap):
        raise ModelError(
            f"{path} was saved with a gate for {', '.join(sorted(wanted))}. Give the functions for its cheap features "
            "again, or None where it had none: load(path, schema, cheap={...})."
        )


def _settings(learner: Learner) -> dict[str, Any]:
    return {field.name: getattr(learner, field.name) for field in fields(learner) if field.init}


def _learner(kept: dict[str, Any] | None, tensors: Tensors, schema: Schema) -> Learner | None:
    if kept is None:
        return None
    learner = Learner(**kept["settings"])
    state = learner.state
    state.schema, state.step = schema, None if kept["step"] is None else float(kept["step"])
    state.weights = Weights(*(tensors[f"learned/{name}"].copy() for name in Weights._fields))
    state.trace = [Epoch(*epoch) for epoch in kept["trace"]]
    state.n_skipped, state.n_forbidden, state.n_single = kept["counts"]
    if kept["rng"] is not None:
        state.rng = _rng(kept["rng"])
    with np.errstate(over="ignore"):
        if not np.isfinite(learner.weights).all():
            raise forms.Misfit("the average of its weights is not finite")
    return learner


def _rng(kept: Any) -> np.random.Generator:
    rng = np.random.default_rng()
    rng.bit_generator.state = kept
    return rng


# -- what a file may hold ------------------------------------------------------------------------------------


def _tensor_forms(schema: Schema, state: dict[str, Any]) -> dict[str, forms.Array]:
    found = {
        "recent": forms.Array("uint8", (None,), 0, 1),
    }
    if state["choice"] is not None:
        found |= tensor_forms(schema)
    if state["learned"] is not None:
        found |= {
            "learned/w": forms.Array("float64", (schema.n_weights,)),
            "learned/drift": forms.Array("float64", (schema.n_weights,)),
            "learned/n_examples": forms.Array("int64", (1,), 0, forms.COUNT),
            "learned/n_blind": forms.Array("int64", (1,), 0, forms.COUNT),
            "learned/radius": forms.Array("float64", (2,), 0),
        }
    return found


def _state_form(cls: type[Speedup]) -> forms.Form:
    """The form of the state; what its settings may be, the speedup itself checks."""
    settings: dict[str, forms.Form] = dict.fromkeys(cls._defaults(), forms.scalar)
    del settings["schema"], settings["gate"]
    return forms.record(
        {
            "settings": forms.record(
                settings | {"learner": forms.or_none(_LEARNER), "solver_options": forms.or_none(_OPTIONS)},
                optional=settings,
            ),
            "own_solver": forms.switch,
            "trusted": forms.switch,
            "distrust": forms.or_none(forms.row(_SHARE, _SHARE, _SHARE, forms.whole(1))),
            "guided": forms.switch,
            "compared": forms.whole(0),
            "follows": forms.switch,
            "rng": _RNG,
            "counters": _COUNTERS,
            "learned": forms.or_none(_LEARNED),
            "choice": forms.or_none(CHOICE),
            "history": HISTORY,
            "gate": forms.or_none(_GATE),
            "gated": forms.or_none(forms.record({"settings": _GATE, "max_doubt": _SHARE})),
        },
        optional=("distrust", "compared", "follows", "gate", "gated"),
    )


_SHARE = forms.number(0, 1)
_SIZE = forms.number(0)
_STEP = forms.number(math.ulp(0.0), sys.float_info.max)  # positive and finite
_LEARNER = forms.record({field.name: forms.scalar for field in fields(Learner) if field.init})
_OPTIONS = forms.table_of(forms.scalar)
_COUNTERS = forms.record(  # by name: files written before a counter was added have none of it
    {field.name: forms.whole() for field in fields(Counters)}, optional=[field.name for field in fields(Counters)]
)
_GATE = forms.record(
    {
        "cheap": forms.many(forms.text, least=1),
        "settled": forms.switch,
        "n_rows": forms.whole(1),
        "epochs": forms.whole(1),
        "rate": _SIZE,
        "seed": forms.scalar,
    }
)
_RNG = forms.record(
    {
        "bit_generator": forms.one_of("PCG64"),
        "state": forms.record({"state": forms.whole(0, 2**128 - 1), "inc": forms.whole(0, 2**128 - 1)}),
        "has_uint32": forms.whole(0, 1),
        "uinteger": forms.whole(0, 2**32 - 1),
    }
)
_EPOCH = {
    "n_examples": forms.whole(),
    "n_lost": forms.whole(),
    "n_wrong": forms.whole(),
    "n_blind": forms.whole(),
    "step": _STEP,
    "norm": _SIZE,
    "radius_phi": _SIZE,
    "radius_g": _SIZE,
    "seconds": _SIZE,
}
_LEARNED = forms.record(
    {
        "settings": _LEARNER,
        "step": forms.or_none(_STEP),
        "trace": forms.many(forms.row(*(_EPOCH[field.name] for field in fields(Epoch)))),
        "counts": forms.row(forms.whole(), forms.whole(), forms.whole()),
        "rng": forms.or_none(_RNG),
    }
)

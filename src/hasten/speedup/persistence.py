"""Keeping a speedup in a file, so that it goes on as if it had never stopped.

A file is safetensors with a digest of all it holds (settings, weights, tables, counters, audits, random state), written
whole or not at all (`hasten.support.files`). One that was cut short, changed, or made for another schema is refused; so
is one that no speedup can have written (`_Kept` says what it may hold), even if its digest is right.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from msgspec import Meta, Struct, to_builtins

from hasten.errors import ModelError, SolverMissing
from hasten.learning.algorithm_1 import Weights
from hasten.learning.gate import Cheap, Gate
from hasten.learning.heuristic import about_schema, check_schema
from hasten.learning.learner import Epoch, Learner
from hasten.learning.perceptron import StepSize
from hasten.learning.tables import LearnedTables, n_labels
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.solvers import Solver, check_solver
from hasten.speedup.audit import Agreement, Audit, AuditState
from hasten.speedup.choosing import Choice, Method
from hasten.speedup.parameters import settings_of
from hasten.speedup.parts import Certified, Learned, Limits, Search, Trust, as_answer, search_of
from hasten.speedup.skipping import GatedSearch
from hasten.speedup.state import Counters, History, Moment, State
from hasten.support import forms
from hasten.support.checks import check_type
from hasten.support.forms import Array, Count, Misfit, Positive, Share, Size, Tensors, reading

if TYPE_CHECKING:
    from hasten.speedup.predictor import Speedup

FORMAT = "hasten.speedup/8"
OWN = "a solver of your own"  # stands for one that a file cannot hold
KIND = "part"  # the key that says which part an object stands for
PARTS: dict[str, type] = {kind.__name__: kind for kind in (Certified, Learned, Search, Trust, Limits, Learner, Gate)}

U32 = Annotated[int, Meta(ge=0, lt=2**32)]
RngRow = tuple[Annotated[int, Meta(ge=0)], Annotated[int, Meta(ge=0)], Annotated[int, Meta(ge=0, le=1)], U32]


class _Learner(Struct, forbid_unknown_fields=True):
    learner: dict[str, Any]
    step: Positive | None
    trace: list[Epoch]
    counts: tuple[Count, Count]
    rng: RngRow | None


class _Choice(Struct, forbid_unknown_fields=True):
    method: Method
    agreement: dict[Method, Agreement]
    n_answers: Count
    confidence: Share | None
    size: StepSize | None


class _Kept(Struct, forbid_unknown_fields=True):
    settings: dict[str, Any]  # a part by its name and settings; the parts check these when they are made
    own_solver: bool
    audit: AuditState
    guided: bool | None
    compared: Count
    rng: RngRow | None
    counters: Counters
    history: list[Moment]
    calibrated: Size | None  # theta
    learned: _Learner | None = None
    choice: _Choice | None = None
    gated: tuple[dict[str, Any], Share] | None = None  # the gate, and how much doubt it allows


# -- writing --------------------------------------------------------------------------------------------------


def content(speedup: Speedup) -> tuple[Tensors, dict[str, str]]:
    """Returns what a file holds of a speedup; its caller holds the lock of its state."""
    known, tensors = speedup._state, dict[str, Any]()
    settings = {name: _written(value) for name, value in speedup.get_params(deep=False).items() if name != "schema"}
    own = not isinstance(settings["solver"], str)
    kept = _Kept(
        settings=settings | ({"solver": OWN} if own else {}),
        own_solver=own,
        audit=known.audit.plain(),
        guided=known.guided,
        compared=known.n_compared,
        rng=_rng_written(known.rng),
        counters=known.counters,
        history=list(known.history),
        calibrated=None if known.calibrated is None else known.calibrated.theta,
    )
    learner, choice = known.learner, known.choice
    if learner is not None and learner.state.weights is not None:
        state = learner.state
        counts = state.n_forbidden, state.n_passes
        kept.learned = _Learner(_written(learner), state.step, state.trace, counts, _rng_written(state.rng))
        tensors |= {f"learned/{name}": np.array(value) for name, value in learner.state.weights._asdict().items()}
    if choice is not None:
        kept.choice = _Choice(choice.method, dict(choice.agreement), choice.n_answers, choice.confidence, choice.size)
        tensors["tables/forbidden"] = choice.tables.forbidden.astype(np.uint8)
        tensors["tables/cost"] = -choice.tables.weights
    if known.gated is not None:
        kept.gated = _written(known.gated.gate), known.gated.max_doubt
        tensors |= {f"gate/{name}": tensor for name, tensor in known.gated.gate.tensors().items()}
    said = json.dumps(to_builtins(kept, enc_hook=np.generic.item))
    return tensors, about_schema(speedup.schema) | {"state": said}


def _written(value: Any) -> Any:
    """Returns a setting as what JSON can hold: a part by its name and settings; of a gate's functions, the kinds."""
    if type(value).__name__ in PARTS and isinstance(value, PARTS[type(value).__name__]):
        settings = {name: _written(each) for name, each in settings_of(value).items()}
        return {KIND: type(value).__name__} | settings | ({"cheap": sorted(value.cheap)} if type(value) is Gate else {})
    return dict(value) if isinstance(value, Mapping) else value


def _rng_written(rng: np.random.Generator | None) -> RngRow | None:
    if rng is None:
        return None
    state: Any = rng.bit_generator.state
    return state["state"]["state"], state["state"]["inc"], state["has_uint32"], state["uinteger"]


# -- reading --------------------------------------------------------------------------------------------------


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
        state: _Kept = forms.read_json(about.get("state", ""), "its state", _Kept)
        gate = {name for name in tensors if name.startswith("gate/") and state.gated}
        forms.check_tensors({name: tensors[name] for name in tensors if name not in gate}, _tensor_forms(schema, state))
        wanted = set(_cheap_kinds(state.settings) + _cheap_kinds(state.gated and state.gated[0]))
    if solver is not None:
        check_solver(solver)
    elif state.own_solver:
        raise ModelError(f"{path} was saved with a solver of your own. Give it again: load(path, schema, solver=...).")
    check_type({} if cheap is None else cheap, Mapping, "The cheap features of a gate")
    if not wanted <= set(cheap or {}):
        raise ModelError(
            f"{path} was saved with a gate for {', '.join(sorted(wanted))}. Give the functions for its cheap features "
            "again, or None where it had none: load(path, schema, cheap={...})."
        )
    with reading(path):
        settings = {name: _read(value, cheap or {}) for name, value in state.settings.items()}
        speedup = cls(schema, **(settings | ({} if solver is None else {"solver": solver})))
        with suppress(SolverMissing):  # it will be missed with the first problems
            speedup._settle()
        speedup._state = _state_read(state, tensors, schema, cheap or {})
        if state.calibrated is not None:
            speedup._state.calibrated = replace(search_of(as_answer(speedup.answer)), theta=state.calibrated)
        return speedup


def _tensor_forms(schema: Schema, state: _Kept) -> dict[str, Array]:
    n, found = schema.n_weights, dict[str, Array]()
    if state.choice is not None:
        found["tables/forbidden"] = Array("uint8", (n,), 0, 1)
        found["tables/cost"] = Array("float64", (n + n_labels(schema),))
    if state.learned is not None:
        found |= dict.fromkeys(("learned/w", "learned/drift"), Array("float64", (n,)))
        found |= dict.fromkeys(("learned/n_examples", "learned/n_blind"), Array("int64", (1,), 0, forms.COUNT))
        found["learned/radius"] = Array("float64", (2,), 0)
    return found


def _read(value: Any, cheap: Mapping[str, Cheap | None]) -> Any:
    """Returns the setting that was written; settings that were added later may be missing."""
    if not isinstance(value, dict) or KIND not in value:
        return value
    if not isinstance(value[KIND], str) or value[KIND] not in PARTS:
        raise Misfit(f"{KIND!r} must be one of {', '.join(PARTS)}, not {forms.short(value[KIND])}")
    kind = PARTS[value[KIND]]
    settings = {name: _read(each, cheap) for name, each in value.items() if name != KIND}
    if unknown := sorted(settings.keys() - {each.name for each in fields(kind) if each.init}):
        raise Misfit(f"{value[KIND]} has no setting {forms.short(unknown[0])}")
    if kind is Gate:
        settings["cheap"] = {name: cheap[name] for name in settings["cheap"]}
    return kind(**settings)


def _cheap_kinds(value: Any) -> list[str]:
    """Returns the kinds of variables that the gates in some settings have functions for."""
    if not isinstance(value, dict):
        return []
    if value.get(KIND) == Gate.__name__:
        return list(forms.fitted(value.get("cheap"), forms.Names, "the kinds of its gate"))
    return [kind for each in value.values() for kind in _cheap_kinds(each)]


def _state_read(state: _Kept, tensors: Tensors, schema: Schema, cheap: Mapping[str, Cheap | None]) -> State:
    """Returns the state that a file holds; each value has its form, but together they may still make no sense."""
    told, counted = [each.problems for each in state.history], state.counters.problems
    if any(later < each for each, later in pairwise(told)):
        raise Misfit("its history is not in order")
    if told and told[-1] > counted:
        raise Misfit(f"its history tells of {told[-1]} problems, and it counted {counted}")
    kept = State(
        rng=_rng(state.rng),
        guided=state.guided,
        learner=None if state.learned is None else _learner_read(state.learned, tensors, schema),
        counts=Counter(state.counters.as_dict()),
        audit=Audit.of_plain(state.audit),
        history=History(state.history),
        n_compared=state.compared,
    )
    if state.choice is not None:
        kept.choice = _choice_read(state.choice, tensors, schema)
        kept.replay.learned(kept.choice.n_answers)
    if state.gated is not None:
        gate = _read(state.gated[0], cheap)
        check_type(gate, Gate, "Its gate")
        of_gate = {name.removeprefix("gate/"): each for name, each in tensors.items() if name.startswith("gate/")}
        gate.learn_from_tensors(schema, of_gate)
        kept.gated = GatedSearch(gate, state.gated[1])
    return kept


def _learner_read(kept: _Learner, tensors: Tensors, schema: Schema) -> Learner:
    learner = _read(kept.learner, {})
    check_type(learner, Learner, "Its learner")
    state = learner.state
    state.schema, state.step, state.trace, state.rng = schema, kept.step, kept.trace, _rng(kept.rng)
    state.weights = Weights(*(tensors[f"learned/{name}"].copy() for name in Weights._fields))
    state.n_forbidden, state.n_passes = kept.counts
    with np.errstate(over="ignore"):
        if not np.isfinite(learner.weights).all():
            raise Misfit("the average of its weights is not finite")
    return learner  # type: ignore[no-any-return]


def _choice_read(kept: _Choice, tensors: Tensors, schema: Schema) -> Choice:
    forbidden, cost = tensors["tables/forbidden"].astype(bool), tensors["tables/cost"]
    if kept.agreement and kept.method not in kept.agreement:
        raise Misfit(f"it answers by {kept.method}, which was not tried")
    n = schema.n_weights
    tables = LearnedTables(schema, forbidden, cost[:n].copy(), cost[n:].copy() if cost[n:].any() else None)
    return Choice(kept.method, tables, kept.agreement, kept.n_answers, kept.confidence, kept.size)


def _rng(row: RngRow | None) -> np.random.Generator | None:
    if row is None:
        return None
    state, inc, has_uint32, uinteger = row
    if max(state, inc) >= 2**128:
        raise Misfit("its random state has numbers of more than 128 bits")
    rng = np.random.Generator(np.random.PCG64())
    numbers = {"state": {"state": state, "inc": inc}, "has_uint32": has_uint32, "uinteger": uinteger}
    rng.bit_generator.state = {"bit_generator": "PCG64"} | numbers
    return rng

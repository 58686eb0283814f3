"""Keeping a speedup in a file, so that it goes on as if it had never stopped.

A file is safetensors with a digest of all it holds (settings, weights, tables, counters, audits, random state), written
whole or not at all (`hasten.support.files`). One that was cut short, changed, or made for another schema is refused; so
is one that no speedup can have written (`hasten.speedup.file_forms`), even if its digest is right.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import astuple
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hasten.errors import ModelError, SolverMissing
from hasten.learning.algorithm_1 import Weights
from hasten.learning.gate import Cheap, Gate
from hasten.learning.heuristic import about_schema, check_schema
from hasten.learning.learner import Epoch, Learner
from hasten.learning.perceptron import StepSize
from hasten.learning.tables import LearnedTables
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.solvers import Solver, check_solver
from hasten.speedup.audit import Agreement, Audit, Bet
from hasten.speedup.choosing import Choice, Method
from hasten.speedup.file_forms import KIND, PARTS, state_form, tensor_forms
from hasten.speedup.gated import GatedSearch
from hasten.speedup.history import Counters, History, Moment
from hasten.speedup.parameters import settings_of
from hasten.speedup.parts import Search, as_answer, search_of
from hasten.speedup.state import State
from hasten.support import forms
from hasten.support.arrays import BoolArray, IntArray
from hasten.support.checks import check_type
from hasten.support.tensors import Tensors, load_tensors, reading, save_tensors

if TYPE_CHECKING:
    from hasten.speedup.predictor import Speedup

FORMAT = "hasten.speedup/5"
OWN = "a solver of your own"  # stands for one that a file cannot hold


def save(speedup: Speedup, path: Path) -> None:
    """Writes a speedup; its caller holds the lock of its state."""
    save_tensors(path, FORMAT, *content(speedup))


def content(speedup: Speedup) -> tuple[Tensors, dict[str, str]]:
    """Returns what a file holds of a speedup; its caller holds the lock of its state."""
    kept = speedup._state
    settings = speedup.get_params(deep=False)
    del settings["schema"]
    own = not isinstance(settings["solver"], str)
    state: dict[str, Any] = {
        "settings": {name: _written(value) for name, value in settings.items()} | ({"solver": OWN} if own else {}),
        "own_solver": own,
        "audit": _audit_written(kept.audit),
        "guided": kept.guided,
        "compared": kept.n_compared,
        "follows": kept.follows,
        "rng": None if kept.rng is None else kept.rng.bit_generator.state,
        "counters": kept.counters.as_dict(),
        "history": [
            [each.problems, each.calls, _row(each.agreement), each.proved, each.learned, each.labelled, each.note]
            for each in kept.history
        ],
        "calibrated": None if kept.calibrated is None else [kept.calibrated.theta, kept.calibrated.width],
        "learned": None,
        "choice": None,
        "gated": None,
    }
    tensors: dict[str, Any] = {"recent": kept.audit.recent.astype(np.uint8), "numbers": kept.audit.numbers}
    if kept.learner is not None and kept.learner.state.weights is not None:
        state["learned"], weights = _learner_written(kept.learner)
        tensors |= weights
    if kept.choice is not None:
        state["choice"], tables = _choice_written(kept.choice)
        tensors |= tables
    if kept.gated is not None:
        state["gated"] = {"gate": _written(kept.gated.gate), "max_doubt": kept.gated.max_doubt}
        tensors |= {f"gate/{name}": tensor for name, tensor in kept.gated.gate.tensors().items()}
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
        state_form(cls._defaults())(state, "its state")
        gate = {name: each for name, each in tensors.items() if name.startswith("gate/") and state["gated"]}
        rest = {name: each for name, each in tensors.items() if name not in gate}
        forms.check_tensors(rest, tensor_forms(schema, state))
    if solver is not None:
        check_solver(solver)
    elif state["own_solver"]:
        raise ModelError(f"{path} was saved with a solver of your own. Give it again: load(path, schema, solver=...).")
    wanted = set(_cheap_kinds(state))
    check_type({} if cheap is None else cheap, Mapping, "The cheap features of a gate")
    if not wanted <= set(cheap or {}):
        raise ModelError(
            f"{path} was saved with a gate for {', '.join(sorted(wanted))}. Give the functions for its cheap features "
            "again, or None where it had none: load(path, schema, cheap={...})."
        )
    with reading(path):
        settings = {name: _read(value, cheap or {}) for name, value in state["settings"].items()}
        speedup = cls(schema, **(settings | ({} if solver is None else {"solver": solver})))
        with suppress(SolverMissing):  # it will be missed with the first problems
            speedup._settle()
        speedup._state = _state_read(state, tensors, schema, cheap or {})
        if state["calibrated"] is not None:
            theta, width = state["calibrated"]
            speedup._state.calibrated = _calibrated(search_of(as_answer(speedup.answer)), theta, width)
        return speedup


def _state_read(state: dict[str, Any], tensors: Tensors, schema: Schema, cheap: Mapping[str, Cheap | None]) -> State:
    """Returns the state that a file holds; each value has its form, but together they may still make no sense."""
    kept = State(
        rng=None if state["rng"] is None else _rng(state["rng"]),
        guided=state["guided"],
        learner=None if state["learned"] is None else _learner_read(state["learned"], tensors, schema),
        counted=Counters.from_dict(state["counters"]),
        n_compared=state["compared"],
        follows=state["follows"],
    )
    kept.audit = _audit_read(state["audit"], tensors["recent"].astype(bool), tensors["numbers"])
    kept.history = _history(state["history"], kept.counted.problems)
    if state["choice"] is not None:
        kept.choice = _choice_read(state["choice"], tensors, schema)
        kept.replay.learned(kept.choice.n_answers)
    if state["gated"] is not None:
        gate = _read(state["gated"]["gate"], cheap)
        prefix = "gate/"
        gate.learn_from_tensors(
            schema, {name.removeprefix(prefix): each for name, each in tensors.items() if name.startswith(prefix)}
        )
        kept.gated = GatedSearch(gate, state["gated"]["max_doubt"])
    return kept


# -- settings -------------------------------------------------------------------------------------------------


def _written(value: Any) -> Any:
    """Returns a setting as what JSON can hold: a part by its kind and settings; of a gate's functions, the kinds."""
    if type(value).__name__ in PARTS and isinstance(value, PARTS[type(value).__name__]):
        settings = {name: _written(each) for name, each in settings_of(value).items()}
        return {KIND: type(value).__name__} | settings | ({"cheap": sorted(value.cheap)} if type(value) is Gate else {})
    return dict(value) if isinstance(value, Mapping) else value


def _read(value: Any, cheap: Mapping[str, Cheap | None]) -> Any:
    """Returns the setting that was written."""
    if not isinstance(value, dict) or KIND not in value:
        return value
    settings = {name: _read(each, cheap) for name, each in value.items() if name != KIND}
    if value[KIND] == Gate.__name__:
        settings["cheap"] = {kind: cheap[kind] for kind in settings["cheap"]}
    return PARTS[value[KIND]](**settings)


def _cheap_kinds(value: Any) -> list[str]:
    """Returns the kinds of variables that the gates in some state have functions for."""
    if not isinstance(value, dict):
        return []
    if value.get(KIND) == Gate.__name__:
        return list(value["cheap"])
    return [kind for each in value.values() for kind in _cheap_kinds(each)]


def _calibrated(search: Search, theta: float, width: int) -> Search:
    return Search(**(settings_of(search) | {"theta": theta, "width": width}))


# -- what was learned -----------------------------------------------------------------------------------------


def _audit_written(audit: Audit) -> dict[str, Any]:
    return {
        "level": audit.level,
        "trusted": audit.trusted,
        "distrust": None if audit.distrust is None else _row(audit.distrust),
        "suspect": None if audit.suspect is None else [audit.suspect.start, audit.suspect.stop],
        "alert": audit.alert,
        "bets": [[bet.stake, bet.run, bet.n] for bet in audit.bets],
    }


def _audit_read(told: dict[str, Any], recent: BoolArray, numbers: IntArray) -> Audit:
    audit = Audit(told["level"])
    audit.recent, audit.numbers, audit.trusted, audit.alert = recent, numbers, told["trusted"], told["alert"]
    audit.distrust = None if told["distrust"] is None else _agreement(told["distrust"])
    audit.suspect = None if told["suspect"] is None else range(*told["suspect"])
    audit.bets = audit.new_bets()
    same = len(told["bets"]) == len(audit.bets) and len(recent) == len(numbers)
    if not same or audit.trusted != (audit.distrust is None):
        raise forms.Misfit("its audits contradict each other")
    audit.bets = [Bet(bet.share, *row) for bet, row in zip(audit.bets, told["bets"], strict=True)]
    return audit


def _learner_written(learner: Learner) -> tuple[dict[str, Any], dict[str, Any]]:
    kept = learner.state
    assert kept.weights is not None
    state = {
        "learner": _written(learner),
        "step": kept.step,
        "trace": [astuple(epoch) for epoch in kept.trace],
        "counts": [kept.n_skipped, kept.n_forbidden, kept.n_single],
        "rng": None if kept.rng is None else kept.rng.bit_generator.state,
    }
    return state, {f"learned/{name}": np.array(value) for name, value in kept.weights._asdict().items()}


def _learner_read(kept: dict[str, Any], tensors: Tensors, schema: Schema) -> Learner:
    learner: Learner = _read(kept["learner"], {})
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


def _choice_written(choice: Choice) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns a choice as what JSON can hold, and its tables as tensors: those chosen, then the others."""
    state = {
        "method": choice.method.name,
        "agreement": {method.name: _row(each) for method, each in choice.agreement.items()},
        "n_answers": choice.n_answers,
        "confidence": choice.confidence,
        "size": None if choice.size is None else astuple(choice.size),
    }
    tables = (choice.tables, *choice.others)
    forbidden = np.array([each.forbidden for each in tables], dtype=np.uint8)
    return state, {"tables/forbidden": forbidden, "tables/cost": -np.array([each.weights for each in tables])}


def _choice_read(state: dict[str, Any], tensors: Tensors, schema: Schema) -> Choice:
    forbidden, cost = tensors["tables/forbidden"].astype(bool), tensors["tables/cost"]
    if not len(forbidden) or len(forbidden) != len(cost):
        raise forms.Misfit(f"it has {len(forbidden)} and {len(cost)} learned tables")
    if unknown := [name for name in state["agreement"] if name not in Method.__members__]:
        raise forms.Misfit(f"it knows a method that does not exist, {forms.short(unknown[0])}")
    agreement = {Method[name]: _agreement(each) for name, each in state["agreement"].items()}
    method = Method[state["method"]]
    if agreement and method not in agreement:
        raise forms.Misfit(f"it answers by {method}, which was not tried")
    n = schema.n_weights
    tables, *others = [
        LearnedTables(schema, hard, soft[:n].copy(), soft[n:].copy() if soft[n:].any() else None)
        for hard, soft in zip(forbidden, cost, strict=True)
    ]
    size = None if state["size"] is None else StepSize(*map(float, state["size"]))
    return Choice(method, tables, agreement, state["n_answers"], state["confidence"], size, tuple(others))


def _history(rows: list[list[Any]], n_problems: int) -> History:
    """Returns the history that a file holds, of the problems it has counted."""
    moments = [Moment(problems, calls, _agreement(each), *rest) for problems, calls, each, *rest in rows]
    if any(later.problems < each.problems for each, later in pairwise(moments)):
        raise forms.Misfit("its history is not in order")
    if moments and moments[-1].problems > n_problems:
        raise forms.Misfit(f"its history tells of {moments[-1].problems} problems, and it counted {n_problems}")
    return History(moments)


def _row(agreement: Agreement) -> list[Any]:
    return [agreement.estimate if agreement.n else None, agreement.low, agreement.high, agreement.n]


def _agreement(row: list[Any]) -> Agreement:
    estimate, low, high, n = row
    found = Agreement(math.nan if estimate is None else estimate, low, high, n)
    if (estimate is None) != (n == 0) or (n and not low <= estimate <= high):
        raise forms.Misfit(f"it holds an agreement of {estimate} between {low} and {high}, from {n} audits")
    return found


def _rng(kept: Any) -> np.random.Generator:
    rng = np.random.default_rng()
    rng.bit_generator.state = kept
    return rng

"""Keeping a speedup in a file, so that it goes on as if it had never stopped.

A file is safetensors with a digest of all it holds (settings, weights, tables, counters, audits, random state), written
whole or not at all (`hasten.support.files`). One that was cut short, changed, or made for another schema is refused; so
is one that no speedup can have written (`_Kept` says what it may hold), even if its digest is right.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import astuple, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from msgspec import Meta, Struct

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
from hasten.speedup.audit import ALERT, Agreement, Audit, Bet
from hasten.speedup.choosing import Choice, Method
from hasten.speedup.parameters import settings_of
from hasten.speedup.parts import Certified, Learned, Limits, Search, Trust, as_answer, search_of
from hasten.speedup.skipping import GatedSearch
from hasten.speedup.state import ASKED, NAMES, History, Moment, State
from hasten.support import forms
from hasten.support.checks import check_type
from hasten.support.forms import Array, Count, Misfit, Share, Size, Tensors, reading

if TYPE_CHECKING:
    from hasten.speedup.predictor import Speedup

FORMAT = "hasten.speedup/7"
OWN = "a solver of your own"  # stands for one that a file cannot hold
KIND = "part"  # the key that says which part an object stands for
PARTS: dict[str, type] = {kind.__name__: kind for kind in (Certified, Learned, Search, Trust, Limits, Learner, Gate)}

U32 = Annotated[int, Meta(ge=0, lt=2**32)]
Step = Annotated[float, Meta(gt=0, le=sys.float_info.max)]
AgreementRow = tuple[float, Share, Share, Count]
MomentRow = tuple[Count, Count, AgreementRow, Count, Count, Count, str]
RngRow = tuple[Annotated[int, Meta(ge=0)], Annotated[int, Meta(ge=0)], Annotated[int, Meta(ge=0, le=1)], U32]
EpochRow = tuple[Count, Count, Count, Count, Step, Size, Size, Size, Size]


class _Audit(Struct, forbid_unknown_fields=True):
    level: Share | None
    trusted: bool
    distrust: AgreementRow | None
    suspect: tuple[Count, Count] | None
    alert: Annotated[int, Meta(ge=0, le=ALERT)]
    bets: list[tuple[Size, Size, Count]]


class _Learner(Struct, forbid_unknown_fields=True):
    learner: dict[str, Any]
    step: Step | None
    trace: list[EpochRow]
    counts: tuple[Count, Count, Count]
    rng: RngRow | None


class _Choice(Struct, forbid_unknown_fields=True):
    method: str
    agreement: dict[str, AgreementRow]
    n_answers: Count
    confidence: Share | None
    size: tuple[Step, Annotated[float, Meta(ge=0, le=1e300)]] | None


class _Kept(Struct, forbid_unknown_fields=True):
    settings: dict[str, Any]  # a part by its name and settings; the parts check these when they are made
    own_solver: bool
    audit: _Audit
    guided: bool | None
    compared: Count
    rng: RngRow | None
    counters: dict[str, Count]
    history: list[MomentRow]
    calibrated: Size | None  # theta
    learned: _Learner | None
    choice: _Choice | None
    gated: tuple[dict[str, Any], Share] | None  # the gate, and how much doubt it allows


# -- writing --------------------------------------------------------------------------------------------------


def content(speedup: Speedup) -> tuple[Tensors, dict[str, str]]:
    """Returns what a file holds of a speedup; its caller holds the lock of its state."""
    kept, audit = speedup._state, speedup._state.audit
    settings = {name: _written(value) for name, value in speedup.get_params(deep=False).items() if name != "schema"}
    own = not isinstance(settings["solver"], str)
    state: dict[str, Any] = {
        "settings": settings | ({"solver": OWN} if own else {}),
        "own_solver": own,
        "audit": {
            "level": audit.level,
            "trusted": audit.trusted,
            "distrust": None if audit.distrust is None else astuple(audit.distrust),
            "suspect": None if audit.suspect is None else [audit.suspect.start, audit.suspect.stop],
            "alert": audit.alert,
            "bets": [[bet.stake, bet.run, bet.n] for bet in audit.bets],
        },
        "guided": kept.guided,
        "compared": kept.n_compared,
        "rng": _rng_written(kept.rng),
        "counters": kept.counters.as_dict(),
        "history": [astuple(each) for each in kept.history],
        "calibrated": None if kept.calibrated is None else kept.calibrated.theta,
        **dict.fromkeys(("learned", "choice", "gated")),
    }
    tensors: dict[str, Any] = {"recent": audit.recent.astype(np.uint8), "numbers": audit.numbers}
    learner, choice = kept.learner, kept.choice
    if learner is not None and learner.state.weights is not None:
        known = learner.state
        state["learned"] = {
            "learner": _written(learner),
            "step": known.step,
            "trace": [astuple(epoch) for epoch in known.trace],
            "counts": [known.n_skipped, known.n_forbidden, known.n_single],
            "rng": _rng_written(known.rng),
        }
        tensors |= {f"learned/{name}": np.array(value) for name, value in learner.state.weights._asdict().items()}
    if choice is not None:
        state["choice"] = {
            "method": choice.method.name,
            "agreement": {method.name: astuple(each) for method, each in choice.agreement.items()},
            "n_answers": choice.n_answers,
            "confidence": choice.confidence,
            "size": None if choice.size is None else astuple(choice.size),
        }
        tensors["tables/forbidden"] = choice.tables.forbidden.astype(np.uint8)
        tensors["tables/cost"] = -choice.tables.weights
    if kept.gated is not None:
        state["gated"] = [_written(kept.gated.gate), kept.gated.max_doubt]
        tensors |= {f"gate/{name}": tensor for name, tensor in kept.gated.gate.tensors().items()}
    return tensors, about_schema(speedup.schema) | {"state": json.dumps(state, default=np.generic.item)}


def _written(value: Any) -> Any:
    """Returns a setting as what JSON can hold: a part by its name and settings; of a gate's functions, the kinds."""
    if type(value).__name__ in PARTS and isinstance(value, PARTS[type(value).__name__]):
        settings = {name: _written(each) for name, each in settings_of(value).items()}
        return {KIND: type(value).__name__} | settings | ({"cheap": sorted(value.cheap)} if type(value) is Gate else {})
    return dict(value) if isinstance(value, Mapping) else value


def _rng_written(rng: np.random.Generator | None) -> list[int] | None:
    if rng is None:
        return None
    state: Any = rng.bit_generator.state
    return [state["state"]["state"], state["state"]["inc"], state["has_uint32"], state["uinteger"]]


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
    n, found = schema.n_weights, {"recent": Array("uint8", (None,), 0, 1)}
    found["numbers"] = Array("int64", (None,), 0, forms.COUNT)
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
    if unknown := [name for name in state.counters if name not in NAMES and not name.startswith(ASKED)]:
        raise Misfit(f"it has a counter {forms.short(unknown[0])}, which does not exist")
    kept = State(
        rng=_rng(state.rng),
        guided=state.guided,
        learner=None if state.learned is None else _learner_read(state.learned, tensors, schema),
        counts=Counter(state.counters),
        n_compared=state.compared,
    )
    kept.audit = _audit_read(state.audit, tensors)
    moments = [Moment(n, calls, _agreement(each), *rest) for n, calls, each, *rest in state.history]  # type: ignore[arg-type]
    if any(later.problems < each.problems for each, later in pairwise(moments)):
        raise Misfit("its history is not in order")
    if moments and moments[-1].problems > kept.counts["problems"]:
        told = moments[-1].problems
        raise Misfit(f"its history tells of {told} problems, and it counted {kept.counts['problems']}")
    kept.history = History(moments)
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


def _audit_read(kept: _Audit, tensors: Tensors) -> Audit:
    audit = Audit(kept.level)
    audit.recent, audit.numbers = tensors["recent"].astype(bool), tensors["numbers"]
    audit.trusted, audit.alert = kept.trusted, kept.alert
    audit.distrust = kept.distrust and _agreement(kept.distrust)
    audit.suspect = None if kept.suspect is None else range(*kept.suspect)
    audit.bets = audit.new_bets()
    same = len(kept.bets) == len(audit.bets) and len(audit.recent) == len(audit.numbers)
    if not same or audit.trusted != (audit.distrust is None):
        raise Misfit("its audits contradict each other")
    audit.bets = [Bet(bet.share, *row) for bet, row in zip(audit.bets, kept.bets, strict=True)]
    return audit


def _learner_read(kept: _Learner, tensors: Tensors, schema: Schema) -> Learner:
    learner = _read(kept.learner, {})
    check_type(learner, Learner, "Its learner")
    state = learner.state
    state.schema, state.step, state.rng = schema, kept.step, _rng(kept.rng)
    state.weights = Weights(*(tensors[f"learned/{name}"].copy() for name in Weights._fields))
    state.trace = [Epoch(*epoch) for epoch in kept.trace]
    state.n_skipped, state.n_forbidden, state.n_single = kept.counts
    with np.errstate(over="ignore"):
        if not np.isfinite(learner.weights).all():
            raise Misfit("the average of its weights is not finite")
    return learner  # type: ignore[no-any-return]


def _choice_read(kept: _Choice, tensors: Tensors, schema: Schema) -> Choice:
    forbidden, cost = tensors["tables/forbidden"].astype(bool), tensors["tables/cost"]
    if unknown := [name for name in (kept.method, *kept.agreement) if name not in Method.__members__]:
        raise Misfit(f"it knows a method that does not exist, {forms.short(unknown[0])}")
    agreement = {Method[name]: _agreement(each) for name, each in kept.agreement.items()}
    method = Method[kept.method]
    if agreement and method not in agreement:
        raise Misfit(f"it answers by {method}, which was not tried")
    n = schema.n_weights
    tables = LearnedTables(schema, forbidden, cost[:n].copy(), cost[n:].copy() if cost[n:].any() else None)
    size = None if kept.size is None else StepSize(*kept.size)
    return Choice(method, tables, agreement, kept.n_answers, kept.confidence, size)


def _agreement(row: AgreementRow) -> Agreement:
    estimate, low, high, n = row
    if math.isnan(estimate) != (n == 0) or (n and not low <= estimate <= high):
        raise Misfit(f"it holds an agreement of {estimate} between {low} and {high}, from {n} audits")
    return Agreement(*row)


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

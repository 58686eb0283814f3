"""Forms of all that the file of a speedup may hold."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from hasten.learning.gate import Gate
from hasten.learning.learner import Epoch, Learner
from hasten.learning.tables import n_labels
from hasten.model.schema import Schema
from hasten.speedup.audit import ALERT
from hasten.speedup.choosing import Method
from hasten.speedup.history import ASKED, Counters
from hasten.speedup.parts import Certified, Learned, Limits, Search, Trust
from hasten.support import forms

KIND = "part"  # the key that says which part an object stands for
PARTS: dict[str, type] = {kind.__name__: kind for kind in (Certified, Learned, Search, Trust, Limits, Learner, Gate)}
_SHARE = forms.number(0, 1)
_SIZE = forms.number(0)
_STEP = forms.number(math.ulp(0.0), sys.float_info.max)  # positive and finite
_AGREEMENT = forms.row(forms.or_none(_SHARE), _SHARE, _SHARE, forms.whole())  # no estimate without audits
_AUDIT = forms.record(
    {
        "level": forms.or_none(_SHARE),
        "trusted": forms.switch,
        "distrust": forms.or_none(_AGREEMENT),
        "suspect": forms.or_none(forms.row(forms.whole(), forms.whole())),
        "alert": forms.whole(0, ALERT),
        "bets": forms.many(forms.row(_SIZE, _SIZE, forms.whole())),
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
    **{name: forms.whole() for name in ("n_examples", "n_lost", "n_wrong", "n_blind")},
    **dict.fromkeys(("norm", "radius_phi", "radius_g", "seconds"), _SIZE),
    "step": _STEP,
}
_CHOICE = forms.record(
    {
        "method": forms.one_of(*(method.name for method in Method)),
        "agreement": forms.table_of(_AGREEMENT),
        "n_answers": forms.whole(),
        "confidence": forms.or_none(_SHARE),
        "size": forms.or_none(forms.row(_STEP, forms.number(0, 1e300))),
    }
)
_HISTORY = forms.many(
    forms.row(forms.whole(), forms.whole(), _AGREEMENT, *(forms.whole() for _ in range(3)), forms.text)
)


def setting(value: Any, what: str) -> None:
    """The form of a setting: a single value, or a part; the part itself checks its settings when it is made."""
    if not isinstance(value, dict) or KIND not in value:
        forms.scalar(value, what)
    else:
        part(*PARTS.values())(value, what)


def part(*kinds: type) -> forms.Form:
    """The form of a part of one of some kinds; settings that were added later may be missing."""

    def check(value: Any, what: str) -> None:
        if not isinstance(value, dict):
            raise forms.Misfit(f"{what} must be an object, not {forms.short(value)}")
        forms.one_of(*(kind.__name__ for kind in kinds))(value.get(KIND), f"{what}: {KIND!r}")
        kind = PARTS[value[KIND]]
        names: dict[str, forms.Form] = {each.name: setting for each in fields(kind) if each.init}
        if kind is Gate:
            names["cheap"] = forms.many(forms.text, least=1)
        forms.record(names | {KIND: forms.text}, optional=[name for name in names if name != "cheap"])(value, what)

    return check


def counters(value: Any, what: str) -> None:
    """The form of counters, by name: files written before one was added have none of it."""
    names = [each.name for each in fields(Counters) if each.name != "asked"]
    names += [name for name in value if name.startswith(ASKED)] if isinstance(value, dict) else []
    forms.record(dict.fromkeys(names, forms.whole()), optional=names)(value, what)


def state_form(settings: Iterable[str]) -> forms.Form:
    """Returns the form of the state of a speedup with these settings."""
    known: dict[str, forms.Form] = {name: setting for name in settings if name != "schema"}
    known |= {"trust": part(Trust), "limits": part(Limits)}
    known["solver_options"] = forms.or_none(forms.table_of(forms.scalar))
    learned = {
        "learner": part(Learner),
        "step": forms.or_none(_STEP),
        "trace": forms.many(forms.row(*(_EPOCH[each.name] for each in fields(Epoch)))),
        "counts": forms.row(forms.whole(), forms.whole(), forms.whole()),
        "rng": forms.or_none(_RNG),
    }
    return forms.record(
        {
            "settings": forms.record(known, optional=known),
            "own_solver": forms.switch,
            "audit": _AUDIT,
            "guided": forms.or_none(forms.switch),
            "compared": forms.whole(0),
            "follows": forms.switch,
            "rng": forms.or_none(_RNG),
            "counters": counters,
            "history": _HISTORY,
            "calibrated": forms.or_none(forms.row(_SIZE, forms.whole(1))),
            "learned": forms.or_none(forms.record(learned)),
            "choice": forms.or_none(_CHOICE),
            "gated": forms.or_none(forms.record({"gate": part(Gate), "max_doubt": _SHARE})),
        }
    )


def tensor_forms(schema: Schema, state: dict[str, Any]) -> dict[str, forms.Array]:
    """Returns the forms of the tensors that come with a state."""
    n, found = schema.n_weights, {"recent": forms.Array("uint8", (None,), 0, 1)}
    found["numbers"] = forms.Array("int64", (None,), 0, forms.COUNT)
    if state["choice"] is not None:
        found["tables/forbidden"] = forms.Array("uint8", (None, n), 0, 1)
        found["tables/cost"] = forms.Array("float64", (None, n + n_labels(schema)))
    if state["learned"] is not None:
        found |= {
            "learned/w": forms.Array("float64", (n,)),
            "learned/drift": forms.Array("float64", (n,)),
            "learned/n_examples": forms.Array("int64", (1,), 0, forms.COUNT),
            "learned/n_blind": forms.Array("int64", (1,), 0, forms.COUNT),
            "learned/radius": forms.Array("float64", (2,), 0),
        }
    return found

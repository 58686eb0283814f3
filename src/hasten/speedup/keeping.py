"""What a file keeps of learned mode: how it answers and why, its tables, and its history. Past answers are not kept."""

from __future__ import annotations

import math
import sys
from dataclasses import astuple
from itertools import pairwise
from typing import Any

import numpy as np

from hasten.learning.perceptron import Pace
from hasten.learning.tables import LearnedTables, n_labels
from hasten.model.schema import Schema
from hasten.speedup.audit import Agreement
from hasten.speedup.choosing import Choice, Way
from hasten.speedup.history import History, Moment
from hasten.support import forms
from hasten.support.tensors import Tensors

SHARE = forms.number(0, 1)
AGREEMENT = forms.row(forms.or_none(SHARE), SHARE, SHARE, forms.whole())  # no estimate without audits
CHOICE = forms.record(
    {
        "way": forms.one_of(*(way.name for way in Way)),
        "agreement": forms.table_of(AGREEMENT),
        "n_answers": forms.whole(),
        "confidence": forms.or_none(SHARE),
        "pace": forms.or_none(forms.row(forms.number(math.ulp(0.0), sys.float_info.max), forms.number(0, 1e300))),
    }
)
HISTORY = forms.many(forms.row(forms.whole(), forms.whole(), AGREEMENT, *(forms.whole() for _ in range(3)), forms.text))


def of_choice(choice: Choice | None) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Returns a choice as what JSON can hold, and its tables as tensors: those chosen, then the others."""
    if choice is None:
        return None, {}
    state = {
        "way": choice.way.name,
        "agreement": {way.name: of_agreement(each) for way, each in choice.agreement.items()},
        "n_answers": choice.n_answers,
        "confidence": choice.confidence,
        "pace": None if choice.pace is None else astuple(choice.pace),
    }
    tables = (choice.tables, *choice.others)
    forbidden = np.array([each.forbidden for each in tables], dtype=np.uint8)
    costs = -np.array([each.weights for each in tables])
    return state, {"tables/forbidden": forbidden, "tables/cost": costs}


def tensor_forms(schema: Schema) -> dict[str, forms.Array]:
    """Returns the forms of these tensors."""
    n = schema.n_weights
    return {
        "tables/forbidden": forms.Array("uint8", (None, n), 0, 1),
        "tables/cost": forms.Array("float64", (None, n + n_labels(schema))),
    }


def choice_of(state: dict[str, Any] | None, tensors: Tensors, schema: Schema) -> Choice | None:
    """Returns the choice that a file holds."""
    if state is None:
        return None
    forbidden, cost = tensors["tables/forbidden"].astype(bool), tensors["tables/cost"]
    if not len(forbidden) or len(forbidden) != len(cost):
        raise forms.Misfit(f"it has {len(forbidden)} and {len(cost)} learned tables")
    if unknown := [name for name in state["agreement"] if name not in Way.__members__]:
        raise forms.Misfit(f"it knows a way to answer that does not exist, {forms.short(unknown[0])}")
    agreement = {Way[name]: agreement_of(each) for name, each in state["agreement"].items()}
    way = Way[state["way"]]
    if agreement and way not in agreement:
        raise forms.Misfit(f"it answers by {way}, which was not tried")
    n = schema.n_weights
    tables, *others = [
        LearnedTables(schema, hard, soft[:n].copy(), soft[n:].copy() if soft[n:].any() else None)
        for hard, soft in zip(forbidden, cost, strict=True)
    ]
    pace = None if state["pace"] is None else Pace(*map(float, state["pace"]))
    return Choice(way, tables, agreement, state["n_answers"], state["confidence"], pace, tuple(others))


def of_history(history: History) -> list[list[Any]]:
    """Returns a history as what JSON can hold."""
    return [
        [each.problems, each.calls, of_agreement(each.agreement), each.proved, each.learned, each.labelled, each.note]
        for each in history
    ]


def history_of(rows: list[list[Any]], n_problems: int) -> History:
    """Returns the history that a file holds, of the problems it has counted."""
    moments = [Moment(problems, calls, agreement_of(each), *rest) for problems, calls, each, *rest in rows]
    if any(later.problems < each.problems for each, later in pairwise(moments)):
        raise forms.Misfit("its history is not in order")
    if moments and moments[-1].problems > n_problems:
        raise forms.Misfit(f"its history tells of {moments[-1].problems} problems, and it counted {n_problems}")
    return History(moments)


def of_agreement(agreement: Agreement) -> list[Any]:
    """Returns an agreement as what JSON can hold."""
    estimate = agreement.estimate if agreement.n else None
    return [estimate, agreement.low, agreement.high, agreement.n]


def agreement_of(row: list[Any]) -> Agreement:
    """Returns the agreement that a file holds."""
    estimate, low, high, n = row
    found = Agreement(math.nan if estimate is None else estimate, low, high, n)
    if (estimate is None) != (n == 0) or (n and not low <= estimate <= high):
        raise forms.Misfit(f"it holds an agreement of {estimate} between {low} and {high}, from {n} audits")
    return found

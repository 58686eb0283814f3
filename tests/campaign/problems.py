"""Problems as plain data, which JSON can hold, and the library's own problems made of them.

A description is a dictionary. `kinds` says how many labels each kind of variable has, `factors` the kinds of each
role and the flat table (or null) of each kind of factor, `rules` the weights of the labels of some kinds, `low` and
`high`. These are the schema. `variables` (the kind of each), `scopes` (a kind of factor, and its variables), `order`
and `structure_rules` (`terms` of variable, label and weight) are the structure. `costs`, `tables` (a factor, and its
flat table) and `own_rules` are the problem's. Labels, variables and factors are numbers; "inf" forbids.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hasten.model.problem import Problem
from hasten.model.rules import Rule
from hasten.model.schema import Schema
from hasten.model.structure import Structure

Described = dict[str, Any]
SHAPE = ("kinds", "factors", "rules", "variables", "scopes", "order", "structure_rules")


def describe(kinds: list[int], variables: list[int]) -> Described:
    """Returns a problem of some variables without factors, rules and costs."""
    return {
        "kinds": kinds,
        "factors": [],
        "rules": [],
        "variables": variables,
        "scopes": [],
        "order": None,
        "structure_rules": [],
        "costs": [[0.0] * kinds[k] for k in variables],
        "tables": [],
        "own_rules": [],
    }


def shape_of(described: Described, factor: int) -> tuple[int, ...]:
    """Returns the shape of the table of a kind of factor."""
    return tuple(described["kinds"][k] for k in described["factors"][factor]["roles"])


def keys_of(descriptions: list[Described], names: Sequence[str]) -> list[str]:
    """Returns for each description what it says under some names; what is one object is spelled once."""
    spelled: dict[tuple[int, ...], str] = {}
    keys = []
    for described in descriptions:
        values = [described[name] for name in names]
        same = tuple(map(id, values))
        if same not in spelled:
            spelled[same] = repr(values)
        keys.append(spelled[same])
    return keys


def build_all(descriptions: list[Described]) -> list[Problem]:
    """Makes the problems that are described, in the way in which a user would; those of one shape share it."""
    shapes: dict[str, Structure] = {}
    problems = []
    for key, described in zip(keys_of(descriptions, SHAPE), descriptions, strict=True):
        if key not in shapes:
            shapes[key] = build_structure(described)
        tables = {
            f: np.array(table).reshape(shape_of(described, described["scopes"][f][0]))
            for f, table in described["tables"]
        }
        own = [Rule.of(f"own{r}", terms_of(rule), **limits_of(rule)) for r, rule in enumerate(described["own_rules"])]
        problems.append(shapes[key].problem(described["costs"], tables=tables, rules=own))
    return problems


def build_structure(described: Described) -> Structure:
    """Declares a schema and a structure."""
    schema = Schema()
    kinds = [schema.variable(f"kind{k}", names(n)) for k, n in enumerate(described["kinds"])]
    factors = []
    for f, factor in enumerate(described["factors"]):
        roles = {f"role{a}": kinds[k] for a, k in enumerate(factor["roles"])}
        factors.append(schema.factor(f"factor{f}", **roles))
        if factor["table"] is not None:
            factors[f].set_table(np.array(factor["table"]).reshape(shape_of(described, f)))
    for r, rule in enumerate(described["rules"]):
        counted = {f"kind{k}": dict(zip(names(len(each)), each, strict=True)) for k, each in rule["weights"]}
        schema.rule(f"rule{r}", **limits_of(rule), **counted)
    structure = schema.structure()
    for k in described["variables"]:
        structure.add(kinds[k])
    for f, scope in described["scopes"]:
        structure.connect(factors[f], **{f"role{a}": v for a, v in enumerate(scope)})
    for r, rule in enumerate(described["structure_rules"]):
        structure.rule(f"here{r}", terms_of(rule), **limits_of(rule))
    if described["order"] is not None:
        structure.search_order(described["order"])
    return structure


def names(n: int) -> list[str]:
    return [f"label{i}" for i in range(n)]


def terms_of(rule: Described) -> list[tuple[int, str, float]]:
    return [(v, f"label{i}", weight) for v, i, weight in rule["terms"]]


def limits_of(rule: Described) -> dict[str, float]:
    """Returns the limits of a rule by the names that the library has for them."""
    low, high = rule["low"], rule["high"]
    if low == high:
        return {"exactly": low}
    return {name: limit for name, limit in (("at_least", low), ("at_most", high)) if math.isfinite(limit)}


def write(path: Path, said: Any) -> None:
    """Writes descriptions as JSON; what is infinite as a string."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(_spelled(said), indent=1) + "\n")


def read(path: Path) -> Any:
    """Reads what `write` wrote: the same numbers, to the last bit."""
    return _numbers(json.loads(path.read_text()))


def _spelled(said: Any) -> Any:
    if isinstance(said, dict):
        return {key: _spelled(each) for key, each in said.items()}
    if isinstance(said, list | tuple):
        return [_spelled(each) for each in said]
    return str(said) if isinstance(said, float) and math.isinf(said) else said


def _numbers(said: Any) -> Any:
    if isinstance(said, dict):
        return {key: _numbers(each) for key, each in said.items()}
    if isinstance(said, list):
        return [_numbers(each) for each in said]
    return float(said) if said in ("inf", "-inf") else said

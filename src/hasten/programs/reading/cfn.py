"""`.cfn` files of toulbar2: a cost function network in JSON, with names for variables and values.

{"problem": {"name": …, "mustbe": "<100"}, "variables": {name: size or [values]},
 "functions": {name: {"scope": […], "defaultcost": …, "costs": […]}}}

With "mustbe": ">-100" the sum of the costs is maximised.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

import numpy as np

from hasten.errors import ProgramError
from hasten.model.kinds import MAX_LABELS, MAX_ROLES
from hasten.programs.reading.networks import check_table_size
from hasten.programs.reading.text import Text, as_number, shown
from hasten.programs.statement import Builder, Statement
from hasten.support.arrays import FloatArray
from hasten.support.forms import short


def read_cfn(text: Text) -> Statement:
    """Reads a cost function network."""
    try:
        data = json.loads("".join(text.lines()), object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        text.number = error.lineno
        raise ProgramError(f"It is not JSON: {error.msg}.") from None
    except ValueError as error:
        raise ProgramError(f"It is not JSON: {error}.") from None
    text.number = 0  # errors name functions and variables
    about = _part(data, "problem", dict)
    variables, functions = _part(data, "variables", dict), _part(data, "functions", dict | list)
    maximize, limit = _must_be(about.get("mustbe", "<inf"))
    build = Builder(name=str(about.get("name", "")), maximize=maximize)
    sign = -1.0 if maximize else 1.0
    top = sign * limit
    values: list[dict[str, int]] = []
    for name, domain in variables.items():
        size = len(domain) if isinstance(domain, list) else domain
        if type(size) is not int or not 1 <= abs(size) <= MAX_LABELS:
            raise ProgramError(f"The variable {shown(name)} must have a number of values or a list of them.")
        if isinstance(domain, list) and len(set(map(str, domain))) < size:
            raise ProgramError(f"The variable {shown(name)} has a value twice. Keep one.")
        values.append({str(value): i for i, value in enumerate(domain)} if isinstance(domain, list) else {})
        build.column(name, 0.0, abs(size) - 1.0, True)
    place = {name: v for v, name in enumerate(variables)}
    listed = (
        functions.items() if isinstance(functions, dict) else ((f"function {n}", f) for n, f in enumerate(functions))
    )
    for name, function in listed:
        if not isinstance(function, dict):
            raise ProgramError(f"The function {shown(str(name))} must be an object, not {short(function)}.")
        scope = [
            _variable(each, place, name) for each in _part(function, "scope", list, f"The function {shown(str(name))}")
        ]
        if len(set(scope)) < len(scope) or len(scope) > MAX_ROLES:
            raise ProgramError(f"The function {shown(str(name))} names a variable twice, or more than {MAX_ROLES}.")
        shape = tuple(int(build.high[v]) + 1 for v in scope)
        check_table_size(shape)
        costs = sign * _costs(function, [values[v] for v in scope], shape, str(name))
        if np.isneginf(costs).any():
            raise ProgramError(f"A cost of the function {shown(str(name))} is infinitely good. Give a finite one.")
        build.table(scope, np.where(costs >= top, np.inf, costs))
    build.cutoff = top
    return build.statement()


def _costs(function: dict[str, Any], names: list[dict[str, int]], shape: tuple[int, ...], name: str) -> FloatArray:
    if "costs" not in function or not isinstance(function["costs"], list):
        raise ProgramError(f"The function {shown(name)} has no list of costs; other kinds of functions are not read.")
    given = function["costs"]
    if "defaultcost" not in function:
        if len(given) != math.prod(shape):
            raise ProgramError(f"The function {shown(name)} needs {math.prod(shape):,} costs, not {len(given):,}.")
        return np.array([_number(each, name) for each in given]).reshape(shape)
    costs = np.full(shape, _number(function["defaultcost"], name))
    width = len(shape) + 1
    if len(given) % width:
        raise ProgramError(f"The costs of the function {shown(name)} must be tuples of values, each with a cost.")
    for at in range(0, len(given), width):
        tuple_ = tuple(_value(given[at + i], names[i], shape[i], name) for i in range(len(shape)))
        costs[tuple_] = _number(given[at + width - 1], name)
    return costs


def _number(value: Any, name: str) -> float:
    if isinstance(value, str) and value.lower() in ("inf", "+inf", "infinity", "-inf", "-infinity"):
        return float(value)
    if type(value) not in (int, float) or math.isnan(value) or (abs(value) > 1e300 and not math.isinf(value)):
        raise ProgramError(f"A cost of the function {shown(name)} must be a number, not {short(value)}.")
    return float(value)


def _value(value: Any, names: dict[str, int], size: int, name: str) -> int:
    at = names.get(value) if isinstance(value, str) else value
    if type(at) is not int or not 0 <= at < size:
        raise ProgramError(f"The function {shown(name)} names a value that is not there: {short(value)}.")
    return at


def _variable(each: Any, place: dict[str, int], name: str) -> int:
    v = place.get(each) if isinstance(each, str) else each
    if type(v) is not int or not 0 <= v < len(place):
        raise ProgramError(f"The function {shown(str(name))} names a variable that is not there: {short(each)}.")
    return v


def _part(data: Any, key: str, kind: Any, what: str = "It") -> Any:
    if not isinstance(data, dict) or not isinstance(data.get(key), kind):
        raise ProgramError(f"{what} lacks {key!r}, or that has the wrong form.")
    return data[key]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns a JSON object, whose names must be there once."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ProgramError(f"The name {shown(twice)} is given twice. Keep one.")
    return found


def _must_be(word: Any) -> tuple[bool, float]:
    """Returns whether costs are maximised, and what every answer must be better than."""
    text = str(word).strip()
    if text[:1] not in ("<", ">"):
        raise ProgramError(f"'mustbe' is < or > and a number, not {shown(text)}.")
    return text[0] == ">", as_number(text[1:].strip(), "The number in 'mustbe'")

"""Cost function networks: `.wcsp` and `.cfn` files (JSON) of toulbar2, and `.uai` files, MARKOV or BAYES.

A cost of a `.wcsp` file at or above its upper bound is forbidden, and so is an answer that costs as much; of the global
cost functions `salldiff` and `sgcc` are read, as tables; a tuple that is given twice costs what is said last. A cost of
a `.uai` file is minus the logarithm of a probability. With "mustbe": ">-100" a `.cfn` file is maximised.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from hasten.errors import ProgramError
from hasten.model.kinds import MAX_LABELS, MAX_ROLES, MAX_TABLE
from hasten.programs.reading.text import Text, as_number, shown
from hasten.programs.statement import MAX_COLUMNS, Builder, Statement
from hasten.support.arrays import FloatArray
from hasten.support.forms import short

MAX_FUNCTIONS = 10_000_000
LARGEST = 2**62


def read_wcsp(text: Text) -> Statement:
    """Reads a weighted constraint satisfaction problem."""
    build = Builder(name=text.word("a name"))
    n = text.whole("the number of variables", 0, MAX_COLUMNS)
    text.whole("the largest number of values", 0, MAX_LABELS)
    n_functions = text.whole("the number of cost functions", 0, MAX_FUNCTIONS)
    top = text.whole("the upper bound", 0, LARGEST)
    sizes = _columns(text, build, n)
    shared: list[FloatArray] = []
    for _ in range(n_functions):
        arity = text.whole("the number of variables of a cost function", -MAX_ROLES, MAX_ROLES)
        scope, shape = _scope(text, abs(arity), sizes)
        default = text.whole("the default cost", -1, LARGEST)
        if default == -1:
            costs = _global(text, shape)
        else:
            n_tuples = text.whole("the number of tuples", -len(shared), math.prod(shape))
            costs = shared[-n_tuples - 1] if n_tuples < 0 else _listed(text, shape, default, n_tuples)
            if costs.shape != shape:
                raise ProgramError(f"The shared cost function {-n_tuples} has the shape {costs.shape}, not {shape}.")
        costs = np.where(costs >= top, np.inf, costs)
        if arity < 0:
            shared.append(costs)
        build.table(scope, costs)
    text.end()
    build.cutoff = float(top)
    return build.statement()


def read_uai(text: Text) -> Statement:
    """Reads a Markov or Bayesian network."""
    build = Builder(name=text.name)
    kind = text.word("MARKOV or BAYES")
    if kind.upper() not in ("MARKOV", "BAYES"):
        raise ProgramError(f"A .uai file begins with MARKOV or BAYES, not {shown(kind)}.")
    sizes = _columns(text, build, text.whole("the number of variables", 0, MAX_COLUMNS))
    scopes = [
        _scope(text, text.whole("the number of variables of a factor", 0, MAX_ROLES), sizes)
        for _ in range(text.whole("the number of factors", 0, MAX_FUNCTIONS))
    ]
    for scope, shape in scopes:
        size = math.prod(shape)
        text.whole("the number of entries of a factor", size, size)
        values = np.array([text.real("a probability") for _ in range(size)])
        if not ((values >= 0) & np.isfinite(values)).all():
            raise ProgramError("A probability must be 0 or more, and finite.")
        with np.errstate(divide="ignore"):
            build.table(scope, -np.log(values).reshape(shape) + 0.0)
    text.end()
    return build.statement()


def _columns(text: Text, build: Builder, n: int) -> list[int]:
    """Reads the numbers of values of variables, each a column."""
    sizes = [text.whole(f"the number of values of variable {v}", 1, MAX_LABELS) for v in range(n)]
    for v, size in enumerate(sizes):
        build.column(f"x{v}", 0.0, size - 1.0, True)
    return sizes


def _scope(text: Text, arity: int, sizes: list[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Reads the variables of a cost function; returns them with the shape of its table."""
    scope = tuple(text.whole("a variable", 0, len(sizes) - 1) for _ in range(arity))
    if len(set(scope)) < len(scope):
        raise ProgramError(f"A cost function names a variable twice: {scope}.")
    shape = tuple(sizes[v] for v in scope)
    _check_table_size(shape)
    return scope, shape


def _check_table_size(shape: tuple[int, ...]) -> None:
    if math.prod(shape) > MAX_TABLE:
        raise ProgramError(
            f"A cost function over {len(shape)} variables would have {math.prod(shape):,} entries; "
            f"the limit is {MAX_TABLE:,}."
        )


def _listed(text: Text, shape: tuple[int, ...], default: int, n_tuples: int) -> FloatArray:
    costs = np.full(shape, float(default))
    for _ in range(n_tuples):
        values = tuple(text.whole("a value", 0, size - 1) for size in shape)
        costs[values] = text.whole("a cost", 0, LARGEST)
    return costs


def _global(text: Text, shape: tuple[int, ...]) -> FloatArray:
    """Reads one of the global cost functions that are known, as a table."""
    name = text.word("the name of a global cost function")
    if name not in ("salldiff", "sgcc"):
        raise ProgramError(f"The global cost function {shown(name)} is not read; salldiff and sgcc are.")
    measure = text.word("how violations are counted")
    if measure not in ("var", "dec"):
        raise ProgramError(f"Violations of {name} are counted by var or dec, not {shown(measure)}.")
    price = text.whole("the cost of a violation", 0, LARGEST)
    limits: dict[int, tuple[int, int]] = {}
    if name == "sgcc":
        for _ in range(text.whole("the number of values", 0, MAX_LABELS)):
            value = text.whole("a value", 0, MAX_LABELS)
            low = text.whole("the least number of times", 0, MAX_ROLES)
            limits[value] = low, text.whole("the largest number of times", low, LARGEST)
    costs = np.zeros(shape)
    for values in product(*map(range, shape)):
        costs[values] = price * _violations(Counter(values), limits, name, measure)
    return costs


def _violations(counts: Counter[int], limits: dict[int, tuple[int, int]], name: str, measure: str) -> int:
    if name == "salldiff":
        pairs = sum(n * (n - 1) // 2 for n in counts.values())
        return sum(n - 1 for n in counts.values()) if measure == "var" else pairs
    short = sum(max(0, low - counts[value]) for value, (low, _) in limits.items())
    over = sum(max(0, counts[value] - high) for value, (_, high) in limits.items())
    return max(short, over) if measure == "var" else short + over


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
    tables: list[tuple[list[int], FloatArray]] = []
    named = functions if isinstance(functions, dict) else {f"function {n}": each for n, each in enumerate(functions)}
    for name, function in named.items():
        what = f"The function {shown(name)}"
        if not isinstance(function, dict):
            raise ProgramError(f"{what} must be an object, not {short(function)}.")
        scope = [_place(v, place, len(place), f"{what} names a variable") for v in _part(function, "scope", list, what)]
        if len(set(scope)) < len(scope) or len(scope) > MAX_ROLES:
            raise ProgramError(f"{what} names a variable twice, or more than {MAX_ROLES}.")
        shape = tuple(int(build.high[v]) + 1 for v in scope)
        _check_table_size(shape)
        costs = sign * _costs(function, [values[v] for v in scope], shape, name)
        if np.isneginf(costs).any():
            raise ProgramError(f"A cost of the function {shown(name)} is infinitely good. Give a finite one.")
        tables.append((scope, costs))
    for (scope, costs), limit in zip(tables, _limits(top, [float(costs.min()) for _, costs in tables]), strict=True):
        build.table(scope, np.where(costs >= limit, np.inf, costs))
    build.cutoff = top
    return build.statement()


def _limits(top: float, least: list[float]) -> list[float]:
    """Returns the cost of each function from which on every sum reaches the limit, given the least of each."""
    if not all(map(math.isfinite, (top, *least))):
        return [math.inf] * len(least)
    slack, limits = Fraction(top) - sum(map(Fraction, least)), list[float]()
    for mine in least:
        limit = slack + Fraction(mine)
        rounded = float(limit)
        limits.append(rounded if rounded >= limit else math.nextafter(rounded, math.inf))
    return limits


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
        what = f"The function {shown(name)} names a value"
        tuple_ = tuple(_place(given[at + i], names[i], shape[i], what) for i in range(len(shape)))
        costs[tuple_] = _number(given[at + width - 1], name)
    return costs


def _number(value: Any, name: str) -> float:
    if isinstance(value, str) and value.lower() in ("inf", "+inf", "infinity", "-inf", "-infinity"):
        return float(value)
    if type(value) not in (int, float) or math.isnan(value) or (abs(value) > 1e300 and not math.isinf(value)):
        raise ProgramError(f"A cost of the function {shown(name)} must be a number, not {short(value)}.")
    return float(value)


def _place(key: Any, names: dict[str, int], size: int, what: str) -> int:
    """Returns the place of a variable, or of a value, which is named or numbered."""
    at = names.get(key) if isinstance(key, str) else key
    if type(at) is not int or not 0 <= at < size:
        raise ProgramError(f"{what} that is not there: {short(key)}.")
    return at


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
    """Returns whether costs are maximised, and the value that every answer must beat."""
    text = str(word).strip()
    if text[:1] not in ("<", ">"):
        raise ProgramError(f"'mustbe' is < or > and a number, not {shown(text)}.")
    return text[0] == ">", as_number(text[1:].strip(), "The number in 'mustbe'")

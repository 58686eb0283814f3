"""Makes a trial that fails as small as it gets, while it still fails."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from copy import deepcopy
from itertools import product
from typing import Any

from problems import Described, shape_of

TRIES = 3000  # after which small is small enough
PLAIN = {"start": None, "n_jobs": 1}


def shrunk(trial: Described, fails: Callable[[Described], bool]) -> Described:
    """Returns the smallest trial found that still fails."""
    left = TRIES
    better = True
    while better:
        better = False
        for smaller in smaller_trials(trial):
            left -= 1
            if left < 0:
                return trial
            if fails(smaller):
                trial, better = smaller, True
                break
    return trial


def smaller_trials(trial: Described) -> Iterator[Described]:
    """Yields trials that are a little simpler, what takes most away first."""
    problems = trial["problems"]
    if len(problems) > 1:
        half = len(problems) // 2
        yield trial | {"problems": problems[:half]}
        yield trial | {"problems": problems[half:]}
        for p in range(len(problems)):
            yield trial | {"problems": problems[:p] + problems[p + 1 :]}
    settings = trial["settings"]
    for name, plain in PLAIN.items():
        if settings[name] != plain:
            yield trial | {"settings": settings | {name: plain}}
    for p, problem in enumerate(problems):
        for smaller in smaller_problems(problem):
            yield trial | {"problems": [*problems[:p], smaller, *problems[p + 1 :]]}


def smaller_problems(described: Described) -> Iterator[Described]:
    """Yields a problem with something less: a variable, factor, rule, label, term, or with rounder numbers."""
    for v in reversed(range(len(described["variables"]))):
        yield without_variable(described, v)
    for name in ("own_rules", "structure_rules", "rules", "tables"):
        for at in range(len(described[name])):
            yield described | {name: described[name][:at] + described[name][at + 1 :]}
    for f in range(len(described["scopes"])):
        yield without_scope(described, f)
    for kind, n in enumerate(described["kinds"]):
        for i in reversed(range(n if n > 1 else 0)):
            yield without_label(described, kind, i)
    if described["order"] is not None:
        yield described | {"order": None}
    for name in ("own_rules", "structure_rules"):
        for r, rule in enumerate(described[name]):
            for t in range(len(rule["terms"]) if len(rule["terms"]) > 1 else 0):
                fewer = deepcopy(described)
                del fewer[name][r]["terms"][t]
                yield fewer
    for path, values in _numbers_of(described):
        for at, x in enumerate(values):
            rounded = (float(f"{x:.1g}"), float(f"{x:.3g}")) if math.isfinite(x) else ()
            for rounder in (0.0, 1.0, *rounded):
                if len(repr(rounder)) < len(repr(x)):
                    other = deepcopy(described)
                    _at(other, path)[at] = rounder
                    yield other


def without_variable(described: Described, v: int) -> Described:
    """Returns a problem without a variable, its factors and its terms."""
    fewer = deepcopy(described)
    for f in reversed(range(len(fewer["scopes"]))):
        if v in fewer["scopes"][f][1]:
            fewer = without_scope(fewer, f)
    fewer["scopes"] = [[kind, [w - (w > v) for w in scope]] for kind, scope in fewer["scopes"]]
    del fewer["variables"][v], fewer["costs"][v]
    if fewer["order"] is not None:
        fewer["order"] = [w - (w > v) for w in fewer["order"] if w != v]
    for name in ("own_rules", "structure_rules"):
        for rule in fewer[name]:
            rule["terms"] = [[w - (w > v), i, weight] for w, i, weight in rule["terms"] if w != v]
        fewer[name] = [rule for rule in fewer[name] if rule["terms"]]
    return fewer


def without_scope(described: Described, f: int) -> Described:
    """Returns a problem without one of its factors."""
    tables = [[g - (g > f), table] for g, table in described["tables"] if g != f]
    return described | {"scopes": described["scopes"][:f] + described["scopes"][f + 1 :], "tables": tables}


def without_label(described: Described, kind: int, i: int) -> Described:
    """Returns a problem in which a kind has a label less."""
    fewer = deepcopy(described)
    for f, factor in enumerate(fewer["factors"]):
        if factor["table"] is not None:
            factor["table"] = _cut(described, f, factor["table"], kind, i)
    fewer["tables"] = [[f, _cut(described, described["scopes"][f][0], t, kind, i)] for f, t in described["tables"]]
    fewer["kinds"][kind] -= 1
    for v, k in enumerate(described["variables"]):
        if k == kind:
            del fewer["costs"][v][i]
    for rule in fewer["rules"]:
        for k, weights in rule["weights"]:
            if k == kind:
                del weights[i]
    for name in ("own_rules", "structure_rules"):
        for rule in fewer[name]:
            kept = [[v, j, w] for v, j, w in rule["terms"] if described["variables"][v] != kind or j != i]
            moved = [[v, j - (described["variables"][v] == kind and j > i), w] for v, j, w in kept]
            rule["terms"] = moved
        fewer[name] = [rule for rule in fewer[name] if rule["terms"]]
    return fewer


def _cut(described: Described, factor: int, table: list[float], kind: int, i: int) -> list[float]:
    """Returns a flat table without the entries of a label."""
    roles = described["factors"][factor]["roles"]
    cells = product(*map(range, shape_of(described, factor)))
    return [
        x
        for x, labels in zip(table, cells, strict=True)
        if all(k != kind or j != i for k, j in zip(roles, labels, strict=True))
    ]


def _numbers_of(described: Described) -> Iterator[tuple[tuple[Any, ...], list[float]]]:
    """Yields all lists of costs, and where they are."""
    for v, each in enumerate(described["costs"]):
        yield ("costs", v), each
    for at, (_, table) in enumerate(described["tables"]):
        yield ("tables", at, 1), table
    for f, factor in enumerate(described["factors"]):
        if factor["table"] is not None:
            yield ("factors", f, "table"), factor["table"]


def _at(described: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        described = described[key]
    return described

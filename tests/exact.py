"""Optima and bounds in exact arithmetic: floats are the rational numbers that they are, never rounded.

Sums run over whole numbers, the floats times one common power of two, so that enumerating stays fast.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import reduce
from itertools import product
from typing import Any

import naive
import numpy as np

from hasten.model.problem import Problem

INF = math.inf


def total(problem: Problem, labels: tuple[int, ...]) -> Fraction | float:
    """Returns what a labelling costs, exactly; inf if a label or a table forbids it."""
    terms = [problem.costs_of(v)[i] for v, i in enumerate(labels)]
    terms += [table[tuple(labels[v] for v in scope)] for scope, table in naive.tables_of(problem)]
    return INF if INF in terms else sum((Fraction(float(term)) for term in terms), Fraction(0))


def optimum(problem: Problem) -> Fraction | float:
    """Returns the least exact cost of the valid labellings; inf if there is none."""
    costs = [((v,), np.asarray(problem.costs_of(v), dtype=np.float64)) for v in range(problem.n_variables)]
    costs += naive.tables_of(problem)
    shape = tuple(len(kind) for kind in problem.structure.kinds)
    possible = np.ones(shape, dtype=bool)
    for scope, table in costs:
        possible &= spread(np.isfinite(table), scope, len(shape))
    for row in naive.rows_of(problem):
        possible &= row_holds(row, shape)
    if not possible.any():
        return INF
    unit = common_unit([table for _, table in costs])
    totals = reduce(
        np.add,
        (spread(whole(table, unit), scope, len(shape)) for scope, table in costs),
        np.zeros(shape, dtype=object),
    )
    return Fraction(int(np.broadcast_to(totals, shape)[possible].min()), unit)


def row_holds(row: naive.Row, shape: tuple[int, ...]) -> np.ndarray:
    """Returns for each labelling whether a row holds: its left side exact, its limits with their slack."""
    weights, (lowest, highest) = row[0], naive.limits(row)
    tables = []
    for v, size in enumerate(shape):
        tables.append(np.array([weights.get((v, i), 0.0) for i in range(size)], dtype=np.float64))
    unit = common_unit([*tables, np.array([limit for limit in (lowest, highest) if math.isfinite(limit)])])
    value = np.zeros(shape, dtype=object)
    for v, table in enumerate(tables):
        value = value + spread(whole(table, unit), (v,), len(shape))
    holds = np.ones(shape, dtype=bool)
    if math.isfinite(lowest):
        holds &= np.asarray(value >= int(Fraction(lowest) * unit), dtype=bool)
    if math.isfinite(highest):
        holds &= np.asarray(value <= int(Fraction(highest) * unit), dtype=bool)
    return holds


def common_unit(tables: list[np.ndarray]) -> int:
    """Returns a power of two that makes every finite number of some tables whole."""
    return max(
        (float(x).as_integer_ratio()[1] for table in tables for x in table.ravel() if math.isfinite(x)),
        default=1,
    )


def whole(table: np.ndarray, unit: int) -> np.ndarray:
    """Returns a table's finite numbers times the unit, as Python integers; zero for the others."""
    flat: Any = np.zeros(table.size, dtype=object)
    for at, x in enumerate(table.ravel().tolist()):
        if math.isfinite(x):
            top, bottom = x.as_integer_ratio()
            flat[at] = top * (unit // bottom)
    return flat.reshape(table.shape)


def spread(table: np.ndarray, scope: tuple[int, ...], n_variables: int) -> np.ndarray:
    """Returns a table over some variables as one over all, to be broadcast."""
    order = np.argsort(scope)
    shape = [1] * n_variables
    for axis, v in enumerate(scope):
        shape[v] = table.shape[axis]
    return table.transpose(order).reshape(shape)


def at_most(bound: float, limit: Fraction | float) -> bool:
    """Whether a float is at most an exact number."""
    if math.isinf(bound) or limit == INF:
        return bound <= limit
    return Fraction(bound) <= limit


def dual_value(problem: Problem, message: np.ndarray, multiplier: np.ndarray, possible: np.ndarray) -> Fraction | float:
    """Returns the Lagrangian's value, exactly, over the labels that are still possible; inf if none is left.

    Each variable's least cost with messages and multipliers, each table's least entry without its messages,
    and minus each row's multiplier times the limit that it pulls to.
    """
    graph, rows = problem.graph, naive.rows_of(problem)
    belief = [[Fraction(float(x)) if x < INF else INF for x in problem.costs_of(v)] for v in range(problem.n_variables)]
    tables = dict(tables_by_factor(problem))
    for f, factor in enumerate(problem.structure.factors):
        for slot, v in enumerate(factor.scope):
            at = graph.message_at[graph.scope_first[f] + slot]
            for i in range(len(belief[v])) if f in tables else ():
                belief[v][i] += Fraction(float(message[at + i]))
    value: Fraction | float = Fraction(0)
    for r, (weights, _, _) in enumerate(rows):
        u = Fraction(float(multiplier[r]))
        if u:
            value -= u * Fraction(float(graph.row_most[r] if u > 0 else graph.row_least[r]))
        for (v, i), weight in weights.items():
            belief[v][i] += u * Fraction(float(weight))
    for v, mine in enumerate(belief):
        value += min((x for i, x in enumerate(mine) if possible[graph.first[v] + i]), default=INF)
    for f, table in tables.items():
        scope = problem.structure.factors[f].scope
        least: Fraction | float = INF
        for labels in np.ndindex(table.shape):
            if table[labels] < INF and all(possible[graph.first[v] + i] for v, i in zip(scope, labels, strict=True)):
                taken = sum(
                    Fraction(float(message[graph.message_at[graph.scope_first[f] + slot] + i]))
                    for slot, i in enumerate(labels)
                )
                least = min(least, Fraction(float(table[labels])) - taken)
        value += least
    return value


def tables_by_factor(problem: Problem) -> list[tuple[int, np.ndarray]]:
    """Returns the tables by the number of their factor."""
    numbers = [f for f in range(len(problem.structure.factors)) if problem.graph.table_at[f] >= 0]
    return [(f, table) for f, (_, table) in zip(numbers, naive.tables_of(problem), strict=True)]


def largest_sum(problem: Problem) -> float:
    """Returns the sum of each variable's and table's largest finite magnitude: what rounding scales with."""
    parts = [problem.costs_of(v) for v in range(problem.n_variables)]
    parts += [table for _, table in naive.tables_of(problem)]
    return sum(float(np.abs(part[np.isfinite(part)]).max(initial=0.0)) for part in parts)


def distribution(problem: Problem) -> tuple[np.ndarray, list[Fraction]]:
    """Returns the valid labellings, a row each, and by how much each costs more than the best, exactly."""
    labels = [
        each for each in product(*(range(len(kind)) for kind in problem.structure.kinds)) if naive.valid(problem, each)
    ]
    costs = [total(problem, each) for each in labels]
    best = min(costs, default=Fraction(0))
    return np.array(labels, dtype=np.int64).reshape(len(labels), problem.n_variables), [cost - best for cost in costs]

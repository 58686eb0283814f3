"""The slow, obvious version of each algorithm: it reads the Python objects, never the compiled arrays."""

from __future__ import annotations

import math
from itertools import product
from typing import NamedTuple

import numpy as np

from hasten.kernels.score import slack
from hasten.problem import Problem


class Answer(NamedTuple):
    """An optimum: its cost and its labels, or inf and None where there is none."""

    cost: float
    labels: tuple[int, ...] | None


def solve(problem: Problem) -> Answer:
    """Returns the cheapest valid labelling by enumeration; a tie goes to the first in `product`'s order."""
    best = Answer(math.inf, None)
    tables, rows = tables_of(problem), rows_of(problem)
    costs = [problem.costs_of(v).tolist() for v in range(problem.n_variables)]
    for labels in product(*(range(len(kind)) for kind in problem.structure.kinds)):
        if not all(holds(row, labels) for row in rows):
            continue
        terms = [costs[v][i] for v, i in enumerate(labels)]
        terms += [table[tuple(labels[v] for v in scope)] for scope, table in tables]
        total = math.inf if math.inf in terms else math.fsum(terms)
        if total < best.cost:
            best = Answer(total, labels)
    return best


def cost(problem: Problem, labels: tuple[int, ...]) -> float:
    """Returns what a labelling costs; inf if a label or a table forbids it. Rows do not count."""
    terms = [problem.costs_of(v)[i] for v, i in enumerate(labels)]
    terms += [table[tuple(labels[v] for v in scope)] for scope, table in tables_of(problem)]
    return math.inf if math.inf in terms else math.fsum(terms)


def valid(problem: Problem, labels: tuple[int, ...]) -> bool:
    """Whether no label, table or row forbids a labelling."""
    return cost(problem, labels) < math.inf and all(holds(row, labels) for row in rows_of(problem))


Table = tuple[tuple[int, ...], np.ndarray]
Row = tuple[dict[tuple[int, int], float], float, float]


def tables_of(problem: Problem) -> list[Table]:
    """Returns the scope and the table of each factor that has one, the problem's own before the schema's."""
    tables = []
    for f, factor in enumerate(problem.structure.factors):
        table = factor.kind.table
        if f in problem.structure._own_tables:  # where they are, only the graph knows
            at = problem.graph.table_at[f]
            table = problem.table[at : at + factor.kind.size].reshape(factor.kind.shape)
        if table is not None:
            tables.append((factor.scope, table))
    return tables


def rows_of(problem: Problem) -> list[Row]:
    """Returns each rule's weights by variable and label, and its limits."""
    kinds = problem.structure.kinds
    rows: list[Row] = []
    for rule in problem.structure.schema.rules.values():
        by_kind = {
            (v, i): weight
            for v, kind in enumerate(kinds)
            for i, weight in enumerate(rule.weights.get(kind.index, ()))
        }
        rows.append((by_kind, rule.low, rule.high))
    for rule in problem.structure.rules:
        weights: dict[tuple[int, int], float] = {}
        for v, label, weight in rule.terms:
            key = v, kinds[v].labels.index(label)
            weights[key] = weights.get(key, 0.0) + weight
        rows.append((weights, rule.low, rule.high))
    return rows


def holds(row: Row, labels: tuple[int, ...]) -> bool:
    """Whether a labelling satisfies a row."""
    weights, low, high = row
    value = math.fsum(weights.get((v, i), 0.0) for v, i in enumerate(labels))
    return low - slack(low) <= value <= high + slack(high)

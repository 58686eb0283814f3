"""Problems of two labels a variable, joined two by two: of every magnitude, with ties and infinities."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from hasten.model.problem import Problem
from hasten.model.schema import Schema

INF = float("inf")
NUMBERS: dict[str, Any] = {
    "whole": lambda rng, n: rng.integers(-3, 4, n).astype(float),
    "normal": lambda rng, n: rng.normal(size=n),
    "same": lambda rng, n: np.full(n, 1.25),
    "zero": lambda rng, n: np.zeros(n),
    "tenths": lambda rng, n: rng.integers(-9, 10, n) / 10,
    "near": lambda rng, n: 1000 * rng.choice([-1.0, 1.0], n) + rng.normal(size=n) * 1e-4,
    "spread": lambda rng, n: rng.normal(size=n) * 10.0 ** rng.uniform(-9, 12, n),
    "cancelling": lambda rng, n: rng.choice([1e12, -1e12, 1e12 + 0.5, -1e12 - 0.25, 1.0, -1.0, 1e-9, 0.0], n),
    "denormal": lambda rng, n: rng.integers(-4, 5, n) * 5e-324,
    "tiny": lambda rng, n: rng.normal(size=n) * 1e-300,
    "large": lambda rng, n: rng.normal(size=n) * 1e290,
}


def draw_problem(seed: int, numbers: str, agreeing: bool, rules: bool = True) -> Problem:
    """Draws up to eight variables of one or two labels, joined two by two, with rules; `agreeing` after some flips."""
    rng = np.random.default_rng(seed)
    schema = Schema()
    kinds = [schema.variable("one", ["a"]), schema.variable("two", ["a", "b"])]
    pairs = {}
    for left, right in ((0, 0), (0, 1), (1, 0), (1, 1)):
        pairs[left, right] = schema.factor(f"{left}{right}", left=kinds[left], right=kinds[right])
    alone = schema.factor("alone", of=kinds[1])
    shape = schema.structure()
    n = int(rng.integers(1, 9))
    of = [int(rng.random() < 0.85) for _ in range(n)]
    flips = rng.integers(0, 2, n)
    for kind in of:
        shape.add(kinds[kind])
    tables = {}
    for u, v in combinations(range(n), 2):
        for _ in range(rng.choice([0, 1, 1, 2])):
            left, right = (u, v) if rng.random() < 0.5 else (v, u)
            f = shape.connect(pairs[of[left], of[right]], left=left, right=right)
            table = NUMBERS[numbers](rng, 4).reshape(2, 2)
            table[rng.random((2, 2)) < rng.choice([0.0, 0.0, 0.15, 0.5])] = INF
            if agreeing and table[0, 0] + table[1, 1] > table[0, 1] + table[1, 0]:
                table = table[::-1]
            if flips[left] != flips[right] and agreeing:
                table = table[::-1]
            tables[f] = np.ascontiguousarray(table[: of[left] + 1, : of[right] + 1])
    for v in range(n):
        if of[v] and rng.random() < 0.2:
            tables[shape.connect(alone, of=v)] = NUMBERS[numbers](rng, 2)
    if rules and not agreeing:
        for r in range(rng.integers(0, 3)):
            some = rng.choice(n, min(n, int(rng.integers(1, 4))), replace=False)
            weights = rng.choice([1.0, -1.0, 0.1, 0.2, 3.0, -0.3], len(some))
            terms = [(int(v), shape.kinds[v].labels[-1], float(w)) for v, w in zip(some, weights, strict=True)]
            shape.rule(f"rule {r}", terms, at_most=float(rng.choice([0.0, 1.0, 0.3, 0.1 + 0.2])))
    costs = NUMBERS[numbers](rng, shape.n_labels)
    costs[rng.random(len(costs)) < rng.choice([0.0, 0.0, 0.1])] = INF
    return shape.problem(costs, tables=tables)

"""Random small programs over every kind of row, and their optima by trying everything."""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from hasten.programs.statement import Builder, Statement

ROWS = ("partition", "at most one", "cover", "knapsack", "range", "decimals")
LOGIC = ("implication", "big M", "indicator", "and", "or")
ODD = ("empty", "free", "twice", "negated", "single")
KINDS = ROWS + LOGIC + ODD


def make(rng: np.random.Generator, n_columns: int = 9, products: bool = True) -> Statement:
    """Draws a program with a few rows of any kind and, with `products`, what no row can say; most have answers."""
    n = int(rng.integers(2, n_columns + 1))
    build = Builder(name="random", maximize=bool(rng.random() < 0.4), constant=float(np.round(rng.normal() * 3, 1)))
    for j in range(n):
        low, high = 0.0, 1.0
        if rng.random() < 0.12:
            low = -float(rng.integers(0, 3))
            high = low + float(rng.integers(0, 4))
        elif rng.random() < 0.05:
            low = high = float(rng.integers(0, 2))
        build.column(f"x[{j},{'abc'[j % 3]}]", low, high, True, float(np.round(rng.normal(), 2)))
    for _ in range(int(rng.integers(1, 9))):
        add_row(build, str(rng.choice(KINDS)), rng)
    if products and rng.random() < 0.2:
        for _ in range(int(rng.integers(1, 4))):
            build.product(int(rng.integers(n)), int(rng.integers(n)), float(np.round(rng.normal(), 2)))
    if products and not build.maximize and rng.random() < 0.25:
        for _ in range(int(rng.integers(1, 3))):
            add_table(build, rng)
    return build.statement()


def add_table(build: Builder, rng: np.random.Generator) -> None:
    """Adds a table of costs, some of which forbid, over a few columns."""
    scope = rng.choice(len(build.columns), int(rng.integers(1, min(3, len(build.columns)) + 1)), replace=False).tolist()
    shape = [int(build.high[j] - build.low[j]) + 1 for j in scope]
    costs = np.round(rng.normal(size=shape), 2)
    build.table(scope, np.where(rng.random(shape) < 0.25, np.inf, costs))


def add_row(build: Builder, kind: str, rng: np.random.Generator) -> None:
    """Adds a row of some kind."""
    n = len(build.columns)
    chosen = rng.choice(n, int(rng.integers(1, min(n, 7) + 1)), replace=False).tolist()
    k = len(chosen)
    ones, whole = [1.0] * k, rng.integers(-5, 6, k).astype(float).tolist()
    reach = float(np.abs(whole).sum())
    binary = [j for j in chosen if build.low[j] == 0 and build.high[j] == 1]
    if kind == "partition":
        build.row(chosen, ones, 1, 1, "one of")
    elif kind == "at most one":
        build.row(chosen, ones, -math.inf, 1)
    elif kind == "cover":
        build.row(chosen, ones, 1, math.inf)
    elif kind == "knapsack":
        build.row(chosen, np.abs(whole).tolist(), -math.inf, float(rng.integers(1, int(reach) + 2)))
    elif kind == "range":
        low = float(rng.integers(-4, 2))
        build.row(chosen, whole, low, low + float(rng.integers(0, 6)))
    elif kind == "decimals":
        build.row(
            chosen, np.round(rng.normal(size=k), int(rng.integers(1, 4))).tolist(), -math.inf, round(rng.random(), 2)
        )
    elif kind == "implication" and k >= 2:
        build.row(chosen[:2], [1.0, -1.0], -math.inf, 0)
    elif kind == "big M":
        build.row(chosen, [-1e6, *ones[1:]], -math.inf, float(rng.integers(0, 3)))
    elif kind == "indicator" and len(binary) >= 2:
        rest = [j for j in chosen if j != binary[0]]
        limits = (
            (-math.inf, float(rng.integers(-1, 3))) if rng.random() < 0.5 else (float(rng.integers(-1, 2)), math.inf)
        )
        build.indicator([(binary[0], int(rng.integers(2)))], rest, whole[: len(rest)], *limits, "if")
    elif kind in ("and", "or") and len(binary) >= 3:
        (build.conjunction if kind == "and" else build.disjunction)(binary[0], binary[1:], kind)
    elif kind == "empty":
        build.row([], [], -1.0, 1.0)
    elif kind == "free":
        build.row(chosen, whole, -math.inf, math.inf)
    elif kind == "twice":
        for _ in range(2):
            build.row([*chosen, chosen[0]], [*ones, -1.0], -math.inf, 2.0, "twice")
    elif kind == "negated":
        build.row(chosen, [-1.0] * k, -1.0, math.inf if rng.random() < 0.5 else -1.0)
    elif kind == "single":
        build.row(chosen[:1], [2.0], -math.inf, float(rng.integers(0, 4)))


def best(program: Statement) -> float:
    """Returns the best objective by trying all values; inf, or -inf where it is maximised, if there is no answer."""
    sign = -1.0 if program.maximize else 1.0
    ranges = [range(int(low), int(high) + 1) for low, high in zip(program.low, program.high, strict=True)]
    points = np.array(list(product(*ranges)), dtype=np.float64).reshape(-1, program.n_columns)
    matrix = np.zeros((program.n_rows, program.n_columns))
    row = np.arange(program.n_rows).repeat(np.diff(program.row_first))
    matrix[row, program.row_column] = program.row_weight
    points = points[held(program, points @ matrix.T).all(axis=1)]
    values = [sign * program.value(x) for x in points]
    return sign * min(values, default=math.inf)


def keeps(program: Statement, x: np.ndarray) -> bool:
    """Whether values keep every row."""
    row = np.arange(program.n_rows).repeat(np.diff(program.row_first))
    sums = np.bincount(row, program.row_weight * x[program.row_column], program.n_rows)
    return bool(held(program, sums).all())


def held(program: Statement, sums: np.ndarray) -> np.ndarray:
    """Tells of each row whether its sum is within its limits, with a solver's slack."""
    slack_low, slack_high = (1e-6 * np.maximum(1, np.abs(each)) for each in (program.row_low, program.row_high))
    return (sums >= program.row_low - slack_low) & (sums <= program.row_high + slack_high)


def check(program: Statement, x: np.ndarray) -> None:
    """Asserts that values are within bounds, whole, and break no row."""
    assert (x >= program.low).all()
    assert (x <= program.high).all()
    assert (x[program.whole] == np.rint(x[program.whole])).all()
    assert keeps(program, x)

"""A row's multiplier goes where the bound is highest, and there to the middle; whole rows have whole limits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opened import OpenedModule

from hasten.bench.families import FAMILIES
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.proof.certifier import Certifier
from hasten.proof.sweep import multipliers as rows
from hasten.solvers import make_solver

INF = math.inf
r = OpenedModule(rows)


def counting(n: int, limits: dict[str, float], costs: np.ndarray, labels: int = 3) -> Problem:
    """Returns `n` variables under one rule that counts how many have label 0."""
    schema = Schema()
    kind = schema.variable("kind", [str(i) for i in range(labels)])
    shape = schema.structure()
    shape.rule("count", [(shape.add(kind), "0") for _ in range(n)], **limits)
    return shape.problem(costs)


@st.composite
def counted(draw: Any) -> tuple[Problem, float]:
    """Draws a rule that counts, with costs of any kind, and the multiplier to start from."""
    n = draw(st.integers(1, 6))
    k = draw(st.integers(0, n + 1))
    limits = draw(st.sampled_from([{"at_most": k}, {"at_least": k}, {"exactly": k}, {"at_least": k, "at_most": k + 1}]))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    costs = rng.integers(-3, 4, 3 * n).astype(float) if draw(st.booleans()) else rng.normal(size=3 * n) * 3
    if draw(st.booleans()):
        costs[rng.random(3 * n) < 0.2] = INF
    start = draw(st.sampled_from([0.0, 1.5, -2.0]))
    if "exactly" not in limits and len(limits) == 1:
        start = abs(start) if "at_most" in limits else -abs(start)
    return counting(n, limits, costs), start


def height(problem: Problem, u: float) -> float:
    """Returns the bound at a multiplier, from scratch."""
    low, high = problem.graph.row_low[0], problem.graph.row_high[0]
    limit = 0.0 if u == 0 else high if u > 0 else low
    cells = problem.cost.reshape(-1, 3).copy()
    cells[:, 0] += u
    return float(cells.min(axis=1).sum() - u * limit)


def test_a_count_that_no_labelling_reaches_leaves_the_bound_as_it_is() -> None:
    problem = counting(1, {"exactly": 2}, np.array([-0.4, 0.4, 0.5]))
    belief, multiplier, scratch = problem.cost.copy(), np.zeros(1), np.zeros(rows.SPACE + rows.NOTED)
    r.update_rows(problem.graph, belief, multiplier, scratch)
    assert multiplier.tolist() == [0.0]
    assert height(problem, 0.0) > height(problem, 0.8)  # which was chosen once


@given(counted())
def test_no_multiplier_is_better_than_the_one_chosen(drawn: tuple[Problem, float]) -> None:
    problem, start = drawn
    graph, low, high = problem.graph, problem.graph.row_low[0], problem.graph.row_high[0]
    cells = problem.cost.reshape(-1, 3)
    if not np.isfinite(cells.min(axis=1)).all():
        return
    belief, multiplier = problem.cost.copy(), np.array([start])
    belief[::3] += start
    r.update_rows(graph, belief, multiplier, np.zeros(r.SPACE + r.NOTED * 6))
    u = float(multiplier[0])
    assert u <= 0 or high < INF
    assert u >= 0 or low > -INF
    with np.errstate(invalid="ignore"):
        turns = cells[:, 1:].min(axis=1) - cells[:, 0]
    tried = [
        0.0,
        *(t for t in turns.tolist() if math.isfinite(t) and (t <= 0 or high < INF) and (t >= 0 or low > -INF)),
    ]
    best = max(height(problem, t) for t in tried)
    feasible = np.isfinite(cells[:, 0]).sum() >= low and np.isinf(cells[:, 1:].min(axis=1)).sum() <= high
    if feasible:
        assert height(problem, u) >= best - 1e-9
    finite = np.isfinite(belief)
    assert belief[finite] == pytest.approx((problem.cost + u * (np.arange(len(belief)) % 3 == 0))[finite], abs=1e-9)


@st.composite
def weighed(draw: Any) -> tuple[Problem, np.ndarray, float]:
    """Draws a rule in which the first two labels of each variable have one weight, the weights, and where to start."""
    n, rng = draw(st.integers(1, 6)), np.random.default_rng(draw(st.integers(0, 9999)))
    weights = rng.choice([-2.5, -1.0, 1.0, 2.0], n)
    limit = float(rng.integers(-4, 5)) / 2
    limits = draw(st.sampled_from([{"at_most": limit}, {"at_least": limit}, {"at_least": limit, "at_most": limit + 1}]))
    costs = rng.integers(-3, 4, 3 * n).astype(float) if draw(st.booleans()) else rng.normal(size=3 * n) * 3
    costs[rng.random(3 * n) < 0.1] = INF
    start = draw(st.sampled_from([0.0, 1.5, -2.0, 4.0]))
    if len(limits) == 1:
        start = abs(start) if "at_most" in limits else -abs(start)
    schema = Schema()
    kind = schema.variable("kind", ["a", "b", "c"])
    shape = schema.structure()
    variables = [shape.add(kind) for _ in range(n)]
    n_inside = draw(st.integers(1, 2))
    terms = [(v, "ab"[i], float(weights[v])) for v in variables for i in range(n_inside)]
    shape.rule("weighed", terms, **limits)
    inside = np.zeros((n, 3))
    inside[:, :n_inside] = weights[:, None]
    return shape.problem(costs), inside, start


@given(weighed())
def test_no_multiplier_is_better_than_the_one_walked_to(drawn: tuple[Problem, np.ndarray, float]) -> None:
    problem, inside, start = drawn
    graph, low, high = problem.graph, problem.graph.row_least[0], problem.graph.row_most[0]
    costs = problem.cost.reshape(-1, 3)
    belief, multiplier = (costs + start * inside).ravel(), np.array([start])
    r.update_rows(graph, belief, multiplier, np.zeros(r.SPACE + r.NOTED * len(costs)))

    def at(u: float) -> float:
        limit = 0.0 if u == 0 else high if u > 0 else low
        return float((costs + u * inside).min(axis=1).sum() - u * limit)

    u = float(multiplier[0])
    assert u <= 0 or high < INF
    assert u >= 0 or low > -INF
    assert belief == pytest.approx((costs + u * inside).ravel(), abs=1e-9)
    weight = inside[:, 0]
    with np.errstate(invalid="ignore"):
        turns = (np.where(inside == 0, costs, INF).min(axis=1) - np.where(inside != 0, costs, INF).min(axis=1)) / weight
    tried = [t for t in (0.0, start, *turns.tolist()) if math.isfinite(t)]
    sums = [{float(w) for w, c in zip(*pair, strict=True) if c < INF} for pair in zip(inside, costs, strict=True)]
    if all(sums) and sum(map(min, sums)) <= high and sum(map(max, sums)) >= low:  # else it rises without end
        assert at(u) >= max(at(t) for t in tried if (t <= 0 or high < INF) and (t >= 0 or low > -INF)) - 1e-9


def test_a_flat_bound_is_left_in_the_middle() -> None:
    schema = Schema()
    kind = schema.variable("kind", ["a", "b"])
    shape = schema.structure()
    shape.rule("needs", [(shape.add(kind), "a", 1.0), (shape.add(kind), "a", -1.0)], at_most=0.0)
    problem, multiplier = shape.problem([-3.0, 0.0, 1.0, 0.0]), np.zeros(1)
    belief = problem.cost.copy()
    r.update_rows(problem.graph, belief, multiplier, np.zeros(r.SPACE + r.NOTED * 2))
    assert multiplier[0] == 2.0  # anything from 1, where the second pays for itself, to 3, where the first gives up
    r.update_rows(problem.graph, belief, multiplier, np.zeros(r.SPACE + r.NOTED * 2))
    assert multiplier[0] == 2.0


def test_the_multiplier_is_in_the_middle_of_the_best_ones() -> None:
    problem = counting(2, {"exactly": 1}, np.array([1.0, 0.0, 9.0, 4.0, 0.0, 9.0]))
    belief, multiplier = problem.cost.copy(), np.zeros(1)
    r.update_rows(problem.graph, belief, multiplier, np.zeros(r.SPACE + r.NOTED * 2))
    assert multiplier[0] == -2.5  # anything from -4 to -1 makes one of the two choose label 0
    assert belief.tolist() == [-1.5, 0.0, 9.0, 1.5, 0.0, 9.0]


@pytest.mark.parametrize(
    ("weight", "limit", "most"),
    [(1.0, 2.0, 2.0), (1.0, 2.7, 2.0), (1.0, 3.0 - 1e-9, 3.0), (2.0, 3.0, 3.0), (0.5, 2.0, 2.0 + 2e-6)],
)
def test_limits_of_whole_weights_are_whole(weight: float, limit: float, most: float) -> None:
    schema = Schema()
    kind = schema.variable("kind", ["a", "b"])
    shape = schema.structure()
    shape.rule("few", [(shape.add(kind), "a", weight) for _ in range(4)], at_most=limit)
    shape.rule("many", [(v, "b", weight) for v in range(4)], at_least=-limit)
    assert shape.graph.row_most.tolist() == [most, INF]
    assert shape.graph.row_least.tolist() == [-INF, -most]
    assert shape.graph.row_counts.tolist() == 2 * [int(weight == 1.0)]


@pytest.mark.parametrize(("family", "size"), [("assignment", 12), ("assignment", 20), ("matching", 12)])
def test_assignments_are_proved_by_sweeping(family: str, size: int) -> None:
    problems, solver = FAMILIES[family].problems(size, 20), make_solver("highs")
    report = Certifier(max_nodes=0).report(problems)
    assert report.solutions.proved.mean() > 0.8
    for p, problem in enumerate(problems[:5]):
        if report.solutions.proved[p]:
            assert report.solutions.cost[p] == pytest.approx(solver.solve(problem).cost, rel=1e-6)


@given(st.integers(0, 9999), st.booleans())
def test_what_is_noted_change_by_change_is_what_is_noted_anew(seed: int, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    graph = counting(1, {"at_most": 1}, np.zeros(n), labels=n).graph
    belief = rng.integers(-2, 3, n).astype(float) if ties else rng.normal(size=n)
    belief[rng.random(n) < 0.2] = INF
    noted, anew = np.zeros(r.SPACE + r.NOTED), np.zeros(r.SPACE + r.NOTED)
    r.note(graph, 0, belief, noted)
    for _ in range(8):
        at = int(rng.integers(n))
        before = belief[at]
        belief[at] += rng.integers(-2, 3) if ties else rng.normal()
        r.note_change(graph, 0, at, before, belief, noted)
        r.note(graph, 0, belief, anew)
        assert noted[r.SPACE : r.SPACE + 2].tolist() == anew[r.SPACE : r.SPACE + 2].tolist()
        chosen = int(noted[r.SPACE + 2])
        assert chosen < 0 if belief.min() == INF else belief[chosen] == belief.min()

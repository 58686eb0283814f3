"""Thin graphs are eliminated by large tables where branching takes longer: exactly, whatever their costs."""

from __future__ import annotations

import math

import exact
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import small_problems

from hasten.model.batch import ONLY, arrays_of
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.model.solution import Status
from hasten.model.structure import Structure
from hasten.proof.buckets import eliminate_buckets
from hasten.proof.buckets.plan import full_elimination, plan_buckets
from hasten.proof.certifier import Certifier
from hasten.proof.outcome import BEST, BOUND, INFEASIBLE, NOTHING_FIXED, OPEN, OUTCOME, PROVED, UNFIXED, Fixing
from hasten.proof.report import STEPS, Step
from hasten.support.clock import NEVER_STOP, STOP_ALL

INF = math.inf


def eliminated(problem: Problem, fixed: np.ndarray | None = None) -> tuple[int, float, float, np.ndarray]:
    """Returns how eliminating a problem ends, what it found, its bound and its labels."""
    plan = plan_buckets(problem.graph, fixed)
    assert plan is not None
    labels = np.empty(len(problem.graph.order), dtype=np.int64)
    values, facts = np.array([[INF], [-INF], [0.0]]), np.full((5, 1), OPEN)
    fixing = NOTHING_FIXED if fixed is None else Fixing(fixed, np.zeros(1))
    eliminate_buckets((*arrays_of(problem),), ONLY, (labels, values, facts), plan.addresses, (*fixing,), NEVER_STOP)
    return int(facts[OUTCOME, 0]), float(values[BEST, 0]), float(values[BOUND, 0]), labels


def assert_optimal(problem: Problem, found: tuple[int, float, float, np.ndarray]) -> None:
    outcome, cost, bound, labels = found
    optimum = exact.optimum(problem)
    assert exact.at_most(bound, optimum)
    if outcome == INFEASIBLE:
        assert optimum == INF
    elif outcome == PROVED:
        assert cost == problem.total(labels)
        assert cost == pytest.approx(float(optimum), rel=1e-6, abs=1e-6)
    else:
        assert bound == -INF  # sums may overflow


@given(small_problems(rules=False), st.sampled_from([1.0, 1e-300, 1e-7, 1e12, 1e290, 1e306]))
@settings(max_examples=150)
def test_all_is_eliminated_exactly(problem: Problem, spread: float) -> None:
    scaled = (
        problem.alike(problem.cost[None] * spread)[0] if spread < 1e300 or np.isfinite(problem.cost).all() else problem
    )
    assert_optimal(scaled, eliminated(scaled))


@given(small_problems(rules=False), st.randoms(use_true_random=False))
@settings(max_examples=100)
def test_fixed_variables_keep_their_labels(problem: Problem, draw: object) -> None:
    sizes, cost = np.diff(problem.graph.first), problem.cost.copy()
    fixed = np.array([draw.choice([UNFIXED, draw.randrange(size)]) for size in sizes], dtype=np.int64)  # type: ignore[attr-defined]
    for v in np.flatnonzero(fixed != UNFIXED).tolist():
        first = problem.graph.first[v]
        others = np.arange(sizes[v]) != fixed[v]
        cost[first : first + sizes[v]][others] = INF
    found = eliminated(problem, fixed)
    assert_optimal(problem.alike(cost[None])[0], found)
    if found[0] == PROVED:
        assert (found[3][fixed != UNFIXED] == fixed[fixed != UNFIXED]).all()


def grid(height: int, width: int, n_labels: int = 2) -> Structure:
    """Returns cells that each have a table with the next, across and down."""
    schema = Schema()
    cell = schema.variable("cell", [f"label{i}" for i in range(n_labels)])
    pair = schema.factor("pair", one=cell, other=cell)
    shape = schema.structure()
    for _ in range(height * width):
        shape.add(cell)
    for v in range(height * width):
        if (v + 1) % width:
            shape.connect(pair, one=v, other=v + 1)
        if v + width < height * width:
            shape.connect(pair, one=v + width, other=v)
    return shape


def glass(shape: Structure, rng: np.random.Generator, field: float) -> Problem:
    """Returns a spin glass: neighbours want to be alike, or to differ, as it happens."""
    tables = {f: j * np.array([[-1.0, 1.0], [1.0, -1.0]]) for f, j in enumerate(rng.normal(size=len(shape.factors)))}
    return shape.problem(field * rng.normal(size=2 * shape.n_variables), tables=tables)


def by_rows(problem: Problem, height: int, width: int) -> float:
    """Returns the least cost of a grid of two labels, row by row: what each labelling of a row costs at least."""
    rows = np.arange(2**width)[:, None] >> np.arange(width) & 1
    tables = {
        factor.scope: problem.table[at : at + 4].reshape(2, 2)
        for factor, at in zip(problem.structure.factors, problem.graph.table_at.tolist(), strict=True)
    }
    least = np.zeros(len(rows))
    for r in range(height):
        cells = range(r * width, (r + 1) * width)
        own = sum(problem.cost[2 * v : 2 * v + 2][rows[:, x]] for x, v in enumerate(cells))
        own = own + sum(tables[v, v + 1][rows[:, x], rows[:, x + 1]] for x, v in enumerate(cells[:-1]))
        if r:
            between = sum(tables[v, v - width][rows[:, x][:, None], rows[:, x]] for x, v in enumerate(cells))
            least = (least + between).min(axis=1)
        least = least + own
    return float(least.min())


def last_step(problem: Problem) -> Step:
    """Returns the step that ended a proof."""
    return STEPS[Certifier().report([problem]).step[0] - 1]


def test_a_spin_glass_that_branching_leaves_open_is_eliminated() -> None:
    shape, rng = grid(9, 9), np.random.default_rng(0)
    problems = [glass(shape, rng, field) for field in (0.0, 0.0, 0.3, 1.0)]
    together, steps = Certifier()(problems), set()
    for problem, among in zip(problems, together, strict=True):
        found = Certifier()(problem)
        assert found.proved
        assert found.cost == pytest.approx(by_rows(problem, 9, 9))
        assert (found.cost, found.bound, found.source) == (among.cost, among.bound, among.source)
        steps.add(last_step(problem))
    assert Step.ELIMINATE in steps


def test_branching_is_not_given_up_where_it_is_quick() -> None:
    shape, rng = grid(9, 9), np.random.default_rng(0)
    problem = glass(shape, rng, 20.0)
    assert last_step(problem) is not Step.ELIMINATE


def test_large_tables_over_more_labels_are_read_as_lists_of_sums_are() -> None:
    shape, rng = grid(5, 5, 3), np.random.default_rng(1)
    for forbidden in (0.0, 0.2):
        tables = {f: rng.normal(size=(3, 3)) for f in range(len(shape.factors))}
        for table in tables.values():
            table[rng.random((3, 3)) < forbidden] = INF
        problem = shape.problem(rng.normal(size=75), tables=tables)
        listed, (outcome, cost, bound, _) = Certifier(max_join=3**8)(problem), eliminated(problem)
        assert (outcome == PROVED) == (listed.values is not None)
        assert (cost, bound) == (pytest.approx(listed.cost), pytest.approx(listed.bound))


def test_what_is_dense_is_not_thin() -> None:
    schema = Schema()
    kind = schema.variable("kind", list("abcde"))
    pair = schema.factor("pair", one=kind, other=kind).set_table(np.random.default_rng(0).normal(size=(5, 5)))
    shape = schema.structure()
    for v in range(9):
        shape.add(kind)
        for u in range(v):
            shape.connect(pair, one=u, other=v)
    assert full_elimination(shape.compiled) is None


def test_what_takes_too_many_sums_is_not_planned() -> None:
    rng = np.random.default_rng(0)
    assert plan_buckets(glass(grid(5, 5), rng, 1.0).graph, most_sums=100) is None
    assert full_elimination(glass(grid(40, 40), rng, 1.0).structure.compiled) is None


def test_an_elimination_that_is_stopped_keeps_what_is_known() -> None:
    problem = glass(grid(9, 9), np.random.default_rng(0), 0.0)
    plan = full_elimination(problem.structure.compiled)
    labels, stop_flag = np.zeros(81, dtype=np.int64), NEVER_STOP.copy()
    values, facts = np.array([[5.0], [-500.0], [0.0]]), np.full((5, 1), OPEN)
    stop_flag[STOP_ALL] = 1
    assert plan is not None
    eliminate_buckets(
        (*arrays_of(problem),), ONLY, (labels, values, facts), plan.addresses, (*NOTHING_FIXED,), stop_flag
    )
    assert values[[BEST, BOUND], 0].tolist() == [5.0, -500.0]
    assert Certifier(call_limit=0.0)(problem).status in (Status.NO_TIME, Status.TIME_LIMIT)


def test_a_trace_tells_of_it() -> None:
    problem = glass(grid(9, 9), np.random.default_rng(0), 0.0)
    assert any("large tables" in step.text for step in Certifier().trace(problem).steps)


@pytest.mark.parametrize("least", [0, 1])
@pytest.mark.parametrize("n", [4, 14])
def test_a_rule_that_counts_nothing_still_has_to_hold(least: int, n: int) -> None:
    schema = Schema()
    spin = schema.variable("spin", ["up", "down"])
    schema.variable("absent", ["yes", "no"])
    pair = schema.factor("pair", left=spin, right=spin)
    schema.rule("some", at_least=least, absent="yes")
    shape, signs = schema.structure(), np.array([1.0, -1.0])
    for v in range(n):
        shape.add(spin)
        for u in range(v):
            shape.connect(pair, left=u, right=v)
    tables = {f: np.outer(signs, signs) * signs[f % 2] for f in range(len(shape.factors))}
    costs = np.random.default_rng(0).normal(size=2 * n) * 200.0  # so strong that all labels are fixed
    problem = shape.problem(costs, tables=tables)
    for answer in (Certifier()(problem), *Certifier()([problem, problem])):
        assert answer.status is (Status.INFEASIBLE if least else Status.PROVED)

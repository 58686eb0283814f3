"""Mending gives a bound that holds in exact arithmetic, and labels that cost it where nothing is left broken."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import exact
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opened import OpenedModule, opened
from scratch import scratch_for
from strategies import entity_relation, small_problems

from hasten.bench.families import FAMILIES
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.model.solution import Solutions, Status
from hasten.model.structure import Structure
from hasten.proof import look as repair
from hasten.proof import outcome as terms
from hasten.proof.certifier import Certifier
from hasten.proof.report import Step
from hasten.solvers import make_solver
from hasten.tasks.entity_relation.task import EntityRelationTask

INF = math.inf
m = OpenedModule(repair)
cheapest = opened(terms.cheapest)
MAGNITUDES = ("drawn", "mixed", "cancelling", "near", "tiny", "large")


@st.composite
def hard_problems(draw: Any) -> Problem:
    """Draws a problem whose tables only forbid, with costs of any size."""
    problem = draw(small_problems(soft=False, rules=False, max_factors=8))
    rng, magnitude = np.random.default_rng(draw(st.integers(0, 99))), draw(st.sampled_from(MAGNITUDES))
    cost, finite = problem.cost.copy(), np.isfinite(problem.cost)
    n = int(finite.sum())
    if magnitude == "mixed":
        cost[finite] *= 10.0 ** rng.uniform(-9, 12, n)
    elif magnitude == "cancelling":
        cost[finite] = rng.choice([1e12, -1e12, 1e12 + 0.5, -1e12 - 0.25, 1.0, -1.0, 1e-9, 0.0], n)
    elif magnitude == "near":
        cost[finite] = 1000 * rng.choice([-1.0, 1.0], n) + rng.normal(size=n) * 1e-4
    elif magnitude == "tiny":
        cost[finite] *= 1e-300
    elif magnitude == "large":
        cost[finite] *= 1e270
    return problem.structure.problem(cost, tables=dict(exact.tables_by_factor(problem)))


def run(problem: Problem, max_broken: int = 1000) -> tuple[float, float, np.ndarray, repair.Repair]:
    """Mends the cheapest labels; returns the cost, the bound, the labels and the scratch space."""
    graph = problem.graph
    scratch = scratch_for(graph)
    labels = np.zeros(problem.n_variables, dtype=np.int64)
    _, size = cheapest(graph, problem.cost, problem.table, labels)
    cost, bound = m.repair(graph, problem.cost, problem.table, size, max_broken, scratch, labels)
    return cost, bound, labels, scratch


@given(hard_problems())
def test_the_bound_holds_in_exact_arithmetic(problem: Problem) -> None:
    cost, bound, labels, scratch = run(problem)
    optimum = exact.optimum(problem)
    assert exact.at_most(bound, optimum)
    if bound > -INF:
        none = np.zeros(0)
        value = exact.dual_value(problem, scratch.message, none, scratch.belief < INF)
        assert exact.at_most(bound, value)
        assert exact.at_most(float(value), optimum) or float(value) == pytest.approx(float(optimum))
        if np.array_equal(scratch.belief < INF, problem.cost < INF):  # a label that left may have been a factor's least
            size = max(exact.largest_sum(problem), float(np.abs(scratch.message).max(initial=0)))
            assert value - bound <= 1e-11 * size
    if cost < INF:
        assert abs(cost - exact.total(problem, tuple(labels.tolist()))) <= 1e-14 * exact.largest_sum(problem)
        assert optimum < INF


@given(hard_problems(), st.sampled_from([0, 1, 2, 1000]))
def test_nothing_is_left_in_the_scratch_space(problem: Problem, max_broken: int) -> None:
    *_, scratch = run(problem, max_broken)
    assert not scratch.has_messages.any()
    assert not scratch.waits.any()


@given(hard_problems(), hard_problems())
def test_used_scratch_space_is_as_good_as_new(one: Problem, other: Problem) -> None:
    """The certifier answers many problems in one scratch space: the second must not see the first."""
    answers = Certifier()([one, other, one])
    assert (answers.cost[0], answers.bound[0]) == (answers.cost[2], answers.bound[2])
    assert answers.bound[1] == Certifier()(other).bound


def peaked(n_entities: int, n: int, noise: float) -> list[Problem]:
    """Returns problems whose cheapest labels are nearly valid: every entity a person, no relations, and noise."""
    shape, rng = entity_relation(n_entities), np.random.default_rng(n_entities)
    planted = np.concatenate([np.tile([0.0, 3.0, 3.0, 3.0], n_entities), np.ones(shape.n_labels - 4 * n_entities) * 2])
    planted[4 * n_entities + 5 :: 6] = 0.0
    return [shape.problem(planted + noise * rng.normal(size=shape.n_labels)) for _ in range(n)]


@pytest.mark.parametrize("n_entities", [3, 5, 8])
def test_few_broken_constraints_are_mended(n_entities: int) -> None:
    solver = make_solver("highs")
    n_broken, n_mended = 0, 0
    for problem in peaked(n_entities, 40, 0.8):
        cost, bound, labels, scratch = run(problem)
        n_broken += bool(np.abs(scratch.message).max())
        if cost - bound <= 1e-6:
            n_mended += bool(np.abs(scratch.message).max())
            assert problem.check(labels).valid
            assert cost == pytest.approx(solver.solve(problem).cost)
    assert n_broken > 10
    assert n_mended > 0.8 * n_broken


def sentence(n_entities: int, pairs_first: bool) -> Structure:
    """Returns entities that all pairs of relations are between, those of a pair joined before or after they are."""
    task = EntityRelationTask()
    shape, factors = task.schema.structure(), task.schema.factors
    entities = [shape.add(task.schema.variables["entity"]) for _ in range(n_entities)]
    relation = task.schema.variables["relation"]
    between = {pair: (shape.add(relation), shape.add(relation)) for pair in combinations(entities, 2)}
    for turn in (pairs_first, not pairs_first):
        for (left, right), (forward, backward) in between.items():
            if turn:
                shape.connect(factors["both"], forward=forward, backward=backward)
                continue
            for source, there, target in ((left, forward, right), (right, backward, left)):
                shape.connect(factors["args"], source=source, relation=there, target=target)
    return shape


def test_wide_factors_are_mended_first_in_whatever_order_factors_were_connected() -> None:
    shapes = [sentence(8, pairs_first) for pairs_first in (True, False)]
    n_mended = 0
    for problem in FAMILIES["peaked"].problems(8, 40, seed=3):
        one, other = (run(shape.problem(problem.cost)) for shape in shapes)
        assert one[0] == other[0]
        n_mended += one[0] < INF
    assert n_mended > 32


def test_too_many_broken_constraints_are_left_alone() -> None:
    problem = entity_relation(4).problem(np.random.default_rng(0).normal(size=4 * 4 + 12 * 6))
    assert run(problem, 2)[:2] == (INF, -INF)


@pytest.mark.parametrize("noise", [0.3, 0.8])
def test_the_certifier_mends_before_it_sweeps(noise: float) -> None:
    report = Certifier().report(peaked(8, 40, noise))
    assert report.solutions.proved.all()
    assert (report.n_sweeps == 0).mean() > 0.8
    by = report.proved_by
    assert sum(by.values()) == 40
    assert by[Step.LOOK] + by[Step.REPAIR] > 32


def test_a_report_says_which_step_proved_how_many() -> None:
    rng = np.random.default_rng(0)
    easy, hard = peaked(8, 10, 0.0), [entity_relation(8).problem(rng.normal(size=8 * 4 + 56 * 6)) for _ in range(3)]
    small = [entity_relation(2).problem(rng.normal(size=2 * 4 + 2 * 6)) for _ in range(4)]
    report = Certifier(max_nodes=0, max_sweeps=1).report([*easy, *hard, *small])
    assert report.proved_by[Step.LOOK] == 10
    assert report.proved_by[Step.BRANCH] == 0
    assert report.proved_by[Step.REPAIR] + report.proved_by[Step.ELIMINATE] == 4
    assert str(report).startswith("17 problems: 10 by looking, ")
    assert str(report).endswith("3 left open")


# What rounding does to costs.


def cancelling(large: float, n: int, tick: float) -> Problem:
    """Two huge costs that cancel, with many between them that are lost when costs are added up; one choice besides."""
    schema = Schema()
    two, one = schema.variable("two", ["a", "b"]), schema.variable("one", ["o"])
    pair = schema.factor("pair", x=two, y=two).forbid(x="a", y="b")
    shape = schema.structure()
    first, choice = shape.add(two), shape.add(two)
    for _ in range(n):
        shape.add(one)
    shape.connect(pair, x=first, y=shape.add(two))
    assert choice == 1
    return shape.problem(np.concatenate([[0.0, large], [0.0, 3e-6], np.full(n, tick), [0.0, -large]]))


def test_a_labelling_that_only_rounding_makes_good_is_not_proved() -> None:
    """Its cost, as it is added up, is below the bound; exactly, it is not the optimum."""
    large = 2.0**27
    problem = cancelling(large, 400, 0.7e-8 * large / 1e8)
    worse = np.zeros(problem.n_variables, dtype=np.int64)
    worse[[0, 1, -1]] = 1
    given_one = Solutions.scored(problem.batch, worse)
    for found in (Certifier()(problem.batch, given_one)[0], Certifier()(problem)):
        excess = exact.total(problem, tuple(found.labels.tolist())) - exact.total(problem, problem.n_variables * (0,))
        assert not found.proved or excess <= 1e-6 * max(1.0, abs(found.cost))


@given(hard_problems())
def test_what_repair_proves_is_the_optimum(problem: Problem) -> None:
    report = Certifier().report(problem)
    found = report.solutions[0]
    if found.status is Status.PROVED:
        excess = exact.total(problem, tuple(found.labels.tolist())) - exact.optimum(problem)
        assert excess <= 1e-6 * max(abs(found.cost), min(1.0, exact.largest_sum(problem)))

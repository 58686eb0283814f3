"""Sweeping and branching: one problem as many, from what looking left, within what is allowed."""

from __future__ import annotations

import numpy as np
import pytest

from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.model.solution import Status
from hasten.model.structure import Structure
from hasten.proof.branch import BRANCHING
from hasten.proof.branch.dive import Effort
from hasten.proof.certifier import Certifier
from hasten.proof.plan import plan_for
from hasten.solvers import make_solver
from hasten.tasks.entity_relation.task import EntityRelationTask

N, LABELS = 5, ("none", "A0", "A1", "R-A0", "C-A1")


def roles(with_tables: bool = True) -> Structure:
    """Returns candidates for roles: each once, references need what they refer to, neighbours do not both play one."""
    schema = Schema()
    role = schema.variable("role", LABELS)
    apart = schema.factor("apart", one=role, other=role)
    apart.set_table(np.where(np.minimum.outer(np.arange(5), np.arange(5)) > 0, np.inf, 0.0))
    shape = schema.structure()
    for _ in range(N):
        shape.add(role)
    if with_tables:
        shape.connect(apart, one=0, other=1)
        shape.connect(apart, one=2, other=3)
    for label in ("A0", "A1"):
        shape.rule(f"{label} once", [(v, label) for v in range(N)], at_most=1)
    for v in range(N):
        others = [(u, "A0", -1.0) for u in range(N) if u != v]
        shape.rule(f"R-A0 {v}", [(v, "R-A0", 1.0), *others], at_most=0)
        shape.rule(f"C-A1 {v}", [(v, "C-A1", 1.0), *((u, "A1", -1.0) for u in range(v))], at_most=0)
    return shape


def problems(shape: Structure, count: int, seed: int = 0) -> list[Problem]:
    rng = np.random.default_rng(seed)
    return [shape.problem(rng.normal(size=shape.n_labels) * 10.0 ** rng.integers(-3, 4)) for _ in range(count)]


def best(problem: Problem) -> float:
    return make_solver("brute").solve(problem).cost


@pytest.mark.parametrize("with_tables", [True, False], ids=["tables and rules", "rules alone"])
def test_what_looking_leaves_open_is_proved(with_tables: bool) -> None:
    n_open, shape = 0, roles(with_tables)
    for problem in problems(shape, 80):
        answer = Certifier()(problem)
        assert answer.status is Status.PROVED
        assert answer.cost == pytest.approx(best(problem), rel=1e-6)
        assert answer.bound <= answer.cost
        report = Certifier().report(problem)
        assert report.solutions.bound[0] == answer.bound
        n_open += int(report.step[0]) > 2
    assert n_open > 20


@pytest.mark.parametrize("kind", ["tables and rules", "rules alone", "sentences"])
def test_a_batch_is_branched_on_as_each_of_its_problems_is(kind: str) -> None:
    if kind == "sentences":  # where repair gives up, and so leaves no bound
        shape, scale = EntityRelationTask().structure(6), 1.0
    else:
        shape, scale = roles(kind == "tables and rules"), 10.0
    drawn = [shape.problem(cost * scale) for cost in np.random.default_rng(5).normal(size=(24, shape.n_labels))]
    report = Certifier().report(drawn)
    for problem, among in zip(drawn, report.solutions, strict=True):
        alone = Certifier()(problem)
        assert (alone.status, alone.source, alone.cost, alone.bound) == (
            among.status,
            among.source,
            among.cost,
            among.bound,
        )
        assert alone.labels.tolist() == among.labels.tolist()
    assert (report.step > 2).sum() > 5


def test_after_looking_goes_on_from_what_was_seen() -> None:
    shape, least = roles(), 0
    for problem in problems(shape, 40, seed=1):
        bound = sum(problem.costs_of(v).min() for v in range(N)) - 1.0
        size = sum(np.abs(problem.costs_of(v)).max() for v in range(N))
        found = Certifier().after_looking(problem, bound, size)
        assert found.cost == pytest.approx(best(problem), rel=1e-6)
        least += found.bound > bound
    assert least > 0


def test_what_is_left_open_keeps_the_bound_that_it_had() -> None:
    shape = roles()
    certify = Certifier(max_sweeps=1, max_nodes=0)
    for problem in problems(shape, 40, seed=2):
        truth = best(problem)
        size = sum(np.abs(problem.costs_of(v)).max() for v in range(N))
        found = certify.after_looking(problem, truth - 1e-12 * size, size)
        assert truth - 1e-9 * size <= found.bound <= truth + 1e-9 * size
        assert found.status in (Status.PROVED, Status.OPEN, Status.FOUND)
        if found.status is Status.PROVED:
            assert found.cost == pytest.approx(truth, rel=1e-6)


def test_a_limit_of_time_that_is_long_enough_changes_nothing() -> None:
    for problem in problems(roles(), 20, seed=3):
        assert Certifier(time_limit=60.0)(problem).cost == Certifier()(problem).cost


def test_an_explicit_number_of_nodes_is_not_taken_for_the_default() -> None:
    shape = roles()
    plans = {nodes: plan_for(shape.compiled, max_nodes=nodes).part(BRANCHING) for nodes in (None, 20_000, 20_001)}
    nodes = {given: Effort(*plan.effort).max_nodes for given, plan in plans.items()}
    assert nodes == {None: 100_000, 20_000: 20_000, 20_001: 20_001}  # by default more, where few labels are left

"""Whole-number costs: bounds are rounded up, exactly."""

from __future__ import annotations

import math

import exact
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opened import opened
from proofs import assert_sound
from strategies import small_problems

from hasten.kernels.layout import Instance
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.model.structure import Structure
from hasten.proof import outcome as terms
from hasten.proof.certifier import Certifier
from hasten.proof.report import STEPS, Step

integral_gap = opened(terms.integral_gap)


def knapsack(n: int, n_rules: int) -> Structure:
    schema = Schema()
    item = schema.variable("item", ["out", "in"])
    shape = schema.structure()
    items = [shape.add(item) for _ in range(n)]
    for r, weights in enumerate(np.random.default_rng(0).integers(1, 40, size=(n_rules, n)).tolist()):
        terms = [(v, "in", weight) for v, weight in zip(items, weights, strict=True)]
        shape.rule(f"weight {r}", terms, at_most=sum(weights) // 2)
    return shape


def test_whole_costs_take_fewer_nodes() -> None:
    shape, rng = knapsack(14, 3), np.random.default_rng(1)
    costs = np.zeros((30, 14, 2))
    costs[:, :, 1] = -rng.integers(1, 6, size=(30, 14))
    certify = Certifier(max_nodes=20_000)
    rounded, others = (certify.report(shape.batch(costs.reshape(30, -1) / unit)) for unit in (1, 3))
    assert rounded.solutions.proved.all()
    assert rounded.n_nodes.sum() < 0.8 * others.n_nodes.sum()
    assert rounded.solutions.cost == pytest.approx(3 * others.solutions.cost)
    searched = rounded.step > 3
    assert (rounded.solutions.bound[searched] == rounded.solutions.cost[searched]).all()  # exactly


@given(
    small_problems(ties=True),
    st.sampled_from([1, 1000, 2**31, 2**40]),
    st.sampled_from([Certifier(0), Certifier(0, 1, 0), Certifier(0, 2, 3), Certifier(0, 5, 30)]),
)
@settings(max_examples=150)
def test_rounding_up_is_never_too_high(problem: Problem, scale: int, certifier: Certifier) -> None:
    problem = problem.alike(np.round(2 * problem.cost[None]) * scale)[0]
    report = certifier.report(problem)
    found = report.solutions[0]
    assert_sound(found, exact.optimum(problem))
    if STEPS[report.step[0] - 1] in (Step.SWEEP, Step.BRANCH) and gap_of(problem) > 0 and math.isfinite(found.bound):
        assert found.bound == math.floor(found.bound)


def gap_of(problem: Problem) -> float:
    instance = Instance(problem.graph, problem.cost, problem.table)
    return float(integral_gap(instance, exact.largest_sum(problem), 0.0))


def test_a_gap_is_left_only_where_every_number_is_whole() -> None:
    schema = Schema()
    tag = schema.variable("tag", ["a", "b"])
    pair = schema.factor("pair", one=tag, other=tag).cost(2.0, one="a", other="b")
    shape = schema.structure()
    shape.connect(pair, one=shape.add(tag), other=shape.add(tag))
    plain = shape.problem([[0.0, 1.0], [3.0, math.inf]])
    assert gap_of(plain) == pytest.approx(1, abs=1e-5)
    assert gap_of(plain) < 1
    assert gap_of(shape.problem([[0.0, 1.0], [3.0, 0.5]])) == 0
    assert gap_of(plain.with_tables({"pair": np.full((2, 2), 0.25)})) == 0
    assert gap_of(shape.problem([[0.0, 1e13], [3.0, 0.0]])) == 0  # too large for sums that are surely exact

"""Problems that elimination solves by itself: eight at a time as one at a time, and exactly."""

from __future__ import annotations

from itertools import pairwise

import exact
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from proofs import assert_sound
from strategies import small_problems

from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.model.structure import Structure
from hasten.proof.certifier import Certifier
from hasten.proof.trace import Step

SPREADS = (1.0, 1e-300, 1e-7, 1e12, 1e290, 1e306)


def varied(problem: Problem, seed: int, n: int) -> Batch:
    """Returns problems of one structure with other costs: noise of some magnitude, ties, labels that are forbidden."""
    rng = np.random.default_rng(seed)
    costs = rng.normal(size=(n, problem.cost.size)) * SPREADS[seed % len(SPREADS)]
    costs[rng.random(n) < 0.3] = rng.integers(-2, 3, problem.cost.size)
    costs[rng.random(costs.shape) < 0.1] = np.inf
    costs[0] = problem.cost
    return problem.alike(costs)


@given(small_problems(rules=False), st.integers(0, 2**16), st.sampled_from([8, 9, 17]))
@settings(max_examples=60)
def test_eight_at_a_time_are_answered_as_one_at_a_time(problem: Problem, seed: int, n: int) -> None:
    certify, batch = Certifier(), varied(problem, seed, n)
    together = certify(batch)
    for p in range(n):
        alone, among = certify(batch[p]), together[p]
        assert (alone.status, alone.source, alone.cost, alone.bound) == (
            among.status,
            among.source,
            among.cost,
            among.bound,
        )
        assert (alone.values is None) == (among.values is None)
        assert alone.values is None or np.array_equal(alone.labels, among.labels)
        assert_sound(among, exact.optimum(batch[p]))


def chain(n: int, n_labels: int, table: np.ndarray | None = None) -> Structure:
    schema = Schema()
    tag = schema.variable("tag", [f"tag{i}" for i in range(n_labels)])
    follow = schema.factor("follow", before=tag, after=tag)
    follow.set_table(np.random.default_rng(0).normal(size=(n_labels, n_labels)) if table is None else table)
    shape = schema.structure()
    words = [shape.add(tag) for _ in range(n)]
    for before, after in pairwise(words):
        shape.connect(follow, before=before, after=after)
    return shape


def viterbi(costs: np.ndarray, table: np.ndarray) -> float:
    best = costs[0]
    for cost in costs[1:]:
        best = (best[:, None] + table).min(axis=0) + cost
    return float(best.min())


@pytest.mark.parametrize(("n", "n_labels"), [(1, 1), (2, 1), (1, 9), (5, 2), (12, 9), (7, 17), (3, 40)])
def test_chains_are_answered_as_viterbi_does(n: int, n_labels: int) -> None:
    rng = np.random.default_rng(n)
    table = rng.normal(size=(n_labels, n_labels))
    shape, costs = chain(n, n_labels, table), rng.normal(size=(13, n, n_labels))
    report = Certifier().report(shape.batch(costs.reshape(13, -1)))
    assert report.solutions.proved.all()
    assert report.solutions.cost == pytest.approx([viterbi(each, table) for each in costs])
    if n > 1:
        assert report.proved_by[Step.ELIMINATE] == 13  # without looking: the table does more than forbid


def test_problems_with_tables_of_their_own_are_not_mixed_up() -> None:
    rng = np.random.default_rng(0)
    shape = chain(4, 3)
    tables = [rng.normal(size=(3, 3)) for _ in range(20)]
    costs = rng.normal(size=(20, 4, 3))
    problems = [
        shape.problem(cost.ravel()).with_tables({"follow": table}) for cost, table in zip(costs, tables, strict=True)
    ]
    answers = Certifier()(problems)
    assert answers.proved.all()
    assert answers.cost == pytest.approx([viterbi(*each) for each in zip(costs, tables, strict=True)])


def test_costs_too_large_to_add_up_are_left_open() -> None:
    answers = Certifier()(chain(3, 2).batch(np.full((9, 6), 1e300)))
    assert not answers.proved.any()
    assert np.isneginf(answers.bound).all()

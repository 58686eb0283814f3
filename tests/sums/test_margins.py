"""Min-marginals of a batch are those of the certifier, problem by problem."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from strategies import entity_relation, random_problem, small_problems

import hasten
from hasten.errors import ProblemError
from hasten.model.problem import Problem
from hasten.proof.certifier import Certifier
from hasten.sums import Margins, min_marginals


def check(problem: Problem, found: Margins, p: int, excess: np.ndarray, margin: np.ndarray) -> None:
    """What holds of the min-marginals of every problem."""
    wanted = Certifier().min_marginals(problem)
    if not wanted.best.valid:
        assert found.cost[p] == np.inf
        assert np.isposinf(excess).all()
        return
    assert found.cost[p] == pytest.approx(wanted.best.cost, abs=1e-6)
    assert excess == pytest.approx(wanted.excess, rel=1e-6, abs=1e-6)
    assert margin == pytest.approx(wanted.margin, rel=1e-6, abs=1e-6)


@given(small_problems())
def test_min_marginals_are_those_of_the_certifier(problem: Problem) -> None:
    found = min_marginals(problem)
    assert found.proved.all()
    check(problem, found, 0, found.excess, found.margin)
    if np.isfinite(found.cost[0]):
        assert found.confidence() == pytest.approx(Certifier().min_marginals(problem).confidence(), abs=1e-6)


@pytest.mark.parametrize("max_join", [20, 2**20])  # 20: some are too wide, and go label by label
def test_a_batch_of_many_shapes_has_those_of_each(max_join: int) -> None:
    rng = np.random.default_rng(0)
    problems = [random_problem(rng, max_variables=4, max_labels=3) for _ in range(40)]
    found = min_marginals(problems, max_join=max_join)
    label_at = variable_at = 0
    for p, problem in enumerate(problems):
        n_labels, n = problem.structure.n_labels, problem.n_variables
        excess, margin = found.excess[label_at : label_at + n_labels], found.margin[variable_at : variable_at + n]
        check(problem, found, p, excess, margin)
        label_at, variable_at = label_at + n_labels, variable_at + n


def test_the_best_labels_cost_nothing_more() -> None:
    rng, shape = np.random.default_rng(1), entity_relation(4)
    batch = shape.batch(rng.normal(size=(20, shape.n_labels)))
    found, answers = min_marginals(batch), Certifier()(batch)
    chosen = shape.graph.first[:-1] + answers.labels.reshape(20, -1)
    assert (np.take_along_axis(found.excess.reshape(20, -1), chosen, 1) == 0.0).all()
    assert found.cost == pytest.approx(answers.cost)


def test_temperatures_are_positive() -> None:
    schema = hasten.Schema()
    problem = schema.structure([schema.variable("kind", ["a", "b"])]).problem([0.0, 1.0])
    found = min_marginals(problem)
    assert found.confidence(1e-300).tolist() == [1.0]
    with pytest.raises(ProblemError, match="temperature must be above 0"):
        found.confidence(0.0)

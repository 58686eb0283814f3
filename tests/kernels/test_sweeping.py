"""Sweeping: labellings that beliefs give; few labels that are left are searched."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from opened import OpenedModule, opened
from scratch import dual_for, zeros
from strategies import small_problems

from hasten.kernels.layout import Instance
from hasten.kernels.score import rows_hold
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.model.structure import Structure
from hasten.proof.certifier import Certifier
from hasten.proof.sweep import sweeping
from hasten.proof.sweep.dual import start_dual

s, start = OpenedModule(sweeping), opened(start_dual)


def once_each(n: int, n_labels: int) -> Structure:
    """Returns `n` variables, each label but the last at most once."""
    schema = Schema()
    kind = schema.variable("kind", [str(i) for i in range(n_labels)])
    shape = schema.structure()
    variables = [shape.add(kind) for _ in range(n)]
    for i in range(n_labels - 1):
        shape.rule(f"once {i}", [(v, str(i)) for v in variables], at_most=1)
    return shape


@given(small_problems())
def test_what_is_found_by_beliefs_is_valid_and_costs_what_it_says(problem: Problem) -> None:
    graph, dual, labels = problem.graph, dual_for(problem.graph), zeros(len(problem.graph.order))
    start(graph, problem.cost, dual)
    found = s.found_by(Instance(graph, problem.cost, problem.table), dual, labels)
    if found < np.inf:
        assert rows_hold(graph, labels)
        assert found == problem.total(labels)


def test_cheapest_labels_that_keep_all_rules_are_taken_as_they_are() -> None:
    problem = once_each(3, 3).problem([0.0, 1.0, 2.0, 1.0, 0.0, 2.0, 1.0, 2.0, 0.0])
    dual, labels = dual_for(problem.graph), zeros(3)
    start(problem.graph, problem.cost, dual)
    assert s.cheapest_fit(problem.graph, dual, labels)
    assert labels.tolist() == [0, 1, 2]


def test_few_open_labels_are_searched_instead_of_swept_on() -> None:
    rng, shape = np.random.default_rng(0), once_each(8, 8)
    batch = shape.batch(rng.normal(size=(50, 64)))
    searched, swept = Certifier().report(batch), Certifier(max_nodes=0).report(batch)
    assert searched.solutions.proved.all()
    np.testing.assert_allclose(searched.solutions.cost, swept.solutions.cost)
    assert searched.n_sweeps.sum() < swept.n_sweeps.sum()

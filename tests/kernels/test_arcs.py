"""Arc consistency removes only what no solution uses, and a constrained search stays valid."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opened import OpenedModule
from scratch import zeros
from strategies import entity_relation, random_problem
from strategies import rich_problems as problems

from hasten.kernels.search import arcs as arcs_module
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.model.solution import Status
from hasten.search.beam import ConstrainedSearch

arcs = OpenedModule(arcs_module)


@st.composite
def domains(draw: Any) -> tuple[Problem, np.ndarray]:
    """Draws a problem and which of its labels are left."""
    problem = draw(problems(max_variables=4))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    return problem, rng.random(problem.structure.n_labels) < draw(st.sampled_from([0.5, 0.8, 1.0]))


def left(problem: Problem, alive: np.ndarray) -> naive.Domains:
    """Returns the labels that are left, by variable."""
    first = problem.graph.first
    return {v: np.flatnonzero(alive[first[v] : first[v + 1]]).tolist() for v in range(problem.structure.n_variables)}


def scratch_for(problem: Problem) -> arcs.Scratch:
    n_labels, n_factors = problem.structure.n_labels, len(problem.structure.factors)
    return arcs.Scratch(zeros(n_labels), zeros(n_labels), zeros(n_factors + 1), zeros(n_factors))


@given(domains())
def test_a_table_keeps_exactly_the_labels_of_its_possible_tuples(drawn: tuple[Problem, np.ndarray]) -> None:
    problem, alive = drawn
    for f, factor in enumerate(problem.structure.factors):
        if problem.graph.table_at[f] < 0:
            continue
        at = problem.graph.table_at[f]
        table = problem.table[at : at + factor.kind.size].reshape(factor.kind.shape)
        before, mine = left(problem, alive), alive.copy()
        changed = arcs.revise_factor(problem.graph, problem.table, f, mine, np.zeros_like(mine))
        after = left(problem, mine)
        assert changed == (after != before)
        allowed = [t for t in product(*(before[v] for v in factor.scope)) if table[t] < math.inf]
        for v in before:
            if v in factor.scope:
                slot = factor.scope.index(v)
                assert after[v] == sorted({t[slot] for t in allowed})
            else:
                assert after[v] == before[v]


@given(domains())
def test_a_row_removes_no_label_of_its_solutions(drawn: tuple[Problem, np.ndarray]) -> None:
    problem, alive = drawn
    before = left(problem, alive)
    for r, row in enumerate(naive.rows_of(problem)):
        mine = alive.copy()
        changed = arcs.revise_row(problem.graph, r, mine)
        after = left(problem, mine)
        assert changed == (after != before)
        solutions = [labels for labels in product(*before.values()) if naive.holds(row, labels)]
        for v in before:
            assert {labels[v] for labels in solutions} <= set(after[v]) <= set(before[v])


@given(domains())
def test_propagation_removes_no_label_of_a_solution(drawn: tuple[Problem, np.ndarray]) -> None:
    problem, alive = drawn
    before, mine = left(problem, alive), alive.copy()
    consistent = arcs.propagate(problem.graph, problem.table, mine, -1, scratch_for(problem))
    solutions = [
        labels
        for labels in product(*before.values())
        if not naive.forbids(problem, dict(enumerate(labels)))
        and all(naive.holds(row, labels) for row in naive.rows_of(problem))
    ]
    if solutions:
        assert consistent
    if consistent:
        after = left(problem, mine)
        assert after == naive.supported(problem, before)
        for v in before:
            assert {labels[v] for labels in solutions} <= set(after[v]) <= set(before[v])


@given(domains())
def test_propagation_says_when_a_domain_empties(drawn: tuple[Problem, np.ndarray]) -> None:
    problem, alive = drawn
    twin = naive.supported(problem, left(problem, alive))
    impossible = any(not naive.can_hold(row, twin) for row in naive.rows_of(problem))
    consistent = arcs.propagate(problem.graph, problem.table, alive, -1, scratch_for(problem))
    assert consistent == (all(twin.values()) and not impossible)


@given(domains(), st.integers(0, 99))
def test_propagating_one_change_is_propagating_all(drawn: tuple[Problem, np.ndarray], choice: int) -> None:
    problem, alive = drawn
    scratch = scratch_for(problem)
    if not problem.n_variables or not arcs.propagate(problem.graph, problem.table, alive, -1, scratch):
        return
    v = choice % problem.n_variables
    first = problem.graph.first
    options = np.flatnonzero(alive[first[v] : first[v + 1]])
    alive[first[v] : first[v + 1]] = False
    alive[first[v] + options[choice % len(options)]] = True
    other = alive.copy()
    one = arcs.propagate(problem.graph, problem.table, alive, v, scratch)
    assert one == arcs.propagate(problem.graph, problem.table, other, -1, scratch_for(problem))
    if one:
        assert np.array_equal(alive, other)


@given(domains())
def test_scratch_space_can_be_used_again(drawn: tuple[Problem, np.ndarray]) -> None:
    problem, alive = drawn
    scratch = scratch_for(problem)
    arcs.propagate(problem.graph, problem.table, alive.copy(), -1, scratch)
    assert not scratch.queued.any()
    fresh, again = np.ones_like(alive), np.ones_like(alive)
    consistent = arcs.propagate(problem.graph, problem.table, again, -1, scratch)
    assert consistent == arcs.propagate(problem.graph, problem.table, fresh, -1, scratch_for(problem))
    if consistent:
        assert np.array_equal(again, fresh)


@given(problems())
def test_a_constrained_search_is_valid_or_at_a_dead_end(problem: Problem) -> None:
    found = ConstrainedSearch()(problem)
    if found.values is None:
        assert found.status is Status.DEAD_END
        assert found.cost == math.inf
    else:
        assert found.status is Status.FOUND
        assert found.valid
        assert naive.valid(problem, tuple(found.labels.tolist()))
        assert found.cost == pytest.approx(naive.cost(problem, tuple(found.labels.tolist())))
        assert found.n_costs == problem.n_variables


def test_constrained_search_is_its_slow_twin_on_a_thousand_problems() -> None:
    rng = np.random.default_rng(8)
    answered = 0
    for _ in range(1000):
        problem = random_problem(rng, max_variables=4)
        found, twin = ConstrainedSearch()(problem), naive.constrained_search(problem)
        assert (None if found.values is None else tuple(found.values.tolist())) == twin
        answered += twin is not None
    assert 300 < answered < 1000


def test_entities_and_relations_have_no_dead_ends() -> None:
    rng = np.random.default_rng(9)
    for n_entities in (2, 3, 5):
        shape = entity_relation(n_entities)
        found = ConstrainedSearch()(shape.batch(rng.normal(size=(50, shape.n_labels))))
        assert found.valid.all()


def test_a_wiped_out_domain_is_passed_over() -> None:
    # The cheapest label leaves two others that the third variable cannot satisfy; the search takes the next.
    schema = Schema()
    kind = schema.variable("kind", ["a", "b", "c"])
    differ = schema.factor("differ", left=kind, right=kind).forbid(lambda left, right: left == right)
    shape = schema.structure()
    x, y, z = (shape.add(kind) for _ in range(3))
    for left_, right_ in ((x, y), (y, z), (x, z)):
        shape.connect(differ, left=left_, right=right_)
    inf = math.inf
    problem = shape.problem([[0.0, 1.0, 2.0], [0.0, 0.0, inf], [0.0, 0.0, inf]])
    found = ConstrainedSearch()(problem)
    assert found.names == ["c", "a", "b"]
    assert ConstrainedSearch()(shape.problem([[0.0, 0.0, inf], [0.0, 0.0, inf], [0.0, 0.0, inf]])).status is (
        Status.DEAD_END
    )

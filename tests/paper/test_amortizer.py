"""Amortized inference: it answers where its theorems say so, and it is never wrong."""

from __future__ import annotations

import math
from itertools import product

import exact
import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import entity_relation, random_problem

from hasten import Batch, Certifier, Problem, Solutions, Source, Status
from hasten.kernels.tolerance import TOLERANCE
from hasten.paper.amortizer import Amortizer

SEEDS = st.integers(0, 2**32 - 1)


def again(problem: Problem, cost: np.ndarray) -> Problem:
    """The same problem with other costs: its structure, its own tables and rules."""
    return Problem(problem.structure, cost, None, problem.table, problem.id)


def learned(amortizer: Amortizer, *problems: Problem) -> Solutions:
    batch = Batch.of(problems)
    answers = Certifier()(batch)
    amortizer.learn(answers)
    return answers


def moved(problem: Problem, rng: np.random.Generator) -> Problem:
    """The problem with other costs, from hardly moved to quite others, on a scale of their own; labels come and go."""
    noise = rng.normal(size=problem.cost.size) * 10.0 ** rng.integers(-3, 2)
    cost = (problem.cost + noise * (rng.random(noise.size) < rng.random())) * 10.0 ** rng.integers(-9, 10)
    if rng.random() < 0.3:
        cost[rng.random(cost.size) < 0.2] = np.inf
    if rng.random() < 0.3:
        cost = np.where(np.isinf(cost), rng.normal(size=cost.size), cost)
    return again(problem, cost)


@given(SEEDS, st.booleans())
def test_what_it_proves_is_an_optimum(seed: int, margins: bool) -> None:
    rng = np.random.default_rng(seed)
    first = random_problem(rng, max_variables=4, max_labels=3)
    amortizer = Amortizer(margins=margins)
    past = [first, *(moved(first, rng) for _ in range(4))]
    learned(amortizer, *past)
    new = [moved(past[int(rng.integers(5))], rng) for _ in range(4)]
    new.append(past[1])
    for problem, answer in zip(new, amortizer(Batch.of(new)), strict=True):
        best = exact.optimum(problem)
        assert answer.bound <= best or answer.bound == -math.inf
        if answer.status is Status.OPEN:
            assert answer.values is None
            continue
        assert answer.proved
        assert best < math.inf
        size = sum(
            np.abs(c[np.isfinite(c)]).max(initial=0.0) for c in map(problem.costs_of, range(problem.n_variables))
        )
        size += np.abs(problem.table[np.isfinite(problem.table)]).max(initial=0.0) * len(problem.structure.factors)
        total = exact.total(problem, tuple(answer.labels.tolist()))
        assert float(total - best) <= TOLERANCE * max(abs(float(total)), min(1.0, size))
        assert naive.valid(problem, tuple(answer.labels.tolist()))


@given(SEEDS)
def test_costs_that_move_in_favour_of_an_answer_keep_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, infinite_costs=False)
    amortizer = Amortizer()
    answer = learned(amortizer, problem)[0]
    if not answer.proved or answer.values is None:
        return
    cost = problem.cost + rng.random(problem.cost.size) * 5  # all labels are dearer,
    chosen = problem.graph.first[:-1] + answer.labels
    cost[chosen] = problem.cost[chosen] - rng.random(chosen.size)  # but for those of the answer,
    first = problem.graph.first
    offset = rng.normal(size=problem.n_variables)  # and what all labels of a variable have in common does not matter
    cost += np.repeat(offset, np.diff(first))
    found = amortizer(again(problem, cost))
    assert found.proved
    assert found.labels.tolist() == answer.labels.tolist()
    assert found.source is Source.SEARCH


@given(SEEDS)
def test_a_margin_is_what_the_second_best_costs_more(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, max_variables=4, max_labels=3)
    amortizer = Amortizer(margins=True)
    answer = learned(amortizer, problem)[0]
    if answer.values is None or not problem.n_variables:
        assert answer.values is None or not problem.n_variables
        return
    every = product(*(range(len(kind)) for kind in problem.structure.kinds))
    costs = [naive.cost(problem, labels) for labels in every if naive.valid(problem, labels)]
    (past,) = amortizer._past.values()
    second = sorted(costs)[1] if len(costs) > 1 else 1e290
    margin = float(past.margin[0])
    assert margin <= second - answer.cost
    assert margin == pytest.approx(second - answer.cost, rel=1e-5, abs=1e-5)


def line() -> Batch:
    """One variable, with costs on both sides of a margin of 2."""
    shape = entity_relation(1)
    costs = np.array([[0.0, 2.0, 5.0, 5.0], [1.9, 2.0, 5.0, 5.0], [3.0, 2.0, 5.0, 5.0], [0.0, 3.0, 6.0, 9.0]])
    return shape.batch(costs)


def test_a_margin_answers_what_moved_by_less() -> None:
    plain, wide, batch = Amortizer(), Amortizer(margins=True), line()
    for amortizer in (plain, wide):
        amortizer.learn(Certifier()(batch[:1]))
    assert plain(batch).valid.tolist() == [True, False, False, True]
    assert wide(batch).valid.tolist() == [True, True, False, True]


def test_other_tables_and_other_structures_are_other_problems() -> None:
    rng = np.random.default_rng(0)
    shape = entity_relation(2)
    problem = shape.problem(rng.normal(size=shape.n_labels))
    amortizer = Amortizer(margins=True)
    learned(amortizer, problem)
    own = shape.problem(problem.cost, tables={0: np.zeros(shape.factors[0].kind.shape)})
    assert amortizer(own).status is Status.OPEN
    assert amortizer(entity_relation(3).problem(rng.normal(size=entity_relation(3).n_labels))).status is Status.OPEN
    assert amortizer(problem).proved
    assert len(amortizer) == 1


def test_what_is_not_optimal_is_not_learned() -> None:
    shape = entity_relation(2)
    batch = shape.batch(np.random.default_rng(0).normal(size=(10, shape.n_labels)))
    amortizer = Amortizer()
    amortizer.learn(Solutions.scored(batch, np.zeros(batch.variable_at[-1], dtype=np.int64)))
    assert len(amortizer) == 0


def test_it_keeps_the_last_ones_of_each_structure() -> None:
    shape = entity_relation(2)
    batch = shape.batch(np.random.default_rng(0).normal(size=(40, shape.n_labels)))
    amortizer = Amortizer(max_problems=8)
    amortizer.learn(Certifier()(batch))
    assert len(amortizer) == 8
    assert amortizer(batch[32:]).proved.all()
    assert len(amortizer(Batch.of([]))) == 0

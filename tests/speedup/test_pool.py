"""A pool of past answers: the best of them, scored anew; and nothing that they change but time."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import entity_relation, random_problem

from hasten import Batch, Certifier, Problem, Rule, Schema, Solution, Solutions, Speedup, make_solver
from hasten.solvers.highs import HighsSolver
from hasten.speedup.parts import Certified, Limits
from hasten.speedup.pool import AnswerPool
from hasten.support.arrays import IntArray

SEEDS = st.integers(0, 2**32 - 1)


def packing(n: int, n_items: int = 14, seed: int = 0) -> Batch:
    """Items to pack within three limits, worth about what they weigh, each time a little more or less."""
    rng = np.random.default_rng(seed)
    schema = Schema()
    item = schema.variable("item", ["in", "out"])
    shape = schema.structure()
    for _ in range(n_items):
        shape.add(item)
    weights = rng.integers(20, 80, size=(3, n_items))
    rules = [
        Rule.of(f"limit {r}", [(v, "in", float(w)) for v, w in enumerate(row)], at_most=float(row.sum() // 3))
        for r, row in enumerate(weights)
    ]
    shape = shape.with_rules(rules)
    costs = np.zeros((n, 2 * n_items))
    costs[:, ::2] = -weights.sum(axis=0) + rng.normal(size=(n, n_items))
    return shape.batch(costs)


@given(SEEDS)
def test_the_best_is_the_cheapest_valid_labelling_of_those_kept(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, max_variables=4, max_labels=3)
    others = [Problem(problem.structure, rng.normal(size=problem.cost.size), None, problem.table, 0) for _ in range(5)]
    pool = AnswerPool(64)
    pool.learn(Certifier()(Batch.of(others)))
    kept = {tuple(answer.labels.tolist()) for answer in Certifier()(Batch.of(others)) if answer.values is not None}
    assert len(pool) == len(kept)
    costs = [naive.cost(problem, labels) for labels in kept if naive.valid(problem, labels)]
    found = pool.best(problem.batch)[0]
    assert found.valid == bool(costs)
    if costs:
        assert found.cost == pytest.approx(min(costs))


def test_a_pool_keeps_what_was_used_last() -> None:
    shape = entity_relation(2)
    labels = np.array([[i, j, 5, 5] for i in range(4) for j in range(4)])
    costs = np.zeros((16, shape.n_labels))
    first = shape.graph.first
    for p, row in enumerate(labels):
        costs[p, first[:-1] + row] = -1
    batch = shape.batch(costs)
    answers, pool = Certifier()(batch), AnswerPool(8)
    pool.learn(answers[:8])
    assert pool.best(batch[:2]).cost == pytest.approx(answers.cost[:2])  # uses these two
    pool.learn(answers[8:14])
    assert len(pool) == 8
    assert pool.best(batch[:2]).cost == pytest.approx(answers.cost[:2])
    assert pool.best(batch[8:14]).cost == pytest.approx(answers.cost[8:14])


def test_a_pool_is_by_structure() -> None:
    pool = AnswerPool(64)
    batch = entity_relation(2).batch(np.zeros((1, entity_relation(2).n_labels)))
    pool.learn(Certifier()(batch))
    assert not pool.best(entity_relation(3).batch(np.zeros((1, entity_relation(3).n_labels)))).valid.any()
    assert len(pool.best(Batch.of([]))) == 0


@pytest.mark.parametrize("name", ["highs", "gurobi"])
@given(seed=SEEDS)
def test_a_start_changes_no_optimum(name: str, seed: int) -> None:
    if name not in STARTED:
        pytest.importorskip({"highs": "highspy", "gurobi": "gurobipy"}[name])
        STARTED[name] = make_solver(name, interruptible=False)
    solver: Any = STARTED[name]
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, max_variables=4, max_labels=3)
    other = Problem(problem.structure, rng.normal(size=problem.cost.size), None, problem.table, 0)
    start = naive.solve(other).labels
    best = naive.solve(problem)
    if start is None or not naive.valid(problem, start):
        return
    found = solver.solve(problem, None, np.array(start, dtype=np.int64))
    assert found.cost == pytest.approx(best.cost)
    assert found.status.optimal


STARTED: dict[str, Any] = {}


def test_a_speedup_with_past_answers_gives_the_same_answers() -> None:
    batch = packing(60)
    plain, past = Speedup(batch.structures[0].schema), Speedup(batch.structures[0].schema, answer=Certified(past=16))
    wanted = plain.predict(batch)
    found = Solutions.joined(batch, [past.predict(batch[start : start + 10]) for start in range(0, 60, 10)])
    assert found.optimal.all()
    assert found.cost == pytest.approx(wanted.cost)
    assert past.predict(batch[3]).cost == pytest.approx(wanted.cost[3])
    assert 0 < len(past._oracle.pool or ()) <= 16


def test_the_solver_starts_from_the_best_past_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    batch, starts = packing(30), []
    solve = HighsSolver.solve

    def watched(
        self: HighsSolver, problem: Problem, time_limit: float | None = None, start: IntArray | None = None
    ) -> Solution:
        starts.append(start)
        return solve(self, problem, time_limit, start)

    monkeypatch.setattr(HighsSolver, "solve", watched)
    fast = Speedup(batch.structures[0].schema, answer=Certified(past=16), limits=Limits(max_nodes=0))
    fast.predict(batch[:20])
    starts.clear()
    pool = fast._oracle.pool
    assert pool is not None
    best = pool.best(batch[20:])
    assert fast.predict(batch[20:]).optimal.all()
    assert starts
    assert all(start is not None for start in starts)
    assert best.valid.all()

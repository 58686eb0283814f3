"""The step that goes on as long as there is time: its answers and bounds hold, and get better."""

from __future__ import annotations

from itertools import pairwise

import exact
import numpy as np
import pytest
from hard import within
from hypothesis import given, settings
from proofs import assert_sound
from strategies import rich_problems

import hasten
from hasten.kernels.layout import Instance
from hasten.kernels.score import rows_hold, total_cost
from hasten.model.batch import ONLY
from hasten.model.problem import Problem
from hasten.model.solution import Solution, Status
from hasten.proof.certifier import Certifier
from hasten.proof.improve import IMPROVING, Improvement
from hasten.proof.improve.follow import follow
from hasten.proof.look import LOOKING
from hasten.proof.outcome import OPEN, OUTCOME
from hasten.proof.report import solution_of
from hasten.proof.steps import prove


def improved(problem: Problem, n_slices: int, max_join: int | None = None) -> Solution | None:
    """Returns the answer of so many slices after looking; None where looking has proved it, or nothing is left."""
    certifier = Certifier(max_join=max_join)
    work = certifier._work_on(problem.batch, None, 1)
    prove(work, ONLY, (LOOKING,))
    if work.proofs.facts[OUTCOME, 0] != OPEN or not work.taking(IMPROVING, ONLY).size:
        return None
    improvement = Improvement(work, 0)
    for _ in range(n_slices):
        improvement.go(np.inf)
    return solution_of(problem, work.proofs)


@given(rich_problems(rules=True))
@settings(max_examples=150)
def test_every_slice_is_sound(problem: Problem) -> None:
    optimum = exact.optimum(problem)
    for n in (1, 2, 6):
        found = improved(problem, n, max_join=0)
        if found is not None:
            assert_sound(found, optimum)


def packed(n: int, n_labels: int, seed: int, room: float = 0.35) -> Problem:
    """Returns a ring with chords whose labels need room, of which overlapping stretches have little."""
    rng, schema = np.random.default_rng(seed), hasten.Schema()
    item = schema.variable("item", [str(i) for i in range(n_labels)])
    pair = schema.factor("pair", learned=False, one=item, other=item)
    shape = schema.structure(n * [item])
    edges = [(v, (v + 1) % n) for v in range(n)] + [(v, (v + n // 3) % n) for v in range(0, n, 3)]
    tables = {shape.connect(pair, one=u, other=v): rng.integers(0, 40, (n_labels, n_labels)) * 1.0 for u, v in edges}
    need = np.sort(rng.integers(1, 50, (n, n_labels)), axis=1)[:, ::-1]
    for begin in range(0, n, 2):
        some = [v % n for v in range(begin, begin + 4)]
        terms = [(v, str(i), float(need[v, i])) for v in some for i in range(n_labels)]
        low, high = need[some].min(axis=1).sum(), need[some].max(axis=1).sum()
        shape.rule(f"room {begin}", terms, at_most=float(low + int(room * (high - low))))
    costs = np.sort(rng.integers(0, 60, (n, n_labels)), axis=1) * 1.0
    return shape.problem(costs.ravel(), tables=tables)


@pytest.mark.parametrize("seed", range(3))
def test_it_proves_what_branching_leaves_open(seed: int) -> None:
    problem = packed(21, 5, seed)
    answer = Certifier(time_limit=30)(problem)
    assert answer.status is Status.PROVED
    assert answer.cost == pytest.approx(hasten.make_solver("highs").solve(problem).cost)


def test_the_same_slices_give_the_same_answer() -> None:
    problem = packed(60, 8, 5)
    one, other = (improved(problem, 6) for _ in range(2))
    assert one is not None
    assert other is not None
    assert one.labels.tolist() == other.labels.tolist()
    assert (one.cost, one.bound) == (other.cost, other.bound)


def test_answers_get_better_and_end_in_time() -> None:
    problem = packed(200, 12, 1, room=0.25)
    Certifier(time_limit=0.1)(problem)  # plans and loads
    with within(1.1 * 1.5 + 0.2):
        answers = list(Certifier(time_limit=1.5).improving(problem))
    for before, after in pairwise(answers):
        assert after.cost <= before.cost
        assert after.bound >= before.bound
    assert answers[-1].status in (Status.PROVED, Status.TIME_LIMIT)
    assert answers[-1].gap < answers[0].gap
    assert problem.check(answers[-1].labels).valid


def test_a_problem_that_is_proved_at_once_has_one_answer() -> None:
    schema = hasten.Schema()
    problem = schema.structure([schema.variable("item", ["a", "b"])]).problem([[2.0, 1.0]])
    (answer,) = Certifier().improving(problem)
    assert answer.proved


def test_a_consumer_may_stop() -> None:
    for answer in Certifier().improving(packed(300, 12, 2, room=0.2)):
        if answer.values is not None:
            break
    assert answer.valid


def test_what_cannot_hold_is_infeasible() -> None:
    problem = packed(30, 5, 3)
    rule = hasten.Rule.of("none", [(v, "0") for v in range(30)], at_least=31)
    broken = problem.structure.with_rules([rule]).problem(problem.cost)
    assert Certifier(time_limit=5)(broken).status is Status.INFEASIBLE


def following(seed: int) -> Problem:
    """Returns chains of variables of which each mostly allows one label of the next, joined by tables and a rule."""
    rng, schema = np.random.default_rng(seed), hasten.Schema()
    item = schema.variable("item", ["a", "b", "c"])
    pair = schema.factor("pair", learned=False, one=item, other=item)
    shape, tables = schema.structure(9 * [item]), dict[int, np.ndarray]()
    for v in range(8):
        table = np.full((3, 3), np.inf)
        table[np.arange(3), rng.permutation(3)] = rng.integers(0, 9, 3)
        table[rng.random((3, 3)) < 0.1] = 1.0
        if v % 3 == 2:
            table = rng.integers(0, 9, (3, 3)) * 1.0
        tables[shape.connect(pair, one=v, other=v + 1)] = table
    tables[shape.connect(pair, one=0, other=8)] = rng.integers(0, 9, (3, 3)) * 1.0
    weights = rng.choice([0.1, 1.0]) * rng.integers(0, 9, (9, 3))
    terms = [(v, label, float(weights[v, i])) for v in range(9) for i, label in enumerate("abc")]
    shape.rule("room", terms, at_most=float(np.median(weights, axis=1).sum()))
    return shape.problem(rng.integers(0, 9, 27) * 1.0, tables=tables)


@pytest.mark.parametrize("seed", range(40))
def test_followers_change_no_answer(seed: int) -> None:
    problem = following(seed)
    left = follow(Instance(problem.graph, problem.cost, problem.table), np.inf)
    found, best = improved(problem, 8, max_join=0), hasten.make_solver("brute").solve(problem)
    if left is not None and best.values is not None:
        reduced = left.reduced(best.labels)
        assert reduced is not None
        assert left.restored(reduced).tolist() == best.labels.tolist()
        assert total_cost(left.shape.graph, left.arrays.cost, left.arrays.table, reduced) == best.cost
        assert rows_hold(left.shape.graph, reduced)
    if found is not None:
        assert_sound(found, exact.optimum(problem))


def test_most_of_a_chain_follows() -> None:
    problem = following(0)
    left = follow(Instance(problem.graph, problem.cost, problem.table), np.inf)
    assert left is not None
    assert len(left.shape.graph.order) <= 6  # of 9


def test_many_searches_that_end_early_leave_a_problem_open_until_its_time_is_up() -> None:
    """Rounding keeps this open, and rules are all that is left: there are more searches than whole numbers double."""
    schema = hasten.Schema()
    kind = schema.variable("kind", ["a", "b", "c"])
    shape = schema.structure([kind, kind])
    shape.rule("few", [(0, "b", -2.0), (0, "c", 2.0)], exactly=0)
    shape.rule("any", [(1, "c", 1.0)], at_least=0)
    problem = shape.problem([[-429.0, 1000.0000390900968, -127717060693129.0], [1558640860974.0, 136733.0, 132600.0]])
    work = Certifier()._work_on(problem.batch, None, 1)
    prove(work, ONLY)
    improvement = Improvement(work, 0)
    for _ in range(70):
        improvement.go(np.inf)
    answer = solution_of(problem, work.proofs)
    assert answer.cost == 132171.0
    assert answer.bound <= answer.cost

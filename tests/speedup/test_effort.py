"""What we try before the solver goes on where it pays, ends where it does not, and is tried again now and then."""

from __future__ import annotations

import gc
import math
import time
import weakref
from collections.abc import Callable

import numpy as np
import pytest

from hasten import Problem, Schema, Solution, Speedup, Status
from hasten.model.compiled import _KEPT
from hasten.model.structure import Structure
from hasten.solvers import make_solver
from hasten.solvers.base import OnError
from hasten.solvers.portfolio import Race
from hasten.speedup.black_box import prove_or_solve
from hasten.speedup.effort import AIDED, ALONE, CLEARLY, FIRST, MOST_NODES, QUICK, TRIES, Effort, Schedule
from hasten.speedup.parts import Limits, Trust


def new_race(alone: float = 0.0, aided: float = 0.0) -> Race:
    """Returns a race in which both ways took so long for nine problems each; nothing is known of it without."""
    race = Race((ALONE, AIDED), TRIES)
    if alone:
        race.took(ALONE, 9 * alone, 9)
        race.took(AIDED, 9 * aided, 9)
    return race


def run(race: Race, n: int, alone: float, aided: float) -> tuple[int, float]:
    """Answers so many problems as a race says; returns how often the solver was aided, and the seconds of all."""
    n_aided, seconds = 0, 0.0
    for _ in range(n):
        way = race.choose()
        took = aided if way == AIDED else alone
        race.took(way, took)
        n_aided, seconds = n_aided + (way == AIDED), seconds + took
    return n_aided, seconds


@pytest.mark.parametrize("aided", [1.04, 1.5, 3.0, 20.0])
def test_what_does_not_pay_costs_little_of_the_solver_s_time(aided: float) -> None:
    for n in (200, 2000):
        n_aided, seconds = run(new_race(), n, 1.0, aided)
        assert n_aided > 0
        assert seconds <= 1.011 * n + TRIES * aided


def test_what_does_not_pay_is_tried_again() -> None:
    assert run(new_race(), 2000, 1.0, 1.5)[0] > 20
    race = new_race()
    run(race, 1000, 1.0, 1.5)
    assert run(race, 1000, 1.0, 0.1)[0] > 500  # the model got sharper


@pytest.mark.parametrize("aided", [0.1, 0.3, 0.8])
def test_what_pays_goes_on(aided: float) -> None:
    n_aided, seconds = run(new_race(), 2000, 1.0, aided)
    assert n_aided > 0.95 * 2000
    assert seconds < 1.1 * aided * 2000


def test_what_stops_paying_ends() -> None:
    race = new_race()
    run(race, 500, 1.0, 0.5)
    assert run(race, 1000, 1.0, 2.0)[0] < 200


def test_a_solver_that_is_clearly_slower_is_left_alone_for_a_small_share_of_time() -> None:
    n_aided, _ = run(new_race(), 2000, 2 * CLEARLY, 1.0)
    assert 2000 - n_aided <= TRIES + 0.01 * 2000


def test_a_first_call_that_loads_does_not_set_the_price() -> None:
    race = new_race()
    race.took(ALONE, 100.0)
    race.took(ALONE, 1.0)
    assert race.seconds[ALONE] == 1.0
    assert run(race, 200, 1.0, 2.0)[0] < 10


def test_a_solver_that_fails_is_never_left_alone_again() -> None:
    race = new_race()
    race.exclude(ALONE)
    assert run(race, 100, 1.0, 50.0)[0] == 100


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 0.95])
def test_the_better_way_is_found_where_proofs_succeed_by_chance(share: float) -> None:
    """A proof takes 0.2, the solver 1, and so does what a proof leaves open."""
    race, rng, seconds, n = new_race(), np.random.default_rng(0), 0.0, 3000
    for _ in range(n):
        way = race.choose()
        took = 0.2 + float(rng.random() >= share) if way == AIDED else 1.0
        race.took(way, took)
        seconds += took
    assert seconds <= 1.08 * n * min(1.0, 1.2 - share) + 10


def test_as_long_as_proofs_are_quick_and_succeed_nothing_is_compared() -> None:
    effort = Effort()
    for _ in range(1000):
        assert effort.proves()
        effort.answered(True, 0.9 * QUICK)
    assert effort.n_proofs == 1000
    effort.answered(True, 0.9 * QUICK, 1, n_open=1)
    assert not effort.proves()


def test_slow_proofs_are_compared_with_a_solver_that_has_a_few_times_as_long() -> None:
    effort = Effort()
    for seconds in (1.0, 0.9 * QUICK, 1.0, 0.02):  # one may have loaded something, another waited for the processor
        effort.answered(True, seconds)
        assert effort.proves()
    effort.answered(True, 0.01)
    assert not effort.proves()
    assert effort.patience == pytest.approx(CLEARLY * 0.01)
    effort.has_loaded()
    for _ in range(TRIES):
        effort.answered(False, 0.002)
    assert effort.proves()
    effort.answered(True, 0.01)
    assert not effort.proves()
    assert effort.patience == math.inf  # the solver is the faster one: it has the time it needs


def test_nodes_that_take_half_as_long_as_the_solver_are_branched_further() -> None:
    effort = Effort(branching=new_race(0.04, 0.02), proof_seconds=0.001)
    assert effort.n_further(with_rows=True) == 20_000  # ten times as far as a proof, a fortieth of the solver's time
    assert effort.n_further(with_rows=False) == 200_000
    effort.branched(1.0, 1_000_000)
    assert effort.n_further(with_rows=False) == 20_000
    effort.node_seconds = 1e-15
    assert effort.n_further(with_rows=True) == MOST_NODES
    effort.proof_seconds = 0.02
    assert effort.n_further(with_rows=True) == 0  # a solver so quick leaves no time for it
    assert Effort().n_further(with_rows=True) == 0  # what the solver takes is not known


class Clock:
    """A clock that stands still but where it is told otherwise."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Slow:
    """A solver that takes so many seconds of a clock for each problem, and counts them."""

    name = "slow"

    def __init__(self, clock: Clock, seconds: float) -> None:
        self.clock, self.seconds, self.n, self.exact = clock, seconds, 0, make_solver("highs")

    def solve(self, problem: Problem) -> Solution:
        self.clock.now += self.seconds
        self.n += 1
        return self.exact.solve(problem)


def schedule_of(shape: Structure, solver: Slow) -> Schedule:
    return Schedule(shape, solver.name, clock=solver.clock)


def proofs_take(monkeypatch: pytest.MonkeyPatch, clock: Clock, seconds: float) -> list[int]:
    """Lets each proof of a batch take so long by a clock; returns where the number of problems of each call goes."""
    from hasten.proof.certifier import Certifier

    certify: Callable[..., object] = Certifier.__call__
    sizes: list[int] = []

    def timed(self: Certifier, problems: object, *args: object, **more: object) -> object:
        n = len(problems) if hasattr(problems, "__len__") else 1
        clock.now += seconds * n
        sizes.append(n)
        return certify(self, problems, *args, **more)

    monkeypatch.setattr(Certifier, "__call__", timed)
    return sizes


@pytest.mark.parametrize(("proof", "solver", "asked"), [(0.01, 0.002, 0.95), (0.01, 1.0, 0.01), (1e-5, 0.002, 0.0)])
def test_a_batch_is_answered_by_what_is_faster(
    monkeypatch: pytest.MonkeyPatch, proof: float, solver: float, asked: float
) -> None:
    rng, clock = np.random.default_rng(0), Clock()
    shape, slow = knapsack(6, 1, rng), Slow(clock, solver)
    batch = shape.batch(rng.normal(size=(400, 12)))
    sizes = proofs_take(monkeypatch, clock, proof)
    answers, n_calls = prove_or_solve(batch, lambda: slow, schedule=schedule_of(shape, slow))
    assert n_calls == slow.n
    assert asked * 390 - 2 <= n_calls <= asked * 400 + 20 * (asked > 0)
    assert clock.now < 1.1 * 400 * min(proof, solver) + 3 * solver + 10 * proof
    if not asked:
        assert sizes == [FIRST, 8 * FIRST, 8 * 9 * FIRST, 400 - FIRST * 81]
    assert np.allclose(answers.cost, prove_or_solve(batch, lambda: slow)[0].cost)


def test_a_solver_that_fails_when_left_alone_gives_way_to_proofs(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, clock = np.random.default_rng(1), Clock()
    shape, slow = knapsack(6, 1, rng), Slow(clock, 0.001)
    proofs_take(monkeypatch, clock, 0.01)
    monkeypatch.setattr(slow, "solve", lambda problem: 1 / 0)
    batch = shape.batch(rng.normal(size=(50, 12)))
    answers, n_calls = prove_or_solve(batch, lambda: slow, on_error=OnError.RAISE, schedule=schedule_of(shape, slow))
    assert answers.proved.all()
    assert n_calls == 1
    assert Effort.of(shape.compiled, "slow").proving.seconds[ALONE] == math.inf


def knapsack(n: int, n_rules: int, rng: np.random.Generator) -> Structure:
    schema = Schema()
    item = schema.variable("item", ["out", "in"])
    shape = schema.structure()
    for _ in range(n):
        shape.add(item)
    for r, weights in enumerate(rng.integers(1, 100, size=(n_rules, n)).tolist()):
        terms = [(v, "in", weight) for v, weight in enumerate(weights)]
        shape.rule(f"weight {r}", terms, at_most=sum(weights) // 2)
    return shape


def test_a_knapsack_of_twenty_items_takes_no_solver() -> None:
    rng = np.random.default_rng(0)
    shape = knapsack(20, 3, rng)
    costs = np.zeros((20, 20, 2))
    costs[:, :, 1] = -rng.integers(1, 100, size=(20, 20))
    fast = Speedup(shape.schema)
    answers = fast.predict(shape.batch(costs.reshape(20, -1)))
    assert answers.proved.all()
    assert fast.counters.solver_calls == 0
    exact = make_solver("highs")
    assert [answers[p].cost for p in range(3)] == [exact.solve(answers[p].problem).cost for p in range(3)]


def test_a_slow_solver_is_spared_where_branching_further_proves_more() -> None:
    rng = np.random.default_rng(1)
    shape = knapsack(40, 4, rng)
    costs = np.zeros((12, 40, 2))
    costs[:, :, 1] = -rng.integers(1, 100, size=(12, 40))
    batch, exact = shape.batch(costs.reshape(12, -1)), make_solver("highs")
    optima, n_calls = prove_or_solve(batch, lambda: exact, limits=Limits(max_nodes=500))
    assert optima.optimal.all()
    assert n_calls > 0
    effort = Effort.of(shape.compiled, exact.name)
    effort.node_seconds, effort.branching = 1e-6, new_race(1000.0, 1.0)  # a solver of another age
    tried, n_calls = prove_or_solve(batch, lambda: exact)
    assert n_calls == 0
    assert tried.optimal.all()
    assert np.allclose(tried.cost, optima.cost, atol=1e-9)
    assert prove_or_solve(batch, lambda: exact, limits=Limits(max_nodes=500))[1] > 0  # a limit of one's own is kept


def test_what_is_known_ends_with_its_structure() -> None:
    compiled = knapsack(3, 1, np.random.default_rng(2)).compiled
    effort = Effort.of(compiled, "some")
    effort.answered(True, 1.0)
    assert Effort.of(compiled, "some") is effort is not Effort.of(compiled, "other")
    _KEPT.pop(compiled)
    there = weakref.ref(compiled)
    del compiled
    gc.collect()
    assert there() is None


def test_a_solver_of_the_user_is_not_asked_once_the_call_s_time_is_up() -> None:
    rng = np.random.default_rng(3)
    shape = knapsack(5, 1, rng)
    batch = shape.batch(rng.normal(size=(4, 10)))
    asked = []

    def slow(problem: Problem) -> list[int]:
        asked.append(problem)
        time.sleep(0.3)
        return [0] * 5

    answers = Speedup(shape.schema, solver=slow, trust=Trust(prove=False), limits=Limits(call_limit=0.2)).predict(batch)
    assert len(asked) == 1
    assert answers.has(Status.NO_TIME).tolist() == [False, True, True, True]

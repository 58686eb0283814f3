"""Whichever solver is asked, the answer is an optimum; and the one that is asked is soon the fastest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import exact
import numpy as np
import pytest
from hypothesis import given
from strategies import entity_relation, small_problems

from hasten.errors import SolverError, SolverTooSmall
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.model.solution import Solution, Status
from hasten.solvers import available_solvers, make_solver
from hasten.solvers.auto import FIRST, AutoSolver
from hasten.solvers.base import answer
from hasten.solvers.portfolio import Race
from hasten.speedup.parts import Limits
from hasten.speedup.predictor import Speedup

AUTO = make_solver("auto")


@dataclass
class Clock:
    """Time as `auto` sees it: it passes only while a fake solver works."""

    now: float = 0.0

    def read(self) -> float:
        return self.now

    monotonic = perf_counter = read


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("hasten.solvers.auto.time", clock)
    monkeypatch.setattr("hasten.solvers.auto.now", clock.read)
    return clock


class Fake:
    """A solver that takes a while: solves if it has the time, and says what it was given."""

    interruptible = True

    def __init__(self, clock: Clock, name: str, seconds: float, error: Exception | None = None) -> None:
        self.clock, self.name, self.seconds, self.error = clock, name, seconds, error
        self.given: list[tuple[float | None, Any]] = []

    def solve(self, problem: Problem, time_limit: float | None = None, start: Any = None) -> Solution:
        self.given.append((time_limit, start))
        if self.error is not None:
            raise self.error
        if time_limit is not None and time_limit < self.seconds:
            self.clock.now += time_limit
            return answer(problem, Status.TIME_LIMIT, np.zeros(problem.n_variables, dtype=np.int64), bound=-50.0)
        self.clock.now += self.seconds
        return answer(problem, Status.SOLVED, np.ones(problem.n_variables, dtype=np.int64))


def auto_of(*fakes: Fake) -> AutoSolver:
    auto = AutoSolver(solvers=["highs"])
    auto.solvers = tuple(fake.name for fake in fakes)
    auto._made = {fake.name: fake for fake in fakes}  # type: ignore[misc]
    return auto


def coins(n: int = 3) -> Problem:
    schema = Schema()
    coin = schema.variable("coin", ["tails", "heads"])
    shape = schema.structure()
    for _ in range(n):
        shape.add(coin)
    return shape.problem([[0.0, -1.0]] * n)


@given(small_problems())
def test_the_answer_is_the_optimum_whoever_gives_it(problem: Problem) -> None:
    found, optimum = AUTO.solve(problem), exact.optimum(problem)
    assert found.status.optimal
    assert found.cost == (math.inf if optimum == math.inf else pytest.approx(float(optimum), abs=1e-6))


def test_the_fastest_is_asked_first_and_others_only_where_there_is_time_to_spare() -> None:
    race = Race(["slow", "fast", "other"])
    assert race.ranked() == ["slow", "fast", "other"]
    assert race.choose() == "slow"
    race.took("slow", 1.0)
    assert race.ranked() == ["slow", "fast", "other"]
    assert race.spare == pytest.approx(0.01)
    race.took("fast", 0.1)
    assert race.ranked()[0] == "fast"
    race.took("other", 0.3, finished=False)
    assert race.ranked() == ["fast", "other", "slow"]
    assert race.seconds["other"] == 0.6
    assert race.lost == pytest.approx(0.3)
    race.exclude("other")
    assert race.ranked() == ["fast", "slow", "other"]


def test_one_that_takes_too_long_hands_its_labelling_to_the_next(clock: Clock) -> None:
    slow, fast = Fake(clock, "gurobi", 3 * FIRST), Fake(clock, "highs", 0.2)
    auto = auto_of(slow, fast)
    found = auto.solve(coins())
    assert found.status is Status.SOLVED
    assert found.cost == -3.0
    assert slow.given == [(FIRST, None)]
    assert fast.given[0][1].tolist() == [0, 0, 0]
    assert auto.race(found.problem.graph).ranked()[0] == "highs"
    auto.solve(coins())
    assert len(slow.given) == 1  # the other one is asked at once now
    assert auto.calls == {"gurobi": 1, "highs": 2}


def test_one_that_cannot_is_passed_over_and_if_none_can_that_is_said(clock: Clock) -> None:
    small, fine = Fake(clock, "gurobi", 0.0, SolverTooSmall("too large")), Fake(clock, "highs", 0.1)
    auto = auto_of(small, fine)
    assert [auto.solve(coins()).cost for _ in range(3)] == [-3.0] * 3
    assert len(small.given) == 1
    with pytest.raises(SolverTooSmall, match="too large"):
        auto_of(small).solve(coins())


def test_time_limits_are_kept_and_what_was_found_is_returned(clock: Clock) -> None:
    auto = auto_of(Fake(clock, "gurobi", 100.0), Fake(clock, "highs", 100.0))
    found = auto.solve(coins(), 0.05, np.array([1, 0, 0]))
    assert clock.now == 0.05
    assert (found.status, found.cost, found.bound) == (Status.TIME_LIMIT, -1.0, -50.0)


def test_others_are_tried_now_and_then_in_turns(clock: Clock) -> None:
    auto = auto_of(Fake(clock, "gurobi", 0.05), Fake(clock, "highs", 10.0), Fake(clock, "toulbar2", 10.0))
    for _ in range(800):
        auto.solve(coins())
    assert auto.calls["gurobi"] == 800
    assert 2 <= auto.calls["highs"] + auto.calls["toulbar2"] <= 5  # for 1% of the time
    assert abs(auto.calls["highs"] - auto.calls["toulbar2"]) <= 1


def test_a_speedup_asks_it() -> None:
    shape, auto = entity_relation(9), AutoSolver()
    speedup = Speedup(shape.schema, solver=auto, limits=Limits(max_nodes=0))
    batch = shape.batch(np.random.default_rng(0).normal(size=(3, shape.n_labels)))
    answers = speedup.predict(batch)
    assert auto.calls.total() >= speedup.counters.solver_calls > 0
    assert answers.cost == pytest.approx(Speedup(shape.schema).predict(batch).cost)


def test_what_it_may_choose_from_is_checked() -> None:
    assert available_solvers()["auto"]
    with pytest.raises(SolverError, match="chooses from"):
        make_solver("auto", solvers=["brute"])
    with pytest.raises(SolverError, match="chooses from"):
        make_solver("auto", solvers=[])
    assert make_solver("auto", solvers=["highs"]).solve(coins()).cost == -3.0

"""Limited time is shared in turns: a solver that needs a moment has it soon, however much time there is."""

from __future__ import annotations

import pytest

import hasten
from hasten.model.solution import Solution
from hasten.solvers.failures import OnError
from hasten.speedup.black_box import AT_FIRST, take_turns, unknown
from hasten.support.clock import now


def test_our_first_turn_is_short_however_long_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = hasten.Schema()
    shape = schema.structure([schema.variable("v", ["a", "b"])])
    problem, turns = shape.problem([[1.0, 0.5]]), list[float]()

    class Improving:
        def within(self, seconds: float) -> Solution:
            turns.append(seconds)
            return unknown(problem)

    monkeypatch.setattr(hasten.Certifier, "improving", lambda self, problem, found: Improving())
    for limit in (1000.0, 1.0):
        answer, called = take_turns(unknown(problem), hasten.make_solver("brute"), OnError.RAISE, now() + limit)
        assert (answer.cost, answer.status, called) == (0.5, hasten.Status.SOLVED, True)
    assert turns[0] == AT_FIRST
    assert turns[1] == pytest.approx(0.05, abs=0.02)

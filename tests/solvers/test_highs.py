"""HiGHS works in the calling thread where that is short, and beside it where it may be long."""

from __future__ import annotations

import threading

import pytest

from hasten.bench.families import FAMILIES
from hasten.model.solution import Status
from hasten.solvers import highs as module
from hasten.solvers import make_solver
from hasten.solvers.base import Asked
from hasten.solvers.highs import HighsSolver
from hasten.support.clock import Stop


@pytest.fixture
def problems():
    return FAMILIES["random"].problems(4, 6, seed=0)


@pytest.fixture
def seen(monkeypatch):
    """The threads in which HiGHS is asked."""
    threads, attempt = [], HighsSolver._attempt

    def noted(self, asked):
        threads.append(threading.get_ident())
        return attempt(self, asked)

    monkeypatch.setattr(HighsSolver, "_attempt", noted)
    return threads


def say_took(solver, problem, seconds):
    """Says what the last problem took, as on a machine that does nothing else."""
    solver.prepare(problem)
    solver._models[problem.structure.compiled][1].took = seconds


def test_after_a_problem_that_took_little_the_next_is_solved_in_the_calling_thread(problems, seen):
    solver = make_solver("highs")
    here = threading.get_ident()
    solver.solve(problems[0])
    say_took(solver, problems[0], 0.001)
    solver.solve(problems[1])
    assert seen[0] != here
    assert seen[1:] == [here]
    say_took(solver, problems[0], 1.0)
    solver.solve(problems[2])
    assert seen[2] != here


def test_one_that_takes_longer_than_expected_goes_on_beside_the_caller(problems, seen, monkeypatch):
    plain = [make_solver("highs", interruptible=False).solve(problem).cost for problem in problems]
    seen.clear()
    monkeypatch.setattr(module, "LONG", 0.0)  # the short time is over at once
    solver = make_solver("highs")
    for problem, cost in zip(problems, plain, strict=True):
        say_took(solver, problem, -1.0)
        found = solver.solve(problem)
        assert found.status is Status.SOLVED
        assert found.cost == pytest.approx(cost, abs=1e-9)
    assert {*seen} > {threading.get_ident()}


def test_a_limit_shorter_than_the_short_time_is_kept(problems):
    solver = make_solver("highs", time_limit=1e-9)
    say_took(solver, problems[0], 0.0)
    assert solver.solve(problems[0]).status is Status.NO_TIME


def test_ctrl_c_while_it_works_in_the_calling_thread_drops_its_model(problems, monkeypatch):
    solver = make_solver("highs")
    solver.solve(problems[0])
    say_took(solver, problems[0], 0.0)
    assert len(solver._models) == 1

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(HighsSolver, "_attempt", interrupted)
        with pytest.raises(KeyboardInterrupt):
            solver.solve(problems[1])
    assert len(solver._models) == 0
    assert solver.solve(problems[1]).status is Status.SOLVED


class Second(Stop):
    """A request to stop that is made once work has begun."""

    heard = 0

    def is_set(self) -> bool:
        self.heard += 1
        return self.heard > 1


def test_a_model_that_was_stopped_answers_the_next_problem():
    hard = FAMILIES["random"].problems(8, 3, seed=0)
    solver = make_solver("highs")
    solver.solve(hard[0])
    stop = Second()
    assert solver._solve(Asked(hard[1], stop=stop)).status is Status.NO_TIME
    assert stop.heard > 1
    assert solver.solve(hard[2]).status is Status.SOLVED

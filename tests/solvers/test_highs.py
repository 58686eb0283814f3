"""HiGHS is stopped at any time, and answers the next problem."""

from __future__ import annotations

import pytest

from hasten.bench.families import FAMILIES
from hasten.model.solution import Status
from hasten.solvers import make_solver
from hasten.solvers.base import Asked
from hasten.solvers.highs import HighsSolver
from hasten.support.clock import Stop


@pytest.fixture
def problems():
    return FAMILIES["random"].problems(4, 6, seed=0)


def test_ctrl_c_drops_the_model_that_may_be_half_at_work(problems, monkeypatch):
    solver = make_solver("highs")
    solver.solve(problems[0])
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

"""A solver of one's own that knows more than the schema is noticed, with or without proofs."""

from __future__ import annotations

import numpy as np
import pytest

from hasten.errors import SolverDisagrees
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.rules import Rule
from hasten.model.schema import Schema
from hasten.model.solution import Status
from hasten.model.structure import Structure
from hasten.solvers.brute import BruteSolver
from hasten.speedup.parts import Trust
from hasten.speedup.predictor import Speedup
from hasten.speedup.state import FIRST


def three() -> Structure:
    """Three variables that the schema leaves to themselves."""
    schema = Schema()
    kind = schema.variable("task", ["run", "wait"])
    shape = schema.structure()
    for _ in range(3):
        shape.add(kind)
    return shape


SHAPE = three()


def draw(n: int, seed: int = 0) -> Batch:
    return SHAPE.batch(np.random.default_rng(seed).normal(size=(n, 6)))


class Mine:
    """Solves exactly, with a rule that the schema does not have, from some call on."""

    name = "mine"

    def __init__(self, knows_from: int = 0, at_most: int = 1) -> None:
        self.calls = 0
        self.knows_from = knows_from
        self.rule = Rule.of("one runs", [(v, "run") for v in range(3)], at_most=at_most)

    def solve(self, problem: Problem) -> list[str] | None:
        self.calls += 1
        rules = [self.rule] if self.calls > self.knows_from else []
        return BruteSolver().solve(SHAPE.problem(problem.cost, rules=rules)).names


def test_a_solver_that_knows_more_is_noticed_at_once():
    mine = Mine()
    speedup = Speedup(SHAPE.schema, solver=mine, trust=Trust(audit=0.0))
    with pytest.raises(SolverDisagrees, match=r"mine answers with a labelling that costs .* State it in the schema"):
        speedup.predict(draw(20))
    assert mine.calls == FIRST == speedup.counters.audits == speedup.counters.solver_calls
    assert 0 < speedup.counters.disagreements <= FIRST
    with pytest.raises(SolverDisagrees, match=r"Problem 0: .* 'wait' there, 'run' here"):
        Speedup(SHAPE.schema, solver=Mine(at_most=0)).predict(SHAPE.problem([[-1.0, 0.0]] * 3))


def test_a_solver_that_finds_nothing_is_noticed_too():
    with pytest.raises(SolverDisagrees, match="says that no labelling is valid, but"):
        Speedup(SHAPE.schema, solver=lambda problem: Status.INFEASIBLE).predict(draw(1))


def test_one_that_agrees_is_asked_about_the_first_proofs_and_then_a_share():
    mine = Mine(at_most=3)
    speedup = Speedup(SHAPE.schema, solver=mine, trust=Trust(audit=0.0))
    assert speedup.predict(draw(10)).proved.all()
    assert mine.calls == 10
    for p in range(10):
        assert speedup.predict(draw(10, seed=1)[p]).proved
    assert mine.calls == FIRST == speedup.counters.audits
    speedup.set_params(trust__audit=0.1)
    speedup.predict(draw(1000, seed=2))
    assert 50 < mine.calls - FIRST < 200
    assert speedup.counters.audits == mine.calls == speedup.counters.solver_calls
    assert speedup.counters.disagreements == 0


def test_what_it_learns_later_is_noticed_later():
    speedup = Speedup(SHAPE.schema, solver=Mine(knows_from=FIRST), trust=Trust(audit=0.1))
    assert speedup.predict(draw(FIRST)).proved.all()
    with pytest.raises(SolverDisagrees):
        speedup.predict(draw(500, seed=1))


def test_our_own_solvers_are_not_asked_about_proofs():
    for solver in ("highs", BruteSolver()):
        speedup = Speedup(SHAPE.schema, solver=solver)
        assert speedup.predict(draw(50)).proved.all()
        assert speedup.predict(draw(1)[0]).proved
        assert speedup.counters.solver_calls == speedup.counters.audits == 0


def test_scores_leave_no_trace():
    mine = Mine(at_most=3)
    speedup = Speedup(SHAPE.schema, solver=mine)
    assert speedup.score(draw(20)) == 1.0
    assert mine.calls == speedup.counters.audits == 0

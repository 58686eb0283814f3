"""A solver of one's own that knows more than the schema is noticed, with or without proofs."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from hasten.errors import ProblemError, SolverDisagrees
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.rules import Rule
from hasten.model.schema import Schema
from hasten.model.solution import Source, Status
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


def test_one_that_is_to_be_followed_is_asked_from_then_on(caplog):
    speedup = Speedup(SHAPE.schema, solver=Mine(), trust=Trust(on_disagreement="follow"))
    batch = draw(200)
    with caplog.at_level(logging.WARNING):
        answers = speedup.predict(batch)
    assert caplog.records[0].message.startswith("From now on the solver is asked about every problem: Problem ")
    assert answers.by(Source.SOLVER).all()
    assert (answers.labels.reshape(-1, 3) == 0).sum(axis=1).max() == 1
    assert speedup.predict(draw(1)[0]).source is Source.SOLVER
    learned = Speedup(SHAPE.schema, solver=Mine(), answer="search", trust=Trust(on_disagreement="follow")).fit(batch)
    assert learned.counters.labelled == learned.counters.solver_calls == 200
    assert learned._state.follows


def test_what_is_followed_is_saved_and_forgotten_with_the_solver(tmp_path):
    speedup = Speedup(SHAPE.schema, solver=Mine(), trust=Trust(on_disagreement="follow"))
    speedup.predict(draw(20))
    speedup.save(tmp_path / "speedup")
    again = Speedup.load(tmp_path / "speedup", SHAPE.schema, solver=Mine())
    assert again.predict(draw(20)).by(Source.SOLVER).all()
    again.solver = Mine(at_most=3)
    again.predict(draw(1))
    assert again.predict(draw(20)).proved.all()


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


def test_scores_leave_no_trace_and_settings_are_checked():
    mine = Mine(at_most=3)
    speedup = Speedup(SHAPE.schema, solver=mine)
    assert speedup.score(draw(20)) == 1.0
    assert mine.calls == speedup.counters.audits == 0
    with pytest.raises(ProblemError, match="on_disagreement must be 'raise' or 'follow', got 'shrug'"):
        Speedup(SHAPE.schema, trust=Trust(on_disagreement="shrug")).predict(draw(1))

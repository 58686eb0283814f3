"""A solver that fails on one problem does not take the other answers with it."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from strategies import random_problem

from hasten.errors import NoAnswerError, ProblemError, SolverError, SolverMissing, SolverTooSmall
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.model.solution import Solution, Solutions, Source, Status
from hasten.model.structure import Structure
from hasten.proof.certifier import Certifier
from hasten.solvers import make_solver, solve_all
from hasten.solvers.base import OnError
from hasten.solvers.brute import BruteSolver
from hasten.speedup.parts import Limits, Trust
from hasten.speedup.predictor import Speedup


def pairs() -> Structure:
    """Ten variables, every two of which cost something together: too much for a proof without branching."""
    schema = Schema()
    kind = schema.variable("bit", ["no", "yes"])
    pair = schema.factor("pair", one=kind, other=kind)
    shape = schema.structure()
    bits = [shape.add(kind) for _ in range(10)]
    for n, one in enumerate(bits):
        for other in bits[n + 1 :]:
            shape.connect(pair, one=one, other=other)
    return shape


SHAPE = pairs()


def hard(n: int, seed: int = 0) -> Batch:
    """Problems of which about half are proved without branching."""
    rng = np.random.default_rng(seed)
    noise = rng.choice([0.01, 3.0], size=n)
    tables = [{f: rng.normal(size=(2, 2)) * noise[p] for f in range(len(SHAPE.factors))} for p in range(n)]
    return Batch.of([SHAPE.problem(rng.normal(size=20), tables=tables[p]) for p in range(n)])


class TooSmall(BruteSolver):
    """Our own enumeration, with a limit that these problems exceed."""

    def __init__(self) -> None:
        super().__init__(max_labellings=100)


TooSmall.__module__ = BruteSolver.__module__  # one of ours, so that proofs are not compared with it


@pytest.mark.parametrize("single", [False, True])
def test_answers_that_were_proved_outlive_a_solver_that_is_too_small(single, caplog):
    batch = hard(40)
    proved = Speedup(SHAPE.schema, limits=Limits(max_nodes=0)).predict(batch)
    left = ~proved.proved
    assert 5 < left.sum() < 35
    speedup = Speedup(SHAPE.schema, solver=TooSmall(), limits=Limits(max_nodes=0))
    with caplog.at_level(logging.WARNING):
        answers = [speedup.predict(batch[p]) for p in range(40)] if single else speedup.predict(batch)
    for p, answer in enumerate(answers):
        if left[p]:
            assert answer.status is Status.FAILED
            assert answer.reason.startswith("brute would score 1.02e+03 labellings; its limit is 100.")
            assert answer.valid  # found on the way to a proof that did not come about
            assert answer.cost == pytest.approx(batch[p].total(answer.labels))
            assert answer.bound <= proved.cost[p] + 1e-6 <= answer.cost + 2e-6
        else:
            assert (answer.status, answer.reason) == (Status.PROVED, "")
            assert answer.cost == proved.cost[p]
    warned = [record.message for record in caplog.records if "solver failed" in record.message]
    assert len(warned) == (left.sum() if single else 1)
    if not single:
        first = np.flatnonzero(left)[0]
        assert warned[0].startswith(f"The solver failed on {left.sum()} of 40 problems. The first is problem {first}: ")
        assert sorted(answers.reasons) == np.flatnonzero(left).tolist()
    assert speedup.counters.problems == 40
    assert speedup.counters.proved == (~left).sum()


def test_a_failure_is_an_error_for_those_who_ask():
    speedup = Speedup(SHAPE.schema, solver=TooSmall(), trust=Trust(on_error="raise"), limits=Limits(max_nodes=0))
    with pytest.raises(SolverTooSmall):
        speedup.predict(hard(40))
    with pytest.raises(ProblemError, match="on_error must be 'keep' or 'raise', got 'ignore'"):
        Speedup(SHAPE.schema, trust=Trust(on_error="ignore")).predict(hard(1))


def picky(problem: Problem) -> Solution:
    """Solves every problem but those whose first cost is positive."""
    if problem.cost[0] > 0:
        raise ValueError("the first cost is positive")
    return BruteSolver().solve(problem)


@pytest.mark.parametrize("mode", ["certified", "search"])
def test_without_proofs_failures_are_kept_apart_too(mode):
    batch = hard(30, seed=1)
    fails = np.array([problem.cost[0] > 0 for problem in batch])
    speedup = Speedup(
        SHAPE.schema, solver=picky, answer=mode, trust=Trust(prove=False, audit=1.0, min_agreement=None), learn=True
    )
    answers = speedup.predict(batch)
    assert 0 < fails.sum() < 30
    if mode == "certified":
        assert (answers.has(Status.FAILED) == fails).all()
        assert answers.has(Status.SOLVED).sum() == (~fails).sum()
        failed = answers[int(np.flatnonzero(fails)[0])]
        assert failed.reason == "ValueError: the first cost is positive"
        with pytest.raises(NoAnswerError, match="ValueError: the first cost is positive"):
            _ = failed.labels
    else:  # where the audit fails, the search's answer stands
        assert answers.valid.all()
        assert (answers.by(Source.SEARCH) == fails).all()
        assert speedup.counters.audits == 30  # one that fails counts as a disagreement
        assert speedup.counters.disagreements >= fails.sum()


def test_what_the_solver_failed_on_teaches_nothing():
    batch = hard(40)
    kept = Speedup(SHAPE.schema, solver=TooSmall(), limits=Limits(max_nodes=0)).predict(batch)
    assert kept.has(Status.FAILED).any()
    for answers in (kept, list(kept)):
        speedup = Speedup(SHAPE.schema, answer="search").fit(batch, answers)
        assert speedup._state.learner.state.n_skipped == kept.has(Status.FAILED).sum()


def test_a_missing_package_is_nobodys_own_failure():
    def missing(problem: Problem) -> Solution:
        raise SolverMissing("not there")

    with pytest.raises(SolverMissing):
        solve_all(make_solver(missing), hard(2))


def test_reasons_go_where_their_answers_go():
    batch = Batch.of([random_problem(np.random.default_rng(seed)) for seed in range(6)])
    solver = BruteSolver()
    answers = [solve_all(make_solver(_fail_on(p)) if p in (1, 4) else solver, [batch[p]])[0] for p in range(6)]
    every = Solutions.of(batch, answers)
    assert every.reasons == {1: "ValueError: no 1", 4: "ValueError: no 4"}
    assert every.select([4, 0, 1]).reasons == {0: "ValueError: no 4", 2: "ValueError: no 1"}
    assert every[3:].reasons == {1: "ValueError: no 4"}
    assert Solutions.joined(batch, [every[:2], every[2:]]).reasons == every.reasons
    fine = solve_all(solver, batch.select([1]))
    assert every.replace([1], fine).reasons == {4: "ValueError: no 4"}
    assert every.replace([1, 4], every.select([1, 4])).reasons == every.reasons
    assert [answer.reason for answer in every] == ["", "ValueError: no 1", "", "", "ValueError: no 4", ""]


def _fail_on(p: int):
    def fail(problem: Problem) -> None:
        raise ValueError(f"no {p}")

    return fail


def test_solve_all_raises_if_asked():
    with pytest.raises(ValueError, match="no 7"):
        solve_all(make_solver(_fail_on(7)), hard(2), on_error=OnError.RAISE)


def test_what_a_status_says_fits_whoever_found_it():
    found = Certifier(max_nodes=0)(hard(40))
    by = {answer.source for answer in found if answer.status is Status.FOUND}
    assert Source.SEARCH not in by
    assert by
    assert "search" not in Status.FOUND


@pytest.mark.parametrize("answer", ["search", "learned"])
def test_a_black_box_that_always_fails_teaches_nothing(answer):
    def broken(problem: Problem) -> list[int]:
        raise RuntimeError("out of order")

    speedup = Speedup(SHAPE.schema, solver=broken, answer=answer, trust=Trust(prove=False))
    with pytest.raises(SolverError, match=r"failed on all 12 problems.*out of order"):
        speedup.fit(hard(12))
    with pytest.raises(ProblemError, match="no problems to learn from"):
        speedup.fit(Batch.of([]))

"""Proved, else solved: whatever happens, an answer's labels, cost, bound, status and source belong together."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import naive
import numpy as np
import pytest
from strategies import random_problem

from hasten.errors import SolverWrong
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.solution import Solution, Source, Status, numbered
from hasten.proof.certifier import Certifier
from hasten.search.beam import BeamSearch
from hasten.solvers import Solver, make_solver
from hasten.solvers.base import OnError, answer
from hasten.speedup import black_box
from hasten.speedup.black_box import prove_or_solve, solve_one, solve_open
from hasten.speedup.parts import Limits


def some_problems(n: int = 150, seed: int = 1) -> Batch:
    rng = np.random.default_rng(seed)
    return Batch.of([random_problem(rng) for _ in range(n)])


def unproved(batch: Batch):
    """Answers with as little effort as there can be, so that many are left open."""
    return Certifier(max_join=0, max_sweeps=1, max_nodes=0)(batch)


class Late:
    """A solver that runs out of time: with nothing, or with the labels that are worst."""

    name = "late"

    def __init__(self, with_labels: bool) -> None:
        self.with_labels = with_labels

    def solve(self, problem: Problem) -> Solution:
        every = product(*(range(len(kind.labels)) for kind in problem.structure.kinds))
        valid = [labels for labels in every if naive.valid(problem, labels)]
        if not self.with_labels or not valid:
            return answer(problem, Status.NO_TIME, bound=-1e9)
        worst = max(valid, key=lambda labels: naive.cost(problem, labels))
        return answer(problem, Status.TIME_LIMIT, np.array(worst, dtype=np.int64), bound=-1e9)


def check(found: Solution) -> None:
    """Sees that all that an answer says is true of its labels."""
    problem, best = found.problem, naive.solve(found.problem).cost
    assert found.bound <= best + 1e-6 * max(1.0, abs(best)) or best == math.inf
    if found.values is None:
        assert (found.cost, found.valid) == (math.inf, False)
        assert found.status in (Status.OPEN, Status.NO_TIME, Status.INFEASIBLE)
    else:
        assert found.valid
        assert problem.check(found.labels).valid
        assert found.cost == pytest.approx(problem.total(found.labels))
        assert found.bound <= found.cost
    if found.status.optimal:
        assert found.cost == pytest.approx(best, rel=1e-6, abs=1e-6)
    if found.status is Status.SOLVED:
        assert found.source is Source.SOLVER
    if found.status in (Status.PROVED, Status.FOUND, Status.OPEN):
        assert found.source is not Source.SOLVER


@pytest.mark.parametrize("solver", [make_solver("brute"), Late(False), Late(True)])
@pytest.mark.parametrize("searched", [False, True])
def test_what_an_answer_says_is_true_of_its_labels(solver, searched):
    batch = some_problems()
    found = BeamSearch(1)(batch) if searched else None
    before = Certifier(max_join=0, max_sweeps=1, max_nodes=0)(batch, found)
    answers, calls = solve_open(before, lambda: solver)
    assert calls == (~before.optimal).sum() > 0
    for p, each in enumerate(answers):
        check(each)
        assert each.cost <= before.cost[p]
        assert each.bound >= min(before.bound[p], each.cost)
    if solver.name == "brute":
        assert answers.optimal.all()
        assert (answers.by(Source.SOLVER) == ~before.optimal).all()


def test_progress_changes_no_answer_and_counts_every_problem(monkeypatch):
    monkeypatch.setattr(black_box, "CHUNK", 40)
    batch, told = some_problems(), []
    plain, calls = prove_or_solve(batch, lambda: make_solver("brute"), limits=Limits(max_nodes=0))
    shown, again = prove_or_solve(
        batch,
        lambda: make_solver("brute"),
        limits=Limits(max_nodes=0),
        progress=lambda done, of: told.append((done, of)),
    )
    assert calls == again
    np.testing.assert_array_equal(shown.labels, plain.labels)
    for name in ("cost", "bound", "valid", "status", "source", "n_costs"):
        np.testing.assert_array_equal(getattr(shown, name), getattr(plain, name))
    assert told == sorted(told)
    assert told[-1] == (len(batch), len(batch))
    assert {of for _, of in told} == {len(batch)}


def test_nothing_to_answer_is_answered():
    told = []
    for progress in (None, lambda done, of: told.append(done)):
        answers, calls = prove_or_solve(Batch.of([]), _no_solver, progress=progress)
        assert (len(answers), calls) == (0, 0)
    assert told == []


def test_the_solver_is_made_only_if_it_is_needed():
    batch = some_problems(20)
    proved = Certifier()(batch).proved
    assert prove_or_solve(batch.select(proved), _no_solver)[1] == 0
    with pytest.raises(AssertionError):
        solve_open(unproved(some_problems()), _no_solver)


def _no_solver() -> Solver:
    raise AssertionError("Nobody needs a solver here.")


def test_a_solver_that_is_refuted_is_an_error():
    class Wrong:
        name = "wrong"

        def solve(self, problem: Problem) -> Solution:
            return replace(Late(True).solve(problem), status=Status.SOLVED)

    batch = some_problems()
    best = Certifier()(batch)
    found = replace(best, status=np.repeat(numbered(Status.FOUND), len(best)))
    worst = np.array([Late(True).solve(batch[p]).cost for p in range(len(batch))])
    p = np.flatnonzero(best.valid & (worst > best.cost + 0.1))[:1]
    with pytest.raises(SolverWrong, match="wrong says that nothing is better than"):
        solve_open(found.select(p), lambda: Wrong(), on_error=OnError.RAISE)
    (kept,), _ = solve_open(found.select(p), lambda: Wrong())
    assert kept.status is Status.FAILED
    assert kept.reason.startswith("wrong says that nothing is better than")
    assert kept.cost == best.cost[p[0]]  # what was found is still the best that is known
    assert (kept.labels == best[int(p[0])].labels).all()


def test_limited_time_is_shared_with_the_solver(monkeypatch):
    """Both have short turns, ours a moment, then longer ones, the solver of more than a quarter; the last is ours."""
    now, ours, theirs = [100.0], list[float](), list[float]()
    found = replace(unproved(some_problems(1))[0], status=Status.OPEN)

    class Slow:
        on_better = None

        def within(self, seconds: float) -> Solution:
            ours.append(seconds)
            now[0] += seconds
            return found

    def ask(found: Solution, solver: Solver, left: float) -> Solution:
        theirs.append(left)
        now[0] += left
        return found

    monkeypatch.setattr(Certifier, "improving", lambda self, problem, found: Slow())
    monkeypatch.setattr(black_box, "now", lambda: now[0])
    monkeypatch.setattr(black_box, "better", ask)
    answer, called = solve_one(found, lambda: make_solver("brute"), limits=(100.0, math.inf), harder=True)
    assert called
    assert answer.status in (Status.TIME_LIMIT, Status.NO_TIME)
    assert ours == [black_box.AT_FIRST, 15.0, 100.0]
    assert theirs == [5.0, 30.0]


def test_the_solver_has_all_the_time_that_the_proof_leaves():
    class Timed:
        name, interruptible, given = "timed", True, list[float]()

        def solve(self, problem: Problem, time_limit: float | None = None, start: object = None) -> Solution:
            self.given.append(time_limit or math.inf)
            return make_solver("brute").solve(problem)

    solver = Timed()
    _, calls = prove_or_solve(some_problems(), lambda: solver, limits=Limits(time_limit=600.0, max_nodes=0))
    assert calls == len(solver.given) > 0
    assert min(solver.given) > 500.0  # the proofs took hardly any of it
    assert max(solver.given) <= 600.0

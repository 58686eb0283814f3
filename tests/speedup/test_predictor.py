"""The product: the black box's answers whatever happens, and what it counts, learns and keeps on the way."""

from __future__ import annotations

import json
import math
import pickle
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise, permutations
from pathlib import Path

import naive
import numpy as np
import pytest
from strategies import ARGUMENTS, ENTITIES, random_problem

from hasten.errors import (
    ModelError,
    NotFittedError,
    ProblemError,
    SchemaError,
    SolverDisagrees,
    SolverError,
    SolverMissing,
    SolverWrong,
)
from hasten.learning.learner import Learner
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.model.solution import Solution, Source, Status
from hasten.model.structure import Structure
from hasten.proof.certifier import Certifier
from hasten.search.beam import BeamSearch
from hasten.solvers import make_solver
from hasten.speedup.parts import Certified, Limits, Search, Trust
from hasten.speedup.persistence import FORMAT
from hasten.speedup.predictor import Speedup
from hasten.speedup.state import FIRST
from hasten.support.forms import load_tensors, save_tensors


@lru_cache
def news() -> Schema:
    """The paper's schema, with its features, and a rule that keeps variables from being eliminated."""
    schema = Schema()
    entity = schema.variable("entity", ENTITIES)
    relation = schema.variable("relation", [*ARGUMENTS, "NoRel"])
    args = schema.factor("args", source=entity, relation=relation, target=entity)
    for name, (source, target) in ARGUMENTS.items():
        args.allow(relation=name, source=source, target=target)
    args.allow(relation="NoRel")
    schema.rule("few places", at_most=2, entity="location")
    return schema


@lru_cache
def shape(n_entities: int) -> Structure:
    kinds, made = news().variables, news().structure()
    entities = [made.add(kinds["entity"]) for _ in range(n_entities)]
    for source, target in permutations(entities, 2):
        made.connect(news().factors["args"], source=source, relation=made.add(kinds["relation"]), target=target)
    return made


def batch_of(seed: int, n: int, noise: float = 1.0, sizes: tuple[int, ...] = (2, 3, 4)) -> Batch:
    rng = np.random.default_rng(seed)
    structure = rng.integers(len(sizes), size=n)
    shapes = [shape(size) for size in sizes]
    total = sum(shapes[s].n_labels for s in structure)
    costs = rng.normal(size=total) * noise
    made = Batch.build(shapes, structure, costs)
    for p in range(n):  # mostly, nothing is related
        first = shapes[structure[p]].graph.first
        costs[made.cost_at[p] + first[1:] - 1] -= 1
    return Batch.build(shapes, structure, costs)


class Counting:
    """A solver that counts its calls."""

    def __init__(self, name: str = "brute") -> None:
        self.inner, self.calls, self.name = make_solver(name), 0, f"counted {name}"

    def solve(self, problem: Problem) -> Solution:
        self.calls += 1
        return self.inner.solve(problem)


def optima(batch: Batch) -> np.ndarray:
    return Certifier()(batch).cost


# -- certified ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["highs", "brute", "gurobi", "toulbar2"])
@pytest.mark.parametrize("max_nodes", [0, 20_000])
def test_certified_answers_have_the_solvers_objective(name, max_nodes):
    package = {"gurobi": "gurobipy", "toulbar2": "pytoulbar2", "highs": "highspy", "brute": "numpy"}[name]
    pytest.importorskip(package)
    rng = np.random.default_rng(len(name))
    calls = infeasible = 0
    for _ in range(300):
        problem = random_problem(rng)
        speedup = Speedup(problem.structure.schema, solver=name, limits=Limits(max_nodes=max_nodes))
        answer, truth = speedup.predict(problem), naive.solve(problem)
        assert answer.status.optimal
        assert answer.cost == pytest.approx(truth.cost, rel=1e-6, abs=1e-6)
        assert answer.valid == (truth.cost < math.inf)
        if answer.valid:
            assert problem.check(answer.labels).valid
        assert answer.proved == (answer.source is not Source.SOLVER)
        calls += speedup.counters.solver_calls
        infeasible += answer.status is Status.INFEASIBLE
    assert infeasible
    assert calls or max_nodes


def test_thousands_of_problems_at_once():
    batch = batch_of(0, 3000)
    speedup = Speedup(news(), solver="brute")
    answers = speedup.predict(batch)
    assert answers.cost == pytest.approx(optima(batch))
    assert answers.valid.all()
    rng = np.random.default_rng(0)
    for p in rng.choice(3000, 20):
        assert answers.cost[p] == pytest.approx(speedup.predict(batch[int(p)]).cost)
    small = np.flatnonzero(batch.structure == 0)[:200]
    for p in small.tolist():
        assert answers.cost[p] == pytest.approx(naive.solve(batch[p]).cost)


def test_the_solver_is_asked_only_where_the_bound_is_not_tight():
    batch = batch_of(1, 400, noise=3.0, sizes=(3, 4))
    alone = Certifier(max_nodes=0)(batch)
    solver = Counting("highs")
    speedup = Speedup(news(), solver=solver, limits=Limits(max_nodes=0))
    answers = speedup.predict(batch)
    compared = speedup.counters.audits  # proofs, with a solver of one's own
    assert solver.calls - compared == (~alone.proved).sum() == speedup.counters.solver_calls - compared > 0
    assert speedup.counters.disagreements == 0
    assert (answers.by(Source.SOLVER) == ~alone.proved).all()
    assert answers.cost == pytest.approx(optima(batch))
    branching = Speedup(news(), solver=Counting("highs"))
    assert branching.predict(batch).cost == pytest.approx(answers.cost)
    assert branching.counters.solver_calls == branching.counters.audits
    assert branching.counters.by_branch > 0


def test_what_no_labelling_satisfies_is_said_to_be_infeasible():
    costs = np.zeros(shape(2).n_labels)
    costs[:4] = np.inf
    problem = shape(2).problem(costs)
    for mode in ("certified", "search"):
        speedup = Speedup(news(), answer=mode).fit(batch_of(0, 50))
        answer = speedup.predict(problem)
        assert answer.status is Status.INFEASIBLE
        assert not answer.valid
        assert answer.proved
        assert speedup.counters.infeasible == 1
        assert speedup.score([problem]) == 1


class Slow:
    """A solver that always runs out of time, with or without a labelling."""

    def __init__(self, labels: bool) -> None:
        self.labels = labels

    def solve(self, problem: Problem) -> Solution:
        if not self.labels:
            return Solution(problem, Status.NO_TIME, Source.SOLVER, None, math.inf, -math.inf, False, 0)
        values = np.diff(problem.graph.first) - 1
        cost = problem.total(values)
        return Solution(problem, Status.TIME_LIMIT, Source.SOLVER, values, cost, -math.inf, True, 0)


@pytest.mark.parametrize("labels", [False, True])
def test_a_solver_out_of_time_never_makes_an_answer_worse(labels):
    batch = batch_of(1, 200, noise=3.0, sizes=(3, 4))
    alone = Certifier(max_nodes=0)(batch)
    answers = Speedup(news(), solver=Slow(labels), limits=Limits(max_nodes=0)).predict(batch)
    assert (answers.cost <= alone.cost).all()
    assert not (answers.proved & ~alone.proved).any()
    assert (answers.bound <= answers.cost + 1e-9).all()


def test_a_solver_that_is_refuted_is_an_error():
    batch = batch_of(1, 200, noise=3.0, sizes=(3, 4))
    with pytest.raises(SolverWrong, match="valid labelling that costs"):
        Speedup(news(), solver=lambda problem: [3] * 3 + [5] * 6, limits=Limits(max_nodes=0)).predict(
            batch.select(np.flatnonzero(batch.structure == 0))
        )
    with pytest.raises(SolverDisagrees, match=r"Is it not meant to be exact\? Use Trust\(prove=False\)"):
        Speedup(news(), solver=lambda problem: Status.INFEASIBLE, limits=Limits(max_nodes=0)).predict(batch)


# -- search ---------------------------------------------------------------------------------------------


def test_search_mode_trusts_the_search():
    learn, batch = batch_of(3, 300), batch_of(4, 300)
    speedup = Speedup(news(), answer=Search(width=3, guided=True), trust=Trust(audit=0)).fit(learn)
    found = BeamSearch(3, speedup.heuristic.weights, look_ahead=True)(batch)
    answers = speedup.predict(batch)
    assert (answers.labels == found.labels).all()
    assert not answers.proved.any()
    assert speedup.counters.by_search == 300
    assert speedup.agreement.n == 0
    right = np.isclose(answers.cost, optima(batch))
    assert speedup.score(batch) == pytest.approx(right.mean())
    assert speedup.counters.problems == 300  # scoring leaves no trace


def test_what_the_search_breaks_is_repaired_unless_told_otherwise():
    learn, batch = batch_of(3, 200), batch_of(5, 400, noise=2.0)
    answer = Search(width=1, enforce=False, guided=False)
    raw = Speedup(news(), answer=answer, trust=Trust(audit=0, repair=False)).fit(learn).predict(batch)
    broken = ~raw.valid
    assert 0 < broken.sum() < 400
    speedup = Speedup(news(), answer=answer, trust=Trust(audit=0)).fit(learn)
    answers = speedup.predict(batch)
    assert answers.valid.all()
    assert answers.cost[broken] == pytest.approx(optima(batch)[broken])
    assert answers.proved[broken].all()
    assert (answers.labels == raw.labels)[np.repeat(~broken, batch.n_variables)].all()
    assert speedup.counters.by_search == (~broken).sum()


def test_audited_answers_are_the_black_boxes():
    batch = batch_of(6, 500, noise=2.0)
    speedup = Speedup(news(), answer=Search(width=1), trust=Trust(audit=0.3, min_agreement=None)).fit(batch_of(3, 200))
    answers = speedup.predict(batch)
    audited = answers.proved
    assert 100 < audited.sum() < 200
    assert answers.cost[audited] == pytest.approx(optima(batch)[audited])
    counters, agreement = speedup.counters, speedup.agreement
    assert counters.audits == agreement.n == audited.sum()
    found = BeamSearch(1, look_ahead=True, reduce=True)(batch)
    wrong = found.cost > optima(batch) + 1e-6
    assert counters.disagreements == wrong[audited].sum() > 0
    assert agreement.estimate == pytest.approx(1 - wrong[audited].mean())
    assert agreement.low < 1 - wrong.mean() < agreement.high


@pytest.mark.parametrize("size", [1, 50, 3000])
def test_a_drift_costs_few_answers_however_they_come(size):
    """With 2% of the answers audited, the first wrong one that is seen is the fiftieth; the next are all audited."""
    rng, wrong = np.random.default_rng(1), []
    for _ in range(12):
        answer = Search(width=1, look_ahead=False, guided=True)
        speedup = Speedup(guessing().schema, answer=answer, trust=Trust(audit=0.02)).fit(stream(rng, 200, 0.99))
        problems = stream(rng, 3000, 0.01)
        optimum = optima(problems)
        seen = 0
        for at in range(0, 3000, size):
            some = problems.select(range(at, at + size))
            seen += int((speedup.predict(some).cost > optimum[at : at + size] + 1e-9).sum())
            if not speedup.trusted:
                break
        assert not speedup.trusted
        wrong.append(seen)
    assert np.mean(wrong) < 80


def test_a_black_box_that_fails_ends_the_trust():
    def broken(problem):
        raise RuntimeError("out of order")

    rng = np.random.default_rng(0)
    problems = stream(rng, 400, 0.99)
    speedup = Speedup(guessing().schema, answer=Search(guided=True), trust=Trust(audit=0.5)).fit(problems)
    speedup.solver, speedup.trust = broken, Trust(audit=0.5, prove=False)
    assert speedup.predict(problems).valid.all()  # the search's own, where nobody could tell
    assert not speedup.trusted
    assert speedup.counters.audits == speedup.counters.disagreements >= 4
    assert speedup.predict(problems).has(Status.FAILED).all()


def test_counters_add_up():
    batch = batch_of(7, 300, noise=2.0)
    for mode, answer in (("certified", "certified"), ("search", Search(theta=1.0))):
        speedup = Speedup(news(), answer=answer, trust=Trust(audit=0.2), limits=Limits(max_nodes=0)).fit(
            batch_of(3, 200)
        )
        before = speedup.counters
        assert (before.problems, before.labelled) == (0, 200)
        answers = speedup.predict(batch)
        now = speedup.counters
        assert now.problems == 300 == now.by_search + now.by_bound + now.by_branch + now.by_solver
        assert now.proved == answers.proved.sum()
        assert now.costs == answers.n_costs.sum() <= now.variables == batch.variable_at[-1]
        assert now.solver_calls >= now.by_solver
        assert now.disagreements <= now.audits
        if mode == "certified":
            assert (now.audits, now.costs, now.by_search) == (0, now.variables, 0)
        speedup.predict(batch)
        assert speedup.counters.problems == 600


class Scorer:
    """Gives a batch's costs on request, and remembers what it was asked."""

    def __init__(self, batch: Batch) -> None:
        self.batch, self.asked = batch, []

    def __call__(self, problems: np.ndarray, variables: np.ndarray) -> np.ndarray:
        self.asked += zip(problems.tolist(), variables.tolist(), strict=True)
        return np.concatenate([self.batch[int(p)].costs_of(int(v)) for p, v in zip(problems, variables, strict=True)])


def test_lazy_costs_that_are_skipped_are_never_asked_for():
    given = batch_of(8, 200)
    scorer = Scorer(given)
    lazy = Batch.build(given.structures, given.structure, scorer)
    speedup = Speedup(news(), answer=Search(theta=1e9), trust=Trust(audit=0)).fit(batch_of(3, 200))
    answers = speedup.predict(lazy)
    assert len(scorer.asked) == len(set(scorer.asked)) == answers.n_costs.sum() == speedup.counters.costs
    assert len(scorer.asked) < given.variable_at[-1]
    assert (answers.labels == speedup.predict(given).labels).all()
    audited = Speedup(news(), answer=Search(theta=1e9), trust=Trust(audit=1)).fit(batch_of(3, 200)).predict(lazy)
    assert audited.cost == pytest.approx(optima(given))
    assert Speedup(news()).predict(lazy).cost == pytest.approx(optima(given))


@pytest.mark.parametrize(
    ("settings", "risk", "changes"),
    [
        ({"reduce": False}, 0.02, False),  # skips only where the constraints leave no choice
        ({"reduce": False, "guided": True}, 0.02, True),
        ({"reduce": True}, 0.3, True),  # against a search over what elimination leaves, which needs all costs
    ],
)
def test_calibrate_chooses_theta_and_keeps_its_promise(settings, risk, changes, tmp_path):
    held_out, fresh = batch_of(9, 2000), batch_of(10, 2000)
    answer = Search(look_ahead=False, **settings)
    speedup = Speedup(news(), answer=answer, trust=Trust(audit=0)).fit(batch_of(3, 300))
    before = speedup.predict(fresh)
    chosen = speedup.calibrate(held_out, risk=risk)
    assert speedup.search.theta == chosen.theta < math.inf
    assert speedup.answer is answer  # the setting stays as it was given
    assert chosen.share < 1
    after = speedup.predict(fresh)
    owner = np.repeat(np.arange(2000), fresh.n_variables)
    changed = len(np.unique(owner[before.labels != after.labels])) / 2000
    assert changed <= risk + 0.01
    assert (changed > 0) == changes
    assert after.n_costs.sum() / fresh.variable_at[-1] == pytest.approx(chosen.share, abs=0.02)
    chosen = speedup.calibrate(held_out, risk=0.2, against="solver")
    assert getattr(speedup.search, "theta", math.inf) == chosen.theta
    speedup.save(tmp_path / "calibrated")
    again = Speedup.load(tmp_path / "calibrated", news())
    assert repr(again.search) == repr(speedup.search)
    assert again.set_params(answer__theta=7.0).search.theta == 7.0  # a setting has the last word
    with pytest.raises(ProblemError, match="'search' or 'solver'"):
        speedup.calibrate(held_out, against="gold")


@pytest.mark.parametrize("settings", [{}, {"reduce": False}, {"look_ahead": False}])
def test_calibrate_says_which_settings_keep_theta_from_being_finite(settings):
    answer = Search(width=1, **settings)
    speedup = Speedup(news(), answer=answer, trust=Trust(audit=0)).fit(batch_of(3, 300))
    chosen = speedup.calibrate(batch_of(9, 1000, noise=2.0), risk=0.02)
    assert chosen.theta == math.inf
    for name in ("look_ahead", "reduce"):
        assert (f"{name}=False" in chosen.note) == settings.get(name, True)
    with pytest.raises(ProblemError, match="computes every cost, so there is no theta"):
        Speedup(news()).calibrate(batch_of(9, 10))
    assert str(chosen).endswith(chosen.note)
    plain = Speedup(news(), answer=Search(look_ahead=False, reduce=False), trust=Trust(audit=0)).fit(batch_of(3, 300))
    assert plain.calibrate(batch_of(9, 1000), risk=0.02).note == ""


# -- a black box whose answers are its own --------------------------------------------------------------


class Stubborn:
    """A black box that calls everything `a`, which is valid and rarely the cheapest."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, problem: Problem) -> list[str]:
        self.calls += 1
        return ["a", "a"]


def test_a_solver_that_is_not_to_be_second_guessed_is_always_asked():
    batch = stream(np.random.default_rng(0), 100, 0.5)
    asking = Stubborn()
    speedup = Speedup(guessing().schema, solver=asking, trust=Trust(prove=False))
    answers = speedup.predict(batch)
    assert asking.calls == speedup.counters.solver_calls == speedup.counters.by_solver == 100
    assert not answers.labels.any()
    assert not answers.proved.any()
    assert answers.valid.all()
    assert speedup.predict(batch[0]).names == ["a", "a"]
    assert speedup.score(batch) == 1


def test_the_search_learns_from_the_solver_itself_and_is_audited_against_it():
    rng, solver = np.random.default_rng(0), Stubborn()
    answer, trust = Search(width=1, look_ahead=False), Trust(audit=0.2, min_agreement=None, prove=False)
    speedup = Speedup(guessing().schema, solver=solver, answer=answer, trust=trust).fit(stream(rng, 500, 0.5))
    assert solver.calls == speedup.counters.solver_calls == 500
    batch = stream(rng, 300, 0.5)
    assert not speedup.predict(batch).labels.any()  # which only weights can know
    assert solver.calls == 500 + speedup.agreement.n > 500 + 30
    assert speedup.agreement.estimate == speedup.score(batch) == 1
    against = {"risk": 0.05, "against": "solver"}
    assert speedup.calibrate(batch, **against).changed == 0
    cheapest = replace_setting(speedup, answer__guided=False)
    assert 0.4 < cheapest.score(batch) < 0.6  # cheaper answers are not the black box's
    assert 0.4 < cheapest.calibrate(batch, **against).changed < 0.6
    cheapest.predict(batch)
    assert cheapest.counters.disagreements > 10


def test_repairs_are_the_solvers_own():
    batch, solver = stream(np.random.default_rng(0), 200, 0.5), Stubborn()
    answer = Search(width=1, enforce=False, look_ahead=False, guided=False)
    trust = Trust(audit=0, prove=False)
    speedup = Speedup(guessing().schema, solver=solver, answer=answer, trust=trust).fit(batch)
    answers = speedup.predict(batch)
    repaired = answers.by(Source.SOLVER)
    assert solver.calls == 200 + repaired.sum() > 250
    assert not answers.labels[np.repeat(repaired, 2)].any()
    assert answers.valid.all()


@pytest.mark.parametrize("prove", [False, True])
def test_a_solver_out_of_time_takes_no_answer_away(prove):
    learn, batch = batch_of(3, 200), batch_of(1, 100, noise=3.0, sizes=(3, 4))
    search = {"answer": "search", "trust": Trust(audit=1.0, prove=prove), "limits": Limits(max_nodes=0)}
    silent = Speedup(news(), solver=Slow(False), **search).fit(learn, Certifier()(learn))
    answers = silent.predict(batch)
    assert answers.valid.all()
    found = BeamSearch(2, look_ahead=True, reduce=True)(batch)
    assert (answers.cost <= found.cost + 1e-9).all()
    if not prove:
        assert (answers.labels == found.labels).all()
        assert (silent.agreement.n, silent.counters.solver_calls) == (0, 100)
        assert silent.counters.by_search == 100
    late = Speedup(news(), solver=Slow(True), **search).fit(learn, Certifier()(learn))
    late.predict(batch)
    if not prove:
        assert late.counters.by_solver == late.agreement.n == 100
        assert late.agreement.estimate == 1  # to better what was cut short is not a disagreement


# -- learning -------------------------------------------------------------------------------------------


def test_fit_learns_what_the_learner_learns():
    learn = batch_of(3, 300)
    speedup = Speedup(news(), answer=Search(guided=True, width=2), seed=5).fit(learn)
    learner = Learner(2, seed=5, enforce=True, look_ahead=True).fit(learn, Certifier()(learn))
    assert (speedup.heuristic.weights == learner.weights).all()
    assert speedup.counters.updates == learner.n_mistakes
    given = Speedup(news(), solver=Counting(), answer=Search(guided=True, width=2), seed=5).fit(
        learn, Certifier()(learn)
    )
    assert (given.heuristic.weights == learner.weights).all()
    more = batch_of(4, 100)
    speedup.partial_fit(more)
    learner.partial_fit(more, Certifier()(more))
    assert (speedup.heuristic.weights == learner.weights).all()


def test_fit_tries_whether_to_be_guided():
    learn, test = batch_of(3, 2000), batch_of(4, 1000)
    for enforce in (True, False):
        speedup = Speedup(news(), answer=Search(enforce=enforce), trust=Trust(repair=False, audit=0)).fit(learn)
        scores = [replace_setting(speedup, answer__guided=g).score(test) for g in (None, False, True)]
        assert scores[0] >= max(scores[1:]) - 0.02


def replace_setting(speedup: Speedup, **settings: object) -> Speedup:
    return pickle.loads(pickle.dumps(speedup)).set_params(**settings)


def test_the_papers_speedup_is_algorithm_1_and_a_plain_search():
    learn, test = batch_of(3, 300), batch_of(4, 200)
    speedup = Speedup.paper(news(), width=2).fit(learn)
    learner = Learner.paper(2).fit(learn, Certifier()(learn))
    assert (speedup.heuristic.weights == learner.weights).all()
    found = BeamSearch(2, learner.weights, enforce=False)(test)
    assert (speedup.predict(test).labels == found.labels).all()


def test_with_learn_every_answer_of_the_black_box_teaches():
    stream = batch_of(11, 120)
    taught = Speedup(news(), answer=Certified(search=Search(enforce=False)), learn=True)
    for p in range(0, 60):
        taught.predict(stream[p])
    taught.predict(stream.select(np.arange(60, 120)))
    assert taught.counters.labelled == 120
    assert taught.counters.updates > 0
    assert taught.heuristic.weights.any()
    untaught = Speedup(news())
    untaught.predict(stream)
    assert untaught.counters.labelled == untaught.counters.updates == 0
    with pytest.raises(NotFittedError):
        _ = untaught.heuristic
    searching = Speedup(news(), answer="search", trust=Trust(audit=1.0), learn=True)
    searching.predict(stream)
    assert searching.counters.labelled == 120


@lru_cache
def guessing() -> Structure:
    """`guess` comes first and must equal `truth`: a search of width 1 has to know what is likely."""
    schema = Schema()
    guess, truth = schema.variable("guess", ["a", "b"]), schema.variable("truth", ["a", "b"])
    schema.factor("likely", guess=guess)
    same = schema.factor("same", guess=guess, truth=truth)
    same.allow(guess="a", truth="a").allow(guess="b", truth="b")
    made = schema.structure()
    first, second = made.add(guess), made.add(truth)
    made.connect(schema.factors["likely"], guess=first)
    made.connect(same, guess=first, truth=second)
    return made


def stream(rng: np.random.Generator, n: int, share_of_a: float) -> Batch:
    costs = rng.normal(size=(n, 4)) * 0.05
    costs[np.arange(n), np.where(rng.random(n) < share_of_a, 2, 3)] -= 5
    return guessing().batch(costs)


@pytest.mark.parametrize("learn", [True, False])
def test_a_stream_that_shifts_is_detected_and_recovered_from(learn):
    rng = np.random.default_rng(0)
    answer = Search(width=1, look_ahead=False, guided=True)
    speedup = Speedup(guessing().schema, answer=answer, trust=Trust(audit=0.1, min_agreement=0.9), learn=learn)
    speedup.fit(stream(rng, 500, 0.99))

    def live(n: int, share_of_a: float) -> tuple[list[bool], list[float]]:
        trusted, right = [], []
        for _ in range(n):
            batch = stream(rng, 50, share_of_a)
            trusted.append(speedup.trusted)
            right.append(float(np.isclose(speedup.predict(batch).cost, optima(batch)).mean()))
        return trusted, right

    trusted, right = live(40, 0.99)
    assert all(trusted)
    assert np.mean(right) > 0.97
    assert speedup.agreement.low < 0.99 < speedup.agreement.high
    trusted, right = live(60, 0.01)  # what was likely no longer is
    fell = trusted.index(False)
    assert fell <= 10  # after no more than 500 problems, of which 50 are audited
    assert all(share == 1 for ok, share in zip(trusted, right, strict=True) if not ok)
    if learn:
        assert speedup.trusted
        assert right[-20:].count(1.0) >= 5
        assert np.mean(right[-20:]) > 0.97
        assert speedup.agreement.low > 0.9
    else:
        assert not any(trusted[fell:])
        assert speedup.agreement.high < 0.1
        assert speedup.distrust.high < 0.9
        trusted, right = live(40, 0.99)  # back to what it learned
        assert trusted[-1]
        assert np.mean(right) > 0.97


# -- settings, threads, files ---------------------------------------------------------------------------


def lived() -> Speedup:
    """A speedup with everything in it."""
    speedup = Speedup(
        news(),
        answer=Search(width=1, guided=True, theta=2.0),
        trust=Trust(audit=0.2, min_agreement=0.5),
        learn=True,
        seed=7,
    ).fit(batch_of(3, 200))
    speedup.predict(batch_of(12, 150))
    return speedup


def test_it_is_deterministic_under_its_seed():
    first, second = lived(), lived()
    assert first.counters == second.counters
    assert (first.heuristic.weights == second.heuristic.weights).all()
    more = batch_of(13, 150)
    assert (first.predict(more).labels == second.predict(more).labels).all()
    other = lived().set_params(seed=8).fit(batch_of(3, 200))
    assert (other.predict(more).proved != lived().fit(batch_of(3, 200)).predict(more).proved).any()


def test_a_batch_is_audited_like_its_problems_one_by_one():
    batch = batch_of(14, 100)
    settings = {"answer": "search", "trust": Trust(audit=0.3, min_agreement=None)}
    whole = Speedup(news(), **settings).fit(batch_of(3, 100)).predict(batch)
    one = Speedup(news(), **settings).fit(batch_of(3, 100))
    assert [one.predict(batch[p]).proved for p in range(100)] == whole.proved.tolist()


def test_threads_give_the_same_answers_and_lose_no_count():
    batch = batch_of(15, 400, noise=2.0)
    alone = Speedup(news()).predict(batch)
    assert (Speedup(news(), n_jobs=2).predict(batch).labels == alone.labels).all()
    for settings in (
        {},
        {
            "answer": "search",
            "trust": Trust(audit=0.3, min_agreement=None),
            "limits": Limits(max_nodes=0),
            "learn": True,
        },
    ):
        speedup = Speedup(news(), solver=Counting("highs"), **settings)
        parts = [batch.select(np.arange(at, at + 10)) for at in range(0, 400, 10)]
        with ThreadPoolExecutor(8) as threads:
            answers = list(threads.map(speedup.predict, parts))
        now = speedup.counters
        assert now.problems == 400 == now.by_search + now.by_bound + now.by_branch + now.by_solver
        assert now.audits >= speedup.agreement.n + FIRST  # proofs are compared, too
        assert now.solver_calls == speedup.solver.calls
        for part, at in zip(answers, range(0, 400, 10), strict=True):
            sure = part.proved
            assert part.cost[sure] == pytest.approx(alone.cost[at : at + 10][sure])


def test_everything_is_saved_and_goes_on_exactly(tmp_path):
    speedup = lived()
    path = tmp_path / "speedup.safetensors"
    speedup.save(path)
    again = Speedup.load(path, news())
    assert again.get_params() == speedup.get_params()
    assert again.counters == speedup.counters
    assert again.agreement == speedup.agreement
    assert again.trusted == speedup.trusted
    for _ in range(2):
        more = batch_of(13, 150)
        answers, expected = again.predict(more), speedup.predict(more)
        assert (answers.labels == expected.labels).all()
        assert (answers.status == expected.status).all()
        assert again.counters == speedup.counters
        assert (again.heuristic.weights == speedup.heuristic.weights).all()
    again.partial_fit(batch_of(16, 50))
    speedup.partial_fit(batch_of(16, 50))
    assert (again.heuristic.weights == speedup.heuristic.weights).all()
    again.save(path)
    speedup.save(tmp_path / "other")
    kept = [Speedup.load(p, news())._state.learner.trace for p in (path, tmp_path / "other")]
    assert kept[0] == kept[1]
    assert not list(tmp_path.glob(".*"))


def test_what_ended_the_trust_is_told_and_kept(tmp_path, caplog):
    rng = np.random.default_rng(0)
    answer = Search(width=1, look_ahead=False, guided=True)
    speedup = Speedup(guessing().schema, answer=answer, trust=Trust(audit=1.0)).fit(stream(rng, 500, 0.99))
    assert speedup.distrust is None
    speedup.predict(stream(rng, 40, 0.99))
    assert speedup.suspect is None
    while speedup.trusted:
        speedup.predict(stream(rng, 1, 0.01)[0])
    assert speedup.agreement == speedup.distrust
    assert 4 <= speedup.distrust.n <= 40
    assert speedup.distrust.high < 0.95
    assert speedup.suspect.stop == speedup.counters.problems
    assert 0 <= speedup.suspect.start <= 40
    assert f"Answers {speedup.suspect.start + 1} to {speedup.suspect.stop} may be wrong" in caplog.text
    assert f"not trusted any more: its agreement is {speedup.distrust}" in caplog.text
    speedup.save(tmp_path / "distrusted")
    again = Speedup.load(tmp_path / "distrusted", guessing().schema)
    assert (again.trusted, again.distrust, again.agreement) == (False, speedup.distrust, speedup.distrust)
    assert again.suspect == speedup.suspect
    speedup.predict(stream(rng, 10, 0.01))
    assert speedup.agreement.n == 10
    assert speedup.distrust == again.distrust


def test_settings_are_saved_whatever_they_are_made_of(tmp_path):
    speedup = Speedup(
        news(), answer=Search(width=np.int64(3), theta=np.float64(2)), trust=Trust(prove=False), learn=np.bool_(True)
    )
    speedup.save(tmp_path / "settings")
    again = Speedup.load(tmp_path / "settings", news())
    assert again.get_params() == speedup.get_params()
    assert again.trust.prove is False


def test_files_from_before_a_setting_was_added_can_be_read(tmp_path):
    lived().save(tmp_path / "new")
    tensors, about = load_tensors(tmp_path / "new", FORMAT, "speedup")
    state = json.loads(about["state"])
    del state["settings"]["trust"]["prove"], state["settings"]["learn"]
    kept = {"schema": about["schema"], "names": about["names"], "state": json.dumps(state)}
    save_tensors(tmp_path / "old", FORMAT, tensors, kept)
    again = Speedup.load(tmp_path / "old", news())
    assert again.trust.prove is True
    assert again.learn is False
    assert again.set_params(learn=True).get_params() == lived().get_params()


def test_a_fresh_speedup_and_its_learner_are_saved_too(tmp_path):
    speedup = Speedup(news(), answer=Search(learner=Learner(3, epochs=2), theta=math.inf))
    speedup.save(tmp_path / "fresh")
    again = Speedup.load(tmp_path / "fresh", news())
    assert repr(again.answer) == repr(speedup.answer)  # which tells every setting
    assert again.answer.learner.epochs == 2
    assert again.answer.theta == math.inf
    with pytest.raises(NotFittedError):
        _ = again.heuristic


def test_a_solver_of_your_own_must_be_given_again(tmp_path):
    Speedup(news(), solver=Counting()).save(tmp_path / "own")
    with pytest.raises(ModelError, match="solver of your own"):
        Speedup.load(tmp_path / "own", news())
    assert Speedup.load(tmp_path / "own", news(), solver="brute").solver == "brute"


def test_what_is_damaged_or_belongs_elsewhere_is_refused(tmp_path):
    path = tmp_path / "speedup"
    speedup = lived()
    speedup.save(path)
    good = path.read_bytes()
    with pytest.raises(ModelError, match="schema differs"):
        Speedup.load(path, guessing().schema)
    with pytest.raises(ModelError, match="no file"):
        Speedup.load(tmp_path / "nowhere", news())
    for at in range(0, len(good), max(1, len(good) // 200)):
        path.write_bytes(good[:at])
        with pytest.raises(ModelError):
            Speedup.load(path, news())
        changed = bytearray(good)
        changed[at] ^= 0x15
        path.write_bytes(changed)
        with pytest.raises(ModelError):
            Speedup.load(path, news())
    speedup.heuristic.save(path)
    with pytest.raises(ModelError, match="not a speedup"):
        Speedup.load(path, news())


FORGED = [
    (("settings", "answer", "width"), -1, "at least 1"),
    (("settings", "answer", "width"), 10**18, "at most 65,536"),
    (("settings", "answer", "width"), [[]], "width of a beam must be a whole number"),
    (("settings", "answer", "theta"), math.nan, "theta must be at least 0"),
    (("settings", "answer", "theta"), 10**400, "theta must be at most"),
    (("settings", "answer"), "fast", "answer must be"),
    (("settings", "answer"), {"part": "Guess"}, "'part' must be"),
    (("settings", "answer", "depth"), 2, "no setting 'depth'"),
    (("settings", "answer", "learner"), {"part": "Learner", "depth": 3}, "no setting 'depth'"),
    (("settings", "answer", "learner"), {"part": "Limits"}, "learner must be a Learner"),
    (("settings", "solver"), "cplex", "no solver 'cplex'"),
    (("settings", "solver"), None, "not a solver"),
    (("settings", "learn"), "yes", "learn must be True or False"),
    (("settings", "limits", "max_nodes"), 2**70, "max_nodes must be at most"),
    (("settings", "limits"), {"part": "Trust"}, "limits must be a Limits"),
    (("settings", "trust", "audit"), 2, "audit must be"),
    (("settings", "trust"), None, "trust must be a Trust"),
    (("settings", "depth"), 2, "no setting depth"),
    (("audit", "trusted"), 1, "Expected `bool`"),
    (("guided",), 1, "Expected `bool . null`"),
    (("audit", "bets"), [[1.0, 1.0, 0]] * 9, "contradict each other"),
    (("audit", "alert"), 51, "alert"),
    (("audit", "distrust"), [0.5, 0.4, 0.7, 20], "contradict each other"),
    (("audit", "distrust"), [0.5, 0.6, 0.7, 20], "agreement of 0.5 between 0.6 and 0.7"),
    (("audit", "recent"), [2], "Expected `bool`"),
    (("audit", "numbers"), [0] * 2000, "contradict each other"),
    (("audit", "distrust"), [0.5, 0.4, 1.7, 20], "Expected `float` <= 1.0"),
    (("rng",), 5, "Expected `array . null`"),
    (("calibrated",), -2.0, "Expected `float` >= 0"),
    (("rng", 0), -1, "Expected `int` >= 0"),
    (("rng", 1), 2**128, "more than 128 bits"),
    (("learned",), None, "does not belong"),
    (("learned", "learner", "epochs"), 0, "epochs must be at least 1"),
    (("learned", "learner", "averaged"), "no", "averaged must be True or False"),
    (("learned", "step"), 0, "Expected `float` > 0.0"),
    (("learned", "step"), math.inf, "Expected `float` <= "),
    (("learned", "trace"), [[1, 2]], "length 8"),
    (("learned", "trace", 0, 0), -1, "Expected `int` >= 0"),
    (("learned", "trace", 0, 7), "soon", "Expected `float`"),
    (("learned", "counts"), [1], "length 2"),
    (("learned", "rng", 3), 2**32, "Expected `int` <="),
    (("counters", "problems"), -1, "Expected `int` >= 0"),
    (("counters", "audits"), 1.5, "Expected `int`, got `float`"),
    (("counters", "nonsense"), 1, "nonsense"),
]


def test_a_file_from_before_a_counter_was_added_can_be_loaded(tmp_path):
    path, speedup = tmp_path / "speedup", lived()
    speedup.save(path)
    tensors, about = load_tensors(path, FORMAT, "speedup")
    state = json.loads(about["state"])
    del state["counters"]["by_learned"]
    save_tensors(path, FORMAT, tensors, about | {"state": json.dumps(state)})
    assert Speedup.load(path, news()).counters == speedup.counters


def naive_worst(problem: Problem) -> np.ndarray:
    """Returns labels that cost more than the optimum: the dearest of every variable."""
    first = problem.graph.first
    return np.array([np.argmax(problem.cost[a:b]) for a, b in pairwise(first)])


@pytest.mark.parametrize("answer", ["certified", "search", "learned"])
def test_scores_are_against_the_answers_given(answer):
    batch = batch_of(3, 40)
    speedup = Speedup(news(), solver="brute", answer=answer).fit(batch)
    right = Certifier()(batch)
    assert speedup.score(batch, right) == speedup.score(batch)
    wrong = [naive_worst(batch[p]) if p < 10 else right[p].labels for p in range(40)]
    assert speedup.score(batch, wrong) == pytest.approx(speedup.score(batch[10:]) * 0.75)


@pytest.mark.parametrize(("where", "value", "words"), FORGED)
def test_a_forged_state_with_a_right_digest_is_refused(tmp_path, where, value, words):
    path = tmp_path / "speedup"
    lived().save(path)
    tensors, about = load_tensors(path, FORMAT, "speedup")
    state = inside = json.loads(about["state"])
    for key in where[:-1]:
        inside = inside[key]
    inside[where[-1]] = value
    save_tensors(path, FORMAT, tensors, about | {"state": json.dumps(state)})
    with pytest.raises(ModelError, match=rf"speedup is damaged: .*{words}.*\. Use another copy, or make it again\."):
        Speedup.load(path, news())


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("learned/w", np.zeros(3)),
        ("learned/w", None),
        ("learned/drift", np.zeros(0)),
        ("learned/n_examples", np.zeros(0, dtype=np.int64)),
        ("learned/n_examples", np.full(1, -5)),
        ("learned/radius", np.zeros(1)),
        ("learned/radius", np.full(2, -1.0)),
        ("learned/more", np.zeros(1)),
    ],
)
def test_forged_tensors_with_a_right_digest_are_refused_before_a_kernel_sees_them(tmp_path, name, tensor):
    path = tmp_path / "speedup"
    lived().save(path)
    tensors, about = load_tensors(path, FORMAT, "speedup")
    tensors[name] = tensors[name] * np.nan if tensor is None else tensor
    save_tensors(path, FORMAT, tensors, about)
    with pytest.raises(ModelError, match=rf"speedup is damaged: .*tensor '{name}'"):
        Speedup.load(path, news())


def test_a_speedup_whose_solver_is_missing_here_can_be_loaded(tmp_path, monkeypatch):
    Speedup(news(), solver="gurobi").save(tmp_path / "x")
    monkeypatch.setitem(sys.modules, "gurobipy", None)
    monkeypatch.setattr("hasten.solvers.find_spec", lambda name: None)
    again = Speedup.load(tmp_path / "x", news())
    with pytest.raises(SolverMissing, match="pip install gurobipy"):
        again.predict(batch_of(0, 5))


def test_settings_work_as_in_scikit_learn():
    base = pytest.importorskip("sklearn.base")
    speedup = lived()
    settings = speedup.get_params()
    assert settings["answer__theta"] == 2.0
    assert settings["schema"] is news()
    copy = base.clone(speedup)
    assert copy.get_params() == settings
    assert copy.counters.problems == 0
    with pytest.raises(NotFittedError):
        _ = copy.heuristic
    assert copy.set_params(answer__width=3, trust__audit=0.5) is copy
    assert (copy.answer.width, copy.trust.audit, speedup.trust.audit) == (3, 0.5, 0.2)
    with pytest.raises(ValueError, match="no setting depth"):
        copy.set_params(depth=3)
    assert base.clone(Speedup(news(), solver=Counting())).solver.calls == 0
    assert "width=3" in repr(copy)


def test_it_can_be_pickled_for_other_processes():
    speedup = lived()
    again = pickle.loads(pickle.dumps(speedup))
    more = batch_of(13, 50)
    assert (again.predict(more).labels == speedup.predict(more).labels).all()


def test_misuse_is_explained():
    batch = batch_of(0, 5)
    with pytest.raises(NotFittedError, match="answer='certified'"):
        Speedup(news(), answer="search").predict(batch)
    with pytest.raises(ProblemError, match="'certified' or 'learned' or 'search'"):
        Speedup(news(), answer="fast").predict(batch)
    with pytest.raises(ProblemError, match=r"trust must be a Trust, got 0\.5"):
        Speedup(news(), trust=0.5).predict(batch)
    with pytest.raises(ProblemError, match="audit must be"):
        Trust(audit=2)
    with pytest.raises(ProblemError, match="least agreement"):
        Trust(min_agreement=1.0)
    with pytest.raises(ProblemError, match="another schema"):
        Speedup(guessing().schema).predict(batch)
    assert len(Speedup(news()).predict([])) == 0
    for wrong in (None, batch[0], shape(2)):
        with pytest.raises(SchemaError, match="problems of a schema; what is passed first must be a Schema"):
            Speedup(wrong).predict(batch)
    for wrong in (None, np.zeros((3, 5)), [[1, 2, 3]], shape(2)):
        with pytest.raises(ProblemError, match="Expected"):
            Speedup(news()).predict(wrong)


@pytest.mark.parametrize(
    ("part", "wrong", "message"),
    [
        (Search, {"width": 2.5}, "width of a beam must be a whole number, got 2.5"),
        (Search, {"width": "2"}, "width of a beam must be a whole number, got '2'"),
        (Search, {"theta": "2"}, "theta must be a number, got '2'"),
        (Search, {"learner": 5}, "learner must be a Learner, or None"),
        (Search, {"guided": "yes"}, "guided must be True or False, or None, got 'yes'"),
        (Trust, {"prove": "no"}, "prove must be True or False, got 'no'"),
        (Trust, {"repair": None}, "repair must be True or False, got None"),
        (Trust, {"audit": "2%"}, "audit must be a number, got '2%'"),
        (Trust, {"min_agreement": "high"}, "between 0 and 1, or None; got 'high'"),
        (Trust, {"on_error": "panic"}, "on_error must be 'keep' or 'raise', got 'panic'"),
        (Limits, {"max_nodes": 1.5}, "max_nodes must be a whole number, got 1.5"),
        (Certified, {"past": -1}, "past must be at least 0, got -1"),
        (Certified, {"search": 3}, "search must be a Search, got 3"),
    ],
)
def test_parts_are_checked_when_they_are_made(part, wrong, message):
    with pytest.raises(ProblemError, match=message):
        part(**wrong)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_jobs": 0}, "n_jobs must be at least 1, got 0"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"learn": "yes"}, "learn must be True or False, got 'yes'"),
        ({"limits": 3.0}, "limits must be a Limits, got 3.0"),
    ],
)
def test_settings_are_checked_before_they_are_used_and_after_each_change(wrong, message):
    batch = batch_of(0, 5)
    speedup = Speedup(news())
    speedup.predict(batch)
    for use in (speedup.predict, speedup.fit, speedup.score):
        speedup.set_params(**wrong)
        with pytest.raises(ProblemError, match=message):
            use(batch)
        with pytest.raises(ProblemError, match=message):  # and again
            use(batch)
    speedup.set_params(**{name: Speedup(news()).get_params()[name] for name in wrong})
    assert speedup.predict(batch).valid.all()
    (name,) = wrong
    setattr(speedup, name, wrong[name])
    with pytest.raises(ProblemError, match=message):
        pickle.loads(pickle.dumps(speedup)).predict(batch[0])


def test_a_solver_that_is_none_or_missing_is_told_with_the_first_problems(monkeypatch):
    batch = batch_of(0, 5)
    with pytest.raises(SolverError, match="There is no solver 'cplex'"):
        Speedup(news(), solver="cplex").predict(batch)
    with pytest.raises(SolverError, match="5 is not a solver"):
        Speedup(news(), solver=5).predict(batch[0])
    monkeypatch.setitem(sys.modules, "gurobipy", None)
    with pytest.raises(SolverMissing, match="pip install gurobipy"):
        Speedup(news(), solver="gurobi").fit(batch)


def test_fit_takes_labels_by_name_and_leaves_what_it_is_given_alone():
    learn = batch_of(3, 300)
    answers = Certifier()(learn)
    given = Speedup(news(), seed=5).fit(learn, answers)
    named = Speedup(news(), seed=5).fit(learn, [answer.names for answer in answers])
    assert (named.heuristic.weights == given.heuristic.weights).all()
    flat = answers.labels.copy()
    flat[learn.variable_at[7]] = -1  # no answer to problem 7
    before = flat.copy()
    Speedup(news(), seed=5).fit(learn, flat)
    assert (flat == before).all()
    with pytest.raises(ProblemError, match=r"The answer to problem 0: .* has no label 'nobody'"):
        Speedup(news()).fit(learn, [["nobody"] * n for n in learn.n_variables])


def test_the_examples_of_the_guide_run():
    guide = (Path(__file__).parents[2] / "docs" / "speedup.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    assert len(blocks) >= 5
    exec(compile("\n".join(blocks), "docs/speedup.md", "exec"), {"__name__": "guide"})


# -- misuse that a newcomer met -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"mode": "search"}, "mode= is answer= now, such as answer='search'"),
        ({"width": 3}, r"width= is in answer=Search\(width=…\)"),
        ({"audit": 0.1}, r"audit= is in trust=Trust\(audit=…\)"),
        ({"time_limit": 3.0}, r"time_limit= is in limits=Limits\(time_limit=…\)"),
        ({"wide": 3}, "Speedup has no setting wide. It has schema, solver, "),
    ],
)
def test_settings_that_moved_into_parts_are_told(given, hint):
    with pytest.raises(ProblemError, match=hint):
        Speedup(news(), **given)
    with pytest.raises(ValueError, match=hint):
        Speedup(news()).set_params(**given)


def test_a_path_and_a_schema_that_are_swapped_are_told(tmp_path):
    with pytest.raises(ProblemError, match="must be a Schema, got an object of type PosixPath"):
        Speedup.load(news(), tmp_path / "fast")


def test_a_black_box_that_forgets_to_return_is_told():
    fast = Speedup(news(), solver=lambda problem: None, trust=Trust(prove=False, on_error="raise"))
    with pytest.raises(SolverError, match=r"returned None. Return the labels"):
        fast.predict(batch_of(1, 1))

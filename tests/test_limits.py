"""Limits are kept, Ctrl-C gets through, and what was found until then is true."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
import time

import hard
import naive
import numpy as np
import pytest
from hard import FOREVER, conflicts, spin_glass, within
from strategies import entity_relation

from hasten.errors import ProblemError, SolverError
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.model.solution import Solution, Source, Status
from hasten.model.structure import Structure
from hasten.proof.certifier import Certifier
from hasten.solvers import available_solvers, make_solver
from hasten.speedup.parts import Limits, Trust
from hasten.speedup.predictor import Speedup
from hasten.support.clock import now, uncounted

SOLVERS = [name for name in ("highs", "gurobi", "cpsat", "toulbar2") if available_solvers()[name]]
SOON = 2.0  # seconds: limits are kept much better, but machines may be busy


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    """Loads the kernels first, which takes its time."""
    Certifier(time_limit=60)(spin_glass(4))


def assert_late(found: Solution) -> None:
    """Sees that an answer says that time ran out, and that the rest of what it says is true."""
    assert found.status in (Status.TIME_LIMIT, Status.NO_TIME)
    assert not found.status.optimal
    assert "an out of time" in found.status
    if found.values is not None:
        assert found.problem.check(found.labels).valid
        assert found.cost == pytest.approx(found.problem.total(found.labels))
        assert found.bound <= found.cost
        assert found.gap == found.cost - found.bound


def test_a_proof_that_runs_out_of_time_gives_the_best_it_has():
    began = now()
    found = Certifier(max_nodes=FOREVER, time_limit=0.3)(spin_glass(20))
    assert now() - began < 0.3 + SOON
    assert found.status is Status.TIME_LIMIT
    assert math.isfinite(found.gap)
    assert_late(found)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_each_problem_has_its_own_time(n_jobs):
    problems = [spin_glass(20), spin_glass(3), spin_glass(20, seed=1), spin_glass(3, seed=1)]
    found = Certifier(max_nodes=FOREVER, time_limit=0.3)(problems, n_jobs=n_jobs)
    assert found.has(Status.TIME_LIMIT).tolist() == [True, False, True, False]
    assert found.proved.tolist() == [False, True, False, True]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_all_problems_of_a_call_have_a_time_together(n_jobs):
    began = now()
    found = Certifier(max_nodes=FOREVER, call_limit=0.3)([spin_glass(20)] * 20, n_jobs=n_jobs)
    assert now() - began < 0.3 + SOON
    for answer in found:
        assert_late(answer)


def test_what_is_stopped_at_any_moment_is_never_wrong():
    rng = np.random.default_rng(0)
    shape = entity_relation(2)
    batch = shape.batch(rng.normal(size=(100, shape.n_labels)))
    for certifier in (Certifier(call_limit=0.0, max_join=0), Certifier(time_limit=0.0, max_join=0)):
        for answer in certifier(batch):
            best = naive.solve(answer.problem).cost
            assert answer.bound <= best + 1e-9
            assert answer.cost >= best - 1e-9
            assert answer.status in (Status.PROVED, Status.TIME_LIMIT, Status.NO_TIME)


def untied(cost: np.ndarray, n_labels: int) -> Problem:
    """Returns pairs of variables that no proof looks at once time is up, and tables of their own."""
    schema, n = Schema(), len(cost) // n_labels
    kind = schema.variable("kind", [str(i) for i in range(n_labels)])
    pair = schema.factor("pair", learned=False, one=kind, other=kind)
    shape = schema.structure(n * [kind])
    tables = {shape.connect(pair, one=v, other=v + 1): np.ones((n_labels, n_labels)) for v in range(0, n - 1, 2)}
    return shape.problem(cost, tables=tables)


@pytest.mark.parametrize("cost", [1e308, -1e308])
def test_costs_that_overflow_are_left_open_when_time_is_up(cost):
    problem, certifier = untied(np.full(12, cost), 3), Certifier(call_limit=0.0, max_join=0)
    for answer in (certifier(problem), certifier([problem, problem])[1]):
        assert answer.status is Status.NO_TIME
        assert answer.values is None
        assert answer.bound == -math.inf


def test_answering_at_once_takes_no_time_of_its_own():
    problem = untied(np.arange(600_000) % 3 * 1.0, 2)
    certifier = Certifier(call_limit=0.0, max_join=0)
    certifier(problem)
    began = time.process_time()
    answer = certifier(problem)
    assert time.process_time() - began < 0.3
    assert answer.cost == problem.total(answer.labels)
    assert answer.bound == pytest.approx(answer.cost)


def test_no_kernel_is_compiled_to_answer_at_once(monkeypatch):
    problem, certifier = untied(np.arange(12.0) % 5, 3), Certifier(call_limit=0.0, max_join=0)
    expected = problem.total(np.array([0, 2, 0, 1]))
    monkeypatch.setattr("hasten.model.solution.score_batch", None)
    assert certifier(problem).cost == expected


def test_time_runs_out_while_rows_are_tightened():
    """It was taken for short work, which nobody stops."""
    problem = conflicts(700, 60_000)
    Certifier(max_nodes=1)(problem)
    assert_late(Certifier(max_nodes=200, time_limit=0.06)(problem))


@pytest.mark.parametrize("max_nodes", [0, 1, 2, 7, 30, 150])
def test_no_more_nodes_are_taken_than_allowed(max_nodes):
    for problem in (conflicts(100, 1_000), spin_glass(20), hard.packing(30)):
        report = Certifier(max_nodes=max_nodes, max_join=0).report(problem)
        assert report.n_nodes[0] <= max_nodes
        assert report.solutions.bound[0] <= report.solutions.cost[0]


@pytest.mark.parametrize("limits", [{"time_limit": 0.2}, {"call_limit": 0.2}, {"time_limit": 0.2, "call_limit": 9.0}])
def test_min_marginals_have_one_limit_for_all_labels(limits):
    problem = spin_glass(20)
    began = now()
    found = Certifier(max_nodes=FOREVER, **limits).min_marginals(problem)  # of 400 labels, each of which takes forever
    assert now() - began < 0.2 + SOON
    assert not found.proved.any()
    assert found.best.status is Status.TIME_LIMIT
    assert (found.cost >= found.best.bound).all()


def test_min_marginals_within_their_limit_are_those_without_one():
    problem = spin_glass(4)
    free, limited = Certifier().min_marginals(problem), Certifier(time_limit=600).min_marginals(problem)
    assert free.proved.all()
    assert limited.proved.all()
    assert limited.cost.tolist() == free.cost.tolist()


def test_loading_a_kernel_counts_for_no_limit():
    before = now()
    with uncounted():
        time.sleep(0.5)
        assert now() == before or now() - before < 0.4
    assert now() - before < 0.4


def chain(n: int, n_labels: int, n_rules: int = 0) -> Structure:
    """Returns a chain, with rules that count over all of it."""
    schema, rng = Schema(), np.random.default_rng(0)
    kind = schema.variable("kind", [str(i) for i in range(n_labels)])
    pair = schema.factor("pair", left=kind, right=kind).set_table(rng.normal(size=(n_labels, n_labels)))
    for i in range(n_rules):
        schema.rule(f"few {i}", exactly=9, kind=str(i))
    shape = schema.structure()
    every = [shape.add(kind) for _ in range(n)]
    for left, right in itertools.pairwise(every):
        shape.connect(pair, left=left, right=right)
    return shape


@pytest.mark.parametrize(("size", "n"), [((2000, 300), 40), ((90, 4, 2), 20_000)], ids=["eliminate", "tally"])
def test_long_batches_of_short_steps_keep_the_limit(size, n):
    """Looking, eliminating and counting looked at no clock: it took as long as it took, here some seconds."""
    shape = chain(*size)
    batch = shape.batch(np.random.default_rng(0).normal(size=(n, shape.n_labels)))
    Certifier(time_limit=9.0)(batch.select(range(9)))  # planned, and loaded
    for certifier in (Certifier(call_limit=0.2), Certifier(time_limit=0.2 / n)):
        with within(0.2 * 1.1 + 0.2 + 0.3):
            found = certifier(batch)
        late = found.has(Status.TIME_LIMIT) | found.has(Status.NO_TIME)
        assert late.any()
        assert (found.optimal | late).all()


def test_planning_keeps_the_limit_and_is_finished_for_later():
    """A structure that was never seen before was planned however long that took."""
    shape = chain(40_000, 4)
    problem = shape.problem(np.random.default_rng(0).normal(size=shape.n_labels))
    began = now()
    found = Certifier(time_limit=0.1)(problem)
    assert now() - began < 0.1 + SOON
    assert_late(found)
    for _ in range(100):
        if Certifier(time_limit=0.5)(problem).proved:
            break
    assert Certifier(time_limit=0.5)(problem).proved
    assert now() - began < 30.0


def test_one_long_elimination_is_stopped():
    shape = chain(4000, 300)
    problem = shape.problem(np.random.default_rng(0).normal(size=shape.n_labels))
    free = Certifier()(problem)
    with within(0.01 + 0.2):
        found = Certifier(time_limit=0.01)(problem)
    assert_late(found)
    assert free.proved


def test_limits_that_are_not_reached_change_nothing():
    shape = entity_relation(8)
    batch = shape.batch(np.random.default_rng(0).normal(size=(30, shape.n_labels)))
    free, limited = Certifier().report(batch), Certifier(time_limit=60, call_limit=600).report(batch)
    assert limited.solutions.labels.tolist() == free.solutions.labels.tolist()
    assert limited.solutions.status.tolist() == free.solutions.status.tolist()
    assert limited.solutions.bound.tolist() == free.solutions.bound.tolist()
    assert limited.n_nodes.tolist() == free.n_nodes.tolist()
    assert limited.n_sweeps.tolist() == free.n_sweeps.tolist()
    assert free.n_nodes.any()


@pytest.mark.parametrize("way", ["certifier", "threads", "beam", "beam in threads", *SOLVERS])
def test_ctrl_c_gets_through(way):
    said = subprocess.run([sys.executable, hard.__file__, way], capture_output=True, text=True, timeout=300)
    assert said.returncode == 0, said.stderr
    assert float(said.stdout.splitlines()[-1]) < SOON


@pytest.mark.parametrize("name", [name for name in SOLVERS if name not in ("gurobi", "cpsat")])  # small; alone
def test_a_solver_keeps_the_wall_clock(name):
    solver, began = make_solver(name), now()
    found = solver.solve(spin_glass(20), time_limit=1.0)
    assert now() - began < 1.0 + SOON
    assert_late(found)
    small = spin_glass(3)
    assert solver.solve(small).cost == pytest.approx(naive.solve(small).cost)  # and goes on working


@pytest.mark.parametrize("prove", [True, False])
def test_a_speedup_keeps_its_limits(prove):
    problem = spin_glass(20)
    fast = Speedup(problem.structure.schema, trust=Trust(prove=prove), limits=Limits(max_nodes=FOREVER, time_limit=0.8))
    began = now()
    answer = fast.predict(problem)
    assert now() - began < 0.8 + SOON
    assert_late(answer)
    fast.set_params(limits__time_limit=None, limits__call_limit=0.5)
    began = now()
    answers = fast.predict([problem] * 10)
    assert now() - began < 0.5 + SOON
    for answer in answers:
        assert_late(answer)


def test_a_speedup_has_what_was_found_when_no_time_is_left_for_the_solver():
    problem = spin_glass(20)
    answer = Speedup(problem.structure.schema, limits=Limits(call_limit=0.3, max_nodes=FOREVER)).predict(problem)
    assert answer.status is Status.TIME_LIMIT
    assert answer.source is not Source.SOLVER


@pytest.mark.parametrize("wrong", [-1, "3", True, math.nan])
def test_a_limit_is_a_number_of_seconds(wrong):
    for setting in ("time_limit", "call_limit"):
        with pytest.raises(ProblemError, match=f"{setting} must be a number of seconds, or None for no limit"):
            Certifier(**{setting: wrong})
        with pytest.raises(ProblemError, match=setting):
            Limits(**{setting: wrong})


NATIVE = {"highs": ("mip_rel_gap", 0.9), "gurobi": ("MIPGap", 0.9), "toulbar2": ("hbfs", 0)}


@pytest.mark.parametrize("name", [name for name in SOLVERS if name in NATIVE])
def test_a_solvers_own_options_reach_it(name):
    option, value = NATIVE[name]
    problem = hard.packing(20) if name != "toulbar2" else spin_glass(3)
    found = make_solver(name, **{option: value}).solve(problem)
    best = make_solver("brute", max_labellings=10**9).solve(problem).cost
    assert found.problem.check(found.labels).valid
    assert found.bound <= best + 1e-6 * abs(best)
    if found.status is Status.SOLVED:
        assert found.cost == pytest.approx(best)
    else:
        assert found.status is Status.WITHIN_GAP


def test_a_wide_gap_is_not_called_optimal():
    found = make_solver("highs", mip_rel_gap=0.9).solve(hard.packing(60))
    assert found.status is Status.WITHIN_GAP
    assert 0 < found.gap < 0.9 * abs(found.cost)
    assert not found.status.optimal


@pytest.mark.parametrize("name", [name for name in SOLVERS if name != "cpsat"])
def test_options_that_a_solver_does_not_know_are_refused(name):
    with pytest.raises(SolverError, match=f"{name} has no option nonsense=1"):
        make_solver(name, nonsense=1)
    with pytest.raises(SolverError, match=r"brute has no option nonsense\. It has time_limit, max_labellings"):
        make_solver("brute", nonsense=1)


def test_a_speedup_hands_options_to_its_solver_and_keeps_them(tmp_path):
    problem = hard.packing(12)
    schema = problem.structure.schema
    fast = Speedup(
        schema, solver="brute", solver_options={"max_labellings": 4000}, trust=Trust(prove=False, on_error="raise")
    )
    with pytest.raises(SolverError, match="its limit is 4,000"):
        fast.predict(problem)
    fast.save(tmp_path / "fast")
    again = Speedup.load(tmp_path / "fast", schema)
    assert again.get_params() == fast.get_params()
    again.set_params(solver_options={"max_labellings": 5000})
    assert again.predict(problem).status is Status.SOLVED
    with pytest.raises(ProblemError, match="solver_options must map names to values"):
        again.set_params(solver_options=["max_labellings"]).predict(problem)

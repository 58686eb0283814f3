"""The benchmark: its problems are the same for all, its answers are checked, and what is missing is said."""

from __future__ import annotations

import json
import math
import os
import time
from dataclasses import replace

import numpy as np
import pytest

from hasten.bench import run
from hasten.bench.families import FAMILIES, TASK, plant
from hasten.bench.peers import PEERS, Peer, PeerFailed, TimedAnswer, Worker, measure, warm_up
from hasten.errors import HastenError, ProblemError
from hasten.proof.certifier import Certifier
from hasten.solvers import make_solver
from hasten.support.environment import describe_machine
from hasten.tasks.entity_relation.data.synthetic import generate
from hasten.tasks.entity_relation.scoring.gold import gold

SMALL = {name: min(family.sizes) for name, family in FAMILIES.items()}


@pytest.mark.parametrize("name", FAMILIES)
def test_a_seed_gives_the_same_problems_and_more_of_them(name):
    family = FAMILIES[name]
    few, more = family.problems(SMALL[name], 3, seed=7), family.problems(SMALL[name], 5, seed=7)
    for one, other in zip(few, more, strict=False):
        assert np.array_equal(one.cost, other.cost)
        assert np.array_equal(one.table, other.table)
    assert not np.array_equal(few[0].cost, family.problems(SMALL[name], 1, seed=8)[0].cost)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_problem_has_an_answer_that_all_agree_on(name):
    highs, certify = make_solver("highs"), Certifier()
    for problem in FAMILIES[name].problems(SMALL[name], 3):
        ours, theirs = certify(problem), highs.solve(problem)
        assert ours.proved
        assert problem.check(theirs.labels).valid
        assert ours.cost == pytest.approx(theirs.cost, rel=1e-6)


def test_sizes_are_checked():
    with pytest.raises(ProblemError, match="size of 1 or more"):
        FAMILIES["random"].problems(0, 1)


def test_a_planted_labelling_is_valid():
    rng = np.random.default_rng(0)
    shape = TASK.structure(5)
    problem = shape.problem(np.zeros(shape.n_labels))
    planted = [plant(5, rng) for _ in range(50)]
    assert all(problem.check(labels).valid for labels in planted)
    assert any((labels[5:] < len(TASK.relation_labels) - 1).any() for labels in planted)


def test_sentences_have_the_order_of_the_task():
    sentence = next(s for s in generate(50, 0) if s.relations and any(a > b for a, b, _ in s.relations))
    n = len(sentence.spans)
    shape = TASK.structure(n)
    assert shape.problem(np.zeros(shape.n_labels)).check(gold(sentence, TASK.entity_labels, TASK.relation_labels)).valid


class Liar:
    """Claims that the first labels are best."""

    def solve(self, problem):
        honest = Certifier()(problem)
        labels = np.zeros(problem.n_variables, dtype=np.int64)
        labels[:] = len(TASK.relation_labels) - 1
        labels[: int(math.sqrt(problem.n_variables))] = len(TASK.entity_labels) - 1
        return replace(honest, values=labels, cost=honest.cost)


def test_a_lying_peer_is_caught():
    problems = FAMILIES["random"].problems(3, 4)
    honest = measure(PEERS["hasten"].make(5.0), problems, 10.0, 4)
    lying = measure(Liar(), problems, 10.0, 4)
    best = run.references(problems, [honest, lying])
    assert run.summarise(problems, [honest], best)["status"] == "ok"
    found = run.summarise(problems, [lying], best)
    assert (found["status"], found["n_wrong"], found["n_solved"]) == ("wrong", 4, 0)


def test_a_labelling_that_breaks_a_constraint_is_wrong_and_no_reference():
    problems = FAMILIES["assignment"].problems(3, 1)
    invalid = [TimedAnswer(1.0, np.zeros(3, dtype=np.int64), True, "solver")]
    assert run.references(problems, [invalid]) == [math.inf]
    assert run.summarise(problems, [invalid], [math.inf])["n_wrong"] == 1


def test_a_claim_that_nothing_fits_is_wrong_where_something_does():
    problems = FAMILIES["random"].problems(2, 1)
    claim = [TimedAnswer(1.0, None, True, "solver")]
    assert run.summarise(problems, [claim], [0.5])["n_wrong"] == 1


def test_running_out_of_time_is_unsolved_but_not_wrong():
    problems = FAMILIES["random"].problems(2, 1)
    late = [TimedAnswer(1.0, None, False, "solver")]
    found = run.summarise(problems, [late], [0.5])
    assert (found["status"], found["n_wrong"], found["n_solved"]) == ("ok", 0, 0)


def test_batches_answer_as_single_calls_do():
    problems = FAMILIES["random"].problems(4, 5)
    alone, together = PEERS["hasten"].make(5.0), PEERS["hasten batch"].make(5.0)
    warm_up(alone, problems)
    warm_up(together, problems, batched=True)
    one, all_at_once = measure(alone, problems, 10.0, 5), measure(together, problems, 10.0, 5, batched=True)
    assert [list(answer.labels) for answer in one] == [list(answer.labels) for answer in all_at_once]
    assert all(answer.optimal for answer in one + all_at_once)


def test_a_budget_ends_a_round():
    problems = FAMILIES["random"].problems(2, 5)
    assert len(measure(PEERS["hasten"].make(5.0), problems, 0.0, 5)) == 1


def test_a_quick_run_of_our_own_engine_is_complete(tmp_path, monkeypatch, capsys):
    missing = Peer("nowhere", "a peer that nobody has", PEERS["gurobi"].make, "no-such-package")
    monkeypatch.setattr(run, "PEERS", {**PEERS, "nowhere": missing})
    peers = ["hasten", "hasten batch", "nowhere"]
    results = run.main(run.Settings(["random", "assignment"], [2, 3], peers, n=3, rounds=2, budget=0.3), tmp_path)
    said = json.loads((tmp_path / "peers.json").read_text())
    assert len(said["measurements"]) == 2 * 2 * 2
    assert said["machine"]["python"]
    assert said["settings"]["n"] == 3
    for found in said["measurements"]:
        assert (found["status"], found["n_solved"]) == ("ok", 3)
        assert found["mean"] > 0
    assert results["measurements"][0]["ratio"]["hasten"] == 1.0
    assert "nowhere is not installed: pip install no-such-package" in capsys.readouterr().out
    page = (tmp_path / "peers.html").read_text()
    assert page.count("<figure") == 2  # a family each
    assert "hasten batch. entities (log)" not in page


def test_compiled_kernels_are_measured(monkeypatch):
    monkeypatch.delenv("HASTEN_TIER")
    Worker("hasten", 5.0).close()
    assert os.environ["HASTEN_TIER"] == "compiled"


def test_hasten_is_measured_beside_the_peers_that_are_chosen():
    assert run.Settings(peers=["highs"]).installed(print) == ["hasten", "hasten batch", "highs"]


def test_unknown_names_are_errors():
    with pytest.raises(HastenError, match="There are random, peaked"):
        run.main(run.Settings(["no such family"]), out=None)


def test_a_full_choice_leaves_out_what_is_not_installed_with_one_line(monkeypatch):
    missing = {n: Peer(n, "", PEERS["gurobi"].make, "no-such-package") for n in ("here", "there")}
    monkeypatch.setattr(run, "PEERS", {"hasten": PEERS["hasten"], **missing})
    said = []
    assert run.Settings().installed(said.append) == ["hasten"]
    assert said == ["here, there are not installed: pip install no-such-package"]


def test_ratios_count_only_what_both_solved():
    ours = {"status": "ok", "seconds": [1.0, 1.0, 1.0], "solved": [True, True, True]}
    theirs = {"status": "ok", "seconds": [3.0, 99.0], "solved": [True, False]}
    assert run.ratio(theirs, ours) == 3.0
    assert run.ratio(theirs | {"status": "wrong"}, ours) is None


def test_figures_are_short():
    assert run.duration(1.5e-5) == "15 µs"
    assert run.duration(2e-9) == "2 ns"


def test_the_machine_is_described():
    said = describe_machine()
    assert said["processor"]
    assert "numpy" in said["packages"]


def test_a_process_that_crashes_or_hangs_is_reported_and_started_again():
    problems = FAMILIES["random"].problems(2, 3)
    worker = Worker("hasten", 5.0)
    try:
        with pytest.raises(PeerFailed, match="The process of hasten ended"):
            worker._call(60.0, os._exit, 3)
        with pytest.raises(PeerFailed, match="did not answer within 0 seconds"):
            worker._call(0.1, time.sleep, 60.0)
        worker.load(problems)
        assert [answer.optimal for answer in worker.measure(10.0, 2)] == [True, True]
    finally:
        worker.close()

"""Intervals are those of a plain bootstrap; times are taken in turns; who answered is known."""

from collections import Counter

import numpy as np
import pytest
from sentences import installed

from hasten.errors import SolverTooSmall
from hasten.kernels.search.nodes import FORCED
from hasten.paper.methods import SCORES, SentenceTestSet
from hasten.search.beam import greedy
from hasten.solvers import make_solver
from hasten.support.terminal import no_progress
from hasten.tasks.entity_relation.data.corpora import (
    PAPER_RELATIONS,
    PAPER_SENTENCES,
    PAPER_TYPES,
    Corpora,
    Split,
    is_papers_corpus,
)
from hasten.tasks.entity_relation.data.synthetic import generate
from hasten.tasks.entity_relation.scoring.training import train_black_box
from hasten.tasks.entity_relation.task import EntityRelationTask
from hasten.tasks.evaluation import measuring as ilps
from hasten.tasks.evaluation.measuring import LONG, Ilp, compile_used, time_in_turns, timed
from hasten.tasks.evaluation.study import Measured, Measuring, f1_of, intervals, over_seeds


def some_counts(rng, n):
    named = rng.integers(0, 6, (n, 2))
    return np.stack([rng.integers(0, named // 2 + 1), named], axis=-1).astype(float)


def test_intervals_are_those_of_resampling_sentence_by_sentence():
    counts = some_counts(np.random.default_rng(0), 40)
    drawn = np.random.default_rng(1).multinomial(40, np.full(40, 1 / 40), size=300)
    slow = []
    for row in drawn:
        right, named = counts[np.repeat(np.arange(40), row)].sum(axis=0).T
        slow.append([2 * r / n if n else 1.0 for r, n in zip(right, named, strict=True)])
    expected = np.percentile(slow, [2.5, 97.5], axis=0).T
    assert intervals([np.arange(40)], [counts], seed=1, n=300) == pytest.approx(expected)
    assert intervals([np.arange(40)], [counts], seed=2, n=300) != pytest.approx(expected)


def test_a_sentence_is_drawn_equally_often_for_all_seeds():
    one, other = some_counts(np.random.default_rng(0), 1), some_counts(np.random.default_rng(5), 1)
    apart = np.concatenate([one, other])
    tests = [np.array([7, 3]), np.array([3, 7])]
    both = intervals(tests, [apart, apart[::-1]], seed=0, n=50)
    assert both == pytest.approx(intervals(tests[:1], [apart], seed=0, n=50))  # the same sentences in another order


def test_seeds_are_summed_up_honestly():
    base = dict.fromkeys((*SCORES, "validity", "exact_match", "proved", "solver_calls", "costs_computed"), 0.5)
    base |= {"time_ms": 4.0, "time_ms_std": 9.0, "features_ms": None, "inference_ms": None, "beam": 1, "model": "ILP"}
    counts, test = np.ones((3, 4, 2)), np.arange(3)
    rows = [
        base | {"theta": theta, "time_ms": ms, "note": note, "answered_by": by}
        for theta, ms, note, by in (
            (2.0, 4.0, "", {"gurobi": 3}),
            (None, 6.0, "highs 1", {"gurobi": 2, "highs": 1}),
            (FORCED, 8.0, "", {"gurobi": 3}),
        )
    ]
    (row,) = over_seeds([[Measured(each, counts, SCORES)] for each in rows], [test] * 3, 0)
    assert (row["time_ms"], row["time_ms_std"]) == (6.0, 2.0)
    assert row["theta"] == FORCED  # the median: inf is the largest
    assert row["note"] == "with one seed: highs 1"
    assert row["answered_by"] == {"gurobi": 8, "highs": 1}
    assert row["std"]["validity"] == 0.0
    assert row["features_ms"] is None
    (alone,) = over_seeds([[Measured(rows[0], counts, SCORES)]], [test], 0)
    assert alone["time_ms_std"] == 9.0  # of its runs
    assert alone["std"] == {}


def test_an_interval_is_wide_where_there_is_little_and_holds_the_truth_often():
    rng = np.random.default_rng(3)
    held, width = 0, {}
    for n in (30, 300):
        truth = f1_of(some_counts(np.random.default_rng(9), 20_000).sum(axis=0))[0]
        for _ in range(60):
            low, high = intervals([np.arange(n)], [some_counts(rng, n)], seed=0, n=400)[0]
            held += low <= truth <= high
            width[n] = high - low
    assert held >= 105  # of 120
    assert width[30] > 2 * width[300]


def test_f1_of_nothing_is_one():
    assert f1_of(np.array([[0.0, 0.0], [1.0, 2.0], [0.0, 3.0]])).tolist() == [1.0, 1.0, 0.0]


def test_counts_of_sentences_add_up_to_the_f1_of_all():
    task, sentences = EntityRelationTask(), [each for each in generate(60, 0) if each.relations][:20]
    model = train_black_box("independent", sentences, task, seed=0, progress=no_progress)
    test_set = SentenceTestSet.of(task, model, sentences, Measuring())
    found = greedy()(test_set.batch)
    counts = test_set.counts(found)
    assert counts.shape == (20, 4, 2)
    scores = f1_of(counts.sum(axis=0))
    assert tuple(scores[:2]) == test_set.reference.f1(found.labels, test_set.reference.gold)
    assert tuple(scores[2:]) == test_set.reference.f1(found.labels, test_set.answers.labels)


def test_a_solver_has_a_limit_and_a_row_says_what_it_did_not_solve():
    task, sentences = EntityRelationTask(), [each for each in generate(60, 0) if each.relations][:5]
    model = train_black_box("independent", sentences, task, seed=0, progress=no_progress)
    test_set = SentenceTestSet.of(task, model, sentences, Measuring(time_limit=1e-9))
    assert test_set.ilp.solver.time_limit == test_set.ilp.fresh().solver.time_limit == 1e-9
    assert test_set.by_ilp("ILP").about["note"] == "5 not solved within the limit"


def test_everybody_takes_turns_on_the_same_deal_in_a_fresh_order():
    log = []

    def method(name):
        return lambda inputs: lambda: log.append((name, tuple(inputs)))

    first = [0.0, LONG * 2, LONG / 2]
    times = time_in_turns([method(n) for n in "abc"], lambda rng: rng.permutation(5), first, runs=2, rounds=4)
    assert [len(each) for each in times] == [2, 2, 2]
    by_name = {name: [inputs for who, inputs in log if who == name] for name in "abc"}
    assert [len(by_name[name]) for name in "abc"] == [8, 2, 4]  # who takes long takes part in fewer rounds
    assert len(set(by_name["a"])) > 4  # orders are fresh
    assert set(by_name["b"]) | set(by_name["c"]) <= set(by_name["a"])
    assert log.index(("b", by_name["b"][0])) < 3  # in the first round, not at the end


def test_a_time_is_told_beside_its_result():
    result, took = timed(lambda: sum(range(200_000)))
    assert result == 19_999_900_000
    assert took > 0


class Small:
    """A solver whose licence allows few variables."""

    name = "small"

    def __init__(self):
        self.asked, self.solver = [], make_solver("brute")

    def solve(self, problem):
        self.asked.append(problem.n_variables)
        if problem.n_variables > 4:
            raise SolverTooSmall("too large")
        return self.solver.solve(problem)


def test_what_is_too_large_is_answered_by_highs_and_said_so(monkeypatch):
    made = []

    def make(name, **options):
        made.append(Small() if name == "small" else make_solver(name, **options))
        return made[-1]

    monkeypatch.setattr(ilps, "make_solver", make)
    task, rng = EntityRelationTask(), np.random.default_rng(0)
    sizes = np.array([2, 3, 2, 3, 3])
    batch = task.batch(sizes, rng.normal(size=int((sizes * 4 + sizes * (sizes - 1) * 6).sum())))
    ilp = Ilp("small")
    answers = ilp.answer(batch)
    assert answers.valid.all()
    assert made[0].asked == [4, 9, 4]  # it is asked once for what it refuses
    problems = [batch[p] for p in range(5)]
    assert ilp.count(problems) == {"small": 2, "highs": 3}
    assert ilp.count(reversed(problems)) == {"small": 2, "highs": 3}
    assert list(ilp.count(reversed(problems))) == ["small", "highs"]  # whoever comes first
    fresh = ilp.fresh()
    for problem in problems:
        fresh.solve(problem)
    assert fresh.solver.asked == [4, 4]  # each once, and none that it would refuse


def test_models_are_built_before_a_pass_and_each_problem_is_solved_once(monkeypatch):
    made = []

    def make(name, **options):
        made.append(make_solver(name, **options))
        return made[-1]

    monkeypatch.setattr(ilps, "make_solver", make)
    task, sentences = EntityRelationTask(), [each for each in generate(60, 0) if each.relations][:6]
    model = train_black_box("independent", sentences, task, seed=0, progress=no_progress)
    test_set = SentenceTestSet.of(task, model, sentences, Measuring())
    sizes = Counter(test_set.batch.n_variables.tolist())
    ready = test_set.by_ilp("ILP").ready(test_set.shuffled(None))
    assert [solver.n_built for solver in made] == [len(sizes)] * 2  # a new solver, not the one that answered first
    assert not test_set.ilp_ms
    ready()
    assert [solver.n_built for solver in made] == [len(sizes)] * 2
    assert {size: len(each) for size, each in test_set.ilp_ms.items()} == sizes


def test_only_the_papers_corpus_is_taken_for_it():
    made_up = [sentence for sentence in generate(300, 0) if sentence.relations]
    assert not is_papers_corpus(made_up)
    assert sum(PAPER_RELATIONS.values()) == 2048
    assert sum(PAPER_TYPES.values()) == 5349
    assert not is_papers_corpus(made_up * (PAPER_SENTENCES // len(made_up)))


@pytest.mark.corpus
def test_the_papers_corpus_is_known_and_so_is_its_published_split():
    labelled = Corpora.read(installed("conll04/conll04.corp.gz")).labelled
    assert is_papers_corpus(labelled)
    assert not is_papers_corpus(labelled[1:])
    lists = [installed(f"conll04/split_{part}.ids") for part in ("train", "dev", "test")]
    train, test, _ = Split.read([str(path) for path in lists]).apply(labelled)
    assert (len(train), len(test)) == (910, 288)
    assert not set(train) & set(test)


def test_what_was_interpreted_is_compiled_before_it_is_timed(monkeypatch):
    class Driver:
        seconds, dispatcher = 0.1, None

        def compile(self):
            self.dispatcher = "compiled"

    idle = Driver()
    idle.seconds = 0.0
    drivers = [Driver(), idle]
    monkeypatch.setattr("hasten.tasks.evaluation.measuring.DRIVERS", drivers)
    monkeypatch.setattr("hasten.tasks.evaluation.measuring.TIER", "auto")
    compile_used()
    assert [driver.dispatcher for driver in drivers] == ["compiled", None]

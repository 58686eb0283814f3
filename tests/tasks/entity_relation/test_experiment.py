"""The whole experiment, small; the tagger; how answers are measured."""

import json
import math
from dataclasses import replace
from itertools import groupby
from operator import itemgetter

import numpy as np
import pytest

from hasten.errors import CorpusError, ModelError, ProblemError, WriteError
from hasten.model.solution import Solutions
from hasten.paper.experiment import Experiment
from hasten.paper.methods import PAPER_ROWS, PAPER_THETAS
from hasten.paper.test_set import Reference, SentenceTestSet
from hasten.search.theta import FORCED
from hasten.solvers import make_solver, solve_all
from hasten.speedup.black_box import prove_or_solve
from hasten.speedup.calibration import Calibration, Candidate
from hasten.support.progress import tell_nobody
from hasten.support.tensors import load_tensors, save_tensors
from hasten.tasks.entity_relation.data.corpora import Corpora
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.data.formats.jsonl import to_json
from hasten.tasks.entity_relation.data.synthetic import generate
from hasten.tasks.entity_relation.labelling import in_words
from hasten.tasks.entity_relation.scoring.training import train_black_box
from hasten.tasks.entity_relation.tagger import FORMAT, Tagger, explain_theta
from hasten.tasks.entity_relation.task import EntityRelationTask
from hasten.tasks.evaluation.study import Measuring

KEYS = [
    "model",
    "beam",
    "theta",
    "entity_f1_gold",
    "relation_f1_gold",
    "entity_f1_ilp",
    "relation_f1_ilp",
    "validity",
    "exact_match",
    "proved",
    "solver_calls",
    "costs_computed",
    "time_ms",
    "time_ms_std",
    "features_ms",
    "inference_ms",
    "relative_theta",
    "building_ms",
    "interval",
    "std",
]


@pytest.fixture(scope="module")
def sentences() -> list[Sentence]:
    return [sentence for sentence in generate(400, 0) if sentence.relations]


@pytest.fixture(scope="module")
def tagger(sentences) -> Tagger:
    return Tagger.train(sentences[:150], list(generate(300, 1, labelled=False)), black_box="independent")


@pytest.mark.parametrize("black_box", ["structured", "independent"])
def test_the_experiment_measures_every_row(sentences, black_box):
    told = []
    experiment = Experiment(
        sentences[:120],
        list(generate(250, 1, labelled=False)),
        black_box=black_box,
        runs=2,
        epochs=1,
        synthetic=True,
    )
    results = experiment.run(lambda what, share: told.append((what, share)))
    assert json.loads(json.dumps(results)) == results
    shares: dict[str, list[float]] = {}
    for stage, share in told:
        shares.setdefault(stage, []).append(share)
    assert list(shares) == [stage for stage, _ in groupby(told, key=itemgetter(0))]  # no stage begins twice
    for of_stage in shares.values():
        known = [share for share in of_stage if share is not None]
        assert known == sorted(known)
        assert all(0 <= share <= 1 for share in known)
    assert max(shares["Measuring all rows in turns"]) == 1
    rows = results["rows"]
    assert all(key in row for row in rows for key in KEYS)
    for row in rows:
        for key, (low, high) in row["interval"].items():
            assert 0 <= low <= row[key] <= high <= 1
        assert row["std"] == {}
    by_name = {(row["model"], row["beam"]): row for row in rows if row["table"] != "2"}
    ilp, certified = by_name["ILP", None], by_name["certified", None]
    for row in (ilp, certified):
        assert row["exact_match"] == row["validity"] == row["relation_f1_ilp"] == 1.0
    assert certified["relation_f1_gold"] == ilp["relation_f1_gold"]
    assert certified["proved"] == 1.0
    assert certified["solver_calls"] == 0
    assert ilp["solver_calls"] == results["about"]["n_test"]
    assert ilp["answered_by"] == {"highs": results["about"]["n_test"]}
    assert ilp["building_ms"] > 0
    assert by_name["search", None]["exact_match"] < 1.0
    assert by_name["reduced beam", 2]["validity"] == 1.0
    for each in results["calibration"]:
        assert each["too_little"]  # to calibrate on
        assert each["theta"] is each["changed"] is each["changed_test"] is each["limit"] is None
    blind = next(row for row in rows if row["theta"] == 0.0)
    assert blind["costs_computed"] == 0.0
    assert {row["beam"] for row in results["theta_sweep"]} == {1, 2}
    assert results["paper"] == []  # this is not its corpus
    assert not results["about"]["papers_corpus"]
    assert results["structures"]["distinct"] <= 250
    for example in results["examples"]:
        assert example["violations"]["ilp"] == []


def test_the_papers_thetas_are_those_of_its_tables():
    assert {row["relative_theta"] for row in PAPER_ROWS} == {None, *PAPER_THETAS}


def test_both_tables_have_the_papers_algorithm_and_ours(sentences):
    results = Experiment(sentences[:60], list(generate(100, 1, labelled=False)), runs=1, epochs=1).run()
    for table, n in (("1", 2), ("2", 6)):
        for model in ("speedup, Algorithm 1", "speedup, averaged"):
            assert len([row for row in results["rows"] if (row["table"], row["model"]) == (table, model)]) == n
    wanted = {(row["table"], row["model"], row["beam"], row["relative_theta"]) for row in PAPER_ROWS}
    assert wanted <= {(row["table"], row["model"], row["beam"], row["relative_theta"]) for row in results["rows"]}
    for row in results["rows"]:
        if row["relative_theta"] is not None:
            assert row["theta"] == row["relative_theta"] * results["about"]["cost_scale"]


def test_several_seeds_give_means_and_deviations(sentences):
    text = list(generate(100, 1, labelled=False))
    alone = [Experiment(sentences[:60], text, runs=1, epochs=1, seed=seed).run() for seed in (3, 4)]
    told = []
    both = Experiment(sentences[:60], text, runs=1, epochs=1, seed=3, seeds=2).run(
        lambda what, share, *_: told.append(what)
    )
    assert told[0].startswith("Seed 1 of 2: ")
    assert told[-1].startswith("Seed 2 of 2: ")
    first, mean = alone[0]["rows"], both["rows"]
    assert both["about"]["seeds"] == 2
    for one, row in zip(first, mean, strict=True):
        assert (row["model"], row["beam"], row["table"]) == (one["model"], one["beam"], one["table"])
        assert row["std"].keys() >= {"relation_f1_gold", "validity"}
        if row["model"] in ("ILP", "search", "certified"):  # what does not learn from the order of the text
            values = [next(r for r in each["rows"] if r["model"] == row["model"]) for each in alone]
            gold = [each["relation_f1_gold"] for each in values]
            assert row["relation_f1_gold"] == pytest.approx(np.mean(gold))
            assert row["std"]["relation_f1_gold"] == pytest.approx(np.std(gold, ddof=1))


def test_what_is_not_proved_is_solved_and_said_by_whom(sentences, monkeypatch):
    def hardly(batch, solver, on_error):
        found = [solver().solve(batch[p]) for p in range(len(batch))]
        return Solutions.of(batch, found), len(found)

    task = EntityRelationTask()
    model = train_black_box("independent", sentences[:40], task, seed=0, tell=tell_nobody)
    test_set = SentenceTestSet.of(task, model, sentences[40:50], Measuring())
    monkeypatch.setattr("hasten.tasks.evaluation.methods.prove_or_solve", hardly)
    row = test_set.measure([test_set.certified("certified")], "Measuring", rounds=1)[0].row
    assert (row["proved"], row["exact_match"], row["solver_calls"]) == (0.0, 1.0, 10)
    assert row["answered_by"] == {"highs": 10}


def test_labels_that_the_task_lacks_are_refused_with_the_remedy(sentences):
    odd = [replace(sentences[0], types=("Method",) * len(sentences[0].spans)), *sentences[1:20]]
    with pytest.raises(CorpusError, match=r"has the label 'Method', which the task lacks.*--induce"):
        Experiment(odd, sentences)
    with pytest.raises(CorpusError, match="has the label 'Kill'"):  # a relation is not a type
        Experiment([replace(sentences[0], types=("Kill",) * len(sentences[0].spans)), *sentences[1:20]], sentences)
    assert "Method" in Experiment.on(Corpora(odd, sentences, "odd"), induce=True).task.entity_labels


def test_too_little_text_is_an_error(sentences):
    with pytest.raises(CorpusError, match="Got 3 labelled sentences"):
        Experiment(sentences[:3], sentences)
    with pytest.raises(CorpusError, match=r"Got 3 unlabeled sentences .* or"):
        Experiment(sentences, sentences[:3])
    with pytest.raises(CorpusError, match="needs 20, without unlabeled ones"):
        Experiment(sentences[:19], [])
    with pytest.raises(CorpusError, match="'structured' or 'independent'"):
        Experiment(sentences, sentences, black_box="neural")
    with pytest.raises(CorpusError, match="at least one seed, not 0"):
        Experiment(sentences, sentences, seeds=0)


def test_f1_does_not_count_nothing():
    reference = Reference(np.array([0, 3, 5, 1]), np.array([True, True, False, False]), 3, 5)
    assert reference.f1(np.array([0, 3, 5, 1]), reference.gold) == (1.0, 1.0)
    assert reference.f1(np.array([3, 3, 5, 5]), reference.gold) == (0.0, 0.0)
    assert reference.f1(np.array([0, 0, 1, 1]), reference.gold) == (2 / 3, 2 / 3)
    assert reference.f1(np.array([-1, -1, -1, -1]), reference.gold) == (0.0, 0.0)


def test_a_tagger_labels_validly_in_both_modes(tagger):
    task = EntityRelationTask()
    some = list(generate(700, 5, labelled=False))
    for mode in ("certified", "search"):
        found = list(Tagger(task, tagger.scorer, tagger.heuristic, 2, tagger.theta, mode).label(iter(some)))
        assert [each.sentence.id for each in found] == [sentence.id for sentence in some]
        for each in found:
            assert (each.source != "search") == (mode == "certified")
            assert each.proved or mode == "search"
            for source, target, name in each.sentence.relations:
                types = each.sentence.types
                assert (types[source], types[target]) in task.arguments[name]


def test_a_tagger_is_saved_whole(tagger, tmp_path):
    path = tmp_path / "model"
    tagger.save(path)
    tagger.save(path)
    again = Tagger.load(path)
    assert (again.width, again.theta) == (tagger.width, tagger.theta)
    some = list(generate(50, 9, labelled=False))
    assert list(again.label(some)) == list(tagger.label(some))
    assert [each.name for each in tmp_path.iterdir()] == ["model"]


def test_a_tagger_that_cannot_be_saved_names_its_place(tagger, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(WriteError, match=r"file is not a directory\. Choose another place"):
        tagger.save(tmp_path / "file" / "deep" / "model")
    tagger.save(tmp_path / "new" / "deep" / "model")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "new"]


def test_a_tagger_says_what_its_theta_rests_on(tagger):
    assert "a risk of 0.01 needs 3,721 sentences to learn from, and there were 300" in explain_theta(None, 300, 0.01)
    assert math.isinf(tagger.theta)
    best = {"width": 2, "theta": 1.5, "n_changed": 1, "n": 500, "limit": 0.007, "share": 0.61, "passed": True}
    rests = {"met": True, "risk": 0.01, "confidence": 0.95, "against": "search", "table": (Candidate(**best),)}
    chosen = Calibration(**best, **rests)
    said = explain_theta(chosen, 5000, 0.01)
    assert said.startswith("Theta for search mode: 1.5. On 500 sentences held out it computed 61% of the costs")
    assert "at most 0.70%, with confidence 95%" in said
    assert "forced, which skips" in explain_theta(replace(chosen, theta=FORCED), 5000, 0.01)
    assert "No theta was within a risk of 0.01" in explain_theta(replace(chosen, theta=math.inf), 5000, 0.01)


def test_a_damaged_or_foreign_tagger_is_refused(tagger, tmp_path):
    with pytest.raises(ModelError, match="There is no file"):
        Tagger.load(tmp_path / "missing")
    path = tmp_path / "model"
    tagger.save(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ModelError, match="model is not a labeller of entities and relations, or is damaged"):
        Tagger.load(path)
    tagger.heuristic.save(path)
    with pytest.raises(
        ModelError, match=r"and relations, or is of another version: its format is 'hasten\.heuristic/1'"
    ):
        Tagger.load(path)
    other = tmp_path / "other"
    other.mkdir()
    (other / "precious.txt").write_text("keep me")
    with pytest.raises(ModelError, match="Choose another place"):
        tagger.save(other)
    assert (other / "precious.txt").exists()
    with pytest.raises(ProblemError, match="'certified' or 'search'"):
        Tagger(tagger.task, tagger.scorer, tagger.heuristic, mode="guess")


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("width", -1, "'width' must be a whole number from 1"),
        ("width", 10**18, "at most 65,536"),
        ("width", 2.5, "'width' must be a whole number"),
        ("theta", math.nan, "'theta' must be a number from 0"),
        ("theta", "inf", "'theta' must be a number"),
        ("mode", "guess", "mode is 'certified' or 'search'"),
        ("features", "some", "no features 'some'"),
        ("entity_labels", [], "no labels"),
        ("entity_labels", ["person", 1], "must be a string"),
        ("entity_labels", ["person"], "no label"),
        ("arguments", {"Kill": [["person"]]}, "a list of 2"),
        ("arguments", {}, "The task has the labels|must have the shape"),
        ("no_relation", None, "must be a string"),
        ("more", 1, "the key 'more'"),
    ],
)
def test_a_forged_tagger_with_a_right_digest_is_refused(tagger, tmp_path, key, value, words):
    path = tmp_path / "model"
    tagger.save(path)
    tensors, about = load_tensors(path, FORMAT, "tagger")
    settings = json.loads(about["tagger"]) | {key: value}
    save_tensors(path, FORMAT, tensors, about | {"tagger": json.dumps(settings)})
    with pytest.raises(ModelError, match=rf"model is damaged: .*({words})"):
        Tagger.load(path)
    save_tensors(path, FORMAT, tensors, about | {"tagger": "[" * 100_000})
    with pytest.raises(ModelError, match="nested too deep"):
        Tagger.load(path)


def test_labels_in_words():
    task = EntityRelationTask()
    assert in_words(task, np.array([0, 1, 1, 5]), 2) == (("person", "location"), ((0, 1, "LiveIn"),))
    assert in_words(task, np.array([1, 0, 5, 1]), 2) == (("location", "person"), ((1, 0, "LiveIn"),))
    assert math.isinf(Tagger.__dataclass_fields__["theta"].default)


def test_a_sentence_that_the_solver_fails_on_is_told_apart(tagger, sentences, monkeypatch):
    def fail(problem):
        raise ValueError("too hard")

    def hardly(batch, solver, limits):
        answers, n_calls = prove_or_solve(batch, solver, limits=limits)
        return answers.replace([1], solve_all(make_solver(fail), batch.select([1]))), n_calls

    expected = list(tagger.label(sentences[:4]))
    monkeypatch.setattr("hasten.tasks.entity_relation.tagger.prove_or_solve", hardly)
    found = list(tagger.label(sentences[:4]))
    assert [each.reason for each in found] == ["", "ValueError: too hard", "", ""]
    assert found[1].sentence == sentences[1].unlabeled()
    assert not found[1].proved
    assert "types" not in to_json(found[1].sentence)
    assert [found[n] for n in (0, 2, 3)] == [expected[n] for n in (0, 2, 3)]

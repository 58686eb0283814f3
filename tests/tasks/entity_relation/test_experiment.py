"""The whole experiment, small; how answers are measured."""

import json
from dataclasses import replace
from itertools import groupby
from operator import itemgetter

import numpy as np
import pytest

from hasten.errors import CorpusError
from hasten.model.solution import Solutions
from hasten.paper.experiment import Experiment
from hasten.paper.methods import PAPER_ROWS, PAPER_THETAS, Reference, SentenceTestSet
from hasten.support.terminal import no_progress
from hasten.tasks.entity_relation.data.corpora import Corpora
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.data.synthetic import generate
from hasten.tasks.entity_relation.scoring.training import train_black_box
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
    assert by_name["reduced beam", 1]["validity"] == 1.0
    calibrated = [row for row in rows if row["model"].startswith("calibrated")]
    assert len(calibrated) == 4
    for row in calibrated:
        assert "are too few" in row["note"]  # to calibrate on
        assert row["theta"] is None
    blind = next(row for row in rows if row["theta"] == 0.0)
    assert blind["costs_computed"] == 0.0
    assert {row["beam"] for row in results["theta_sweep"]} == {1, 2}
    assert results["paper"] == []  # this is not its corpus
    assert not results["about"]["papers_corpus"]
    for example in results["examples"]:
        assert example["violations"]["ILP"] == []
        assert example["labels"]["greedy search"] != example["labels"]["ILP"]
        assert {len(labels) for labels in example["labels"].values()} == {len(example["names"])}


def test_the_papers_thetas_are_those_of_its_tables():
    assert {row["relative_theta"] for row in PAPER_ROWS} == {None, *PAPER_THETAS}


def test_both_tables_have_the_papers_algorithm(sentences):
    results = Experiment(sentences[:60], list(generate(100, 1, labelled=False)), runs=1, epochs=1).run()
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
    model = train_black_box("independent", sentences[:40], task, seed=0, progress=no_progress)
    test_set = SentenceTestSet.of(task, model, sentences[40:50], Measuring())
    monkeypatch.setattr("hasten.tasks.evaluation.measuring.prove_or_solve", hardly)
    row = test_set.measure([test_set.certified("certified")], "Measuring", rounds=1)[0].row
    assert (row["proved"], row["exact_match"], row["solver_calls"]) == (0.0, 1.0, 10)


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
    with pytest.raises(CorpusError, match="'structured' or 'independent' or 'neural'"):
        Experiment(sentences, sentences, black_box="another")
    with pytest.raises(CorpusError, match="at least one seed, not 0"):
        Experiment(sentences, sentences, seeds=0)


def test_f1_does_not_count_nothing():
    reference = Reference(np.array([0, 3, 5, 1]), np.array([True, True, False, False]), 3, 5)
    assert reference.f1(np.array([0, 3, 5, 1]), reference.gold) == (1.0, 1.0)
    assert reference.f1(np.array([3, 3, 5, 5]), reference.gold) == (0.0, 0.0)
    assert reference.f1(np.array([0, 0, 1, 1]), reference.gold) == (2 / 3, 2 / 3)
    assert reference.f1(np.array([-1, -1, -1, -1]), reference.gold) == (0.0, 0.0)

"""Labels of a corpus's own, all the way: trained, saved, predicted and evaluated; symmetric, joint and nested."""

from __future__ import annotations

import json
import random

import pytest
from typer.testing import CliRunner

from hasten import cli
from hasten.tasks.entity_relation.data.columns import MOST_VARIABLES, MOST_WORDS, Columns
from hasten.tasks.entity_relation.data.corpus import in_order
from hasten.tasks.entity_relation.data.formats import read_corpus, write_jsonl
from hasten.tasks.entity_relation.evaluating import RELATION, TYPE, evaluate
from hasten.tasks.entity_relation.tagger import Tagger

KINDS = {"gene": "Gen", "drug": "Dru", "cell": "Cel"}


def foreign(n, seed=0):
    """Sentences whose labels their words give away: symmetric, joint and nested ones, and some without relations."""
    draw = random.Random(seed)
    for number in range(n):
        types = [draw.choice(list(KINDS)) for _ in range(2)]
        words = [f"{KINDS[name]}{draw.randrange(9)}" for name in types]
        kind = draw.choice(["binds", "treats", "nothing", "nested"])
        relations = []
        if kind == "binds" and types[0] == types[1]:
            relations = [(0, 1, "binds"), (1, 0, "binds")]
        elif kind == "treats" and types == ["drug", "cell"]:
            relations = [(0, 1, "treats"), (0, 1, "NoRel")]
        verb = relations[0][2] if relations else "and"
        spans = [(0, 1), (2, 3)]
        if kind == "nested":
            spans, types = [(2, 3), (0, 1), (0, 3)], [types[1], types[0], "cell"]
            relations = [(2, 0, "has"), (2, 1, "has")]
            verb = "within"
        yield in_order(f"{seed}-{number}", [words[0], verb, words[1]], spans, types=types, relations=relations)


@pytest.fixture(scope="module")
def tagger():
    return Tagger.train(list(foreign(300)), seed=1)


def test_labels_of_its_own_are_learned_and_found_again(tagger, tmp_path):
    assert tagger.task.relation_labels == ("NoRel + treats", "binds", "has", "NoRel 2")
    assert tagger.task.both_ways == {("binds", "binds")}
    test = list(foreign(80, 1))
    found = evaluate(tagger, test)
    assert found.kinds[TYPE].micro.f1 > 0.95
    assert found.kinds[RELATION].micro.f1 > 0.9
    assert {score.label for score in found.kinds[RELATION].labels} == {"NoRel", "binds", "has", "treats"}
    assert (found.n, found.n_valid, found.n_proved, found.unreachable["n"]) == (80, 80, 80, 0)
    tagger.save(tmp_path / "model")
    again = Tagger.load(tmp_path / "model")
    assert again.task.both_ways == tagger.task.both_ways
    assert [each.sentence for each in again.label(test)] == [each.sentence for each in tagger.label(test)]


def test_gold_that_training_never_showed_is_a_point_lost_and_no_error(tagger):
    spans, types = [(0, 1), (2, 3)], ["gene", "ufo"]
    strange = in_order("s", ["Gen1", "eats", "Ufo"], spans, types=types, relations=[(0, 1, "eats")])
    found = evaluate(tagger, [strange])
    assert (found.unreachable["types"], found.unreachable["relations"]) == ({"ufo": 1}, {"eats": 1})
    scores = {score.label: score for score in found.kinds[TYPE].labels}
    assert scores["ufo"].recall == 0.0


def test_a_sentence_of_many_equal_spans_ends_in_time(tagger):
    equal = in_order("e", ["Gen1"] * 40, [(n, n + 1) for n in range(40)])
    (answer,) = tagger.asking(limits__time_limit=0.5).label([equal])
    assert answer.sentence.types is not None
    assert answer.valid


def test_chunks_hold_few_long_sentences_and_lose_none():
    long = in_order("l", ["x"] * 300, [(n, n + 1) for n in range(300)])
    short = in_order("s", ["x"], [(0, 1)])
    stream = [long, short, long, *[short] * (MOST_WORDS + 9)]
    found = list(Columns.of(stream).chunks())
    assert [stream[n] for chunk in found for n in chunk.numbers] == stream
    assert [row.id for chunk in found for row in chunk.rows] == [sentence.id for sentence in stream]
    assert len(found[0]) == 1
    assert all((chunk.n_spans**2).sum() <= MOST_VARIABLES for chunk in found if len(chunk) > 1)
    assert max(chunk.n_words.sum() for chunk in found) <= MOST_WORDS


def run(*arguments):
    done = CliRunner().invoke(cli.app, list(map(str, arguments)))
    assert done.exit_code == 0, (done.output, done.exception)
    return " ".join(done.output.split())


def test_every_command_takes_labels_of_its_own(tmp_path):
    corpus, dev, model = (tmp_path / name for name in ("train.jsonl", "dev.jsonl", "model"))
    write_jsonl(corpus, foreign(120))
    write_jsonl(dev, foreign(40, 1))
    bad = {"tokens": ["a"], "spans": [[0, 1]], "types": ["gene"], "relations": [[0, 0, "r"]]}
    corpus.write_text(corpus.read_text() + json.dumps(bad) + "\n")
    said = run("train", corpus, "--dev", dev, "--out", model, "--skip-bad")
    assert "labels of its own: 3 types (cell, drug, gene) and 3 relations" in said
    assert "Passed over 1 entry" in said
    assert "On the 40 labelled sentences of dev:" in said
    said = run("evaluate", model, dev, "--out", tmp_path / "eval")
    assert "treats" in said
    found = json.loads((tmp_path / "eval" / "evaluation.json").read_text())
    assert found["n"] == 40
    assert found["kinds"]["relation"]["micro"]["n_gold"] == sum(len(s.relations) for s in foreign(40, 1))
    assert 'class="confusion"' in (tmp_path / "eval" / "evaluation.html").read_text()
    run("predict", model, dev, tmp_path / "out.jsonl")
    assert [s.spans for s in read_corpus(tmp_path / "out.jsonl", "jsonl")] == [s.spans for s in foreign(40, 1)]

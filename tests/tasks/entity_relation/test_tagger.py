"""A trained labeller: its modes, its file, and the lines that it writes."""

import json
import math
import re
import sys
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hasten.errors import MissingExtra, ModelError, ProblemError, WriteError
from hasten.solvers import make_solver
from hasten.support.forms import load_tensors, save_tensors
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.data.formats.jsonl import Line, encode_lines, to_json
from hasten.tasks.entity_relation.data.synthetic import generate
from hasten.tasks.entity_relation.labelling import in_words
from hasten.tasks.entity_relation.tagger import FORMAT, Tagger
from hasten.tasks.entity_relation.task import EntityRelationTask


@pytest.fixture(scope="module")
def sentences():
    return [sentence for sentence in generate(160, 3) if sentence.relations]


@pytest.fixture(scope="module")
def tagger(sentences):
    return Tagger.train(sentences[:100], list(generate(200, 4, labelled=False)))


def test_a_tagger_labels_validly_in_both_modes(tagger):
    task = EntityRelationTask()
    some = list(generate(700, 5, labelled=False))
    for mode in ("certified", "search"):
        found = list(tagger.asking(mode=mode).label(iter(some)))
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
    assert again.digest == tagger.digest
    assert again.beam() == tagger.beam()
    some = list(generate(50, 9, labelled=False))
    assert list(again.label(some)) == list(tagger.label(some))
    assert [each.name for each in tmp_path.iterdir()] == ["model"]


def test_a_tagger_that_cannot_be_saved_names_its_place(tagger, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(WriteError, match=r"file is not a directory\. Choose another place"):
        tagger.save(tmp_path / "file" / "deep" / "model")
    tagger.save(tmp_path / "new" / "deep" / "model")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "new"]


def test_theta_is_spoken_of_only_where_there_was_enough_to_calibrate_it(tagger):
    assert tagger.note == ""
    assert math.isinf(tagger.beam().theta)
    told = Tagger.train(list(generate(60, 1)), list(generate(900, 2, labelled=False)), risk=0.05)
    assert re.match(r"Search mode: theta .*: computes .* of the costs, changes", told.note)
    assert "\n" not in told.note


def test_a_damaged_or_foreign_tagger_is_refused(tagger, tmp_path):
    with pytest.raises(ModelError, match="There is no file"):
        Tagger.load(tmp_path / "missing")
    path = tmp_path / "model"
    tagger.save(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ModelError, match="model is not a labeller of entities and relations, or is damaged"):
        Tagger.load(path)
    tagger.speedup.heuristic.save(path)
    with pytest.raises(
        ModelError, match=r"and relations, or is of another version: its format is 'hasten\.heuristic/2'"
    ):
        Tagger.load(path)
    other = tmp_path / "other"
    other.mkdir()
    (other / "precious.txt").write_text("keep me")
    with pytest.raises(ModelError, match="Choose another place"):
        tagger.save(other)
    assert (other / "precious.txt").exists()
    with pytest.raises(ProblemError, match="'certified' or 'search'"):
        tagger.asking(mode="learned")
    with pytest.raises(ProblemError, match="time_limit must be a number of seconds"):  # which no float can hold
        tagger.asking(limits__time_limit=10**400)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("features", "some", "no features 'some'"),
        ("entity_labels", [], "no labels"),
        ("entity_labels", ["person", 1], "Expected `str`"),
        ("entity_labels", ["person"], "no label"),
        ("arguments", {"Kill": [["person"]]}, "`array` of length 2"),
        ("arguments", {}, "the schema differs"),
        ("no_relation", None, "Expected `str`"),
        ("more", 1, "unknown field `more`"),
    ],
)
def test_a_forged_tagger_with_a_right_digest_is_refused(tagger, tmp_path, key, value, words):
    path = tmp_path / "model"
    tagger.save(path)
    tensors, about = load_tensors(path, FORMAT, "tagger")
    settings = json.loads(about["task"]) | {key: value}
    save_tensors(path, FORMAT, tensors, about | {"task": json.dumps(settings)})
    with pytest.raises(ModelError, match=rf"model .*({words})"):
        Tagger.load(path)
    save_tensors(path, FORMAT, tensors, about | {"task": "[" * 100_000})
    with pytest.raises(ModelError, match="nested too deep"):
        Tagger.load(path)
    save_tensors(path, FORMAT, tensors | {"more": np.zeros(1)}, about)
    with pytest.raises(ModelError, match="more"):
        Tagger.load(path)


def test_labels_in_words():
    task = EntityRelationTask()
    assert in_words(task, np.array([0, 1, 1, 5]), 2) == (("person", "location"), ((0, 1, "LiveIn"),))
    assert in_words(task, np.array([1, 0, 5, 1]), 2) == (("location", "person"), ((1, 0, "LiveIn"),))


def test_a_sentence_that_the_solver_fails_on_is_told_apart(tagger, sentences):
    def fail_once(problem):
        if problem.n_variables == n:
            raise ValueError("too hard")
        return make_solver("highs").solve(problem)

    n = len(sentences[1].spans) ** 2
    others = [each for each in sentences if len(each.spans) ** 2 != n][:3]
    expected = list(tagger.label(others))
    found = list(tagger.asking(solver=fail_once, trust__prove=False).label([others[0], sentences[1], *others[1:]]))
    assert [each.reason for each in found] == ["", "ValueError: too hard", "", ""]
    assert found[1].sentence == sentences[1].unlabeled()
    assert not found[1].proved
    assert "types" not in to_json(found[1].sentence)
    assert [found[n].sentence for n in (0, 2, 3)] == [each.sentence for each in expected]


@given(words=st.lists(st.text(min_size=1), max_size=4), labelled=st.booleans())
def test_lines_are_written_as_pythons_json_writes_them(words, labelled):
    sentence = Sentence("".join(words), tuple(words), ((0, 1),) if words else ())
    lines = [Line.of(sentence), Line.of(replace(sentence, types=('}, {"id": ',) * len(sentence.spans), relations=()))]
    lines[0].proved, lines[1].failed = False, "".join(words)
    expected = "".join(json.dumps(msgspec.to_builtins(line)) + "\n" for line in lines)
    assert encode_lines(lines).decode() == expected
    assert [json.loads(line)["tokens"] for line in expected.splitlines()] == [words, words]
    assert encode_lines([]) == b""


def test_a_neural_black_box_without_its_packages_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for name in [name for name in sys.modules if name.startswith("hasten.tasks.entity_relation.neural")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MissingExtra, match=r"needs torch, .*: pip install hasten\[neural\]"):
        Tagger.train(list(generate(20, seed=0)), black_box="neural")

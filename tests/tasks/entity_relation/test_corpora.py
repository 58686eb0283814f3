"""What is trained on and learned from: which sentences keep their labels, and which are left out."""

from __future__ import annotations

import json

import pytest

from hasten.errors import CorpusError
from hasten.tasks.entity_relation.data.corpora import Corpora, Reading, Split
from hasten.tasks.entity_relation.data.formats import write_jsonl
from hasten.tasks.entity_relation.data.synthetic import generate
from hasten.tasks.text.lines import Faults


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "gold.jsonl"
    write_jsonl(path, generate(120, 0))
    return path


@pytest.fixture
def more(tmp_path):
    path = tmp_path / "more.jsonl"
    write_jsonl(path, generate(80, 1))
    return path


def listening(told):
    return Reading(progress=lambda stage, share, note="": told.append(stage))


def test_a_labelled_file_keeps_its_labels_and_additional_text_loses_them(corpus, more):
    told = []
    found = Corpora.read(corpus, [more], seed=3, reading=listening(told))
    given, others = list(generate(120, 0)), list(generate(80, 1))
    assert any(not sentence.relations for sentence in given)
    assert list(found.labelled) == [sentence for sentence in given if sentence.spans]
    wanted = [sentence.unlabeled() for sentence in others if len(sentence.spans) > 1]
    assert sorted(found.unlabeled, key=repr) == sorted(wanted, key=repr)
    assert list(found.unlabeled) != wanted  # shuffled,
    assert found == Corpora.read(corpus, [more], seed=3)  # by the seed
    assert (found.source, found.synthetic) == ("gold.jsonl, more.jsonl", False)
    assert told == ["Reading gold.jsonl", "Reading more.jsonl"]


def test_a_sentence_without_labels_in_a_labelled_file_is_learned_from_without_them(tmp_path):
    path = tmp_path / "mixed.jsonl"
    write_jsonl(path, [*generate(50, 0), *generate(50, 1, labelled=False)])
    found = Corpora.read(path)
    assert all(sentence.annotated for sentence in found.labelled)
    assert {s.tokens for s in found.unlabeled} == {s.tokens for s in generate(50, 1) if len(s.spans) > 1}


def test_files_of_their_own_say_who_trains_and_who_tests(corpus, more):
    found = Corpora.read(corpus, test=more)
    parts = found.files.apply(found.labelled)
    trains, tests = ([found.labelled[n] for n in part] for part in (parts.train, parts.test))
    assert trains == [sentence for sentence in generate(120, 0) if sentence.spans]
    assert tests == [sentence for sentence in generate(80, 1) if sentence.spans]
    assert found.files.files == ("train: gold.jsonl", "test: more.jsonl")
    assert Corpora.read(corpus, dev=more).to_train() == (trains, tests, "dev")  # without a test file, dev tests
    assert found.unlabeled == []


def test_lists_and_files_that_both_say_who_tests_are_refused(corpus, more, tmp_path):
    (tmp_path / "train.ids").write_text(next(iter(generate(1, 0))).id)
    with pytest.raises(CorpusError, match="Leave out --split, or that file"):
        Corpora.read(corpus, dev=more).to_train(Split.read([str(tmp_path / "train.ids")]))


def test_a_file_that_is_not_there_is_refused_before_anything_is_read(corpus, tmp_path):
    told = []
    with pytest.raises(CorpusError, match=r"missing\.jsonl"):
        Corpora.read(corpus, [tmp_path / "missing.jsonl"], reading=listening(told))
    with pytest.raises(CorpusError, match=r"missing\.jsonl"):
        Corpora.read(corpus, test=tmp_path / "missing.jsonl", reading=listening(told))
    assert told == []


def test_a_corpus_without_relations_is_refused(tmp_path):
    path = tmp_path / "text.jsonl"
    write_jsonl(path, generate(10, 0, labelled=False))
    with pytest.raises(CorpusError, match="no sentence with a relation"):
        Corpora.read(path)


def test_a_corpus_may_have_its_own_word_for_no_relation(tmp_path):
    path = tmp_path / "own.jsonl"
    entry = {"tokens": ["a", "b"], "spans": [[0, 1], [1, 2]], "types": ["x", "x"]}
    lines = [entry | {"relations": [[0, 1, "none"], [1, 0, "likes"]]}, entry | {"relations": [[0, 1, "none"]]}]
    path.write_text("\n".join(map(json.dumps, lines)))
    found = Corpora.read(path, reading=Reading(no_relation="none"))
    assert [sentence.relations for sentence in found.labelled] == [((1, 0, "likes"),), ()]


def test_entries_that_cannot_be_used_are_refused_with_a_count_or_passed_over(tmp_path):
    path = tmp_path / "bad.jsonl"
    good = {"tokens": ["a", "b"], "spans": [[0, 1], [1, 2]], "types": ["x", "x"], "relations": [[0, 1, "r"]]}
    itself = good | {"relations": [[1, 1, "r"]]}
    path.write_text("\n".join([json.dumps(good), json.dumps(itself), "{", json.dumps(itself), json.dumps(good)]))
    with pytest.raises(CorpusError, match=r"bad\.jsonl, line 2: .*to itself.* So are 2 others.*--skip-bad"):
        Corpora.read(path)
    faults = Faults(skip=True)
    found = Corpora.read(path, reading=Reading(faults=faults))
    assert [sentence.id for sentence in found.labelled] == ["1", "5"]
    assert faults.n == 3
    assert "bad.jsonl, line 3: Not JSON" in str(faults)


def test_made_up_corpora_are_ten_times_as_large_without_labels():
    made = Corpora.made_up(30, seed=5)
    assert len(made.labelled) == 30
    assert all(sentence.relations for sentence in made.labelled)
    assert len(made.unlabeled) == 300
    assert all(sentence.types is None for sentence in made.unlabeled)
    assert made.synthetic
    assert made == Corpora.made_up(30, seed=5)

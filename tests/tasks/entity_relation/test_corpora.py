"""What is trained on and learned from: which sentences keep their labels, and which are left out."""

from __future__ import annotations

import pytest

from hasten.errors import CorpusError
from hasten.tasks.entity_relation.data.corpora import Corpora
from hasten.tasks.entity_relation.data.formats import write_jsonl
from hasten.tasks.entity_relation.data.synthetic import generate


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "gold.jsonl"
    write_jsonl(path, generate(120, 0))
    return path


def test_sentences_with_relations_keep_their_labels_and_the_others_lose_them(corpus, tmp_path):
    more = tmp_path / "more.jsonl"
    write_jsonl(more, generate(80, 1))
    told = []
    found = Corpora.read(corpus, [more], seed=3, tell=lambda stage, share, note="": told.append(stage))
    given, others = list(generate(120, 0)), list(generate(80, 1))
    assert list(found.labelled) == [sentence for sentence in given if sentence.relations]
    rest = [sentence for sentence in given if not sentence.relations] + others
    wanted = [sentence.unlabeled() for sentence in rest if len(sentence.spans) > 1]
    assert sorted(found.unlabeled, key=repr) == sorted(wanted, key=repr)
    assert list(found.unlabeled) != wanted  # shuffled,
    assert found == Corpora.read(corpus, [more], seed=3)  # by the seed
    assert (found.source, found.synthetic) == ("gold.jsonl, more.jsonl", False)
    assert told == ["Reading gold.jsonl", "Reading more.jsonl"]


def test_a_file_that_is_not_there_is_refused_before_anything_is_read(corpus, tmp_path):
    told = []
    with pytest.raises(CorpusError, match=r"missing\.jsonl"):
        Corpora.read(corpus, [tmp_path / "missing.jsonl"], tell=lambda stage, share, note="": told.append(stage))
    assert told == []


def test_a_corpus_without_relations_is_refused(tmp_path):
    path = tmp_path / "text.jsonl"
    write_jsonl(path, generate(10, 0, labelled=False))
    with pytest.raises(CorpusError, match="no sentence with a relation"):
        Corpora.read(path)


def test_made_up_corpora_are_ten_times_as_large_without_labels():
    made = Corpora.made_up(30, seed=5)
    assert len(made.labelled) == 30
    assert all(sentence.relations for sentence in made.labelled)
    assert len(made.unlabeled) == 300
    assert all(sentence.types is None for sentence in made.unlabeled)
    assert made.synthetic
    assert made == Corpora.made_up(30, seed=5)

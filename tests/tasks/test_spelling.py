"""Lists of strings in JSON become rows of numbers, whatever they hold and however they are spelled."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hasten.tasks.text import words as spelling
from hasten.tasks.text.words import NO_LIST, NO_POS, POS, Spellings, Vocabulary, as_json, attributes_of, hash_string


def of_letters(word: str) -> tuple[int, ...]:
    return len(word), sum(map(ord, word)) % 2**31


LISTS = st.lists(st.lists(st.text(alphabet=st.sampled_from('ab"\\, []é\n😀'), max_size=3), max_size=5), max_size=6)


@given(lists=LISTS, ascii_only=st.booleans(), again=st.booleans())
def test_each_string_has_the_columns_of_its_word(lists, ascii_only, again):
    known = Spellings(of_letters, 2)
    given_ = [json.dumps(each, ensure_ascii=ascii_only).encode() for each in lists]
    for _ in range(1 + again):
        counts, columns, odd = known.read(given_)
        assert counts.tolist() == [len(each) for each in lists]
        assert list(map(tuple, columns.tolist())) == [of_letters(word) for each in lists for word in each]
        assert odd.tolist() == [word == "" for each in lists for word in each]


@pytest.mark.parametrize(
    "text", ["3", "null", '"a"', '{"a": "b"}', "[1]", '["a", 2]', '[["a"]]', "[null]", "[true]", ""]
)
def test_what_is_no_list_of_strings_is_told_and_its_neighbours_are_read(text):
    counts, columns, _ = Spellings(of_letters, 2).read([b'["ab"]', text.encode(), b' [ "a" ,"b" ]'[1:]])
    assert counts.tolist() == [1, NO_LIST, 2]
    assert columns[:, 0].tolist() == [2, 1, 1]


def test_odd_spellings_are_told():
    spelled = [rb'["\u0041", "\/", "\u00E9"]', rb'["A", "/", "\u00e9"]', '["é", "\\"é"]'.encode()]
    _, columns, odd = Spellings(of_letters, 2).read(spelled)
    assert odd.tolist() == [True, True, True, False, False, False, False, False]
    assert (columns[:3] == columns[3:6]).all()


def test_few_are_remembered_and_many_fit_nevertheless(monkeypatch):
    monkeypatch.setattr(spelling, "MOST", 4)
    known = Spellings(of_letters, 2)
    for n in (3, 40, 2, 5):
        words = [f"word{k}" for k in range(n)]
        _, columns, _ = known.read([as_json(words)])
        assert list(map(tuple, columns.tolist())) == [of_letters(word) for word in words]


def test_parts_of_speech_stand_beside_their_words():
    sentences, tags = [["Ada", "left"], ["Rome"], ["x", "y"]], [["NNP", "VBD"], None, ["NN"]]
    found = Vocabulary().read([as_json(each) for each in sentences], [None if t is None else as_json(t) for t in tags])
    assert found.counts.tolist() == [2, 1, 2]
    assert found.n_tags.tolist() == [2, 1, 1]
    words = [word for each in sentences for word in each]
    assert (found.columns[:, :POS] == np.array([attributes_of(word) for word in words])).all()
    assert found.columns[:, POS].tolist() == [hash_string("NNP"), hash_string("VBD"), NO_POS, NO_POS, NO_POS]
    assert not found.odd.any()


@given(st.lists(st.text(st.characters(codec="utf-8", min_codepoint=32), min_size=1), max_size=9))
@example(["xXxx", "Ab-1.2x", "U.S.", "\x7f", "aé", "McDonald-1987", '"', "\\", "I", "AAA", "x"])
def test_compiled_columns_are_those_of_the_word(words):
    columns = Vocabulary().read([as_json(words)]).columns
    assert list(map(tuple, columns[:, :POS].tolist())) == list(map(attributes_of, words))

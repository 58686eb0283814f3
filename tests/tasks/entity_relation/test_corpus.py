"""Sentences are consistent, and splitting them loses none."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentences import MARLOW, sentences

from hasten.errors import CorpusError
from hasten.tasks.entity_relation.data.corpus import Sentence, induce_arguments, split


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokens": ("Ada", "", "left", "Tarn", ".")}, "Token 1 is empty"),
        ({"pos": ("NNP",)}, "1 POS tags for 5 tokens"),
        ({"types": ("person",)}, "1 types for 2 spans"),
        ({"spans": ((0, 2), (3, 6))}, r"Span \[3, 6\) does not fit 5 tokens"),
        ({"spans": ((0, 0), (3, 4))}, r"Span \[0, 0\) does not fit"),
        ({"spans": ((-1, 2), (3, 4))}, r"Span \[-1, 2\) does not fit"),
        ({"spans": ((0, 4), (3, 4))}, "disjoint"),
        ({"spans": ((3, 4), (0, 2))}, "in order"),
        ({"relations": ((0, 2, "LiveIn"),)}, "two different ones of 2"),
        ({"relations": ((1, 1, "LiveIn"),)}, "two different ones of 2"),
        ({"relations": ((0, 1, "LiveIn"), (0, 1, "Kill"))}, "Two relations go from span 0 to span 1"),
    ],
)
def test_a_sentence_that_contradicts_itself_is_refused(change, message):
    fields = {name: getattr(MARLOW, name) for name in MARLOW.__slots__}
    with pytest.raises(CorpusError, match=message):
        Sentence(**{**fields, **change})


def test_unlabeled_drops_types_and_relations_only():
    assert MARLOW.unlabeled() == Sentence("a", MARLOW.tokens, MARLOW.spans, MARLOW.pos)


def test_arguments_are_induced_from_labelled_sentences():
    assert induce_arguments([MARLOW, MARLOW.unlabeled()]) == {"LiveIn": {("person", "location")}}


@given(st.lists(sentences(), max_size=9), st.floats(0, 1), st.integers(0, 9))
def test_a_split_keeps_every_sentence_and_repeats(whole, fraction, seed):
    first, rest = split(whole, fraction, seed)
    assert len(first) == round(fraction * len(whole))
    assert Counter(first + rest) == Counter(whole)
    assert (first, rest) == split(iter(whole), fraction, seed)


def test_a_split_wants_a_fraction():
    with pytest.raises(CorpusError, match="70"):
        split([], 70)

"""Sentences are consistent, and splitting them loses none."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentences import MARLOW, sentences

from hasten.errors import CorpusError
from hasten.tasks.entity_relation.data.corpus import Sentence, in_order, induce_arguments, induce_both, split


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokens": ("Ada", "", "left", "Tarn", ".")}, "Token 1 is empty"),
        ({"tokens": "Ada left"}, "The tokens are the string 'Ada left'"),
        ({"pos": ("NNP",)}, "1 POS tags for 5 tokens"),
        ({"types": ("person",)}, "1 types for 2 spans"),
        ({"spans": ((0, 2), (3, 6))}, r"Span \[3, 6\) does not fit 5 tokens"),
        ({"spans": ((0, 0), (3, 4))}, r"Span \[0, 0\) does not fit"),
        ({"spans": ((-1, 2), (3, 4))}, r"Span \[-1, 2\) does not fit"),
        ({"spans": ((0, 2), (0, 2))}, r"Two spans are \[0, 2\)"),
        ({"spans": ((3, 4), (0, 2))}, "Sort them"),
        ({"relations": ((0, 2, "LiveIn"),)}, "two different ones of 2"),
        ({"relations": ((1, 1, "LiveIn"),)}, "LiveIn joins span 1 to itself"),
        ({"relations": ((0, 1, "Kill"), (0, 1, "Kill"))}, "Kill goes from span 0 to span 1 twice"),
        ({"relations": ((0, 1, "Live + Kill"),)}, "Rename it"),
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


def test_spans_in_any_order_are_sorted_and_their_labels_go_with_them():
    found = in_order("1", ["a", "b", "c"], [(2, 3), (0, 2), (0, 1)], types=["x", "y", "z"], relations=[(0, 2, "r")])
    assert found.spans == ((0, 1), (0, 2), (2, 3))  # nested spans are spans of their own
    assert found.types == ("z", "y", "x")
    assert found.relations == ((2, 0, "r"),)


def test_a_span_given_twice_counts_once_unless_its_types_differ():
    found = in_order("1", ["a", "b"], [(0, 1), (1, 2), (0, 1)], types=["x", "y", "x"], relations=[(2, 1, "r")])
    assert (found.spans, found.types, found.relations) == (((0, 1), (1, 2)), ("x", "y"), ((0, 1, "r"),))
    with pytest.raises(CorpusError, match=r"Span \[0, 1\) has the types 'x' and 'y'"):
        in_order("1", ["a"], [(0, 1), (0, 1)], types=["x", "y"])


def test_several_relations_of_a_pair_are_one_joint_label():
    pair = in_order("1", ["a", "b"], [(0, 1), (1, 2)], types=["x", "y"], relations=[(0, 1, "s"), (0, 1, "r")])
    assert pair.joint_labels() == {(0, 1): "r + s"}
    assert induce_arguments([pair]) == {"r + s": {("x", "y")}}


def test_what_holds_both_ways_is_seen_whichever_way_comes_first():
    pair = in_order("1", ["a", "b"], [(0, 1), (1, 2)], types=["x", "y"], relations=[(0, 1, "s"), (1, 0, "r")])
    assert induce_both([pair, MARLOW]) == {("s", "r"), ("r", "s")}
    assert induce_both([MARLOW]) == set()

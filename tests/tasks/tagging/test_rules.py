"""Rules as one writes them are read, or refused in words."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hasten.errors import SchemaError
from hasten.tasks.tagging.rules import Count, Never, Rules, read_rule

TAGS = ["ADJ", "B-PER", "I-PER", "NOUN", "O", "VERB"]
BIO = ["B-LOC", "B-PER", "I-LOC", "I-PER", "O"]


@pytest.mark.parametrize(
    ("text", "tags", "low", "high"),
    [
        ("at least 1 VERB", ("VERB",), 1, math.inf),
        ("At  most three ADJ or NOUN", ("ADJ", "NOUN"), -math.inf, 3),
        ("exactly 2 *-PER", ("B-PER", "I-PER"), 2, 2),
        ("no VERB", ("VERB",), -math.inf, 0),
        ("at most 1 NOUN or NOUN", ("NOUN",), -math.inf, 1),
    ],
)
def test_counts_are_read(text, tags, low, high):
    assert read_rule(text, TAGS) == Count(text, tags, low, high)


def test_what_may_not_follow_is_read():
    assert read_rule("no I-PER after O or NOUN", TAGS) == Never("no I-PER after O or NOUN", ("I-PER",), ("O", "NOUN"))


def test_prices_are_read():
    assert read_rule("at least 1 VERB, or pay 2.5", TAGS).price == 2.5
    assert read_rule("no VERB or ADJ or pay 3 each", TAGS) == Count(
        "no VERB or ADJ or pay 3 each", ("VERB", "ADJ"), high=0, price=3.0, per_unit=True
    )
    rules = Rules.of(TAGS, ["no I-PER after O or pay 2", "no I-PER after O or VERB, or pay 1"])
    assert rules.prices[TAGS.index("O"), TAGS.index("I-PER")] == 3.0
    assert rules.prices.sum() == 4.0
    assert not rules.forbidden.any()
    assert rules.broken([TAGS.index("O"), TAGS.index("I-PER")], TAGS) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Cannot read the rule ''"),
        ("some VERB", "at least N TAG"),
        ("at least VERB", "Cannot read"),
        ("at least -1 VERB", "counts to '-1'"),
        ("at least 1.5 VERB", "counts to '1.5'"),
        ("at most 99999999999999999999 VERB", "counts to"),
        ("at least 1 verb", "Did you mean VERB"),
        ("at least 1 X*", "is not there"),
        ("no VERB after", "'VERB after', which is not there"),
        (7, "written in words"),
        ("at least ¹ VERB", "counts to"),
        ("at least 1 VERB or pay", "'pay', which is not there"),
        ("at least 1 VERB or pay nothing", "the price 'nothing'"),
        ("at least 1 VERB or pay -1", "the price"),
        ("at least 1 VERB or pay 0", "above 0"),
        ("at least 1 VERB or pay 1e400", "the price"),
    ],
)
def test_bad_rules_are_refused_in_words(text, said):
    with pytest.raises(SchemaError, match=said.replace("*", r"\*")):
        read_rule(text, TAGS)


def test_bio_allows_an_inside_only_in_its_own_entity():
    rules = Rules.of(BIO, bio=True)
    allowed = {
        (BIO[left], BIO[right]) for left in range(5) for right in range(5) if np.isfinite(rules.forbidden[left, right])
    }
    insides = {pair for pair in allowed if pair[1].startswith("I-")}
    assert insides == {("B-LOC", "I-LOC"), ("I-LOC", "I-LOC"), ("B-PER", "I-PER"), ("I-PER", "I-PER")}
    assert len(allowed) - len(insides) == 15
    assert [BIO[i] for i in np.flatnonzero(np.isinf(rules.first))] == ["I-LOC", "I-PER"]


def test_a_rule_of_ones_own_holds_beside_bio():
    rules = Rules.of(BIO, ["no I-PER after B-PER"], bio=True)
    assert np.isinf(rules.forbidden[BIO.index("B-PER"), BIO.index("I-PER")])
    assert np.isfinite(rules.forbidden[BIO.index("I-PER"), BIO.index("I-PER")])


@pytest.mark.parametrize("tags", [["O", "S-PER"], ["NOUN"], ["B-"], ["I-PER", "O"]])
def test_other_tags_than_bio_are_refused(tags):
    with pytest.raises(SchemaError, match="BIO"):
        Rules.of(tags, bio=True)


def test_broken_rules_are_named():
    rules = Rules.of(BIO, ["at most 1 B-*", "at least 1 O"], bio=True)
    labels = [BIO.index(tag) for tag in ("I-LOC", "B-PER", "I-LOC", "B-LOC")]
    assert rules.broken(labels, BIO) == [
        "at most 1 B-*",
        "at least 1 O",
        "no I-LOC after B-PER",
        "no I-LOC at the beginning",
    ]
    assert rules.broken([BIO.index("O")], BIO) == []

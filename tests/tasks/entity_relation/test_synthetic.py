"""Made-up sentences keep the task's rules, repeat by seed, and are not all alike."""

import os
import re
import subprocess
import sys
from collections import Counter

import pytest

from hasten.errors import CorpusError
from hasten.tasks.entity_relation.data.corpus import induce_arguments
from hasten.tasks.entity_relation.data.synthetic import (
    ENTITY,
    SYMBOL,
    WORD,
    generate,
    news,
    read_grammar,
    read_lexicon,
)
from hasten.tasks.entity_relation.task import PAPER_ARGUMENTS


@pytest.fixture(scope="module")
def many():
    return list(generate(5000, seed=3))


def text(sentence, span):
    return " ".join(sentence.tokens[slice(*span)])


def test_relations_join_the_types_they_should(many):
    assert induce_arguments(many) == PAPER_ARGUMENTS


def test_no_pair_is_related_both_ways(many):
    for sentence in many:
        pairs = {(source, target) for source, target, _ in sentence.relations}
        assert not pairs & {(target, source) for source, target in pairs}


def test_every_relation_occurs_in_both_directions_of_the_text(many):
    seen = {(name, source < target) for sentence in many for source, target, name in sentence.relations}
    assert seen == {(name, forward) for name in PAPER_ARGUMENTS for forward in (True, False)}


def test_sizes_are_those_of_news(many):
    sizes = [len(sentence.spans) for sentence in many]
    assert (min(sizes), max(sizes)) == (2, 8)
    assert 3.5 < sum(sizes) / len(sizes) < 3.9
    assert 0.05 < sum(not sentence.relations for sentence in many) / len(many) < 0.2


def test_no_relation_or_type_is_rare(many):
    relations = Counter(name for sentence in many for _, _, name in sentence.relations)
    types = Counter(kind for sentence in many for kind in sentence.types)
    assert min(relations.values()) > 0.08 * relations.total()
    assert min(types.values()) > 0.05 * types.total()


def test_the_same_name_may_have_several_types(many):
    types = {}
    for sentence in many:
        for span, kind in zip(sentence.spans, sentence.types, strict=True):
            types.setdefault(text(sentence, span), set()).add(kind)
    assert sum(len(kinds) >= 3 for kinds in types.values()) > 50


def test_most_names_are_new_to_one_who_read_a_thousand_sentences(many):
    known = {text(s, span) for s in many[:1000] for span in s.spans}
    later = [text(s, span) for s in many[1000:] for span in s.spans]
    assert sum(name not in known for name in later) > 0.5 * len(later)


def test_sentences_are_well_formed(many):
    for sentence in many:
        assert sentence.tokens[0][0] in "`" or not sentence.tokens[0][0].islower()
        assert sentence.tokens[-1] == "."
        assert len(sentence.pos) == len(sentence.tokens)
        written = f" {' '.join(sentence.tokens)} "
        assert " , , " not in written
        assert " , . " not in written
        assert not re.search(" a [aeioAEIO]", written)


def test_the_seed_decides_and_labels_do_not_matter():
    first = list(generate(50, seed=7))
    assert first == list(generate(80, seed=7))[:50]
    assert first != list(generate(50, seed=8))
    assert [sentence.unlabeled() for sentence in first] == list(generate(50, seed=7, labelled=False))
    assert [sentence.id for sentence in first[:2]] == ["synthetic-0", "synthetic-1"]


def test_the_hash_seed_does_not_matter():
    program = "from hasten.tasks.entity_relation.data.synthetic import generate; print(list(generate(30, 5)))"
    printed = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1


def test_a_negative_number_of_sentences_is_refused():
    with pytest.raises(CorpusError, match="-1"):
        list(generate(-1, seed=0))


def test_every_symbol_and_kind_that_is_named_exists():
    symbols, types = news()
    for lines in symbols.values():
        for line in lines:
            for form, (name, kind) in line.items:
                assert form == WORD or (name in symbols if form == SYMBOL else kind in types and kind in symbols)


def test_a_grammar_is_read_as_its_file_says():
    tags = read_lexicon("# words\nVBZ: lives\nIN: in\nIN: near\n:: ; --\n")
    assert tags == {"lives": "VBZ", "in": "IN", "near": "IN", ";": ":", "--": ":"}
    grammar = """
# people
sentence:
    2 {a:person} lives (in|near) {b:town}
        => a LiveIn b, b Houses a
    # or nothing
    3

person: person
    <first>
town: location
    Port_NNP
"""
    symbols, types = read_grammar(grammar, tags)
    choice = "(in|near)"
    items = ((ENTITY, ("a", "person")), (WORD, ("lives", "VBZ")), (SYMBOL, (choice, "")), (ENTITY, ("b", "town")))
    assert types == {"person": "person", "town": "location"}
    assert symbols["sentence"] == [(items, (("a", "LiveIn", "b"), ("b", "Houses", "a")))] * 2 + [((), ())] * 3
    assert symbols[choice] == [(((WORD, (word, "IN")),), ()) for word in ("in", "near")]
    assert symbols["person"] == [(((SYMBOL, ("first", "")),), ())]
    assert symbols["town"] == [(((WORD, ("Port", "NNP")),), ())]

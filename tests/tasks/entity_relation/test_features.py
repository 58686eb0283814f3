"""Interned text and hashed features: stable, bounded, and alike compiled and uncompiled."""

import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from opened import opened

from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.scoring import features
from hasten.tasks.entity_relation.scoring.features import MAX_FEATURES, intern
from hasten.tasks.text.words import (
    CAPITALISED,
    FLAGS,
    HAS_DIGIT,
    NO_POS,
    POS,
    SHAPE,
    WORD,
    Vocabulary,
    hash_string,
    shape_of,
)

pair_of, variable_features = opened(features.pair_of), opened(features.variable_features)
MASK = 2**12 - 1


def plain(words, *spans, pos=None):
    tokens = tuple(words.split())
    return Sentence("t", tokens, spans, None if pos is None else tuple(pos.split()))


VILLAGE = plain("Colin lives in Little Wobbling .", (0, 1), (3, 5), pos="NNP VBZ IN NNP NNP .")
TRAIN = plain("Mrs. Quill of Ada-Works 7 met 12 DOGS", (0, 2), (3, 5), (7, 8))


def rows_of(text, sentence, variable, mask=MASK, kernel=variable_features):
    rows = np.full(MAX_FEATURES, -1)
    n = kernel(text, sentence, variable, mask, rows)
    return rows[:n].tolist()


def all_rows(text):
    return [rows_of(text, p, v) for p in range(text.n_sentences) for v in range(text.n_variables[p])]


@pytest.mark.parametrize(
    ("word", "shape"),
    [("Ada", "Xx"), ("McDonald-1987", "XxXx-d"), ("U.S.", "X.X."), ("--", "--"), ("Éa", "Xx"), ("٣x", "dx")],
)
def test_a_shape_writes_runs_once(word, shape):
    assert shape_of(word) == shape


def test_columns_hold_what_they_say():
    text = intern([TRAIN])
    assert text.columns[6, WORD] == hash_string("12")
    assert text.columns[7, WORD] == hash_string("dogs")
    assert text.columns[7, SHAPE] == hash_string("X")
    assert text.columns[7, FLAGS] & CAPITALISED
    assert not text.columns[7, FLAGS] & HAS_DIGIT
    assert text.columns[6, FLAGS] & HAS_DIGIT
    assert (text.columns[:, POS] == NO_POS).all()


def test_a_text_lays_its_sentences_end_to_end():
    text = intern([VILLAGE, plain("nobody here"), TRAIN])
    assert_array_equal(text.token_at, [0, 6, 8, 16])
    assert_array_equal(text.span_at, [0, 2, 2, 5])
    assert_array_equal(text.spans, [[0, 1], [3, 5], [8, 10], [11, 13], [15, 16]])
    assert_array_equal(text.n_variables, [4, 0, 9])


def test_a_text_may_be_empty():
    text = intern([])
    assert text.n_sentences == 0
    assert text.spans.shape == (0, 2)


def test_a_sentence_has_the_same_features_in_any_company():
    alone = all_rows(intern([TRAIN]))
    assert all_rows(intern([VILLAGE, TRAIN]))[4:] == alone
    shared = Vocabulary()
    intern([VILLAGE, *(plain(f"word{n} again") for n in range(3000))], shared)
    assert all_rows(intern([TRAIN], shared)) == alone
    assert len(shared.words) == 6 + 3000 + 1 + 8


def test_an_old_text_outlives_the_growth_of_its_vocabulary():
    shared = Vocabulary()
    text = intern([TRAIN], shared)
    before = all_rows(text)
    intern([plain(f"word{n}") for n in range(5000)], shared)
    assert all_rows(text) == before


def test_hashes_do_not_depend_on_the_process():
    code = (
        "from hasten.tasks.entity_relation.data.corpus import Sentence\n"
        "from hasten.tasks.entity_relation.scoring.features import intern\n"
        "s = Sentence('t', ('Colin', 'Éric', '🎈', '1987'), ((0, 1),), ('NNP', 'NNP', 'SYM', 'CD'))\n"
        "print(intern([s]).columns.tolist())"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1


@pytest.mark.parametrize("n_entities", [2, 3, 7, 24])
def test_relations_run_over_pairs_in_lexicographic_order(n_entities):
    pairs = [(i, j) for i in range(n_entities) for j in range(i + 1, n_entities)]
    assert [pair_of(n_entities, 2 * q + b) for q in range(len(pairs)) for b in (0, 1)] == [
        pair for pair in pairs for _ in (0, 1)
    ]


def test_rows_fit_the_table_and_the_buffer():
    crowd = plain(" ".join(f"Name{n}" for n in range(600)), *((25 * n, 25 * n + 20) for n in range(24)))
    text = intern([crowd])
    assert text.n_variables[0] == 24 * 24
    for rows in all_rows(text):
        assert 20 <= len(rows) < MAX_FEATURES
        assert min(rows) >= 0
        assert max(rows) <= MASK


def test_the_two_directions_share_no_feature():
    text = intern([VILLAGE])
    wide = 2**31 - 1
    assert not set(rows_of(text, 0, 2, wide)) & set(rows_of(text, 0, 3, wide))


@pytest.mark.parametrize(
    ("changed", "differs"),
    [
        ("Colin lives near Little Wobbling .", [True, True, True, True]),  # within two words of both spans
        ("Colin lives in Little Wobbling !", [False, True, True, True]),
        ("Colin Lives in Little Wobbling .", [True, False, False, False]),  # case shows in shapes alone
    ],
)
def test_features_see_their_surroundings(changed, differs):
    before, after = (all_rows(intern([plain(w, *VILLAGE.spans)])) for w in (" ".join(VILLAGE.tokens), changed))
    assert [a != b for a, b in zip(before, after, strict=True)] == differs


def test_missing_parts_of_speech_are_one_value():
    bare = intern([plain(" ".join(VILLAGE.tokens), *VILLAGE.spans)])
    tagged = intern([VILLAGE])
    assert all_rows(bare) != all_rows(tagged)
    assert [len(rows) for rows in all_rows(bare)] == [len(rows) for rows in all_rows(tagged)]


def test_the_kernel_says_the_same_uncompiled():
    text = intern([VILLAGE, TRAIN])
    compiled = all_rows(text)
    slow = [rows_of(text, p, v, kernel=features.variable_features) for p in (0, 1) for v in range(text.n_variables[p])]
    assert slow == compiled

"""Scores of labels against counting by hand, their intervals, and the page that shows them."""

from __future__ import annotations

import random

import msgspec
import pytest

from hasten.tasks.evaluation.scores import Tally, confusions, render


def tally_of(pairs, kinds=("type",)):
    tally = Tally(kinds)
    for gold, found in pairs:
        tally.add({"type": set(gold)}, {"type": set(found)})
    return tally


def test_precision_recall_and_f1_are_those_counted_by_hand():
    found = tally_of([([(0, "a"), (1, "b")], [(0, "a"), (1, "a")]), ([(0, "a")], []), ([], [(3, "c")])]).result()[
        "type"
    ]
    scores = {score.label: score for score in found.labels}
    assert (scores["a"].precision, scores["a"].recall, scores["a"].f1) == (1 / 2, 1 / 2, 1 / 2)
    assert (scores["b"].precision, scores["b"].recall, scores["b"].f1) == (None, 0.0, 0.0)
    assert (scores["c"].precision, scores["c"].recall, scores["c"].f1) == (0.0, None, 0.0)
    assert (found.micro.n_gold, found.micro.n_found, found.micro.n_right) == (3, 3, 1)
    assert found.micro.f1 == pytest.approx(1 / 3)
    assert found.macro_f1 == 1 / 4  # of a and b, which have gold


def test_any_tally_agrees_with_counting_items_one_by_one():
    draw = random.Random(0)
    pairs = [
        tuple([(n, draw.choice("abc")) for n in range(5) if draw.random() < 0.7] for _ in range(2)) for _ in range(700)
    ]
    tally = tally_of(pairs)
    found = tally.result()["type"]
    assert tally.n == 700
    assert tally.n_exact == sum(set(gold) == set(answer) for gold, answer in pairs)
    for score in found.labels:
        gold, answer = (
            [{i for i in side if i[1] == score.label} for side in sides] for sides in zip(*pairs, strict=True)
        )
        right = sum(len(one & other) for one, other in zip(gold, answer, strict=True))
        assert (score.n_gold, score.n_found, score.n_right) == (sum(map(len, gold)), sum(map(len, answer)), right)
        low, high = score.intervals["f1"]
        assert low < score.f1 < high
        assert high - low < 0.15


def test_intervals_narrow_as_sentences_come_in_and_are_the_same_for_a_seed():
    pair = [([(0, "a")], [(0, "a")]), ([(0, "a")], [(0, "b")])]
    few, many = (tally_of(pair * n).result()["type"].micro.intervals["f1"] for n in (5, 500))
    assert many[1] - many[0] < few[1] - few[0]
    assert few == tally_of(pair * 5).result()["type"].micro.intervals["f1"]


def test_a_label_is_confused_with_what_is_found_in_its_place():
    gold = {(0, "a"), (1, "b"), (2, "c"), (3, "d")}
    assert confusions(gold, {(0, "a"), (1, "c"), (4, "d"), (3, "d"), (3, "e")}) == {
        ("a", "a"): 1, ("d", "d"): 1, ("b", "c"): 1, ("c", None): 1, (None, "d"): 1, (None, "e"): 1,
    }  # fmt: skip


def test_nothing_at_all_is_no_score_and_no_error():
    found = tally_of([([], [])]).result()["type"]
    assert (found.labels, found.micro.f1, found.macro_f1) == ([], None, None)


def test_the_page_shows_scores_escapes_names_and_folds_rare_labels():
    pairs = [([(0, f"<i>{n}")], [(0, f"<i>{n % 7}")]) for n in range(40)]
    tally = tally_of(pairs * 3)
    kinds = {"type": msgspec.to_builtins(tally.result()["type"])}
    page = render(
        {"about": {"model": "<m>", "source": "s"}, "n": tally.n, "exact": 0.5, "valid": 1.0, "kinds": kinds,
         "unreachable": {"in_words": "None of <it>."}}
    )  # fmt: skip
    assert "<i>" not in page
    assert "&lt;i&gt;1" in page
    assert "other labels" in page
    assert "None of &lt;it&gt;." in page
    assert "evaluation.json" in page

"""A gate for relations: its cheap features, and a tagger that has one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hasten.speedup.mode import TextMode
from hasten.tasks.entity_relation import gating
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.data.synthetic import generate
from hasten.tasks.entity_relation.scoring.cheap import N_CHEAP, relation_features
from hasten.tasks.entity_relation.scoring.text import intern
from hasten.tasks.entity_relation.tagger import Tagger, gate_needs


def spans(words: str, *bounds: tuple[int, int]) -> Sentence:
    return Sentence("s", tuple(words.split()), tuple(bounds))


def features(sentence: Sentence, variable: int) -> list[int]:
    cheap = relation_features(intern([spans("x y", (0, 1), (1, 2)), sentence]))
    found: np.ndarray = cheap(np.array([1]), np.array([variable]))
    assert found.shape == (1, N_CHEAP)
    return found[0].tolist()


def test_cheap_features_see_words_between_and_around_and_the_direction() -> None:
    near = spans("so Ann lives in Rome today", (1, 2), (4, 5))
    assert features(near, 2) == features(near, 2)
    assert not set(features(near, 2)) & set(features(near, 3))  # the other way round
    far = features(spans("so Ann lives quite far away in Rome today", (1, 2), (7, 8)), 2)
    same = [a == b for a, b in zip(features(near, 2), far, strict=True)]
    assert same == [False, True, True, True, True, True, True, True]  # all but the distance
    other = features(spans("then Ann lives in Rome today", (1, 2), (4, 5)), 2)
    assert [a == b for a, b in zip(features(near, 2), other, strict=True)].count(False) == 1


def test_spans_may_touch_each_other_and_the_ends_of_a_sentence() -> None:
    assert len(set(features(spans("Ann Rome", (0, 1), (1, 2)), 2))) == N_CHEAP


def test_a_tagger_keeps_a_gate_that_pays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gating, "PAYS", np.inf)
    text = list(generate(1200, seed=1, labelled=False))
    tagger = Tagger.train(list(generate(150, seed=0)), text, risk=0.05)
    assert tagger.gate is not None
    assert tagger.max_doubt > 0
    assert "search mode uses it" in tagger.about_gate
    tagger.save(tmp_path / "tagger")
    again = Tagger.load(tmp_path / "tagger")
    new = list(generate(200, seed=7, labelled=False))
    found, loaded, certified = (
        [answer.sentence for answer in replace(each, mode=mode).label(new)]
        for each, mode in ((tagger, TextMode.SEARCH), (again, TextMode.SEARCH), (tagger, TextMode.CERTIFIED))
    )
    assert found == loaded
    assert np.mean([a == b for a, b in zip(found, certified, strict=True)]) > 0.9
    assert json.dumps(again.max_doubt) == json.dumps(tagger.max_doubt)


def test_a_gate_that_does_not_pay_is_told_of_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gating, "PAYS", 0.0)
    sentences = list(generate(1000, seed=1))
    tagger = Tagger.train(sentences[:150], sentences, risk=0.05)
    assert tagger.gate is None
    assert "it does not pay, and is not used" in tagger.about_gate


def test_too_few_sentences_train_no_gate() -> None:
    assert gate_needs(0.01) == 459
    assert Tagger.train(list(generate(60, seed=0))).about_gate == ""

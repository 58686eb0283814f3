"""The cheap features of relations that the benchmarks of gates use."""

from __future__ import annotations

from importlib import util
from pathlib import Path

import numpy as np

from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.scoring.features import intern

FILE = util.spec_from_file_location("cheap", Path(__file__).parents[3] / "benchmarks" / "cheap.py")
CHEAP = util.module_from_spec(FILE)
FILE.loader.exec_module(CHEAP)
N_CHEAP, relation_features = CHEAP.N_CHEAP, CHEAP.relation_features


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

"""`hasten.decode` takes the shapes that classifiers give, and answers as the certifier does."""

from __future__ import annotations

import numpy as np
import pytest
import scenes

import hasten
from hasten.errors import ProblemError

RNG = np.random.default_rng(0)


def test_probabilities_of_equal_variables_are_multiplied() -> None:
    _, shape = scenes.tagger(rule=True)
    structure, p = shape(4), RNG.dirichlet(np.ones(3), size=(6, 4))
    answers = hasten.decode(structure, p)
    assert answers.proved.all()
    for one, answer in zip(p, answers, strict=True):
        assert answer.score == pytest.approx(scenes.best(structure, list(np.log(one))))
    for same in (
        hasten.decode(structure, probabilities=p.reshape(6, 12)),
        hasten.decode(structure, scores=np.log(p)),
        hasten.decode(structure, [p[:, v] for v in range(4)]),
        hasten.decode(structure, p.tolist()),
        hasten.decode(structure, p, solver="highs"),
    ):
        assert np.array_equal(same.labels, answers.labels)


def test_one_number_is_that_of_the_second_label() -> None:
    schema = hasten.Schema()
    kind = schema.variable("class", ["no", "yes"])
    schema.factor("is a", child=kind, parent=kind).forbid(child="yes", parent="no")
    structure = schema.structure(["class"] * 3, {"is a": [(1, 0), (2, 1)]})
    p = np.array([[0.4, 0.9, 0.2], [0.1, 0.6, 0.95], [1.0, 0.0, 0.7]])
    answers = hasten.decode(structure, p).labels.reshape(3, 3)
    assert answers.tolist() == [[1, 1, 0], [1, 1, 1], [1, 0, 0]]
    odds = np.log(p[:2] / (1 - p[:2]))
    assert np.array_equal(hasten.decode(structure, scores=odds).labels.reshape(2, 3), answers[:2])


def test_variables_of_several_kinds_come_one_by_one() -> None:
    _, shape = scenes.entity_relation()
    structure = shape(2)
    parts = [RNG.dirichlet(np.ones(len(kind)), size=5) for kind in structure.kinds]
    answers = hasten.decode(structure, parts)
    for p, answer in enumerate(answers):
        assert answer.score == pytest.approx(scenes.best(structure, [np.log(part[p]) for part in parts]))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"probabilities": np.full((1, 2, 3), 1.5)}, "Input 0: 1.5 is not a probability"),
        ({"probabilities": np.full((1, 2, 3), np.nan)}, "Input 0: nan is not a probability"),
        ({"probabilities": np.ones((1, 2, 4))}, r"Got an array of shape \(1, 2, 4\) for a structure of 2 variables"),
        ({"probabilities": np.ones((1, 2))}, r"Give \(inputs, variables, labels\)"),
        ({"probabilities": "many"}, "arrays of numbers"),
        ({"scores": np.full((1, 2, 3), np.nan)}, "Problem 0: the score of variable 0"),
        ({}, "Give either probabilities or scores"),
    ],
)
def test_wrong_shapes_and_numbers_are_named(words: dict, message: str) -> None:
    _, shape = scenes.tagger()
    with pytest.raises(ProblemError, match=message):
        hasten.decode(shape(2), **words)

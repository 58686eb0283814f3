"""Heuristics as values, read by names; files are refused where they do not belong to a schema."""

from __future__ import annotations

import numpy as np
import pytest

from hasten.errors import ModelError, SchemaError
from hasten.learning.heuristic import Heuristic
from hasten.learning.learner import Learner
from hasten.model.schema import Schema
from hasten.speedup.persistence import FORMAT
from hasten.speedup.predictor import Speedup
from hasten.support.forms import load_tensors, save_tensors


def pets(labels=("cat", "dog"), **changes) -> Schema:
    """A schema with two factor kinds, one of them without weights."""
    schema = Schema()
    pet = schema.variable(changes.get("name", "pet"), labels)
    home = schema.variable("home", ["house", "barn", "none"])
    pair = schema.factor("pair", left=pet, right=pet)
    if changes.get("table", True):
        pair.forbid(left="cat", right="dog")
    schema.factor("at", learned=False, **{changes.get("role", "who"): pet, "where": home})
    schema.factor("lives", learned=changes.get("learned", True), who=pet, where=home)
    if changes.get("rule"):
        schema.rule("few", at_most=3, home="barn")
    return schema


def numbered(schema: Schema) -> Heuristic:
    """A heuristic with different numbers everywhere."""
    return Heuristic(schema, np.arange(schema.n_weights) - 4.5)


def test_weights_are_read_by_names():
    heuristic = numbered(pets())
    assert heuristic.weights_of("lives").tolist() == [[-0.5, 0.5, 1.5], [2.5, 3.5, 4.5]]
    first, second, *_ = heuristic.strongest(3)
    assert (first.factor, first.labels, first.weight) == ("pair", {"left": "cat", "right": "cat"}, -4.5)
    assert (second.factor, second.labels, second.weight) == ("lives", {"who": "dog", "where": "none"}, 4.5)
    assert [row.weight for row in heuristic.strongest(2, "lives")] == [4.5, 3.5]
    assert len(heuristic.strongest(99)) == 10
    assert str(first) == "-4.5  pair(left=cat, right=cat)"
    assert "lives(who=dog, where=none)" in str(heuristic)


def test_a_heuristic_that_knows_nothing_has_no_strongest_features():
    nothing = Heuristic(pets(), np.zeros(10))
    assert nothing.strongest() == []
    assert str(nothing) == "Heuristic: 0 of 10 weights are not zero"


def test_a_heuristic_is_frozen():
    weights = np.zeros(10)
    heuristic = Heuristic(pets(), weights)
    weights[0] = 1.0
    assert heuristic.weights[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        heuristic.weights[0] = 1.0


def test_wrong_sizes_and_names_are_refused():
    with pytest.raises(ModelError, match=r"weights of shape \(3,\)"):
        Heuristic(pets(), np.zeros(3))
    with pytest.raises(ModelError, match="finite"):
        Heuristic(pets(), np.full(10, np.nan))
    with pytest.raises(SchemaError, match="no factor kind 'pears'"):
        numbered(pets()).strongest(3, "pears")
    with pytest.raises(ModelError, match="at has no weights"):
        numbered(pets()).weights_of("at")


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (pets(labels=("cat", "cow", "dog")), "variable kind 'pet' had labels cat, dog, now cat, cow, dog"),
        (pets(labels=("dog", "cat")), "variable kind 'pet' had labels cat, dog, now dog, cat"),
        (pets(name="animal"), "variable kind 'pet' is missing here; variable kind 'animal' is new"),
        (pets(table=False), "factor kind 'pair' had table"),
        (pets(role="what"), "factor kind 'at' had roles"),
        (pets(learned=False), "factor kind 'lives' had learned True, now False"),
        (pets(rule=True), "rule 'few' is new"),
    ],
)
def test_another_schema_is_refused_by_what_differs(tmp_path, other, difference):
    path = tmp_path / "pets.safetensors"
    Speedup(pets()).save(path)
    with pytest.raises(ModelError, match="the schema differs") as refused:
        Speedup.load(path, other)
    assert difference in str(refused.value)


def test_another_order_of_declarations_is_refused(tmp_path):
    def schema(*names: str) -> Schema:
        made = Schema()
        pet = made.variable("pet", ["cat", "dog"])
        for name in names:
            made.factor(name, left=pet, right=pet)
        return made

    path = tmp_path / "order.safetensors"
    Speedup(schema("one", "two")).save(path)
    with pytest.raises(ModelError, match="kinds and rules were declared in another order"):
        Speedup.load(path, schema("two", "one"))


def test_a_learner_gives_its_weights_as_a_heuristic():
    schema = pets()
    shape = schema.structure()
    pet = schema.variables["pet"]
    shape.connect(schema.factors["pair"], left=shape.add(pet), right=shape.add(pet))
    learner = Learner.paper(1).learn_one(shape.problem([[0.0, 1.0], [1.0, 0.0]]), [0, 0])
    assert [str(row) for row in learner.heuristic.strongest()] == [
        "+1  pair(left=cat, right=cat)",
        "-1  pair(left=cat, right=dog)",
    ]


@pytest.mark.parametrize("names", ["", "[]", "[" * 100_000, '{"variables": {"pet": [["cat"]]}}'])
def test_a_description_that_is_none_is_refused(tmp_path, names):
    path = tmp_path / "forged"
    Speedup(pets()).save(path)
    tensors, about = load_tensors(path, FORMAT, "speedup")
    save_tensors(path, FORMAT, tensors, about | {"names": names})
    with pytest.raises(ModelError, match=r"forged is damaged: the description of its schema"):
        Speedup.load(path, pets())
    save_tensors(path, FORMAT, tensors, about | {"names": "{}"})
    with pytest.raises(ModelError, match=r"the schema differs: variable kind 'pet' is new"):
        Speedup.load(path, pets())


def test_weights_that_are_no_numbers_are_refused():
    for wrong in (["a"] * 10, [1j] * 10, [[1.0] * 10]):
        with pytest.raises(ModelError, match=r"must be numbers|of shape"):
            Heuristic(pets(), wrong)

"""Heuristics as values: read, saved, loaded, merged; and refused where they do not belong."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save
from strategies import small_problems

from hasten.errors import ModelError, SchemaError
from hasten.learning.heuristic import FORMAT, Heuristic, about_schema
from hasten.learning.learner import Learner
from hasten.model.schema import Schema
from hasten.support.forms import save_tensors


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


def test_saved_and_loaded_is_the_same(tmp_path):
    heuristic, path = numbered(pets()), tmp_path / "pets.safetensors"
    heuristic.save(path)
    loaded = Heuristic.load(path, pets())
    assert (loaded.weights == heuristic.weights).all()
    assert os.listdir(tmp_path) == ["pets.safetensors"]
    tensors = load_file(path)  # what others can read
    assert tensors["weights/lives"].shape == (2, 3)


@given(small_problems(), st.integers(0, 999))
def test_heuristics_of_any_schema_survive_saving(tmp_path_factory, problem, seed):
    schema, rng = problem.structure.schema, np.random.default_rng(seed)
    path = tmp_path_factory.mktemp("saved") / "any.safetensors"
    heuristic = Heuristic(schema, rng.normal(size=schema.n_weights))
    heuristic.save(path)
    loaded = Heuristic.load(path, schema)
    assert (loaded.weights == heuristic.weights).all()


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
    numbered(pets()).save(path)
    with pytest.raises(ModelError, match="the schema differs") as refused:
        Heuristic.load(path, other)
    assert difference in str(refused.value)


def test_another_order_of_declarations_is_refused(tmp_path):
    def schema(*names: str) -> Schema:
        made = Schema()
        pet = made.variable("pet", ["cat", "dog"])
        for name in names:
            made.factor(name, left=pet, right=pet)
        return made

    path = tmp_path / "order.safetensors"
    numbered(schema("one", "two")).save(path)
    with pytest.raises(ModelError, match="kinds and rules were declared in another order"):
        Heuristic.load(path, schema("two", "one"))


def test_every_way_to_cut_a_file_short_is_noticed(tmp_path):
    path = tmp_path / "pets.safetensors"
    numbered(pets()).save(path)
    data = path.read_bytes()
    for size in [0, 1, 7, 8, 9, 100, *range(len(data) // 2, len(data), 37), len(data) - 1]:
        path.write_bytes(data[:size])
        with pytest.raises(ModelError, match="is damaged"):
            Heuristic.load(path, pets())


def test_every_changed_byte_is_noticed(tmp_path):
    path = tmp_path / "pets.safetensors"
    schema, heuristic = pets(), numbered(pets())
    heuristic.save(path)
    data = path.read_bytes()
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(ModelError):
            Heuristic.load(path, schema)


def test_tampering_with_tensors_or_names_is_noticed(tmp_path):
    path = tmp_path / "pets.safetensors"
    numbered(pets()).save(path)
    data = path.read_bytes()
    about = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
    tensors = load_file(path)
    tensors["weights/lives"] = tensors["weights/lives"] + 1
    path.write_bytes(save(tensors, about))
    with pytest.raises(ModelError, match="does not match its digest"):
        Heuristic.load(path, pets())
    path.write_bytes(save(load_file(path), about | {"names": "{}"}))
    with pytest.raises(ModelError, match="does not match its digest"):
        Heuristic.load(path, pets())


def test_foreign_files_are_refused(tmp_path):
    path = tmp_path / "other.safetensors"
    path.write_bytes(save({"a": np.zeros(3)}))
    with pytest.raises(ModelError, match="not a heuristic, or is of another version: its format is None"):
        Heuristic.load(path, pets())
    with pytest.raises(ModelError, match="There is no file"):
        Heuristic.load(tmp_path / "nothing", pets())
    with pytest.raises(ModelError, match="cannot be read"):
        Heuristic.load(tmp_path, pets())


def test_a_save_that_fails_leaves_the_old_file_whole(tmp_path, monkeypatch):
    path = tmp_path / "pets.safetensors"
    old = numbered(pets())
    old.save(path)

    def fail(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no space left"):
        Heuristic(pets(), np.zeros(10)).save(path)
    assert (Heuristic.load(path, pets()).weights == old.weights).all()
    assert os.listdir(tmp_path) == ["pets.safetensors"]


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


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("weights/pair", lambda tensor: tensor.astype(np.float32), "of type float64, not float32"),
        ("weights/pair", lambda tensor: tensor * np.nan, "finite numbers"),
        ("weights/pair", lambda tensor: tensor[:-1], "must have the shape"),
        ("x", lambda tensor: tensor, "a tensor 'x', which does not belong"),
    ],
)
def test_a_forged_file_with_a_right_digest_is_refused(tmp_path, name, change, words):
    heuristic = numbered(pets())
    tensors = heuristic.tensors()
    tensors[name] = np.ascontiguousarray(change(tensors.get(name, np.zeros(1))))
    save_tensors(tmp_path / "forged", FORMAT, tensors, about_schema(heuristic.schema))
    with pytest.raises(ModelError, match=rf"forged is damaged: .*{words}"):
        Heuristic.load(tmp_path / "forged", pets())


@pytest.mark.parametrize("names", ["", "[]", "[" * 100_000, '{"variables": {"pet": [["cat"]]}}'])
def test_a_description_that_is_none_is_refused(tmp_path, names):
    heuristic = numbered(pets())
    save_tensors(tmp_path / "forged", FORMAT, heuristic.tensors(), {"schema": heuristic.schema.digest, "names": names})
    with pytest.raises(ModelError, match=r"forged is damaged: the description of its schema"):
        Heuristic.load(tmp_path / "forged", pets())
    save_tensors(
        tmp_path / "of nothing", FORMAT, heuristic.tensors(), {"schema": heuristic.schema.digest, "names": "{}"}
    )
    with pytest.raises(ModelError, match=r"the schema differs: variable kind 'pet' is new"):
        Heuristic.load(tmp_path / "of nothing", pets())


def test_weights_that_are_no_numbers_are_refused():
    for wrong in (["a"] * 10, [1j] * 10, [[1.0] * 10]):
        with pytest.raises(ModelError, match=r"must be numbers|of shape"):
            Heuristic(pets(), wrong)

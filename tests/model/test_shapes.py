"""Structures from arrays are those that one would build step by step; wrong numbers are refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hasten import Batch, Certifier, Schema, Structure
from hasten.errors import SchemaError
from hasten.model.shapes import RuleArrays


def schema_of_relations() -> Schema:
    schema = Schema()
    entity = schema.variable("entity", ["person", "place", "none"])
    relation = schema.variable("relation", ["LiveIn", "none"])
    args = schema.factor("args", source=entity, relation=relation, target=entity)
    args.allow(relation="LiveIn", source="person", target="place").allow(relation="none")
    schema.factor("near", left=entity, right=entity).cost(0.5, left="person", right="person")
    return schema


def by_hand(schema: Schema, kinds: list[int], args: Any, near: Any, rules: list[Any]) -> Structure:
    shape, known = schema.structure(), list(schema.variables.values())
    for kind in kinds:
        shape.add(known[kind])
    for source, relation, target in args:
        shape.connect(schema.factors["args"], source=source, relation=relation, target=target)
    for left, right in near:
        shape.connect(schema.factors["near"], left=left, right=right)
    for terms, low, high, price in rules:
        named = [(v, known[kinds[v]].labels[label], weight) for v, label, weight in terms]
        limits = {} if low == -np.inf else {"at_least": low}
        limits |= {} if high == np.inf else {"at_most": high}
        shape.rule("rule", named, **limits, price=price or None)
    return shape


def draw(rng: np.random.Generator) -> tuple[list[int], Any, Any, list[Any]]:
    """Returns the kinds, scopes and rules of a random shape; it may be without any."""
    n_entities, n_relations = (int(rng.integers(least, 5)) for least in (0, 0))
    kinds = [*[0] * n_entities, *[1] * n_relations]
    pairs = [(a, b) for a in range(n_entities) for b in range(n_entities) if a != b]
    args = [(*pairs[rng.integers(len(pairs))], n_entities + r) for r in range(n_relations)] if pairs else []
    args = [(source, relation, target) for source, target, relation in args]
    near = [pairs[rng.integers(len(pairs))] for _ in range(int(rng.integers(3)))] if pairs else []
    rules = []
    for _ in range(int(rng.integers(3)) if kinds else 0):
        variables = rng.integers(0, len(kinds), 3).tolist()
        terms = [(v, int(rng.integers(3 if kinds[v] == 0 else 2)), float(rng.integers(1, 3))) for v in variables]
        low, high = [(-np.inf, 2.0), (1.0, np.inf), (1.0, 3.0)][rng.integers(3)]
        rules.append((terms, low, high, float(rng.choice([0.0, 0.7]))))
    return kinds, args, near, rules


def flat(parts: list[list[Any]], width: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    joined = [each for part in parts for each in part]
    empty = np.zeros((0, width) if width else 0, dtype=np.int64)
    return (np.array(joined) if joined else empty), np.cumsum([0, *map(len, parts)])


def rule_arrays(rules: list[list[Any]]) -> tuple[RuleArrays, np.ndarray]:
    every = [rule for part in rules for rule in part]
    terms = [term for rule in every for term in rule[0]]
    variable, label, weight = (np.array([term[x] for term in terms]) for x in range(3))
    first = np.cumsum([0, *(len(rule[0]) for rule in every)])
    low, high, price = (np.array([rule[x] for rule in every]) for x in (1, 2, 3))
    return RuleArrays(first, variable, label, weight, low, high, price), np.cumsum([0, *map(len, rules)])


def test_many_shapes_from_arrays_are_those_built_by_hand() -> None:
    rng, schema = np.random.default_rng(0), schema_of_relations()
    drawn = [draw(rng) for _ in range(60)]
    kinds, args, near, rules = ([each[x] for each in drawn] for x in range(4))
    numbers, at = flat(kinds)
    found = schema.structures(numbers, at, {"args": flat(args, 3), "near": flat(near, 2)}, rule_arrays(rules))
    assert len(found) == 60
    expected = [by_hand(schema, *each) for each in drawn]
    for shape, twin in zip(found, expected, strict=True):
        assert shape.compiled is twin.compiled  # the same arrays, known by their content
        assert shape.rules == twin.rules
        assert [(f.kind.name, f.scope) for f in shape.factors] == [(f.kind.name, f.scope) for f in twin.factors]
        assert (shape.n_variables, shape.n_labels, shape.n_factors) == (
            twin.n_variables,
            twin.n_labels,
            len(twin.factors),
        )
    costs = rng.normal(size=sum(shape.n_labels for shape in found))
    one, other = (Batch.build(shapes, np.arange(60), costs) for shapes in (found, expected))
    assert Certifier()(one).cost.tolist() == Certifier()(other).cost.tolist()


def test_one_shape_takes_kinds_by_name_and_goes_on_growing() -> None:
    schema = schema_of_relations()
    entity = schema.variables["entity"]
    rule = RuleArrays(np.array([0, 2]), np.array([0, 1]), np.array([0, 0]), high=1.0, name="few people")
    shape = schema.structure(["entity", "entity", "relation"], {"args": np.array([[0, 2, 1]], dtype=np.int32)}, rule)
    assert shape.rules[0].name == "few people"
    assert shape.rules[0].terms == ((0, "person", 1.0), (1, "person", 1.0))
    last = shape.add(entity)
    assert shape.connect(schema.factors["near"], left=0, right=last) == 1
    assert [factor.scope for factor in shape.factors] == [(0, 2, 1), (0, 3)]
    shape.search_order([3, 2, 1, 0])
    assert Certifier()(shape.problem(np.zeros(shape.n_labels))).proved
    kinds = schema.structure([entity, entity])
    assert (kinds.n_variables, kinds.n_factors) == (2, 0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"kinds": [0, 0, 7]},
            r"Variable 2 has kind number 7; the schema has 2 kinds of variables, from 0: entity, rel",
        ),
        ({"kinds": [0.5, 1, 1]}, "The kinds of variables are whole numbers"),
        ({"kinds": ["entity", "thing"]}, "no variable kind 'thing'"),
        ({"factors": {"other": [[0, 2, 1]]}}, "no factor kind 'other'. This schema has args, near"),
        ({"factors": {"args": [[0, 2]]}}, "2 columns; give one for each role: source, relation, target"),
        (
            {"factors": {"args": [[0, 2, 1], [0, 2, 3]]}},
            "Factor 1 of args, target: there is no variable 3. This shape has 3",
        ),
        ({"factors": {"args": [[-1, 2, 1]]}}, "Factor 0 of args, source: there is no variable -1"),
        ({"factors": {"args": [[0, 1, 1]]}}, "relation must be of kind relation, but variable 1 is of kind entity"),
        ({"factors": {"args": [[0, 2, 0]]}}, r"joins a variable with itself: \[0, 2, 0\]"),
        ({"factors": {"args": [0, 2, 1]}}, "The scopes of args are whole numbers, an array with 2 axes"),
        ({"rules": RuleArrays([0, 1], [5], [0], high=1.0)}, "Term 0 of the rules: there is no variable 5"),
        ({"rules": RuleArrays([0, 1], [2], [2], high=1.0)}, r"variable 2 \(relation\) has no label number 2; it has 2"),
        ({"rules": RuleArrays([0, 2], [2], [1], high=1.0)}, "first must rise from 0 to 1, the number of terms"),
        ({"rules": RuleArrays([0, 1], [2], [1, 1], high=1.0)}, "1 variable and 2 labels"),
        ({"rules": RuleArrays([0, 1], [2], [1])}, "which limits nothing"),
        ({"rules": RuleArrays([0, 1], [2], [1], low=2.0, high=1.0)}, "at least 2 and at most 1"),
        ({"rules": RuleArrays([0, 1], [2], [1], np.nan, high=1.0)}, "has the weight nan"),
        ({"rules": RuleArrays([0, 2], [2, 2], [1, 1], 9e9, high=1.0)}, "has the weight 1.8e.10, added up"),
        (
            {"rules": RuleArrays([0, 1], [2], [1], [1.0, 2.0], high=1.0)},
            "weights of rules are numbers: one, or one for",
        ),
        ({"rules": RuleArrays([0, 1], [2], [1], high=1.0, price=-1.0)}, "Rule 0 has the price -1"),
        ({"rules": RuleArrays([0, 1], [2], [1], 0.5, high=1.0, price=1.0)}, "need whole weights"),
    ],
)
def test_wrong_numbers_are_refused_by_name(change: dict[str, Any], words: str) -> None:
    given = {"kinds": [0, 0, 1], "factors": {"args": [[0, 2, 1]]}, "rules": None} | change
    with pytest.raises(SchemaError, match=words):
        schema_of_relations().structure(**given)


def test_of_several_shapes_the_wrong_one_is_named() -> None:
    schema, kinds = schema_of_relations(), np.zeros(5, dtype=int)
    at = np.array([0, 2, 5])
    with pytest.raises(SchemaError, match=r"Factor 1 of near, right \(shape 1\): there is no variable 3"):
        schema.structures(kinds, at, {"near": (np.array([[0, 1], [0, 3]]), np.array([0, 1, 2]))})
    with pytest.raises(SchemaError, match="variable_at must rise from 0 to 5, the number of variables"):
        schema.structures(kinds, np.array([0, 3, 2, 5]), {})
    with pytest.raises(SchemaError, match="The offsets of near are for 1 shapes; there are 2"):
        schema.structures(kinds, at, {"near": (np.array([[0, 1]]), np.array([0, 1]))})
    assert schema.structures(np.zeros(0, dtype=int), np.zeros(1, dtype=int), {}) == []

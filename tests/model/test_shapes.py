"""A structure may begin with variables and factors given together; wrong ones are refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hasten import Certifier, Schema
from hasten.errors import SchemaError


def schema_of_relations() -> Schema:
    schema = Schema()
    entity = schema.variable("entity", ["person", "place", "none"])
    relation = schema.variable("relation", ["LiveIn", "none"])
    args = schema.factor("args", source=entity, relation=relation, target=entity)
    args.allow(relation="LiveIn", source="person", target="place").allow(relation="none")
    schema.factor("near", left=entity, right=entity).cost(0.5, left="person", right="person")
    return schema


def test_variables_and_factors_given_together_are_those_added_one_by_one() -> None:
    schema = schema_of_relations()
    entity = schema.variables["entity"]
    shape = schema.structure(["entity", entity, "relation"], {"args": np.array([[0, 2, 1]], dtype=np.int32)})
    by_hand = schema.structure()
    source, target, relation = (by_hand.add(kind) for kind in shape.kinds)
    by_hand.connect(schema.factors["args"], source=source, relation=relation, target=target)
    assert shape.compiled is by_hand.compiled
    grown = schema.structure(["entity", "entity"], {schema.factors["near"]: []})
    assert grown.connect(schema.factors["near"], left=0, right=1) == 0
    assert Certifier()(grown.problem(np.zeros(grown.n_labels))).proved


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kinds": ["entity", "thing"]}, "'thing' is not a variable kind"),
        ({"kinds": [0]}, "0 is not a variable kind"),
        ({"factors": {"other": [[0, 2, 1]]}}, "no factor kind 'other'. This schema has args, near"),
        ({"factors": {"args": [[0, 2]]}}, "a column for each role: source, relation, target"),
        ({"factors": {"args": [[0, 2, 1], [0, 2, 3]]}}, "args: target: there is no variable 3"),
        ({"factors": {"args": [[-1, 2, 1]]}}, "args: source: there is no variable -1"),
        ({"factors": {"args": [[0, 1, 1]]}}, "relation must be of kind relation, but variable 1 is of kind entity"),
        ({"factors": {"args": [[0, 2, 0]]}}, r"joins a variable with itself: \[0, 2, 0\]"),
        ({"factors": {"args": [0, 2, 1]}}, "The scopes of args must be whole numbers, in an array with 2 axes"),
    ],
)
def test_wrong_variables_and_factors_are_refused_by_name(change: dict[str, Any], words: str) -> None:
    given = {"kinds": ["entity", "entity", "relation"], "factors": {"args": [[0, 2, 1]]}} | change
    with pytest.raises(SchemaError, match=words):
        schema_of_relations().structure(**given)

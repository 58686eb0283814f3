"""Validity in words."""

from __future__ import annotations

import math

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import entity_relation, small_problems

from hasten.model.problem import Check, Problem, Violation
from hasten.model.rules import Rule
from hasten.model.schema import Schema


def four_entities() -> Problem:
    """Entities 0 to 3, then a relation for each ordered pair; of those, variable 4 joins 0 and 1."""
    shape = entity_relation(4)
    return shape.problem(np.zeros(shape.n_labels))


def labelled(**changes: str) -> list[str]:
    """Returns four people without relations, but for some variables: `v3="organization"`."""
    labels = ["person"] * 4 + ["NoRel"] * 12
    for variable, label in changes.items():
        labels[int(variable[1:])] = label
    return labels


def relation(source: int, target: int) -> int:
    pairs = [(s, t) for s in range(4) for t in range(4) if s != t]
    return 4 + pairs.index((source, target))


def test_a_valid_labelling_has_nothing_to_say() -> None:
    found = four_entities().check(labelled())
    assert found.valid
    assert bool(found)
    assert found.violations == ()
    assert str(found) == "valid"


def test_the_label_that_asks_most_is_named() -> None:
    r = relation(3, 0)
    found = four_entities().check(labelled(v3="organization", v0="location", **{f"v{r}": "LiveIn"}))
    assert not found
    assert str(found) == "args: LiveIn needs source=person, got source=organization for variable 3"
    (broken,) = found.violations
    assert broken == Violation("args", (3, r, 0), ("organization", "LiveIn", "location"), str(broken))


def test_all_that_is_wrong_is_named() -> None:
    r = relation(3, 0)
    found = four_entities().check(labelled(v3="organization", **{f"v{r}": "LiveIn"}))
    assert str(found) == (
        "args: LiveIn needs source=person and target=location, "
        "got source=organization for variable 3 and target=person for variable 0"
    )


def test_a_kind_with_two_roles_is_told_apart_by_role() -> None:
    forth, back = relation(0, 1), relation(1, 0)
    found = four_entities().check(labelled(**{f"v{forth}": "Kill", f"v{back}": "Kill"}))
    assert str(found) == f"both: forward=Kill needs backward=NoRel, got backward=Kill for variable {back}"


def test_each_broken_constraint_has_its_line() -> None:
    forth, back = relation(0, 1), relation(1, 0)
    found = four_entities().check(labelled(**{f"v{forth}": "Kill", f"v{back}": "LiveIn"}))
    assert str(found).splitlines() == [
        f"both: forward=Kill needs backward=NoRel, got backward=LiveIn for variable {back}",
        "args: LiveIn needs target=location, got target=person for variable 0",
    ]


def test_several_labels_may_be_needed() -> None:
    schema = Schema()
    kind, other = schema.variable("kind", ["a", "b", "c"]), schema.variable("other", ["x", "y"])
    pair = schema.factor("pair", left=kind, right=other).forbid(left="c", right="x")
    shape = schema.structure()
    shape.connect(pair, left=shape.add(kind), right=shape.add(other))
    assert str(shape.problem(np.zeros(5)).check(["c", "x"])) == "pair: c needs right=y, got right=x for variable 1"
    schema = Schema()
    kind, other = schema.variable("kind", ["a", "b", "c"]), schema.variable("other", ["x", "y"])
    pair = schema.factor("pair", left=kind, right=other).allow(left=["a", "b"], right="x").allow(right="y")
    shape = schema.structure()
    shape.connect(pair, left=shape.add(kind), right=shape.add(other))
    assert not shape.problem(np.zeros(5)).check(["c", "x"])
    table = np.array([[0, math.inf], [0, math.inf], [math.inf, math.inf]])
    own = shape.problem(np.zeros(5), tables={0: table})
    assert str(own.check(["c", "x"])) == "pair: x needs left=a|b, got left=c for variable 0"
    assert str(own.check(["c", "y"])) == "pair: no allowed combination: left=c for variable 0, right=y for variable 1"


def test_combinations_that_are_only_jointly_wrong_are_listed() -> None:
    schema = Schema()
    bit = schema.variable("bit", ["0", "1"])
    parity = schema.factor("parity", a=bit, b=bit, c=bit)
    parity.allow(lambda a, b, c: (int(a) + int(b) + int(c)) % 2 == 0)
    shape = schema.structure()
    shape.connect(parity, a=shape.add(bit), b=shape.add(bit), c=shape.add(bit))
    assert str(shape.problem(np.zeros(6)).check(["1", "0", "0"])) == (
        "parity: no allowed combination: a=1 for variable 0, b=0 for variable 1, c=0 for variable 2"
    )


def test_a_forbidden_label_is_named() -> None:
    schema = Schema()
    shape_kind = schema.variable("pet", ["cat", "dog"])
    shape = schema.structure()
    shape.add(shape_kind)
    found = shape.problem([[0.0, math.inf]]).check(["dog"])
    assert str(found) == "pet: dog is forbidden (its cost is inf) for variable 0"
    assert found.violations[0].variables == (0,)
    lazy = shape.problem(lambda problems, variables: np.array([0.0, math.inf]))
    assert lazy.check(["dog"])  # asking for the cost would compute it


@pytest.mark.parametrize(
    ("limits", "labels", "message"),
    [
        (
            {"at_most": 1},
            ["cat", "cat", "dog"],
            "count: needs at most 1, got 2 (cat for variable 0, cat for variable 1)",
        ),
        ({"at_least": 2}, ["cat", "dog", "dog"], "count: needs at least 2, got 1 (cat for variable 0)"),
        ({"exactly": 1}, ["dog", "dog", "dog"], "count: needs exactly 1, got 0 (nothing counted)"),
        (
            {"at_least": 1, "at_most": 2},
            ["cat", "cat", "cat"],
            "count: needs at most 2, got 3 (cat for variable 0, cat for variable 1, cat for variable 2)",
        ),
        ({"at_least": 1, "at_most": 2}, ["dog"] * 3, "count: needs at least 1, got 0 (nothing counted)"),
    ],
)
def test_broken_rules_count_what_they_counted(limits: dict[str, float], labels: list[str], message: str) -> None:
    schema = Schema()
    pet = schema.variable("pet", ["cat", "dog"])
    schema.rule("count", pet="cat", **limits)
    shape = schema.structure()
    for _ in range(3):
        shape.add(pet)
    found = shape.problem(np.zeros(6)).check(labels)
    assert str(found) == message
    assert found.violations[0].constraint == "count"
    # The same, said by a rule of the structure, and by one of the problem.
    plain = Schema()
    pet = plain.variable("pet", ["cat", "dog"])
    terms = [(v, "cat") for v in range(3)]
    inner, outer = plain.structure(), plain.structure()
    for _ in range(3):
        inner.add(pet), outer.add(pet)
    inner.rule("count", terms, **limits)
    assert str(inner.problem(np.zeros(6)).check(labels)) == message
    assert str(outer.problem(np.zeros(6), rules=[Rule.of("count", terms, **limits)]).check(labels)) == message


def test_weights_that_add_up_within_the_tolerance_hold() -> None:
    schema = Schema()
    kind = schema.variable("kind", ["a", "b"])
    shape = schema.structure()
    for _ in range(3):
        shape.add(kind)
    shape.rule("tenths", [(v, "a", 0.1) for v in range(3)], exactly=0.3)
    problem = shape.problem(np.zeros(6))
    assert problem.check(["a", "a", "a"])  # 0.1 + 0.1 + 0.1 is not 0.3
    assert not problem.check(["a", "a", "b"])


@given(small_problems(), st.integers(0, 999))
def test_a_violation_names_each_constraint_that_is_broken(problem: Problem, seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = tuple(int(rng.integers(len(kind))) for kind in problem.structure.kinds)
    found = problem.check(labels)
    assert isinstance(found, Check)
    broken = sum(problem.costs_of(v)[i] == math.inf for v, i in enumerate(labels))
    broken += sum(table[tuple(labels[v] for v in scope)] == math.inf for scope, table in naive.tables_of(problem))
    broken += sum(not naive.holds(row, labels) for row in naive.rows_of(problem))
    assert len(found.violations) == broken
    for violation in found.violations:
        assert str(violation).startswith(violation.constraint)
        names = [problem.structure.kinds[v].labels[labels[v]] for v in violation.variables]
        assert list(violation.labels) == names

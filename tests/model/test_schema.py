"""What can be declared, what is refused, and that the order of declarations does not matter."""

from __future__ import annotations

import doctest
import importlib
import math
import pkgutil
from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hasten
from hasten.errors import HastenError, MissingExtra, SchemaError
from hasten.model.kinds import FactorKind, VariableKind
from hasten.model.schema import Schema

INF = math.inf
MODULES = [module.name for module in pkgutil.walk_packages(hasten.__path__, "hasten.")]


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("__main__")])
def test_the_examples_in_the_docstrings_work(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except MissingExtra as error:
        pytest.skip(str(error))
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        pytest.skip(str(error))
    assert doctest.testmod(module).failed == 0


def test_there_are_examples_in_the_docstrings() -> None:
    assert doctest.testmod(importlib.import_module("hasten.model.schema")).attempted >= 6


def pets() -> tuple[Schema, VariableKind]:
    schema = Schema()
    return schema, schema.variable("pet", ["cat", "dog", "fish"])


def pair_of_pets() -> FactorKind:
    schema, pet = pets()
    return schema.factor("pair", left=pet, right=pet)


# Tables


def test_a_fresh_factor_restricts_nothing() -> None:
    assert pair_of_pets().table is None
    assert pair_of_pets().allow().table is None
    assert pair_of_pets().cost(0.0).table is None


def test_the_first_allow_forbids_the_rest() -> None:
    pair = pair_of_pets().allow(left="cat", right="dog")
    assert np.argwhere(pair.table == 0).tolist() == [[0, 1]]
    pair.allow(left="dog")
    assert np.argwhere(pair.table == 0).tolist() == [[0, 1], [1, 0], [1, 1], [1, 2]]


def test_forbid_wins_over_allow_and_cost() -> None:
    pair = pair_of_pets().allow(left="cat").forbid(right="dog").cost(2, left="cat").cost(1, right="fish")
    expected = np.full((3, 3), INF)
    expected[0] = [2, INF, 3]
    assert np.array_equal(pair.table, expected)


def test_declarations_may_come_in_any_order() -> None:
    steps: list[Callable[[FactorKind], FactorKind]] = [
        lambda pair: pair.allow(left="cat"),
        lambda pair: pair.allow(right=["dog", "fish"]),
        lambda pair: pair.forbid(left="cat", right="dog"),
        lambda pair: pair.cost(2, left="cat"),
        lambda pair: pair.cost(-1, lambda left, right: left == right),
    ]
    tables = []
    for order in permutations(steps):
        pair = pair_of_pets()
        for step in order:
            step(pair)
        tables.append(pair.table)
    assert all(np.array_equal(table, tables[0]) for table in tables)
    assert tables[0][0].tolist() == [1, INF, 2]


def test_patterns_name_one_label_several_or_any() -> None:
    one = pair_of_pets().forbid(left="cat").table
    assert np.isposinf(one).sum() == 3
    for several in (["cat", "dog"], ("cat", "dog"), {"cat", "dog"}):
        assert np.isposinf(pair_of_pets().forbid(left=several).table).sum() == 6
    assert np.isposinf(pair_of_pets().forbid().table).all()
    assert pair_of_pets().forbid(left=[]).table is None


def test_to_allow_nothing_is_refused() -> None:
    for pair, arguments, pattern in (
        (pair_of_pets(), (), {"left": []}),
        (pair_of_pets().allow(left="cat"), (), {"left": "cat", "right": ()}),
        (pair_of_pets(), (lambda left, right: False,), {}),
    ):
        before = pair.table
        with pytest.raises(SchemaError, match="pair: no tuple matches"):
            pair.allow(*arguments, **pattern)
        assert np.array_equal(pair.table, before)


def test_a_predicate_is_asked_for_the_tuples_that_the_pattern_leaves() -> None:
    asked = []

    def same(left: str, right: str) -> bool:
        asked.append((left, right))
        return left == right

    table = pair_of_pets().forbid(same, left=["cat", "dog"]).table
    assert asked == [(left, right) for left in ("cat", "dog") for right in ("cat", "dog", "fish")]
    assert np.argwhere(np.isposinf(table)).tolist() == [[0, 0], [1, 1]]
    with refused("pair: the function's arguments must be named as the roles are: left, right"):
        pair_of_pets().forbid(lambda a, b: a == b)
    with pytest.raises(ZeroDivisionError):  # its own errors stay
        pair_of_pets().forbid(lambda **labels: 1 // 0)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(-3, 3)), max_size=8))
def test_costs_add_up(costs: list[tuple[int, int, int]]) -> None:
    pair, expected = pair_of_pets(), np.zeros((3, 3))
    labels = list(pair.roles["left"].labels)
    for left, right, value in costs:
        pair.cost(value, left=labels[left], right=labels[right])
        expected[left, right] += value
    assert np.array_equal(np.zeros((3, 3)) if pair.table is None else pair.table, expected)


def test_a_whole_table_can_be_given() -> None:
    given_table = np.arange(9.0).reshape(3, 3)
    given_table[1, 1] = INF
    pair = pair_of_pets().allow(left="cat").set_table(given_table)
    assert np.array_equal(pair.table, given_table)
    assert np.isposinf(pair.forbid(left="fish").table[2]).all()
    given_table[0, 0] = 99
    assert pair.table[0, 0] == 0


def test_tuples_come_in_table_order() -> None:
    names = list(pair_of_pets().tuples())
    assert len(names) == 9
    assert names[:4] == [("cat", "cat"), ("cat", "dog"), ("cat", "fish"), ("dog", "cat")]


# Refusals


def refused(message: str) -> pytest.RaisesExc[SchemaError]:
    return pytest.raises(SchemaError, match=message)


def test_the_errors_have_one_root() -> None:
    assert issubclass(SchemaError, HastenError)


def test_kinds_need_names_and_labels() -> None:
    schema, pet = pets()
    for name in ("", None, 3):
        with refused("A kind needs a name"):
            schema.variable(name, ["a"])  # type: ignore[arg-type]
    with refused("There is a kind 'pet' already"):
        schema.variable("pet", ["a"])
    with refused("There is a kind 'pet' already"):
        schema.factor("pet", one=pet)
    schema.factor("pair", one=pet)
    with refused("There is a kind 'pair' already"):
        schema.variable("pair", ["a"])
    with refused("wolf has no labels"):
        schema.variable("wolf", [])
    with refused("wolf names a label twice: grey"):
        schema.variable("wolf", ["grey", "white", "grey"])
    with refused("must be a list, got 'grey'"):
        schema.variable("wolf", "grey")
    with refused("wolf: a label is a name, got 3"):
        schema.variable("wolf", ["grey", 3])  # type: ignore[list-item]
    assert list(schema.variables) == ["pet"]


def test_a_kind_has_only_as_many_labels_as_a_beam_can_number() -> None:
    names = [str(i) for i in range(2**15 + 1)]
    assert len(Schema().variable("word", names[:-1])) == 2**15
    with refused("word has 32,769 labels; the limit is 32,768"):
        Schema().variable("word", names)


def test_factors_need_roles_of_this_schema() -> None:
    schema, pet = pets()
    with refused("pair has no roles"):
        schema.factor("pair")
    with refused("role 'one' is not a variable kind of this schema"):
        schema.factor("pair", one="pet")  # type: ignore[arg-type]
    with refused("role 'one' is not a variable kind of this schema"):
        schema.factor("pair", one=pets()[1])
    assert schema.factors == {}
    assert schema.n_weights == 0
    big = schema.variable("big", [str(i) for i in range(1001)])
    with refused("1,002,001 label tuples; the limit is 1,000,000"):
        schema.factor("pair", left=big, right=big)
    assert schema.factor("one", one=pet).size == 3


def test_only_learned_factors_have_weights() -> None:
    schema, pet = pets()
    first = schema.factor("first", one=pet, two=pet)
    second = schema.factor("second", learned=False, one=pet)
    third = schema.factor("third", one=pet)
    assert (first.weight_at, second.weight_at, third.weight_at, schema.n_weights) == (0, -1, 9, 12)


def test_patterns_must_name_roles_and_labels_that_exist() -> None:
    pair = pair_of_pets()
    for change in (pair.allow, pair.forbid, lambda **pattern: pair.cost(1, **pattern)):
        with refused("pair has no role 'middle'. Its roles are left, right"):
            change(middle="cat")
        with refused("pet has no label 'wolf'. Its labels are cat, dog, fish"):
            change(left="wolf")
        with refused("pet has no label 'wolf'"):
            change(left=["cat", "wolf"])
    assert pair.table is None


@pytest.mark.parametrize("value", [INF, -INF, math.nan, 10**400])
def test_the_cost_of_a_tuple_is_finite(value: float) -> None:
    with refused("pair: a cost must be a finite number"):
        pair_of_pets().cost(value)


def test_numbers_are_not_strings() -> None:
    schema, _ = pets()
    pair = pair_of_pets()
    with refused("pair: a cost must be a finite number, got '3'"):
        pair.cost("3", left="cat")  # type: ignore[arg-type]
    with refused("Rule 'few': at_most must be a finite number, got '2'"):
        schema.rule("few", at_most="2", pet="cat")  # type: ignore[arg-type]
    with refused("the weight of 'cat' must be a finite number, got 'two'"):
        schema.rule("few", at_most=2, pet={"cat": "two"})  # type: ignore[dict-item]
    with refused("pair: a table holds costs, which are numbers"):
        pair.set_table([["a", "b"], ["c", "d"]])  # type: ignore[arg-type]
    assert schema.rules == {}


def test_labels_are_given_by_name() -> None:
    schema, _ = pets()
    with refused("Rule 'few': pet: labels must be a list, got 3"):
        schema.rule("few", at_most=1, pet=3)  # type: ignore[arg-type]
    with refused("pair: left: labels must be a list, got 3"):
        pair_of_pets().allow(left=3)  # type: ignore[arg-type]


def test_a_table_must_fit_its_roles() -> None:
    with refused(r"pair needs a table of shape \(3, 3\), an axis per role \(left, right\), got \(9,\)"):
        pair_of_pets().set_table(np.zeros(9))
    for value in (math.nan, -INF):
        with refused("got nan or -inf"):
            pair_of_pets().set_table(np.full((3, 3), value))


def test_rules_need_limits_and_something_to_count() -> None:
    schema, _ = pets()
    with refused("Rule 'few' limits nothing"):
        schema.rule("few", pet="cat")
    with refused("Rule 'few' counts nothing"):
        schema.rule("few", at_most=1)
    with refused("asks for at least 3 and at most 2"):
        schema.rule("few", at_least=3, at_most=2, pet="cat")
    with refused("give exactly, or at_most and at_least, not both"):
        schema.rule("few", exactly=1, at_most=2, pet="cat")
    with refused("there is no variable kind 'wolf'. There are pet"):
        schema.rule("few", at_most=1, wolf="grey")
    with refused("pet has no label 'wolf'"):
        schema.rule("few", at_most=1, pet=["cat", "wolf"])
    with refused("at_most must be a finite number, got nan"):
        schema.rule("few", at_most=math.nan, pet="cat")
    with refused("at_least must be a finite number, got -inf"):
        schema.rule("few", at_least=-INF, pet="cat")
    with refused("the weight of 'cat' must be a finite number"):
        schema.rule("few", at_most=1, pet={"cat": INF})
    assert schema.rules == {}
    rule = schema.rule("few", at_most=1, pet={"cat": 2, "dog": -1})
    assert (rule.low, rule.high, rule.weights[0].tolist()) == (-INF, 1.0, [2.0, -1.0, 0.0])
    with refused("There is a rule 'few' already"):
        schema.rule("few", at_most=1, pet="cat")
    equal = schema.rule("two", exactly=2, pet=["cat", "dog"])
    assert (equal.low, equal.high) == (2.0, 2.0)


def test_the_first_structure_closes_a_schema() -> None:
    schema, pet = pets()
    pair = schema.factor("pair", left=pet, right=pet)
    schema.structure()
    for change in (
        lambda: schema.variable("wolf", ["grey"]),
        lambda: schema.factor("other", one=pet),
        lambda: schema.rule("few", at_most=1, pet="cat"),
        lambda: pair.allow(left="cat"),
        lambda: pair.forbid(left="cat"),
        lambda: pair.cost(1, left="cat"),
        lambda: pair.set_table(np.zeros((3, 3))),
    ):
        with refused("This schema is in use"):
            change()
    schema.structure()


# The fingerprint


def declare(change: Callable[[Schema, VariableKind, FactorKind], object] | None = None) -> str:
    schema, pet = pets()
    pair = schema.factor("pair", left=pet, right=pet)
    if change is not None:
        change(schema, pet, pair)
    return schema.digest


def test_the_digest_changes_with_any_declaration() -> None:
    digests = [
        declare(),
        declare(lambda schema, pet, pair: schema.variable("wolf", ["grey"])),
        declare(lambda schema, pet, pair: schema.variable("wolf", ["white"])),
        declare(lambda schema, pet, pair: schema.variable("wolf", ["grey", "white"])),
        declare(lambda schema, pet, pair: schema.variable("wolf", ["white", "grey"])),
        declare(lambda schema, pet, pair: schema.factor("other", left=pet, right=pet)),
        declare(lambda schema, pet, pair: schema.factor("other", right=pet, left=pet)),
        declare(lambda schema, pet, pair: schema.factor("other", learned=False, left=pet, right=pet)),
        declare(lambda schema, pet, pair: schema.factor("other", left=pet, right=pet).forbid(left="cat")),
        declare(lambda schema, pet, pair: pair.allow(left="cat")),
        declare(lambda schema, pet, pair: pair.forbid(left="cat")),
        declare(lambda schema, pet, pair: pair.cost(1, left="cat")),
        declare(lambda schema, pet, pair: pair.cost(2, left="cat")),
        declare(lambda schema, pet, pair: schema.rule("few", at_most=1, pet="cat")),
        declare(lambda schema, pet, pair: schema.rule("few", at_most=2, pet="cat")),
        declare(lambda schema, pet, pair: schema.rule("few", at_least=1, pet="cat")),
        declare(lambda schema, pet, pair: schema.rule("few", at_most=1, pet="dog")),
        declare(lambda schema, pet, pair: schema.rule("few", at_most=1, pet={"cat": 2})),
        declare(lambda schema, pet, pair: schema.rule("none", at_most=1, pet="cat")),
    ]
    assert len(set(digests)) == len(digests)


def test_the_same_declarations_have_the_same_digest() -> None:
    assert declare() == declare()
    one = declare(lambda schema, pet, pair: pair.allow(left="cat").forbid(right="dog"))
    assert one == declare(lambda schema, pet, pair: pair.forbid(right="dog").allow(left="cat"))
    schema, _ = pets()
    before = schema.digest
    schema.structure()
    assert schema.digest == before


def test_kinds_are_readable() -> None:
    schema, pet = pets()
    pair = schema.factor("pair", left=pet, right=pet)
    assert repr(pet) == "VariableKind('pet', ['cat', 'dog', 'fish'])"
    assert repr(pair) == "FactorKind('pair', left=pet, right=pet)"
    assert repr(schema) == "Schema(variables=['pet'], factors=['pair'], rules=[])"
    assert pet.label("fish") == 2
    with refused("pet has no label 'wolf'"):
        pet.label("wolf")


def test_a_weight_that_rounding_would_swallow_is_an_error() -> None:
    schema = Schema()
    schema.variable("size", ["small", "large"])
    with pytest.raises(
        SchemaError, match=r"Rule 'budget': the weights of 'large' add up to 1e\+16.*Scale the rule down"
    ):
        schema.rule("budget", at_most=3, size={"large": 1e16})


def test_a_factor_of_too_many_roles_is_refused() -> None:
    schema = Schema()
    one = schema.variable("one", ["o"])
    schema.factor("enough", **{f"role{i}": one for i in range(32)})
    with pytest.raises(SchemaError, match="many has 33 roles; the limit is 32"):
        schema.factor("many", **{f"role{i}": one for i in range(33)})


@pytest.mark.parametrize("costs", [(1e308, 1e308), (-1e308, -1e308), (1e308, 1e308, -1e308)])
def test_costs_whose_sum_is_not_finite_are_refused(costs):
    schema = Schema()
    pet = schema.variable("pet", ["cat", "dog"])
    pair = schema.factor("pair", left=pet, right=pet)
    pair.cost(costs[0], left="cat")
    with pytest.raises(SchemaError, match=r"pair: with -?1e\+308 more, the cost of a tuple is no longer finite"):
        pair.cost(costs[1])
    assert pair.table[0, 0] == costs[0]  # as it was
    assert pair.table[1, 1] == 0

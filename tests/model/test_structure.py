"""Structures: what they connect, what they refuse, and that equal shapes share what is compiled."""

from __future__ import annotations

import math
from itertools import permutations

import naive
import numpy as np
import pytest
from hypothesis import given
from strategies import entity_relation, small_problems

from hasten.errors import SchemaError
from hasten.kernels.layout import Graph
from hasten.model.kinds import FactorKind, VariableKind
from hasten.model.problem import Problem
from hasten.model.rules import Rule
from hasten.model.schema import Schema
from hasten.model.structure import Structure
from hasten.search.beam import BeamSearch


class Pets:
    """Two kinds of variables and two of factors."""

    def __init__(self) -> None:
        self.schema = Schema()
        self.pet: VariableKind = self.schema.variable("pet", ["cat", "dog"])
        self.home: VariableKind = self.schema.variable("home", ["house", "flat", "farm"])
        self.lives: FactorKind = self.schema.factor("lives", who=self.pet, where=self.home)
        self.lives.forbid(who="dog", where="flat")
        self.friends: FactorKind = self.schema.factor("friends", one=self.pet, other=self.pet)

    def structure(self) -> Structure:
        """Two pets in one home."""
        shape = self.schema.structure()
        one, other, home = shape.add(self.pet), shape.add(self.pet), shape.add(self.home)
        shape.connect(self.lives, who=one, where=home)
        shape.connect(self.friends, one=one, other=other)
        return shape


def refused(message: str) -> pytest.RaisesExc[SchemaError]:
    return pytest.raises(SchemaError, match=message)


def test_variables_and_factors_are_numbered_as_they_come() -> None:
    pets = Pets()
    shape = pets.schema.structure()
    assert [shape.add(pets.pet), shape.add(pets.home)] == [0, 1]
    assert shape.connect(pets.lives, where=1, who=0) == 0
    assert shape.connect(pets.lives, who=np.int64(0), where=np.int64(1)) == 1
    assert shape.factors[0] == shape.factors[1]
    assert shape.factors[0].scope == (0, 1)
    assert shape.rule("one", [(0, "cat")], at_most=1) == 0
    assert (shape.n_variables, shape.n_labels) == (2, 5)
    assert repr(shape) == "Structure(2 variables, 2 factors, 1 rule)"


def test_only_what_the_schema_declares_can_be_added() -> None:
    pets, others = Pets(), Pets()
    shape = pets.schema.structure()
    for kind in (others.pet, "pet", pets.lives):
        with refused("is not a variable kind of this schema"):
            shape.add(kind)
    shape.add(pets.pet)
    shape.add(pets.home)
    for factor in (others.lives, "lives", pets.pet):
        with refused(r"is not a factor kind of this schema\. Give the object that schema\.factor returned"):
            shape.connect(factor, who=0, where=1)


def test_a_factor_needs_all_its_roles_and_no_others() -> None:
    pets = Pets()
    shape = pets.structure()
    with refused("lives needs the roles who, where, got who"):
        shape.connect(pets.lives, who=0)
    with refused("lives needs the roles who, where, got none"):
        shape.connect(pets.lives)
    with refused("lives needs the roles who, where, got who, where, why"):
        shape.connect(pets.lives, who=0, where=2, why=1)


def test_a_factor_needs_variables_of_the_right_kind() -> None:
    pets = Pets()
    shape = pets.structure()
    with refused("lives: who must be of kind pet, but variable 2 is of kind home"):
        shape.connect(pets.lives, who=2, where=0)
    with refused("friends joins a variable with itself"):
        shape.connect(pets.friends, one=1, other=1)
    for missing in (3, -1, "0", 0.0, None):
        with refused("lives: where: there is no variable"):
            shape.connect(pets.lives, who=0, where=missing)
    assert len(shape.factors) == 2


def test_rules_name_variables_and_labels_that_exist() -> None:
    pets = Pets()
    shape = pets.structure()
    with refused("Rule 'few' limits nothing"):
        shape.rule("few", [(0, "cat")])
    with refused("Rule 'few' counts nothing"):
        shape.rule("few", [], at_most=1)
    with refused("asks for at least 2 and at most 1"):
        shape.rule("few", [(0, "cat")], at_least=2, at_most=1)
    with refused("Rule 'few': there is no variable 3"):
        shape.rule("few", [(3, "cat")], at_most=1)
    with refused("pet has no label 'house'"):
        shape.rule("few", [(0, "house")], at_most=1)
    with refused("the weight of 'cat' must be a finite number, got nan"):
        shape.rule("few", [(0, "cat", math.nan)], at_most=1)
    for variable in (-1, 0.0, "0", None):
        for term in ((variable, "cat"), (variable, "cat", 2.0)):
            with refused(f"Rule 'few': there is no variable {variable!r}"):
                shape.rule("few", [(0, "cat"), term], at_most=1)
    for term in (1, "cat", (0,), (0, "cat", 1.0, 2), {0, "cat"}, {0: "cat", "cat": 0}):
        with refused("Rule 'few': a term is"):
            shape.rule("few", [term], at_most=1)
    with refused("Rule 'few': the terms must be a list, got 3"):
        shape.rule("few", 3, at_most=1)
    # What was refused leaves no trace.
    assert shape.rules == ()
    assert len(shape.graph.row_low) == 0


def test_a_problem_s_own_rules_are_checked_too() -> None:
    shape = Pets().structure()
    with refused("pet has no label 'house'"):
        shape.problem(np.zeros(7), rules=[Rule.of("few", [(0, "house")], at_most=1)])
    with refused(r"number 0 is 1. Make one: Rule.of"):
        shape.problem(np.zeros(7), rules=[1])
    with refused("The rules of a problem must be a list, got an object of type Rule"):
        shape.problem(np.zeros(7), rules=Rule.of("few", [(0, "cat")], at_most=0))
    assert shape.problem(np.zeros(7), rules=[Rule.of("few", [(0, "cat")], at_most=0)]).check([0, 0, 0]).violations


def test_terms_of_one_label_add_up() -> None:
    shape = Pets().structure()
    shape.rule("sum", [(0, "cat"), (0, "cat", 2), (1, "dog", 0.5), (2, "farm", 1), (2, "farm", -1)], at_most=9)
    assert shape.graph.row_weight.tolist() == [3.0, 0.5]  # what adds up to nothing is not a cell
    assert shape.graph.row_label.tolist() == [0, 3]


def test_the_first_problem_closes_a_structure() -> None:
    pets = Pets()
    shape = pets.structure()
    shape.problem(np.zeros(7))
    for change in (
        lambda: shape.add(pets.pet),
        lambda: shape.connect(pets.lives, who=0, where=2),
        lambda: shape.rule("few", [(0, "cat")], at_most=1),
        lambda: shape.search_order([0, 1, 2]),
    ):
        with refused("This structure is in use"):
            change()


def test_a_search_order_names_each_variable_once() -> None:
    for wrong in ([0, 1], [0, 1, 1], [0, 1, 3], [0, 1, 2, 2], []):
        with refused("names each of the 3 variables once"):
            Pets().structure().search_order(wrong)
    shape = Pets().structure()
    shape.search_order([2, 0, 1])
    assert shape.graph.order.tolist() == [2, 0, 1]
    pets = Pets()
    late = pets.structure()
    late.search_order([2, 0, 1])
    late.add(pets.pet)
    with refused("Variables were added after search_order"):
        late.problem(np.zeros(9))


def test_the_search_follows_its_order() -> None:
    # The dog decides before the flat does, or after it.
    pets = Pets()
    costs = [[5.0, 0.0], [0.0, 0.0], [1.0, 0.0, 9.0]]
    assert BeamSearch()(pets.structure().problem(costs)).names == ["dog", "cat", "house"]
    other = pets.structure()
    other.search_order([2, 0, 1])
    assert BeamSearch()(other.problem(costs)).names == ["cat", "cat", "flat"]


# Sharing


def test_equal_shapes_share_what_is_compiled() -> None:
    pets = Pets()
    one, other = pets.structure(), pets.structure()
    assert one.compiled is other.compiled
    assert entity_relation(3).compiled is not entity_relation(3).compiled  # two schemas


def test_shapes_are_equal_however_their_rules_were_added() -> None:
    pets = Pets()
    one, other = pets.structure(), pets.structure()
    for shape in (one, other):
        shape.rule("few", [(0, "cat"), (1, "cat", 1)], at_most=1)
    one.rule("more", [(0, "cat", 2), (1, "dog")], at_least=1)
    added = other.with_rules([Rule.of("more", [(0, "cat", 2), (1, "dog")], at_least=1)])
    assert added.compiled is one.compiled


def test_different_shapes_share_nothing() -> None:
    pets = Pets()
    shapes = [pets.structure() for _ in range(6)]
    shapes[1].add(pets.pet)
    shapes[2].connect(pets.friends, one=1, other=0)
    shapes[3].rule("few", [(0, "cat")], at_most=1)
    shapes[4].rule("few", [(0, "cat")], at_most=2)
    shapes[5].search_order([2, 1, 0])
    compiled = {id(shape.compiled) for shape in shapes}
    assert len(compiled) == len(shapes)


def test_own_tables_and_rules_are_shared_by_shape_as_well() -> None:
    shape = Pets().structure()
    rule = Rule.of("few", [(0, "cat")], at_most=1)
    one = shape.problem(np.zeros(7), tables={1: np.eye(2)}, rules=[rule])
    other = shape.problem(np.zeros(7), tables={1: np.ones((2, 2))}, rules=[rule])
    assert one.structure.compiled is other.structure.compiled
    assert one.structure.compiled is not shape.compiled
    assert one.total([0, 0, 0]) == 1.0
    assert one.total([0, 1, 0]) == 0.0
    assert other.total([0, 1, 0]) == 1.0


# The arrays


def test_a_small_graph_is_as_expected() -> None:
    graph = Pets().structure().graph
    assert graph.first.tolist() == [0, 2, 4, 7]
    assert graph.order.tolist() == [0, 1, 2]
    assert graph.scope.tolist() == [0, 2, 0, 1]
    assert graph.stride.tolist() == [3, 1, 2, 1]
    assert graph.table_at.tolist() == [0, -1]
    assert graph.done_first.tolist() == [0, 0, 1, 2]
    assert graph.done.tolist() == [1, 0]
    assert graph.last.tolist() == [2, 1]
    assert graph.list_entry.tolist() == [0, 1, 2, 3, 5]
    assert graph.table.tolist() == [0, 0, 0, 0, math.inf, 0]


@given(small_problems())
def test_a_graph_is_found_at_its_address(problem: Problem) -> None:
    for graph in (problem.graph, entity_relation(2).graph, Schema().structure().graph):
        seen = Graph.at(graph.address)
        for name in Graph._fields:
            assert np.array_equal(getattr(seen, name), getattr(graph, name)), name


@given(small_problems())
def test_every_table_lists_the_tuples_that_are_not_forbidden(problem: Problem) -> None:
    graph = problem.graph
    for f, factor in enumerate(problem.structure.factors):
        if graph.table_at[f] < 0:
            assert factor.kind.table is None
            continue
        t = graph.listing[f]
        entries = graph.list_entry[graph.list_first[t] : graph.list_first[t + 1]]
        own = f in problem.structure._slots.factors
        allowed = np.ones(factor.kind.size, bool) if own else ~np.isposinf(factor.kind.table.ravel())
        assert entries.tolist() == np.flatnonzero(allowed).tolist()


@given(small_problems())
def test_rows_say_what_their_rules_say(problem: Problem) -> None:
    graph = problem.graph
    assert len(graph.row_low) == len(naive.rows_of(problem)) == len(problem.structure.compiled.row_names)
    for r, (weights, low, high) in enumerate(naive.rows_of(problem)):
        cells = slice(graph.row_first[r], graph.row_first[r + 1])
        variables = graph.row_variable[cells].tolist()
        labels = (graph.row_label[cells] - graph.first[graph.row_variable[cells]]).tolist()
        mine = dict(zip(zip(variables, labels, strict=True), graph.row_weight[cells].tolist(), strict=True))
        assert mine == {key: weight for key, weight in weights.items() if weight}
        assert (graph.row_low[r], graph.row_high[r]) == (low, high)


def test_terms_of_one_label_cannot_add_up_to_more_than_a_weight_may_be() -> None:
    shape = Pets().structure()
    with refused(r"Rule 'sum': the weights of 'cat' add up to 1\.2e\+10; beyond 1e\+10 .* Scale the rule"):
        shape.rule("sum", [(1, "dog"), (0, "cat", 6e9), (0, "cat", 6e9)], at_most=9)
    with refused("add up to -2e"):
        Rule("sum", ((1, "cat", -1e10), (1, "cat", -1e10)), 0.0, 1.0)
    with refused("the weight of 'cat' must be a finite number, got nan"):
        Rule("sum", ((1, "cat", math.nan),), 0.0, 1.0)
    shape.rule("enough", [(0, "cat", 1e10), (1, "cat", 1e10), (0, "dog", 6e9), (0, "dog", -6e9)], at_most=1e10)
    assert shape.graph.row_weight.tolist() == [1e10, 1e10]


def test_terms_are_read_alike_wherever_their_weights_stand() -> None:
    terms = [(0, "cat"), (1, "dog"), (0, "dog", 2), (1, "cat", 1.0), (2, "farm", -0.5)]
    for order in permutations(terms):
        shape = Pets().structure()
        shape.rule("before", [(1, "cat", 3)], at_most=3)
        shape.rule("mixed", list(order), at_most=2)
        assert shape.rules[1] == Rule.of("mixed", order, at_most=2)


def test_rules_come_back_as_they_were_stated() -> None:
    pets = Pets()
    shape = pets.structure()
    stated = [
        Rule.of("pairs", [(0, "cat"), (1, "cat")], at_most=1),
        Rule.of("weighted", [(1, "cat", -2), (0, "cat"), (1, "cat", 0.5)], at_least=-1, at_most=3),
    ]
    shape.rule("pairs", [(0, "cat"), (1, "cat")], at_most=1)
    shape.rule("weighted", ([1, "cat", -2], (0, "cat"), (1, "cat", 0.5)), at_least=-1, at_most=3)
    assert shape.rules == tuple(stated)
    assert shape.n_rules == 2
    with refused("Rule 'odd': the weight of 'cat' must be a finite number"):
        shape.rule("odd", [(0, "cat", 1j)], at_most=1)
    with refused("Rule 'odd': the weight of 'cat' must be a finite number"):
        shape.rule("odd", [(0, "cat", "1")], at_most=1)
    with refused("Rule 'odd': the weight of 'cat' must be a finite number"):
        shape.rule("odd", [(0, "cat", 10**400)], at_most=1)

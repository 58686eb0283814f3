"""Problems and batches: costs in every form, what does not fit, and that a batch is its problems."""

from __future__ import annotations

import math
from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import entity_relation, random_problem, small_problems

from hasten.errors import ProblemError, SchemaError
from hasten.model.batch import Batch, as_batch
from hasten.model.problem import Problem
from hasten.model.rules import Rule
from hasten.model.schema import Schema
from hasten.model.structure import Structure
from hasten.search.beam import BeamSearch, ConstrainedSearch

INF = math.inf


def two_pets() -> Structure:
    """A pet with two labels and a home with three; no dogs in flats."""
    schema = Schema()
    pet = schema.variable("pet", ["cat", "dog"])
    home = schema.variable("home", ["house", "flat", "farm"])
    lives = schema.factor("lives", who=pet, where=home).forbid(who="dog", where="flat").cost(1, who="cat")
    shape = schema.structure()
    shape.connect(lives, who=shape.add(pet), where=shape.add(home))
    return shape


def refused(message: str) -> pytest.RaisesExc[ProblemError]:
    return pytest.raises(ProblemError, match=message)


# Costs


def test_costs_come_in_many_forms() -> None:
    shape = two_pets()
    flat = np.arange(5.0)
    forms: list[Any] = [
        flat,
        flat.astype(np.float32),
        flat.astype(int),
        [[0, 1], [2, 3, 4]],
        [0, 1.0, np.float32(2), 3, 4],
        (0, 1, 2, 3, 4),
        [flat[:2], flat[2:]],
        ((0.0, 1.0), (2.0, 3.0, 4.0)),
        lambda problems, variables: np.concatenate([(flat[:2], flat[2:])[v] for v in variables]),
    ]
    for costs in forms:
        problem = shape.problem(costs)
        assert problem.cost.tolist() == [0, 1, 2, 3, 4]
        assert problem.costs_of(1).tolist() == [2, 3, 4]
    matrix = Schema()
    kind = matrix.variable("kind", ["a", "b"])
    square = matrix.structure()
    square.add(kind), square.add(kind)
    assert square.problem(np.array([[1, 2], [3, 4]])).cost.tolist() == [1, 2, 3, 4]


def test_a_problem_keeps_its_own_costs() -> None:
    given_costs = np.arange(5.0)
    problem = two_pets().problem(given_costs)
    given_costs[:] = 9
    assert problem.cost.tolist() == [0, 1, 2, 3, 4]


def test_costs_of_the_wrong_size_are_refused() -> None:
    shape = two_pets()
    with refused("Got 4 costs for 5 labels. Give one cost per label"):
        shape.problem(np.zeros(4))
    with refused("Got 6 costs for 5 labels. Give one cost per label"):
        shape.problem([0.0] * 6)
    with refused("Got costs for 1 variable; the structure has 2"):
        shape.problem(np.zeros((1, 5)))
    with refused(r"Variable 1 \(home\) got costs of shape \(2,\); it needs one for each of house, flat, farm"):
        shape.problem([[0, 1], [2, 3]])
    with refused(r"Variable 0 \(pet\) got costs of shape \(\)"):
        shape.problem([0.0, [1.0, 2.0, 3.0]])
    with refused("Got 2 costs for 5 labels"):
        shape.problem([0.0, 1.0])


def test_costs_that_are_no_numbers_are_refused() -> None:
    for wrong in (None, 3.0, np.array(1.0), ["cat", "house"], np.array(["cat"] * 5), [[[0, 1], [0]], [0]]):
        with refused("Costs are numbers"):
            two_pets().problem(wrong)


@pytest.mark.parametrize("value", [math.nan, -INF])
def test_a_cost_is_a_number_or_inf(value: float) -> None:
    shape = two_pets()
    with refused(rf"The cost of variable 1 \(home\) for label flat is {value}"):
        shape.problem(np.array([0, 0, 0, value, 0]))
    with refused(rf"The cost of variable 0 \(pet\) for label cat is {value}"):
        shape.problem([[value, 0], [0, 0, 0]])
    with refused(rf"Problem 1: the cost of variable 0 \(pet\) for label dog is {value}"):
        shape.batch(np.array([[0, 0, 0, 0, 0], [0, value, 0, 0, 0]]))
    with refused(rf"The score of variable 1 \(home\) for label flat is {-value}. Scores are finite, or -inf"):
        shape.problem(np.array([0, 0, 0, -value, 0]), maximize=True)
    with refused(rf"Problem 1: the score of variable 0 \(pet\) for label dog is {-value}"):
        shape.batch(np.array([[0, 0, 0, 0, 0], [0, -value, 0, 0, 0]]), maximize=True)
    assert shape.problem(np.array([0, 0, 0, INF, 0])).cost[3] == INF


def test_the_first_wrong_cost_of_a_mixed_batch_is_named() -> None:
    shapes = [entity_relation(n) for n in (0, 1, 2)]
    numbers = np.array([0, 2, 0, 1, 0, 2])
    costs = np.zeros(20 + 4 + 20)
    costs[24 + 7] = math.nan
    with refused(r"Problem 5: the cost of variable 1 \(entity\) for label none is nan"):
        Batch.build(shapes, numbers, costs)


# Tables and rules of one problem


def test_a_problem_may_bring_tables() -> None:
    shape = two_pets()
    own = np.array([[INF, 1.0, 2.0], [3.0, 4.0, 5.0]])
    problem = shape.problem(np.zeros(5), tables={0: own})
    assert problem.total([1, 1]) == 4.0  # what the schema forbids, the problem may allow
    assert problem.total([0, 0]) == INF
    assert shape.problem(np.zeros(5)).total([1, 1]) == INF
    for search in (BeamSearch(width=6), ConstrainedSearch()):
        assert search(problem).names == ["cat", "flat"]
    both = BeamSearch(width=6)([problem, shape.problem(np.zeros(5)), problem])
    assert [one.cost for one in both] == [1.0, 0.0, 1.0]


def test_the_tables_of_one_problem_are_not_those_of_the_next() -> None:
    shape = two_pets()
    other = shape.problem(np.zeros(5), tables={0: np.full((2, 3), 7.0)}).structure
    assert other.problem(np.zeros(5)).total([0, 0]) == 1.0
    assert other.problem(np.zeros(5)).total([1, 1]) == INF
    assert other.batch(np.zeros((1, 5)))[0].total([1, 1]) == INF
    assert other.problem(np.zeros(5), tables={0: np.zeros((2, 3))}).total([1, 1]) == 0.0


def test_tables_must_fit() -> None:
    shape = two_pets()
    with pytest.raises(SchemaError, match=r"lives needs a table of shape \(2, 3\)"):
        shape.problem(np.zeros(5), tables={0: np.zeros((3, 2))})
    for value in (math.nan, -INF):
        with pytest.raises(SchemaError, match="got nan or -inf"):
            shape.problem(np.zeros(5), tables={0: np.full((2, 3), value)})
    for factor in (1, -1):
        with pytest.raises(SchemaError, match=f"There is no factor {factor}. This structure has 1"):
            shape.problem(np.zeros(5), tables={factor: np.zeros((2, 3))})


def test_a_problem_may_bring_rules() -> None:
    shape = two_pets()
    rule = Rule.of("no cat", [(0, "cat")], at_most=0)
    problem = shape.problem([[0, 5], [0, 0, 0]], rules=[rule])
    assert BeamSearch(width=6)(problem).names == ["dog", "house"]
    assert BeamSearch(width=6)(shape.problem([[0, 5], [0, 0, 0]])).names == ["cat", "house"]


# Labellings


def test_a_labelling_is_given_by_numbers_or_names() -> None:
    problem = two_pets().problem(np.arange(5.0))
    for labels in ([1, 2], ["dog", "farm"], np.array([1, 2]), ("dog", 2), np.array(["dog", "farm"])):
        assert problem.labels(labels).tolist() == [1, 2]
        assert problem.total(labels) == 1 + 4
        assert problem.check(labels)
    assert problem.names(np.array([1, 2])) == ["dog", "farm"]


def test_a_labelling_must_fit() -> None:
    problem = two_pets().problem(np.arange(5.0))
    for use in (problem.labels, problem.total, problem.check):
        with refused("Got 1 label for 2 variables"):
            use([0])
        with refused(r"Variable 1 \(home\) has no label number 3; it has 3 labels"):
            use([0, 3])
        with refused(r"Variable 0 \(pet\) has no label number -1"):
            use([-1, 0])
        with pytest.raises(SchemaError, match="home has no label 'cave'"):
            use(["cat", "cave"])
        with refused(r"Variable 1 \(home\) has no label number 1.5"):
            use([0, 1.5])
        with refused(r"Variable 0 \(pet\) has no label number None"):
            use([None, 0])
        with refused("A labelling must be a list, got 3"):
            use(3)


@given(small_problems(), st.integers(0, 999))
def test_totals_and_validity_are_those_of_the_twin(problem: Problem, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(5):
        labels = tuple(int(rng.integers(len(kind))) for kind in problem.structure.kinds)
        assert problem.total(labels) == pytest.approx(naive.cost(problem, labels))
        assert bool(problem.check(labels)) == naive.valid(problem, labels)


def test_sizes_are_said() -> None:
    problem = two_pets().problem(np.zeros(5))
    assert (problem.n_variables, problem.n_outputs) == (2, 6)
    assert repr(problem) == "Problem(2 variables)"
    empty = Schema().structure().problem(np.zeros(0))
    assert (empty.n_variables, empty.n_outputs, empty.total([])) == (0, 1, 0.0)
    assert empty.check([])
    large = entity_relation(12).problem(np.zeros(entity_relation(12).n_labels))
    assert large.n_outputs == 4**12 * 6**132  # no overflow


# Lazy costs


def scorer(problems: np.ndarray, variables: np.ndarray) -> np.ndarray:
    """Costs that tell the problem and the variable."""
    pairs = zip(problems.tolist(), variables.tolist(), strict=True)
    return np.concatenate([np.full((2, 3)[v], 100.0 * p + v) for p, v in pairs])


def test_a_lazy_problem_computes_its_costs_once() -> None:
    calls = []

    def counting(problems: np.ndarray, variables: np.ndarray) -> np.ndarray:
        calls.append((problems.tolist(), variables.tolist()))
        return scorer(problems, variables)

    problem = two_pets().problem(counting, id=7)
    assert problem.lazy
    assert repr(problem) == "Problem(2 variables, lazy)"
    assert problem.check([0, 0])  # which asks for no costs
    assert calls == []
    assert problem.cost.tolist() == [700, 700, 701, 701, 701]
    assert problem.total([0, 0]) == 1402
    BeamSearch(theta=1.0)(problem), BeamSearch()(problem)
    assert calls == [([7, 7], [0, 1])]
    assert not problem.lazy
    assert not problem.batch.lazy


def test_a_lazy_batch_is_resolved_in_one_call() -> None:
    shape = two_pets()
    batch = Batch.of([shape.problem(scorer, id=i) for i in (3, 1)])
    assert batch.lazy
    assert "lazy" in repr(batch)
    resolved = batch.resolved()
    assert not resolved.lazy
    assert resolved.resolved() is resolved
    assert resolved.cost.tolist() == [300, 300, 301, 301, 301, 100, 100, 101, 101, 101]
    assert batch[1].id == 1
    assert batch[1].lazy
    built = Batch.build([shape], np.zeros(2, dtype=np.int64), scorer, ids=np.array([3, 1]))
    assert np.array_equal(built.resolved().cost, resolved.cost)
    default = Batch.build([shape], np.zeros(2, dtype=np.int64), scorer)
    assert default.resolved().cost[5:].tolist() == [100, 100, 101, 101, 101]


def test_problems_with_and_without_costs_make_a_batch_with_costs() -> None:
    shape = two_pets()
    batch = Batch.of([shape.problem(scorer, id=1), shape.problem(np.zeros(5))])
    assert not batch.lazy
    assert batch.cost.tolist() == [100, 100, 101, 101, 101, 0, 0, 0, 0, 0]


def test_a_scorer_is_checked() -> None:
    shape = two_pets()
    for returned, message in (
        (np.zeros(4), r"costs of shape \(4,\) for 2 requests that need 5"),
        (np.zeros((1, 5)), r"costs of shape \(1, 5\) for 2 requests"),
        (np.array([0, 0, 0, math.nan, 0]), "returned nan for variable 1 of problem 7"),
        (np.array([0, -INF, 0, 0, 0]), "returned -inf for variable 0 of problem 7"),
    ):
        with refused(message):
            _ = shape.problem(lambda problems, variables, costs=returned: costs, id=7).cost
    with refused("returned nan for variable 0 of problem 7"):
        BeamSearch(theta=1.0)(shape.problem(lambda problems, variables: np.full(2, math.nan), id=7))


def test_one_batch_has_one_scorer() -> None:
    shape = two_pets()
    with refused("must share one scorer"):
        Batch.of([shape.problem(scorer), shape.problem(lambda problems, variables: np.zeros(5))])


def test_a_method_is_one_scorer_however_often_it_is_named() -> None:
    class Model:
        def costs(self, problems: np.ndarray, variables: np.ndarray) -> np.ndarray:
            return scorer(problems, variables)

    shape, model = two_pets(), Model()
    batch = Batch.of([shape.problem(model.costs, id=2), shape.problem(model.costs, id=1)])
    assert batch.resolved().cost[[0, 5]].tolist() == [200, 100]
    with refused("must share one scorer"):
        Batch.of([shape.problem(model.costs), shape.problem(Model().costs)])


def test_only_a_lazy_batch_can_be_asked() -> None:
    batch = two_pets().batch(np.zeros((1, 5)))
    with refused("there is no scorer to ask"):
        batch.score(np.array([0]), np.array([0]))


# Batches


@st.composite
def lists_of_problems(draw: Any) -> list[Problem]:
    """Draws problems of several schemas and shapes, some of them twice."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    problems = [random_problem(rng) for _ in range(draw(st.integers(0, 5)))]
    return problems + problems[: draw(st.integers(0, 2))]


def same_problem(one: Problem, other: Problem) -> bool:
    return (
        one.structure.compiled is other.structure.compiled
        and np.array_equal(one.cost, other.cost)
        and np.array_equal(one.table, other.table)
    )


@given(lists_of_problems())
def test_a_batch_gives_back_its_problems(problems: list[Problem]) -> None:
    batch = Batch.of(problems)
    assert len(batch) == len(problems)
    for p, problem in enumerate(problems):
        assert same_problem(batch[p], problem)
        assert same_problem(batch[p - len(problems)], problem)
    for p in (len(problems), -len(problems) - 1):
        with pytest.raises(IndexError, match=f"There is no problem {p}"):
            batch[p]
    assert batch.variable_at[-1] == sum(problem.n_variables for problem in problems)
    again = Batch.of([batch[p] for p in range(len(batch))])
    assert all(same_problem(again[p], problem) for p, problem in enumerate(problems))


@given(lists_of_problems(), st.lists(st.integers(-99, 99), max_size=6))
def test_a_selection_has_the_problems_that_were_named(problems: list[Problem], numbers: list[int]) -> None:
    n = len(problems)
    chosen = [number % (2 * n) - n for number in numbers] if n else []
    selected = Batch.of(problems).select(chosen)
    assert len(selected) == len(chosen)
    for s, p in enumerate(chosen):
        assert same_problem(selected[s], problems[p])
    with pytest.raises(IndexError):
        Batch.of(problems).select([n])


def test_a_selection_of_a_lazy_batch_stays_lazy() -> None:
    shape = two_pets()
    batch = Batch.build([shape], np.zeros(3, dtype=np.int64), scorer, ids=np.array([5, 6, 7]))
    selected = batch.select([2, 0])
    assert selected.lazy
    assert selected.resolved().cost[[0, 5]].tolist() == [700, 500]


def test_a_batch_is_stacked_from_a_matrix() -> None:
    shape = entity_relation(4)
    costs = np.random.default_rng(0).normal(size=(10_000, shape.n_labels))
    batch = Batch.stack(shape, costs)
    assert len(batch) == 10_000
    assert batch.structures == (shape,)
    assert np.array_equal(batch[9_999].cost, costs[9_999])
    found = BeamSearch(width=2)(batch)
    assert found.valid.all()
    assert found[123].cost == pytest.approx(BeamSearch(width=2)(shape.problem(costs[123])).cost)


def test_a_matrix_must_fit() -> None:
    shape = two_pets()
    for wrong in (np.zeros((3, 4)), np.zeros(5), np.zeros((1, 1, 5))):
        with refused(r"this structure needs \(problems, 5\)"):
            shape.batch(wrong)
    for none in ([["a"] * 5], [[0] * 5, [0] * 4]):
        with refused("Costs are numbers, one for each label of each problem"):
            shape.batch(none)


def test_a_batch_of_several_shapes_must_fit() -> None:
    shapes = [entity_relation(1), entity_relation(2)]
    with refused(r"Got costs of shape \(23,\) for 24 labels"):
        Batch.build(shapes, np.array([0, 1]), np.zeros(23))
    for wrong in ([0, 2], [-1, 0]):
        with refused("A structure number is out of range: there are 2 structures"):
            Batch.build(shapes, np.array(wrong), np.zeros(24))
    with refused("Got 1 id for 2 problems"):
        Batch.build(shapes, np.array([0, 1]), scorer, ids=np.array([4]))


def test_problems_are_taken_in_any_form() -> None:
    problem = two_pets().problem(np.zeros(5))
    assert as_batch(problem) is problem.batch
    assert as_batch(problem.batch) is problem.batch
    assert len(as_batch([problem, problem])) == 2
    assert len(as_batch([])) == len(Batch.of([]).select([])) == 0
    assert repr(as_batch([problem, problem])) == "Batch(2 problems, 1 structure)"
    assert len(as_batch(problem for _ in range(3))) == len(as_batch(np.array([problem] * 3))) == 3


def test_what_is_no_problem_is_said_to_be_none() -> None:
    shape = two_pets()
    problem = shape.problem(np.zeros(5))
    with refused(r"Expected a problem, several or a batch, got None\.$"):
        as_batch(None)
    with refused(r"got an array of float64 of shape \(3, 5\)\. Costs alone .* structure\.batch\(rows of costs\)"):
        as_batch(np.zeros((3, 5)))
    with refused(r"number 0 is \[1, 2, 3\]\. Costs alone .* structure\.problem\(costs\)"):
        as_batch([[1, 2, 3]])
    with refused(r"got an object of type Structure\. A structure has no costs"):
        as_batch(shape)
    with refused("number 1 is an object of type Structure"):
        as_batch([problem, shape])
    with refused("number 0 is 'p'"):
        as_batch("problems")
    for wrong in (None, np.zeros((3, 5)), shape):
        with refused("Expected a problem"):
            BeamSearch()(wrong)


def test_problems_without_variables_fit_in_a_batch() -> None:
    empty, full = Schema().structure().problem([]), two_pets().problem(np.zeros(5))
    batch = Batch.of([empty, full, empty])
    assert batch.variable_at.tolist() == [0, 0, 2, 2]
    assert [one.valid for one in BeamSearch(width=6)(batch)] == [True, True, True]
    assert Schema().structure().batch(np.zeros((3, 0))).variable_at.tolist() == [0, 0, 0, 0]


class Tensor:
    """What a tensor that needs gradients is to NumPy: something that refuses to be an array."""

    def __init__(self, values):
        self.values = np.array(values)

    def __array__(self, *_, **__):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")

    def __iter__(self):
        return map(Tensor, self.values)

    def __len__(self):
        return len(self.values)

    def detach(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return self.values


def pair_shape():
    schema = Schema()
    pet = schema.variable("pet", ["cat", "dog"])
    pair = schema.factor("pair", left=pet, right=pet)
    shape = schema.structure()
    shape.connect(pair, left=shape.add(pet), right=shape.add(pet))
    return shape


def test_tensors_that_need_gradients_are_costs_too():
    shape, costs = pair_shape(), [1.0, 2.0, 3.0, 4.0]
    for each in (Tensor(costs), [Tensor(costs[:2]), Tensor(costs[2:])], [*Tensor(costs)]):
        assert shape.problem(each).cost.tolist() == costs
    assert shape.batch(Tensor([costs, costs])).cost.tolist() == costs * 2
    assert Batch.build([shape], [0], Tensor(costs)).cost.tolist() == costs
    lazy = Batch.build([shape], [0], lambda problems, variables: Tensor(costs))
    assert lazy.resolved().cost.tolist() == costs
    table = shape.problem(costs, tables={0: Tensor([[0.0, 1.0], [2.0, 3.0]])}).table
    assert table.tolist() == [0, 1, 2, 3]


def test_a_batch_does_not_change_with_the_arrays_that_it_was_made_of():
    shape = pair_shape()
    costs, structure, ids, buffer = np.zeros((2, 4)), np.zeros(2, dtype=np.int64), np.arange(2), np.zeros(8)
    batches = [
        shape.batch(costs),
        shape.batch(np.asfortranarray(costs)),
        Batch.build([shape], structure, costs.ravel()),
        Batch.build([shape], structure, lambda problems, variables: buffer, ids).resolved(),
    ]
    lazy = Batch.build([shape], structure, lambda problems, variables: buffer, ids)
    costs += 7
    buffer += 7
    structure += 7
    ids += 7
    for batch in batches:
        assert not batch.cost.any()
        assert not batch.structure.any()
    assert lazy.ids.tolist() == [0, 1]


def test_what_a_scorer_returns_must_be_numbers():
    lazy = Batch.build([pair_shape()], [0], lambda problems, variables: ["a"] * 4)
    with pytest.raises(ProblemError, match="Costs are numbers"):
        lazy.resolved()

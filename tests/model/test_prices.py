"""Rules with a price: every way to an answer agrees with an enumeration that knows nothing of indicators."""

from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hasten
from hasten import Batch, Certifier, Learner, Problem, Rule, Schema, Speedup, Structure
from hasten.errors import ProblemError, SchemaError
from hasten.learning.tables import Labels as LabelsByKind
from hasten.search.beam import ConstrainedSearch, ReducedSearch
from hasten.solvers import available_solvers, make_solver
from hasten.speedup.parts import Certified, Trust

LABELS = ["a", "b", "c"]
Stated = list[tuple[list[tuple[int, str, int]], float, float, float, bool]]  # terms, limits, price, per unit


def schema_of_pairs() -> Schema:
    schema = Schema()
    letter = schema.variable("letter", LABELS)
    schema.factor("pair", left=letter, right=letter).cost(1.0, left="a", right="b").forbid(left="c", right="c")
    return schema


def random_structure(rng: np.random.Generator, n: int) -> tuple[Structure, Stated]:
    """Returns a chain with rules, of which some have a price; and the rules."""
    schema = schema_of_pairs()
    shape = schema.structure()
    letter, pair = schema.variables["letter"], schema.factors["pair"]
    for v in range(n):
        shape.add(letter)
        if v and rng.random() < 0.7:
            shape.connect(pair, left=v - 1, right=v)
    stated: Stated = []
    for r in range(rng.integers(1, 4)):
        terms = [(int(v), LABELS[rng.integers(3)], int(rng.choice([1, 1, 1, 2, -1, 3]))) for v in rng.integers(0, n, n)]
        low, high = sorted(rng.integers(-1, 4, 2).tolist())
        limits = {"at_least": low, "at_most": high}
        side = rng.integers(3)
        if side == 0:
            del limits["at_least"]
            low = -math.inf
        elif side == 1:
            del limits["at_most"]
            high = math.inf
        price = float(rng.integers(1, 5))
        per_unit = bool(rng.random() < 0.5)
        hard = rng.random() < 0.2
        shape.rule(f"rule {r}", terms, **limits, price=None if hard else price, per_unit=per_unit and not hard)
        stated.append((terms, low, high, math.inf if hard else price, per_unit))
    return shape, stated


def truth(problem: Problem, stated: Stated) -> dict[tuple[int, ...], Fraction]:
    """Returns what each valid labelling costs, in exact arithmetic."""
    found = {}
    kinds, first = problem.structure.kinds, problem.graph.first
    for labels in product(*(range(len(kind)) for kind in kinds)):
        cost = sum((Fraction(float(problem.cost[first[v] + i])) for v, i in enumerate(labels)), Fraction(0))
        entries = [factor.kind.table[tuple(labels[v] for v in factor.scope)] for factor in problem.structure.factors]
        if math.inf in entries:
            continue
        cost += sum(map(Fraction, entries))
        for terms, low, high, price, per_unit in stated:
            total = sum(weight for v, label, weight in terms if LABELS[labels[v]] == label)
            off = max(low - total, total - high, 0)
            if off and price == math.inf:
                break
            cost += Fraction(price) * Fraction(off if per_unit else 1) if off else 0
        else:
            found[labels] = cost
    return found


def test_every_solver_search_and_proof_agrees_with_enumeration() -> None:
    rng = np.random.default_rng(0)
    solvers = [make_solver(name) for name in available_solvers() if name != "cpsat"]
    for n in range(40):
        shape, stated = random_structure(rng, 4)
        problem = shape.problem(rng.integers(-3, 4, shape.n_labels).astype(float))
        costs = truth(problem, stated)
        for solve in (Certifier(), Certifier(max_join=0), *(each.solve for each in solvers[:: 1 if n < 12 else 9])):
            answer = solve(problem)
            assert answer.status.optimal
            if not costs:
                assert answer.values is None
                continue
            assert answer.cost == min(costs.values())
            assert answer.labels.shape == (4,)
            assert len(answer.names) == 4
            assert costs[tuple(answer.labels.tolist())] == answer.cost
        for search in (hasten.greedy(), hasten.BeamSearch(width=3), ConstrainedSearch(), ReducedSearch()):
            found = search(problem)
            if found.valid:
                assert found.cost == costs[tuple(found.labels.tolist())]
            elif found.values is not None:
                assert tuple(found.labels.tolist()) not in costs


@pytest.mark.parametrize(
    ("certifier", "scale"),
    [(Certifier(max_sweeps=1, max_nodes=0), 1.0), (Certifier(), 1e6)],
    ids=["little effort", "costs far above the prices"],
)
def test_an_answer_costs_what_its_labels_cost_and_no_more(certifier: Certifier, scale: float) -> None:
    schema = Schema()
    letter = schema.variable("letter", LABELS)
    schema.rule("few a", at_most=1, letter="a", price=0.5, per_unit=True)
    schema.rule("a b", at_least=1, letter="b", price=0.5)
    shape = schema.structure()
    for _ in range(4):
        shape.add(letter)
    shape.rule("some", [(0, "a", 3), (1, "a", 2), (2, "a", 2), (3, "b", 1)], at_least=3, price=0.3, per_unit=True)
    batch = shape.batch(scale * np.random.default_rng(7).normal(size=(200, shape.n_labels)))
    for problem, among in zip(batch, certifier(batch), strict=True):
        alone = certifier(problem)
        assert (alone.status, alone.cost, alone.bound) == (among.status, among.cost, among.bound)
        assert alone.labels.tolist() == among.labels.tolist()
        assert alone.cost == problem.total(alone.labels)
        assert alone.bound <= alone.cost


def test_an_answer_that_meets_its_bound_once_its_price_is_told_is_proved() -> None:
    schema = Schema()
    letter = schema.variable("letter", ["a", "b"])
    schema.rule("no a", at_most=0, letter="a", price=0.5, per_unit=True)
    shape = schema.structure()
    for _ in range(3):
        shape.add(letter)
    shape.rule("some a", [(0, "a", 3), (1, "a", 2), (2, "a", 2)], at_least=3, price=0.3, per_unit=True)
    batch = shape.batch(np.random.default_rng(0).normal(size=(8, 6)))
    answer = Certifier(max_sweeps=1, max_nodes=0)(batch[7])
    assert answer.proved
    assert answer.cost == pytest.approx(make_solver("brute").solve(batch[7]).cost)


def test_a_beam_that_never_prunes_finds_the_optimum() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        shape, stated = random_structure(rng, 4)
        problem = shape.problem(rng.normal(size=shape.n_labels))
        costs = truth(problem, stated)
        found = hasten.BeamSearch(width=10_000, enforce=True)(problem)
        assert found.valid == bool(costs)
        if costs:
            assert found.cost == pytest.approx(float(min(costs.values())))


def test_the_best_labellings_come_in_order_each_once() -> None:
    rng = np.random.default_rng(2)
    for _ in range(40):
        shape, stated = random_structure(rng, 4)
        problem = shape.problem(rng.integers(-3, 4, shape.n_labels).astype(float))
        costs = truth(problem, stated)
        ranking = Certifier().best(problem, k=12)
        assert ranking.proved
        assert ranking.costs.tolist() == sorted(costs.values())[:12]
        assert len({tuple(row) for row in ranking.labels.tolist()}) == len(ranking)
        everything = Certifier().best(problem, k=200)
        assert len(everything) == len(costs)


def test_min_marginals_are_those_of_enumeration() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        shape, stated = random_structure(rng, 4)
        problem = shape.problem(rng.integers(-3, 4, shape.n_labels).astype(float))
        costs = truth(problem, stated)
        found = Certifier().min_marginals(problem)
        assert found.cost.shape == (12,)
        for v, i in product(range(4), range(3)):
            least = min((cost for labels, cost in costs.items() if labels[v] == i), default=math.inf)
            assert found.cost[3 * v + i] == least
        if costs:
            assert found.margin.shape == found.confidence().shape == (4,)


def test_batches_of_several_shapes_have_prices_where_they_belong() -> None:
    rng = np.random.default_rng(4)
    schema = schema_of_pairs()
    shapes = []
    for n, price in ((2, 1.5), (3, None), (4, 2.5)):
        shape = schema.structure()
        for _ in range(n):
            shape.add(schema.variables["letter"])
        if price:
            shape.at_most_one("few a", [(v, "a") for v in range(n)], price=price)
        shapes.append(shape)
    numbers = rng.integers(0, 3, 30)
    costs = [rng.normal(size=shapes[s].n_labels) for s in numbers]
    batch = Batch.build(shapes, numbers, np.concatenate(costs))
    singles = [shapes[s].problem(cost) for s, cost in zip(numbers, costs, strict=True)]
    answers, again = Certifier()(batch), Certifier()(Batch.of(singles))
    alone = [Certifier()(problem) for problem in singles]
    assert answers.cost.tolist() == again.cost.tolist() == [each.cost for each in alone]
    assert answers.labels.tolist() == np.concatenate([each.labels for each in alone]).tolist()
    assert len(answers.labels) == sum(shapes[s].n_variables for s in numbers)
    assert np.diff(batch.labels_at).tolist() == [shapes[s].n_variables for s in numbers]
    stacked = shapes[2].batch(rng.normal(size=(5, 12)))
    assert [Certifier()(problem).cost for problem in stacked] == Certifier()(stacked).cost.tolist()


def test_a_scorer_is_never_asked_for_the_price() -> None:
    asked = []
    shape = few_people(price=2.0)
    costs = np.random.default_rng(5).normal(size=(3, shape.n_labels))

    def scorer(problems: np.ndarray, variables: np.ndarray) -> np.ndarray:
        asked.extend(variables.tolist())
        return np.concatenate([costs[p, 2 * v : 2 * v + 2] for p, v in zip(problems, variables, strict=True)])

    lazy = Batch.build([shape], [0, 0, 0], scorer)
    given = shape.batch(costs)
    for search in (hasten.greedy(), hasten.BeamSearch(width=2), ReducedSearch()):
        assert search(lazy).cost.tolist() == search(given).cost.tolist()
    assert Certifier()(lazy).cost.tolist() == Certifier()(given).cost.tolist()
    assert set(asked) == set(range(shape.n_variables))


def few_people(price: float | None = None, per_unit: bool = False, n: int = 4) -> Structure:
    schema = Schema()
    entity = schema.variable("entity", ["person", "place"])
    schema.rule("few people", at_most=1, entity="person", price=price, per_unit=per_unit)
    shape = schema.structure()
    for _ in range(n):
        shape.add(entity)
    return shape


def test_a_broken_rule_is_told_and_priced_but_no_violation() -> None:
    problem = few_people(price=2.0).problem([[-1.0, 0.0], [-1.5, 0.0], [0.0, 3.0], [9.0, 0.0]])
    answer = Certifier()(problem)
    assert answer.names == ["person", "person", "person", "place"]
    assert answer.cost == -0.5
    check = problem.check(answer.labels)
    assert check
    assert not check.violations
    assert check.price == 2.0
    assert str(check) == (
        "valid\nfew people: needs at most 1, got 3 (person for variable 0, person for variable 1, person for variable "
        "2); this costs 2"
    )
    assert problem.total(answer.labels) == answer.cost
    assert str(problem.check(["place", "place", "person", "place"])) == "valid"
    assert "this costs" not in repr(answer)


def test_a_price_per_unit_is_paid_for_each() -> None:
    problem = few_people(price=2.0, per_unit=True).problem(np.tile([-9.0, 0.0], 4))
    answer = Certifier()(problem)
    assert answer.cost == -36.0 + 3 * 2.0
    assert problem.check(answer.labels).price == 6.0


def test_every_named_rule_takes_a_price() -> None:
    schema = Schema()
    letter = schema.variable("letter", LABELS)
    schema.factor("pair", left=letter, right=letter).imply({"left": "a"}, {"right": "b"}, price=0.25)
    shape = schema.structure()
    for _ in range(3):
        shape.add(letter)
    shape.connect(schema.factors["pair"], left=0, right=1)
    shape.exactly_one("one c", [(v, "c") for v in range(3)], price=1.0)
    shape.at_most_one("one b", [(v, "b") for v in range(3)], price=2.0)
    shape.all_different("apart", [0, 1, 2], price=4.0, per_unit=True)
    shape.implies("a then b", [(0, "a"), (1, "a")], (2, "b"), price=8.0)
    problem = shape.problem(
        np.zeros(9), rules=[Rule.of("many a", [(v, "a") for v in range(3)], at_least=4, price=16.0)]
    )
    assert problem.total(["a", "a", "a"]) == 0.25 + 1.0 + 2 * 4.0 + 8.0 + 16.0
    assert problem.total(["b", "c", "b"]) == 2.0 + 4.0 + 16.0
    assert [rule.price for rule in shape.rules] == [1.0, 2.0, 4.0, 4.0, 4.0, 8.0]
    assert Certifier()(problem).cost == 16.0


def test_what_cannot_be_broken_costs_nothing_and_what_is_always_broken_is_always_paid() -> None:
    shape = few_people(price=2.0, n=1)
    assert shape.compiled.indicators is None
    assert Certifier()(shape.problem([0.0, 1.0])).cost == 0.0
    schema = Schema()
    schema.variable("other", ["x"])
    kind = schema.variable("kind", ["y", "z"])
    schema.rule("never", at_least=1, other="x", price=3.0)
    shape = schema.structure()
    shape.add(kind)
    for solve in (Certifier(), make_solver("highs").solve, hasten.greedy()):
        assert solve(shape.problem([1.0, 0.5])).cost == 3.5


def test_losses_and_labels_are_those_of_the_variables_that_users_see() -> None:
    shape = few_people(price=2.0)
    problem = shape.problem(np.zeros(8))
    labels = [0, 0, 1, 1]
    augmented = problem.augmented(labels, weight=0.5)
    assert augmented.total(labels) == 2.0
    assert augmented.total([1, 1, 0, 0]) == 2.0 - 4 * 0.5
    batch = shape.batch(np.zeros((2, 8))).augmented(np.array([*labels, *labels]), weight=0.5)
    assert batch[1].total([1, 1, 0, 0]) == 0.0
    assert np.array_equal(shape.batch(np.zeros((2, 8))).augmented([labels, labels], weight=0.5).cost, batch.cost)
    assert shape.problem(augmented.cost).total([1, 1, 0, 0]) == 0.0  # the costs of a problem make another one
    with pytest.raises(ProblemError, match="9 costs for 8 labels"):
        few_people().problem(np.zeros(9))
    with pytest.raises(ProblemError, match="5 labels for 4 variables"):
        problem.total([0, 0, 1, 1, 0])  # the indicator is nobody's business


@pytest.mark.parametrize(
    ("price", "per_unit", "words"),
    [
        (0.0, False, "must be above 0, got 0.0"),
        (-1.0, False, "must be above 0"),
        (True, False, "must be above 0"),
        (math.nan, False, "the price must be a finite number"),
        (math.inf, False, "the price must be a finite number"),
        (10**400, False, "the price must be a finite number"),
        ("dear", False, "the price must be a finite number"),
        (None, True, "has no price for each unit"),
    ],
)
def test_a_bad_price_is_refused(price: float | None, per_unit: bool, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        Rule.of("few", [(0, "a")], at_most=1, price=price, per_unit=per_unit)
    with pytest.raises(SchemaError, match=words):
        few_people(price, per_unit)


def test_weights_that_need_a_tolerance_take_no_price() -> None:
    with pytest.raises(SchemaError, match=r"weight 0.5 for 'a'.*whole weights"):
        Rule.of("half", [(0, "a", 0.5)], at_most=1, price=1.0)
    schema = Schema()
    schema.variable("item", ["large", "none"])
    with pytest.raises(SchemaError, match="whole weights"):
        schema.rule("budget", at_most=1, price=1.0, item={"large": 0.5})


def test_a_rule_that_can_be_missed_by_too_many_units_is_refused() -> None:
    schema = schema_of_pairs()
    shape = schema.structure()
    shape.add(schema.variables["letter"])
    shape.rule("far", [(0, "a", 5000)], at_most=1, price=1.0, per_unit=True)
    with pytest.raises(SchemaError, match="4,999 units"):
        shape.problem(np.zeros(3))


def test_answers_are_learned_from_and_kept_like_any_others(tmp_path: object) -> None:
    rng = np.random.default_rng(6)
    schema = schema_of_pairs()
    letter, pair = schema.variables["letter"], schema.factors["pair"]
    shape = schema.structure()
    for v in range(4):
        shape.add(letter)
        if v:
            shape.connect(pair, left=v - 1, right=v)
    shape.exactly_one("one c", [(v, "c") for v in range(4)], price=0.7)
    batch = shape.batch(rng.normal(size=(60, 12)))
    exact = Certifier()(batch)
    for mode in ("certified", "search"):
        fast = Speedup(schema, answer=mode).fit(batch)
        answers = fast.predict(batch)
        assert answers.cost == pytest.approx(exact.cost) or mode == "search"
        assert len(answers.labels) == 240
        fast.save(tmp_path / "fast.hasten")  # type: ignore[operator]
        again = Speedup.load(tmp_path / "fast.hasten", schema)  # type: ignore[operator]
        assert again.predict(batch).labels.tolist() == answers.labels.tolist()
    Speedup(schema, answer=Certified(past=16)).fit(batch).predict(batch)
    by_labels = Learner(epochs=1, enforce=False, look_ahead=False).fit(batch, exact.labels).weights
    assert by_labels.tolist() == Learner(epochs=1, enforce=False, look_ahead=False).fit(batch, exact).weights.tolist()
    assert (
        by_labels.tolist()
        == Learner(epochs=1, enforce=False, look_ahead=False)
        .fit(batch, [each.names for each in exact])
        .weights.tolist()
    )
    with pytest.raises(ProblemError, match="rules with a price"):
        LabelsByKind.of(batch)
    for twin in (copy.deepcopy(batch), pickle.loads(pickle.dumps(batch))):
        assert Certifier()(twin).cost.tolist() == exact.cost.tolist()


def test_a_solver_of_one_s_own_answers_without_indicators() -> None:
    shape = few_people(price=2.0)

    def own(problem: Problem) -> list[int]:
        return Certifier()(problem).labels.tolist()

    batch = shape.batch(np.random.default_rng(7).normal(size=(5, 8)))
    answers = Speedup(shape.schema, solver=own, trust=Trust(prove=False)).predict(batch)
    assert answers.cost.tolist() == Certifier()(batch).cost.tolist()


def test_traces_tell_of_prices() -> None:
    problem = few_people(price=2.0).problem([[-1.0, 0.0], [-1.5, 0.0], [0.0, 3.0], [9.0, 0.0]])
    answer = Certifier()(problem)
    assert "price of few people" in str(hasten.greedy().trace(problem, answer))
    assert "proved optimal" in str(Certifier().trace(problem, names=["Ann", "Bob", "Eve", "Rome"]))


def test_prices_are_part_of_the_shape_and_of_the_schema() -> None:
    shapes = [few_people(price) for price in (None, 1.0, 2.0)]
    assert len({shape.schema.digest for shape in shapes}) == 3
    assert few_people(1.0).schema.digest == shapes[1].schema.digest
    one, other = schema_of_pairs().structure(), None
    for price in (1.0, 2.0):
        other = one.schema.structure()
        other.add(one.schema.variables["letter"])
        other.add(one.schema.variables["letter"])
        other.at_most_one("few", [(0, "a"), (1, "a")], price=price)
        assert other.problem(np.zeros(6)).total(["a", "a"]) == price


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_tables_of_its_own_do_not_disturb_prices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape, _ = random_structure(rng, 3)
    if not shape.factors:
        return
    table = rng.integers(0, 3, (3, 3)).astype(float)
    problem = shape.problem(rng.integers(-3, 4, 9).astype(float), tables={"pair": table})
    plain = shape.problem(problem.cost[:9]).with_tables({"pair": table})
    assert Certifier()(problem).cost == Certifier()(plain).cost == make_solver("brute").solve(problem).cost

"""Factors on demand: the same optima as with every member stated, and honest answers when time runs out."""

from __future__ import annotations

from itertools import combinations, product

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hasten import (
    Certifier,
    Family,
    OnDemand,
    Problem,
    ProblemError,
    Rule,
    Schema,
    SchemaError,
    Speedup,
    Status,
    Structure,
)
from hasten.speedup.parts import Limits

SOFT = 2.0


class Orders:
    """The order of some events: a relation for each pair, transitive over all triples, on demand or all stated."""

    def __init__(self, n: int, price: float = np.inf, limit: int | None = None) -> None:
        schema, table = Schema(), np.zeros((2, 2, 2))
        relation = schema.variable("relation", ["before", "after"])
        table[0, 0, 1] = table[1, 1, 0] = price
        self.kind = schema.factor("transitive", ab=relation, bc=relation, ac=relation).set_table(table)
        number = {pair: p for p, pair in enumerate(combinations(range(n), 2))}
        self.triples = np.array([(number[a, b], number[b, c], number[a, c]) for a, b, c in combinations(range(n), 3)])
        self.shape, self.full = schema.structure(), schema.structure()
        for shape in (self.shape, self.full):
            for _ in number:
                shape.add(relation)
            if limit is not None:
                shape.rule("few after", [(v, "after") for v in range(len(number))], at_most=limit)
        for ab, bc, ac in self.triples.tolist():
            self.full.connect(self.kind, ab=ab, bc=bc, ac=ac)
        self.n, self.pairs = n, np.array(list(number))

    def broken(self, labels: np.ndarray) -> np.ndarray:
        ab, bc, ac = labels[self.triples].T
        return self.triples[(ab == bc) & (bc != ac)]

    def mend(self, labels: np.ndarray) -> np.ndarray:
        later = np.where(labels == 1, self.pairs[:, 0], self.pairs[:, 1])
        place = np.bincount(later, minlength=self.n).argsort(kind="stable").argsort()
        return (place[self.pairs[:, 0]] > place[self.pairs[:, 1]]).astype(np.int64)

    def family(self, mend: bool = True) -> Family:
        return Family(self.kind, self.broken, self.mend if mend else None)


@settings(max_examples=25, deadline=None)
@given(st.integers(3, 5), st.integers(0, 10**6), st.sampled_from([np.inf, SOFT]), st.sampled_from([None, 3]))
def test_the_optima_are_those_of_all_members(n: int, seed: int, price: float, limit: int | None) -> None:
    orders, rng = Orders(n, price, limit), np.random.default_rng(seed)
    demand = OnDemand(orders.shape, orders.family(mend=price == np.inf))
    costs = rng.integers(-4, 5, size=(4, orders.shape.n_labels)).astype(float)
    for answer, cost in zip(demand(orders.shape.batch(costs)), costs, strict=True):
        problem = orders.full.problem(cost)
        assert answer.proved
        assert answer.cost == pytest.approx(naive.solve(problem).cost)
        assert problem.check(answer.labels).valid
        assert problem.total(answer.labels) == pytest.approx(answer.cost)


def test_few_members_are_stated_and_later_problems_start_with_them() -> None:
    orders = Orders(12)
    demand, rng = OnDemand(orders.shape, orders.family()), np.random.default_rng(0)
    problem = orders.shape.problem(rng.normal(size=orders.shape.n_labels) + np.tile([0.0, 1.5], 66))
    answer = demand(problem)
    assert answer.cost == pytest.approx(Certifier()(orders.full.problem(problem.cost)).cost)
    members, rounds = demand.n_members, demand.n_rounds
    assert 0 < members < len(orders.triples)
    demand(problem)
    assert demand.n_members == members
    assert demand.n_rounds == rounds + 1


def test_a_speedup_answers_what_is_not_proved() -> None:
    orders, rng = Orders(7), np.random.default_rng(1)
    costs = rng.normal(size=(6, orders.shape.n_labels))
    hard = Speedup(orders.shape.schema, limits=Limits(max_nodes=0))
    answers = OnDemand(orders.shape, orders.family(), hard)(orders.shape.batch(costs))
    assert answers.optimal.all()
    assert answers.cost == pytest.approx(Certifier()(orders.full.batch(costs)).cost)


def test_what_runs_out_of_time_breaks_nothing() -> None:
    orders, rng = Orders(9), np.random.default_rng(2)
    problem = orders.shape.problem(rng.normal(size=orders.shape.n_labels))
    best = Certifier()(orders.full.problem(problem.cost)).cost
    answer = OnDemand(orders.shape, orders.family(), time_limit=0.0)(problem)
    assert answer.status in (Status.TIME_LIMIT, Status.NO_TIME, Status.PROVED)
    assert answer.bound <= best + 1e-9
    if answer.values is not None:
        assert not len(orders.broken(answer.labels))
        assert answer.cost >= best - 1e-9
    none = OnDemand(orders.shape, orders.family(mend=False), time_limit=0.0)(problem)
    assert none.values is None or not len(orders.broken(none.labels))


@pytest.mark.parametrize("unit", [1e-9, 1e-300])
def test_tiny_costs_are_told_apart(unit: float) -> None:
    orders, rng = Orders(4), np.random.default_rng(3)
    costs = rng.integers(-4, 5, size=(20, orders.shape.n_labels)) * unit
    answers = OnDemand(orders.shape, orders.family())(orders.shape.batch(costs))
    assert answers.proved.all()
    best = [naive.solve(orders.full.problem(cost)).cost for cost in costs]
    assert answers.cost == pytest.approx(best, rel=1e-6, abs=1e-6 * unit)


def test_what_cannot_hold_is_infeasible() -> None:
    orders = Orders(3, limit=0)
    cost = np.array([0.0, 0.0, 0.0, 0.0, np.inf, 0.0])
    assert OnDemand(orders.shape, orders.family())(orders.shape.problem(cost)).status is Status.INFEASIBLE


def test_no_problems_have_no_answers() -> None:
    orders = Orders(3)
    assert len(OnDemand(orders.shape, orders.family())(orders.shape.batch(np.zeros((0, 6))))) == 0


def other_shape() -> Structure:
    return Orders(4).shape


def test_misuse_is_refused_by_name() -> None:
    orders = Orders(4)
    demand = OnDemand(orders.shape, orders.family())
    with pytest.raises(ProblemError, match="one shape"):
        demand(orders.full.problem(np.zeros(12)))
    with pytest.raises(ProblemError, match="not a family of this schema"):
        OnDemand(other_shape(), orders.family())
    wrong = Family(orders.kind, lambda labels: np.array([[0, 1, 99]]))
    with pytest.raises(SchemaError, match="there is no variable 99"):
        OnDemand(orders.shape, wrong)(orders.shape.problem([0.0] * 12))
    schema = Schema()
    one = schema.variable("one", ["a", "b"])
    with pytest.raises(SchemaError, match="below zero"):
        Family(schema.factor("gain", left=one, right=one).set_table(-np.eye(2)), lambda labels: labels)
    with pytest.raises(SchemaError, match="needs a table"):
        Family(schema.factor("none", left=one, right=one), lambda labels: labels)


def crowded(seed: int, n: int, unit: float = 1.0) -> tuple[Problem, np.ndarray, list[np.ndarray], float]:
    """Returns a chain with tables of its own, when its variables are alive, what they use, and a limit on that."""
    rng, schema = np.random.default_rng(seed), Schema()
    item = schema.variable("item", ["a", "b", "c"])
    pair = schema.factor("pair", learned=False, one=item, other=item)
    schema.factor("never", one=item, other=item).forbid(one="a", other="a")
    shape = schema.structure(n * [item])
    tables = {shape.connect(pair, one=v, other=v + 1): rng.integers(0, 9, (3, 3)) * 1.0 for v in range(n - 1)}
    begin = rng.integers(0, 6, n)
    alive = np.stack([begin, begin + rng.integers(0, 5, n)], axis=1)
    uses = [rng.integers(0, 8, 3) * unit for _ in range(n)]
    return shape.problem(rng.integers(0, 9, 3 * n) * 1.0, tables=tables), alive, uses, float(rng.integers(0, 16)) * unit


def used(labels: np.ndarray, alive: np.ndarray, uses: list[np.ndarray]) -> float:
    """Returns the most that is used at any moment, counted moment by moment."""
    at = [sum(uses[v][labels[v]] for v in range(len(uses)) if alive[v, 0] <= t < alive[v, 1]) for t in range(12)]
    return float(max(at))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.sampled_from([1.0, 0.3, 1e9]), st.booleans())
def test_rules_over_time_are_those_of_every_moment(seed: int, n: int, unit: float, limited: bool) -> None:
    problem, alive, uses, limit = crowded(seed, n, unit)
    family = Family.over_time("memory", problem.structure, alive, uses, at_most=limit)
    answer = OnDemand(problem.structure, family, time_limit=30.0 if limited else None)(problem)
    fits = [
        problem.total(labels)
        for labels in map(np.array, product(range(3), repeat=n))
        if used(labels, alive, uses) <= limit * (1 + 1e-9)
    ]
    if not fits:
        assert answer.status is Status.INFEASIBLE
        return
    assert answer.proved
    assert answer.cost == pytest.approx(min(fits))
    assert used(answer.labels, alive, uses) <= limit * (1 + 1e-6)


def test_limits_of_large_whole_numbers_are_exact() -> None:
    schema = Schema()
    shape = schema.structure([schema.variable("item", ["much", "little"])])
    uses = [np.array([1e10, 1.0])]
    family = Family.over_time("memory", shape, np.array([[0, 1]]), uses, at_most=1e10 - 1)
    assert OnDemand(shape, family)(shape.problem([0.0, 1.0])).names == ["little"]


@pytest.mark.parametrize("seed", range(40))
def test_rounding_breaks_no_rule_over_time(seed: int) -> None:
    rng, schema = np.random.default_rng(seed), Schema()
    shape = schema.structure(6 * [schema.variable("item", ["a", "b"])])
    alive = np.sort(rng.integers(0, 5, (6, 2)), axis=1)
    uses = [rng.choice([0.1, 0.2, 0.3, -0.3, -0.1], 2) for _ in range(6)]
    family = Family.over_time("memory", shape, alive, uses, at_most=0.0)
    labels = rng.integers(0, 2, 6)
    for rule in family.members(shape, labels):
        assert isinstance(rule, Rule)
        names = shape.kinds[0].labels
        assert sum(weight for v, label, weight in rule.terms if names[labels[v]] == label) > 0.0
    assert OnDemand(shape, family)(shape.problem(np.zeros(12))).status in (Status.PROVED, Status.INFEASIBLE)


def test_rules_and_factors_on_demand_together() -> None:
    orders, rng = Orders(5), np.random.default_rng(4)
    rule = Rule.of("few after", [(v, "after") for v in range(10)], at_most=2)
    counts = Family.of_rules(lambda labels: [rule] if (labels == 1).sum() > 2 else [])
    demand = OnDemand(orders.shape, [orders.family(mend=False), counts])
    for answer in demand(orders.shape.batch(rng.normal(size=(5, 20)))):
        whole = orders.full.with_rules([rule]).problem(answer.problem.cost)
        assert answer.proved
        assert answer.cost == pytest.approx(naive.solve(whole).cost)
        assert whole.check(answer.labels).valid


def test_rules_over_time_that_run_out_of_time_are_kept() -> None:
    problem, alive, uses, _ = crowded(5, 6)
    limit = float(sum(each.min() for each in uses))
    family = Family.over_time("memory", problem.structure, alive, uses, at_most=limit)
    best = OnDemand(problem.structure, family)(problem).cost
    answer = OnDemand(problem.structure, family, time_limit=0.0)(problem)
    assert answer.bound <= best + 1e-9
    assert answer.values is None or used(answer.labels, alive, uses) <= limit


def test_misuse_of_rules_on_demand_is_refused() -> None:
    problem, alive, uses, _ = crowded(0, 3)
    shape = problem.structure
    with pytest.raises(SchemaError, match="two whole numbers for each of the 3 variables"):
        Family.over_time("memory", shape, alive[:2], uses, at_most=1)
    with pytest.raises(SchemaError, match="what it uses with each of its labels"):
        Family.over_time("memory", shape, alive, uses[:2], at_most=1)
    with pytest.raises(SchemaError, match="must not be below zero"):
        Family.over_time("memory", shape, alive, uses, at_most=-1)
    priced = Rule.of("soft", [(0, "a")], at_most=0, price=1.0)
    with pytest.raises(SchemaError, match="has a price"):
        OnDemand(shape, Family.of_rules(lambda labels: [priced]))(problem)
    with pytest.raises(SchemaError, match="must be of type Rule"):
        OnDemand(shape, Family.of_rules(lambda labels: [3]))(problem)  # type: ignore[list-item]
    with pytest.raises(ProblemError, match="no tables of their own"):
        OnDemand(shape, Family(shape.schema.factors["never"], lambda labels: labels))

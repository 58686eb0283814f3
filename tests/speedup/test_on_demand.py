"""Factors on demand: the same optima as with every member stated, and honest answers when time runs out."""

from __future__ import annotations

from itertools import combinations

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hasten import (
    Certifier,
    Family,
    OnDemand,
    ProblemError,
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


def test_problems_with_tables_of_their_own_are_refused() -> None:
    schema = Schema()
    item = schema.variable("item", ["a", "b"])
    never = schema.factor("never", one=item, other=item).forbid(one="a", other="a")
    pair = schema.factor("pair", one=item, other=item)
    shape = schema.structure(2 * [item])
    own = shape.problem([0.0] * 4, tables={shape.connect(pair, one=0, other=1): np.ones((2, 2))}).structure
    with pytest.raises(ProblemError, match="no tables of their own"):
        OnDemand(own, Family(never, lambda labels: labels))

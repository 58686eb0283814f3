"""Problems that elimination solves by itself: eight at a time as one at a time, and exactly."""

from __future__ import annotations

from itertools import pairwise

import exact
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from proofs import assert_sound
from strategies import small_problems

from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.schema import FactorKind, Schema
from hasten.model.structure import Structure
from hasten.proof.certifier import Certifier
from hasten.proof.report import Step
from hasten.proof.tally.plan import counter_of, plan_tally
from hasten.solvers import make_solver

SPREADS = (1.0, 1e-300, 1e-7, 1e12, 1e290, 1e306)


def varied(problem: Problem, seed: int, n: int) -> Batch:
    """Returns problems of one structure with other costs: noise of some magnitude, ties, labels that are forbidden."""
    rng = np.random.default_rng(seed)
    costs = rng.normal(size=(n, problem.cost.size)) * SPREADS[seed % len(SPREADS)]
    costs[rng.random(n) < 0.3] = rng.integers(-2, 3, problem.cost.size)
    costs[rng.random(costs.shape) < 0.1] = np.inf
    costs[0] = problem.cost
    return problem.alike(costs)


@given(small_problems(rules=False), st.integers(0, 2**16), st.sampled_from([8, 9, 17]))
@settings(max_examples=60)
def test_eight_at_a_time_are_answered_as_one_at_a_time(problem: Problem, seed: int, n: int) -> None:
    certify, batch = Certifier(), varied(problem, seed, n)
    together = certify(batch)
    for p in range(n):
        alone, among = certify(batch[p]), together[p]
        assert (alone.status, alone.source, alone.cost, alone.bound) == (
            among.status,
            among.source,
            among.cost,
            among.bound,
        )
        assert (alone.values is None) == (among.values is None)
        assert alone.values is None or np.array_equal(alone.labels, among.labels)
        assert_sound(among, exact.optimum(batch[p]))


@pytest.mark.parametrize("seed", range(6))
def test_a_derived_table_over_two_variables_is_added_as_alone(seed: int) -> None:
    """Two tables of three variables meet in one, so that what is left of the first is read beside the second."""
    rng = np.random.default_rng(seed)
    schema = Schema()
    switch = schema.variable("switch", ["off", "on"])
    triple = schema.factor("triple", one=switch, two=switch, three=switch)
    triple.set_table(rng.normal(size=(2, 2, 2)))
    shape = schema.structure()
    for _ in range(7):
        shape.add(switch)
    for one, two, three in ((6, 1, 2), (4, 3, 5), (3, 6, 0)):
        shape.connect(triple, one=one, two=two, three=three)
    batch = shape.batch(rng.normal(size=(40, shape.n_labels)))
    together = Certifier(max_join=8)(batch)
    for p in range(len(batch)):
        alone = Certifier(max_join=8)(batch[p])
        assert (alone.cost, alone.bound) == (together.cost[p], together.bound[p])
        assert_sound(alone, exact.optimum(batch[p]))


def chain(n: int, n_labels: int, table: np.ndarray | None = None) -> Structure:
    schema = Schema()
    tag = schema.variable("tag", [f"tag{i}" for i in range(n_labels)])
    follow = schema.factor("follow", before=tag, after=tag)
    follow.set_table(np.random.default_rng(0).normal(size=(n_labels, n_labels)) if table is None else table)
    shape = schema.structure()
    words = [shape.add(tag) for _ in range(n)]
    for before, after in pairwise(words):
        shape.connect(follow, before=before, after=after)
    return shape


def viterbi(costs: np.ndarray, table: np.ndarray) -> float:
    best = costs[0]
    for cost in costs[1:]:
        best = (best[:, None] + table).min(axis=0) + cost
    return float(best.min())


@pytest.mark.parametrize(("n", "n_labels"), [(1, 1), (2, 1), (1, 9), (5, 2), (12, 9), (7, 17), (3, 40)])
def test_chains_are_answered_as_viterbi_does(n: int, n_labels: int) -> None:
    rng = np.random.default_rng(n)
    table = rng.normal(size=(n_labels, n_labels))
    shape, costs = chain(n, n_labels, table), rng.normal(size=(13, n, n_labels))
    report = Certifier().report(shape.batch(costs.reshape(13, -1)))
    assert report.solutions.proved.all()
    assert report.solutions.cost == pytest.approx([viterbi(each, table) for each in costs])
    if n > 1:
        assert report.proved_by[Step.ELIMINATE] == 13  # without looking: the table does more than forbid


def test_problems_with_tables_of_their_own_are_not_mixed_up() -> None:
    rng = np.random.default_rng(0)
    shape = chain(4, 3)
    tables = [rng.normal(size=(3, 3)) for _ in range(20)]
    costs = rng.normal(size=(20, 4, 3))
    problems = [
        shape.problem(cost.ravel()).with_tables({"follow": table}) for cost, table in zip(costs, tables, strict=True)
    ]
    answers = Certifier()(problems)
    assert answers.proved.all()
    assert answers.cost == pytest.approx([viterbi(*each) for each in zip(costs, tables, strict=True)])


def test_costs_too_large_to_add_up_are_left_open() -> None:
    answers = Certifier()(chain(3, 2).batch(np.full((9, 6), 1e300)))
    assert not answers.proved.any()
    assert np.isneginf(answers.bound).all()


# Counting rules on trees.


def forest(seed: int) -> Problem:
    """Returns a problem whose tables join at most two variables and form trees, under one to three rules that count."""
    rng = np.random.default_rng(seed)
    schema = Schema()
    kinds = [schema.variable(f"kind{n}", [f"label{i}" for i in range(n)]) for n in (1, 2, 3)]
    chosen, whole = rng.integers(3, size=rng.integers(1, 7)).tolist(), bool(rng.integers(2))

    def numbers(*size: int) -> np.ndarray:
        found = rng.integers(-3, 4, size).astype(float) if whole else rng.normal(size=size)
        found[rng.random(size) < 0.15] = np.inf
        return found

    connections: list[tuple[FactorKind, dict[str, int]]] = []
    for v in range(len(chosen)):
        if v and rng.random() < 0.8:
            u = int(rng.integers(v))
            factor = schema.factor(f"pair{v}", one=kinds[chosen[u]], other=kinds[chosen[v]])
            connections.append((factor.set_table(numbers(chosen[u] + 1, chosen[v] + 1)), {"one": u, "other": v}))
        if rng.random() < 0.2:
            factor = schema.factor(f"own{v}", it=kinds[chosen[v]]).set_table(numbers(chosen[v] + 1))
            connections.append((factor, {"it": v}))
    shape = schema.structure()
    variables = [shape.add(kinds[k]) for k in chosen]
    for factor, scope in connections:
        shape.connect(factor, **{role: variables[v] for role, v in scope.items()})
    for r in range(rng.integers(1, 4)):
        scale = int(rng.choice([1, 1, 1, 7]))
        terms = [
            (variables[v], f"label{i}", scale * int(rng.integers(-2, 4)))
            for v in range(len(variables))
            for i in range(chosen[v] + 1)
            if rng.random() < 0.6
        ]
        least, most = sorted(int(x) for x in rng.integers(-4, 9, 2))
        limits = [{"at_least": least}, {"at_most": most}, {"at_least": least, "at_most": most}, {"at_most": least}]
        if terms:
            shape.rule(f"rule{r}", terms, **limits[int(rng.integers(4))])
    return shape.problem(numbers(shape.n_labels) * SPREADS[0 if whole else seed % 5])


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=150)
def test_counting_on_the_way_through_a_tree_is_exact(seed: int) -> None:
    problem = forest(seed)
    answer, optimum = Certifier()(problem), exact.optimum(problem)
    assert_sound(answer, optimum)
    batch = varied(problem, seed, 8)
    for p, among in enumerate(Certifier()(batch)):
        assert_sound(among, exact.optimum(batch[p]))
    if plan_tally(problem.structure.compiled) is not None and exact.largest_sum(problem) < 1e290:
        assert answer.proved
        assert Certifier(max_sweeps=1, max_nodes=0)(problem).proved  # without sweeping or branching


def test_a_tree_of_many_labels_keeps_to_few() -> None:
    rng, n = np.random.default_rng(0), 60
    schema = Schema()
    node = schema.variable("node", ["no", "yes"])
    under = schema.factor("under", above=node, below=node).allow(above="yes").allow(above="no", below="no")
    shape = schema.structure()
    nodes = [shape.add(node) for _ in range(n)]
    for v in range(1, n):
        shape.connect(under, above=nodes[(v - 1) // 3], below=nodes[v])
    shape.rule("few", [(v, "yes") for v in nodes], at_most=8)
    costs = np.zeros((20, n, 2))
    costs[:, :, 1] = rng.normal(-0.5, 1, size=(20, n))
    report = Certifier(max_nodes=0).report(shape.batch(costs.reshape(20, -1)))
    assert report.proved_by[Step.ELIMINATE] == 20
    chosen = report.solutions.labels.reshape(20, n)
    assert (chosen.sum(axis=1) <= 8).all()
    assert (chosen[:, 1:] <= chosen[:, (np.arange(1, n) - 1) // 3]).all()
    solved = make_solver("highs")
    for p in range(3):
        assert report.solutions.cost[p] == pytest.approx(solved.solve(report.solutions.batch[p]).cost)


@pytest.mark.parametrize(
    ("weights", "limits", "n"),
    [
        ([1] * 9, {"at_most": 2}, 3),
        ([1] * 9, {"at_least": 1}, 2),
        ([1] * 9, {"at_least": 8}, 2),  # counted from the other side: at most one is missing
        ([5] * 9, {"at_most": 14}, 3),  # 14 is as good as 10
        ([1] * 9, {"at_least": 2, "at_most": 4}, 5),
        ([-1] * 9, {"at_most": -8}, 2),
        ([1] * 9, {"at_most": 9}, 1),  # always holds
        ([0.5] * 9, {"at_most": 2}, None),
        ([1] * 9, {"at_least": 10}, None),  # never holds
    ],
)
def test_a_rule_tells_no_more_counts_apart_than_it_needs(
    weights: list[float], limits: dict[str, float], n: int | None
) -> None:
    shape = chain(9, 2)
    shape.rule("count", [(v, "tag1", weight) for v, weight in enumerate(weights)], **limits)
    counter = counter_of(shape.graph, 0)
    assert (None if counter is None else counter.n) == n


def test_what_counts_too_much_is_not_counted() -> None:
    shape = chain(9, 2)
    shape.rule("heavy", [(v, "tag1", 1000 + v) for v in range(9)], at_most=4500)
    assert plan_tally(shape.compiled) is None
    answers = Certifier()(shape.batch(np.random.default_rng(0).normal(size=(9, 18))))
    assert answers.proved.all()

"""Sums over all labellings are those of enumeration, whose costs are exact; alone as in a batch."""

from __future__ import annotations

import math
from itertools import product

import exact
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import entity_relation, random_problem, small_problems

import hasten
from hasten.errors import NoAnswerError, ProblemError, TooWide
from hasten.jit import tiers
from hasten.kernels.exponentials import exponential, logarithm
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.sums import Marginals, distribution, log_partition, marginals, sample
from hasten.sums.drivers import sum_some
from hasten.sums.plan import plan_sums


def chain(n: int, table: np.ndarray) -> hasten.Structure:
    """Returns a chain whose neighbours share a table."""
    schema = hasten.Schema()
    kind = schema.variable("kind", [f"label{i}" for i in range(len(table))])
    follow = schema.factor("follow", left=kind, right=kind)
    follow.set_table(table)
    shape = schema.structure([kind] * n)
    for v in range(n - 1):
        shape.connect(follow, left=v, right=v + 1)
    return shape


def check(problem: Problem, found: Marginals, p: int = 0) -> None:
    """What holds of the marginals of every problem."""
    labels, gaps = exact.distribution(problem)
    shares = found.of(p)
    if not gaps:
        assert found.log_partition[p] == -math.inf
        assert np.isnan(found.entropy[p])
        assert not any(each.any() for each in shares)
        return
    weights = np.array([math.exp(-float(gap)) for gap in gaps])
    total = math.fsum(weights)
    best = float(exact.optimum(problem))
    assert found.log_partition[p] == pytest.approx(math.log(total) - best, rel=1e-12, abs=1e-9)
    for v, each in enumerate(shares):
        wanted = [math.fsum(weights[labels[:, v] == i]) / total for i in range(len(each))]
        assert each == pytest.approx(wanted, abs=1e-9)
    entropy = math.log(total) + math.fsum(w * float(g) for w, g in zip(weights, gaps, strict=True)) / total
    assert found.entropy[p] == pytest.approx(entropy, abs=1e-9)
    for f, factor in enumerate(problem.structure.factors):
        if problem.graph.table_at[f] >= 0:
            wanted = np.zeros(factor.kind.shape)
            np.add.at(wanted, tuple(labels[:, v] for v in factor.scope), weights / total)
            assert found.factor(p, f) == pytest.approx(wanted, abs=1e-9)


def without_wide_rules(problem: Problem) -> bool:
    """Whether the rules of a problem tell few sums apart."""
    try:
        plan_sums(problem.structure.compiled)
    except TooWide:
        return False
    return True


@given(small_problems())
def test_marginals_are_those_of_enumeration(problem: Problem) -> None:
    if without_wide_rules(problem):
        check(problem, marginals(problem, factors=True))
    else:
        assert problem.structure.n_rules


@given(small_problems(max_variables=4, max_labels=3), st.integers(1, 20), st.integers(0, 1000))
def test_a_problem_in_a_batch_has_the_bits_that_it_has_alone(problem: Problem, n: int, seed: int) -> None:
    if not without_wide_rules(problem):
        return
    rng = np.random.default_rng(seed)
    others = [problem.alike(rng.normal(size=(1, problem.structure.n_labels)))[0] for _ in range(n)]
    batch = Batch.of([*others, problem])
    together, alone = marginals(batch), marginals(problem)
    assert together.log_partition[-1] == alone.log_partition[0]
    assert np.array_equal(np.concatenate([[], *together.of(n)]), alone.label)
    assert np.array_equal(together.entropy[-1:], alone.entropy, equal_nan=True)
    assert np.array_equal(marginals(batch, n_jobs=2).label, together.label)


def test_problems_of_many_shapes_and_tables_are_summed_together() -> None:
    rng = np.random.default_rng(0)
    problems = [
        each for _ in range(60) if without_wide_rules(each := random_problem(rng, max_variables=4, max_labels=3))
    ]
    found = marginals(problems, factors=True)
    for p, problem in enumerate(problems):
        check(problem, found, p)
    assert np.array_equal(log_partition(problems), found.log_partition)
    assert found.table == pytest.approx(marginals(problems).table)


@pytest.mark.parametrize("n_labels", [2, 9])  # 9: products with a matrix
def test_the_gradient_is_that_of_finite_differences(n_labels: int) -> None:
    rng = np.random.default_rng(n_labels)
    table = rng.normal(size=(n_labels, n_labels))
    table[0, 1] = np.inf
    shape, costs, step = chain(5, table), rng.normal(size=5 * n_labels), 1e-6
    found = marginals(shape.problem(costs))
    moved = np.concatenate([costs - step * np.eye(costs.size), costs + step * np.eye(costs.size)])
    below, above = log_partition(shape.batch(moved)).reshape(2, -1)
    assert found.label == pytest.approx((below - above) / (2 * step), abs=1e-8)
    for i, j in product(range(n_labels), repeat=2):
        if np.isfinite(table[i, j]):
            both = []
            for sign in (-step, step):
                other = table.copy()
                other[i, j] += sign
                both.append(log_partition(chain(5, other).problem(costs))[0])
            assert found.table[i * n_labels + j] == pytest.approx((both[0] - both[1]) / (2 * step), abs=1e-8)


def test_entropy_is_the_log_partition_and_the_expected_cost() -> None:
    rng = np.random.default_rng(0)
    shape = entity_relation(4)
    problem = shape.problem(rng.normal(size=shape.n_labels))
    found = marginals(problem)
    assert found.entropy[0] == pytest.approx(found.log_partition[0] + found.label @ problem.cost)


@pytest.mark.parametrize("n", [12, 60])
def test_rules_are_counted(n: int) -> None:
    schema = hasten.Schema()
    kind = schema.variable("kind", ["in", "out", "neither"])
    schema.rule("few", at_most=3, kind="in")
    schema.rule("some", at_least=1, kind="out")
    shape = schema.structure([kind] * n)
    wanted = sum(math.comb(n, k) * (2 ** (n - k) - 1) for k in range(4))
    assert log_partition(shape.problem(np.zeros(3 * n)))[0] == pytest.approx(math.log(wanted))
    drawn = sample(shape.problem(np.zeros(3 * n)), 200).reshape(200, n)
    assert (np.count_nonzero(drawn == 0, axis=1) <= 3).all()
    assert (drawn == 1).any(axis=1).all()


def test_sums_at_the_edge_of_a_limit_are_told_apart_or_refused() -> None:
    schema = hasten.Schema()
    kind = schema.variable("kind", ["a", "b", "c"])
    shape = schema.structure([kind] * 4)  # 0.3 - 0.1 - 0.1 + 0.1 is below 0.2, and 0.1 + 0.1 - 0.1 + 0.1 is above
    weights = {"a": 0.1, "b": -0.1, "c": 0.3}
    cells = [(v, label, weight) for v in range(4) for label, weight in weights.items()]
    shape.rule("edge", cells, at_least=0.199999, at_most=0.199999)
    problem = shape.problem(np.zeros(12))
    valid = sum(problem.check(list(labels)).valid for labels in product(range(3), repeat=4))
    assert valid > 0
    with pytest.raises(TooWide, match="edge"):
        log_partition(problem)


def test_prices_of_soft_rules_count_once_for_each_labelling() -> None:
    rng = np.random.default_rng(1)
    for per_unit, low, high in product((False, True), (None, 1.0), (None, 2.0)):
        if low is None and high is None:
            continue
        schema = hasten.Schema()
        kind = schema.variable("kind", ["a", "b", "c"])
        limits = {name: limit for name, limit in (("at_least", low), ("at_most", high)) if limit is not None}
        schema.rule("some a", kind="a", price=0.7, per_unit=per_unit, **limits)
        shape = schema.structure([kind] * 4)
        problem = shape.problem(rng.normal(size=12))
        labels = np.array(list(product(range(3), repeat=4)))
        weights = np.exp([-problem.total(each) for each in labels])
        found = marginals(problem)
        assert found.log_partition[0] == pytest.approx(math.log(weights.sum()))
        wanted = [weights[labels[:, v] == i].sum() / weights.sum() for v, i in product(range(4), range(3))]
        assert found.label == pytest.approx(wanted)
        assert sample(problem, 5).shape == (5, 4)


def test_samples_are_drawn_by_their_probabilities() -> None:
    rng = np.random.default_rng(5)
    shape = chain(3, rng.normal(size=(3, 3)))
    shape.rule("not all", [(v, "label0") for v in range(3)], at_most=2)
    problem, n = shape.problem(rng.normal(size=9)), 20_000
    drawn = sample(problem, n, seed=3)
    labels, gaps = exact.distribution(problem)
    weights = np.array([math.exp(-float(gap)) for gap in gaps])
    seen = (drawn[:, None] == labels).all(axis=2).sum(axis=0)
    wanted = n * weights / weights.sum()
    assert seen.sum() == n
    assert ((seen - wanted) ** 2 / wanted).sum() < 52.0  # of 25 degrees of freedom, once in a thousand
    assert np.array_equal(drawn, sample(problem, n, seed=3))
    assert not np.array_equal(drawn, sample(problem, n, seed=4))


def test_problems_without_a_valid_labelling_have_no_marginals() -> None:
    shape = chain(3, np.zeros((9, 9)))
    never, fine = shape.problem(np.full(27, np.inf)), shape.problem(np.zeros(27))
    found = marginals([fine, never])
    assert found.feasible.tolist() == [True, False]
    assert found.log_partition[0] == pytest.approx(3 * math.log(9))
    assert not found.label[27:].any()
    with pytest.raises(NoAnswerError, match="Problem 1 has no valid labelling"):
        sample([fine, never])
    schema = hasten.Schema()
    kind = schema.variable("kind", ["a", "b"])
    schema.rule("too many", at_least=3, kind="a")
    assert log_partition(schema.structure([kind] * 2).problem(np.zeros(4))).tolist() == [-math.inf]


def test_structures_of_nothing_and_of_one_label_have_one_labelling() -> None:
    schema = hasten.Schema()
    only = schema.variable("only", ["a"])
    assert log_partition(schema.structure().problem([])).tolist() == [0.0]
    found = marginals(schema.structure([only] * 3).problem([1.0, 2.0, 4.0]))
    assert (found.log_partition[0], found.entropy[0], found.label.tolist()) == (-7.0, 0.0, [1.0] * 3)
    assert len(marginals([])) == 0


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e9, 1e300])
@pytest.mark.parametrize("n_labels", [2, 9])
def test_ties_share_alike_whatever_their_size(size: float, n_labels: int) -> None:
    shape = chain(4, np.full((n_labels, n_labels), -size))
    found = marginals(shape.problem(np.full(4 * n_labels, size)))
    assert found.label == pytest.approx(np.full(4 * n_labels, 1 / n_labels), rel=1e-12)
    assert found.entropy[0] == pytest.approx(4 * math.log(n_labels))


@pytest.mark.parametrize("n_labels", [3, 9])
def test_terms_that_products_would_lose_are_not_lost(n_labels: int) -> None:
    table = np.full((n_labels, n_labels), 3000.0)
    np.fill_diagonal(table, np.inf)
    table[0, 1] = 0.0
    costs = np.zeros((3, n_labels))
    costs[0, 1:], costs[2, 2:] = 2000.0, 5000.0
    problem = chain(3, table).problem(costs.ravel())
    check(problem, marginals(problem, factors=True))


def test_costs_whose_sums_overflow_are_refused() -> None:
    shape = chain(2, np.zeros((2, 2)))
    with pytest.raises(ProblemError, match="Problem 1 has costs or table entries above 1e301"):
        marginals(shape.batch([[0.0, 1.0, 2.0, 3.0], [1e305, 0.0, 0.0, 0.0]]))


def test_a_structure_that_is_too_wide_is_refused_before_anything_is_computed() -> None:
    schema = hasten.Schema()
    kind = schema.variable("kind", ["a", "b", "c", "d"])
    both = schema.factor("both", one=kind, other=kind)
    both.set_table(np.zeros((4, 4)) + np.eye(4))
    shape = schema.structure([kind] * 30)
    for one, other in product(range(30), repeat=2):
        if one < other:
            shape.connect(both, one=one, other=other)
    with pytest.raises(TooWide, match=r"joins \d+ variables .* MB a problem.*Fenchel-Young"):
        marginals(shape.problem(np.zeros(120)))
    with pytest.raises(ProblemError, match="were not asked for"):
        marginals(chain(2, np.ones((2, 2))).problem(np.zeros(4))).factor(0, 0)


def test_both_tiers_give_the_same_bits() -> None:
    rng = np.random.default_rng(2)
    for n_labels in (3, 9):
        batch = chain(4, rng.normal(size=(n_labels, n_labels))).batch(rng.normal(size=(9, 4 * n_labels)))
        compiled = marginals(batch)
        with pytest.MonkeyPatch.context() as patch, tiers.interpreted():
            patch.setattr(distribution, "sum_some", sum_some.py_func)
            interpreted = marginals(batch)
        for name in ("log_partition", "entropy", "label", "table"):
            assert np.array_equal(getattr(compiled, name), getattr(interpreted, name))


def test_exponentials_and_logarithms_are_those_of_the_library() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [-(10 ** rng.uniform(-20, 2.84, 7992)), [0.0, -0.0, -708.0, -800.0, -np.inf, -1e300, -1e-300, 1e-17]]
    )
    with np.errstate(all="ignore"):
        found = np.concatenate([exponential(each) for each in x.reshape(-1, 8)])
        assert found == pytest.approx(np.where(x < -708.0, 0.0, np.exp(x)), rel=4e-16, abs=0.0)
        y = 10 ** rng.uniform(-300, 300, 8000)
        found = np.concatenate([logarithm(each) for each in y.reshape(-1, 8)])
        assert found == pytest.approx(np.log(y), rel=4e-16, abs=1e-300)
        near = 1.0 + rng.normal(size=8000) * 10 ** rng.uniform(-16, -1, 8000)
        found = np.concatenate([logarithm(each) for each in near.reshape(-1, 8)])
        assert found == pytest.approx(np.log(near), rel=4e-16, abs=1e-300)

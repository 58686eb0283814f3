"""The searches against their slow twins, and what each of them promises."""

from __future__ import annotations

import math
from dataclasses import fields
from itertools import product
from typing import Any

import naive
import numpy as np
import pytest
import strategies
from hypothesis import assume, given
from hypothesis import strategies as st
from opened import opened
from searching import INF, assert_same, labels_of, switches, weighted_problems, weights_for
from strategies import entity_relation, random_problem, small_problems
from strategies import rich_problems as problems

import hasten
from hasten.errors import NoAnswerError, ProblemError
from hasten.jit.tiers import DRIVERS
from hasten.kernels.layout import Instance
from hasten.kernels.search import loop, nodes
from hasten.kernels.search.nodes import FORCED
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.model.solution import Solutions, Source, Status
from hasten.proof.certifier import Certifier
from hasten.search.beam import BeamSearch, ConstrainedSearch, ReducedSearch, Searcher, greedy


@st.composite
def families(draw: Any, min_size: int = 1, max_size: int = 8) -> tuple[list[Problem], np.ndarray]:
    """Draws problems of one schema, of several shapes, and weights for it."""
    dice = strategies.NumpyDice(np.random.default_rng(draw(st.integers(0, 2**32 - 1))))
    whole = dice.integer(0, 1) == 1
    schema = strategies._schema(dice, 3, True, True, True, whole)
    shapes = [strategies._structure(dice, schema, 4, 4, True) for _ in range(dice.integer(1, 3))]
    drawn = []
    for p in range(dice.integer(min_size, max_size)):
        shape = shapes[dice.integer(0, len(shapes) - 1)]
        rng = np.random.default_rng(dice.seed())
        n = shape.n_labels
        costs = rng.integers(-3, 4, n).astype(float) if whole else rng.normal(size=n)
        costs[rng.random(n) < 0.05] = INF
        drawn.append(shape.problem(costs, id=p))
    weights = np.random.default_rng(dice.seed()).integers(-3, 4, schema.n_weights).astype(float)
    return drawn, weights


# Exactness


@given(st.one_of(problems(), small_problems()), st.booleans(), st.sampled_from([None, 1]))
def test_a_beam_that_never_prunes_is_exact(problem: Problem, look_ahead: bool, seed: int | None) -> None:
    weights = None if seed is None else np.zeros(problem.structure.schema.n_weights)
    found = BeamSearch(width=problem.n_outputs, look_ahead=look_ahead, weights=weights)(problem)
    best = naive.solve(problem)
    assert found.cost == pytest.approx(best.cost)
    assert (found.status is Status.DEAD_END) == (best.labels is None)
    if best.labels is not None:
        assert naive.valid(problem, labels_of(found))


def test_unpruned_beams_are_exact_on_a_thousand_problems() -> None:
    rng = np.random.default_rng(1)
    solved = 0
    for _ in range(1000):
        problem = random_problem(rng, max_labels=3)
        found, best = BeamSearch(width=problem.n_outputs)(problem), naive.solve(problem)
        assert found.cost == pytest.approx(best.cost)
        solved += best.labels is not None
    assert 300 < solved < 1000  # both kinds were tried


@given(
    weighted_problems(),
    st.integers(1, 5),
    st.booleans(),
)
def test_an_enforced_beam_is_valid_or_at_a_dead_end(
    drawn: tuple[Problem, np.ndarray | None], width: int, look_ahead: bool
) -> None:
    problem, weights = drawn
    found = BeamSearch(width=width, weights=weights, look_ahead=look_ahead)(problem)
    if found.status is Status.DEAD_END:
        assert found.values is None
        assert found.cost == INF
        assert not found.valid
    else:
        assert found.status is Status.FOUND
        assert found.valid
        assert naive.valid(problem, labels_of(found))
        assert problem.check(found.labels)
        assert found.cost == pytest.approx(naive.cost(problem, labels_of(found)))


@given(weighted_problems(), st.integers(1, 3), st.sampled_from([0.0, 0.5, 2.0]))
def test_an_enforced_beam_that_skips_costs_keeps_tables_and_rules(
    drawn: tuple[Problem, np.ndarray | None], width: int, theta: float
) -> None:
    # A cost of inf that was never looked at cannot be avoided; the answer is then reported as invalid.
    problem, weights = drawn
    found = BeamSearch(width=width, weights=weights, theta=theta)(problem)
    if found.values is not None:
        assert not naive.forbids(problem, dict(enumerate(labels_of(found))))
        assert found.valid == naive.valid(problem, labels_of(found))
        assert (found.status is Status.FOUND) == found.valid


@given(weighted_problems(), switches())
def test_what_a_search_says_of_its_answer_is_true(
    drawn: tuple[Problem, np.ndarray | None], options: dict[str, Any]
) -> None:
    problem, weights = drawn
    found = BeamSearch(weights=weights, **options)(problem)
    assert found.source is Source.SEARCH
    assert not found.proved
    assert found.bound == -INF
    if found.values is not None:
        assert found.cost == pytest.approx(naive.cost(problem, labels_of(found)))
        assert found.valid == naive.valid(problem, labels_of(found)) == bool(problem.check(found.labels))


# Twins


@given(weighted_problems(), switches())
def test_beam_search_is_its_slow_twin(drawn: tuple[Problem, np.ndarray | None], options: dict[str, Any]) -> None:
    problem, weights = drawn
    found = BeamSearch(weights=weights, **options)(problem)
    twin = naive.beam_search(problem, weights=weights, **options)
    assert labels_of(found) == twin.labels
    assert found.n_costs == len(twin.computed)


def test_beam_search_is_its_slow_twin_for_every_combination_of_switches() -> None:
    rng = np.random.default_rng(2)
    combinations = product((1, 2, 3, 50), (0, 1, 2), (False, True), (False, True), (INF, 0.0, 1.0, 2.5))
    for width, how, enforce, look_ahead, theta in combinations:
        for _ in range(12):
            problem = random_problem(rng, max_variables=4, max_labels=3)
            options = {
                "width": width,
                "weights": weights_for(problem, how, int(rng.integers(2**32))),
                "enforce": enforce,
                "look_ahead": look_ahead,
                "theta": theta,
            }
            found, twin = BeamSearch(**options)(problem), naive.beam_search(problem, **options)
            assert labels_of(found) == twin.labels, options
            assert found.n_costs == len(twin.computed), options


def test_look_ahead_is_its_slow_twin_where_many_tables_meet() -> None:
    rng = np.random.default_rng(10)
    for _ in range(600):
        problem = random_problem(rng, max_variables=4, max_labels=3, max_factors=12, rules=False)
        options = {"width": int(rng.integers(1, 4)), "enforce": bool(rng.integers(2)), "look_ahead": True}
        assert labels_of(BeamSearch(**options)(problem)) == naive.beam_search(problem, **options).labels


@given(problems())
def test_constrained_search_is_its_slow_twin(problem: Problem) -> None:
    assert labels_of(ConstrainedSearch()(problem)) == naive.constrained_search(problem)


def test_the_twins_agree_on_entities_and_relations() -> None:
    rng = np.random.default_rng(3)
    for n_entities in (1, 2, 3):
        shape = entity_relation(n_entities)
        for _ in range(5):
            problem = shape.problem(rng.normal(size=shape.n_labels))
            weights = rng.normal(size=shape.schema.n_weights)
            for options in ({"width": 2}, {"width": 1, "look_ahead": True}, {"width": 2, "theta": 1.0}):
                found = BeamSearch(weights=weights, **options)(problem)
                twin = naive.beam_search(problem, weights=weights, **options)
                assert (labels_of(found), found.n_costs) == (twin.labels, len(twin.computed))
            assert labels_of(ConstrainedSearch()(problem)) == naive.constrained_search(problem)


# The heuristic and look-ahead


@given(weighted_problems(), st.integers(1, 4))
def test_the_heuristic_counts_the_tuples_of_completed_factors(
    drawn: tuple[Problem, np.ndarray | None], width: int
) -> None:
    problem, weights = drawn
    assume(weights is not None)
    for step in naive.beam_search(problem, width=width, weights=weights, enforce=False).steps:
        for node in step.candidates:
            assert node.h == pytest.approx(-weights @ naive.phi(problem, node.labels))


@given(weighted_problems(soft=False, hard=False, rules=False))
def test_an_unpruned_beam_by_heuristic_alone_maximises_it(drawn: tuple[Problem, np.ndarray | None]) -> None:
    problem, weights = drawn
    assume(weights is not None)
    found = BeamSearch(width=problem.n_outputs, weights=weights, theta=0.0)(problem)
    scores = [
        float(weights @ naive.phi(problem, dict(enumerate(labels))))
        for labels in product(*(range(len(kind)) for kind in problem.structure.kinds))
    ]
    assert found.n_costs == 0
    mine = float(weights @ naive.phi(problem, dict(enumerate(labels_of(found)))))
    assert mine == pytest.approx(max(scores))


@given(problems(max_variables=4, max_labels=3), st.integers(1, 4), st.booleans())
def test_look_ahead_never_says_too_much(problem: Problem, width: int, shifted: bool) -> None:
    # Without negative entries `rest` is a bound as it is; else with what uncounted tables may give back.
    tables = naive.tables_of(problem)
    if not shifted:
        assume(all((table >= 0).all() for _, table in tables))
    found = naive.beam_search(problem, width=width, look_ahead=True)
    everything = set(range(problem.n_variables))
    kinds = problem.structure.kinds
    for step in found.steps:
        for node in step.candidates:
            unassigned = sorted(everything - node.labels.keys())
            back = 0.0
            for scope, table in tables:
                if shifted and not node.labels.keys() >= set(scope):
                    back += min(0.0, float(table.min()))
            completions = [
                node.labels | dict(zip(unassigned, labels, strict=True))
                for labels in product(*(range(len(kinds[u])) for u in unassigned))
            ]
            costs = [
                naive.cost(problem, tuple(labels[v] for v in range(len(kinds)))) - node.g
                for labels in completions
                if not naive.forbids(problem, labels)
            ]
            assert node.rest + back <= min(costs, default=INF) + 1e-9


def test_look_ahead_counts_what_a_table_gives_back() -> None:
    schema = Schema()
    kind = schema.variable("kind", ["a", "b"])
    pair = schema.factor("pair", left=kind, right=kind).cost(-5, left="b", right="b")
    shape = schema.structure()
    left, right = shape.add(kind), shape.add(kind)
    shape.connect(pair, left=left, right=right)
    problem = shape.problem([[0.0, 1.0], [1.0, 2.0]])
    assert BeamSearch(look_ahead=True)(problem).names == ["b", "b"]


@given(problems(rules=False, infinite_costs=False, soft=False))
def test_greedy_takes_each_cheapest_label(problem: Problem) -> None:
    found = greedy()(problem)
    assert found.labels.tolist() == [int(problem.costs_of(v).argmin()) for v in range(problem.n_variables)]


# Theorem 2: where the gap in h exceeds the gap in g, ranking by h alone keeps the same nodes


def path_gap(step: naive.Step) -> float:
    return max((node.g for node in step.candidates), default=0) - min((node.g for node in step.candidates), default=0)


@given(weighted_problems(), st.integers(1, 4), st.booleans(), st.sampled_from([1.0, 5.0, 20.0]))
def test_theorem_2_at_each_step(
    drawn: tuple[Problem, np.ndarray | None], width: int, enforce: bool, scale: float
) -> None:
    problem, weights = drawn
    assume(weights is not None)
    for step in naive.beam_search(problem, width=width, weights=scale * weights, enforce=enforce).steps:
        nodes = sorted(step.candidates, key=lambda node: node.h)
        gap = nodes[width].h - nodes[width - 1].h if len(nodes) > width else INF
        if gap > path_gap(step):
            by_heuristic = [node.labels for node in nodes[:width]]
            assert len(by_heuristic) == len(step.beam)
            assert all(node.labels in by_heuristic for node in step.beam)


def test_theorem_2_over_whole_searches() -> None:
    # A theta that no path-cost gap exceeds skips only where the theorem allows it. A beam of one node then
    # goes the same way; a wider one keeps the same nodes, in another order, so that ties may fall
    # differently: there the costs have none.
    rng = np.random.default_rng(4)
    saved = {1: 0, 2: 0, 3: 0}
    for _ in range(1500):
        width = int(rng.integers(1, 4))
        problem = random_problem(rng, max_variables=4, infinite_costs=False, ties=width == 1)
        weights = weights_for(problem, 2, int(rng.integers(2**32))) * 20
        options = {"width": width, "weights": weights, "enforce": bool(rng.integers(2))}
        full = naive.beam_search(problem, **options)
        theta = max([path_gap(step) for step in full.steps], default=0.0) + 1e-9
        lazy = naive.beam_search(problem, **options, theta=theta)
        for one, other in zip(full.steps, lazy.steps, strict=True):
            kept = [node.labels for node in other.beam]
            assert len(kept) == len(one.beam)
            assert all(node.labels in kept for node in one.beam)
        found = BeamSearch(**options, theta=theta)(problem)
        if width == 1:
            assert labels_of(found) == labels_of(BeamSearch(**options)(problem))
        saved[width] += sum(step.skipped and step.gap < INF for step in lazy.steps)
    assert all(saved.values())  # the theorem had something to say


# Lazy costs


class Ledger:
    """A scorer that knows the costs of some problems, and refuses to be asked for the same twice."""

    def __init__(self, problems: list[Problem]) -> None:
        self.costs = dict(enumerate(problems))
        self.asked: list[tuple[int, int]] = []
        self.calls = 0

    def __call__(self, problems: np.ndarray, variables: np.ndarray) -> np.ndarray:
        requests = list(zip(problems.tolist(), variables.tolist(), strict=True))
        assert requests
        assert len(set(requests)) == len(requests)
        assert not set(requests) & set(self.asked)
        self.asked += requests
        self.calls += 1
        return np.concatenate([self.costs[p].costs_of(v) for p, v in requests])

    def lazily(self, p: int) -> Problem:
        """Returns problem `p` without its costs."""
        given = self.costs[p]
        return Problem(given.structure, None, self, given.table, p)


@given(weighted_problems(), switches())
def test_a_lazy_search_computes_what_its_definition_says(
    drawn: tuple[Problem, np.ndarray | None], options: dict[str, Any]
) -> None:
    problem, weights = drawn
    ledger = Ledger([problem])
    found = BeamSearch(weights=weights, **options)(ledger.lazily(0))
    twin = naive.beam_search(problem, weights=weights, **options)
    assert labels_of(found) == twin.labels
    assert {v for _, v in ledger.asked} == twin.computed
    assert found.n_costs == len(ledger.asked)
    if found.values is not None and found.n_costs == problem.n_variables:
        assert found.cost == pytest.approx(naive.cost(problem, twin.labels))
    elif found.values is not None and found.valid:
        assert math.isnan(found.cost)


@given(weighted_problems())
def test_theta_spans_all_costs_and_none(drawn: tuple[Problem, np.ndarray | None]) -> None:
    problem, weights = drawn
    ledger = Ledger([problem])
    BeamSearch(width=2, weights=weights, theta=0.0)(ledger.lazily(0))
    assert ledger.asked == []
    found = BeamSearch(width=2, weights=weights, theta=INF)(ledger.lazily(0))
    assert len(ledger.asked) == found.n_costs == problem.n_variables


@given(families(min_size=0), switches(), st.sampled_from([1, 2]))
def test_a_lazy_batch_is_its_problems_one_by_one(
    drawn: tuple[list[Problem], np.ndarray], options: dict[str, Any], n_jobs: int
) -> None:
    problems, weights = drawn
    search = BeamSearch(weights=weights, **options)
    ledger = Ledger(problems)
    lazy = [ledger.lazily(p) for p in range(len(problems))]
    found = search(lazy, n_jobs=n_jobs)
    assert len(found) == len(problems)
    for p, problem in enumerate(problems):
        twin = naive.beam_search(problem, weights=weights, **options)
        assert labels_of(found[p]) == twin.labels
        assert {v for q, v in ledger.asked if q == p} == twin.computed
        assert found[p].n_costs == len(twin.computed)
        assert_same(found[p], search(Ledger([problem]).lazily(0)))


def test_a_lazy_batch_asks_in_waves() -> None:
    shape = entity_relation(3)
    rng = np.random.default_rng(5)
    problems = [shape.problem(rng.normal(size=shape.n_labels)) for _ in range(50)]
    ledger = Ledger(problems)
    found = BeamSearch(width=1, weights=rng.normal(size=shape.schema.n_weights), theta=1.0)(
        [ledger.lazily(p) for p in range(50)]
    )
    assert found.n_costs.sum() == len(ledger.asked)
    assert 0 < len(ledger.asked) < 50 * shape.n_variables
    assert ledger.calls <= shape.n_variables  # and not once for each problem


def test_a_lazy_answer_keeps_its_problem_lazy() -> None:
    problem = entity_relation(2).problem(np.zeros(20))
    ledger = Ledger([problem])
    found = BeamSearch(theta=0.0)(ledger.lazily(0))
    assert found.problem.lazy
    assert found.problem.check(found.labels)
    assert found.names == ["person"] * 2 + ["Kill", "NoRel"]
    assert ledger.asked == []


# Batches


@given(families(min_size=0), switches(), st.sampled_from([1, 2, 3]))
def test_a_batch_is_its_problems_one_by_one(
    drawn: tuple[list[Problem], np.ndarray], options: dict[str, Any], n_jobs: int
) -> None:
    problems, weights = drawn
    for search in (BeamSearch(weights=weights, **options), BeamSearch(**options), ConstrainedSearch()):
        found = search(problems, n_jobs=n_jobs)
        assert len(found) == len(problems)
        for one, problem in zip(found, problems, strict=True):
            assert_same(one, search(problem))
            assert one.problem.structure.compiled is problem.structure.compiled


@pytest.mark.parametrize("search", [BeamSearch(width=3), BeamSearch(width=2, theta=1.0), ConstrainedSearch()])
def test_two_threads_find_what_one_finds(search: Searcher) -> None:
    rng = np.random.default_rng(6)
    shapes = [entity_relation(n) for n in (0, 1, 2, 4)]
    numbers = rng.integers(4, size=500)
    batch = Batch.build(shapes, numbers, rng.normal(size=sum(shapes[s].n_labels for s in numbers)))
    one, two = search(batch), search(batch, n_jobs=2)
    for name in ("labels", "cost", "valid", "status", "source", "n_costs"):
        assert np.array_equal(getattr(one, name), getattr(two, name))


@pytest.mark.parametrize("search", [BeamSearch(), greedy(), BeamSearch(theta=0.0), ConstrainedSearch()])
def test_a_problem_without_variables_has_the_empty_answer(search: Searcher) -> None:
    found = search(Schema().structure().problem([]))
    assert (found.names, found.cost, found.valid, found.n_costs) == ([], 0.0, True, 0)
    assert found.status is Status.FOUND


def impossible() -> Problem:
    schema = Schema()
    kind = schema.variable("kind", ["a", "b"])
    pair = schema.factor("pair", left=kind, right=kind).forbid()
    shape = schema.structure()
    shape.connect(pair, left=shape.add(kind), right=shape.add(kind))
    return shape.problem(np.zeros(4))


def test_an_infeasible_problem_is_a_dead_end_and_says_so() -> None:
    for search in (
        BeamSearch(width=4),
        BeamSearch(look_ahead=True),
        BeamSearch(theta=0.0),
        ConstrainedSearch(),
    ):
        found = search(impossible())
        assert found.status is Status.DEAD_END
        assert (found.values, found.cost, found.valid, found.gap) == (None, INF, False, INF)
        with pytest.raises(NoAnswerError, match="Widen the beam or use the solver"):
            _ = found.labels
        with pytest.raises(NoAnswerError, match="Every node in the beam broke a constraint"):
            _ = found.names
        assert "no labelling" in repr(found)
    assert greedy()(impossible()).status is Status.INVALID


def test_a_rule_that_nothing_can_meet_is_a_dead_end() -> None:
    schema = Schema()
    schema.variable("kind", ["a"])
    schema.rule("some", at_least=1, kind="a")
    nothing = schema.structure().problem([])
    for search in (BeamSearch(), BeamSearch(theta=0.0), ConstrainedSearch()):
        assert search(nothing).status is Status.DEAD_END
    assert greedy()(nothing).status is Status.INVALID
    assert naive.solve(nothing).labels is None


def test_labels_that_no_tuple_allows_are_never_chosen() -> None:
    schema = Schema()
    kind = schema.variable("kind", ["never", "a", "b"])
    pair = schema.factor("pair", left=kind, right=kind).forbid(left="never").forbid(right="never")
    shape = schema.structure()
    shape.connect(pair, left=shape.add(kind), right=shape.add(kind))
    problem = shape.problem([[-9.0, 0.0, 1.0], [-9.0, 1.0, 0.0]])
    for search in (BeamSearch(look_ahead=True), BeamSearch(width=9), ConstrainedSearch()):
        assert search(problem).names == ["a", "b"]
    # At a dead end, not at the forbidden label: a beam of one without look-ahead takes it too early.
    assert BeamSearch()(problem).status is Status.DEAD_END


def test_a_label_of_infinite_cost_is_never_chosen() -> None:
    schema = Schema()
    kind = schema.variable("kind", ["a", "b"])
    shape = schema.structure()
    shape.add(kind)
    for search in (BeamSearch(), greedy(), ConstrainedSearch()):
        assert search(shape.problem([[INF, 5.0]])).names == ["b"]
    for search in (BeamSearch(), ConstrainedSearch()):
        assert search(shape.problem([[INF, INF]])).status is Status.DEAD_END
    assert greedy()(shape.problem([[INF, INF]])).status is Status.INVALID


def test_a_forbidden_label_that_nobody_looked_at_may_be_chosen() -> None:
    schema = Schema()
    shape_kind = schema.variable("kind", ["a", "b"])
    shape = schema.structure()
    shape.add(shape_kind)
    costs = np.array([INF, 1.0])
    given_costs = BeamSearch(theta=0.0)(shape.problem(costs))
    assert (given_costs.names, given_costs.status) == (["a"], Status.INVALID)
    lazy = BeamSearch(theta=0.0)(shape.problem(lambda problems, variables: costs))
    assert (lazy.names, lazy.status, lazy.n_costs) == (["a"], Status.FOUND, 0)
    assert math.isnan(lazy.cost)


# Misuse


def test_a_misconfigured_search_is_refused() -> None:
    for search in (BeamSearch, ReducedSearch):
        with pytest.raises(ProblemError, match="width of a beam must be at least 1, got 0"):
            search(width=0)
        for wrong in (2.5, 2.0, "2", None, True):
            with pytest.raises(ProblemError, match=f"width of a beam must be a whole number, got {wrong!r}"):
                search(width=wrong)
    with pytest.raises(ProblemError, match="theta must be a number, got '2'"):
        BeamSearch(theta="2")
    for value in (-1.0, math.nan):
        with pytest.raises(ProblemError, match="theta must be at least 0"):
            BeamSearch(theta=value)
    for value in (math.nan, INF):
        with pytest.raises(ProblemError, match="must be finite"):
            BeamSearch(weights=np.array([value]))


def test_a_width_may_be_a_number_of_numpy() -> None:
    problem = random_problem(np.random.default_rng(0))
    for search in (BeamSearch, ReducedSearch):
        assert_same(search(width=np.int32(2))(problem), search(width=2)(problem))


def test_weights_of_another_schema_are_refused() -> None:
    problem = entity_relation(2).problem(np.zeros(20))
    n_weights = problem.structure.schema.n_weights
    with pytest.raises(ProblemError, match=f"Got 3 heuristic weights; the schema has {n_weights}"):
        BeamSearch(weights=np.zeros(3))(problem)


def test_n_jobs_is_at_least_one() -> None:
    problem = entity_relation(2).problem(np.zeros(20))
    for search in (BeamSearch(), BeamSearch(theta=1.0), ConstrainedSearch()):
        for n_jobs in (0, -1):
            with pytest.raises(ProblemError, match="n_jobs must be at least 1"):
                search([problem], n_jobs=n_jobs)


def test_an_error_in_a_thread_is_raised() -> None:
    def scorer(problems: np.ndarray, variables: np.ndarray) -> np.ndarray:
        raise RuntimeError("no model")

    shape = entity_relation(2)
    with pytest.raises(RuntimeError, match="no model"):
        BeamSearch(theta=1.0)([shape.problem(scorer, id=p) for p in range(8)], n_jobs=2)


def test_a_searcher_says_how_it_searches() -> None:
    with pytest.raises(TypeError, match="Define _driver"):
        Searcher()(entity_relation(1).problem(np.zeros(4)))


# Solutions


def test_solutions_are_a_sequence() -> None:
    shape = entity_relation(2)
    rng = np.random.default_rng(7)
    batch = shape.batch(rng.normal(size=(5, shape.n_labels)))
    found = BeamSearch(width=2)(batch)
    assert len(list(found)) == len(found) == 5
    assert_same(found[-1], found[4])
    for cut in (slice(3), slice(-2, None), slice(None, None, -2), slice(9, 12)):
        assert [one.cost for one in found[cut]] == found.cost[cut].tolist()
    with pytest.raises(IndexError, match="There is no problem 5"):
        found[5]
    again = Solutions.of(batch, list(found))
    for name in ("labels", "cost", "bound", "valid", "status", "source", "n_costs"):
        assert np.array_equal(getattr(again, name), getattr(found, name))
    assert not found.proved.any()
    assert found.by(hasten.Source.SEARCH).all()
    assert found.has(hasten.Status.FOUND).all()
    assert repr(found) == "Solutions(5, valid=1.000)"
    assert "cost=" in repr(found[0])
    assert found[0].gap == INF


def test_solutions_gather_dead_ends() -> None:
    problem = impossible()
    found = BeamSearch()([problem, problem])
    again = Solutions.of(found.batch, list(found))
    assert again.labels.tolist() == [-1] * 4
    assert [one.values for one in again] == [None, None]


# One node.


@given(small_problems(), st.data())
def test_a_beam_of_one_takes_the_same_steps_with_and_without_room_for_more(problem: Problem, data: Any) -> None:
    """The short search for width 1 gives the labels, and asks for the costs, of the general one."""
    graph = problem.graph
    theta = data.draw(st.sampled_from([0.0, 0.3, 1.0, FORCED, INF]))
    scale = data.draw(st.sampled_from([0.0, 0.5, 1.0, 3.0]))
    n_weights = problem.structure.schema.n_weights
    weights = np.round(np.random.default_rng(data.draw(st.integers(0, 99))).normal(size=n_weights) * scale, 1)
    options = nodes.Options(1, theta, data.draw(st.booleans()), False)
    n_labels = int(np.diff(graph.first).max(initial=1))
    instance, found = Instance(graph, problem.cost, problem.table), []
    for short in (False, True):
        n = nodes.Sizes(1, problem.n_variables, len(graph.row_low), n_labels)
        floats, ints = np.zeros(nodes.n_floats(n)), np.zeros(nodes.n_ints(n), dtype=np.int64)
        space = nodes.beam_in(floats, ints, n)
        track = space.track
        if not short:  # what is tracked takes the general steps
            track = track._replace(gap=np.zeros(problem.n_variables))
        space = space._replace(track=track)
        opened(loop.begin)(instance, options, nodes.GIVEN, space)
        outcome, _, _ = opened(loop.advance)(instance, weights, options, nodes.GIVEN, space, 1, 0)
        done = outcome == loop.DONE
        found.append((done, space.nodes.labels[0].tolist() if done else None, space.known.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (np.zeros((2, 2)), r"one row of numbers, got the shape \(2, 2\)"),
        (3.0, r"one row of numbers, got the shape \(\)"),
        (["a", "b"], "must be numbers in one row"),
        ([1j], "must be numbers in one row"),
        (object(), "must be numbers in one row"),
        ([[1], [1, 2]], "must be numbers in one row"),
        ([np.nan], "must be finite"),
        ([10**400], "must be numbers in one row"),
    ],
)
def test_weights_that_are_no_row_of_numbers_are_refused(weights, words):
    with pytest.raises(ProblemError, match=f"The weights of a heuristic .*{words}"):
        BeamSearch(weights=weights)


def test_weights_may_be_any_numbers_in_a_row():
    rng = np.random.default_rng(0)
    problem = random_problem(rng)
    n = problem.structure.schema.n_weights
    weights = rng.integers(-3, 3, size=n)
    found = BeamSearch(2, weights.astype(np.float64))(problem)
    for each in (weights, weights.tolist(), weights.astype(np.float32), np.repeat(weights, 2)[::2].astype(np.float64)):
        assert BeamSearch(2, each)(problem).cost == found.cost


def test_a_beam_has_a_largest_width():
    with pytest.raises(ProblemError, match=r"width of a beam must be at most 65,536, got 65537"):
        BeamSearch(65_537)


def test_arrays_that_are_strided_or_cannot_be_written_compile_nothing_new() -> None:
    shape = entity_relation(2)
    costs = np.random.default_rng(0).normal(size=(4, shape.n_labels))
    weights = np.zeros(shape.schema.n_weights)
    batch = shape.batch(costs)
    searches = (BeamSearch(2, weights), Certifier())
    plain = [search(batch).labels.tolist() for search in searches]
    n_versions = [len(each.overloads) for each in DRIVERS]

    frozen = Batch(*(getattr(batch, field.name) for field in fields(batch)))
    frozen.cost.flags.writeable = frozen.table.flags.writeable = weights.flags.writeable = False
    strided = np.repeat(np.asfortranarray(costs), 2, axis=1)[:, ::2]
    try:
        for odd in (frozen, shape.batch(strided), [shape.problem(row) for row in strided]):
            assert [search(odd).labels.tolist() for search in (BeamSearch(2, weights), Certifier())] == plain
        assert Certifier()(frozen[0]).labels.tolist() == plain[1][: shape.n_variables]
    finally:
        frozen.cost.flags.writeable = frozen.table.flags.writeable = True
    assert [len(each.overloads) for each in DRIVERS] == n_versions

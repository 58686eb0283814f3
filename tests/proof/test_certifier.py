"""The bound is never above the optimum, whatever the input, and what is called proved is the optimum.

Both are checked in exact arithmetic, against enumeration: what rounding does is part of the claim.
"""

from __future__ import annotations

import math
from itertools import pairwise, product
from typing import Any

import exact
import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opened import OpenedModule
from proofs import assert_sound, begin
from strategies import entity_relation, random_problem, small_problems

from hasten.errors import NoAnswerError, ProblemError
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.model.solution import Source, Status
from hasten.proof.certifier import Certifier
from hasten.proof.report import Step
from hasten.proof.sweep import dual, multipliers, sweeping
from hasten.search.beam import BeamSearch
from hasten.solvers import make_solver

d, m, s = OpenedModule(dual), OpenedModule(multipliers), OpenedModule(sweeping)
INF = math.inf
NONE = np.zeros(0)
MAGNITUDES = ("drawn", "mixed", "cancelling", "near", "denormal", "same", "tiny", "large")


def rescaled(problem: Problem, magnitude: str, seed: int) -> Problem:
    """Returns a problem with other finite costs and table entries, each table its own."""
    rng = np.random.default_rng(seed)

    def draw(old: np.ndarray) -> np.ndarray:
        new, finite = old.copy(), np.isfinite(old)
        n = int(finite.sum())
        if magnitude == "mixed":
            new[finite] *= 10.0 ** rng.uniform(-9, 12, n)
        elif magnitude == "cancelling":
            new[finite] = rng.choice([1e12, -1e12, 1e12 + 0.5, -1e12 - 0.25, 1.0, -1.0, 1e-9, 0.0], n)
        elif magnitude == "near":
            new[finite] = 1000 * rng.choice([-1.0, 1.0], n) + rng.normal(size=n) * 1e-4
        elif magnitude == "denormal":
            new[finite] = rng.integers(-4, 5, n) * 5e-324
        elif magnitude == "same":
            new[finite] = 1.25
        elif magnitude == "tiny":
            new[finite] *= 1e-300
        elif magnitude == "large":
            new[finite] *= 1e290
        return new

    if magnitude == "drawn":
        return problem
    tables = {f: draw(table) for f, table in exact.tables_by_factor(problem)}
    return problem.structure.problem(draw(problem.cost), tables=tables)


@st.composite
def certifiers(draw: Any) -> Certifier:
    """Draws any settings."""
    join = draw(st.sampled_from([None, 0, 16, 1024]))
    sweeps, nodes = draw(st.sampled_from([1, 3, 100])), draw(st.sampled_from([0, 1, 5, 20_000]))
    return Certifier(join, sweeps, nodes)


@st.composite
def cases(draw: Any) -> tuple[Problem, Certifier]:
    problem = draw(small_problems())
    problem = rescaled(problem, draw(st.sampled_from(MAGNITUDES)), draw(st.integers(0, 99)))
    return problem, draw(certifiers())


@given(st.data())
def test_whatever_the_settings_nothing_false_is_claimed(data: st.DataObject) -> None:
    problem, certifier = data.draw(cases())
    assert_sound(certifier(problem), exact.optimum(problem))


@pytest.mark.parametrize("magnitude", MAGNITUDES)
def test_nothing_false_is_claimed_on_hundreds_of_problems(magnitude: str) -> None:
    statuses = set()
    for seed in range(300):
        rng = np.random.default_rng(seed)
        problem = rescaled(random_problem(rng), magnitude, seed)
        optimum = exact.optimum(problem)
        for join in (0, 16, 1024):
            sweeps, nodes = int(rng.choice([1, 3, 100])), int(rng.choice([0, 1, 5, 20_000]))
            found = Certifier(join, sweeps, nodes)(problem)
            assert_sound(found, optimum)
            statuses.add(found.status)
    assert {Status.PROVED, Status.INFEASIBLE, Status.OPEN} <= statuses


@pytest.mark.parametrize("magnitude", ["drawn", "near", "denormal", "same", "tiny"])
def test_with_nodes_to_spare_everything_small_is_proved(magnitude: str) -> None:
    for seed in range(500):
        rng = np.random.default_rng(1000 + seed)
        problem = rescaled(random_problem(rng), magnitude, seed)
        for join in (0, 1024):
            found = Certifier(join, int(rng.choice([1, 3, 100])))(problem)
            assert found.proved
            assert_sound(found, exact.optimum(problem))


def test_costs_that_cancel_between_what_is_eliminated_and_what_is_left_are_proved() -> None:
    # 16 sums take the star away at a cost of -5000; the triangle that is left costs +5000 and a bit.
    rng = np.random.default_rng(5)
    schema = Schema()
    wide, pair = schema.variable("wide", list("abcde")), schema.variable("pair", list("ab"))
    between = schema.factor("between", left=wide, right=wide)
    for _ in range(20):
        shape = schema.structure()
        nodes = [shape.add(wide) for _ in range(3)]
        shape.add(pair)
        for left, right in ((0, 1), (1, 2), (0, 2)):
            shape.connect(between, left=nodes[left], right=nodes[right])
        costs = np.concatenate([5000 + rng.normal(size=5), rng.normal(size=10), [-5000, -4000.0]])
        tables = {f: rng.normal(size=(5, 5)) for f in range(3)}
        problem = shape.problem(costs, tables=tables)
        found = Certifier(max_join=16)(problem)
        assert found.proved
        assert_sound(found, exact.optimum(problem))


def test_costs_near_the_largest_float_are_never_called_infeasible() -> None:
    for seed in range(200):
        rng = np.random.default_rng(seed)
        drawn = random_problem(rng)
        cost = np.where(np.isfinite(drawn.cost), rng.choice([1e308, -1e308, 5e307, 0.0, 1.0], drawn.cost.size), INF)
        tables = {
            f: np.where(np.isfinite(table), rng.choice([1e308, -1e308, 1.0], table.shape), INF)
            for f, table in exact.tables_by_factor(drawn)
        }
        problem = drawn.structure.problem(cost, tables=tables)
        optimum = exact.optimum(problem)
        for join in (0, 16, 1024):
            found = Certifier(join, 3, 100)(problem)
            assert not math.isnan(found.bound)
            assert found.bound == -INF or exact.at_most(found.bound, optimum)
            assert found.status is not Status.INFEASIBLE or optimum == INF
            if found.values is not None:
                assert naive.valid(problem, tuple(found.labels.tolist()))


def test_rows_with_weights_of_any_size_prove_nothing_false() -> None:
    for seed in range(400):
        rng = np.random.default_rng(seed)
        schema = Schema()
        kinds = [
            schema.variable(f"kind{v}", [f"label{i}" for i in range(rng.integers(1, 4))])
            for v in range(rng.integers(1, 6))
        ]
        shape = schema.structure()
        for kind in kinds:
            shape.add(kind)
        for r in range(rng.integers(1, 4)):
            terms = [(v, label, row_weight(rng, seed % 4)) for v, kind in enumerate(kinds) for label in kind.labels]
            labels = [int(rng.integers(len(kind))) for kind in kinds]
            value = math.fsum(w for v, label, w in terms if kinds[v].labels.index(label) == labels[v])
            limit = ("exactly", "at_most", "at_least")[rng.integers(3)]
            shape.rule(f"rule{r}", terms, **{limit: value})
        problem = shape.problem(rng.normal(size=shape.n_labels) * 3)
        optimum = exact.optimum(problem)
        for join, sweeps, nodes in ((0, 1, 0), (0, 100, 20_000), (16, 3, 5), (1024, 100, 20_000)):
            found = Certifier(join, sweeps, nodes)(problem)
            assert_sound(found, optimum)
            assert found.proved or nodes < 20_000


def test_a_row_with_weights_of_billions_is_not_refused_for_what_rounding_does() -> None:
    schema = Schema()
    item = schema.variable("item", ["no", "yes"])
    shape = schema.structure()
    for _ in range(3):
        shape.add(item)
    weights = (9339591392.564718, -4465535066.533715, 8499815985.363735)
    shape.rule("balance", [(v, "yes", weight) for v, weight in enumerate(weights)], at_least=0.0)
    problem = shape.problem(
        [
            [0.013532098827623035, 0.8459482692564375],
            [0.5902570139085652, 0.15834876966755038],
            [-0.7064921123744435, 0.23302731277873548],
        ]
    )
    assert exact.optimum(problem) == exact.total(problem, (0, 0, 0))
    for certifier in (Certifier(), Certifier(0), Certifier(0, 1, 20_000), Certifier(16, 3)):
        found = certifier(problem)
        assert found.proved
        assert found.names == ["no", "no", "no"]
        assert found.cost == pytest.approx(-0.1027, abs=1e-4)


def test_a_budget_that_is_exceeded_by_two_is_exceeded() -> None:
    schema = Schema()
    item = schema.variable("item", ["left", "taken"])
    schema.rule("budget", at_most=5_000_000, item={"taken": 2_500_001})
    shape = schema.structure()
    for _ in range(2):
        shape.add(item)
    problem = shape.problem([[0.0, -1.0], [0.0, -2.0]])
    assert not problem.check([1, 1]).valid
    for certifier in (Certifier(), Certifier(0), Certifier(0, 1, 20_000), Certifier(16, 3)):
        found = certifier(problem)
        assert found.proved
        assert found.names == ["left", "taken"]


def row_weight(rng: np.random.Generator, how: int) -> float:
    if how == 0:
        return float(rng.normal() * 10.0 ** rng.uniform(-9, 9))
    choices = ([0.1, 0.2, 0.3, -0.1, 1 / 3, -2 / 3], [1e9, -1e9, 1.0, -1.0, 0.5], [1e6, -1e6, 0.25, 1.0])
    return float(rng.choice(choices[how - 1]))


# What has no variables, no labels left, or no choice.


@pytest.mark.parametrize("certifier", [Certifier(), Certifier(0, 1, 0), Certifier(16, 3, 5)], ids=repr)
def test_without_variables_the_empty_labelling_is_proved_unless_a_row_forbids_it(
    certifier: Certifier,
) -> None:
    empty = Schema().structure().problem(np.zeros(0))
    found = certifier(empty)
    assert (found.status, found.cost, found.labels.tolist()) == (Status.PROVED, 0.0, [])
    assert found.bound <= 0.0
    schema = Schema()
    kind = schema.variable("kind", ["a"])
    schema.rule("some", at_least=1, **{kind.name: {"a": 1.0}})
    found = certifier(schema.structure().problem(np.zeros(0)))
    assert (found.status, found.bound, found.values) == (Status.INFEASIBLE, INF, None)
    assert found.proved
    with pytest.raises(NoAnswerError, match="No labelling"):
        _ = found.labels


@pytest.mark.parametrize("join", [0, 16, 1024])
def test_one_label_each_leaves_no_choice(join: int) -> None:
    schema = Schema()
    only = schema.variable("only", ["a"])
    pair = schema.factor("pair", left=only, right=only).set_table(np.array([[2.0]]))
    shape = schema.structure()
    for _ in range(4):
        shape.add(only)
    for v in range(3):
        shape.connect(pair, left=v, right=v + 1)
    shape.rule("all", [(v, "a") for v in range(4)], exactly=4)
    found = Certifier(join)(shape.problem([[1.0], [2.0], [3.0], [4.0]]))
    assert (found.status, found.cost) == (Status.PROVED, 16.0)
    forbidden = Certifier(join)(shape.problem([[1.0], [2.0], [INF], [4.0]]))
    assert (forbidden.status, forbidden.bound) == (Status.INFEASIBLE, INF)


def test_settings_that_make_no_sense_say_so() -> None:
    shape = entity_relation(2)
    for wrong in ({"max_join": -1}, {"max_sweeps": 0}, {"max_nodes": -1}):
        with pytest.raises(ProblemError, match="must be at least"):
            Certifier(**wrong)
    batch = shape.batch(np.zeros((2, shape.n_labels)))
    with pytest.raises(ProblemError, match="1 answer for 2 problems"):
        Certifier()(batch, BeamSearch()(batch.select([0])))


# The parts: messages, multipliers, decoding.


def value_of(problem: Problem, dual: d.Dual) -> Any:
    return exact.dual_value(problem, dual.message, dual.multiplier, dual.belief < INF)


def labellings(problem: Problem) -> list[tuple[int, ...]]:
    return list(product(*(range(len(kind)) for kind in problem.structure.kinds)))


@st.composite
def started(draw: Any, **family: Any) -> tuple[Problem, d.Dual]:
    """Draws a problem and messages to start from: none, or of the size of the costs."""
    problem = draw(small_problems(max_variables=4, max_labels=3, **family))
    size = draw(st.sampled_from([0.0, 1.0, 10.0]))
    return problem, begin(problem, size, draw(st.integers(0, 99)))


@given(started())
def test_messages_move_costs_but_never_change_them(drawn: tuple[Problem, d.Dual]) -> None:
    problem, dual = drawn
    graph, tables = problem.graph, exact.tables_by_factor(problem)
    for f, _ in tables:
        left = d.update_factor(graph, problem.table, f, dual)
        for labels in labellings(problem):
            belief = [dual.belief[graph.first[v] + i] for v, i in enumerate(labels)]
            cost = naive.cost(problem, labels)
            if INF in belief:  # a label that left the problem is in no labelling that tables allow
                assert cost == INF or not left
            elif cost < INF:
                moved = math.fsum(belief)
                for g, table in tables:
                    scope = problem.structure.factors[g].scope
                    moved += table[tuple(labels[v] for v in scope)]
                    for slot, v in enumerate(scope):
                        at = graph.message_at[graph.scope_first[g] + slot]
                        moved -= dual.message[at + labels[v]]
                assert moved == pytest.approx(cost, abs=1e-9)
        if not left:
            assert all(naive.cost(problem, labels) == INF for labels in labellings(problem))
            break


@given(started())
def test_no_update_lowers_the_bound(drawn: tuple[Problem, d.Dual]) -> None:
    problem, dual = drawn
    optimum, value = exact.optimum(problem), value_of(problem, dual)
    slip = 1e-9 * max(1.0, exact.largest_sum(problem))
    assert value <= optimum
    for forward in (True, False, True):
        factors = [f for f, _ in exact.tables_by_factor(problem)]
        for f in factors if forward else reversed(factors):
            if not d.update_factor(problem.graph, problem.table, f, dual):
                assert optimum == INF
                return
            before, value = value, value_of(problem, dual)
            assert value == INF or before - slip - abs(value) / 10**9 <= value
            assert value <= optimum
        for r in range(len(problem.graph.row_low)):
            for v in range(problem.n_variables):
                m.note(problem.graph, v, dual.belief, dual.smallest)
            m.update_row(problem.graph, r, dual.belief, dual.multiplier, dual.smallest)
            before, value = value, value_of(problem, dual)
            # The multiplier of a row that cannot hold grows without end, and rounding with it.
            assert value == INF or before - slip - abs(value) / 10**9 <= value
            assert value <= optimum


@given(started(), st.integers(1, 4))
def test_the_safe_bound_is_below_the_exact_one_by_rounding_alone(drawn: tuple[Problem, d.Dual], n_sweeps: int) -> None:
    problem, dual = drawn
    for n in range(n_sweeps):
        if not d.sweep(problem.graph, problem.table, n % 2 == 0, dual):
            assert exact.optimum(problem) == INF
            return
        safe = d.safe_bound(problem.graph, problem.cost, problem.table, dual)
        value = value_of(problem, dual)
        assert exact.at_most(safe, value)
        if value < INF and not naive.rows_of(problem):
            assert value - safe <= 1e-11 * max(1.0, exact.largest_sum(problem))
            quick = d.quick_bound(problem.graph, dual)
            assert quick <= value + 1e-9
            if np.array_equal(dual.belief < INF, problem.cost < INF):
                assert quick == pytest.approx(float(value), abs=1e-9)


@given(started(), st.integers(0, 3))
def test_what_is_decoded_is_valid(drawn: tuple[Problem, d.Dual], n_sweeps: int) -> None:
    problem, dual = drawn
    for n in range(n_sweeps):
        if not d.sweep(problem.graph, problem.table, n % 2 == 0, dual):
            return
    labels = np.full(problem.n_variables, -1)
    if problem.n_variables and s.decode(problem.graph, problem.table, dual, labels):
        assert naive.valid(problem, tuple(labels.tolist()))


@given(st.integers(0, 2**32 - 1))
def test_a_multiplier_never_has_the_wrong_sign(seed: int) -> None:
    problem = random_problem(np.random.default_rng(seed))
    dual = begin(problem)
    for n in range(4):
        if not d.sweep(problem.graph, problem.table, n % 2 == 0, dual):
            return
        for u, low, high in zip(dual.multiplier, problem.graph.row_low, problem.graph.row_high, strict=True):
            assert u <= 0 or high < INF
            assert u >= 0 or low > -INF


# Looking before searching.


@given(cases())
def test_where_the_cheapest_labels_fit_there_is_nothing_to_search(case: tuple[Problem, Certifier]) -> None:
    """With tables that only forbid and an answer at every variable's cheapest label, nothing is swept."""
    problem, certifier = case
    report = certifier.report(problem)
    found = report.solutions[0]
    soft = any(np.where(table < INF, table, 0).any() for _, table in exact.tables_by_factor(problem))
    if soft or found.status is not Status.PROVED:  # costs may be so large that rounding leaves nothing to prove
        return
    first = problem.graph.first
    cheapest = [problem.cost[first[v] : first[v + 1]].argmin() for v in range(problem.n_variables)]
    if naive.valid(problem, tuple(cheapest)):
        assert (report.n_sweeps.sum(), report.n_nodes.sum()) == (0, 0)
        rounding = 1e-14 * exact.largest_sum(problem)
        assert abs(found.cost - exact.total(problem, tuple(cheapest))) <= rounding


@pytest.mark.parametrize(("table", "swept"), [([[1.0, 2.0], [3.0, -4.0]], True), ([[-4.0, 2.0], [3.0, 1.0]], False)])
def test_a_soft_table_is_looked_at_too(table: list[list[float]], swept: bool) -> None:
    """The cheapest labels are proved at once only where they are also the table's cheapest entry."""
    schema = Schema()
    kind = schema.variable("kind", ["a", "b"])
    pair = schema.factor("pair", x=kind, y=kind).set_table(np.array(table))
    shape = schema.structure()
    shape.connect(pair, x=shape.add(kind), y=shape.add(kind))
    report = Certifier(max_join=0).report(shape.problem(np.array([0.0, 1.0, 0.0, 1.0])))
    assert report.solutions[0].proved
    assert (report.n_sweeps[0] > 0) == swept


@pytest.mark.parametrize("limit", [1, 2])
def test_a_row_is_looked_at_too(limit: int) -> None:
    """Both variables want the same label: that is proved at once only where the rule lets them."""
    schema = Schema()
    kind = schema.variable("kind", ["a", "b"])
    shape = schema.structure()
    both = [shape.add(kind), shape.add(kind)]
    shape.rule("few", [(v, "a") for v in both], at_most=limit)
    report = Certifier(max_join=0).report(shape.problem(np.array([0.0, 1.0, 0.0, 3.0])))  # it is a cut otherwise
    assert report.solutions[0].cost == (1.0 if limit == 1 else 0.0)
    assert (report.n_sweeps[0] + report.n_nodes[0] == 0) == (limit == 2)


# Batches.


def mixed(seed: int, n: int = 60) -> list[Problem]:
    rng = np.random.default_rng(seed)
    shape = entity_relation(3)
    problems = [random_problem(rng) for _ in range(n)]
    problems += [shape.problem(rng.normal(size=shape.n_labels)) for _ in range(n // 3)]
    return [problems[p] for p in rng.permutation(len(problems))]


def same(one: Any, other: Any) -> None:
    for name in ("labels", "cost", "bound", "valid", "status", "source", "n_costs"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


@pytest.mark.parametrize("certifier", [Certifier(), Certifier(0, 3, 5), Certifier(16, 1, 0)], ids=repr)
def test_a_batch_is_answered_as_its_problems_one_by_one(certifier: Certifier) -> None:
    problems = mixed(4)
    together, parallel = certifier(problems), certifier(problems, n_jobs=2)
    same(together, parallel)
    found = BeamSearch()(problems)
    given_answers = certifier(problems, found)
    for p, problem in enumerate(problems):
        for alone, among in (
            (certifier(problem), together[p]),
            (certifier(problem, found[p]), given_answers[p]),
        ):
            assert (alone.status, alone.source, alone.valid) == (among.status, among.source, among.valid)
            assert (alone.cost, alone.bound) == (among.cost, among.bound)
            assert (alone.values is None) == (among.values is None)
            assert alone.values is None or np.array_equal(alone.labels, among.labels)


def test_lazy_costs_are_computed_and_certified() -> None:
    rng = np.random.default_rng(6)
    shape = entity_relation(3)
    costs = rng.normal(size=(8, shape.n_labels))
    first = shape.graph.first

    def score(problems: np.ndarray, variables: np.ndarray) -> np.ndarray:
        return np.concatenate([costs[p, first[v] : first[v + 1]] for p, v in zip(problems, variables, strict=True)])

    lazy = Batch.build([shape], np.zeros(8, dtype=np.int64), score)
    found, expected = Certifier()(lazy), Certifier()(shape.batch(costs))
    same(found, expected)
    assert found.proved.all()
    single = Certifier()(shape.problem(score, id=3))
    assert (single.cost, single.proved) == (expected[3].cost, True)


# What a search found.


def test_an_optimum_that_was_found_is_kept_and_anything_else_improved() -> None:
    kept = improved = 0
    for seed in range(400):
        problem = random_problem(np.random.default_rng(seed), ties=False)
        optimum = exact.optimum(problem)
        found = BeamSearch(width=1 + seed % 3)(problem)
        for certifier in (Certifier(), Certifier(0, 1, 20_000), Certifier(16, 3)):
            answer = certifier(problem, found)
            assert_sound(answer, optimum)
            assert answer.proved
            if found.values is not None and found.cost - optimum <= 1e-12 * max(1.0, abs(found.cost)):
                assert answer.source is Source.SEARCH
                assert np.array_equal(answer.labels, found.labels)
                kept += 1
            elif answer.values is not None:
                assert answer.source in (Source.BOUND, Source.BRANCH)
                assert answer.cost < found.cost
                improved += 1
    assert kept > 50
    assert improved > 50


def test_an_answer_that_was_found_is_never_made_worse() -> None:
    for seed in range(300):
        problem = random_problem(np.random.default_rng(seed))
        found = BeamSearch(width=2)(problem)
        for certifier in (Certifier(0, 1, 0), Certifier(0, 1, 1), Certifier(16, 1, 3)):
            answer = certifier(problem, found)
            assert_sound(answer, exact.optimum(problem))
            if found.values is not None:
                assert answer.cost <= found.cost


def test_an_invalid_answer_counts_for_nothing() -> None:
    shape = entity_relation(3)
    rng = np.random.default_rng(7)
    batch = shape.batch(rng.normal(size=(40, shape.n_labels)))
    found = BeamSearch(enforce=False)(batch)
    assert not found.valid.all()
    answers = Certifier()(batch, found)
    assert answers.valid.all()
    assert answers.proved.all()


# Scale.


@pytest.mark.parametrize("scale", [1e-3, 1e-7, 1e-12, 1e-200])
def test_tiny_costs_have_the_optima_of_ordinary_ones(scale: float) -> None:
    """What is proved is so relative to the size of the costs: at any scale the same labels."""
    shape, rng = entity_relation(5), np.random.default_rng(0)
    costs = rng.normal(size=(40, shape.n_labels))
    ordinary, tiny = Certifier()(shape.batch(costs)), Certifier()(shape.batch(costs * scale))
    assert tiny.proved.all()
    assert np.array_equal(ordinary.labels, tiny.labels)


def test_answers_to_other_problems_are_not_believed() -> None:
    shape, rng = entity_relation(3), np.random.default_rng(0)
    problems, others = (shape.batch(rng.normal(size=(20, shape.n_labels))) for _ in range(2))
    elsewhere = Certifier()(others)
    elsewhere.cost[:] -= 100.0
    assert Certifier()(problems, elsewhere).cost == pytest.approx(Certifier()(problems).cost)
    elsewhere.labels[:] = 77
    assert Certifier()(problems, elsewhere).cost == pytest.approx(Certifier()(problems).cost)
    with pytest.raises(ProblemError, match="Give the answers to these problems"):
        Certifier()(entity_relation(2).batch(rng.normal(size=(20, 20))), elsewhere)


def test_changing_an_answer_changes_no_other_problem() -> None:
    shape = entity_relation(2)
    one, other = (shape.problem(np.zeros(shape.n_labels)) for _ in range(2))
    Certifier()(one.batch).n_costs[0] = 1
    assert Certifier()(other).n_costs == other.n_variables


def test_a_variable_may_have_many_neighbours() -> None:
    """More than NumPy's arrays have dimensions: with one label each they do not make a join larger."""
    schema = Schema()
    two, one = schema.variable("two", ["a", "b"]), schema.variable("one", ["o"])
    pair = schema.factor("pair", x=two, y=one).set_table(np.array([[2.0], [0.0]]))
    shape = schema.structure()
    hub = shape.add(two)
    for _ in range(70):
        shape.connect(pair, x=hub, y=shape.add(one))
    assert Certifier()(shape.problem(np.array([0.0, 1.0] + [0.0] * 70))).cost == 1.0


@given(small_problems(max_factors=3), st.sampled_from(MAGNITUDES), st.integers(0, 99))
def test_rules_that_do_not_bind_change_nothing(problem: Problem, magnitude: str, seed: int) -> None:
    problem = rescaled(problem, magnitude, seed)
    alone, (together, _) = Certifier()(problem), Certifier()([problem, problem])
    assert_sound(alone, exact.optimum(problem))
    assert (alone.status, alone.cost, alone.bound) == (together.status, together.cost, together.bound)
    assert alone.values is None or np.array_equal(alone.values, together.values)


def test_a_chain_whose_rules_do_not_bind_is_proved_by_eliminating() -> None:
    rng = np.random.default_rng(0)
    schema = Schema()
    tag = schema.variable("tag", ["noun", "verb", "other"])
    follow = schema.factor("follow", before=tag, after=tag).set_table(rng.normal(size=(3, 3)))
    shape = schema.structure()
    words = [shape.add(tag) for _ in range(12)]
    for before, after in pairwise(words):
        shape.connect(follow, before=before, after=after)
    shape.rule("a verb", [(word, "verb") for word in words], at_least=1)
    shape.rule("few nouns", [(word, "noun") for word in words], at_most=8)
    batch = shape.batch(rng.normal(size=(50, 36)))
    report = Certifier().report(batch)
    strict = Certifier(max_join=1024).report(batch)
    assert report.solutions.proved.all()
    assert np.array_equal(report.solutions.labels, strict.solutions.labels)
    assert report.proved_by[Step.ELIMINATE] > 40
    assert strict.proved_by[Step.ELIMINATE] == 0


def test_what_is_not_the_answer_to_a_problem_is_refused_by_name() -> None:
    schema = Schema()
    switch = schema.variable("switch", ["off", "on"])
    one, two = schema.structure(), schema.structure()
    one.add(switch)
    two.add(switch)
    two.add(switch)
    problem, batch = two.problem(np.zeros(4)), two.batch(np.zeros((2, 4)))
    with pytest.raises(ProblemError, match="Answer 0 has 1 label, its problem 2 variables"):
        Certifier()(problem, Certifier()(one.problem(np.zeros(2))))
    with pytest.raises(ProblemError, match="not list"):
        Certifier()(batch, [[0, 0], [0, 1]])
    with pytest.raises(ProblemError, match="n_jobs must be a whole number, got '2'"):
        Certifier()(batch, n_jobs="2")
    for solver in ("highs", "auto", "brute"):
        with pytest.raises(ProblemError, match="Expected one problem, got Batch"):
            make_solver(solver).solve(batch)

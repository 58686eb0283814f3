"""Branch and bound ends with an optimum, or says that it did not end; and agrees with every solver."""

from __future__ import annotations

import math

import exact
import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opened import OpenedModule, opened
from proofs import assert_sound, begin
from scratch import tree_for
from strategies import entity_relation, random_problem, small_problems

from hasten.kernels.layout import Instance
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.model.solution import Source, Status
from hasten.model.structure import Structure
from hasten.proof import outcome as terms
from hasten.proof.branch import dive as split
from hasten.proof.branch.space import MOST_NUMBERS, Space, n_levels
from hasten.proof.certifier import Certifier
from hasten.proof.sweep import dual
from hasten.proof.sweep.sweeping import Known
from hasten.search.beam import BeamSearch
from hasten.solvers import make_solver, solve_all

b, d = OpenedModule(split), OpenedModule(dual)
cheapest = opened(terms.cheapest)
INF = math.inf
PACKAGES = {"gurobi": "gurobipy", "toulbar2": "pytoulbar2"}


def run_branch(
    problem: Problem,
    root_sweeps: int,
    node_sweeps: int,
    dive_nodes: int,
    max_nodes: int,
    given_cost: float = INF,
    levels: int | None = None,
) -> tuple[int, float, int, np.ndarray]:
    """Branches on a problem as it is declared; returns the outcome, the cost, the nodes and the labels."""
    graph, dual = problem.graph, begin(problem)
    labels = np.full(problem.n_variables, -1)
    _, size = cheapest(graph, problem.cost, problem.table, labels.copy())
    for n in range(root_sweeps):
        if not d.sweep(graph, problem.table, n % 2 == 0, dual):
            return b.FINISHED, INF, 0, labels
    known = Known(labels, size, opened(terms.rounding)(graph, size), 0.0)
    instance = Instance(graph, problem.cost, problem.table)
    effort = split.Effort(0, 0, 0, max_nodes, 0, 0, 0, node_sweeps, dive_nodes)
    outcome, cost, n_nodes = b.branch(instance, dual, tree_for(graph, levels), effort, max_nodes, given_cost, known)
    return outcome, cost, n_nodes, labels


def test_where_all_is_decided_and_no_node_is_left_there_is_nothing_to_split_on() -> None:
    schema = Schema()
    only = schema.variable("only", ["label"])
    shape = schema.structure()
    shape.add(only)
    outcome, cost, n_nodes, _ = run_branch(shape.problem([1.0]), 0, 0, 1, 1)
    assert (outcome, cost, n_nodes) == (b.LIMIT, INF, 1)


limits = st.tuples(
    st.integers(0, 2), st.integers(0, 2), st.sampled_from([1, 2, 7, 30]), st.sampled_from([1, 3, 20, 10**6])
)


def assert_branch_is_honest(problem: Problem, optimum: float, effort: tuple[int, int, int, int]) -> int:
    outcome, cost, _, labels = run_branch(problem, *effort)
    if outcome == b.FINISHED:
        assert cost == optimum or cost == pytest.approx(optimum, rel=1e-8, abs=1e-8)
    else:
        assert effort[3] < 10**6
        assert cost >= optimum or cost == pytest.approx(optimum)
    if cost < INF:
        assert naive.valid(problem, tuple(labels.tolist()))
        assert naive.cost(problem, tuple(labels.tolist())) == pytest.approx(cost)
    return outcome


@given(small_problems(max_variables=6, max_labels=3, max_factors=8), limits)
def test_branching_ends_with_an_optimum_or_says_it_did_not_end(
    problem: Problem, effort: tuple[int, int, int, int]
) -> None:
    if problem.n_variables:
        assert_branch_is_honest(problem, naive.solve(problem).cost, effort)


def test_branching_is_honest_on_hundreds_of_problems() -> None:
    outcomes = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        problem = random_problem(rng, max_variables=6, max_labels=3, max_factors=8)
        if problem.n_variables:
            optimum = naive.solve(problem).cost
            for node_sweeps in (0, 2):
                for dive_nodes in (1, 8):
                    for max_nodes in (1, 5, 40, 10**6):
                        effort = (seed % 3, node_sweeps, dive_nodes, max_nodes)
                        outcomes.append(assert_branch_is_honest(problem, optimum, effort))
    assert outcomes.count(b.LIMIT) > 100


@pytest.mark.parametrize("dive_nodes", [1, 20, 500])
def test_splitting_and_diving_find_the_same_optimum(dive_nodes: int) -> None:
    # A frustrated triangle-rich problem, so that the bound is far from tight and levels are really opened.
    rng = np.random.default_rng(dive_nodes)
    schema = Schema()
    kind = schema.variable("kind", list("abc"))
    pair = schema.factor("pair", left=kind, right=kind)
    shape = schema.structure()
    for _ in range(7):
        shape.add(kind)
    for left in range(7):
        for right in range(left):
            shape.connect(pair, left=left, right=right)
    for _ in range(5):
        tables = {f: rng.normal(size=(3, 3)) for f in range(21)}
        problem = shape.problem(rng.normal(size=21), tables=tables)
        optimum = make_solver("brute").solve(problem).cost
        outcome, cost, n_nodes, labels = run_branch(problem, 3, 2, dive_nodes, 10**6)
        assert outcome == b.FINISHED
        assert cost == pytest.approx(optimum)
        assert problem.total(labels) == cost
        given_it = run_branch(problem, 3, 2, dive_nodes, 10**6, given_cost=optimum)
        assert given_it[:2] == (b.FINISHED, optimum)
        assert given_it[2] <= n_nodes
        assert (given_it[3] == -1).all()  # nothing better was found


def test_a_node_limit_leaves_a_valid_answer_and_a_true_bound() -> None:
    shape = entity_relation(7)
    rng = np.random.default_rng(11)
    batch = shape.batch(rng.normal(size=(40, shape.n_labels)))
    full = Certifier()(batch)
    assert full.proved.all()
    for max_nodes in (0, 1, 5, 50):
        for join in (0, 1024):
            found = Certifier(join, 3, max_nodes)(batch)
            assert (found.bound <= full.cost + 1e-12).all()
            assert (found.cost >= full.cost - 1e-6 * np.abs(full.cost).clip(1)).all()
            assert found.cost[found.proved] == pytest.approx(full.cost[found.proved], abs=2e-6)
            for answer in found:
                assert answer.status in (Status.PROVED, Status.FOUND, Status.OPEN)
                assert answer.values is None or answer.problem.check(answer.labels)


def test_what_a_search_found_is_the_first_incumbent() -> None:
    shape = entity_relation(5)
    rng = np.random.default_rng(12)
    batch = shape.batch(rng.normal(size=(100, shape.n_labels)))
    best = Certifier()(batch)
    again = Certifier()(batch, best)
    assert np.array_equal(again.labels, best.labels)
    assert all(answer.source is Source.SEARCH for answer in again)
    assert again.proved.all()
    beam = BeamSearch(width=2)(batch)
    improved = Certifier()(batch, beam)
    assert improved.proved.all()
    assert improved.cost == pytest.approx(best.cost)
    by_search = np.array([answer.source is Source.SEARCH for answer in improved])
    assert np.array_equal(by_search, improved.cost == beam.cost)
    assert 0 < by_search.sum() < len(batch)


# Against every solver.


@pytest.fixture(params=["brute", "highs", "gurobi", "toulbar2"], scope="module")
def solver(request: pytest.FixtureRequest):
    if request.param in PACKAGES:
        pytest.importorskip(PACKAGES[request.param])
    return make_solver(request.param)


@pytest.fixture(params=["highs", "gurobi"], scope="module")
def strong(request: pytest.FixtureRequest):
    if request.param in PACKAGES:
        pytest.importorskip(PACKAGES[request.param])
    return make_solver(request.param)


def test_what_is_proved_is_the_optimum_of_every_solver(solver) -> None:
    for seed in range(150):
        problem = random_problem(np.random.default_rng(seed))
        found = Certifier((0, 16, 1024)[seed % 3], (1, 3, 100)[seed // 3 % 3])(problem)
        assert found.proved
        assert_sound(found, exact.optimum(problem))
        expected = solver.solve(problem)
        assert (found.status is Status.INFEASIBLE) == (expected.status is Status.INFEASIBLE)
        if expected.values is not None:
            assert found.cost == pytest.approx(expected.cost, rel=1e-6, abs=1e-6)


def assert_same_optima(batch: Batch, solver, join: int = 1024) -> None:
    found, expected = Certifier(join)(batch), solve_all(solver, batch)
    assert found.proved.all()
    answered = np.isfinite(expected.cost)
    assert np.array_equal(answered, np.isfinite(found.cost))
    assert found.cost[answered] == pytest.approx(expected.cost[answered], rel=2e-6, abs=2e-6)
    for answer in found:
        assert answer.values is None or answer.problem.check(answer.labels)


@pytest.mark.parametrize(("n_entities", "n"), [(6, 150), (8, 100), (10, 50)])
def test_noisy_entities_and_relations_agree_with_gurobi(n_entities: int, n: int) -> None:
    pytest.importorskip("gurobipy")
    shape = entity_relation(n_entities)
    rng = np.random.default_rng(n_entities)
    assert_same_optima(shape.batch(rng.normal(size=(n, shape.n_labels))), make_solver("gurobi"))


def test_noisy_entities_and_relations_agree_with_highs() -> None:
    shape = entity_relation(5)
    rng = np.random.default_rng(13)
    assert_same_optima(shape.batch(rng.normal(size=(20, shape.n_labels))), make_solver("highs"))


def grid(side: int, n_labels: int, ternary: bool) -> Structure:
    """Returns a square grid of pairs, with triples along its rows if asked for."""
    schema = Schema()
    kind = schema.variable("kind", [f"label{i}" for i in range(n_labels)])
    pair = schema.factor("pair", left=kind, right=kind)
    triple = schema.factor("triple", left=kind, middle=kind, right=kind)
    shape = schema.structure()
    for _ in range(side * side):
        shape.add(kind)
    for x in range(side):
        for y in range(side):
            v = side * x + y
            if x + 1 < side:
                shape.connect(pair, left=v, right=v + side)
            if y + 1 < side:
                shape.connect(pair, left=v, right=v + 1)
            if ternary and y + 2 < side:
                shape.connect(triple, left=v, middle=v + 1, right=v + 2)
    return shape


@pytest.mark.parametrize("ternary", [False, True])
@pytest.mark.parametrize("join", [0, 27, 1024])
def test_grids_of_soft_tables_agree(strong, ternary: bool, join: int) -> None:
    rng = np.random.default_rng(14)
    shape = grid(4 if not ternary else 3, 3, ternary)
    problems = []
    for _ in range(4):
        tables = {f: rng.normal(size=factor.kind.shape) for f, factor in enumerate(shape.factors)}
        problems.append(shape.problem(rng.normal(size=shape.n_labels), tables=tables))
    assert_same_optima(Batch.of(problems), strong, join)


@pytest.mark.parametrize("join", [0, 1024])
def test_chains_agree(strong, join: int) -> None:
    rng = np.random.default_rng(15)
    schema = Schema()
    kind = schema.variable("kind", list("abcd"))
    table = rng.normal(size=(4, 4))
    table[rng.random((4, 4)) < 0.2] = INF
    step = schema.factor("step", before=kind, after=kind).set_table(table)
    shape = schema.structure()
    for v in range(30):
        shape.add(kind)
        if v:
            shape.connect(step, before=v - 1, after=v)
    assert_same_optima(shape.batch(rng.normal(size=(20, shape.n_labels))), strong, join)


@pytest.mark.parametrize("exact_cover", [False, True])
def test_assignments_with_rows_agree(strong, exact_cover: bool) -> None:
    rng = np.random.default_rng(16)
    schema = Schema()
    jobs = [f"job{i}" for i in range(5)]
    worker = schema.variable("worker", jobs)
    shape = schema.structure()
    for _ in range(5):
        shape.add(worker)
    for job in jobs:
        terms = [(v, job) for v in range(5)]
        shape.rule(job, terms, **({"exactly": 1} if exact_cover else {"at_most": 2}))
    shape.rule(
        "budget",
        [(v, job, float(rng.integers(1, 6))) for v in range(5) for job in jobs],
        at_most=12 if exact_cover else 9,
    )
    assert_same_optima(shape.batch(rng.normal(size=(25, shape.n_labels))), strong)


def test_levels_take_bounded_memory_however_many_nodes_are_allowed() -> None:
    """They took as many numbers as there are variables times messages: here 128 gigabytes."""
    n = Space(*[0] * len(Space._fields))._replace(labels=80_000, messages=320_000, variables=40_000, most=2)
    assert n_levels(n, 2**40, 1000) * (n.messages + n.labels) <= MOST_NUMBERS
    small = n._replace(labels=8, messages=30, variables=4)
    assert n_levels(small, 2**40, 1000) == 5
    assert n_levels(small, 1000, 1000) == 4


@given(small_problems(), st.integers(1, 2))
def test_the_last_level_searches_all_that_is_left(problem: Problem, levels: int) -> None:
    outcome, cost, _, _ = run_branch(problem, 1, 1, 2, 100_000, levels=levels)
    assert outcome == b.FINISHED
    assert cost == pytest.approx(naive.solve(problem).cost)

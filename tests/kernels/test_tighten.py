"""A search by rows rules out nothing that could be better, and ends with an optimum."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import exact
import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opened import interpreted, opened
from proofs import assert_sound, begin
from scratch import zeros

from hasten.kernels.layout import Graph, Instance
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.model.solution import Status
from hasten.proof import outcome as terms
from hasten.proof.branch import tighten as tightening
from hasten.proof.branch.dive import FINISHED, LIMIT
from hasten.proof.certifier import Certifier
from hasten.proof.elimination.plan import reduce
from hasten.proof.sweep import dual
from hasten.proof.sweep.sweeping import Known
from hasten.solvers import make_solver
from hasten.support.clock import NEVER_STOP, STOP_ALL

INF = math.inf
WEIGHTS = [[1.0], [1.0, -1.0], [2.0, 3.0, 5.0], [0.1, 0.3, -0.7], [1e9, 3e9, 1.0]]
search_rows, start_tight, tighten_rows, sum_anew = (  # compiled, they would take a minute
    interpreted(kernel)
    for kernel in (
        tightening.search_rows,
        tightening.start_tight,
        tightening.tighten_rows,
        dual.sum_anew,
    )
)


@st.composite
def ruled(draw: Any, most: int = 6) -> Problem:
    """Draws variables under many rules of all kinds: weights whole, fractional or large, costs whole or not."""
    rng = np.random.default_rng(draw(st.integers(0, 99_999)))
    n, n_labels = draw(st.integers(1, most)), draw(st.integers(2, 3))
    weights = draw(st.sampled_from(WEIGHTS))
    schema = Schema()
    kind = schema.variable("kind", list("abc")[:n_labels])
    shape = schema.structure([kind] * n)
    for r in range(draw(st.integers(1, 2 * n))):
        size = int(rng.integers(1, min(n, 4) + 1))
        terms = [(int(v), "ab"[rng.integers(2)], float(rng.choice(weights))) for v in rng.permutation(n)[:size]]
        limit = float(sum(weight for _, _, weight in terms[: rng.integers(size + 1)]))
        limits = [
            {"at_most": limit},
            {"at_least": limit},
            {"exactly": limit},
            {"at_least": limit - 1, "at_most": limit},
        ]
        shape.rule(f"rule {r}", terms, **limits[rng.choice(4, p=[0.4, 0.4, 0.1, 0.1])])
    costs = rng.integers(-5, 6, shape.n_labels).astype(float)
    if draw(st.booleans()):
        costs += rng.normal(size=shape.n_labels)
    if draw(st.integers(0, 3)) == 0:
        costs[rng.random(len(costs)) < 0.15] = INF
    return shape.problem(costs)


def tight_for(graph: Graph, n_levels: int | None = None) -> tightening.Tight:
    n, n_labels, n_rows = len(graph.order), int(graph.first[-1]), len(graph.row_low)
    kept = np.zeros((n + 1 if n_levels is None else n_levels) * (n_labels + n_rows))
    sizes = (zeros(n), zeros(n_rows), zeros(n))
    return tightening.Tight(np.zeros(n_labels), np.zeros(n_rows), *sizes, zeros(n + 1), zeros(n + 1), kept)


class StopAfter:
    """A stop flag that stops all once it was looked at so many times; it counts the looks after that."""

    def __init__(self, looks: int) -> None:
        self.left = looks

    def __getitem__(self, at: int) -> int:
        if at != STOP_ALL:
            return -at  # no problem is stopped alone
        self.left -= 1
        return int(self.left < 0)


def search(
    problem: Problem, max_nodes: int = 10_000, n_levels: int | None = None, stop_flag: Any = NEVER_STOP
) -> tuple[int, float, int]:
    """Searches a problem as it is declared, from multipliers of zero."""
    graph, labels = problem.graph, zeros(len(problem.graph.order))
    _, size = opened(terms.cheapest)(graph, problem.cost, problem.table, labels.copy())
    known = Known(labels, size, opened(terms.rounding)(graph, size), 0.0)
    instance = Instance(graph, problem.cost, problem.table)
    dual = begin(problem)._replace(stop_flag=stop_flag)
    ended, cost, n_nodes = search_rows(instance, dual, tight_for(graph, n_levels), max_nodes, INF, known)
    if cost < INF:
        assert naive.valid(problem, tuple(labels.tolist()))
        assert cost == pytest.approx(naive.cost(problem, tuple(labels.tolist())))
    return ended, cost, n_nodes


@settings(max_examples=40)
@given(ruled())
def test_a_search_that_ends_has_found_an_optimum(problem: Problem) -> None:
    ended, cost, _ = search(problem)
    assert ended == FINISHED
    assert cost == pytest.approx(naive.solve(problem).cost, rel=1e-8, abs=1e-8)


@given(ruled(most=7))
def test_answers_are_sound_and_all_proved(problem: Problem) -> None:
    found, optimum = Certifier(max_nodes=100_000)(problem), exact.optimum(problem)
    assert_sound(found, optimum)
    assert found.status is (Status.INFEASIBLE if optimum == INF else Status.PROVED)


@settings(max_examples=40)
@given(ruled(), st.integers(1, 3))
def test_a_search_that_is_cut_short_claims_nothing_wrong(problem: Problem, n_nodes: int) -> None:
    assert_sound(Certifier(max_nodes=n_nodes)(problem), exact.optimum(problem))
    optimum = naive.solve(problem).cost
    for ended, cost, _ in (search(problem, n_nodes), search(problem, n_levels=1)):
        assert ended in (FINISHED, LIMIT)
        assert cost >= optimum - 1e-8


@settings(max_examples=500)
@given(ruled(), st.integers(1, 3))
def test_a_search_takes_no_more_nodes_than_it_may(problem: Problem, n_nodes: int) -> None:
    """Neither down nor back up: it used to go back beyond the limit."""
    _, _, taken = search(problem, n_nodes)
    assert 1 <= taken <= n_nodes


@settings(max_examples=100)
@given(ruled())
def test_a_search_that_is_stopped_at_any_moment_ends_soon_and_claims_nothing_wrong(problem: Problem) -> None:
    optimum, ended = naive.solve(problem).cost, LIMIT
    for looks in range(40):
        stop_flag = StopAfter(looks)
        ended, cost, _ = search(problem, stop_flag=stop_flag)
        assert stop_flag.left >= -10
        if ended == FINISHED:
            assert cost == pytest.approx(optimum, rel=1e-8, abs=1e-8)
        assert cost >= optimum - 1e-8


def test_a_search_that_is_stopped_beforehand_neither_tightens_nor_plunges() -> None:
    schema = Schema()
    item = schema.variable("item", ["out", "in"])
    shape = schema.structure([item] * 4)
    for v in range(3):
        shape.rule(f"not both {v}", [(v, "in", 1.0), (v + 1, "in", 1.0)], at_most=1)
    problem = shape.problem([0.0, -1.0] * 4)
    assert search(problem) == (FINISHED, -2.0, search(problem)[2])
    assert search(problem, stop_flag=StopAfter(0)) == (LIMIT, INF, 1)


@given(ruled())
def test_a_row_rules_out_only_what_it_has_no_room_for(problem: Problem) -> None:
    graph, tight = problem.graph, tight_for(problem.graph)
    start_tight(graph, begin(problem), tight)
    possible = tighten_rows(graph, tight, NEVER_STOP)
    valid = [labels for labels in product(*map(range, np.diff(graph.first).tolist())) if naive.valid(problem, labels)]
    assert possible or not valid
    for labels in valid:
        assert (tight.belief[graph.first[:-1] + labels] < INF).all()
    if possible:
        assert (np.add.reduceat((tight.belief < INF).astype(int), graph.first[:-1]) == tight.n_left).all()


@given(ruled(), st.integers(0, 99))
def test_the_bound_of_a_node_holds_in_exact_arithmetic(problem: Problem, seed: int) -> None:
    rng, graph, tight = np.random.default_rng(seed), problem.graph, tight_for(problem.graph)
    start_tight(graph, begin(problem), tight)
    for r in range(len(graph.row_low)):
        u = rng.normal() * 10.0 ** rng.integers(-3, 12)
        tight.multiplier[r] = (
            max(u, 0.0) if graph.row_low[r] == -INF else min(u, 0.0) if graph.row_high[r] == INF else u
        )
    if not (np.minimum.reduceat(tight.belief, graph.first[:-1]) < INF).all():
        return
    given = begin(problem)
    node = given._replace(belief=tight.belief, multiplier=tight.multiplier)
    bound, off = sum_anew(graph, problem.cost, problem.table, node, True)
    possible = tight.belief < INF
    assert exact.at_most(bound, exact.dual_value(problem, np.zeros(0), tight.multiplier, possible))
    for at in np.flatnonzero(possible).tolist():  # what a label that is ruled out must cost
        v = int(np.searchsorted(graph.first, at, "right") - 1)
        alone = possible.copy()
        alone[graph.first[v] : graph.first[v + 1]] = False
        alone[at] = True
        least = tight.belief[graph.first[v] : graph.first[v + 1]].min()
        forced = bound + (tight.belief[at] - least) - 4.0 * off
        assert exact.at_most(forced, exact.dual_value(problem, np.zeros(0), tight.multiplier, alone))


def items(kind: str, n: int, seed: int) -> Problem:
    """Returns items of which few may be taken together (packing, stable set), or enough must be (cover)."""
    schema, rng = Schema(), np.random.default_rng(seed)
    shape = schema.structure([schema.variable("item", ["out", "in"])] * n)
    for r in range(4 * n if kind == "stable set" else n):
        some = rng.choice(n, {"packing": 6, "cover": 5, "stable set": 2}[kind], replace=False).tolist()
        limit = {"packing": {"at_most": 2}, "cover": {"at_least": 1}, "stable set": {"at_most": 1}}[kind]
        shape.rule(f"rule {r}", [(v, "in") for v in some], **limit)
    costs = np.zeros((n, 2))
    costs[:, 1] = rng.integers(1, 100, n) * (1 if kind == "cover" else -1) + (seed % 2) * rng.normal(size=n)
    return shape.problem(costs.ravel())


@pytest.mark.parametrize("kind", ["packing", "cover", "stable set"])
def test_rules_over_items_are_proved_as_a_solver_says(kind: str) -> None:
    problems, solver = [items(kind, 40, seed) for seed in range(4)], make_solver("highs")
    for problem in problems:
        found = Certifier()(problem)
        assert found.status is Status.PROVED
        assert found.cost == pytest.approx(solver.solve(problem).cost, rel=1e-6)


def test_levels_beyond_what_is_kept_leave_a_problem_open() -> None:
    problem = items("cover", 24, 1)
    assert search(problem, n_levels=1)[0] == LIMIT
    assert search(problem)[0] == FINISHED


def test_few_rows_are_left_to_dives() -> None:
    few, many = items("packing", 40, 0), Schema()
    shape = many.structure([many.variable("item", ["out", "in"])] * 40)
    shape.rule("one", [(v, "in", 1.0 + v) for v in range(40)], at_most=100)
    assert reduce(few.structure.compiled).leaves_rules
    assert not reduce(shape.compiled).leaves_rules

"""Elimination is exact: chains, trees and whatever else is small are solved by it alone."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import exact
import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opened import opened
from strategies import entity_relation, random_problem, small_problems

from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.model.solution import Status
from hasten.model.structure import Structure
from hasten.proof.certifier import Certifier
from hasten.proof.elimination import kernels
from hasten.proof.elimination.kernels import Reduction
from hasten.proof.elimination.plan import reduce
from hasten.support.clock import NEVER_STOP

eliminate, restore = opened(kernels.eliminate), opened(kernels.restore)
INF = math.inf


def chain(n: int, n_labels: int, table: np.ndarray) -> Structure:
    """Returns a sequence whose neighbours share one table."""
    schema = Schema()
    kind = schema.variable("kind", [f"label{i}" for i in range(n_labels)])
    step = schema.factor("step", before=kind, after=kind).set_table(table)
    shape = schema.structure()
    for v in range(n):
        shape.add(kind)
        if v:
            shape.connect(step, before=v - 1, after=v)
    return shape


def viterbi(costs: np.ndarray, table: np.ndarray) -> tuple[float, list[int]]:
    """Returns the cheapest path through a chain, and its cost."""
    best, back = costs[0], []
    for cost in costs[1:]:
        reach = best[:, None] + table
        back.append(reach.argmin(axis=0))
        best = reach.min(axis=0) + cost
    path = [int(best.argmin())]
    for came_from in reversed(back):
        path.append(int(came_from[path[-1]]))
    return float(best.min()), path[::-1]


@pytest.mark.parametrize("n", [1, 2, 3, 10, 100, 1000])
@pytest.mark.parametrize("hard", [False, True])
def test_a_chain_is_viterbi(n: int, hard: bool) -> None:
    rng = np.random.default_rng(n)
    for _ in range(3):
        table = rng.normal(size=(4, 4))
        if hard:
            table[rng.random((4, 4)) < 0.4] = INF
        shape = chain(n, 4, table)
        costs = rng.normal(size=(n, 4))
        cost, path = viterbi(costs, table)
        report = Certifier().report([shape.problem(costs.ravel())])
        found = report.solutions[0]
        assert (report.n_sweeps[0], report.n_nodes[0]) == (0, 0)
        assert found.proved
        assert found.cost == pytest.approx(cost)
        assert found.labels.tolist() == path


def test_a_chain_that_runs_out_of_labels_is_infeasible() -> None:
    upwards = np.where(np.arange(4)[:, None] < np.arange(4), 0.0, INF)
    four, five = (Certifier().report([chain(n, 4, upwards).problem(np.zeros(4 * n))]) for n in (4, 5))
    assert four.solutions[0].labels.tolist() == [0, 1, 2, 3]
    assert five.solutions[0].status is Status.INFEASIBLE
    assert (five.n_sweeps[0], five.n_nodes[0]) == (0, 0)


def test_a_chain_of_large_costs_that_cancel_stays_below_its_exact_optimum() -> None:
    rng = np.random.default_rng(1)
    for n in (2, 5, 8):
        for _ in range(20):
            table = rng.choice([1e12, -1e12, 0.1, 1e12 + 0.25, -1e12 - 0.3], (2, 2))
            problem = chain(n, 2, table).problem(rng.choice([1e12, -1e12, 1.0, 0.3, -1e12 - 0.7], 2 * n))
            found = Certifier()(problem)
            assert exact.at_most(found.bound, exact.optimum(problem))


def test_ties_are_broken_the_same_way_every_time() -> None:
    shape = chain(50, 3, np.zeros((3, 3)))
    problem = shape.problem(np.ones(150))
    first, again = Certifier()(problem), Certifier()(problem)
    assert first.cost == 50
    assert first.proved
    assert np.array_equal(first.labels, again.labels)


@pytest.mark.parametrize("n", [2, 5, 30, 200])
def test_a_tree_is_solved_by_elimination_alone(n: int) -> None:
    rng = np.random.default_rng(n)
    for _ in range(5):
        schema = Schema()
        kinds = [schema.variable(f"kind{size}", [f"label{i}" for i in range(size)]) for size in (1, 2, 4)]
        pairs = {
            (a, b): schema.factor(f"pair{a}{b}", up=kinds[a], down=kinds[b]).set_table(
                rng.normal(size=(len(kinds[a]), len(kinds[b])))
            )
            for a in range(3)
            for b in range(3)
        }
        shape = schema.structure()
        chosen = rng.integers(3, size=n).tolist()
        parents = [0] + [int(rng.integers(v)) for v in range(1, n)]
        for v in range(n):
            shape.add(kinds[chosen[v]])
        for v in range(1, n):
            shape.connect(pairs[chosen[parents[v]], chosen[v]], up=parents[v], down=v)
        shape.search_order(rng.permutation(n).tolist())
        costs = [rng.normal(size=len(kinds[c])) for c in chosen]
        up = [cost.copy() for cost in costs]  # from the leaves: each variable's parent has a smaller number
        for v in range(n - 1, 0, -1):
            table = pairs[chosen[parents[v]], chosen[v]].table
            up[parents[v]] += (table + up[v]).min(axis=1)
        problem = shape.problem(costs)
        report = Certifier().report([problem])
        assert report.solutions.proved.all()
        assert (report.n_sweeps[0], report.n_nodes[0]) == (0, 0)
        assert report.solutions.cost[0] == pytest.approx(up[0].min())
        assert problem.total(report.solutions[0].labels) == report.solutions.cost[0]


def test_a_long_cycle_is_solved_by_elimination_alone() -> None:
    rng = np.random.default_rng(2)
    schema = Schema()
    kind = schema.variable("kind", list("abc"))
    table = rng.normal(size=(3, 3))
    step = schema.factor("step", before=kind, after=kind).set_table(table)
    shape = schema.structure()
    for _ in range(40):
        shape.add(kind)
    for v in range(40):
        shape.connect(step, before=v, after=(v + 1) % 40)
    costs = rng.normal(size=(40, 3))
    closed = []
    for start in range(3):  # a cycle is a chain from each label of one variable back to it
        first = np.where(np.arange(3) == start, costs[0], INF)
        closed.append(viterbi(np.vstack([first, costs[1:], np.where(np.arange(3) == start, 0.0, INF)]), table)[0])
    report = Certifier().report([shape.problem(costs.ravel())])
    assert report.n_nodes[0] == 0
    assert report.solutions.proved.all()
    assert report.solutions.cost[0] == pytest.approx(min(closed))


# What is left.


def carry_out(problem: Problem, max_join: int) -> tuple[Reduction, np.ndarray, np.ndarray, float]:
    """Returns a reduction, its scratch space, the costs of what is left, and the constant part."""
    reduction = reduce(problem.structure.compiled, max_join)
    plan = reduction.plan
    work = np.full(plan.out_first[-1] + len(plan.copy_from), np.nan)
    kept_cost = np.full(int(reduction.graph.first[-1]), np.nan)
    constant = eliminate(plan, problem.cost, problem.table, work, kept_cost, NEVER_STOP)
    return reduction, work, kept_cost, constant


def left_cost(reduction: Reduction, work: np.ndarray, kept_cost: np.ndarray, labels: Any) -> float:
    """Returns what a labelling of the variables that are left costs, but for the constant."""
    graph = reduction.graph
    terms = [kept_cost[graph.first[v] + i] for v, i in enumerate(labels)]
    for f, at in enumerate(graph.table_at):
        slots = range(graph.scope_first[f], graph.scope_first[f + 1])
        terms.append(work[at + sum(graph.stride[a] * labels[graph.scope[a]] for a in slots)])
    return INF if INF in terms else math.fsum(terms)


@given(small_problems(max_variables=5, max_labels=3), st.sampled_from([0, 1, 4, 9, 16, 81, 1024]))
def test_what_is_left_costs_the_least_over_what_is_gone(problem: Problem, max_join: int) -> None:
    reduction, work, kept_cost, constant = carry_out(problem, max_join)
    plan, sizes = reduction.plan, [len(kind) for kind in problem.structure.kinds]
    assert not np.isnan(work).any()
    assert sorted([*plan.keep, *plan.variable, *plan.partner[plan.partner >= 0]]) == list(range(problem.n_variables))
    gone = sorted([*plan.variable.tolist(), *plan.partner[plan.partner >= 0].tolist()])
    for kept in product(*(range(sizes[v]) for v in plan.keep)):
        least = INF
        labels = dict(zip(plan.keep.tolist(), kept, strict=True))
        for rest in product(*(range(sizes[v]) for v in gone)):
            labels.update(zip(gone, rest, strict=True))
            least = min(least, naive.cost(problem, tuple(labels[v] for v in range(len(sizes)))))
        assert left_cost(reduction, work, kept_cost, kept) + constant == pytest.approx(least)
        if least < INF:
            whole = np.full(len(sizes), -1)
            restore(plan, problem.cost, problem.table, work, np.array(kept, dtype=np.int64), whole)
            assert all(whole[v] == i for v, i in zip(plan.keep, kept, strict=True))
            assert naive.cost(problem, tuple(whole.tolist())) == pytest.approx(least)


@given(small_problems(), st.sampled_from([0, 1, 4, 16, 1024]))
def test_the_variables_of_rows_and_the_rows_are_left(problem: Problem, max_join: int) -> None:
    reduction = reduce(problem.structure.compiled, max_join)
    counted = {v for weights, _, _ in naive.rows_of(problem) for (v, _), weight in weights.items() if weight}
    assert counted <= set(reduction.plan.keep.tolist())
    assert np.array_equal(reduction.graph.row_low, problem.graph.row_low)
    assert np.array_equal(reduction.graph.row_high, problem.graph.row_high)
    assert np.array_equal(reduction.graph.row_weight, problem.graph.row_weight)
    if max_join == 0:
        assert not len(reduction.plan.variable)
    order = [int(v) for v in problem.graph.order if v in set(reduction.plan.keep.tolist())]
    assert reduction.plan.keep[reduction.graph.order].tolist() == order


@given(small_problems(), st.sampled_from([1, 4, 16, 1024]))
def test_no_step_takes_more_sums_than_allowed(problem: Problem, max_join: int) -> None:
    plan = reduce(problem.structure.compiled, max_join).plan
    for n, m in enumerate(plan.form.tolist()):
        n_out = plan.out_first[n + 1] - plan.out_first[n]
        assert plan.sum_first[plan.entry_at[m] + n_out] <= max_join


def test_every_join_gives_the_same_optimum() -> None:
    for seed in range(300):
        problem = random_problem(np.random.default_rng(seed), max_variables=6, max_labels=3)
        answers = [Certifier(max_join)(problem) for max_join in (0, 2, 8, 16, 64, 1024)]
        assert all(answer.proved for answer in answers)
        assert len({answer.status for answer in answers}) == 1
        costs = np.array([answer.cost for answer in answers])
        assert (costs == costs[0]).all() or costs == pytest.approx(costs[0])


def test_the_relations_of_entities_are_eliminated() -> None:
    for n_entities in (2, 3, 6):
        shape = entity_relation(n_entities)
        plan = reduce(shape.compiled).plan
        assert all(v < n_entities for v in plan.keep)
        if n_entities <= 3:
            assert not len(plan.keep)


def test_structures_of_one_size_have_plans_of_their_own_by_which_kernels_know_them() -> None:
    schema = Schema()
    choice = schema.variable("choice", ["no", "yes"])

    def shape(*limits: int) -> Structure:
        made = schema.structure()
        all_of = [made.add(choice) for _ in range(3)]
        for limit in limits:
            made.rule(f"at most {limit}", [(v, "yes") for v in all_of], at_most=limit)
        return made

    few, more = shape(1), shape(1, 2)
    assert reduce(few.compiled).plan.address != reduce(more.compiled).plan.address
    batch = [few.problem([0.0] * 6), more.problem([1.0, 0.0] * 3)]
    assert Certifier()(batch).cost.tolist() == [0.0, 2.0]

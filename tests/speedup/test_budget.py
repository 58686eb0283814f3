"""Trying harder goes on where it pays, ends where it does not, and is tried again now and then."""

from __future__ import annotations

import gc
import time

import numpy as np
import pytest

from hasten import Problem, Schema, Speedup, Status
from hasten.model.structure import _KEPT, Structure
from hasten.solvers import make_solver
from hasten.speedup.black_box import prove_or_solve
from hasten.speedup.budget import ACCOUNTS, MAX_TRIED, Budget
from hasten.speedup.efforts import CLEARLY, Effort, Efforts


def test_nothing_is_tried_before_the_solver_s_price_is_known() -> None:
    budget = Budget()
    assert budget.n_nodes() == 0
    budget.solved(2.0)
    assert budget.n_nodes() == 0  # it may have been loaded first
    budget.solved(0.04)
    assert 0 < budget.n_nodes() < 100_000


def test_as_much_is_tried_as_the_solver_takes() -> None:
    budget = Budget(solver_seconds=0.04, node_seconds=1e-6, further=1.0, n_calls=2)
    assert budget.n_nodes() == 40_000
    budget.node_seconds = 1e-15
    assert budget.n_nodes() == MAX_TRIED


def test_what_never_pays_costs_a_hundredth_of_the_solver_s_time_in_the_long_run() -> None:
    budget, tried, n_calls = Budget(), 0.0, 2000
    for _ in range(n_calls):
        if budget.n_nodes():
            budget.tried(0.04, 40_000, proved=False)
            tried += 0.04
        budget.solved(0.04)
    assert 0 < tried <= 0.04 * (0.01 * n_calls + 2)


def test_what_pays_goes_on() -> None:
    budget = Budget()
    budget.solved(0.04)
    budget.solved(0.04)
    for _ in range(1000):
        assert budget.n_nodes()
        budget.tried(0.01, 10_000, proved=True)


def test_a_stroke_of_luck_is_not_lived_on_forever() -> None:
    budget = Budget()
    budget.solved(0.04)
    budget.solved(0.04)
    for _ in range(1000):
        budget.tried(0.0001, 100, proved=True)
    n_tries = 0
    while budget.n_nodes():
        budget.tried(0.04, 40_000, proved=False)
        n_tries += 1
    assert n_tries <= 8


def use(budget: Budget, n: int, proof: float, solver: float, share: float = 1.0) -> tuple[int, float]:
    """Answers so many problems as a budget says; returns how many proofs it tried, and the seconds of all of it."""
    tried, seconds, rng = 0, 0.0, np.random.default_rng(0)
    for _ in range(n):
        done = False
        if budget.proves():
            done = bool(rng.random() < share)
            budget.proved(proof, 1, int(done))
            tried, seconds = tried + 1, seconds + proof
        if not done:
            budget.solved(solver)
            seconds += solver
    return tried, seconds


@pytest.mark.parametrize(("proof", "share"), [(0.002, 0.0), (0.02, 0.0), (0.1, 1.0), (0.02, 0.3), (0.012, 1.0)])
def test_proofs_that_do_not_pay_cost_little_of_the_solver_s_time(proof: float, share: float) -> None:
    for n in (200, 2000):
        tried, seconds = use(Budget(), n, proof, 0.01, share)
        assert 0 < tried < n
        assert seconds < 1.03 * 0.01 * n + 3 * proof  # to plan, to see what it takes, and once more


def test_proofs_that_pay_go_on_and_are_seldom_compared() -> None:
    for proof, share in ((0.0005, 1.0), (0.005, 1.0), (0.002, 0.5)):
        tried, seconds = use(Budget(), 2000, proof, 0.01, share)
        assert tried > 1900
        assert seconds < 1.2 * 2000 * (proof + (1 - share) * 0.01)
    assert use(Budget(), 1000, 0.0005, 0.0001)[0] == 1000  # what is quick need not be compared


def test_proofs_that_begin_to_pay_are_found_out() -> None:
    budget = Budget()
    use(budget, 500, 0.02, 0.01, share=0.0)
    assert use(budget, 500, 0.001, 0.01)[0] > 200


def test_the_first_proof_plans_and_does_not_set_the_price() -> None:
    budget = Budget()
    budget.proved(0.5, 1, 1)
    assert budget.proves()
    budget.proved(0.0001, 1, 1)
    assert budget.proof_seconds == 0.0001


def test_a_first_call_that_loads_does_not_set_the_price() -> None:
    budget = Budget(planned=True)
    budget.proved(0.02, 1, 1)
    for seconds in (1.0, 0.01):
        assert not budget.proves()
        budget.solved(seconds)
    assert use(budget, 200, 0.02, 0.01)[1] < 1.1 * 200 * 0.01


def knapsack(n: int, n_rules: int, rng: np.random.Generator) -> Structure:
    schema = Schema()
    item = schema.variable("item", ["out", "in"])
    shape = schema.structure()
    for _ in range(n):
        shape.add(item)
    for r, weights in enumerate(rng.integers(1, 100, size=(n_rules, n)).tolist()):
        terms = [(v, "in", weight) for v, weight in enumerate(weights)]
        shape.rule(f"weight {r}", terms, at_most=sum(weights) // 2)
    return shape


def test_a_knapsack_of_twenty_items_takes_no_solver() -> None:
    rng = np.random.default_rng(0)
    shape = knapsack(20, 3, rng)
    costs = np.zeros((20, 20, 2))
    costs[:, :, 1] = -rng.integers(1, 100, size=(20, 20))
    fast = Speedup(shape.schema)
    answers = fast.predict(shape.batch(costs.reshape(20, -1)))
    assert answers.proved.all()
    assert fast.counters.solver_calls == 0
    exact = make_solver("highs")
    assert [answers[p].cost for p in range(3)] == [exact.solve(answers[p].problem).cost for p in range(3)]


def test_a_slow_solver_is_spared_where_branching_further_proves_more() -> None:
    rng = np.random.default_rng(1)
    shape = knapsack(40, 4, rng)
    costs = np.zeros((12, 40, 2))
    costs[:, :, 1] = -rng.integers(1, 100, size=(12, 40))
    batch, exact = shape.batch(costs.reshape(12, -1)), make_solver("highs")
    optima, n_calls = prove_or_solve(batch, lambda: exact, max_nodes=500)
    assert optima.optimal.all()
    assert n_calls > 0
    budget = ACCOUNTS.of(shape.compiled, exact.name)
    budget.node_seconds = 1e-6
    budget.efforts = Efforts([1000.0, 1000.0, 1.0], [9, 9, 9], n_problems=1)  # a solver of another age
    tried, n_calls = prove_or_solve(batch, lambda: exact, asked=exact)
    assert n_calls == 0
    assert tried.optimal.all()
    assert np.allclose(tried.cost, optima.cost, atol=1e-9)
    assert prove_or_solve(batch, lambda: exact, max_nodes=500)[1] > 0  # a limit of one's own is kept


def test_accounts_end_with_their_structure() -> None:
    compiled = knapsack(3, 1, np.random.default_rng(2)).compiled
    ACCOUNTS.of(compiled, "some").solved(1.0)
    held = len(ACCOUNTS)
    assert held > 0
    _KEPT.pop(compiled)
    del compiled
    gc.collect()
    assert len(ACCOUNTS) < held


def test_a_solver_of_the_user_is_not_asked_once_the_call_s_time_is_up() -> None:
    rng = np.random.default_rng(3)
    shape = knapsack(5, 1, rng)
    batch = shape.batch(rng.normal(size=(4, 10)))
    asked = []

    def slow(problem: Problem) -> list[int]:
        asked.append(problem)
        time.sleep(0.3)
        return [0] * 5

    answers = Speedup(shape.schema, solver=slow, prove=False, call_limit=0.2).predict(batch)
    assert len(asked) == 1
    assert answers.has(Status.NO_TIME).tolist() == [False, True, True, True]


def answered(n: int, seconds: dict[Effort, float]) -> tuple[Efforts, dict[Effort, int]]:
    """Answers so many problems by the efforts that are chosen, each of which takes so long."""
    efforts, taken = Efforts(), dict.fromkeys(Effort, 0)
    efforts.failed()
    for _ in range(n):
        effort = efforts.choose()
        taken[effort] += 1
        efforts.took(effort, seconds[effort])
    return efforts, taken


def test_as_long_as_proofs_succeed_they_are_tried() -> None:
    assert Efforts().choose() is Effort.PROOF


@pytest.mark.parametrize("best", list(Effort))
def test_the_fastest_effort_is_taken(best: Effort) -> None:
    seconds = {effort: 1.0 if effort is best else 2.0 for effort in Effort}
    efforts, taken = answered(400, seconds)
    assert efforts.best is best
    assert taken[best] > 0.8 * 400


def test_where_proofs_do_not_pay_they_cost_a_twentieth() -> None:
    efforts, _ = answered(200, {Effort.NONE: 1.0, Effort.PROOF: 1.5, Effort.FURTHER: 2.0})
    assert efforts.spent <= 1.05 * 200


def test_a_solver_that_is_clearly_slower_is_left_alone() -> None:
    _, taken = answered(400, {Effort.NONE: 2 * CLEARLY, Effort.PROOF: 1.0, Effort.FURTHER: 1.0})
    assert taken[Effort.NONE] <= 5


def test_what_is_ruled_out_is_not_tried_again() -> None:
    efforts = Efforts()
    efforts.failed()
    efforts.rules_out(Effort.FURTHER)
    for _ in range(100):
        effort = efforts.choose()
        assert effort is not Effort.FURTHER
        efforts.took(effort, 1.0)

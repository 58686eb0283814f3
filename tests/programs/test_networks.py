"""Programs that are networks have the optimum of HiGHS, proved; programs that nearly are one are not taken for one."""

from __future__ import annotations

import math

import numpy as np
import pytest
import random_programs
from hypothesis import given, settings
from hypothesis import strategies as st

import hasten
from hasten.programs.native import Checker, NativeHighs
from hasten.programs.networks import as_network
from hasten.programs.program import Program
from hasten.programs.statement import Builder, Statement
from hasten.proof.outcome import OPEN, PROVED

FAULTS = ("", "a weight of 2", "a third row", "half a limit", "half a bound", "a product", "an odd cycle")


def draw(rng: np.random.Generator, fault: str = "") -> Statement:
    """Draws a program over the arcs of a network, rows turned at random, with a fault or without."""
    build, m, n = (
        Builder(maximize=bool(rng.random() < 0.5), constant=2.0),
        int(rng.integers(2, 6)),
        int(rng.integers(2, 11)),
    )
    rows: list[list[tuple[int, float]]] = [[] for _ in range(m)]
    flow, whole = np.zeros(n), bool(rng.random() < 0.7)
    for j in range(n):
        low = float(rng.integers(-2, 2)) if rng.random() < 0.2 else 0.0
        high = math.inf if rng.random() < 0.15 else low + float(rng.integers(0, 4))
        cost = float(np.round(rng.normal(), 2)) if rng.random() < 0.5 else float(rng.integers(0, 9))
        build.column(f"x{j}", low, high, whole, cost)
        flow[j] = low + rng.integers(0, 1 + min(3.0, high - low))
        ends = rng.choice(m, 2, replace=False).tolist()
        for row, weight in list(zip(ends, (1.0, -1.0), strict=True))[: 2 if j == 0 or rng.random() < 0.85 else 1]:
            rows[row].append((j, weight))
    if fault == "a weight of 2":
        filled = next(terms for terms in rows if terms)
        filled[0] = filled[0][0], 2.0
    elif fault == "a third row":
        rows += [[(0, 1.0)]]
    elif fault == "an odd cycle":
        three = [build.column(f"y{j}", 0, 1, whole, -1.0) for j in range(3)]
        flow = np.append(flow, np.zeros(3))
        rows += [[(three[j], 1.0), (three[j - 1], 1.0)] for j in range(3)]
    for terms in rows:
        turn = float(rng.choice([-1.0, 1.0]))
        columns, weights = [j for j, _ in terms], [turn * w for _, w in terms]
        at = float(sum(w * flow[j] for j, w in zip(columns, weights, strict=True)))
        low, high = [(at, at), (at - 1, at + 1), (-math.inf, at), (at - 2, math.inf)][
            int(rng.choice(4, p=[0.7, 0.1, 0.1, 0.1]))
        ]
        if rng.random() < 0.1:
            low, high = low + 1, high + 1  # it may have no answer
        if fault == "half a limit" and terms:
            low, high = low - 0.5, high + 0.5
        build.row(columns, weights, low, high)
    if fault == "half a bound":
        build.high[0] = build.low[0] + 1.5
        build.whole[0] = False
    if fault == "a product":
        build.product(0, 1, 1.0)
    return build.statement()


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10**6))
def test_a_network_has_the_optimum_of_highs(seed: int) -> None:
    statement = draw(np.random.default_rng(seed))
    network = as_network(statement)
    if network is None:
        assert np.bincount(statement.row_column).max(initial=0) < 2 or (statement.low > statement.high).any()
        return
    wanted = NativeHighs(statement).solve(statement.sign * statement.objective, math.inf)
    flow = network.solve(statement.sign * statement.objective[None]).one(0)
    answer = Program(statement).solve()
    if wanted.status is hasten.Status.FAILED:  # unbounded
        assert flow.outcome == OPEN
        return
    if wanted.x is None:
        assert answer.status is hasten.Status.INFEASIBLE
        return
    assert answer.objective == pytest.approx(statement.value(wanted.x), abs=1e-6)
    assert answer.optimal
    assert Checker(statement, "we")(answer.x) == pytest.approx(answer.x)
    if flow.outcome == PROVED:
        assert answer.proved
        assert statement.sign * answer.bound <= statement.sign * answer.objective
        assert answer.bound == pytest.approx(answer.objective, abs=1e-6)
        many = Program(statement).solve_all(np.stack([statement.objective] * 3))
        assert many.objective == pytest.approx(answer.objective)
        assert many.x.tolist() == [answer.x.tolist()] * 3


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(FAULTS[1:]))
def test_nearly_a_network_is_none_and_has_the_optimum_all_the_same(seed: int, fault: str) -> None:
    statement = draw(np.random.default_rng(seed), fault)
    limits = np.concatenate([statement.low, statement.high, statement.row_low, statement.row_high])
    if fault == "a third row" and np.bincount(statement.row_column)[0] < 3:
        return
    if fault in ("half a limit", "half a bound") and (limits == np.rint(limits)).all():
        return
    assert as_network(statement) is None
    if fault == "a product" or not np.isfinite(statement.high).all():
        return
    wanted = NativeHighs(statement).solve(statement.sign * statement.objective, math.inf)
    answer = Program(statement).solve()
    assert (answer.values_found is None) == (wanted.x is None)
    assert wanted.x is None or answer.objective == pytest.approx(statement.value(wanted.x), abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_an_assignment_has_the_optimum_of_trying_everything(seed: int) -> None:
    rng = np.random.default_rng(seed)
    build = Builder()
    for j in range(9):
        build.column(f"x{j}", 0, 1, True, float(rng.normal() * 10.0 ** rng.integers(-8, 9)))
    for i in range(3):
        build.row(range(3 * i, 3 * i + 3), [1.0] * 3, 1, 1)
        build.row(range(i, 9, 3), [1.0] * 3, -math.inf, 1)
    program = Program(build.statement())
    answer, truth = program.solve(), random_programs.best(program.statement)
    assert answer.proved
    assert answer.objective == pytest.approx(truth, rel=1e-9, abs=1e-15)
    assert answer.bound <= truth + 1e-9 * abs(truth)
    assert hasten.Certifier()(program.problem()).cost == pytest.approx(truth)


def test_a_shortest_path_is_answered_as_the_linear_program_that_it_is() -> None:
    build, side = Builder(), 4
    arcs = [(v, v + step) for v in range(side * side) for step in (1, side) if step == side or (v + 1) % side]
    arcs = [(tail, head) for tail, head in arcs if head < side * side]
    for tail, head in arcs:
        build.column(f"arc[{tail},{head}]", 0, math.inf, False, float((7 * tail + 3 * head) % 5 + 1))
    for v in range(side * side):
        some = [k for k, arc in enumerate(arcs) if v in arc]
        balance = float(v == 0) - float(v == side * side - 1)
        build.row(some, [1.0 if arcs[k][0] == v else -1.0 for k in some], balance, balance)
    program = Program(build.statement())
    assert program.only_solver == ""
    answer = program.solve()
    assert answer.proved
    assert answer.objective == NativeHighs(program.statement).solve(program.statement.objective, math.inf).bound
    assert len(answer.chosen()) == 2 * (side - 1)
    assert "network" in program.describe()
    assert hasten.Certifier()(program.problem()).cost == answer.objective  # bounds follow from the rows
    around = program.solve(objective=-program.statement.objective)  # no cycle: the longest path
    assert around.objective == NativeHighs(program.statement).solve(-program.statement.objective, math.inf).bound

"""A program with continuous columns that equalities define has the optimum that HiGHS finds."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import random_programs
from hypothesis import given, settings
from hypothesis import strategies as st

import hasten
from hasten.programs.native import Checker, NativeHighs
from hasten.programs.program import Program
from hasten.programs.statement import Builder, Statement


def extended(seed: int) -> Statement:
    """Draws a program of whole columns, and defines continuous ones by them, which then stand in rows and objective."""
    rng = np.random.default_rng(seed)
    whole = random_programs.make(rng, 6, products=False)
    build, n = Builder(maximize=whole.maximize, constant=whole.constant), whole.n_columns
    build.add_columns(whole.columns, whole.low, whole.high, whole.whole, whole.objective)
    build.add_rows(np.diff(whole.row_first), whole.row_column, whole.row_weight, whole.row_low, whole.row_high)
    made = []
    for k in range(int(rng.integers(1, 3))):
        low, high = (
            (-math.inf, math.inf) if rng.random() < 0.4 else (-float(rng.integers(0, 6)), float(rng.integers(1, 9)))
        )
        y = build.column(f"y{k}", low, high, False, float(np.round(rng.normal(), 2)))
        some = rng.choice(n, int(rng.integers(1, n + 1)), replace=False).tolist()
        weights = rng.integers(-4, 5, len(some)).astype(float)
        limit = float(rng.integers(-2, 3))
        build.row([*some, y], [*weights, float(rng.choice([-2.0, -1.0, 1.0, 4.0]))], limit, limit)
        made.append(y)
    if rng.random() < 0.7:
        build.row([int(rng.integers(n)), *made], [1.0, *[1.0] * len(made)], high=float(rng.integers(0, 8)))
    return build.statement()


def asked(statement: Statement) -> float | None:
    """Returns the optimum that HiGHS finds; None if there is none."""
    said = NativeHighs(statement).solve(statement.sign * statement.objective, math.inf)
    return None if said.x is None else statement.value(said.x)


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 10**6))
def test_a_substituted_program_has_the_same_optimum(seed: int) -> None:
    statement = extended(seed)
    program = Program(statement)
    answer = program.solve()
    if program.recognised.defined is None:
        return  # what was defined is whole anyway
    wanted = asked(statement)
    if wanted is None:
        assert answer.values_found is None
        assert answer.status is hasten.Status.INFEASIBLE
        return
    assert answer.objective == pytest.approx(wanted, abs=1e-6)
    assert answer.optimal
    assert statement.sign * answer.bound == pytest.approx(statement.sign * answer.objective, abs=1e-5)
    Checker(statement, "we")(answer.x)
    many = program.solve_all(np.stack([statement.objective, -statement.objective]))
    other = asked(replace(statement, objective=-statement.objective))
    assert many.objective == pytest.approx([wanted, other], abs=1e-6)
    certified = hasten.Certifier()(program.problem())
    assert statement.sign * certified.cost == pytest.approx(wanted, abs=1e-6)
    assert program.values(certified) == pytest.approx(Checker(statement, "we")(program.values(certified)))
    assert statement.value(program.values(certified)) == pytest.approx(wanted, abs=1e-6)


def mixed(free: bool = False) -> Statement:
    build = Builder()
    for j in range(4):
        build.column(f"x{j}", 0, 1, True, 0.0)
    build.column("size", -math.inf, 6.5, False, 1.0)
    build.row(range(5), [1.5, 2.5, 3.0, 4.0, -1.0], 0.0, 0.0, "size is")
    build.row(range(4), [1.0] * 4, low=2.0)
    if free:
        build.column("free", 0, 1, False, -1.0)
        build.row([4, 5], [1.0, 0.3], high=6.0)
    return build.statement()


def test_it_is_proved_and_described() -> None:
    program = Program(mixed())
    answer = program.solve(time_limit=5, gap=0.0, start=np.array([1.0, 1, 1, 0, 7]))
    assert (answer.objective, answer.proved, answer["size"]) == (4.0, True, 4.0)
    assert program.describe().startswith("1 continuous variable was substituted.\n")
    assert program.solve(objective={"size": -1.0}).objective == -6.5  # its bound is a rule
    assert hasten.Certifier()(program.problem()).cost == 4.0


def test_where_something_else_is_continuous_it_is_handed_over() -> None:
    program = Program(mixed(free=True))
    assert "'size' is continuous" in program.only_solver
    assert program.solve().objective == pytest.approx(3.0)


def test_another_statement_is_substituted_anew() -> None:
    program = Program(mixed())
    assert program.solve().objective == 4.0
    build = Builder()
    build.add_columns([*"abcd", "size"], [0] * 4 + [-math.inf], [1] * 4 + [20], [1, 1, 1, 1, 0], [0, 0, 0, 0, 1])
    build.row(range(5), [5.0, 5.0, 3.0, 4.0, -1.0], 0.0, 0.0)
    build.row(range(4), [1.0] * 4, low=2.0)
    program.restate(build.statement())
    assert program.solve().objective == 7.0


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6))
def test_binaries_that_are_sums_of_others_are_put_in_for(seed: int) -> None:
    rng = np.random.default_rng(seed)
    build, n = Builder(maximize=bool(rng.random() < 0.5), constant=1.5), int(rng.integers(4, 8))
    for j in range(n):
        high = 2.0 if rng.random() < 0.05 else 1.0
        build.column(f"x{j}", 0, high, True, float(rng.integers(-5, 6)))
    for _ in range(int(rng.integers(1, 4))):
        some = rng.choice(n, int(rng.integers(2, 5)), replace=False).tolist()
        weights = [float(rng.choice([-1.0, 1.0])) * w for w in [-1.0, *[1.0] * (len(some) - 1)]]
        if rng.random() < 0.8:
            weights = [math.copysign(1.0, weights[0]), *[-math.copysign(1.0, weights[0])] * (len(some) - 1)]
        if rng.random() < 0.1:
            weights[-1] *= 2.0
        limit = float(rng.random() < 0.1)
        build.row(some, weights, limit if rng.random() < 0.9 else -math.inf, limit)
    for _ in range(int(rng.integers(0, 3))):
        random_programs.add_row(build, str(rng.choice(["at most one", "implication", "knapsack", "cover"])), rng)
    statement = build.statement()
    program, truth = Program(statement), random_programs.best(statement)
    answer = program.solve()
    assert answer.optimal
    assert answer.objective == pytest.approx(truth)
    if math.isfinite(truth):
        random_programs.check(statement, answer.x)
        assert program.solve_all(statement.objective[None]).objective[0] == pytest.approx(truth)


def test_a_class_of_an_e_graph_is_one_variable() -> None:
    build = Builder()
    chosen = [build.column(f"class{c}", 0, 1, True) for c in range(3)]
    for c in range(3):
        nodes = [build.column(f"node{c}_{k}", 0, 1, True, 1.0 + k + c) for k in range(2)]
        build.row([*nodes, chosen[c]], [1.0, 1.0, -1.0], 0.0, 0.0)
        if c:
            build.row([nodes[0], chosen[c - 1]], [1.0, -1.0], high=0.0)
    build.row([2], [1.0], 1.0, 1.0)
    program = Program(build.statement())
    assert program.recognised.defined is not None
    assert program.structure.n_variables == 3
    assert "are sums of others" in program.describe()
    assert program.solve().objective == random_programs.best(program.statement) == 4.0

@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_large_sums_of_whole_columns_are_substituted(seed: int) -> None:
    rng = np.random.default_rng(seed)
    build = Builder(maximize=bool(rng.integers(2)))
    n, unit = int(rng.integers(2, 7)), float(rng.choice([1.0, -1.0, 2.0, 3.0]))
    weights = rng.integers(100, 4000, n) * (1.0 if rng.random() < 0.3 else unit)
    columns = [build.column(f"x{j}", 0, 1, True, float(rng.integers(-9, 10))) for j in range(n)]
    whole = bool(rng.integers(2))
    size = build.column("size", -math.inf, math.inf, whole, float(rng.integers(-2, 3)) / 1000)
    build.row([*columns, size], [*weights, -unit], 0.0, 0.0)
    build.row([size], [1.0], high=float(rng.integers(0, 6000)))
    build.row([size], [1.0], low=float(rng.integers(-6000, 1)))
    statement = build.statement()
    program, wanted = Program(statement), asked(statement)
    answer = program.solve()
    assert whole or not program.only_solver
    if wanted is None:
        assert answer.status is hasten.Status.INFEASIBLE
    else:
        assert answer.objective == pytest.approx(wanted, abs=1e-6)
        Checker(statement, "ours")(answer.x)

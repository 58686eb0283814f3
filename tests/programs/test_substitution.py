"""A program with continuous columns that equalities define has the optimum that HiGHS finds."""

from __future__ import annotations

import math

import numpy as np
import pytest
import random_programs
from hypothesis import given, settings
from hypothesis import strategies as st

from hasten.errors import ProgramError
from hasten.programs.native import Checker
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


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 10**6))
def test_a_substituted_program_has_the_same_optimum(seed: int) -> None:
    statement = extended(seed)
    program = Program(statement)
    answer = program.solve()
    plain = Program(statement)
    plain._without = plain._solving, None  # as if nothing could be substituted
    wanted = plain.solve()
    if not plain.only_solver:
        return  # what was defined is whole anyway
    assert program.only_solver == ""
    if wanted.values_found is None:
        assert answer.values_found is None
        assert answer.status == wanted.status
        return
    assert answer.objective == pytest.approx(wanted.objective, abs=1e-6)
    assert answer.optimal
    assert statement.sign * answer.bound == pytest.approx(statement.sign * answer.objective, abs=1e-5)
    Checker(statement, "we")(answer.x)
    many = program.solve_all(np.stack([statement.objective, -statement.objective]))
    assert many.objective[0] == pytest.approx(wanted.objective, abs=1e-6)
    assert many[1].objective == pytest.approx(plain.solve(objective=-statement.objective).objective, abs=1e-6)


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
    with pytest.raises(ProgramError, match=r"were substituted. Use program.solve\(\)"):
        program.problem()


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

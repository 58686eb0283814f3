"""Random programs as models of OR-Tools, adopted and compared with trying everything: a script of its own.

It cannot share a process with highspy, which the other tests have loaded:

    python tests/ortools_models.py COUNT SEED
"""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import random_programs
from front_ends import columns, terms

import hasten
from hasten.programs.statement import Statement
from hasten.speedup.effort import Effort


def as_mpsolver(program: Statement) -> Any:
    from ortools.linear_solver import pywraplp

    model = pywraplp.Solver.CreateSolver("SAT")
    x = [model.IntVar(low, high, name) for name, low, high in columns(program)]
    for r in range(program.n_rows):
        row = model.Constraint(float(program.row_low[r]), float(program.row_high[r]))
        for j, weight in terms(program, r):
            row.SetCoefficient(x[j], weight)
    for j, weight in enumerate(program.objective.tolist()):
        model.Objective().SetCoefficient(x[j], weight)
    model.Objective().SetOffset(program.constant)
    model.Objective().SetOptimizationDirection(program.maximize)
    return model


def as_mathopt(program: Statement) -> Any:
    from ortools.math_opt.python import mathopt

    model = mathopt.Model(name="random")
    x = [model.add_integer_variable(lb=low, ub=high, name=name) for name, low, high in columns(program)]
    for r in range(program.n_rows):
        row = model.add_linear_constraint(lb=float(program.row_low[r]), ub=float(program.row_high[r]))
        for j, weight in terms(program, r):
            row.set_coefficient(x[j], weight)
    value = mathopt.LinearSum(c * v for c, v in zip(program.objective.tolist(), x, strict=True)) + program.constant
    model.set_objective(value, is_maximize=program.maximize)
    return model


def as_cpsat(program: Statement) -> Any:
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    x = [model.new_int_var(int(low), int(high), name) for name, low, high in columns(program)]
    for r in range(program.n_rows):
        row = sum((int(weight) * x[j] for j, weight in terms(program, r)), 0 * x[0])
        if program.row_low[r] > -math.inf:
            model.add(row >= math.ceil(program.row_low[r]))
        if program.row_high[r] < math.inf:
            model.add(row <= math.floor(program.row_high[r]))
    value = sum(c * v for c, v in zip(program.objective.tolist(), x, strict=True)) + program.constant
    (model.maximize if program.maximize else model.minimize)(value)
    return model


def whole(program: Statement) -> bool:
    """Whether CP-SAT can take it: all coefficients of rows are whole numbers."""
    return bool((program.row_weight == np.rint(program.row_weight)).all())


def compare(program: Statement, model: Any) -> None:
    """Asserts that adopting a model gives the optimum of trying everything."""
    adopted = hasten.adopt(model)
    answer, truth = adopted.solve(solver="brute"), random_programs.best(program)
    assert answer.optimal, answer
    assert abs(answer.objective - truth) <= 1e-6 or answer.objective == truth, (answer.objective, truth)
    if math.isfinite(truth):
        random_programs.check(program, answer.x)


Holds = Callable[[np.ndarray, np.ndarray], np.ndarray]  # given the values of the binaries and of the others, by column


def draw_literal(rng: np.random.Generator, x: list[Any]) -> tuple[Any, Holds]:
    """Returns a literal, and whether it is true."""
    i = int(rng.integers(len(x)))
    if rng.random() < 0.6:
        return x[i], lambda b, _: b[i] == 1
    return ~x[i], lambda b, _: b[i] == 0


def logic() -> None:
    """Asserts that CP-SAT's own kinds of constraints mean to us what its manual says, by trying everything.

    CP-SAT is not asked: version 9.15 calls 13 optimal on one of these models, and finds 14 when told where to look.
    """
    from ortools.sat.python import cp_model

    rng, values, feasible = np.random.default_rng(0), [0, 2, 3], 0
    points = np.array(list(product(*[(0, 1)] * 5, *[values] * 3))).T
    b, v = points[:5], points[5:]
    for kind in [*range(7)] * 6:
        model = cp_model.CpModel()
        x = [model.new_bool_var(f"x{i}") for i in range(5)]
        y = [model.new_int_var_from_domain(cp_model.Domain.from_values(values), f"y{i}") for i in range(3)]
        (l0, h0), (l1, h1), (l2, h2), (l3, h3) = (draw_literal(rng, x) for _ in range(4))
        t0, t1, t2, t3 = (holds(b, v) for holds in (h0, h1, h2, h3))
        limit, least = int(rng.integers(1, 5)), int(rng.integers(-1, 2))
        model.add_bool_or(l0, l1, l2)
        model.add_implication(l1, l3)
        model.add_bool_and(l2).only_enforce_if(l0, l3)
        model.add(x[0] + 2 * x[1] + y[0] <= limit).only_enforce_if(l3)
        model.add(y[0] - y[1] >= least).only_enforce_if(l0)
        model.add_linear_expression_in_domain(y[0] + y[1], cp_model.Domain.from_values([0, 2, 4, 5]))
        fits = (t0 | t1 | t2) & (~t1 | t3) & (~t0 | ~t3 | t2) & np.isin(v[0] + v[1], [0, 2, 4, 5])
        fits &= (~t3 | (b[0] + 2 * b[1] + v[0] <= limit)) & (~t0 | (v[0] - v[1] >= least))
        if kind == 0:
            model.add_all_different(y)
            fits &= (v[0] != v[1]) & (v[0] != v[2]) & (v[1] != v[2])
        elif kind == 1:
            allowed = [(0, 2), (2, 3), (3, 3), (0, 0)]
            model.add_allowed_assignments([y[0], y[1]], allowed)
            fits &= np.isin(10 * v[0] + v[1], [10 * left + right for left, right in allowed])
        elif kind == 2:
            model.add_max_equality(y[2], [y[0], y[1]])
            fits &= v[2] == np.maximum(v[0], v[1])
        elif kind == 3:
            model.add_bool_xor(x[:3])
            fits &= b[:3].sum(axis=0) % 2 == 1
        elif kind == 4:
            model.add_multiplication_equality(y[2], [x[0], y[0]])
            fits &= v[2] == b[0] * v[0]
        elif kind == 5:
            model.add_assumptions([l1, l2])
            fits &= t1 & t2
        else:
            model.add_exactly_one(x)
            model.add_at_most_one(x[:3])
            fits &= (b.sum(axis=0) == 1) & (b[:3].sum(axis=0) <= 1)
        weights = rng.integers(-5, 6, 8)
        model.maximize(sum(int(w) * each for w, each in zip(weights, [*x, *y], strict=True)) + 3)
        answer = hasten.adopt(model).solve(solver="brute")
        if not fits.any():
            assert answer.status is hasten.Status.INFEASIBLE
            continue
        feasible += 1
        assert abs(answer.objective - (weights @ points + 3)[fits].max()) < 1e-6
        answer.write_to(model)
        assert list(model.proto.solution_hint.values) == answer.x.tolist()
    assert feasible > 20


def left_to_the_solver() -> None:
    """Asserts that what only HiGHS can answer is answered, in a process of its own."""
    from ortools.linear_solver import pywraplp

    model = pywraplp.Solver.CreateSolver("GLOP")
    a, b = model.NumVar(0, 2.5, "a"), model.NumVar(0, 9, "b")
    model.Add(2 * a + b <= 6.5)
    model.Maximize(a + b + 1)
    answer = hasten.adopt(model).solve()
    assert abs(answer.objective - 7.5) < 1e-9, answer
    answer.write_to(model)


def unproved(rng: np.random.Generator) -> None:
    """Asserts that HiGHS, in a process of its own, answers where nothing is proved, not even at a glance."""
    Effort.proves, n_solved = lambda self: False, 0  # type: ignore[method-assign]
    while n_solved < 3:
        program = random_programs.make(rng, 6, products=False)
        answer, truth = hasten.adopt(as_mpsolver(program)).solve(), random_programs.best(program)
        n_solved += not answer.proved
        assert abs(answer.objective - truth) <= 1e-6 or answer.objective == truth


def told_who_is_asked() -> None:
    """Asserts that whoever asks for HiGHS, where it cannot be asked, is told that CP-SAT is."""
    from ortools.sat.python import cp_model

    model, told = cp_model.CpModel(), list[str]()
    y = [model.new_int_var(0, 3, f"y{i}") for i in range(3)]
    model.add_all_different(y)
    program, handler = hasten.adopt(model), logging.Handler()
    handler.emit = lambda record: told.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("hasten.programs").addHandler(handler)
    for solver, n in (("cpsat", 0), ("highs", 1), ("highs", 1)):
        assert program._solving.way(solver).asked == "cpsat"
        assert len(told) == n, told
    assert "CP-SAT is asked instead of HiGHS" in told[0]


def objectives_by_variable() -> None:
    """Asserts that objectives may be given by OR-Tools' own variables."""
    from ortools.linear_solver import pywraplp
    from ortools.math_opt.python import mathopt
    from ortools.sat.python import cp_model

    solver, cp, plain = pywraplp.Solver.CreateSolver("SAT"), cp_model.CpModel(), mathopt.Model()
    for model, make in ((solver, solver.BoolVar), (cp, cp.new_bool_var)):
        x = [make(f"x{i}") for i in range(12)]
        model.Add(sum(x) == 1)
        assert hasten.adopt(model).solve(objective={x[10]: -1.0, x[2]: 1.0}).chosen() == {"x10": 1}
    named = [plain.add_binary_variable(name=f"x{i}") for i in range(12)]
    plain.add_linear_constraint(sum(named) == 1)
    assert hasten.adopt(plain).solve(objective=[-1.0, 1.0], order=[named[10], named[2]]).chosen() == {"x10": 1}


def main(count: int, seed: int) -> None:
    """Compares so many programs with each of OR-Tools' three kinds of models."""
    rng, n = np.random.default_rng(seed), {"mpsolver": 0, "mathopt": 0, "cpsat": 0}
    while min(n.values()) < count:
        program = random_programs.make(rng, 6, products=False)
        compare(program, as_mpsolver(program))
        compare(program, as_mathopt(program))
        n["mpsolver"] += 1
        n["mathopt"] += 1
        if whole(program):
            compare(program, as_cpsat(program))
            n["cpsat"] += 1
    logic()
    objectives_by_variable()
    told_who_is_asked()
    left_to_the_solver()
    unproved(rng)
    assert "highspy" not in sys.modules
    print(n)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))

"""CP-SAT, in a process of its own: OR-Tools and highspy cannot share one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import math
import sys

import numpy as np

import naive
from hasten.errors import SolverError
from hasten.model.solution import Status
from hasten.model.rules import Rule
from hasten.solvers import make_solver
from strategies import entity_relation, random_problem

solver, brute, rng = make_solver("cpsat"), make_solver("brute"), np.random.default_rng(9)
for p in range(1200):
    problem = random_problem(rng)
    found = solver.solve(problem)
    expected = naive.solve(problem).cost if p % 4 == 0 else brute.solve(problem).cost
    assert found.status is (Status.SOLVED if expected < math.inf else Status.INFEASIBLE), (p, found.status)
    assert found.cost == expected or abs(found.cost - expected) < 1e-6 * max(1, abs(expected)), (p, found)
assert "highspy" not in sys.modules

shape = entity_relation(2)
built = solver.n_built
for _ in range(20):
    problem = shape.problem(rng.normal(size=shape.n_labels))
    assert abs(solver.solve(problem).cost - brute.solve(problem).cost) < 1e-6
huge = np.where(rng.random(shape.n_labels) < 0.3, 1e9, rng.normal(size=shape.n_labels))
problem = shape.problem(huge)
assert abs(solver.solve(problem).cost - brute.solve(problem).cost) < 1e-6 * abs(brute.solve(problem).cost)
assert solver.n_built == built + 1

shape = entity_relation(14)
problem = shape.problem(rng.normal(size=shape.n_labels))
for seconds, statuses in ((0, (Status.NO_TIME,)), (0.1, (Status.NO_TIME, Status.TIME_LIMIT))):
    found = make_solver("cpsat", time_limit=seconds).solve(problem)
    assert found.status in statuses, found.status
    assert found.bound <= found.cost

odd = Rule.of("odd", [(0, "person", math.pi), (1, "person", math.e)], at_most=3)
for call in (
    lambda: solver.solve(entity_relation(2).problem(np.zeros(20), rules=[odd])),
    lambda: make_solver("highs"),
):
    try:
        call()
    except SolverError as error:
        print(error)
    else:
        raise AssertionError("no error")
"""


def test_cpsat_in_a_process_of_its_own():
    from hasten.solvers import available_solvers

    if not available_solvers()["cpsat"]:
        pytest.skip("ortools is not installed")
    here = str(Path(__file__).parents[1])
    command = [sys.executable, "-W", "error", "-c", f"import sys; sys.path.insert(0, {here!r})\n{SCRIPT}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    odd, both = done.stdout.splitlines()
    assert "small denominators" in odd
    assert "cannot share a process with ortools" in both

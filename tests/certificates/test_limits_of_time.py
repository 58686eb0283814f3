"""Certificates keep limits of time: what does not fit is left out, and what is shown by then holds."""

from __future__ import annotations

import math
import signal
import threading
import time

import hard
import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint

import hasten
from hasten import Certifier, Problem
from hasten import certificate as checker
from hasten.support.clock import now

SOON = 2.0  # seconds that a machine under load may be late
LONG = hard.packing(60)


def certified(problem: Problem, **settings: object) -> hasten.certificates.Certificate:
    """Returns a certificate within limits, checked from its first line on."""
    found = Certifier(**settings).certificate(problem)  # type: ignore[arg-type]
    lower, _, _ = checker.check(found.lines)
    assert checker.exact(found.lower) <= lower
    return found


@pytest.mark.parametrize("limits", [{"time_limit": 0.5}, {"call_limit": 0.5}, {"time_limit": 0.5, "call_limit": 9.0}])
@pytest.mark.parametrize("problem", [LONG, hard.conflicts(200, 3_000), hard.spin_glass(20)])
def test_a_long_proof_is_written_as_far_as_it_comes(problem: Problem, limits: dict[str, float]) -> None:
    certified(problem, time_limit=0.0)  # compiles
    began = now()
    found = certified(problem, max_nodes=hard.FOREVER, **limits)
    assert now() - began < 0.5 + SOON
    assert -math.inf < found.lower < found.upper < math.inf
    assert str(found).endswith("The proof stays open.")


def test_without_any_time_the_statement_is_left_and_what_it_shows() -> None:
    found = certified(LONG, time_limit=0.0)
    assert found.lower <= -float(LONG.cost[LONG.cost < 0].size)
    assert found.lines[-1] == '["sum"]'


def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    problem = hard.spin_glass(5)
    assert certified(problem, time_limit=600.0) == certified(problem)


@pytest.mark.parametrize("answer", ["certified", "search"])
def test_a_speedup_keeps_its_limits(answer: str) -> None:
    speedup = hasten.Speedup(LONG.structure.schema, answer=answer, limits=hasten.Limits(time_limit=0.5))
    if answer == "search":
        speedup.fit([hard.packing(8)])
    speedup.certificate(LONG)
    began = now()
    found = speedup.certificate(LONG)
    assert now() - began < 0.5 + SOON
    checker.check(found.lines)
    assert found.lower <= found.upper


def test_a_program_keeps_its_limit() -> None:
    rows, items = LONG.graph.row_weight.reshape(5, -1), LONG.cost[1::2]
    limits = LinearConstraint(rows, -np.inf, LONG.graph.row_high)
    program = hasten.adopt(c=items, integrality=np.ones(60), bounds=Bounds(0, 1), constraints=limits)
    program.certificate(time_limit=0.1)
    began = now()
    found = program.certificate(time_limit=0.5)
    assert now() - began < 0.5 + SOON
    checker.check(found.lines)
    assert -math.inf < found.lower < found.upper < 0.0


def test_ctrl_c_gets_through() -> None:
    certified(LONG, time_limit=0.0)
    threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        Certifier(max_nodes=hard.FOREVER).certificate(hard.packing(80))
    assert time.monotonic() - began < 0.3 + SOON

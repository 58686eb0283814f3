"""What a proof claims, checked claim by claim."""

from __future__ import annotations

import math
from typing import Any

import exact
import naive
import numpy as np
from opened import OpenedModule, opened
from scratch import dual_for

from hasten.kernels.proof import dual
from hasten.kernels.tolerance import is_proved
from hasten.model.problem import Problem
from hasten.model.solution import Solution, Status

d = OpenedModule(dual)
INF = math.inf
NONE = np.zeros(0)


def assert_sound(found: Solution, optimum: Any) -> None:
    """Asserts all that an answer claims: bound, labels, cost, proof and infeasibility."""
    assert not math.isnan(found.bound)
    assert exact.at_most(found.bound, optimum)
    if found.status is Status.INFEASIBLE:
        assert optimum == INF
        assert (found.cost, found.bound) == (INF, INF)
    if found.values is None:
        assert found.status in (Status.INFEASIBLE, Status.OPEN)
        assert not found.valid
        return
    labels = tuple(found.labels.tolist())
    assert found.valid
    assert naive.valid(found.problem, labels)
    total = exact.total(found.problem, labels)
    rounding = 1e-14 * exact.largest_sum(found.problem)
    assert abs(found.cost - total) <= rounding
    assert found.bound <= found.cost
    size = exact.largest_sum(found.problem)
    assert (found.status is Status.PROVED) == opened(is_proved)(found.cost, found.bound, size)
    if found.proved:
        assert total - optimum <= 2e-6 * max(1, abs(optimum))


def begin(problem: Problem, messages: np.ndarray = NONE) -> d.Dual:
    """Returns the dual of a problem as it is declared, before the first sweep."""
    graph = problem.graph
    dual = dual_for(graph)
    d.start_dual(graph, problem.cost, messages, dual)
    return dual

"""What a proof claims, checked claim by claim."""

from __future__ import annotations

import math
from typing import Any

import exact
import naive
import numpy as np
from opened import OpenedModule, opened
from scratch import dual_for

from hasten.kernels.tolerance import is_proved
from hasten.model.problem import Problem
from hasten.model.solution import Solution, Status
from hasten.proof.sweep import dual

d = OpenedModule(dual)
INF = math.inf


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


def begin(problem: Problem, size: float = 0.0, seed: int = 0) -> d.Dual:
    """Returns the dual of a problem as it is declared, before the first sweep, with messages of a size."""
    graph = problem.graph
    dual = dual_for(graph)
    d.start_dual(graph, problem.cost, dual)
    drawn = np.random.default_rng(seed).normal(size=dual.message.size) * size
    for a, v in enumerate(graph.scope.tolist() if size else ()):
        if graph.table_at[graph.factor_of[a]] >= 0:
            sent = slice(graph.message_at[a], graph.message_at[a] + graph.first[v + 1] - graph.first[v])
            dual.message[sent] = drawn[sent]
            dual.belief[graph.first[v] : graph.first[v + 1]] += drawn[sent]
    return dual

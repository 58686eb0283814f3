"""Enumeration: the reference for tests, and honest work for very small problems."""

from __future__ import annotations

import math

import numpy as np

from hasten.errors import SolverTooSmall
from hasten.kernels.score import enumerate_labellings
from hasten.model.solution import Solution, Status
from hasten.solvers.base import Asked, BaseSolver, answer
from hasten.solvers.objective import Layout, lower_bound
from hasten.support.clock import now

CHUNK = 100_000  # labellings between two looks at the clock


class BruteSolver(BaseSolver):
    """Scores every labelling; a tie goes to the first, the last variable varying fastest."""

    name = "brute"

    def __init__(
        self, time_limit: float | None = None, max_labellings: int = 20_000_000, interruptible: bool = True
    ) -> None:
        super().__init__(time_limit, interruptible=False)  # it can be stopped between two chunks as it is
        self.max_labellings = max_labellings

    def _solve(self, asked: Asked) -> Solution:
        problem = asked.problem
        left = math.prod(np.diff(problem.graph.first).tolist())
        if left > self.max_labellings:
            raise SolverTooSmall(
                f"brute would score {left:.3g} labellings; its limit is {self.max_labellings:,}. "
                'Use another solver, such as "highs", or raise max_labellings.'
            )
        labels = np.zeros(len(problem.graph.order), dtype=np.int64)
        best, cost = labels.copy(), math.inf
        while left > 0:
            n = min(left, CHUNK)
            cost = enumerate_labellings(problem.graph, problem.cost, problem.table, labels, n, best, cost)
            left -= n
            if left and now() >= asked.deadline:
                bound = lower_bound(Layout(problem.graph), problem)
                if cost == math.inf:
                    return answer(problem, Status.NO_TIME, bound=bound)
                return answer(problem, Status.TIME_LIMIT, best, cost, bound)
        if cost == math.inf:
            return answer(problem, Status.INFEASIBLE)
        return answer(problem, Status.SOLVED, best, cost)


SOLVER = BruteSolver

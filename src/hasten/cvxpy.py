"""hasten as a solver of CVXPY: `problem.solve(solver=hasten.cvxpy.HASTEN())`.

A parametrised problem (DPP) whose parameters are in its objective is recognised when it comes again with other values.
Imports `hasten.hosts` and the rooms below it.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from hasten.hosts.asking import Asking, Outcome, missing, outcome, refuse_options, relative_gap
from hasten.programs.adopting.matrices import state_arrays
from hasten.programs.answer import Answer

try:
    from cvxpy import settings
    from cvxpy.reductions.solution import Solution, failure_solution
    from cvxpy.reductions.solvers.conic_solvers.conic_solver import dims_to_solver_dict
    from cvxpy.reductions.solvers.conic_solvers.highs_conif import HIGHS
except ImportError as error:
    raise missing("cvxpy", error) from None

OPTIONS = ("time_limit", "mip_rel_gap")
_CODES = {
    Outcome.OPTIMAL: settings.OPTIMAL,
    Outcome.FEASIBLE: settings.USER_LIMIT,
    Outcome.NOTHING: settings.SOLVER_ERROR,
    Outcome.INFEASIBLE: settings.INFEASIBLE,
    Outcome.UNBOUNDED: settings.UNBOUNDED,
    Outcome.FAILED: settings.SOLVER_ERROR,
}


class _Found(NamedTuple):
    """An answer on its way through CVXPY."""

    answer: Answer
    seconds: float


class HASTEN(HIGHS):  # type: ignore[misc]
    """Answers mixed-integer linear problems with a proof where it can; problems without whole variables go to HiGHS.

    Options of `solve`: `time_limit` in seconds; `mip_rel_gap`, without which recognised problems are answered to
    optimality; `warm_start` from the last values of the same problem; `verbose`. HiGHS takes its own options.
    `answer` is the last answer; None where the problem went to HiGHS.
    """

    def __init__(self) -> None:
        self.answer: Answer | None = None
        super().__init__()

    def name(self) -> str:
        """Returns its name."""
        return "HASTEN"

    def import_solver(self) -> None:
        """Needs nothing that is not there."""

    def solve_via_data(
        self, data: Any, warm_start: bool, verbose: bool, solver_opts: dict[str, Any], solver_cache: Any = None
    ) -> Any:
        """Solves the matrices that CVXPY made of a problem."""
        whole = [*data[settings.BOOL_IDX], *data[settings.INT_IDX]]
        self.answer = None
        if not whole:
            return super().solve_via_data(data, warm_start, verbose, solver_opts, solver_cache)
        refuse_options(list(solver_opts), OPTIONS, "cvxpy")
        n, began = len(data[settings.C]), time.perf_counter()
        low, high = data[settings.LOWER_BOUNDS], data[settings.UPPER_BOUNDS]
        low = np.full(n, -np.inf) if low is None else np.array(low, dtype=np.float64)
        high = np.full(n, np.inf) if high is None else np.array(high, dtype=np.float64)
        binary = np.array(data[settings.BOOL_IDX], dtype=np.int64)
        low[binary], high[binary] = np.maximum(low[binary], 0.0), np.minimum(high[binary], 1.0)
        most = np.asarray(data[settings.B], dtype=np.float64)
        least = np.where(
            np.arange(len(most)) < dims_to_solver_dict(data[settings.DIMS])[settings.EQ_DIM], most, -np.inf
        )
        kind = np.zeros(n)
        kind[whole] = 1
        rows = [(data[settings.A], least, most)] if len(most) else []
        statement = state_arrays(data[settings.C], integrality=kind, bounds=(low, high), constraints=rows)
        last = None if solver_cache is None else solver_cache.get(self.name())
        start = last if warm_start and last is not None and len(last) == n else None
        asking = Asking(
            solver_opts.get("time_limit"), solver_opts.get("mip_rel_gap"), start, print if verbose else None
        )
        self.answer = asking.one(statement)
        if solver_cache is not None and self.answer.values_found is not None:
            solver_cache[self.name()] = self.answer.x
        return _Found(self.answer, time.perf_counter() - began)

    def invert(self, results: Any, inverse_data: Any) -> Any:
        """Returns an answer in CVXPY's words."""
        if not isinstance(results, _Found):
            return super().invert(results, inverse_data)
        answer, status = results.answer, _CODES[outcome(results.answer)]
        stats = {"bound": answer.bound, "gap": float(relative_gap(answer)), "proved": answer.proved, "how": answer.how}
        attributes = {settings.SOLVE_TIME: results.seconds, settings.EXTRA_STATS: stats}
        if answer.values_found is None:
            return failure_solution(status, attributes)
        value = answer.objective + inverse_data[settings.OFFSET]
        return Solution(status, value, {HIGHS.VAR_ID: answer.x}, None, attributes)

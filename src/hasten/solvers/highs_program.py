"""A linear program, some columns of which may be whole, in HiGHS: here, or in a process of its own.

The one place where HiGHS gets a program and options, and is run. Where highspy cannot be loaded beside OR-Tools, this
file is the script of another process (`hasten.support.child`). It has nothing but highspy and NumPy: it imports nothing
of hasten.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

QUIET = {"output_flag": False, "threads": 1, "mip_rel_gap": 0.0}
TIGHT = QUIET | {
    "mip_abs_gap": 1e-9,
    "mip_feasibility_tolerance": 1e-9,
    "primal_feasibility_tolerance": 1e-9,
    "dual_feasibility_tolerance": 1e-9,
}
OPTIMAL, INFEASIBLE, UNBOUNDED, TIME, REJECTED = "optimal", "infeasible", "unbounded", "time", "rejected"


class Said(NamedTuple):
    """HiGHS' answer: a word of the above, or HiGHS' own; the columns, their cost and a bound, where there are any."""

    word: str
    x: list[float] | None = None
    value: float = math.inf
    bound: float = -math.inf


class HighsProgram:
    """A program in HiGHS, of which only the costs and the upper bounds of columns change.

    `program` has arrays, all by name: the bounds `low` and `high` of columns and which of them are `whole`; rows as
    `row_first`, `row_column`, `row_weight`, `row_low` and `row_high`. `stop`, if set, is asked now and then whether to
    stop; being asked takes up to a tenth as long as a small problem. `best` is then the best answer of a run that has
    not ended yet, for whoever cannot wait.
    """

    stop: Callable[[], bool] | None = None
    best: Said | None = None

    def __init__(self, program: Mapping[str, Any], options: Mapping[str, Any] = TIGHT) -> None:
        import highspy

        self._highspy, self._highs = highspy, highspy.Highs()
        highs, arrays = self._highs, {name: np.asarray(array) for name, array in program.items()}
        for option, value in options.items():  # older versions lack some, which are then ignored
            highs.setOptionValue(option, value)
        n = len(arrays["low"])
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = n, len(arrays["row_low"])
        lp.col_cost_ = np.zeros(n)
        self._low, self._high = arrays["low"].astype(np.float64), arrays["high"].astype(np.float64)
        lp.col_lower_, lp.col_upper_ = self._low, self._high
        lp.row_lower_, lp.row_upper_ = arrays["row_low"].astype(np.float64), arrays["row_high"].astype(np.float64)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = arrays["row_first"].astype(np.int32)
        lp.a_matrix_.index_ = arrays["row_column"].astype(np.int32)
        lp.a_matrix_.value_ = arrays["row_weight"].astype(np.float64)
        self.whole = bool(arrays["whole"].any())
        if self.whole:
            kind = highspy.HighsVarType
            lp.integrality_ = [kind.kInteger if whole else kind.kContinuous for whole in arrays["whole"].tolist()]
        self.warm = False  # whether a run may start from the last one
        self.accepted = highs.passModel(lp) != highspy.HighsStatus.kError
        self._columns, self._listens = np.arange(n, dtype=np.int32), False
        self._gap = options.get("mip_rel_gap", 0.0)
        self._bounded = bool(np.isfinite(self._low).all() and np.isfinite(self._high).all())

    def run(self, cost: Any, seconds: float = math.inf, high: Any = None, gap: float | None = None) -> Said:
        """Minimises for some costs and upper bounds of columns, for so many seconds or to a relative gap."""
        highs, status = self._highs, self._highspy.HighsModelStatus
        if not self.accepted:
            return Said(REJECTED)
        if not len(cost):
            return Said(OPTIMAL, [], 0.0, 0.0)
        if high is not None and not np.array_equal(high, self._high):
            highs.changeColsBounds(len(high), self._columns, self._low, high.astype(np.float64))
            self._high = high
        if gap is not None and gap != self._gap:
            highs.setOptionValue("mip_rel_gap", gap)
            self._gap = gap
        highs.changeColsCost(len(cost), self._columns, np.asarray(cost, dtype=np.float64))
        highs.setOptionValue("time_limit", math.inf if math.isinf(seconds) else highs.getRunTime() + max(0.0, seconds))
        self._listen()
        self.best, self.warm, was_warm = None, True, self.warm
        highs.run()
        said = highs.getModelStatus()
        if said == status.kUnboundedOrInfeasible and not self._bounded:  # presolve cannot tell which
            highs.setOptionValue("presolve", "off")
            highs.run()
            highs.setOptionValue("presolve", "choose")
            said = highs.getModelStatus()
        words = {
            status.kOptimal: OPTIMAL,
            status.kModelEmpty: OPTIMAL,
            status.kInfeasible: INFEASIBLE,
            status.kUnboundedOrInfeasible: INFEASIBLE if self._bounded else "unbounded or infeasible",
            status.kUnbounded: UNBOUNDED,
            status.kTimeLimit: TIME,
            status.kInterrupt: TIME,
        }
        word, info = words.get(said) or highs.modelStatusToString(said), highs.getInfo()
        if word == INFEASIBLE:
            self.warm = was_warm
            return Said(word, None, math.inf, math.inf)
        value = float(info.objective_function_value)
        bound = float(info.mip_dual_bound) if self.whole else value if word == OPTIMAL else -math.inf
        feasible = info.primal_solution_status == self._highspy.kSolutionStatusFeasible
        if word == OPTIMAL or (word == TIME and feasible):  # whether an optimum is feasible, the caller checks
            return Said(word, highs.getSolution().col_value, value, bound)
        return Said(word, None, math.inf, bound)

    def _listen(self) -> None:
        """Lets HiGHS ask whether to stop, if somebody can answer."""
        listens = self.stop is not None
        if listens != self._listens:
            with suppress(AttributeError):  # older versions do not ask
                asks, better = (self._highs.cbSimplexInterrupt, self._highs.cbMipInterrupt), self._highs.cbMipSolution
                for event, answer in ((asks[0], self._tell), (asks[1], self._tell), (better, self._keep)):
                    if listens:
                        event.subscribe(answer)
                    else:
                        event.clear()
            self._listens = listens

    def _tell(self, event: Any) -> None:
        """Tells HiGHS whether to stop; it would remember that from its last run."""
        event.data_in.user_interrupt = self.stop is not None and self.stop()

    def _keep(self, event: Any) -> None:
        """Keeps a better answer of a run that goes on."""
        told = event.data_out
        self.best = Said(
            TIME, list(told.mip_solution), float(told.objective_function_value), float(told.mip_dual_bound)
        )

    def start_from(self, values: Any) -> None:
        """Gives HiGHS values of the first columns to start from, nan for none; it works out the others."""
        values = np.asarray(values, dtype=np.float64)
        known = np.flatnonzero(~np.isnan(values))
        with suppress(TypeError):  # older versions take solutions of all columns alone
            self._highs.setSolution(len(known), self._columns[known], values[known])

    def forget(self) -> None:
        """Drops the last basis and solution."""
        self._highs.clearSolver()
        self.warm = False


_PROGRAMS: list[HighsProgram] = []


def answer(request: dict[str, Any]) -> Said | None:
    """Takes a program, `{"program": arrays}`, or answers for `cost`, `seconds`, `gap` and `start`."""
    if "program" in request:
        _PROGRAMS[:] = [HighsProgram(request["program"])]
        return None
    _PROGRAMS[0].forget()
    if request["start"] is not None:
        _PROGRAMS[0].start_from(request["start"])
    said = _PROGRAMS[0].run(request["cost"], request["seconds"], gap=request["gap"])
    return said._replace(x=None if said.x is None else list(said.x))

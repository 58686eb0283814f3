"""A program in HiGHS: in this process or, where `ortools` is loaded already, in one of its own.

As a script this file reads requests and writes answers, as lines of JSON: `{"program": arrays}`, and then
`{"objective": costs, "seconds": limit}`, as often as one likes. It needs highspy and NumPy alone: it imports nothing of
hasten.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

TIGHT = 1e-9  # tolerance of feasibility and gaps
OPTIONS = {
    "output_flag": False,
    "threads": 1,
    "parallel": "off",
    "mip_rel_gap": 0.0,
    "mip_abs_gap": TIGHT,
    "mip_feasibility_tolerance": TIGHT,
    "primal_feasibility_tolerance": TIGHT,
    "dual_feasibility_tolerance": TIGHT,
}


class Said(NamedTuple):
    """HiGHS' answer: "optimal", "infeasible", "unbounded", "time", or another word of HiGHS."""

    status: str
    x: Any = None
    value: float = math.inf
    bound: float = -math.inf


class HighsProgram:
    """A program in HiGHS, of which costs and bounds change.

    `arrays` are low, high and whole, for each column; row_low and row_high, for each row; and its terms, row by row, in
    row_first, row_column and row_weight.
    """

    def __init__(self, arrays: Mapping[str, Any], options: Mapping[str, Any] | None = None) -> None:
        import highspy

        self._highspy, highs = highspy, highspy.Highs()
        self._highs = highs
        for option, value in (OPTIONS | dict(options or {})).items():  # older versions lack some, which are ignored
            highs.setOptionValue(option, value)
        self._events: list[Any] = []
        with suppress(AttributeError):  # of older versions
            self._events = [highs.cbSimplexInterrupt, highs.cbMipInterrupt]
        self._stop: Callable[[], bool] | None = None
        status = highspy.HighsModelStatus
        self._words = {status.kOptimal: "optimal", status.kModelEmpty: "optimal", status.kUnbounded: "unbounded"}
        self._words |= {status.kTimeLimit: "time", status.kInterrupt: "time"}
        low, high, self._whole = _floats(arrays["low"]), _floats(arrays["high"]), bool(np.any(arrays["whole"]))
        self._columns = np.arange(len(low), dtype=np.int32)
        self._bounded = bool(np.isfinite(low).all() and np.isfinite(high).all())
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(low), len(arrays["row_low"])
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = np.zeros(len(low)), low, high
        lp.row_lower_, lp.row_upper_ = _floats(arrays["row_low"]), _floats(arrays["row_high"])
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.asarray(arrays["row_first"], dtype=np.int32)
        lp.a_matrix_.index_ = np.asarray(arrays["row_column"], dtype=np.int32)
        lp.a_matrix_.value_ = _floats(arrays["row_weight"])
        if self._whole:
            kind = highspy.HighsVarType
            lp.integrality_ = [kind.kInteger if whole else kind.kContinuous for whole in arrays["whole"]]
        self.accepted = highs.passModel(lp) != highspy.HighsStatus.kError

    def heed(self, stop: Callable[[], bool] | None) -> None:
        """Lets HiGHS ask now and then whether to stop; asking takes up to a tenth as long as a small problem."""
        if (stop is None) != (self._stop is None):
            for event in self._events:
                if stop is None:
                    event.clear()
                else:
                    event.subscribe(self._listen)
        self._stop = stop

    def _listen(self, event: Any) -> None:
        """Tells HiGHS whether to stop; it would remember that from its last run."""
        event.data_in.user_interrupt = self._stop is not None and self._stop()

    def forget(self) -> None:
        """Drops the last basis and solution: a claim that cannot be checked is not taken from a warm start."""
        self._highs.clearSolver()

    def run(self, cost: Any, seconds: float) -> Said:
        """Minimises for some costs."""
        highs, status = self._highs, self._highspy.HighsModelStatus
        highs.changeColsCost(len(cost), self._columns, cost)
        highs.setOptionValue("time_limit", math.inf if math.isinf(seconds) else highs.getRunTime() + max(0.0, seconds))
        highs.run()
        said = highs.getModelStatus()
        if said == status.kUnboundedOrInfeasible and not self._bounded:  # presolve cannot tell which
            highs.setOptionValue("presolve", "off")
            highs.run()
            highs.setOptionValue("presolve", "choose")
            said = highs.getModelStatus()
        if said in (status.kInfeasible, status.kUnboundedOrInfeasible):
            return Said("infeasible", bound=math.inf)
        word, info = self._words.get(said) or highs.modelStatusToString(said), highs.getInfo()
        value, bound = info.objective_function_value, info.mip_dual_bound if self._whole else -math.inf
        if word == "optimal":
            x = highs.getSolution().col_value
            return Said(word, x, value, bound if self._whole else value) if len(cost) else Said(word, [], 0.0, 0.0)
        if word == "time" and info.primal_solution_status == self._highspy.kSolutionStatusFeasible:
            return Said(word, highs.getSolution().col_value, value, bound)
        return Said(word, bound=bound)


def _floats(values: Any) -> Any:
    return np.asarray(values, dtype=np.float64)


def serve() -> None:
    """Answers requests, a line each, until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what HiGHS prints is not an answer
    program: Any = None
    for line in sys.stdin:
        asked, said = json.loads(line), Said("rejected")
        if "program" in asked:
            program = HighsProgram(asked["program"])
        elif program.accepted:
            program.forget()
            said = program.run(_floats(asked["objective"]), asked["seconds"])
        answers.write(
            json.dumps([said.status, None if said.x is None else list(said.x), said.value, said.bound]) + "\n"
        )
        answers.flush()


if __name__ == "__main__":
    serve()

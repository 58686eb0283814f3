"""HiGHS on a program as it was given: here, or in a process of its own where `ortools` is loaded already.

As a script this file reads requests and writes answers, as lines of JSON: `{"program": arrays}`, and then
`{"objective": costs, "seconds": limit}`, as often as one likes. It has nothing but highspy and NumPy: it imports
nothing of hasten.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

import numpy as np

TIGHT = 1e-9  # tolerance of feasibility and gaps


class HighsProgram:
    """A program in HiGHS, of which only the objective changes."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        import highspy

        self._highspy, highs = highspy, highspy.Highs()
        self._highs = highs
        options = {
            "output_flag": False,
            "threads": 1,
            "mip_rel_gap": 0.0,
            "mip_abs_gap": TIGHT,
            "mip_feasibility_tolerance": TIGHT,
            "primal_feasibility_tolerance": TIGHT,
            "dual_feasibility_tolerance": TIGHT,
        }
        for option, value in options.items():
            highs.setOptionValue(option, value)
        self.stopped = False  # set from outside, where HiGHS is to stop
        with suppress(AttributeError):  # of older versions
            for event in (highs.cbSimplexInterrupt, highs.cbMipInterrupt):
                event.subscribe(self._listen)
        lp = highspy.HighsLp()
        n, m = len(arrays["low"]), len(arrays["row_low"])
        lp.num_col_, lp.num_row_ = n, m
        lp.col_cost_ = np.zeros(n)
        lp.col_lower_, lp.col_upper_ = _floats(arrays["low"]), _floats(arrays["high"])
        lp.row_lower_, lp.row_upper_ = _floats(arrays["row_low"]), _floats(arrays["row_high"])
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.asarray(arrays["row_first"], dtype=np.int32)
        lp.a_matrix_.index_ = np.asarray(arrays["row_column"], dtype=np.int32)
        lp.a_matrix_.value_ = _floats(arrays["row_weight"])
        kind = highspy.HighsVarType
        lp.integrality_ = [kind.kInteger if whole else kind.kContinuous for whole in arrays["whole"]]
        self._columns = np.arange(n, dtype=np.int32)
        self._whole = bool(np.any(arrays["whole"]))
        self.accepted = highs.passModel(lp) != highspy.HighsStatus.kError

    def _listen(self, event: Any) -> None:
        if self.stopped:
            event.interrupt()

    def solve(self, cost: Any, seconds: float) -> dict[str, Any]:
        """Minimises for some costs; returns what HiGHS says: a word, the values, what they cost, and a bound."""
        highs, status = self._highs, self._highspy.HighsModelStatus
        if not self.accepted:
            return {"status": "rejected"}
        cost = _floats(cost)
        highs.clearSolver()  # a claim that cannot be checked is not taken from a warm start
        highs.changeColsCost(len(cost), self._columns, cost)
        highs.setOptionValue("time_limit", math.inf if math.isinf(seconds) else highs.getRunTime() + max(0.0, seconds))
        highs.run()
        said = highs.getModelStatus()
        if said == status.kUnboundedOrInfeasible:  # presolve cannot tell which
            highs.setOptionValue("presolve", "off")
            highs.run()
            highs.setOptionValue("presolve", "choose")
            said = highs.getModelStatus()
        info = highs.getInfo()
        found = info.primal_solution_status == self._highspy.kSolutionStatusFeasible
        words = {status.kOptimal: "optimal", status.kInfeasible: "infeasible", status.kUnbounded: "unbounded"}
        words |= {status.kTimeLimit: "time", status.kInterrupt: "time", status.kModelEmpty: "optimal"}
        word = words.get(said, highs.modelStatusToString(said))
        value = info.objective_function_value
        bound = value if word == "optimal" else (info.mip_dual_bound if self._whole else -math.inf)
        has_values = word == "optimal" or (found and word == "time")  # whether an optimum holds, the caller checks
        x = list(highs.getSolution().col_value) if has_values else None
        if word == "optimal" and not len(cost):
            x, value, bound = [], 0.0, 0.0
        return {"status": word, "x": x, "value": value, "bound": bound}


def arrays_of(highs: Any) -> dict[str, Any]:
    """Returns the arrays of the model that HiGHS holds."""
    import highspy

    model, lp = highs.getModel(), highs.getLp()
    kinds = [int(kind) for kind in lp.integrality_] or [0] * lp.num_col_
    start = [0]
    with suppress(Exception):
        start = list(model.hessian_.start_)
    by_row = lp.a_matrix_.format_ == highspy.MatrixFormat.kRowwise
    return {
        "columns": list(lp.col_names_) or [""] * lp.num_col_,
        "low": list(lp.col_lower_),
        "high": list(lp.col_upper_),
        "kind": kinds,
        "objective": list(lp.col_cost_),
        "constant": lp.offset_,
        "maximize": lp.sense_ == highspy.ObjSense.kMaximize,
        "rows": list(lp.row_names_) or [""] * lp.num_row_,
        "by_row": by_row,
        "start": list(lp.a_matrix_.start_),
        "index": list(lp.a_matrix_.index_),
        "value": list(lp.a_matrix_.value_),
        "row_low": list(lp.row_lower_),
        "row_high": list(lp.row_upper_),
        "hessian": [start, list(model.hessian_.index_), list(model.hessian_.value_)] if len(start) > 1 else None,
    }


def _floats(values: Any) -> Any:
    return np.asarray(values, dtype=np.float64)


def serve() -> None:
    """Answers requests, a line each, until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what HiGHS prints is not an answer
    program: HighsProgram | None = None
    for line in sys.stdin:
        asked = json.loads(line)
        if "program" in asked:
            program = HighsProgram(asked["program"])
            said: dict[str, Any] = {}
        else:
            said = cast(HighsProgram, program).solve(asked["objective"], asked["seconds"])
        answers.write(json.dumps(said) + "\n")
        answers.flush()


if __name__ == "__main__":
    serve()

"""The solver on the program as it was given: it answers where nothing was recognised, or nothing proved."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from weakref import finalize

import numpy as np

from hasten.errors import SolverWrong
from hasten.kernels.cells import row_limits
from hasten.model.solution import Status
from hasten.programs.answer import UNBOUNDED
from hasten.programs.statement import Statement
from hasten.solvers import highs_process, load
from hasten.solvers.base import LATE
from hasten.solvers.gurobi import PARAMETERS, add_row, optimize, start_gurobi
from hasten.support.arrays import FloatArray
from hasten.support.child import Child
from hasten.support.clock import LeftBehindError, Stop, run_waiting

MAX_DENSE = 40_000  # entries of a matrix that is multiplied as a whole
_FIELDS = ("low", "high", "whole", "row_first", "row_column", "row_weight", "row_low", "row_high")


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """A solver's answer to a program: costs are minimised, and know no constant."""

    status: Status
    x: FloatArray | None = None
    bound: float = -math.inf
    reason: str = ""


class Native(Protocol):
    """A program that a solver holds."""

    def __init__(self, program: Statement) -> None: ...

    def solve(self, cost: FloatArray, seconds: float) -> Said:
        """Minimises for some costs."""
        ...


def highs_is_elsewhere() -> bool:
    """Whether HiGHS needs a process of its own: it cannot share one with OR-Tools."""
    return "ortools" in sys.modules and "highspy" not in sys.modules


class NativeHighs:
    """HiGHS, in a process of its own where it must."""

    def __init__(self, program: Statement) -> None:
        self._checked = Checker(program, "HiGHS")
        self._arrays = {name: getattr(program, name) for name in _FIELDS}
        self._elsewhere = Child(highs_process.__file__) if highs_is_elsewhere() else None
        if self._elsewhere is not None:
            finalize(self, self._elsewhere.end)
            self._elsewhere.ask({"program": {name: array.tolist() for name, array in self._arrays.items()}})
        else:
            load("highs")
            self._here = highs_process.HighsProgram(self._arrays)

    def solve(self, cost: FloatArray, seconds: float) -> Said:
        """Minimises for some costs."""
        if self._elsewhere is None:
            said = self._wait(cost, seconds)
        else:
            heard = self._elsewhere.ask({"objective": cost.tolist(), "seconds": seconds})
            if heard is None:
                return Said(Status.FAILED, reason="The process of HiGHS ended over it.")
            said = highs_process.Said(*heard)
        if said.status == "infeasible":
            return Said(Status.INFEASIBLE, bound=math.inf)
        if said.status not in ("optimal", "time"):
            return Said(
                Status.FAILED, reason=UNBOUNDED if said.status == "unbounded" else f"HiGHS says: {said.status}."
            )
        if said.x is None:
            return Said(Status.NO_TIME, bound=said.bound)
        return Said(Status.SOLVED if said.status == "optimal" else Status.TIME_LIMIT, self._checked(said.x), said.bound)

    def _wait(self, cost: FloatArray, seconds: float) -> highs_process.Said:
        """Runs HiGHS in a thread of its own, so that Ctrl-C gets through; a run that does not stop is left behind."""
        here, stop = self._here, Stop()
        if not here.accepted:
            return highs_process.Said("rejected")
        here.heed(stop.is_set)

        def run() -> highs_process.Said:
            here.forget()
            return here.run(cost, seconds)

        try:
            return run_waiting(run, stop.set, time.monotonic() + seconds + LATE)
        except LeftBehindError:
            self._here = highs_process.HighsProgram(self._arrays)
            return highs_process.Said("time")


class NativeGurobi:
    """Gurobi, with one thread."""

    def __init__(self, program: Statement) -> None:
        load("gurobi")
        import gurobipy

        self._checked, self._codes, self._limit, self._strict = (
            Checker(program, "Gurobi"),
            gurobipy.GRB,
            math.inf,
            False,
        )
        self._model = model = gurobipy.Model(env=start_gurobi({"Threads": 1, "MIPGap": 0.0}))
        n, first = program.n_columns, program.row_first
        columns = list(model.addVars(n, lb=program.low.tolist(), ub=program.high.tolist()).values())
        self._columns = columns
        for column, whole, binary in zip(columns, program.whole, program.binary, strict=True):
            column.VType = "B" if binary else "I" if whole else "C"
        for r in range(program.n_rows):
            cells = slice(first[r], first[r + 1])
            named = [columns[j] for j in program.row_column[cells].tolist()]
            add_row(model, program.row_weight[cells].tolist(), named, program.row_low[r], program.row_high[r])
        model.update()

    def solve(self, cost: FloatArray, seconds: float) -> Said:
        """Minimises for some costs."""
        model, codes = self._model, self._codes
        model.setAttr("Obj", self._columns, cost.tolist())
        if seconds != self._limit:
            self._limit = seconds
            model.setParam("TimeLimit", codes.INFINITY if math.isinf(seconds) else max(0.0, seconds))
        said = optimize(model)
        if said == codes.INF_OR_UNBD:
            model.setParam("DualReductions", 0)
            said = optimize(model)
            model.setParam("DualReductions", 1)
        if said == codes.INFEASIBLE:
            return Said(Status.INFEASIBLE, bound=math.inf)
        if said == codes.UNBOUNDED:
            return Said(Status.FAILED, reason=UNBOUNDED)
        if said == codes.INTERRUPTED:
            raise KeyboardInterrupt
        if said not in (codes.OPTIMAL, codes.SUBOPTIMAL, codes.TIME_LIMIT):
            return Said(Status.FAILED, reason=f"Gurobi stopped with status {said}.")
        if not model.SolCount:
            return Said(Status.NO_TIME, bound=model.ObjBound)
        try:
            x = self._checked(model.getAttr("X", self._columns))
        except SolverWrong:
            if self._strict:
                raise
            self._strict = True  # it holds within the solver's tolerance only: lower that, from now on
            for parameter, value in PARAMETERS.items():
                model.setParam(parameter, value)
            return self.solve(cost, seconds)
        if said == codes.OPTIMAL:
            return Said(Status.SOLVED, x, float(cost @ x))
        return Said(Status.TIME_LIMIT, x, model.ObjBound)


NATIVE: dict[str, type[Native]] = {"highs": NativeHighs, "gurobi": NativeGurobi}  # solvers that take a program as it is


class Checker:
    """Checks a solver's values against the rows: exactly where weights are whole, else with a solver's slack."""

    def __init__(self, program: Statement, name: str) -> None:
        self._program, self._name = program, name
        self._row = program.row_of_term
        odd = (program.row_weight != np.rint(program.row_weight)) | ~program.whole[program.row_column]
        whole = np.bincount(self._row[odd], minlength=program.n_rows) == 0
        self._least, self._most = row_limits(program.row_low, program.row_high, whole)
        self._all_whole = bool(program.whole.all())
        self._dense: FloatArray | None = None
        if program.n_rows * program.n_columns <= MAX_DENSE:  # one product is faster than three steps
            self._dense = np.zeros((program.n_rows, program.n_columns))
            np.add.at(self._dense, (self._row, program.row_column), program.row_weight)

    def __call__(self, found: Sequence[float] | FloatArray) -> FloatArray:
        """Returns a solver's values, rounded where they must be whole; refuses values that break a row."""
        program, values = self._program, np.asarray(found, dtype=np.float64)
        x: FloatArray = np.rint(values)
        if not self._all_whole:
            x = np.where(program.whole, x, values)
        np.maximum(x, program.low, out=x)
        np.minimum(x, program.high, out=x)
        x += 0.0  # no negative zero
        activity: FloatArray
        if self._dense is not None:
            activity = self._dense @ x
        else:
            summed = np.bincount(self._row, program.row_weight * x[program.row_column], program.n_rows)
            activity = np.asarray(summed, dtype=np.float64)
        if (activity < self._least).any() or (activity > self._most).any():
            row = program.rows[int(np.flatnonzero((activity < self._least) | (activity > self._most))[0])]
            raise SolverWrong(f"{self._name} returned values that break the row {row!r}.")
        return np.asarray(x)

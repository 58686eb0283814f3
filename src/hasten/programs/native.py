"""The solver on the program as it was given: what answers where nothing was recognised, or nothing proved."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from weakref import finalize

import numpy as np

from hasten.errors import SolverError, SolverTooSmall, SolverWrong
from hasten.kernels.cells import row_limits
from hasten.model.solution import Status
from hasten.programs.answer import UNBOUNDED
from hasten.programs.statement import Statement
from hasten.solvers import highs_program, load
from hasten.solvers.base import LATE
from hasten.solvers.gurobi import PARAMETERS
from hasten.solvers.highs_program import INFEASIBLE, OPTIMAL, TIME, HighsProgram
from hasten.support.arrays import FloatArray
from hasten.support.child import Child
from hasten.support.clock import LeftBehindError, Stop, run_waiting

MAX_DENSE = 40_000  # entries of a matrix that is multiplied as a whole
NATIVE = ("highs", "gurobi")  # solvers that take a program as it is
_FIELDS = ("low", "high", "whole", "row_first", "row_column", "row_weight", "row_low", "row_high")


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """What a solver says of a program: costs are minimised, and know no constant."""

    status: Status
    x: FloatArray | None = None
    bound: float = -math.inf
    reason: str = ""


class Native(Protocol):
    """A program that a solver holds."""

    def solve(self, cost: FloatArray, seconds: float) -> Said:
        """Minimises for some costs."""
        ...


def highs_is_elsewhere() -> bool:
    """Whether HiGHS needs a process of its own: it cannot share one with OR-Tools."""
    return "ortools" in sys.modules and "highspy" not in sys.modules


def make_native(program: Statement, solver: str) -> Native:
    """Gives a program to a solver, by name."""
    if solver == "gurobi":
        return NativeGurobi(program)
    return NativeHighs(program)


class NativeHighs:
    """HiGHS, in a process of its own where it must."""

    def __init__(self, program: Statement) -> None:
        self._checked = Checker(program, "HiGHS")
        self._here: HighsProgram | None = None
        self._elsewhere: Child | None = None
        arrays = self._arrays = {name: getattr(program, name) for name in _FIELDS}
        if highs_is_elsewhere():
            self._elsewhere = Child(highs_program.__file__)
            finalize(self, self._elsewhere.end)
            self._elsewhere.ask({"program": {name: array.tolist() for name, array in arrays.items()}})
        else:
            load("highs")
            self._here = HighsProgram(arrays)

    def solve(self, cost: FloatArray, seconds: float) -> Said:
        """Minimises for some costs."""
        if self._here is not None:
            said = self._wait(self._here, cost, seconds)
        else:
            assert self._elsewhere is not None
            answer = self._elsewhere.ask({"cost": cost.tolist(), "seconds": seconds})
            if answer is None:
                return Said(Status.FAILED, reason="The process of HiGHS ended over it.")
            said = highs_program.Said(*answer)
        if said.word == INFEASIBLE:
            return Said(Status.INFEASIBLE, bound=math.inf)
        if said.word == highs_program.UNBOUNDED:
            return Said(Status.FAILED, reason=UNBOUNDED)
        if said.word not in (OPTIMAL, TIME):
            return Said(Status.FAILED, reason=f"HiGHS says: {said.word}.")
        if said.x is None:
            return Said(Status.NO_TIME, bound=said.bound)
        x = self._checked(said.x)
        if said.word == OPTIMAL:
            return Said(Status.SOLVED, x, said.value)
        return Said(Status.TIME_LIMIT, x, said.bound)

    def _wait(self, here: HighsProgram, cost: FloatArray, seconds: float) -> highs_program.Said:
        """Runs HiGHS in a thread of its own, so that Ctrl-C gets through; what does not stop is left behind."""
        stop = Stop()
        here.stop = stop.is_set
        here.forget()  # a claim that cannot be checked is not taken from a warm start
        try:
            return run_waiting(lambda: here.run(cost, seconds), stop.set, time.monotonic() + seconds + LATE)
        except LeftBehindError:
            self._here = HighsProgram(self._arrays)
            return highs_program.Said(TIME)


class NativeGurobi:
    """Gurobi, with one thread."""

    def __init__(self, program: Statement) -> None:
        load("gurobi")
        import gurobipy

        self._checked, self._gurobi, self._limit = Checker(program, "Gurobi"), gurobipy, math.inf
        environment = gurobipy.Env(empty=True)
        environment.setParam("OutputFlag", 0)
        try:
            environment.start()
        except gurobipy.GurobiError as error:
            raise SolverError(f'Gurobi does not start: {error}. Use solver="highs" instead.') from None
        environment.setParam("Threads", 1)
        environment.setParam("MIPGap", 0.0)
        self._model = model = gurobipy.Model(env=environment)
        n, first = program.n_columns, program.row_first
        listed = list(model.addVars(n, lb=program.low.tolist(), ub=program.high.tolist()).values())
        self._columns = listed
        for column, whole, low, high in zip(listed, program.whole, program.low, program.high, strict=True):
            if whole:
                column.VType = "B" if low == 0 and high == 1 else "I"
        for r in range(program.n_rows):
            cells = slice(first[r], first[r + 1])
            columns = [listed[j] for j in program.row_column[cells].tolist()]
            row = gurobipy.LinExpr(program.row_weight[cells].tolist(), columns)
            low, high = float(program.row_low[r]), float(program.row_high[r])
            if low == high:
                model.addLConstr(row, "=", low)
                continue
            if low > -math.inf:
                model.addLConstr(row, ">", low)
            if high < math.inf:
                model.addLConstr(row, "<", high)
        model.update()
        self._strict = False

    def _be_strict(self) -> None:
        """Lowers tolerances, from now on, to those with which hasten uses Gurobi elsewhere."""
        self._strict = True
        for parameter, value in PARAMETERS.items():
            self._model.setParam(parameter, value)

    def solve(self, cost: FloatArray, seconds: float) -> Said:
        """Minimises for some costs."""
        model, codes = self._model, self._gurobi.GRB
        model.setAttr("Obj", self._columns, cost.tolist())
        if seconds != self._limit:
            self._limit = seconds
            model.setParam("TimeLimit", codes.INFINITY if math.isinf(seconds) else max(0.0, seconds))
        try:
            model.optimize()
            if model.Status == codes.INF_OR_UNBD:
                model.setParam("DualReductions", 0)
                model.optimize()
                model.setParam("DualReductions", 1)
        except self._gurobi.GurobiError as error:
            if error.errno == codes.Error.SIZE_LIMIT_EXCEEDED:
                raise SolverTooSmall(
                    f"This model has {model.NumVars:,} variables and {model.NumConstrs:,} rows; the licence that comes "
                    'with gurobipy allows 2,000 of each. Use solver="highs", or a full licence.'
                ) from None
            raise SolverError(f"Gurobi failed: {error}.") from None
        said = model.Status
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
            self._be_strict()  # it holds within the solver's tolerance only
            return self.solve(cost, seconds)
        if said == codes.OPTIMAL:
            return Said(Status.SOLVED, x, float(cost @ x))
        return Said(Status.TIME_LIMIT, x, model.ObjBound)


class Checker:
    """Checks what a solver says of a program: exactly where rows are of whole numbers, else with a solver's slack."""

    def __init__(self, program: Statement, name: str) -> None:
        self._program, self._name = program, name
        self._row = np.arange(program.n_rows).repeat(np.diff(program.row_first))
        odd = (program.row_weight != np.rint(program.row_weight)) | ~program.whole[program.row_column]
        whole = np.bincount(self._row[odd], minlength=program.n_rows) == 0
        self._least, self._most = row_limits(program.row_low, program.row_high, whole)
        self._all_whole = bool(program.whole.all())
        self._dense: FloatArray | None = None
        if program.n_rows * program.n_columns <= MAX_DENSE:  # one product is faster than three steps
            self._dense = np.zeros((program.n_rows, program.n_columns))
            np.add.at(self._dense, (self._row, program.row_column), program.row_weight)

    def __call__(self, found: Sequence[float] | FloatArray) -> FloatArray:
        """Returns a solver's values, whole where they must be; those that break a row are refused."""
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

"""The solver on the program as it was given: what answers where nothing was recognised, or nothing proved."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any, Protocol
from weakref import finalize

import numpy as np

from hasten.errors import SolverError, SolverTooSmall, SolverWrong
from hasten.model.solution import Status
from hasten.programs.highs_process import Elsewhere, HighsProgram
from hasten.programs.statement import Statement
from hasten.solvers import load
from hasten.support.arrays import FloatArray

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


def make_native(program: Statement, solver: str) -> Native:
    """Gives a program to a solver, by name."""
    if solver == "gurobi":
        return NativeGurobi(program)
    return NativeHighs(program)


class NativeHighs:
    """HiGHS, in a process of its own where it must."""

    def __init__(self, program: Statement) -> None:
        self._program = program
        self._here: HighsProgram | None = None
        self._elsewhere: Elsewhere | None = None
        arrays = {name: getattr(program, name) for name in _FIELDS}
        if "ortools" in sys.modules and "highspy" not in sys.modules:
            self._elsewhere = Elsewhere()
            finalize(self, self._elsewhere.end)
            self._elsewhere.ask({"program": {name: array.tolist() for name, array in arrays.items()}})
        else:
            load("highs")
            self._here = HighsProgram(arrays)

    def solve(self, cost: FloatArray, seconds: float) -> Said:
        """Minimises for some costs."""
        if self._here is not None:
            said: Any = self._here.solve(cost, seconds)
        else:
            assert self._elsewhere is not None
            said = self._elsewhere.ask({"objective": cost.tolist(), "seconds": seconds})
        if said is None:
            return Said(Status.FAILED, reason="The process of HiGHS ended over it.")
        word = said["status"]
        if word == "infeasible":
            return Said(Status.INFEASIBLE, bound=math.inf)
        if word == "unbounded":
            return Said(Status.FAILED, reason="The objective is unbounded. Bound its variables.")
        if word not in ("optimal", "time"):
            return Said(Status.FAILED, reason=f"HiGHS says: {word}.")
        if said["x"] is None:
            return Said(Status.NO_TIME, bound=said["bound"])
        x = checked(self._program, np.array(said["x"]), "HiGHS")
        return Said(Status.SOLVED if word == "optimal" else Status.TIME_LIMIT, x, said["bound"])


class NativeGurobi:
    """Gurobi, with one thread."""

    def __init__(self, program: Statement) -> None:
        load("gurobi")
        import gurobipy

        from hasten.solvers.gurobi import PARAMETERS

        self._program, self._gurobi = program, gurobipy
        environment = gurobipy.Env(empty=True)
        environment.setParam("OutputFlag", 0)
        try:
            environment.start()
        except gurobipy.GurobiError as error:
            raise SolverError(f'Gurobi does not start: {error}. Use solver="highs" instead.') from None
        for parameter, value in PARAMETERS.items():
            environment.setParam(parameter, value)
        self._model = model = gurobipy.Model(env=environment)
        n, first = program.n_columns, program.row_first
        self._columns = list(model.addVars(n, lb=program.low.tolist(), ub=program.high.tolist()).values())
        for column, whole, low, high in zip(self._columns, program.whole, program.low, program.high, strict=True):
            if whole:
                column.VType = "B" if low == 0 and high == 1 else "I"
        for r in range(program.n_rows):
            cells = slice(first[r], first[r + 1])
            columns = [self._columns[j] for j in program.row_column[cells].tolist()]
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

    def solve(self, cost: FloatArray, seconds: float) -> Said:
        """Minimises for some costs."""
        model, codes = self._model, self._gurobi.GRB
        model.setAttr("Obj", self._columns, cost.tolist())
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
            return Said(Status.FAILED, reason="The objective is unbounded. Bound its variables.")
        if said == codes.INTERRUPTED:
            raise KeyboardInterrupt
        if said not in (codes.OPTIMAL, codes.SUBOPTIMAL, codes.TIME_LIMIT):
            return Said(Status.FAILED, reason=f"Gurobi stopped with status {said}.")
        if not model.SolCount:
            return Said(Status.NO_TIME, bound=model.ObjBound)
        x = checked(self._program, np.array(model.getAttr("X", self._columns)), "Gurobi")
        return Said(Status.SOLVED if said == codes.OPTIMAL else Status.TIME_LIMIT, x, model.ObjBound)


def checked(program: Statement, x: FloatArray, name: str) -> FloatArray:
    """Returns a solver's values, whole where they must be, or refuses them if they break a row."""
    x = np.where(program.whole, np.rint(x), x)
    x = np.clip(x, program.low, program.high) + 0.0
    broken = program.broken_rows(x)
    if broken.size:
        raise SolverWrong(f"{name} returned values that break the row {program.rows[broken[0]]!r}.")
    return x

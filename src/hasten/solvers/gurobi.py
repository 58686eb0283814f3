"""Gurobi: one model per structure, of which only the costs change."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hasten.errors import SolverError, SolverTooSmall
from hasten.kernels.layout import Graph
from hasten.model.solution import Solution, Status
from hasten.solvers import load
from hasten.solvers.base import LEFT_BEHIND, Asked, ModelSolver, Outcome
from hasten.solvers.formulation import formulate
from hasten.solvers.highs_program import INFEASIBLE, OPTIMAL, TIME, UNBOUNDED, Said
from hasten.solvers.objective import Objective
from hasten.support.arrays import FloatArray
from hasten.support.clock import now

QUIET = {"Threads": 1, "MIPGap": 0.0}
TIGHT = QUIET | {"MIPGapAbs": 1e-9, "IntFeasTol": 1e-9, "FeasibilityTol": 1e-9, "OptimalityTol": 1e-9}


def open_environment(options: Mapping[str, Any]) -> Any:
    """Returns an environment of Gurobi with some options."""
    load("gurobi")
    import gurobipy

    try:
        environment = gurobipy.Env(empty=True)
        environment.setParam("OutputFlag", 0)  # before the start, which greets on standard output
        environment.start()
    except gurobipy.GurobiError as error:
        raise SolverError(f'Gurobi does not start: {error}. Use solver="highs" instead.') from None
    for option, value in options.items():
        environment.setParam(option, value)
    return environment


class GurobiProgram:
    """A program in Gurobi, of which only the costs and the bounds of columns change; as `HighsProgram` in HiGHS."""

    def __init__(self, program: Mapping[str, Any], environment: Any) -> None:
        import gurobipy

        self._gurobi, self._model = gurobipy, gurobipy.Model(env=environment)
        low, high, first = program["low"], program["high"], program["row_first"]
        self._bounds = low, high
        self._bounded = bool(np.isfinite(low).all() and np.isfinite(high).all())
        self._limit = self._longest = float(self._model.Params.TimeLimit)  # no limit, unless an option says so
        self._columns = list(self._model.addVars(len(low), lb=low.tolist(), ub=high.tolist()).values())
        for column, whole, binary in zip(self._columns, program["whole"], (low == 0) & (high == 1), strict=True):
            if whole:
                column.VType = "B" if binary else "I"
        for r, (least, most) in enumerate(zip(program["row_low"].tolist(), program["row_high"].tolist(), strict=True)):
            cells = slice(first[r], first[r + 1])
            columns = [self._columns[j] for j in program["row_column"][cells].tolist()]
            row = gurobipy.LinExpr(program["row_weight"][cells].tolist(), columns)
            if least == most:
                self._model.addLConstr(row, "=", least)
                continue
            if least > -math.inf:
                self._model.addLConstr(row, ">", least)
            if most < math.inf:
                self._model.addLConstr(row, "<", most)
        self._model.update()

    def set_options(self, options: Mapping[str, Any]) -> None:
        """Sets options from now on."""
        for option, value in options.items():
            self._model.setParam(option, value)

    def start_from(self, values: FloatArray) -> None:
        """Gives Gurobi values of the first columns to start from; it works out the others."""
        self._model.setAttr("Start", self._columns[: len(values)], values.tolist())

    def run(self, cost: FloatArray, seconds: float, bounds: tuple[FloatArray, FloatArray] | None = None) -> Said:
        """Minimises for some costs and bounds of columns, for so many seconds."""
        model, codes = self._model, self._gurobi.GRB
        model.setAttr("Obj", self._columns, cost.tolist())
        if bounds is not None and not all(map(np.array_equal, bounds, self._bounds)):
            self._bounds = bounds
            model.setAttr("LB", self._columns, bounds[0].tolist())
            model.setAttr("UB", self._columns, bounds[1].tolist())
        limit = min(self._longest, max(0.0, seconds))
        if limit != self._limit:
            self._limit = limit
            model.setParam("TimeLimit", limit)
        try:
            model.optimize()
            if model.Status == codes.INF_OR_UNBD and not self._bounded:  # presolve cannot tell which
                model.setParam("DualReductions", 0)
                model.optimize()
                model.setParam("DualReductions", 1)
        except self._gurobi.GurobiError as error:
            if error.errno == codes.Error.SIZE_LIMIT_EXCEEDED:
                raise SolverTooSmall(
                    f"This model has {model.NumVars:,} variables and {model.NumConstrs:,} rows; the licence that "
                    'comes with gurobipy allows 2,000 of each. Use solver="highs", or a full licence.'
                ) from None
            raise SolverError(f"Gurobi failed: {error}.") from None
        said = model.Status
        if said == codes.INTERRUPTED:
            raise KeyboardInterrupt  # Gurobi heard Ctrl-C first, and keeps it for itself
        if said == codes.INFEASIBLE or (said == codes.INF_OR_UNBD and self._bounded):
            return Said(INFEASIBLE, None, math.inf, math.inf)
        if said == codes.UNBOUNDED:
            return Said(UNBOUNDED)
        if said not in (codes.OPTIMAL, codes.SUBOPTIMAL, codes.TIME_LIMIT):
            return Said(f"status {said}")
        if not model.SolCount:
            return Said(TIME, bound=model.ObjBound)
        word = OPTIMAL if said == codes.OPTIMAL else TIME
        return Said(word, model.getAttr("X", self._columns), model.ObjVal, model.ObjBound)


class GurobiModel:
    """A structure's integer program."""

    def __init__(self, graph: Graph, cuts: Sequence[Sequence[int]], environment: Any) -> None:
        form = self.formulation = formulate(graph, cuts).scaled()
        self.low = np.zeros(form.n_columns)
        self.program = GurobiProgram(form.arrays(whole=True) | {"high": np.ones(form.n_columns)}, environment)


class GurobiSolver(ModelSolver):
    """Gurobi, with one thread. The licence in its wheel allows models of 2,000 variables and 2,000 rows."""

    name = "gurobi"

    _environment: Any = None

    def _check_native(self) -> None:
        load("gurobi")
        import gurobipy

        environment = gurobipy.Env(empty=True)
        environment.setParam("OutputFlag", 0)
        for option, value in self.native.items():
            try:
                environment.setParam(option, value)
            except (gurobipy.GurobiError, TypeError) as error:
                raise self._unknown(f"{option}={value!r}", why=error) from None

    def _leave_models(self) -> None:
        super()._leave_models()
        LEFT_BEHIND.append(self._environment)
        self._environment = None

    def _wait(self, asked: Asked) -> Solution:
        """Solves a problem in the calling thread: Gurobi keeps its limit, and hears Ctrl-C, by itself."""
        return self._solve(asked)

    def _build(self, graph: Graph, cuts: Sequence[Sequence[int]]) -> GurobiModel:
        if self._environment is None:
            self._environment = open_environment(TIGHT | self.native)
        return GurobiModel(graph, cuts, self._environment)

    def _run(self, model: GurobiModel, objective: Objective, asked: Asked) -> Outcome:
        form = model.formulation
        cost, allowed = form.columns_of(objective)
        if asked.start is not None:
            model.program.start_from(form.columns_chosen(asked.start))
        said = model.program.run(cost, asked.deadline - now(), (model.low, allowed.astype(float)))
        if said.word == INFEASIBLE:
            return Outcome(Status.INFEASIBLE)
        if said.word not in (OPTIMAL, TIME):
            raise SolverError(f"Gurobi stopped with {said.word}.")
        bound = max(0.0, said.bound)
        if said.x is None:
            return Outcome(Status.NO_TIME, bound=bound)
        labels = form.chosen(said.x)
        if labels is None:
            raise SolverError("Gurobi returned a fractional answer to an integer program.")
        return Outcome(Status.SOLVED if said.word == OPTIMAL else Status.TIME_LIMIT, labels, said.value, bound)


SOLVER = GurobiSolver

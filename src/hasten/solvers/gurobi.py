"""Gurobi: one model per structure, of which only the costs change."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from hasten.errors import SolverError, SolverTooSmall
from hasten.kernels.layout import Graph
from hasten.model.problem import Problem
from hasten.model.solution import Solution, Status
from hasten.solvers import load
from hasten.solvers.base import LEFT_BEHIND, ModelSolver, Outcome
from hasten.solvers.formulation import complements, formulate
from hasten.solvers.objective import Objective

PARAMETERS = {
    "Threads": 1,
    "MIPGap": 0.0,
    "MIPGapAbs": 1e-9,
    "IntFeasTol": 1e-9,
    "FeasibilityTol": 1e-9,
    "OptimalityTol": 1e-9,
}


class GurobiModel:
    """A structure's integer program. Of two labels that exclude each other, one has a column, where that suffices."""

    def __init__(self, graph: Graph, cuts: Sequence[Sequence[int]], environment: Any) -> None:
        import gurobipy

        form = self.formulation = formulate(graph, cuts).scaled()
        self.spare, self.other = complements(form)
        self.kept = np.delete(np.arange(form.n_columns), self.spare)
        self.n_labels = form.n_labels - len(self.spare)  # that have a column
        self.upper = np.ones(form.n_columns, dtype=bool)
        self.program = gurobipy.Model(env=environment)
        self.limit = self.longest = float(self.program.Params.TimeLimit)  # seconds; no limit, unless an option says so
        self.columns = list(self.program.addVars(len(self.kept), ub=1.0).values())
        columns = dict(zip(self.kept.tolist(), self.columns, strict=True))
        for column in self.columns[: self.n_labels]:
            column.VType = "B"
        spare_rows = set(np.searchsorted(form.row_first, np.flatnonzero(np.isin(form.column, self.spare)), "right") - 1)
        for r in sorted(set(range(form.n_rows)) - spare_rows):
            cells = slice(form.row_first[r], form.row_first[r + 1])
            row = gurobipy.LinExpr(form.weight[cells].tolist(), [columns[c] for c in form.column[cells]])
            low, high = float(form.low[r]), float(form.high[r])
            if low == high:
                self.program.addLConstr(row, "=", low)
            else:
                if low > -math.inf:
                    self.program.addLConstr(row, ">", low)
                if high < math.inf:
                    self.program.addLConstr(row, "<", high)
        self.program.update()


class GurobiSolver(ModelSolver[GurobiModel]):
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

    def _wait(self, problem: Problem, deadline: float) -> Solution:
        """Solves a problem in the calling thread: Gurobi keeps its limit, and hears Ctrl-C, by itself."""
        return self._solve(problem, deadline)

    def _build(self, graph: Graph, cuts: Sequence[Sequence[int]]) -> GurobiModel:
        load("gurobi")
        import gurobipy

        if self._environment is None:
            try:
                environment = gurobipy.Env(empty=True)
                environment.setParam("OutputFlag", 0)  # before the start, which greets on standard output
                environment.start()
            except gurobipy.GurobiError as error:
                raise SolverError(f'Gurobi does not start: {error}. Use solver="highs" instead.') from None
            for parameter, value in (PARAMETERS | self.native).items():
                environment.setParam(parameter, value)
            self._environment = environment
        return GurobiModel(graph, cuts, self._environment)

    def _run(self, model: GurobiModel, problem: Problem, objective: Objective, deadline: float) -> Outcome:
        import gurobipy

        form, program, columns = model.formulation, model.program, model.columns
        constant = self._give(model, objective)
        limit = min(model.longest, max(0.0, deadline - time.monotonic()))
        if limit != model.limit:
            program.setParam("TimeLimit", limit)
            model.limit = limit
        start = self._start_of(problem)
        if start is not None:
            values = np.bincount(form.first[:-1] + start, minlength=form.n_labels).astype(float)
            program.setAttr("Start", columns[: model.n_labels], values[model.kept[: model.n_labels]].tolist())
        if self._stop.tells(program.terminate):
            return Outcome(Status.NO_TIME, bound=0.0)
        try:
            program.optimize()
        except gurobipy.GurobiError as error:
            if error.errno == gurobipy.GRB.Error.SIZE_LIMIT_EXCEEDED:
                raise SolverTooSmall(
                    f"This model has {program.NumVars:,} variables and {program.NumConstrs:,} rows; the "
                    "licence that comes with gurobipy allows 2,000 of each. "
                    'Use solver="highs", or a full licence.'
                ) from None
            raise SolverError(f"Gurobi failed: {error}.") from None
        said, status = program.Status, gurobipy.GRB
        if said == status.INTERRUPTED and not self._stop.is_set():
            raise KeyboardInterrupt  # Gurobi heard Ctrl-C first, and keeps it for itself
        if said in (status.INFEASIBLE, status.INF_OR_UNBD):  # no column is unbounded
            return Outcome(Status.INFEASIBLE)
        if said not in (status.OPTIMAL, status.SUBOPTIMAL, status.TIME_LIMIT, status.INTERRUPTED):
            raise SolverError(f"Gurobi stopped with status {said}.")
        bound = max(0.0, program.ObjBound + constant)
        if not program.SolCount:
            return Outcome(Status.NO_TIME, bound=bound)
        z = np.empty(form.n_labels)
        z[model.kept[: model.n_labels]] = program.getAttr("X", columns[: model.n_labels])
        z[model.spare] = 1.0 - z[model.other]
        labels = form.chosen(z)
        if labels is None:
            raise SolverError("Gurobi returned a fractional answer to an integer program.")
        outcome = Status.SOLVED if said == status.OPTIMAL else Status.TIME_LIMIT
        return Outcome(outcome, labels, program.ObjVal + constant, bound)

    def _give(self, model: GurobiModel, objective: Objective) -> float:
        """Gives a model its costs, and the labels that are allowed; returns what is paid in any case."""
        form, program, columns = model.formulation, model.program, model.columns
        cost, upper = form.columns_of(objective)
        constant = float(cost[model.spare].sum())
        cost[model.other] -= cost[model.spare]
        program.setAttr("Obj", columns, cost[model.kept].tolist())
        if not np.array_equal(upper, model.upper):
            lower = np.zeros(form.n_columns)
            lower[model.other] = ~upper[model.spare]
            program.setAttr("LB", columns, lower[model.kept].tolist())
            program.setAttr("UB", columns, upper[model.kept].astype(float).tolist())
            model.upper = upper
        return constant


SOLVER = GurobiSolver

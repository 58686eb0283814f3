"""HiGHS as its documentation shows it: the integer program, solved with default options."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from hasten.errors import SolverError
from hasten.kernels.layout import Graph
from hasten.model.problem import Problem
from hasten.model.solution import Status
from hasten.solvers.base import ModelSolver, Outcome
from hasten.solvers.formulation import Formulation, formulate
from hasten.solvers.objective import Objective
from hasten.support.arrays import IntArray


class HighsDefaultModel:
    """A structure's integer program; only costs and upper bounds change."""

    def __init__(self, graph: Graph) -> None:
        import highspy

        form: Formulation = formulate(graph)
        self.formulation = form
        self.first = graph.first
        self.columns = np.arange(form.n_columns, dtype=np.int32)
        highs: Any = highspy.Highs()
        self.highs = highs
        for option, value in (("output_flag", False), ("threads", 1), ("mip_rel_gap", 0.0)):
            highs.setOptionValue(option, value)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = form.n_columns, form.n_rows
        lp.col_cost_ = np.zeros(form.n_columns)
        lp.col_lower_, lp.col_upper_ = np.zeros(form.n_columns), (~form.dead).astype(float)
        lp.row_lower_, lp.row_upper_ = form.low, form.high
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = form.row_first.astype(np.int32)
        lp.a_matrix_.index_ = form.column.astype(np.int32)
        lp.a_matrix_.value_ = form.weight
        n_tuples = form.n_columns - form.n_labels
        lp.integrality_ = [highspy.HighsVarType.kInteger] * form.n_labels
        lp.integrality_ += [highspy.HighsVarType.kContinuous] * n_tuples
        highs.passModel(lp)


class HighsDefaultSolver(ModelSolver[HighsDefaultModel]):
    """HiGHS with default options, one thread, and a gap of zero."""

    name = "highs default"

    def _build(self, graph: Graph) -> HighsDefaultModel:
        return HighsDefaultModel(graph)

    def _run(self, model: HighsDefaultModel, problem: Problem, objective: Objective, deadline: float) -> Outcome:
        import highspy

        form, highs = model.formulation, model.highs
        n = form.n_columns
        cost = np.concatenate([objective.label, objective.table[form.entry]])
        allowed = np.concatenate([objective.label_allowed, objective.table_allowed[form.entry]]) & ~form.dead
        highs.changeColsBounds(n, model.columns, np.zeros(n), allowed.astype(float))
        highs.changeColsCost(n, model.columns, cost)
        highs.clearSolver()
        left = deadline - time.monotonic()
        highs.setOptionValue("time_limit", math.inf if left == math.inf else highs.getRunTime() + max(0.0, left))
        highs.run()
        said, status = highs.getModelStatus(), highspy.HighsModelStatus
        if said == status.kInfeasible:
            return Outcome(Status.INFEASIBLE)
        if said == status.kTimeLimit:
            return Outcome(Status.NO_TIME)
        if said != status.kOptimal:
            raise SolverError(f"HiGHS stopped early: {highs.modelStatusToString(said)}.")
        column = np.array(highs.getSolution().col_value)
        return Outcome(Status.SOLVED, chosen_labels(column, model.first), highs.getInfo().objective_function_value)


def chosen_labels(column: Any, first: IntArray) -> IntArray:
    """Returns the labels whose columns are one."""
    chosen = np.flatnonzero(np.asarray(column)[: first[-1]] > 0.5)
    if len(chosen) != len(first) - 1:
        raise SolverError("The answer to an integer program is fractional.")
    labels: IntArray = chosen - first[:-1]
    return labels

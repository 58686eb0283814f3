"""Random programs as models of each library, for tests of adopting; those of OR-Tools are in `ortools_models`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hasten.programs.statement import Statement


def terms(program: Statement, r: int) -> list[tuple[int, float]]:
    """Returns the terms of a row."""
    cells = slice(program.row_first[r], program.row_first[r + 1])
    return list(zip(program.row_column[cells].tolist(), program.row_weight[cells].tolist(), strict=True))


def as_gurobi(program: Statement) -> Any:
    import gurobipy

    environment = gurobipy.Env(empty=True)
    environment.setParam("OutputFlag", 0)
    environment.start()
    model = gurobipy.Model(env=environment)
    x = [model.addVar(lb=low, ub=high, vtype="I", name=name) for name, low, high in columns(program)]
    model.setObjective(
        gurobipy.LinExpr(program.objective.tolist(), x) + program.constant, -1 if program.maximize else 1
    )
    for r in range(program.n_rows):
        row = gurobipy.LinExpr([(weight, x[j]) for j, weight in terms(program, r)])
        low, high = float(program.row_low[r]), float(program.row_high[r])
        if low == high:
            model.addConstr(row == low)
            continue
        if low > -math.inf:
            model.addConstr(row >= low)
        if high < math.inf:
            model.addConstr(row <= high)
    return model


def as_highs(program: Statement) -> Any:
    import highspy

    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    for j, (_, low, high) in enumerate(columns(program)):
        model.addCol(float(program.objective[j]), low, high, 0, [], [])
        model.changeColIntegrality(j, highspy.HighsVarType.kInteger)
    for r in range(program.n_rows):
        pairs = terms(program, r)
        index, weight = [j for j, _ in pairs], [w for _, w in pairs]
        model.addRow(float(program.row_low[r]), float(program.row_high[r]), len(pairs), index, weight)
    model.changeObjectiveOffset(program.constant)
    model.changeObjectiveSense(highspy.ObjSense.kMaximize if program.maximize else highspy.ObjSense.kMinimize)
    return model


def as_pulp(program: Statement) -> Any:
    import pulp

    model = pulp.LpProblem("random", pulp.LpMaximize if program.maximize else pulp.LpMinimize)
    x = [model.add_variable(f"v{j:02d}", *bounds, cat="Integer") for j, (_, *bounds) in enumerate(columns(program))]
    model += pulp.lpSum(c * v for c, v in zip(program.objective.tolist(), x, strict=True)) + program.constant
    for r in range(program.n_rows):
        row = pulp.lpSum(weight * x[j] for j, weight in terms(program, r))
        if program.row_low[r] > -math.inf:
            model += row >= float(program.row_low[r])
        if program.row_high[r] < math.inf:
            model += row <= float(program.row_high[r])
    return model


def as_pyomo(program: Statement) -> Any:
    import pyomo.environ as pyo

    model = pyo.ConcreteModel()
    bounds = {j: (low, high) for j, (_, low, high) in enumerate(columns(program))}
    model.x = pyo.Var(range(program.n_columns), domain=pyo.Integers, bounds=lambda _, j: bounds[j])
    value = sum(float(program.objective[j]) * model.x[j] for j in range(program.n_columns)) + program.constant
    model.value = pyo.Objective(expr=value, sense=pyo.maximize if program.maximize else pyo.minimize)
    model.rows = pyo.ConstraintList()
    for r in range(program.n_rows):
        if terms(program, r):
            row = sum(weight * model.x[j] for j, weight in terms(program, r))
            low, high = (
                float(each) if math.isfinite(each) else None for each in (program.row_low[r], program.row_high[r])
            )
            if low is not None or high is not None:
                model.rows.add((low, row, high))
    return model


def as_linopy(program: Statement) -> Any:
    import linopy
    import pandas

    model = linopy.Model()
    index = pandas.RangeIndex(program.n_columns, name="j")
    low, high = pandas.Series(program.low, index), pandas.Series(program.high, index)
    x = model.add_variables(lower=low, upper=high, coords=[index], name="x", integer=True)
    model.add_objective((pandas.Series(program.objective, index) * x).sum(), sense="max" if program.maximize else "min")
    for r in range(program.n_rows):
        if not terms(program, r):
            continue
        weights = pandas.Series(0.0, index)
        for j, weight in terms(program, r):
            weights[j] = weight
        row = (weights * x).sum()
        if program.row_low[r] > -math.inf:
            model.add_constraints(row >= float(program.row_low[r]), name=f"low{r}")
        if program.row_high[r] < math.inf:
            model.add_constraints(row <= float(program.row_high[r]), name=f"high{r}")
    return model


def as_arrays(program: Statement) -> dict[str, Any]:
    """Returns what `scipy.optimize.milp` would be given; it knows neither maximising nor constants."""
    from scipy.optimize import Bounds, LinearConstraint

    matrix = np.zeros((program.n_rows, program.n_columns))
    for r in range(program.n_rows):
        for j, weight in terms(program, r):
            matrix[r, j] = weight
    return {
        "c": -program.objective if program.maximize else program.objective,
        "integrality": np.ones(program.n_columns),
        "bounds": Bounds(program.low, program.high),
        "constraints": LinearConstraint(matrix, program.row_low, program.row_high),
    }


def columns(program: Statement) -> list[tuple[str, float, float]]:
    """Returns the names and bounds of the columns."""
    return list(zip(program.columns, program.low.tolist(), program.high.tolist(), strict=True))


def vector(program: Statement, answer: Any) -> np.ndarray:
    """Returns the values of all columns: PuLP drops variables that occur nowhere."""
    if len(answer) == program.n_columns:
        return answer.x
    return np.array([answer.get(f"v{j:02d}", program.low[j]) for j in range(program.n_columns)])


def value_of(model: Any, j: int) -> float:
    """Returns the value that was written into a model, of its variable number `j`."""
    package = type(model).__module__.split(".")[0]
    if package == "gurobipy":
        return float(model.getVars()[j].Start)
    if package == "highspy":
        return float(model.getSolution().col_value[j])
    if package == "pulp":
        return float(model.variables()[j].varValue)
    if package == "pyomo":
        return float(model.x[j].value)
    return float(model.variables["x"].solution.values[j])


LIBRARIES: dict[str, Callable[[Statement], Any]] = {
    "gurobipy": as_gurobi,
    "highspy": as_highs,
    "pulp": as_pulp,
    "pyomo": as_pyomo,
    "linopy": as_linopy,
}

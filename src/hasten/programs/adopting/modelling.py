"""Models that are objects, read one variable and one row at a time: gurobipy, PuLP and Pyomo."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import Any

import numpy as np

from hasten.errors import ProgramError
from hasten.programs.statement import Builder, Statement, limits_of
from hasten.support.arrays import FloatArray, floats


class Gurobi:
    """Models of gurobipy: linear and quadratic objectives, linear rows, indicators, and, or."""

    def state(self, model: Any) -> Statement:
        """Returns the program that a model states."""
        from gurobipy import GurobiError

        model.update()
        for count, what in (("NumSOS", "special ordered sets"), ("NumQConstrs", "quadratic constraints")):
            if getattr(model, count):
                raise ProgramError(f"The model has {what}, which cannot be adopted. Use model.optimize().")
        if model.NumObj > 1 or model.NumPWLObjVars:
            raise ProgramError("The model has several objectives, or a piecewise linear one. Use model.optimize().")
        columns, rows = model.getVars(), model.getConstrs()
        build = Builder(name=model.ModelName, maximize=model.ModelSense < 0, constant=model.ObjCon)
        names, kinds = model.getAttr("VarName", columns), np.array(model.getAttr("VType", columns), dtype="U1")
        low, high = floats(model.getAttr("LB", columns)), floats(model.getAttr("UB", columns))
        if not np.isin(kinds, ["B", "I", "C"]).all():
            name = names[int(np.flatnonzero(~np.isin(kinds, ["B", "I", "C"]))[0])]
            raise ProgramError(
                f"The variable {name!r} is semicontinuous, which cannot be adopted. Use model.optimize()."
            )
        binary = kinds == "B"
        low[binary], high[binary] = np.maximum(low[binary], 0.0), np.minimum(high[binary], 1.0)
        build.add_columns(names, low, high, kinds != "C", model.getAttr("Obj", columns))
        if model.IsQP:
            objective = model.getObjective()
            for k in range(objective.size()):
                build.product(objective.getVar1(k).index, objective.getVar2(k).index, objective.getCoeff(k))
        names, sense = model.getAttr("ConstrName", rows), np.array(model.getAttr("Sense", rows), dtype="U1")
        limit = floats(model.getAttr("RHS", rows))
        try:
            matrix = model.getA()
            terms = np.diff(matrix.indptr), matrix.indices, matrix.data
        except (ImportError, GurobiError):  # without SciPy it is read row by row
            each = [_terms(model.getRow(row)) for row in rows]
            terms = (
                [len(one) for one, _ in each],
                [j for one, _ in each for j in one],
                [w for _, one in each for w in one],
            )
        build.add_rows(*terms, np.where(sense == "<", -np.inf, limit), np.where(sense == ">", np.inf, limit), names)
        for general in model.getGenConstrs():
            self._add_general(build, model, general)
        return build.statement()

    def _add_general(self, build: Builder, model: Any, general: Any) -> None:
        """Adds an indicator, an and, or an or."""
        from gurobipy import GRB

        name, kind = general.GenConstrName, general.GenConstrType
        if kind == GRB.GENCONSTR_INDICATOR:
            switch, value, terms, sense, limit = model.getGenConstrIndicator(general)
            limits = limits_of(sense, limit - terms.getConstant())
            build.indicator([(switch.index, int(value))], *_terms(terms), *limits, name)
        elif kind in (GRB.GENCONSTR_AND, GRB.GENCONSTR_OR):
            both = kind == GRB.GENCONSTR_AND
            result, parts = (model.getGenConstrAnd if both else model.getGenConstrOr)(general)
            add = build.conjunction if both else build.disjunction
            add(result.index, sorted({part.index for part in parts}), name)
        else:
            raise ProgramError(
                f"The general constraint {name!r} is of a kind that cannot be adopted. Use model.optimize()."
            )

    def names(self, model: Any) -> list[str]:
        """Returns the names of its variables."""
        model.update()
        return list(model.getAttr("VarName", model.getVars()))

    def write(self, model: Any, x: FloatArray, optimal: bool) -> None:
        """Gives values to the model's variables as their start, which `optimize` takes up: X cannot be set."""
        for column, value in zip(model.getVars(), x.tolist(), strict=True):
            column.Start = value
        model.update()


def _terms(row: Any) -> tuple[list[int], list[float]]:
    size = range(row.size())
    return [row.getVar(k).index for k in size], [row.getCoeff(k) for k in size]


class PuLP:
    """Models of PuLP, from version 2.8 on; features of version 4 are detected.

    PuLP sorts variables by name: `x_10` comes before `x_2`. The statement says so where that matters.
    """

    def state(self, model: Any) -> Statement:
        """Returns the program that a model states."""
        import pulp

        if model.has_sos() if hasattr(model, "has_sos") else model.sos1 or model.sos2:
            raise ProgramError("The model has special ordered sets, which cannot be adopted. Use model.solve().")
        objective = {} if model.objective is None else model.objective
        constant = float(getattr(objective, "constant", 0.0))
        build = Builder(name=model.name, maximize=model.sense == pulp.LpMaximize, constant=constant)
        variables = model.variables()
        place = {variable: j for j, variable in enumerate(variables)}
        build.add_columns(
            [variable.name for variable in variables],
            [-math.inf if variable.lowBound is None else variable.lowBound for variable in variables],
            [math.inf if variable.upBound is None else variable.upBound for variable in variables],
            [variable.cat == pulp.LpInteger for variable in variables],
            [objective.get(variable, 0.0) for variable in variables],
        )
        senses = {pulp.LpConstraintLE: "<", pulp.LpConstraintGE: ">", pulp.LpConstraintEQ: "="}
        for row in model.constraints() if callable(model.constraints) else model.constraints.values():
            terms = row.items()
            columns, weights = [place[variable] for variable, _ in terms], [float(weight) for _, weight in terms]
            build.row(columns, weights, *limits_of(senses[row.sense], -float(row.constant)), row.name)
        if any(one > other for one, other in pairwise(map(_numbers_by_value, build.columns))):
            build.sorted_by = "PuLP"
        return build.statement()

    def names(self, model: Any) -> list[str]:
        """Returns the names of its variables."""
        return [variable.name for variable in model.variables()]

    def write(self, model: Any, x: FloatArray, optimal: bool) -> None:
        """Sets the variables' values and, where it has one, the model's status, as if PuLP had solved it."""
        import pulp

        for variable, value in zip(model.variables(), x.tolist(), strict=True):
            variable.varValue = value
        if hasattr(model, "assignStatus"):
            status = pulp.LpSolutionOptimal if optimal else pulp.LpSolutionIntegerFeasible
            model.assignStatus(pulp.LpStatusOptimal, status)


def _numbers_by_value(name: str) -> list[tuple[int, int, str]]:
    """Returns a key by which `x_2` comes before `x_10`, as they were most likely created."""
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", name)]


def _bounds(low: float | None, high: float | None) -> tuple[float, float]:
    """Returns bounds, of which None is none."""
    return -math.inf if low is None else low, math.inf if high is None else high


class Pyomo:
    """Models of Pyomo, linear in rows, linear or quadratic in the objective."""

    def state(self, model: Any) -> Statement:
        """Returns the program that a model states."""
        from pyomo.environ import Constraint, Objective, maximize, value
        from pyomo.repn import generate_standard_repn

        self._check_kinds(model)
        objectives = list(model.component_data_objects(Objective, active=True))
        if len(objectives) > 1:
            raise ProgramError("The model has several active objectives. Deactivate all but one.")
        build, places = Builder(name=str(model.name)), dict[int, int]()

        def place(variable: Any, what: str) -> int:
            if id(variable) not in places:
                raise ProgramError(
                    f"{what} has the variable {variable.name!r}, which is in no active block of the model. Activate "
                    "its block, or declare it in one that is active."
                )
            return places[id(variable)]

        def parts(expression: Any, quadratic: bool, what: str) -> Any:
            found = generate_standard_repn(expression, compute_values=True, quadratic=quadratic)
            if found.nonlinear_expr is not None:
                raise ProgramError(f"{what} is not linear, so that the model cannot be adopted. Use a solver of Pyomo.")
            return found

        for variable in self._variables(model):
            low, high = _bounds(variable.lb, variable.ub)
            whole = variable.is_integer() or variable.is_binary()
            if variable.fixed:
                if variable.value is None:
                    raise ProgramError(f"The variable {variable.name!r} is fixed, but has no value. Fix it to one.")
                low = high = value(variable)
            elif not (whole or variable.is_continuous()):
                raise ProgramError(
                    f"The variable {variable.name!r} has a domain that cannot be adopted. Make it real or whole."
                )
            places[id(variable)] = build.column(variable.name, low, high, whole)
        for objective in objectives:
            part, what = parts(objective.expr, True, "The objective"), "The objective"
            build.maximize, build.constant = objective.sense == maximize, float(part.constant)
            for variable, weight in zip(part.linear_vars, part.linear_coefs, strict=True):
                build.objective[place(variable, what)] += float(weight)
            for (left, right), weight in zip(part.quadratic_vars, part.quadratic_coefs, strict=True):
                build.product(place(left, what), place(right, what), float(weight))
        for row in model.component_data_objects(Constraint, active=True, descend_into=True):
            what = f"The constraint {row.name!r}"
            part = parts(row.body, False, what)
            limits = (
                None if limit is None else value(limit) - float(part.constant) for limit in (row.lower, row.upper)
            )
            columns = [place(variable, what) for variable in part.linear_vars]
            build.row(columns, [float(weight) for weight in part.linear_coefs], *_bounds(*limits), row.name)
        return build.statement()

    def _check_kinds(self, model: Any) -> None:
        """Refuses a model without data, and components other than constraints and objectives, such as disjunctions."""
        from pyomo.core.base.component import ActiveComponent
        from pyomo.environ import Block, Constraint, Objective, Suffix

        if not model.is_constructed():
            raise ProgramError("The model is abstract. Adopt an instance of it: model.create_instance(data).")
        for kind in sorted(model.collect_ctypes(active=True), key=lambda kind: kind.__name__):
            if issubclass(kind, ActiveComponent) and kind not in (Block, Constraint, Objective, Suffix):
                raise ProgramError(
                    f"The model has a {kind.__name__}, which cannot be adopted. Transform it into constraints, "
                    "deactivate it, or use a solver of Pyomo."
                )

    def _variables(self, model: Any) -> list[Any]:
        """Returns the variables, in the order of their declaration."""
        from pyomo.environ import Var

        return list(model.component_data_objects(Var, active=True, descend_into=True))

    def names(self, model: Any) -> list[str]:
        """Returns the names of its variables."""
        return [variable.name for variable in self._variables(model)]

    def write(self, model: Any, x: FloatArray, optimal: bool) -> None:
        """Sets the values of the model's variables."""
        for variable, value in zip(self._variables(model), x.tolist(), strict=True):
            if not variable.fixed:
                variable.set_value(round(value) if variable.is_integer() else value)

"""Models of Pyomo, linear in rows, linear or quadratic in the objective."""

from __future__ import annotations

import math
from typing import Any

from hasten.errors import ProgramError
from hasten.programs.statement import Builder, Statement
from hasten.support.arrays import FloatArray


def _variables(model: Any) -> list[Any]:
    """Returns the variables, in the order of their declaration."""
    from pyomo.environ import Var

    return list(model.component_data_objects(Var, active=True, descend_into=True))


def state(model: Any) -> Statement:
    """Returns what a model states."""
    from pyomo.environ import Constraint, Objective, maximize, value
    from pyomo.repn import generate_standard_repn

    _check_kinds(model)
    objectives = list(model.component_data_objects(Objective, active=True))
    if len(objectives) > 1:
        raise ProgramError("The model has several active objectives. Deactivate all but one.")
    build, places = Builder(name=str(model.name)), dict[int, int]()

    def place(variable: Any, what: str) -> int:
        if id(variable) not in places:
            raise ProgramError(
                f"{what} has the variable {variable.name!r}, which is in no active block of the model. Activate its "
                "block, or declare it in one that is active."
            )
        return places[id(variable)]

    for variable in _variables(model):
        low = -math.inf if variable.lb is None else variable.lb
        high = math.inf if variable.ub is None else variable.ub
        whole = variable.is_integer() or variable.is_binary()
        if variable.fixed:
            if variable.value is None:
                raise ProgramError(f"The variable {variable.name!r} is fixed, but has no value. Fix it to one.")
            low = high = value(variable)
        elif not (whole or variable.is_continuous()):
            raise ProgramError(
                f"The variable {variable.name!r} has a domain that cannot be adopted. Make it real, whole or binary."
            )
        places[id(variable)] = build.column(variable.name, low, high, whole)
    if objectives:
        build.maximize = objectives[0].sense == maximize
        part = generate_standard_repn(objectives[0].expr, compute_values=True, quadratic=True)
        _check_linear(part.nonlinear_expr, "The objective")
        build.constant = float(part.constant)
        for variable, weight in zip(part.linear_vars, part.linear_coefs, strict=True):
            build.objective[place(variable, "The objective")] += float(weight)
        for (left, right), weight in zip(part.quadratic_vars, part.quadratic_coefs, strict=True):
            build.product(place(left, "The objective"), place(right, "The objective"), float(weight))
    for row in model.component_data_objects(Constraint, active=True, descend_into=True):
        part = generate_standard_repn(row.body, compute_values=True, quadratic=False)
        _check_linear(part.nonlinear_expr, f"The constraint {row.name!r}")
        low = -math.inf if row.lower is None else value(row.lower) - float(part.constant)
        high = math.inf if row.upper is None else value(row.upper) - float(part.constant)
        columns = [place(variable, f"The constraint {row.name!r}") for variable in part.linear_vars]
        build.row(columns, [float(weight) for weight in part.linear_coefs], low, high, row.name)
    return build.statement()


def _check_kinds(model: Any) -> None:
    """Refuses a model without data, and what says more than constraints and objectives do, such as disjunctions."""
    from pyomo.core.base.component import ActiveComponent
    from pyomo.environ import Block, Constraint, Objective, Suffix

    if not model.is_constructed():
        raise ProgramError("The model is abstract. Adopt an instance of it: model.create_instance(data).")
    for kind in sorted(model.collect_ctypes(active=True), key=lambda kind: kind.__name__):
        if issubclass(kind, ActiveComponent) and kind not in (Block, Constraint, Objective, Suffix):
            raise ProgramError(
                f"The model has a {kind.__name__}, which cannot be adopted. Transform it into constraints, deactivate "
                "it, or use a solver of Pyomo."
            )


def _check_linear(nonlinear: Any, what: str) -> None:
    if nonlinear is not None:
        raise ProgramError(f"{what} is not linear, so that the model cannot be adopted. Use a solver of Pyomo.")


def names(model: Any) -> list[str]:
    """Returns the names of its variables."""
    return [variable.name for variable in _variables(model)]


def write(model: Any, x: FloatArray, optimal: bool) -> None:
    """Sets the values of the model's variables."""
    for variable, value in zip(_variables(model), x.tolist(), strict=True):
        if not variable.fixed:
            variable.set_value(round(value) if variable.is_integer() else value)

"""Models of PuLP, from version 2.8 on; what version 4 does in another way is asked for by its presence."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

from hasten.errors import ProgramError
from hasten.programs.statement import Builder, Statement
from hasten.support.arrays import FloatArray


def state(model: Any) -> Statement:
    """Returns what a model states."""
    import pulp

    if _has_ordered_sets(model):
        raise ProgramError("The model has special ordered sets, which cannot be adopted. Use model.solve().")
    objective = {} if model.objective is None else model.objective
    constant = float(getattr(objective, "constant", 0.0))
    build = Builder(name=model.name, maximize=model.sense == pulp.LpMaximize, constant=constant)
    place = {}
    for variable in model.variables():
        low = -math.inf if variable.lowBound is None else variable.lowBound
        high = math.inf if variable.upBound is None else variable.upBound
        whole = variable.cat == pulp.LpInteger
        place[variable] = build.column(variable.name, low, high, whole, float(objective.get(variable, 0.0)))
    for row in _constraints(model):
        limit = -float(row.constant)
        low = -math.inf if row.sense == pulp.LpConstraintLE else limit
        high = math.inf if row.sense == pulp.LpConstraintGE else limit
        terms = row.items()
        build.row([place[variable] for variable, _ in terms], [float(w) for _, w in terms], low, high, row.name)
    made = build.statement()
    in_order = sorted(made.columns, key=_numbers_by_value) == list(made.columns)
    return made if in_order else replace(made, sorted_by="PuLP")


def _numbers_by_value(name: str) -> list[tuple[int, int, str]]:
    """Returns a key by which `x_2` comes before `x_10`, as they were most likely created."""
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", name)]


def _has_ordered_sets(model: Any) -> bool:
    """Whether a model has special ordered sets, which are a method's answer in later versions."""
    return bool(model.has_sos() if hasattr(model, "has_sos") else model.sos1 or model.sos2)


def _constraints(model: Any) -> Any:
    """Returns the constraints: what is a dictionary in older versions is to be called in later ones."""
    return model.constraints() if callable(model.constraints) else model.constraints.values()


def names(model: Any) -> list[str]:
    """Returns the names of its variables."""
    return [variable.name for variable in model.variables()]


def write(model: Any, x: FloatArray, optimal: bool) -> None:
    """Sets the variables' values and, where it has one, the model's status, as if PuLP had solved it."""
    import pulp

    for variable, value in zip(model.variables(), x.tolist(), strict=True):
        variable.varValue = value
    if hasattr(model, "assignStatus"):
        model.assignStatus(pulp.LpStatusOptimal, pulp.LpSolutionOptimal if optimal else pulp.LpSolutionIntegerFeasible)

"""Models of gurobipy: linear and quadratic objectives, linear rows, indicators, and, or."""

from __future__ import annotations

import math
from typing import Any

from hasten.errors import ProgramError
from hasten.programs.statement import Builder, Statement
from hasten.support.arrays import FloatArray


def state(model: Any) -> Statement:
    """Returns what a model states."""
    import gurobipy

    model.update()
    for count, what in (("NumSOS", "special ordered sets"), ("NumQConstrs", "quadratic constraints")):
        if getattr(model, count):
            raise ProgramError(f"The model has {what}, which cannot be adopted. Use model.optimize().")
    if model.NumObj > 1 or model.NumPWLObjVars:
        raise ProgramError("The model has several objectives, or a piecewise linear one. Use model.optimize().")
    columns = model.getVars()
    place = {column.index: j for j, column in enumerate(columns)}
    build = Builder(name=model.ModelName, maximize=model.ModelSense < 0, constant=model.ObjCon)
    get = model.getAttr
    for name, low, high, kind, cost in zip(
        get("VarName", columns),
        get("LB", columns),
        get("UB", columns),
        get("VType", columns),
        get("Obj", columns),
        strict=True,
    ):
        if kind not in "BIC":
            raise ProgramError(
                f"The variable {name!r} is semicontinuous, which cannot be adopted. Use model.optimize()."
            )
        if kind == "B":
            low, high = max(0.0, low), min(1.0, high)
        build.column(name, low, high, kind != "C", cost)
    if model.IsQP:
        quadratic = model.getObjective()
        for k in range(quadratic.size()):
            left, right = quadratic.getVar1(k), quadratic.getVar2(k)
            build.product(place[left.index], place[right.index], quadratic.getCoeff(k))
    rows = model.getConstrs()
    limits = zip(get("ConstrName", rows), get("Sense", rows), get("RHS", rows), strict=True)
    for row, (name, sense, limit) in zip(rows, limits, strict=True):
        terms = model.getRow(row)
        numbers = [place[terms.getVar(k).index] for k in range(terms.size())]
        weights = [terms.getCoeff(k) for k in range(terms.size())]
        build.row(numbers, weights, *_limits(sense, limit), name)
    for general in model.getGenConstrs():
        _add_general(build, model, general, place, gurobipy.GRB)
    return build.statement()


def _limits(sense: str, limit: float) -> tuple[float, float]:
    return (-math.inf if sense == "<" else limit), (math.inf if sense == ">" else limit)


def _add_general(build: Builder, model: Any, general: Any, place: dict[int, int], codes: Any) -> None:
    """Adds an indicator, an and, or an or."""
    name = general.GenConstrName
    if general.GenConstrType == codes.GENCONSTR_INDICATOR:
        switch, value, terms, sense, limit = model.getGenConstrIndicator(general)
        numbers = [place[terms.getVar(k).index] for k in range(terms.size())]
        weights = [terms.getCoeff(k) for k in range(terms.size())]
        limits = _limits(sense, limit - terms.getConstant())
        build.indicator([(place[switch.index], int(value))], numbers, weights, *limits, name)
    elif general.GenConstrType in (codes.GENCONSTR_AND, codes.GENCONSTR_OR):
        both = general.GenConstrType == codes.GENCONSTR_AND
        result, parts = (model.getGenConstrAnd if both else model.getGenConstrOr)(general)
        add = build.conjunction if both else build.disjunction
        add(place[result.index], sorted({place[part.index] for part in parts}), name)
    else:
        raise ProgramError(
            f"The general constraint {name!r} is of a kind that cannot be adopted. Use model.optimize()."
        )


def names(model: Any) -> list[str]:
    """Returns the names of its variables."""
    model.update()
    return list(model.getAttr("VarName", model.getVars()))


def write(model: Any, x: FloatArray, optimal: bool) -> None:
    """Gives values to the model's variables as their start, which `optimize` takes up: X cannot be set."""
    for column, value in zip(model.getVars(), x.tolist(), strict=True):
        column.Start = value
    model.update()

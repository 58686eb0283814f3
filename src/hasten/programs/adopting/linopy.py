"""Models of linopy, through the matrices that it exports to solvers."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from hasten.errors import ProgramError
from hasten.programs.adopting.arrays import rows_of
from hasten.programs.statement import GivenColumns, GivenRows, Statement, make_statement
from hasten.support.arrays import FloatArray, offsets


def state(model: Any) -> Statement:
    """Returns what a model states."""
    if model.is_quadratic:
        raise ProgramError("The model has a quadratic objective, which is not read from linopy. Use model.solve().")
    if getattr(model.variables, "sos", None):
        raise ProgramError("The model has special ordered sets, which cannot be adopted. Use model.solve().")
    data = model.matrices
    kind = np.asarray(data.vtypes, dtype=object)
    if not np.isin(kind, ("C", "I", "B")).all():
        raise ProgramError("The model has semicontinuous variables, which cannot be adopted. Use model.solve().")
    low, high = np.array(data.lb, dtype=np.float64), np.array(data.ub, dtype=np.float64)
    low[kind == "B"], high[kind == "B"] = np.maximum(low[kind == "B"], 0), np.minimum(high[kind == "B"], 1)
    n = len(low)
    sizes, column, weight = rows_of(np.zeros((0, n)) if data.A is None else data.A, n)
    sense, limit = np.asarray(data.sense, dtype=object), np.asarray(data.b, dtype=np.float64)
    return make_statement(
        GivenColumns(names(model), low, high, kind != "C", np.asarray(data.c, dtype=np.float64)),
        GivenRows(
            offsets(sizes),
            column,
            weight,
            low=np.where(sense == "<", -np.inf, limit),
            high=np.where(sense == ">", np.inf, limit),
        ),
        name=str(getattr(model, "name", "") or ""),
        maximize=model.sense == "max",
    )


def names(model: Any) -> list[str]:
    """Returns the names of its variables: each is that of its array, with its coordinates."""
    found: dict[int, str] = {}
    for variable in model.variables.data.values():
        found.update(zip(variable.labels.values.ravel().tolist(), names_of(variable), strict=True))
    return [found[number] for number in np.asarray(model.matrices.vlabels).tolist()]


def names_of(variable: Any) -> list[str]:
    """Returns the names of the variables in an array."""
    labels = variable.labels
    axes = [labels.indexes[axis] if axis in labels.indexes else range(labels.sizes[axis]) for axis in labels.dims]
    return [f"{variable.name}[{','.join(map(str, at))}]" if at else variable.name for at in product(*axes)]


def write(model: Any, x: FloatArray, optimal: bool) -> None:
    """Sets the solution of the model's variables, as if linopy had solved it."""
    import xarray

    place = {number: at for at, number in enumerate(np.asarray(model.matrices.vlabels).tolist())}
    for variable in model.variables.data.values():
        labels = variable.labels
        values = [x[place[number]] if number in place else np.nan for number in labels.values.ravel().tolist()]
        variable.solution = xarray.DataArray(np.array(values).reshape(labels.shape), labels.coords, dims=labels.dims)
    objective = np.asarray(model.matrices.c, dtype=np.float64)
    model.objective.set_value(float(objective @ x))
    model.status, model.termination_condition = "ok", "optimal" if optimal else "suboptimal"

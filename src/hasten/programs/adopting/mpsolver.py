"""Models of OR-Tools' MPSolver (`pywraplp`)."""

from __future__ import annotations

from typing import Any

from hasten.errors import ProgramError
from hasten.programs.statement import Builder, Statement
from hasten.support.arrays import FloatArray


def state(model: Any) -> Statement:
    """Returns what a model states."""
    from ortools.linear_solver import linear_solver_pb2

    proto = linear_solver_pb2.MPModelProto()
    model.ExportModelToProto(proto)
    if len(proto.general_constraint):
        raise ProgramError("The model has general constraints, which cannot be adopted. Use its Solve().")
    build = Builder(name=proto.name, maximize=proto.maximize, constant=proto.objective_offset)
    for variable in proto.variable:
        build.column(
            variable.name,
            variable.lower_bound,
            variable.upper_bound,
            variable.is_integer,
            variable.objective_coefficient,
        )
    for row in proto.constraint:
        build.row(row.var_index, row.coefficient, row.lower_bound, row.upper_bound, row.name)
    return build.statement()


def names(model: Any) -> list[str]:
    """Returns the names of its variables."""
    return [variable.name() for variable in model.variables()]


def write(model: Any, x: FloatArray, optimal: bool) -> None:
    """Gives values to the model as its hint."""
    model.SetHint(model.variables(), x.tolist())

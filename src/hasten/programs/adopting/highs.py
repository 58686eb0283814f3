"""Models of highspy."""

from __future__ import annotations

from typing import Any

import numpy as np

from hasten.errors import ProgramError
from hasten.programs.statement import GivenColumns, GivenRows, Statement, make_statement
from hasten.support.arrays import FloatArray


def state(model: Any) -> Statement:
    """Returns the program that a model states."""
    import highspy

    lp, hessian, called = model.getLp(), model.getModel().hessian_, names(model)
    kind = np.array([int(kind) for kind in lp.integrality_] or [0] * lp.num_col_, dtype=np.int64)
    whole = kind == int(highspy.HighsVarType.kInteger)
    odd = np.flatnonzero(~whole & (kind != int(highspy.HighsVarType.kContinuous)))
    if odd.size:
        raise ProgramError(
            f"The variable {called[odd[0]]!r} is semicontinuous, which is not read. Say it with a binary variable."
        )
    matrix = lp.a_matrix_
    first, column, weight = (np.array(each) for each in (matrix.start_, matrix.index_, matrix.value_))
    if matrix.format_ != highspy.MatrixFormat.kRowwise:
        order = np.argsort(column, kind="stable")
        of_row, owner = column[order], np.arange(lp.num_col_).repeat(np.diff(first))
        first, column, weight = np.searchsorted(of_row, np.arange(lp.num_row_ + 1)), owner[order], weight[order]
    start, right, product = (np.array(each) for each in (hessian.start_, hessian.index_, hessian.value_))
    left = np.arange(len(start) - 1).repeat(np.diff(start)) if len(right) else right
    return make_statement(
        GivenColumns(called, lp.col_lower_, lp.col_upper_, whole, lp.col_cost_),
        GivenRows(first, column, weight, lp.row_lower_, lp.row_upper_, list(lp.row_names_)),
        name=lp.model_name_,
        constant=lp.offset_,
        maximize=lp.sense_ == highspy.ObjSense.kMaximize,
        products=(left, right, np.where(left == right, 0.5, 1.0) * product),  # of the lower triangle of x'Qx / 2
    )


def names(model: Any) -> list[str]:
    """Returns the names of its variables."""
    lp = model.getLp()
    return list(lp.col_names_) or [""] * lp.num_col_


def write(model: Any, x: FloatArray, optimal: bool) -> None:
    """Gives values to the model as its solution, from which its next run starts."""
    import highspy

    solution = highspy.HighsSolution()
    solution.col_value = x.tolist()
    model.setSolution(solution)

"""Models of highspy."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hasten.programs.highs_arrays import from_highs
from hasten.programs.statement import Statement
from hasten.support.arrays import FloatArray


def state(model: Any) -> Statement:
    """Returns what a model states."""
    return from_highs(arrays_of(model), model.getLp().model_name_)


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


def arrays_of(highs: Any) -> dict[str, Any]:
    """Returns the arrays of the model that HiGHS holds."""
    import highspy

    model, lp = highs.getModel(), highs.getLp()
    kinds = [int(kind) for kind in lp.integrality_] or [0] * lp.num_col_
    start = [0]
    with suppress(Exception):
        start = list(model.hessian_.start_)
    by_row = lp.a_matrix_.format_ == highspy.MatrixFormat.kRowwise
    return {
        "columns": list(lp.col_names_) or [""] * lp.num_col_,
        "low": list(lp.col_lower_),
        "high": list(lp.col_upper_),
        "kind": kinds,
        "objective": list(lp.col_cost_),
        "constant": lp.offset_,
        "maximize": lp.sense_ == highspy.ObjSense.kMaximize,
        "rows": list(lp.row_names_) or [""] * lp.num_row_,
        "by_row": by_row,
        "start": list(lp.a_matrix_.start_),
        "index": list(lp.a_matrix_.index_),
        "value": list(lp.a_matrix_.value_),
        "row_low": list(lp.row_lower_),
        "row_high": list(lp.row_upper_),
        "hessian": [start, list(model.hessian_.index_), list(model.hessian_.value_)] if len(start) > 1 else None,
    }

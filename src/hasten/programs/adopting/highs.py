"""Models of highspy."""

from __future__ import annotations

from typing import Any

from hasten.programs.highs_arrays import from_highs
from hasten.programs.highs_process import arrays_of
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

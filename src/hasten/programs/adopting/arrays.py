"""SciPy's arrays: what `scipy.optimize.milp` is given, with or without SciPy's own classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hasten.errors import ProgramError
from hasten.programs.statement import GivenColumns, GivenRows, Statement, make_statement
from hasten.support.arrays import FloatArray, IntArray, floats
from hasten.support.checks import listed

ANYTHING = -np.inf, np.inf  # the limits of a row without limits
ARRAYS = ("c", "integrality", "bounds", "constraints", "names")


def state_arrays(
    c: Any,
    *,
    integrality: Any = None,
    bounds: Any = None,
    constraints: Any = None,
    names: Sequence[str] | None = None,
) -> Statement:
    """Returns the program that `milp` would solve; `names` are for answers."""
    cost = np.atleast_1d(_array(c, "c", "the cost of each variable"))
    if cost.ndim > 1:
        raise ProgramError(f"c must be one row of costs, one for each variable; its shape is {cost.shape}.")
    n = len(cost)
    kind = _one_each(0 if integrality is None else integrality, n, "integrality", "variable")
    if not np.isin(kind, (0, 1)).all():
        raise ProgramError("integrality must be 0 or 1: semicontinuous variables are not read.")
    low, high = _ends(bounds)
    parts = [_rows(part, n) for part in _listed(constraints)]
    first = np.concatenate([[0], *[part[0] for part in parts]]).astype(np.int64)
    none = np.zeros(0)
    return make_statement(
        GivenColumns(
            listed(names, "names", ProgramError) if names is not None else [f"x{j}" for j in range(n)],
            low=_one_each(low, n, "The lower bounds", "variable"),
            high=_one_each(high, n, "The upper bounds", "variable"),
            whole=kind == 1,
            objective=cost,
        ),
        GivenRows(
            np.cumsum(first),
            column=np.concatenate([none, *[part[1] for part in parts]]).astype(np.int64),
            weight=np.concatenate([none, *[part[2] for part in parts]]),
            low=np.concatenate([none, *[part[3] for part in parts]]),
            high=np.concatenate([none, *[part[4] for part in parts]]),
        ),
    )


def _array(values: Any, what: str, meaning: str) -> FloatArray:
    """Returns numbers as an array."""
    try:
        return floats(values)
    except (TypeError, ValueError) as error:
        raise ProgramError(f"{what} must be numbers, {meaning} ({error}).") from None


def _one_each(values: Any, n: int, what: str, each: str) -> FloatArray:
    """Returns a number for each of `n`; one alone counts for all."""
    found = _array(values, what, f"one for each {each}, or one for all")
    if found.size != 1 and found.shape != (n,):
        raise ProgramError(
            f"{what}: the shape is {found.shape}. Give one for each {each}, {n:,} in all, or one for all."
        )
    return np.broadcast_to(found.reshape(-1), n)


def _ends(bounds: Any) -> tuple[Any, Any]:
    """Returns lower and upper bounds: milp takes `Bounds`, or a pair."""
    if bounds is None:
        return 0.0, np.inf
    if hasattr(bounds, "lb"):
        return bounds.lb, bounds.ub
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise ProgramError("bounds must be scipy.optimize.Bounds, or the pair (lower bounds, upper bounds).") from None
    return low, high


def _listed(constraints: Any) -> Sequence[Any]:
    """Returns constraints one by one: milp takes one, several, and plain tuples of (A, low, high)."""
    if constraints is None:
        return []
    if hasattr(constraints, "A"):
        return [constraints]
    if isinstance(constraints, tuple) and not any(
        hasattr(each, "A") or isinstance(each, tuple) for each in constraints
    ):
        return [constraints] if constraints else []
    return listed(constraints, "constraints", ProgramError)


def _rows(part: Any, n: int) -> tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray]:
    """Returns the sizes, columns, weights and limits of some rows."""
    if not hasattr(part, "A") and not (isinstance(part, (tuple, list)) and 1 <= len(part) <= 3):
        kind = type(part).__name__
        raise ProgramError(
            f"A constraint must be scipy.optimize.LinearConstraint, or (A, lower limits, upper limits), not {kind}."
        )
    matrix, low, high = (part.A, part.lb, part.ub) if hasattr(part, "A") else (*part, *ANYTHING[len(part) - 1 :])
    sizes, column, weight = rows_of(matrix, n)
    m = len(sizes)
    least, most = _one_each(low, m, "The lower limits", "row"), _one_each(high, m, "The upper limits", "row")
    return sizes, column, weight, least, most


def rows_of(matrix: Any, n: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Returns the sizes, columns and weights of a matrix's rows, sparse or dense."""
    if hasattr(matrix, "tocsr"):
        sparse = matrix.tocsr()
        shape, sizes = sparse.shape, np.diff(sparse.indptr).astype(np.int64)
        column, weight = sparse.indices.astype(np.int64), np.asarray(sparse.data, dtype=np.float64)
    else:
        dense = np.atleast_2d(_array(matrix, "The matrix of a constraint", "a column for each variable"))
        shape = dense.shape
        if len(shape) > 2:
            raise ProgramError(f"The matrix of a constraint has rows and columns; its shape is {shape}.")
        row, column = np.nonzero(dense)
        sizes, weight = np.bincount(row, minlength=len(dense)), dense[row, column]
    if shape[1] != n:
        raise ProgramError(f"A constraint has {shape[1]} columns; c has {n}.")
    return sizes, column, weight

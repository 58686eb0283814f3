"""SciPy's arrays: what `scipy.optimize.milp` is given, with or without SciPy's own classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hasten.errors import ProgramError
from hasten.programs.statement import Statement, make_statement
from hasten.support.arrays import FloatArray, IntArray

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
    cost = np.atleast_1d(np.asarray(c, dtype=np.float64))
    n = len(cost)
    kind = np.broadcast_to(np.asarray(0 if integrality is None else integrality), n)
    if not np.isin(kind, (0, 1)).all():
        raise ProgramError("integrality must be 0 or 1: semicontinuous variables are not read.")
    if bounds is None:
        low, high = np.zeros(n), np.full(n, np.inf)
    else:
        low, high = (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else bounds
    parts = [_rows(part, n) for part in _listed(constraints)]
    first = np.concatenate([[0], *[part[0] for part in parts]]).astype(np.int64)
    none = np.zeros(0)
    return make_statement(
        columns=list(names) if names is not None else [f"x{j}" for j in range(n)],
        low=np.broadcast_to(low, n),
        high=np.broadcast_to(high, n),
        whole=kind == 1,
        objective=cost,
        row_first=np.cumsum(first),
        row_column=np.concatenate([none, *[part[1] for part in parts]]).astype(np.int64),
        row_weight=np.concatenate([none, *[part[2] for part in parts]]),
        row_low=np.concatenate([none, *[part[3] for part in parts]]),
        row_high=np.concatenate([none, *[part[4] for part in parts]]),
    )


def _listed(constraints: Any) -> list[Any]:
    """Returns constraints one by one: milp takes one, several, and plain tuples of (A, low, high)."""
    if constraints is None:
        return []
    if hasattr(constraints, "A"):
        return [constraints]
    if isinstance(constraints, tuple) and not any(
        hasattr(each, "A") or isinstance(each, tuple) for each in constraints
    ):
        return [constraints]
    return list(constraints)


def _rows(part: Any, n: int) -> tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray]:
    """Returns the sizes, columns, weights and limits of some rows."""
    matrix, low, high = (part.A, part.lb, part.ub) if hasattr(part, "A") else (*part, np.inf)[:3]
    sizes, column, weight = rows_of(matrix, n)
    m = len(sizes)
    return sizes, column, weight, np.broadcast_to(low, m), np.broadcast_to(high, m)


def rows_of(matrix: Any, n: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Returns the sizes, columns and weights of a matrix's rows, sparse or dense."""
    if hasattr(matrix, "tocsr"):
        sparse = matrix.tocsr()
        shape, sizes = sparse.shape, np.diff(sparse.indptr).astype(np.int64)
        column, weight = sparse.indices.astype(np.int64), np.asarray(sparse.data, dtype=np.float64)
    else:
        dense = np.atleast_2d(np.asarray(matrix, dtype=np.float64))
        shape = dense.shape
        row, column = np.nonzero(dense)
        sizes, weight = np.bincount(row, minlength=len(dense)), dense[row, column]
    if shape[1] != n:
        raise ProgramError(f"A constraint has {shape[1]} columns; c has {n}.")
    return sizes, column, weight

"""Models that are matrices: the arguments of SciPy's `milp`, and models of linopy and highspy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from hasten.errors import ProgramError
from hasten.programs.statement import Builder, Statement
from hasten.support.arrays import FloatArray, IntArray, floats
from hasten.support.checks import listed

ANYTHING = -np.inf, np.inf  # the limits of a row without limits


def state_arrays(
    c: Any,
    *,
    integrality: Any = None,
    bounds: Any = None,
    constraints: Any = None,
    names: Sequence[str] | None = None,
) -> Statement:
    """Returns the program that `scipy.optimize.milp` would solve; `names` are for answers."""
    cost = np.atleast_1d(_array(c, "c", "the cost of each variable"))
    if cost.ndim > 1:
        raise ProgramError(f"c must be one row of costs, one for each variable; its shape is {cost.shape}.")
    n, build = len(cost), Builder()
    kind = _one_each(0 if integrality is None else integrality, n, "integrality", "variable")
    if not np.isin(kind, (0, 1)).all():
        raise ProgramError("integrality must be 0 or 1: semicontinuous variables are not read.")
    low, high = _ends(bounds)
    build.add_columns(
        listed(names, "names", ProgramError) if names is not None else [f"x{j}" for j in range(n)],
        _one_each(low, n, "The lower bounds", "variable"),
        _one_each(high, n, "The upper bounds", "variable"),
        kind == 1,
        cost,
    )
    for part in _listed(constraints):
        _add_rows(build, part, n)
    return build.statement()


def _array(values: Any, what: str, meaning: str) -> FloatArray:
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


def _add_rows(build: Builder, part: Any, n: int) -> None:
    if not hasattr(part, "A") and not (isinstance(part, (tuple, list)) and 1 <= len(part) <= 3):
        kind = type(part).__name__
        raise ProgramError(
            f"A constraint must be scipy.optimize.LinearConstraint, or (A, lower limits, upper limits), not {kind}."
        )
    matrix, low, high = (part.A, part.lb, part.ub) if hasattr(part, "A") else (*part, *ANYTHING[len(part) - 1 :])
    sizes, column, weight = _rows_of(matrix, n)
    m = len(sizes)
    least, most = _one_each(low, m, "The lower limits", "row"), _one_each(high, m, "The upper limits", "row")
    build.add_rows(sizes, column, weight, least, most)


def _rows_of(matrix: Any, n: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Returns the sizes, columns and weights of a matrix's rows, sparse or dense."""
    if hasattr(matrix, "tocsr"):
        sparse = matrix.tocsr()
        shape, sizes, column, weight = sparse.shape, np.diff(sparse.indptr), sparse.indices, sparse.data
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


class Highspy:
    """Models of highspy."""

    def state(self, model: Any) -> Statement:
        """Returns the program that a model states."""
        import highspy

        lp, hessian, names = model.getLp(), model.getModel().hessian_, self.names(model)
        kind = np.array([int(kind) for kind in lp.integrality_] or [0] * lp.num_col_, dtype=np.int64)
        whole = kind == int(highspy.HighsVarType.kInteger)
        odd = np.flatnonzero(~whole & (kind != int(highspy.HighsVarType.kContinuous)))
        if odd.size:
            raise ProgramError(
                f"The variable {names[odd[0]]!r} is semicontinuous, which is not read. Say it with a binary variable."
            )
        maximize = lp.sense_ == highspy.ObjSense.kMaximize
        build, matrix = Builder(name=lp.model_name_, maximize=maximize, constant=lp.offset_), lp.a_matrix_
        build.add_columns(names, lp.col_lower_, lp.col_upper_, whole, lp.col_cost_)
        first, column, weight = (np.array(each) for each in (matrix.start_, matrix.index_, matrix.value_))
        if matrix.format_ != highspy.MatrixFormat.kRowwise:
            order, owner = np.argsort(column, kind="stable"), np.arange(lp.num_col_).repeat(np.diff(first))
            first = np.searchsorted(column[order], np.arange(lp.num_row_ + 1))
            column, weight = owner[order], weight[order]
        build.add_rows(np.diff(first), column, weight, lp.row_lower_, lp.row_upper_, list(lp.row_names_))
        for left in range(lp.num_col_ if len(hessian.index_) else 0):  # the lower triangle of x'Qx / 2
            for k in range(hessian.start_[left], hessian.start_[left + 1]):
                right = hessian.index_[k]
                build.product(left, right, (0.5 if left == right else 1.0) * hessian.value_[k])
        return build.statement()

    def names(self, model: Any) -> list[str]:
        """Returns the names of its variables."""
        lp = model.getLp()
        return list(lp.col_names_) or [""] * lp.num_col_

    def write(self, model: Any, x: FloatArray, optimal: bool) -> None:
        """Gives values to the model as its solution, from which its next run starts."""
        import highspy

        solution = highspy.HighsSolution()
        solution.col_value = x.tolist()
        model.setSolution(solution)


class Linopy:
    """Models of linopy, through the matrices that it exports to solvers."""

    def state(self, model: Any) -> Statement:
        """Returns the program that a model states."""
        if model.is_quadratic:
            raise ProgramError("The model has a quadratic objective, which is not read from linopy. Use model.solve().")
        if getattr(model.variables, "sos", None):
            raise ProgramError("The model has special ordered sets, which cannot be adopted. Use model.solve().")
        data, build = model.matrices, Builder(name=str(getattr(model, "name", "") or ""), maximize=model.sense == "max")
        kind = np.asarray(data.vtypes, dtype=object)
        if not np.isin(kind, ("C", "I", "B")).all():
            raise ProgramError("The model has semicontinuous variables, which cannot be adopted. Use model.solve().")
        low, high = np.array(data.lb, dtype=np.float64), np.array(data.ub, dtype=np.float64)
        low[kind == "B"], high[kind == "B"] = np.maximum(low[kind == "B"], 0), np.minimum(high[kind == "B"], 1)
        build.add_columns(self.names(model), low, high, kind != "C", data.c)
        sense, limit = np.asarray(data.sense, dtype=object), np.asarray(data.b, dtype=np.float64)
        if data.A is not None:
            least, most = np.where(sense == "<", -np.inf, limit), np.where(sense == ">", np.inf, limit)
            build.add_rows(*_rows_of(data.A, len(low)), least, most)
        return build.statement()

    def names(self, model: Any) -> list[str]:
        """Returns the names of its variables: each is that of its array, with its coordinates."""
        found: dict[int, str] = {}
        for variable in model.variables.data.values():
            found.update(zip(variable.labels.values.ravel().tolist(), names_of(variable), strict=True))
        return [found[number] for number in np.asarray(model.matrices.vlabels).tolist()]

    def write(self, model: Any, x: FloatArray, optimal: bool) -> None:
        """Sets the solution of the model's variables, as if linopy had solved it."""
        import xarray

        place = {number: at for at, number in enumerate(np.asarray(model.matrices.vlabels).tolist())}
        for variable in model.variables.data.values():
            labels = variable.labels
            values = [x[place[number]] if number in place else np.nan for number in labels.values.ravel().tolist()]
            array = xarray.DataArray(np.array(values).reshape(labels.shape), labels.coords, dims=labels.dims)
            variable.solution = array
        model.objective.set_value(float(np.asarray(model.matrices.c, dtype=np.float64) @ x))
        model.status, model.termination_condition = "ok", "optimal" if optimal else "suboptimal"


def names_of(variable: Any) -> list[str]:
    """Returns the names of the variables in an array of linopy."""
    labels = variable.labels
    axes = [labels.indexes[axis] if axis in labels.indexes else range(labels.sizes[axis]) for axis in labels.dims]
    return [f"{variable.name}[{','.join(map(str, at))}]" if at else variable.name for at in product(*axes)]

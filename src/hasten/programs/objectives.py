"""Objectives: as users give them, as arrays in the order of a program's columns, and as costs of labels.

A user gives arrays, in the order of the columns or another, or mappings by variable (`ObjectiveReader`). From there on,
what labels cost is a linear map of the objective (`CostMap`); where a first look proves an answer, the same call writes
its values.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from hasten.errors import ProgramError
from hasten.programs.libraries import place_of
from hasten.programs.statement import Statement
from hasten.support.arrays import FloatArray, IntArray, all_finite, floats, ints
from hasten.support.checks import listed
from hasten.support.forms import short

log = logging.getLogger(__name__)
AT_ONCE = 4096  # objectives that are looked at in one call
Objective: TypeAlias = npt.ArrayLike | Mapping[Any, Any]  # by column, or by variable or name
Objectives: TypeAlias = npt.ArrayLike | Sequence[Mapping[Any, Any]]
Order: TypeAlias = Iterable[Any] | None  # variables or names; None is the order of the columns


class ObjectiveReader:
    """Turns objectives into arrays in the order of a program's columns."""

    def __init__(self, statement: Statement) -> None:
        self.statement = statement
        self._warned = not statement.sorted_by

    def one(self, objective: Objective | None, order: Order = None) -> FloatArray:
        """Returns one objective; None is the program's own."""
        if objective is None:
            return self.statement.objective
        if isinstance(objective, Mapping):
            return self.many([objective], order).reshape(-1)
        c = _floats(objective)
        if order is None and self._warned and c.shape == self.statement.objective.shape and all_finite(c):
            return c
        return self.many(c[None], order).reshape(-1)

    def many(self, objectives: Any, order: Order = None) -> FloatArray:
        """Returns several objectives, a row each."""
        if isinstance(objectives, Mapping):
            raise ProgramError("Several objectives are a matrix or a list of mappings, one each. Put it into a list.")
        if isinstance(objectives, Sequence) and any(isinstance(each, Mapping) for each in objectives):
            if order is not None:
                raise ProgramError("A mapping names its variables; an order is for arrays. Leave it out.")
            return self._finite(np.array([self._named(each) for each in objectives]))
        matrix = _floats(objectives)
        n = self.statement.n_columns
        at = None if order is None else np.concatenate([ints(()), *self._places(order)])
        width = n if at is None else len(at)
        if matrix.ndim != 2 or matrix.shape[1] != width:
            raise ProgramError(
                f"Got objectives of shape {matrix.shape}; this needs (problems, {width}): a row for each problem, with "
                "a coefficient for each variable, in the order of program.columns, or of `order`."
            )
        if at is None:
            self._warn()
            return self._finite(matrix)
        placed = np.zeros((len(matrix), n))
        placed[:, at] = matrix
        return self._finite(placed)

    def _named(self, objective: object) -> FloatArray:
        if not isinstance(objective, Mapping):
            raise ProgramError(f"Objectives are all mappings or all arrays; got {short(objective)} among mappings.")
        c = np.zeros(self.statement.n_columns)
        for variable, at, weight in zip(objective, self._places(objective), objective.values(), strict=True):
            if np.ndim(_floats(weight)):
                raise ProgramError(f"The objective of {short(variable)} must be one number, not {short(weight)}.")
            c[at] = weight
        return c

    def _places(self, variables: Iterable[Any]) -> list[IntArray]:
        """Returns the columns of each of some variables, which are names or a library's own objects."""
        n, found = self.statement.n_columns, list[IntArray]()
        for variable in listed(variables, "Variables in order", ProgramError):
            named = variable if isinstance(variable, str) else place_of(variable)
            each = [named] if isinstance(named, int | str) else named
            at = ints([self.statement.place.get(one, -1) if isinstance(one, str) else one for one in each])
            if at.min(initial=0) < 0 or at.max(initial=0) >= n:
                raise ProgramError(f"There is no variable {short(variable)} in this program. See program.columns.")
            found.append(at)
        taken = np.bincount(np.concatenate([ints(()), *found]), minlength=n)
        if taken.max(initial=0) > 1:
            twice = self.statement.columns[int(taken.argmax())]
            raise ProgramError(f"The variable {twice!r} is named twice. Name it once.")
        return found

    def _finite(self, matrix: FloatArray) -> FloatArray:
        if not all_finite(matrix):
            row, at = np.argwhere(~np.isfinite(matrix))[0].tolist()
            name, value = self.statement.columns[at], matrix[row, at]
            raise ProgramError(f"The objective of {name!r} in row {row} is {value}. Give finite numbers.")
        return matrix

    def _warn(self) -> None:
        """Warns, once, that the columns are in an order that the user may not expect."""
        if not self._warned:
            self._warned = True
            log.warning(
                "%s sorts variables by name: %s, … Arrays of coefficients are taken in this order (program.columns). "
                "Give mappings from variables to coefficients, or say order=variables.",
                self.statement.sorted_by,
                ", ".join(self.statement.columns[:4]),
            )


def _floats(values: object) -> FloatArray:
    try:
        return floats(values)
    except (TypeError, ValueError) as error:
        raise ProgramError(f"The coefficients of objectives are numbers ({error}).") from None

"""Objectives: as users give them, as arrays in the order of a program's columns, and as costs of labels.

A user gives arrays, in the order of the columns or another, or mappings by variable (`ObjectiveReader`). From there on,
what labels cost is a linear map of the objective (`CostMap`); where a first look proves an answer, the same call writes
its values.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from hasten.errors import ProgramError
from hasten.model.structure import Structure
from hasten.programs.libraries import place_of
from hasten.programs.state import FirstLook, Recognised
from hasten.programs.statement import Statement
from hasten.proof.objectives import Columns, look_at_objective, look_at_objectives, write_values
from hasten.proof.outcome import PROVED
from hasten.proof.steps import begins_with_looking
from hasten.support.arrays import FloatArray, IntArray, all_finite, floats, ints, plain
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
        named = getattr(objectives, "columns", ())  # a data frame's
        if order is None and len(named) and all(isinstance(each, str) for each in named):
            order = named
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

    def start(self, values: Any) -> FloatArray | None:
        """Returns values to start from, in the order of the columns; nan is none."""
        if values is None:
            return None
        try:
            found = floats(values)
        except (TypeError, ValueError) as error:
            raise ProgramError(f"The values to start from are numbers ({error}).") from None
        n = self.statement.n_columns
        if found.shape != (n,):
            raise ProgramError(
                f"Got a start of shape {found.shape}. Give {n} values, in the order of program.columns, nan for none."
            )
        return found

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


class CostMap:
    """The costs of labels under an objective: a linear map, plus costs that every objective shares.

    What no label decides (the constant, and columns with one value) is added to the labels of the first variable. A
    column that others define adds its coefficient to theirs.
    """

    def __init__(self, found: Recognised, structure: Structure) -> None:
        space, self.defined = found.space, found.defined
        sets = space.column >= 0
        self._shape, self._n_columns = (space.n_variables, len(space.column)), len(space.fixed)
        self._made_of = found, structure
        self._column, self._value = np.where(sets, space.column, 0), np.where(sets, space.value, 0.0)
        self._fixed, self._n_first = np.flatnonzero(space.fixed), int(space.first[1])
        self._fixed_value, self._base = space.fixed[self._fixed], found.base.copy()
        self._base[: self._n_first] += found.constant

    def __reduce__(self) -> tuple[type[CostMap], tuple[Recognised, Structure]]:
        return CostMap, self._made_of  # what holds addresses is made anew

    @cached_property
    def _packed(self) -> Columns:
        structure, space = self._made_of[1], self._made_of[0].space
        return Columns.pack(
            column=space.column,
            value=space.value,
            base=self._base,
            fixed=space.fixed,
            graph=[structure.graph.address],
            looks=[begins_with_looking(structure.compiled)],
        )

    @cached_property
    def _address(self) -> int:
        return self._packed.address

    def look(self, objective: FloatArray, sign: float) -> FirstLook:
        """Looks at one objective, to minimise or, with the sign -1, to maximise."""
        cost, x = np.empty(self._shape[1]), np.empty(self._n_columns)
        c = plain(objective if self.defined is None else self.defined.objectives(objective[None])[0])
        outcome, bound, size = look_at_objective(self._address, c, sign, cost, x)
        if outcome == PROVED and self.defined is not None:
            x = self.defined.values(x[None])[0]
        return FirstLook(outcome, bound, size, cost, x)

    def look_at_all(self, objectives: FloatArray, sign: float) -> FirstLook:
        """Looks at many objectives."""
        n = len(objectives)
        seen, cost, x = np.empty((n, 3)), np.empty((n, self._shape[1])), np.empty((n, self._n_columns))
        for begin in range(0, n, AT_ONCE):  # Ctrl-C is heard in between
            some = slice(begin, begin + AT_ONCE)
            c = plain(objectives[some] if self.defined is None else self.defined.objectives(objectives[some]))
            look_at_objectives(self._address, c, sign, cost[some], x[some], seen[some])
        proved = seen[:, 0] == PROVED
        if self.defined is not None and proved.any():
            x[proved] = self.defined.values(x[proved])
        return FirstLook(seen[:, 0], seen[:, 1], seen[:, 2], cost, x)

    def values(self, labels: IntArray, n: int) -> FloatArray:
        """Returns the value of each column, a row for each of `n` labellings, given flat; nan without one."""
        x = np.empty((n, self._n_columns))
        write_values(self._address, labels.reshape(n, self._shape[0]), x)
        return x if self.defined is None else self.defined.values(x)

    def many(self, objectives: FloatArray, sign: float, constant: float) -> FloatArray:
        """Returns the costs under many objectives, a row for each."""
        c = objectives if self.defined is None else self.defined.objectives(objectives)
        cost = c.take(self._column, axis=1) * (sign * self._value) + self._base
        cost[:, : self._n_first] += sign * (constant + c[:, self._fixed] @ self._fixed_value)[:, None]
        return np.asarray(cost)


def _floats(values: object) -> FloatArray:
    try:
        return floats(values)
    except (TypeError, ValueError) as error:
        raise ProgramError(f"The coefficients of objectives are numbers ({error}).") from None

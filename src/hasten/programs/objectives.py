"""Objectives: as users give them, as arrays in the order of a program's columns, and as costs of labels.

A user gives arrays, in the order of the columns or another, or mappings by variable (`ObjectiveReader`). From there on,
what labels cost is a linear map of the objective (`CostMap`); where a first look proves an answer, the same call writes
its values.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from hasten.errors import ProgramError
from hasten.model.structure import Structure
from hasten.programs.libraries import place_of
from hasten.programs.state import Space
from hasten.programs.statement import Statement
from hasten.proof.objectives import Columns, look_at_objective, look_at_objectives, write_values
from hasten.proof.outcome import OPEN, PROVED
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
        """Returns an objective that was given as a mapping."""
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


class FirstLook(NamedTuple):
    """The result of a first look at an objective or, with one more axis, at several."""

    outcome: Any
    bound: Any
    size: Any  # of the terms
    cost: FloatArray  # (labels,)
    x: FloatArray  # (columns,) the values, where they are proved

    def one(self, p: int) -> FirstLook:
        """Returns the result for one of several objectives."""
        return FirstLook(*(each[p] for each in self))

    @property
    def proved(self) -> bool:
        """Whether that is all there is to do."""
        return bool(self.outcome == PROVED)

    @property
    def looked(self) -> bool:
        """Whether a proof goes on after looking."""
        return bool(self.outcome == OPEN)


class CostMap:
    """The costs of labels under an objective: a linear map, plus costs that every objective shares.

    What no label decides (the constant, and columns with one value) is added to the labels of the first variable.
    """

    def __init__(self, space: Space, base: FloatArray, constant: float, structure: Structure) -> None:
        sets = space.column >= 0
        self._n_variables, self._n_labels, self._n_columns = space.n_variables, len(space.column), len(space.fixed)
        self._column, self._value = np.where(sets, space.column, 0), np.where(sets, space.value, 0.0)
        self._all_ones = bool((self._value == 1.0).all())
        self._fixed = np.flatnonzero(space.fixed)
        self._fixed_value = space.fixed[self._fixed]
        self._n_first, self._made_of = int(space.first[1]), (space, base, constant, structure)
        self._base = base.copy()
        self._base[: self._n_first] += constant
        self._has_base = bool(self._base.any())

    def __reduce__(self) -> tuple[type[CostMap], tuple[Space, FloatArray, float, Structure]]:
        return CostMap, self._made_of  # what holds addresses is made anew

    @cached_property
    def _packed(self) -> Columns:
        """The map as kernels read it."""
        space, _, _, structure = self._made_of
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
        """The address of the packed map."""
        return self._packed.address

    def look(self, objective: FloatArray, sign: float) -> FirstLook:
        """Looks at one objective, to minimise or, with the sign -1, to maximise."""
        cost, x = np.empty(self._n_labels), np.empty(self._n_columns)
        return FirstLook(*look_at_objective(self._address, plain(objective), sign, cost, x), cost, x)

    def look_at_all(self, objectives: FloatArray, sign: float) -> FirstLook:
        """Looks at many objectives."""
        n = len(objectives)
        seen, cost, x = np.empty((n, 3)), np.empty((n, self._n_labels)), np.empty((n, self._n_columns))
        for begin in range(0, n, AT_ONCE):  # Ctrl-C is heard in between
            some = slice(begin, begin + AT_ONCE)
            look_at_objectives(self._address, plain(objectives[some]), sign, cost[some], x[some], seen[some])
        return FirstLook(seen[:, 0], seen[:, 1], seen[:, 2], cost, x)

    def values(self, labels: IntArray, n: int) -> FloatArray:
        """Returns the value of each column, a row for each of `n` labellings, given flat; nan without one."""
        x = np.empty((n, self._n_columns))
        write_values(self._address, labels.reshape(n, self._n_variables), x)
        return x

    def many(self, objectives: FloatArray, sign: float, constant: float) -> FloatArray:
        """Returns the costs under many objectives, a row for each."""
        cost = np.zeros((len(objectives), self._n_labels))
        if objectives.size:
            cost = objectives.take(self._column, axis=1)
        if sign < 0 or not self._all_ones:
            cost *= sign * self._value
        if self._has_base:
            cost += self._base
        shift = constant + objectives[:, self._fixed] @ self._fixed_value
        cost[:, : self._n_first] += sign * shift[:, None]
        return cost

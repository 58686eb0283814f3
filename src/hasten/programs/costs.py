"""From objectives, in the model's order of variables, to what labels cost, and to values where a glance proves them."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from hasten.model.structure import Structure
from hasten.programs.labels import Space
from hasten.proof.objectives import Columns, look_at_objective, look_at_objectives, write_values
from hasten.proof.outcome import OPEN, PROVED
from hasten.proof.steps import begins_with_looking
from hasten.support.arrays import FloatArray, IntArray, plain

AT_ONCE = 4096  # objectives that are looked at in one call


class Glance(NamedTuple):
    """What is seen of an objective at a glance."""

    outcome: int
    bound: float
    size: float  # of the terms
    cost: FloatArray  # (labels,)
    x: FloatArray  # (columns,) the values, where they are proved

    @property
    def proved(self) -> bool:
        """Whether that is all there is to do."""
        return self.outcome == PROVED

    @property
    def looked(self) -> bool:
        """Whether a proof goes on after looking."""
        return self.outcome == OPEN


class Glances(NamedTuple):
    """The same for many objectives."""

    outcome: FloatArray  # (n,)
    bound: FloatArray  # (n,)
    size: FloatArray  # (n,)
    cost: FloatArray  # (n, labels)
    x: FloatArray  # (n, columns)

    def one(self, p: int) -> Glance:
        """Returns what is seen of one of them."""
        return Glance(int(self.outcome[p]), float(self.bound[p]), float(self.size[p]), self.cost[p], self.x[p])


class CostMap:
    """What labels cost under an objective: a linear map, and what labels cost whatever the objective.

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
    def _words(self) -> Columns:
        """The same, for kernels."""
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
        """Where these words lie."""
        return self._words.address

    def glance(self, objective: FloatArray, sign: float) -> Glance:
        """Returns what is seen at once of one objective to minimise or, with the sign -1, to maximise."""
        cost, x = np.empty(self._n_labels), np.empty(self._n_columns)
        return Glance(*look_at_objective(self._address, plain(objective), sign, cost, x), cost, x)

    def glance_at_all(self, objectives: FloatArray, sign: float) -> Glances:
        """Returns what is seen at once of many objectives."""
        n = len(objectives)
        seen, cost, x = np.empty((n, 3)), np.empty((n, self._n_labels)), np.empty((n, self._n_columns))
        for begin in range(0, n, AT_ONCE):  # Ctrl-C is heard in between
            some = slice(begin, begin + AT_ONCE)
            look_at_objectives(self._address, plain(objectives[some]), sign, cost[some], x[some], seen[some])
        return Glances(seen[:, 0], seen[:, 1], seen[:, 2], cost, x)

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

"""From objectives, in the model's order of variables, to what labels cost."""

from __future__ import annotations

import numpy as np

from hasten.programs.labels import Space
from hasten.support.arrays import FloatArray


class CostMap:
    """What labels cost under an objective: a linear map, and what labels cost whatever the objective.

    What no label decides (the constant, and columns with one value) is added to the labels of the first variable.
    """

    def __init__(self, space: Space, base: FloatArray, constant: float) -> None:
        sets = space.column >= 0
        self._column, self._value = np.where(sets, space.column, 0), np.where(sets, space.value, 0.0)
        self._all_ones = bool((self._value == 1.0).all())
        self._fixed = np.flatnonzero(space.fixed)
        self._fixed_value = space.fixed[self._fixed]
        self._base, self._has_base = base, bool(base.any())
        self._constant, self._n_first = constant, int(space.first[1])

    def one(self, objective: FloatArray, sign: float, constant: float) -> FloatArray:
        """Returns the costs of the labels under one objective to minimise or, with the sign -1, to maximise."""
        cost = objective.take(self._column) if objective.size else np.zeros(len(self._column))
        if not self._all_ones:
            cost *= self._value
        if sign < 0:
            np.negative(cost, out=cost)
        if self._has_base:
            cost += self._base
        shift = constant + (float(objective[self._fixed] @ self._fixed_value) if len(self._fixed) else 0.0)
        if shift or self._constant:
            cost[: self._n_first] += self._constant + sign * shift
        return cost

    def many(self, objectives: FloatArray, sign: float, constant: float) -> FloatArray:
        """Returns the costs under many objectives, a row for each."""
        cost = np.zeros((len(objectives), len(self._column)))
        if objectives.size:
            cost = objectives.take(self._column, axis=1)
        if sign < 0 or not self._all_ones:
            cost *= sign * self._value
        if self._has_base:
            cost += self._base
        shift = constant + objectives[:, self._fixed] @ self._fixed_value
        cost[:, : self._n_first] += (self._constant + sign * shift)[:, None]
        return cost

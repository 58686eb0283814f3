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
        self._sets = np.flatnonzero(space.column >= 0)
        self._column, self._value = space.column[self._sets], space.value[self._sets]
        self._all_ones = bool((self._value == 1.0).all())
        self._fixed = np.flatnonzero(space.fixed)
        self._fixed_value = space.fixed[self._fixed]
        self._base, self._constant, self._n_first = base, constant, int(space.first[1])

    def one(self, objective: FloatArray, sign: float, constant: float) -> FloatArray:
        """Returns the costs of the labels under one objective to minimise or, with the sign -1, to maximise."""
        cost, part = self._base.copy(), objective[self._column]
        if not self._all_ones:
            part = part * self._value
        cost[self._sets] += part if sign > 0 else -part
        shift = constant + (float(objective[self._fixed] @ self._fixed_value) if len(self._fixed) else 0.0)
        if shift or self._constant:
            cost[: self._n_first] += self._constant + sign * shift
        return cost

    def many(self, objectives: FloatArray, sign: float, constant: float) -> FloatArray:
        """Returns the costs under many objectives, a row for each."""
        cost = np.tile(self._base, (len(objectives), 1))
        cost[:, self._sets] += sign * objectives[:, self._column] * self._value
        shift = constant + objectives[:, self._fixed] @ self._fixed_value
        cost[:, : self._n_first] += (self._constant + sign * shift)[:, None]
        return cost

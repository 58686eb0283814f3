"""Weights under training, for every task: AdaGrad's steps, and the average over all of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.support.arrays import FloatArray


class Averaged(NamedTuple):
    """A table of weights: the current ones, and what their steps and their average need."""

    weights: FloatArray
    squares: FloatArray  # of all gradients so far, summed
    lag: FloatArray  # what each weight was moved by, times the step at which it was

    @classmethod
    def of(cls, n_rows: int, n_columns: int) -> Averaged:
        """Returns a table of zeros."""
        shape = n_rows, n_columns
        return cls(np.zeros(shape), np.full(shape, 1e-8), np.zeros(shape))

    def mean(self, steps: int) -> FloatArray:
        """Returns the average over all steps."""
        found: FloatArray = self.weights - self.lag / max(steps, 1)
        return found

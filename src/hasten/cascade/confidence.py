"""How sure a student is of an answer: the probability that it is the black box's, label for label.

The margin of a variable is how much more the best answer with another label there costs, exactly (a min-marginal). For
each kind of variable, and apart for labels that say nothing (no relation, outside), a logistic model gives the
probability that the label is the black box's from the margin and its logarithm. The product over the variables is the
probability of the whole answer. The smallest margin says nearly as much; the sum of margins says nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from hasten.model.batch import Batch
from hasten.support.arrays import BoolArray, FloatArray, IntArray, ints

FLOOR, CEILING = 1e-3, 1e6  # of margins: ties, and labels without an alternative
RIDGE, STEPS = 1.0, 50


@dataclass(frozen=True, eq=False)
class Confidence:
    """The logistic models, by group of variables: (n_groups, 3) weights of 1, the margin and its logarithm."""

    weights: FloatArray

    @classmethod
    def fit(cls, groups: IntArray, margin: FloatArray, right: BoolArray) -> Confidence:
        """Fits a model to each group of variables: their margins, and which labels were the black box's."""
        n_groups = int(groups.max(initial=-1)) + 1
        fitted = [_fit(_features(margin[groups == g]), right[groups == g]) for g in range(n_groups)]
        return cls(np.array(fitted).reshape(n_groups, 3))

    @classmethod
    def none(cls) -> Confidence:
        """Returns that of a student which was not compared with a black box: it is never sure."""
        return cls(np.zeros((0, 3)))

    def log_probability(self, variable_at: IntArray, groups: IntArray, margin: FloatArray) -> FloatArray:
        """Returns the logarithm of the probability that each whole answer is the black box's."""
        known = groups < len(self.weights)
        score = (_features(margin) * self.weights[np.where(known, groups, 0)]).sum(axis=1) if len(self.weights) else 0.0
        each = np.where(known, -np.logaddexp(0.0, -score), -np.inf)
        n = len(variable_at) - 1
        return np.asarray(np.bincount(np.repeat(np.arange(n), np.diff(variable_at)), each, n), dtype=np.float64)


def groups_of(batch: Batch, labels: IntArray, silent: Collection[str]) -> IntArray:
    """Returns the group of each variable of a batch: its kind, and whether its label says nothing."""
    kinds = list(batch.structures[0].schema.variables.values()) if batch.structures else []
    number = {kind.name: n for n, kind in enumerate(kinds)}
    most = max((len(kind.labels) for kind in kinds), default=0)
    nothing = np.zeros((len(kinds), most + 1), dtype=bool)
    for n, kind in enumerate(kinds):
        nothing[n, : len(kind.labels)] = [label in silent for label in kind.labels]
    numbers = [ints(number[kind.name] for kind in each.kinds) for each in batch.structures]
    flat = np.concatenate([ints(()), *(numbers[s] for s in batch.structure.tolist())])
    return np.asarray(2 * flat + nothing[flat, labels])


def _features(margin: FloatArray) -> FloatArray:
    margin = np.clip(margin, 0.0, CEILING)
    return np.stack([np.ones_like(margin), margin, np.log(margin + FLOOR)], axis=1)


def _fit(x: FloatArray, right: BoolArray) -> FloatArray:
    """Returns the weights of a logistic regression, by Newton's method; a ridge keeps all but the constant small."""
    if not len(x):
        return np.zeros(3)
    mean, scale = x.mean(axis=0), x.std(axis=0) + 1e-9
    mean[0], scale[0] = 0.0, 1.0
    z, ridge, w = (x - mean) / scale, np.diag([1e-3, RIDGE, RIDGE]), np.zeros(3)
    for _ in range(STEPS):
        p = 1 / (1 + np.exp(-np.clip(z @ w, -30, 30)))
        step = np.linalg.solve((z * (p * (1 - p))[:, None]).T @ z + ridge, z.T @ (right - p) - ridge @ w)
        w += np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-9:
            break
    found = w / scale
    found[0] -= (found[1:] * mean[1:]).sum()
    return np.asarray(found)

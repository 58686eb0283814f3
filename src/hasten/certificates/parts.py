"""The parts that splits make: a state each, and how far the rows of the problem can still go within it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hasten import certificate as checker
from hasten.certificates.derivation import Derivation
from hasten.kernels.layout import Graph
from hasten.kernels.tolerance import EXACT
from hasten.support.arrays import FloatArray, IntArray


class Rows:
    """The rows of a graph, as the proof takes them: weights and limits, by variable and label.

    Ranges of rows are exact: of whole weights as floats, of others as the integers that the checker uses.
    """

    def __init__(self, graph: Graph) -> None:
        self.low, self.high = graph.row_least, graph.row_most
        self.weights: list[dict[int, FloatArray]] = []  # by row and variable: a weight for each label
        self.of: list[list[int]] = [[] for _ in graph.order]  # by variable
        self.exact: list[dict[int, Any]] = []  # the weights again, as numbers whose sums are exact; and the limits
        self.least, self.most = np.empty(len(self.low), dtype=object), np.empty(len(self.low), dtype=object)
        for r in range(len(graph.row_low)):
            cells = slice(graph.row_first[r], graph.row_first[r + 1])
            weights: dict[int, FloatArray] = {}
            for v, at, weight in zip(
                graph.row_variable[cells], graph.row_label[cells], graph.row_weight[cells], strict=True
            ):
                if v not in weights:
                    weights[int(v)] = np.zeros(graph.first[v + 1] - graph.first[v])
                    self.of[v].append(r)
                weights[int(v)][at - graph.first[v]] += weight
            self.weights.append(weights)
            every = np.concatenate([np.zeros(0), *weights.values()])
            if np.array_equal(every, np.floor(every)) and np.abs(every).sum() < EXACT:
                self.exact.append(dict(weights))
                self.least[r], self.most[r] = float(self.low[r]), float(self.high[r])
                continue
            as_read = {v: [checker.exact(weight) for weight in each.tolist()] for v, each in weights.items()}
            self.exact.append({v: np.array(each, dtype=object) for v, each in as_read.items()})
            self.least[r], self.most[r] = (_limit(float(limit)) for limit in (self.low[r], self.high[r]))

    def __len__(self) -> int:
        return len(self.weights)

    def ranges(self, state: Derivation) -> tuple[Any, Any]:
        """Returns the least and the most that each row can come to."""
        least, most = np.zeros(len(self), dtype=object), np.zeros(len(self), dtype=object)
        for r, weights in enumerate(self.exact):
            for v, each in weights.items():
                if state.left[v].size:  # without labels nothing is valid, whatever rows say
                    least[r] += each[state.left[v]].min()
                    most[r] += each[state.left[v]].max()
        return least, most


class Node:
    """A part of the labellings: a state, and the ranges of rows within it."""

    def __init__(self, state: Derivation, rows: Rows, least: Any, most: Any) -> None:
        self.state, self.rows, self.least, self.most = state, rows, least, most

    def restricted(self, v: int, labels: IntArray) -> Node:
        """Returns the part in which a variable has one of some labels."""
        state, least, most = self.state.copy(), self.least.copy(), self.most.copy()
        before = state.left[v]
        state.restrict(v, labels)
        for r in self.rows.of[v]:
            each = self.rows.exact[r][v]
            least[r] += each[labels].min() - each[before].min()
            most[r] += each[labels].max() - each[before].max()
        return Node(state, self.rows, least, most)

    def broken(self) -> int | None:
        """Returns a row that cannot hold any more."""
        found = np.flatnonzero((self.least > self.rows.most) | (self.most < self.rows.least))
        return int(found[0]) if found.size else None

    def excluded(self, v: int) -> dict[int, int]:
        """Returns labels of a variable that a row leaves no room for, each with that row."""
        found: dict[int, int] = {}
        left = self.state.left[v]
        for r in self.rows.of[v]:
            each = self.rows.exact[r][v]
            low = self.least[r] - each[left].min() + each[left]
            high = self.most[r] - each[left].max() + each[left]
            out = left[((low > self.rows.most[r]) | (high < self.rows.least[r])).astype(bool)]
            found |= {int(label): r for label in out}
        return found


def _limit(limit: float) -> int:
    """Returns a limit of a row as the checker takes it."""
    return checker.exact(limit) if math.isfinite(limit) else int(math.copysign(1, limit)) * checker.INFINITE

"""A pool of past answers: labellings to start from, for problems of the same structure.

Inputs of one shape often have few distinct answers. The cheapest valid one of those seen is, for a new problem, what
branching prunes with, and where the solver starts. It is scored and checked anew for each problem, so that no answer
rests on it being right.
"""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

import numpy as np

from hasten.model.batch import Batch
from hasten.model.compiled import Compiled
from hasten.model.solution import Solutions
from hasten.support.arrays import IntArray
from hasten.support.threads import Lock


class AnswerPool:
    """The distinct labellings that answered past problems, by structure: the `max_answers` of each used last."""

    def __init__(self, max_answers: int) -> None:
        self.max_answers = max_answers
        self._pools: WeakKeyDictionary[Compiled, IntArray] = WeakKeyDictionary()  # (m, variables), used last at the end
        self._lock = Lock()

    def __len__(self) -> int:
        return sum(len(pool) for pool in self._pools.values())

    def learn(self, answers: Solutions) -> None:
        """Keeps the labellings of valid answers."""
        with self._lock:
            for compiled, some in _by_structure(answers.batch, np.flatnonzero(answers.valid)):
                self._keep(compiled, answers.values[answers.batch.places(some)].reshape(len(some), -1))

    def best(self, batch: Batch) -> Solutions:
        """Returns the cheapest valid past labelling of each problem; none where there is no such labelling."""
        labels, cost = np.full(batch.variable_at[-1], -1, dtype=np.int64), np.full(len(batch), np.inf)
        with self._lock:
            for compiled, some in _by_structure(batch, np.arange(len(batch))):
                part, used = batch.select(some), list[IntArray]()
                for each in self._pools.get(compiled, ()):
                    tried = Solutions.scored(part, np.tile(each, len(some)))
                    better = some[tried.valid & (tried.cost < cost[some])]
                    if better.size:
                        cost[some] = np.where(tried.valid, np.minimum(tried.cost, cost[some]), cost[some])
                        labels[batch.places(better)] = np.tile(each, len(better))
                        used.append(each)
                if used:
                    self._keep(compiled, np.array(used))
        return Solutions.scored(batch, labels, cost < np.inf)

    def _keep(self, compiled: Compiled, labels: IntArray) -> None:
        pool = self._pools.get(compiled)
        joined = labels if pool is None else np.concatenate([pool, labels])
        _, last = np.unique(joined[::-1], axis=0, return_index=True)
        self._pools[compiled] = joined[np.sort(len(joined) - 1 - last)[-self.max_answers :]]


def _by_structure(batch: Batch, problems: IntArray) -> Iterator[tuple[Compiled, IntArray]]:
    for s in np.unique(batch.structure[problems]).tolist():
        yield batch.structures[s].compiled, problems[batch.structure[problems] == s]

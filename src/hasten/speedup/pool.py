"""A pool of past answers: labellings to start from, for problems of the same structure.

Inputs of one shape often have few distinct answers. The cheapest valid one of those seen is, for a new problem, what
branching prunes with, where the solver starts, and a candidate beside what a search found. It is scored and checked
anew for each problem, so that no answer rests on it being right.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from hasten.errors import ProblemError
from hasten.model.batch import Batch, as_batch
from hasten.model.compiled import Compiled
from hasten.model.problem import Problem
from hasten.model.solution import Solutions
from hasten.proof.past import best_of_some
from hasten.support.arrays import IntArray
from hasten.support.checks import check_whole
from hasten.support.threads import Lock


class AnswerPool:
    """The distinct labellings that answered past problems, by structure; those used last are kept.

    max_answers
        How many to keep of each structure, at least 1. 64 by default. What is kept of a structure is let go with it.
    """

    def __init__(self, max_answers: int = 64) -> None:
        check_whole("max_answers", max_answers, least=1)
        self.max_answers = max_answers
        self._pools: WeakKeyDictionary[Compiled, IntArray] = WeakKeyDictionary()  # (m, variables), used last at the end
        self._lock = Lock()

    def __len__(self) -> int:
        return sum(len(pool) for pool in self._pools.values())

    def learn(self, answers: Solutions) -> None:
        """Keeps the labellings of valid answers."""
        if not isinstance(answers, Solutions):
            raise ProblemError(f"A pool keeps answers given as Solutions, such as Certifier()(batch); got {answers!r}.")
        batch = answers.batch
        with self._lock:
            for compiled, problems in _by_structure(batch, np.flatnonzero(answers.valid)):
                places = batch.variable_at[problems][:, None] + np.arange(len(compiled.graph.order))
                self._keep(compiled, answers.values[places])

    def best(self, problems: Problem | Batch) -> Solutions:
        """Returns the cheapest valid past labelling of each problem; none where there is no such labelling."""
        batch = as_batch(problems).resolved()
        which, labels = np.full(len(batch), -1, dtype=np.int64), np.full(batch.variable_at[-1], -1, dtype=np.int64)
        cost = np.full(len(batch), np.inf)
        with self._lock:
            for compiled, some in _by_structure(batch, np.arange(len(batch))):
                pool = self._pools.get(compiled)
                if pool is None:
                    continue
                best_of_some(batch.arrays, pool, some, which, labels, cost)
                used = np.unique(which[some][which[some] >= 0])
                if used.size:
                    self._keep(compiled, pool[used])
        return Solutions.scored(batch, labels, which >= 0)

    def _keep(self, compiled: Compiled, labels: IntArray) -> None:
        pool = self._pools.get(compiled)
        joined = labels if pool is None else np.concatenate([pool, labels])
        _, last = np.unique(joined[::-1], axis=0, return_index=True)
        order = np.sort(len(joined) - 1 - last)[-self.max_answers :]
        self._pools[compiled] = np.ascontiguousarray(joined[order])

    def __reduce__(self) -> tuple[type[AnswerPool], tuple[int]]:
        return type(self), (self.max_answers,)  # a copy, or one in another process, starts empty


def _by_structure(batch: Batch, problems: IntArray) -> Any:
    for s in np.unique(batch.structure[problems]).tolist():
        yield batch.structures[s].compiled, problems[batch.structure[problems] == s]

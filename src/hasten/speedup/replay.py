"""The last answers of the black box, kept so that learned mode can learn from them again."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from hasten.learning.targets import Answers, read_answers
from hasten.model.batch import Batch, distinct_structures
from hasten.model.problem import Problem
from hasten.model.structure import Structure
from hasten.support.arrays import FloatArray, IntArray

MOST = 5000  # answers that are kept
START = 48  # answers before the first choice
FEWEST_NEW = 32  # answers before the next one; or half of what there was, if that is more
AFRESH = 64  # answers, since trust ended, that are enough to learn from alone


class Example(NamedTuple):
    """A problem and the black box's answer."""

    structure: Structure
    cost: FloatArray
    table: FloatArray | None  # where the problem brings tables of its own
    labels: IntArray


class Replay:
    """The last examples, oldest first, and how many of them are new."""

    def __init__(self) -> None:
        self.kept: deque[Example] = deque(maxlen=MOST)
        self.n_before = 0  # answers that were learned from when the choice was last made
        self.n_new = 0  # since then
        self.n_since: int | None = None  # since trust ended; None while there is nothing to be tried about that

    def add(self, batch: Batch, answers: Answers) -> int:
        """Keeps the usable answers; returns their number."""
        labels, usable = read_answers(batch, answers)
        for p in usable.tolist():
            structure = batch.structures[batch.structure[p]]
            at = int(batch.table_at[p])
            own = batch.table[at : at + len(structure.graph.table)].copy() if structure._slots else None
            cost = batch.cost[batch.cost_at[p] : batch.cost_at[p + 1]].copy()
            mine = labels[batch.variable_at[p] : batch.variable_at[p + 1]].copy()
            self.kept.append(Example(structure, cost, own, mine))
        self.n_new += len(usable)
        if self.n_since is not None:
            self.n_since += len(usable)
        return len(usable)

    @property
    def due(self) -> bool:
        """Whether there are enough new ones to choose anew."""
        if self.n_since is not None and self.n_since >= AFRESH:
            return True
        return self.n_new >= (max(FEWEST_NEW, self.n_before // 2) if self.n_before else START)

    def taken(self, n: int | None = None) -> tuple[Batch, IntArray]:
        """Returns all examples, or the last `n`, as a batch with flat answers."""
        examples = list(self.kept) if n is None else list(self.kept)[-n:]
        return gathered(examples), np.concatenate([np.zeros(0, dtype=np.int64), *(each.labels for each in examples)])

    def learned(self, n_answers: int) -> None:
        """Begins to count new ones anew, after a choice was made from some answers."""
        self.n_before, self.n_new = n_answers, 0

    def forget(self, n: int) -> None:
        """Forgets all but the last `n`."""
        while len(self.kept) > n:
            self.kept.popleft()


def gathered(examples: list[Example]) -> Batch:
    """Returns the problems of some examples as a batch."""
    if any(each.table is not None for each in examples):
        return Batch.of([_problem(each) for each in examples])
    structures, structure = distinct_structures(each.structure for each in examples)
    return Batch.build(structures, structure, np.concatenate([np.zeros(0), *(each.cost for each in examples)]))


def _problem(example: Example) -> Problem:
    table = example.structure.graph.table if example.table is None else example.table
    return Problem(example.structure, example.cost, None, table, 0)

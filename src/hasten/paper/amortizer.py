"""Amortized inference: past answers that are proved to be a new problem's, by theorems alone. A row of the experiment.

A problem of the same structure, with the same tables, whose costs have moved only in favour of a past answer, has that
answer too (Srikumar, Kundu and Roth 2012, Theorem 1). So has one whose costs have moved against it by less than its
*margin*, the least that any other labelling costs more (Kundu, Srikumar and Roth 2013). `hasten.proof.past` has the
inequality that covers both.

An answer is proved by the same test as any other: its cost meets a lower bound, whatever rounding may have done.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hasten.kernels.tolerance import EPS
from hasten.model.batch import Batch
from hasten.model.compiled import Compiled
from hasten.model.solution import Solutions, Source, Status, numbered
from hasten.proof.certifier import Certifier
from hasten.proof.past import Answered, recall_some
from hasten.search.beam import Searcher
from hasten.speedup.on_demand import size_of_costs
from hasten.support.arrays import FloatArray, IntArray

MOST = 1e290  # a margin: where every other labelling is forbidden, it is finite all the same
CHUNK = 1024  # problems whose margins are computed together


@dataclass(eq=False)
class Amortizer(Searcher):
    """Answers problems by past answers, where a theorem proves that they are optimal; leaves the others open.

    margins
        Whether to compute the margin of each answer that is learned: as many proofs as it has variables.
    max_problems
        How many past problems to keep of each structure and set of tables: the last ones. 1,024 by default.
    """

    margins: bool = False
    max_problems: int = 1024
    _past: dict[tuple[Compiled, bytes], Answered] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return sum(len(past.margin) for past in self._past.values())

    def learn(self, answers: Solutions) -> None:
        """Remembers proved answers; forgets all that was learned before."""
        batch = answers.batch.resolved()
        usable = np.flatnonzero(answers.valid & answers.proved & np.isfinite(answers.cost))
        groups = [(key, problems[-self.max_problems :]) for key, problems in _groups(batch, usable)]
        kept = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *(problems for _, problems in groups)]))
        margin = self._margins(batch, answers, kept)
        self._past = {}
        for key, problems in groups:
            first = key[0].graph.first
            cost = _rows(batch.cost, batch.cost_at[problems], int(first[-1]))
            labels = _rows(answers.values, batch.variable_at[problems], len(first) - 1)
            self._past[key] = Answered(cost, labels, margin[problems], size_of_costs(cost, first))

    def _margins(self, batch: Batch, answers: Solutions, usable: IntArray) -> FloatArray:
        """Returns how much more than its answer every other labelling of a problem costs, at least."""
        margin = np.full(len(batch), -np.inf)
        margin[usable] = np.minimum(0.0, answers.bound[usable] - answers.cost[usable])
        if not self.margins:
            return margin
        for start in range(0, usable.size, CHUNK):
            some = usable[start : start + CHUNK]
            copies = np.repeat(some, batch.n_variables[some])  # one for each variable, without its label in the answer:
            others = batch.select(copies)  # every other labelling is valid for one of them
            at = batch.places(some)
            starts, _ = batch.label_ranges(copies, at - batch.variable_at[copies])
            others.cost[others.cost_at[:-1] + starts + answers.values[at]] = np.inf
            second = np.full(len(batch), MOST)
            np.minimum.at(second, copies, Certifier()(others).bound)
            margin[some] = np.maximum(margin[some], second[some] - answers.cost[some] - _slips(batch, some))
        return margin

    def _search(self, batch: Batch, n_jobs: int) -> Solutions:
        batch = batch.resolved()
        n = len(batch)
        labels, which = np.full(batch.variable_at[-1], -1, dtype=np.int64), np.full(n, -1, dtype=np.int64)
        values = np.stack([np.full(n, np.inf), np.full(n, -np.inf)])  # cost and bound
        for key, problems in _groups(batch, np.arange(n)):
            if (past := self._past.get(key)) is not None:
                recall_some(batch.arrays, past, problems, which, labels, values)
        done = which >= 0
        status = np.where(done, numbered(Status.PROVED)[0], numbered(Status.OPEN)[0])
        source = np.full(n, numbered(Source.SEARCH)[0])
        return Solutions(batch, labels, values[0], values[1], done, status, source, batch.n_variables.copy())


def _groups(batch: Batch, problems: IntArray) -> list[tuple[tuple[Compiled, bytes], IntArray]]:
    """Returns some problems by structure and tables."""
    names: dict[tuple[int, int], tuple[Compiled, bytes]] = {}
    groups: dict[tuple[Compiled, bytes], list[int]] = {}
    for p in problems.tolist():
        s, at = int(batch.structure[p]), int(batch.table_at[p])
        if (s, at) not in names:
            compiled = batch.structures[s].compiled
            names[s, at] = compiled, batch.table[at : at + len(compiled.graph.table)].tobytes()
        groups.setdefault(names[s, at], []).append(p)
    return [(key, np.array(members)) for key, members in groups.items()]


def _rows(flat: Any, starts: IntArray, width: int) -> Any:
    """Returns parts of a flat array, as many from each start on, as the rows of a matrix."""
    return flat[starts[:, None] + np.arange(width)]


def _slips(batch: Batch, problems: IntArray) -> FloatArray:
    """Returns a bound on the rounding in a difference of two costs, for each of some problems."""
    slips = np.empty(problems.size)
    for n, p in enumerate(problems.tolist()):
        structure = batch.structures[batch.structure[p]]
        cost = batch.cost[batch.cost_at[p] : batch.cost_at[p + 1]]
        table = batch.table[batch.table_at[p] : batch.table_at[p] + len(structure.graph.table)]
        largest = np.abs(table[np.isfinite(table)]).max(initial=0.0) * len(structure.factors)
        size = float(size_of_costs(cost[None], structure.graph.first)[0]) + float(largest)
        slips[n] = 8 * (4 + structure.n_variables + len(structure.factors)) * EPS * size
    return slips

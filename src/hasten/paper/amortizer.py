"""Amortized inference: past answers that are proved to be a new problem's, by theorems alone. A row of the experiment.

A problem of the same structure, with the same tables, whose costs have moved only in favour of a past answer, has that
answer too (Srikumar, Kundu and Roth 2012, Theorem 1). So has one whose costs have moved against it by less than its
*margin*, the least that any other labelling costs more (Kundu, Srikumar and Roth 2013). Several past problems with one
answer span a *cone*: an inequality that holds for each of them holds for their sums (Srikumar et al., Theorems 2 and
3); finding the sum is a small linear program. `hasten.proof.past` has the inequality that covers all of this.

An answer is proved by the same test as any other: its cost meets a lower bound, whatever rounding may have done.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hasten.kernels.tolerance import EPS
from hasten.model.batch import Batch
from hasten.model.compiled import Compiled
from hasten.model.solution import Solutions, Source, Status, numbered
from hasten.proof.certifier import Certifier
from hasten.proof.past import Answered, best_of_some, recall_some
from hasten.search.searcher import Searcher
from hasten.solvers import load
from hasten.speedup.on_demand import size_of_costs
from hasten.support.arrays import FloatArray, IntArray

MOST_IN_CONE = 32  # past problems with one answer that a linear program combines
MOST = 1e290  # a margin: where every other labelling is forbidden, it is finite all the same
CHUNK = 1024  # problems whose margins are computed together


@dataclass(eq=False)
class Amortizer(Searcher):
    """Answers problems by past answers, where a theorem proves that they are optimal; leaves the others open.

    margins
        Whether to compute the margin of each answer that is learned: as many proofs as it has variables.
    cones
        Whether to combine past problems with the same answer, by a linear program (HiGHS, about a millisecond).
    max_problems
        How many past problems to keep of each structure and set of tables: the last ones. 1,024 by default.
    """

    margins: bool = False
    cones: bool = False
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
            past = self._past.get(key)
            if past is None:
                continue
            recall_some(batch.arrays, past, problems, which, labels, values)
            for p in problems[which[problems] < 0].tolist() if self.cones else ():
                summed = self._cone(batch, past, key[0], p)
                if summed is not None:
                    recall_some(batch.arrays, summed, np.array([p]), which, labels, values)
        done = which >= 0
        status = np.where(done, numbered(Status.PROVED)[0], numbered(Status.OPEN)[0])
        source = np.full(n, numbered(Source.SEARCH)[0])
        return Solutions(batch, labels, values[0], values[1], done, status, source, batch.n_variables.copy())

    def _cone(self, batch: Batch, past: Answered, compiled: Compiled, p: int) -> Answered | None:
        """Returns the sum of past problems with the cheapest past answer that likeliest proves it for a problem."""
        cheapest = np.full(len(batch), -1, dtype=np.int64)
        spare = np.empty(batch.variable_at[-1], dtype=np.int64)
        best_of_some(batch.arrays, past.labels, np.array([p]), cheapest, spare, np.empty(len(batch)))
        if cheapest[p] < 0:
            return None
        same = np.flatnonzero((past.labels == past.labels[cheapest[p]]).all(axis=1))[-MOST_IN_CONE:]
        cost = batch.cost[batch.cost_at[p] : batch.cost_at[p + 1]]
        same = same[~(np.isinf(past.cost[same]) & np.isfinite(cost)).any(axis=1)]  # a label that was forbidden then
        shares = combine(past, same, cost, compiled.graph.first, compiled.graph.soft_at.size > 0) if same.size else None
        if shares is None:
            return None
        with np.errstate(invalid="ignore"):  # 0 times inf: of labels that are forbidden now as well
            mixed = np.nan_to_num(shares @ past.cost[same], nan=np.inf, posinf=np.inf)
        size, margin = (same.size + 2) * float(shares @ past.size[same]), float(shares @ past.margin[same])
        return Answered(mixed[None], past.labels[same[:1]], np.array([margin]), np.array([size]))


def combine(past: Answered, same: IntArray, cost: FloatArray, first: IntArray, soft: bool) -> FloatArray | None:
    """Returns how much of each of some past problems, with one answer, to add up so that it is likeliest a proof.

    A linear program: the least excess, less the margins. Where tables cost something (`soft`) the shares must add up to
    1, for the tables are in every past problem. Any shares are sound: the bound that they prove is computed anew.
    """
    load("highs")
    import highspy

    n, n_variables, chosen = same.size, len(first) - 1, first[:-1] + past.labels[same[0]]
    variable = np.repeat(np.arange(n_variables), np.diff(first))
    rows = np.flatnonzero(np.isfinite(cost) & ~np.isin(np.arange(cost.size), chosen))
    now = cost[rows] - cost[chosen][variable[rows]]
    then = past.cost[same][:, rows] - past.cost[same][:, chosen][:, variable[rows]]
    scale = max(float(np.abs(now).max(initial=0.0)), 1e-300)
    sizes = np.full(n, scale) if soft else np.maximum(np.abs(then).max(axis=1, initial=0.0), 1e-300)
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    most = [1.0 if soft else 1e3] * n + [math.inf] * n_variables
    columns = zip(np.append(-np.minimum(past.margin[same], MOST) / sizes, np.ones(n_variables)), most, strict=True)
    for weight, upper in columns:
        highs.addCol(float(weight), 0.0, upper, 0, [], [])
    shares, weights = np.arange(n, dtype=np.int32), -(then / sizes[:, None]).T
    for v, low, weight in zip(variable[rows].tolist(), (-now / scale).tolist(), weights, strict=True):
        highs.addRow(low, math.inf, n + 1, np.append(shares, np.int32(n + v)), np.append(weight, 1.0))
    if soft:
        highs.addRow(1.0, 1.0, n, shares, np.ones(n))
    highs.run()
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    found = np.maximum(0.0, np.array(highs.getSolution().col_value[:n]))
    mixed: FloatArray = found / max(float(found.sum()), 1e-9) if soft else found * (scale / sizes)
    return mixed if np.isfinite(mixed).all() else None


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

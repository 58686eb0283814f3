"""Min-marginals of many problems at once: how much more the best labelling with each label costs than the best of all.

Where a structure is thin enough to be eliminated, all labels of eight problems come out of one pass forwards and one
back. Elsewhere each label is proved on its own, on a problem in which its variable has no other, all as one batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hasten.errors import TooWide
from hasten.model.batch import Batch, as_batch
from hasten.model.compiled import Compiled
from hasten.model.problem import Problem
from hasten.proof.certifier import Certifier
from hasten.proof.ranking import confidence, second_least
from hasten.sums.distribution import Problems, labels_alone, plans_for, run
from hasten.sums.plan import MAX_JOIN, plan_sums
from hasten.support.arrays import BoolArray, FloatArray, IntArray, ints, offsets, ranges, sizes_of
from hasten.support.checks import check_whole


@dataclass(frozen=True, eq=False)
class Margins:
    """The least costs of problems, and how much more each label costs at least; inf where no labelling has it.

    Labels are flat, as `Batch.label_costs` has them, and so are variables. Of a problem without a valid labelling
    all is inf. Where `proved` is false the certifier ran out of effort: the cost is that of the best labelling found.
    """

    batch: Batch = field(repr=False)
    cost: FloatArray  # (n,) of the best labelling
    excess: FloatArray  # of each label
    proved: BoolArray  # of each label

    @property
    def first(self) -> IntArray:
        """Where the labels of each variable start, all problems in a row."""
        sizes = [sizes_of(each.graph.first[: each.n_variables + 1]) for each in self.batch.structures]
        return offsets(np.concatenate([ints(()), *(sizes[s] for s in self.batch.structure.tolist())]))

    @property
    def margin(self) -> FloatArray:
        """For each variable, how much more its second best label costs; inf where there is none."""
        return second_least(self.excess, self.first)

    def confidence(self, temperature: float = 1.0) -> FloatArray:
        """For each variable, the share of its best label, each weighing exp(-excess / temperature).

        It is 1 where no other label is possible, and nan without a valid labelling.
        """
        return confidence(self.excess, self.first, temperature)


def min_marginals(problems: Problems, *, max_join: int = MAX_JOIN, n_jobs: int = 1) -> Margins:
    """Returns the min-marginals of problems, in one call; `max_join` is as for `hasten.sums.marginals`."""
    check_whole("max_join", max_join, least=1)
    batch = as_batch(problems).resolved()
    wide = ints(s for s in np.unique(batch.structure).tolist() if not _is_thin(batch.structures[s].compiled, max_join))
    by_label = np.isin(batch.structure, wide)
    label_at = offsets(ints(each.n_labels for each in batch.structures)[batch.structure])
    cost, excess, proved = np.zeros(len(batch)), np.zeros(label_at[-1]), np.ones(label_at[-1], dtype=bool)
    (thin,) = np.nonzero(~by_label)
    if len(thin):
        mine = batch.select(thin) if by_label.any() else batch
        found = run(mine, plans_for(mine, max_join), (0, 1, 0), n_jobs=n_jobs)
        cost[thin] = found.value
        excess[ranges(label_at[thin], sizes_of(label_at)[thin])] = labels_alone(mine, found.share)
    for p in np.flatnonzero(by_label).tolist():
        some = slice(label_at[p], label_at[p + 1])
        cost[p], excess[some], proved[some] = _label_by_label(batch[p])
    return Margins(batch, cost, excess, proved)


def _is_thin(compiled: Compiled, max_join: int) -> bool:
    """Whether all variables of a structure can be eliminated."""
    try:
        plan_sums(compiled, max_join)
    except TooWide:
        return False
    return True


def _label_by_label(problem: Problem) -> tuple[float, FloatArray, BoolArray]:
    """Returns the least cost of a problem, the excess of each label, and whether it is proved."""
    found = Certifier().min_marginals(problem)
    if not found.best.valid:
        return np.inf, np.full(len(found.cost), np.inf), found.proved
    return found.best.cost, found.excess, found.proved

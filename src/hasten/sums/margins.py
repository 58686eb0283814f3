"""Min-marginals of many problems at once: how much more the best labelling with each label costs than the best of all.

Where a structure is thin enough to be eliminated, all labels of eight problems come out of one pass forwards and one
back. Elsewhere each label is proved on its own, on a problem in which its variable has no other, all as one batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hasten.errors import ProblemError, TooWide
from hasten.model.batch import Batch, as_batch
from hasten.proof.certifier import Certifier
from hasten.sums.marginals import Problems, labels_alone, run
from hasten.sums.plan import MAX_JOIN, plan_sums
from hasten.support.arrays import BoolArray, FloatArray, IntArray, ints, offsets, sizes_of
from hasten.support.checks import check_number, check_whole


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
        first = self.first
        order = np.lexsort((self.excess, np.arange(len(first) - 1).repeat(sizes_of(first))))
        several = sizes_of(first) > 1
        found = np.full(len(first) - 1, np.inf)
        found[several] = self.excess[order[first[:-1][several] + 1]]
        return found

    def confidence(self, temperature: float = 1.0) -> FloatArray:
        """For each variable, the share of its best label, each weighing exp(-excess / temperature).

        It is 1 where no other label is possible, and nan without a valid labelling.
        """
        check_number("temperature", temperature)
        if not 0.0 < temperature < np.inf:
            raise ProblemError(f"temperature must be above 0, and finite; got {temperature}.")
        first = self.first
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            weights = np.exp(-self.excess / temperature)
            total = np.add.reduceat(weights, first[:-1]) if len(first) > 1 else np.zeros(0)
            return np.where(total > 0.0, 1.0 / total, np.nan)


def min_marginals(problems: Problems, *, max_join: int = MAX_JOIN, n_jobs: int = 1) -> Margins:
    """Returns the min-marginals of problems, in one call; `max_join` is as for `hasten.sums.marginals`."""
    check_whole("max_join", max_join, least=1)
    batch = as_batch(problems).resolved()
    plans, thin = {}, np.zeros(len(batch.structures), dtype=bool)
    for s, structure in enumerate(batch.structures):
        try:
            plans[s] = plan_sums(structure.compiled, max_join)
            thin[s] = True
        except TooWide:
            pass
    if thin.all():
        found = run(batch, tuple(plans.values()), (0, 1, 0), batch.table_at, 0, n_jobs)
        excess = labels_alone(batch, found.share)
        return Margins(batch, found.value, excess, np.ones(len(excess), dtype=bool))
    label_at = offsets(ints(each.n_labels for each in batch.structures)[batch.structure])
    cost, excess, proved = np.zeros(len(batch)), np.zeros(label_at[-1]), np.ones(label_at[-1], dtype=bool)
    for s in range(len(batch.structures)):
        (numbers,) = np.nonzero(batch.structure == s)
        if not len(numbers):
            continue
        places = label_at[numbers][:, None] + np.arange(batch.structures[s].n_labels)
        some = batch.select(numbers)
        if thin[s]:
            mine = min_marginals(Batch(some.structures[s : s + 1], np.zeros_like(numbers), *_rest(some)), n_jobs=n_jobs)
            cost[numbers], excess[places] = mine.cost, mine.excess.reshape(places.shape)
        else:
            cost[numbers], excess[places], proved[places] = _label_by_label(some)
    return Margins(batch, cost, excess, proved)


def _rest(batch: Batch) -> tuple[FloatArray, IntArray, FloatArray, IntArray]:
    return batch.cost, batch.cost_at, batch.table, batch.table_at


def _label_by_label(batch: Batch) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Returns the least cost of problems of one structure, the excess of each label, and whether it is proved."""
    found = [Certifier().min_marginals(problem) for problem in [batch[p] for p in range(len(batch))]]
    least = np.array([each.best.cost if each.best.valid else np.inf for each in found])
    excess = [each.excess if each.best.valid else np.full_like(each.cost, np.inf) for each in found]
    return least, np.array(excess), np.array([each.proved for each in found])

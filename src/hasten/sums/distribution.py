"""Marginals: how likely each label is, if a labelling's probability is proportional to exp(-cost).

    p(y) = exp(-cost(y)) / Z,   log Z = log of the sum of exp(-cost(y)) over all valid labellings y

A marginal is the sum of p over the labellings with a label, and the derivative of log Z by minus the label's cost.
Min-marginals are the same with "least cost" in place of "sum" (`hasten.sums.margins`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from hasten.errors import NoAnswerError, ProblemError
from hasten.model.batch import Batch, as_batch
from hasten.model.problem import Problem
from hasten.sums.drivers import Found, sum_some
from hasten.sums.plan import MAX_JOIN, SumPlan, plan_sums
from hasten.support.arrays import BoolArray, FloatArray, IntArray, ints, offsets, ranges, sizes_of
from hasten.support.checks import check_whole
from hasten.support.clock import in_parallel

MOST_DRAWN = 2**24  # random numbers at a time
Problems = Problem | Batch | Iterable[Problem]
Plans = list[SumPlan | None]  # of each structure of a batch; None where no problem has it


@dataclass(frozen=True, eq=False)
class Marginals:
    """The log-partition and the marginals of problems. A problem without a valid labelling has -inf, and zeros.

    Labels are flat, as `Batch.label_costs` has them; table entries as `Batch.table`.
    """

    batch: Batch = field(repr=False)
    log_partition: FloatArray  # (n,)
    entropy: FloatArray  # (n,) in nats; nan without a valid labelling
    label: FloatArray  # the probability of each label
    table: FloatArray  # how often each table entry is expected, in all factors and problems that share it
    _factor: FloatArray = field(repr=False)  # by problem and factor; empty if not asked for
    _factor_at: IntArray | None = field(repr=False)
    _plans: Plans = field(repr=False)

    def __len__(self) -> int:
        return len(self.batch)

    @property
    def feasible(self) -> BoolArray:
        """(n,) whether a problem has a valid labelling."""
        return self.log_partition > -np.inf

    def of(self, p: int) -> list[FloatArray]:
        """Returns the marginals of problem `p`, an array for each variable."""
        structure = self.batch[p].structure
        first = structure.graph.first[: structure.n_variables + 1]
        mine = self.label[_label_at(self.batch)[p] :]
        return [mine[a:b] for a, b in zip(first[:-1].tolist(), first[1:].tolist(), strict=True)]

    def factor(self, p: int, f: int) -> FloatArray:
        """Returns the marginals of factor `f` of problem `p`: an axis for each variable of its scope."""
        plan = self._plans[self.batch.structure[p]]
        if self._factor_at is None or plan is None:
            raise ProblemError("Marginals of factors were not asked for. Give marginals(..., factors=True).")
        (number,) = np.flatnonzero(plan.factors == f)
        kind = self.batch[p].structure.factors[f].kind
        at = int(self._factor_at[p] + plan.factor_first[number])
        return self._factor[at : at + kind.size].reshape(kind.shape)


def marginals(problems: Problems, *, factors: bool = False, max_join: int = MAX_JOIN, n_jobs: int = 1) -> Marginals:
    """Returns the log-partition, the marginals and the entropy of problems.

    factors
        Whether marginals of each factor are wanted too: `Marginals.factor`. They take memory.
    max_join
        How many terms a step of the elimination may have. A structure that needs more is refused, by `TooWide`.
    n_jobs
        How many threads share the problems.
    """
    batch = as_batch(problems).resolved()
    plans = plans_for(batch, max_join, factors)
    factor_at = None
    if factors:
        factor_at = offsets(ints(len(plan.source) if plan else 0 for plan in plans)[batch.structure])
    found = run(batch, plans, (1, 1, 1), gain_at=factor_at, n_jobs=n_jobs)
    feasible = found.value < np.inf
    table = found.gain if factor_at is None else _by_table(batch, plans, found.gain, factor_at)
    return Marginals(
        batch,
        -found.value,
        np.where(feasible, np.maximum(found.entropy, 0.0), np.nan),
        labels_alone(batch, found.share),
        table,
        found.gain,
        factor_at,
        plans,
    )


def log_partition(problems: Problems, *, max_join: int = MAX_JOIN, n_jobs: int = 1) -> FloatArray:
    """Returns the log-partition of problems, as `marginals` does, alone."""
    batch = as_batch(problems).resolved()
    return -run(batch, plans_for(batch, max_join), (1, 0, 0), n_jobs=n_jobs).value


def sample(problems: Problems, n: int = 1, *, seed: int = 0, max_join: int = MAX_JOIN) -> IntArray:
    """Draws `n` labellings of each problem, exactly by their probabilities: (n, labels), flat over the problems.

    The same seed gives the same labellings. A problem without a valid labelling is an error.
    """
    check_whole("n", n)
    check_whole("seed", seed)
    batch = as_batch(problems).resolved()
    plans, rng = plans_for(batch, max_join), np.random.default_rng(seed)
    n_steps = max((len(plan.steps) for plan in plans if plan), default=0)
    value, labels = np.zeros(len(batch)), np.zeros((n, int(batch.variable_at[-1])), dtype=np.int64)
    addresses, at_once, none = _addresses(batch, plans), max(1, MOST_DRAWN // max(1, n * n_steps)), np.zeros(0)
    for begin in range(0, len(batch), at_once):
        some = np.arange(begin, min(begin + at_once, len(batch)))
        found = Found(value, none, none, none, some, none, labels, rng.random((len(some), n, n_steps)))
        sum_some((*batch.arrays,), some, addresses[some], np.array([1, 0, 0]), found)
    _check(value)
    for p in np.flatnonzero(value == np.inf)[:1].tolist():
        raise NoAnswerError(f"Problem {p} has no valid labelling, so that none can be drawn.")
    return labels[:, ranges(batch.variable_at[:-1], sizes_of(batch.labels_at))] if batch.soft else labels


def plans_for(batch: Batch, max_join: int = MAX_JOIN, factors: bool = False) -> Plans:
    """Returns the plan of each structure that some problem has; one that is too wide is refused."""
    check_whole("max_join", max_join, least=1)
    used = set(np.unique(batch.structure).tolist())
    each = enumerate(batch.structures)
    return [plan_sums(structure.compiled, max_join, factors) if s in used else None for s, structure in each]


def run(
    batch: Batch,
    plans: Plans,
    asked: tuple[int, int, int],
    *,
    gain_at: IntArray | None = None,
    weight: FloatArray | None = None,
    n_jobs: int = 1,
) -> Found:
    """Runs a task over a batch; `gain_at` says where the marginals of each problem's factors go, by default its tables.

    `weight` is that of each problem in what is shared out.
    """
    size, addresses, task = len(batch), _addresses(batch, plans), np.array(asked)
    never = np.array([plan is not None and not plan.feasible for plan in plans], dtype=bool)[batch.structure]
    n = (len(batch.table) if gain_at is None else int(gain_at[-1])) * asked[2]
    found = Found(
        np.zeros(size),
        np.zeros(size),
        np.zeros(batch.cost.size * asked[1]),
        np.zeros(n),
        np.ascontiguousarray(batch.table_at if gain_at is None else gain_at),
        np.where(never, 0.0, 1.0 if weight is None else weight),
        np.zeros((0, 0), dtype=np.int64),
        np.zeros((0, 0, 0)),
    )
    parts: dict[int, FloatArray] = {}

    def run_some(begin: int, end: int) -> None:
        some, mine = batch.order[begin:end], found
        if n_jobs > 1 and asked[2]:  # threads add up tables of their own
            mine = found._replace(gain=parts.setdefault(begin, np.zeros(n)))
        sum_some((*batch.arrays,), some, addresses[some], task, mine)

    in_parallel(run_some, size, n_jobs)
    for _, gain in sorted(parts.items()):
        found.gain[:] += gain
    _check(found.value)
    found.value[never] = np.inf
    if asked[1]:
        share = 0.0 if asked[0] else np.inf
        found.share[ranges(batch.cost_at[:-1][never], sizes_of(batch.cost_at)[never])] = share
    return found


def labels_alone(batch: Batch, share: FloatArray) -> FloatArray:
    """Returns shares of labels as users see them: without those of the indicators of soft rules."""
    return share[ranges(batch.cost_at[:-1], sizes_of(_label_at(batch)))] if batch.soft else share


def _label_at(batch: Batch) -> IntArray:
    """Returns where the labels of each problem start, as users see them."""
    return offsets(ints(each.n_labels for each in batch.structures)[batch.structure])


def _addresses(batch: Batch, plans: Plans) -> IntArray:
    table = np.array([plan.addresses if plan else (0, 0) for plan in plans], dtype=np.int64).reshape(-1, 2)
    found: IntArray = table[batch.structure]
    return found


def _check(value: FloatArray) -> None:
    """Refuses costs whose sums overflow."""
    for p in np.flatnonzero(np.isnan(value))[:1].tolist():
        raise ProblemError(
            f"Problem {p} has costs or table entries above 1e301 in magnitude, whose sums may overflow. "
            "Scale them down, or forbid labels with inf."
        )


def _by_table(batch: Batch, plans: Plans, gain: FloatArray, factor_at: IntArray) -> FloatArray:
    """Adds the marginals of factors up over those that share a table."""
    found = np.zeros(len(batch.table))
    for p, s in enumerate(batch.structure.tolist()):
        plan = plans[s]
        if plan is not None:
            np.add.at(found, batch.table_at[p] + plan.source, gain[factor_at[p] : factor_at[p + 1]])
    return found

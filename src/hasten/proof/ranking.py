"""The best labellings in order, and the cost of the best labelling with each label.

`hasten.proof.k_best` ranks. A *min-marginal* is the least that a labelling with a given label costs; here each
is proved by the certifier, on a problem in which that variable has no other label, all of them together as a batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import overload

import numpy as np

from hasten.errors import NoAnswerError, ProblemError
from hasten.model.batch import ONLY, Batch, arrays_of
from hasten.model.problem import Problem
from hasten.model.solution import Solution, Solutions, Source, Status
from hasten.proof import k_best
from hasten.proof.branch import MAX_NODES, SPEED
from hasten.proof.elimination.plan import reduce
from hasten.proof.plan import ProofPlan
from hasten.support.arrays import BoolArray, FloatArray, IntArray, sizes_of
from hasten.support.checks import check_number, check_whole
from hasten.support.clock import Clock, now

RANKED_NODES, RANKED_SWEEPS = 1_000_000, 32  # for the best labellings
MOST_RANKED = 50_000_000  # labels that are held
MARGINALS = 4_000_000  # costs of one batch
MOMENTS = 0.05  # of the time that there is, which a batch should take


@dataclass(frozen=True, eq=False)
class Ranking(Sequence[Solution]):
    """The best labellings of a problem, the cheapest first; of equally cheap ones any may come first, or be left out.

    `proved` says that no other labelling costs less than the last, and that they are in order; with fewer than were
    asked for, that there are no others. The first is then an optimum.
    """

    problem: Problem = field(repr=False)
    solutions: tuple[Solution, ...]
    proved: bool
    bound: float  # no valid labelling costs less
    n_nodes: int  # that the search took

    def __len__(self) -> int:
        return len(self.solutions)

    @overload
    def __getitem__(self, n: int) -> Solution: ...
    @overload
    def __getitem__(self, n: slice) -> tuple[Solution, ...]: ...
    def __getitem__(self, n: int | slice) -> Solution | tuple[Solution, ...]:
        return self.solutions[n]

    @property
    def costs(self) -> FloatArray:
        """The costs of the answers, the least first."""
        return np.array([each.cost for each in self.solutions])

    @property
    def labels(self) -> IntArray:
        """The labels of the answers, a row for each."""
        rows = [each.labels for each in self.solutions]
        return np.array(rows, dtype=np.int64).reshape(len(rows), self.problem.n_variables)


@dataclass(frozen=True, eq=False)
class MinMarginals:
    """The cost of the best labelling with each label, flat: variable `v` owns `cost[first[v]:first[v + 1]]`.

    A label that is in no valid labelling costs inf. Where `proved` is false the certifier ran out of effort: the cost
    is that of the best labelling it found, inf without one.
    """

    problem: Problem = field(repr=False)
    best: Solution = field(repr=False)
    cost: FloatArray  # (n_labels,)
    proved: BoolArray  # (n_labels,)

    @property
    def excess(self) -> FloatArray:
        """How much more each label costs than the best answer; 0 for the answer's own labels."""
        if self.best.values is None:
            raise NoAnswerError(f"{self.best.status} Min-marginals compare labels with an answer.")
        return np.maximum(self.cost - self.best.cost, 0.0)

    @property
    def margin(self) -> FloatArray:
        """For each variable, how much the answer's cost rises at least if the variable has any other label."""
        return second_least(self.excess, self.problem.graph.first[: self.problem.n_variables + 1])

    def confidence(self, temperature: float = 1.0) -> FloatArray:
        """For each variable, the share of its answer among its labels, each weighing exp(-excess / temperature).

        It is 1 where no other label is possible. The temperature, above 0, is in the unit of the costs: choose one on
        held-out data that makes these shares agree with how often answers are right.
        """
        return confidence(self.excess, self.problem.graph.first[: self.problem.n_variables + 1], temperature)

    def of(self, variable: int) -> dict[str, float]:
        """Returns the cost of the best labelling with each label of a variable, by the label's name."""
        first = self.problem.graph.first
        kind = self.problem.structure.kinds[variable]
        return dict(zip(kind.labels, self.cost[first[variable] : first[variable + 1]].tolist(), strict=True))


def second_least(excess: FloatArray, first: IntArray) -> FloatArray:
    """Returns the second least of each variable's numbers, inf where there is one; `first` says where each starts."""
    order = np.lexsort((excess, np.arange(len(first) - 1).repeat(sizes_of(first))))
    several, found = sizes_of(first) > 1, np.full(len(first) - 1, np.inf)
    found[several] = excess[order[first[:-1][several] + 1]]
    return found


def confidence(excess: FloatArray, first: IntArray, temperature: float) -> FloatArray:
    """Returns the share of each variable's best label, each weighing exp(-excess / temperature); nan without one."""
    if isinstance(temperature, int | float | np.number) and not 0.0 < temperature < np.inf:
        raise ProblemError(f"temperature must be above 0, and finite; got {temperature}.")
    check_number("temperature", temperature)
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        weights = np.exp(-excess / temperature)
        total = np.add.reduceat(weights, first[:-1]) if len(first) > 1 else np.zeros(0)
        return np.where(total > 0.0, 1.0 / total, np.nan)


def best_labellings(problem: Problem, k: int, plan: ProofPlan, clock: Clock) -> Ranking:
    """Returns the `k` best labellings of a problem with the effort of a plan, all of them if there are fewer."""
    check_whole("k", k, least=1)
    n = min(int(k), problem.n_outputs)
    if n * max(1, problem.n_variables) > MOST_RANKED:
        raise ProblemError(
            f"{k:,} labellings of {problem.n_variables:,} variables are too many to hold: at most "
            f"{MOST_RANKED:,} labels in all. Ask for fewer."
        )
    one = problem.distinct  # each labelling once
    arrays, reduction = arrays_of(one), reduce(one.structure.compiled, plan.max_join)
    n_variables = len(one.graph.order)
    costs, slots = np.empty(n), np.empty(n, dtype=np.int64)
    labels = np.empty(n * n_variables, dtype=np.int64)
    values, facts = np.empty(2), np.empty(3, dtype=np.int64)
    found = k_best.Ranking(costs, slots, labels, values, facts)
    sweeps = min(RANKED_SWEEPS, plan.max_sweeps)
    max_nodes = RANKED_NODES if plan.max_nodes is None else max(plan.max_nodes, 1)
    for nodes in dict.fromkeys((min(MAX_NODES, max_nodes), max_nodes)):  # a short search first
        seconds = SPEED * (reduction.size * (sweeps + nodes) + reduction.n_sums)
        rank = k_best.rank_labellings
        clock.run(partial(rank, arrays, reduction.addresses, sweeps, nodes, ONLY, found, clock.stop_flag()), seconds)
        if facts[k_best.RANKED_ALL] or clock.stopped:
            break
    proved, bound = bool(facts[k_best.RANKED_ALL]), float(values[k_best.RANKED_BOUND])
    n_found = int(facts[k_best.N_FOUND])
    bound = float(costs[0]) if proved and n_found else bound
    rows = labels.reshape(n, n_variables)
    found_all = zip(slots[:n_found].tolist(), costs[:n_found].tolist(), strict=True)
    solutions = tuple(
        Solution(problem, status, Source.BOUND, rows[slot], cost, min(bound, cost), True, n_variables)
        for at, (slot, cost) in enumerate(found_all)
        for status in (Status.PROVED if proved and at == 0 else Status.FOUND,)  # only the first can be optimal
    )
    return Ranking(problem, solutions, proved, bound, int(facts[k_best.RANKED_NODES]))


def min_marginals(
    problem: Problem, best: Solution, certify: Callable[[Batch, float], Solutions], deadline: float
) -> MinMarginals:
    """Returns the cost of the best labelling with each label, given the best of all, proved as far as `certify` goes.

    `certify` is told how many seconds are left until the deadline (of `now`). Some steps take no notice of
    that, so that few problems at a time are certified if there is one.
    """
    first = problem.graph.first[: problem.n_variables + 1]
    cost = problem.cost[: first[-1]]
    least, proved = np.full(cost.size, np.inf), np.full(cost.size, best.proved)
    variable = np.repeat(np.arange(problem.n_variables), np.diff(first))
    asked = np.isfinite(cost)
    if best.values is not None:
        own = first[:-1] + best.labels
        least[own], asked[own] = best.cost, False
    elif best.proved:
        asked[:] = False
    (numbers,) = np.nonzero(asked)
    proved[numbers] = False
    most, began, begin = max(1, MARGINALS // max(1, cost.size)), now(), 0
    size, moment = (most, math.inf) if deadline == math.inf else (1, MOMENTS * (deadline - began))
    while begin < numbers.size and began < deadline:
        some = numbers[begin : begin + size]
        costs = np.where((variable == variable[some][:, None]) & (np.arange(cost.size) != some[:, None]), np.inf, cost)
        found = certify(problem.alike(costs), deadline - began)
        least[some], proved[some] = np.where(found.valid, found.cost, np.inf), found.proved
        before, began, begin = began, now(), begin + size
        size = max(1, min(most, int(size * min(2.0, moment / max(began - before, 1e-9)))))
    if best.values is not None:
        least = np.maximum(least, best.cost) if best.proved else least
    proved[~np.isfinite(cost)] = True
    return MinMarginals(problem, best, least, proved)

"""Proof: certifying an answer without a solver (the idea of the paper's §3.1, made exact).

Five steps, each only where the one before left something open: *look* whether the cheapest labels fit
(`hasten.kernels.certify`), *mend* the few constraints that they break (`hasten.kernels.mend`), *eliminate* variables
of low degree exactly (`hasten.eliminate`), *sweep* messages that raise a lower bound and decode labellings from them
(`hasten.kernels.dual`), *branch* (`hasten.kernels.branch`). A labelling that costs no more than the bound, within
`TOLERANCE`, *is* an optimum of the integer program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from hasten.batch import Batch, as_batch
from hasten.eliminate import MAX_JOIN, reductions
from hasten.errors import ProblemError
from hasten.graph import FloatArray, IntArray
from hasten.kernels import certify
from hasten.problem import Problem
from hasten.search import in_parallel
from hasten.solution import SOURCES, STATUSES, Solution, Solutions, Source, Status

NOTHING, NO_COUNTS = np.zeros(0), np.zeros(0, dtype=np.int64)
FIRST_SWEEPS = 2  # before the first dive; more where that runs out of nodes
NODE_SWEEPS = 2  # at each split
DIVE_NODES = 2000
MAX_NODES, ROW_NODES = 20_000, 500  # by default, without and with rows
LARGEST = 1e100  # of the starting messages: any are correct that do not overflow


@dataclass(frozen=True, slots=True)
class Certifier:
    """Proves what a search found, or finds and proves something better.

    `max_join` is the effort that eliminating one variable may take (0: eliminate nothing), `max_sweeps` how long
    the bound is raised, `max_nodes` how far to branch (0: not at all; None: far, but not where rules are left, which
    solvers are better at). `messages` are where the bound starts; any are correct, and those learned from past
    problems save sweeps (`learn_messages`). They speak of the factors as declared, so they need `max_join=0`.
    """

    max_join: int = MAX_JOIN
    max_sweeps: int = 100
    max_nodes: int | None = None
    messages: FloatArray | None = None

    def __post_init__(self) -> None:
        for name, least in (("max_join", 0), ("max_sweeps", 1), ("max_nodes", 0)):
            if getattr(self, name) is not None and getattr(self, name) < least:
                raise ProblemError(f"{name} must be at least {least}, got {getattr(self, name)}.")
        if self.messages is not None:
            if self.max_join:
                raise ProblemError("Learned messages speak of the factors as declared: use them with max_join=0.")
            if not np.isfinite(self.messages).all():
                raise ProblemError("Starting messages must be finite.")

    @overload
    def __call__(self, problems: Problem, found: Solution | None = None, *, n_jobs: int = 1) -> Solution: ...
    @overload
    def __call__(
        self, problems: Batch | Sequence[Problem], found: Solutions | None = None, *, n_jobs: int = 1
    ) -> Solutions: ...
    def __call__(
        self,
        problems: Problem | Batch | Sequence[Problem],
        found: Solution | Solutions | None = None,
        *,
        n_jobs: int = 1,
    ) -> Solution | Solutions:
        """Certifies a problem or a batch, starting from what a search found, if given."""
        batch = as_batch(problems).resolved()
        if isinstance(found, Solution):
            found = Solutions.of(batch, [found])
        answers = self._certify(batch, found, n_jobs).solutions
        return answers[0] if isinstance(problems, Problem) else answers

    def report(self, problems: Problem | Batch | Sequence[Problem], found: Solutions | None = None) -> Report:
        """Certifies a batch and tells what it took."""
        return self._certify(as_batch(problems).resolved(), found, 1)

    def learn_messages(self, batch: Batch) -> FloatArray:
        """Returns starting messages: the averages, by factor kind and role, over the problems it proves by sweeping."""
        if self.max_join:
            raise ProblemError("Messages speak of the factors as declared: learn them with max_join=0.")
        n = batch.structures[0].schema.n_messages if batch.structures else 0
        total, count = np.zeros(n), np.zeros(n, dtype=np.int64)
        self._certify(batch.resolved(), None, 1, total, count)
        return total / np.maximum(count, 1)

    def _certify(
        self,
        batch: Batch,
        found: Solutions | None,
        n_jobs: int,
        message_sum: FloatArray = NOTHING,
        message_count: IntArray = NO_COUNTS,
    ) -> Report:
        n = len(batch)
        start = self._checked_messages(batch)
        plans, smalls = reductions(tuple(each.compiled for each in batch.structures), self.max_join)
        labels = np.full(batch.variable_at[-1], -1, dtype=np.int64)
        cost = np.full(n, np.inf)
        if found is not None:
            if len(found) != n:
                raise ProblemError(f"Got {len(found)} answers for {n} problems. Give one for each.")
            labels[:] = found.labels
            cost = np.where(found.valid & ~np.isnan(found.cost), found.cost, np.inf)
        given = cost.copy()
        bound = np.empty(n)
        outcome, by, n_sweeps, n_nodes = np.empty((4, n), dtype=np.int64)
        nodes = (MAX_NODES, ROW_NODES) if self.max_nodes is None else (self.max_nodes, self.max_nodes)
        effort = certify.Effort(FIRST_SWEEPS, self.max_sweeps, *nodes, NODE_SWEEPS, DIVE_NODES)

        def run(start_at: int, stop_at: int) -> None:
            certify.certify_range(
                batch.pool, plans, smalls, batch.structure, batch.cost, batch.cost_at, batch.table,
                batch.table_at, batch.variable_at, start, effort, start_at, stop_at, labels, cost, bound,
                outcome, by, n_sweeps, n_nodes, message_sum, message_count,
            )  # fmt: skip

        in_parallel(run, n, n_jobs)
        return Report(_solutions(batch, labels, given, cost, bound, outcome, by), n_sweeps, n_nodes)

    def _checked_messages(self, batch: Batch) -> FloatArray:
        if self.messages is None:
            return NOTHING
        for structure in batch.structures:
            if len(self.messages) != structure.schema.n_messages:
                raise ProblemError(
                    f"Got {len(self.messages)} starting messages; the schema needs "
                    f"{structure.schema.n_messages}. Use messages that were learned with this schema."
                )
        start: FloatArray = np.clip(self.messages, -LARGEST, LARGEST, dtype=np.float64)
        return start


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """Certified answers, and what each took."""

    solutions: Solutions
    n_sweeps: IntArray
    n_nodes: IntArray


def _solutions(
    batch: Batch,
    labels: IntArray,
    given: FloatArray,
    cost: FloatArray,
    bound: FloatArray,
    outcome: IntArray,
    by: IntArray,
) -> Solutions:
    answered = np.isfinite(cost)
    if not answered.all():
        labels[np.repeat(~answered, np.diff(batch.variable_at))] = -1
    infeasible, proved, found, nothing = (
        STATUSES.index(s) for s in (Status.INFEASIBLE, Status.PROVED, Status.FOUND, Status.DEAD_END)
    )
    status = np.where(answered, found, nothing)  # where, three times, is much faster than select on one problem
    status = np.where(outcome == certify.PROVED, proved, status)
    status = np.where(outcome == certify.INFEASIBLE, infeasible, status)
    source = np.where(by == certify.BY_BRANCH, SOURCES.index(Source.BRANCH), SOURCES.index(Source.BOUND))
    source = np.where(answered & (cost == given), SOURCES.index(Source.SEARCH), source)
    n_costs = np.diff(batch.variable_at)
    return Solutions(batch, labels, cost, bound, answered, status, source, n_costs)

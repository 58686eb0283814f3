"""Proof: certifying an answer without a solver (the idea of the paper's §3.1, made exact).

Five steps, each only where the one before left something open: *look* whether the cheapest labels fit, *mend* the few
constraints that they break, *eliminate* variables of low degree exactly, *sweep* messages that raise a lower bound and
decode labellings from them, *branch*. The kernels of each are in `hasten.kernels.proof`. A labelling that costs no more
than the bound, within `TOLERANCE`, *is* an optimum of the integer program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import overload

import numpy as np

from hasten.errors import ProblemError
from hasten.kernels.proof.certify import Effort, certify_some
from hasten.kernels.proof.look import look_range
from hasten.kernels.proof.outcome import OPEN
from hasten.model.batch import Batch, as_batch
from hasten.model.elimination import MAX_JOIN, reductions
from hasten.model.problem import Problem
from hasten.model.solution import SOURCES, STATUSES, Solution, Solutions, Source, Status, as_solutions
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.checks import check_vector, check_whole
from hasten.support.parallel import in_parallel

NOTHING, NO_COUNTS = np.zeros(0), np.zeros(0, dtype=np.int64)
FIRST_SWEEPS, ROW_SWEEPS = 2, 32  # before the first dive, without and with rows; more where that runs out of nodes
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
        check_whole("max_join", self.max_join)
        check_whole("max_sweeps", self.max_sweeps, least=1)
        if self.max_nodes is not None:
            check_whole("max_nodes", self.max_nodes)
        if self.messages is not None:
            if self.max_join:
                raise ProblemError("Learned messages speak of the factors as declared: use them with max_join=0.")
            object.__setattr__(self, "messages", check_vector("Starting messages", self.messages))

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
        return answers.only(problems) if isinstance(problems, Problem) else answers

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
        labels, cost = _given(batch, found)
        bound, size = np.empty((2, n))
        outcome, step, labels_by = np.empty((3, n), dtype=np.int64)
        n_sweeps, n_nodes = np.zeros((2, n), dtype=np.int64)
        given = (batch.structure, batch.cost, batch.cost_at, batch.table, batch.table_at, batch.variable_at)

        def look(begin_at: int, end_at: int) -> None:
            look_range(batch.pool, *given, begin_at, end_at, labels, cost, bound, outcome, step, labels_by, size)

        in_parallel(look, n, n_jobs)
        left = np.flatnonzero(outcome == OPEN)
        if left.size:
            left = left[np.argsort(batch.structure[left], kind="stable")]
            plans, smalls = reductions(tuple(each.compiled for each in batch.structures), self.max_join)
            nodes = (MAX_NODES, ROW_NODES) if self.max_nodes is None else (self.max_nodes, self.max_nodes)
            effort = Effort(FIRST_SWEEPS, ROW_SWEEPS, self.max_sweeps, *nodes, NODE_SWEEPS, DIVE_NODES)

            def certify(begin_at: int, end_at: int) -> None:
                certify_some(
                    batch.pool, plans, smalls, *given, start, effort, left[begin_at:end_at], size, labels, cost,
                    bound, outcome, step, labels_by, n_sweeps, n_nodes, message_sum, message_count,
                )  # fmt: skip

            in_parallel(certify, left.size, n_jobs)
        return Report(_solutions(batch, labels, cost, bound, outcome, labels_by), step, n_sweeps, n_nodes)

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


class Step(StrEnum):
    """The steps of a proof, in the order in which they are tried."""

    SIGHT = "at sight"
    MENDING = "by mending"
    ELIMINATION = "by elimination"
    SWEEPS = "by sweeping"
    BRANCHING = "by branching"


STEPS = tuple(Step)  # a kernel's number for a step is one more than its place


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """Certified answers, and what each took. `str` tells it in a line."""

    solutions: Solutions
    step: IntArray  # (n,) the last step taken, numbered from 1
    n_sweeps: IntArray  # (n,)
    n_nodes: IntArray  # (n,)

    @property
    def proved_by(self) -> dict[Step, int]:
        """How many problems each step proved."""
        counts = np.bincount(self.step[self.solutions.proved], minlength=len(STEPS) + 1)
        return dict(zip(STEPS, counts[1:].tolist(), strict=True))

    def __str__(self) -> str:
        proved = [f"{n} {step}" for step, n in self.proved_by.items() if n]
        left = len(self.solutions) - sum(self.proved_by.values())
        return f"{len(self.solutions)} problems: " + ", ".join([*proved, f"{left} left open"])


def _given(batch: Batch, found: Solutions | None) -> tuple[IntArray, FloatArray]:
    """Returns the labels and the costs to start from: none, or what was found, scored anew."""
    n = len(batch)
    if found is None:
        return np.full(batch.variable_at[-1], -1, dtype=np.int64), np.full(n, np.inf)
    if len(found) != n:
        raise ProblemError(f"Got {len(found)} answers for {n} problems. Give one for each.")
    if len(found.labels) != batch.variable_at[-1]:
        raise ProblemError(
            f"Got {len(found.labels)} labels for {batch.variable_at[-1]} variables: these are other problems."
        )
    scored = as_solutions(batch, found.labels.copy(), np.ones(n, dtype=bool), batch.n_variables)
    return scored.labels, np.where(scored.valid, scored.cost, np.inf)


# By outcome (proved, open, infeasible), and by whether there is an answer.
_STATUS = np.array(
    [
        [STATUSES.index(status) for status in (Status.OPEN, Status.PROVED)],
        [STATUSES.index(status) for status in (Status.OPEN, Status.FOUND)],
        [STATUSES.index(status) for status in (Status.INFEASIBLE, Status.INFEASIBLE)],
    ]
)
# By the step that found the labels; none: they were given.
_SOURCE = np.array([SOURCES.index(Source.SEARCH), *4 * [SOURCES.index(Source.BOUND)], SOURCES.index(Source.BRANCH)])


def _solutions(
    batch: Batch, labels: IntArray, cost: FloatArray, bound: FloatArray, outcome: IntArray, labels_by: IntArray
) -> Solutions:
    answered = np.isfinite(cost)
    if not answered.all():
        labels[np.repeat(~answered, batch.n_variables)] = -1
    status = _STATUS[outcome, answered.view(np.int8)]
    return Solutions(batch, labels, cost, bound, answered, status, _SOURCE[labels_by], batch.n_variables.copy())

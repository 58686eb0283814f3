"""Proof: a lower bound that certifies an answer without a solver (the idea of the paper's §3.1, made exact).

A labelling that costs no more than the bound, within `TOLERANCE`, *is* an optimum of the integer program.
The mathematics is in `hasten.kernels.dual`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from hasten.errors import ProblemError
from hasten.graph import FloatArray
from hasten.kernels import dual
from hasten.problem import Batch, Problem, as_batch
from hasten.search import in_parallel
from hasten.solution import SOURCES, STATUSES, Solution, Solutions, Source, Status

NO_MESSAGES = np.zeros(0)


@dataclass(frozen=True, slots=True)
class DualBound:
    """Bounds problems, decodes labellings from the bound, and proves what it can.

    Called with the answers of a search as well, it proves those or finds better ones. `messages` are where the
    bound starts: any are correct, those learned from past problems (`learn_messages`) save sweeps.
    """

    max_sweeps: int = 100
    messages: FloatArray | None = None

    def __post_init__(self) -> None:
        if self.max_sweeps < 1:
            raise ProblemError(f"A bound needs at least one sweep, got max_sweeps={self.max_sweeps}.")
        if self.messages is not None and not np.isfinite(self.messages).all():
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
        """Bounds a problem or a batch, starting from what a search found, if given."""
        batch = as_batch(problems).resolved()
        if isinstance(found, Solution):
            found = Solutions.of(batch, [found])
        answers = self._bound(batch, found, n_jobs, NO_MESSAGES, np.zeros(0, dtype=np.int64))[0]
        return answers[0] if isinstance(problems, Problem) else answers

    def sweeps(self, batch: Batch, found: Solutions | None = None) -> np.ndarray:
        """Returns how many sweeps each problem of a batch takes."""
        return self._bound(batch.resolved(), found, 1, NO_MESSAGES, np.zeros(0, dtype=np.int64))[1]

    def learn_messages(self, batch: Batch) -> FloatArray:
        """Returns starting messages: the averages, by factor kind and role, over the problems it can prove."""
        n = batch.structures[0].schema.n_messages if batch.structures else 0
        total, count = np.zeros(n), np.zeros(n, dtype=np.int64)
        self._bound(batch.resolved(), None, 1, total, count)
        return total / np.maximum(count, 1)

    def _bound(
        self,
        batch: Batch,
        found: Solutions | None,
        n_jobs: int,
        message_sum: FloatArray,
        message_count: np.ndarray,
    ) -> tuple[Solutions, np.ndarray]:
        n = len(batch)
        start = self._checked_messages(batch)
        labels = np.full(batch.variable_at[-1], -1, dtype=np.int64)
        cost = np.full(n, np.inf)
        if found is not None:
            if len(found) != n:
                raise ProblemError(f"Got {len(found)} answers for {n} problems. Give one for each.")
            labels[:] = found.labels
            cost = np.where(found.valid, found.cost, np.inf)
        given = cost.copy()
        bound, outcome = np.empty(n), np.empty(n, dtype=np.int64)
        n_sweeps = np.empty(n, dtype=np.int64)

        def run(start_at: int, stop_at: int) -> None:
            dual.prove_range(
                batch.pool, batch.structure, batch.cost, batch.cost_at, batch.table, batch.table_at,
                batch.variable_at, start, self.max_sweeps, start_at, stop_at, labels, cost, bound, outcome,
                n_sweeps, message_sum, message_count,
            )  # fmt: skip

        in_parallel(run, n, n_jobs)
        proved, infeasible = outcome == dual.PROVED, outcome == dual.INFEASIBLE
        answered = np.isfinite(cost)
        status = np.select(
            [infeasible, proved, answered],
            [STATUSES.index(s) for s in (Status.INFEASIBLE, Status.PROVED, Status.FOUND)],
            STATUSES.index(Status.DEAD_END),
        )
        labels[np.repeat(~answered, np.diff(batch.variable_at))] = -1
        improved = ~(answered & (cost == given))
        source = np.where(improved, SOURCES.index(Source.BOUND), SOURCES.index(Source.SEARCH))
        n_costs = np.diff(batch.variable_at)
        return Solutions(batch, labels, cost, bound, answered, status, source, n_costs), n_sweeps

    def _checked_messages(self, batch: Batch) -> FloatArray:
        if self.messages is None:
            return NO_MESSAGES
        for structure in batch.structures:
            if len(self.messages) != structure.schema.n_messages:
                raise ProblemError(
                    f"Got {len(self.messages)} starting messages; the schema needs "
                    f"{structure.schema.n_messages}. Use messages that were learned with this schema."
                )
        return np.ascontiguousarray(self.messages, dtype=np.float64)

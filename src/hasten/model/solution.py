"""What comes back: a `Solution` for one problem, `Solutions` for a batch, and the words for how it went."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import overload

import numpy as np

from hasten.errors import NoAnswerError
from hasten.kernels.score import score_batch
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.support.arrays import BoolArray, FloatArray, IntArray


class Status(StrEnum):
    """How an answer came about; each value is the sentence that a user reads."""

    PROVED = "Proved optimal without the solver."
    SOLVED = "Solved to optimality by the solver."
    FOUND = "Found by search; not proved."
    INVALID = "Found by search; it breaks a constraint."
    OPEN = "No labelling was found, and none ruled out, with this effort. Raise max_nodes or use the solver."
    DEAD_END = "Every node in the beam broke a constraint. Widen the beam or use the solver."
    INFEASIBLE = "No labelling satisfies the constraints."
    TIME_LIMIT = "The solver ran out of time; this is the best labelling that it found."
    NO_TIME = "The solver ran out of time before it found a labelling. Give it more."

    @property
    def optimal(self) -> bool:
        """Whether nothing is left to find out: an optimum, or the proof that there is none."""
        return self in (Status.PROVED, Status.SOLVED, Status.INFEASIBLE)


class Source(StrEnum):
    """Which step gave the answer."""

    SEARCH = "search"
    BOUND = "bound"
    BRANCH = "branch"
    SOLVER = "solver"


WITHOUT_ANSWER = (Status.OPEN, Status.DEAD_END, Status.INFEASIBLE, Status.NO_TIME)
STATUSES = tuple(Status)
SOURCES = tuple(Source)


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """One answer. `cost` is inf without a labelling, nan where a lazy search never computed some costs."""

    problem: Problem = field(repr=False)
    status: Status
    source: Source
    values: IntArray | None = field(repr=False)  # label numbers, or None
    cost: float
    bound: float  # no labelling costs less; -inf where nothing is known
    valid: bool
    n_costs: int  # variables whose costs were computed

    @property
    def labels(self) -> IntArray:
        """The label number of each variable."""
        if self.values is None:
            raise NoAnswerError(str(self.status))
        return self.values

    @property
    def names(self) -> list[str]:
        """The label name of each variable."""
        return self.problem.names(self.labels)

    @property
    def proved(self) -> bool:
        """Whether this is an optimum, or proof of infeasibility, that needed no solver."""
        return self.status is Status.PROVED or (self.status is Status.INFEASIBLE and self.source is not Source.SOLVER)

    @property
    def gap(self) -> float:
        """How far the cost may be above the optimum."""
        return self.cost - self.bound if self.values is not None else np.inf

    def __repr__(self) -> str:
        answer = "no labelling" if self.values is None else f"labels={self.names}, cost={self.cost:.6g}"
        return f"Solution({answer}, valid={self.valid}, proved={self.proved}, source={self.source.value!r})"

    def _repr_html_(self) -> str:
        from hasten.model.display import of_solution

        return of_solution(self)


@dataclass(frozen=True, eq=False)
class Solutions(Sequence[Solution]):
    """The answers to a batch, as arrays; an index gives one `Solution`, a slice a list of them.

    Statuses and sources are numbers, positions in `STATUSES` and `SOURCES`. Which answers came from the bound:
    `answers.source == SOURCES.index(Source.BOUND)`; which have no labelling that satisfies the constraints:
    `answers.status == STATUSES.index(Status.INFEASIBLE)`.
    """

    batch: Batch
    labels: IntArray  # flat: problem p owns variable_at[p]:variable_at[p + 1]; -1 without a labelling
    cost: FloatArray  # (n,)
    bound: FloatArray  # (n,)
    valid: BoolArray  # (n,)
    status: IntArray  # (n,) numbers in STATUSES
    source: IntArray  # (n,) numbers in SOURCES
    n_costs: IntArray  # (n,)

    def __len__(self) -> int:
        return len(self.cost)

    @overload
    def __getitem__(self, p: int) -> Solution: ...
    @overload
    def __getitem__(self, p: slice) -> list[Solution]: ...
    def __getitem__(self, p: int | slice) -> Solution | list[Solution]:
        if isinstance(p, slice):
            return [self[each] for each in range(*p.indices(len(self)))]
        return self._answer(p % max(1, len(self)), self.batch[p])

    def only(self, problem: Problem) -> Solution:
        """Returns the answer to the only problem there is."""
        return self._answer(0, problem)

    def _answer(self, p: int, problem: Problem) -> Solution:
        at = self.batch.variable_at
        values = self.labels[at[p] : at[p + 1]]
        answered = STATUSES[self.status[p]] not in WITHOUT_ANSWER
        return Solution(
            problem,
            STATUSES[self.status[p]],
            SOURCES[self.source[p]],
            values if answered else None,
            float(self.cost[p]),
            float(self.bound[p]),
            bool(self.valid[p]),
            int(self.n_costs[p]),
        )

    def __iter__(self) -> Iterator[Solution]:
        return (self[p] for p in range(len(self)))

    @property
    def proved(self) -> BoolArray:
        """Which answers are optimal, or proofs of infeasibility, without the solver."""
        infeasible = (self.status == STATUSES.index(Status.INFEASIBLE)) & (self.source != SOURCES.index(Source.SOLVER))
        return np.asarray((self.status == STATUSES.index(Status.PROVED)) | infeasible)

    @classmethod
    def of(cls, batch: Batch, answers: Sequence[Solution]) -> Solutions:
        """Gathers single answers."""
        labels = np.full(batch.variable_at[-1], -1, dtype=np.int64)
        for p, answer in enumerate(answers):
            if answer.values is not None:
                labels[batch.variable_at[p] : batch.variable_at[p + 1]] = answer.values
        return cls(
            batch,
            labels,
            np.array([answer.cost for answer in answers], dtype=np.float64),
            np.array([answer.bound for answer in answers], dtype=np.float64),
            np.array([answer.valid for answer in answers], dtype=bool),
            np.array([STATUSES.index(answer.status) for answer in answers], dtype=np.int64),
            np.array([SOURCES.index(answer.source) for answer in answers], dtype=np.int64),
            np.array([answer.n_costs for answer in answers], dtype=np.int64),
        )

    def __repr__(self) -> str:
        return f"Solutions({len(self)}, valid={self.valid.mean() if len(self) else 1:.3f})"

    def _repr_html_(self) -> str:
        from hasten.model.display import of_solutions

        return of_solutions(self)


# By whether the search was done, and whether its answer is valid.
_STATUS = np.array(
    [
        [STATUSES.index(status) for status in (Status.DEAD_END, Status.DEAD_END)],
        [STATUSES.index(status) for status in (Status.INVALID, Status.FOUND)],
    ]
)


def as_solutions(
    batch: Batch, labels: IntArray, done: BoolArray, n_costs: IntArray, computed: FloatArray | None = None
) -> Solutions:
    """Re-scores what a search found and says how it went.

    `computed` holds the costs that a lazy search asked for; where it did not ask for all, the cost is nan.
    """
    n = len(batch)
    total, valid = np.empty(n), np.empty(n, dtype=bool)
    cost = batch.cost if computed is None else computed
    score_batch(
        batch.pool, batch.structure, cost, batch.cost_at, batch.table, batch.table_at,
        labels, batch.variable_at, total, valid,
    )  # fmt: skip
    if not done.all():
        total[~done], valid[~done] = np.inf, False
    if computed is not None:
        total[np.isfinite(total) & (n_costs < batch.n_variables)] = np.nan
    status = _STATUS[done.view(np.int8), valid.view(np.int8)]
    source = np.full(n, SOURCES.index(Source.SEARCH), dtype=np.int64)
    return Solutions(batch, labels, total, np.full(n, -np.inf), valid, status, source, n_costs)

"""Answers: a `Solution` to one problem, `Solutions` to a batch, and the words for how they came about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import accumulate
from operator import index
from typing import Any, overload

import numpy as np

from hasten.errors import NoAnswerError, ProblemError
from hasten.kernels.score import score_batch
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.soft import complete
from hasten.support.arrays import BoolArray, Chosen, FloatArray, IntArray
from hasten.support.checks import brief, check_type, chosen_numbers, listed, whole_numbers
from hasten.support.words import count


class Status(StrEnum):
    """How an answer came about; each value is the sentence that a user reads."""

    PROVED = "Proved optimal without the solver."
    SOLVED = "Solved to optimality by the solver."
    FOUND = "Found, but not proved optimal."
    INVALID = "Found by search; it breaks a constraint."
    OPEN = "No labelling was found, and none ruled out, with this effort. Raise max_nodes or use the solver."
    DEAD_END = "Every node in the beam broke a constraint. Widen the beam or use the solver."
    INFEASIBLE = "No labelling satisfies the constraints."
    TIME_LIMIT = "Ran out of time; this is the best labelling that was found, not proved optimal."
    NO_TIME = "Ran out of time before a labelling was found. Give it more."
    WITHIN_GAP = "The solver stopped within the gap that its options allow; not proved optimal."
    LEARNED = "Optimal for the learned tables; only the black box can tell whether it agrees."
    RULED_OUT = "The learned tables rule out every labelling. Ask the solver, or learn from more answers."
    FAILED = "The solver failed on this problem; the answer's reason says why. A labelling, if any, is not its own."

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
    LEARNED = "learned tables"


WITHOUT_ANSWER = (  # unless it is valid
    *(Status.OPEN, Status.DEAD_END, Status.INFEASIBLE, Status.NO_TIME, Status.RULED_OUT, Status.FAILED),
)
FEW = 64  # answers
STATUSES = tuple(Status)
SOURCES = tuple(Source)
_NUMBER: dict[Status | Source, int] = {
    **{status: n for n, status in enumerate(Status)},
    **{source: n for n, source in enumerate(Source)},
}
_ANSWERED = tuple(status not in WITHOUT_ANSWER for status in STATUSES)
_OPTIMAL = np.array([status.optimal for status in STATUSES])


def numbered(*words: Status | Source) -> IntArray:
    """Returns statuses, or sources, as the numbers that `Solutions` holds."""
    return np.array([_NUMBER[word] for word in words], dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """One answer. `cost` is inf without a labelling, nan where a lazy search never computed some costs.

    `reason` is why the solver failed, where the status says that it did.
    """

    problem: Problem = field(repr=False)
    status: Status
    source: Source
    values: IntArray | None = field(repr=False)  # label numbers, those of indicators behind the others; or None
    cost: float
    bound: float  # no labelling costs less; -inf where nothing is known
    valid: bool
    n_costs: int  # variables whose costs were computed
    reason: str = ""

    @property
    def labels(self) -> IntArray:
        """The label number of each variable."""
        if self.values is None:
            raise NoAnswerError(f"{self.status} {self.reason}".rstrip())
        return self.values[: self.problem.n_variables]

    @property
    def names(self) -> list[str]:
        """The label name of each variable."""
        return self.problem.names(self.labels)

    @property
    def proved(self) -> bool:
        """Whether this is an optimum, or proof of infeasibility, that needed no solver."""
        return self.status is Status.PROVED or (self.status is Status.INFEASIBLE and self.source is not Source.SOLVER)

    @property
    def score(self) -> float:
        """Minus the cost: what is maximised, where scores were given."""
        return -self.cost

    @property
    def gap(self) -> float:
        """How far the cost may be above the optimum."""
        return self.cost - self.bound if self.values is not None else np.inf

    def __repr__(self) -> str:
        answer = "no labelling" if self.values is None else f"labels={self.names}, cost={self.cost:.6g}"
        return f"Solution({answer}, valid={self.valid}, proved={self.proved}, source={self.source.value!r})"


@dataclass(frozen=True, eq=False)
class Solutions(Sequence[Solution]):
    """The answers to a batch, as arrays; a number gives one `Solution`; a slice, numbers or a mask, those of some.

    Statuses and sources are numbers, positions in `STATUSES` and `SOURCES`; `has` and `by` compare them with words.
    `reasons` says, by the problem's number, why the solver failed, where it did.
    """

    batch: Batch
    values: IntArray  # flat: problem p owns batch.variable_at[p]:batch.variable_at[p + 1], its indicators last; or -1
    cost: FloatArray  # (n,)
    bound: FloatArray  # (n,)
    valid: BoolArray  # (n,)
    status: IntArray  # (n,) numbers in STATUSES
    source: IntArray  # (n,) numbers in SOURCES
    n_costs: IntArray  # (n,)
    reasons: Mapping[int, str] = field(default_factory=dict, kw_only=True)

    @classmethod
    def of(cls, batch: Batch, answers: Sequence[Solution]) -> Solutions:
        """Gathers single answers."""
        check_type(batch, Batch, "The problems that are answered")
        answers = listed(answers, "Answers", kind=Solution)
        if len(answers) != len(batch):
            raise ProblemError(f"Got {count(len(answers), 'answer')} for {count(len(batch), 'problem')}.")
        values = np.full(batch.variable_at[-1], -1, dtype=np.int64)
        for p, (answer, n) in enumerate(zip(answers, batch.n_variables.tolist(), strict=True)):
            if answer.values is None:
                continue
            if len(answer.values) != n:
                raise ProblemError(
                    f"Answer {p} has {count(len(answer.values), 'label')}, its problem {count(n, 'variable')}. "
                    "Give the answers to these problems, in their order."
                )
            values[batch.variable_at[p] : batch.variable_at[p + 1]] = answer.values
        each = [(a.cost, a.bound, a.valid, _NUMBER[a.status], _NUMBER[a.source], a.n_costs) for a in answers]
        columns = zip(*each, strict=True) if each else [()] * len(_EACH)
        arrays: list[Any] = [np.array(each, dtype=kind) for each, kind in zip(columns, _EACH.values(), strict=True)]
        return cls(batch, values, *arrays, reasons={p: a.reason for p, a in enumerate(answers) if a.reason})

    @classmethod
    def joined(cls, batch: Batch, parts: Sequence[Solutions]) -> Solutions:
        """Puts the answers to the parts of a batch, in their order, together again."""
        check_type(batch, Batch, "The problems that are answered")
        parts = listed(parts, "The parts of answers", kind=Solutions)
        if sum(len(part.values) for part in parts) != batch.variable_at[-1]:
            raise ProblemError("The parts have answers to other problems. Give all parts, in their order.")
        if not parts:
            return cls.of(batch, [])
        arrays = ([getattr(part, name) for part in parts] for name in ("values", *_EACH))
        starts = accumulate((len(part) for part in parts), initial=0)
        reasons = {at + p: why for at, part in zip(starts, parts, strict=False) for p, why in part.reasons.items()}
        return cls(batch, *(np.concatenate(each) for each in arrays), reasons=reasons)

    @classmethod
    def scored(
        cls,
        batch: Batch,
        labels: IntArray,
        done: BoolArray | None = None,
        n_costs: IntArray | None = None,
        computed: FloatArray | None = None,
    ) -> Solutions:
        """Scores what a search found, flat labels, and says how it went. Indicators are set as the others say.

        `done` tells which searches came to an end: all, unless given. `n_costs` counts the variables whose costs
        were computed: all, unless given. `computed` holds the costs that a lazy search asked for; where it did not
        ask for all, the cost is nan.
        """
        check_type(batch, Batch, "The problems that are answered")
        if type(labels) is not np.ndarray or labels.dtype != np.int64 or labels.shape != (batch.variable_at[-1],):
            labels = batch.values(whole_numbers(labels, "Labels"))
            if len(labels) != batch.variable_at[-1]:
                raise ProblemError(f"Got {count(len(labels), 'label')} for {batch.labels_at[-1]:,} variables.")
        n, labels = len(batch), complete(batch, labels)
        total, valid = np.empty(n), np.empty(n, dtype=bool)
        score_batch(batch.arrays if computed is None else batch.arrays._replace(cost=computed), labels, total, valid)
        done = np.ones(n, dtype=bool) if done is None else done
        if not done.all():
            total[~done], valid[~done] = np.inf, False
        n_costs = batch.n_variables.copy() if n_costs is None else n_costs
        if computed is not None:
            total[np.isfinite(total) & (n_costs < batch.n_variables)] = np.nan
        status = _SEARCHED[done.view(np.int8), valid.view(np.int8)]
        source = np.full(n, _NUMBER[Source.SEARCH], dtype=np.int64)
        return cls(batch, labels, total, np.full(n, -np.inf), valid, status, source, n_costs)

    def __len__(self) -> int:
        return len(self.cost)

    @overload
    def __getitem__(self, p: int) -> Solution: ...
    @overload
    def __getitem__(self, p: Chosen) -> Solutions: ...
    def __getitem__(self, p: int | Chosen) -> Solution | Solutions:
        """Returns one answer, by the number of its problem, or those to several problems, as `select` does."""
        try:
            p = index(p)  # type: ignore[arg-type]
        except TypeError:
            return self.select(p)  # type: ignore[arg-type]
        return self._answer(p % max(1, len(self)), self.batch[p])

    def __iter__(self) -> Iterator[Solution]:
        return (self[p] for p in range(len(self)))

    def only(self, problem: Problem) -> Solution:
        """Returns the answer to the only problem there is."""
        return self._answer(0, problem)

    def _answer(self, p: int, problem: Problem) -> Solution:
        at, status, reason = self.batch.variable_at, self.status[p], self.reasons.get(p, "")
        values = self.values[at[p] : at[p + 1]] if _ANSWERED[status] or self.valid[p] else None
        cost, bound, valid = float(self.cost[p]), float(self.bound[p]), bool(self.valid[p])
        how = STATUSES[status], SOURCES[self.source[p]]
        return Solution(problem, *how, values, cost, bound, valid, int(self.n_costs[p]), reason)

    def has(self, status: Status) -> BoolArray:
        """Tells which answers have this status."""
        return np.asarray(self.status == _number_of(status, Status))

    def by(self, source: Source) -> BoolArray:
        """Tells which answers came from this step."""
        return np.asarray(self.source == _number_of(source, Source))

    @property
    def labels(self) -> IntArray:
        """The label numbers, flat: problem p owns `batch.labels_at[p]:batch.labels_at[p + 1]`; -1 without an answer."""
        return self.batch.labels(self.values)

    @property
    def score(self) -> FloatArray:
        """Minus the costs: what is maximised, where scores were given."""
        return -self.cost

    @property
    def optimal(self) -> BoolArray:
        """Which answers leave nothing to find out: optima, and proofs that there is none."""
        known: BoolArray = _OPTIMAL[self.status]
        return known

    @property
    def proved(self) -> BoolArray:
        """Which answers are optimal, or proofs of infeasibility, without the solver."""
        return self.has(Status.PROVED) | (self.has(Status.INFEASIBLE) & ~self.by(Source.SOLVER))

    def counts(self) -> dict[tuple[Status, Source], int]:
        """Returns how many answers have each status and source; those that do not occur are left out."""
        if len(self) <= FEW:  # then NumPy takes longer
            pairs = Counter(zip(self.status.tolist(), self.source.tolist(), strict=True))
            return {(STATUSES[status], SOURCES[source]): n for (status, source), n in pairs.items()}
        counted = np.bincount(self.status * len(SOURCES) + self.source).tolist()
        return {(STATUSES[at // len(SOURCES)], SOURCES[at % len(SOURCES)]): n for at, n in enumerate(counted) if n}

    def select(self, chosen: Chosen) -> Solutions:
        """Returns the answers to some of the problems, by number or by a mask."""
        numbers = chosen_numbers(chosen, len(self))
        each, reasons = (getattr(self, name)[numbers] for name in _EACH), self.reasons
        if reasons:
            reasons = {n: reasons[p] for n, p in enumerate(numbers.tolist()) if p in reasons}
        return Solutions(self.batch.select(numbers), self.values[self.batch.places(numbers)], *each, reasons=reasons)

    def replace(self, chosen: Chosen, others: Solutions) -> Solutions:
        """Returns these answers with others, to the same problems, in place of some, by number or by a mask."""
        check_type(others, Solutions, "The other answers")
        numbers = chosen_numbers(chosen, len(self))
        places = self.batch.places(numbers)
        if len(others) != numbers.size or len(others.values) != places.size:
            raise ProblemError(
                f"Got {count(len(others), 'answer')}, with {count(len(others.values), 'label')}, to replace "
                f"{numbers.size:,}, with {places.size:,}. Give one for each, to the same problem."
            )
        changed = {name: getattr(self, name).copy() for name in ("values", *_EACH)}
        changed["values"][places] = others.values
        for name in _EACH:
            changed[name][numbers] = getattr(others, name)
        replaced = set(numbers.tolist()) if self.reasons else set()
        reasons = {p: reason for p, reason in self.reasons.items() if p not in replaced}
        reasons |= {int(numbers[n]): reason for n, reason in others.reasons.items()}
        return Solutions(self.batch, **changed, reasons=reasons)

    def resolved(self) -> Solutions:
        """Returns a search's answers scored by all costs, where the costs were lazy."""
        if not self.batch.lazy:
            return self
        return Solutions.scored(self.batch.resolved(), self.values, ~self.has(Status.DEAD_END), self.n_costs)

    def __repr__(self) -> str:
        return f"Solutions({len(self)}, valid={self.valid.mean() if len(self) else 1:.3f})"


def _number_of(word: str, words: type[Status] | type[Source]) -> int:
    if isinstance(word, words) or (isinstance(word, str) and word in tuple(words)):
        return _NUMBER[words(word)]
    raise ProblemError(f"There is no {words.__name__.lower()} {brief(word)}. Choose one of hasten.{words.__name__}.")


def same_labels(batch: Batch, labels: IntArray, others: IntArray) -> BoolArray:
    """Tells for which problems two flat labellings are the same."""
    if not len(batch):
        return np.zeros(0, dtype=bool)
    differs = np.concatenate([[0], np.cumsum(labels != others)])
    return np.asarray(differs[batch.variable_at[1:]] == differs[batch.variable_at[:-1]])


_EACH = {"cost": float, "bound": float, "valid": bool, "status": int, "source": int, "n_costs": int}  # per problem
# By whether the search was done, and whether its answer is valid.
_SEARCHED = np.array([numbered(Status.DEAD_END, Status.DEAD_END), numbered(Status.INVALID, Status.FOUND)])

"""A contest: methods answer the same test inputs, and are timed in turns (`timing`).

A `Contender` is a method that wants a row of the results. It either starts from all costs, and its time is that of the
features plus its own; or it computes the costs that it asks for, and one time holds both. All times are CPU time in one
thread. A *deal* is the test inputs in some order, as a task has them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from hasten.model.batch import Batch
from hasten.model.solution import Solutions
from hasten.solvers.failures import OnError
from hasten.speedup.black_box import prove_or_solve
from hasten.support.arrays import BoolArray
from hasten.support.progress import Tell
from hasten.tasks.experiment import ilp as ilps
from hasten.tasks.experiment.ilp import Ilp, Passes
from hasten.tasks.experiment.timing import ROUNDS, Timing, time_in_turns, timed

D = TypeVar("D")


@dataclass(frozen=True, slots=True, eq=False)
class Contender(Generic[D]):
    """A method that wants a row: what it does with a deal before the clock starts, and then while it is timed."""

    model: str
    ready: Callable[[D], Callable[[], Any]]
    answers: Solutions | None = None  # to the test inputs in their own order, where they are known
    first: float = 0.0  # milliseconds that these took
    lazy: bool = False  # it computes its own costs, so that features are part of its time
    about: dict[str, Any] = field(default_factory=dict)  # fields of its row
    after: Callable[[], dict[str, Any]] = dict  # those that are known when all is timed


class Result(NamedTuple):
    """What came of a contender: its answers to the inputs in their own order, and its times."""

    answers: Solutions
    features: Timing | None  # None where the contender is lazy: inference holds both
    inference: Timing
    about: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Contest(Generic[D]):
    """Test inputs, the ILP solver's answers to them, and how contenders take turns."""

    as_they_come: D  # the inputs in their own order
    deal: Callable[[np.random.Generator], D]  # in a fresh order
    problems: Callable[[D], Batch]  # with all their costs
    features: Callable[[D], object]  # computes these costs, to be timed
    answers: Solutions  # of the ILP solver
    ilp: Ilp
    runs: int
    seed: int
    tell: Tell

    @cached_property
    def answered_by(self) -> dict[str, int]:
        """How many of the inputs each ILP solver answers."""
        return ilps.count_answers(self.ilp, [self.answers.batch[p] for p in range(len(self.answers))])

    @cached_property
    def passes(self) -> Passes:
        """Passes of the ILP solver over the inputs, and what is known of their times."""
        return Passes(self.ilp)

    def by_ilp(self, model: str, **about: Any) -> Contender[D]:
        """Returns the ILP solver itself as a contender: each pass has new models, built before the clock starts."""
        passes, note = self.passes, ilps.in_words(self.answered_by, self.ilp.name)

        def after() -> dict[str, Any]:
            solving = {name: float(np.mean(each)) for name, each in passes.solving.items()}
            return {"building_ms": float(np.mean(passes.building)), "solving_ms": solving}

        about |= {
            "solver_calls": len(self.answers),
            "answered_by": self.answered_by,
            **({"note": note} if note else {}),
        }
        first = math.inf  # long enough to be timed once a run
        return Contender(
            model, lambda deal: passes.ready(self.problems(deal)), self.answers, first, about=about, after=after
        )

    def certified(self, model: str, **about: Any) -> Contender[D]:
        """Returns the contender that proves its answers, and asks the ILP solver where it cannot."""
        (answers, n_calls), first = timed(lambda: prove(self.problems(self.as_they_come), self.ilp))
        again = timed(lambda: prove(self.problems(self.as_they_come), self.ilp))[1]  # no shape is new any more
        asked = [self.answers.batch[p] for p in np.flatnonzero(~answers.proved).tolist()]

        def ready(deal: D) -> Callable[[], Any]:
            ilp = self.ilp.fresh() if asked else self.ilp
            ilp.prepare(asked)
            return lambda: prove(self.problems(deal), ilp)

        about |= {"solver_calls": n_calls, "answered_by": ilps.count_answers(self.ilp, asked)}
        about["building_ms"] = max(0.0, first - again)
        return Contender(model, ready, answers, again, about=about)

    def measure(self, contenders: Sequence[Contender[D]], stage: str, *, rounds: int = ROUNDS) -> list[Result]:
        """Lets all contenders answer, timed in turns."""
        self.tell(stage, 0.0)
        tried = [
            (each.answers, each.first) if each.answers is not None else timed(each.ready(self.as_they_come))
            for each in contenders
        ]
        features, *times = time_in_turns(
            [lambda deal: lambda: self.features(deal), *(each.ready for each in contenders)],
            self.deal,
            [0.0, *(first for _, first in tried)],
            runs=self.runs,
            rounds=rounds,
            seed=self.seed,
            progress=lambda share: self.tell(stage, share),
        )
        self.tell(stage, 1.0)
        return [
            Result(answers, None if each.lazy else features, timing, each.about | each.after())
            for each, (answers, _), timing in zip(contenders, tried, times, strict=True)
        ]


def prove(batch: Batch, ilp: Ilp) -> tuple[Solutions, int]:
    """Returns optimal answers, and how often that took the ILP solver."""
    return prove_or_solve(batch, lambda: ilp, on_error=OnError.RAISE)


def same_answers(found: Solutions, reference: Solutions) -> BoolArray:
    """Which answers are the reference's: the same labels, or as good ones."""
    at = reference.batch.variable_at
    same = np.logical_and.reduceat(np.append(found.values == reference.values, True), at[:-1])
    with np.errstate(invalid="ignore"):
        close = np.abs(found.cost - reference.cost) <= 1e-6 * np.maximum(1.0, np.abs(reference.cost))
    return same | (found.valid & close)

"""Methods answer the same test inputs, the ILP solver among them, and are timed in turns.

A `Method` has a row of the results. It either starts from all costs, and its time is that of the features plus its own;
or it computes the costs that it asks for, and one time holds both. `TestSet` is for a task to fill in.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Generic, TypeVar

import numpy as np

from hasten.jit.tiers import AUTO, DRIVERS, TIER
from hasten.model.batch import Batch
from hasten.model.solution import Solutions
from hasten.solvers.failures import OnError
from hasten.speedup.black_box import prove_or_solve
from hasten.support.arrays import BoolArray, FloatArray, IntArray
from hasten.support.progress import steps
from hasten.tasks.evaluation.study import Measured, Measuring, Row, f1_of
from hasten.tasks.evaluation.timing import (
    ROUNDS,
    Ilp,
    Passes,
    Ready,
    Timing,
    problems_of,
    time_in_turns,
    timed,
    who_answered,
)

D = TypeVar("D")
Search = Callable[[Batch], Solutions]


@dataclass(frozen=True, slots=True, eq=False)
class Method(Generic[D]):
    """A row of the results: how a method prepares the inputs before the clock starts, and answers them."""

    model: str
    ready: Ready[D]
    answers: Solutions | None = None  # to the test inputs in their own order, where they are known
    first: float = 0.0  # milliseconds that these took
    lazy: bool = False  # it computes its own costs, so that features are part of its time
    about: Row = field(default_factory=dict)  # fields of its row
    after: Callable[[], Row] = dict  # fields that are known when all is timed


@dataclass(frozen=True, eq=False)
class TestSet(ABC, Generic[D]):
    """Test inputs with the ILP solver's answers, and how methods take turns on them."""

    answers: Solutions  # of the ILP solver, to the inputs in their own order
    ilp: Ilp
    how: Measuring

    @property
    def batch(self) -> Batch:
        """The inputs as problems, with all their costs."""
        return self.answers.batch

    @property
    @abstractmethod
    def scores(self) -> Sequence[str]:
        """The keys of a row's scores."""

    @abstractmethod
    def counts(self, answers: Solutions) -> FloatArray:
        """Returns the counts (n_test, n_scores, 2) that the scores of some answers are made of."""

    @abstractmethod
    def shuffled(self, rng: np.random.Generator | None) -> D:
        """Returns the inputs in a fresh order; in their own, without a generator."""

    @abstractmethod
    def problems(self, inputs: D) -> Batch:
        """Returns inputs as problems with all their costs, and nothing that another method has worked out."""

    @abstractmethod
    def features(self, inputs: D) -> object:
        """Computes these costs, to be timed."""

    @cached_property
    def passes(self) -> Passes:
        """Passes of the ILP solver over the inputs, and their times."""
        return Passes(self.ilp)

    def by_ilp(self, model: str, **about: Any) -> Method[D]:
        """Returns the ILP solver itself as a method: each pass has new models, built before the clock starts."""
        passes, answered_by = self.passes, self.ilp.count(problems_of(self.batch))
        late = int((~self.answers.optimal).sum())
        said = [who_answered(answered_by, self.ilp.name), f"{late:,} not solved within the limit" if late else ""]

        def after() -> Row:
            solving = {name: float(np.mean(each)) for name, each in passes.solving.items()}
            return {"building_ms": float(np.mean(passes.building)), "solving_ms": solving}

        about |= {"solver_calls": len(self.answers), "answered_by": answered_by, "note": "; ".join(filter(None, said))}
        ready = lambda inputs: passes.ready(self.problems(inputs))  # noqa: E731
        return Method(model, ready, self.answers, math.inf, about=about, after=after)  # timed once a run

    def certified(self, model: str, **about: Any) -> Method[D]:
        """Returns the method that proves its answers, and asks the ILP solver where it cannot."""
        inputs = self.shuffled(None)
        (answers, n_calls), first = timed(lambda: prove(self.problems(inputs), self.ilp))
        again = timed(lambda: prove(self.problems(inputs), self.ilp))[1]  # no structure is new any more
        asked = [self.batch[p] for p in np.flatnonzero(~answers.proved).tolist()]

        def ready(inputs: D) -> Callable[[], Any]:
            ilp = self.ilp.fresh() if asked else self.ilp
            ilp.prepare(asked)
            return lambda: prove(self.problems(inputs), ilp)

        about |= {"solver_calls": n_calls, "answered_by": self.ilp.count(asked)}
        return Method(model, ready, answers, again, about=about | {"building_ms": max(0.0, first - again)})

    def measure(self, methods: Sequence[Method[D]], stage: str, *, rounds: int = ROUNDS) -> list[Measured]:
        """Lets all methods answer, timed in turns, and returns a row for each."""
        tell, inputs = self.how.tell, self.shuffled(None)
        tell(stage, 0.0)
        tried = [
            (each.answers, each.first) if each.answers is not None else timed(each.ready(inputs)) for each in methods
        ]
        if compile_used():
            again = [each.first if math.isinf(each.first) else timed(each.ready(inputs))[1] for each in methods]
            tried = [(answers, first) for (answers, _), first in zip(tried, again, strict=True)]
        features, *times = time_in_turns(
            [lambda inputs: lambda: self.features(inputs), *(each.ready for each in methods)],
            self.shuffled,
            [0.0, *(first for _, first in tried)],
            runs=self.how.runs,
            rounds=rounds,
            seed=self.how.seed,
            progress=lambda share: tell(stage, share),
        )
        tell(stage, 1.0)
        return [
            self._measured(each, answers, None if each.lazy else features, timing)
            for each, (answers, _), timing in zip(methods, tried, times, strict=True)
        ]

    def by_size(self, searches: Mapping[str, Search], sizes: IntArray, unit: str) -> list[Row]:
        """Returns the microseconds that an input takes by its size, in batches; the ILP's from its measured passes."""
        found = []
        for size in steps(self.how.tell, "Measuring by size", np.unique(sizes).tolist()):
            some = self.batch.select(np.flatnonzero(sizes == size))
            copies = some.select(np.tile(np.arange(len(some)), max(1, 2000 // max(1, int(some.variable_at[-1])))))
            ilp = [np.mean(self.passes.by_size[problem.n_variables]) for problem in problems_of(some)]
            row: Row = {unit: size, "sentences": len(some), "ilp": 1000 * float(np.mean(ilp))}
            row["ilp_by"] = self.ilp.whose(some[0]).name
            for name, search in searches.items():
                search(copies)
                took = [timed(partial(search, copies))[1] for _ in range(self.how.runs)]
                row[name] = 1000 * min(took) / len(copies)
            found.append(row)
        return found

    def _measured(self, method: Method[D], found: Solutions, features: Timing | None, inference: Timing) -> Measured:
        """Returns the row of a method; without features, inference holds both."""
        counts, total = self.counts(found), inference if features is None else features + inference
        row: Row = {"model": str(method.model), "beam": None}
        row |= dict(zip(self.scores, f1_of(counts.sum(axis=0)).tolist(), strict=True))
        row |= {
            "validity": float(found.valid.mean()),
            "exact_match": float(same_answers(found, self.answers).mean()),
            "proved": float(found.proved.mean()),
            "solver_calls": 0,
            "costs_computed": float(found.n_costs.sum() / max(1, found.batch.variable_at[-1])),
            "time_ms": total.mean,
            "time_ms_std": total.std,
            "features_ms": None if features is None else features.mean,
            "inference_ms": None if features is None else inference.mean,
            "building_ms": None,
            "note": "",
            "answered_by": {},
            "solving_ms": {},
        }
        return Measured(row | method.about | method.after(), counts, self.scores)


def compile_used() -> bool:
    """Compiles the drivers that were interpreted so far, so that compiled code is timed; says if there were any."""
    used = [driver for driver in DRIVERS if TIER == AUTO and driver.dispatcher is None and driver.seconds]
    for driver in used:
        driver.compile()
    return bool(used)


def prove(batch: Batch, ilp: Ilp) -> tuple[Solutions, int]:
    """Returns optimal answers, and how often that took the ILP solver."""
    return prove_or_solve(batch, lambda: ilp, on_error=OnError.RAISE)


def same_answers(found: Solutions, reference: Solutions) -> BoolArray:
    """Returns which answers are the reference's: the same labels, or valid ones of the same cost."""
    at = reference.batch.variable_at
    same = np.logical_and.reduceat(np.append(found.values == reference.values, True), at[:-1])
    with np.errstate(invalid="ignore"):
        close = np.abs(found.cost - reference.cost) <= 1e-6 * np.maximum(1.0, np.abs(reference.cost))
    return same | (found.valid & close)

"""Methods answer the same test inputs, the ILP solver among them, timed in turns, in CPU time of one thread.

On a busy machine, things timed one after the other are not comparable. So a round takes the test inputs in a fresh
order, and every method answers them once, in a fresh order of turns. Shuffling and building models happen before the
clock starts. A run is some rounds, and its time the median of theirs; a slow method takes part in fewer rounds, at
least one a run. A method either starts from all costs, and its time is that of the features plus its own; or it
computes the costs that it asks for, and one time holds both.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np

from hasten.errors import SolverTooSmall
from hasten.jit.tiers import AUTO, DRIVERS, TIER
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.solution import Solution, Solutions, Source
from hasten.solvers import Solver, make_solver
from hasten.solvers.base import OnError
from hasten.speedup.black_box import prove_or_solve
from hasten.support.arrays import BoolArray, FloatArray, IntArray
from hasten.support.terminal import Progress, no_progress, steps
from hasten.tasks.evaluation.study import Measured, Measuring, Row, f1_of

T = TypeVar("T")
Ready = Callable[[Any], Callable[[], Any]]  # prepares the inputs, and returns what is timed
Search = Callable[[Batch], Solutions]

ROUNDS = 10  # of a run
LONG = 300.0  # milliseconds that one may take in a run, if that is more than a round
LARGE = "highs"  # has no licence, and no limit


def timed(run: Callable[[], T]) -> tuple[T, float]:
    """Returns the result of a function, and the CPU milliseconds that it takes."""
    begin = time.process_time()
    result = run()
    return result, 1000.0 * (time.process_time() - begin)


def time_in_turns(
    methods: Sequence[Ready],
    shuffled: Callable[[np.random.Generator], Any],
    first: Sequence[float],
    *,
    runs: int,
    rounds: int = ROUNDS,
    seed: int = 0,
    report: Callable[[float], None] = lambda share: None,
) -> list[FloatArray]:
    """Returns the milliseconds of every method in each run; `first` says how long each took when it was tried."""
    rng = np.random.default_rng(seed)
    takes_part = [min(rounds, max(1, int(LONG / max(each, 1e-6)))) for each in first]
    times: list[list[list[float]]] = [[[] for _ in range(runs)] for _ in methods]
    for run in range(runs):
        for turn in range(rounds):
            report((run * rounds + turn) / (runs * rounds))
            inputs = shuffled(rng)
            for n in rng.permutation(len(methods)).tolist():
                if turn < takes_part[n]:
                    times[n][run].append(timed(methods[n](inputs))[1])
    return [np.array([np.median(rounds) for rounds in of_method]) for of_method in times]


def problems_of(batch: Batch) -> list[Problem]:
    """Returns the problems of a batch one by one."""
    return [batch[p] for p in range(len(batch))]


class Ilp:
    """A solver by name; problems with a number of variables that is `too_large` for its licence go to HiGHS."""

    def __init__(self, solver: str, time_limit: float = math.inf, too_large: Iterable[int] = ()) -> None:
        limit = None if math.isinf(time_limit) else time_limit
        self._make = partial(make_solver, interruptible=False, time_limit=limit)
        self.solver = self._make(solver)
        self.name, self.time_limit, self.too_large = self.solver.name, time_limit, set(too_large)

    @cached_property
    def _large(self) -> Solver:
        return self._make(LARGE)

    def whose(self, problem: Problem) -> Solver:
        """Returns the solver that answers a problem."""
        return self._large if problem.n_variables in self.too_large else self.solver

    def solve(self, problem: Problem) -> Solution:
        """Solves one problem."""
        try:
            return self.whose(problem).solve(problem)
        except SolverTooSmall:
            if self.name in (LARGE, "cpsat"):  # HiGHS cannot share a process with cpsat
                raise
            self.too_large.add(problem.n_variables)
            return self._large.solve(problem)

    def prepare(self, problems: Iterable[Problem]) -> None:
        """Builds the models of problems, where a solver has any, so that only solving them is left."""
        for problem in {problem.n_variables: problem for problem in problems}.values():
            prepare = getattr(self.whose(problem), "prepare", None)
            if prepare is not None:
                prepare(problem)

    def answer(self, batch: Batch, progress: Progress = no_progress) -> Solutions:
        """Solves all problems, one after the other."""
        problems = steps(progress, f"Solving by {self.name}", problems_of(batch))
        return Solutions.of(batch, [self.solve(problem) for problem in problems])

    def fresh(self) -> Ilp:
        """Returns one that has solved nothing yet, but knows which sizes are too large."""
        return Ilp(self.name, self.time_limit, self.too_large)

    def count(self, problems: Iterable[Problem]) -> dict[str, int]:
        """Returns how many of the problems each solver answers, the one that was asked for first."""
        counts = Counter(self.whose(problem).name for problem in problems)
        return {name: counts[name] for name in dict.fromkeys((self.name, *counts)) if counts[name]}


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """A row of the results: how a method prepares the inputs before the clock starts, and answers them."""

    model: str
    ready: Ready
    answers: Solutions | None = None  # to the inputs in their own order, where these are known; timed once a run then
    lazy: bool = False  # it computes its own costs, so that features are part of its time
    about: Row = field(default_factory=dict)  # fields of its row
    after: Callable[[], Row] = dict  # fields that are known when all is timed


@dataclass(frozen=True, eq=False)
class TestSet(ABC):
    """Test inputs with the ILP solver's answers, and how methods take turns on them; for a task to fill in."""

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
    def shuffled(self, rng: np.random.Generator | None) -> Any:
        """Returns the inputs in a fresh order; in their own, without a generator."""

    @abstractmethod
    def problems(self, inputs: Any) -> Batch:
        """Returns inputs as problems with all their costs, and nothing that another method has worked out."""

    @abstractmethod
    def features(self, inputs: Any) -> object:
        """Computes these costs, to be timed."""

    @cached_property
    def ilp_ms(self) -> dict[int, list[float]]:
        """The milliseconds of every call of the ILP solver that was timed, by number of variables."""
        return {}

    def by_ilp(self, model: str, **about: Any) -> Method:
        """Returns the ILP solver itself as a method: each pass has new models, built before the clock starts."""
        answered_by, late, building = self.ilp.count(problems_of(self.batch)), ~self.answers.optimal, list[float]()

        def ready(inputs: Any) -> Callable[[], None]:
            ilp, problems = self.ilp.fresh(), problems_of(self.problems(inputs))
            building.append(timed(lambda: ilp.prepare(problems))[1])

            def solve() -> None:
                for problem in problems:
                    took = timed(partial(ilp.solve, problem))[1]
                    self.ilp_ms.setdefault(problem.n_variables, []).append(took)

            return solve

        others = ", ".join(f"{name} {n:,}" for name, n in answered_by.items() if name != self.ilp.name)
        said = [f"{others} that are too large for {self.ilp.name}" if others else ""]
        said.append(f"{late.sum():,} not solved within the limit" if late.any() else "")
        about |= {"answered_by": answered_by, "note": "; ".join(filter(None, said))}
        after = lambda: {"building_ms": float(np.mean(building))}  # noqa: E731
        return Method(model, ready, self.answers, about=about, after=after)

    def certified(self, model: str, **about: Any) -> Method:
        """Returns the method that proves its answers, and asks the ILP solver where it cannot."""

        def ready(inputs: Any) -> Callable[[], Solutions]:
            batch = self.problems(inputs)
            return lambda: prove_or_solve(batch, lambda: self.ilp, on_error=OnError.RAISE)[0]

        return Method(model, ready, about=about)

    def measure(self, methods: Sequence[Method], stage: str, *, rounds: int = ROUNDS) -> list[Measured]:
        """Lets all methods answer, timed in turns, and returns a row for each."""
        progress, inputs = self.how.progress, self.shuffled(None)
        progress(stage, 0.0)
        answers = [each.ready(inputs)() if each.answers is None else each.answers for each in methods]
        compile_used()
        first = [timed(each.ready(inputs))[1] if each.answers is None else math.inf for each in methods]
        features, *times = time_in_turns(
            [lambda inputs: lambda: self.features(inputs), *(each.ready for each in methods)],
            self.shuffled,
            [0.0, *first],
            runs=self.how.runs,
            rounds=rounds,
            seed=self.how.seed,
            report=lambda share: progress(stage, share),
        )
        progress(stage, 1.0)
        return [
            self._measured(each, found, None if each.lazy else features, inference)
            for each, found, inference in zip(methods, answers, times, strict=True)
        ]

    def by_size(self, searches: Mapping[str, Search], sizes: IntArray, unit: str) -> list[Row]:
        """Returns the microseconds that an input takes by its size, in batches; the ILP's from its measured passes."""
        found = []
        for size in steps(self.how.progress, "Measuring by size", np.unique(sizes).tolist()):
            some = self.batch.select(np.flatnonzero(sizes == size))
            copies = some.select(np.tile(np.arange(len(some)), max(1, 2000 // max(1, int(some.variable_at[-1])))))
            ilp = [np.mean(self.ilp_ms[problem.n_variables]) for problem in problems_of(some)]
            row: Row = {unit: size, "sentences": len(some), "ILP": 1000 * float(np.mean(ilp))}
            for name, search in searches.items():
                search(copies)
                row[name] = 1000 * min(timed(partial(search, copies))[1] for _ in range(self.how.runs)) / len(copies)
            found.append(row)
        return found

    def _measured(
        self, method: Method, found: Solutions, features: FloatArray | None, inference: FloatArray
    ) -> Measured:
        counts, total = self.counts(found), inference if features is None else features + inference
        row: Row = {"model": str(method.model), "beam": None}
        row |= dict(zip(self.scores, f1_of(counts.sum(axis=0)).tolist(), strict=True))
        row |= {
            "validity": float(found.valid.mean()),
            "exact_match": float(same_answers(found, self.answers).mean()),
            "proved": float(found.proved.mean()),
            "solver_calls": int(found.by(Source.SOLVER).sum()),
            "costs_computed": float(found.n_costs.sum() / max(1, found.batch.variable_at[-1])),
            "time_ms": float(total.mean()),
            "time_ms_std": float(total.std(ddof=1)) if len(total) > 1 else 0.0,
            "features_ms": None if features is None else float(features.mean()),
            "inference_ms": None if features is None else float(inference.mean()),
            "building_ms": None,
            "note": "",
            "answered_by": {},
        }
        return Measured(row | method.about | method.after(), counts, self.scores)


def compile_used() -> None:
    """Compiles the drivers that were interpreted so far, so that compiled code is timed."""
    for driver in DRIVERS:
        if TIER == AUTO and driver.dispatcher is None and driver.seconds:
            driver.compile()


def same_answers(found: Solutions, reference: Solutions) -> BoolArray:
    """Returns which answers are the reference's: the same labels, or valid ones of the same cost."""
    at = reference.batch.variable_at
    same = np.logical_and.reduceat(np.append(found.values == reference.values, True), at[:-1])
    with np.errstate(invalid="ignore"):
        close = np.abs(found.cost - reference.cost) <= 1e-6 * np.maximum(1.0, np.abs(reference.cost))
    return same | (found.valid & close)


def in_words(found: Solutions, p: int) -> list[str | None]:
    """Returns the labels of an answer by name, None for each where there is none."""
    answer = found[p]
    return [None] * answer.problem.n_variables if answer.values is None else list(answer.names)

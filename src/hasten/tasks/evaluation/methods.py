"""Methods answer the same test inputs, the ILP solver among them, and are timed in turns.

On a busy machine, things timed one after the other are not comparable. So a round takes the test inputs in a fresh
order, and every method answers them once, in a fresh order of turns. Shuffling and building models happen before the
clock starts. A run is some rounds, and its time the median of theirs; a slow method takes part in fewer rounds, at
least one a run. All times are CPU time in one thread.

A `Method` has a row of the results. It either starts from all costs, and its time is that of the features plus its own;
or it computes the costs that it asks for, and one time holds both. The inputs are whatever a task has.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from hasten.errors import SolverTooSmall
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.solution import Solution, Solutions
from hasten.solvers import Progress, Solver, make_solver
from hasten.solvers.failures import OnError
from hasten.speedup.black_box import prove_or_solve
from hasten.support.arrays import BoolArray
from hasten.support.progress import Tell

T = TypeVar("T")
D = TypeVar("D")
Answer = Callable[[], object]  # what is timed
Ready = Callable[[D], Answer]  # what is done with the inputs before

ROUNDS = 10  # of a run
LONG = 300.0  # milliseconds that one may take in a run, if that is more than a round


@dataclass(frozen=True, slots=True)
class Timing:
    """CPU milliseconds of repeated runs."""

    runs: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Their mean."""
        return float(np.mean(self.runs))

    @property
    def std(self) -> float:
        """Their standard deviation."""
        return float(np.std(self.runs, ddof=1)) if len(self.runs) > 1 else 0.0

    def __add__(self, other: Timing) -> Timing:
        return Timing(tuple(a + b for a, b in zip(self.runs, other.runs, strict=True)))


def timed(run: Callable[[], T]) -> tuple[T, float]:
    """Returns what something returns, and the CPU milliseconds that it takes."""
    begin = time.process_time()
    result = run()
    return result, 1000.0 * (time.process_time() - begin)


def time_in_turns(
    methods: Sequence[Ready[D]],
    shuffled: Callable[[np.random.Generator], D],
    first: Sequence[float],
    *,
    runs: int,
    rounds: int = ROUNDS,
    seed: int = 0,
    progress: Callable[[float], None] = lambda share: None,
) -> list[Timing]:
    """Times every method in `runs` runs of some rounds; `first` says how long each took when it was tried."""
    rng = np.random.default_rng(seed)
    takes_part = [min(rounds, max(1, int(LONG / max(each, 1e-6)))) for each in first]
    times: list[list[float]] = [[] for _ in methods]
    for run in range(runs):
        of_run: list[list[float]] = [[] for _ in methods]
        for turn in range(rounds):
            progress((run * rounds + turn) / (runs * rounds))
            inputs = shuffled(rng)
            for n in rng.permutation(len(methods)).tolist():
                if turn < takes_part[n]:
                    of_run[n].append(timed(methods[n](inputs))[1])
        for mine, some in zip(times, of_run, strict=True):
            mine.append(float(np.median(some)))
    return [Timing(tuple(each)) for each in times]


@dataclass(frozen=True, slots=True, eq=False)
class Method(Generic[D]):
    """A row of the results: what a method does with the inputs before the clock starts, and then while it is timed."""

    model: str
    ready: Callable[[D], Callable[[], Any]]
    answers: Solutions | None = None  # to the test inputs in their own order, where they are known
    first: float = 0.0  # milliseconds that these took
    lazy: bool = False  # it computes its own costs, so that features are part of its time
    about: dict[str, Any] = field(default_factory=dict)  # fields of its row
    after: Callable[[], dict[str, Any]] = dict  # those that are known when all is timed


class Result(NamedTuple):
    """What came of a method: its answers to the inputs in their own order, and its times."""

    answers: Solutions
    features: Timing | None  # None where the method is lazy: inference holds both
    inference: Timing
    about: dict[str, Any]


@dataclass(frozen=True, eq=False)
class MethodTimer(Generic[D]):
    """Test inputs, the ILP solver's answers to them, and how methods take turns."""

    in_order: D  # the inputs in their own order
    shuffled: Callable[[np.random.Generator], D]  # in a fresh order
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
        return count_answers(self.ilp, [self.answers.batch[p] for p in range(len(self.answers))])

    @cached_property
    def passes(self) -> Passes:
        """Passes of the ILP solver over the inputs, and what is known of their times."""
        return Passes(self.ilp)

    def by_ilp(self, model: str, **about: Any) -> Method[D]:
        """Returns the ILP solver itself as a method: each pass has new models, built before the clock starts."""
        passes, note = self.passes, in_words(self.answered_by, self.ilp.name)

        def after() -> dict[str, Any]:
            solving = {name: float(np.mean(each)) for name, each in passes.solving.items()}
            return {"building_ms": float(np.mean(passes.building)), "solving_ms": solving}

        about |= {
            "solver_calls": len(self.answers),
            "answered_by": self.answered_by,
            **({"note": note} if note else {}),
        }
        first = math.inf  # long enough to be timed once a run
        return Method(
            model, lambda inputs: passes.ready(self.problems(inputs)), self.answers, first, about=about, after=after
        )

    def certified(self, model: str, **about: Any) -> Method[D]:
        """Returns the method that proves its answers, and asks the ILP solver where it cannot."""
        (answers, n_calls), first = timed(lambda: prove(self.problems(self.in_order), self.ilp))
        again = timed(lambda: prove(self.problems(self.in_order), self.ilp))[1]  # no shape is new any more
        asked = [self.answers.batch[p] for p in np.flatnonzero(~answers.proved).tolist()]

        def ready(inputs: D) -> Callable[[], Any]:
            ilp = self.ilp.fresh() if asked else self.ilp
            ilp.prepare(asked)
            return lambda: prove(self.problems(inputs), ilp)

        about |= {"solver_calls": n_calls, "answered_by": count_answers(self.ilp, asked)}
        about["building_ms"] = max(0.0, first - again)
        return Method(model, ready, answers, again, about=about)

    def measure(self, methods: Sequence[Method[D]], stage: str, *, rounds: int = ROUNDS) -> list[Result]:
        """Lets all methods answer, timed in turns."""
        self.tell(stage, 0.0)
        tried = [
            (each.answers, each.first) if each.answers is not None else timed(each.ready(self.in_order))
            for each in methods
        ]
        features, *times = time_in_turns(
            [lambda inputs: lambda: self.features(inputs), *(each.ready for each in methods)],
            self.shuffled,
            [0.0, *(first for _, first in tried)],
            runs=self.runs,
            rounds=rounds,
            seed=self.seed,
            progress=lambda share: self.tell(stage, share),
        )
        self.tell(stage, 1.0)
        return [
            Result(answers, None if each.lazy else features, timing, each.about | each.after())
            for each, (answers, _), timing in zip(methods, tried, times, strict=True)
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


LARGE = "highs"  # has no licence, and no limit


class Ilp:
    """A solver by name; problems with a number of variables that is `too_large` for its licence go to HiGHS."""

    def __init__(self, solver: str, too_large: Iterable[int] = ()) -> None:
        self.solver = make_solver(solver, interruptible=False)
        self.too_large = set(too_large)

    @property
    def name(self) -> str:
        """What it is called."""
        return self.solver.name

    @cached_property
    def large(self) -> Solver:
        """Who answers what is too large."""
        return make_solver(LARGE, interruptible=False)

    def whose(self, problem: Problem) -> Solver:
        """Returns who answers a problem."""
        return self.large if problem.n_variables in self.too_large else self.solver

    def solve(self, problem: Problem) -> Solution:
        """Solves one problem."""
        try:
            return self.whose(problem).solve(problem)
        except SolverTooSmall:
            if self.name in (LARGE, "cpsat"):  # HiGHS cannot share a process with cpsat
                raise
            self.too_large.add(problem.n_variables)
            return self.large.solve(problem)

    def prepare(self, problems: Iterable[Problem]) -> None:
        """Builds the models of problems, where a solver has any, so that to solve them is all that is left."""
        for problem in {problem.n_variables: problem for problem in problems}.values():
            prepare = getattr(self.whose(problem), "prepare", None)
            if prepare is not None:
                prepare(problem)

    def answer(self, batch: Batch, progress: Progress = lambda done, of: None) -> Solutions:
        """Solves all problems, one after the other."""
        answers = []
        for p in range(len(batch)):
            answers.append(self.solve(batch[p]))
            progress(p + 1, len(batch))
        return Solutions.of(batch, answers)

    def fresh(self) -> Ilp:
        """Returns one that has solved nothing yet, but knows what is too large."""
        return Ilp(self.name, self.too_large)


def count_answers(ilp: Ilp, problems: Iterable[Problem]) -> dict[str, int]:
    """Returns how many of the problems each solver answers, the one that was asked for first."""
    counts = {ilp.name: 0}
    for problem in problems:
        name = ilp.whose(problem).name
        counts[name] = counts.get(name, 0) + 1
    return {name: n for name, n in counts.items() if n}


class Passes:
    """Passes over the test sentences, each by new solvers whose models were built before the clock started."""

    def __init__(self, ilp: Ilp) -> None:
        self.ilp = ilp
        self.building: list[float] = []  # milliseconds, of each pass
        self.solving: dict[str, list[float]] = {}  # likewise, by who answered
        self.by_size: dict[int, list[float]] = {}  # of each problem, by its number of variables

    def ready(self, batch: Batch) -> Callable[[], None]:
        """Builds the models, and returns what solves every problem once, in their order."""
        ilp, problems = self.ilp.fresh(), [batch[p] for p in range(len(batch))]
        _, elapsed = timed(lambda: ilp.prepare(problems))
        self.building.append(elapsed)
        asked = [(problem, ilp.whose(problem)) for problem in problems]
        return lambda: self._solve(asked)

    def _solve(self, problems: Sequence[tuple[Problem, Solver]]) -> None:
        total: dict[str, float] = {}
        for problem, solver in problems:
            _, elapsed = timed(partial(solver.solve, problem))
            total[solver.name] = total.get(solver.name, 0.0) + elapsed
            self.by_size.setdefault(problem.n_variables, []).append(elapsed)
        for name, elapsed in total.items():
            self.solving.setdefault(name, []).append(elapsed)


def in_words(answered: Mapping[str, int], asked: str) -> str:
    """Says who answered how many sentences, where that was not the solver that was `asked` alone; "" where it was."""
    others = {name: n for name, n in answered.items() if name != asked}
    if not others:
        return ""
    rest = ", ".join(f"{name} {n:,}" for name, n in others.items())
    return f"{asked} answered {answered.get(asked, 0):,}, {rest} that are too large for it"

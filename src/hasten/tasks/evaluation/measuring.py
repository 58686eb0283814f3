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
from hasten.model.solution import Solution, Solutions
from hasten.solvers import Solver, make_solver
from hasten.solvers.base import OnError
from hasten.speedup.black_box import prove_or_solve
from hasten.support.arrays import BoolArray, FloatArray, IntArray
from hasten.support.terminal import Tell, steps, tell_nobody
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
    progress: Callable[[float], None] = lambda share: None,
) -> list[FloatArray]:
    """Returns the milliseconds of every method in each run; `first` says how long each took when it was tried."""
    rng = np.random.default_rng(seed)
    takes_part = [min(rounds, max(1, int(LONG / max(each, 1e-6)))) for each in first]
    times: list[list[list[float]]] = [[[] for _ in range(runs)] for _ in methods]
    for run in range(runs):
        for turn in range(rounds):
            progress((run * rounds + turn) / (runs * rounds))
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

    def answer(self, batch: Batch, tell: Tell = tell_nobody) -> Solutions:
        """Solves all problems, one after the other."""
        answers = []
        for problem in problems_of(batch):
            answers.append(self.solve(problem))
            tell(f"Solving by {self.name}", len(answers) / len(batch))
        return Solutions.of(batch, answers)

    def fresh(self) -> Ilp:
        """Returns one that has solved nothing yet, but knows which sizes are too large."""
        return Ilp(self.name, self.time_limit, self.too_large)

    def count(self, problems: Iterable[Problem]) -> dict[str, int]:
        """Returns how many of the problems each solver answers, the one that was asked for first."""
        counts = Counter(self.whose(problem).name for problem in problems)
        return {name: counts[name] for name in dict.fromkeys((self.name, *counts)) if counts[name]}


class Passes:
    """Passes over the test inputs, each by new solvers whose models were built before the clock started."""

    def __init__(self, ilp: Ilp) -> None:
        self.ilp = ilp
        self.building: list[float] = []  # milliseconds, of each pass
        self.solving: dict[str, list[float]] = {}  # likewise, by solver
        self.by_size: dict[int, list[float]] = {}  # of each problem, by its number of variables

    def ready(self, batch: Batch) -> Callable[[], None]:
        """Builds the models, and returns a function that solves every problem once, in their order."""
        ilp, problems = self.ilp.fresh(), problems_of(batch)
        self.building.append(timed(lambda: ilp.prepare(problems))[1])
        asked = [(problem, ilp.whose(problem)) for problem in problems]

        def solve() -> None:
            total: dict[str, float] = {}
            for problem, solver in asked:
                elapsed = timed(partial(solver.solve, problem))[1]
                total[solver.name] = total.get(solver.name, 0.0) + elapsed
                self.by_size.setdefault(problem.n_variables, []).append(elapsed)
            for name, elapsed in total.items():
                self.solving.setdefault(name, []).append(elapsed)

        return solve


def who_answered(counts: Mapping[str, int], asked: str) -> str:
    """Says how many inputs each solver answered, where that was not the solver that was `asked` alone."""
    rest = ", ".join(f"{name} {n:,}" for name, n in counts.items() if name != asked)
    return rest and f"{asked} answered {counts.get(asked, 0):,}, {rest} that are too large for it"


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """A row of the results: how a method prepares the inputs before the clock starts, and answers them."""

    model: str
    ready: Ready
    answers: Solutions | None = None  # to the test inputs in their own order, where they are known
    first: float = 0.0  # milliseconds that these took
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
    def passes(self) -> Passes:
        """Passes of the ILP solver over the inputs, and their times."""
        return Passes(self.ilp)

    def by_ilp(self, model: str, **about: Any) -> Method:
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

    def certified(self, model: str, **about: Any) -> Method:
        """Returns the method that proves its answers, and asks the ILP solver where it cannot."""
        inputs = self.shuffled(None)

        def prove(inputs: Any, ilp: Ilp) -> tuple[Solutions, int]:
            return prove_or_solve(self.problems(inputs), lambda: ilp, on_error=OnError.RAISE)

        (answers, n_calls), first = timed(partial(prove, inputs, self.ilp))
        again = timed(partial(prove, inputs, self.ilp))[1]  # no structure is new any more
        asked = [self.batch[p] for p in np.flatnonzero(~answers.proved).tolist()]

        def ready(inputs: Any) -> Callable[[], Any]:
            ilp = self.ilp.fresh() if asked else self.ilp
            ilp.prepare(asked)
            return partial(prove, inputs, ilp)

        about |= {"solver_calls": n_calls, "answered_by": self.ilp.count(asked)}
        return Method(model, ready, answers, again, about=about | {"building_ms": max(0.0, first - again)})

    def measure(self, methods: Sequence[Method], stage: str, *, rounds: int = ROUNDS) -> list[Measured]:
        """Lets all methods answer, timed in turns, and returns a row for each."""
        tell, inputs = self.how.tell, self.shuffled(None)
        tell(stage, 0.0)
        tried = [
            (each.answers, each.first) if each.answers is not None else timed(each.ready(inputs)) for each in methods
        ]
        first = [time for _, time in tried]
        if compile_used():
            first = [each.first if math.isinf(each.first) else timed(each.ready(inputs))[1] for each in methods]
        features, *times = time_in_turns(
            [lambda inputs: lambda: self.features(inputs), *(each.ready for each in methods)],
            self.shuffled,
            [0.0, *first],
            runs=self.how.runs,
            rounds=rounds,
            seed=self.how.seed,
            progress=lambda share: tell(stage, share),
        )
        tell(stage, 1.0)
        return [
            self._measured(each, answers, None if each.lazy else features, inference)
            for each, (answers, _), inference in zip(methods, tried, times, strict=True)
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
            "solver_calls": 0,
            "costs_computed": float(found.n_costs.sum() / max(1, found.batch.variable_at[-1])),
            "time_ms": float(total.mean()),
            "time_ms_std": float(total.std(ddof=1)) if len(total) > 1 else 0.0,
            "features_ms": None if features is None else float(features.mean()),
            "inference_ms": None if features is None else float(inference.mean()),
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

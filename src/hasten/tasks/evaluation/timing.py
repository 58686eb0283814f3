"""Functions timed in turns, and the ILP solver in passes, in CPU time of one thread.

On a busy machine, things timed one after the other are not comparable. So a round takes the test inputs in a fresh
order, and every method answers them once, in a fresh order of turns. Shuffling and building models happen before the
clock starts. A run is some rounds, and its time the median of theirs; a slow method takes part in fewer rounds, at
least one a run. The ILP solver goes by name, with HiGHS for problems that its licence does not allow.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np

from hasten.errors import SolverTooSmall
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.solution import Solution, Solutions
from hasten.solvers import Solver, make_solver
from hasten.support.progress import Tell, tell_nobody

T = TypeVar("T")
D = TypeVar("D")
Ready = Callable[[D], Callable[[], Any]]  # prepares the inputs, and returns what is timed

ROUNDS = 10  # of a run
LONG = 300.0  # milliseconds that one may take in a run, if that is more than a round
LARGE = "highs"  # has no licence, and no limit


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
    """Returns the result of a function, and the CPU milliseconds that it takes."""
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


def problems_of(batch: Batch) -> list[Problem]:
    """Returns the problems of a batch one by one."""
    return [batch[p] for p in range(len(batch))]


class Ilp:
    """A solver by name; problems with a number of variables that is `too_large` for its licence go to HiGHS."""

    def __init__(self, solver: str, time_limit: float = math.inf, too_large: Iterable[int] = ()) -> None:
        self._make = partial(
            make_solver, interruptible=False, time_limit=None if math.isinf(time_limit) else time_limit
        )
        self.solver = self._make(solver)
        self.name = self.solver.name
        self.time_limit = time_limit
        self.too_large = set(too_large)

    @cached_property
    def large(self) -> Solver:
        """The solver of problems that are too large."""
        return self._make(LARGE)

    def whose(self, problem: Problem) -> Solver:
        """Returns the solver that answers a problem."""
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
        """Builds the models of problems, where a solver has any, so that only solving them is left."""
        for problem in {problem.n_variables: problem for problem in problems}.values():
            prepare = getattr(self.whose(problem), "prepare", None)
            if prepare is not None:
                prepare(problem)

    def answer(self, batch: Batch, tell: Tell = tell_nobody) -> Solutions:
        """Solves all problems, one after the other."""
        answers = []
        for p, problem in enumerate(problems_of(batch)):
            answers.append(self.solve(problem))
            tell(f"Solving by {self.name}", (p + 1) / len(batch))
        return Solutions.of(batch, answers)

    def fresh(self) -> Ilp:
        """Returns one that has solved nothing yet, but knows which sizes are too large."""
        return Ilp(self.name, self.time_limit, self.too_large)

    def count(self, problems: Iterable[Problem]) -> dict[str, int]:
        """Returns how many of the problems each solver answers, the one that was asked for first."""
        counts = {self.name: 0}
        for problem in problems:
            name = self.whose(problem).name
            counts[name] = counts.get(name, 0) + 1
        return {name: n for name, n in counts.items() if n}


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
        return lambda: self._solve(asked)

    def _solve(self, problems: Sequence[tuple[Problem, Solver]]) -> None:
        total: dict[str, float] = {}
        for problem, solver in problems:
            elapsed = timed(partial(solver.solve, problem))[1]
            total[solver.name] = total.get(solver.name, 0.0) + elapsed
            self.by_size.setdefault(problem.n_variables, []).append(elapsed)
        for name, elapsed in total.items():
            self.solving.setdefault(name, []).append(elapsed)


def who_answered(counts: dict[str, int], asked: str) -> str:
    """Says how many inputs each solver answered, where that was not the solver that was `asked` alone."""
    others = {name: n for name, n in counts.items() if name != asked}
    if not others:
        return ""
    rest = ", ".join(f"{name} {n:,}" for name, n in others.items())
    return f"{asked} answered {counts.get(asked, 0):,}, {rest} that are too large for it"

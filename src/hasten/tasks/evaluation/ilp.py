"""The ILP solver of a comparison: by name, with HiGHS for problems that its licence does not allow, timed in passes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial

from hasten.errors import SolverTooSmall
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.solution import Solution, Solutions
from hasten.solvers import Solver, make_solver
from hasten.support.progress import Tell, tell_nobody
from hasten.tasks.evaluation.timing import timed

LARGE = "highs"  # has no licence, and no limit


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

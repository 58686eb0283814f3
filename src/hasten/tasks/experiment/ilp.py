"""The ILP solver of the experiment, and who answers what is too large for its licence.

The rows that are named after a solver must be its own. Where its licence refuses a sentence for its size, HiGHS answers
it, and the row says so. Which sizes those are is found out before anything is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial

from hasten.errors import SolverTooSmall
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.solution import Solution, Solutions
from hasten.solvers import Progress, Solver, make_solver
from hasten.tasks.experiment.timing import timed

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

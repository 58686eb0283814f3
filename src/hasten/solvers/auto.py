"""`solver="auto"`: of the solvers that are installed, the one that was fastest on problems like this one.

Which is fastest differs by orders of magnitude, and nobody wants to find out by hand. Problems of about the same size,
in variables, tables and rules, are of one *class*; a class is a small bandit. The solver that was fastest on it is
asked first. The others are tried now and then, on a problem that has to be solved anyway, for no longer than would make
them the fastest, and for a small share of all time in all.

One that takes much longer than it used to is stopped, and the next one continues from the best labelling so far; in the
next round each has twice the time. So a bad choice costs no more than a few times what the best one takes.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np

from hasten.errors import HastenError, SolverError, SolverMissing
from hasten.kernels.layout import Graph
from hasten.model.problem import Problem, check_one
from hasten.model.solution import Solution, Status
from hasten.solvers import Solver, available_solvers, make_solver, solve_within
from hasten.solvers.base import answer
from hasten.support.arrays import IntArray
from hasten.support.locks import renew_after_fork

NETWORKS = ("toulbar2", "gurobi", "highs", "cpsat")  # which to ask first about tables alone
PROGRAMS = ("gurobi", "highs", "cpsat", "toulbar2")  # and where there are rules
FIRST = 1.0  # seconds that a solver has at least, before the next one is asked
LONGER = 8.0  # times what it took so far that it has
FASTER = 1.5  # times what the fastest takes that another has to show that it is faster
SHARE = 0.02  # of all time may be spent on trying others
LOADING = 0.5  # seconds that the first call of a solver takes, more than others
BUILDING = 0.05  # seconds that a solver may take for the model, and to stop, beyond its limit
WEIGHT = 0.3  # of the latest measurement, against all before it


@dataclass(slots=True)
class Record:
    """What is known of the solvers on one class of problems."""

    order: list[str]  # as they are asked as long as nothing is known
    seconds: dict[str, float] = field(default_factory=dict)  # that each takes for a problem
    spent: float = 0.0  # by all of them
    trying: float = 0.0  # of that, by those that were not the fastest
    n_calls: int = 0

    def ranked(self) -> list[str]:
        """Returns the solvers, the fastest first; those that were never asked come behind the fastest."""
        known = sorted((name for name in self.order if name in self.seconds), key=self.seconds.__getitem__)
        return [*known[:1], *(name for name in self.order if name not in self.seconds), *known[1:]]

    def rival(self, random: Random, loaded: Container[str]) -> tuple[str, float] | None:
        """Returns another solver to try on this problem, and for how long; None if there is no time to spare.

        One that is not loaded yet takes longer, whatever the problem.
        """
        best, *others = self.ranked()
        limit, spare = FASTER * self.seconds.get(best, math.inf), SHARE * self.spent - self.trying
        able = [name for name in others if self.seconds.get(name, 0.0) < math.inf]
        unknown = [name for name in able if name not in self.seconds]
        if limit > spare or not able:
            return None
        name = random.choice(unknown or able)
        return (name, limit) if limit + (BUILDING if name in loaded else LOADING) <= spare else None

    def took(self, name: str, seconds: float, solved: bool, rival: bool) -> None:
        """Takes note of a call."""
        self.n_calls += 1
        self.spent += seconds
        self.trying += seconds * rival
        now = seconds if solved else 2.0 * seconds  # it would have taken longer
        before = self.seconds.get(name)
        self.seconds[name] = now if before is None else before + WEIGHT * (now - before)


class AutoSolver:
    """Asks whichever installed solver is fastest on problems like the one at hand.

    time_limit, max_models, interruptible
        As for every solver of ours.
    solvers
        The names of those to choose from. None, the default, are all that are installed.
    seed
        For whom to try next, where others are tried.
    """

    name = "auto"

    def __init__(
        self,
        time_limit: float | None = None,
        max_models: int = 64,
        interruptible: bool = True,
        solvers: Sequence[str] | None = None,
        seed: int = 0,
    ) -> None:
        self.time_limit, self.max_models, self.interruptible, self.seed = time_limit, max_models, interruptible, seed
        self.solvers = tuple(_chosen(solvers))
        self.calls: Counter[str] = Counter()  # of each solver, so far
        self._made: dict[str, Solver] = {}
        self._records: dict[tuple[int, ...], Record] = {}
        self._of_graph: WeakKeyDictionary[Graph, Record] = WeakKeyDictionary()
        self._random = Random(seed)
        self._make(next(name for name in PROGRAMS if name in self.solvers))  # says now what is wrong with the options
        renew_after_fork(self)
        self._renew_locks()

    def _renew_locks(self) -> None:
        """Makes a new lock, in a forked child."""
        self._lock = Lock()

    def solve(self, problem: Problem, time_limit: float | None = None, start: IntArray | None = None) -> Solution:
        """Returns the cheapest valid labelling, or says that there is none, or that time ran out."""
        check_one(problem)
        with self._lock:
            record = self.record(problem.graph)
            limits = [each for each in (self.time_limit, time_limit) if each is not None]
            deadline = time.monotonic() + min(limits, default=math.inf)
            found = answer(problem, Status.NO_TIME)
            if start is not None:
                found = answer(problem, Status.TIME_LIMIT, start)
            rival = record.rival(self._random, self._made)
            if rival is not None:
                found = self._ask(record, *rival, found, deadline, rival=True)
            return found if found.status.optimal else self._race(record, found, deadline)

    def record(self, graph: Graph) -> Record:
        """Returns what is known of problems like those of a graph."""
        known = self._of_graph.get(graph)
        if known is not None:
            return known
        n_tables = int((np.diff(graph.scope_first)[graph.table_at >= 0] > 1).sum())
        counts = len(graph.order), int(graph.first[-1]), n_tables, len(graph.row_low), len(graph.row_label)
        key = tuple(map(int.bit_length, counts))
        if key not in self._records:
            first = PROGRAMS if len(graph.row_low) or not n_tables else NETWORKS
            self._records[key] = Record([name for name in first if name in self.solvers])
        self._of_graph[graph] = self._records[key]
        return self._records[key]

    def _race(self, record: Record, found: Solution, deadline: float) -> Solution:
        """Asks one solver after the other, the fastest first, each with twice the time in the next round."""
        times, errors = 1.0, dict[str, HastenError]()
        while True:
            for name in [name for name in record.ranked() if name not in errors]:
                last = len(record.order) - len(errors) == 1
                seconds = times * max(FIRST, LONGER * record.seconds.get(name, 0.0))
                try:
                    found = self._ask(record, name, math.inf if last else seconds, found, deadline)
                except HastenError as error:  # too large for its licence, weights that it does not take
                    errors[name] = error
                    continue
                if found.status.optimal or time.monotonic() >= deadline:
                    return found
            if len(errors) == len(record.order):
                raise next(iter(errors.values()))
            times *= 2.0

    def _ask(
        self, record: Record, name: str, seconds: float, found: Solution, deadline: float, rival: bool = False
    ) -> Solution:
        """Asks one solver for so long, starting from what was found; returns the better of both."""
        seconds = max(0.0, min(seconds, deadline - time.monotonic()))
        started = time.perf_counter()
        self.calls[name] += 1
        try:
            solved = solve_within(self._make(name), found.problem, seconds, found.values)
        except HastenError:
            record.seconds[name] = math.inf  # the last to be asked again
            if rival:
                return found
            raise
        record.took(name, time.perf_counter() - started, solved.status.optimal, rival)
        if solved.status.optimal or solved.cost < found.cost:
            return replace(solved, bound=min(max(solved.bound, found.bound), solved.cost))
        status = solved.status if found.values is None else Status.TIME_LIMIT
        return replace(found, status=status, bound=min(max(solved.bound, found.bound), found.cost))

    def _make(self, name: str) -> Solver:
        if name not in self._made:
            self._made[name] = make_solver(name, max_models=self.max_models, interruptible=self.interruptible)
        return self._made[name]

    def __repr__(self) -> str:
        return f"AutoSolver({', '.join(self.solvers)})"


def _chosen(solvers: Sequence[str] | None) -> list[str]:
    """Returns the names of the solvers to choose from, or says what is wrong with them."""
    installed = [name for name, there in available_solvers().items() if there and name in PROGRAMS]
    if not installed:
        raise SolverMissing("auto chooses among solvers, but none is installed. Install one: pip install highspy")
    if solvers is None:
        return [name for name in installed if name != "cpsat" or "highs" not in installed]  # not both in one process
    names = [solvers] if isinstance(solvers, str) else list(solvers)
    unknown = [name for name in names if name not in PROGRAMS]
    if unknown or not names:
        raise SolverError(f"auto chooses from {', '.join(PROGRAMS)}; got {', '.join(map(str, unknown)) or 'none'}.")
    missing = [name for name in names if name not in installed]
    if missing:
        raise SolverError(f"{', '.join(missing)} is not installed. auto can choose from {', '.join(installed)}.")
    return names


SOLVER = AutoSolver

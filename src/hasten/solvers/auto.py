"""`solver="auto"`: of the solvers that are installed, the one that was fastest on problems of about this size.

Solvers race (`hasten.solvers.portfolio`): the fastest is asked first, others now and then, on a problem that has to be
solved anyway, for little longer than the fastest takes. One that takes much longer than it used to is stopped; the next
one continues from the best labelling so far, and in the next round each has twice the time.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np

from hasten.errors import HastenError, SolverError, SolverMissing
from hasten.kernels.layout import Graph
from hasten.model.problem import Problem, check_one
from hasten.model.solution import Solution, Status
from hasten.solvers import Solver, available_solvers, make_solver, solve_within
from hasten.solvers.base import answer
from hasten.solvers.portfolio import Race
from hasten.support.arrays import IntArray
from hasten.support.clock import now
from hasten.support.threads import renew_after_fork

NETWORKS = ("toulbar2", "gurobi", "highs", "cpsat")  # which to ask first about tables alone
PROGRAMS = ("gurobi", "highs", "cpsat", "toulbar2")  # and where there are rules
FIRST = 1.0  # seconds that a solver has at least, before the next one is asked
LONGER = 8.0  # times its average that a solver has, before the next one is asked
FASTER = 1.5  # times the fastest solver's average that another one has when it is tried
LOADING = 0.5  # seconds that the first call of a solver takes, more than others
BUILDING = 0.05  # seconds that a solver may take for the model, and to stop, beyond its limit


class AutoSolver:
    """Asks whichever installed solver is fastest on problems like the one at hand.

    time_limit, interruptible
        As for every solver of ours.
    solvers
        The names of those to choose from. None, the default, are all that are installed.
    """

    name = "auto"

    def __init__(
        self,
        time_limit: float | None = None,
        interruptible: bool = True,
        solvers: Sequence[str] | None = None,
    ) -> None:
        self.time_limit, self.interruptible = time_limit, interruptible
        self.solvers = tuple(_chosen(solvers))
        self.calls: Counter[str] = Counter()  # of each solver, so far
        self._made: dict[str, Solver] = {}
        self._races: dict[tuple[int, ...], Race] = {}  # by size
        self._of_graph: WeakKeyDictionary[Graph, Race] = WeakKeyDictionary()
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
            race = self.race(problem.graph)
            limits = [each for each in (self.time_limit, time_limit) if each is not None]
            deadline = now() + min(limits, default=math.inf)
            found = answer(problem, Status.NO_TIME)
            if start is not None:
                found = answer(problem, Status.TIME_LIMIT, start)
            rival = self._rival(race)
            if rival is not None:
                with suppress(HastenError):
                    found = self._ask(race, *rival, found, deadline)
            return found if found.status.optimal else self._ask_all(race, found, deadline)

    def race(self, graph: Graph) -> Race:
        """Returns how fast solvers are on problems of about the size of a graph."""
        known = self._of_graph.get(graph)
        if known is not None:
            return known
        n_tables = int((np.diff(graph.scope_first)[graph.table_at >= 0] > 1).sum())
        counts = len(graph.order), int(graph.first[-1]), n_tables, len(graph.row_low), len(graph.row_label)
        size = tuple(map(int.bit_length, counts))
        if size not in self._races:
            order = PROGRAMS if len(graph.row_low) or not n_tables else NETWORKS
            self._races[size] = Race([name for name in order if name in self.solvers])
        self._of_graph[graph] = self._races[size]
        return self._races[size]

    def _rival(self, race: Race) -> tuple[str, float] | None:
        """Returns a slower solver to try on this problem, and for how long; None if there is no time to spare."""
        best, *others = race.ranked()
        seconds = FASTER * race.seconds.get(best, math.inf)
        able = [name for name in others if race.seconds.get(name, 0.0) < math.inf]
        if seconds > race.spare or not able:
            return None
        name = min(able, key=race.n.__getitem__)
        return (name, seconds) if seconds + (BUILDING if name in self._made else LOADING) <= race.spare else None

    def _ask_all(self, race: Race, found: Solution, deadline: float) -> Solution:
        """Asks one solver after the other, the fastest first, each with twice the time in the next round."""
        times, errors = 1.0, dict[str, HastenError]()
        while True:
            for name in [name for name in race.ranked() if name not in errors]:
                last = len(race.ways) - len(errors) == 1
                seconds = times * max(FIRST, LONGER * race.seconds.get(name, 0.0))
                try:
                    found = self._ask(race, name, math.inf if last else seconds, found, deadline)
                except HastenError as error:  # too large for its licence, weights that it does not take
                    errors[name] = error
                    continue
                if found.status.optimal or now() >= deadline:
                    return found
            if len(errors) == len(race.ways):
                raise next(iter(errors.values()))
            times *= 2.0

    def _ask(self, race: Race, name: str, seconds: float, found: Solution, deadline: float) -> Solution:
        """Asks one solver for so many seconds, starting from what was found; returns the better of both."""
        seconds = max(0.0, min(seconds, deadline - now()))
        started = time.perf_counter()
        self.calls[name] += 1
        try:
            solved = solve_within(self._make(name), found.problem, seconds, found.values)
        except HastenError:
            race.exclude(name)
            raise
        race.took(name, time.perf_counter() - started, finished=solved.status.optimal)
        if solved.status.optimal or solved.cost < found.cost:
            return replace(solved, bound=min(max(solved.bound, found.bound), solved.cost))
        status = solved.status if found.values is None else Status.TIME_LIMIT
        return replace(found, status=status, bound=min(max(solved.bound, found.bound), found.cost))

    def _make(self, name: str) -> Solver:
        if name not in self._made:
            self._made[name] = make_solver(name, interruptible=self.interruptible)
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

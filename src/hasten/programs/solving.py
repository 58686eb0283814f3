"""The constraints of a program: what was recognised in them, what labels cost, and how problems with them are answered.

Answers are proved where that pays; elsewhere the solver is asked. It is given the program as it was stated, where it
takes one, and what was recognised elsewhere. Its answers are checked against both. Which way pays is learned
(`hasten.speedup.effort`). Programs with the same constraints share all of this: they are recognised by a digest.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import numpy as np

from hasten.errors import ProgramError, SolverWrong
from hasten.model.problem import Problem
from hasten.model.solution import Solution, Solutions, Source, Status
from hasten.model.structure import Structure
from hasten.programs.kinds import Kinds, build_structure
from hasten.programs.native import NATIVE, Native, Said, highs_is_elsewhere
from hasten.programs.networks import Network, as_network
from hasten.programs.objectives import CostMap
from hasten.programs.recognise import recognise
from hasten.programs.state import FirstLook, Recognised
from hasten.programs.statement import Statement
from hasten.proof.branch.certify import certify_ruled, certify_some
from hasten.proof.certifier import Certifier
from hasten.proof.outcome import OPEN
from hasten.solvers import OnProgress, Solver, make_solver
from hasten.solvers.base import LATE, OnError, answer
from hasten.solvers.objective import TINY
from hasten.solvers.portfolio import Race
from hasten.speedup.black_box import better, out_of_time, prove_or_solve, prove_or_solve_one, solve_one, unknown
from hasten.speedup.effort import AIDED, ALONE, TRIES, Effort, Schedule
from hasten.speedup.parts import Limits
from hasten.support.arrays import FloatArray, IntArray, sizes_of
from hasten.support.clock import NEVER, PATIENCE, Stop, now
from hasten.support.threads import Cache, Work

log = logging.getLogger(__name__)
WITHOUT_LIMIT = Certifier()
HEAD_START = 0.03  # seconds for a proof before HiGHS works beside it
COMPILING = 2.0  # seconds for HiGHS before a proof that has to be compiled first begins
_SHARED: dict[str, Solver] = {}  # by name, for all programs: some take long to load, and "auto" learns from all of them


def clock_for(solver: str | Solver) -> Callable[[], float]:
    """Returns the clock to time a solver with: processor time, which a busy machine disturbs less, if it works here."""
    here = solver == "gurobi" or (solver == "highs" and not highs_is_elsewhere())
    return time.process_time if here else time.perf_counter


class Asked(NamedTuple):
    """How a program is asked: the settings of `Program.solve`."""

    solver: str | Solver
    gap: float | None = None
    start: FloatArray | None = None
    on_better: Callable[[float, float], None] | None = None


class AskedSolver(NamedTuple):
    """How a solver is asked: by which name, with which program, and whether proofs before it pay, by a clock."""

    asked: str | Solver
    as_given: bool  # whether it is given the program as it is
    effort: Effort
    clock: Callable[[], float]
    gap: float = 0.0  # relative, at which it may stop
    start: FloatArray | None = None  # values to start from, nan where there are none


class Solving:
    """The constraints of a program, and everything that is made of them.

    `like` are others whose kinds to use, the first that suffice. `insists` is whether a user asked for the first.
    """

    def __init__(self, statement: Statement, like: Sequence[Solving] = (), insists: bool = False) -> None:
        self.statement, self._like, self._insists = statement, like, insists
        self._idle: dict[str, list[Native]] = {}  # programs as solvers hold them, which nobody uses now
        self._ways: dict[str, AskedSolver] = {}
        self._asked = False  # whom to ask first
        self.plain = not statement.tables and not len(statement.products.left)  # as solvers take programs

    @classmethod
    def of(cls, statement: Statement) -> Solving:
        """Returns everything that is made of constraints: known already, if they were seen before."""
        key = statement.digest()
        known = KNOWN.get(key)
        if known is None:
            known = cls(statement)
            KNOWN.put(key, known, 1 + len(statement.row_column) + statement.n_columns)
        return known

    @cached_property
    def network(self) -> Network | None:
        """The network that the program is, if it is one."""
        return as_network(self.statement)

    @cached_property
    def found(self) -> Recognised:
        """Everything that was recognised; `only_solver` says why that is not enough."""
        started = time.monotonic()
        found = recognise(self.statement)
        log.debug("Recognised %s in %.3f s.", self.statement.name or "a program", time.monotonic() - started)
        return found

    @cached_property
    def kinds(self) -> Kinds:
        """The kinds of variables and tables: of the program that it is `like`, or was before, if they suffice."""
        for other in self._like:
            if not other.found.only_solver and other.kinds.know(self.found.parts):
                return other.kinds
        if self._insists:
            log.warning("The other program lacks some kinds of this one: nothing learned carries over.")
        return Kinds([self.found.parts])

    def with_kinds(self, kinds: Kinds) -> Solving:
        """Returns the same constraints with kinds that know all parts of them."""
        other = Solving(self.statement)
        other.__dict__ |= {"found": self.found, "kinds": kinds}
        return other

    @cached_property
    def structure(self) -> Structure:
        """The variables, tables and rules that were recognised."""
        return build_structure(self.found, self.kinds)

    @cached_property
    def costs(self) -> CostMap:
        """The map from objectives to costs of labels."""
        return CostMap(self.found, self.structure)

    def first_time(self, solver: str | Solver) -> Race | None:
        """Returns what is faster on programs like this one that nobody has seen: HiGHS, or recognising them.

        None where this is not the first time, or where HiGHS would be no help.
        """
        asked, self._asked = self._asked, True
        if asked or "found" in vars(self) or solver != "highs":
            return None
        if not self.plain or highs_is_elsewhere():
            return None
        rows = self.statement
        shares = [(rows.row_low == rows.row_high).mean(), (sizes_of(rows.row_first) == 2).mean()] if rows.n_rows else []
        alike = len(rows.row_column).bit_length(), *(round(4 * float(share)) for share in shares)
        return FIRST_TIMES.setdefault(alike, Race((AIDED, ALONE), TRIES))

    def ask_native(self, solver: str, cost: FloatArray, *asked: Any) -> Said:
        """Asks a solver about the program as it is; another thread that asks meanwhile has a copy of its own.

        Tiny costs are measured in a tiny unit, a power of two: solvers have absolute tolerances.
        """
        largest = float(np.abs(cost).max(initial=0.0))
        unit = 2.0 ** math.floor(math.log2(largest)) if 0.0 < largest < TINY else 1.0
        idle = self._idle.setdefault(solver, [])
        try:
            native = idle.pop()
        except IndexError:
            native = NATIVE[solver](self.statement)
        said = native.solve(cost / unit, *asked)
        idle.append(native)
        return replace(said, bound=said.bound * unit)

    def way(self, solver: str | Solver) -> AskedSolver:
        """Returns how to ask a solver about the recognised program. Named solvers are cached."""
        way = self._ways.get(solver) if isinstance(solver, str) else None
        if way is None:
            asked, as_given = solver, isinstance(solver, str) and solver in NATIVE and self.plain
            if solver == "highs" and not as_given and highs_is_elsewhere():
                asked = "cpsat"
                log.warning(
                    "CP-SAT is asked instead of HiGHS where nothing is proved: HiGHS can neither share a process with "
                    'OR-Tools, which is loaded, nor take tables or products. Say solver="cpsat" to mean that.'
                )
            name = asked if isinstance(asked, str) else make_solver(asked).name
            way = AskedSolver(asked, as_given, Effort.of(self.structure.compiled, name), clock_for(asked))
            if isinstance(solver, str):
                self._ways[solver] = way
        return way

    def _solver(self, way: AskedSolver, objectives: FloatArray) -> Solver:
        """Returns a solver for problems; problem number `id` minimises the row `objectives[id]`."""
        if way.as_given:
            return _AsGiven(self, objectives, way)
        if not isinstance(way.asked, str):
            return make_solver(way.asked)
        if way.asked not in _SHARED:
            _SHARED[way.asked] = make_solver(way.asked)
        return _SHARED[way.asked]

    def prove_one(
        self,
        way: AskedSolver,
        seen: FirstLook,
        objective: FloatArray,
        seconds: float,
        on_better: Callable[[Solution], None] | None = None,
    ) -> Solution:
        """Proves a problem after a first look, or asks the solver, in limited time both.

        `on_better` is called with each better answer of ours in limited time.
        """
        deadline = math.inf if seconds == math.inf else now() + seconds
        certifier = WITHOUT_LIMIT if seconds == math.inf else Certifier(time_limit=seconds / 2, improve=False)
        races = way.as_given and way.asked == "highs" and not highs_is_elsewhere()

        def certify(problem: Problem) -> Solution:
            looked = seen.outcome == OPEN
            return certifier.after_looking(problem, seen.bound, seen.size) if looked else certifier(problem)

        def ask(found: Solution, patience: float, alone: bool) -> Solution:
            if races and not alone:
                return self._race(found, way, objective, deadline, on_better)
            asked = self._solver(way, objective[None])
            limits = min(patience, deadline - now()), math.inf
            on_error = OnError.KEEP if alone else OnError.RAISE
            return solve_one(found, lambda: asked, on_error, limits, not alone, way.clock, on_better)[0]

        problem = Problem(self.structure, seen.cost, None, self.structure.graph.table, 0)
        proves = way.effort.proves()
        if not proves and seconds < math.inf:  # the solver has all the time, and nothing is tried after it
            began = way.clock()
            answered = ask(unknown(problem), math.inf, True)
            if answered.status is not Status.FAILED:
                way.effort.answered(False, way.clock() - began)
                return answered
            way.effort.solver_failed()
            proves = True
        if races and seconds < math.inf:
            began = way.clock()
            answered = self._race(unknown(problem), way, objective, deadline, on_better, HEAD_START)
            way.effort.answered(True, way.clock() - began, 1, answered.source is Source.SOLVER)
            return answered
        return prove_or_solve_one(problem, certify, ask, way.effort, proves=proves, clock=way.clock)

    def _race(
        self,
        found: Solution,
        way: AskedSolver,
        objective: FloatArray,
        deadline: float,
        on_better: Callable[[Solution], None] | None,
        head_start: float = 0.0,
    ) -> Solution:
        """Goes on with a proof; after a head start HiGHS works beside it, as neither tells how long it takes.

        Where kernels are not compiled yet, it is HiGHS that begins.
        """
        ours, theirs, ended = Stop(), Stop(), SimpleQueue[Work[Solution]]()
        asked = _AsGiven(self, objective[None], way, theirs)

        def prove() -> Solution:
            certifier = Certifier(time_limit=max(0.0, deadline - now()))
            answers = certifier.improving(found.problem, None if found.values is None else found, ours)
            answers.on_better = on_better
            return answers.within(math.inf)

        proving = Work(prove, ended.put)
        asking = Work(lambda: better(found, asked, max(0.0, deadline - now())), ended.put)
        first, second = proving, asking
        drivers: tuple[Any, ...] = certify_some, certify_ruled
        if not any(driver.is_compiled for driver in drivers):  # that takes longer than HiGHS on many programs
            first, second, head_start = asking, proving, COMPILING
        try:
            first.begin()
            if not _ended_well(ended, now() + head_start):
                second.begin()
                while not _ended_well(ended, deadline + LATE) and not (
                    proving.ended.is_set() and asking.ended.is_set()
                ):
                    if now() >= deadline + LATE:
                        break
        finally:
            ours.set()
            theirs.set()
        for work in (proving, asking):
            if work.ended.is_set() and work.result.status.optimal:
                return work.result
        best = proving.result if proving.ended.wait(PATIENCE) else found
        said = asking.result if asking.ended.wait(PATIENCE) else out_of_time(best)
        bound = max(best.bound, said.bound)
        if best.cost < said.cost:
            said = replace(best, status=said.status if said.status is Status.WITHIN_GAP else Status.TIME_LIMIT)
        return replace(said, bound=min(bound, said.cost))

    def prove_many(
        self,
        way: AskedSolver,
        cost: FloatArray,
        objectives: FloatArray,
        limit: float | None,
        progress: OnProgress | None,
    ) -> Solutions:
        """Proves problems, given the costs of their labels, or asks the solver."""
        asked = self._solver(way, objectives)
        return prove_or_solve(
            self.structure.batch(cost),
            lambda: asked,
            limits=Limits(limit),
            progress=progress,
            on_error=OnError.RAISE,
            schedule=Schedule(self.structure, asked.name, limit is not None, way.clock),
        )[0]


FIRST_TIMES: dict[tuple[int, ...], Race] = {}  # by size, and how many rows are equations, or of two columns
KNOWN = Cache[bytes, Solving](5_000_000)  # by digest; weighed by terms


def _ended_well(ended: SimpleQueue[Work[Solution]], until: float) -> bool:
    """Waits for some work to end, until a time; whether that left nothing to find out."""
    try:
        return ended.get(timeout=None if until == math.inf else max(0.0, until - now())).result.status.optimal
    except Empty:
        return False


class _AsGiven:
    """A solver that is asked about a program as it was given."""

    def __init__(self, solving: Solving, objectives: FloatArray, way: AskedSolver, stop: Stop = NEVER) -> None:
        self.name, self._way, self._solving, self._stop = str(way.asked), way, solving, stop
        self.interruptible = True  # it keeps time limits
        self._objectives, self._space = objectives, solving.found.space

    def solve(self, problem: Problem, time_limit: float | None = None, start: IntArray | None = None) -> Solution:
        """Asks it, from its own last answer on. It was checked against the rows as they were given, which are all."""
        seconds, way = math.inf if time_limit is None else time_limit, self._way
        asked = self._objectives[problem.id], seconds, way.gap, way.start, self._stop
        said = self._solving.ask_native(self.name, *asked)
        if said.x is None:
            if said.status is Status.FAILED:
                raise ProgramError(said.reason)
            return answer(problem, said.status, bound=said.bound)
        labels = self._space.labels(said.x)
        if labels.min() < 0:
            raise SolverWrong(f"{self.name} returned values that no label stands for.")
        total = float(problem.cost[self._space.first[:-1] + labels].sum())
        bound = total if said.status is Status.SOLVED else min(said.bound, total)
        return Solution(problem, said.status, Source.SOLVER, labels, total, bound, True, len(labels))

"""The constraints of a program: the structure recognised in them, and how problems with them are answered.

Answers are proved where that pays; elsewhere the solver is asked. It is given the program as it was stated, where it
takes one, and what was recognised elsewhere. Its answers are checked against both. Which way pays is learned
(`hasten.speedup.effort`).
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

from hasten.errors import ProgramError, SolverWrong
from hasten.model.problem import Problem
from hasten.model.solution import Solution, Solutions, Source, Status
from hasten.model.structure import Structure
from hasten.programs.kinds import Kinds, build_structure
from hasten.programs.native import NATIVE, Native, highs_is_elsewhere
from hasten.programs.objectives import CostMap, FirstLook
from hasten.programs.recognise import recognise
from hasten.programs.state import Recognised
from hasten.programs.statement import Statement
from hasten.proof.certifier import Certifier
from hasten.proof.outcome import BOUND, OPEN, OUTCOME, PROVED
from hasten.solvers import Progress, Solver, make_solver
from hasten.solvers.base import answer
from hasten.solvers.failures import OnError
from hasten.speedup.black_box import prove_or_solve, prove_or_solve_one, solve_one, unknown
from hasten.speedup.effort import EFFORTS, Effort, Schedule
from hasten.speedup.parts import Limits
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.clock import now

log = logging.getLogger(__name__)
WITHOUT_LIMIT = Certifier()
FEW = 32  # objectives that are settled one by one: more are faster as a batch
_SHARED: dict[str, Solver] = {}  # by name, for all programs: some take long to load, and "auto" learns from all of them


def clock_for(solver: str | Solver) -> Callable[[], float]:
    """Returns the clock to time a solver with: processor time, which a busy machine disturbs less, if it works here."""
    here = solver == "gurobi" or (solver == "highs" and not highs_is_elsewhere())
    return time.process_time if here else time.perf_counter


class AskedSolver(NamedTuple):
    """How a solver is asked: by which name, with which program, and whether proofs before it pay, by a clock."""

    asked: str | Solver
    as_given: bool  # whether it is given the program as it is
    effort: Effort
    clock: Callable[[], float]
    gap: float = 0.0  # relative, at which it may stop
    start: FloatArray | None = None  # values to start from, nan where there are none


class Solving:
    """The constraints of a program, and everything that is made of them; other constraints take another one."""

    def __init__(self, statement: Statement, like: Solving | None = None, last: Solving | None = None) -> None:
        self.statement, self._like = statement, like
        self._last: Kinds | None = last.__dict__.get("kinds", last._last) if last else None
        self._natives: dict[str, Native] = {}
        self._ways: dict[str, AskedSolver] = {}

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
        known = [self._like.kinds] if self._like is not None else []
        known += [self._last] if self._last is not None else []
        for kinds in known:
            if kinds.know(self.found.parts):
                return kinds
        if self._like is not None:
            log.warning("The other program lacks some kinds of this one: nothing learned carries over.")
        return Kinds([self.found.parts])

    def use(self, kinds: Kinds) -> None:
        """Takes kinds that know all parts of this program, in place of its own."""
        for made in ("structure", "costs"):
            self.__dict__.pop(made, None)
        self.__dict__["kinds"] = kinds
        self._ways.clear()

    @cached_property
    def structure(self) -> Structure:
        """The variables, tables and rules that were recognised."""
        return build_structure(self.found, self.kinds)

    @cached_property
    def costs(self) -> CostMap:
        """The map from objectives to costs of labels."""
        return CostMap(self.found.space, self.found.base, self.found.constant, self.structure)

    def native(self, solver: str) -> Native:
        """Returns the program as a solver holds it."""
        if solver not in self._natives:
            self._natives[solver] = NATIVE[solver](self.statement)
        return self._natives[solver]

    def way(self, solver: str | Solver) -> AskedSolver:
        """Returns how to ask a solver about the recognised program. Named solvers are cached."""
        way = self._ways.get(solver) if isinstance(solver, str) else None
        if way is None:
            plain = not self.statement.tables and not len(self.statement.products.left)
            asked, as_given = solver, isinstance(solver, str) and solver in NATIVE and plain
            if solver == "highs" and not as_given and highs_is_elsewhere():
                asked = "cpsat"
                log.warning(
                    "CP-SAT is asked instead of HiGHS where nothing is proved: HiGHS can neither share a process with "
                    'OR-Tools, which is loaded, nor take tables or products. Say solver="cpsat" to mean that.'
                )
            name = asked if isinstance(asked, str) else make_solver(asked).name
            way = AskedSolver(asked, as_given, EFFORTS.of(self.structure.compiled, name), clock_for(asked))
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

    def prove_at_once(self, way: AskedSolver, seen: FirstLook) -> FirstLook:
        """Sweeps and branches at once after a first look, as long as no proof has failed or taken long."""
        if way.effort.compared or not seen.looked:
            return seen
        began = time.perf_counter()
        found = WITHOUT_LIMIT.settle(self.structure, seen.cost, seen.bound, seen.size)
        if found is None or found.facts.item(OUTCOME) == OPEN:
            return seen
        outcome = found.facts.item(OUTCOME)
        x = self.costs.values(found.labels, 1)[0] if outcome == PROVED else seen.x
        way.effort.answered(True, time.perf_counter() - began)
        return FirstLook(outcome, found.values.item(BOUND), seen.size, seen.cost, x)

    def prove_few(self, way: AskedSolver, seen: FirstLook) -> None:
        """Proves several objectives one by one where a first look left few open: a batch would take longer."""
        (left,) = (seen.outcome == OPEN).nonzero()
        for p in left.tolist() if left.size <= FEW else ():
            settled = self.prove_at_once(way, seen.one(p))
            if not settled.proved:  # those after it may well be like it
                return
            seen.outcome[p], seen.bound[p], seen.x[p] = settled.outcome, settled.bound, settled.x

    def prove_one(
        self,
        way: AskedSolver,
        seen: FirstLook,
        objective: FloatArray,
        seconds: float,
        tell: Callable[[Solution], None] | None = None,
    ) -> Solution:
        """Proves a problem in half of some seconds, after a first look, or shares the rest with the solver.

        `tell` is called with each better answer of ours in limited time.
        """
        deadline = math.inf if seconds == math.inf else now() + seconds
        certifier = WITHOUT_LIMIT if seconds == math.inf else Certifier(time_limit=seconds / 2, improve=False)

        def certify(problem: Problem) -> Solution:
            return certifier.after_looking(problem, seen.bound, seen.size) if seen.looked else certifier(problem)

        def ask(found: Solution, patience: float, alone: bool) -> Solution:
            asked = self._solver(way, objective[None])
            limits = min(patience, deadline - now()), math.inf
            on_error = OnError.KEEP if alone else OnError.RAISE
            return solve_one(found, lambda: asked, on_error, limits, not alone, way.clock, tell)[0]

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
        return prove_or_solve_one(problem, certify, ask, way.effort, proves=proves, clock=way.clock)

    def prove_many(
        self, way: AskedSolver, cost: FloatArray, objectives: FloatArray, limit: float | None, progress: Progress | None
    ) -> Solutions:
        """Proves problems, given the costs of their labels, or asks the solver."""
        asked = self._solver(way, objectives)
        return prove_or_solve(
            self.structure.batch(cost),
            lambda: asked,
            limits=Limits(limit),
            progress=progress,
            on_error=OnError.RAISE,
            schedule=Schedule(self.structure, asked, limit is not None, way.clock),
        )[0]


class _AsGiven:
    """A solver that is asked about a program as it was given."""

    def __init__(self, solving: Solving, objectives: FloatArray, way: AskedSolver) -> None:
        self.name, self._way = str(way.asked), way
        self.interruptible = True  # it keeps time limits
        self._native, self._objectives, self._space = solving.native(self.name), objectives, solving.found.space

    def solve(self, problem: Problem, time_limit: float | None = None, start: IntArray | None = None) -> Solution:
        """Asks it, from its own last answer on. It was checked against the rows as they were given, which are all."""
        seconds, way = math.inf if time_limit is None else time_limit, self._way
        said = self._native.solve(self._objectives[problem.id], seconds, way.gap, way.start)
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

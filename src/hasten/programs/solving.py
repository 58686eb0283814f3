"""How the answers to a program come about: proved where that pays, the solver's elsewhere.

The solver is given the program as it was stated, where it takes one, and what was recognised elsewhere. Whatever it
says is checked against both. Which way pays is learned (`hasten.speedup.efforts`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

from hasten.errors import HastenError, ProgramError, SolverWrong
from hasten.model.problem import Problem
from hasten.model.solution import Solution, Source, Status
from hasten.model.structure import Structure
from hasten.programs.costs import CostMap, Glance, Glances
from hasten.programs.labels import Space
from hasten.programs.native import NATIVE, Native, Said, highs_is_elsewhere, make_native
from hasten.programs.statement import Statement
from hasten.proof.certifier import Certifier
from hasten.proof.outcome import BOUND, OPEN, OUTCOME, PROVED
from hasten.solvers import Solver, make_solver
from hasten.solvers.base import answer
from hasten.solvers.failures import OnError
from hasten.speedup.black_box import prove_one, prove_or_solve_one, solve_one
from hasten.speedup.efforts import KNOWN, Efforts
from hasten.support.arrays import FloatArray, IntArray

WITHOUT_LIMIT = Certifier()
FEW = 32  # objectives that are settled one by one: more are faster as a batch
_SHARED: dict[str, Solver] = {}  # by name, for all programs: some take long to load, and "auto" learns from all of them


def clock_for(solver: str | Solver) -> Callable[[], float]:
    """Returns what to time a solver with: processor time, which a busy machine disturbs less, if it works here."""
    here = solver == "gurobi" or (solver == "highs" and not highs_is_elsewhere())
    return time.process_time if here else time.perf_counter


class Way(NamedTuple):
    """What a solver is to a program: who is asked, by its name, and what proofs before it are worth, by a clock."""

    asked: str | Solver
    as_given: bool  # whether it is given the program as it is
    structure: Structure
    efforts: Efforts
    clock: Callable[[], float]


class Solving:
    """Everything that is kept between calls: solvers with their models."""

    def __init__(self, statement: Statement) -> None:
        self.statement = statement
        self._natives: dict[str, Native] = {}
        self._ways: dict[str, Way] = {}

    def native(self, solver: str) -> Native:
        """Returns the program as a solver holds it."""
        if solver not in self._natives:
            self._natives[solver] = make_native(self.statement, solver)
        return self._natives[solver]

    def way(self, solver: str | Solver, structure: Structure) -> Way:
        """Returns what a solver is to what was recognised; one with a name is remembered."""
        way = self._ways.get(solver) if isinstance(solver, str) else None
        if way is None or way.structure is not structure:
            as_given = self.takes_as_given(solver)
            # where HiGHS cannot be loaded, nor given the program as it is, CP-SAT is asked instead
            asked = "cpsat" if solver == "highs" and not as_given and highs_is_elsewhere() else solver
            name = asked if isinstance(asked, str) else make_solver(asked).name
            way = Way(asked, as_given, structure, KNOWN.of(structure.compiled, name), clock_for(asked))
            if isinstance(solver, str):
                self._ways[solver] = way
        return way

    def solver_for(self, way: Way, costs: FloatArray, space: Space) -> Solver:
        """Returns a solver for problems; problem number `id` has the row `costs[id]` for its columns."""
        if way.as_given:
            return _AsGiven(self, costs, space, str(way.asked))
        if not isinstance(way.asked, str):
            return make_solver(way.asked)
        if way.asked not in _SHARED:
            _SHARED[way.asked] = make_solver(way.asked)
        return _SHARED[way.asked]

    def takes_as_given(self, solver: str | Solver) -> bool:
        """Whether a solver can be given the program as it is."""
        plain = not self.statement.tables and not len(self.statement.products.left)
        return isinstance(solver, str) and solver in NATIVE and plain

    def alone(self, way: Way, costs: FloatArray, seconds: float) -> Said | None:
        """Asks a solver at once about the program as it is; None where it failed, or took longer than proofs do."""
        efforts, native = way.efforts, self.native(str(way.asked))
        patience, began = efforts.patience if seconds == math.inf else math.inf, way.clock()
        try:
            said = native.solve(costs, min(seconds, patience))
        except HastenError:
            said = Said(Status.FAILED)
        if said.status is Status.FAILED:
            efforts.whole.disqualify()
            return None
        efforts.answered(False, way.clock() - began)
        return said if said.status.optimal or patience == math.inf else None

    def settle(self, way: Way, costs: CostMap, seen: Glance) -> Glance:
        """Sweeps and branches at once on what a glance left open, as long as no proof has failed or taken long."""
        if way.efforts.compared or not seen.looked:
            return seen
        began = time.perf_counter()
        found = WITHOUT_LIMIT.settle(way.structure, seen.cost, seen.bound, seen.size)
        if found is None or found.facts.item(OUTCOME) == OPEN:
            return seen
        outcome = found.facts.item(OUTCOME)
        x = costs.values(found.labels, 1)[0] if outcome == PROVED else seen.x
        way.efforts.answered(True, time.perf_counter() - began)
        return Glance(outcome, found.values.item(BOUND), seen.size, seen.cost, x)

    def settle_few(self, way: Way, costs: CostMap, seen: Glances) -> None:
        """Settles many objectives where a glance left few of them open: a batch takes as long as some of those."""
        (left,) = (seen.outcome == OPEN).nonzero()
        for p in left.tolist() if left.size <= FEW else ():
            settled = self.settle(way, costs, seen.one(p))
            if not settled.proved:  # those after it may well be like it
                return
            seen.outcome[p], seen.bound[p], seen.x[p] = settled.outcome, settled.bound, settled.x

    def prove(
        self, way: Way, problem: Problem, seen: Glance, costs: FloatArray, space: Space, seconds: float
    ) -> Solution:
        """Proves a problem, whose columns have some costs, in half of some seconds, or asks the solver in the rest."""
        deadline = math.inf if seconds == math.inf else time.monotonic() + seconds
        certifier = WITHOUT_LIMIT if seconds == math.inf else Certifier(time_limit=seconds / 2)

        def certify(problem: Problem) -> Solution:
            return certifier.after_looking(problem, seen.bound, seen.size) if seen.looked else certifier(problem)

        def ask(found: Solution, patience: float, alone: bool) -> Solution:
            asked = self.solver_for(way, costs[None], space)
            limits = min(patience, deadline - time.monotonic()), math.inf
            on_error = OnError.KEEP if alone else OnError.RAISE
            return solve_one(found, lambda: asked, on_error, limits, not alone, way.clock)[0]

        run = prove_one if way.as_given else prove_or_solve_one
        return run(problem, certify, ask, way.efforts, way.clock)


class _AsGiven:
    """A solver that is asked about a program as it was given."""

    def __init__(self, solving: Solving, costs: FloatArray, space: Space, name: str) -> None:
        self.name = name
        self.interruptible = True  # it keeps time limits
        self._solving, self._costs, self._space = solving, costs, space

    def solve(self, problem: Problem, time_limit: float | None = None, start: IntArray | None = None) -> Solution:
        """Asks it, from its own last answer on. It was checked against the rows as they were given, which are all."""
        seconds = math.inf if time_limit is None else time_limit
        said = self._solving.native(self.name).solve(self._costs[problem.id], seconds)
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

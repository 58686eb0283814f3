"""The peers: general solvers in their best usage, and hasten itself, as black boxes that answer problems.

A peer that is also one of `hasten.solvers` is used as such; the others have a class each here. All are given the same
strong formulation, reuse their models where their interface allows it, use one thread, and are asked for a gap of zero.
Packages are imported when a peer is made.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from time import thread_time
from typing import Any, Protocol

import numpy as np

from hasten.errors import SolverError, SolverMissing
from hasten.kernels.layout import Graph
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.solution import Solution, Solutions, Status
from hasten.proof.certifier import Certifier
from hasten.solvers import Solver, make_solver
from hasten.solvers.base import Asked, ModelSolver, Outcome
from hasten.solvers.failures import OnError
from hasten.solvers.formulation import Formulation, formulate
from hasten.solvers.highs_program import INFEASIBLE, OPTIMAL, QUIET, TIME, HighsProgram
from hasten.solvers.objective import Objective
from hasten.speedup.black_box import prove_or_solve, prove_or_solve_one, solve_one
from hasten.speedup.effort import EFFORTS
from hasten.support.environment import package_version


class Program:
    """A structure's integer program, in the strong formulation."""

    def __init__(self, graph: Graph) -> None:
        self.formulation: Formulation = formulate(graph)

    def chosen(self, status: Status | None, column: Any = None, cost: float = 0.0, said: object = "") -> Outcome:
        """Returns what a solver found: the labels whose columns are one, or why there are none."""
        if status is None:
            raise SolverError(f"The solver stopped early: {said}.")
        if status is not Status.SOLVED:
            return Outcome(status)
        labels = self.formulation.chosen(np.asarray(column), within=0.5)
        if labels is None:
            raise SolverError("The answer to an integer program is fractional.")
        return Outcome(Status.SOLVED, labels, cost)


class HighsDefaultModel(Program):
    """A structure's integer program; only costs and upper bounds change."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.program = HighsProgram(self.formulation.arrays(whole=True), QUIET)


class HighsDefaultSolver(ModelSolver[HighsDefaultModel]):
    """HiGHS with default options, one thread, and a gap of zero."""

    name = "highs default"

    def _build(self, graph: Graph, cuts: Sequence[Sequence[int]]) -> HighsDefaultModel:
        return HighsDefaultModel(graph)

    def _run(self, model: HighsDefaultModel, objective: Objective, asked: Asked) -> Outcome:
        cost, allowed = model.formulation.columns_of(objective)
        model.program.forget()
        said = model.program.run(cost, asked.deadline - time.monotonic(), allowed)
        statuses = {OPTIMAL: Status.SOLVED, INFEASIBLE: Status.INFEASIBLE, TIME: Status.NO_TIME}
        return model.chosen(statuses.get(said.word), said.x, said.value, said.word)


class ScipModel(Program):
    """A structure's integer program."""

    def __init__(self, graph: Graph) -> None:
        import pyscipopt

        super().__init__(graph)
        form = self.formulation
        program: Any = pyscipopt.Model()
        self.program = program
        program.hideOutput()
        off = pyscipopt.SCIP_PARAMSETTING.OFF
        program.setPresolve(off)
        program.setHeuristics(off)
        program.setSeparating(off)
        program.setParam("limits/gap", 0.0)
        program.setParam("misc/usesymmetry", 0)
        self.upper = ~form.dead
        self.columns = [
            program.addVar(vtype="B" if c < form.n_labels else "C", lb=0.0, ub=float(self.upper[c]))
            for c in range(form.n_columns)
        ]
        for r in range(form.n_rows):
            cells = slice(form.row_first[r], form.row_first[r + 1])
            row = pyscipopt.quicksum(
                weight * self.columns[c]
                for c, weight in zip(form.column[cells].tolist(), form.weight[cells].tolist(), strict=True)
            )
            low, high = float(form.low[r]), float(form.high[r])
            if low == high:
                program.addCons(row == low)
                continue
            if low > -math.inf:
                program.addCons(row >= low)
            if high < math.inf:
                program.addCons(row <= high)


class ScipSolver(ModelSolver[ScipModel]):
    """SCIP, with one thread and a gap of zero."""

    name = "scip"

    def _build(self, graph: Graph, cuts: Sequence[Sequence[int]]) -> ScipModel:
        return ScipModel(graph)

    def _run(self, model: ScipModel, objective: Objective, asked: Asked) -> Outcome:
        import pyscipopt

        form, program = model.formulation, model.program
        cost, allowed = model.formulation.columns_of(objective)
        program.freeTransform()
        for c in np.flatnonzero(allowed != model.upper):
            program.chgVarUb(model.columns[c], float(allowed[c]))
        model.upper = allowed
        sum_of_costs = pyscipopt.quicksum(
            value * column for value, column in zip(cost.tolist(), model.columns, strict=True)
        )
        program.setObjective(sum_of_costs, "minimize")
        limit = 1e20 if asked.deadline == math.inf else max(0.0, asked.deadline - time.monotonic())
        program.setParam("limits/time", limit)
        program.optimize()
        said = program.getStatus()
        statuses = {"optimal": Status.SOLVED, "infeasible": Status.INFEASIBLE, "timelimit": Status.NO_TIME}
        if statuses.get(said) is not Status.SOLVED:
            return model.chosen(statuses.get(said), said=said)
        best = program.getBestSol()
        return model.chosen(Status.SOLVED, [best[each] for each in model.columns[: form.n_labels]], program.getObjVal())


class ScipyModel(Program):
    """A structure's rows, as SciPy wants them."""

    def __init__(self, graph: Graph) -> None:
        from scipy.optimize import LinearConstraint
        from scipy.sparse import csr_array

        super().__init__(graph)
        form = self.formulation
        matrix = csr_array((form.weight, form.column, form.row_first), shape=(form.n_rows, form.n_columns))
        self.rows: Any = LinearConstraint(matrix, form.low, form.high)
        self.integrality = np.r_[np.ones(form.n_labels), np.zeros(form.n_columns - form.n_labels)]


class ScipySolver(ModelSolver[ScipyModel]):
    """SciPy's milp, with a gap of zero."""

    name = "scipy"

    def _build(self, graph: Graph, cuts: Sequence[Sequence[int]]) -> ScipyModel:
        return ScipyModel(graph)

    def _run(self, model: ScipyModel, objective: Objective, asked: Asked) -> Outcome:
        from scipy.optimize import Bounds, milp

        cost, allowed = model.formulation.columns_of(objective)
        options: dict[str, float] = {"mip_rel_gap": 0.0}
        if asked.deadline < math.inf:
            options["time_limit"] = max(0.0, asked.deadline - time.monotonic())
        bounds = Bounds(0, allowed.astype(float))
        said: Any = milp(cost, integrality=model.integrality, bounds=bounds, constraints=model.rows, options=options)
        statuses = {0: Status.SOLVED, 1: Status.NO_TIME, 2: Status.INFEASIBLE}
        return model.chosen(statuses.get(said.status), said.x, said.fun, said.message)


class Batched(Protocol):
    """A peer that answers many problems in one call."""

    def solve_all(self, batch: Batch) -> Solutions:
        """Answers problems."""
        ...


@dataclass(frozen=True, slots=True)
class Peer:
    """How to make a peer, given how many seconds it may take for a problem."""

    name: str
    about: str
    package: str | None  # what it imports, beyond hasten's own dependencies
    distribution: str | None  # what to install for that
    make: Callable[[float], Solver | Batched]

    @property
    def installed(self) -> bool:
        """Whether its package is there."""
        return self.package is None or find_spec(self.package) is not None

    @property
    def version(self) -> str | None:
        """The version of its package."""
        return package_version(self.distribution) if self.distribution else None

    def start(self, time_limit: float) -> Solver | Batched:
        """Makes the peer, or says what to install."""
        if not self.installed:
            raise SolverMissing(f"{self.name} needs the package {self.package}: pip install {self.distribution}")
        return self.make(time_limit)


class Alone:
    """hasten, a call for each problem: certified, and where that fails solved by HiGHS."""

    name = "hasten"

    def __init__(self, time_limit: float) -> None:
        self._certify = Certifier()
        self._solver = cache(partial(make_solver, "highs", time_limit=time_limit, interruptible=False))

    def solve(self, problem: Problem) -> Solution:
        """Answers a problem."""
        effort = EFFORTS.of(problem.structure.compiled, "highs")
        return prove_or_solve_one(problem, self._certify, self._ask, effort, proves=True)

    def _ask(self, found: Solution, seconds: float, alone: bool) -> Solution:
        return solve_one(found, self._solver, OnError.RAISE, (seconds, math.inf), harder=not alone)[0]


class Together(Alone):
    """hasten, one call for all problems: certified, and where that fails solved by HiGHS."""

    def solve_all(self, batch: Batch) -> Solutions:
        """Answers problems."""
        return prove_or_solve(batch, self._solver, on_error=OnError.RAISE)[0]


class Toulbar2:
    """toulbar2, which also tells the seconds spent in its own search, without what Python does around it."""

    name = "toulbar2"

    def __init__(self, time_limit: float) -> None:
        self._solver = make_solver("toulbar2", time_limit=time_limit, interruptible=False)
        self.inner = 0.0
        import pytoulbar2

        search = pytoulbar2.CFN.Solve

        def timed(*given: Any, **named: Any) -> Any:
            started = thread_time()
            try:
                return search(*given, **named)
            finally:
                self.inner += thread_time() - started

        pytoulbar2.CFN.Solve = timed

    def solve(self, problem: Problem) -> Solution:
        """Answers a problem."""
        return self._solver.solve(problem)


def _solver(name: str) -> Callable[[float], Solver]:
    return lambda time_limit: make_solver(name, time_limit=time_limit, interruptible=False)


_ALL = (
    Peer("hasten", "certified, a call for each problem", None, None, Alone),
    Peer("hasten batch", "certified, one call for all problems", None, None, Together),
    Peer("toulbar2", "made anew for each problem", "pytoulbar2", "pytoulbar2", Toulbar2),
    Peer("gurobi", "model reused", "gurobipy", "gurobipy", _solver("gurobi")),
    Peer("highs", "warm linear program first, model reused", "highspy", "highspy", _solver("highs")),
    Peer(
        "highs default",
        "its own defaults, model reused",
        "highspy",
        "highspy",
        partial(HighsDefaultSolver, interruptible=False),
    ),
    Peer(
        "scip",
        "model reused, presolving, heuristics and cuts off",
        "pyscipopt",
        "pyscipopt",
        partial(ScipSolver, interruptible=False),
    ),
    Peer("scipy", "milp, matrix reused", "scipy", "scipy", partial(ScipySolver, interruptible=False)),
    Peer("cpsat", "one worker, model reused", "ortools", "ortools", _solver("cpsat")),
)
PEERS: Mapping[str, Peer] = {peer.name: peer for peer in _ALL}
OWN = ("hasten", "hasten batch")

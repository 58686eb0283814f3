"""The peers: general solvers in their best usage, and hasten itself, as black boxes that answer problems.

A peer that is also one of `hasten.solvers` is used as such; SCIP and SciPy (HiGHS with its own defaults) have a class
each here. All are given the same strong formulation, reuse their models where their interface allows it, use one
thread, and are asked for a gap of zero. Packages are imported when a peer is made.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any, overload

import numpy as np

from hasten.errors import SolverError, SolverMissing
from hasten.kernels.layout import Graph
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.model.solution import Solution, Solutions, Status
from hasten.solvers import make_solver
from hasten.solvers.base import ModelSolver, Outcome
from hasten.solvers.formulation import Formulation, formulate
from hasten.solvers.objective import Objective
from hasten.speedup.predictor import Speedup
from hasten.support.arrays import BoolArray, FloatArray
from hasten.support.environment import package_version


class Program:
    """A structure's integer program, in the strong formulation."""

    def __init__(self, graph: Graph) -> None:
        self.formulation: Formulation = formulate(graph)
        self.first = graph.first

    def columns_of(self, objective: Objective) -> tuple[FloatArray, BoolArray]:
        """Returns the cost of each column, and which may be chosen."""
        form = self.formulation
        cost = np.concatenate([objective.label, objective.table[form.entry]])
        allowed = np.concatenate([objective.label_allowed, objective.table_allowed[form.entry]]) & ~form.dead
        return cost, allowed

    def chosen(self, status: Status | None, column: Any = None, cost: float = 0.0, said: object = "") -> Outcome:
        """Returns a solver's answer: the labels whose columns are one, or why there are none."""
        if status is None:
            raise SolverError(f"The solver stopped early: {said}.")
        if status is not Status.SOLVED:
            return Outcome(status)
        chosen = np.flatnonzero(np.asarray(column)[: self.first[-1]] > 0.5)
        if len(chosen) != len(self.first) - 1:
            raise SolverError("The answer to an integer program is fractional.")
        return Outcome(Status.SOLVED, chosen - self.first[:-1], cost)


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

    def _build(self, graph: Graph) -> ScipModel:
        return ScipModel(graph)

    def _run(self, model: ScipModel, problem: Problem, objective: Objective, deadline: float) -> Outcome:
        import pyscipopt

        form, program = model.formulation, model.program
        cost, allowed = model.columns_of(objective)
        program.freeTransform()
        for c in np.flatnonzero(allowed != model.upper):
            program.chgVarUb(model.columns[c], float(allowed[c]))
        model.upper = allowed
        weighted = (value * column for value, column in zip(cost.tolist(), model.columns, strict=True))
        program.setObjective(pyscipopt.quicksum(weighted), "minimize")
        program.setParam("limits/time", 1e20 if deadline == math.inf else max(0.0, deadline - time.monotonic()))
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

    def _build(self, graph: Graph) -> ScipyModel:
        return ScipyModel(graph)

    def _run(self, model: ScipyModel, problem: Problem, objective: Objective, deadline: float) -> Outcome:
        from scipy.optimize import Bounds, milp

        cost, allowed = model.columns_of(objective)
        options: dict[str, float] = {"mip_rel_gap": 0.0}
        if deadline < math.inf:
            options["time_limit"] = max(0.0, deadline - time.monotonic())
        bounds = Bounds(0, allowed.astype(float))
        said: Any = milp(cost, integrality=model.integrality, bounds=bounds, constraints=model.rows, options=options)
        statuses = {0: Status.SOLVED, 1: Status.NO_TIME, 2: Status.INFEASIBLE}
        return model.chosen(statuses.get(said.status), said.x, said.fun, said.message)


class Hasten:
    """hasten: certified, and where that fails solved by HiGHS. A `Speedup` for each schema."""

    def __init__(self, time_limit: float) -> None:
        self.options = {"time_limit": time_limit, "interruptible": False}
        self.known: dict[int, tuple[Schema, Speedup]] = {}

    @overload
    def solve(self, problems: Problem) -> Solution: ...
    @overload
    def solve(self, problems: Batch) -> Solutions: ...
    def solve(self, problems: Problem | Batch) -> Solution | Solutions:
        """Answers one problem, or many in one call."""
        schema = (problems.structure if isinstance(problems, Problem) else problems.structures[0]).schema
        if id(schema) not in self.known:
            speedup = Speedup(schema, solver="highs", solver_options=self.options, on_error="raise")
            self.known[id(schema)] = schema, speedup
        return self.known[id(schema)][1].predict(problems)


@dataclass(frozen=True, slots=True)
class Peer:
    """How to make a peer, given the seconds that it may take for a problem; the package and distribution it needs."""

    name: str
    about: str
    make: Callable[[float], Any]  # an object with `solve`
    package: str | None = None  # beyond hasten's own dependencies
    distribution: str | None = None
    batched: bool = False  # whether it answers many problems in one call

    @property
    def installed(self) -> bool:
        """Whether its package is there."""
        return self.package is None or find_spec(self.package) is not None

    @property
    def version(self) -> str | None:
        """The version of its package."""
        return package_version(self.distribution) if self.distribution else None

    def start(self, time_limit: float) -> Any:
        """Makes the peer, or says what to install."""
        if not self.installed:
            raise SolverMissing(f"{self.name} needs the package {self.package}: pip install {self.distribution}")
        return self.make(time_limit)


def _solver(name: str) -> Callable[[float], Any]:
    return lambda time_limit: make_solver(name, time_limit=time_limit, interruptible=False)


_ALL = (
    Peer("hasten", "certified, a call for each problem", Hasten),
    Peer("hasten batch", "certified, one call for all problems", Hasten, batched=True),
    Peer("toulbar2", "made anew for each problem", _solver("toulbar2"), "pytoulbar2", "pytoulbar2"),
    Peer("gurobi", "model reused", _solver("gurobi"), "gurobipy", "gurobipy"),
    Peer("highs", "warm linear program first, model reused", _solver("highs"), "highspy", "highspy"),
    Peer("scip", "model reused, presolving, heuristics and cuts off", partial(ScipSolver, interruptible=False),
         "pyscipopt", "pyscipopt"),
    Peer("scipy", "HiGHS with its defaults (milp), matrix reused", partial(ScipySolver, interruptible=False),
         "scipy", "scipy"),
    Peer("cpsat", "one worker, model reused", _solver("cpsat"), "ortools", "ortools"),
)  # fmt: skip
PEERS: Mapping[str, Peer] = {peer.name: peer for peer in _ALL}
OWN = ("hasten", "hasten batch")

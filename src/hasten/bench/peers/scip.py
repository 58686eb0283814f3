"""SCIP: one model per structure, of which only the objective changes; no presolving, heuristics or cuts.

The formulation is strong and the models are small, so that all three cost more than they save.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from hasten.bench.peers.highs_default import chosen_labels
from hasten.errors import SolverError
from hasten.kernels.layout import Graph
from hasten.model.problem import Problem
from hasten.model.solution import Status
from hasten.solvers.base import ModelSolver, Outcome
from hasten.solvers.formulation import Formulation, formulate
from hasten.solvers.objective import Objective


class ScipModel:
    """A structure's integer program."""

    def __init__(self, graph: Graph) -> None:
        import pyscipopt

        form: Formulation = formulate(graph)
        self.formulation = form
        self.first = graph.first
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
        cost = np.concatenate([objective.label, objective.table[form.entry]])
        allowed = np.concatenate([objective.label_allowed, objective.table_allowed[form.entry]]) & ~form.dead
        program.freeTransform()
        for c in np.flatnonzero(allowed != model.upper):
            program.chgVarUb(model.columns[c], float(allowed[c]))
        model.upper = allowed
        sum_of_costs = pyscipopt.quicksum(
            value * column for value, column in zip(cost.tolist(), model.columns, strict=True)
        )
        program.setObjective(sum_of_costs, "minimize")
        limit = 1e20 if deadline == math.inf else max(0.0, deadline - time.monotonic())
        program.setParam("limits/time", limit)
        program.optimize()
        said = program.getStatus()
        if said == "infeasible":
            return Outcome(Status.INFEASIBLE)
        if said == "timelimit":
            return Outcome(Status.NO_TIME)
        if said != "optimal":
            raise SolverError(f"SCIP stopped with status {said}.")
        best = program.getBestSol()
        z = np.array([best[column] for column in model.columns[: form.n_labels]])
        return Outcome(Status.SOLVED, chosen_labels(z, model.first), program.getObjVal())

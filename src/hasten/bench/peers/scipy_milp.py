"""`scipy.optimize.milp`: HiGHS inside SciPy, which keeps nothing between calls."""

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


class ScipyModel:
    """A structure's rows, as SciPy wants them."""

    def __init__(self, graph: Graph) -> None:
        from scipy.optimize import LinearConstraint
        from scipy.sparse import csr_array

        form: Formulation = formulate(graph)
        self.formulation = form
        self.first = graph.first
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

        form = model.formulation
        cost = np.concatenate([objective.label, objective.table[form.entry]])
        allowed = np.concatenate([objective.label_allowed, objective.table_allowed[form.entry]]) & ~form.dead
        options: dict[str, float] = {"mip_rel_gap": 0.0}
        if deadline < math.inf:
            options["time_limit"] = max(0.0, deadline - time.monotonic())
        bounds = Bounds(0, allowed.astype(float))
        said: Any = milp(cost, integrality=model.integrality, bounds=bounds, constraints=model.rows, options=options)
        if said.status == 2:
            return Outcome(Status.INFEASIBLE)
        if said.status == 1:
            return Outcome(Status.NO_TIME)
        if said.status != 0:
            raise SolverError(f"scipy.optimize.milp failed: {said.message}")
        return Outcome(Status.SOLVED, chosen_labels(said.x, model.first), float(said.fun))

"""CP-SAT of OR-Tools: the strong formulation over Boolean columns, with whole costs.

Costs are rounded to whole numbers (`Objective.rounded`): as fine as 2**-40 where their sum allows it.
OR-Tools cannot be loaded in a process that has loaded highspy, nor the other way round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hasten.errors import SolverError
from hasten.kernels.layout import Graph
from hasten.model.solution import Status
from hasten.solvers import load
from hasten.solvers.base import Asked, ModelSolver, Outcome
from hasten.solvers.formulation import formulate
from hasten.solvers.objective import Objective, check_precision
from hasten.support.clock import now


class CpSatModel:
    """A structure's program."""

    def __init__(self, graph: Graph, name: str) -> None:
        from ortools.sat.python import cp_model

        form = self.formulation = formulate(graph)
        self.program = cp_model.CpModel()
        columns = self.columns = [self.program.new_bool_var("") for _ in range(form.n_columns)]
        for c in np.flatnonzero(form.dead):
            self.program.add(columns[c] == 0)
        for r in range(form.n_rows):
            cells = slice(form.row_first[r], form.row_first[r + 1])
            chosen = [columns[c] for c in form.column[cells]]
            low, high, weights = float(form.low[r]), float(form.high[r]), form.weight[cells]
            if low == high == 1 and (weights == 1).all():
                self.program.add_exactly_one(chosen)
                continue
            limits = [limit for limit in (low, high) if math.isfinite(limit)]
            if any(number != round(number) for number in [*weights, *limits]):
                raise SolverError(
                    f"{name} needs rules with weights that are whole, or fractions with small denominators; "
                    f'got {weights.tolist()}. Use solver="highs".'
                )
            self.program.add_linear_constraint(
                cp_model.LinearExpr.weighted_sum(chosen, [int(weight) for weight in weights]),
                cp_model.INT_MIN if low == -math.inf else int(low),
                cp_model.INT_MAX if high == math.inf else int(high),
            )


class CpSatSolver(ModelSolver):
    """CP-SAT, with one worker."""

    name = "cpsat"
    range = 1e4

    def _build(self, graph: Graph, cuts: Sequence[Sequence[int]]) -> CpSatModel:
        load("cpsat")
        return CpSatModel(graph, self.name)

    def _check_native(self) -> None:
        load("cpsat")
        from ortools.sat.python import cp_model

        parameters = cp_model.CpSolver().parameters
        for option, value in self.native.items():
            try:
                setattr(parameters, option, value)
            except (AttributeError, TypeError) as error:
                raise self._unknown(f"{option}={value!r}", why=str(error).split(":")[0]) from None

    def _run(self, model: CpSatModel, objective: Objective, asked: Asked) -> Outcome:
        from ortools.sat.python import cp_model

        form, program, columns = model.formulation, model.program, model.columns
        whole = objective.rounded()
        forbidden = ~form.columns_of(objective)[1] & ~form.dead
        if forbidden.any():
            program = program.clone()
            columns = [program.get_bool_var_from_proto_index(column.index) for column in columns]
            for c in np.flatnonzero(forbidden):
                program.add(columns[c] == 0)
        costs = np.concatenate([whole.label, whole.table[form.entry]]).tolist()
        program.clear_objective()
        program.minimize(cp_model.LinearExpr.weighted_sum(columns, costs))
        program.clear_hints()
        if asked.start is not None:
            chosen = set((form.first[:-1] + asked.start).tolist())
            for label in range(form.n_labels):
                program.add_hint(columns[label], label in chosen)
        solver: Any = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.catch_sigint_signal = not self.interruptible  # its own handler is for one thread alone
        for option, value in self.native.items():
            setattr(solver.parameters, option, value)
        if asked.deadline < math.inf:
            solver.parameters.max_time_in_seconds = max(0.0, asked.deadline - now())
        if asked.stop.on_set(solver.stop_search):
            return Outcome(Status.NO_TIME, bound=0.0)
        said = solver.solve(program)
        if said == cp_model.INFEASIBLE:
            return Outcome(Status.INFEASIBLE)
        if said == cp_model.UNKNOWN and (asked.deadline < math.inf or asked.stop.is_set()):
            return Outcome(Status.NO_TIME, bound=0.0)
        if said not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            raise SolverError(f"CP-SAT stopped with status {solver.status_name(said)}.")
        labels = form.chosen([solver.value(column) for column in columns[: form.n_labels]])
        value = solver.objective_value / whole.scale
        bound = max(0.0, solver.best_objective_bound / whole.scale - whole.error)
        if said == cp_model.OPTIMAL:
            check_precision(self.name, whole, objective, value)
        return Outcome(Status.SOLVED if said == cp_model.OPTIMAL else Status.TIME_LIMIT, labels, value, bound)


SOLVER = CpSatSolver

"""toulbar2: a cost function network, made anew for each problem, since its models are used up by solving.

Costs are rounded to whole numbers (`hasten.solvers.whole`): as fine as 2**-40 where their sum allows it. Its
time limits are whole seconds, of processor time; a shorter one counts as one second. It keeps its state in
globals, so that only one problem is solved at a time in a process.
"""

from __future__ import annotations

import math
import threading
import time
from typing import Any

import numpy as np

from hasten.errors import SolverError
from hasten.graph import Graph
from hasten.problem import Problem
from hasten.solution import Status
from hasten.solvers import load
from hasten.solvers.base import ModelSolver, Outcome
from hasten.solvers.formulation import whole_row
from hasten.solvers.objective import Objective
from hasten.solvers.whole import Rounding, check_precision

_ONE_AT_A_TIME = threading.Lock()


class Toulbar2Model:
    """What is needed to make a structure's network again and again."""

    def __init__(self, graph: Graph, name: str) -> None:
        self.rounding = Rounding(graph)
        self.first = graph.first.tolist()
        self.tables: list[tuple[list[int], int]] = []  # scopes of two variables or more, and their tables
        for f in range(len(graph.table_at)):
            scope = graph.scope[graph.scope_first[f] : graph.scope_first[f + 1]].tolist()
            if graph.table_at[f] >= 0 and len(scope) > 1:
                self.tables.append((scope, int(graph.table_at[f])))
        self.rows: list[tuple[list[tuple[int, int, int]], float, float]] = []
        for r in range(len(graph.row_low)):
            cells = slice(graph.row_first[r], graph.row_first[r + 1])
            if cells.start == cells.stop:
                continue
            whole = whole_row(graph.row_weight[cells], float(graph.row_low[r]), float(graph.row_high[r]))
            if whole is None:
                raise SolverError(
                    f"{name} needs rules with weights that are whole, or fractions with small denominators; "
                    f'rule {r} has {graph.row_weight[cells].tolist()}. Use solver="highs".'
                )
            variables = graph.row_variable[cells]
            labels = graph.row_label[cells] - graph.first[variables]
            terms = list(zip(variables.tolist(), labels.tolist(), whole[0], strict=True))
            self.rows.append((terms, whole[1], whole[2]))


class Toulbar2Solver(ModelSolver[Toulbar2Model]):
    """toulbar2, with its own defaults."""

    name = "toulbar2"
    range = 1e4

    def __init__(self, time_limit: float | None = None, max_models: int = 64) -> None:
        super().__init__(time_limit, max_models)
        self._lock = _ONE_AT_A_TIME

    def _build(self, graph: Graph) -> Toulbar2Model:
        load("toulbar2")
        return Toulbar2Model(graph, self.name)

    def _run(self, model: Toulbar2Model, problem: Problem, objective: Objective, deadline: float) -> Outcome:
        import pytoulbar2

        whole = model.rounding.round(objective)
        label = np.where(objective.label_allowed, whole.label, np.inf).tolist()
        table = np.where(objective.table_allowed, whole.table, np.inf)
        tables = {at: table[at:end].tolist() for at, end, _ in model.rounding.tables}
        network = pytoulbar2.CFN(resolution=0, verbose=-1)
        try:
            for v, (start, end) in enumerate(zip(model.first, model.first[1:], strict=False)):
                network.AddVariable(f"v{v}", range(end - start))
                network.AddFunction([v], label[start:end])
            for scope, at in model.tables:
                network.AddFunction(scope, tables[at])
            for terms, low, high in model.rows:
                _add_row(network, terms, low, high)
            limit = 0 if deadline == math.inf else max(1, math.ceil(deadline - time.monotonic()))
            found = network.Solve(timeLimit=limit)
        except network.Contradiction:
            return Outcome(Status.INFEASIBLE)
        finally:
            network.CFN.timerStop()
        stopped = bool(network.Option.limited)
        bound = max(0.0, network.GetDDualBound() / whole.scale - whole.error) if stopped else 0.0
        if found is None:
            return Outcome(Status.NO_TIME if stopped else Status.INFEASIBLE, bound=bound)
        value = found[1] / whole.scale
        if not stopped:
            check_precision(self.name, whole, objective, value)
        labels = np.array(found[0], dtype=np.int64)
        return Outcome(Status.TIME_LIMIT if stopped else Status.SOLVED, labels, value, bound)


def _add_row(network: Any, terms: list[tuple[int, int, int]], low: float, high: float) -> None:
    if low == high:
        network.AddGeneralizedLinearConstraint(terms, "==", int(low))
        return
    if low > -math.inf:
        network.AddGeneralizedLinearConstraint(terms, ">=", int(low))
    if high < math.inf:
        network.AddGeneralizedLinearConstraint(terms, "<=", int(high))

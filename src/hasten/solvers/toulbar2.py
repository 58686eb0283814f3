"""toulbar2: a cost function network, made anew for each problem, since its models are used up by solving.

Costs are rounded to whole numbers (`hasten.solvers.whole`): as fine as 2**-40 where their sum allows it. Its
time limits are whole seconds, of processor time; a shorter one counts as one second. Its state is global, so
that only one problem is solved at a time in a process.

A rule becomes a chain of small tables over running sums, not one of toulbar2's own linear constraints:
version 1.4.0 gets about one in 300 of them wrong on small random problems (its bound exceeds the optimum).
"""

from __future__ import annotations

import math
import threading
import time
from itertools import pairwise

import numpy as np

from hasten.errors import SolverError
from hasten.graph import Graph
from hasten.problem import Problem
from hasten.schema import MAX_TABLE
from hasten.solution import Status
from hasten.solvers import load
from hasten.solvers.base import ModelSolver, Outcome
from hasten.solvers.formulation import whole_row
from hasten.solvers.objective import Objective
from hasten.solvers.whole import Rounding, check_precision

_ONE_AT_A_TIME = threading.Lock()
_THREAD = threading.local()

Step = tuple[list[list[int]], int]  # next[state][label], -1 where forbidden; the number of states after it


class Toulbar2Model:
    """What is needed to make a structure's network again and again."""

    def __init__(self, graph: Graph) -> None:
        self.rounding = Rounding(graph)
        self.first = graph.first.tolist()
        self.sizes = np.diff(graph.first).tolist()  # of the variables, and then of the running sums
        self.tables: list[tuple[list[int], int]] = []  # scopes of two variables or more, and their tables
        for f in range(len(graph.table_at)):
            scope = graph.scope[graph.scope_first[f] : graph.scope_first[f + 1]].tolist()
            if graph.table_at[f] >= 0 and len(scope) > 1:
                self.tables.append((scope, int(graph.table_at[f])))
        self.links: list[tuple[list[int], list[float]]] = []  # the tables of running sums
        for r in range(len(graph.row_low)):
            if graph.row_first[r] < graph.row_first[r + 1]:
                self._add_row(graph, r)

    def _add_row(self, graph: Graph, r: int) -> None:
        cells = slice(graph.row_first[r], graph.row_first[r + 1])
        whole = whole_row(graph.row_weight[cells], float(graph.row_low[r]), float(graph.row_high[r]))
        if whole is None:
            raise SolverError(
                "toulbar2 needs rules with weights that are whole, or fractions with small denominators; "
                f'rule {r} has {graph.row_weight[cells].tolist()}. Use solver="highs".'
            )
        weights: dict[int, list[int]] = {}
        for v, label, weight in zip(graph.row_variable[cells], graph.row_label[cells], whole[0], strict=True):
            weights.setdefault(int(v), [0] * self.sizes[v])[label - graph.first[v]] = weight
        before: int | None = None  # the running sum so far; none yet
        for v, (following, n_states) in zip(
            weights, running_sums(list(weights.values()), *whole[1:]), strict=False
        ):
            scope = [v] if before is None else [before, v]
            if n_states > 1:
                scope.append(len(self.sizes))
                self.sizes.append(n_states)
            table = np.full((len(following), self.sizes[v], n_states), math.inf)
            for state, row in enumerate(following):
                for label, after in enumerate(row):
                    if after >= 0:
                        table[state, label, after] = 0.0
            self.links.append((scope, table.ravel().tolist()))
            before = scope[-1] if n_states > 1 else None


class Toulbar2Solver(ModelSolver[Toulbar2Model]):
    """toulbar2, with its own defaults."""

    name = "toulbar2"
    range = 1e4

    def __init__(self, time_limit: float | None = None, max_models: int = 64) -> None:
        super().__init__(time_limit, max_models)
        self._lock = _ONE_AT_A_TIME

    def _build(self, graph: Graph) -> Toulbar2Model:
        load("toulbar2")
        return Toulbar2Model(graph)

    def _run(self, model: Toulbar2Model, problem: Problem, objective: Objective, deadline: float) -> Outcome:
        import pytoulbar2

        if not getattr(_THREAD, "ready", False):  # some of its global state is each thread's own
            pytoulbar2.pytb2.init()
            _THREAD.ready = True
        whole = model.rounding.round(objective)
        label = np.where(objective.label_allowed, whole.label, np.inf).tolist()
        table = np.where(objective.table_allowed, whole.table, np.inf)
        tables = {at: table[at:end].tolist() for at, end, _ in model.rounding.tables}
        network = pytoulbar2.CFN(resolution=0, verbose=-1)
        try:
            for v, size in enumerate(model.sizes):
                network.AddVariable(f"v{v}", range(size))
            for scope, at in model.tables:
                network.AddFunction(scope, tables[at])
            for scope, link in model.links:
                network.AddFunction(scope, link)
            for v, (start, end) in enumerate(pairwise(model.first)):
                network.AddFunction([v], label[start:end])
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
        labels = np.array(found[0][: problem.n_variables], dtype=np.int64)
        return Outcome(Status.TIME_LIMIT if stopped else Status.SOLVED, labels, value, bound)


def running_sums(weights: list[list[int]], low: float, high: float) -> list[Step]:
    """Returns a row as a chain of steps, a variable each, from one state to one state.

    States are the running sums that may still end between the limits; those that surely will are one. The
    chain is shorter than the row if its last variables do not matter.
    """
    least, most = sum(map(min, weights)), sum(map(max, weights))
    done = math.inf
    states, steps = [0.0], list[Step]()
    for own in weights:
        least, most = least - min(own), most - max(own)
        after: dict[float, int] = {}
        following = []
        for state in states:
            row = []
            for weight in own:
                total = state + weight
                if total < done and total + least >= low and total + most <= high:
                    total = done
                possible = total == done or (total + least <= high and total + most >= low)
                row.append(after.setdefault(total, len(after)) if possible else -1)
            following.append(row)
        if len(states) * len(own) * len(after) > MAX_TABLE:
            raise SolverError(
                f"toulbar2 would need {len(after):,} running sums for a rule with the weights {weights}. "
                'Use solver="highs".'
            )
        steps.append((following, max(1, len(after))))
        states = list(after)
        if states in ([], [done]):
            break
    return steps

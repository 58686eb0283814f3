"""toulbar2: a cost function network, made anew for each problem, since its models are used up by solving.

Costs are rounded to whole numbers. It works in a process of its own, which can be stopped; with `interruptible=False`
here, one problem at a time, limited by whole seconds of processor time. A rule becomes a chain of small tables over
running sums: version 1.4.0 gets one in 300 of its own linear constraints wrong (its bound exceeds the optimum).
"""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from weakref import finalize

import numpy as np

from hasten.errors import SolverError
from hasten.kernels.layout import Graph
from hasten.model.kinds import MAX_TABLE
from hasten.model.problem import Problem
from hasten.model.solution import Status
from hasten.solvers import load, network
from hasten.solvers.base import LEFT_BEHIND, Asked, ModelSolver, Outcome
from hasten.solvers.network import Found, Function, solve_network
from hasten.solvers.objective import Objective, check_precision
from hasten.solvers.rules import whole_row
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.child import Child
from hasten.support.clock import now

_ONE_AT_A_TIME = threading.Lock()

Step = tuple[list[list[int]], int]  # next[state][label], -1 where forbidden; the number of states after it


class Toulbar2Model:
    """The scopes and shapes of a structure's tables, from which its network is made again and again."""

    def __init__(self, graph: Graph) -> None:
        self.first = graph.first
        self.sizes: list[int] = np.diff(graph.first).tolist()  # of the variables, and then of the running sums
        self.tables: list[tuple[list[int], int]] = []  # scopes of two variables or more, and their tables
        for f in range(len(graph.table_at)):
            scope = graph.scope[graph.scope_first[f] : graph.scope_first[f + 1]].tolist()
            if graph.table_at[f] >= 0 and len(scope) > 1:
                self.tables.append((scope, int(graph.table_at[f])))
        self.links: list[tuple[list[int], FloatArray]] = []  # scopes and tables of running sums
        self._last: tuple[tuple[bytes, bytes] | None, list[IntArray] | None] = None, None
        for r in range(len(graph.row_low)):
            if graph.row_first[r] < graph.row_first[r + 1]:
                self._add_row(graph, r)

    def _add_row(self, graph: Graph, r: int) -> None:
        cells = slice(graph.row_first[r], graph.row_first[r + 1])
        whole = whole_row(graph.row_weight[cells], float(graph.row_least[r]), float(graph.row_most[r]))
        if whole is None:
            raise SolverError(
                "toulbar2 needs rules with weights that are whole, or fractions with small denominators; "
                f'rule {r} has {graph.row_weight[cells].tolist()}. Use solver="highs".'
            )
        weights: dict[int, list[int]] = {}
        for v, label, weight in zip(graph.row_variable[cells], graph.row_label[cells], whole[0], strict=True):
            weights.setdefault(int(v), [0] * self.sizes[v])[label - graph.first[v]] = weight
        steps = running_sums(list(weights.values()), *whole[1:])
        before = self._add_state(1)
        for v, (following, n_states) in zip(weights, steps, strict=False):
            table = np.full((len(following), self.sizes[v], n_states), math.inf)
            for state, row in enumerate(following):
                for label, after in enumerate(row):
                    if after >= 0:
                        table[state, label, after] = 0.0
            after_it = self._add_state(n_states)
            self.links.append(([before, v, after_it], table))
            before = after_it

    def _add_state(self, n_states: int) -> int:
        self.sizes.append(n_states)
        return len(self.sizes) - 1

    def shaped(self, table: FloatArray) -> list[tuple[list[int], FloatArray]]:
        """Returns every scope of two variables or more with its table, given the problem's tables."""
        found = []
        for scope, at in self.tables:
            shape = [self.sizes[v] for v in scope]
            found.append((scope, table[at : at + math.prod(shape)].reshape(shape)))
        return found + self.links

    def domains(self, objective: Objective, tables: list[tuple[list[int], FloatArray]]) -> list[IntArray] | None:
        """Returns the labels of each variable that every table supports; None if some variable has none."""
        key = objective.label_allowed.tobytes(), objective.table_allowed.tobytes()
        if key != self._last[0]:
            domains = [np.flatnonzero(part) for part in np.split(objective.label_allowed, self.first[1:-1])]
            domains += [np.arange(size) for size in self.sizes[len(domains) :]]
            self._last = key, domains if supported(domains, tables) else None
        return self._last[1]


class Toulbar2Solver(ModelSolver):
    """toulbar2, with its own defaults."""

    name = "toulbar2"
    range = 1e4

    _child: Child | None = None  # the process that solves networks

    def _make_lock(self) -> threading.Lock:
        return threading.Lock() if self.interruptible else _ONE_AT_A_TIME

    def _check_native(self) -> None:
        load("toulbar2")
        import pytoulbar2

        known = pytoulbar2.pytb2.option
        for option, value in self.native.items():
            if option.startswith("_") or not isinstance(getattr(known, option, None), bool | int | float | str):
                raise self._unknown(f"{option}={value!r}")

    def _forget(self, problem: Problem) -> None:
        super()._forget(problem)
        child, self._child = self._child, None
        if child is not None:
            child.end()

    def _network(self, unary: list[list[float]], functions: list[Function], asked: Asked) -> Found:
        """Solves a network, elsewhere or here."""
        if not self.interruptible:
            left = asked.deadline - now()
            limit = 0 if left == math.inf else max(1, math.ceil(left))
            return solve_network(unary, functions, self.native, limit)
        if self._child is None:
            self._child = Child(network.__file__)
            finalize(self, self._child.end)
        child = self._child
        if asked.stop.on_set(partial(child.signal, signal.SIGVTALRM)):
            return Found(None, stopped=True)
        said = child.ask([unary, functions, dict(self.native)])
        if said is None:
            if self._child is child:
                self._child = None
            raise SolverError('toulbar2 ended without an answer. Use solver="highs".')
        return Found(*said)

    def _renew_locks(self) -> None:
        """Takes a new lock, in a forked child, which all solvers in it share; leaves the parent its process."""
        global _ONE_AT_A_TIME
        if _ONE_AT_A_TIME.locked():
            _ONE_AT_A_TIME = threading.Lock()
        super()._renew_locks()
        if self._child is not None:
            LEFT_BEHIND.append(self._child)
            self._child = None

    def _build(self, graph: Graph, cuts: Sequence[Sequence[int]]) -> Toulbar2Model:
        load("toulbar2")
        return Toulbar2Model(graph)

    def _run(self, model: Toulbar2Model, objective: Objective, asked: Asked) -> Outcome:
        whole = objective.rounded()
        tables = model.shaped(np.where(objective.table_allowed, whole.table, np.inf))
        domains = model.domains(objective, tables)
        if domains is None:
            return Outcome(Status.INFEASIBLE)
        free = [v for v, domain in enumerate(domains) if len(domain) > 1]
        number = {v: n for n, v in enumerate(free)}
        costs = [whole.label[start:end].astype(float) for start, end in pairwise(model.first)]
        unary = [cost[domain] for cost, domain in zip(costs, domains, strict=False)]
        unary += [np.zeros(len(domain)) for domain in domains[len(unary) :]]
        constant = sum(float(unary[v][0]) for v in range(len(domains)) if len(domains[v]) == 1)
        functions = []
        for scope, table in tables:
            left = [v for v in scope if len(domains[v]) > 1]
            if len(left) < len(scope) or any(len(domains[v]) < model.sizes[v] for v in scope):
                table = table[np.ix_(*(domains[v] for v in scope))].reshape([len(domains[v]) for v in left])
            if not left:
                constant += float(table)
            elif len(left) == 1:
                unary[left[0]] = unary[left[0]] + table
            else:
                functions.append(([number[v] for v in left], table.ravel().tolist()))
        found = self._network([unary[v].tolist() for v in free], functions, asked) if free else Found([], 0.0)
        if found.labels is None:
            bound = max(0.0, (found.bound + constant) / whole.scale - whole.error)
            return Outcome(Status.NO_TIME if found.stopped else Status.INFEASIBLE, bound=bound)
        chosen = np.array([domain[0] for domain in domains], dtype=np.int64)
        chosen[free] = [domains[v][label] for v, label in zip(free, found.labels, strict=True)]
        value = (found.value + constant) / whole.scale
        bound = max(0.0, (found.bound + constant) / whole.scale - whole.error)
        if not found.stopped:
            check_precision(self.name, whole, objective, value)
        status = Status.TIME_LIMIT if found.stopped else Status.SOLVED
        return Outcome(status, chosen[: len(asked.problem.graph.order)], value, bound)


def supported(domains: list[IntArray], tables: list[tuple[list[int], FloatArray]]) -> bool:
    """Removes the labels that some table does not allow from the domains, in place; whether all have labels left.

    toulbar2 does this itself, but version 1.4.0 crashes or errs if a function that it is given rules out
    values at once.
    """
    waiting = dict.fromkeys(range(len(tables)))
    while waiting:
        scope, table = tables[waiting.popitem()[0]]
        allowed = table[np.ix_(*(domains[v] for v in scope))] < np.inf
        for axis, v in enumerate(scope):
            kept = allowed.any(axis=tuple(other for other in range(len(scope)) if other != axis))
            if not kept.all():
                domains[v] = domains[v][kept]
                waiting.update(dict.fromkeys(t for t, (others, _) in enumerate(tables) if v in others))
    return all(len(domain) for domain in domains)


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


SOLVER = Toulbar2Solver

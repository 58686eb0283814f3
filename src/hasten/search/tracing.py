"""Watching a search: its own kernels, uncompiled, and a recorder that writes down what they are called with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hasten.kernels.layout import Graph
from hasten.kernels.search import arcs, candidates, walk
from hasten.kernels.search.advance import DONE, choose, keep_best, settle
from hasten.kernels.search.ahead import look_ahead
from hasten.kernels.search.nodes import BITS, KNOWN, MASK, Scratch
from hasten.kernels.watching import Watcher
from hasten.model.problem import Labels, Problem
from hasten.model.solution import Solution
from hasten.search.recording import Draft, Recorder, check_work
from hasten.search.trace import Choice
from hasten.support.arrays import FloatArray, IntArray

BROKEN_RULE = "a rule can no longer hold"
NO_LABEL_LEFT = "it leaves a later variable without a label"
INFINITE = "its cost is infinite"


class BeamRecorder(Recorder):
    """Watches a beam search: both the general one and, with a beam of one, the walk."""

    def __init__(
        self,
        problem: Problem,
        names: Sequence[str] | None,
        reference: Labels | Solution | None,
        search: str,
        width: int,
        theta: float,
    ) -> None:
        super().__init__(problem, names, reference)
        check_work(problem, width)
        self.search, self.width, self.theta = search, width, theta
        self.late: list[int] = []  # computed for the last choice

    def watchers(self) -> Mapping[Any, Watcher]:
        """Returns who watches which kernel."""
        return {
            candidates.expand: self.expand,
            candidates.complete: self.complete,
            candidates.remove_by_rows: self.remove_by_rows,
            look_ahead: self.look_ahead,
            candidates.add_costs: self.add_costs,
            candidates.rank_by_priority: self.rank_by_priority,
            settle: self.settle,
            keep_best: self.keep_best,
            choose: self.choose,
            walk.expand_one: self.expand_one,
            walk.choose_one: self.choose_one,
            walk.assign_one: self.assign_one,
        }

    def begin(self, graph: Graph, t: int, n_nodes: int, labels: Any) -> Draft:
        """Starts a step; one that was blocked, and starts again, keeps what it computed."""
        before: list[int] = []
        if self.drafts and self.drafts[-1].t == t:
            before = self.drafts.pop().computed
        k = int(graph.order[t])
        n_labels = int(graph.first[k + 1] - graph.first[k])
        chosen = [[int(labels[b][v]) for v in graph.order[:t]] for b in range(n_nodes)]
        self.drafts.append(Draft(int(t), k, int(n_nodes), n_labels, chosen, computed=before))
        return self.drafts[-1]

    # -- the general search -------------------------------------------------------------------------------------

    def expand(self, call: Watcher, graph: Graph, *rest: Any) -> None:
        """A step begins: its candidates, without the costs of their labels."""
        *_, options, _, nodes, n_nodes, t, scratch = rest
        draft = self.begin(graph, t, n_nodes, nodes.labels)
        call(graph, *rest)
        n = n_nodes * draft.n_labels
        draft.heuristic, draft.look_ahead = scratch.h[:n].tolist(), scratch.rest[:n].tolist()
        allowed = [h for c, h in enumerate(draft.heuristic) if not scratch.out[c]]
        draft.gap = gap_of(allowed, options.width)

    def complete(self, call: Watcher, *args: Any) -> None:
        """A table that is complete may forbid candidates."""
        self._removing(call, args, args[-1].out, f"{self.factor(args[-2])} forbids it")

    def remove_by_rows(self, call: Watcher, *args: Any) -> None:
        """Rules may forbid candidates."""
        self._removing(call, args, args[-1], BROKEN_RULE)

    def look_ahead(self, call: Watcher, *args: Any) -> None:
        """Looking ahead may find that nothing follows."""
        self._removing(call, args, args[-1].out, NO_LABEL_LEFT)

    def add_costs(self, call: Watcher, graph: Graph, *args: Any) -> None:
        """The candidates have their path costs."""
        scratch: Scratch = args[-1]
        draft = self.drafts[-1]
        self._removing(call, (graph, *args), scratch.out, INFINITE)
        n = draft.n_nodes * draft.n_labels
        draft.path_cost = scratch.g[:n].tolist()
        draft.priority = draft.heuristic  # unless they are ranked by priority
        if self.theta == math.inf:  # all are computed beforehand
            draft.computed = [self.variables[draft.k]]

    def rank_by_priority(self, call: Watcher, *args: Any) -> Any:
        """The costs count."""
        draft = self.drafts[-1]
        draft.skipped = False
        sums = zip(draft.path_cost, draft.heuristic, draft.look_ahead, strict=True)
        draft.priority = [g + h + rest for g, h, rest in sums]
        return call(*args)

    def settle(self, call: Watcher, graph: Graph, *args: Any) -> Any:
        """Costs are computed: that of the step's own variable, and those that were put off."""
        known, t = args[2], args[5]
        before = known.copy()
        ready = call(graph, *args)
        computed = [self.variables[v] for v in range(known.size) if known[v] == KNOWN != before[v]]
        if t < graph.order.size:
            self.drafts[-1].computed += computed
        else:
            self.late += computed
        return ready

    def keep_best(self, call: Watcher, *args: Any) -> None:
        """The best candidates become the beam."""
        n_best, scratch, draft = args[6], args[8], self.drafts[-1]
        chosen = scratch.best[:n_best].tolist()
        draft.kept = [(name >> BITS) * draft.n_labels + (name & MASK) for name in chosen]
        call(*args)

    def choose(self, call: Watcher, graph: Graph, *args: Any) -> Any:
        """The answer is chosen among the last nodes."""
        options, nodes, n_nodes = args[1], args[4], args[5]
        before, h = nodes.labels[:n_nodes].copy(), nodes.h[:n_nodes].tolist()
        outcome = call(graph, *args)
        gap = gap_of(h, 1)
        if outcome == DONE:
            node = next(b for b in range(n_nodes) if (before[b] == nodes.labels[0]).all())
            skipped = options.theta == 0.0 or gap > options.theta
            self.choice = Choice(node, gap, skipped, tuple(self.names[v] for v in self.late))
        return outcome

    def _removing(self, call: Watcher, args: Sequence[Any], out: IntArray, why: str) -> None:
        draft = self.drafts[-1]
        before = out.copy()
        call(*args)
        for c in range(draft.n_nodes * draft.n_labels):
            if out[c] and (not before[c] or c not in draft.ruled_out):
                draft.ruled_out.setdefault(c, why)

    # -- the search with a beam of one --------------------------------------------------------------------------

    def expand_one(self, call: Watcher, graph: Graph, *args: Any) -> None:
        """A step begins: what the tables add, inf if they forbid a label, and the heuristic."""
        table, _, enforce, walker, t, _ = args
        labels, _, _, g, h = walker
        draft = self.begin(graph, t, 1, [labels])
        call(graph, *args)
        n = draft.n_labels
        draft.path_cost, draft.heuristic, draft.look_ahead = g[:n].tolist(), h[:n].tolist(), n * [0.0]
        draft.priority = draft.heuristic
        for i in range(n):
            if enforce and draft.path_cost[i] == math.inf:
                f = forbidding(graph, table, labels, t, i)
                draft.ruled_out.setdefault(i, BROKEN_RULE if f is None else f"{self.factor(f)} forbids it")
        draft.gap = gap_of([x for i, x in enumerate(draft.heuristic) if i not in draft.ruled_out], 1)

    def choose_one(self, call: Watcher, graph: Graph, *args: Any) -> Any:
        """The costs count."""
        cost, enforce, k, path, walker = args
        g, h = walker.g, walker.h
        draft, first = self.drafts[-1], int(graph.first[k])
        draft.skipped, draft.computed = False, [self.variables[k]]
        draft.path_cost = [float((g[i] + path) + cost[first + i]) for i in range(draft.n_labels)]
        draft.priority = [float(value + h[i]) for i, value in enumerate(draft.path_cost)]
        for i in range(draft.n_labels):
            if enforce and draft.priority[i] == math.inf:
                draft.ruled_out.setdefault(i, INFINITE)
        return call(graph, *args)

    def assign_one(self, call: Watcher, *args: Any) -> Any:
        """The label is chosen."""
        _, _, _, walker, _, chosen, path = args
        draft = self.drafts[-1]
        draft.kept = [int(chosen)]
        if draft.skipped:
            draft.path_cost = [float(walker.g[i] + path) for i in range(draft.n_labels)]
        return call(*args)


class ReducedRecorder(BeamRecorder):
    """Watches a beam search over what elimination leaves."""

    def __init__(
        self,
        problem: Problem,
        names: Sequence[str] | None,
        reference: Labels | Solution | None,
        search: str,
        width: int,
        kept: Sequence[int],
    ) -> None:
        super().__init__(problem, names, reference, search, width, math.inf)
        self.variables = list(kept)
        self.eliminated = tuple(v for v in range(len(problem.graph.order)) if v not in set(kept))

    def factor(self, f: int) -> str:
        """Elimination makes tables that have no names."""
        return "a table"


class ArcRecorder(Recorder):
    """Watches the search that keeps all arc consistent."""

    search = "Constrained search: each label the cheapest with which all constraints stay arc consistent"

    def __init__(self, problem: Problem, names: Sequence[str] | None, reference: Labels | Solution | None) -> None:
        super().__init__(problem, names, reference)
        self.path_cost = 0.0
        self.cost = problem.cost

    def watchers(self) -> Mapping[Any, Watcher]:
        """Returns who watches which kernel."""
        return {arcs.finite_tables: self.finite_tables, arcs.propagate: self.propagate, arcs.search: self.start}

    def start(self, call: Watcher, graph: Graph, cost: FloatArray, *args: Any) -> Any:
        """It begins."""
        self.cost = cost
        return call(graph, cost, *args)

    def finite_tables(self, call: Watcher, graph: Graph, table: FloatArray, t: int, labels: IntArray) -> Any:
        """A label that is left is looked at."""
        k = int(graph.order[t])
        first, n_labels = int(graph.first[k]), int(graph.first[k + 1] - graph.first[k])
        if not self.drafts or self.drafts[-1].t != t:
            chosen = [[int(labels[v]) for v in graph.order[:t]]]
            draft = Draft(t, k, 1, n_labels, chosen, skipped=False, computed=[k])
            draft.path_cost, draft.priority = n_labels * [math.inf], n_labels * [math.inf]
            draft.heuristic, draft.look_ahead = n_labels * [0.0], n_labels * [0.0]
            draft.ruled_out = dict.fromkeys(range(n_labels), "it no longer fits what was chosen before")
            self.drafts.append(draft)
        draft, i = self.drafts[-1], int(labels[k])
        added = call(graph, table, t, labels)
        draft.priority[i] = float(self.cost[first + i] + added)
        draft.path_cost[i] = self.path_cost + draft.priority[i]
        draft.ruled_out.pop(i, None)
        return added

    def propagate(self, call: Watcher, graph: Graph, table: FloatArray, alive: IntArray, k: int, *rest: Any) -> Any:
        """A choice has consequences; one that leaves a variable without a label is taken back."""
        if k < 0:
            return call(graph, table, alive, k, *rest)
        first, draft = int(graph.first[k]), self.drafts[-1]
        chosen = next(i for i in range(draft.n_labels) if alive[first + i])
        possible = call(graph, table, alive, k, *rest)
        if possible:
            draft.kept, self.path_cost = [chosen], draft.path_cost[chosen]
        else:
            draft.ruled_out[chosen] = "it would leave another variable without a label"
        return possible


def forbidding(graph: Graph, table: FloatArray, labels: IntArray, t: int, label: int) -> int | None:
    """Returns the first factor that step `t` completes and whose table forbids a label, if there is one."""
    k = graph.order[t]
    for f in graph.done[graph.done_first[t] : graph.done_first[t + 1]].tolist():
        if graph.table_at[f] < 0:
            continue
        slots = range(graph.scope_first[f], graph.scope_first[f + 1])
        at = sum(graph.stride[a] * (label if graph.scope[a] == k else labels[graph.scope[a]]) for a in slots)
        if table[graph.table_at[f] + at] == math.inf:
            return int(f)
    return None


def gap_of(heuristics: Sequence[float], width: int) -> float:
    """Returns the gap at the edge of a beam; infinite where it can hold all candidates."""
    if len(heuristics) <= width:
        return math.inf
    ranked = sorted(heuristics)
    return ranked[width] - ranked[width - 1]

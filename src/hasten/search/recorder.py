"""Recording a search: its own kernels run uncompiled, and a recorder logs what they are called with, step by step."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

from hasten.errors import ProblemError
from hasten.kernels.layout import Graph, Instance
from hasten.kernels.search import arcs, candidates, loop
from hasten.kernels.search.nodes import BITS, KNOWN, MASK, Beam
from hasten.kernels.watching import Watcher
from hasten.model.problem import Labels, Problem
from hasten.model.solution import Solution
from hasten.search.trace import Candidate, Choice, SearchStep, SearchTrace
from hasten.support.arrays import IntArray

MOST_WORK = 100_000_000  # some twenty seconds: see `work`
BROKEN_RULE = "a rule can no longer hold"
NO_LABEL_LEFT = "it leaves a later variable without a label"
INFINITE = "its cost is infinite"

Run = Callable[[], Any]  # runs the kernel that is watched


def work(problem: Problem, width: int) -> int:
    """Returns about how many numbers a search with a beam handles; uncompiled, 5 take a microsecond."""
    n_nodes, total = 1, 0
    sizes = [len(problem.structure.all_kinds[v]) for v in problem.graph.order.tolist()]
    for size in sizes:
        total += n_nodes * (size * (4 + min(width, n_nodes * size) // 2) + 2 * len(sizes))
        n_nodes = min(n_nodes * size, width)
    return total


def check_work(problem: Problem, width: int) -> None:
    """Refuses what would take minutes to watch."""
    if work(problem, width) > MOST_WORK:
        raise ProblemError(
            f"A search with a beam of {width:,} over {problem.n_variables:,} variables is too large to trace: its "
            "kernels run uncompiled. Trace it with a narrower beam, or a smaller problem."
        )


def check_reference(problem: Problem, reference: Labels | Solution | None) -> IntArray | None:
    """Returns a reference as label numbers."""
    if reference is None:
        return None
    return problem.values(reference.labels if isinstance(reference, Solution) else reference)


@dataclass
class Draft:
    """A step while it is being taken; a candidate's place in the lists is its node times the labels, plus its label."""

    t: int
    k: int  # the variable, as its graph numbers it
    n_nodes: int
    n_labels: int
    labels: list[list[int]]  # of each node, by step
    path_cost: list[float] = field(default_factory=list)
    heuristic: list[float] = field(default_factory=list)
    look_ahead: list[float] = field(default_factory=list)
    priority: list[float] = field(default_factory=list)
    ruled_out: dict[int, str] = field(default_factory=dict)
    gap: float | None = None
    skipped: bool = True
    computed: list[int] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)


class Recorder:
    """The log of a search; a subclass says which kernels it watches.

    A watcher is a method that gets the kernel, to be run by it, and the kernel's arguments by their names.
    """

    search, width, theta = "Search", 1, math.inf

    def __init__(self, problem: Problem, names: Sequence[str] | None, reference: Labels | Solution | None) -> None:
        self.problem = problem
        self.names = problem.variable_names(names)
        self.reference = check_reference(problem, reference)
        self.variables = list(range(len(problem.graph.order)))  # what the graph that is searched calls 0, 1, 2, …
        self.eliminated: tuple[int, ...] = ()
        self.drafts: list[Draft] = []
        self.choice: Choice | None = None

    def watched(self) -> Mapping[Any, Callable[[Run, Any], Any]]:
        """Returns the method that watches each kernel."""
        raise TypeError(f"{type(self).__name__} does not say what it watches. Define watched.")

    def watchers(self) -> Mapping[Any, Watcher]:
        """Returns who is called in place of each kernel."""
        return {kernel: partial(by_name, method) for kernel, method in self.watched().items()}

    def trace(self, solution: Solution) -> SearchTrace:
        """Returns the log as a value."""
        reference = None if self.reference is None else tuple(self.problem.names(self.reference))
        return SearchTrace(
            self.search,
            self.width,
            self.theta,
            self.names,
            reference,
            tuple(self.names[v] for v in self.eliminated),
            tuple(self._step(draft) for draft in self.drafts),
            self.choice,
            None if solution.values is None else tuple(self.problem.names(solution.values)),
            solution.cost,
            solution.valid,
            solution.status,
            solution,
        )

    def factor(self, f: int) -> str:
        """Returns what people call a factor of the graph that is searched."""
        return f"the table {self.problem.structure.factors[f].kind.name}"

    def _step(self, draft: Draft) -> SearchStep:
        variable = self.variables[draft.k]
        labels = self.problem.structure.all_kinds[variable].labels
        for c in draft.kept:  # ranked by the heuristic alone, before an infinite path cost was seen
            draft.ruled_out.pop(c, None)
        allowed = [c for c in range(len(draft.priority)) if c not in draft.ruled_out]
        ranks = {c: n for n, c in enumerate(sorted(allowed, key=lambda c: (draft.priority[c], c)), 1)}
        order = [*ranks, *sorted(draft.ruled_out)]
        found = tuple(
            Candidate(
                c // draft.n_labels,
                labels[c % draft.n_labels],
                draft.path_cost[c],
                draft.heuristic[c],
                draft.look_ahead[c],
                draft.priority[c],
                ranks.get(c),
                c in draft.kept,
                self._is_good(draft, c),
                draft.ruled_out.get(c, ""),
            )
            for c in order
        )
        computed = tuple(self.names[v] for v in draft.computed)
        return SearchStep(variable, self.names[variable], draft.n_nodes, found, draft.gap, draft.skipped, computed)

    def _is_good(self, draft: Draft, c: int) -> bool:
        if self.reference is None:
            return False
        chosen = [*draft.labels[c // draft.n_labels], c % draft.n_labels]
        steps = [*self.drafts[: draft.t], draft]
        return all(label == self.reference[self.variables[step.k]] for label, step in zip(chosen, steps, strict=True))


def by_name(method: Callable[[Run, Any], Any], kernel: Any, *args: Any) -> Any:
    """Calls a watcher with the arguments of a kernel by name."""
    names = kernel.__code__.co_varnames[: kernel.__code__.co_argcount]
    return method(partial(kernel, *args), SimpleNamespace(**dict(zip(names, args, strict=True))))


class BeamRecorder(Recorder):
    """Watches a beam search: its general steps, and the short ones of a beam of one."""

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

    def watched(self) -> Mapping[Any, Callable[[Run, Any], Any]]:
        """Returns the method that watches each kernel."""
        return {
            candidates.expand: self.expand,
            candidates.complete: self.complete,
            candidates.remove_by_rows: self.remove_by_rows,
            candidates.look_ahead: self.look_ahead,
            candidates.add_costs: self.add_costs,
            candidates.rank_by_priority: self.rank_by_priority,
            loop.settle: self.settle,
            loop.keep_best: self.keep_best,
            loop.choose: self.choose,
            loop.expand_one: self.expand_one,
            loop.choose_one: self.choose_one,
            loop.assign_one: self.assign_one,
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

    # -- the general step ---------------------------------------------------------------------------------------

    def expand(self, run: Run, called: Any) -> None:
        """A step begins: its candidates, without the costs of their labels."""
        scratch = called.beam.scratch
        draft = self.begin(called.instance.graph, called.t, called.n_nodes, called.beam.nodes.labels)
        run()
        n = called.n_nodes * draft.n_labels
        draft.heuristic, draft.look_ahead = scratch.h[:n].tolist(), scratch.rest[:n].tolist()
        allowed = [h for c, h in enumerate(draft.heuristic) if not scratch.out[c]]
        draft.gap = gap_of(allowed, called.options.width)

    def complete(self, run: Run, called: Any) -> None:
        """A table that is complete may forbid candidates."""
        self._removing(run, called.beam.scratch.out, f"{self.factor(called.f)} forbids it")

    def remove_by_rows(self, run: Run, called: Any) -> None:
        """Rules may forbid candidates."""
        self._removing(run, called.out, BROKEN_RULE)

    def look_ahead(self, run: Run, called: Any) -> None:
        """Looking ahead may find that nothing follows."""
        self._removing(run, called.beam.scratch.out, NO_LABEL_LEFT)

    def add_costs(self, run: Run, called: Any) -> None:
        """The candidates have their path costs."""
        scratch, draft = called.beam.scratch, self.drafts[-1]
        self._removing(run, scratch.out, INFINITE)
        draft.path_cost = scratch.g[: draft.n_nodes * draft.n_labels].tolist()
        draft.priority = draft.heuristic  # unless they are ranked by priority
        if self.theta == math.inf:  # all are computed beforehand
            draft.computed = [self.variables[draft.k]]

    def rank_by_priority(self, run: Run, called: Any) -> Any:
        """The costs count."""
        draft = self.drafts[-1]
        draft.skipped = False
        sums = zip(draft.path_cost, draft.heuristic, draft.look_ahead, strict=True)
        draft.priority = [g + h + rest for g, h, rest in sums]
        return run()

    def settle(self, run: Run, called: Any) -> Any:
        """Costs are computed: that of the step's own variable, and those that were put off."""
        known = called.beam.known
        before = known.copy()
        ready = run()
        computed = [self.variables[v] for v in range(known.size) if known[v] == KNOWN != before[v]]
        if called.t < called.instance.graph.order.size:
            self.drafts[-1].computed += computed
        else:
            self.late += computed
        return ready

    def keep_best(self, run: Run, called: Any) -> None:
        """The best candidates become the beam."""
        draft = self.drafts[-1]
        chosen = called.beam.scratch.best[: called.n_best].tolist()
        draft.kept = [(name >> BITS) * draft.n_labels + (name & MASK) for name in chosen]
        run()

    def choose(self, run: Run, called: Any) -> Any:
        """The answer is chosen among the last nodes."""
        nodes, n, theta = called.beam.nodes, called.n_nodes, called.options.theta
        before, gap = nodes.labels[:n].copy(), gap_of(nodes.h[:n].tolist(), 1)
        outcome = run()
        if outcome == loop.DONE:
            node = next(b for b in range(n) if (before[b] == nodes.labels[0]).all())
            computed = tuple(self.names[v] for v in self.late)
            self.choice = Choice(node, gap, theta == 0.0 or gap > theta, computed)
        return outcome

    def _removing(self, run: Run, out: IntArray, why: str) -> None:
        draft = self.drafts[-1]
        before = out.copy()
        run()
        for c in range(draft.n_nodes * draft.n_labels):
            if out[c] and (not before[c] or c not in draft.ruled_out):
                draft.ruled_out.setdefault(c, why)

    # -- the step of a beam of one ------------------------------------------------------------------------------

    def expand_one(self, run: Run, called: Any) -> None:
        """A step begins: what the tables add, inf if they forbid a label, and the heuristic."""
        beam: Beam = called.beam
        draft = self.begin(called.instance.graph, called.t, 1, beam.nodes.labels)
        run()
        n = draft.n_labels
        draft.path_cost, draft.heuristic = beam.scratch.g[:n].tolist(), beam.scratch.h[:n].tolist()
        draft.look_ahead, draft.priority = n * [0.0], draft.heuristic
        for i in range(n):
            if called.enforce and draft.path_cost[i] == math.inf:
                f = forbidding(called.instance, beam.nodes.labels[0], called.t, i)
                draft.ruled_out.setdefault(i, BROKEN_RULE if f is None else f"{self.factor(f)} forbids it")
        draft.gap = gap_of([x for i, x in enumerate(draft.heuristic) if i not in draft.ruled_out], 1)

    def choose_one(self, run: Run, called: Any) -> Any:
        """The costs count."""
        graph, cost, _ = called.instance
        g, h, path = called.beam.scratch.g, called.beam.scratch.h, called.path
        draft, first = self.drafts[-1], int(graph.first[called.k])
        draft.skipped, draft.computed = False, [self.variables[called.k]]
        draft.path_cost = [float((g[i] + path) + cost[first + i]) for i in range(draft.n_labels)]
        draft.priority = [float(value + h[i]) for i, value in enumerate(draft.path_cost)]
        for i in range(draft.n_labels):
            if called.enforce and draft.priority[i] == math.inf:
                draft.ruled_out.setdefault(i, INFINITE)
        return run()

    def assign_one(self, run: Run, called: Any) -> Any:
        """The label is chosen."""
        draft = self.drafts[-1]
        draft.kept = [int(called.chosen)]
        if draft.skipped:
            draft.path_cost = [float(called.beam.scratch.g[i] + called.path) for i in range(draft.n_labels)]
        return run()


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

    def watched(self) -> Mapping[Any, Callable[[Run, Any], Any]]:
        """Returns the method that watches each kernel."""
        return {arcs.finite_tables: self.finite_tables, arcs.propagate: self.propagate, arcs.search: self.start}

    def start(self, run: Run, called: Any) -> Any:
        """It begins."""
        self.cost = called.cost
        return run()

    def finite_tables(self, run: Run, called: Any) -> Any:
        """A label that is left is looked at."""
        graph, t, labels = called.graph, called.t, called.labels
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
        added = run()
        draft.priority[i] = float(self.cost[first + i] + added)
        draft.path_cost[i] = self.path_cost + draft.priority[i]
        draft.ruled_out.pop(i, None)
        return added

    def propagate(self, run: Run, called: Any) -> Any:
        """A choice has consequences; one that leaves a variable without a label is taken back."""
        k = called.changed
        if k < 0:
            return run()
        first, draft = int(called.graph.first[k]), self.drafts[-1]
        chosen = next(i for i in range(draft.n_labels) if called.alive[first + i])
        possible = run()
        if possible:
            draft.kept, self.path_cost = [chosen], draft.path_cost[chosen]
        else:
            draft.ruled_out[chosen] = "it would leave another variable without a label"
        return possible


def forbidding(instance: Instance, labels: IntArray, t: int, label: int) -> int | None:
    """Returns the first factor that step `t` completes and whose table forbids a label, if there is one."""
    graph, _, table = instance
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

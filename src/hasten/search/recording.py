"""Writing down a search: its steps while they are being taken, and the trace that is made of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hasten.errors import ProblemError
from hasten.kernels.watching import Watcher
from hasten.model.problem import Labels, Problem
from hasten.model.solution import Solution
from hasten.search.trace import Candidate, Choice, SearchStep, SearchTrace
from hasten.support.arrays import IntArray

MOST_WORK = 100_000_000  # some twenty seconds: see `work`


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
    """Writes down what a search does; a subclass says which kernels it watches."""

    search, width, theta = "Search", 1, math.inf

    def __init__(self, problem: Problem, names: Sequence[str] | None, reference: Labels | Solution | None) -> None:
        self.problem = problem
        self.names = problem.variable_names(names)
        self.reference = check_reference(problem, reference)
        self.variables = list(range(len(problem.graph.order)))  # what the graph that is searched calls 0, 1, 2, …
        self.eliminated: tuple[int, ...] = ()
        self.drafts: list[Draft] = []
        self.choice: Choice | None = None

    def watchers(self) -> Mapping[Any, Watcher]:
        """Returns who watches which kernel."""
        raise TypeError(f"{type(self).__name__} does not say what it watches. Define watchers.")

    def trace(self, solution: Solution) -> SearchTrace:
        """Returns what was written down."""
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

"""Recording: a recorder watches kernels, and writes their steps down in the words of the problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from hasten.jit.watching import Call, Watcher, watching
from hasten.model.problem import Problem
from hasten.model.solution import Solution
from hasten.trace.events import Event, Trace

__all__ = ["Call", "Recorder", "Watcher"]


class Recorder:
    """A log in the making, of one problem; a subclass says which kernels it watches, each by a method of its own."""

    def __init__(self, problem: Problem, names: Sequence[str] | None) -> None:
        self.problem = problem
        self.names = problem.variable_names(names)
        self.variables = list(range(len(problem.graph.order)))  # of the graph at hand, as the problem numbers them
        self.eliminated: tuple[str, ...] = ()

    def watchers(self) -> Mapping[Any, Watcher]:
        """Returns the method that is called in place of each kernel."""
        raise TypeError(f"{type(self).__name__} does not say what it watches. Define watchers.")

    def watching(self) -> AbstractContextManager[None]:
        """Watches the kernels that run within."""
        return watching(self.watchers())

    def keep_only(self, variables: Sequence[int]) -> None:
        """Says which variables the graph at hand has; the others were minimised out."""
        self.variables = list(variables)
        self.eliminated = tuple(name for v, name in enumerate(self.names) if v not in set(variables))

    def name(self, v: int) -> str:
        """Returns the name of a variable of the graph at hand."""
        return self.names[self.variables[v]]

    def labels(self, v: int) -> tuple[str, ...]:
        """Returns the labels of a variable of the graph at hand."""
        return self.problem.structure.all_kinds[self.variables[v]].labels

    def ended(
        self, title: str, explained: Sequence[str], steps: Sequence[Event], solution: Solution, **more: Any
    ) -> Trace[Event]:
        """Returns the log as a value."""
        labels = None if solution.values is None else tuple(self.problem.names(solution.values))
        return Trace(
            title=title,
            explained=tuple(explained),
            names=self.names,
            eliminated=self.eliminated,
            steps=tuple(steps),
            labels=labels,
            cost=solution.cost,
            bound=solution.bound,
            valid=solution.valid,
            status=solution.status,
            solution=solution,
            **more,
        )

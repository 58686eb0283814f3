"""The base of all searches: one signature, for a problem as for a batch, and one way to trace them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import overload

import numpy as np

from hasten.errors import ProblemError
from hasten.kernels.search.nodes import Found
from hasten.model.batch import Batch, as_batch
from hasten.model.problem import Labels, Problem, check_one
from hasten.model.solution import Solution, Solutions
from hasten.search.recorder import SearchRecorder
from hasten.support.arrays import IntArray
from hasten.support.parallel import in_parallel
from hasten.trace.events import Trace

FEW = 200_000  # candidates, of all problems together, that are tried soon enough
SPEED = 3e-8  # seconds that a candidate takes at most, most of the time, and as many again for each rule

Driver = Callable[[IntArray, Found], None]  # searches some problems of a batch, by their numbers


class Searcher:
    """A search: called with a problem it returns a `Solution`, with a batch `Solutions`."""

    width: int = 1

    @overload
    def __call__(self, problems: Problem, *, n_jobs: int = 1) -> Solution: ...
    @overload
    def __call__(self, problems: Batch | Iterable[Problem], *, n_jobs: int = 1) -> Solutions: ...
    def __call__(self, problems: Problem | Batch | Iterable[Problem], *, n_jobs: int = 1) -> Solution | Solutions:
        """Searches; `n_jobs` threads share a batch, with the same answers whatever their number."""
        batch = as_batch(problems)
        found = self._search(batch, n_jobs)
        return found.only(problems) if isinstance(problems, Problem) else found

    def trace(
        self, problem: Problem, reference: Labels | Solution | None = None, *, names: Sequence[str] | None = None
    ) -> Trace:
        """Searches slowly and returns a log of its steps: a value that prints, draws itself, and is plain data.

        Given a `reference`, a labelling or an answer, it tells where the search lost it. `names` are those of
        the variables, one for each.
        """
        check_one(problem)
        recorder = self._recorder(problem, names, reference)
        with recorder.watching():
            found = self._search(as_batch(problem), 1)
        return recorder.trace(found.only(problem))

    def _search(self, batch: Batch, n_jobs: int) -> Solutions:
        """Searches a batch, all of its costs computed."""
        batch = batch.resolved()
        labels, done = np.empty(batch.variable_at[-1], dtype=np.int64), np.empty(len(batch), dtype=bool)
        found, driver = Found(labels, done, batch.n_variables.copy()), self._driver(batch)

        def run(start: int, stop: int) -> None:
            driver(batch.order[start:stop], found)

        in_parallel(run, len(batch), n_jobs, seconds_each(batch, self.width))
        return Solutions.scored(batch, *found)

    def _driver(self, batch: Batch) -> Driver:
        """Returns the driver that searches some problems of a batch."""
        raise TypeError(f"{type(self).__name__} does not say how it searches. Define _driver.")

    def _recorder(
        self, problem: Problem, names: Sequence[str] | None, reference: Labels | Solution | None
    ) -> SearchRecorder:
        """Returns the recorder that watches a search."""
        raise ProblemError(f"A {type(self).__name__} cannot be traced.")


def seconds_each(batch: Batch, width: int) -> float:
    """Returns how long a search that keeps `width` nodes may take for a problem: each node tries each label."""
    if width * batch.cost.size <= FEW:
        return 0.0
    graphs = [structure.graph for structure in batch.structures]
    return SPEED * width * max((graph.first[-1] * (1 + len(graph.row_low)) for graph in graphs), default=0)

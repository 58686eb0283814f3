"""What the searches share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import overload

from hasten.kernels.watching import Opener, compiled, uncompiled
from hasten.model.batch import Batch, as_batch
from hasten.model.problem import Labels, Problem, check_one
from hasten.model.solution import Solution, Solutions
from hasten.search.recorder import Recorder
from hasten.search.trace import SearchTrace

FEW = 200_000  # candidates, of all problems together, that are tried soon enough
SPEED = 3e-8  # seconds that a candidate takes at most, most of the time, and as many again for each rule


def seconds_each(batch: Batch, width: int) -> float:
    """Returns how long a search that keeps `width` nodes may take for a problem: each node tries each label.

    That is 0 where all of them are short.
    """
    if width * batch.cost.size <= FEW:
        return 0.0
    graphs = [structure.graph for structure in batch.structures]
    return SPEED * width * max((graph.first[-1] * (1 + len(graph.row_low)) for graph in graphs), default=0)


class Searcher:
    """What the searches share: called with a problem they return a `Solution`, with a batch `Solutions`."""

    @overload
    def __call__(self, problems: Problem, *, n_jobs: int = 1) -> Solution: ...
    @overload
    def __call__(self, problems: Batch | Iterable[Problem], *, n_jobs: int = 1) -> Solutions: ...
    def __call__(self, problems: Problem | Batch | Iterable[Problem], *, n_jobs: int = 1) -> Solution | Solutions:
        """Searches; `n_jobs` threads share a batch, with the same answers whatever their number."""
        batch = as_batch(problems)
        found = self._search(batch, n_jobs)
        return found.only(problems) if isinstance(problems, Problem) else found

    def _search(self, batch: Batch, n_jobs: int) -> Solutions:
        raise TypeError(f"{type(self).__name__} does not say how it searches. Define _search.")


class TracedSearcher(Searcher):
    """A search that can be watched step by step: `opened` runs its kernels, compiled or not."""

    def trace(
        self,
        problem: Problem,
        reference: Labels | Solution | None = None,
        *,
        names: Sequence[str] | None = None,
    ) -> SearchTrace:
        """Searches slowly and returns what it did, step by step: a value that prints, draws itself, and is plain data.

        Given a `reference`, a labelling or an answer, it tells where the search lost it. `names` are what people call
        the variables, one for each.
        """
        check_one(problem)
        recorder = self._recorder(problem, names, reference)
        found = self._search(as_batch(problem), 1, partial(uncompiled, watchers=recorder.watchers()))
        return recorder.trace(found.only(problem))

    def _search(self, batch: Batch, n_jobs: int, opened: Opener = compiled) -> Solutions:
        raise TypeError(f"{type(self).__name__} does not say how it searches. Define _search.")

    def _recorder(self, problem: Problem, names: Sequence[str] | None, reference: Labels | Solution | None) -> Recorder:
        raise TypeError(f"{type(self).__name__} does not say how it is watched. Define _recorder.")

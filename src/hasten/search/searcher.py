"""What the searches share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import overload

from hasten.model.batch import Batch, as_batch
from hasten.model.problem import Problem
from hasten.model.solution import Solution, Solutions


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

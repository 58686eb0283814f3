"""Greedy search that keeps the constraints arc consistent (the paper's §5.1 baseline)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hasten.kernels.search import arcs
from hasten.kernels.watching import Opener, compiled
from hasten.model.batch import Batch
from hasten.model.problem import Labels, Problem
from hasten.model.solution import Solution, Solutions
from hasten.search.recorder import ArcRecorder
from hasten.search.searcher import TracedSearcher
from hasten.support.parallel import in_parallel


@dataclass(frozen=True, slots=True)
class ConstrainedSearch(TracedSearcher):
    """Greedy search that keeps the constraints arc consistent after each assignment (the paper's §5.1 baseline).

    Labels without support leave the domains; a label whose choice would empty some domain is passed over; where
    no label is left the search is at a dead end, and says so.
    """

    def _search(self, batch: Batch, n_jobs: int, opened: Opener = compiled) -> Solutions:
        batch, search_some = batch.resolved(), opened(arcs.search_some)
        labels = np.empty(batch.variable_at[-1], dtype=np.int64)
        done = np.empty(len(batch), dtype=bool)

        def run(start: int, stop: int) -> None:
            search_some(batch.arrays, batch.order[start:stop], labels, done)

        in_parallel(run, len(batch), n_jobs)
        return Solutions.scored(batch, labels, done)

    def _recorder(
        self, problem: Problem, names: Sequence[str] | None, reference: Labels | Solution | None
    ) -> ArcRecorder:
        return ArcRecorder(problem, names, reference)

"""Greedy search that keeps the constraints arc consistent (the paper's §5.1 baseline)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from hasten.kernels.search import arcs
from hasten.model.batch import Batch
from hasten.model.problem import Labels, Problem
from hasten.model.solution import Solution
from hasten.search.recorder import ArcRecorder
from hasten.search.searcher import Driver, Searcher


@dataclass(frozen=True, slots=True)
class ConstrainedSearch(Searcher):
    """Greedy search that keeps the constraints arc consistent after each assignment (the paper's §5.1 baseline).

    Labels without support leave the domains; a label whose choice would empty some domain is passed over; where
    no label is left the search is at a dead end, and says so.
    """

    def _driver(self, batch: Batch) -> Driver:
        return partial(arcs.search_some, batch.arrays)

    def _recorder(
        self, problem: Problem, names: Sequence[str] | None, reference: Labels | Solution | None
    ) -> ArcRecorder:
        how = "Constrained search: each label the cheapest with which all constraints stay arc consistent"
        return ArcRecorder(problem, names, reference, how)

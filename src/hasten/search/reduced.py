"""Beam search over what exact elimination leaves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hasten.kernels import search as beam
from hasten.kernels.watching import Opener, compiled
from hasten.model.batch import Batch
from hasten.model.problem import Labels, Problem
from hasten.model.solution import Solution, Solutions
from hasten.proof.elimination.plan import addresses, reduce
from hasten.search.recorder import ReducedRecorder
from hasten.search.searcher import TracedSearcher, seconds_each
from hasten.support.checks import check_width
from hasten.support.parallel import in_parallel


@dataclass(frozen=True, slots=True)
class ReducedSearch(TracedSearcher):
    """Beam search, with look-ahead, over what exact elimination leaves (`hasten.proof.elimination.plan`).

    Eliminating a variable puts into its neighbours' tables what it will cost at best, so that a beam of one or
    two sees far. Where elimination leaves nothing the answer is exact. Needs all costs, and no learning.

    width
        Nodes kept at each step, from 1 to 65,536. 2 by default, as `Speedup` has it.
    look_ahead
        Whether to add the least that unassigned variables must still cost. On by default: it needs no
        learning, and few variables are left to look at.
    max_join
        The most sums that eliminating one variable may take, as in `Certifier`. 0 eliminates nothing; None, the
        default, what is cheaper to eliminate than to leave.
    """

    width: int = 2
    look_ahead: bool = True
    max_join: int | None = None

    def __post_init__(self) -> None:
        check_width(self.width)

    def _search(self, batch: Batch, n_jobs: int, opened: Opener = compiled) -> Solutions:
        batch, search_some = batch.resolved(), opened(beam.search_reduced)
        labels = np.empty(batch.variable_at[-1], dtype=np.int64)
        done = np.empty(len(batch), dtype=bool)
        options = beam.Options(int(self.width), math.inf, math.inf, True, bool(self.look_ahead))
        left = addresses(batch.structures, self.max_join)[batch.structure[batch.order]]

        def run(start: int, stop: int) -> None:
            problems = batch.order[start:stop]
            search_some(batch.arrays, left[start:stop], options, problems, labels, done)

        in_parallel(run, len(batch), n_jobs, seconds_each(batch, self.width) if opened is compiled else 0.0)
        return Solutions.scored(batch, labels, done)

    def _recorder(
        self, problem: Problem, names: Sequence[str] | None, reference: Labels | Solution | None
    ) -> ReducedRecorder:
        said = f"Beam search with a beam of {self.width:,} over what elimination leaves"
        said += ", look-ahead" if self.look_ahead else ""
        kept = reduce(problem.structure.compiled, self.max_join).plan.keep.tolist()
        return ReducedRecorder(problem, names, reference, said, self.width, kept)

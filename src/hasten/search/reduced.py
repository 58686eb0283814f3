"""Beam search over the variables that exact elimination leaves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from hasten.kernels import search as beam
from hasten.model.batch import Batch
from hasten.model.problem import Labels, Problem
from hasten.model.solution import Solution
from hasten.proof.elimination.plan import addresses, reduce
from hasten.search.recorder import BeamRecorder
from hasten.search.searcher import Driver, Searcher
from hasten.support.checks import check_width


@dataclass(frozen=True, slots=True)
class ReducedSearch(Searcher):
    """Beam search over the variables that exact elimination leaves (`hasten.proof.elimination.plan`).

    Eliminating a variable puts its least cost into its neighbours' tables, so that a beam of one or two sees far.
    Where elimination leaves nothing the answer is exact. Needs all costs, and no learning.

    width
        Nodes kept at each step, from 1 to 65,536. 1, the default, is greedy.
    look_ahead
        Whether to add the least that unassigned variables must still cost. Off by default; it takes no learning, and
        little time where few variables are left.
    max_join
        The most sums that eliminating one variable may take, as in `Certifier`. 0 eliminates nothing; None, the
        default, eliminates where that is cheaper than searching.
    """

    width: int = 1
    look_ahead: bool = False
    max_join: int | None = None

    def __post_init__(self) -> None:
        check_width(self.width)

    def _driver(self, batch: Batch) -> Driver:
        options = beam.Options(int(self.width), math.inf, math.inf, True, bool(self.look_ahead))
        left = addresses(batch.structures, self.max_join)[batch.structure]
        return partial(beam.search_reduced, batch.arrays, left, options)

    def _recorder(
        self, problem: Problem, names: Sequence[str] | None, reference: Labels | Solution | None
    ) -> BeamRecorder:
        how = f"Beam search with a beam of {self.width:,} over what elimination leaves"
        how += ", look-ahead" if self.look_ahead else ""
        recorder = BeamRecorder(problem, names, reference, how, self.width)
        recorder.keep_only(reduce(problem.structure.compiled, self.max_join).plan.keep.tolist())
        return recorder

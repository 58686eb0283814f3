"""Beam search with a learned heuristic, and greedy search (paper §2.2, §4.1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from hasten.errors import ProblemError
from hasten.kernels import search as beam
from hasten.model.batch import Batch
from hasten.model.problem import Labels, Problem
from hasten.model.solution import Solution, Solutions
from hasten.search.recorder import BeamRecorder
from hasten.search.searcher import Driver, Searcher, seconds_each
from hasten.search.theta import theta_in_words
from hasten.support.arrays import FloatArray, IntArray, ranges
from hasten.support.checks import check_number, check_vector, check_width
from hasten.support.parallel import in_parallel
from hasten.support.words import amount

NO_WEIGHTS = np.zeros(0)


@dataclass(frozen=True, slots=True)
class BeamSearch(Searcher):
    """Beam search by path cost plus learned heuristic.

    The beam:

    width
        Nodes kept at each step, from 1 to 65,536. 1, the default, is greedy.
    spread
        Drops nodes whose priority is more than this above the best one's: a beam that narrows where it is sure. At
        least 0; inf, the default, drops none.

    Ranking the nodes:

    weights
        The weights of a heuristic (`Schema.n_weights` of them). None, the default, ranks by path cost alone.
    look_ahead
        Whether to add the least that unassigned variables must still cost. Off by default, as in the paper; it takes
        no learning, but time.

    Leaving out:

    enforce
        Whether forbidden tuples and broken rules are kept out of the beam. On by default: the answer is valid.
    theta
        Gap above which the heuristic decides without computing the variable's cost. At least 0, which computes none;
        inf, the default, computes all. `Speedup.calibrate` chooses it.

    A cost of inf forbids a label only to a search that looks at it. With a finite `theta` an answer may hold
    such a label: where the costs were given it is reported as invalid; where they are lazy it goes unnoticed.
    """

    width: int = 1
    weights: FloatArray | None = None
    enforce: bool = True
    look_ahead: bool = False
    theta: float = math.inf
    spread: float = math.inf

    def __post_init__(self) -> None:
        check_width(self.width)
        check_number("theta", self.theta)
        check_number("spread", self.spread)
        if self.weights is not None:
            object.__setattr__(self, "weights", check_vector("The weights of a heuristic", self.weights))

    def _search(self, batch: Batch, n_jobs: int) -> Solutions:
        # The zero-argument form of super() does not work in a class with slots.
        lazily = batch.lazy and self.theta < math.inf
        return self._search_lazily(batch, n_jobs) if lazily else Searcher._search(self, batch, n_jobs)

    def _driver(self, batch: Batch) -> Driver:
        return partial(beam.search_some, batch.arrays, *self.prepared(batch))

    def _search_lazily(self, batch: Batch, n_jobs: int) -> Solutions:
        """Runs all problems until each is done or wants costs, computes these costs in one call, goes on."""
        weights, options = self.prepared(batch)
        n, n_variables, width = len(batch), int(batch.variable_at[-1]), self.width
        cost = np.zeros(batch.cost_at[-1])
        arrays = batch.arrays._replace(cost=cost)
        n_rows = np.array([len(each.graph.row_low) for each in batch.structures], dtype=np.int64)[batch.structure]
        paused = beam.Paused.of(width, batch.n_variables, n_rows)
        outcome = np.full(n, beam.BLOCKED, dtype=np.int64)
        owner = np.repeat(np.arange(n), batch.n_variables)
        known_cost = np.zeros(n_variables, dtype=bool)
        active = np.arange(n)
        while active.size:

            def run(start: int, stop: int, active: IntArray = active) -> None:
                beam.search_wave(arrays, weights, options, active[start:stop], paused, outcome)

            in_parallel(run, active.size, n_jobs, seconds_each(batch, self.width))
            active = active[outcome[active] == beam.BLOCKED]
            wanted = np.flatnonzero((paused.known == beam.WANTED) & ~known_cost)
            known_cost[wanted] = True
            problems, variables = owner[wanted], wanted - batch.variable_at[owner[wanted]]
            place(batch, cost, problems, variables, batch.score(problems, variables))
        labels = np.full(n_variables, -1, dtype=np.int64)
        done = outcome[owner] == beam.DONE
        at = batch.variable_at[owner] * width + (np.arange(n_variables) - batch.variable_at[owner])
        labels[done] = paused.labels[at[done]]
        n_costs = np.bincount(owner[known_cost], minlength=n)
        return Solutions.scored(batch, labels, outcome == beam.DONE, n_costs, cost)

    def _recorder(
        self, problem: Problem, names: Sequence[str] | None, reference: Labels | Solution | None
    ) -> BeamRecorder:
        said = ["Greedy search" if self.width == 1 else f"Beam search with a beam of {self.width:,}"]
        said += [] if self.weights is None else ["a learned heuristic"]
        said += ["look-ahead"] if self.look_ahead else []
        said += [f"a spread of {amount(self.spread)}"] if self.spread < math.inf else []
        said += [f"theta = {theta_in_words(self.theta)}"] if self.theta < math.inf else []
        said += [] if self.enforce else ["constraints ignored"]
        return BeamRecorder(problem, names, reference, ", ".join(said), self.width, self.theta)

    def prepared(self, batch: Batch) -> tuple[FloatArray, beam.Options]:
        """Returns its weights, checked against the batch, and its options: the arguments of a kernel."""
        options = beam.Options(
            int(self.width), float(self.theta), float(self.spread), bool(self.enforce), bool(self.look_ahead)
        )
        if self.weights is None:
            return NO_WEIGHTS, options
        for structure in batch.structures:
            if len(self.weights) != structure.schema.n_weights:
                raise ProblemError(
                    f"Got {len(self.weights)} heuristic weights; the schema has {structure.schema.n_weights} "
                    "speedup features. Use weights that were learned with this schema."
                )
        return self.weights, options


def greedy() -> BeamSearch:
    """Returns the paper's "search": each label chosen by its cost, constraints ignored."""
    return BeamSearch(width=1, enforce=False)


def place(batch: Batch, cost: FloatArray, problems: IntArray, variables: IntArray, values: FloatArray) -> None:
    """Writes the costs of some variables where they belong in a batch's flat costs."""
    starts, sizes = batch.label_ranges(problems, variables)
    cost[ranges(batch.cost_at[problems] + starts, sizes)] = values

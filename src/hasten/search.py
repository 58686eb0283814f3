"""The searches (paper §2.2, §4.1): greedy, beam with a learned heuristic, and constrained by arc consistency.

Each is a frozen configuration that is called with a problem or a batch. None of them proves anything: see
`hasten.bound`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import overload

import numpy as np

from hasten.batch import Batch, as_batch
from hasten.eliminate import MAX_JOIN, reductions
from hasten.errors import ProblemError
from hasten.expect import check_number, check_width
from hasten.graph import BoolArray, FloatArray, IntArray
from hasten.kernels import arcs, beam, reduced
from hasten.kernels.score import score_batch
from hasten.problem import Problem
from hasten.solution import SOURCES, STATUSES, Solution, Solutions, Source, Status

NO_WEIGHTS = np.zeros(0)


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


@dataclass(frozen=True, slots=True)
class BeamSearch(Searcher):
    """Beam search by path cost plus learned heuristic.

    `weights` is a heuristic's weight vector (`Schema.n_weights` long), or None for the path cost alone.
    `enforce` keeps forbidden tuples and broken rules out of the beam: what it returns is then valid.
    `look_ahead` adds the least that unassigned variables must still cost. `theta` is the gap above which the
    heuristic decides without the variable's cost; `spread` lets the beam narrow where it is sure.

    A cost of inf forbids a label only to a search that looks at it. With a finite `theta` an answer may hold
    such a label: where the costs were given it is reported as invalid, where they are lazy nobody knows.
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
        if self.weights is not None and not np.isfinite(self.weights).all():
            raise ProblemError("The weights of a heuristic must be finite.")

    def _search(self, batch: Batch, n_jobs: int) -> Solutions:
        weights, options = self.prepared(batch)
        if batch.lazy and self.theta < math.inf:
            return self._search_lazily(batch, options, weights, n_jobs)
        batch = batch.resolved()
        n = len(batch)
        labels = np.empty(batch.variable_at[-1], dtype=np.int64)
        outcome, n_costs = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)

        def run(start: int, stop: int) -> None:
            beam.search_range(
                batch.pool, batch.structure, batch.cost, batch.cost_at, batch.table, batch.table_at,
                batch.variable_at, weights, options, start, stop, labels, outcome, n_costs,
            )  # fmt: skip

        in_parallel(run, n, n_jobs)
        return as_solutions(batch, labels, outcome == beam.DONE, n_costs)

    def _search_lazily(self, batch: Batch, options: beam.Options, weights: FloatArray, n_jobs: int) -> Solutions:
        """Runs all problems until each is done or wants costs, computes what they want in one call, goes on."""
        n, n_variables, width = len(batch), int(batch.variable_at[-1]), self.width
        cost = np.zeros(batch.cost_at[-1])
        n_rows = np.array([len(each.graph.row_low) for each in batch.structures], dtype=np.int64)[batch.structure]
        row_at = np.concatenate([[0], np.cumsum(n_rows)])
        paused = beam.Paused(
            np.zeros(width * n_variables, dtype=np.int16),
            np.zeros(width * n),
            np.zeros(width * n),
            np.zeros(width * n),
            np.zeros(width * n_variables),
            np.zeros(width * int(row_at[-1])),
            row_at,
            np.zeros(n_variables, dtype=np.int64),
            np.full(n, -1, dtype=np.int64),
            np.zeros(n, dtype=np.int64),
        )
        outcome = np.full(n, beam.BLOCKED, dtype=np.int64)
        owner = np.repeat(np.arange(n), batch.n_variables)
        known_cost = np.zeros(n_variables, dtype=bool)
        active = np.arange(n)
        while active.size:

            def run(start: int, stop: int, active: IntArray = active) -> None:
                beam.search_wave(
                    batch.pool, batch.structure, cost, batch.cost_at, batch.table, batch.table_at,
                    batch.variable_at, weights, options, active[start:stop], paused, outcome,
                )  # fmt: skip

            in_parallel(run, active.size, n_jobs)
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
        return as_solutions(batch, labels, outcome == beam.DONE, n_costs, cost)

    def prepared(self, batch: Batch) -> tuple[FloatArray, beam.Options]:
        """Returns its weights, checked against the batch, and its options: what a kernel is given."""
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
        return np.ascontiguousarray(self.weights, dtype=np.float64), options


def greedy() -> BeamSearch:
    """Returns the paper's "search": each label chosen by its cost, constraints ignored."""
    return BeamSearch(width=1, enforce=False)


@dataclass(frozen=True, slots=True)
class ConstrainedSearch(Searcher):
    """Greedy search that keeps the constraints arc consistent after each assignment (the paper's §5.1 baseline).

    Labels without support leave the domains; a label whose choice would empty some domain is passed over; where
    no label is left the search is at a dead end, and says so.
    """

    def _search(self, batch: Batch, n_jobs: int) -> Solutions:
        batch = batch.resolved()
        labels = np.empty(batch.variable_at[-1], dtype=np.int64)
        done = np.empty(len(batch), dtype=bool)

        def run(start: int, stop: int) -> None:
            arcs.search_range(
                batch.pool, batch.structure, batch.cost, batch.cost_at, batch.table, batch.table_at,
                batch.variable_at, start, stop, labels, done,
            )  # fmt: skip

        in_parallel(run, len(batch), n_jobs)
        return as_solutions(batch, labels, done, batch.n_variables.copy())


@dataclass(frozen=True, slots=True)
class ReducedSearch(Searcher):
    """Beam search, with look-ahead, over what exact elimination leaves (`hasten.eliminate`).

    Eliminating a variable puts into its neighbours' tables what it will cost at best, so that a beam of one or
    two sees far. Where elimination leaves nothing the answer is exact. Needs all costs, and no learning.
    """

    width: int = 2
    look_ahead: bool = True
    max_join: int = MAX_JOIN

    def __post_init__(self) -> None:
        check_width(self.width)

    def _search(self, batch: Batch, n_jobs: int) -> Solutions:
        batch = batch.resolved()
        labels = np.empty(batch.variable_at[-1], dtype=np.int64)
        done = np.empty(len(batch), dtype=bool)
        options = beam.Options(int(self.width), math.inf, math.inf, True, bool(self.look_ahead))
        plans, smalls = reductions(tuple(each.compiled for each in batch.structures), self.max_join)

        def run(start: int, stop: int) -> None:
            reduced.search_range(
                batch.pool, plans, smalls, batch.structure, batch.cost, batch.cost_at, batch.table,
                batch.table_at, batch.variable_at, options, start, stop, labels, done,
            )  # fmt: skip

        in_parallel(run, len(batch), n_jobs)
        return as_solutions(batch, labels, done, batch.n_variables.copy())


# By whether the search was done, and whether its answer is valid.
_STATUS = np.array(
    [
        [STATUSES.index(status) for status in (Status.DEAD_END, Status.DEAD_END)],
        [STATUSES.index(status) for status in (Status.INVALID, Status.FOUND)],
    ]
)


def as_solutions(
    batch: Batch, labels: IntArray, done: BoolArray, n_costs: IntArray, computed: FloatArray | None = None
) -> Solutions:
    """Re-scores what a search found and says how it went.

    `computed` holds the costs that a lazy search asked for; where it did not ask for all, the cost is nan.
    """
    n = len(batch)
    total, valid = np.empty(n), np.empty(n, dtype=bool)
    cost = batch.cost if computed is None else computed
    score_batch(
        batch.pool, batch.structure, cost, batch.cost_at, batch.table, batch.table_at,
        labels, batch.variable_at, total, valid,
    )  # fmt: skip
    if not done.all():
        total[~done], valid[~done] = np.inf, False
    if computed is not None:
        total[np.isfinite(total) & (n_costs < batch.n_variables)] = np.nan
    status = _STATUS[done.view(np.int8), valid.view(np.int8)]
    source = np.full(n, SOURCES.index(Source.SEARCH), dtype=np.int64)
    return Solutions(batch, labels, total, np.full(n, -np.inf), valid, status, source, n_costs)


def place(batch: Batch, cost: FloatArray, problems: IntArray, variables: IntArray, values: FloatArray) -> None:
    """Writes the costs of some variables where they belong in a batch's flat costs."""
    graphs = batch.pool.graphs
    at = batch.pool.at[batch.structure[problems], 0] + batch.structure[problems] + variables
    sizes = graphs.first[at + 1] - graphs.first[at]
    starts = batch.cost_at[problems] + graphs.first[at]
    ends = np.cumsum(sizes)
    cost[np.repeat(starts - (ends - sizes), sizes) + np.arange(values.size)] = values


def in_parallel(run: Callable[[int, int], None], n: int, n_jobs: int) -> None:
    """Runs `run(start, stop)` over 0..n in `n_jobs` threads; kernels release the interpreter's lock."""
    if n_jobs < 1:
        raise ProblemError(f"n_jobs must be at least 1, got {n_jobs}.")
    if n_jobs == 1 or n < 2 * n_jobs:
        run(0, n)
        return
    # Several chunks a thread, so that one with the large problems does not keep the others waiting.
    edges = np.linspace(0, n, min(n, 8 * n_jobs) + 1).astype(int)
    with ThreadPoolExecutor(n_jobs) as threads:
        list(threads.map(run, edges[:-1].tolist(), edges[1:].tolist()))

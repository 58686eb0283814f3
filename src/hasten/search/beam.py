"""The searches: beam search with a learned heuristic (paper §2.2, §4.1), over all variables or over those that exact
elimination leaves; greedy search; and greedy search that keeps the constraints arc consistent (§5.1).

All have one signature, for a problem as for a batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import overload

import numpy as np

from hasten.errors import ProblemError
from hasten.kernels.search import arcs, drivers, nodes
from hasten.kernels.search.nodes import FORCED as FORCED
from hasten.kernels.search.nodes import Found, theta_in_words
from hasten.model.batch import Batch, as_batch
from hasten.model.problem import Labels, Problem, check_one
from hasten.model.solution import Solution, Solutions
from hasten.proof.elimination.plan import addresses, reduce
from hasten.search.recorder import BeamRecorder
from hasten.support.arrays import FloatArray, IntArray, ints, ranges
from hasten.support.checks import check_number, check_vector, check_width
from hasten.support.clock import in_parallel
from hasten.trace.events import Trace

NO_WEIGHTS = np.zeros(0)


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


def seconds_each(batch: Batch, width: int) -> float:
    """Returns how long a search that keeps `width` nodes may take for a problem: each node tries each label."""
    if width * batch.cost.size <= FEW:
        return 0.0
    graphs = [structure.graph for structure in batch.structures]
    return SPEED * width * max((graph.first[-1] * (1 + len(graph.row_low)) for graph in graphs), default=0)


@dataclass(frozen=True, slots=True)
class BeamSearch(Searcher):
    """Beam search by path cost plus learned heuristic.

    The beam:

    width
        Nodes kept at each step, from 1 to 65,536. 1, the default, is greedy.

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

    Searching less:

    reduce
        Whether to search only what exact elimination leaves (`hasten.proof.elimination.plan`). Eliminating a variable
        puts its least cost into its neighbours' tables, so that a beam of one or two sees far; where nothing is left,
        the answer is exact. Needs all costs, constraints and no weights. Off by default.

    A cost of inf forbids a label only to a search that looks at it. With a finite `theta` an answer may hold
    such a label: where the costs were given it is reported as invalid; where they are lazy it goes unnoticed.
    """

    width: int = 1
    weights: FloatArray | None = None
    enforce: bool = True
    look_ahead: bool = False
    theta: float = math.inf
    reduce: bool = False

    def __post_init__(self) -> None:
        check_width(self.width)
        check_number("theta", self.theta)
        if self.weights is not None:
            object.__setattr__(self, "weights", check_vector("The weights of a heuristic", self.weights))
        if self.reduce and not (self.enforce and self.weights is None and self.theta == math.inf):
            raise ProblemError(
                "A search over what elimination leaves enforces constraints, computes all costs and has no weights. "
                "Leave enforce, theta and weights as they are, or set reduce=False."
            )

    def _search(self, batch: Batch, n_jobs: int) -> Solutions:
        # The zero-argument form of super() does not work in a class with slots.
        lazily = batch.lazy and self.theta < math.inf
        return self._search_lazily(batch, n_jobs) if lazily else Searcher._search(self, batch, n_jobs)

    def _driver(self, batch: Batch) -> Driver:
        weights, options = self.prepared(batch)
        if self.reduce:
            return partial(
                drivers.search_reduced, batch.arrays, addresses(batch.structures, None)[batch.structure], options
            )
        return partial(drivers.search_some, batch.arrays, weights, options)

    def _search_lazily(self, batch: Batch, n_jobs: int) -> Solutions:
        """Runs all problems until each is done or wants costs, computes these costs in one call, goes on."""
        weights, options = self.prepared(batch)
        n, n_variables = len(batch), int(batch.variable_at[-1])
        cost = np.zeros(batch.cost_at[-1])
        arrays = batch.arrays._replace(cost=cost)
        n_rows = ints(len(each.graph.row_low) for each in batch.structures)[batch.structure]
        paused = drivers.Paused.of(self.width, batch.n_variables, n_rows)
        found = Found(np.empty(n_variables, np.int64), np.empty(n, bool), np.empty(n, np.int64))
        owner, active = np.arange(n).repeat(batch.n_variables), np.arange(n)
        while active.size:

            def run(start: int, stop: int, active: IntArray = active) -> None:
                drivers.search_wave(arrays, weights, options, active[start:stop], paused, found)

            in_parallel(run, active.size, n_jobs, seconds_each(batch, self.width))
            wanted = np.flatnonzero(paused.known == nodes.WANTED)
            active = np.unique(owner[wanted])
            problems, variables = owner[wanted], wanted - batch.variable_at[owner[wanted]]
            place(batch, cost, problems, variables, batch.score(problems, variables))
        return Solutions.scored(batch, *found, cost)

    def trace(
        self, problem: Problem, reference: Labels | Solution | None = None, *, names: Sequence[str] | None = None
    ) -> Trace:
        """Searches slowly and returns a log of its steps: a value that prints, draws itself, and is plain data.

        Given a `reference`, a labelling or an answer, it tells where the search lost it. `names` are those of
        the variables, one for each.
        """
        check_one(problem)
        said = ["Greedy search" if self.width == 1 else f"Beam search with a beam of {self.width:,}"]
        said[0] += " over what elimination leaves" if self.reduce else ""
        said += [] if self.weights is None else ["a learned heuristic"]
        said += ["look-ahead"] if self.look_ahead else []
        said += [f"theta = {theta_in_words(self.theta)}"] if self.theta < math.inf else []
        said += [] if self.enforce else ["constraints ignored"]
        recorder = BeamRecorder(problem, names, reference, ", ".join(said), self.width, self.theta)
        if self.reduce:
            recorder.keep_only(reduce(problem.structure.compiled).plan.keep.tolist())
        with recorder.hooked():
            found = self._search(as_batch(problem), 1)
        return recorder.trace(found.only(problem))

    def prepared(self, batch: Batch) -> tuple[FloatArray, nodes.Options]:
        """Returns its weights, checked against the batch, and its options: the arguments of a kernel."""
        options = nodes.Options(int(self.width), float(self.theta), bool(self.enforce), bool(self.look_ahead))
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


@dataclass(frozen=True, slots=True)
class ConstrainedSearch(Searcher):
    """Greedy search that keeps the constraints arc consistent after each assignment (the paper's §5.1 baseline).

    Labels without support leave the domains; a label whose choice would empty some domain is passed over; where
    no label is left the search is at a dead end, and says so.
    """

    def _driver(self, batch: Batch) -> Driver:
        return partial(arcs.search_some, batch.arrays)

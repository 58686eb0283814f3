"""The last step of a proof, sweeping and branching: done to what is open of a batch.

Who does it, how far, and how long that may take, is planned once a structure.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from hasten.kernels.proof.certify import Effort, certify_ruled, certify_some
from hasten.kernels.proof.outcome import BOUND, Fixing, Proofs
from hasten.kernels.watching import Driver
from hasten.model.batch import Batch
from hasten.model.compiled import Compiled
from hasten.model.elimination import Reduction, reduce
from hasten.model.relaxing import whole_plan
from hasten.model.thinning import Thinning, thinning
from hasten.proof.bounds import keep_bounds, take_loss
from hasten.proof.eliminating import begins_with_looking, only_branching_follows, structures_of
from hasten.proof.roofing import without_others
from hasten.proof.thinning import eliminate_open, worth
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.clock import LONG, Clock
from hasten.support.parallel import in_parallel

Messages = tuple[FloatArray, FloatArray, IntArray]  # as those of `hasten.kernels.proof.certify`

SPEED = 1e-9  # seconds that a node, or a sweep, takes at most for each label, tuple and cell: measured, rounded up


class Branching(NamedTuple):
    """How to sweep and branch on what elimination leaves of a structure."""

    reduction: Reduction
    thin: Thinning | None  # how to eliminate what that leaves open
    run: Driver  # `certify_some` or `certify_ruled`
    effort: tuple[int, ...]  # an `Effort`
    seconds: float  # that a problem may take at most
    alone: bool  # whether nothing else comes after looking, and it is short
    needs_no_bound: bool  # whether that is so before there is a bound as well


def branching(compiled: Compiled, max_join: int | None, effort: Effort) -> Branching:
    """Returns how to branch, given the effort that any problem is worth; made once."""
    found = compiled.branchings.get((max_join, effort))
    if found is None:
        reduction = reduce(compiled, max_join)
        thin = thinning(compiled) if max_join is None and not reduction.complete else None
        run, effort_here = certify_ruled if reduction.leaves_rules else certify_some, worth(effort, reduction, thin)
        seconds, needs_no_bound = _seconds(effort_here, reduction), whole_plan(compiled, max_join) is None
        looks_first = max_join is None and begins_with_looking(compiled)
        alone = looks_first and only_branching_follows(compiled) and seconds <= LONG
        found = Branching(reduction, thin, run, tuple(effort_here), seconds, alone, needs_no_bound)
        compiled.branchings[max_join, effort] = found
    return found


def branch_open(
    batch: Batch,
    problems: IntArray,
    max_join: int | None,
    effort: Effort,
    messages: Messages,
    fixing: Fixing,
    proofs: Proofs,
    clock: Clock,
    n_jobs: int,
) -> None:
    """Sweeps and branches on open problems, and eliminates the thin ones that this leaves open.

    `max_join` is what elimination may take, `effort` what any problem is worth.
    """
    used, places = structures_of(batch, problems)  # others need no plan
    lasts = [branching(batch.structures[s].compiled, max_join, effort) for s in used]
    if any(last.reduction.complete for last in lasts):
        hard = ~np.array([last.reduction.complete for last in lasts])[places]
        problems, places = problems[hard], places[hard]
    reduced = np.concatenate([last.reduction.addresses for last in lasts])[places]
    floor, arrays = proofs.values[BOUND].take(problems), batch.arrays
    if fixing.labels.size:
        shapes = [batch.structures[s].compiled for s in batch.structure[problems].tolist()]
        arrays = without_others(arrays, shapes, problems, fixing)
    ways = [(last.run, last.effort) for last in lasts]
    for way in dict.fromkeys(ways):
        alike = [other == way for other in ways]
        chosen = np.arange(len(problems)) if all(alike) else np.flatnonzero(np.array(alike)[places])
        seconds = sum(lasts[place].seconds for place in places[chosen].tolist())

        def certify(
            begin_at: int, end_at: int, way: tuple[Driver, tuple[int, ...]] = way, of: IntArray = chosen
        ) -> None:
            (run, effort_here), some = way, of[begin_at:end_at]
            run((*arrays,), reduced[some], messages, effort_here, problems[some], (*proofs,), clock.watch())

        if chosen.size:
            clock.run(partial(in_parallel, certify, chosen.size, n_jobs), seconds)
    take_loss(proofs, problems, fixing)
    if any(last.thin for last in lasts):
        plans = [lasts[place].thin for place in places.tolist()]
        eliminate_open(batch, problems, plans, fixing, proofs, clock, n_jobs)
    keep_bounds(proofs, problems, floor)


def _seconds(effort: Effort, reduction: Reduction) -> float:
    """Returns how long a problem may take at most; where rows are left, nodes are limited by what they go through."""
    nodes, graph = effort.max_nodes, reduction.graph
    if graph.row_low.size:  # as `nodes_with_rows` counts them
        work = 1 + reduction.n_labels + graph.cell_row.size
        nodes = min(nodes, max(effort.row_nodes, effort.row_work // work))
    return SPEED * reduction.size * (effort.max_sweeps + nodes)

"""Branching or eliminating: on a thin graph both are races, and how long the second takes is known beforehand.

Branching is quick where costs decide most labels, and takes for ever where they decide few. Eliminating everything by
large tables takes the same in either case. So branching has as long as eliminating would take, about; what it leaves
open is eliminated. That takes at most about twice what the better of the two does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np

from hasten.kernels.proof.certify import Effort
from hasten.kernels.proof.outcome import OPEN, OUTCOME, Fixing, Proofs
from hasten.kernels.proof.thinned import eliminate_thin
from hasten.kernels.watching import Opener, compiled
from hasten.model.batch import ONLY, Batch, arrays_of
from hasten.model.elimination import Reduction
from hasten.model.problem import Problem
from hasten.model.thinning import Thinning
from hasten.support.arrays import IntArray
from hasten.support.clock import LONG, UNWATCHED, Clock
from hasten.support.parallel import in_parallel

MAX_NODES = 20_000  # of branching, by default
SMALL, SMALL_NODES = 128, 100_000  # labels left of which nodes are quick, and how many of these are allowed then
TRIPLE_SWEEPS = 100, 10  # before the first dive and at each split, where no table has fewer than three variables
NOTHING_FIXED = Fixing(np.zeros(0, dtype=np.int64), np.zeros(0))
SPEED = 2e-9  # seconds that a sum takes at most
SWEEP = 16  # nodes that a sweep is worth


def worth(effort: Effort, reduction: Reduction, thin: Thinning | None) -> Effort:
    """Returns the effort that branching is worth: more on few labels, and what eliminating takes on thin graphs."""
    if thin is None:
        if reduction.n_labels <= SMALL:
            return _with_more_nodes(effort)
        return _with_more_sweeps(effort) if reduction.leaves_triples else effort
    nodes = thin.n_sums // max(reduction.size, 1)  # a node goes through much of what is left
    sweeps = max(effort.first_sweeps, nodes // SWEEP)
    return effort._replace(max_sweeps=min(effort.max_sweeps, sweeps), max_nodes=min(effort.max_nodes, nodes))


@lru_cache(maxsize=64)
def _with_more_nodes(effort: Effort) -> Effort:
    return effort._replace(max_nodes=SMALL_NODES) if effort.max_nodes == MAX_NODES else effort


@lru_cache(maxsize=64)
def _with_more_sweeps(effort: Effort) -> Effort:
    first, at_split = TRIPLE_SWEEPS
    return effort._replace(first_sweeps=first, node_sweeps=at_split)


def eliminate_one(
    problem: Problem, thin: Thinning, fixing: Fixing, proofs: Proofs, clock: Clock | None, opened: Opener
) -> None:
    """Eliminates all variables of one problem that are not fixed."""
    arrays, seconds = arrays_of(problem), SPEED * thin.n_sums
    if clock is None and (seconds <= LONG or opened is not compiled):
        opened(eliminate_thin)(arrays, thin.address, fixing, ONLY, proofs, UNWATCHED)
        return
    clock = clock or Clock()
    clock.run(partial(eliminate_thin, arrays, thin.address, fixing, ONLY, proofs, clock.watch()), seconds)


def eliminate_open(
    batch: Batch,
    problems: IntArray,
    plans: Sequence[Thinning | None],
    fixing: Fixing,
    proofs: Proofs,
    clock: Clock,
    n_jobs: int,
) -> None:
    """Eliminates all variables that are not fixed of those problems, each with its plan or None, that are open."""
    places = np.array([0 if plan is None else int(plan.address[0]) for plan in plans])
    n_sums = np.array([0 if plan is None else plan.n_sums for plan in plans])
    (some,) = ((places != 0) & (proofs.facts[OUTCOME, problems] == OPEN)).nonzero()

    def eliminate(begin_at: int, end_at: int) -> None:
        few = some[begin_at:end_at]
        eliminate_thin(batch.arrays, places[few], fixing, problems[few], proofs, clock.watch())

    if some.size:
        clock.run(partial(in_parallel, eliminate, some.size, n_jobs), SPEED * float(n_sums[some].sum()))

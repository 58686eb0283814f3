"""Fixing labels by roof duality as a step of a proof, and what becomes of the rest.

Where a problem of two labels a variable is not a cut, some variables are fixed (`hasten.kernels.proof.roof`). What is
left mostly falls to pieces, which are eliminated by a plan of their own. Where that takes too many sums, sweeps and
branching go on with the labels that are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from hasten.kernels.layout import COST, VARIABLE, BatchArrays
from hasten.kernels.proof.outcome import OPEN, OUTCOME, Fixing, Proofs
from hasten.kernels.proof.roof import fix_some
from hasten.kernels.thin import LOOSE
from hasten.kernels.watching import Opener, compiled
from hasten.model.batch import ONLY, Batch, arrays_of
from hasten.model.compiled import Compiled
from hasten.model.cuts import cutting
from hasten.model.problem import Problem
from hasten.model.thinning import Thinning, plan_thinning, thinning
from hasten.proof.thinning import NOTHING_FIXED, eliminate_one, eliminate_open
from hasten.support.arrays import IntArray
from hasten.support.clock import LONG, UNWATCHED, Clock
from hasten.support.parallel import in_parallel

SPEED = 4e-6  # seconds that a flow takes at most, most of the time, for each arc
MOST_LOOSE = 600  # variables for which a plan is tried


def may_fix(shape: Compiled) -> bool:
    """Whether labels of a structure's problems may be fixed: it has a network, is free of rules, and is not thin."""
    return cutting(shape) is not None and shape.is_free and thinning(shape) is None


def fix_one(problem: Problem, proofs: Proofs, clock: Clock | None, opened: Opener = compiled) -> Fixing:
    """Fixes labels of one problem, if they may be, and eliminates the rest if that can be paid for."""
    shape = problem.structure.compiled
    plan = cutting(shape) if may_fix(shape) else None
    if plan is None:
        return NOTHING_FIXED
    arrays, seconds = arrays_of(problem), SPEED * plan.n_arcs
    fixing = Fixing(np.full(len(proofs.labels), LOOSE), np.zeros(1))
    if clock is None and (seconds <= LONG or opened is not compiled):
        opened(fix_some)(arrays, plan.address, ONLY, proofs, fixing, UNWATCHED)
    else:
        clock = clock or Clock()
        clock.run(partial(fix_some, arrays, plan.address, ONLY, proofs, fixing, clock.watch()), seconds)
    rest = plan_rest(shape, fixing.labels) if proofs.facts[OUTCOME, 0] == OPEN else None
    if rest is not None:
        eliminate_one(problem, rest, fixing, proofs, clock, opened)
    return fixing


def fix_batch(batch: Batch, problems: IntArray, proofs: Proofs, clock: Clock, n_jobs: int) -> Fixing:
    """Does the same to those of some problems whose labels may be fixed."""
    shapes = [structure.compiled for structure in batch.structures]
    fixable = [may_fix(shape) for shape in shapes]
    some = problems[np.array(fixable)[batch.structure[problems]]] if any(fixable) else problems[:0]
    if not some.size:
        return NOTHING_FIXED
    networks = [cutting(shapes[s]) for s in batch.structure[some].tolist()]
    places = np.array([0 if each is None else int(each.address[0]) for each in networks])
    fixing = Fixing(np.full(len(proofs.labels), LOOSE), np.zeros(len(batch)))

    def fix(begin_at: int, end_at: int) -> None:
        fix_some(batch.arrays, places[begin_at:end_at], some[begin_at:end_at], proofs, fixing, clock.watch())

    seconds = SPEED * sum(each.n_arcs for each in networks if each is not None)
    clock.run(partial(in_parallel, fix, len(some), n_jobs), seconds)
    some = some[proofs.facts[OUTCOME, some] == OPEN]
    at = batch.arrays.place[:, VARIABLE]
    rest = [plan_rest(shapes[batch.structure[p]], fixing.labels[at[p] : at[p + 1]]) for p in some.tolist()]
    eliminate_open(batch, some, rest, fixing, proofs, clock, n_jobs)
    return fixing


def plan_rest(shape: Compiled, labels: IntArray) -> Thinning | None:
    """Returns the plan that eliminates what is not fixed, if something is."""
    n_loose = int((labels == LOOSE).sum())
    return plan_thinning(shape.graph, labels) if n_loose < len(labels) and n_loose <= MOST_LOOSE else None


def without_others(arrays: BatchArrays, shapes: Sequence[Compiled], problems: IntArray, fixing: Fixing) -> BatchArrays:
    """Returns problems, each of its shape, in which all labels are forbidden but those that variables are fixed to."""
    if not fixing.labels.size:
        return arrays
    cost = arrays.cost.copy()
    for shape, p in zip(shapes, problems.tolist(), strict=True):
        place, first = arrays.place[p], shape.graph.first
        labels = fixing.labels[place[VARIABLE] : place[VARIABLE] + len(first) - 1]
        (fixed,) = ((labels != LOOSE) & (np.diff(first) == 2)).nonzero()
        cost[place[COST] + first[fixed] + 1 - labels[fixed]] = np.inf
    return arrays._replace(cost=cost)

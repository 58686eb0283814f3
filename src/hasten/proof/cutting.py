"""Cutting as a step of a proof: which problems have a network, and their cuts."""

from __future__ import annotations

import numpy as np

from hasten.kernels.proof.cut import cut_some
from hasten.kernels.proof.outcome import OUTCOME, UNTRIED, Proofs
from hasten.kernels.watching import Opener, compiled
from hasten.model.batch import ONLY, Batch, arrays_of
from hasten.model.cuts import cutting
from hasten.model.problem import Problem
from hasten.proof.eliminating import structures_of
from hasten.support.arrays import IntArray
from hasten.support.clock import LONG, UNWATCHED, Clock
from hasten.support.parallel import in_parallel

NOWHERE = np.zeros(1, dtype=np.int64)
SPEED = 1e-6  # seconds that a flow takes at most, most of the time, for each arc


def cut_single(problem: Problem, proofs: Proofs, clock: Clock | None, opened: Opener = compiled) -> bool:
    """Cuts one problem, if it has a network; returns whether it is a cut."""
    plan = cutting(problem.structure.compiled)
    if plan is None:
        return False
    arrays, address, seconds = arrays_of(problem), plan.address, SPEED * plan.n_arcs
    if clock is None and (seconds <= LONG or opened is not compiled):
        opened(cut_some)(arrays, address, ONLY, proofs, UNWATCHED)
        return bool(proofs.facts[OUTCOME, 0] != UNTRIED)
    clock = clock or Clock()
    watch = clock.watch()
    clock.run(lambda: cut_some(arrays, address, ONLY, proofs, watch), seconds)
    return bool(proofs.facts[OUTCOME, 0] != UNTRIED)


def cut_batch(batch: Batch, proofs: Proofs, clock: Clock, n_jobs: int) -> IntArray:
    """Cuts the problems of a batch that have a network; returns the others, in the batch's order."""
    used, numbers = structures_of(batch, batch.order)
    plans = [cutting(batch.structures[s].compiled) for s in used]
    if not any(plans):
        return batch.order
    places = np.concatenate([NOWHERE if each is None else each.address for each in plans])[numbers]
    sizes = np.array([0 if each is None else each.n_arcs for each in plans])[numbers]
    (tried,) = places.nonzero()

    def cut(begin_at: int, end_at: int) -> None:
        some = tried[begin_at:end_at]
        cut_some(batch.arrays, places[some], batch.order[some], proofs, clock.watch())

    clock.run(lambda: in_parallel(cut, tried.size, n_jobs), SPEED * float(sizes.sum()))
    left: IntArray = batch.order[(places == 0) | (proofs.facts[OUTCOME, batch.order] == UNTRIED)]
    return left

"""Improve: the step that goes on as long as there is time, with better labellings and higher bounds on the way.

Three tasks take turns, a slice at a time, each from where its last one has ended: `prices` raise the bound and rule
labels out, `moves` find better labellings, and branching (`hasten.proof.branch`) proves, with more nodes each time. A
task that gains nothing has fewer turns. The clock only says when to stop: the same seed takes the same slices.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from hasten.kernels.layout import BatchArrays
from hasten.model.batch import ONLY
from hasten.proof.branch import effort_for
from hasten.proof.branch.certify import certify_ruled
from hasten.proof.branch.space import Space, space_for
from hasten.proof.elimination.plan import reduce
from hasten.proof.elimination.reduction import Reduction
from hasten.proof.improve.rounds import BRANCHING, MOVE, PRICE, improve_some, scratch_floats, scratch_ints
from hasten.proof.outcome import OPEN, OUTCOME, SIZE, STOPPED
from hasten.proof.plan import ProofPlan, Work
from hasten.support.arrays import IntArray
from hasten.support.clock import Clock, now

SEED = 7
NOTHING = np.zeros((2, 0))  # in place of costs and tables
SWEEPS, SWEPT, MOVES, NODES = 500, 2e7, 2048, 2000  # of a slice; of sweeps no more than go through so much; nodes grow
SWEEP_TIME, MOVE_TIME, NODE_TIME = 12.0, 100.0, 40.0  # nanoseconds for what is left, for a table of it, for a variable
WEIGHTS = {PRICE: 1.0, MOVE: 1.0, BRANCHING: 0.5}  # shares of the time
STALLED, LEAST_WEIGHT = 0.9, 1 / 32  # by how much the share of a task shrinks that gained nothing, and how far
GAIN = 1e-4  # of the gap that a higher bound closes, to be a gain
SPLIT = 50  # nodes for each sweep of branching, at least, mostly
FEWEST, GROWTH = 2000, 4  # nodes where rules are all that is left, and how many times as many come next


class ImprovePlan(NamedTuple):
    """How to go on with the problems of a structure."""

    addresses: IntArray  # (1, 2) those of the reduction
    space: tuple[int, ...]  # a `Space`
    reduction: Reduction
    seconds: float = math.inf


class Improving:
    """The step: go on until time is up."""

    def plan(self, plan: ProofPlan) -> ImprovePlan | None:
        """Returns the plan for a structure, unless elimination leaves nothing of it, or nodes are counted."""
        reduction = reduce(plan.shape, plan.max_join)
        if reduction.complete or plan.max_nodes is not None:
            return None
        space = space_for(BatchArrays(plan.shape.place, *NOTHING), ONLY, reduction.addresses)
        return ImprovePlan(reduction.addresses, (*map(int, space),), reduction)

    def run(self, work: Work, problems: IntArray) -> None:
        """Goes on with one problem after the other, if time is limited."""
        clock = work.clock
        if not work.improves or clock is None or min(clock.each, clock.deadline) == math.inf:
            return
        spent = (now() - clock.began) / max(1, work.proofs.facts.shape[1])  # by each, in the steps before
        for p in problems.tolist():
            improvement, until = Improvement(work, p), now() + clock.each - spent
            while improvement.go(min(until, clock.deadline)):
                pass
            if work.proofs.facts[OUTCOME, p] == OPEN:
                work.proofs.facts[OUTCOME, p] = STOPPED
        work.clock = clock


IMPROVING = Improving()


class Improvement:
    """Work on one open problem that goes on from where it was left."""

    def __init__(self, work: Work, p: int) -> None:
        self._work, self._p = work, p
        plan = work.plans_of(np.array([p]))[0]
        part: ImprovePlan = plan.part(IMPROVING)
        self._slices = self._by_rules(plan) if part.reduction.leaves_rules else self._in_turns(part)

    def go(self, until: float) -> bool:
        """Takes one slice; whether the problem is still open, and there is time until then, of `now`."""
        proofs, p, at = self._work.proofs, self._p, now()
        if proofs.facts[OUTCOME, p] != OPEN or proofs.values[SIZE, p] == np.inf or at >= until:  # sums may overflow
            return False
        self._work.clock = Clock(together=until - at)
        next(self._slices)
        if proofs.facts[OUTCOME, p] == STOPPED:
            proofs.facts[OUTCOME, p] = OPEN
        return bool(proofs.facts[OUTCOME, p] == OPEN)

    def _in_turns(self, part: ImprovePlan) -> Iterator[None]:
        """Goes on by prices, moves and branching in turns."""
        values, some, space, p = self._work.proofs.values, np.array([self._p]), Space(*part.space), self._p
        floats = np.zeros(sum(scratch_floats(space)))
        ints = np.zeros(sum(scratch_ints(space)), dtype=np.int64)
        size, graph = part.reduction.size, part.reduction.graph
        amount = {PRICE: max(1, int(min(SWEEPS, SWEPT / size))), MOVE: MOVES, BRANCHING: NODES}
        each = {
            PRICE: SWEEP_TIME * size,
            MOVE: MOVE_TIME * size / max(1, graph.table_at.size),
            BRANCHING: NODE_TIME * graph.order.size + SWEEP_TIME * size / SPLIT,
        }
        spent, weight = dict.fromkeys(WEIGHTS, 0.0), dict(WEIGHTS)
        while True:
            task = min(WEIGHTS, key=lambda task: (spent[task] + amount[task] * each[task]) / weight[task])
            before = values[:2, p].tolist()
            shared = (part.space, (floats, ints), (task, amount[task], SEED))
            self._work.run(improve_some, some, part.addresses, shared=shared, seconds=math.inf)
            spent[task] += amount[task] * each[task]
            (cost, bound), gap = values[:2, p].tolist(), before[0] - before[1]
            gained = cost < before[0] or bound > before[1] + (GAIN * gap if gap < math.inf else 0.0)
            weight[task] = WEIGHTS[task] if gained else max(weight[task] * STALLED, LEAST_WEIGHT)
            if task == BRANCHING:
                weight[task], amount[task] = WEIGHTS[task], 2 * amount[task]
            yield

    def _by_rules(self, plan: ProofPlan) -> Iterator[None]:
        """Goes on by branching, with more nodes each time, where rules are all that is left."""
        some, reduction, nodes = np.array([self._p]), reduce(plan.shape, plan.max_join), FEWEST
        while True:
            effort = effort_for(plan, reduction)._replace(max_nodes=nodes, row_nodes=nodes, row_work=0, strict=1)
            self._work.run(certify_ruled, some, reduction.addresses, shared=((*effort,),), seconds=math.inf)
            nodes *= GROWTH
            yield

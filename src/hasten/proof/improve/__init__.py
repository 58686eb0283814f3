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

from hasten.jit import driver, keep, kernel, part, split
from hasten.kernels.layout import COST as COSTS
from hasten.kernels.layout import TABLE as TABLES
from hasten.kernels.layout import VARIABLE as VARIABLES
from hasten.kernels.layout import Arrays, BatchArrays, Instance, copy, graph_at, instance_of, labels_of, together
from hasten.kernels.score import rows_hold, total_cost
from hasten.kernels.tolerance import prune_above
from hasten.model.batch import ONLY
from hasten.proof import outcome as status
from hasten.proof.branch import BRANCHING as BRANCH_STEP
from hasten.proof.branch import effort_for
from hasten.proof.branch.certify import certify_ruled
from hasten.proof.branch.dive import FINISHED, Effort, branch
from hasten.proof.branch.space import Space, dual_floats, make_dual, make_tree, space_for, tree_floats, tree_ints
from hasten.proof.branch.tighten import Tight, count_left, tighten_rows
from hasten.proof.buckets import FULL_ELIMINATION
from hasten.proof.eliminate import ELIMINATING
from hasten.proof.elimination.kernels import Reduction, eliminate, plan_at, restore
from hasten.proof.elimination.plan import reduce
from hasten.proof.improve.follow import follow
from hasten.proof.improve.moves import Moves, improve
from hasten.proof.improve.pieces import STORE, TERM, WIDTH, Piece
from hasten.proof.improve.prices import BOUND as LOWEST
from hasten.proof.improve.prices import FIRST, Prices, ascend, keep_prices, recall_prices, start_prices
from hasten.proof.look import LOOKING
from hasten.proof.outcome import (
    Proofs,
    State,
    copy_labels,
    integral_gap,
    nothing_known,
    rounding,
    rule_out,
    take_bound,
)
from hasten.proof.plan import ProofPlan, Work, plan_for, take_steps
from hasten.proof.sweep.dual import start_dual, sweep
from hasten.proof.sweep.sweeping import Known
from hasten.proof.tally import TALLYING
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.clock import CURRENT, NEVER, Clock, now

PRICE, MOVE, BRANCHING = 1, 2, 3  # tasks; before the first one all is set up
COST, BEGUN, N_OWN = 0, 1, 2  # of what a slice leaves to the next: the least cost, and whether it has begun
DIVE_NODES, NODE_SWEEPS = 2000, 2
KEPT = 2**23  # numbers that levels of branching keep at most


@kernel
def levels_for(n: Space) -> int:
    """Returns how many levels branching has."""
    levels: int = max(3, min(n.variables + 1, KEPT // (n.messages + n.labels + n.rows + 1)))
    return levels


@kernel
def scratch_floats(n: Space) -> tuple[int, ...]:
    """Returns how many floats each array takes that one slice leaves to the next."""
    own = N_OWN, n.work, n.labels, together(dual_floats(n)), together(tree_floats(n, levels_for(n)))
    prices = 4, n.messages, n.rows, n.rows, n.rows, n.labels
    return own + prices + (n.labels, n.labels, n.most, STORE, n.rows, n.rows)


@kernel
def scratch_ints(n: Space) -> tuple[int, ...]:
    """Returns how many whole numbers each array takes that one slice leaves to the next."""
    v = n.variables
    piece = v, v, v, v, v, WIDTH * v, v, WIDTH * v, v, v, v, v, n.labels, TERM * (v + n.messages), 1
    return (v, n.given, v, v, n.rows) + piece + (v, v, together(tree_ints(n, levels_for(n))))  # noqa: RUF005


@driver
def improve_some(
    arrays: Arrays,
    problems: IntArray,
    state: State,
    reduced: IntArray,
    space: tuple[int, ...],
    memory: tuple[FloatArray, IntArray],
    task: tuple[int, int, int],
    stop_flag: IntArray,
) -> None:
    """Takes up one problem where the last slice has left its memory, for a task: which, how much of it, and a seed."""
    if problems.size == 0:
        return
    batch, proofs, n, p = BatchArrays(*arrays), Proofs(*state), Space(*space), problems[0]
    (kind, amount, seed), levels, (floats, ints) = task, levels_for(n), memory
    stop_flag[CURRENT] = 1
    reals, wholes = split(floats, scratch_floats(n)), split(ints, scratch_ints(n))
    (own, work, cost), (best, restored, trial, n_left, due) = reals[:3], wholes[:5]
    dual = make_dual(n, reals[3], part(stop_flag, 0, stop_flag.size))
    tight = Tight(dual.belief, dual.multiplier, n_left, due, trial, due, due, dual.belief)
    prices, piece = Prices(*reals[5:11]), Piece(*(wholes[5:20] + reals[11:15]))
    moves = Moves(*(wholes[20:22] + reals[15:]))
    instance, plan, values = instance_of(batch, p), plan_at(reduced[0, 0]), proofs.values
    size = values[status.SIZE, p]
    slip = rounding(instance.graph, size)
    gap = integral_gap(instance, size, slip)
    left = Instance(graph_at(reduced[0, 1]), cost, work)
    known, closed, least = Known(best, size, slip, gap), False, own[COST]
    small, mine = left.graph, labels_of(batch, proofs.labels, p)
    if own[BEGUN] == 0.0:
        constant = eliminate(plan, instance.cost, instance.table, work, cost, dual.stop_flag)
        if constant != constant:  # it was stopped
            stop_flag[CURRENT] = 0
            keep((floats, ints, stop_flag))
            return
        own[BEGUN], piece.random[0] = 1.0, 1 + seed % 2147483646
        least = own[COST] = np.inf
        for at in range(small.first[1]):
            cost[at] += constant
        start_dual(small, cost, dual)
        start_prices(small, prices)
        keep_prices(small, dual, prices)
        closed = constant == np.inf or not count_left(small, tight, 1) or not tighten_rows(small, tight, dual.stop_flag)
    if values[status.BEST, p] < least:
        least = own[COST] = values[status.BEST, p]
        for x in range(plan.keep.size):
            best[x] = mine[plan.keep[x]]
    if closed:
        pass
    elif kind == PRICE:
        closed, least = ascend(left, dual, tight, prices, amount, least, known)
        proofs.facts[status.N_SWEEPS, p] += amount
    elif kind == MOVE:
        least = improve(left, dual, piece, moves, best, amount, least)
    else:
        copy(dual.belief, prices.belief, 0, small.first[small.order.size])
        recall_prices(small, cost, dual, prices)
        for x in range(FIRST):
            closed = closed or not sweep(small, work, x % 2 == 0, dual)
        tree = make_tree(n, levels, reals[4], wholes[22])
        each = DIVE_NODES  # of a dive; fewer levels than variables last for fewer dives
        if levels <= n.variables:
            each = max(each, amount // max(levels - 3, 1) + 1)
        effort = Effort(0, 0, 0, amount, 0, 0, 0, NODE_SWEEPS, each)
        if not closed:
            ended, least, n_nodes = branch(left, dual, tree, effort, amount, least, known)
            closed = ended == FINISHED
            proofs.facts[status.N_NODES, p] += n_nodes
        copy(prices.belief, dual.belief, 0, small.first[small.order.size])
        recall_prices(small, cost, dual, prices)
    if least < own[COST]:
        own[COST] = least
        restore(plan, instance.cost, instance.table, work, best, restored)
        found = total_cost(instance.graph, instance.cost, instance.table, restored)
        if found < values[status.BEST, p]:
            copy_labels(restored, mine)
            values[status.BEST, p], proofs.facts[status.LABELS_BY, p] = found, status.BRANCH
    bound = prices.values[LOWEST] - slip
    if gap > 0.0:
        bound = np.ceil(bound)
    elif least < np.inf:  # labels of labellings that are hardly better may be out
        bound = min(bound, prune_above(least, size, 2.0 * slip))
    proofs.facts[status.STEP, p] = status.BRANCH
    if closed and least == np.inf:
        rule_out(proofs, p, status.BRANCH)
    else:
        if closed:
            bound = max(bound, least if gap > 0.0 else prune_above(least, size, 2.0 * slip))
        take_bound(proofs, p, bound, size)
    stop_flag[CURRENT] = 0
    keep((floats, ints, stop_flag))


SEED = 7
NOTHING = np.zeros((2, 0))  # in place of costs and tables
SWEEPS, SWEPT, MOVES, NODES = 500, 2e7, 2**24, 2000  # of a slice; of sweeps no more than go through so much; nodes grow
SWEEP_TIME, MOVE_TIME, NODE_TIME = 12.0, 4.0, 40.0  # nanoseconds for what is left, for work, for a variable
WEIGHTS = {PRICE: 2.0, MOVE: 2.0, BRANCHING: 0.5}  # shares of the time
AT_FIRST = LOOKING, ELIMINATING, TALLYING, BRANCH_STEP, FULL_ELIMINATION  # without followers, before slices
WITH_FOLLOWERS = {PRICE: 0.25, MOVE: 1.0}  # where bounds are of the problem without its followers
STALLED, LEAST_WEIGHT = (
    0.9,
    1 / 4,
)  # how far the share of a task shrinks each time that it gains nothing, and in all
GAIN = 1e-4  # of the gap that a higher bound closes, to be a gain
SPLIT = 50  # nodes for each sweep of branching, at least, mostly
FEWEST, GROWTH = 2000, 4  # nodes where rules are all that is left, and how many times as many come next
MOST_NODES = 2**40  # of a slice: a search may end early each time where rounding keeps the problem open


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
            if work.proofs.facts[status.OUTCOME, p] == status.OPEN:
                work.proofs.facts[status.OUTCOME, p] = status.STOPPED
        work.clock = clock


IMPROVING = Improving()


class Improvement:
    """Work on one open problem that goes on from where it was left."""

    def __init__(self, work: Work, p: int) -> None:
        self._work, self._p = work, p
        plan = work.plans_of(np.array([p]))[0]
        part: ImprovePlan = plan.part(IMPROVING)
        self.spent = 0.0  # nanoseconds, as estimated: what is measured would differ from run to run
        self._slices = self._by_rules(plan) if part.reduction.leaves_rules else self._with_followers(plan, part)

    def go(self, until: float) -> bool:
        """Takes one slice; whether the problem is still open, and there is time until then, of `now`."""
        proofs, p, at = self._work.proofs, self._p, now()
        overflows = proofs.values[status.SIZE, p] == np.inf  # or may, in sums
        stop = NEVER if self._work.clock is None else self._work.clock.stop
        if proofs.facts[status.OUTCOME, p] != status.OPEN or overflows or at >= until or stop.is_set():
            return False
        self._work.clock = Clock(together=until - at, stop=stop)
        self.spent += next(self._slices)
        if proofs.facts[status.OUTCOME, p] == status.STOPPED:
            proofs.facts[status.OUTCOME, p] = status.OPEN
        return bool(proofs.facts[status.OUTCOME, p] == status.OPEN)

    def _with_followers(self, plan: ProofPlan, part: ImprovePlan) -> Iterator[float]:
        """Goes on with the problem without its followers, if enough variables follow others, and moves with them."""
        arrays, proofs, p, clock = self._work.arrays, self._work.proofs, self._p, self._work.clock
        values, cost = proofs.values[:, p], arrays.cost[arrays.place[p, COSTS] : arrays.place[p + 1, COSTS]]
        instance = Instance(plan.shape.graph, cost, arrays.table[arrays.place[p, TABLES] :])
        followed = None if clock is None else follow(instance, clock.deadline)
        if followed is None:
            yield from self._in_turns(part, WEIGHTS)
            return
        inner = Work(followed.arrays, (plan_for(followed.shape),), nothing_known(1, len(followed.shape.graph.order)))
        mine = proofs.labels[arrays.place[p, VARIABLES] : arrays.place[p + 1, VARIABLES]]
        least, state, moving = math.inf, inner.proofs, self._in_turns(part, WITH_FOLLOWERS)
        slip, spent, improvement, begun = 2.0 * rounding(instance.graph, values[status.SIZE]), 0.0, None, False
        inner.clock, inner.improves = clock, False
        while True:
            if values[status.BEST] < least:
                least, known = values[status.BEST], followed.reduced(mine)
                if known is not None and least < state.values[status.BEST, 0]:
                    state.labels[:], state.values[status.BEST, 0] = known, least
            still = state.facts[status.OUTCOME, 0] in (status.OPEN, status.STOPPED)
            if not begun:
                begun = True
                take_steps(inner, ONLY, AT_FIRST)
                improvement = Improvement(inner, 0) if inner.taking(IMPROVING, ONLY).size else None
            elif improvement is not None and improvement.spent <= spent and still:
                state.facts[status.OUTCOME, 0], inner.clock = status.OPEN, self._work.clock
                improvement.go(math.inf if inner.clock is None else inner.clock.deadline)
            else:
                spent += next(moving)
            if state.values[status.BEST, 0] < least:
                least, labels = state.values[status.BEST, 0], followed.restored(state.labels)
                found = total_cost(*instance, labels)
                if found < values[status.BEST] and rows_hold(instance.graph, labels):
                    mine[:], values[status.BEST], proofs.facts[status.LABELS_BY, p] = labels, found, status.BRANCH
            if state.facts[status.OUTCOME, 0] == status.INFEASIBLE:
                rule_out(proofs, p, status.BRANCH)
            else:
                take_bound(proofs, p, state.values[status.BOUND, 0] - slip, values[status.SIZE])
            yield 0.0

    def _in_turns(self, part: ImprovePlan, weights: dict[int, float]) -> Iterator[float]:
        """Goes on by prices, moves and branching in turns, by their shares of the time."""
        values, some, space, p = self._work.proofs.values, np.array([self._p]), Space(*part.space), self._p
        floats = np.zeros(sum(scratch_floats(space)))
        ints = np.zeros(sum(scratch_ints(space)), dtype=np.int64)
        size, graph = part.reduction.size, part.reduction.graph
        amount = {PRICE: max(1, int(min(SWEEPS, SWEPT / size))), MOVE: MOVES, BRANCHING: NODES}
        each = {
            PRICE: SWEEP_TIME * size,
            MOVE: MOVE_TIME,
            BRANCHING: NODE_TIME * graph.order.size + SWEEP_TIME * size / SPLIT,
        }
        spent, weight = dict.fromkeys(weights, 0.0), dict(weights)
        while True:
            task = min(weights, key=lambda task: (spent[task] + amount[task] * each[task]) / weight[task])
            before = values[:2, p].tolist()
            shared = (part.space, (floats, ints), (task, amount[task], SEED))
            self._work.run(improve_some, some, part.addresses, shared=shared, seconds=math.inf)
            spent[task] += amount[task] * each[task]
            (cost, bound), gap = values[:2, p].tolist(), before[0] - before[1]
            gained = cost < before[0] or bound > before[1] + (GAIN * gap if gap < math.inf else 0.0)
            weight[task] = weights[task] if gained else max(weight[task] * STALLED, weights[task] * LEAST_WEIGHT)
            yield amount[task] * each[task]
            if task == BRANCHING:
                weight[task], amount[task] = weights[task], min(2 * amount[task], MOST_NODES)

    def _by_rules(self, plan: ProofPlan) -> Iterator[float]:
        """Goes on by branching, with more nodes each time, where rules are all that is left."""
        some, reduction, nodes = np.array([self._p]), reduce(plan.shape, plan.max_join), FEWEST
        while True:
            effort = effort_for(plan, reduction)._replace(max_nodes=nodes, row_nodes=nodes, row_work=0, strict=1)
            self._work.run(certify_ruled, some, reduction.addresses, shared=((*effort,),), seconds=math.inf)
            nodes = min(nodes * GROWTH, MOST_NODES)
            yield 0.0

"""One slice of the work on a problem: prices, moves or branching, from where the slice before has ended."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import driver, keep, kernel, part, split
from hasten.kernels.layout import Arrays, BatchArrays, Instance, copy, graph_at, instance_of, labels_of, together
from hasten.kernels.score import total_cost
from hasten.kernels.tolerance import prune_above
from hasten.proof.branch.dive import FINISHED
from hasten.proof.branch.space import Space, dual_floats, make_dual, make_tree, tree_floats, tree_ints
from hasten.proof.branch.split import Effort, branch
from hasten.proof.branch.tighten import Tight, count_left, tighten_rows
from hasten.proof.elimination.kernels import eliminate, plan_at, restore
from hasten.proof.improve.moves import Moves, improve
from hasten.proof.improve.prices import BOUND as LOWEST
from hasten.proof.improve.prices import FIRST, Prices, ascend, keep_prices, recall_prices, start_prices
from hasten.proof.outcome import (
    BEST,
    BRANCH,
    LABELS_BY,
    N_NODES,
    N_SWEEPS,
    SIZE,
    STEP,
    Proofs,
    State,
    copy_labels,
    rule_out,
    take_bound,
)
from hasten.proof.sweep.dual import start_dual, sweep
from hasten.proof.sweep.sweeping import Known
from hasten.proof.terms import integral_gap, rounding
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.clock import AT

PRICE, MOVE, BRANCHING = 1, 2, 3  # tasks; before the first one all is set up
COST, EXCESS, CURRENT, BEGUN = 0, 1, 2, 3  # of `Scratch.own`
N_OWN = 4
DIVE_NODES, NODE_SWEEPS = 2000, 2
KEPT = 2**23  # numbers that levels of branching keep at most


class Scratch(NamedTuple):
    """Numbers that one slice leaves to the next."""

    own: FloatArray  # the least cost, by how much rows are broken by the labelling that moves, its cost, whether begun
    work: FloatArray
    cost: FloatArray
    dual: FloatArray
    tree: FloatArray
    values: FloatArray
    message: FloatArray
    multiplier: FloatArray
    direction: FloatArray
    scale: FloatArray
    belief: FloatArray
    value: FloatArray
    joint: FloatArray
    total: FloatArray


class Indices(NamedTuple):
    """Whole numbers that one slice leaves to the next."""

    best: IntArray  # the best labelling of what is left
    restored: IntArray
    trial: IntArray
    n_left: IntArray
    due: IntArray
    labels: IntArray
    before: IntArray
    tree: IntArray
    parent: IntArray
    random: IntArray
    levels: IntArray


@kernel
def n_levels(n: Space) -> int:
    """Returns how many levels branching has."""
    levels: int = max(3, min(n.variables + 1, KEPT // (n.messages + n.labels + n.rows + 1)))
    return levels


@kernel
def scratch_floats(n: Space) -> tuple[int, ...]:
    """Returns how many floats each field of a `Scratch` takes."""
    return (
        N_OWN,
        n.work,
        n.labels,
        together(dual_floats(n)),
        together(tree_floats(n, n_levels(n))),
        4,
        n.messages,
        n.rows,
        n.rows,
        n.rows,
        n.labels,
        n.labels,
        n.most,
        n.rows,
    )


@kernel
def scratch_ints(n: Space) -> tuple[int, ...]:
    """Returns how many whole numbers each field of `Indices` takes."""
    v = n.variables
    return v, n.given, v, v, n.rows, v, v, v, v, 1, together(tree_ints(n, n_levels(n)))


@driver
def improve_some(
    arrays: Arrays,
    problems: IntArray,
    state: State,
    reduced: IntArray,
    space: tuple[int, ...],
    memory: tuple[FloatArray, IntArray],
    task: tuple[int, int, int],
    watch: IntArray,
) -> None:
    """Takes up one problem where the last slice has left its memory, for a task: which, how much of it, and a seed."""
    if problems.size == 0:
        return
    batch, proofs, n, p = BatchArrays(*arrays), Proofs(*state), Space(*space), problems[0]
    (kind, amount, seed), levels, (floats, ints) = task, n_levels(n), memory
    watch[AT] = 1
    scratch = Scratch(*split(floats, scratch_floats(n)))
    indices = Indices(*split(ints, scratch_ints(n)))
    dual = make_dual(n, scratch.dual, part(watch, 0, watch.size))
    due = indices.due
    tight = Tight(dual.belief, dual.multiplier, indices.n_left, due, indices.trial, due, due, dual.belief)
    prices, moves = Prices(*scratch[5:11]), Moves(*(indices[5:10] + scratch[11:]))
    instance, plan, own, values = instance_of(batch, p), plan_at(reduced[0, 0]), scratch.own, proofs.values
    size = values[SIZE, p]
    slip = rounding(instance.graph, size)
    gap = integral_gap(instance, size, slip)
    left = Instance(graph_at(reduced[0, 1]), scratch.cost, scratch.work)
    known, closed, least = Known(indices.best, size, slip, gap), False, own[COST]
    small, mine = left.graph, labels_of(batch, proofs.labels, p)
    if own[BEGUN] == 0.0:
        constant = eliminate(plan, instance.cost, instance.table, scratch.work, scratch.cost, dual.watch)
        if constant != constant:  # it was stopped
            watch[AT] = 0
            keep((floats, ints, watch))
            return
        own[BEGUN], indices.random[0] = 1.0, 1 + seed % 2147483646
        least = own[COST] = values[BEST, p]
        if least < np.inf:
            for x in range(plan.keep.size):
                indices.best[x] = mine[plan.keep[x]]
        for at in range(small.first[1]):
            scratch.cost[at] += constant
        start_dual(small, scratch.cost, dual)
        start_prices(small, prices)
        keep_prices(small, dual, prices)
        own[CURRENT] = own[EXCESS] = np.inf
        closed = constant == np.inf or not count_left(small, tight, 1) or not tighten_rows(small, tight, dual.watch)
    if closed:
        pass
    elif kind == PRICE:
        closed, least = ascend(left, dual, tight, prices, amount, least, known)
        proofs.facts[N_SWEEPS, p] += amount
    elif kind == MOVE:
        least = improve(left, dual, moves, indices.best, amount, least)
    else:
        copy(dual.belief, prices.belief, 0, small.first[small.order.size])
        recall_prices(small, scratch.cost, dual, prices)
        for x in range(FIRST):
            closed = closed or not sweep(small, scratch.work, x % 2 == 0, dual)
        tree = make_tree(n, levels, scratch.tree, indices.levels)
        each = DIVE_NODES  # of a dive; fewer levels than variables last for fewer dives
        if levels <= n.variables:
            each = max(each, amount // max(levels - 3, 1) + 1)
        effort = Effort(0, 0, 0, amount, 0, 0, 0, NODE_SWEEPS, each)
        if not closed:
            ended, least, n_nodes = branch(left, dual, tree, effort, amount, least, known)
            closed = ended == FINISHED
            proofs.facts[N_NODES, p] += n_nodes
        copy(prices.belief, dual.belief, 0, small.first[small.order.size])
        recall_prices(small, scratch.cost, dual, prices)
    if least < own[COST]:
        own[COST] = least
        restore(plan, instance.cost, instance.table, scratch.work, indices.best, indices.restored)
        found = total_cost(instance.graph, instance.cost, instance.table, indices.restored)
        if found < values[BEST, p]:
            copy_labels(indices.restored, mine)
            values[BEST, p], proofs.facts[LABELS_BY, p] = found, BRANCH
    bound = prices.values[LOWEST] - slip
    if gap > 0.0:
        bound = np.ceil(bound)
    elif least < np.inf:  # labels of labellings that are hardly better may be out
        bound = min(bound, prune_above(least, size, 2.0 * slip))
    proofs.facts[STEP, p] = BRANCH
    if closed and least == np.inf:
        rule_out(proofs, p, BRANCH)
    else:
        if closed:
            bound = max(bound, least if gap > 0.0 else prune_above(least, size, 2.0 * slip))
        take_bound(proofs, p, bound, size)
    watch[AT] = 0
    keep((floats, ints, watch))

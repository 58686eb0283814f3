"""Algorithm 1 of the paper (§4): learning a heuristic from the mistakes of the search that it guides.

For each problem, with the solver's answer `y`, the beam search runs step by step. A node is *y-good* if its
labels are those of `y`; at most one node of a beam is. Then, with B the beam and v̂ its best node,

- if no node of B is y-good any more, the beam is *lost*: `w += step * (phi(v*) - mean of phi over B)`;
- if the search ended with y in the beam, but not first: `w += step * (phi(y) - phi(v̂))`;

and on to the next problem. SetGood(v̂), the paper's `v*`, is `y` on the variables assigned so far: the nodes
of a level assign the same variables. Since the beam was y-good one step before, `v*` was a candidate of this
step, and lost: `p(v*) >= p(v)` for each v of B, which is what the mistake bound's proof needs.

The differences of features are summed as whole numbers and scaled last. So what the nodes have in common
cancels exactly, and neither the order of the factors nor that of the nodes can change a weight's last bit.

With `enforce`, `v*` is never removed if `y` is valid, so that a y-good beam cannot run into a dead end. Where
`v*` *is* removed the answer itself is forbidden: nothing can be learned from it, and it is counted apart
(`FORBIDDEN`).

The average over the weights after each example is kept lazily: an update `d` at example number `n` (from 0)
is missing from the `n` examples before, so `n * d` is added to `drift`, and the average over N examples is
`w - drift / N`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import driver, keep, kernel, split
from hasten.kernels.layout import VARIABLE, BatchArrays, Graph, costs_of, graph_of, instance_of, labels_of
from hasten.kernels.score import entry
from hasten.kernels.search import FORBIDDEN as RULED_OUT
from hasten.kernels.search import (
    GIVEN,
    Beam,
    Options,
    Track,
    advance,
    beam_in,
    begin,
    largest,
    n_floats,
    n_ints,
)
from hasten.kernels.search import LOST as PRUNED
from hasten.support.arrays import FloatArray, IntArray

CORRECT, LOST, WRONG, FORBIDDEN = 0, 1, 2, 3


class Weights(NamedTuple):
    """The weights, and observations made while learning; each an array, to be changed in place."""

    w: FloatArray  # (n_weights,)
    drift: FloatArray  # (n_weights,) what the lazy average takes off, times the number of examples
    n_examples: IntArray  # (1,) problems learned from so far
    n_blind: IntArray  # (1,) mistakes so far on which the nodes' features did not differ
    radius: FloatArray  # (2,) over all updates, the largest |phi(v*) - phi(v)|² and g(v*) - g(v)

    @classmethod
    def of(cls, w: FloatArray) -> Weights:
        """Returns weights to start from, before the first example."""
        return cls(w, np.zeros(w.size), np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), np.zeros(2))

    @property
    def average(self) -> FloatArray:
        """The average over the weights after each example; the weights themselves before the first."""
        average: FloatArray = self.w - self.drift / max(1, int(self.n_examples[0]))
        return average


class Difference(NamedTuple):
    """Scratch for sparse differences of features: zero except at the places listed in `touched`."""

    one: IntArray  # (n_weights,) of one node
    one_touched: IntArray
    all: IntArray  # (n_weights,) of the whole beam
    all_touched: IntArray


@kernel
def update(
    graph: Graph, beam: Beam, level: int, n_nodes: int, step: float, difference: Difference, learned: Weights
) -> None:
    """Adds `step` times phi(v*) less the mean of phi over the first `n_nodes` nodes to the weights.

    They met v*, whose labels are the first `level` of the beam's reference, in a mistake.
    """
    nodes, answer, path = beam.nodes, beam.track.reference, beam.track.good_cost[0]
    one, all_nodes, n_all = difference.one, difference.all, 0
    for b in range(n_nodes):
        n_one = 0
        for x in range(graph.done_first[level]):
            f = graph.done[x]
            at = graph.weight_at[f]
            if at < 0:
                continue
            right, here = at + entry(graph, f, answer), at + entry_of(graph, f, nodes.labels, b)
            if right != here:
                one[right] += 1
                one[here] -= 1
                difference.one_touched[n_one] = right
                difference.one_touched[n_one + 1] = here
                n_one += 2
        length = 0
        for x in range(n_one):
            i = difference.one_touched[x]
            if one[i] != 0:  # once, though it may stand in the list more often
                length += one[i] * one[i]
                all_nodes[i] += one[i]
                one[i] = 0
                difference.all_touched[n_all] = i
                n_all += 1
        learned.radius[0] = max(learned.radius[0], float(length))
        further = path - (nodes.g[b] + nodes.rest[b])
        if further > learned.radius[1]:
            learned.radius[1] = further
    n_before = float(learned.n_examples[0])
    blind = 1
    for x in range(n_all):
        i = difference.all_touched[x]
        if all_nodes[i] != 0:
            blind = 0
            change = step * (all_nodes[i] / n_nodes)
            learned.w[i] += change
            learned.drift[i] += n_before * change
            all_nodes[i] = 0
    learned.n_blind[0] += blind


@kernel
def entry_of(graph: Graph, f: int, labels: IntArray, b: int) -> int:
    """Returns where the entry of node `b` is in the weights of factor `f`."""
    at = 0
    for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
        at += graph.stride[a] * labels[b, graph.scope[a]]
    return at


@driver
def learn_from_some(
    batch: BatchArrays,
    answers: IntArray,
    options: Options,
    step: float,
    problems: IntArray,
    learned: Weights,
    outcome: IntArray,
) -> None:
    """Learns from some problems, one after the other; `outcome` says how each of them went.

    A step of 0 changes nothing: it counts the mistakes of the weights as they are.
    """
    n_factors = 0
    for p in problems:
        n_factors = max(n_factors, graph_of(batch, p).done.size)
    n = largest(batch, problems, options.width)
    floats, ints = np.zeros(n_floats(n)), np.zeros(n_ints(n), dtype=np.int64)
    space = beam_in(floats, ints, n)
    n_weights = learned.w.size
    counts = np.zeros(2 * n_weights + 2 * n_factors * (1 + options.width), dtype=np.int64)
    one, touched, every, all_touched = split(
        counts, (n_weights, 2 * n_factors, n_weights, 2 * n_factors * options.width)
    )
    difference = Difference(one, touched, every, all_touched)
    for x in range(problems.size):
        p = problems[x]
        instance, track = instance_of(batch, p), space.track
        track = Track(track.gap, labels_of(batch, answers, p), track.good, track.good_cost)
        beam = Beam(space.nodes, space.scratch, space.known, track)
        begin(instance, options, GIVEN, beam)
        ended, n_nodes, level = advance(instance, learned.w, options, GIVEN, beam, 1, 0)
        if ended == RULED_OUT:
            outcome[x] = FORBIDDEN
            continue
        if ended == PRUNED:
            outcome[x], level = LOST, level + 1
        else:
            outcome[x], n_nodes = WRONG if track.good[0] > 0 else CORRECT, 1
        if step > 0.0 and outcome[x] != CORRECT:
            update(instance.graph, beam, level, n_nodes, step, difference, learned)
        learned.n_examples[0] += 1
    keep((floats, ints, counts))


@driver
def cost_gaps(batch: BatchArrays, gap: FloatArray) -> None:
    """Writes for each variable what its second-best label costs above the best; nan if it has none."""
    for p in range(batch.place.shape[0] - 1):
        graph, cost = graph_of(batch, p), costs_of(batch, p)
        for v in range(graph.order.size):
            best, second = np.inf, np.inf
            for at in range(graph.first[v], graph.first[v + 1]):
                if cost[at] < best:
                    best, second = cost[at], best
                elif cost[at] < second:
                    second = cost[at]
            gap[batch.place[p, VARIABLE] + v] = second - best if second < np.inf else np.nan

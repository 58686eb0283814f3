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
from hasten.kernels import search as beam
from hasten.kernels.layout import BatchArrays, Graph, costs_of, graph_of, labels_of, tables_of
from hasten.kernels.score import entry
from hasten.kernels.search import BITS, Nodes, Options, Scratch
from hasten.support.arrays import FloatArray, IntArray

CORRECT, LOST, WRONG, FORBIDDEN = 0, 1, 2, 3


class Weights(NamedTuple):
    """What is learned, and what is observed while learning; each an array, to be changed in place."""

    w: FloatArray  # (n_weights,)
    drift: FloatArray  # (n_weights,) what the lazy average takes off, times the number of examples
    n_examples: IntArray  # (1,) problems learned from so far
    n_blind: IntArray  # (1,) mistakes so far on which the nodes' features did not differ
    radius: FloatArray  # (2,) over all updates, the largest |phi(v*) - phi(v)|² and g(v*) - g(v)


class Difference(NamedTuple):
    """Scratch for sparse differences of features: zero except at the places listed in `touched`."""

    one: IntArray  # (n_weights,) of one node
    one_touched: IntArray
    all: IntArray  # (n_weights,) of the whole beam
    all_touched: IntArray


@kernel
def follow(
    graph: Graph,
    cost: FloatArray,
    table: FloatArray,
    answer: IntArray,
    weights: FloatArray,
    options: Options,
    known: IntArray,
    nodes: Nodes,
    scratch: Scratch,
) -> tuple[int, int, int, float]:
    """Searches one problem until the beam is lost or the search ends.

    Returns how it went and, of a mistake, the level, the number of nodes (the first in `nodes`) that stood
    before v*, and the path cost of v*, with what it must still cost at least.
    """
    n_variables = graph.order.size
    beam.begin(graph, cost, options, known, nodes)
    n_nodes, good = 1, 0  # the y-good node's place in the beam
    for t in range(n_variables):
        k = graph.order[t]
        beam.expand(graph, cost, table, weights, options, known, nodes, n_nodes, t, scratch)
        beam.add_costs(graph, cost, options.enforce, known, nodes.g, n_nodes, t, scratch)
        n_nodes = beam.rank_by_priority(graph, n_nodes, t, options.width, options.spread, scratch)
        wanted = (good << BITS) | answer[k]
        c = good * (graph.first[k + 1] - graph.first[k]) + answer[k]
        if scratch.out[c]:
            return FORBIDDEN, t + 1, 0, np.inf
        good = -1
        for b in range(n_nodes):
            if scratch.best[b] == wanted:
                good = b
        beam.keep_best(graph, cost, table, options, known, nodes, n_nodes, t, scratch)
        if good < 0:
            return LOST, t + 1, n_nodes, scratch.g[c] + scratch.rest[c]
    if good > 0:
        return WRONG, n_variables, 1, nodes.g[good] + nodes.rest[good]
    return CORRECT, n_variables, 0, 0.0


@kernel
def update(
    graph: Graph,
    answer: IntArray,
    level: int,
    nodes: Nodes,
    n_nodes: int,
    path: float,
    step: float,
    difference: Difference,
    learned: Weights,
) -> None:
    """Adds `step` times phi(v*) less the mean of phi over the first `n_nodes` nodes to the weights."""
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
    n = beam.largest(batch, problems, options.width)
    floats, ints = np.zeros(beam.n_floats(n)), np.zeros(beam.n_ints(n), dtype=np.int64)
    nodes, scratch, known = beam.beam_in(floats, ints, n)
    n_weights = learned.w.size
    counts = np.zeros(2 * n_weights + 2 * n_factors * (1 + options.width), dtype=np.int64)
    one, touched, every, all_touched = split(
        counts, (n_weights, 2 * n_factors, n_weights, 2 * n_factors * options.width)
    )
    difference = Difference(one, touched, every, all_touched)
    for x in range(problems.size):
        p = problems[x]
        graph, answer = graph_of(batch, p), labels_of(batch, answers, p)
        outcome[x], level, n_nodes, path = follow(
            graph, costs_of(batch, p), tables_of(batch, p), answer, learned.w, options, known, nodes, scratch
        )
        if outcome[x] == FORBIDDEN:
            continue
        if step > 0.0 and outcome[x] != CORRECT:
            update(graph, answer, level, nodes, n_nodes, path, step, difference, learned)
        learned.n_examples[0] += 1
    keep((floats, ints, counts))

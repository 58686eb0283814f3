"""A beam search's options and nodes, and a step of it: the candidates, their costs, and which are best.

Candidates are each node with each label of the next variable. They stand node by node and label by label, in arrays of
`Scratch`; `best` names them by `BITS`. Looking ahead adds the least that unassigned variables can still cost. Only
variables that a step *opens*, by leaving a table one variable short, can have a new least.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np

from hasten.jit import grid, inlined_kernel, kernel, part, split
from hasten.kernels.layout import GRAPH, BatchArrays, Graph, Instance, graph_at, labels_of
from hasten.kernels.score import breaks_row, rows_can_hold
from hasten.support.arrays import BoolArray, FloatArray, IntArray

UNKNOWN, WANTED, KNOWN = 0, 1, 2  # the cost of a variable; one that is known and assigned is part of g
GIVEN, LATER, NOW = 0, 1, 2  # costs that are not known: are there; in a later call; in the next, scratch untouched
BITS, MASK = 15, (1 << 15) - 1  # a candidate is named by its node, shifted, and its label
FORCED = sys.float_info.max
"""The theta of a search that skips a cost only where it cannot change the beam: where no more candidates are left,
by the constraints, than the beam can hold. The gap there is infinite, and everywhere else it is smaller than this.
"""


class Options(NamedTuple):
    """How to search."""

    width: int
    theta: float
    enforce: bool
    ahead: bool


def theta_in_words(theta: float, digits: int = 4) -> str:
    """Returns theta as people write it.

    >>> theta_in_words(0.25), theta_in_words(FORCED), theta_in_words(float("inf"))
    ('0.25', 'forced', 'inf')
    """
    return "forced" if theta == FORCED else f"{theta:.{digits}g}"


class Nodes(NamedTuple):
    """The nodes of a beam, best first; there are at most `width`."""

    labels: IntArray  # (width, V)
    g: FloatArray  # (width,)
    h: FloatArray  # (width,)
    rest: FloatArray  # (width,) the least that all unassigned variables can still cost: the sum of
    ahead: FloatArray  # (width, V) the least that each can cost; unused without look-ahead
    row_low: FloatArray  # (width, R) the least that each row can still come to
    row_high: FloatArray  # (width, R) and the most


class Scratch(NamedTuple):
    """Scratch space to expand and select."""

    next: Nodes
    g: FloatArray  # (candidates,)
    h: FloatArray  # (candidates,)
    rest: FloatArray  # (candidates,)
    out: IntArray  # (candidates,) whether it is removed
    best: IntArray  # (width + 1,) candidates, best first
    rank: FloatArray  # (width + 1,) their priorities


class Track(NamedTuple):
    """Reports of a search beside its answer. With both arrays empty it reports nothing, and may take the short way.

    Given a reference, a search ends once the node that agrees with it (the paper's y-good node) is lost.
    """

    gap: FloatArray  # (V,) or empty: receives the heuristic's gap at the beam's edge, step by step
    reference: IntArray  # (V,) or empty: labels
    good: IntArray  # (1,) the place of the y-good node in the beam
    good_cost: FloatArray  # (1,) the path cost of the y-good node, with the least that it must still cost


class Beam(NamedTuple):
    """All that a search works in."""

    nodes: Nodes
    scratch: Scratch
    known: IntArray  # (V,) of each variable: UNKNOWN, WANTED or KNOWN
    track: Track


class Found(NamedTuple):
    """The answers of searches to the problems of a batch."""

    labels: IntArray  # (variables,) flat; -1 where a search came to a dead end
    done: BoolArray  # (n,) whether a search came to its end
    n_costs: IntArray  # (n,) how many variables' costs it computed


class Sizes(NamedTuple):
    """How large a beam is: its width, and the most variables, rows and labels of a variable of some problems."""

    width: int
    variables: int
    rows: int
    labels: int


@kernel
def largest(batch: BatchArrays, problems: IntArray, width: int) -> Sizes:
    """Returns the sizes of a beam that can search some problems."""
    n, s = Sizes(width, 0, 0, 1), 0
    for p in problems:
        if batch.place[p, GRAPH] != s:
            s = batch.place[p, GRAPH]
            n = at_least(n, s)
    return n


@kernel
def at_least(n: Sizes, address: int) -> Sizes:
    """Returns sizes large enough for the graph at an address as well."""
    graph = graph_at(address)
    n_labels = n.labels
    for v in range(graph.order.size):
        n_labels = max(n_labels, graph.first[v + 1] - graph.first[v])
    return Sizes(n.width, max(n.variables, graph.order.size), max(n.rows, graph.row_low.size), n_labels)


@kernel
def n_floats(n: Sizes) -> int:
    """Returns how many floats a beam needs."""
    return 2 * node_floats(n) + n.width * (3 * n.labels + 1) + 2


@kernel
def node_floats(n: Sizes) -> int:
    """Returns how many floats the nodes of a beam need."""
    return n.width * (3 + n.variables + 2 * n.rows)


@kernel
def n_ints(n: Sizes) -> int:
    """Returns how many whole numbers a beam needs."""
    return n.width * (2 * n.variables + n.labels + 1) + 2 + n.variables


@kernel
def beam_in(floats: FloatArray, ints: IntArray, n: Sizes) -> Beam:
    """Returns a beam cut out of two buffers of these sizes, that tracks nothing."""
    b, bv, c, mine = n.width, n.width * n.variables, n.width * n.labels, node_floats(n)
    here, there, cg, ch, crest, rank, good_cost = split(floats, (mine, mine, c, c, c, b + 1, 1))
    labels, next_labels, out, best, known, good = split(ints, (bv, bv, c, b + 1, n.variables, 1))
    scratch = Scratch(nodes_in(there, next_labels, n), cg, ch, crest, out, best, rank)
    track = Track(part(floats, 0, 0), part(ints, 0, 0), good, good_cost)
    return Beam(nodes_in(here, labels, n), scratch, known, track)


@kernel
def nodes_in(floats: FloatArray, labels: IntArray, n: Sizes) -> Nodes:
    """Returns the nodes of a beam, cut out of two buffers."""
    b, bv, br = n.width, n.width * n.variables, n.width * n.rows
    g, h, rest, ahead, low, high = split(floats, (b, b, b, bv, br, br))
    return Nodes(
        grid(labels, b, n.variables),
        g,
        h,
        rest,
        grid(ahead, b, n.variables),
        grid(low, b, n.rows),
        grid(high, b, n.rows),
    )


@kernel
def write_answer(batch: BatchArrays, p: int, beam: Beam, done: bool, found: Found) -> None:
    """Writes the best node of a beam down as the answer to problem `p`, if the search is done."""
    labels = labels_of(batch, found.labels, p)
    found.done[p], found.n_costs[p] = done, 0
    for v in range(labels.size):
        labels[v] = beam.nodes.labels[0, v] if done else -1
        found.n_costs[p] += beam.known[v] == KNOWN


@inlined_kernel
def expand(instance: Instance, weights: FloatArray, options: Options, beam: Beam, n_nodes: int, t: int) -> None:
    """Writes the candidates of step `t`, node by node and label by label, but for the costs of their labels."""
    graph = instance.graph
    open_candidates(graph, beam.nodes, n_nodes, t, beam.scratch)
    for x in range(graph.done_first[t], graph.done_first[t + 1]):
        f = graph.done[x]
        if graph.table_at[f] >= 0 or weights.size:
            complete(instance, weights, options, beam, n_nodes, t, f)
    if options.enforce and graph.row_low.size:
        remove_by_rows(graph, beam.nodes, n_nodes, t, beam.scratch.out)
    if options.ahead:
        look_ahead(instance, options, beam, n_nodes, t)


@inlined_kernel
def open_candidates(graph: Graph, nodes: Nodes, n_nodes: int, t: int, scratch: Scratch) -> None:
    """Starts the candidates of step `t`, node by node and label by label."""
    k = graph.order[t]
    n_labels = graph.first[k + 1] - graph.first[k]
    for b in range(n_nodes):
        for c in range(b * n_labels, (b + 1) * n_labels):
            scratch.g[c] = 0.0
            scratch.h[c] = nodes.h[b]
            scratch.rest[c] = 0.0
            scratch.out[c] = False


@inlined_kernel
def complete(
    instance: Instance, weights: FloatArray, options: Options, beam: Beam, n_nodes: int, t: int, f: int
) -> None:
    """Adds the cost and the weight of factor `f`, which the candidates of step `t` complete, to them."""
    graph, _, table = instance
    labels, scratch = beam.nodes.labels, beam.scratch
    k = graph.order[t]
    n_labels = graph.first[k + 1] - graph.first[k]
    for b in range(n_nodes):
        base, stride = 0, 0
        for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
            if graph.scope[a] == k:
                stride = graph.stride[a]
            else:
                base += graph.stride[a] * labels[b, graph.scope[a]]
        c = b * n_labels
        if graph.table_at[f] >= 0:
            at = graph.table_at[f] + base
            for i in range(n_labels):
                value = table[at + i * stride]
                if value < np.inf:
                    scratch.g[c + i] += value
                elif options.enforce:
                    scratch.out[c + i] = True
        if weights.size and graph.weight_at[f] >= 0:
            at = graph.weight_at[f] + base
            for i in range(n_labels):
                scratch.h[c + i] -= weights[at + i * stride]


@kernel
def remove_by_rows(graph: Graph, nodes: Nodes, n_nodes: int, t: int, out: IntArray) -> None:
    """Removes the candidates of step `t` with which some row can no longer hold."""
    k = graph.order[t]
    n_labels = graph.first[k + 1] - graph.first[k]
    hopeless = t == 0 and not rows_can_hold(graph)
    for b in range(n_nodes):
        for i in range(n_labels):
            if hopeless or breaks_row(graph, nodes.row_low[b], nodes.row_high[b], k, graph.first[k] + i):
                out[b * n_labels + i] = True


@inlined_kernel
def add_costs(instance: Instance, options: Options, beam: Beam, n_nodes: int, t: int) -> None:
    """Adds the path costs of their nodes, and the label's own if it is known, to the candidates of step `t`."""
    graph, cost, _ = instance
    scratch = beam.scratch
    k = graph.order[t]
    n_labels = graph.first[k + 1] - graph.first[k]
    for b in range(n_nodes):
        for i in range(n_labels):
            c = b * n_labels + i
            scratch.g[c] += beam.nodes.g[b]
            if beam.known[k] == KNOWN:
                scratch.g[c] += cost[graph.first[k] + i]
            if options.enforce and scratch.g[c] == np.inf:
                scratch.out[c] = True


@inlined_kernel
def rank_by_heuristic(graph: Graph, options: Options, n_nodes: int, t: int, scratch: Scratch) -> tuple[int, float]:
    """Ranks the candidates of step `t` by `h` alone; returns how many and the gap at the beam's edge."""
    k, width = graph.order[t], options.width
    n_labels = graph.first[k + 1] - graph.first[k]
    n_best = 0
    for b in range(n_nodes):
        for i in range(n_labels):
            c = b * n_labels + i
            if not scratch.out[c]:
                n_best = select(scratch.rank, scratch.best, n_best, width + 1, (b << BITS) | i, scratch.h[c])
    gap = np.inf if n_best <= width else scratch.rank[width] - scratch.rank[width - 1]
    return n_best, gap


@inlined_kernel
def rank_by_priority(graph: Graph, options: Options, n_nodes: int, t: int, scratch: Scratch) -> int:
    """Ranks the candidates of step `t` by `g + h`, and look-ahead; returns how many the beam keeps."""
    k, width = graph.order[t], options.width
    n_labels = graph.first[k + 1] - graph.first[k]
    n_best = 0
    for b in range(n_nodes):
        for i in range(n_labels):
            c = b * n_labels + i
            if not scratch.out[c]:
                priority = scratch.g[c] + scratch.h[c] + scratch.rest[c]
                n_best = select(scratch.rank, scratch.best, n_best, width, (b << BITS) | i, priority)
    return n_best


@inlined_kernel
def select(rank: FloatArray, best: IntArray, n_best: int, capacity: int, candidate: int, priority: float) -> int:
    """Inserts a candidate into the best so far, after its equals; returns how many there are."""
    if n_best == capacity:
        if not priority < rank[capacity - 1]:
            return n_best
        n_best -= 1
    at = n_best
    while at > 0 and priority < rank[at - 1]:
        rank[at] = rank[at - 1]
        best[at] = best[at - 1]
        at -= 1
    rank[at] = priority
    best[at] = candidate
    return n_best + 1


@kernel
def look_ahead(instance: Instance, options: Options, beam: Beam, n_nodes: int, t: int) -> None:
    """Writes the least that each candidate of step `t` must still cost; removes those that cannot go on."""
    graph = instance.graph
    nodes, scratch = beam.nodes, beam.scratch
    k = graph.order[t]
    n_labels = graph.first[k + 1] - graph.first[k]
    for b in range(n_nodes):
        for i in range(n_labels):
            c = b * n_labels + i
            scratch.rest[c] = nodes.rest[b] - nodes.ahead[b, k]
            nodes.labels[b, k] = i
            for x in range(graph.open_first[t], graph.open_first[t + 1]):
                u = opened(graph, beam.known, t, x)
                if u >= 0 and not scratch.out[c]:
                    least = least_cost(instance, nodes.labels, b, t, u)
                    if least < np.inf:
                        scratch.rest[c] += least - nodes.ahead[b, u]
                    elif options.enforce:
                        scratch.out[c] = True


@kernel
def keep_ahead(instance: Instance, beam: Beam, n_nodes: int, t: int) -> None:
    """Keeps, for the nodes that step `t` made, the least that each variable it opened can cost."""
    graph, nodes = instance.graph, beam.nodes
    for b in range(n_nodes):
        for x in range(graph.open_first[t], graph.open_first[t + 1]):
            u = opened(graph, beam.known, t, x)
            if u >= 0:
                least = least_cost(instance, nodes.labels, b, t, u)
                if least < np.inf:
                    nodes.ahead[b, u] = least


@kernel
def opened(graph: Graph, known: IntArray, t: int, x: int) -> int:
    """Returns the variable that the `x`-th opened factor of step `t` lacks; -1 if unknown or opened before."""
    u: int = graph.last[graph.open[x]]
    if known[u] != KNOWN:
        return -1
    for y in range(graph.open_first[t], x):
        if graph.last[graph.open[y]] == u:
            return -1
    return u


@kernel
def least_cost(instance: Instance, labels: IntArray, b: int, t: int, u: int) -> float:
    """Returns the least that variable `u` can cost, given the labels up to step `t` and its tables with them."""
    graph, cost, table = instance
    least = np.inf
    for j in range(graph.first[u + 1] - graph.first[u]):
        value = cost[graph.first[u] + j]
        for x in range(graph.touch_first[u], graph.touch_first[u + 1]):
            slot = graph.touch[x]
            f = graph.factor_of[slot]
            if graph.table_at[f] < 0 or graph.last[f] != u or value == np.inf:
                continue
            at = graph.table_at[f] + j * graph.stride[slot]
            short = True
            for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
                if a != slot:
                    short &= graph.position[graph.scope[a]] <= t
                    at += graph.stride[a] * labels[b, graph.scope[a]]
            if short:
                value += table[at]
        least = min(least, value)
    return least

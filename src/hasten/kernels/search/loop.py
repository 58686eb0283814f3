"""The loop of every beam search: from the empty labelling to its answer, one variable a step.

It stops where it needs costs that are not there, and can be resumed; where nobody tracks it, a beam of one takes
shorter steps.
"""

from __future__ import annotations

import numpy as np

from hasten.jit import inlined_kernel, kernel
from hasten.kernels.layout import Graph, Instance
from hasten.kernels.score import breaks_row, narrow, rows_can_hold, rows_hold, start_ranges
from hasten.kernels.search.nodes import (
    BITS,
    GIVEN,
    KNOWN,
    MASK,
    NOW,
    UNKNOWN,
    WANTED,
    Beam,
    Nodes,
    Options,
    add_costs,
    expand,
    keep_ahead,
    rank_by_heuristic,
    rank_by_priority,
)
from hasten.support.arrays import FloatArray, IntArray

DONE, BLOCKED, DEAD_END, LOST, FORBIDDEN = 0, 1, 2, 3, 4  # the last two: the reference was pruned, or ruled out
NONE, UNSEEN = -1, -2  # instead of a label: all are forbidden; the costs decide


@kernel
def begin(instance: Instance, options: Options, costs: int, beam: Beam) -> None:
    """Puts the empty labelling in the beam; costs that are not given, or that theta may skip, are unknown."""
    graph, cost, _ = instance
    nodes, _, known, track = beam
    state = KNOWN if costs == GIVEN and options.theta == np.inf else UNKNOWN
    for v in range(graph.order.size):
        known[v] = state
    nodes.g[0] = 0.0
    nodes.h[0] = 0.0
    nodes.rest[0] = 0.0
    track.good[0] = 0
    start_ranges(graph, nodes.row_low[0], nodes.row_high[0])
    if options.ahead:
        for v in range(graph.order.size):
            least = np.inf
            if known[v] == KNOWN:
                for at in range(graph.first[v], graph.first[v + 1]):
                    least = min(least, cost[at])
            nodes.ahead[0, v] = least if least < np.inf else 0.0
            nodes.rest[0] += nodes.ahead[0, v]


@kernel
def advance(
    instance: Instance, weights: FloatArray, options: Options, costs: int, beam: Beam, n_nodes: int, t: int
) -> tuple[int, int, int]:
    """Searches from step `t` until the search ends or is blocked; returns how it ended, the nodes and the step.

    The costs that a blocked search needs are marked as wanted. `costs` says how they come: `GIVEN` never
    blocks, after `NOW` the scratch space is as it was left, after `LATER` the step is taken anew.
    """
    graph = instance.graph
    scratch, known, track = beam.scratch, beam.known, beam.track
    n_variables = graph.order.size
    if options.width == 1 and not options.ahead and track.gap.size + track.reference.size == 0:
        outcome, t = advance_one(instance, weights, options, costs, beam, t)
        return outcome, 1, t
    pending = options.theta < np.inf or costs != GIVEN  # otherwise every cost is known
    while t < n_variables:
        n_best, gap, skip = 0, 0.0, False
        if costs != NOW or known[graph.order[t]] != WANTED:
            expand(instance, weights, options, beam, n_nodes, t)
            if options.theta < np.inf or track.gap.size:
                n_best, gap = rank_by_heuristic(graph, options, n_nodes, t, scratch)
                skip = options.theta < np.inf and (options.theta == 0.0 or gap > options.theta)
            if track.gap.size:
                track.gap[t] = gap
        if pending and not skip and not add_pending(instance, costs, beam, n_nodes, t):
            return BLOCKED, n_nodes, t
        add_costs(instance, options, beam, n_nodes, t)
        if not skip:
            n_best = rank_by_priority(graph, options, n_nodes, t, scratch)
        n_nodes = min(n_best, options.width)
        followed = DONE if track.reference.size == 0 else follow(graph, beam, n_nodes, t)
        if followed == FORBIDDEN:
            return FORBIDDEN, n_nodes, t
        if n_nodes == 0:
            return DEAD_END, 0, t
        keep_best(instance, options, beam, n_nodes, t)
        if followed == LOST:
            return LOST, n_nodes, t
        t += 1
    if n_variables == 0 and options.enforce and not rows_hold(graph, scratch.best):
        return DEAD_END, 0, t
    if options.theta < np.inf and n_nodes > 1:
        return choose(instance, options, costs, beam, n_nodes), n_nodes, t
    return DONE, n_nodes, t


@kernel
def follow(graph: Graph, beam: Beam, n_best: int, t: int) -> int:
    """Looks for the reference among the best candidates of step `t`; returns whether it was ruled out or lost."""
    scratch, track = beam.scratch, beam.track
    k = graph.order[t]
    label, good = track.reference[k], track.good[0]
    c = good * (graph.first[k + 1] - graph.first[k]) + label
    if scratch.out[c]:
        return FORBIDDEN
    track.good_cost[0] = scratch.g[c] + scratch.rest[c]
    for b in range(n_best):
        if scratch.best[b] == (good << BITS) | label:
            track.good[0] = b
            return DONE
    return LOST


@kernel
def choose(instance: Instance, options: Options, costs: int, beam: Beam, n_nodes: int) -> int:
    """Puts the answer first: the rule of every step once more, with a beam of one."""
    graph, nodes = instance.graph, beam.nodes
    first, second = np.inf, np.inf
    best = 0
    for b in range(n_nodes):
        if nodes.h[b] < first:
            first, second, best = nodes.h[b], first, b
        else:
            second = min(second, nodes.h[b])
    if options.theta > 0.0 and not second - first > options.theta:
        if not add_pending(instance, costs, beam, n_nodes, graph.order.size):
            return BLOCKED
        best = 0
        for b in range(1, n_nodes):
            if nodes.g[b] + nodes.h[b] < nodes.g[best] + nodes.h[best]:
                best = b
        if options.enforce and nodes.g[best] == np.inf:
            return DEAD_END
    for v in range(graph.order.size):
        nodes.labels[0, v] = nodes.labels[best, v]
    return DONE


@inlined_kernel
def add_pending(instance: Instance, costs: int, beam: Beam, n_nodes: int, t: int) -> bool:
    """Brings the costs that ranking step `t` by `g + h` needs into `g`; false if some must be computed first."""
    graph, cost, _ = instance
    nodes, known = beam.nodes, beam.known
    ready = True
    last = min(t + 1, graph.order.size)
    start = t if n_nodes == 1 else 0  # one node agrees with itself: costs that it was never asked for stay pending
    for s in range(start, last):
        v = graph.order[s]
        wanted = s == t
        for b in range(1, n_nodes if known[v] == UNKNOWN else 0):
            wanted |= nodes.labels[b, v] != nodes.labels[0, v]
        if known[v] == UNKNOWN and wanted:
            known[v] = WANTED
            ready = costs == GIVEN and ready
    if ready:
        for s in range(start, last):
            v = graph.order[s]
            if known[v] == WANTED:
                known[v] = KNOWN
                for b in range(n_nodes if s < t else 0):
                    nodes.g[b] += cost[graph.first[v] + nodes.labels[b, v]]
    return ready


@inlined_kernel
def keep_best(instance: Instance, options: Options, beam: Beam, n_best: int, t: int) -> None:
    """Makes the best candidates of step `t` the nodes of the beam."""
    graph = instance.graph
    nodes, scratch = beam.nodes, beam.scratch
    for b in range(n_best):
        if scratch.best[b] >> BITS != b:
            copy_nodes(graph, nodes, scratch.next, scratch.best, n_best, True, options.ahead)
            copy_nodes(graph, scratch.next, nodes, scratch.best, n_best, False, options.ahead)
            break
    k = graph.order[t]
    n_labels = graph.first[k + 1] - graph.first[k]
    for b in range(n_best):
        i = scratch.best[b] & MASK
        c = (scratch.best[b] >> BITS) * n_labels + i
        nodes.labels[b, k] = i
        nodes.g[b] = scratch.g[c]
        nodes.h[b] = scratch.h[c]
        nodes.rest[b] = scratch.rest[c]
        narrow(graph, nodes.row_low[b], nodes.row_high[b], k, graph.first[k] + i)
    if options.ahead:
        keep_ahead(instance, beam, n_best, t)


@inlined_kernel
def copy_nodes(
    graph: Graph, source: Nodes, target: Nodes, best: IntArray, n_best: int, parents: bool, ahead: bool
) -> None:
    """Copies nodes to their own places, or each candidate's parent to the candidate's place."""
    for b in range(n_best):
        x = best[b] >> BITS if parents else b
        for v in range(graph.order.size):
            target.labels[b, v] = source.labels[x, v]
        for r in range(graph.row_low.size):
            target.row_low[b, r], target.row_high[b, r] = source.row_low[x, r], source.row_high[x, r]
        if ahead:
            for v in range(graph.order.size):
                target.ahead[b, v] = source.ahead[x, v]


# A beam of one, without look-ahead. Every sum is that of the general step, in the same order, so the answers are the
# same to the last bit, unless sums overflow: a forbidden candidate costs inf here. Without enforcing, a forbidden tuple
# costs nothing, as there.


@kernel
def advance_one(
    instance: Instance, weights: FloatArray, options: Options, costs: int, beam: Beam, t: int
) -> tuple[int, int]:
    """Labels one variable after the other, in the only node, from step `t` on; returns how it ended and the step."""
    graph, cost, _ = instance
    nodes, known, g, h = beam.nodes, beam.known, beam.scratch.g, beam.scratch.h
    path, weight = nodes.g[0], nodes.h[0]
    for s in range(t, graph.order.size):
        k, chosen = graph.order[s], UNSEEN
        first, n = graph.first[k], graph.first[k + 1] - graph.first[k]
        if costs != NOW or known[k] != WANTED:
            expand_one(instance, weights, options.enforce, beam, s, weight)
            if options.theta < np.inf:
                best, least, second = NONE, np.inf, np.inf
                for i in range(n):
                    if g[i] < np.inf or not options.enforce:
                        if h[i] < least:
                            best, least, second = i, h[i], least
                        else:
                            second = min(second, h[i])
                if best == NONE or options.theta == 0.0 or second - least > options.theta:
                    chosen = best
        if chosen == UNSEEN:
            if costs != GIVEN and known[k] == UNKNOWN:
                known[k] = WANTED
                nodes.g[0], nodes.h[0] = path, weight
                return BLOCKED, s
            known[k], chosen, least = KNOWN, NONE if options.enforce else 0, np.inf
            for i in range(n):
                value = (g[i] + path) + cost[first + i] + h[i]
                if value < least:
                    chosen, least = i, value
        if chosen == NONE:
            return DEAD_END, s
        nodes.labels[0, k] = chosen
        narrow(graph, nodes.row_low[0], nodes.row_high[0], k, first + chosen)
        path, weight = g[chosen] + path, h[chosen]
        if known[k] == KNOWN:
            path += cost[first + chosen]
    if graph.order.size == 0 and options.enforce and not rows_hold(graph, nodes.labels[0]):
        return DEAD_END, 0
    return DONE, graph.order.size


@inlined_kernel
def expand_one(instance: Instance, weights: FloatArray, enforce: bool, beam: Beam, t: int, weight: float) -> None:
    """Writes the cost of each label of step `t` in tables, inf if it is forbidden, and its heuristic."""
    graph, _, table = instance
    nodes, g, h = beam.nodes, beam.scratch.g, beam.scratch.h
    labels, low, high = nodes.labels[0], nodes.row_low[0], nodes.row_high[0]
    k = graph.order[t]
    first = graph.first[k]
    n = graph.first[k + 1] - first
    for i in range(n):
        g[i] = 0.0
        h[i] = weight
    for x in range(graph.done_first[t], graph.done_first[t + 1]):
        f = graph.done[x]
        table_at = graph.table_at[f]
        if table_at < 0 and weights.size == 0:
            continue
        base, stride = 0, 0
        for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
            v = graph.scope[a]
            if v == k:
                stride = graph.stride[a]
            else:
                base += graph.stride[a] * labels[v]
        if table_at >= 0:
            for i in range(n):
                value = table[table_at + base + i * stride]
                if enforce or value < np.inf:
                    g[i] += value
        if weights.size and graph.weight_at[f] >= 0:
            for i in range(n):
                h[i] -= weights[graph.weight_at[f] + base + i * stride]
    if enforce and graph.row_low.size:
        hopeless = t == 0 and not rows_can_hold(graph)
        for i in range(n):
            if hopeless or breaks_row(graph, low, high, k, first + i):
                g[i] = np.inf

"""Beam search over partial labellings (paper §2.2, §4.1), one resumable kernel for all its forms.

A node is a partial labelling in the structure's search order. Its priority is `g + h`, smaller is better: `g`
is the path cost (costs of its labels, finite entries of the tables it completed), `h = -w·phi` the learned
heuristic. Ties go to the earlier candidate. Switches:

- `enforce`: forbidden tuples, forbidden labels and rows that can no longer hold remove a candidate;
- `ahead`: adds, for each unassigned variable whose cost is known, the least it can still cost given the
  tables that are one variable short (an admissible estimate; zero learning);
- `spread`: drops nodes whose priority is more than this above the best: a beam that narrows when it is sure;
- `theta`: where the gap in `h` around the beam's edge exceeds it, candidates are ranked by `h` alone and the
  variable's cost stays *pending*. A later step that ranks by `g + h` first needs the pending costs on which the
  nodes disagree; where they all agree a cost shifts every `g` alike and is never needed. `theta = inf` always
  computes, `theta = 0` never does.

A search that needs costs that are not there returns `BLOCKED` with those variables marked as wanted; put
their costs in place and call `advance` again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hasten.graph import BoolArray, FloatArray, Graph, IntArray, Pool, view
from hasten.kernels.score import rows_hold, slack

DONE, BLOCKED, DEAD_END = 0, 1, 2
UNKNOWN, WANTED, KNOWN = 0, 1, 2  # the cost of a variable; one that is known and assigned is part of g


class Options(NamedTuple):
    """How to search."""

    width: int
    theta: float
    spread: float
    enforce: bool
    ahead: bool


class Nodes(NamedTuple):
    """The nodes of a beam, best first: room for `width` of them."""

    labels: NDArray[np.int16]  # (width, V)
    g: FloatArray  # (width,)
    h: FloatArray  # (width,)
    rest: FloatArray  # (width,) the least that all unassigned variables can still cost: the sum of
    ahead: FloatArray  # (width, V) the least that each can cost; unused without look-ahead
    row: FloatArray  # (width, R) what each row has so far


class Scratch(NamedTuple):
    """Room to expand and select."""

    next: Nodes
    g: FloatArray  # (candidates,)
    h: FloatArray  # (candidates,)
    rest: FloatArray  # (candidates,)
    out: BoolArray  # (candidates,) removed
    best: IntArray  # (width + 1,) candidate numbers, best first
    rank: FloatArray  # (width + 1,) their priorities
    position: IntArray  # (V,) the step that assigns each variable


@njit(cache=True, nogil=True)
def make_nodes(width: int, n_variables: int, n_rows: int) -> Nodes:
    """Returns room for a beam."""
    return Nodes(
        np.zeros((width, n_variables), dtype=np.int16),
        np.zeros(width),
        np.zeros(width),
        np.zeros(width),
        np.zeros((width, n_variables)),
        np.zeros((width, n_rows)),
    )


@njit(cache=True, nogil=True)
def make_scratch(width: int, n_variables: int, n_rows: int, n_labels: int) -> Scratch:
    """Returns room to expand a beam over variables of at most `n_labels` labels."""
    n = width * n_labels
    return Scratch(
        make_nodes(width, n_variables, n_rows),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n, dtype=np.bool_),
        np.zeros(width + 1, dtype=np.int64),
        np.zeros(width + 1),
        np.zeros(n_variables, dtype=np.int64),
    )


@njit(cache=True, nogil=True)
def begin(graph: Graph, cost: FloatArray, options: Options, known: IntArray, nodes: Nodes) -> None:
    """Puts the empty labelling in the beam."""
    nodes.g[0] = 0.0
    nodes.h[0] = 0.0
    nodes.rest[0] = 0.0
    nodes.row[0, :] = 0.0
    if options.ahead:
        for v in range(graph.order.size):
            least = np.inf
            if known[v] == KNOWN:
                for at in range(graph.first[v], graph.first[v + 1]):
                    least = min(least, cost[at])
            nodes.ahead[0, v] = least if least < np.inf else 0.0
            nodes.rest[0] += nodes.ahead[0, v]


@njit(cache=True, nogil=True)
def advance(
    graph: Graph,
    cost: FloatArray,
    table: FloatArray,
    weights: FloatArray,
    options: Options,
    lazy: bool,
    known: IntArray,
    nodes: Nodes,
    n_nodes: int,
    t: int,
    scratch: Scratch,
) -> tuple[int, int, int]:
    """Searches from step `t` until done, blocked or at a dead end; returns which, the nodes and the step."""
    n_variables, width = graph.order.size, options.width
    for s in range(n_variables):
        scratch.position[graph.order[s]] = s
    while t < n_variables:
        k = graph.order[t]
        n_labels = graph.first[k + 1] - graph.first[k]
        n = expand(graph, cost, table, weights, options, known, nodes, n_nodes, t, scratch)
        n_best = 0
        skip = False
        if options.theta < np.inf:
            for c in range(n):
                if not scratch.out[c]:
                    n_best = select(scratch, n_best, width + 1, c, scratch.h[c])
            gap = np.inf if n_best <= width else scratch.rank[width] - scratch.rank[width - 1]
            skip = options.theta == 0.0 or gap > options.theta
        if not skip:
            if not settle(graph, cost, lazy, known, nodes, n_nodes, t):
                return BLOCKED, n_nodes, t
            n_best = 0
        for c in range(n):
            scratch.g[c] += nodes.g[c // n_labels]
            if known[k] == KNOWN:
                scratch.g[c] += cost[graph.first[k] + c % n_labels]
            if options.enforce and scratch.g[c] == np.inf:
                scratch.out[c] = True
            if not skip and not scratch.out[c]:
                priority = scratch.g[c] + scratch.h[c] + scratch.rest[c]
                n_best = select(scratch, n_best, width, c, priority)
        n_best = min(n_best, width)
        if n_best == 0:
            return DEAD_END, 0, t
        while not skip and n_best > 1 and scratch.rank[n_best - 1] > scratch.rank[0] + options.spread:
            n_best -= 1
        adopt(graph, cost, table, options, known, nodes, n_best, t, scratch)
        n_nodes = n_best
        t += 1
    if n_variables == 0 and options.enforce and not rows_hold(graph, scratch.best[:0]):
        return DEAD_END, 0, t
    return DONE, n_nodes, t


@njit(cache=True, nogil=True)
def expand(
    graph: Graph,
    cost: FloatArray,
    table: FloatArray,
    weights: FloatArray,
    options: Options,
    known: IntArray,
    nodes: Nodes,
    n_nodes: int,
    t: int,
    scratch: Scratch,
) -> int:
    """Writes the candidates of step `t`, node by node and label by label; their `g` holds tables only."""
    k = graph.order[t]
    n_labels = graph.first[k + 1] - graph.first[k]
    for b in range(n_nodes):
        c0 = b * n_labels
        for i in range(n_labels):
            scratch.g[c0 + i] = 0.0
            scratch.h[c0 + i] = nodes.h[b]
            scratch.rest[c0 + i] = 0.0
            scratch.out[c0 + i] = False
        for x in range(graph.done_first[t], graph.done_first[t + 1]):
            f = graph.done[x]
            base, stride = 0, 0
            for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
                if graph.scope[a] == k:
                    stride = graph.stride[a]
                else:
                    base += graph.stride[a] * nodes.labels[b, graph.scope[a]]
            if graph.table_at[f] >= 0:
                at = graph.table_at[f] + base
                for i in range(n_labels):
                    value = table[at + i * stride]
                    if value < np.inf:
                        scratch.g[c0 + i] += value
                    elif options.enforce:
                        scratch.out[c0 + i] = True
            if weights.size and graph.weight_at[f] >= 0:
                at = graph.weight_at[f] + base
                for i in range(n_labels):
                    scratch.h[c0 + i] -= weights[at + i * stride]
        if options.enforce and graph.row_low.size:
            for i in range(n_labels):
                scratch.out[c0 + i] |= breaks_row(graph, nodes.row[b], t, graph.first[k] + i)
        if options.ahead:
            for i in range(n_labels):
                nodes.labels[b, k] = i
                rest = nodes.rest[b] - nodes.ahead[b, k]
                if not scratch.out[c0 + i]:
                    rest += look_ahead(graph, cost, table, options, known, nodes, b, t, scratch.position, False)
                scratch.rest[c0 + i] = rest
                scratch.out[c0 + i] |= rest == np.inf
    return n_nodes * n_labels


@njit(cache=True, nogil=True)
def breaks_row(graph: Graph, row: FloatArray, t: int, label: int) -> bool:
    """Whether some row can no longer hold once step `t` chooses a label."""
    n_rows = graph.row_low.size
    for r in range(n_rows):
        value = row[r]
        for c in range(graph.cell_first[label], graph.cell_first[label + 1]):
            if graph.cell_row[c] == r:
                value += graph.cell_weight[c]
        low, high = graph.row_low[r], graph.row_high[r]
        at = (t + 1) * n_rows + r
        if value + graph.rest_low[at] > high + slack(high) or value + graph.rest_high[at] < low - slack(low):
            return True
    return False


@njit(cache=True, nogil=True)
def look_ahead(
    graph: Graph,
    cost: FloatArray,
    table: FloatArray,
    options: Options,
    known: IntArray,
    nodes: Nodes,
    b: int,
    t: int,
    position: IntArray,
    keep: bool,
) -> float:
    """Returns how much more node `b` must cost given its label at step `t`; if asked, keeps what it found."""
    change = 0.0
    for x in range(graph.open_first[t], graph.open_first[t + 1]):
        u = graph.last[graph.open[x]]
        repeated = known[u] != KNOWN
        for y in range(graph.open_first[t], x):
            repeated |= graph.last[graph.open[y]] == u
        if repeated:
            continue
        least = least_cost(graph, cost, table, position, nodes.labels[b], t, u)
        if least == np.inf and not options.enforce:
            continue
        if least != nodes.ahead[b, u]:
            change += least - nodes.ahead[b, u]
            if keep:
                nodes.ahead[b, u] = least
    return change


@njit(cache=True, nogil=True)
def least_cost(
    graph: Graph,
    cost: FloatArray,
    table: FloatArray,
    position: IntArray,
    labels: NDArray[np.int16],
    t: int,
    u: int,
) -> float:
    """Returns the least that variable `u` can cost, given the labels up to step `t` and its tables with them."""
    least = np.inf
    for j in range(graph.first[u + 1] - graph.first[u]):
        value = cost[graph.first[u] + j]
        for x in range(graph.touch_first[u], graph.touch_first[u + 1]):
            slot = graph.touch[x]
            f = graph.factor_of[slot]
            if graph.table_at[f] < 0 or graph.last[f] != u or value >= least:
                continue
            at = graph.table_at[f] + j * graph.stride[slot]
            short = True
            for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
                if a != slot:
                    short &= position[graph.scope[a]] <= t
                    at += graph.stride[a] * labels[graph.scope[a]]
            if short:
                value += table[at]
        least = min(least, value)
    return least


@njit(cache=True, nogil=True)
def select(scratch: Scratch, n_best: int, room: int, candidate: int, priority: float) -> int:
    """Inserts a candidate into the best so far, after its equals; returns how many there are."""
    rank, best = scratch.rank, scratch.best
    if n_best == room:
        if not priority < rank[room - 1]:
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


@njit(cache=True, nogil=True)
def settle(
    graph: Graph, cost: FloatArray, lazy: bool, known: IntArray, nodes: Nodes, n_nodes: int, t: int
) -> bool:
    """Brings the costs that ranking step `t` by `g + h` needs into `g`; false if some must be computed first."""
    ready = True
    for s in range(t + 1):
        v = graph.order[s]
        if known[v] == UNKNOWN and (s == t or disagree(nodes, n_nodes, v)):
            known[v] = WANTED
            ready = not lazy and ready
    if ready:
        for s in range(t + 1):
            v = graph.order[s]
            if known[v] == WANTED:
                known[v] = KNOWN
                for b in range(n_nodes if s < t else 0):
                    nodes.g[b] += cost[graph.first[v] + nodes.labels[b, v]]
    return ready


@njit(cache=True, nogil=True)
def disagree(nodes: Nodes, n_nodes: int, v: int) -> bool:
    """Whether the nodes give an assigned variable different labels."""
    for b in range(1, n_nodes):
        if nodes.labels[b, v] != nodes.labels[0, v]:
            return True
    return False


@njit(cache=True, nogil=True)
def adopt(
    graph: Graph,
    cost: FloatArray,
    table: FloatArray,
    options: Options,
    known: IntArray,
    nodes: Nodes,
    n_best: int,
    t: int,
    scratch: Scratch,
) -> None:
    """Makes the selected candidates of step `t` the beam."""
    k = graph.order[t]
    n_labels = graph.first[k + 1] - graph.first[k]
    in_place = True
    for b in range(n_best):
        in_place &= scratch.best[b] // n_labels == b
    if not in_place:
        copy_nodes(graph, nodes, scratch.next, scratch.best, n_labels, n_best, options.ahead)
        copy_nodes(graph, scratch.next, nodes, scratch.best, 0, n_best, options.ahead)
    for b in range(n_best):
        c = scratch.best[b]
        i = c % n_labels
        nodes.labels[b, k] = i
        nodes.g[b] = scratch.g[c]
        nodes.h[b] = scratch.h[c]
        if options.ahead:
            nodes.rest[b] = scratch.rest[c]
            look_ahead(graph, cost, table, options, known, nodes, b, t, scratch.position, True)
        for x in range(graph.cell_first[graph.first[k] + i], graph.cell_first[graph.first[k] + i + 1]):
            nodes.row[b, graph.cell_row[x]] += graph.cell_weight[x]


@njit(cache=True, nogil=True)
def copy_nodes(
    graph: Graph, source: Nodes, target: Nodes, best: IntArray, n_labels: int, n_best: int, ahead: bool
) -> None:
    """Copies the parents of the best candidates into place; with no labels, node by node."""
    for b in range(n_best):
        parent = best[b] // n_labels if n_labels else b
        for v in range(graph.order.size):
            target.labels[b, v] = source.labels[parent, v]
        for r in range(graph.row_low.size):
            target.row[b, r] = source.row[parent, r]
        if ahead:
            for v in range(graph.order.size):
                target.ahead[b, v] = source.ahead[parent, v]


@njit(cache=True, nogil=True)
def search_range(
    pool: Pool,
    structure: IntArray,
    cost: FloatArray,
    cost_at: IntArray,
    table: FloatArray,
    table_at: IntArray,
    variable_at: IntArray,
    weights: FloatArray,
    options: Options,
    begin_at: int,
    end_at: int,
    labels: IntArray,
    outcome: IntArray,
    n_costs: IntArray,
) -> None:
    """Searches problems `begin_at:end_at`, whose costs are all there."""
    n_variables, n_rows, n_labels = largest(pool, structure, begin_at, end_at)
    nodes = make_nodes(options.width, n_variables, n_rows)
    scratch = make_scratch(options.width, n_variables, n_rows, n_labels)
    state = np.empty(n_variables, dtype=np.int64)
    for p in range(begin_at, end_at):
        graph = view(pool, structure[p])
        mine = cost[cost_at[p] : cost_at[p + 1]]
        state[:] = KNOWN if options.theta == np.inf else UNKNOWN
        begin(graph, mine, options, state, nodes)
        outcome[p], _, _ = advance(
            graph, mine, table[table_at[p] :], weights, options, False, state, nodes, 1, 0, scratch
        )
        n_costs[p] = 0
        for v in range(graph.order.size):
            labels[variable_at[p] + v] = nodes.labels[0, v] if outcome[p] == DONE else -1
            n_costs[p] += state[v] == KNOWN


@njit(cache=True, nogil=True)
def largest(pool: Pool, structure: IntArray, begin_at: int, end_at: int) -> tuple[int, int, int]:
    """Returns the most variables, rows and labels of a variable that some problems have."""
    n_variables, n_rows, n_labels = 0, 0, 1
    seen = np.zeros(pool.at.shape[0], dtype=np.bool_)
    for p in range(begin_at, end_at):
        if not seen[structure[p]]:
            seen[structure[p]] = True
            graph = view(pool, structure[p])
            n_variables = max(n_variables, graph.order.size)
            n_rows = max(n_rows, graph.row_low.size)
            for v in range(graph.order.size):
                n_labels = max(n_labels, graph.first[v + 1] - graph.first[v])
    return n_variables, n_rows, n_labels


class Paused(NamedTuple):
    """The beams of a whole batch between two waves of requests, problem after problem."""

    labels: NDArray[np.int16]  # (width * variables,)
    g: FloatArray  # (width * n,)
    h: FloatArray  # (width * n,)
    rest: FloatArray  # (width * n,)
    ahead: FloatArray  # (width * variables,)
    row: FloatArray  # (width * rows,)
    row_at: IntArray  # (n + 1,)
    known: IntArray  # (variables,)
    step: IntArray  # (n,) -1 before the start
    n_nodes: IntArray  # (n,)


@njit(cache=True, nogil=True)
def search_wave(
    pool: Pool,
    structure: IntArray,
    cost: FloatArray,
    cost_at: IntArray,
    table: FloatArray,
    table_at: IntArray,
    variable_at: IntArray,
    weights: FloatArray,
    options: Options,
    active: IntArray,
    paused: Paused,
    outcome: IntArray,
) -> None:
    """Continues the active problems of a lazy batch until each is done or wants costs."""
    width = options.width
    n_variables, n_rows, n_labels = largest(pool, structure, 0, structure.size)
    scratch = make_scratch(width, n_variables, n_rows, n_labels)
    for p in active:
        graph = view(pool, structure[p])
        v0, v1, r0, r1 = variable_at[p], variable_at[p + 1], paused.row_at[p], paused.row_at[p + 1]
        b0, b1 = p * width, (p + 1) * width
        nodes = Nodes(
            paused.labels[v0 * width : v1 * width].reshape((width, v1 - v0)),
            paused.g[b0:b1],
            paused.h[b0:b1],
            paused.rest[b0:b1],
            paused.ahead[v0 * width : v1 * width].reshape((width, v1 - v0)),
            paused.row[r0 * width : r1 * width].reshape((width, r1 - r0)),
        )
        mine, known = cost[cost_at[p] : cost_at[p + 1]], paused.known[v0:v1]
        if paused.step[p] < 0:
            begin(graph, mine, options, known, nodes)
            paused.step[p] = 0
            paused.n_nodes[p] = 1
        outcome[p], paused.n_nodes[p], paused.step[p] = advance(
            graph,
            mine,
            table[table_at[p] :],
            weights,
            options,
            True,
            known,
            nodes,
            paused.n_nodes[p],
            paused.step[p],
            scratch,
        )

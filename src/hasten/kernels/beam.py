"""Beam search over partial labellings (paper §2.2, §4.1), one resumable kernel for all its forms.

A node is a partial labelling in the structure's search order. Its priority is `g + h`, smaller is better: `g`
is the path cost (costs of its labels, finite entries of the tables it completed), `h = -w·phi` the learned
heuristic. Ties go to the earlier candidate. Switches:

- `enforce`: forbidden tuples, forbidden labels and rows that can no longer hold remove a candidate;
- `ahead`: adds, for each unassigned variable whose cost is known, the least it can still cost given the
  tables that are one variable short (zero learning; an admissible estimate where no table entry is negative,
  and elsewhere up to what the tables not yet counted can give back, which is alike for all nodes of a step);
- `spread`: drops nodes whose priority is more than this above the best: a beam that narrows when it is sure;
- `theta`: where the gap in `h` around the beam's edge exceeds it, candidates are ranked by `h` alone and the
  variable's cost stays *pending*. A later step that ranks by `g + h` first needs the pending costs on which the
  nodes disagree; where they all agree a cost shifts every `g` alike and is never needed. The answer is chosen
  among the last nodes by the same rule, with a beam of one. `theta = inf` always computes, `theta = 0` never.

A search that needs costs that are not there returns `BLOCKED` with those variables marked as wanted; put
their costs in place and call `advance` again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hasten.graph import BoolArray, FloatArray, Graph, IntArray, Pool, by_structure, view
from hasten.jit import driver, inlined_kernel, kernel
from hasten.kernels.score import rows_hold, slack

DONE, BLOCKED, DEAD_END = 0, 1, 2
UNKNOWN, WANTED, KNOWN = 0, 1, 2  # the cost of a variable; one that is known and assigned is part of g


BITS, MASK = 15, (1 << 15) - 1  # a candidate is named by its node, shifted, and its label


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
    best: IntArray  # (width + 1,) candidates, best first
    rank: FloatArray  # (width + 1,) their priorities


@driver
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


@driver
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
    )


@kernel
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


@kernel
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
    resumed: bool,
    scratch: Scratch,
) -> tuple[int, int, int]:
    """Searches from step `t` until done, blocked or at a dead end; returns which, the nodes and the step.

    A search that goes on where it was blocked, with its candidates still in `scratch`, may say it is `resumed`.
    """
    n_variables, width = graph.order.size, options.width
    while t < n_variables:
        n_best = 0
        skip = False
        if not resumed:
            expand(graph, cost, table, weights, options, known, nodes, n_nodes, t, scratch)
            if options.theta < np.inf:
                n_best, gap = rank_by_heuristic(graph, n_nodes, t, width, scratch)
                skip = options.theta == 0.0 or gap > options.theta
        if not skip and not settle(graph, cost, lazy, known, nodes, n_nodes, t):
            return BLOCKED, n_nodes, t
        resumed = False
        add_costs(graph, cost, options.enforce, known, nodes.g, n_nodes, t, scratch)
        if not skip:
            n_best = rank_by_priority(graph, n_nodes, t, width, options.spread, scratch)
        n_nodes = min(n_best, width)
        if n_nodes == 0:
            return DEAD_END, 0, t
        keep_best(graph, cost, table, options, known, nodes, n_nodes, t, scratch)
        t += 1
    if n_variables == 0 and options.enforce and not rows_hold(graph, scratch.best):
        return DEAD_END, 0, t
    if options.theta < np.inf and n_nodes > 1:
        return choose(graph, cost, options, lazy, known, nodes, n_nodes), n_nodes, t
    return DONE, n_nodes, t


@kernel
def choose(
    graph: Graph,
    cost: FloatArray,
    options: Options,
    lazy: bool,
    known: IntArray,
    nodes: Nodes,
    n_nodes: int,
) -> int:
    """Puts the answer first: the rule of every step once more, with room for one node."""
    first, second = np.inf, np.inf
    best = 0
    for b in range(n_nodes):
        if nodes.h[b] < first:
            first, second, best = nodes.h[b], first, b
        else:
            second = min(second, nodes.h[b])
    if options.theta > 0.0 and not second - first > options.theta:
        if not settle(graph, cost, lazy, known, nodes, n_nodes, graph.order.size):
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
) -> None:
    """Writes the candidates of step `t`, node by node and label by label, but for the costs of their labels."""
    open_candidates(graph, nodes, n_nodes, t, scratch)
    for x in range(graph.done_first[t], graph.done_first[t + 1]):
        f = graph.done[x]
        if graph.table_at[f] >= 0 or weights.size:
            complete(graph, table, weights, options.enforce, nodes.labels, n_nodes, t, f, scratch)
    if options.enforce and graph.row_low.size:
        remove_by_rows(graph, nodes.row, n_nodes, t, scratch.out)
    if options.ahead:
        look_ahead(graph, cost, table, options.enforce, known, nodes, n_nodes, t, scratch)


@inlined_kernel
def keep_best(
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
    """Makes the best candidates of step `t` the nodes of the beam."""
    for b in range(n_best):
        if scratch.best[b] >> BITS != b:
            copy_nodes(graph, nodes, scratch.next, scratch.best, n_best, True, options.ahead)
            copy_nodes(graph, scratch.next, nodes, scratch.best, n_best, False, options.ahead)
            break
    assign(graph, nodes, n_best, t, scratch)
    if options.ahead:
        keep_ahead(graph, cost, table, known, nodes, n_best, t)


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
    graph: Graph,
    table: FloatArray,
    weights: FloatArray,
    enforce: bool,
    labels: NDArray[np.int16],
    n_nodes: int,
    t: int,
    f: int,
    scratch: Scratch,
) -> None:
    """Adds to the candidates of step `t` what factor `f`, which they complete, costs and weighs."""
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
                elif enforce:
                    scratch.out[c + i] = True
        if weights.size and graph.weight_at[f] >= 0:
            at = graph.weight_at[f] + base
            for i in range(n_labels):
                scratch.h[c + i] -= weights[at + i * stride]


@kernel
def remove_by_rows(graph: Graph, row: FloatArray, n_nodes: int, t: int, out: BoolArray) -> None:
    """Removes the candidates of step `t` with which some row can no longer hold."""
    k = graph.order[t]
    n_labels = graph.first[k + 1] - graph.first[k]
    for b in range(n_nodes):
        for i in range(n_labels):
            out[b * n_labels + i] |= breaks_row(graph, row, b, t, graph.first[k] + i)


@kernel
def look_ahead(
    graph: Graph,
    cost: FloatArray,
    table: FloatArray,
    enforce: bool,
    known: IntArray,
    nodes: Nodes,
    n_nodes: int,
    t: int,
    scratch: Scratch,
) -> None:
    """Writes the least that each candidate of step `t` must still cost; removes those that cannot go on."""
    k = graph.order[t]
    n_labels = graph.first[k + 1] - graph.first[k]
    for b in range(n_nodes):
        for i in range(n_labels):
            c = b * n_labels + i
            scratch.rest[c] = nodes.rest[b] - nodes.ahead[b, k]
            nodes.labels[b, k] = i
            for x in range(graph.open_first[t], graph.open_first[t + 1]):
                u = opened(graph, known, t, x)
                if u >= 0 and not scratch.out[c]:
                    least = least_cost(graph, cost, table, nodes.labels, b, t, u)
                    if least < np.inf:
                        scratch.rest[c] += least - nodes.ahead[b, u]
                    elif enforce:
                        scratch.out[c] = True


@kernel
def keep_ahead(
    graph: Graph,
    cost: FloatArray,
    table: FloatArray,
    known: IntArray,
    nodes: Nodes,
    n_nodes: int,
    t: int,
) -> None:
    """Keeps, for the nodes that step `t` made, the least that each variable it opened can cost."""
    for b in range(n_nodes):
        for x in range(graph.open_first[t], graph.open_first[t + 1]):
            u = opened(graph, known, t, x)
            if u >= 0:
                least = least_cost(graph, cost, table, nodes.labels, b, t, u)
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


@inlined_kernel
def rank_by_heuristic(graph: Graph, n_nodes: int, t: int, width: int, scratch: Scratch) -> tuple[int, float]:
    """Ranks the candidates of step `t` by `h` alone; returns how many and the gap at the beam's edge."""
    k = graph.order[t]
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
def add_costs(
    graph: Graph,
    cost: FloatArray,
    enforce: bool,
    known: IntArray,
    g: FloatArray,
    n_nodes: int,
    t: int,
    scratch: Scratch,
) -> None:
    """Adds the path costs of their nodes, and the label's own if it is known, to the candidates of step `t`."""
    k = graph.order[t]
    n_labels = graph.first[k + 1] - graph.first[k]
    for b in range(n_nodes):
        for i in range(n_labels):
            c = b * n_labels + i
            scratch.g[c] += g[b]
            if known[k] == KNOWN:
                scratch.g[c] += cost[graph.first[k] + i]
            if enforce and scratch.g[c] == np.inf:
                scratch.out[c] = True


@inlined_kernel
def rank_by_priority(graph: Graph, n_nodes: int, t: int, width: int, spread: float, scratch: Scratch) -> int:
    """Ranks the candidates of step `t` by `g + h`, and look-ahead; returns how many the beam keeps."""
    k = graph.order[t]
    n_labels = graph.first[k + 1] - graph.first[k]
    n_best = 0
    for b in range(n_nodes):
        for i in range(n_labels):
            c = b * n_labels + i
            if not scratch.out[c]:
                priority = scratch.g[c] + scratch.h[c] + scratch.rest[c]
                n_best = select(scratch.rank, scratch.best, n_best, width, (b << BITS) | i, priority)
    while n_best > 1 and scratch.rank[n_best - 1] > scratch.rank[0] + spread:
        n_best -= 1
    return n_best


@kernel
def breaks_row(graph: Graph, row: FloatArray, b: int, t: int, label: int) -> bool:
    """Whether some row can no longer hold once node `b` chooses a label at step `t`."""
    n_rows = graph.row_low.size
    for r in range(n_rows):
        value = row[b, r]
        for c in range(graph.cell_first[label], graph.cell_first[label + 1]):
            if graph.cell_row[c] == r:
                value += graph.cell_weight[c]
        low, high = graph.row_low[r], graph.row_high[r]
        at = (t + 1) * n_rows + r
        if value + graph.rest_low[at] > high + slack(high) or value + graph.rest_high[at] < low - slack(low):
            return True
    return False


@kernel
def least_cost(
    graph: Graph,
    cost: FloatArray,
    table: FloatArray,
    labels: NDArray[np.int16],
    b: int,
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


@inlined_kernel
def select(rank: FloatArray, best: IntArray, n_best: int, room: int, candidate: int, priority: float) -> int:
    """Inserts a candidate into the best so far, after its equals; returns how many there are."""
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


@inlined_kernel
def settle(graph: Graph, cost: FloatArray, lazy: bool, known: IntArray, nodes: Nodes, n_nodes: int, t: int) -> bool:
    """Brings the costs that ranking step `t` by `g + h` needs into `g`; false if some must be computed first."""
    ready = True
    last = min(t + 1, graph.order.size)
    for s in range(last):
        v = graph.order[s]
        if known[v] == UNKNOWN and (s == t or disagree(nodes, n_nodes, v)):
            known[v] = WANTED
            ready = not lazy and ready
    if ready:
        for s in range(last):
            v = graph.order[s]
            if known[v] == WANTED:
                known[v] = KNOWN
                for b in range(n_nodes if s < t else 0):
                    nodes.g[b] += cost[graph.first[v] + nodes.labels[b, v]]
    return ready


@kernel
def disagree(nodes: Nodes, n_nodes: int, v: int) -> bool:
    """Whether the nodes give an assigned variable different labels."""
    for b in range(1, n_nodes):
        if nodes.labels[b, v] != nodes.labels[0, v]:
            return True
    return False


@inlined_kernel
def assign(graph: Graph, nodes: Nodes, n_best: int, t: int, scratch: Scratch) -> None:
    """Gives the nodes, which already stand in their parents' places, their labels of step `t`."""
    k = graph.order[t]
    n_labels = graph.first[k + 1] - graph.first[k]
    for b in range(n_best):
        i = scratch.best[b] & MASK
        c = (scratch.best[b] >> BITS) * n_labels + i
        nodes.labels[b, k] = i
        nodes.g[b] = scratch.g[c]
        nodes.h[b] = scratch.h[c]
        nodes.rest[b] = scratch.rest[c]
        for x in range(graph.cell_first[graph.first[k] + i], graph.cell_first[graph.first[k] + i + 1]):
            nodes.row[b, graph.cell_row[x]] += graph.cell_weight[x]


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
            target.row[b, r] = source.row[x, r]
        if ahead:
            for v in range(graph.order.size):
                target.ahead[b, v] = source.ahead[x, v]


@driver
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
    if begin_at == end_at:
        return
    n_variables, n_rows, n_labels = largest(pool, structure, begin_at, end_at)
    nodes = make_nodes(options.width, n_variables, n_rows)
    scratch = make_scratch(options.width, n_variables, n_rows, n_labels)
    state = np.empty(n_variables, dtype=np.int64)
    order = by_structure(pool, structure, begin_at, end_at)
    s = structure[order[0]]
    graph = view(pool, s)
    for p in order:
        if structure[p] != s:
            s = structure[p]
            graph = view(pool, s)
        mine = cost[cost_at[p] : cost_at[p + 1]]
        state[:] = KNOWN if options.theta == np.inf else UNKNOWN
        begin(graph, mine, options, state, nodes)
        outcome[p], _, _ = advance(
            graph, mine, table[table_at[p] :], weights, options, False, state, nodes, 1, 0, False, scratch
        )
        n_costs[p] = 0
        for v in range(graph.order.size):
            labels[variable_at[p] + v] = nodes.labels[0, v] if outcome[p] == DONE else -1
            n_costs[p] += state[v] == KNOWN


@driver
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


@driver
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
            False,
            scratch,
        )

"""Counting rules on trees: plans an elimination that carries what the rules have counted.

What a rule counts is made to start from 0: each variable's least weight is subtracted from its weights, and from the
limits. Past its upper limit a rule is broken; without one, all that is past the lower limit is alike. Where that leaves
fewer counts, the rule counts what is missing from the most instead. A *state* has a count for each rule.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hasten.jit import Record, viewer
from hasten.jit.records import WIDTH
from hasten.kernels.layout import Graph
from hasten.model.compiled import Compiled
from hasten.proof.plan import RecordPlan
from hasten.support.arrays import FloatArray, IntArray, ints, offsets, sizes_of

MOST_STATES = 256
MOST_SUMS = 2**22  # for one problem: a few milliseconds
MOST_NUMBERS = 2**21  # in all tables
SPEED = 2e-9  # seconds that a sum takes at most


class Tally(Record):
    """How to count on the way through a tree of V variables.

    All trees hang below one more variable, number V, with a single label.
    """

    order: IntArray  # (V,) each before the one above it
    above: IntArray  # (V,) of each variable
    pair_at: IntArray  # (V,) where the table over it and the one above starts; -1: there is none
    pair_out: IntArray  # (V,) how far apart the labels above are in it
    pair_in: IntArray  # (V,) and its own
    own_first: IntArray  # (V + 1,) the tables over it alone start at own[own_first[v]:own_first[v + 1]]
    own: IntArray
    n_labels: IntArray  # (V + 1,)
    counts: IntArray  # (labels,) the state that a label adds
    # states; each table of them has `row` for each label
    row: IntArray  # (1,) how many numbers: that of states, rounded up to full lanes
    plus: IntArray  # (states * states,) two states together; -1: a rule is broken
    holds: IntArray  # (states,) whether all rules do
    start_at: IntArray  # (V + 1,) the table of a variable before anything is merged into it
    total_at: IntArray  # (V + 1,) and after all is
    message_at: IntArray  # (V,) its message
    before_at: IntArray  # (V,) the table of the one above before it is merged
    after_at: IntArray  # (V,) and after that
    reach: IntArray  # (V,) how many states, from the first, it can come to
    reach_before: IntArray  # (V,) and the one above before it is merged
    size: IntArray  # (1,) how many numbers all tables have


tally_at = viewer(Tally)


def plan_tally(compiled: Compiled) -> RecordPlan | None:
    """Returns how to count on the way through a structure; None if it is not a forest, or counts too much."""
    graph = compiled.graph
    if not compiled.is_forest or sizes_of(graph.scope_first)[graph.table_at >= 0].max(initial=0) > 2:
        return None
    counters, n_states = list[Counter](), 1
    for r in range(len(graph.row_low)):
        counter = counter_of(graph, r)
        if counter is None or n_states * counter.n > MOST_STATES:
            return None
        counters.append(counter)
        n_states *= counter.n
    return _tally(graph, counters) if counters else None


class Counter(NamedTuple):
    """The counter of one rule."""

    weight: IntArray  # (labels,) from 0
    n: int  # how many counts are told apart
    least: int  # the rule holds from this count on
    saturates: bool  # whether more than the last count is as good as that; else it breaks the rule


class _Links(NamedTuple):
    """A forest, hung up: who is above whom, and by which table."""

    order: IntArray
    above: IntArray
    pair_at: IntArray
    pair_out: IntArray
    pair_in: IntArray


def counter_of(graph: Graph, r: int) -> Counter | None:
    """Returns what a row counts; None if its weights are not integral, or it can never hold."""
    weight = np.zeros(int(graph.first[-1]))
    cells = slice(int(graph.row_first[r]), int(graph.row_first[r + 1]))
    np.add.at(weight, graph.row_label[cells], graph.row_weight[cells])
    if (weight != np.floor(weight)).any() or np.abs(weight).sum() > 2**31:
        return None
    variable = np.arange(len(graph.order)).repeat(sizes_of(graph.first))
    low, high = _each(np.minimum, graph, weight), _each(np.maximum, graph, weight)
    most, shift = int((high - low).sum()), float(low.sum())
    least, limit = math.ceil(max(graph.row_least[r] - shift, 0)), math.floor(min(graph.row_most[r] - shift, most))
    if least > limit:
        return None
    up, down = (weight - low[variable]).astype(np.int64), (high[variable] - weight).astype(np.int64)
    counters = [_counter(up, least, limit, most), _counter(down, most - limit, most - least, most)]
    return min(counters, key=lambda counter: counter.n)


def _each(pick: np.ufunc, graph: Graph, weight: FloatArray) -> FloatArray:
    """Returns the least, or the most, of each variable's weights."""
    found: FloatArray = pick.reduceat(weight, graph.first[:-1]) if len(graph.order) else np.zeros(0)
    return found


def _counter(weight: IntArray, least: int, limit: int, most: int) -> Counter:
    saturates = limit == most
    unit = int(np.gcd.reduce(weight)) or 1  # counts are multiples of it
    least, limit = -(-least // unit), limit // unit
    return Counter(weight // unit, (least if saturates else limit) + 1, least, saturates)


def _tally(graph: Graph, counters: list[Counter]) -> RecordPlan | None:
    links, n_labels = _hang(graph), np.append(sizes_of(graph.first), 1)
    n_counts = [counter.n for counter in counters]
    n_states = math.prod(n_counts)
    row = -(-n_states // WIDTH) * WIDTH  # states come in blocks of so many
    states = np.array(np.unravel_index(np.arange(n_states), n_counts))  # (rules, states)
    weights = np.array([counter.weight for counter in counters])
    counts, none = _added(counters, weights), (0,) * len(counters)
    each = np.array([_each(np.maximum, graph, weight.astype(np.float64)) for weight in weights])
    most = [*(tuple(int(x) for x in of_all) for of_all in each.T), none]  # that each variable adds, with those merged

    def reach(v: int) -> int:
        """Returns how many states, from the first, a variable can come to."""
        counted = [min(x, n - 1) for x, n in zip(most[v], n_counts, strict=True)]
        return int(np.ravel_multi_index(counted, n_counts)) + 1

    top = len(links.order)
    ends = list[int]()  # of tables of states, one after the other

    def place(v: int) -> int:
        """Returns where the next table starts, that of a variable."""
        ends.append((ends[-1] if ends else 0) + int(n_labels[v]) * row)
        return ends[-1] - int(n_labels[v]) * row

    start_at = [place(v) for v in range(top + 1)]
    total_at = list(start_at)
    message_at, before_at, after_at = [0] * top, [0] * top, [0] * top
    reached, reached_before, sums = [0] * top, [0] * top, 0
    for v in links.order.tolist():
        above = int(links.above[v])
        message_at[v], before_at[v], after_at[v] = place(above), total_at[above], place(above)
        total_at[above] = after_at[v]
        reached[v], reached_before[v] = reach(v), reach(above)
        sums += int(n_labels[above]) * (int(n_labels[v]) * reached[v] + reached[v] * reached_before[v])
        most[above] = tuple(x + y for x, y in zip(most[v], most[above], strict=True))
    if sums > MOST_SUMS or ends[-1] > MOST_NUMBERS:
        return None
    own: list[list[int]] = [[] for _ in links.order]  # where the tables over one variable start, variable by variable
    for f in np.flatnonzero((graph.table_at >= 0) & (sizes_of(graph.scope_first) == 1)).tolist():
        own[int(graph.scope[graph.scope_first[f]])].append(int(graph.table_at[f]))
    tally = Tally.pack(
        order=links.order,
        above=links.above,
        pair_at=links.pair_at,
        pair_out=links.pair_out,
        pair_in=links.pair_in,
        own_first=offsets([len(each) for each in own]),
        own=ints(at for each in own for at in each),
        n_labels=n_labels,
        counts=counts,
        row=[row],
        plus=_added(counters, states[:, :, None] + states[:, None, :]).ravel(),
        holds=np.all([states[r] >= counter.least for r, counter in enumerate(counters)], axis=0),
        start_at=start_at,
        total_at=total_at,
        message_at=message_at,
        before_at=before_at,
        after_at=after_at,
        reach=reached,
        reach_before=reached_before,
        size=[ends[-1]],
    )
    return RecordPlan(tally, SPEED * sums)


def _added(counters: list[Counter], counts: IntArray) -> IntArray:
    """Returns the states of some counts, given rule by rule; -1 where a rule is broken."""
    last = np.array([counter.n - 1 for counter in counters]).reshape(-1, *[1] * (counts.ndim - 1))
    saturates = np.array([counter.saturates for counter in counters]).reshape(last.shape)
    broken = ((counts > last) & ~saturates).any(axis=0)
    states = np.ravel_multi_index(tuple(np.minimum(counts, last)), [counter.n for counter in counters])
    found: IntArray = np.where(broken, -1, states)
    return found


def _hang(graph: Graph) -> _Links:
    """Hangs each tree up by one of its variables, and all of those below one more."""
    n = len(graph.order)
    near: list[list[tuple[int, int, int, int]]] = [[] for _ in range(n)]
    for f, at in enumerate(graph.table_at.tolist()):
        slots = range(int(graph.scope_first[f]), int(graph.scope_first[f + 1]))
        if at >= 0 and len(slots) == 2:
            (one, other), (step, other_step) = graph.scope[list(slots)].tolist(), graph.stride[list(slots)].tolist()
            near[one].append((other, at, step, other_step))
            near[other].append((one, at, other_step, step))
    above, found = [n] * n, list[int]()
    pairs = [(-1, 0, 0)] * n
    seen = [False] * n
    for root in range(n):
        waiting = [] if seen[root] else [root]
        while waiting:
            v = waiting.pop()
            seen[v] = True
            found.append(v)
            for u, at, out, inside in near[v]:
                if not seen[u]:
                    above[u], pairs[u] = v, (at, out, inside)
                    waiting.append(u)
    pair_at, pair_out, pair_in = np.array(pairs, dtype=np.int64).reshape(-1, 3).T
    return _Links(ints(reversed(found)), ints(above), pair_at, pair_out, pair_in)

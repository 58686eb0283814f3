"""Plans bucket elimination: all variables are minimised out, by tables as large as is affordable.

In which order variables go decides how large tables get; the best order is hard to find. Two greedy rules are tried:
the variable whose table is smallest goes next, or the one whose neighbours lack the fewest links among each other (the
*fill*). The one that takes fewer sums in all is kept. How many these are is known exactly before anything is computed.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hasten.jit import Record, viewer
from hasten.kernels.layout import Graph
from hasten.model.compiled import Compiled
from hasten.proof.elimination.cliques import bits
from hasten.proof.elimination.plan import reduce
from hasten.proof.outcome import UNFIXED
from hasten.proof.plan import RecordPlan
from hasten.support.arrays import IntArray, ints, offsets, sizes_of

SPEED = 2e-9  # seconds that a sum takes at most
MOST_SUMS = 2**24  # that an elimination may take: about ten milliseconds
MOST_ENTRIES = 2**22  # of its tables: 32 megabytes
WIDEST = 0.75  # share of the variables that `reduce` leaves: with tables over more of them nothing is gained
MOST_VARIABLES = 4096  # for which orders are tried
SCREEN = 4  # where an order by size takes this many times too many sums, none by fill is tried


class Buckets(Record):
    """The elimination of N variables, one a step, until only fixed ones are left.

    A step reads *parts*: tables of the problem, and those of earlier steps. Its neighbours are sorted by when they are
    eliminated, so that each part has the variable that goes first, and the last neighbours last.
    """

    variable: IntArray  # (N,) the variable that each step eliminates
    label_at: IntArray  # (N,) where its labels start
    n_labels: IntArray  # (N,)
    out_first: IntArray  # (N + 1,) the entries of step n are out_first[n]:out_first[n + 1] of the derived tables
    scope_first: IntArray  # (N + 1,)
    scope: IntArray  # (slots,) the neighbours at the time
    sizes: IntArray  # (slots,) how many labels they have
    part_first: IntArray  # (N + 1,)
    part_at: IntArray  # (parts,) where each table starts
    derived: IntArray  # (parts,) 1 where it is an earlier step's
    inside: IntArray  # (parts,) how far apart in it the labels of the variable are
    stride_first: IntArray  # (parts,) and the labels of the neighbours: one number each, from here on
    stride: IntArray
    most: IntArray  # (3,) the most parts of a step, neighbours of a step, and labels of a variable


buckets_at = viewer(Buckets)


class _Part(NamedTuple):
    """A table as a step reads it."""

    at: int
    derived: bool
    stride: dict[int, int]  # by variable: how far apart its labels are


def full_elimination(compiled: Compiled) -> RecordPlan | None:
    """Returns the plan for a structure, if it has no rules, its graph has a small treewidth, and there is one."""
    left = reduce(compiled)
    n = len(left.graph.order)
    if not compiled.is_free or len(left.graph.table_at) >= WIDEST * n * (n - 1) / 2:  # joined nearly all by all
        return None
    found = plan_buckets(compiled.graph)
    if found is None or found.record.most[1] > WIDEST * len(left.plan.keep):
        return None
    return found


def plan_buckets(graph: Graph, labels: IntArray | None = None, most_sums: int = MOST_SUMS) -> RecordPlan | None:
    """Returns the plan for a graph whose rules are left out; None if it takes too many sums.

    `labels`, if given, fixes variables to their labels; the plan is for the `UNFIXED` ones.
    """
    fixed = np.full(len(graph.order), UNFIXED) if labels is None else labels
    (loose,) = (fixed == UNFIXED).nonzero()
    if len(loose) > MOST_VARIABLES:
        return None
    sizes: list[int] = sizes_of(graph.first).tolist()
    given = _given(graph, fixed)
    found = _cheapest_order(loose.tolist(), [list(part.stride) for part in given], sizes, most_sums)
    if found is None:
        return None
    order, n_sums = found
    plan = _planned(graph, sizes, given, order)
    return RecordPlan(plan, SPEED * n_sums, n_sums)


def _given(graph: Graph, fixed: IntArray) -> list[_Part]:
    """Returns the tables of the problem over variables that are not all fixed, as they are read."""
    is_loose, factor = fixed[graph.scope] == UNFIXED, graph.factor_of
    n_factors = len(graph.table_at)
    at = graph.table_at.copy()
    np.add.at(at, factor[~is_loose], (graph.stride * fixed[graph.scope])[~is_loose])
    chosen = (np.bincount(factor[is_loose], minlength=n_factors) > 0) & (graph.table_at >= 0)
    slots = np.flatnonzero(is_loose & chosen[factor])
    parts = {
        f: _Part(start, False, {})
        for f, start in zip(np.flatnonzero(chosen).tolist(), at[chosen].tolist(), strict=True)
    }
    for f, v, stride in zip(
        factor[slots].tolist(), graph.scope[slots].tolist(), graph.stride[slots].tolist(), strict=True
    ):
        parts[f].stride[v] = stride
    return list(parts.values())


def _cheapest_order(
    loose: Sequence[int], scopes: Sequence[Sequence[int]], sizes: Sequence[int], most_sums: int
) -> tuple[list[int], int] | None:
    """Returns in which order variables go, and how many sums that takes; None if it is too many."""
    number = {v: x for x, v in enumerate(loose)}
    near = [0] * len(loose)
    for scope in scopes:
        all_of_it = sum(1 << number[v] for v in scope)
        for v in scope:
            near[number[v]] |= all_of_it
    near = [mask & ~(1 << x) for x, mask in enumerate(near)]
    own, best = [sizes[v] for v in loose], None
    for by_fill in (False, True):
        found = _order(list(near), own, by_fill, most_sums if by_fill else SCREEN * most_sums)
        if found is None and not by_fill:
            return None
        if found is not None and (best is None or found[1] < best[1]):
            best = found
    return None if best is None or best[1] > most_sums else ([loose[x] for x in best[0]], best[1])


def _order(near: list[int], sizes: Sequence[int], by_fill: bool, most_sums: int) -> tuple[list[int], int] | None:
    """Returns an order of variables, given their neighbours as bits of numbers, and its sums; None if too many."""

    def price(v: int) -> tuple[int, int]:
        """Returns the rank of a variable in the order, and how many sums it takes."""
        n_sums = sizes[v] * math.prod([sizes[u] for u in bits(near[v])])
        if not by_fill:
            return n_sums, n_sums
        return sum([(near[v] & ~near[u]).bit_count() - 1 for u in bits(near[v])]), n_sums

    prices = [price(v) for v in range(len(near))]
    queue = [(each, v) for v, each in enumerate(prices)]
    heapq.heapify(queue)
    gone, order, n_sums, n_entries = [False] * len(prices), list[int](), 0, 0
    while queue:
        each, v = heapq.heappop(queue)
        if gone[v] or each != prices[v]:
            continue
        gone[v] = True
        order.append(v)
        n_sums, n_entries = n_sums + each[1], n_entries + each[1] // sizes[v]
        if n_sums > most_sums or n_entries > MOST_ENTRIES:
            return None
        changed = near[v]
        for u in bits(near[v]):
            near[u] = (near[u] | near[v]) & ~(1 << u) & ~(1 << v)
            changed |= near[u] if by_fill else 0
        for u in bits(changed):
            renewed = price(u)
            if renewed != prices[u]:
                prices[u] = renewed
                heapq.heappush(queue, (renewed, u))
    return order, n_sums


def _planned(graph: Graph, sizes: Sequence[int], given: Sequence[_Part], order: Sequence[int]) -> Buckets:
    """Returns the plan for an order. A table is read where the first of its variables goes."""
    rank = {v: x for x, v in enumerate(order)}
    steps: list[list[_Part]] = [[] for _ in order]
    for part in given:
        steps[min([rank[v] for v in part.stride])].append(part)
    scopes, at = list[list[int]](), 0
    for v, parts in zip(order, steps, strict=True):
        around = sorted({u for part in parts for u in part.stride if u != v}, key=rank.__getitem__)
        stride, size = dict[int, int](), 1
        for u in reversed(around):
            stride[u] = size
            size *= sizes[u]
        if around:
            steps[rank[around[0]]].append(_Part(at, True, stride))
        scopes.append(around)
        at += size
    flat = [part for parts in steps for part in parts]
    strides = [
        [part.stride.get(u, 0) for u in around] for parts, around in zip(steps, scopes, strict=True) for part in parts
    ]
    n_labels = ints(sizes[v] for v in order)
    return Buckets.pack(
        variable=ints(order),
        label_at=graph.first[ints(order)],
        n_labels=n_labels,
        out_first=offsets(math.prod([sizes[u] for u in around]) for around in scopes),
        scope_first=offsets(len(around) for around in scopes),
        scope=ints(u for around in scopes for u in around),
        sizes=ints(sizes[u] for around in scopes for u in around),
        part_first=offsets(len(parts) for parts in steps),
        part_at=ints(part.at for part in flat),
        derived=ints(int(part.derived) for part in flat),
        inside=ints(part.stride.get(v, 0) for v, parts in zip(order, steps, strict=True) for part in parts),
        stride_first=offsets(len(each) for each in strides)[:-1],
        stride=ints(step for each in strides for step in each),
        most=[max(map(len, steps), default=0), max(map(len, scopes), default=0), int(n_labels.max(initial=1))],
    )

"""Followers: variables whose label is decided by that of another one are put in for, before much time is spent.

Where a table of two variables allows one label of the second at most for each label of the first, the second *follows*:
its costs, its tables and what it adds to rules become those of its leader. What is left has fewer variables and fewer
cycles, so that bounds are higher, and one move changes all that follow. Labels that no table supports are left out.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np

from hasten.kernels.cells import Rows, with_rows
from hasten.kernels.layout import BatchArrays, Instance
from hasten.model.compiled import Compiled
from hasten.model.schema import Schema
from hasten.support.arrays import BoolArray, FloatArray, IntArray, ints, offsets, plain, ranges, sizes_of
from hasten.support.clock import now

FEWER = 0.8  # share of the variables that may be left at most, to be worth it
MARGIN = 1e-9  # by which limits of rows are widened, relatively: sums of weights are taken in another order
Scope = tuple[int, ...]


class Followed(NamedTuple):
    """A problem without its followers."""

    shape: Compiled
    arrays: BatchArrays
    leader: IntArray  # (V,) the variable that each one follows, by its number here; -1 where there is but one label
    labels: list[IntArray]  # of each variable, for each label of its leader

    def restored(self, labels: IntArray) -> IntArray:
        """Returns the labels of all variables, given those of what is left."""
        chosen = np.where(self.leader < 0, 0, labels[self.leader])
        return ints([own[i] for own, i in zip(self.labels, chosen.tolist(), strict=True)])

    def reduced(self, labels: IntArray) -> IntArray | None:
        """Returns the labels of what is left, given those of all variables; None if followers have others."""
        found = np.zeros(len(self.shape.graph.order), dtype=np.int64)
        fits = [np.ones(size, dtype=bool) for size in sizes_of(self.shape.graph.first).tolist()]
        for v, a in enumerate(self.leader.tolist()):
            if a >= 0:
                fits[a] &= self.labels[v] == labels[v]
        for a, each in enumerate(fits):
            if not each.any():
                return None
            found[a] = int(each.argmax())
        return found


class _Round(NamedTuple):
    """The costs of leaders and the tables between them."""

    costs: dict[int, FloatArray]
    tables: dict[Scope, FloatArray]


def follow(instance: Instance, deadline: float) -> Followed | None:
    """Returns a problem without its followers; None if few follow, or it cannot be told by a deadline."""
    graph, cost, _ = instance
    first = graph.first.tolist()
    leader = list(range(len(first) - 1))
    labels = [np.flatnonzero(cost[first[v] : first[v + 1]] < np.inf) for v in leader]
    while now() < deadline and all(map(len, labels)):
        summed = _summed(instance, leader, labels)
        if not _merge(summed, leader, labels):
            n_left = sum(len(own) > 1 for own in summed.costs.values())
            return _stated(instance, summed, leader, labels) if 0 < n_left <= FEWER * len(leader) else None
    return None


def _summed(instance: Instance, leader: list[int], labels: list[IntArray]) -> _Round:
    """Sums costs and tables by leaders."""
    (graph, cost, table), costs = instance, dict[int, Any]()
    for v, a in enumerate(leader):
        costs[a] = costs.get(a, 0.0) + cost[graph.first[v] + labels[v]]
    tables: dict[Scope, Any] = {}
    for f in np.flatnonzero(graph.table_at >= 0).tolist():
        slots = range(graph.scope_first[f], graph.scope_first[f + 1])
        members = [int(graph.scope[slot]) for slot in slots]
        scope = tuple(sorted({leader[v] for v in members if len(labels[v]) > 1}))
        at: Any = int(graph.table_at[f])
        for slot, v in zip(slots, members, strict=True):
            shape = [-1 if a == leader[v] else 1 for a in scope]
            at = at + int(graph.stride[slot]) * (labels[v].reshape(shape) if shape.count(-1) else int(labels[v][0]))
        if len(scope) < 2:
            a = scope[0] if scope else leader[members[0]]
            costs[a] = costs[a] + table[at]
        else:
            tables[scope] = tables.get(scope, 0.0) + table[at]
    return _Round(costs, tables)


def _merge(summed: _Round, leader: list[int], labels: list[IntArray]) -> bool:
    """Lets leaders follow others, and drops labels that nothing supports; whether there were any."""
    costs, tables = summed
    alive: dict[int, BoolArray] = {a: own < np.inf for a, own in costs.items()}
    size = defaultdict[int, int](int)  # of all tables that each is in
    for scope, table in tables.items():
        for a in scope:
            size[a] += table.size
    top = {a: a for a in costs}
    below: dict[int, dict[int, IntArray]] = {a: {a: np.arange(len(own))} for a, own in costs.items()}
    for scope, table in tables.items():
        allowed = table < np.inf
        if len(scope) > 2:
            for axis, a in enumerate(scope):
                if top[a] == a:
                    alive[a] &= np.moveaxis(allowed, axis, 0).reshape(len(alive[a]), -1).any(axis=1)
            continue
        if any(top[a] != a for a in scope):
            continue
        allowed &= alive[scope[0]][:, None] & alive[scope[1]]
        for (a, b), fits in ((scope, allowed), (scope[::-1], allowed.T)):
            alive[a] &= fits.any(axis=1)
            grows = (size[b] - table.size) * len(alive[a]) > size[b] * len(alive[b])
            if top[a] == a and top[b] == b and not grows and fits.sum(axis=1).max() <= 1:
                for c, own in below.pop(b).items():
                    top[c], below[a][c] = a, own[fits.argmax(axis=1)]
    if all(each.all() for each in alive.values()) and len(below) == len(costs):
        return False
    chosen = {c: own[alive[a]] for a, each in below.items() for c, own in each.items()}
    for v, a in enumerate(leader):
        leader[v], labels[v] = top[a], labels[v][chosen[a]]
    return True


def _stated(instance: Instance, summed: _Round, leader: list[int], labels: list[IntArray]) -> Followed:
    """States what is left as a problem: leaders that have a choice, tables between them, and rows."""
    schema, (costs, tables) = Schema(), summed
    left = [a for a, own in sorted(costs.items()) if len(own) > 1]
    at = {a: n for n, a in enumerate(left)}
    kinds = {k: schema.variable(f"{k} labels", [*map(str, range(k))]) for k in sorted({len(costs[a]) for a in left})}
    factors, given = dict[Scope, Any](), dict[int, FloatArray]()
    for sizes in sorted({table.shape for table in tables.values()}):
        roles = {f"v{n}": kinds[k] for n, k in enumerate(sizes)}
        factors[sizes] = schema.factor(f"table {len(factors)}", learned=False, **roles)
    structure = schema.structure([kinds[len(costs[a])] for a in left])
    for scope, table in tables.items():
        joined = structure.connect(factors[table.shape], **{f"v{n}": at[a] for n, a in enumerate(scope)})
        given[joined] = table
    constant = sum(float(own[0]) for own in costs.values() if len(own) == 1)
    costs[left[0]] = costs[left[0]] + constant
    problem = structure.problem(np.concatenate([costs[a] for a in left]), tables=given)
    own = ints([at.get(a, -1) for a in leader])
    shape = Compiled(with_rows(problem.graph, _rows(instance, problem.graph.first, own, labels)), ())
    return Followed(shape, BatchArrays(shape.place, plain(problem.cost), plain(problem.table)), own, labels)


def _rows(instance: Instance, first: IntArray, leader: IntArray, labels: list[IntArray]) -> Rows:
    """Returns the rows over what is left."""
    graph, sizes = instance.graph, ints([len(own) for own in labels])
    n_rows, row = len(graph.row_low), np.arange(len(graph.row_low)).repeat(sizes_of(graph.row_first))
    before = np.concatenate(labels) + np.asarray(graph.first)[:-1].repeat(sizes)  # label by label of what is left
    after = np.where(leader < 0, 0, first[leader]).repeat(sizes) + ranges(np.zeros(len(sizes), dtype=np.int64), sizes)
    after[(leader < 0).repeat(sizes)] = -1
    order = np.argsort(before, kind="stable")
    begin = np.searchsorted(before[order], graph.row_label)
    often = np.searchsorted(before[order], graph.row_label, side="right") - begin
    label, weight, row = after[order[ranges(begin, often)]], graph.row_weight.repeat(often), row.repeat(often)
    fixed = label < 0
    shift = np.bincount(row[fixed], weight[fixed], n_rows)
    size = np.bincount(row, np.abs(weight), n_rows)
    whole = np.bincount(row[weight != np.rint(weight)], minlength=n_rows) == 0
    room = np.where(whole, 0.0, MARGIN * np.maximum(1.0, size))
    low, high = graph.row_least - shift - room, graph.row_most - shift + room  # with the slack of the rows as given
    cells = offsets(np.bincount(row[~fixed], minlength=n_rows))
    return Rows(cells, label[~fixed], weight[~fixed], low, high)

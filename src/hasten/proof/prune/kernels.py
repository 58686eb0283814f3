"""The rest of a problem once labels that cannot pay for themselves are out, and the search of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import Record, kernel, viewer
from hasten.kernels.layout import Graph, Instance, stopped
from hasten.kernels.score import entry
from hasten.support.arrays import FloatArray, IntArray

MOST_TUPLES = 4_096  # that are looked at to see whether a label can be reached
ROUNDS = 4  # of leaving out labels
FEW_NODES = 5_000  # of a search before labels are looked at closely
MOST_NODES = 50_000  # of all searches in one problem, by default


class Defaults(Record):
    """Which variables give way. A giving variable is in one table with others, and maybe in one with its mate."""

    gives: IntArray  # (F,) the giving variable of a table with others; -1: none
    fits: IntArray  # (L,) 1 for a label of a giving variable that its tables allow whatever the others are
    outer: IntArray  # (V,) a giving variable's table with others; -1 for the other variables
    inner: IntArray  # (V,) its table with its mate; -1: none
    mate: IntArray  # (V,) another giving variable, whose table is over the same others; -1: none
    max_nodes: IntArray  # (1,) of all searches in one problem


defaults_at = viewer(Defaults)


class Left(NamedTuple):
    """Scratch space: what is left of a problem. The labels of a variable that are left come cheapest first."""

    gain: FloatArray  # (F,)
    above: FloatArray  # (V + 1,) the cost above the cheapest labels, before each step of the search
    label: IntArray  # (L,) the labels left of variable v, at first[v]
    n: IntArray  # (V,) how many
    labels: IntArray  # (V,) the labelling
    best: IntArray  # (V,) the best one of the part that is searched
    order: IntArray  # (V,) the variables of that part
    place: IntArray  # (V,) where in that order; -1 outside
    digit: IntArray  # (V,) which label is tried


@kernel
def insert(graph: Graph, cost: FloatArray, left: Left, v: int, label: int) -> None:
    """Adds a label to those left of a variable, behind the cheaper ones."""
    first = graph.first[v]
    at = first + left.n[v]
    while at > first and cost[first + left.label[at - 1]] > cost[first + label]:
        left.label[at] = left.label[at - 1]
        at -= 1
    left.label[at] = label
    left.n[v] += 1


@kernel
def begin_gains(graph: Graph, cost: FloatArray, defaults: Defaults, left: Left) -> bool:
    """Leaves each giving variable its cheapest default and what is cheaper; false if one has no default."""
    for f in range(graph.table_at.size):
        left.gain[f] = 0.0
        v = defaults.gives[f]
        if v < 0:
            continue
        first, default = graph.first[v], -1
        for at in range(first, graph.first[v + 1]):
            if defaults.fits[at] and cost[at] < np.inf and (default < 0 or cost[at] < cost[default]):
                default = at
        if default < 0:
            return False
        left.n[v] = 0
        for at in range(first, graph.first[v + 1]):
            if cost[at] < cost[default]:
                insert(graph, cost, left, v, at - first)
        insert(graph, cost, left, v, default - first)
        left.gain[f] = cost[default] - cost[first + left.label[first]]
    return True


@kernel
def gains_around(graph: Graph, left: Left, v: int) -> float:
    """Returns the sum of the gains of a variable's factors."""
    slack = 0.0
    for x in range(graph.touch_first[v], graph.touch_first[v + 1]):
        slack += left.gain[graph.factor_of[graph.touch[x]]]
    return slack


@kernel
def begin_labels(graph: Graph, cost: FloatArray, left: Left, v: int) -> None:
    """Leaves a variable its cheapest label, and those that the gains around it may pay for."""
    first = graph.first[v]
    cheap, slack = left.labels[v], gains_around(graph, left, v)
    left.n[v] = 0
    insert(graph, cost, left, v, cheap)
    if slack > 0.0:
        least = cost[first + cheap]
        for label in range(graph.first[v + 1] - first):
            if cost[first + label] - least < slack and label != cheap:
                insert(graph, cost, left, v, label)


@kernel
def leave_out(instance: Instance, defaults: Defaults, left: Left, v: int, closely: bool) -> None:
    """Leaves a variable the labels that the gains around it may pay for.

    Looked at `closely`, a gain pays for a label only as far as that label allows what the factor gains by.
    """
    graph, cost, _ = instance
    first = graph.first[v]
    cheap, slack, n = left.labels[v], gains_around(graph, left, v), left.n[v]
    left.n[v] = 0
    for x in range(n):
        label = left.label[first + x]
        above = cost[first + label] - cost[first + cheap]
        if label == cheap or above < slack:
            if label != cheap and closely:  # above the cheapest, for which its own gains are not counted
                gained = 0.0
                for y in range(graph.touch_first[v], graph.touch_first[v + 1]):
                    f = graph.factor_of[graph.touch[y]]
                    if left.gain[f] > 0.0:
                        gained += most_gained(instance, defaults, left, f, v, label)
                if above >= gained:
                    continue
            insert(graph, cost, left, v, label)


@kernel
def allows(graph: Graph, table: FloatArray, f: int, labels: IntArray) -> bool:
    """Whether factor `f` allows a labelling."""
    return bool(table[graph.table_at[f] + entry(graph, f, labels)] < np.inf)


@kernel
def reached(instance: Instance, defaults: Defaults, left: Left, f: int, v: int, label: int) -> int:
    """Returns the place of the cheapest label of factor `f`'s giving variable that something left allows.

    Variable `v`, if it is one of the factor's, has a `label`. 0 where there is too much to look at.
    """
    (graph, _, table), giving = instance, defaults.gives[f]
    first, a0, a1 = graph.first[giving], graph.scope_first[f], graph.scope_first[f + 1]
    n_tuples = 1
    for a in range(a0, a1):
        u = graph.scope[a]
        if u != giving and u != v:
            n_tuples = min(n_tuples * left.n[u], MOST_TUPLES + 1)
    if n_tuples > MOST_TUPLES:
        return 0
    for x in range(left.n[giving] - 1):
        for number in range(n_tuples):
            at, rest = graph.table_at[f], number
            for a in range(a0, a1):
                u = graph.scope[a]
                if u == giving:
                    at += graph.stride[a] * left.label[first + x]
                elif u == v:
                    at += graph.stride[a] * label
                else:
                    at += graph.stride[a] * left.label[graph.first[u] + rest % left.n[u]]
                    rest //= left.n[u]
            if table[at] < np.inf:
                return x
    return int(left.n[giving] - 1)


@kernel
def most_gained(instance: Instance, defaults: Defaults, left: Left, f: int, v: int, label: int) -> float:
    """Returns the most that factor `f` gains over its default where variable `v` has a label."""
    u = defaults.gives[f]
    first, x = instance.graph.first[u], reached(instance, defaults, left, f, v, label)
    cost, default = instance.cost, first + left.label[first + left.n[u] - 1]
    return float(cost[default] - cost[first + left.label[first + x]])


@kernel
def lower_gain(instance: Instance, defaults: Defaults, left: Left, f: int) -> bool:
    """Leaves out the cheapest labels of a giving variable that nothing left allows; whether there were any."""
    v = defaults.gives[f]
    first, dropped = instance.graph.first[v], reached(instance, defaults, left, f, -1, 0)
    if dropped:
        left.n[v] -= dropped
        for x in range(left.n[v]):
            left.label[first + x] = left.label[first + x + dropped]
        left.gain[f] = most_gained(instance, defaults, left, f, -1, 0)
    return dropped > 0


@kernel
def give_way(instance: Instance, defaults: Defaults, left: Left, f: int) -> float:
    """Labels the giving variable of factor `f`, and its mate, best, given the others; returns the cost above the least.

    Nothing is done, at no cost, where the mate comes first: then its own factor does it.
    """
    (graph, cost, table), v = instance, defaults.gives[f]
    mate, first = defaults.mate[v], graph.first[v]
    if mate < 0:
        for x in range(first, first + left.n[v]):
            left.labels[v] = left.label[x]
            if allows(graph, table, f, left.labels):
                break
        return float(cost[first + left.labels[v]] - cost[first + left.label[first]])
    if mate < v:
        return 0.0
    g, other, least, mine, its = defaults.outer[mate], graph.first[mate], np.inf, 0, 0
    for x in range(first, first + left.n[v]):
        left.labels[v] = left.label[x]
        if not allows(graph, table, f, left.labels):
            continue
        above = cost[first + left.label[x]] - cost[first + left.label[first]]
        for y in range(other, other + left.n[mate]):
            left.labels[mate] = left.label[y]
            total = above + (cost[other + left.label[y]] - cost[other + left.label[other]])
            if total >= least:
                break
            if allows(graph, table, g, left.labels) and allows(graph, table, defaults.inner[v], left.labels):
                least, mine, its = total, left.label[x], left.label[y]
    left.labels[v], left.labels[mate] = mine, its
    return least


@kernel
def pays(defaults: Defaults, left: Left, f: int) -> bool:
    """Whether the giving variable of factor `f`, or its mate, may have another label than its default."""
    v = defaults.gives[f]
    if v < 0:
        return False
    mate = defaults.mate[v]
    return bool(left.n[v] > 1 or (mate >= 0 and left.n[mate] > 1))


@kernel
def collect(graph: Graph, defaults: Defaults, left: Left, start: int) -> int:
    """Collects the part of a variable: those with several labels left that gains join; returns how many there are."""
    left.order[0], left.place[start], n, seen = start, 0, 1, 0
    while seen < n:
        v = left.order[seen]
        seen += 1
        for x in range(graph.touch_first[v], graph.touch_first[v + 1]):
            f = graph.factor_of[graph.touch[x]]
            if pays(defaults, left, f):
                for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
                    u = graph.scope[a]
                    if defaults.outer[u] < 0 and left.n[u] > 1 and left.place[u] < 0:
                        left.place[u], left.order[n] = n, u
                        n += 1
    return n


@kernel
def last_place(graph: Graph, left: Left, f: int) -> int:
    """Returns the place of the last variable of factor `f` that the search labels."""
    last = -1
    for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
        last = max(last, left.place[graph.scope[a]])
    return last


@kernel
def search_part(
    instance: Instance, defaults: Defaults, left: Left, n: int, nodes: int, most: int, stop: IntArray
) -> int:
    """Finds the best labels of the `n` variables of a part, by depth-first search; returns the nodes so far.

    These are more than the `most` allowed where it gave up.
    """
    graph, cost, _ = instance
    depth, least = 0, np.inf
    left.digit[0], left.above[0] = -1, 0.0
    while depth >= 0:
        v = left.order[depth]
        first = graph.first[v]
        left.digit[depth] += 1
        if left.digit[depth] == left.n[v]:
            depth -= 1
            continue
        nodes += 1
        if nodes > most or (nodes % 256 == 0 and stopped(stop)):
            return most + 1
        left.labels[v] = left.label[first + left.digit[depth]]
        above = left.above[depth] + (cost[first + left.labels[v]] - cost[first + left.label[first]])
        if above >= least:  # the labels after it cost more
            depth -= 1
            continue
        for x in range(graph.touch_first[v], graph.touch_first[v + 1]):
            f = graph.factor_of[graph.touch[x]]
            if pays(defaults, left, f) and last_place(graph, left, f) == depth:
                above += give_way(instance, defaults, left, f)
                if above >= least:
                    break
        if above >= least:
            continue
        if depth == n - 1:
            least = above
            for d in range(n):
                left.best[d] = left.labels[left.order[d]]
        else:
            depth += 1
            left.digit[depth], left.above[depth] = -1, above
    for d in range(n):
        left.labels[left.order[d]] = left.best[d]
    return nodes


@kernel
def leave_out_all(instance: Instance, defaults: Defaults, left: Left, closely: bool) -> None:
    """Lowers gains and leaves out labels, as long as that goes on."""
    for _ in range(ROUNDS):
        lower = False
        for f in range(instance.graph.table_at.size):
            if left.gain[f] > 0.0:
                lower |= lower_gain(instance, defaults, left, f)
        if not lower and not closely:
            break
        for v in range(instance.graph.order.size):
            if defaults.outer[v] < 0 and left.n[v] > 1:
                leave_out(instance, defaults, left, v, closely)


@kernel
def prune(instance: Instance, defaults: Defaults, left: Left, stop: IntArray) -> int:
    """Finds the best labelling, given each variable's cheapest label; returns its nodes, -1 where it gave up.

    A short search comes before labels are looked at closely, a long one after that.
    """
    graph, cost, _ = instance
    n_variables, nodes = graph.order.size, 0
    if not begin_gains(graph, cost, defaults, left):
        return -1
    for v in range(n_variables):
        if defaults.outer[v] < 0:
            begin_labels(graph, cost, left, v)
    leave_out_all(instance, defaults, left, False)
    most = min(FEW_NODES, defaults.max_nodes[0])
    for v in range(n_variables):
        left.place[v] = -1
    for v in range(n_variables):
        while defaults.outer[v] < 0 and left.n[v] > 1:
            n = collect(graph, defaults, left, v)
            nodes = search_part(instance, defaults, left, n, nodes, most, stop)
            for d in range(n):
                left.place[left.order[d]] = -1
            if nodes <= most:
                for d in range(n):
                    u = left.order[d]
                    left.n[u], left.label[graph.first[u]] = 1, left.labels[u]
            elif most == defaults.max_nodes[0] or stopped(stop):
                return -1
            else:
                leave_out_all(instance, defaults, left, True)
                most = defaults.max_nodes[0]
    for f in range(graph.table_at.size):
        if defaults.gives[f] >= 0:
            give_way(instance, defaults, left, f)
    return nodes

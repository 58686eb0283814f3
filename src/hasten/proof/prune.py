"""Prune: a step for large label sets, whose tables forbid nearly everything but one label that fits always.

Among 146 types and 7 relations a table has 149,000 entries; but "no relation" is allowed between any two types. A
variable with such a *default* label can give way at a price: the default's cost less that of its cheapest label, its
*gain*. So another variable's label that costs more than its cheapest one by all gains around it is in no better answer:
moving to the cheapest label, and broken factors to their defaults, costs less (dead-end elimination). Labels of giving
variables that no labels left can reach lower the gains, and more labels go.

Few labels are left of a well-trained model. They are searched depth first, each connected part by itself, by the cost
above the cheapest labels. Two giving variables may share a table of their own, as the relations of a pair do, one each
way: they are labelled together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import Record, driver, keep, kernel, part, split, viewer
from hasten.kernels.layout import Arrays, BatchArrays, Graph, Instance, graph_of, instance_of, stopped
from hasten.kernels.score import entry, total_cost
from hasten.model.compiled import Compiled
from hasten.proof import outcome as status
from hasten.proof.outcome import OVERFLOW, Proofs, State, cheapest, rounding, take_bound, take_labels
from hasten.proof.plan import ProofPlan, RecordPlan, Work
from hasten.support.arrays import BoolArray, FloatArray, IntArray, sizes_of
from hasten.support.clock import ALL, AT

LARGE = 1_000  # entries of a table from which on this is for a structure
MOST_TUPLES = 4_096  # that are looked at to see whether a label can be reached
ROUNDS = 4  # of leaving out labels
FEW_NODES = 5_000  # of a search before labels are looked at closely
MOST_NODES = 50_000  # of all searches in one problem
SPEED = 2e-8  # seconds that a label takes at most, nearly always


class Defaults(Record):
    """Which variables give way. A giving variable is in one table with others, and maybe in one with its mate."""

    gives: IntArray  # (F,) the giving variable of a table with others; -1: none
    fits: IntArray  # (L,) 1 for a label of a giving variable that its tables allow whatever the others are
    outer: IntArray  # (V,) a giving variable's table with others; -1 for the other variables
    inner: IntArray  # (V,) its table with its mate; -1: none
    mate: IntArray  # (V,) another giving variable, whose table is over the same others; -1: none


defaults_at = viewer(Defaults)


class Pruning:
    """The step: leave out labels, search the rest."""

    def plan(self, plan: ProofPlan) -> RecordPlan | None:
        """Returns the defaults, where tables are large, only forbid, and each has a variable that gives way."""
        graph = plan.shape.graph
        if {plan.max_join, plan.max_nodes} != {None} or graph.row_low.size or graph.soft_at.size:
            return None
        return plan.shape.made(find_defaults)

    def run(self, work: Work, problems: IntArray) -> None:
        """Prunes problems, and searches them."""
        work.run(prune_some, problems, work.addresses(self, problems), seconds=work.seconds(self, problems))


PRUNING = Pruning()


def find_defaults(compiled: Compiled) -> RecordPlan | None:
    """Returns which variables give way: of each table over three or more the one with the fewest labels that can."""
    graph = compiled.graph
    n_labels, scopes = sizes_of(graph.first), np.split(graph.scope, graph.scope_first[1:-1])
    tables = np.flatnonzero(graph.table_at >= 0).tolist()
    if max((int(n_labels[scopes[f]].prod()) for f in tables), default=0) < LARGE:
        return None
    of_variable: list[list[int]] = [[] for _ in n_labels]
    for f in tables:
        for v in scopes[f].tolist():
            of_variable[v].append(f)
    known: dict[tuple[int, ...], BoolArray] = {}

    def fitting(v: int) -> BoolArray:
        """Returns which labels of a variable its tables allow whatever the others are."""
        fits = np.ones(n_labels[v], dtype=bool)
        for f in of_variable[v]:
            at, slot, shape = int(graph.table_at[f]), scopes[f].tolist().index(v), n_labels[scopes[f]]
            key = at, slot, *shape.tolist()
            if key not in known:
                table = np.moveaxis(graph.table[at : at + shape.prod()].reshape(shape), slot, 0)
                known[key] = np.asarray(np.isfinite(table).reshape(n_labels[v], -1).all(axis=1))
            fits &= known[key]
        return fits

    gives = np.full(len(scopes), -1)
    outer, inner, mate = np.full((3, len(n_labels)), -1)
    fits = np.zeros(int(graph.first[-1]), dtype=np.int64)
    pairs = [f for f in tables if len(scopes[f]) == 2 and all(len(of_variable[v]) == 2 for v in scopes[f])]
    for f in tables:
        if f in pairs:
            continue
        for v in sorted(scopes[f].tolist(), key=lambda v: n_labels[v]):
            others = [g for g in of_variable[v] if g != f]
            if len(others) <= 1 and all(g in pairs for g in others) and fitting(v).any():
                gives[f], outer[v] = v, f
                fits[graph.first[v] : graph.first[v + 1]] = fitting(v)
                break
        else:
            return None
    for f in pairs:
        one, other = scopes[f].tolist()
        if outer[one] < 0 or outer[other] < 0 or set(scopes[outer[one]]) - {one} != set(scopes[outer[other]]) - {other}:
            return None
        inner[[one, other]], mate[one], mate[other] = f, other, one
    made = Defaults.pack(gives=gives, fits=fits, outer=outer, inner=inner, mate=mate)
    return RecordPlan(made, SPEED * int(graph.first[-1]))


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
    most = FEW_NODES
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
            elif most == MOST_NODES or stopped(stop):
                return -1
            else:
                leave_out_all(instance, defaults, left, True)
                most = MOST_NODES
    for f in range(graph.table_at.size):
        if defaults.gives[f] >= 0:
            give_way(instance, defaults, left, f)
    return nodes


@driver
def prune_some(arrays: Arrays, problems: IntArray, state: State, plans: IntArray, watch: IntArray) -> None:
    """Prunes and searches some problems; `plans` has the address of each one's defaults."""
    batch, proofs = BatchArrays(*arrays), Proofs(*state)
    n_factors, n_variables, n_labels = 0, 0, 0
    for x in range(problems.size):
        if x == 0 or plans[x] != plans[x - 1]:
            graph = graph_of(batch, problems[x])
            n_factors = max(n_factors, graph.table_at.size)
            n_variables = max(n_variables, graph.order.size)
            n_labels = max(n_labels, graph.first[graph.order.size])
    floats, ints = np.empty(n_factors + n_variables + 1), np.zeros(n_labels + 6 * n_variables, dtype=np.int64)
    gain, above = split(floats, (n_factors, n_variables + 1))
    label, n, labels, best, order, place, digit = split(
        ints, (n_labels, n_variables, n_variables, n_variables, n_variables, n_variables, n_variables)
    )
    left, stop = Left(gain, above, label, n, labels, best, order, place, digit), part(watch, 0, watch.size)
    for x in range(problems.size):
        p = problems[x]
        watch[AT] = x + 1
        if watch[ALL]:
            proofs.facts[status.OUTCOME, p] = status.STOPPED
            continue
        instance = instance_of(batch, p)
        graph, cost, table = instance
        least, size = cheapest(graph, cost, table, labels)
        if not size < OVERFLOW or not least < np.inf:
            continue
        nodes = prune(instance, defaults_at(plans[x]), left, stop)
        if nodes < 0:
            continue
        found, step = total_cost(graph, cost, table, labels), status.BRANCH if nodes else status.LOOK
        proofs.values[status.SIZE, p], proofs.facts[status.STEP, p] = size, step
        proofs.facts[status.N_NODES, p] += nodes
        take_labels(batch, proofs, p, labels, found, step)
        take_bound(proofs, p, found - 4.0 * rounding(graph, size), size)
    watch[AT] = 0
    keep((floats, ints, watch))

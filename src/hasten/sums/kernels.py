"""Carrying out a plan of elimination for eight problems at once, in another semiring than (min, +).

Forwards, a step's table holds, for each labelling of the neighbours (an *entry*), the logarithm of a sum over the
variables that go, as a cost: the least of its terms, minus the logarithm of the sum of all relative to that. Backwards,
each term gets its share of its entry: the probability of that labelling, or in (min, +) how much more the best
labelling with it costs than the best of all.

Costs and tables start from 0, and so do derived tables: whatever is subtracted goes to the constant part. So sums of
large costs keep their small differences. Where a step has one large table that all eight share (a *dense* form), the
exponentials of that table are there already, and a sum takes one product; where such sums are too small to trust, they
are taken again, term by term.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import Record, inlined_kernel, kernel, viewer
from hasten.jit.records import WIDTH, greater, lesser, load, spread, store, where_less
from hasten.kernels.exponentials import exponential, logarithm
from hasten.kernels.layout import Graph
from hasten.proof.elimination.kernels import Plan
from hasten.support.arrays import FloatArray, IntArray

TINY = 1e-250  # sums of products below this may have lost terms
MOST = 1e301  # magnitude of costs whose sums cannot overflow


class Sums(Record):
    """Facts about a structure that sums need besides the plan."""

    dense: (
        IntArray  # (forms,) which of the tables read is one of the problem's, large, and over both variables; -1: none
    )
    target: IntArray  # (as the plan's base) where the marginals of each of the problem's tables that are read start
    source: IntArray  # (marginals,) the table entry that each is of
    sizes: IntArray  # (5,) labels with those of counters, entries of derived tables, of tables, of marginals; most sums


sums_at = viewer(Sums)


class Task(NamedTuple):
    """The results that are asked for: numbers that are 0 for no."""

    summing: int  # logarithms of sums; else least sums
    sharing: int  # shares of labels
    gaining: int  # and of table entries


class Space(NamedTuple):
    """Scratch space; all but the last three are lanes. The eight problems have the same tables."""

    cost: FloatArray  # (labels,) from 0; of counters 0
    sums: FloatArray  # (labels,) costs with what is added of tables over the variable alone
    power: FloatArray  # (labels,) and exponentials of those
    share: FloatArray  # (labels,) probabilities, or how much more each label costs
    work: FloatArray  # (entries,) derived tables
    low: FloatArray  # (entries,) the least term of each entry; 0 where all are forbidden
    total: FloatArray  # (entries,) the sum relative to that; negative: taken term by term in spite of a large table
    flow: FloatArray  # (entries,) the share of each entry
    gain: FloatArray  # (marginals,)
    values: FloatArray  # (sums,) the terms of one entry
    line: FloatArray  # (3,) the constant part in all, of the steps alone, and of the tables
    table: FloatArray  # (entries of tables,) the tables that the eight share, from 0
    weight: FloatArray  # (entries of tables,) and their exponentials
    start: IntArray  # (8,) where the costs of each problem start


@kernel
def put_costs(graph: Graph, cost: FloatArray, space: Space, n_labels: int) -> None:
    """Lays the costs of eight problems side by side, each variable's from 0; the rest is the constant part.

    That is not a number if a cost is too large.
    """
    constant, start, forbidden, most = spread(0.0), space.start, spread(np.inf), spread(0.0)
    for v in range(graph.order.size):
        least = forbidden
        for x in range(graph.first[v], graph.first[v + 1]):
            for lane in range(WIDTH):
                space.cost[WIDTH * x + lane] = cost[start[lane] + x]
            value = load(space.cost, x)
            least, most = lesser(value, least), greater(where_less(value, forbidden, value, most), most)
        safe = where_less(least, forbidden, least, spread(0.0))
        most = greater(most, spread(0.0) - safe)
        for x in range(graph.first[v], graph.first[v + 1]):
            store(space.cost, x, load(space.cost, x) - safe)
        constant = constant + safe
    constant = where_less(spread(MOST), most, spread(np.nan), constant)
    for x in range(graph.first[graph.order.size], n_labels):
        store(space.cost, x, spread(0.0))
    store(space.line, 0, constant)


@kernel
def put_tables(graph: Graph, table: FloatArray, space: Space, weighted: bool) -> float:
    """Copies the tables that eight problems share, each from 0; returns what was subtracted, and adds exponentials."""
    constant, n = 0.0, graph.table.size
    for x in range(n):
        space.table[x] = table[x]
    for t in range(graph.soft_at.size):
        begin, end, least = graph.soft_at[t], graph.soft_at[t] + graph.soft_size[t], np.inf
        for x in range(begin, end):
            least = min(least, table[x])
        least = least if least < np.inf else 0.0
        for x in range(begin, end):
            space.table[x] = table[x] - least
            if MOST < abs(table[x]) < np.inf:
                constant = np.nan
        constant += graph.soft_count[t] * least
    for x in range(0, n if weighted else 0, WIDTH):
        for lane in range(WIDTH):
            space.values[lane] = -space.table[min(x + lane, n - 1)]
        store(space.values, 0, exponential(load(space.values, 0)))
        for lane in range(min(WIDTH, n - x)):
            space.weight[x + lane] = space.values[lane]
    return constant


@inlined_kernel
def term(plan: Plan, space: Space, n: int, m: int, c: int, at: int) -> FloatArray:
    """Returns term `c` of step `n`, of the form `m`, whose reads start at `at`."""
    base, n_static = plan.base_first[n], plan.n_static[m]
    value: FloatArray = load(space.cost, plan.label_at[n] + plan.sum_label[c])
    if plan.partner[n] >= 0:
        value = value + load(space.cost, plan.partner_at[n] + plan.sum_partner[c])
    for x in range(n_static):
        value = value + spread(space.table[plan.base[base + x] + plan.reads[at + x]])
    for x in range(n_static, n_static + plan.n_derived[m]):
        value = value + load(space.work, plan.base[base + x] + plan.reads[at + x])
    return value


@kernel
def add_up(plan: Plan, space: Space, task: Task, n: int, m: int, again: bool) -> None:
    """Carries out step `n`, of the form `m`, term by term; `again`, only in problems where a product lost too much."""
    entry, out, sums, at = plan.entry_at[m], plan.out_first[n], plan.sum_at[m], plan.read_at[m]
    n_reads, forbidden, tiny = plan.n_static[m] + plan.n_derived[m], spread(np.inf), spread(TINY)
    for e in range(out, plan.out_first[n + 1]):
        least, first = forbidden, sums + plan.sum_first[entry + e - out]
        end = sums + plan.sum_first[entry + e - out + 1]
        for c in range(first, end):
            value = term(plan, space, n, m, c, at)
            at += n_reads
            store(space.values, c - first, value)
            least = lesser(value, least)
        low, total, found = where_less(least, forbidden, least, spread(0.0)), spread(0.0), least
        if task.summing:
            for x in range(end - first):
                total = total + exponential(low - load(space.values, x))
            found = where_less(least, forbidden, low - logarithm(total), forbidden)
        if again:
            known = load(space.total, e)
            low = where_less(known, tiny, low, load(space.low, e))
            found = where_less(known, tiny, found, load(space.work, e))
            total = where_less(known, tiny, spread(0.0) - total, known)
        store(space.low, e, low)
        store(space.total, e, total)
        store(space.work, e, found)


@kernel
def add_own(plan: Plan, sums: Sums, space: Space, n: int, m: int) -> None:
    """Adds up, for each label of the variable of step `n`, what is its own: its cost, and tables over it alone."""
    base, n_static = plan.base_first[n], plan.n_static[m]
    for i in range(plan.n_labels[m]):
        value = load(space.cost, plan.label_at[n] + i)
        for x in range(n_static + plan.n_derived[m]):
            if x != sums.dense[m]:
                if x < n_static:
                    value = value + spread(space.table[plan.base[base + x] + i])
                else:
                    value = value + load(space.work, plan.base[base + x] + i)
        store(space.sums, plan.label_at[n] + i, value)


@kernel
def multiply(plan: Plan, sums: Sums, space: Space, task: Task, n: int, m: int) -> None:
    """Carries out step `n`, of a form with one large table that all share: a product of a vector and a matrix."""
    add_own(plan, sums, space, n, m)
    first, out, n_labels, none = plan.label_at[n], plan.out_first[n], plan.n_labels[m], spread(0.0)
    n_out, step_out, step_in = plan.out_first[n + 1] - out, plan.joint_out[m], plan.joint_in[m]
    start, least, smallest = plan.base[plan.base_first[n] + sums.dense[m]], spread(np.inf), spread(np.inf)
    for i in range(first, first + n_labels):
        least = lesser(load(space.sums, i), least)
    low = where_less(least, spread(np.inf), least, none)
    for i in range(first, first + n_labels):
        store(space.power, i, exponential(low - load(space.sums, i)))
    o = 0
    while o < n_out:  # four entries at a time; those beyond the last are the last again
        at = start + o * step_out
        two, three, four = (
            min(1, n_out - 1 - o) * step_out,
            min(2, n_out - 1 - o) * step_out,
            min(3, n_out - 1 - o) * step_out,
        )
        a = b = c = d = none
        for i in range(first, first + n_labels):
            power = load(space.power, i)
            a = a + power * spread(space.weight[at])
            b = b + power * spread(space.weight[at + two])
            c = c + power * spread(space.weight[at + three])
            d = d + power * spread(space.weight[at + four])
            at += step_in
        store(space.total, out + o, a)
        store(space.total, out + min(o + 1, n_out - 1), b)
        store(space.total, out + min(o + 2, n_out - 1), c)
        store(space.total, out + min(o + 3, n_out - 1), d)
        o += 4
    for e in range(out, out + n_out):
        total = load(space.total, e)
        smallest = lesser(total, smallest)
        store(space.low, e, low)
        store(space.work, e, low - logarithm(total))
    store(space.values, 0, smallest)
    for lane in range(WIDTH):
        if space.values[lane] < TINY:
            add_up(plan, space, task, n, m, True)
            break


@kernel
def go_forward(plan: Plan, sums: Sums, space: Space, task: Task) -> None:
    """Carries out all steps; the derived tables start from 0, the rest is added to the constant part."""
    constant, forbidden, none = spread(0.0), spread(np.inf), spread(0.0)
    for n in range(plan.variable.size):
        m = plan.form[n]
        if task.summing and sums.dense[m] >= 0:
            multiply(plan, sums, space, task, n, m)
        else:
            add_up(plan, space, task, n, m, False)
        least = forbidden
        for e in range(plan.out_first[n], plan.out_first[n + 1]):
            least = lesser(load(space.work, e), least)
        safe = where_less(least, forbidden, least, none)
        for e in range(plan.out_first[n], plan.out_first[n + 1]):
            store(space.work, e, load(space.work, e) - safe)
        constant = constant + least
    store(space.line, 1, constant)
    store(space.line, 0, load(space.line, 0) + load(space.line, 2) + constant)


@inlined_kernel
def give(span: FloatArray, x: int, task: Task, share: FloatArray) -> None:
    """Adds a share to what is there, or keeps the lesser."""
    if task.summing:
        store(span, x, load(span, x) + share)
    else:
        store(span, x, lesser(share, load(span, x)))


@kernel
def share_out(plan: Plan, sums: Sums, space: Space, task: Task, n: int, m: int, sign: float) -> None:
    """Gives each term of step `n`, of the form `m`, its share of its entry, where `sign` times its sum is above 0."""
    entry, out, at, none = plan.entry_at[m], plan.out_first[n], plan.read_at[m], spread(0.0)
    base, n_static = plan.base_first[n], plan.n_static[m]
    n_reads = n_static + plan.n_derived[m]
    for e in range(plan.out_first[n + 1] - out):
        flow, low = load(space.flow, out + e), load(space.low, out + e)
        total = spread(sign) * load(space.total, out + e)
        rate = where_less(none, total, flow / total, none)
        for c in range(plan.sum_at[m] + plan.sum_first[entry + e], plan.sum_at[m] + plan.sum_first[entry + e + 1]):
            value = term(plan, space, n, m, c, at)
            share = rate * exponential(low - value) if task.summing else flow + (value - low)
            give(space.share, plan.label_at[n] + plan.sum_label[c], task, share)
            if plan.partner[n] >= 0:
                give(space.share, plan.partner_at[n] + plan.sum_partner[c], task, share)
            if task.gaining:
                for x in range(n_static):
                    give(space.gain, sums.target[base + x] + plan.reads[at + x], task, share)
            for x in range(n_static, n_reads):
                give(space.flow, plan.base[base + x] + plan.reads[at + x], task, share)
            at += n_reads


@kernel
def multiply_back(plan: Plan, sums: Sums, space: Space, task: Task, n: int, m: int) -> None:
    """Gives each term of step `n`, of a form with one large table that all share, its share of its entry."""
    first, out, none, end = plan.label_at[n], plan.out_first[n], spread(0.0), plan.out_first[n + 1]
    base, n_static, step_out, step_in = plan.base_first[n], plan.n_static[m], plan.joint_out[m], plan.joint_in[m]
    start, target, least = plan.base[base + sums.dense[m]], sums.target[base + sums.dense[m]], none
    for e in range(out, end):
        least = lesser(load(space.total, e), least)
    store(space.values, 0, least)
    for lane in range(WIDTH):
        if space.values[lane] < 0.0:  # there are entries that were taken term by term
            share_out(plan, sums, space, task, n, m, -1.0)
            break
    for e in range(out, end):  # the flow becomes a rate
        total = load(space.total, e)
        store(space.flow, e, where_less(none, total, load(space.flow, e) / total, none))
    for i in range(plan.n_labels[m]):
        power, share, place = load(space.power, first + i), none, i * step_in
        for e in range(out, end):
            rate = load(space.flow, e) * spread(space.weight[start + place])
            share = share + rate
            if task.gaining:
                store(space.gain, target + place, load(space.gain, target + place) + power * rate)
            place += step_out
        share = power * share
        give(space.share, first + i, task, share)
        for x in range(n_static + plan.n_derived[m]):  # tables over the variable alone
            if x >= n_static:
                give(space.flow, plan.base[base + x] + i, task, share)
            elif task.gaining and x != sums.dense[m]:
                give(space.gain, sums.target[base + x] + i, task, share)


@kernel
def go_back(plan: Plan, sums: Sums, space: Space, task: Task) -> None:
    """Shares out all steps, the last one first; nothing is shared where all is forbidden."""
    nothing, whole = spread(0.0 if task.summing else np.inf), spread(1.0 if task.summing else 0.0)
    for x in range(sums.sizes[0]):
        store(space.share, x, nothing)
    for x in range(sums.sizes[1]):
        store(space.flow, x, nothing)
    for x in range(sums.sizes[3] if task.gaining else 0):
        store(space.gain, x, nothing)
    feasible = where_less(load(space.line, 0), spread(np.inf), whole, nothing)
    for back in range(plan.variable.size):
        n = plan.variable.size - 1 - back
        m = plan.form[n]
        if plan.scope_first[n] == plan.scope_first[n + 1]:
            store(space.flow, plan.out_first[n], feasible)
        if task.summing and sums.dense[m] >= 0:
            multiply_back(plan, sums, space, task, n, m)
        else:
            share_out(plan, sums, space, task, n, m, 1.0)


@kernel
def entropy_of(sums: Sums, space: Space, lane: int) -> float:
    """Returns the entropy of one of the problems: what its labelling is expected to cost, and the logarithm of the sum.

    Costs start from 0 in both, so that little cancels.
    """
    total: float = -space.line[WIDTH + lane]
    for x in range(sums.sizes[0]):
        if space.share[WIDTH * x + lane] > 0.0:
            total += space.share[WIDTH * x + lane] * space.cost[WIDTH * x + lane]
    for x in range(sums.source.size):
        if space.gain[WIDTH * x + lane] > 0.0:
            total += space.gain[WIDTH * x + lane] * space.table[sums.source[x]]
    return total


@kernel
def draw(plan: Plan, space: Space, lane: int, chance: FloatArray, labels: IntArray) -> None:
    """Labels every variable of one of the problems at random, given a number below 1 for each step; the last first."""
    for back in range(plan.variable.size):
        n = plan.variable.size - 1 - back
        m, e = plan.form[n], 0
        for a in range(plan.scope_first[n], plan.scope_first[n + 1]):
            e += plan.stride[a] * labels[plan.scope[a]]
        at, low = plan.out_first[n] + e, load(space.low, plan.out_first[n] + e)
        left, chosen, reads = chance[n] * abs(space.total[WIDTH * at + lane]), -1, plan.n_static[m] + plan.n_derived[m]
        first, begin = plan.sum_at[m], plan.sum_first[plan.entry_at[m] + e]
        for c in range(begin, plan.sum_first[plan.entry_at[m] + e + 1]):
            value = term(plan, space, n, m, first + c, plan.read_at[m] + c * reads)
            store(space.values, 0, exponential(low - value))
            if space.values[lane] > 0.0 and left >= 0.0:
                chosen, left = first + c, left - space.values[lane]
        labels[plan.variable[n]] = plan.sum_label[chosen]
        if plan.partner[n] >= 0:
            labels[plan.partner[n]] = plan.sum_partner[chosen]

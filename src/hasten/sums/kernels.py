"""Carrying out a plan of elimination for eight problems at once, in another semiring than (min, +).

Forwards, a step's table holds, for each labelling of the neighbours (an *entry*), the logarithm of a sum over the
variables that go, as a cost: the least of its terms, minus the logarithm of the sum of all relative to that. Backwards,
each term gets its share of its entry: the probability of that labelling, or in (min, +) how much more the best
labelling with it costs than the best of all.

Costs and tables start from 0, and so do derived tables: whatever is subtracted goes to the constant part. So sums of
large costs keep their small differences. Where a step has one large table that all eight share (a *dense* form), the
exponentials of that table are there already, and a sum takes one product; where such sums are too small to trust, they
are taken again, term by term. This module goes forwards, `hasten.sums.shares` backwards.
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
    """What is asked for: numbers that are 0 for no."""

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

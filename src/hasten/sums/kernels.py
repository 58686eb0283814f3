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
from hasten.jit.simd import WIDTH, lesser, load, spread, store, where_less
from hasten.kernels.exponentials import exponential, logarithm
from hasten.kernels.layout import Graph
from hasten.proof.elimination.kernels import Plan
from hasten.support.arrays import FloatArray, IntArray

TINY = 1e-250  # sums of products below this may have lost terms


class Sums(Record):
    """What sums need to know of a structure besides the plan."""

    dense: IntArray  # (forms,) which of the tables read is one of the problem's, large, and over both variables; -1: none
    target: IntArray  # (as the plan's base) where the marginals of each of the problem's tables that are read start
    sizes: IntArray  # (5,) labels with those of counters, entries of derived tables, of tables, of marginals; most sums


sums_at = viewer(Sums)


class Task(NamedTuple):
    """What is asked for: numbers that are 0 for no."""

    summing: int  # logarithms of sums; else least sums
    sharing: int  # shares of labels
    gaining: int  # and of table entries
    spreading: int  # and the entropy
    same: bool  # whether the eight problems share their tables


class Space(NamedTuple):
    """Scratch space; all but the last three are lanes."""

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
    line: FloatArray  # (2,) the constant part, and the entropy
    tables: FloatArray  # (entries of tables,) from 0, where the eight have different ones
    weights: FloatArray  # (entries of tables,) and their exponentials
    flat: FloatArray  # (entries of tables,) the tables that the eight share, from 0
    weight: FloatArray  # (entries of tables,) and their exponentials
    start: IntArray  # (8,) where the costs of each problem start; later, its tables


@kernel
def put_costs(graph: Graph, cost: FloatArray, space: Space, n_labels: int) -> None:
    """Lays the costs of eight problems side by side, each variable's from 0; the rest is the constant part."""
    constant, start = spread(0.0), space.start
    for v in range(graph.order.size):
        least = spread(np.inf)
        for x in range(graph.first[v], graph.first[v + 1]):
            for lane in range(WIDTH):
                space.cost[WIDTH * x + lane] = cost[start[lane] + x]
            least = lesser(load(space.cost, x), least)
        safe = where_less(least, spread(np.inf), least, spread(0.0))
        for x in range(graph.first[v], graph.first[v + 1]):
            store(space.cost, x, load(space.cost, x) - safe)
        constant = constant + safe
    for x in range(graph.first[graph.order.size], n_labels):
        store(space.cost, x, spread(0.0))
    store(space.line, 0, constant)


@kernel
def put_tables(graph: Graph, table: FloatArray, space: Space, weighted: bool) -> float:
    """Copies the tables that eight problems share, each from 0; returns what was subtracted, and adds exponentials."""
    constant, n = 0.0, graph.table.size
    for x in range(n):
        space.flat[x] = table[x]
    for t in range(graph.soft_at.size):
        begin, end, least = graph.soft_at[t], graph.soft_at[t] + graph.soft_size[t], np.inf
        for x in range(begin, end):
            least = min(least, table[x])
        least = least if least < np.inf else 0.0
        for x in range(begin, end):
            space.flat[x] = table[x] - least
        constant += graph.soft_count[t] * least
    for x in range(0, n if weighted else 0, WIDTH):
        for lane in range(WIDTH):
            space.values[lane] = -space.flat[min(x + lane, n - 1)]
        store(space.values, 0, exponential(load(space.values, 0)))
        for lane in range(min(WIDTH, n - x)):
            space.weight[x + lane] = space.values[lane]
    return constant


@kernel
def put_own_tables(graph: Graph, table: FloatArray, space: Space, weighted: bool) -> None:
    """Lays the tables of eight problems side by side, each from 0; the rest is added to the constant part."""
    constant, start = load(space.line, 0), space.start
    for x in range(graph.table.size):
        for lane in range(WIDTH):
            space.tables[WIDTH * x + lane] = table[start[lane] + x]
    for t in range(graph.soft_at.size):
        begin, end, least = graph.soft_at[t], graph.soft_at[t] + graph.soft_size[t], spread(np.inf)
        for x in range(begin, end):
            least = lesser(load(space.tables, x), least)
        safe = where_less(least, spread(np.inf), least, spread(0.0))
        for x in range(begin, end):
            store(space.tables, x, load(space.tables, x) - safe)
        constant = constant + spread(float(graph.soft_count[t])) * safe
    for x in range(graph.table.size if weighted else 0):
        store(space.weights, x, exponential(spread(0.0) - load(space.tables, x)))
    store(space.line, 0, constant)


@inlined_kernel
def table_at(space: Space, task: Task, x: int) -> FloatArray:
    """Returns an entry of the problem's tables."""
    return spread(space.flat[x]) if task.same else load(space.tables, x)


@inlined_kernel
def weight_at(space: Space, task: Task, x: int) -> FloatArray:
    """Returns the exponential of minus an entry of the problem's tables."""
    return spread(space.weight[x]) if task.same else load(space.weights, x)


@inlined_kernel
def term(plan: Plan, space: Space, task: Task, n: int, m: int, c: int, at: int) -> FloatArray:
    """Returns term `c` of step `n`, of the form `m`, whose reads start at `at`."""
    base, n_static = plan.base_first[n], plan.n_static[m]
    value = load(space.cost, plan.label_at[n] + plan.sum_label[c])
    if plan.partner[n] >= 0:
        value = value + load(space.cost, plan.partner_at[n] + plan.sum_partner[c])
    for x in range(n_static):
        value = value + table_at(space, task, plan.base[base + x] + plan.reads[at + x])
    for x in range(n_static, n_static + plan.n_derived[m]):
        value = value + load(space.work, plan.base[base + x] + plan.reads[at + x])
    return value


@inlined_kernel
def put_entry(space: Space, task: Task, at: int, least: FloatArray, n_terms: int) -> None:
    """Adds up the terms of the entry at `at`, of which the least is known."""
    forbidden = spread(np.inf)
    low, total, found = where_less(least, forbidden, least, spread(0.0)), spread(0.0), least
    if task.summing:
        for x in range(n_terms):
            total = total + exponential(low - load(space.values, x))
        found = where_less(least, forbidden, low - logarithm(total), forbidden)
    store(space.low, at, low)
    store(space.total, at, total)
    store(space.work, at, found)


@kernel
def add_up(plan: Plan, space: Space, task: Task, n: int, m: int) -> None:
    """Carries out step `n`, of the form `m`, term by term."""
    entry, out, sums, at = plan.entry_at[m], plan.out_first[n], plan.sum_at[m], plan.read_at[m]
    n_reads = plan.n_static[m] + plan.n_derived[m]
    for e in range(plan.out_first[n + 1] - out):
        least, first = spread(np.inf), sums + plan.sum_first[entry + e]
        end = sums + plan.sum_first[entry + e + 1]
        for c in range(first, end):
            value = term(plan, space, task, n, m, c, at)
            at += n_reads
            store(space.values, c - first, value)
            least = lesser(value, least)
        put_entry(space, task, out + e, least, end - first)


@kernel
def add_own(plan: Plan, sums: Sums, space: Space, task: Task, n: int, m: int) -> None:
    """Adds up, for each label of the variable of step `n`, what is its own: its cost, and tables over it alone."""
    base, n_static = plan.base_first[n], plan.n_static[m]
    for i in range(plan.n_labels[m]):
        value = load(space.cost, plan.label_at[n] + i)
        for x in range(n_static + plan.n_derived[m]):
            if x != sums.dense[m]:
                if x < n_static:
                    value = value + table_at(space, task, plan.base[base + x] + i)
                else:
                    value = value + load(space.work, plan.base[base + x] + i)
        store(space.sums, plan.label_at[n] + i, value)


@kernel
def multiply(plan: Plan, sums: Sums, space: Space, task: Task, n: int, m: int) -> None:
    """Carries out step `n`, of a form with one large table that all share: a product of a vector and a matrix."""
    add_own(plan, sums, space, task, n, m)
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
            a = a + power * weight_at(space, task, at)
            b = b + power * weight_at(space, task, at + two)
            c = c + power * weight_at(space, task, at + three)
            d = d + power * weight_at(space, task, at + four)
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
            add_up_again(plan, sums, space, task, n, m)
            break


@kernel
def add_up_again(plan: Plan, sums: Sums, space: Space, task: Task, n: int, m: int) -> None:
    """Adds the entries of a step with a large table up term by term, in the problems where products lost too much."""
    first, out, n_labels, forbidden = plan.label_at[n], plan.out_first[n], plan.n_labels[m], spread(np.inf)
    start, tiny = plan.base[plan.base_first[n] + sums.dense[m]], spread(TINY)
    for e in range(plan.out_first[n + 1] - out):
        low, total, work = load(space.low, out + e), load(space.total, out + e), load(space.work, out + e)
        least = forbidden
        for i in range(n_labels):
            at = start + e * plan.joint_out[m] + i * plan.joint_in[m]
            value = load(space.sums, first + i) + table_at(space, task, at)
            store(space.values, i, value)
            least = lesser(value, least)
        put_entry(space, task, out + e, least, n_labels)
        store(space.low, out + e, where_less(total, tiny, load(space.low, out + e), low))
        store(space.work, out + e, where_less(total, tiny, load(space.work, out + e), work))
        again = spread(0.0) - load(space.total, out + e)
        store(space.total, out + e, where_less(total, tiny, again, total))


@kernel
def go_forward(plan: Plan, sums: Sums, space: Space, task: Task) -> None:
    """Carries out all steps; the derived tables start from 0, the rest is added to the constant part."""
    constant, forbidden, none = load(space.line, 0), spread(np.inf), spread(0.0)
    for n in range(plan.variable.size):
        m = plan.form[n]
        if task.summing and task.same and sums.dense[m] >= 0:
            multiply(plan, sums, space, task, n, m)
        else:
            add_up(plan, space, task, n, m)
        least = forbidden
        for e in range(plan.out_first[n], plan.out_first[n + 1]):
            least = lesser(load(space.work, e), least)
        safe = where_less(least, forbidden, least, none)
        for e in range(plan.out_first[n], plan.out_first[n + 1]):
            store(space.work, e, load(space.work, e) - safe)
        constant = constant + least
    store(space.line, 0, constant)


@inlined_kernel
def give(span: FloatArray, x: int, task: Task, share: FloatArray) -> None:
    """Adds a share to what is there, or keeps the lesser."""
    if task.summing:
        store(span, x, load(span, x) + share)
    else:
        store(span, x, lesser(share, load(span, x)))


@kernel
def share_out(plan: Plan, sums: Sums, space: Space, task: Task, n: int, m: int) -> None:
    """Gives each term of step `n`, of the form `m`, its share of its entry."""
    entry, out, at, none = plan.entry_at[m], plan.out_first[n], plan.read_at[m], spread(0.0)
    base, n_static, forbidden = plan.base_first[n], plan.n_static[m], spread(np.inf)
    n_reads, spreads = n_static + plan.n_derived[m], none
    for e in range(plan.out_first[n + 1] - out):
        flow, low, total = load(space.flow, out + e), load(space.low, out + e), load(space.total, out + e)
        rate = where_less(none, total, flow / total, none)
        if task.spreading:
            spreads = spreads + where_less(none, total, flow * logarithm(total), none)
        for c in range(plan.sum_at[m] + plan.sum_first[entry + e], plan.sum_at[m] + plan.sum_first[entry + e + 1]):
            value = term(plan, space, task, n, m, c, at)
            if task.summing:
                share = rate * exponential(low - value)
                if task.spreading:
                    spreads = spreads + where_less(value, forbidden, share * (value - low), none)
            else:
                share = flow + (value - low)
            give(space.share, plan.label_at[n] + plan.sum_label[c], task, share)
            if plan.partner[n] >= 0:
                give(space.share, plan.partner_at[n] + plan.sum_partner[c], task, share)
            if task.gaining:
                for x in range(n_static):
                    give(space.gain, sums.target[base + x] + plan.reads[at + x], task, share)
            for x in range(n_static, n_reads):
                give(space.flow, plan.base[base + x] + plan.reads[at + x], task, share)
            at += n_reads
    store(space.line, 1, load(space.line, 1) + spreads)


@kernel
def multiply_back(plan: Plan, sums: Sums, space: Space, task: Task, n: int, m: int) -> None:
    """Gives each term of step `n`, of a form with one large table that all share, its share of its entry."""
    first, out, none, end = plan.label_at[n], plan.out_first[n], spread(0.0), plan.out_first[n + 1]
    step_out, step_in, joint = plan.joint_out[m], plan.joint_in[m], plan.base_first[n] + sums.dense[m]
    start, target, spreads, again = plan.base[joint], sums.target[joint], none, none
    for e in range(out, end):  # the flow becomes a rate
        flow, total = load(space.flow, e), load(space.total, e)
        again = lesser(total, again)
        store(space.flow, e, where_less(none, total, flow / total, none))
        if task.spreading:
            size = where_less(total, none, none - total, total)
            spreads = spreads + where_less(none, size, flow * logarithm(size), none)
        store(space.total, e, where_less(total, none, flow / total, none))
    low = spread(np.inf)
    for i in range(first, first + plan.n_labels[m] if task.spreading else first):
        low = lesser(load(space.sums, i), low)
    for i in range(plan.n_labels[m]):
        power, share, place = load(space.power, first + i), none, i * step_in
        for e in range(out, end):
            rate = load(space.flow, e) * weight_at(space, task, start + place)
            share = share + rate
            if task.gaining:
                store(space.gain, target + place, load(space.gain, target + place) + power * rate)
            if task.spreading:
                excess = table_at(space, task, start + place)
                spreads = spreads + where_less(none, rate, power * rate * excess, none)
            place += step_out
        share = power * share
        if task.spreading:
            excess = load(space.sums, first + i) - low
            spreads = spreads + where_less(none, share, share * excess, none)
        pass_on(plan, sums, space, task, n, m, i, share)
    store(space.line, 1, load(space.line, 1) + spreads)
    store(space.values, 0, again)
    for lane in range(WIDTH):
        if space.values[lane] < 0.0:
            share_again(plan, sums, space, task, n, m)
            break


@kernel
def pass_on(plan: Plan, sums: Sums, space: Space, task: Task, n: int, m: int, i: int, share: FloatArray) -> None:
    """Gives a label of the variable of step `n`, and the entries of the tables over it alone, their share."""
    give(space.share, plan.label_at[n] + i, task, share)
    base, n_static = plan.base_first[n], plan.n_static[m]
    for x in range(n_static + plan.n_derived[m]):
        if x != sums.dense[m]:
            if x >= n_static:
                give(space.flow, plan.base[base + x] + i, task, share)
            elif task.gaining:
                give(space.gain, sums.target[base + x] + i, task, share)


@kernel
def share_again(plan: Plan, sums: Sums, space: Space, task: Task, n: int, m: int) -> None:
    """Shares out the entries that were added up again, in the problems where they were: the others' rates are 0."""
    out, joint, none = plan.out_first[n], plan.base_first[n] + sums.dense[m], spread(0.0)
    spreads, forbidden = load(space.line, 1), spread(np.inf)
    for i in range(plan.n_labels[m]):
        label_share = none
        for e in range(plan.out_first[n + 1] - out):
            place = e * plan.joint_out[m] + i * plan.joint_in[m]
            value = load(space.sums, plan.label_at[n] + i) + table_at(space, task, plan.base[joint] + place)
            rate, low = none - load(space.total, out + e), load(space.low, out + e)
            share = where_less(none, rate, rate * exponential(low - value), none)
            label_share = label_share + share
            if task.gaining:
                give(space.gain, sums.target[joint] + place, task, share)
            if task.spreading:
                spreads = spreads + where_less(none, share, share * (value - low), none)
        pass_on(plan, sums, space, task, n, m, i, label_share)
    store(space.line, 1, spreads)


@kernel
def go_back(plan: Plan, sums: Sums, space: Space, task: Task) -> None:
    """Shares out all steps, the last one first; nothing is shared where all is forbidden."""
    none, nothing = spread(0.0), spread(0.0 if task.summing else np.inf)
    whole = spread(1.0 if task.summing else 0.0)
    for x in range(sums.sizes[0]):
        store(space.share, x, nothing)
    for x in range(sums.sizes[1]):
        store(space.flow, x, nothing)
    for x in range(sums.sizes[3] if task.gaining else 0):
        store(space.gain, x, nothing)
    store(space.line, 1, none)
    feasible = where_less(load(space.line, 0), spread(np.inf), whole, nothing)
    for back in range(plan.variable.size):
        n = plan.variable.size - 1 - back
        m = plan.form[n]
        if plan.scope_first[n] == plan.scope_first[n + 1]:
            store(space.flow, plan.out_first[n], feasible)
        if task.summing and task.same and sums.dense[m] >= 0:
            multiply_back(plan, sums, space, task, n, m)
        else:
            share_out(plan, sums, space, task, n, m)

"""Carrying out one plan for eight problems at once: they lie side by side, as lanes (`hasten.jit.records`).

`hasten.proof.elimination.kernels` works on one problem. The kernels here work on eight of one structure with the same
tables, sum by sum in the same order, so that the numbers are the same. The eight share the work of following the plan.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import inlined_kernel, kernel
from hasten.jit.records import WIDTH, gather, greater, lesser, load, spread, store, where_equal, where_less
from hasten.kernels.layout import Graph, stopped
from hasten.proof.elimination.kernels import LOOK_AFTER, Plan
from hasten.support.arrays import FloatArray, IntArray

MANY_SUMS = 64  # of a step with a joint table: its choices are not kept but found again along the answer


class Lanes(NamedTuple):
    """Scratch space for eight problems; all but the last are lanes."""

    cost: FloatArray  # (labels,)
    sums: FloatArray  # (labels,) costs with the tables over the variable alone
    work: FloatArray  # (entries,) derived tables
    choice: FloatArray  # (entries,) the label chosen at each entry; with a partner, the number of the sum
    labels: FloatArray  # (variables,) labels, as floats
    line: FloatArray  # (3,) a place for single lanes, the size of the terms, and their cost
    start: IntArray  # (8,) where the costs of each problem start; later, where it reads


@kernel
def put_in_lanes(graph: Graph, cost: FloatArray, scratch: Lanes) -> None:
    """Lays the costs of eight problems side by side, and adds up each one's largest."""
    size, zero, forbidden = spread(0.0), spread(0.0), spread(np.inf)
    for v in range(graph.order.size):
        least = most = zero
        for x in range(graph.first[v], graph.first[v + 1]):
            value = gather(cost, scratch.start, x)
            store(scratch.cost, x, value)
            finite = where_less(value, forbidden, value, zero)
            least, most = lesser(finite, least), greater(finite, most)
        size = size + greater(most, zero - least)
    store(scratch.line, 1, size)


@inlined_kernel
def minimise_lanes(plan: Plan, table: FloatArray, scratch: Lanes, n: int, m: int) -> None:
    """Carries out step `n`, of the form `m`, sum by sum, and keeps the choices."""
    paired, n_static, n_derived = plan.partner[n] >= 0, plan.n_static[m], plan.n_derived[m]
    label_at, partner_at, base = plan.label_at[n], plan.partner_at[n], plan.base_first[n]
    derived = base + n_static
    entry, out, sums, at = plan.entry_at[m], plan.out_first[n], plan.sum_at[m], plan.read_at[m]
    nothing = -1.0 if paired else 0.0  # is chosen where all is forbidden
    for e in range(plan.out_first[n + 1] - out):
        least, chosen = spread(np.inf), spread(nothing)
        first = sums + plan.sum_first[entry + e]
        for c in range(first, sums + plan.sum_first[entry + e + 1]):
            value = load(scratch.cost, label_at + plan.sum_label[c])
            choice = float(plan.sum_label[c])
            if paired:
                value = value + load(scratch.cost, partner_at + plan.sum_partner[c])
                choice = float(c)
            for x in range(n_static):
                value = value + spread(table[plan.base[base + x] + plan.reads[at + x]])
            at += n_static
            for x in range(n_derived):
                value = value + load(scratch.work, plan.base[derived + x] + plan.reads[at + x])
            at += n_derived
            chosen = where_less(value, least, spread(choice), chosen)
            least = lesser(value, least)
        store(scratch.work, out + e, least)
        store(scratch.choice, out + e, chosen)


@inlined_kernel
def has_many_sums(plan: Plan, n: int, m: int) -> bool:
    """Whether step `n`, of the form `m`, has a joint table of the problem's, and many sums."""
    if plan.joint[m] < 0 or plan.joint[m] >= plan.n_static[m]:
        return False
    return bool((plan.out_first[n + 1] - plan.out_first[n]) * plan.n_labels[m] > MANY_SUMS)


@inlined_kernel
def add_own(plan: Plan, table: FloatArray, scratch: Lanes, n: int, m: int) -> None:
    """Adds up, for each label of the variable of step `n`, its cost and the tables over the variable alone."""
    joint, first, base, n_static = plan.joint[m], plan.label_at[n], plan.base_first[n], plan.n_static[m]
    end, so_far, n_tables = first + plan.n_labels[m], scratch.cost, n_static + plan.n_derived[m]
    for x in range(n_tables):
        if x == joint:
            continue
        at = plan.base[base + x] - first
        if x < n_static:
            for i in range(first, end):
                store(scratch.sums, i, load(so_far, i) + spread(table[at + i]))
        else:
            for i in range(first, end):
                store(scratch.sums, i, load(so_far, i) + load(scratch.work, at + i))
        so_far = scratch.sums
    if n_tables == 1:  # nothing was added
        for i in range(first, end):
            store(scratch.sums, i, load(so_far, i))


@inlined_kernel
def minimise_few_lanes(plan: Plan, table: FloatArray, scratch: Lanes, n: int, m: int) -> None:
    """Carries out step `n`, of a form with a joint table and few sums, and keeps the choices."""
    add_own(plan, table, scratch, n, m)
    first, out, joint, n_labels = plan.label_at[n], plan.out_first[n], plan.joint[m], plan.n_labels[m]
    start, step_out, step_in = plan.base[plan.base_first[n] + joint], plan.joint_out[m], plan.joint_in[m]
    for e in range(plan.out_first[n + 1] - out):
        least, chosen, at = spread(np.inf), spread(0.0), start + e * step_out
        for i in range(n_labels):
            if joint >= plan.n_static[m]:
                value = load(scratch.sums, first + i) + load(scratch.work, at)
            else:
                value = load(scratch.sums, first + i) + spread(table[at])
            chosen = where_less(value, least, spread(float(i)), chosen)
            least = lesser(value, least)
            at += step_in
        store(scratch.work, out + e, least)
        store(scratch.choice, out + e, chosen)


@inlined_kernel
def minimise_many_lanes(plan: Plan, table: FloatArray, scratch: Lanes, n: int, m: int) -> None:
    """Carries out step `n`, of a form with a joint table and many sums: four entries at a time while there are four."""
    add_own(plan, table, scratch, n, m)
    out, first, sums, n_labels = plan.out_first[n], plan.label_at[n], scratch.sums, plan.n_labels[m]
    joint, base = plan.joint[m], plan.base_first[n]
    step_out, step_in, start = plan.joint_out[m], plan.joint_in[m], plan.base[base + joint]
    n_out, o = plan.out_first[n + 1] - out, 0
    while o + 4 <= n_out:
        one = two = three = four = spread(np.inf)
        at = start + o * step_out
        for i in range(n_labels):
            value = load(sums, first + i)
            one = lesser(value + spread(table[at]), one)
            two = lesser(value + spread(table[at + step_out]), two)
            three = lesser(value + spread(table[at + 2 * step_out]), three)
            four = lesser(value + spread(table[at + 3 * step_out]), four)
            at += step_in
        store(scratch.work, out + o, one)
        store(scratch.work, out + o + 1, two)
        store(scratch.work, out + o + 2, three)
        store(scratch.work, out + o + 3, four)
        o += 4
    while o < n_out:
        one, at = spread(np.inf), start + o * step_out
        for i in range(n_labels):
            one = lesser(load(sums, first + i) + spread(table[at]), one)
            at += step_in
        store(scratch.work, out + o, one)
        o += 1


@kernel
def eliminate_lanes(plan: Plan, table: FloatArray, scratch: Lanes, stop_flag: IntArray) -> bool:
    """Carries out a plan that leaves nothing; the constant part of each problem is left in the first line.

    Returns whether it came to the end.
    """
    for n in range(plan.variable.size):
        if n % LOOK_AFTER == 0 and stopped(stop_flag):
            return False
        m = plan.form[n]
        if has_many_sums(plan, n, m):
            minimise_many_lanes(plan, table, scratch, n, m)
        elif plan.joint[m] >= 0:
            minimise_few_lanes(plan, table, scratch, n, m)
        else:
            minimise_lanes(plan, table, scratch, n, m)
    constant = spread(0.0)
    for x in range(plan.constant.size):
        constant = constant + load(scratch.work, plan.constant[x])
    store(scratch.line, 0, constant)
    return True


@kernel
def restore_lanes(plan: Plan, table: FloatArray, scratch: Lanes) -> None:
    """Labels every variable of each problem, in reverse, as chosen."""
    for x in range(plan.variable.size):
        n = plan.variable.size - 1 - x
        m, out, v, u = plan.form[n], plan.out_first[n], plan.variable[n], plan.partner[n]
        if has_many_sums(plan, n, m):
            trace_joint(plan, table, scratch, n, m)
        else:
            for lane in range(WIDTH):
                e = out
                for a in range(plan.scope_first[n], plan.scope_first[n + 1]):
                    e += plan.stride[a] * int(scratch.labels[WIDTH * plan.scope[a] + lane])
                choice = scratch.choice[WIDTH * e + lane]
                if u >= 0:
                    c = int(choice)
                    scratch.labels[WIDTH * u + lane] = float(plan.sum_partner[c]) if c >= 0 else 0.0
                    choice = float(plan.sum_label[c]) if c >= 0 else 0.0
                scratch.labels[WIDTH * v + lane] = choice


@inlined_kernel
def trace_joint(plan: Plan, table: FloatArray, scratch: Lanes, n: int, m: int) -> None:
    """Labels the variable of step `n`, of a form with a joint table, in each problem, at its least."""
    first, out, start, step_in = plan.label_at[n], plan.out_first[n], scratch.start, plan.joint_in[m]
    table_at, neighbour = plan.base[plan.base_first[n] + plan.joint[m]], plan.scope[plan.scope_first[n]]
    for lane in range(WIDTH):
        e = int(scratch.labels[WIDTH * neighbour + lane])
        start[lane] = table_at + e * plan.joint_out[m]
        scratch.line[2 * WIDTH + lane] = scratch.work[WIDTH * (out + e) + lane]
    least, chosen, i = load(scratch.line, 2), spread(0.0), plan.n_labels[m]
    while i:  # the first of several comes last
        i -= 1
        value = load(scratch.sums, first + i) + gather(table, start, i * step_in)
        chosen = where_equal(value, least, spread(float(i)), chosen)
    store(scratch.labels, plan.variable[n], chosen)


@kernel
def add_costs(graph: Graph, plan: Plan, table: FloatArray, scratch: Lanes) -> None:
    """Adds up the costs of the labels of each problem, in the order of `hasten.kernels.score.total_cost`."""
    total = spread(0.0)
    for v in range(graph.order.size):
        for lane in range(WIDTH):
            label_at = graph.first[v] + int(scratch.labels[WIDTH * v + lane])
            scratch.line[2 * WIDTH + lane] = scratch.cost[WIDTH * label_at + lane]
        total = total + load(scratch.line, 2)
    for x in range(plan.priced.size):  # other tables only forbid
        f = plan.priced[x]
        for lane in range(WIDTH):
            at = graph.table_at[f]
            for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
                at += graph.stride[a] * int(scratch.labels[WIDTH * graph.scope[a] + lane])
            scratch.line[2 * WIDTH + lane] = table[at]
        total = total + load(scratch.line, 2)
    store(scratch.line, 2, total)

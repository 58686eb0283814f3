"""From sums back to their terms: the share of each label and table entry (`hasten.sums.kernels`); random labellings.

The last step has one entry, which is certain. Each step hands the share of its entries on to their terms, and these to
the entries of earlier steps that they read.
"""

from __future__ import annotations

import numpy as np

from hasten.jit import inlined_kernel, kernel
from hasten.jit.records import WIDTH, lesser, load, spread, store, where_less
from hasten.kernels.exponentials import exponential
from hasten.proof.elimination.kernels import Plan
from hasten.sums.kernels import Space, Sums, Task, term
from hasten.support.arrays import FloatArray, IntArray


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

"""Carrying out a planned elimination: minimising variables out, and putting them back.

Step `n` eliminates one variable, or two at once: for each labelling of their neighbours (an *entry* of a derived
table) the least, over their allowed labels, of the labels' costs and the table entries that these read.
"""

from __future__ import annotations

import numpy as np

from hasten.jit import Record, inlined_kernel, kernel, viewer
from hasten.support.arrays import FloatArray, IntArray


class Plan(Record):
    """The elimination of N variables of one structure. `hasten.model.elimination` writes it."""

    variable: IntArray  # (N,) the variable that each step eliminates
    partner: IntArray  # (N,) the one it eliminates with it; -1 for none
    out_first: IntArray  # (N + 1,) the entries of step n are out_first[n]:out_first[n + 1]
    read_at: IntArray  # (N,) where the reads of each step start
    n_static: IntArray  # (N,) how many entries of the problem's tables each sum reads
    n_derived: IntArray  # (N,) and of derived tables
    scope_first: IntArray  # (N + 1,)
    scope: IntArray  # (slots,) the neighbours at the time
    stride: IntArray  # (slots,)
    combo_first: IntArray  # (entries + 1,) the sums of entry e are combo_first[e]:combo_first[e + 1]
    combo_label: IntArray  # (combos,) a label number of the eliminated variable
    combo_partner: IntArray  # (combos,) and of its partner
    reads: IntArray  # sum after sum: first places in the problem's tables, then among the derived tables
    constant: IntArray  # entries without neighbours: parts of the total
    keep: IntArray  # (kept,) the variables that are left, in order
    keep_label: IntArray  # (kept labels,) their label numbers
    fold_from: IntArray  # entries over one variable that is left: parts of its costs
    fold_to: IntArray
    copy_from: IntArray  # entries of the problem's tables that are left


plan_at = viewer(Plan)


@inlined_kernel
def combine(plan: Plan, cost: FloatArray, table: FloatArray, work: FloatArray, n: int, c: int, c0: int) -> float:
    """Returns sum `c` of step `n`, whose first sum is `c0`."""
    value: float = cost[plan.combo_label[c]]
    if plan.partner[n] >= 0:
        value += cost[plan.combo_partner[c]]
    n_static, n_derived = plan.n_static[n], plan.n_derived[n]
    at = plan.read_at[n] + (c - c0) * (n_static + n_derived)
    for x in range(at, at + n_static):
        value += table[plan.reads[x]]
    for x in range(at + n_static, at + n_static + n_derived):
        value += work[plan.reads[x]]
    return value


@kernel
def eliminate(plan: Plan, cost: FloatArray, table: FloatArray, work: FloatArray, kept_cost: FloatArray) -> float:
    """Carries a plan out: fills the derived tables and the costs of what is left; returns the constant part."""
    for n in range(plan.variable.size):
        paired, n_static, n_derived = plan.partner[n] >= 0, plan.n_static[n], plan.n_derived[n]
        at = plan.read_at[n]
        for e in range(plan.out_first[n], plan.out_first[n + 1]):
            least = np.inf
            for c in range(plan.combo_first[e], plan.combo_first[e + 1]):  # as `combine` does, one after the other
                value = cost[plan.combo_label[c]]
                if paired:
                    value += cost[plan.combo_partner[c]]
                for x in range(at, at + n_static):
                    value += table[plan.reads[x]]
                at += n_static
                for x in range(at, at + n_derived):
                    value += work[plan.reads[x]]
                at += n_derived
                least = min(least, value)
            work[e] = least
    for x in range(plan.copy_from.size):
        work[plan.out_first[plan.variable.size] + x] = table[plan.copy_from[x]]
    for x in range(plan.keep_label.size):
        kept_cost[x] = cost[plan.keep_label[x]]
    for x in range(plan.fold_from.size):
        kept_cost[plan.fold_to[x]] += work[plan.fold_from[x]]
    constant = 0.0
    for x in range(plan.constant.size):
        constant += work[plan.constant[x]]
    return constant


@kernel
def restore(
    plan: Plan,
    first: IntArray,
    cost: FloatArray,
    table: FloatArray,
    work: FloatArray,
    kept: IntArray,
    labels: IntArray,
) -> None:
    """Labels every variable, given those that are left: the eliminated ones in reverse, each at its least."""
    for x in range(plan.keep.size):
        labels[plan.keep[x]] = kept[x]
    for m in range(plan.variable.size):
        n = plan.variable.size - 1 - m
        e = plan.out_first[n]
        for a in range(plan.scope_first[n], plan.scope_first[n + 1]):
            e += plan.stride[a] * labels[plan.scope[a]]
        c0 = plan.combo_first[plan.out_first[n]]
        least, chosen = np.inf, -1
        for c in range(plan.combo_first[e], plan.combo_first[e + 1]):
            value = combine(plan, cost, table, work, n, c, c0)
            if value < least:
                least, chosen = value, c
        v, u = plan.variable[n], plan.partner[n]
        labels[v] = plan.combo_label[chosen] - first[v] if chosen >= 0 else 0
        if u >= 0:
            labels[u] = plan.combo_partner[chosen] - first[u] if chosen >= 0 else 0

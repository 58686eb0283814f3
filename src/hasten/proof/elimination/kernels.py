"""Carrying out a planned elimination: minimising variables out, and putting them back.

Step `n` eliminates one variable, or two at once: for each labelling of their neighbours (an *entry* of a derived table)
the least, over their allowed labels, of the labels' costs and the table entries that these read. Steps that differ only
in their variables and the places of their tables share a *form*, which is stored once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hasten.jit import Record, inlined_kernel, kernel, viewer
from hasten.kernels.layout import Graph, stopped
from hasten.support.arrays import FloatArray, IntArray, sizes_of


class Plan(Record):
    """The elimination of N variables of one structure in steps of M forms."""

    variable: IntArray  # (N,) the variable that each step eliminates
    partner: IntArray  # (N,) the one it eliminates with it; -1 for none
    label_at: IntArray  # (N,) where the labels of the variable start
    partner_at: IntArray  # (N,) and those of its partner
    out_first: IntArray  # (N + 1,) the entries of step n are out_first[n]:out_first[n + 1]
    scope_first: IntArray  # (N + 1,)
    scope: IntArray  # (slots,) the neighbours at the time
    stride: IntArray  # (slots,)
    base_first: IntArray  # (N + 1,) step n reads the tables that start at base[base_first[n]:base_first[n + 1]]:
    base: IntArray  # first tables of the problem, then derived ones
    form: IntArray  # (N,)
    # forms
    n_static: IntArray  # (M,) how many entries of the problem's tables each sum reads
    n_derived: IntArray  # (M,) and of derived tables
    entry_at: IntArray  # (M,) the sums of entry e are sum_first[entry_at[m] + e]:sum_first[entry_at[m] + e + 1], from
    sum_first: IntArray
    sum_at: IntArray  # (M,) on
    sum_label: IntArray  # (sums,) the label of the eliminated variable
    sum_partner: IntArray  # (sums,) and of its partner
    read_at: IntArray  # (M,) where its reads start
    reads: IntArray  # sum after sum: places in each of the tables that are read
    # forms of one variable with one neighbour that allow all: one table is over both, others over the variable alone
    joint: IntArray  # (M,) which of the tables read is over both; -1: the form is another
    joint_out: IntArray  # (M,) how far apart the labels of the neighbour are in it
    joint_in: IntArray  # (M,) and those of the variable
    n_labels: IntArray  # (M,) how many labels the variable has
    # the rest
    constant: IntArray  # entries without neighbours: parts of the total
    keep: IntArray  # (kept,) the variables that are left, in order
    keep_label: IntArray  # (kept labels,) their label numbers
    fold_from: IntArray  # entries over one variable that is left: parts of its costs
    fold_to: IntArray
    copy_from: IntArray  # entries of the problem's tables that are left
    priced: IntArray  # the factors whose tables do more than forbid


plan_at = viewer(Plan)
MANY_RULES = 4  # there are many if there is one for this many variables
LOOK_AFTER = 16  # steps, at the stop flag


@dataclass(frozen=True, eq=False)
class Reduction:
    """A plan, and the graph of the rest that it leaves."""

    plan: Plan
    graph: Graph

    def __reduce__(self) -> tuple[type[Reduction], tuple[Plan, Graph]]:
        return Reduction, (self.plan, self.graph)  # a copy lies elsewhere

    @cached_property
    def complete(self) -> bool:
        """Whether it leaves nothing."""
        return not self.graph.order.size

    @cached_property
    def leaves_rules(self) -> bool:
        """Whether it leaves rules alone, and many for the variables."""
        graph = self.graph
        n_rules = graph.row_low.size
        return bool(n_rules and not graph.table_at.size and MANY_RULES * n_rules >= graph.order.size)

    @cached_property
    def leaves_triples(self) -> bool:
        """Whether it leaves tables, all of three variables or more."""
        n_variables = sizes_of(self.graph.scope_first)[self.graph.table_at >= 0]
        return bool(n_variables.size and n_variables.min() > 2)

    @cached_property
    def n_labels(self) -> int:
        """How many labels are left."""
        return int(self.graph.first[-1])

    @cached_property
    def addresses(self) -> IntArray:
        """(1, 2) where both lie, for kernels."""
        return np.array([[self.plan.address, self.graph.address]])

    @property
    def n_bytes(self) -> int:
        """How much memory it takes."""
        return self.plan.buffer.nbytes + self.graph.buffer.nbytes

    @cached_property
    def n_sums(self) -> int:
        """How many sums the plan takes."""
        plan = self.plan
        return int(plan.sum_first[plan.entry_at[plan.form] + np.diff(plan.out_first)].sum())

    @cached_property
    def size(self) -> int:
        """How many labels, listed tuples and cells of rows are left, which a sweep goes through."""
        graph = self.graph
        tuples = sizes_of(graph.list_first)[graph.listing[graph.table_at >= 0]]
        return len(graph.cell_first) + int(tuples.sum()) + len(graph.cell_row)


@inlined_kernel
def combine(plan: Plan, cost: FloatArray, table: FloatArray, work: FloatArray, n: int, m: int, c: int) -> float:
    """Returns sum `c` of step `n`, which has the form `m`."""
    value: float = cost[plan.label_at[n] + plan.sum_label[plan.sum_at[m] + c]]
    if plan.partner[n] >= 0:
        value += cost[plan.partner_at[n] + plan.sum_partner[plan.sum_at[m] + c]]
    base, n_static, n_derived = plan.base_first[n], plan.n_static[m], plan.n_derived[m]
    at = plan.read_at[m] + c * (n_static + n_derived)
    for x in range(n_static):
        value += table[plan.base[base + x] + plan.reads[at + x]]
    for x in range(n_static, n_static + n_derived):
        value += work[plan.base[base + x] + plan.reads[at + x]]
    return value


@inlined_kernel
def minimise(plan: Plan, cost: FloatArray, table: FloatArray, work: FloatArray, n: int, m: int) -> None:
    """Carries out step `n`, of the form `m`, sum by sum."""
    paired, n_static, n_derived = plan.partner[n] >= 0, plan.n_static[m], plan.n_derived[m]
    label_at, partner_at, base = plan.label_at[n], plan.partner_at[n], plan.base_first[n]
    derived = base + n_static
    entry, out, sums, at = plan.entry_at[m], plan.out_first[n], plan.sum_at[m], plan.read_at[m]
    for e in range(plan.out_first[n + 1] - out):
        least = np.inf
        for c in range(sums + plan.sum_first[entry + e], sums + plan.sum_first[entry + e + 1]):
            value = cost[label_at + plan.sum_label[c]]  # as `combine` does
            if paired:
                value += cost[partner_at + plan.sum_partner[c]]
            for x in range(n_static):
                value += table[plan.base[base + x] + plan.reads[at + x]]
            at += n_static
            for x in range(n_derived):
                value += work[plan.base[derived + x] + plan.reads[at + x]]
            at += n_derived
            least = min(least, value)
        work[out + e] = least


@inlined_kernel
def minimise_joint(plan: Plan, cost: FloatArray, table: FloatArray, work: FloatArray, n: int, m: int) -> None:
    """Carries out step `n`, of a form with a joint table, label by label: as Viterbi's algorithm does."""
    joint, n_static, n_derived = plan.joint[m], plan.n_static[m], plan.n_derived[m]
    step_out, step_in = plan.joint_out[m], plan.joint_in[m]
    base, out, end = plan.base_first[n], plan.out_first[n], plan.out_first[n + 1]
    n_out, n_labels = end - out, plan.n_labels[m]
    for e in range(out, end):
        work[e] = np.inf
    for i in range(n_labels):
        value = cost[plan.label_at[n] + i]
        for x in range(n_static):
            if x != joint:
                value += table[plan.base[base + x] + i]
        for x in range(n_static, n_static + n_derived):
            if x != joint:
                value += work[plan.base[base + x] + i]
        at = plan.base[base + joint] + i * step_in
        if joint >= n_static:
            for o in range(n_out):
                work[out + o] = min(work[out + o], value + work[at + o * step_out])
        elif step_out == 1:  # many at a time
            for o in range(n_out):
                work[out + o] = min(work[out + o], value + table[at + o])
        else:
            for o in range(n_out):
                work[out + o] = min(work[out + o], value + table[at + o * step_out])


@inlined_kernel
def least_joint(plan: Plan, cost: FloatArray, table: FloatArray, work: FloatArray, n: int, m: int, o: int) -> int:
    """Returns the best label of the variable of step `n`, of a form with a joint table, if its neighbour's is `o`."""
    joint, n_static, n_derived = plan.joint[m], plan.n_static[m], plan.n_derived[m]
    base, label_at, step_in = plan.base_first[n], plan.label_at[n], plan.joint_in[m]
    at = plan.base[base + joint] + o * plan.joint_out[m]
    least, chosen = np.inf, 0
    for i in range(plan.n_labels[m]):
        value = cost[label_at + i]
        for x in range(n_static):
            if x != joint:
                value += table[plan.base[base + x] + i]
        for x in range(n_static, n_static + n_derived):
            if x != joint:
                value += work[plan.base[base + x] + i]
        value += table[at + i * step_in] if joint < n_static else work[at + i * step_in]
        if value < least:
            least, chosen = value, i
    return chosen


@kernel
def eliminate(
    plan: Plan, cost: FloatArray, table: FloatArray, work: FloatArray, kept_cost: FloatArray, stop_flag: IntArray
) -> float:
    """Carries a plan out: fills the derived tables and the costs of the rest; returns the constant part.

    Returns nan if it was stopped before the end.
    """
    for n in range(plan.variable.size):
        if n % LOOK_AFTER == 0 and stopped(stop_flag):
            return np.nan
        m = plan.form[n]
        if plan.joint[m] >= 0:
            minimise_joint(plan, cost, table, work, n, m)
        else:
            minimise(plan, cost, table, work, n, m)
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
    plan: Plan, cost: FloatArray, table: FloatArray, work: FloatArray, kept: IntArray, labels: IntArray
) -> None:
    """Labels every variable, given the labels of the rest: the eliminated ones in reverse, each at its least."""
    for x in range(plan.keep.size):
        labels[plan.keep[x]] = kept[x]
    for m in range(plan.variable.size):
        n = plan.variable.size - 1 - m
        e = plan.out_first[n]
        for a in range(plan.scope_first[n], plan.scope_first[n + 1]):
            e += plan.stride[a] * labels[plan.scope[a]]
        m = plan.form[n]
        entry = plan.entry_at[m] + e - plan.out_first[n]
        if plan.joint[m] >= 0:
            labels[plan.variable[n]] = least_joint(plan, cost, table, work, n, m, e - plan.out_first[n])
            continue
        least, chosen = np.inf, -1
        for c in range(plan.sum_first[entry], plan.sum_first[entry + 1]):
            value = combine(plan, cost, table, work, n, m, c)
            if value < least:
                least, chosen = value, plan.sum_at[m] + c
        labels[plan.variable[n]] = plan.sum_label[chosen] if chosen >= 0 else 0
        if plan.partner[n] >= 0:
            labels[plan.partner[n]] = plan.sum_partner[chosen] if chosen >= 0 else 0

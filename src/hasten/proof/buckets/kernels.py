"""Carrying out a bucket elimination: large tables, read in runs, never listed sum by sum.

`hasten.proof.elimination.kernels` lists what each of its sums reads, which is right for small tables. A grid twelve
cells wide has tables of thousands of entries. Here a step knows how far apart the labels of each neighbour are in each
table that it reads. The entries of its own table are computed in *runs*, of the last neighbours' labels: over a run, a
table either stays the same, or is read entry by entry in its own order, or in an order worked out once for all runs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import Record, inlined_kernel, kernel, part, viewer
from hasten.kernels.stopping import stopped
from hasten.support.arrays import FloatArray, IntArray

RUN = 128  # entries of a run at most, but for variables of more labels
SAME, IN_ORDER, SHUFFLED = 0, 1, 2  # how a run reads a table


class Buckets(Record):
    """The elimination of N variables, one a step, until only fixed ones are left.

    A step reads *parts*: tables of the problem, and those of earlier steps. Its neighbours are sorted by when they are
    eliminated, so that each part has the variable that goes first, and the last neighbours last.
    """

    variable: IntArray  # (N,) the variable that each step eliminates
    label_at: IntArray  # (N,) where its labels start
    n_labels: IntArray  # (N,)
    out_first: IntArray  # (N + 1,) the entries of step n are out_first[n]:out_first[n + 1] of the derived tables
    scope_first: IntArray  # (N + 1,)
    scope: IntArray  # (slots,) the neighbours at the time
    sizes: IntArray  # (slots,) how many labels they have
    part_first: IntArray  # (N + 1,)
    part_at: IntArray  # (parts,) where each table starts
    derived: IntArray  # (parts,) 1 where it is an earlier step's
    inside: IntArray  # (parts,) how far apart in it the labels of the variable are
    stride_first: IntArray  # (parts,) and those of the neighbours: one number each, from here on
    stride: IntArray
    most: IntArray  # (3,) the most parts of a step, neighbours of a step, and labels of a variable


class Run(NamedTuple):
    """Scratch space for runs."""

    shift: IntArray  # (parts * run,) where each entry of a run is read, from the place of the first
    way: IntArray  # (parts,) how a run reads each part
    base: IntArray  # (parts,) where the run begins in it
    digit: IntArray  # (neighbours,) the labels of those that the run does not go through
    line: FloatArray  # (run,) sums of one run


buckets_at = viewer(Buckets)


@inlined_kernel
def run_length(plan: Buckets, n: int) -> tuple[int, int]:
    """Returns how long the runs of step `n` are, and the first neighbour that they go through."""
    length, first = 1, plan.scope_first[n + 1]
    while first > plan.scope_first[n] and (length == 1 or length * plan.sizes[first - 1] <= RUN):
        first -= 1
        length *= plan.sizes[first]
    return length, first


@kernel
def lay_out(plan: Buckets, n: int, length: int, first: int, run: Run) -> None:
    """Works out how runs of step `n` read its parts."""
    begin, end = plan.scope_first[n], plan.scope_first[n + 1]
    for a in range(begin, first):
        run.digit[a - begin] = 0
    for x in range(plan.part_first[n], plan.part_first[n + 1]):
        k = x - plan.part_first[n]
        stride, shift = plan.stride_first[x] - begin, part(run.shift, k * length, (k + 1) * length)
        run.base[k], shift[0], filled, same, ordered = plan.part_at[x], 0, 1, True, True
        for a in range(end - 1, first - 1, -1):
            step = plan.stride[stride + a]
            if plan.sizes[a] > 1:
                same &= step == 0
                ordered &= step == filled
            for i in range(1, plan.sizes[a]):
                for e in range(filled):
                    shift[i * filled + e] = shift[e] + i * step
            filled *= plan.sizes[a]
        run.way[k] = SAME if same else IN_ORDER if ordered else SHUFFLED


@inlined_kernel
def add_part(values: FloatArray, at: int, way: int, shift: IntArray, line: FloatArray, length: int) -> None:
    """Adds what a part has at each entry of a run."""
    if way == IN_ORDER:
        for e in range(length):
            line[e] += values[at + e]
    else:
        for e in range(length):
            line[e] += values[at + shift[e]]


@kernel
def compute_run(
    plan: Buckets, n: int, length: int, cost: FloatArray, table: FloatArray, work: FloatArray, run: Run, out: FloatArray
) -> None:
    """Computes one run of step `n`: at each entry the least sum, over the labels of the variable."""
    first, n_parts, line = plan.part_first[n], plan.part_first[n + 1] - plan.part_first[n], run.line
    for i in range(plan.n_labels[n]):
        value = cost[plan.label_at[n] + i]
        for k in range(n_parts):
            if run.way[k] == SAME:
                at = run.base[k] + i * plan.inside[first + k]
                value += work[at] if plan.derived[first + k] else table[at]
        for e in range(length):
            line[e] = value
        for k in range(n_parts):
            if run.way[k] != SAME:
                at, shift = run.base[k] + i * plan.inside[first + k], part(run.shift, k * length, (k + 1) * length)
                if plan.derived[first + k]:
                    add_part(work, at, run.way[k], shift, line, length)
                else:
                    add_part(table, at, run.way[k], shift, line, length)
        if i == 0:
            for e in range(length):
                out[e] = line[e]
        else:
            for e in range(length):
                out[e] = min(out[e], line[e])


@kernel
def advance(plan: Buckets, n: int, first: int, run: Run) -> None:
    """Goes on to the next run of step `n`: the neighbours before `first` have their next labels."""
    begin, a = plan.scope_first[n], first - 1
    while a >= begin:
        run.digit[a - begin] += 1
        wraps = run.digit[a - begin] == plan.sizes[a]
        move = 1 - plan.sizes[a] if wraps else 1
        for x in range(plan.part_first[n], plan.part_first[n + 1]):
            run.base[x - plan.part_first[n]] += move * plan.stride[plan.stride_first[x] + a - begin]
        if not wraps:
            return
        run.digit[a - begin] = 0
        a -= 1


@kernel
def eliminate_step(plan: Buckets, n: int, cost: FloatArray, table: FloatArray, work: FloatArray, run: Run) -> None:
    """Carries out step `n`."""
    length, first = run_length(plan, n)
    lay_out(plan, n, length, first, run)
    for at in range(plan.out_first[n], plan.out_first[n + 1], length):
        compute_run(plan, n, length, cost, table, work, run, part(work, at, at + length))
        advance(plan, n, first, run)


@kernel
def restore_buckets(plan: Buckets, cost: FloatArray, table: FloatArray, work: FloatArray, labels: IntArray) -> None:
    """Labels every variable that is not fixed, in reverse, each at its least."""
    for back in range(plan.variable.size):
        n = plan.variable.size - 1 - back
        begin, least, chosen = plan.scope_first[n], np.inf, 0
        for i in range(plan.n_labels[n]):
            value = cost[plan.label_at[n] + i]
            for x in range(plan.part_first[n], plan.part_first[n + 1]):
                at, stride = plan.part_at[x] + i * plan.inside[x], plan.stride_first[x] - begin
                for a in range(begin, plan.scope_first[n + 1]):
                    at += plan.stride[stride + a] * labels[plan.scope[a]]
                value += work[at] if plan.derived[x] else table[at]
            if value < least:
                least, chosen = value, i
        labels[plan.variable[n]] = chosen


@kernel
def carry_out(
    plan: Buckets, cost: FloatArray, table: FloatArray, work: FloatArray, run: Run, watch: IntArray
) -> tuple[bool, float]:
    """Carries out all steps; returns whether it finished, and the least cost: what steps without neighbours come to."""
    total = 0.0
    for n in range(plan.variable.size):
        if stopped(watch):
            return False, 0.0
        eliminate_step(plan, n, cost, table, work, run)
        if plan.scope_first[n] == plan.scope_first[n + 1]:
            total += work[plan.out_first[n]]
    return True, total

"""Sums over many problems: eight of one structure at a time go forwards and backwards, or are sampled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import driver, inlined_kernel, keep, kernel, part, split
from hasten.jit.simd import WIDTH
from hasten.kernels.layout import COST, TABLE, VARIABLE, Arrays, BatchArrays, graph_of, tables_of
from hasten.proof.elimination.kernels import Plan, plan_at
from hasten.sums.kernels import Space, Sums, Task, go_back, go_forward, put_costs, put_own_tables, put_tables, sums_at
from hasten.support.arrays import FloatArray, IntArray


class Found(NamedTuple):
    """What is found of each problem of a batch."""

    value: FloatArray  # (n,) minus the logarithm of the sum, or the least cost
    entropy: FloatArray  # (n,)
    share: FloatArray  # (labels,) as the costs
    gain: FloatArray  # marginals of table entries
    gain_at: IntArray  # (n,) where those of a problem start; problems may share them


@kernel
def most_of(problems: IntArray, plans: IntArray, most: IntArray) -> None:
    """Finds the largest of each size of the plans of problems."""
    for x in range(problems.size):
        if x == 0 or plans[x, 1] != plans[x - 1, 1]:
            sums = sums_at(plans[x, 1])
            for k in range(most.size):
                most[k] = max(most[k], sums.sizes[k])


@inlined_kernel
def alike(batch: BatchArrays, problems: IntArray, plans: IntArray, begin: int) -> tuple[int, bool]:
    """Returns where the problems of one plan that begin here end, eight at most, and whether they share their tables."""
    end, same = begin + 1, True
    while end < min(begin + WIDTH, problems.size) and plans[end, 0] == plans[begin, 0]:
        same = same and batch.place[problems[end], TABLE] == batch.place[problems[begin], TABLE]
        end += 1
    return end, same


@inlined_kernel
def start_lanes(batch: BatchArrays, problems: IntArray, begin: int, end: int, column: int, space: Space) -> None:
    """Says where the costs or tables of each of eight problems start; beyond the last, it is there again."""
    for lane in range(WIDTH):
        space.start[lane] = batch.place[problems[min(begin + lane, end - 1)], column]


@kernel
def forward(
    batch: BatchArrays, problems: IntArray, begin: int, end: int, plan: Plan, sums: Sums, space: Space, task: Task
) -> None:
    """Takes problems of one plan forwards; whether they share their tables was found before."""
    graph = graph_of(batch, problems[begin])
    start_lanes(batch, problems, begin, end, COST, space)
    put_costs(graph, part(batch.cost, 0, batch.cost.size), space, sums.sizes[0])
    if not task.same:
        start_lanes(batch, problems, begin, end, TABLE, space)
        put_own_tables(graph, part(batch.table, 0, batch.table.size), space, task.summing != 0)
    go_forward(plan, sums, space, task)


@driver
def sum_some(arrays: Arrays, problems: IntArray, plans: IntArray, asked: IntArray, found: Found) -> None:
    """Sums over the labellings of some problems; `plans` has the addresses of each one's plan, `asked` a `Task`."""
    batch, most = BatchArrays(*arrays), np.zeros(5, dtype=np.int64)
    most_of(problems, plans, part(most, 0, 5))
    n_labels, n_entries, n_table, n_gain, n_terms = most[0], most[1], most[2], most[3], most[4]
    n_own = 0
    for x in range(1, problems.size):
        if batch.place[problems[x], TABLE] != batch.place[problems[x - 1], TABLE]:
            n_own = n_table
    if not asked[2]:
        n_gain = 0
    floats = np.empty(WIDTH * (4 * n_labels + 4 * n_entries + n_gain + n_terms + 2 + 2 * n_own) + 2 * n_table)
    ints = np.zeros(WIDTH, dtype=np.int64)
    a, b, c, d = WIDTH * n_labels, WIDTH * n_entries, WIDTH * n_gain, WIDTH * n_own
    space = Space(
        *split(floats, (a, a, a, a, b, b, b, b, c, WIDTH * n_terms, 2 * WIDTH, d, d, n_table, n_table)),
        part(ints, 0, WIDTH),
    )
    begin, table_at, table_of, in_tables = 0, -1, -1, 0.0
    while begin < problems.size:
        p, plan, sums = problems[begin], plan_at(plans[begin, 0]), sums_at(plans[begin, 1])
        end, same = alike(batch, problems, plans, begin)
        task, graph = Task(asked[0], asked[1], asked[2], asked[3], same), graph_of(batch, p)
        if same and (table_at != batch.place[p, TABLE] or table_of != plans[begin, 0]):
            in_tables = put_tables(graph, tables_of(batch, p), space, asked[0] != 0)
            table_at, table_of = batch.place[p, TABLE], plans[begin, 0]
        forward(batch, problems, begin, end, plan, sums, space, task)
        if task.sharing:
            go_back(plan, sums, space, task)
        for lane in range(end - begin):
            p = problems[begin + lane]
            found.value[p] = space.line[lane] + (in_tables if same else 0.0)
            if task.sharing:
                found.entropy[p] = space.line[WIDTH + lane]
                at = batch.place[p, COST]
                for x in range(graph.first[graph.order.size]):
                    found.share[at + x] = space.share[WIDTH * x + lane]
            if task.gaining:
                at = found.gain_at[p]
                for x in range(sums.sizes[3]):
                    found.gain[at + x] += space.gain[WIDTH * x + lane]
        begin = end
    keep((floats, ints, most))

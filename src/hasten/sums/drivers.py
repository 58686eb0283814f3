"""Sums over many problems: eight of one structure at a time go forwards and backwards, or are sampled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import driver, inlined_kernel, keep, kernel, part, split
from hasten.jit.records import WIDTH, spread, store
from hasten.kernels.layout import COST, TABLE, VARIABLE, Arrays, BatchArrays, graph_of, tables_of
from hasten.proof.elimination.kernels import plan_at
from hasten.sums.kernels import Space, Task, draw, entropy_of, go_back, go_forward, put_costs, put_tables, sums_at
from hasten.support.arrays import FloatArray, IntArray


class Found(NamedTuple):
    """Results for each problem of a batch."""

    value: FloatArray  # (n,) minus the logarithm of the sum, or the least cost
    entropy: FloatArray  # (n,)
    share: FloatArray  # (labels,) as the costs
    gain: FloatArray  # marginals of table entries
    gain_at: IntArray  # (n,) where those of a problem start; problems may share them
    weight: FloatArray  # (n,) of each problem, in shares and marginals
    labels: IntArray  # (rows, variables) labellings that are drawn
    chance: FloatArray  # (problems, rows, steps) random numbers below 1 for these


@kernel
def most_of(problems: IntArray, plans: IntArray, most: IntArray) -> None:
    """Finds the largest of each size of the plans of problems."""
    for x in range(problems.size):
        if x == 0 or plans[x, 1] != plans[x - 1, 1]:
            sums = sums_at(plans[x, 1])
            for k in range(5):
                most[k] = max(most[k], sums.sizes[k])


class Scratch(NamedTuple):
    """Scratch space of a driver, and which tables are in it."""

    space: Space
    seen: IntArray  # (2,) where the tables start, and the plan that they were put for
    in_tables: FloatArray  # (1,) the constant part of these


@inlined_kernel
def n_floats(most: IntArray, gaining: int) -> int:
    """Returns how many numbers the scratch space has; marginals that are not asked for have no room."""
    most[3] *= gaining
    n: int = WIDTH * (4 * most[0] + 4 * most[1] + most[3] + most[4] + 3) + 2 * most[2]
    return n


@inlined_kernel
def space_of(floats: FloatArray, ints: IntArray, most: IntArray) -> Space:
    """Cuts scratch space up."""
    a, b, c, d = WIDTH * most[0], WIDTH * most[1], WIDTH * most[3], WIDTH * most[4]
    return Space(*split(floats, (a, a, a, a, b, b, b, b, c, d, 3 * WIDTH, most[2], most[2])), part(ints, 0, WIDTH))  # type: ignore[call-arg]


@kernel
def go(batch: BatchArrays, problems: IntArray, plans: IntArray, begin: int, scratch: Scratch, task: Task) -> int:
    """Takes up to eight problems of one plan and the same tables that begin here forwards; returns where they end."""
    space, seen, plan, sums = scratch.space, scratch.seen, plan_at(plans[begin, 0]), sums_at(plans[begin, 1])
    graph, table_at, end = graph_of(batch, problems[begin]), batch.place[problems[begin], TABLE], begin + 1
    while end < min(begin + WIDTH, problems.size) and (
        plans[end, 0] == plans[begin, 0] and batch.place[problems[end], TABLE] == table_at
    ):
        end += 1
    for lane in range(WIDTH):  # beyond the last problem, it is there again
        space.start[lane] = batch.place[problems[min(begin + lane, end - 1)], COST]
    put_costs(graph, part(batch.cost, 0, batch.cost.size), space, sums.sizes[0])
    if seen[0] != table_at or seen[1] != plans[begin, 0]:
        scratch.in_tables[0] = put_tables(graph, tables_of(batch, problems[begin]), space, task.summing != 0)
        seen[0], seen[1] = table_at, plans[begin, 0]
    store(space.line, 2, spread(scratch.in_tables[0]))
    go_forward(plan, sums, space, task)
    return end


@driver
def sum_some(arrays: Arrays, problems: IntArray, plans: IntArray, asked: IntArray, found: Found) -> None:
    """Sums over the labellings of some problems; `plans` has the addresses of each one's plan, `asked` a `Task`."""
    batch, ints = BatchArrays(*arrays), np.zeros(WIDTH + 8, dtype=np.int64)
    start, most, seen = split(ints, (WIDTH, 6, 2))
    most_of(problems, plans, most)
    floats, constant, begin = np.empty(n_floats(most, asked[2])), np.zeros(1), 0
    drawn = np.zeros(max(1, most[0]), dtype=np.int64)
    scratch = Scratch(space_of(floats, start, most), seen, part(constant, 0, 1))
    seen[0], task = -1, Task(asked[0], asked[1], asked[2])
    while begin < problems.size:
        plan, sums, space = plan_at(plans[begin, 0]), sums_at(plans[begin, 1]), scratch.space
        end = go(batch, problems, plans, begin, scratch, task)
        if asked[1]:
            go_back(plan, sums, space, task)
        n_labels, n_gain = batch.place[problems[begin] + 1, COST] - batch.place[problems[begin], COST], sums.sizes[3]
        for lane in range(end - begin):
            p = problems[begin + lane]
            found.value[p] = space.line[lane]
            if asked[1]:
                at = batch.place[p, COST]
                for x in range(n_labels):
                    found.share[at + x] = found.weight[p] * space.share[WIDTH * x + lane]
            if asked[2]:
                found.entropy[p] = entropy_of(sums, space, lane)
                at = found.gain_at[p]
                for x in range(n_gain):
                    found.gain[at + x] += found.weight[p] * space.gain[WIDTH * x + lane]
            for row in range(found.labels.shape[0] if found.value[p] < np.inf else 0):
                chance = part(found.chance[begin + lane, row], 0, plan.variable.size)
                draw(plan, space, lane, chance, part(drawn, 0, drawn.size))
                for v in range(batch.place[p + 1, VARIABLE] - batch.place[p, VARIABLE]):
                    found.labels[row, batch.place[p, VARIABLE] + v] = drawn[v]
        begin = end
    keep((floats, ints, constant, drawn))

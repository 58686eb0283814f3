"""Elimination with counters: the least cost of a tree for each *state*, that is, for each thing its rules may count.

Variables go one after the other, each before the one above it. For each label of a variable and each state there is
the least that the variable and what was merged into it cost. To merge a variable into the one above it, it is minimised
out (a *message*, for each label above and each state), and the states of both are added up. In the end the least
of the states in which every rule holds is the optimum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import Record, inlined_kernel, kernel, viewer
from hasten.jit.simd import WIDTH, lesser, load, spread, store
from hasten.kernels.layout import Graph
from hasten.support.arrays import FloatArray, IntArray

BLOCK = WIDTH  # states come in blocks of so many


class Tally(Record):
    """How to count on the way through a tree of V variables. `hasten.proof.tally.plan` writes it.

    All trees hang below one more variable, number V, with a single label.
    """

    order: IntArray  # (V,) each before the one above it
    above: IntArray  # (V,) of each variable
    pair_at: IntArray  # (V,) where the table over it and the one above starts; -1: there is none
    pair_out: IntArray  # (V,) how far apart the labels above are in it
    pair_in: IntArray  # (V,) and its own
    own_first: IntArray  # (V + 1,) the tables over it alone start at own[own_first[v]:own_first[v + 1]]
    own: IntArray
    n_labels: IntArray  # (V + 1,)
    counts: IntArray  # (labels,) the state that a label adds
    # states; each table of them has `row` for each label
    row: IntArray  # (1,) how many numbers: that of states, rounded up to full lanes
    plus: IntArray  # (states * states,) two states together; -1: a rule is broken
    holds: IntArray  # (states,) whether all rules do
    start_at: IntArray  # (V + 1,) the table of a variable before anything is merged into it
    total_at: IntArray  # (V + 1,) and after all is
    message_at: IntArray  # (V,) its message
    before_at: IntArray  # (V,) the table of the one above before it is merged
    after_at: IntArray  # (V,) and after that
    reach: IntArray  # (V,) how many states, from the first, it can come to
    reach_before: IntArray  # (V,) and the one above before it is merged
    size: IntArray  # (1,) how many numbers all tables have


tally_at = viewer(Tally)


class Counted(NamedTuple):
    """Scratch space: tables, and the label and the state of each variable, the one at the top included."""

    tables: FloatArray
    labels: IntArray
    states: IntArray


@kernel
def count(tally: Tally, graph: Graph, cost: FloatArray, table: FloatArray, scratch: Counted) -> float:
    """Finds the labels that cost least while all rules hold; returns what the sum came to, inf if there are none."""
    start(tally, graph, cost, table, scratch.tables)
    for x in range(tally.order.size):
        v = tally.order[x]
        send(tally, table, scratch.tables, v)
        merge(tally, scratch.tables, v)
    top = tally.order.size
    least, chosen = np.inf, -1
    for s in range(tally.holds.size):
        value = scratch.tables[tally.total_at[top] + s]
        if tally.holds[s] and value < least:
            least, chosen = value, s
    if chosen >= 0:
        scratch.labels[top], scratch.states[top] = 0, chosen
        for x in range(top):
            trace(tally, table, scratch, tally.order[top - 1 - x])
    return least


@inlined_kernel
def start(tally: Tally, graph: Graph, cost: FloatArray, table: FloatArray, tables: FloatArray) -> None:
    """Sets what each label costs by itself, in the state that it adds."""
    top, row = tally.order.size, tally.row[0]
    for v in range(top):
        at = tally.start_at[v]
        for x in range(at, at + tally.n_labels[v] * row):
            tables[x] = np.inf
        for i in range(tally.n_labels[v]):
            value = cost[graph.first[v] + i]
            for x in range(tally.own_first[v], tally.own_first[v + 1]):
                value += table[tally.own[x] + i]
            if tally.counts[graph.first[v] + i] >= 0:
                tables[at + i * row + tally.counts[graph.first[v] + i]] = value
    for s in range(row):
        tables[tally.start_at[top] + s] = np.inf
    tables[tally.start_at[top]] = 0.0


@inlined_kernel
def send(tally: Tally, table: FloatArray, tables: FloatArray, v: int) -> None:
    """Minimises a variable out: for each label above, and for eight states at a time."""
    row, total, n_labels = tally.row[0] // WIDTH, tally.total_at[v] // WIDTH, tally.n_labels[v]
    n_blocks, message = (tally.reach[v] + WIDTH - 1) // WIDTH, tally.message_at[v] // WIDTH
    for o in range(tally.n_labels[tally.above[v]]):
        for b in range(n_blocks):
            least = spread(np.inf)
            for i in range(n_labels):
                value = load(tables, total + i * row + b)
                if tally.pair_at[v] >= 0:
                    value = value + spread(table[tally.pair_at[v] + o * tally.pair_out[v] + i * tally.pair_in[v]])
                least = lesser(value, least)
            store(tables, message + o * row + b, least)


@inlined_kernel
def merge(tally: Tally, tables: FloatArray, v: int) -> None:
    """Adds the message of a variable to the table above: all pairs of their states that break no rule."""
    row, n_states = tally.row[0], tally.holds.size
    for o in range(tally.n_labels[tally.above[v]]):
        before, message = tally.before_at[v] + o * row, tally.message_at[v] + o * row
        after = tally.after_at[v] + o * row
        for s in range(row):
            tables[after + s] = np.inf
        for s in range(tally.reach_before[v]):
            value = tables[before + s]
            if value < np.inf:
                for t in range(tally.reach[v]):
                    both = tally.plus[s * n_states + t]
                    if both >= 0:
                        tables[after + both] = min(tables[after + both], value + tables[message + t])


@inlined_kernel
def trace(tally: Tally, table: FloatArray, scratch: Counted, v: int) -> None:
    """Finds which state and label a variable has, given those above; the state above becomes what it was before."""
    tables, row, n_states, above = scratch.tables, tally.row[0], tally.holds.size, tally.above[v]
    o, state = scratch.labels[above], scratch.states[above]
    before, message = tally.before_at[v] + o * row, tally.message_at[v] + o * row
    least, chosen_before, chosen = np.inf, 0, 0
    for s in range(tally.reach_before[v]):
        if tables[before + s] < np.inf:
            for t in range(tally.reach[v]):
                if tally.plus[s * n_states + t] == state and tables[before + s] + tables[message + t] < least:
                    least, chosen_before, chosen = tables[before + s] + tables[message + t], s, t
    scratch.states[above], scratch.states[v] = chosen_before, chosen
    least, label = np.inf, 0
    for i in range(tally.n_labels[v]):
        value = tables[tally.total_at[v] + i * row + chosen]
        if tally.pair_at[v] >= 0:
            value += table[tally.pair_at[v] + o * tally.pair_out[v] + i * tally.pair_in[v]]
        if value < least:
            least, label = value, i
    scratch.labels[v] = label

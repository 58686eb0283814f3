"""Tally: a step that eliminates trees again, with what rules count carried along, where the cheapest labels break one.

Rules must have small integral weights. Variables go one after the other, each before the one above it. For each label
of a variable and each *state* of the counters there is the least that the variable and what was merged into it cost. To
merge one, it is minimised out (a *message*), and the states of both are added up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import driver, inlined_kernel, keep, kernel, split
from hasten.jit.records import WIDTH, lesser, load, spread, store
from hasten.kernels.layout import Arrays, BatchArrays, Graph, instance_of
from hasten.kernels.score import rows_hold, total_cost
from hasten.proof import outcome as status
from hasten.proof.outcome import Proofs, State, rounding, rule_out, take_bound, take_labels
from hasten.proof.plan import BRIEF, ProofPlan, RecordPlan, Work
from hasten.proof.tally.plan import Tally, plan_tally, tally_at
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.clock import STOP_ALL


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


class Tallying:
    """The step: eliminate trees, and count."""

    def plan(self, plan: ProofPlan) -> RecordPlan | None:
        """Returns the plan for a forest whose rules can be counted."""
        return plan.shape.made(plan_tally) if plan.max_join is None else None

    def run(self, work: Work, problems: IntArray) -> None:
        """Counts the rules of problems."""
        plans, seconds = work.addresses(self, problems), work.seconds(self, problems)
        work.run(count_some, problems, plans, seconds=seconds, anyway=BRIEF)


TALLYING = Tallying()


@driver
def count_some(arrays: Arrays, problems: IntArray, state: State, tallies: IntArray, stop_flag: IntArray) -> None:
    """Certifies some problems that were looked at or eliminated; `tallies` has the address of each one's tally."""
    batch, proofs = BatchArrays(*arrays), Proofs(*state)
    n_floats, n_variables = 0, 0
    for x in range(problems.size):
        if x == 0 or tallies[x] != tallies[x - 1]:
            tally = tally_at(tallies[x])
            n_floats, n_variables = max(n_floats, tally.size[0]), max(n_variables, tally.order.size)
    floats, ints = np.zeros(n_floats), np.zeros(2 * n_variables + 2, dtype=np.int64)
    tables, _ = split(floats, (n_floats, 0))
    labels, states = split(ints, (n_variables + 1, n_variables + 1))
    scratch = Counted(tables, labels, states)
    for x in range(problems.size):
        p, tally = problems[x], tally_at(tallies[x])
        if stop_flag[STOP_ALL]:
            proofs.facts[status.OUTCOME, p] = status.STOPPED
            continue
        size = proofs.values[status.SIZE, p]
        if size == np.inf:  # sums may overflow
            continue
        graph, cost, table = instance_of(batch, p)
        bound = count(tally, graph, cost, table, scratch)
        proofs.facts[status.STEP, p] = status.ELIMINATE
        if bound == np.inf:
            proofs.facts[status.LABELS_BY, p] = status.ELIMINATE
            rule_out(proofs, p, status.ELIMINATE)
            continue
        if rows_hold(graph, labels):
            take_labels(batch, proofs, p, labels, total_cost(graph, cost, table, labels), status.ELIMINATE)
        take_bound(proofs, p, bound - rounding(graph, size), size)
    keep((floats, ints, stop_flag))

"""Tally: a step that eliminates trees again, with what rules count carried along, where the cheapest labels break one.

Rules must have small integral weights. `plan` tells the states of their counters apart, `kernels` finds the least cost
for each label and each state.
"""

from __future__ import annotations

import numpy as np

from hasten.jit import driver, keep, split
from hasten.kernels.layout import Arrays, BatchArrays, instance_of
from hasten.kernels.rows import rows_hold
from hasten.kernels.score import total_cost
from hasten.proof.outcome import (
    ELIMINATE,
    LABELS_BY,
    OUTCOME,
    SIZE,
    STEP,
    STOPPED,
    Proofs,
    State,
    rule_out,
    take_bound,
    take_labels,
)
from hasten.proof.plan import BRIEF, ProofPlan, RecordPlan, Work
from hasten.proof.tally.kernels import Counted, count, tally_at
from hasten.proof.tally.plan import plan_tally
from hasten.proof.terms import rounding
from hasten.support.arrays import IntArray
from hasten.support.clock import ALL


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
def count_some(arrays: Arrays, problems: IntArray, state: State, tallies: IntArray, watch: IntArray) -> None:
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
        if watch[ALL]:
            proofs.facts[OUTCOME, p] = STOPPED
            continue
        size = proofs.values[SIZE, p]
        if size == np.inf:  # sums may overflow
            continue
        graph, cost, table = instance_of(batch, p)
        bound = count(tally, graph, cost, table, scratch)
        proofs.facts[STEP, p] = ELIMINATE
        if bound == np.inf:
            proofs.facts[LABELS_BY, p] = ELIMINATE
            rule_out(proofs, p, ELIMINATE)
            continue
        if rows_hold(graph, labels):
            take_labels(batch, proofs, p, labels, total_cost(graph, cost, table, labels), ELIMINATE)
        take_bound(proofs, p, bound - rounding(graph, size), size)
    keep((floats, ints, watch))

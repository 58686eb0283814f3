"""Look: where the cheapest labels break no constraint, they are the answer; where they break few, they are repaired.

A well-trained model leaves most problems in this state.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import driver, inlined_kernel, keep
from hasten.kernels.layout import GRAPH, Arrays, BatchArrays, Graph, costs_of, graph_at, graph_of, tables_of
from hasten.kernels.rows import rows_hold
from hasten.kernels.score import total_cost
from hasten.kernels.tolerance import is_proved
from hasten.proof import outcome as status
from hasten.proof.cut import CUTTING
from hasten.proof.eliminate import ELIMINATING
from hasten.proof.outcome import OVERFLOW, Proofs, State, cheapest, rounding, take_bound, take_labels
from hasten.proof.plan import BRIEF, ProofPlan, Work
from hasten.proof.repair import Repair, Space, make_scratch, n_numbers, repair, space_for
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.clock import ALL

SHARE = 4  # repairing pays where at most one factor is broken for each so many variables
MOST_BROKEN = 32  # and where so many are broken in all
LARGE = 64  # variables from which on something is always broken
SPEED = 1e-8  # seconds that looking takes at most for each label, entry and slot


class LookPlan(NamedTuple):
    """How long looking takes; there is nothing else to plan."""

    seconds: float


class Looking:
    """The step: look, and repair. Problems that were cut have been seen."""

    def plan(self, plan: ProofPlan) -> LookPlan | None:
        """Returns a plan unless eliminating takes no longer than looking, and looking is unlikely to prove anything.

        That is so where nothing is left of large problems, and of those with tables that do more than forbid.
        """
        graph = plan.shape.graph
        unlikely = graph.soft_at.size or (len(graph.order) > LARGE and plan.shape.is_forest)
        if unlikely and plan.part(ELIMINATING) is not None:
            return None
        return LookPlan(SPEED * (int(graph.first[-1]) + len(graph.table) + len(graph.scope)))

    def run(self, work: Work, problems: IntArray) -> None:
        """Looks at problems."""
        if any(plan.part(CUTTING) is not None for plan in work.plans):
            problems = problems[work.proofs.facts[status.STEP].take(problems) == 0]
        if len(problems):
            work.run(look_at_some, problems, seconds=work.seconds(self, problems), anyway=BRIEF)


LOOKING = Looking()


@inlined_kernel
def look(
    graph: Graph, cost: FloatArray, table: FloatArray, scratch: Repair, labels: IntArray
) -> tuple[int, float, float, float]:
    """Labels each variable at its cheapest, and repairs the result if that is needed.

    Returns the last step taken, the cost (inf where the labels break a rule, or too many constraints), a bound, and
    the size of the terms (inf where their sums may overflow).
    """
    least, size = cheapest(graph, cost, table, labels)
    if not size < OVERFLOW:
        return status.LOOK, np.inf, -np.inf, np.inf
    slip = rounding(graph, size)  # subtracted from the bound: the bound and the cost compared with it are both sums
    step, found, bound = status.LOOK, total_cost(graph, cost, table, labels), least - slip
    if graph.soft_at.size == 0 and not is_proved(found, bound, size):
        step = status.REPAIR
        max_broken = min(graph.order.size // SHARE, MOST_BROKEN)
        found, bound = repair(graph, cost, table, size, max_broken, scratch, labels)
        bound -= slip
    if found < np.inf and not rows_hold(graph, labels):
        found = np.inf
    return step, found, bound, size


@driver
def look_at_some(arrays: Arrays, problems: IntArray, state: State, watch: IntArray) -> None:
    """Looks at some problems; a proved labelling replaces the one given, if it is cheaper."""
    batch, proofs = BatchArrays(*arrays), Proofs(*state)
    space, s = Space(0, 0, 0, 0, 0), -1
    for p in problems:
        if batch.place[p, GRAPH] != s:
            s = batch.place[p, GRAPH]
            space = space_for(graph_at(s), space)
    n_floats, n_ints = n_numbers(space)
    floats, ints = np.empty(n_floats), np.zeros(n_ints, dtype=np.int64)
    scratch, labels = make_scratch(space, floats, ints)
    for p in problems:
        if watch[ALL]:
            proofs.facts[status.OUTCOME, p] = status.STOPPED
            continue
        graph, cost, table = graph_of(batch, p), costs_of(batch, p), tables_of(batch, p)
        step, found, bound, size = look(graph, cost, table, scratch, labels)
        proofs.values[status.BOUND, p], proofs.values[status.SIZE, p], proofs.facts[status.STEP, p] = bound, size, step
        if is_proved(found, bound, size):
            take_labels(batch, proofs, p, labels, found, step)
            take_bound(proofs, p, bound, size)
    keep((floats, ints, watch))

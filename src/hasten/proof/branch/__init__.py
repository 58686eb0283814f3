"""Branch: the step that sweeps and branches on the variables that elimination leaves, with all the effort allowed.

Sweeps (`hasten.proof.sweep`) raise a bound; a `dive` searches depth first under it; where that takes too many nodes,
problems are `split` and swept again, or, where rules are all that is left, each node is `tighten`ed. `certify` puts
these together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hasten.proof.branch.certify import certify_ruled, certify_some
from hasten.proof.branch.dive import Effort
from hasten.proof.buckets import FULL_ELIMINATION
from hasten.proof.cut.persistency import only_fixed
from hasten.proof.elimination.kernels import Reduction
from hasten.proof.elimination.plan import reduce
from hasten.proof.outcome import BOUND, take_fixed
from hasten.proof.plan import ProofPlan, Work
from hasten.support.arrays import IntArray

FIRST_SWEEPS, ROW_SWEEPS = 2, 32  # before the first dive, without and with rows; more where that runs out of nodes
NODE_SWEEPS = 2  # at each split
TRIPLE_SWEEPS = 100, 10  # before the first dive and at each split, where no table has fewer than three variables
DIVE_NODES = 2000
MAX_NODES = 20_000  # by default
ROW_NODES = 500  # where rows are left at least
ROW_WORK = 2_000_000  # labels and cells that nodes may go through where rows are left: a few milliseconds
SMALL, SMALL_NODES = 128, 100_000  # labels left of which nodes are quick, and how many of these are allowed then
SWEEP_WORTH = 16  # nodes that a sweep is worth
PLUNGE_WORTH = 2  # nodes that giving a variable its label is worth, where rules are all that is left
SPEED = 1e-9  # seconds that a node, or a sweep, takes at most for each label, tuple and cell: measured, rounded up


class BranchPlan(NamedTuple):
    """How to sweep and branch on the rest of a structure after elimination."""

    addresses: IntArray  # (1, 2) of the reduction
    driver: Callable[..., None]  # `certify_some` or `certify_ruled`
    effort: tuple[int, ...]  # an `Effort`
    seconds: float


class Branching:
    """The step: sweep and branch."""

    def plan(self, plan: ProofPlan) -> BranchPlan | None:
        """Returns how to branch on a structure, unless elimination leaves nothing of it."""
        reduction = reduce(plan.shape, plan.max_join)
        if reduction.complete:
            return None
        effort, driver = effort_for(plan, reduction), certify_ruled if reduction.leaves_rules else certify_some
        return BranchPlan(reduction.addresses, driver, (*effort,), seconds_for(effort, reduction))

    def run(self, work: Work, problems: IntArray) -> None:
        """Sweeps and branches on problems; their bounds do not get lower by that."""
        values, arrays, fixing = work.proofs.values, work.arrays, work.fixing
        floor = values[BOUND].take(problems) if fixing.labels.size else None
        if floor is not None:  # from here on only labellings with the fixed labels are bounded
            values[BOUND, problems] = -np.inf
            arrays = only_fixed(arrays, [plan.shape.graph for plan in work.plans_of(problems)], problems, fixing)
        groups = [(work.plan.part(self), problems)] if work.plan is not None else self._alike(work, problems)
        for part, some in groups:
            addresses, seconds, shared = work.addresses(self, some), work.seconds(self, some), (part.effort,)
            work.run(part.driver, some, addresses, shared=shared, seconds=seconds, arrays=arrays)
        if floor is not None:
            take_fixed(work.proofs, problems, fixing, floor)

    def _alike(self, work: Work, problems: IntArray) -> list[tuple[BranchPlan, IntArray]]:
        """Returns groups of problems that one call of a driver can take, each with the plan of one of them."""
        used = np.bincount(work.structure[problems]).nonzero()[0].tolist()
        parts: list[BranchPlan] = [work.plans[s].part(self) for s in used]
        numbers = {call: n for n, call in enumerate(dict.fromkeys((part.driver, part.effort) for part in parts))}
        which = np.zeros(len(work.plans), dtype=np.int64)
        which[used] = [numbers[part.driver, part.effort] for part in parts]
        calls = which[work.structure[problems]]
        return [(parts[which[used].tolist().index(n)], problems[calls == n]) for n in numbers.values()]


BRANCHING = Branching()


def effort_for(plan: ProofPlan, reduction: Reduction) -> Effort:
    """Returns the effort that a structure is worth: more on few labels, or as much as full elimination takes."""
    first, at_split, full = FIRST_SWEEPS, NODE_SWEEPS, plan.part(FULL_ELIMINATION)
    max_sweeps, row_nodes, row_work = plan.max_sweeps, ROW_NODES, ROW_WORK
    if plan.max_nodes is not None:
        max_nodes, row_nodes, row_work = plan.max_nodes, plan.max_nodes, 0
    else:
        max_nodes = SMALL_NODES if full is None and reduction.n_labels <= SMALL else MAX_NODES
    if full is not None:
        nodes = full.n_sums // max(reduction.size, 1)  # a node goes through most of the rest
        max_sweeps, max_nodes = min(max_sweeps, max(first, nodes // SWEEP_WORTH)), min(max_nodes, nodes)
    elif reduction.n_labels > SMALL and reduction.leaves_triples:
        first, at_split = TRIPLE_SWEEPS
    strict = int(plan.max_nodes is not None)
    return Effort(first, ROW_SWEEPS, max_sweeps, max_nodes, strict, row_nodes, row_work, at_split, DIVE_NODES)


def seconds_for(effort: Effort, reduction: Reduction) -> float:
    """Returns how long a problem may take at most; where rows are left, labels and cells limit the nodes."""
    nodes, graph, n_variables = effort.max_nodes, reduction.graph, len(reduction.graph.order)
    if graph.row_low.size:  # as `nodes_with_rows` counts them
        work = 1 + reduction.n_labels + graph.cell_row.size
        nodes = min(nodes, max(effort.row_nodes, effort.row_work // work))
    if nodes and not effort.strict:
        nodes = max(nodes, n_variables + 1)
    if nodes and reduction.leaves_rules:
        nodes += PLUNGE_WORTH * n_variables
    return SPEED * reduction.size * (effort.max_sweeps + nodes)

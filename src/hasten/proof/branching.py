"""The last step of a proof: who sweeps and branches, how far, and how long that may take; planned once a structure."""

from __future__ import annotations

from typing import NamedTuple

from hasten.kernels.proof.certify import Effort, certify_ruled, certify_some
from hasten.kernels.watching import Driver
from hasten.model.compiled import Compiled
from hasten.model.elimination import Reduction, reduce
from hasten.model.relaxing import whole_plan
from hasten.model.tallying import tally_of
from hasten.model.thinning import Thinning, thinning
from hasten.proof.eliminating import begins_with_looking, bounds_relax
from hasten.proof.thinning import worth
from hasten.support.clock import LONG

SPEED = 1e-9  # seconds that a node, or a sweep, takes at most for each label, tuple and cell: measured, rounded up


class Branching(NamedTuple):
    """How to sweep and branch on what elimination leaves of a structure."""

    reduction: Reduction
    thin: Thinning | None  # how to eliminate what that leaves open
    run: Driver  # `certify_some` or `certify_ruled`
    effort: tuple[int, ...]  # an `Effort`
    seconds: float  # that a problem may take at most
    alone: bool  # whether nothing else comes after looking


def branching(compiled: Compiled, max_join: int | None, effort: Effort) -> Branching:
    """Returns how to branch, given the effort that any problem is worth; made once."""
    found = compiled.branchings.get((max_join, effort))
    if found is None:
        reduction = reduce(compiled, max_join)
        thin = thinning(compiled) if max_join is None and not reduction.complete else None
        run, effort_here = certify_ruled if reduction.leaves_rules else certify_some, worth(effort, reduction, thin)
        found = Branching(reduction, thin, run, tuple(effort_here), _seconds(effort_here, reduction), False)
        found = found._replace(alone=max_join is None and _is_alone(compiled, found))
        compiled.branchings[max_join, effort] = found
    return found


def _is_alone(compiled: Compiled, found: Branching) -> bool:
    """Whether problems are looked at first, are short, and go through no other step once they have a bound."""
    relaxed = bounds_relax(compiled) or whole_plan(compiled, None) is None
    others = tally_of(compiled) is not None or found.thin is not None or found.reduction.complete
    return begins_with_looking(compiled) and found.seconds <= LONG and relaxed and not others


def _seconds(effort: Effort, reduction: Reduction) -> float:
    """Returns how long a problem may take at most; where rows are left, nodes are limited by what they go through."""
    nodes, graph = effort.max_nodes, reduction.graph
    if graph.row_low.size:  # as `nodes_with_rows` counts them
        work = 1 + reduction.n_labels + graph.cell_row.size
        nodes = min(nodes, max(effort.row_nodes, effort.row_work // work))
    return SPEED * reduction.size * (effort.max_sweeps + nodes)

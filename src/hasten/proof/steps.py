"""The steps of a proof, in the order in which they are taken, and the loop over them. A new step is a line here."""

from __future__ import annotations

from collections.abc import Sequence

from hasten.model.compiled import Compiled
from hasten.proof.branch import BRANCHING
from hasten.proof.buckets import FULL_ELIMINATION
from hasten.proof.cut import CUTTING
from hasten.proof.cut.persistency import PERSISTENCY
from hasten.proof.eliminate import ELIMINATING
from hasten.proof.improve import IMPROVING
from hasten.proof.look import LOOKING
from hasten.proof.plan import Step, Work, plan_for, take_steps
from hasten.proof.prune import PRUNING
from hasten.proof.tally import TALLYING
from hasten.support.arrays import IntArray

STEPS: tuple[Step, ...] = (
    CUTTING,
    PRUNING,
    LOOKING,
    ELIMINATING,
    TALLYING,
    PERSISTENCY,
    BRANCHING,
    FULL_ELIMINATION,
    IMPROVING,
)
AFTER_LOOKING = STEPS[3:]
BEFORE_IMPROVING = STEPS[:-1]


def prove(work: Work, problems: IntArray, steps: Sequence[Step] = STEPS) -> None:
    """Takes each step in turn on the problems that are still open and whose structures have a plan for the step."""
    take_steps(work, problems, steps)


def begins_with_looking(shape: Compiled) -> bool:
    """Whether the first step of a proof is to look at the cheapest labels."""
    plan = plan_for(shape)
    return plan.part(CUTTING) is None and plan.part(LOOKING) is not None

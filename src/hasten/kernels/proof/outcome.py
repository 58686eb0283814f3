"""How a proof ends: what is known of a problem, and by which step."""

from __future__ import annotations

from typing import NamedTuple

from hasten.support.arrays import FloatArray, IntArray

PROVED, OPEN, INFEASIBLE, STOPPED = 0, 1, 2, 3
UNTRIED = -1  # of a step that was not for this problem
GIVEN, LOOK, MEND, ELIMINATE, CUT, SWEEP, BRANCH = 0, 1, 2, 3, 4, 5, 6  # the steps; 0: the labels were given


class Proofs(NamedTuple):
    """What is known of the problems of a batch: a row of `values` or `facts` for each kind of knowledge."""

    labels: IntArray  # of the whole batch: the best labellings so far
    values: FloatArray  # (3, n)
    facts: IntArray  # (5, n)


class Fixing(NamedTuple):
    """Labels that variables of the problems of a batch are fixed to (`hasten.kernels.proof.roof`)."""

    labels: IntArray  # of the whole batch; LOOSE where a variable is not fixed; empty if nothing is
    loss: FloatArray  # (n,) by how much the cheapest labelling that has them may be dearer than the cheapest of all


BEST, BOUND, SIZE = 0, 1, 2  # values: the best cost so far, a lower bound, the size of the terms
OUTCOME, STEP, LABELS_BY, N_SWEEPS, N_NODES = 0, 1, 2, 3, 4  # facts; the last step taken, the one that found the labels

"""Whether a solver of your own agrees with our proofs.

We prove optima of what the schema states. A solver that knows more, a constraint or a preference that no table states,
has other optima, and no proof of ours can tell. So the first proofs are all checked against it, and later ones at the
rate of audits. It agrees where its answer costs what we proved; it disagrees where that costs more, or where it finds
none. A solver that ran out of time says nothing.
"""

from __future__ import annotations

import numpy as np

from hasten.errors import SolverDisagrees
from hasten.kernels.tolerance import TOLERANCE
from hasten.model.solution import Solution, Solutions
from hasten.solvers import Solver, solve_all
from hasten.solvers.failures import OnError, warn_of_failures
from hasten.speedup.black_box import REMEDIES
from hasten.support.arrays import BoolArray, IntArray
from hasten.support.choices import Choices

FIRST = 16  # proofs, all of which are checked


class OnDisagreement(Choices):
    """What to do when a solver of your own disagrees with a proof."""

    RAISE = "raise"
    FOLLOW = "follow"  # its answers from then on, as with prove=False


def compare(
    answers: Solutions, proved: IntArray, solver: Solver, on_error: OnError, call_limit: float | None = None
) -> tuple[BoolArray, SolverDisagrees | None]:
    """Asks the solver about some proved answers; returns where it can tell whether it agreed, and the first dispute."""
    said = solve_all(solver, answers.batch.select(proved), on_error=on_error, call_limit=call_limit)
    warn_of_failures(said)
    agreed, first = [], None
    for p in np.flatnonzero(said.optimal).tolist():
        why = dispute(answers[int(proved[p])], said[p], solver.name)
        agreed.append(why is None)
        if why is not None and first is None:
            first = SolverDisagrees(f"Problem {proved[p]}: {why}")
    return np.array(agreed, dtype=bool), first


def dispute(proved: Solution, said: Solution, name: str) -> str | None:
    """Returns in words what a solver's optimum says against a proved answer; None if they agree."""
    slack = TOLERANCE * max(1.0, abs(proved.cost))
    if proved.values is None:
        if said.values is None:
            return None
        return f"We proved that no labelling is valid, but {name} found one, {said.names}. Please report this as a bug."
    if said.values is None:
        differs = f"{name} says that no labelling is valid, but {proved.names} is"
    elif said.cost > proved.cost + slack:
        v = int(np.flatnonzero(said.labels != proved.labels)[0])
        differs = (
            f"{name} answers with a labelling that costs {said.cost:g}, but one of {proved.cost:g} is valid; the first "
            f"variable that differs is {v}: {said.names[v]!r} there, {proved.names[v]!r} here"
        )
    else:
        return None
    return f"{differs}. {REMEDIES}"

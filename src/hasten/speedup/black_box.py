"""The black box's answers: proved without the solver where that can be done, the solver's elsewhere.

Whoever wants an optimum asks here, so that labels, cost, bound, status and source always belong together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hasten.errors import SolverDisagrees
from hasten.kernels.tolerance import TOLERANCE
from hasten.model.batch import Batch
from hasten.model.solution import Solution, Solutions
from hasten.proof.certifier import Certifier
from hasten.solvers import Progress, Solver, UserSolver
from hasten.solvers.failures import OnError, failed

CHUNK = 4096  # problems between two reports of progress
REMEDIES = (
    "Does it know a constraint that the schema does not? State it in the schema. Is it not meant to be exact? Use "
    'Speedup(prove=False), which asks it every time, or on_disagreement="follow".'
)


def prove_or_solve(
    batch: Batch,
    solver: Callable[[], Solver],
    *,
    found: Solutions | None = None,
    max_nodes: int | None = None,
    n_jobs: int = 1,
    progress: Progress | None = None,
    on_error: OnError = OnError.KEEP,
) -> tuple[Solutions, int]:
    """Returns optimal answers, and how often that took the solver.

    `solver` makes the solver, or returns the one that was made; it is called only if one is needed. `found` is where
    to start from, if something was searched already. `max_nodes` is how far to branch before the solver is asked.
    `progress` is told how many problems are done, of how many. Where the solver fails, what is known of the problem
    is kept, with the status `FAILED` and a reason, unless `on_error` says to raise the error.
    """
    batch, certify = batch.resolved(), Certifier(max_nodes=max_nodes)
    if progress is None:
        return solve_open(certify(batch, found, n_jobs=n_jobs), solver, on_error=on_error)
    parts, calls = [], 0
    for start in range(0, len(batch), CHUNK):
        part = range(start, min(start + CHUNK, len(batch)))

        def tell(done: int, of: int, before: int = start) -> None:
            progress(before + done, len(batch))

        tell(0, len(part))
        some = None if found is None else found.select(part)
        answers, more = solve_open(certify(batch.select(part), some, n_jobs=n_jobs), solver, tell, on_error)
        parts.append(answers)
        calls += more
        tell(len(part), len(part))
    return Solutions.joined(batch, parts), calls


def solve_open(
    answers: Solutions,
    solver: Callable[[], Solver],
    progress: Progress | None = None,
    on_error: OnError = OnError.KEEP,
) -> tuple[Solutions, int]:
    """Asks the solver about the answers that are not optimal; returns all answers, and how many it was asked about."""
    left = np.flatnonzero(~answers.optimal)
    if not left.size:
        return answers, 0
    solved = []
    for n, p in enumerate(left.tolist()):
        if progress is not None:
            progress(len(answers) - left.size + n, len(answers))
        found, asked = answers[p], solver()
        try:
            solved.append(better(found, asked))
        except Exception as error:
            if on_error is OnError.RAISE or (isinstance(error, SolverDisagrees) and isinstance(asked, UserSolver)):
                raise
            solved.append(failed(found.problem, error, found))
    return answers.replace(left, Solutions.of(answers.batch.select(left), solved)), int(left.size)


def better(found: Solution, solver: Solver) -> Solution:
    """Returns the solver's answer to a problem, or what was found where that is better, with the tighter bound.

    A solver that calls its answer optimal although a better one was found is an error: `SolverDisagrees`.
    """
    solved = solver.solve(found.problem)
    slack = TOLERANCE * max(1.0, abs(found.cost))
    if solved.status.optimal and found.cost < math.inf and found.cost < solved.cost - slack:
        raise SolverDisagrees(
            f"{solver.name} says that nothing is better than {solved.cost:g}, but there is a valid labelling that "
            f"costs {found.cost:g}. {REMEDIES}"
        )
    keep = not solved.status.optimal and found.cost < math.inf and found.cost <= solved.cost
    chosen = found if keep else solved
    return replace(chosen, bound=min(max(found.bound, solved.bound), chosen.cost))

"""The black box's answers: proved without the solver where that can be done, the solver's elsewhere.

Whoever wants an optimum asks here, so that labels, cost, bound, status and source always belong together.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hasten.errors import SolverWrong
from hasten.kernels.tolerance import TOLERANCE
from hasten.model.batch import Batch
from hasten.model.solution import Solution, Solutions, Status
from hasten.proof.certifier import Certifier
from hasten.solvers import Progress, Solver, solve_within

CHUNK = 4096  # problems between two reports of progress


def prove_or_solve(
    batch: Batch,
    solver: Callable[[], Solver],
    *,
    found: Solutions | None = None,
    max_nodes: int | None = None,
    time_limit: float | None = None,
    call_limit: float | None = None,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> tuple[Solutions, int]:
    """Returns optimal answers, and how often that took the solver.

    `solver` makes the solver, or returns the one that was made; it is called only if one is needed. `found` is where
    to start from, if something was searched already. `max_nodes` is how far to branch before the solver is asked.
    A problem may take `time_limit` seconds: half to prove it, half to solve it. All of them together may take
    `call_limit`. `progress` is told how many problems are done, of how many.
    """
    batch, half = batch.resolved(), None if time_limit is None else time_limit / 2
    deadline = math.inf if call_limit is None else time.monotonic() + call_limit

    def certify(some: Batch, found: Solutions | None) -> Solutions:
        left = None if call_limit is None else max(0.0, deadline - time.monotonic())
        return Certifier(max_nodes=max_nodes, time_limit=half, call_limit=left)(some, found, n_jobs=n_jobs)

    limits = math.inf if half is None else half, deadline
    if progress is None:
        return solve_open(certify(batch, found), solver, limits=limits)
    parts, calls = [], 0
    for start in range(0, len(batch), CHUNK):
        part = range(start, min(start + CHUNK, len(batch)))

        def tell(done: int, of: int, before: int = start) -> None:
            progress(before + done, len(batch))

        tell(0, len(part))
        some = None if found is None else found.select(part)
        answers, more = solve_open(certify(batch.select(part), some), solver, tell, limits)
        parts.append(answers)
        calls += more
        tell(len(part), len(part))
    return Solutions.joined(batch, parts), calls


def solve_open(
    answers: Solutions,
    solver: Callable[[], Solver],
    progress: Progress | None = None,
    limits: tuple[float, float] = (math.inf, math.inf),
) -> tuple[Solutions, int]:
    """Asks the solver about the answers that are not optimal; returns all answers, and how many it was asked about.

    `limits` are the seconds that it has for each, and the time (of `time.monotonic`) when it must be done with all.
    """
    left = np.flatnonzero(~answers.optimal)
    if not left.size:
        return answers, 0
    solved, calls = [], 0
    for n, p in enumerate(left.tolist()):
        if progress is not None:
            progress(len(answers) - left.size + n, len(answers))
        seconds = min(limits[0], limits[1] - time.monotonic())
        if seconds > 0:
            calls += 1
            solved.append(better(answers[p], solver(), seconds))
        else:
            solved.append(out_of_time(answers[p]))
    return answers.replace(left, Solutions.of(answers.batch.select(left), solved)), calls


def out_of_time(found: Solution) -> Solution:
    """Returns what was found when time was up, saying so."""
    return replace(found, status=Status.NO_TIME if found.values is None else Status.TIME_LIMIT)


def better(found: Solution, solver: Solver, seconds: float = math.inf) -> Solution:
    """Returns the solver's answer to a problem, or what was found where that is better, with the tighter bound.

    A solver that calls its answer optimal although a better one was found is an error.
    """
    solved = solve_within(solver, found.problem, seconds)
    slack = TOLERANCE * max(1.0, abs(found.cost))
    if solved.status.optimal and found.cost < math.inf and found.cost < solved.cost - slack:
        raise SolverWrong(
            f"{solver.name} says that nothing is better than {solved.cost:g}, but there is a valid labelling that "
            f"costs {found.cost:g}. Is it an exact solver? One that is not meant to be is for Speedup(prove=False)."
        )
    keep = not solved.status.optimal and found.cost < math.inf and found.cost <= solved.cost
    chosen = solved
    if keep:
        chosen = out_of_time(found) if solved.status in (Status.TIME_LIMIT, Status.NO_TIME) else found
    return replace(chosen, bound=min(max(found.bound, solved.bound), chosen.cost))

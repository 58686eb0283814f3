"""The black box's answers: proved without the solver where that can be done, the solver's elsewhere.

Whoever wants an optimum asks here, so that labels, cost, bound, status and source always belong together.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from hasten.errors import SolverDisagrees
from hasten.kernels.tolerance import TOLERANCE
from hasten.model.batch import Batch
from hasten.model.solution import Solution, Solutions, Status
from hasten.proof.certifier import Certifier
from hasten.solvers import Progress, Solver, UserSolver, solve_within
from hasten.solvers.failures import OnError, failed
from hasten.speedup.budget import ACCOUNTS, Budget

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
    time_limit: float | None = None,
    call_limit: float | None = None,
    n_jobs: int = 1,
    progress: Progress | None = None,
    on_error: OnError = OnError.KEEP,
) -> tuple[Solutions, int]:
    """Returns optimal answers, and how often that took the solver.

    `solver` makes the solver, or returns the one that was made; it is called only if one is needed. `found` is where
    to start from, if something was searched already. `max_nodes` is how far to branch before the solver is asked; None
    is as far as pays (`hasten.speedup.budget`).
    A problem may take `time_limit` seconds: half to prove it, half to solve it. All of them together may take
    `call_limit`. `progress` is told how many problems are done, of how many. Where the solver fails, what is known of
    the problem is kept, with the status `FAILED` and a reason, unless `on_error` says to raise the error.
    """
    batch, half = batch.resolved(), None if time_limit is None else time_limit / 2
    deadline = math.inf if call_limit is None else time.monotonic() + call_limit

    def certify(some: Batch, found: Solutions | None) -> Solutions:
        left = None if call_limit is None else max(0.0, deadline - time.monotonic())
        return Certifier(max_nodes=max_nodes, time_limit=half, call_limit=left)(some, found, n_jobs=n_jobs)

    limits = math.inf if half is None else half, deadline
    settings: Any = {"on_error": on_error, "limits": limits, "harder": max_nodes is None}
    if progress is None:
        return solve_open(certify(batch, found), solver, **settings)
    parts, calls = [], 0
    for start in range(0, len(batch), CHUNK):
        part = range(start, min(start + CHUNK, len(batch)))

        def tell(done: int, of: int, before: int = start) -> None:
            progress(before + done, len(batch))

        tell(0, len(part))
        some = None if found is None else found.select(part)
        answers, more = solve_open(certify(batch.select(part), some), solver, tell, **settings)
        parts.append(answers)
        calls += more
        tell(len(part), len(part))
    return Solutions.joined(batch, parts), calls


def solve_open(
    answers: Solutions,
    solver: Callable[[], Solver],
    progress: Progress | None = None,
    on_error: OnError = OnError.KEEP,
    limits: tuple[float, float] = (math.inf, math.inf),
    harder: bool = False,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[Solutions, int]:
    """Asks the solver about the answers that are not optimal; returns all answers, and how many it was asked about.

    `limits` are the seconds that it has for each, and the time (of `time.monotonic`) when it must be done with all.
    `harder` is whether to try to prove them for as long as the solver takes, where that pays, by a `clock`.
    """
    left = np.flatnonzero(~answers.optimal)
    if not left.size:
        return answers, 0
    solved, calls = [], 0
    for n, p in enumerate(left.tolist()):
        if progress is not None:
            progress(len(answers) - left.size + n, len(answers))
        found, seconds = answers[p], min(limits[0], limits[1] - time.monotonic())
        if seconds <= 0:
            solved.append(out_of_time(found))
            continue
        asked = solver()
        budget = ACCOUNTS.of(found.problem.structure.compiled, asked.name)
        if harder and (n_nodes := budget.n_nodes()):
            found = try_harder(found, n_nodes, seconds, budget, clock)
            seconds = min(limits[0], limits[1] - time.monotonic())
            if found.status.optimal or seconds <= 0:
                solved.append(found if found.status.optimal else out_of_time(found))
                continue
        calls += 1
        try:
            with timed(budget.solved, clock):
                solved.append(better(found, asked, seconds))
        except Exception as error:
            if on_error is OnError.RAISE or (isinstance(error, SolverDisagrees) and isinstance(asked, UserSolver)):
                raise
            solved.append(failed(found.problem, error, found))
    return answers.replace(left, Solutions.of(answers.batch.select(left), solved)), calls


def try_harder(
    found: Solution, n_nodes: int, seconds: float, budget: Budget, clock: Callable[[], float] = time.perf_counter
) -> Solution:
    """Returns the answer that branching further gives; what that took goes into the budget."""
    certify = Certifier(max_nodes=n_nodes, time_limit=None if seconds == math.inf else seconds)
    started = clock()
    report = certify.report(found.problem, Solutions.of(found.problem.batch, [found]))
    answer = report.solutions.only(found.problem)
    budget.tried(clock() - started, int(report.n_nodes[0]), answer.status.optimal)
    return answer


@contextmanager
def timed(tell: Callable[[float], None], clock: Callable[[], float]) -> Iterator[None]:
    """Tells how many seconds something took that did not fail."""
    started = clock()
    yield
    tell(clock() - started)


def out_of_time(found: Solution) -> Solution:
    """Returns what was found when time was up, saying so."""
    return replace(found, status=Status.NO_TIME if found.values is None else Status.TIME_LIMIT)


def better(found: Solution, solver: Solver, seconds: float = math.inf) -> Solution:
    """Returns the solver's answer to a problem, or what was found where that is better, with the tighter bound.

    The solver starts from what was found, if that is valid.
    A solver that calls its answer optimal although a better one was found is an error: `SolverDisagrees`.
    """
    solved = solve_within(solver, found.problem, seconds, found.values if found.valid else None)
    slack = TOLERANCE * max(1.0, abs(found.cost))
    if solved.status.optimal and found.cost < math.inf and found.cost < solved.cost - slack:
        raise SolverDisagrees(
            f"{solver.name} says that nothing is better than {solved.cost:g}, but there is a valid labelling that "
            f"costs {found.cost:g}. {REMEDIES}"
        )
    keep = not solved.status.optimal and found.cost < math.inf and found.cost <= solved.cost
    chosen = solved
    if keep:
        chosen = out_of_time(found) if solved.status in (Status.TIME_LIMIT, Status.NO_TIME) else found
    return replace(chosen, bound=min(max(found.bound, solved.bound), chosen.cost))

"""The black box's answers: proved without the solver where that can be done, the solver's elsewhere.

Whoever wants an optimum asks here, so that labels, cost, bound, status and source always belong together.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from hasten.errors import SolverDisagrees
from hasten.kernels.tolerance import TOLERANCE
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.solution import Solution, Solutions, Source, Status
from hasten.proof.certifier import ROW_NODES, Certifier
from hasten.proof.thinning import MAX_NODES
from hasten.solvers import Progress, Solver, UserSolver, solve_within
from hasten.solvers.failures import OnError, failed
from hasten.speedup.budget import ACCOUNTS, Budget
from hasten.speedup.efforts import Effort
from hasten.speedup.pacing import Pace

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
    asked: Solver | None = None,
) -> tuple[Solutions, int]:
    """Returns optimal answers, and how often that took the solver.

    `solver` makes the solver, or returns the one that was made; it is called only if one is needed; `asked` is that one
    if it was made before. `found` is where to start from, if something was searched already. `max_nodes` is how far to
    branch before the solver is asked; None is as far as pays, and for a batch of one structure also whether to prove at
    all (`hasten.speedup.budget`).
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
    thrifty = max_nodes is None and found is None and len(batch.structures) == 1
    pace = Pace(batch.structures[0] if thrifty else None, asked, len(batch) if progress is None else CHUNK)
    parts, calls, start = list[Solutions](), 0, 0

    def tell(done: int, of: int) -> None:
        if progress is not None:
            progress(start + done, len(batch))

    if not len(batch):
        return certify(batch, found), 0
    while start < len(batch):
        effort, n = pace.step(len(batch) - start)
        part = batch if n == len(batch) else batch.select(range(start, start + n))
        some = found if found is None or n == len(batch) else found.select(range(start, start + n))
        tell(0, n)
        pace.begin()
        answers = certify(part, some) if effort else Solutions.of(part, [unknown(part[p]) for p in range(n)])
        if effort is Effort.FURTHER and pace.budget is not None:
            answers = further(answers, pace.budget, limits)
        harder = max_nodes is None and pace.budget is None
        answers, more = solve_open(answers, solver, tell if progress else None, on_error, limits, harder)
        pace.end(effort, n, solver if more else None)
        parts.append(answers)
        calls += more
        tell(n, n)
        start += n
    return parts[0] if len(parts) == 1 else Solutions.joined(batch, parts), calls


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
        answer, called = solve_one(answers[p], solver, on_error, limits, harder, clock)
        solved.append(answer)
        calls += called
    return answers.replace(left, Solutions.of(answers.batch.select(left), solved)), calls


def solve_one(
    found: Solution,
    solver: Callable[[], Solver],
    on_error: OnError = OnError.KEEP,
    limits: tuple[float, float] = (math.inf, math.inf),
    harder: bool = False,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[Solution, bool]:
    """Asks the solver about one answer that is not optimal; returns the better one, and whether it was asked."""
    seconds = min(limits[0], limits[1] - time.monotonic())
    if seconds <= 0:
        return out_of_time(found), False
    asked = solver()
    budget = ACCOUNTS.of(found.problem.structure.compiled, asked.name)
    if harder and (n_nodes := budget.n_nodes()):
        found = try_harder(found, n_nodes, seconds, budget, clock)
        seconds = min(limits[0], limits[1] - time.monotonic())
        if found.status.optimal or seconds <= 0:
            return found if found.status.optimal else out_of_time(found), False
    try:
        with timed(budget.solved, clock):
            return better(found, asked, seconds), True
    except Exception as error:
        if on_error is OnError.RAISE or (isinstance(error, SolverDisagrees) and isinstance(asked, UserSolver)):
            raise
        return failed(found.problem, error, found), True


def further(answers: Solutions, budget: Budget, limits: tuple[float, float] = (math.inf, math.inf)) -> Solutions:
    """Branches further where proofs failed, for up to half as long as the solver takes."""
    left = np.flatnonzero(~answers.optimal)
    tried = [try_further(answers[p], budget, min(limits[0], limits[1] - time.monotonic())) for p in left.tolist()]
    return answers.replace(left, Solutions.of(answers.batch.select(left), tried)) if tried else answers


def try_further(found: Solution, budget: Budget, seconds: float = math.inf) -> Solution:
    """Branches further on one problem, unless the solver is too fast for that."""
    n_nodes = budget.n_further(4 * ROW_NODES if len(found.problem.graph.row_low) else MAX_NODES)
    if not n_nodes:
        budget.efforts.rules_out(Effort.FURTHER)
    return try_harder(found, n_nodes, seconds, budget) if n_nodes and seconds > 0 else found


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


def unknown(problem: Problem) -> Solution:
    """Returns what is known of a problem before anything was tried."""
    return Solution(problem, Status.OPEN, Source.SEARCH, None, math.inf, -math.inf, False, 0)


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

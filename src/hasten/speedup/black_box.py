"""The black box's answers: proved without the solver where that can be done, the solver's elsewhere.

Everything that wants an optimum asks here, so that labels, cost, bound, status and source always belong together.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from hasten.errors import SolverDisagrees
from hasten.kernels.tolerance import TOLERANCE
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.solution import Solution, Solutions, Source, Status
from hasten.proof.certifier import Certifier
from hasten.solvers import OnProgress, Solver, UserSolver, is_ours, solve_within
from hasten.solvers.base import OnError, failed
from hasten.speedup.effort import AIDED, ALONE, Effort, Schedule
from hasten.speedup.parts import Limits
from hasten.support.arrays import all_of
from hasten.support.clock import deadline_after, now

CHUNK = 4096  # problems between two reports of progress
UNLIMITED = Limits()
TURNS = ((0.05, 0.05), (0.15, 0.3), (1.0, 0.0))  # shares of limited time: for us, and for the solver after that
AT_FIRST = 0.1  # seconds of our first turn at most: many problems take a solver no longer
BEGINNING = 1e-7  # seconds that a solver takes to begin, times the size to the power of 1.5
REMEDIES = (
    "Does it know a constraint that the schema does not? State it in the schema. Is it not meant to be exact? Use "
    "Trust(prove=False), which asks it every time."
)
Clock = Callable[[], float]


def prove_or_solve(
    batch: Batch,
    solver: Callable[[], Solver],
    *,
    found: Solutions | None = None,
    limits: Limits = UNLIMITED,
    n_jobs: int = 1,
    progress: OnProgress | None = None,
    on_error: OnError = OnError.KEEP,
    schedule: Schedule | None = None,
) -> tuple[Solutions, int]:
    """Returns optimal answers, and the number of calls of the solver.

    `solver` makes the solver, or returns the one that was made; it is called only if one is needed. `found` is where to
    start from, if something was searched already. `schedule` decides whether to prove at all, for a batch of one
    structure with nothing found; without one, all problems are proved first. `progress` is told how many problems are
    done, of how many. Where the solver fails, the best known labelling is kept, with the status `FAILED` and a reason,
    unless `on_error` says to raise the error.
    """
    batch, deadline = batch.resolved(), deadline_after(limits.call_limit)
    clock = time.perf_counter if schedule is None else schedule.clock
    most = len(batch) if progress is None else CHUNK
    parts, calls, start = list[Solutions](), 0, 0

    def report(done: int, of: int) -> None:
        if progress is not None:
            progress(start + done, len(batch))

    if not len(batch):
        return _certify(batch, found, limits, deadline, n_jobs), 0
    while start < len(batch):
        left = min(most, len(batch) - start)
        proves, n = (True, left) if schedule is None else schedule.step(left)
        part = batch if n == len(batch) else batch.select(range(start, start + n))
        some = found if found is None or n == len(batch) else found.select(range(start, start + n))
        report(0, n)
        began, seconds = now(), math.inf if limits.time_limit is None else limits.time_limit
        if proves:
            answers = _certify(part, some, limits, deadline, n_jobs)
            seconds -= min(now() - began, seconds / 2) if seconds < math.inf else 0.0  # what the proofs leave
        else:
            answers = nothing_known(part)
            seconds = min(seconds, schedule.patience) if schedule is not None else seconds
        optimal = answers.optimal
        n_open, more = 0 if all_of(optimal) else n - int(optimal.sum()), 0
        if schedule is not None and proves:
            schedule.proved(n)
        if n_open:
            harder, show = limits.max_nodes is None and proves, report if progress else None
            errors = on_error if proves else OnError.KEEP
            answers, more = solve_open(answers, solver, show, errors, (seconds, deadline), harder, clock)
        calls += more
        if schedule is not None and not schedule.end(answers, proves, n_open):
            continue
        parts.append(answers)
        report(n, n)
        start += n
    return parts[0] if len(parts) == 1 else Solutions.joined(batch, parts), calls


def prove_or_solve_one(
    problem: Problem,
    certify: Callable[[Problem], Solution],
    ask: Callable[[Solution, float, bool], Solution],
    effort: Effort,
    *,
    proves: bool | None = None,
    clock: Clock = time.perf_counter,
) -> Solution:
    """Returns the answer to one problem by the shortest path: proved if that pays, else the solver's.

    `ask` asks the solver about what is known, for so many seconds, and is told whether nothing was tried before.
    `proves` is whether to try a proof first, if that was decided already.
    """
    if not (effort.proves() if proves is None else proves):
        patience, began = effort.patience, clock()
        answer = ask(unknown(problem), patience, True)
        effort.answered(False, clock() - began)
        if answer.status is Status.FAILED:
            effort.solver_failed()
        elif answer.status.optimal or patience == math.inf:
            return answer
    if not effort.compared:
        clock = time.perf_counter  # other clocks take as long as some proofs
    began = clock()
    answer, n_open = certify(problem), 0
    if not answer.status.optimal:
        effort.proof_seconds, n_open = clock() - began, 1
        answer = ask(answer, math.inf, False)
    effort.answered(True, clock() - began, 1, n_open)
    return answer


def _certify(batch: Batch, found: Solutions | None, limits: Limits, deadline: float, n_jobs: int) -> Solutions:
    """Proves problems, each in half of its time, all of them before the deadline."""
    prove = unlimited(limits.max_nodes)
    if limits.timed:
        half = None if limits.time_limit is None else limits.time_limit / 2
        left = None if limits.call_limit is None else max(0.0, deadline - now())
        prove = Certifier(max_nodes=limits.max_nodes, time_limit=half, call_limit=left, improve=False)
    if len(batch) == 1 and found is None:  # a problem alone takes less
        return Solutions.of(batch, [prove(batch[0])])
    return prove(batch, found, n_jobs=n_jobs)


@lru_cache(maxsize=64)
def unlimited(max_nodes: int | None) -> Certifier:
    """Returns a certifier without limits of time, made once: that takes as long as a proof."""
    return Certifier(max_nodes=max_nodes)


def solve_open(
    answers: Solutions,
    solver: Callable[[], Solver],
    progress: OnProgress | None = None,
    on_error: OnError = OnError.KEEP,
    limits: tuple[float, float] = (math.inf, math.inf),
    harder: bool = False,
    clock: Clock = time.perf_counter,
) -> tuple[Solutions, int]:
    """Asks the solver about the answers that are not optimal (`solve_one`); returns all, and how many it was asked."""
    left = np.flatnonzero(~answers.optimal)
    solved, calls = [], 0
    for n, p in enumerate(left.tolist()):
        if progress is not None:
            progress(len(answers) - left.size + n, len(answers))
        answer, called = solve_one(answers[p], solver, on_error, limits, harder, clock)
        solved.append(answer)
        calls += called
    if not solved:
        return answers, 0
    return answers.replace(left, Solutions.of(answers.batch.select(left), solved)), calls


def solve_one(
    found: Solution,
    solver: Callable[[], Solver],
    on_error: OnError = OnError.KEEP,
    limits: tuple[float, float] = (math.inf, math.inf),
    harder: bool = False,
    clock: Clock = time.perf_counter,
    on_better: Callable[[Solution], None] | None = None,
) -> tuple[Solution, bool]:
    """Asks the solver about one answer that is not optimal; returns the better one, and whether it was asked.

    `limits` are the seconds that it has, and the time (of `now`) when it must be done. `harder` is whether to branch
    further before that where it pays, by a `clock`; where limited time is shared, `on_better` is called with each
    better answer of ours.
    """
    until = min(now() + limits[0], limits[1])
    if until <= now():
        return out_of_time(found), False
    asked, started = solver(), clock()
    if harder and until < math.inf:
        return take_turns(found, asked, on_error, until, on_better)
    effort = Effort.of(found.problem.structure.compiled, asked.name)
    n_nodes = effort.n_further(len(found.problem.graph.row_low) > 0) if harder else 0
    if n_nodes:
        report = Certifier(max_nodes=n_nodes).report(found.problem, Solutions.of(found.problem.batch, [found]))
        effort.branched(clock() - started, int(report.n_nodes[0]))
        found = report.solutions.only(found.problem)
    called = not found.status.optimal
    answer = _ask(found, asked, on_error, until - now()) if called else found
    if harder and answer.status is not Status.FAILED:
        effort.branching.took(AIDED if n_nodes else ALONE, clock() - started)
    return answer, called


def _ask(found: Solution, asked: Solver, on_error: OnError, seconds: float) -> Solution:
    """Asks the solver for so many seconds; where it fails, what was found says so, unless the error is to be raised."""
    try:
        return better(found, asked, seconds)
    except Exception as error:
        if on_error is OnError.RAISE or (isinstance(error, SolverDisagrees) and isinstance(asked, UserSolver)):
            raise
        return failed(found.problem, error, found)


def take_turns(
    found: Solution, asked: Solver, on_error: OnError, until: float, on_better: Callable[[Solution], None] | None = None
) -> tuple[Solution, bool]:
    """Shares the time that is left, which is limited, between our own improvement and the solver (`TURNS`).

    Neither of them tells beforehand how long it takes. So both have short turns first, and longer ones then. The
    solver has one turn of more than a quarter of the time; ours go on from where the last one has ended. A problem that
    is so large that the solver would hardly begin is left to us.
    """
    problem, began = found.problem, now()
    whole, size = until - began, problem.graph.list_first[-1] + problem.graph.first[-1]
    hopeless = is_ours(asked) and BEGINNING * float(size) ** 1.5 > whole
    answers = Certifier(time_limit=whole).improving(problem, found)
    answers.on_better = on_better
    called, failure = False, None
    for ours, theirs in TURNS:
        improved = answers.within(ours * whole if called or hopeless else min(ours * whole, AT_FIRST))
        best = improved if improved.cost < found.cost else found
        bound = min(max(found.bound, improved.bound), best.cost)
        found = improved if improved.status.optimal else replace(best, bound=bound)
        left = until - now()
        if found.status.optimal or left <= 0.0:
            break
        if theirs and failure is None and not hopeless:
            called = True
            answer = _ask(found, asked, on_error, min(left, theirs * whole))
            if answer.status is Status.FAILED:
                failure = answer
            else:
                found = answer
            if found.status.optimal:
                break
    if failure is not None and not found.status.optimal:
        return replace(failure, values=found.values, cost=found.cost, bound=found.bound, valid=found.valid), True
    return found if found.status.optimal else out_of_time(found), called


def nothing_known(batch: Batch) -> Solutions:
    """Returns what is known of some problems before anything was tried."""
    return Solutions.of(batch, [unknown(batch[p]) for p in range(len(batch))])


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
    chosen = solved
    if not solved.status.optimal and found.cost < math.inf and found.cost <= solved.cost:
        chosen = out_of_time(found) if solved.status in (Status.TIME_LIMIT, Status.NO_TIME) else found
    return replace(chosen, bound=min(max(found.bound, solved.bound), chosen.cost))

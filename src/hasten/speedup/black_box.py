"""Certified answers: proved without the solver where that can be done, the solver's elsewhere.

And what is done with many answers at once: choosing some, putting others in their place, counting them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from hasten.errors import SolverWrong
from hasten.kernels.tolerance import TOLERANCE
from hasten.model.batch import Batch
from hasten.model.solution import SOURCES, STATUSES, Solution, Solutions, Source, Status, as_solutions
from hasten.proof.certifier import Certifier
from hasten.solvers import Solver
from hasten.speedup.audit import Counters
from hasten.support.arrays import BoolArray, IntArray

CHUNK = 4096  # problems between two updates of the progress bar
OPTIMAL = np.array([status.optimal for status in STATUSES])


def prove_or_solve(
    batch: Batch, found: Solutions | None, solver: Callable[[], Solver], max_nodes: int | None, n_jobs: int = 1
) -> tuple[Solutions, int]:
    """Returns optimal answers, and how often that took the solver, which is made only if it is needed.

    `found` is where to start from, if something was searched already.
    """
    answers = Certifier(max_nodes=max_nodes)(batch, found, n_jobs=n_jobs)
    left = np.flatnonzero(~is_optimal(answers))
    for p in left.tolist():
        put(answers, p, solver().solve(answers.batch[p]), solver().name)
    return answers, int(left.size)


def with_progress(batch: Batch, answer: Callable[[Batch], tuple[Solutions, int]]) -> tuple[Solutions, int]:
    """Answers a batch part by part, with a progress bar; returns the answers, and how often that took the solver."""
    from rich.progress import track

    parts = [np.arange(at, min(at + CHUNK, len(batch))) for at in range(0, len(batch), CHUNK)]
    answered = [answer(batch.select(part)) for part in track(parts, "labelling")]
    answers = [solution for part, _ in answered for solution in part]
    return Solutions.of(batch, answers), sum(calls for _, calls in answered)


def is_optimal(answers: Solutions) -> BoolArray:
    """Tells which answers leave nothing to find out."""
    known: BoolArray = OPTIMAL[answers.status]
    return known


def counted(answers: Solutions, solver_calls: int = 0) -> Counters:
    """Returns what there is to count about some answers."""
    number = np.bincount(answers.status * len(SOURCES) + answers.source, minlength=len(STATUSES) * len(SOURCES))
    by_status = number.reshape(len(STATUSES), len(SOURCES)).tolist()
    proved, infeasible = by_status[STATUSES.index(Status.PROVED)], by_status[STATUSES.index(Status.INFEASIBLE)]
    by = dict(zip(SOURCES, map(sum, zip(*by_status, strict=True)), strict=True))
    return Counters(
        problems=len(answers),
        by_search=by[Source.SEARCH],
        by_bound=by[Source.BOUND],
        by_branch=by[Source.BRANCH],
        by_solver=by[Source.SOLVER],
        proved=sum(proved) + sum(infeasible) - infeasible[SOURCES.index(Source.SOLVER)],
        infeasible=sum(infeasible),
        solver_calls=solver_calls,
        costs=int(answers.n_costs.sum()),
        variables=int(answers.batch.variable_at[-1]),
    )


def put(answers: Solutions, p: int, solved: Solution, name: str) -> None:
    """Puts a solver's answer in its place, unless a better one is there; one that is refuted is an error."""
    best = float(answers.cost[p])
    slack = TOLERANCE * max(1.0, abs(best))
    if solved.status.optimal and best < math.inf and best < solved.cost - slack:
        raise SolverWrong(
            f"{name} says that nothing is better than {solved.cost:g}, but there is a valid labelling that "
            f"costs {best:g}. Is it an exact solver? One that is not meant to be is for Speedup(prove=False)."
        )
    at = slice(answers.batch.variable_at[p], answers.batch.variable_at[p + 1])
    if solved.status.optimal or solved.cost < best:
        answers.labels[at] = -1 if solved.values is None else solved.values
        answers.cost[p], answers.valid[p] = solved.cost, solved.valid
        answers.status[p], answers.source[p] = STATUSES.index(solved.status), SOURCES.index(solved.source)
    elif best == math.inf:
        answers.status[p], answers.source[p] = STATUSES.index(solved.status), SOURCES.index(solved.source)
    answers.bound[p] = max(answers.bound[p], solved.bound)


def places(batch: Batch, chosen: IntArray) -> IntArray:
    """Returns where the variables of some problems are in the flat labels of their batch."""
    sizes = batch.n_variables[chosen]
    ends = np.cumsum(sizes)
    return np.repeat(batch.variable_at[chosen] - (ends - sizes), sizes) + np.arange(sizes.sum())


def rescored(found: Solutions, chosen: IntArray, batch: Batch) -> Solutions:
    """Returns some of a search's answers with all their costs computed, `batch` being those problems."""
    labels = found.labels[places(found.batch, chosen)]
    done = found.status[chosen] != STATUSES.index(Status.DEAD_END)
    return as_solutions(batch, labels, done, found.n_costs[chosen])


def replaced(answers: Solutions, chosen: IntArray, others: Solutions) -> Solutions:
    """Returns the answers with some of them replaced."""
    labels = answers.labels.copy()
    labels[places(answers.batch, chosen)] = others.labels
    fields = {}
    for name in ("cost", "bound", "valid", "status", "source", "n_costs"):
        fields[name] = getattr(answers, name).copy()
        fields[name][chosen] = getattr(others, name)
    return Solutions(answers.batch, labels, **fields)

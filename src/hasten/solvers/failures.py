"""What becomes of the other answers when a solver fails on one problem: they stand, unless it is to be an error.

A solver fails when it raises an error, or when its answer does not pass our check. The problem then keeps the best
labelling that is known without the solver, the status `FAILED` and the reason in words.
"""

from __future__ import annotations

import logging
import math
from dataclasses import replace

from hasten.errors import HastenError, SolverMissing
from hasten.model.problem import Problem
from hasten.model.solution import Solution, Solutions, Source, Status
from hasten.support.checks import Choices

log = logging.getLogger(__name__)


class OnError(Choices):
    """What to do when the solver fails on a problem."""

    KEEP = "keep"  # the other answers, and say of this one why there is none
    RAISE = "raise"


def failed(problem: Problem, error: Exception, found: Solution | None = None) -> Solution:
    """Returns what is left of a problem on which the solver failed: what was found before, and why there is no more."""
    if isinstance(error, SolverMissing):  # no problem can be solved
        raise error
    reason = str(error) if isinstance(error, HastenError) and str(error) else f"{type(error).__name__}: {error}"
    if found is not None:
        return replace(found, status=Status.FAILED, reason=reason)
    return replace(not_asked(problem), status=Status.FAILED, reason=reason)


def not_asked(problem: Problem) -> Solution:
    """Returns the answer to a problem that there was no time for."""
    n_costs = len(problem.graph.order)
    return Solution(problem, Status.NO_TIME, Source.SOLVER, None, math.inf, -math.inf, False, n_costs)


def warn_of_failures(answers: Solutions) -> None:
    """Logs on how many problems the solver failed, if any, and the first reason."""
    if answers.reasons:
        first = min(answers.reasons)
        log.warning(
            "The solver failed on %d of %d problems. The first is problem %d: %s",
            len(answers.reasons),
            len(answers),
            first,
            answers.reasons[first],
        )

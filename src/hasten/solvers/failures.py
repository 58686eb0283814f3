"""A solver that fails on one problem: the other answers stand, unless it is to be an error.

A solver fails when it raises an error, or when its answer does not pass our check. The problem then keeps the best
labelling that is known without the solver, the status `FAILED` and the reason in words.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from hasten.errors import HastenError, SolverMissing
from hasten.model.problem import Problem
from hasten.model.solution import Solution, Solutions, Status
from hasten.solvers.base import answer
from hasten.support.choices import Choices

log = logging.getLogger(__name__)


class OnError(Choices):
    """The choices for when the solver fails on a problem."""

    KEEP = "keep"  # the other answers, and say of this one why there is none
    RAISE = "raise"


def failed(problem: Problem, error: Exception, found: Solution | None = None) -> Solution:
    """Returns the answer to a problem on which the solver failed: the best found before, and why there is no more."""
    if isinstance(error, SolverMissing):  # no problem can be solved
        raise error
    reason = str(error) if isinstance(error, HastenError) and str(error) else f"{type(error).__name__}: {error}"
    known = answer(problem, Status.FAILED) if found is None else found
    return replace(known, status=Status.FAILED, reason=reason)


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

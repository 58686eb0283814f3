"""Better and better answers to one problem, as an iterator that goes on from where it was left."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from hasten.model.batch import ONLY
from hasten.model.problem import Problem
from hasten.model.solution import Solution
from hasten.proof.improve import IMPROVING, Improvement
from hasten.proof.outcome import OPEN, OUTCOME, STOPPED, Proofs
from hasten.proof.plan import Step, Work
from hasten.proof.report import solutions_of
from hasten.proof.steps import BEFORE_IMPROVING, prove
from hasten.support.clock import now


class Answers(Iterator[Solution]):
    """Answers, each cheaper than the one before, or with a higher bound; the last one is proved, or time was up.

    Made by `Certifier.improving`. The work waits between two answers. `tell` is called with each of them.
    """

    tell: Callable[[Solution], None] | None = None

    def __init__(self, problem: Problem, work: Work, seconds: float, steps: Sequence[Step] = BEFORE_IMPROVING) -> None:
        self._problem, self._work, self._until = problem, work, now() + seconds
        self._begun = self._over = False
        prove(work, ONLY, steps)
        is_open = work.proofs.facts[OUTCOME, 0] == OPEN and work.taking(IMPROVING, ONLY).size
        self._improvement = Improvement(work, 0) if is_open else None

    @property
    def answer(self) -> Solution:
        """The best answer so far."""
        labels, values, facts = self._work.proofs
        batch = self._problem.batch.resolved()
        return solutions_of(batch, Proofs(labels.copy(), values.copy(), facts.copy())).only(self._problem)

    def __next__(self) -> Solution:
        if self._over:
            raise StopIteration
        begun, self._begun = self._begun, True
        if begun or self._improvement is None:
            self._over = not self._go(self._until, changed=True)
        return self.answer

    def within(self, seconds: float) -> Solution:
        """Returns the best answer after so many seconds more, or once it is proved."""
        self._go(min(self._until, now() + seconds), changed=False)
        return self.answer

    def _go(self, until: float, changed: bool) -> bool:
        """Goes on until a time, or until something has `changed`; whether the problem is still open, and time left."""
        values, facts = self._work.proofs.values, self._work.proofs.facts
        known = values[:2, 0].tolist()
        while self._improvement is not None and self._improvement.go(until):
            if values[:2, 0].tolist() != known:
                known = values[:2, 0].tolist()
                if self.tell is not None:
                    self.tell(self.answer)
                if changed:
                    return True
        if facts[OUTCOME, 0] == OPEN and now() >= self._until < math.inf:
            facts[OUTCOME, 0] = STOPPED
        return False

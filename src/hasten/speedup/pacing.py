"""How many problems to answer at a time, by a proof first or by the solver at once.

A batch of one structure may be one on which proofs never succeed. So it is answered a few problems at a time until it
is known what pays (`hasten.speedup.efforts`). Where proofs have not failed yet, or are clearly faster, all problems are
proved together.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from hasten.model.solution import Solutions, Status
from hasten.model.structure import Structure
from hasten.solvers import Solver
from hasten.speedup.efforts import CLEARLY, KNOWN

FIRST = 4  # problems that are answered at a time, as long as it is not known what pays
GROWTH = 8  # how many times as many as have been proved before, or at a time


class Pace:
    """How the problems of one structure are answered, and how long that takes, by a clock.

    `asked` is the solver, or None if it was not made yet: as long as proofs succeed, it is not. `limited` is whether a
    problem has limited time, which no second try may exceed.
    """

    def __init__(
        self,
        structure: Structure,
        asked: Solver | None,
        limited: bool = False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._compiled, self.clock, self._size, self._began = structure.compiled, clock, FIRST, 0.0
        self._known, self._limited, self._must_prove = asked is not None, limited, False
        self.efforts = KNOWN.of(self._compiled, "" if asked is None else asked.name)

    def step(self, left: int) -> tuple[bool, int]:
        """Returns whether to prove the problems that come next, and how many of them to answer."""
        efforts, self._began = self.efforts, self.clock()
        must, self._must_prove = self._must_prove, False
        proves, gain = must or efforts.proves(), efforts.whole.gain
        if proves and not efforts.compared:
            return True, min(max(FIRST, GROWTH * efforts.n_proofs), left)
        if must or not gain or proves != (gain >= 1.0):  # to see what the other way takes
            return proves, 1
        if proves and gain >= CLEARLY:
            return True, left
        n, self._size = self._size, self._size * GROWTH if proves else FIRST
        return proves, min(n, left)

    @property
    def patience(self) -> float:
        """How many seconds the solver has for a problem that was not proved first."""
        return math.inf if self._limited else self.efforts.patience

    def proved(self, n: int) -> None:
        """Takes the time of `n` proofs."""
        self.efforts.proof_seconds = (self.clock() - self._began) / n

    def end(self, answers: Solutions, proving: bool, n_open: int, solver: Callable[[], Solver] | None) -> bool:
        """Takes note of some answers; returns whether they will do, or are to be proved after all.

        `solver` was asked about those that proofs left open, or about none.
        """
        patience = self.patience
        if self._known or not n_open:
            self.efforts.answered(proving, self.clock() - self._began, len(answers), n_open)
        elif solver is not None:  # it was loaded for these problems
            self.efforts, self._known = KNOWN.of(self._compiled, solver().name), True
            self.efforts.compared = True
        if proving or answers.optimal.all():
            return True
        if answers.has(Status.FAILED).any():
            self.efforts.whole.disqualify()
        elif patience == math.inf:
            return True
        self._must_prove = True
        return False

"""How much to try before the solver is asked: nothing, a proof, or a proof and branching further.

Problems that we prove are often those that the solver finds easy, so its time on the others does not tell what a proof
saves. Therefore complete ways to answer race each other (`hasten.solvers.portfolio`): on all problems of a structure
the solver alone against a proof before it, and on those that the proof leaves open the solver alone against branching
further before it. As long as proofs succeed, and are quick, nothing is compared. A batch is answered a few problems at
a time until it is known what pays.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from hasten.model.compiled import Compiled
from hasten.model.solution import Solutions, Status
from hasten.model.structure import Structure
from hasten.proof.branch import MAX_NODES, ROW_NODES
from hasten.solvers.portfolio import Race
from hasten.support.clock import seconds_loading

ALONE, AIDED = "the solver alone", "a proof, or branching further, before the solver"
TRIES = 2  # of each way: one alone may have loaded something
CLEARLY = 2.5  # how many times as long as a proof the solver has when it is tried alone
QUICK = 1e-3  # seconds: few solvers take less, so that a proof need not be compared with one
STREAK = 3  # slow proofs in a row that begin the race: one of them may have planned, loaded, or waited for its turn
FURTHER = 4.0  # times a proof that the solver alone must take for branching further to make sense
WEIGHT = 0.3  # of the latest measurement of a node's seconds
FASTEST = 1e-9  # seconds that a node takes at least
MOST_NODES = 100 * MAX_NODES
FIRST = 4  # problems that are answered at a time, as long as it is not known what pays
GROWTH = 8  # how many times as many as have been proved before, or at a time


@dataclass(slots=True)
class Effort:
    """Statistics that tell which effort pays on the problems of one structure, with one solver."""

    proving: Race = field(default_factory=lambda: Race((ALONE, AIDED), TRIES))  # on all problems
    branching: Race = field(default_factory=lambda: Race((ALONE, AIDED), TRIES))  # on those that a proof leaves open
    compared: bool = False  # whether a proof has failed, or taken long
    n_proofs: int = 0  # quick ones, before that
    n_slow: int = 0  # the others, in a row
    slow_seconds: float = 0.0  # of the latest of them
    proof_seconds: float = 0.0  # of a proof that failed, the latest
    node_seconds: float = 0.0  # of a node, where branching goes further
    loading: float = -1.0  # seconds that went into it when this was last asked; -1 before that

    @classmethod
    def of(cls, compiled: Compiled, solver: str) -> Effort:
        """Returns the statistics of a structure with a solver, by its name; they are dropped with the structure."""
        return compiled.made(_nothing_known, solver)

    def proves(self) -> bool:
        """Whether to try a proof on the next problem."""
        return not self.compared or self.proving.choose() == AIDED

    def answered(self, proving: bool, seconds: float, n: int = 1, n_open: int = 0) -> None:
        """Records the seconds of `n` problems, by a proof first or not, and how many of these the proof left open."""
        if self.compared:
            if not self.has_loaded():
                self.proving.took(AIDED if proving else ALONE, seconds, n)
        elif n_open:
            self.compared = True
            self.has_loaded()
        elif seconds <= QUICK * n:
            self.n_proofs, self.n_slow = self.n_proofs + n, 0
        else:
            self.slow_seconds, self.n_slow = seconds / n, self.n_slow + 1
            self.compared = self.n_slow >= STREAK

    def solver_failed(self) -> None:
        """Never leaves the solver alone again."""
        self.proving.exclude(ALONE)

    @property
    def patience(self) -> float:
        """How many seconds the solver has for a problem when it is tried alone."""
        if 0.0 < self.proving.gain(AIDED) < 1.0:  # it is the faster way
            return math.inf
        return CLEARLY * (self.proving.seconds.get(AIDED) or self.slow_seconds or math.inf)

    def n_further(self, with_rows: bool) -> int:
        """Returns how many nodes to branch further on a problem that a proof left open: 0 to ask the solver at once.

        They take half as long as the solver alone.
        """
        if self.branching.choose() == ALONE:
            return 0
        alone, least = self.branching.seconds[ALONE], 4 * ROW_NODES if with_rows else MAX_NODES
        if alone < FURTHER * self.proof_seconds:
            return 0
        if not self.node_seconds:  # a proof went through the least of them, about
            return int(min(least * alone / max(FURTHER * self.proof_seconds, FASTEST), MOST_NODES))
        n_nodes = int(min(alone / (2.0 * max(self.node_seconds, FASTEST)), MOST_NODES))
        return n_nodes if n_nodes >= least else 0

    def branched(self, seconds: float, n_nodes: int) -> None:
        """Records the seconds of branching further."""
        if n_nodes:
            each = seconds / n_nodes
            self.node_seconds += WEIGHT * (each - self.node_seconds) if self.node_seconds else each

    def has_loaded(self) -> bool:
        """Whether drivers were loaded or compiled since this was asked last: that takes long, and tells nothing."""
        before, self.loading = self.loading, seconds_loading()
        return before != self.loading


def _nothing_known(compiled: Compiled, solver: str) -> Effort:
    return Effort()


class Schedule:
    """How many problems of one structure to answer at a time, and whether by a proof first or by the solver alone.

    `solver` is the solver's name. `limited` is whether a problem has limited time, which no second try may exceed.
    """

    def __init__(
        self,
        structure: Structure,
        solver: str,
        limited: bool = False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.effort, self.clock, self._size, self._began = Effort.of(structure.compiled, solver), clock, FIRST, 0.0
        self._limited, self._must_prove = limited, False

    def step(self, left: int) -> tuple[bool, int]:
        """Returns whether to prove the problems that come next, and how many of them to answer."""
        effort, self._began = self.effort, self.clock()
        must, self._must_prove = self._must_prove, False
        proves, gain = must or effort.proves(), effort.proving.gain(AIDED)
        if proves and not effort.compared:
            return True, min(max(FIRST, GROWTH * effort.n_proofs), left)
        if must or not gain or proves != (gain >= 1.0):  # to see what the other way takes
            return proves, 1
        if proves and gain >= CLEARLY:
            return True, left
        n, self._size = self._size, self._size * GROWTH if proves else FIRST
        return proves, min(n, left)

    @property
    def patience(self) -> float:
        """How many seconds the solver has for a problem that was not proved first."""
        return math.inf if self._limited else self.effort.patience

    def proved(self, n: int) -> None:
        """Records that `n` proofs have ended."""
        self.effort.proof_seconds = (self.clock() - self._began) / n

    def end(self, answers: Solutions, proving: bool, n_open: int) -> bool:
        """Records some answers; returns whether to keep them, or to prove these problems after all."""
        patience = self.patience
        self.effort.answered(proving, self.clock() - self._began, len(answers), n_open)
        if proving or answers.optimal.all():
            return True
        if answers.has(Status.FAILED).any():
            self.effort.solver_failed()
        elif patience == math.inf:
            return True
        self._must_prove = True
        return False

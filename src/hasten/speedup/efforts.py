"""How much to try before the solver is asked: nothing, a proof, or a proof and branching further.

A proof is worth trying on some structures and futile on others. Problems that we prove are often those that the solver
finds easy, so what a proof saves cannot be told from what the solver takes on the others. So whole ways to answer race
each other, from the question to the answer: on all problems of a structure the solver alone against a proof before it,
and on those that the proof leaves open the solver alone against branching further before it. The faster way is taken.
The slower one is tried again for a small share of all time. As long as proofs succeed, and are quick, nothing is
compared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from threading import Lock
from weakref import WeakKeyDictionary

from hasten.model.compiled import Compiled
from hasten.proof.branch import MAX_NODES, ROW_NODES
from hasten.proof.loading import n_loaded
from hasten.support.locks import renew_after_fork

ALONE, AIDED = 0, 1  # the ways that race: the solver alone, and what we try before it
FEW = 2  # times that each way is tried first: once may be by chance, or load something
NEARLY = 4.0  # how many times as slow as the solver alone a first try may be to be repeated at once: it may be bad luck
SHARE = 0.01  # of all time may be lost by trying the slower way again
CLEARLY = 2.5  # how many times as slow the solver alone must be not to be tried again but for that share
RECENT = 0.02  # weight of the latest problem, at least
QUICK = 1e-3  # seconds: few solvers take less, so that a proof need not be compared with one
STREAK = 3  # slow proofs in a row that begin the race: one of them may have planned, loaded, or waited for its turn
FURTHER = 4.0  # times a proof that the solver alone must take for branching further to make sense
WEIGHT = 0.3  # of the latest measurement of what a node takes
FASTEST = 1e-9  # seconds that a node takes at least
MAX_TRIED = 100 * MAX_NODES  # nodes


@dataclass(slots=True)
class Race:
    """What a problem takes, on average, with the solver alone and aided."""

    seconds: list[float] = field(default_factory=lambda: [0.0, 0.0])
    n: list[int] = field(default_factory=lambda: [0, 0])
    spent: float = 0.0
    lost: float = 0.0  # by trying the slower way

    def aided(self) -> bool:
        """Whether to aid the solver next time."""
        if self.n[ALONE] < FEW or not self.n[AIDED]:
            return self.n[ALONE] >= FEW
        alone, aided = self.seconds
        if self.n[AIDED] < FEW and aided < NEARLY * alone:
            return True
        spare = SHARE * self.spent - self.lost
        if alone < aided:
            return aided - alone < spare
        due = alone < CLEARLY * aided and self.n[ALONE] ** 2 < self.n[AIDED]
        return not due and alone - aided >= spare

    def took(self, aided: bool, seconds: float, n: int = 1) -> None:
        """Takes note of what `n` problems took, to the end."""
        way, each = int(aided), seconds / n
        before, self.n[way] = self.n[way], self.n[way] + n
        first = before == 1 and each < self.seconds[way]  # the first loaded what the second found there
        weight = 1.0 if first else max(n / self.n[way], min(1.0, n * RECENT))
        self.seconds[way] += weight * (each - self.seconds[way])
        self.spent += seconds
        if all(self.n) and self.seconds[way] > self.seconds[1 - way]:
            self.lost += max(0.0, seconds - n * self.seconds[1 - way])

    def disqualify(self) -> None:
        """Never leaves the solver alone again."""
        self.seconds[ALONE], self.n[ALONE] = math.inf, FEW

    @property
    def gain(self) -> float:
        """How many times as fast aiding the solver is; 0 as long as that is not known."""
        return self.seconds[ALONE] / self.seconds[AIDED] if all(self.n) and self.seconds[AIDED] else 0.0


@dataclass(slots=True)
class Efforts:
    """What pays on the problems of one structure with one solver."""

    whole: Race = field(default_factory=Race)  # on all problems: a proof
    rest: Race = field(default_factory=Race)  # on those that a proof leaves open: branching further
    compared: bool = False  # whether a proof has failed, or taken long
    n_proofs: int = 0  # quick ones, before that
    n_slow: int = 0  # the others, in a row
    slow_seconds: float = 0.0  # of the latest of them
    proof_seconds: float = 0.0  # of a proof that failed, the latest
    node_seconds: float = 0.0  # of a node, where branching goes further
    n_loaded: int = -1  # drivers, when this was last asked; -1 before that

    def proves(self) -> bool:
        """Whether to try a proof on the next problem."""
        return not self.compared or self.whole.aided()

    def answered(self, proving: bool, seconds: float, n: int = 1, n_open: int = 0) -> None:
        """Takes note of what `n` problems took, by a proof first or not, and how many of these that left open."""
        if self.compared:
            if not self.has_loaded():
                self.whole.took(proving, seconds, n)
        elif n_open:
            self.compared = True
            self.has_loaded()
        elif seconds <= QUICK * n:
            self.n_proofs, self.n_slow = self.n_proofs + n, 0
        else:
            self.slow_seconds, self.n_slow = seconds / n, self.n_slow + 1
            self.compared = self.n_slow >= STREAK

    @property
    def patience(self) -> float:
        """How many seconds the solver has for a problem when it is left alone to see what it takes."""
        if 0.0 < self.whole.gain < 1.0:  # it is the faster way
            return math.inf
        return CLEARLY * (self.whole.seconds[AIDED] or self.slow_seconds or math.inf)

    def n_further(self, with_rows: bool) -> int:
        """Returns how many nodes to branch further on a problem that a proof left open: 0 to ask the solver at once.

        They take half as long as the solver alone.
        """
        if not self.rest.aided():
            return 0
        alone, least = self.rest.seconds[ALONE], 4 * ROW_NODES if with_rows else MAX_NODES
        if alone < FURTHER * self.proof_seconds:
            return 0
        if not self.node_seconds:  # a proof went through the least of them, about
            return int(min(least * alone / max(FURTHER * self.proof_seconds, FASTEST), MAX_TRIED))
        n_nodes = int(min(alone / (2.0 * max(self.node_seconds, FASTEST)), MAX_TRIED))
        return n_nodes if n_nodes >= least else 0

    def branched(self, seconds: float, n_nodes: int) -> None:
        """Takes note of what branching further took."""
        if n_nodes:
            each = seconds / n_nodes
            self.node_seconds += WEIGHT * (each - self.node_seconds) if self.node_seconds else each

    def has_loaded(self) -> bool:
        """Whether drivers were loaded or compiled since this was asked last: that takes long, and tells nothing."""
        before, self.n_loaded = self.n_loaded, n_loaded()
        return before != self.n_loaded


class Known:
    """What is known of all structures; that of a structure ends with it."""

    def __init__(self) -> None:
        self._held: WeakKeyDictionary[Compiled, dict[str, Efforts]] = WeakKeyDictionary()
        self._renew_locks()
        renew_after_fork(self)

    def _renew_locks(self) -> None:
        """Makes a new lock, in a forked child."""
        self._lock = Lock()

    def of(self, compiled: Compiled, solver: str) -> Efforts:
        """Returns the efforts of a structure with a solver, by its name."""
        with self._lock:
            return self._held.setdefault(compiled, {}).setdefault(solver, Efforts())

    def __len__(self) -> int:
        return len(self._held)


KNOWN = Known()

"""How long to try before the solver is asked: as long as the solver takes, as long as that pays.

Branching further than a proof does by itself is worth it on some structures (a knapsack of twenty items is proved in a
fraction of a millisecond, where a solver takes tens) and futile on others. Which, is learned as problems come: each
structure has an account with each solver, in seconds. Trying costs what it takes; a proof earns what the solver would
have taken. Where the account is empty, the solver is asked at once; each call of it pays a little in, for another try.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from weakref import WeakKeyDictionary

from hasten.model.structure import Compiled
from hasten.proof.certifier import MAX_NODES
from hasten.support.locks import renew_after_fork

START = 2.0  # what an account starts with, in calls of the solver
MOST = 8.0  # and what it holds at most
SHARE = 0.04  # of each call that is paid in
WEIGHT = 0.3  # of the latest measurement, against all before it
FASTEST = 1e-9  # seconds a node takes at least
MAX_TRIED = 100 * MAX_NODES  # nodes


@dataclass(slots=True)
class Budget:
    """The account of one structure with one solver."""

    solver_seconds: float = 0.0  # of a call; 0 as long as there was none
    node_seconds: float = 0.0
    balance: float = 0.0

    def n_nodes(self) -> int:
        """Returns how many nodes to try: 0 if the solver is the better choice, or unknown."""
        if self.balance <= 0.0:
            return 0
        if not self.node_seconds:
            return MAX_NODES
        return int(min(self.solver_seconds / max(self.node_seconds, FASTEST), MAX_TRIED))

    def tried(self, seconds: float, n_nodes: int, proved: bool) -> None:
        """Takes note of a try."""
        if n_nodes:
            self.node_seconds = _mean(self.node_seconds, seconds / n_nodes)
        self._pay(self.solver_seconds * proved - seconds)

    def solved(self, seconds: float) -> None:
        """Takes note of a call of the solver."""
        share = SHARE if self.solver_seconds else START
        self.solver_seconds = _mean(self.solver_seconds, seconds)
        self._pay(share * seconds)

    def _pay(self, seconds: float) -> None:
        self.balance = min(self.balance + seconds, MOST * self.solver_seconds)


def _mean(before: float, now: float) -> float:
    return before + WEIGHT * (now - before) if before else now


class Accounts:
    """All accounts; those of a structure end with it."""

    def __init__(self) -> None:
        self._held: WeakKeyDictionary[Compiled, dict[str, Budget]] = WeakKeyDictionary()
        self.renew_locks()
        renew_after_fork(self)

    def renew_locks(self) -> None:
        """Makes a new lock, in a forked child."""
        self._lock = Lock()

    def of(self, compiled: Compiled, solver: str) -> Budget:
        """Returns the account of a structure with a solver, by its name."""
        with self._lock:
            return self._held.setdefault(compiled, {}).setdefault(solver, Budget())

    def __len__(self) -> int:
        return len(self._held)


ACCOUNTS = Accounts()

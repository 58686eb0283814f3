"""Whether to prove, and how hard to try, before the solver is asked: as long as that pays.

A proof is worth trying on some structures (a knapsack of twenty items is proved in a fraction of a millisecond, where
a solver takes tens) and futile on others. Which, is learned as problems come: each structure has a budget with each
solver, of two accounts in seconds, one for proofs as they are and one for branching further. Trying costs what it
takes; a proof earns what the solver would have taken. Where the account is empty, the solver is asked at once; each
call of it pays a little in, for another try. So what never pays costs as much as one or two calls of the solver, and a
hundredth of its time in the long run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from weakref import WeakKeyDictionary

from hasten.model.structure import Compiled
from hasten.proof.thinning import MAX_NODES
from hasten.speedup.efforts import Effort, Efforts
from hasten.support.locks import renew_after_fork

START, START_FURTHER = 0.5, 1.0  # what the accounts start with, in calls of the solver
MOST = 8.0  # and what it holds at most
SHARE = 0.005  # of each call that is paid into each account
AT_ONCE = 0.5  # calls that must be there to branch further, which takes about one
WEIGHT = 0.3  # of the latest measurement, against all before it
FASTEST = 1e-9  # seconds a node takes at least
FURTHER = 4.0  # times a proof that the solver alone must take for branching further to make sense
MAX_TRIED = 100 * MAX_NODES  # nodes
QUICK = 1e-3  # seconds: few solvers take less, so that a proof need not be compared with one
CLEARLY = 4.0  # how many times as fast as the solver a proof must be not to be compared with it again
AGAIN = 512  # proofs after which to compare again


@dataclass(slots=True)
class Budget:
    """The accounts of one structure with one solver, and what either takes, in seconds."""

    solver_seconds: float = 0.0  # of a call; 0 as long as there was none
    proof_seconds: float = 0.0  # of a proof as it is, whether it succeeds or not
    node_seconds: float = 0.0  # of a node, where branching goes further
    proofs: float = 0.0  # what proofs have earned, less what they took
    further: float = 0.0  # the same, for branching further
    planned: bool = False  # whether there was a proof: it plans what later ones find there
    n_calls: int = 0  # of the solver
    n_unasked: int = 0  # proofs since the last of them
    n_early: int = 0  # that succeeded before the first of them
    early_seconds: float = 0.0  # that all took before it
    efforts: Efforts = field(default_factory=Efforts)  # what each way to answer takes

    def proves(self) -> bool:
        """Whether to try a proof now; if not, the solver is the better choice, or it is time to see what it takes."""
        if self.compares():
            return False
        return not self.n_calls or self.proofs > 0.0

    def compares(self) -> bool:
        """Whether it is time to see what the solver takes: at first, and now and then where it may be faster."""
        if self.proof_seconds <= QUICK:
            return False
        return self.n_calls < 2 or (self.n_unasked >= AGAIN and CLEARLY * self.proof_seconds > self.solver_seconds)

    def failed(self, seconds: float) -> None:
        """Takes note of what a proof took that failed."""
        self.proof_seconds = _mean(self.proof_seconds, seconds)

    def proved(self, seconds: float, n: int, n_proved: int) -> None:
        """Takes note of how many of `n` proofs succeeded, and how long all of them took; the first plan, too."""
        self.n_unasked += n
        if not self.planned:
            self.planned = True
            return
        self.proof_seconds = _mean(self.proof_seconds, seconds / n)
        if self.n_calls:
            self.proofs = self._paid(self.proofs, self.solver_seconds * n_proved - seconds)
        else:
            self.n_early, self.early_seconds = self.n_early + n_proved, self.early_seconds + seconds

    def n_nodes(self) -> int:
        """Returns how many nodes to branch further: 0 if the solver is the better choice, or unknown."""
        if self.further < AT_ONCE * self.solver_seconds or self.n_calls < 2:  # the first call loads what others find
            return 0
        if not self.node_seconds:
            return MAX_NODES
        return int(min(max(self.solver_seconds / max(self.node_seconds, FASTEST), MAX_NODES), MAX_TRIED))

    def n_further(self, least: int) -> int:
        """Returns how many nodes take half as long as the solver alone: 0 where that is no further than a proof goes.

        `least` are those of a first try.
        """
        alone = self.efforts.seconds[Effort.NONE] or self.solver_seconds
        if alone < FURTHER * self.proof_seconds:
            return 0
        if not self.node_seconds:
            return least
        n_nodes = int(min(alone / (2.0 * max(self.node_seconds, FASTEST)), MAX_TRIED))
        return n_nodes if n_nodes >= least else 0

    def tried(self, seconds: float, n_nodes: int, proved: bool) -> None:
        """Takes note of a try to branch further."""
        if n_nodes:
            self.node_seconds = _mean(self.node_seconds, seconds / n_nodes)
        self.further = self._paid(self.further, self.solver_seconds * proved - seconds)

    def solved(self, seconds: float) -> None:
        """Takes note of a call of the solver."""
        self.n_calls, self.n_unasked = self.n_calls + 1, 0
        if self.n_calls == 2 and seconds < self.solver_seconds:  # the first loaded what the second found there
            part = seconds / self.solver_seconds
            self.solver_seconds, self.proofs, self.further = seconds, part * self.proofs, part * self.further
        self.solver_seconds = _mean(self.solver_seconds, seconds)
        if self.n_calls == 1:
            self.proofs = self._paid(0.0, max(0.0, self.n_early * seconds - self.early_seconds))
        start, further = (START, START_FURTHER) if self.n_calls == 1 else (SHARE, SHARE)
        self.proofs = self._paid(self.proofs, start * seconds)
        self.further = self._paid(self.further, further * seconds)

    def _paid(self, balance: float, seconds: float) -> float:
        return min(balance + seconds, MOST * self.solver_seconds)


def _mean(before: float, now: float) -> float:
    return before + WEIGHT * (now - before) if before else now


class Accounts:
    """The budgets of all structures; those of a structure end with it."""

    def __init__(self) -> None:
        self._held: WeakKeyDictionary[Compiled, dict[str, Budget]] = WeakKeyDictionary()
        self.renew_locks()
        renew_after_fork(self)

    def renew_locks(self) -> None:
        """Makes a new lock, in a forked child."""
        self._lock = Lock()

    def of(self, compiled: Compiled, solver: str) -> Budget:
        """Returns the budget of a structure with a solver, by its name."""
        with self._lock:
            return self._held.setdefault(compiled, {}).setdefault(solver, Budget())

    def __len__(self) -> int:
        return len(self._held)


ACCOUNTS = Accounts()

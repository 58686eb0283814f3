"""The peers: general solvers in their best usage, and hasten itself, as black boxes that answer problems.

A peer that is also one of `hasten.solvers` is used as such; the others have a module each here. All of them
are given the same strong formulation, reuse their models where their interface allows it, use one thread, and
are asked for a gap of zero. Packages are imported when a peer is made.

Imports the core, nothing else of `hasten.bench`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from time import thread_time
from typing import Any, Protocol

from hasten.errors import SolverMissing
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.solution import Solution, Solutions
from hasten.proof.certifier import Certifier
from hasten.solvers import Solver, make_solver
from hasten.solvers.failures import OnError
from hasten.speedup.black_box import prove_one, prove_or_solve, solve_one
from hasten.speedup.efforts import KNOWN
from hasten.support.environment import package_version


class Batched(Protocol):
    """A peer that answers many problems in one call."""

    def solve_all(self, batch: Batch) -> Solutions:
        """Answers problems."""
        ...


@dataclass(frozen=True, slots=True)
class Peer:
    """How to make a peer, given how many seconds it may take for a problem."""

    name: str
    about: str
    package: str | None  # what it imports, beyond hasten's own dependencies
    distribution: str | None  # what to install for that
    make: Callable[[float], Solver | Batched]

    @property
    def installed(self) -> bool:
        """Whether its package is there."""
        return self.package is None or find_spec(self.package) is not None

    @property
    def version(self) -> str | None:
        """The version of its package."""
        return package_version(self.distribution) if self.distribution else None

    def start(self, time_limit: float) -> Solver | Batched:
        """Makes the peer, or says what to install."""
        if not self.installed:
            raise SolverMissing(f"{self.name} needs the package {self.package}: pip install {self.distribution}")
        return self.make(time_limit)


class Alone:
    """hasten, a call for each problem: certified, and where that fails solved by HiGHS."""

    name = "hasten"

    def __init__(self, time_limit: float) -> None:
        self._certify = Certifier()
        self._solver = cache(partial(make_solver, "highs", time_limit=time_limit, interruptible=False))

    def solve(self, problem: Problem) -> Solution:
        """Answers a problem."""
        efforts = KNOWN.of(problem.structure.compiled, "highs")
        return prove_one(problem, self._certify, self._ask, efforts)

    def _ask(self, found: Solution, seconds: float, alone: bool) -> Solution:
        return solve_one(found, self._solver, OnError.RAISE, (seconds, math.inf), harder=not alone)[0]


class Together(Alone):
    """hasten, one call for all problems: certified, and where that fails solved by HiGHS."""

    def solve_all(self, batch: Batch) -> Solutions:
        """Answers problems."""
        return prove_or_solve(batch, self._solver, on_error=OnError.RAISE)[0]


class Toulbar2:
    """toulbar2, which also tells the seconds spent in its own search, without what Python does around it."""

    name = "toulbar2"

    def __init__(self, time_limit: float) -> None:
        self._solver = make_solver("toulbar2", time_limit=time_limit, interruptible=False)
        self.inner = 0.0
        import pytoulbar2

        search = pytoulbar2.CFN.Solve

        def timed(*given: Any, **named: Any) -> Any:
            started = thread_time()
            try:
                return search(*given, **named)
            finally:
                self.inner += thread_time() - started

        pytoulbar2.CFN.Solve = timed

    def solve(self, problem: Problem) -> Solution:
        """Answers a problem."""
        return self._solver.solve(problem)


def _solver(name: str) -> Callable[[float], Solver]:
    return lambda time_limit: make_solver(name, time_limit=time_limit, interruptible=False)


def _highs_default(time_limit: float) -> Solver:
    from hasten.bench.peers.highs_default import HighsDefaultSolver

    return HighsDefaultSolver(time_limit, interruptible=False)


def _scipy(time_limit: float) -> Solver:
    from hasten.bench.peers.scipy_milp import ScipySolver

    return ScipySolver(time_limit, interruptible=False)


def _scip(time_limit: float) -> Solver:
    from hasten.bench.peers.scip import ScipSolver

    return ScipSolver(time_limit, interruptible=False)


_ALL = (
    Peer("hasten", "certified, a call for each problem", None, None, Alone),
    Peer("hasten batch", "certified, one call for all problems", None, None, Together),
    Peer("toulbar2", "made anew for each problem", "pytoulbar2", "pytoulbar2", Toulbar2),
    Peer("gurobi", "model reused", "gurobipy", "gurobipy", _solver("gurobi")),
    Peer("highs", "warm linear program first, model reused", "highspy", "highspy", _solver("highs")),
    Peer("highs default", "its own defaults, model reused", "highspy", "highspy", _highs_default),
    Peer("scip", "model reused, presolving, heuristics and cuts off", "pyscipopt", "pyscipopt", _scip),
    Peer("scipy", "milp, matrix reused", "scipy", "scipy", _scipy),
    Peer("cpsat", "one worker, model reused", "ortools", "ortools", _solver("cpsat")),
)
PEERS: Mapping[str, Peer] = {peer.name: peer for peer in _ALL}
OWN = ("hasten", "hasten batch")

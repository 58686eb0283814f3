"""The peers: hasten itself and the solvers that it knows, as black boxes that answer problems.

All solvers are given the same strong formulation, reuse their models where their interface allows it, use one thread,
and are asked for a gap of zero. Packages are imported when a peer is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, overload

from hasten.errors import SolverMissing
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.model.solution import Solution, Solutions
from hasten.solvers import make_solver
from hasten.speedup.parts import Trust
from hasten.speedup.predictor import Speedup
from hasten.support.environment import package_version


class Hasten:
    """hasten: certified, and where that fails solved by HiGHS. A `Speedup` for each schema."""

    def __init__(self, time_limit: float) -> None:
        self.options = {"time_limit": time_limit, "interruptible": False}
        self.known: dict[int, tuple[Schema, Speedup]] = {}

    @overload
    def solve(self, problems: Problem) -> Solution: ...
    @overload
    def solve(self, problems: Batch) -> Solutions: ...
    def solve(self, problems: Problem | Batch) -> Solution | Solutions:
        """Answers one problem, or many in one call."""
        schema = (problems.structure if isinstance(problems, Problem) else problems.structures[0]).schema
        if id(schema) not in self.known:
            speedup = Speedup(schema, solver="highs", solver_options=self.options, trust=Trust(on_error="raise"))
            self.known[id(schema)] = schema, speedup
        return self.known[id(schema)][1].predict(problems)


@dataclass(frozen=True, slots=True)
class Peer:
    """How to make a peer, given the seconds that it may take for a problem; the package and distribution it needs."""

    name: str
    about: str
    make: Callable[[float], Any]  # an object with `solve`
    package: str | None = None  # beyond hasten's own dependencies
    distribution: str | None = None
    batched: bool = False  # whether it answers many problems in one call

    @property
    def installed(self) -> bool:
        """Whether its package is there."""
        return self.package is None or find_spec(self.package) is not None

    @property
    def version(self) -> str | None:
        """The version of its package."""
        return package_version(self.distribution) if self.distribution else None

    def start(self, time_limit: float) -> Any:
        """Makes the peer, or says what to install."""
        if not self.installed:
            raise SolverMissing(f"{self.name} needs the package {self.package}: pip install {self.distribution}")
        return self.make(time_limit)


def _solver(name: str) -> Callable[[float], Any]:
    return lambda time_limit: make_solver(name, time_limit=time_limit, interruptible=False)


_ALL = (
    Peer("hasten", "certified, a call for each problem", Hasten),
    Peer("hasten batch", "certified, one call for all problems", Hasten, batched=True),
    Peer("toulbar2", "made anew for each problem", _solver("toulbar2"), "pytoulbar2", "pytoulbar2"),
    Peer("gurobi", "model reused", _solver("gurobi"), "gurobipy", "gurobipy"),
    Peer("highs", "warm linear program first, model reused", _solver("highs"), "highspy", "highspy"),
    Peer("cpsat", "one worker, model reused", _solver("cpsat"), "ortools", "ortools"),
)
PEERS: Mapping[str, Peer] = {peer.name: peer for peer in _ALL}
OWN = ("hasten", "hasten batch")

"""The peers: hasten itself and the solvers that it knows, each in a process of its own.

All solvers are given the same strong formulation, reuse their models where their interface allows it, use one thread,
and are asked for a gap of zero. A peer cannot disturb another, and may crash, hang or print; HiGHS and OR-Tools cannot
share a process at all. Only the calls themselves are timed, by the processor time of the process: on an idle machine
this is the time on the clock, and on a busy one it does not count the time that others took.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from hasten.errors import SolverMissing, SolverTooSmall
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.solvers import make_solver
from hasten.speedup.parts import Trust
from hasten.speedup.predictor import Speedup
from hasten.support.arrays import IntArray
from hasten.support.environment import package_version

REPEATS = 5  # of a batch, in one round
PATIENCE = 120.0  # seconds beyond what a peer may take, before it is given up


class Hasten:
    """hasten: certified, and where that fails solved by HiGHS. A `Speedup` for each schema."""

    def __init__(self, time_limit: float) -> None:
        self.options = {"time_limit": time_limit, "interruptible": False}
        self.known: dict[int, tuple[Schema, Speedup]] = {}

    def solve(self, problems: Problem | Batch) -> Any:
        """Answers one problem, or many in one call."""
        schema = (problems.structure if isinstance(problems, Problem) else problems.structures[0]).schema
        if id(schema) not in self.known:
            speedup = Speedup(schema, solver="highs", solver_options=self.options, trust=Trust(on_error="raise"))
            self.known[id(schema)] = schema, speedup
        return self.known[id(schema)][1].predict(problems)


@dataclass(frozen=True, slots=True)
class Peer:
    """How to make a peer, given the seconds that it may take for a problem; the package that it needs."""

    name: str
    about: str
    make: Callable[[float], Any]  # an object with `solve`
    package: str | None = None  # beyond hasten's own dependencies
    batched: bool = False  # whether it answers many problems in one call

    @property
    def installed(self) -> bool:
        """Whether its package is there."""
        return self.package is None or find_spec(self.package) is not None

    @property
    def version(self) -> str | None:
        """The version of its package."""
        return package_version(self.package) if self.package else None

    def start(self, time_limit: float) -> Any:
        """Makes the peer, or says what to install."""
        if not self.installed:
            raise SolverMissing(f"{self.name} needs the package {self.package}: pip install {self.package}")
        return self.make(time_limit)


def _solver(name: str, about: str, package: str) -> Peer:
    make = lambda time_limit: make_solver(name, time_limit=time_limit, interruptible=False)  # noqa: E731
    return Peer(name, about, make, package)


_ALL = (
    Peer("hasten", "certified, a call for each problem", Hasten),
    Peer("hasten batch", "certified, one call for all problems", Hasten, batched=True),
    _solver("toulbar2", "made anew for each problem", "pytoulbar2"),
    _solver("gurobi", "model reused", "gurobipy"),
    _solver("highs", "warm linear program first, model reused", "highspy"),
    _solver("cpsat", "one worker, model reused", "ortools"),
)
PEERS: Mapping[str, Peer] = {peer.name: peer for peer in _ALL}
OWN = ("hasten", "hasten batch")


@dataclass(frozen=True, slots=True)
class Round:
    """A peer's answers to the first problems, and the seconds that each took."""

    seconds: list[float] = field(default_factory=list)
    labels: list[IntArray | None] = field(default_factory=list)
    optimal: list[bool] = field(default_factory=list)  # whether the peer says that nothing is better
    sources: list[str] = field(default_factory=list)  # which step answered

    def note(self, seconds: float, answer: Any) -> None:
        """Adds an answer."""
        self.seconds.append(seconds)
        self.labels.append(answer.values)
        self.optimal.append(bool(answer.status.optimal))
        self.sources.append(answer.source.value)


class PeerFailed(Exception):  # noqa: N818
    """A peer could not be measured; `status` says in a word why."""

    def __init__(self, status: str, why: str) -> None:
        super().__init__(why)
        self.status = status


class Worker:
    """Runs one peer."""

    def __init__(self, name: str, time_limit: float) -> None:
        self.name = name
        self.time_limit = time_limit
        os.environ.setdefault("HASTEN_TIER", "compiled")  # for the process: small batches are interpreted
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, name, time_limit), daemon=True)
        self._process.start()
        theirs.close()

    def load(self, problems: Sequence[Problem]) -> None:
        """Hands the peer problems, for which it builds its models. Not timed."""
        self._ask(("load", list(problems)), PATIENCE)

    def measure(self, budget: float, most: int) -> Round:
        """Lets the peer answer at most so many of the problems, in order, until the budget is spent."""
        found: Round = self._ask(("measure", budget, most), budget + 3 * self.time_limit + PATIENCE)
        return found

    def close(self) -> None:
        """Ends the process."""
        if self._process.is_alive():
            self._process.terminate()
        self._process.join()
        self._pipe.close()

    def _ask(self, request: tuple[Any, ...], timeout: float) -> Any:
        try:
            self._pipe.send(request)
            if not self._pipe.poll(timeout):
                self._process.kill()
                raise PeerFailed("hangs", f"{self.name} did not answer within {timeout:.0f} seconds.")
            status, said = self._pipe.recv()
        except (EOFError, OSError):
            self._process.join()
            raise PeerFailed("crashed", f"{self.name} ended with code {self._process.exitcode}.") from None
        if status != "ok":
            raise PeerFailed(status, said)
        return said


def _serve(pipe: Connection, name: str, time_limit: float) -> None:
    """Answers requests until the pipe closes."""
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)  # some peers greet, report and warn
    os.dup2(quiet, 2)
    peer: Any = None
    problems: list[Problem] = []
    while True:
        try:
            what, *how = pipe.recv()
        except EOFError:
            return
        try:
            peer = PEERS[name].start(time_limit) if peer is None else peer
            if what == "load":
                problems = how[0]
                warm_up(peer, problems, PEERS[name].batched)
                pipe.send(("ok", None))
            else:
                pipe.send(("ok", measure(peer, problems, *how, batched=PEERS[name].batched)))
        except SolverMissing as error:
            pipe.send(("not installed", str(error)))
        except SolverTooSmall as error:
            pipe.send(("too large", str(error)))
        except Exception as error:
            pipe.send(("failed", f"{type(error).__name__}: {error}"))


def warm_up(peer: Any, problems: Sequence[Problem], batched: bool = False) -> None:
    """Solves, for each structure, a problem without costs: models are built and kernels compiled."""
    structures = {id(problem.structure.compiled): problem.structure for problem in problems}
    empty = [structure.problem(np.zeros(structure.n_labels)) for structure in structures.values()]
    for problem in [Batch.of(empty)] if batched else empty:
        peer.solve(problem)


def measure(peer: Any, problems: Sequence[Problem], budget: float, most: int, *, batched: bool = False) -> Round:
    """Times a peer on problems, each alone or all of them together."""
    problems, found, times = problems[:most], Round(), list[float]()
    asked: list[Any] = [Batch.of(problems)] * REPEATS if batched else list(problems)
    warm_up(peer, problems[:1], batched)  # a process that waited is slow at first
    ends, answers = time.perf_counter() + budget, list[Any]()
    for each in asked:
        started = time.process_time()
        answers.append(peer.solve(each))
        times.append(time.process_time() - started)
        if time.perf_counter() > ends:
            break
    if batched:
        answers, times = list(answers[-1]), [min(times) / max(1, len(problems))] * len(problems)
    for answer, seconds in zip(answers, times, strict=True):
        found.note(seconds, answer)
    return found

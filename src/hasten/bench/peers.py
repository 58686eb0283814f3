"""The peers: hasten itself and the solvers that it knows, each in a process of its own.

All solvers are given the same strong formulation, reuse their models where their interface allows it, use one thread,
and are asked for a gap of zero. A peer cannot disturb another, and may crash, hang or print; HiGHS and OR-Tools cannot
share a process at all. Only the calls themselves are timed, by the processor time of the process: on an idle machine
this is the time on the clock, and on a busy one it does not count the time that others took.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np

from hasten.errors import SolverTooSmall
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
        super().__init__(status, why)
        self.status, self.why = status, why


class Worker:
    """Runs one peer, in a process of its own."""

    def __init__(self, name: str, time_limit: float) -> None:
        self.name = name
        self.time_limit = time_limit
        os.environ.setdefault("HASTEN_TIER", "compiled")  # for the process: small batches are interpreted
        self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _be_quiet)
        self._process = self._pool.submit(os.getpid)

    def load(self, problems: Sequence[Problem]) -> None:
        """Hands the peer problems, for which it builds its models. Not timed."""
        self._ask(PATIENCE, _load, self.name, self.time_limit, list(problems))

    def measure(self, budget: float, most: int) -> Round:
        """Lets the peer answer at most so many of the problems, in order, until the budget is spent."""
        found: Round = self._ask(budget + 3 * self.time_limit + PATIENCE, _measure, budget, most)
        return found

    def close(self) -> None:
        """Ends the process."""
        with suppress(BrokenProcessPool, ProcessLookupError):
            os.kill(self._process.result(), signal.SIGTERM)
        self._pool.shutdown(cancel_futures=True)

    def _ask(self, timeout: float, do: Callable[..., Any], *request: Any) -> Any:
        try:
            return self._pool.submit(do, *request).result(timeout)
        except TimeoutError:
            raise PeerFailed("hangs", f"{self.name} did not answer within {timeout:.0f} seconds.") from None
        except BrokenProcessPool:
            raise PeerFailed("crashed", f"The process of {self.name} ended.") from None


_HELD: dict[str, Any] = {}  # the peer of this process, and its problems


def _be_quiet() -> None:
    """Sends what peers print, when they greet, report and warn, nowhere."""
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)


def _load(name: str, time_limit: float, problems: Sequence[Problem]) -> None:
    with _telling():
        if "peer" not in _HELD:
            _HELD.update(peer=PEERS[name].make(time_limit), batched=PEERS[name].batched)
        _HELD["problems"] = problems
        warm_up(_HELD["peer"], problems, _HELD["batched"])


def _measure(budget: float, most: int) -> Round:
    with _telling():
        return measure(_HELD["peer"], _HELD["problems"], budget, most, batched=_HELD["batched"])


@contextmanager
def _telling() -> Iterator[None]:
    """Says why a peer failed, in words that can be sent from one process to another."""
    try:
        yield
    except SolverTooSmall as error:
        raise PeerFailed("too large", str(error)) from None
    except Exception as error:
        raise PeerFailed("failed", f"{type(error).__name__}: {error}") from None


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

"""The peers: hasten itself and the solvers that it knows, each in a process of its own.

All solvers get the same strong formulation, reuse their models where their interface allows it, use one thread and a
gap of zero. A process each, because a peer may crash, hang or print, and HiGHS and OR-Tools cannot share one. Only the
calls themselves are timed, in processor time: on a busy machine, it leaves out the time that other processes took.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, NamedTuple

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
PATIENCE = 120.0  # seconds beyond a peer's time limit after which it hangs


class Certified:
    """hasten: answers certified, or solved by HiGHS; a `Speedup` for each schema."""

    def __init__(self, time_limit: float) -> None:
        self.options = {"time_limit": time_limit, "interruptible": False}
        self.speedups: dict[int, tuple[Schema, Speedup]] = {}

    def solve(self, problems: Problem | Batch) -> Any:
        """Answers one problem, or many in one call."""
        schema = (problems.structure if isinstance(problems, Problem) else problems.structures[0]).schema
        if id(schema) not in self.speedups:
            speedup = Speedup(schema, solver="highs", solver_options=self.options, trust=Trust(on_error="raise"))
            self.speedups[id(schema)] = schema, speedup
        return self.speedups[id(schema)][1].predict(problems)


@dataclass(frozen=True, slots=True)
class Peer:
    """A way to solve problems: `make` takes the time limit for a problem, and returns an object with `solve`."""

    name: str
    about: str
    make: Callable[[float], Any]
    package: str | None = None  # beyond hasten's own dependencies
    batched: bool = False  # whether it answers many problems in one call

    @property
    def installed(self) -> bool:
        """Whether its package is installed."""
        return self.package is None or find_spec(self.package) is not None

    @property
    def version(self) -> str | None:
        """The version of its package."""
        return package_version(self.package) if self.package else None


def _solver(name: str, about: str, package: str) -> Peer:
    make = lambda time_limit: make_solver(name, time_limit=time_limit, interruptible=False)  # noqa: E731
    return Peer(name, about, make, package)


_ALL = (
    Peer("hasten", "certified, a call for each problem", Certified),
    Peer("hasten batch", "certified, one call for all problems", Certified, batched=True),
    _solver("toulbar2", "model rebuilt for each problem", "pytoulbar2"),
    _solver("gurobi", "model reused", "gurobipy"),
    _solver("highs", "warm linear program first, model reused", "highspy"),
    _solver("cpsat", "one worker, model reused", "ortools"),
)
PEERS: Mapping[str, Peer] = {peer.name: peer for peer in _ALL}
OWN = ("hasten", "hasten batch")


class TimedAnswer(NamedTuple):
    """A peer's answer to a problem."""

    seconds: float
    labels: IntArray | None
    optimal: bool  # whether the peer claims that no labelling is cheaper
    source: str  # the step that answered


class PeerFailed(Exception):  # noqa: N818
    """A peer could not be measured; `status` is the reason in a word."""

    def __init__(self, status: str, why: str) -> None:
        super().__init__(status, why)
        self.status, self.why = status, why


class Worker:
    """Runs one peer in a process of its own, which is started again if it crashed or hung."""

    def __init__(self, name: str, time_limit: float) -> None:
        self.name, self.time_limit = name, time_limit
        self._pool: ProcessPoolExecutor | None = None
        os.environ.setdefault("HASTEN_TIER", "compiled")  # for the process, or small batches would be interpreted

    def load(self, problems: Sequence[Problem]) -> None:
        """Sends problems, for which the peer builds its models. Not timed."""
        self._call(PATIENCE, _load, self.name, self.time_limit, list(problems))

    def measure(self, budget: float, most: int) -> list[TimedAnswer]:
        """Returns answers to the first problems, at most `most`, until the budget of seconds is spent."""
        found: list[TimedAnswer] = self._call(budget + 3 * self.time_limit + PATIENCE, _measure, budget, most)
        return found

    def close(self) -> None:
        """Ends the process."""
        pool, self._pool = self._pool, None
        if pool is not None:
            for process in list((pool._processes or {}).values()):
                process.kill()
            pool.shutdown(cancel_futures=True)

    def _call(self, timeout: float, do: Callable[..., Any], *args: Any) -> Any:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _silence)
        try:
            return self._pool.submit(do, *args).result(timeout)
        except TimeoutError:
            self.close()
            raise PeerFailed("hangs", f"{self.name} did not answer within {timeout:.0f} seconds.") from None
        except BrokenProcessPool:
            self.close()
            raise PeerFailed("crashed", f"The process of {self.name} ended.") from None


_STATE: dict[str, Any] = {}  # the peer of this process, and its problems


def _silence() -> None:
    """Discards what peers print."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def _load(name: str, time_limit: float, problems: Sequence[Problem]) -> None:
    with _picklable_errors():
        if "peer" not in _STATE:
            _STATE.update(peer=PEERS[name].make(time_limit), batched=PEERS[name].batched)
        _STATE["problems"] = problems
        warm_up(_STATE["peer"], problems, _STATE["batched"])


def _measure(budget: float, most: int) -> list[TimedAnswer]:
    with _picklable_errors():
        return measure(_STATE["peer"], _STATE["problems"], budget, most, batched=_STATE["batched"])


@contextmanager
def _picklable_errors() -> Iterator[None]:
    try:
        yield
    except SolverTooSmall as error:
        raise PeerFailed("too large", str(error)) from None
    except Exception as error:
        raise PeerFailed("failed", f"{type(error).__name__}: {error}") from None


def warm_up(peer: Any, problems: Sequence[Problem], batched: bool = False) -> None:
    """Solves a problem without costs for each structure, so that models are built and kernels compiled."""
    structures = {id(problem.structure.compiled): problem.structure for problem in problems}
    empty = [structure.problem(np.zeros(structure.n_labels)) for structure in structures.values()]
    for problem in [Batch.of(empty)] if batched else empty:
        peer.solve(problem)


def measure(
    peer: Any, problems: Sequence[Problem], budget: float, most: int, *, batched: bool = False
) -> list[TimedAnswer]:
    """Times a peer on problems, one by one or all in a batch."""
    problems, answers, times = problems[:most], list[Any](), list[float]()
    asked: list[Any] = [Batch.of(problems)] * REPEATS if batched else list(problems)
    warm_up(peer, problems[:1], batched)  # a process that waited is slow at first
    end = time.perf_counter() + budget
    for each in asked:
        started = time.process_time()
        answers.append(peer.solve(each))
        times.append(time.process_time() - started)
        if time.perf_counter() > end:
            break
    if batched:
        answers, times = list(answers[-1]), [min(times) / max(1, len(problems))] * len(problems)
    return [
        TimedAnswer(seconds, answer.values, bool(answer.status.optimal), answer.source.value)
        for answer, seconds in zip(answers, times, strict=True)
    ]

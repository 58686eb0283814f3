"""A peer in a process of its own: it cannot disturb another, and may crash, hang or print.

HiGHS and OR-Tools cannot share a process at all. Only the calls themselves are timed, by the processor time of the
process: all peers use one thread, so that on an idle machine this is the time on the clock, and on a busy one it does
not count the time that others took.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from hasten.bench.peers import PEERS
from hasten.errors import SolverMissing, SolverTooSmall
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.support.arrays import IntArray

REPEATS = 5  # of a batch, in one round
PATIENCE = 120.0  # seconds beyond what a peer may take, before it is given up


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
    problems, found = problems[:most], Round()
    batch = Batch.of(problems) if batched else None
    warm_up(peer, problems[:1], batched)  # a process that waited is slow at first
    ends = time.perf_counter() + budget
    if batch is not None:
        least, answers = math.inf, list[Any]()
        for _ in range(REPEATS):
            started = time.process_time()
            answers = peer.solve(batch)
            least = min(least, time.process_time() - started)
            if time.perf_counter() > ends:
                break
        for answer in answers:
            found.note(least / max(1, len(problems)), answer)
        return found
    for problem in problems:
        started = time.process_time()
        answer = peer.solve(problem)
        found.note(time.process_time() - started, answer)
        if time.perf_counter() > ends:
            break
    return found

"""Time limits, and Ctrl-C, for work that does not look at the clock itself; threads that share such work.

A kernel, or a solver, holds the thread that runs it: no signal is handled and no limit kept until it returns. So work
that may take long runs in a thread of its own, while the caller waits. When time is up, or a signal raised an error, it
is asked to stop; if it does not soon, it is left behind.

A `Clock` does that for kernels, which read a *stop flag* as they go, an array of four numbers: whether to stop all
problems, the one problem to stop, the problem that the kernel is at, counted from 1, and the deadline in nanoseconds.
The positions of these numbers (`STOP_ALL`, ...) are compiled into kernels.

Limits are for answering. Loading or compiling a kernel, which happens once, does not count: deadlines are times of
`now`, which stands still meanwhile.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import numpy as np

from hasten.support.arrays import IntArray
from hasten.support.checks import check_whole
from hasten.support.threads import Work

Result = TypeVar("Result")

STOP_ALL, STOP_ONE, CURRENT, DEADLINE = 0, 1, 2, 3
_FOREVER = 9e18  # nanoseconds
MOMENT = 0.02  # seconds between two looks at the clock
LONG = 0.2  # seconds: work that cannot take longer is not worth a thread that can be stopped
SLOWNESS = 1.0  # how many times as long work takes as is said, at most: kernels may be interpreted (`hasten.jit.tiers`)
PATIENCE = 0.1  # seconds that work has to stop, once it was asked to


class _Loading:
    spent = 0.0  # seconds that went into loading and compiling kernels
    since: float | None = None  # when the present loading began


def now() -> float:
    """Returns the time, in seconds since some moment, that limits count: without loading kernels."""
    since = _Loading.since
    return (time.monotonic() if since is None else since) - _Loading.spent


def seconds_loading() -> float:
    """Returns how long this process has been loading and compiling kernels."""
    return _Loading.spent


@contextmanager
def uncounted() -> Iterator[None]:
    """Loads or compiles a kernel within: one thread at a time, for which no limit counts."""
    began = _Loading.since = time.monotonic()
    try:
        yield
    finally:
        _Loading.spent += time.monotonic() - began
        _Loading.since = None


class LeftBehindError(Exception):
    """Work that did not stop when it was asked to; it goes on in a thread that nobody waits for."""


class Stop:
    """A request to stop, made in one thread and heard in another."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._on_set: Callable[[], object] = lambda: None

    def set(self) -> None:
        """Asks the work to stop."""
        self._asked.set()
        self._on_set()

    def is_set(self) -> bool:
        """Whether it was asked to stop."""
        return self._asked.is_set()

    def on_set(self, call: Callable[[], object]) -> bool:
        """Says what to call when it is asked to stop from now on; returns whether it was asked before."""
        self._on_set = call
        return self._asked.is_set()


NEVER = Stop()  # for work that nobody stops


def run_waiting(
    run: Callable[[], Result],
    cancel: Callable[[], object],
    deadline: float = math.inf,
    look: Callable[[], object] | None = None,
    patience: float | None = PATIENCE,
) -> Result:
    """Returns what `run` returns, called in a thread of its own; Ctrl-C, and the deadline, get through.

    `cancel` asks it to stop, once: at the deadline (of `now`), after which it should return soon, or when an
    error such as `KeyboardInterrupt` is raised here, which is then raised on. `look` is called every moment.
    What has not stopped `patience` seconds after it was asked to is left behind (None: never): at the deadline, that
    is `LeftBehindError`.
    """
    work = Work(run)
    try:
        work.begin()
        while not work.ended.wait(min(MOMENT, max(0.0, deadline - now()))):
            if look is not None:
                look()
            if now() >= deadline:
                cancel()
                if not work.ended.wait(patience):
                    raise LeftBehindError
    except LeftBehindError:
        raise
    except BaseException:
        cancel()
        if work.begun:
            work.ended.wait(patience if _Loading.since is None else PATIENCE)
        raise
    return work.result


NEVER_STOP = np.array([0, -1, 0, int(_FOREVER)])  # a stop flag that is never set; all may share it


def seconds_left(stop_flag: IntArray) -> float:
    """Returns how many seconds are left until the clock of a stop flag stops all problems."""
    return 1e-9 * float(stop_flag[DEADLINE]) - now()


def deadline_after(seconds: float | None) -> float:
    """Returns when a call that has so long must be done; None: never."""
    return math.inf if seconds is None else now() + seconds


class Clock:
    """Keeps kernels to limits in seconds: for each problem, and for all of them together; None is no limit."""

    def __init__(self, each: float | None = None, together: float | None = None, stop: Stop = NEVER) -> None:
        self.each = math.inf if each is None else each
        self.began = now()
        self.deadline = deadline_after(together)
        self._seen: list[
            tuple[IntArray, list[float]]
        ] = []  # each flag, the problem that its kernel is at, and since when
        self.stopped, self.stop = False, stop  # by time or from another thread, which asks for it by `stop`
        if stop is not NEVER and stop.on_set(self._stop):
            self._stop()

    @property
    def shortest(self) -> float:
        """How many seconds work may take that reads no stop flag."""
        return min(self.each, self.deadline - now())

    def stop_flag(self) -> IntArray:
        """Returns a stop flag for one more kernel."""
        stop_flag = np.array([0, 0, 0, int(min(1e9 * self.deadline, _FOREVER))])
        self._seen.append((stop_flag, [0, 0.0]))
        stop_flag[STOP_ALL] = self.stopped  # looked at after it was put on the list, so that none is missed
        return stop_flag

    def run(self, work: Callable[[], None], seconds: float) -> None:
        """Runs kernels that read stop flags of this clock, and take `seconds` at most.

        They stop at once when they are asked to, so none is left behind.
        """
        seconds *= SLOWNESS
        if seconds <= LONG and seconds <= self.shortest:
            work()
            return
        if now() >= self.deadline:
            self._stop()  # before it begins: how far it comes is not left to chance
        run_waiting(work, self._stop, self.deadline, self._look, patience=None)

    def _look(self) -> None:
        moment = now()
        for stop_flag, seen in list(self._seen):
            if stop_flag[CURRENT] != seen[0]:
                seen[:] = stop_flag[CURRENT], moment
            elif seen[0] and moment - seen[1] >= self.each:
                stop_flag[STOP_ONE] = seen[0]

    def _stop(self) -> None:
        self.stopped, moment = True, int(1e9 * now())
        for stop_flag, _ in list(self._seen):
            stop_flag[STOP_ALL], stop_flag[DEADLINE] = 1, min(stop_flag[DEADLINE], moment)


CHUNK = 1024  # problems at most between two chances to be interrupted
SOON = 5e-4  # seconds after which to tell how long the rest takes,
WORTH = 2e-3  # and what that must be for threads to pay


def in_parallel(run: Callable[[int, int], None], n: int, n_jobs: int, seconds: float = 0.0) -> None:
    """Runs `run(start, stop)` over 0..n in `n_jobs` threads; kernels release the interpreter's lock.

    After an error, Ctrl-C included, what has not begun is dropped; what has begun comes to its end first. But where
    a chunk of the `n`, which take `seconds` each at most, may take long, Ctrl-C leaves behind what has begun.
    """
    if type(n_jobs) is not int or n_jobs < 1:
        check_whole("n_jobs", n_jobs, least=1)
    if seconds * min(n, CHUNK) <= LONG:
        _share(run, n, n_jobs, CHUNK)
        return
    stop = Stop()

    def unless_stopped(begin_at: int, end_at: int) -> None:
        if not stop.is_set():
            run(begin_at, end_at)

    run_waiting(lambda: _share(unless_stopped, n, n_jobs, max(1, int(LONG / seconds))), stop.set)


def _share(run: Callable[[int, int], None], n: int, n_jobs: int, chunk: int) -> None:
    if n_jobs == 1 or n < 2 * n_jobs:
        for start in range(0, n, chunk):
            run(start, min(start + chunk, n))
        return
    # Several chunks a thread, so that one with the large problems does not keep the others waiting.
    n_chunks = min(n, max(8 * n_jobs, -(-n // chunk)))
    start, size, began = 0, 1, time.perf_counter()
    while start < n:
        run(start, min(start + size, n))
        start, size = min(start + size, n), min(2 * size, -(-n // n_chunks))
        seconds = time.perf_counter() - began
        if seconds > SOON and seconds * (n - start) > WORTH * start:
            break
    if start == n:
        return
    edges = np.linspace(start, n, min(n - start, n_chunks) + 1).astype(int)
    threads = ThreadPoolExecutor(n_jobs)
    try:
        list(threads.map(run, edges[:-1].tolist(), edges[1:].tolist()))
    finally:
        threads.shutdown(cancel_futures=True)

"""Processes that share a stream of work: results in order, few of them at a time, none left behind.

Threads are for kernels, which release the interpreter's lock (`hasten.support.clock`); processes are for work that
is Python itself, such as text. The first piece of work is done here, in the process that asks, while the others start:
what it compiles is then on disk before they begin, and a stream of one piece starts none. They are started afresh, not
forked, all at the same time; so what they do is sent to them once they are there to take it.

A worker that dies is an error. When an error, or Ctrl-C, ends the work here, the workers are killed; when this process
is killed, they notice and end as well.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from itertools import chain
from multiprocessing.context import SpawnContext
from typing import Any, TypeVar

from hasten.errors import WorkerError
from hasten.support.checks import check_whole

Work = TypeVar("Work")
Result = TypeVar("Result")

AHEAD = 2  # pieces of work under way for each worker: one that it does, and one that waits for it


def in_processes(do: Callable[[Work], Result], works: Iterable[Work], jobs: int) -> Iterator[Result]:
    """Yields `do(work)` for each piece of work, in order; `do` is sent to `jobs` processes once each.

    An error in one piece, or of the stream that they come from, is raised after the results of all pieces before it.
    """
    check_whole("jobs", jobs, least=1)
    stream = iter(works)
    if jobs == 1:
        yield from map(do, stream)
        return
    for first in stream:
        try:
            second = next(stream, _NOTHING)
        except Exception:
            yield do(first)
            raise
        if second is _NOTHING:  # no process is started for nothing
            yield do(first)
        else:
            yield from _with_workers(do, first, chain([second], stream), jobs)
        return


def _with_workers(do: Callable[[Work], Result], first: Work, stream: Iterator[Work], jobs: int) -> Iterator[Result]:
    context = _Context()
    told = context.SimpleQueue()
    pool = ProcessPoolExecutor(jobs, context, _begin, (told,))
    waiting: deque[Future[Result]] = deque()

    def tell(do: bytes) -> None:
        with suppress(OSError):  # the workers have ended
            for _ in range(jobs):
                told.put(do)

    ended: BaseException | None = None
    try:
        with _signals_held():
            for _ in range(jobs):  # starts all of them, and waits for none
                pool.submit(_nothing)
        threading.Thread(target=tell, args=(pickle.dumps(do),), daemon=True).start()
        yield do(first)
        work = next(stream, _NOTHING)
        while work is not _NOTHING or waiting:
            if work is not _NOTHING:
                with _signals_held():  # so that Ctrl-C reaches this process alone
                    waiting.append(pool.submit(_do, work))
                try:
                    work = next(stream, _NOTHING)
                except Exception as error:
                    work, ended = _NOTHING, error
            if work is _NOTHING or len(waiting) >= AHEAD * jobs:
                yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise WorkerError(_obituary(context)) from error
    finally:
        for process in context.processes:
            process.kill()
        pool.shutdown(cancel_futures=True)
        told.close()
    if ended is not None:
        raise ended


_NOTHING: Any = object()


def _nothing() -> None:
    pass


class _Context(SpawnContext):
    """Starts processes afresh, and remembers them."""

    def __init__(self) -> None:
        self.processes: list[Any] = []

    def Process(self, *args: Any, **settings: Any) -> Any:  # type: ignore[override]  # noqa: N802
        process = SpawnContext.Process(*args, **settings)
        self.processes.append(process)
        return process


@contextmanager
def _signals_held() -> Iterator[None]:
    # Holds Ctrl-C back; processes that are started meanwhile never hear of it.
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _obituary(context: _Context) -> str:
    end = time.monotonic() + 1.0
    while time.monotonic() < end and any(process.exitcode is None for process in context.processes):
        time.sleep(0.01)  # another thread may have heard first how one ended, and be about to note it
    codes = [process.exitcode for process in context.processes if process.exitcode not in (None, 0, -signal.SIGTERM)]
    how = "ended"
    if codes and codes[0] < 0:
        how = f"was killed ({signal.Signals(-codes[0]).name})"
    return (
        f"A worker process {how} before its work was done. If memory ran out, use fewer jobs; if this is a script of "
        'yours, put what it does under `if __name__ == "__main__":`.'
    )


_DO: Callable[[Any], Any]  # what a worker does with each piece of work


def _begin(told: Any) -> None:
    global _DO
    threading.Thread(target=end_with_parent, daemon=True).start()
    _DO = pickle.loads(told.get())  # of the process that started it


def end_with_parent() -> None:
    """Ends this process once its parent has ended; for a thread of its own."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _do(work: Any) -> Any:
    return _DO(work)

"""Threads that share a range of problems; kernels release the interpreter's lock."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from hasten.support.checks import check_whole
from hasten.support.clock import LONG, Stop, run_waiting

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

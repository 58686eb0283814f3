"""Threads that share a range of problems; kernels release the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from hasten.support.checks import check_whole
from hasten.support.clock import LONG, Stop, run_waiting

CHUNK = 1024  # problems at most between two chances to be interrupted


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
    """Runs `run` in chunks of so many at most."""
    if n_jobs == 1 or n < 2 * n_jobs:
        for start in range(0, n, chunk):
            run(start, min(start + chunk, n))
        return
    # Several chunks a thread, so that one with the large problems does not keep the others waiting.
    edges = np.linspace(0, n, min(n, max(8 * n_jobs, -(-n // chunk))) + 1).astype(int)
    threads = ThreadPoolExecutor(n_jobs)
    try:
        list(threads.map(run, edges[:-1].tolist(), edges[1:].tolist()))
    finally:
        threads.shutdown(cancel_futures=True)

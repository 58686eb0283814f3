"""Threads that share a range of problems; kernels release the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from hasten.support.checks import check_whole

CHUNK = 1024  # problems at most between two chances to be interrupted


def in_parallel(run: Callable[[int, int], None], n: int, n_jobs: int) -> None:
    """Runs `run(start, stop)` over 0..n in `n_jobs` threads; kernels release the interpreter's lock.

    After an error, Ctrl-C included, what has not begun is dropped; what has begun comes to its end first.
    """
    if type(n_jobs) is not int or n_jobs < 1:
        check_whole("n_jobs", n_jobs, least=1)
    if n_jobs == 1 or n < 2 * n_jobs:
        for start in range(0, n, CHUNK):
            run(start, min(start + CHUNK, n))
        return
    # Several chunks a thread, so that one with the large problems does not keep the others waiting.
    edges = np.linspace(0, n, min(n, max(8 * n_jobs, -(-n // CHUNK))) + 1).astype(int)
    threads = ThreadPoolExecutor(n_jobs)
    try:
        list(threads.map(run, edges[:-1].tolist(), edges[1:].tolist()))
    finally:
        threads.shutdown(cancel_futures=True)

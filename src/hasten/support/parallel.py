"""Threads that share a range of problems; kernels release the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from hasten.errors import ProblemError


def in_parallel(run: Callable[[int, int], None], n: int, n_jobs: int) -> None:
    """Runs `run(start, stop)` over 0..n in `n_jobs` threads; kernels release the interpreter's lock."""
    if n_jobs < 1:
        raise ProblemError(f"n_jobs must be at least 1, got {n_jobs}.")
    if n_jobs == 1 or n < 2 * n_jobs:
        run(0, n)
        return
    # Several chunks a thread, so that one with the large problems does not keep the others waiting.
    edges = np.linspace(0, n, min(n, 8 * n_jobs) + 1).astype(int)
    with ThreadPoolExecutor(n_jobs) as threads:
        list(threads.map(run, edges[:-1].tolist(), edges[1:].tolist()))

"""Functions timed in turns, in CPU time of one thread.

On a busy machine, things timed one after the other are not comparable. So a round takes the test inputs in a fresh
order, and every method answers them once, in a fresh order of turns. Shuffling and building models happen before the
clock starts. A run is some rounds, and its time the median of theirs; a slow method takes part in fewer rounds, at
least one a run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
D = TypeVar("D")
Ready = Callable[[D], Callable[[], Any]]  # prepares the inputs, and returns what is timed

ROUNDS = 10  # of a run
LONG = 300.0  # milliseconds that one may take in a run, if that is more than a round


@dataclass(frozen=True, slots=True)
class Timing:
    """CPU milliseconds of repeated runs."""

    runs: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Their mean."""
        return float(np.mean(self.runs))

    @property
    def std(self) -> float:
        """Their standard deviation."""
        return float(np.std(self.runs, ddof=1)) if len(self.runs) > 1 else 0.0

    def __add__(self, other: Timing) -> Timing:
        return Timing(tuple(a + b for a, b in zip(self.runs, other.runs, strict=True)))


def timed(run: Callable[[], T]) -> tuple[T, float]:
    """Returns the result of a function, and the CPU milliseconds that it takes."""
    begin = time.process_time()
    result = run()
    return result, 1000.0 * (time.process_time() - begin)


def time_in_turns(
    methods: Sequence[Ready[D]],
    shuffled: Callable[[np.random.Generator], D],
    first: Sequence[float],
    *,
    runs: int,
    rounds: int = ROUNDS,
    seed: int = 0,
    progress: Callable[[float], None] = lambda share: None,
) -> list[Timing]:
    """Times every method in `runs` runs of some rounds; `first` says how long each took when it was tried."""
    rng = np.random.default_rng(seed)
    takes_part = [min(rounds, max(1, int(LONG / max(each, 1e-6)))) for each in first]
    times: list[list[float]] = [[] for _ in methods]
    for run in range(runs):
        of_run: list[list[float]] = [[] for _ in methods]
        for turn in range(rounds):
            progress((run * rounds + turn) / (runs * rounds))
            inputs = shuffled(rng)
            for n in rng.permutation(len(methods)).tolist():
                if turn < takes_part[n]:
                    of_run[n].append(timed(methods[n](inputs))[1])
        for mine, some in zip(times, of_run, strict=True):
            mine.append(float(np.median(some)))
    return [Timing(tuple(each)) for each in times]

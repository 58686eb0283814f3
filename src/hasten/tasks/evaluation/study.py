"""The frame of every experiment: for each seed measure all methods in turns; average the rows over seeds.

The paper's experiment and the comparison of any task fill it in. `Study.run` returns plain data, for `results.json`. A
row is a dictionary that JSON can hold: the method, its scores, shares and times. Intervals, by the bootstrap, are of
the mean over seeds: an input that several seeds test on is drawn equally often for each of them, so that it is not
taken for several.
"""

from __future__ import annotations

import math
import platform
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hasten.errors import CorpusError
from hasten.solvers import package_of
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.environment import package_version, processor
from hasten.support.terminal import Progress, no_progress

Row = dict[str, Any]

N_RESAMPLES = 1000
TAILS = (2.5, 97.5)  # the percentiles that an interval ends at
CHUNK = 50  # resamples drawn together: memory stays bounded
SHARES = ("validity", "exact_match", "proved", "solver_calls", "costs_computed")
TIMES = ("time_ms", "features_ms", "inference_ms", "building_ms")


class Measured(NamedTuple):
    """A row of one seed, and the counts of each test input that its scores are made of."""

    row: Row
    counts: FloatArray  # (n_test, n_scores, 2): see `f1_of`
    scores: Sequence[str]  # their keys


def f1_of(counts: FloatArray) -> FloatArray:
    """Returns F1 from counts (…, 2): labels that both sides name alike, and labels that either side names.

    Where nobody names anything, F1 is 1.
    """
    right, named = counts[..., 0], counts[..., 1]
    return np.where(named > 0, 2.0 * right / np.maximum(named, 1), 1.0)


def intervals(tests: Sequence[IntArray], counts: Sequence[FloatArray], seed: int = 0, n: int = N_RESAMPLES) -> Any:
    """Returns the limits (…, 2) of the mean F1 over seeds, by drawing test inputs anew with replacement.

    `tests` has the numbers of each seed's test inputs, `counts` their counts (n_test, …, 2).
    """
    known, place = np.unique(np.concatenate(tests), return_inverse=True)
    places = np.split(place, np.cumsum([len(test) for test in tests])[:-1])
    rng, share = np.random.default_rng(seed), np.full(known.size, 1.0 / known.size)
    means = []
    for start in range(0, n, CHUNK):
        drawn = rng.multinomial(known.size, share, size=min(CHUNK, n - start)).astype(float)
        f1 = [f1_of(np.tensordot(drawn[:, mine], each, axes=1)) for mine, each in zip(places, counts, strict=True)]
        means.append(np.mean(f1, axis=0))
    return np.moveaxis(np.percentile(np.concatenate(means), TAILS, axis=0), 0, -1)


def over_seeds(measured: Sequence[Sequence[Measured]], tests: Sequence[IntArray], seed: int) -> list[Row]:
    """Returns a row for each method: means over seeds with standard deviations, and the intervals of its scores.

    `tests` are the numbers of each seed's test inputs. With one seed, the standard deviation of the time is that of its
    runs.
    """
    scores = measured[0][0].scores
    limits = intervals(tests, [np.stack([each.counts for each in of_seed], axis=1) for of_seed in measured], seed)
    rows = [_mean([each.row for each in of_method], scores) for of_method in zip(*measured, strict=True)]
    return [
        row | {"interval": dict(zip(scores, its, strict=True))} for row, its in zip(rows, limits.tolist(), strict=True)
    ]


def _mean(rows: Sequence[Row], scores: Sequence[str]) -> Row:
    """Returns the row of one method over seeds. Theta is the lower median of those chosen, None the largest."""
    if len(rows) == 1:
        return {**rows[0], "std": {}}
    values = {key: [row.get(key) for row in rows] for key in (*scores, *SHARES, *TIMES)}
    known = {key: [float(one) for one in each if one is not None] for key, each in values.items() if None not in each}
    std = {key: float(np.std(each, ddof=1)) for key, each in known.items()}
    notes = list(dict.fromkeys(str(row["note"]) for row in rows))
    answered = sum((Counter(row["answered_by"]) for row in rows), Counter[str]())
    mean: Row = rows[0] | {key: float(np.mean(each)) for key, each in known.items()}
    mean |= {
        "time_ms_std": std["time_ms"],
        "note": notes[0] if len(notes) == 1 else f"with one seed: {max(notes, key=bool)}",
        "answered_by": dict(answered),
        "std": {key: std[key] for key in std if key not in TIMES},
    }
    if "theta" in mean:
        thetas = sorted(math.inf if row["theta"] is None else row["theta"] for row in rows)
        mean["theta"] = finite(thetas[(len(thetas) - 1) // 2])
    return mean


def finite(value: float) -> float | None:
    """Returns a number for JSON, which has no infinity: None stands for it."""
    return value if math.isfinite(value) else None


@dataclass(frozen=True, slots=True)
class Measuring:
    """How to measure: the ILP solver and the seconds that it has for an input, runs, the seed, and progress."""

    solver: str = "highs"
    time_limit: float = math.inf
    runs: int = 1
    seed: int = 0
    progress: Progress = no_progress


@dataclass(frozen=True, kw_only=True)
class Study(ABC):
    """The settings that all experiments share."""

    solver: str = "highs"
    time_limit: float = 60.0  # seconds of each call of the solver
    runs: int = 3  # of each measurement, shared by the seeds; each has one at least
    seed: int = 0
    seeds: int = 1  # how many, from `seed` on
    source: str = ""  # what the corpus is called in the report
    synthetic: bool = False

    def __post_init__(self) -> None:
        for what, n in (("run", self.runs), ("seed", self.seeds)):
            if n < 1:
                raise CorpusError(f"Give at least one {what}, not {n}.")

    @abstractmethod
    def once(self, how: Measuring) -> tuple[list[Measured], IntArray, Callable[[], dict[str, Any]]]:
        """Trains models and lets every method answer the test inputs, timed in turns.

        Returns the rows, the numbers of the test inputs, and what makes the other sections of the results; it is called
        for the first seed. Their `about` has more facts.
        """

    def run(self, progress: Progress = no_progress) -> dict[str, Any]:
        """Runs everything, and returns the content of `results.json`."""
        runs = max(1, round(self.runs / self.seeds))
        measured, tests, found = list[list[Measured]](), list[IntArray](), dict[str, Any]()
        for n in range(self.seeds):

            def tell_which(stage: str, share: float | None, note: str = "", /, n: int = n) -> None:
                progress(f"Seed {n + 1} of {self.seeds}: {stage}", share, note)

            told = progress if self.seeds == 1 else tell_which
            rows, numbers, more = self.once(Measuring(self.solver, self.time_limit, runs, self.seed + n, told))
            measured.append(rows)
            tests.append(numbers)
            found = found or more()
        means = over_seeds(measured, tests, self.seed)
        about = {
            "hasten": package_version("hasten"),
            "python": platform.python_version(),
            "machine": processor(),
            "source": self.source,
            "synthetic": self.synthetic,
            "solver": self.solver,
            "solver_version": package_version(package_of(self.solver) or "hasten"),
            "time_limit": self.time_limit,
            "runs": runs * self.seeds,
            "seed": self.seed,
            "seeds": self.seeds,
        }
        return found | {"about": about | found["about"] | {"answered_by": means[0]["answered_by"]}, "rows": means}

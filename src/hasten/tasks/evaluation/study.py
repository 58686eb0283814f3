"""The frame of every experiment: for each seed prepare, measure all methods in turns, and average over seeds.

The paper's experiment and the comparison of any task fill it in. `Study.run` returns plain data, for `results.json`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from hasten.errors import CorpusError
from hasten.solvers import package_of
from hasten.support.arrays import IntArray
from hasten.support.environment import package_version
from hasten.support.progress import Tell, tell_nobody
from hasten.tasks.evaluation.methods import Measuring
from hasten.tasks.evaluation.results import Measured, machine, over_seeds

P = TypeVar("P")  # what a seed prepares: trained models, test inputs and the solver's answers to them


@dataclass(frozen=True, kw_only=True)
class Study(ABC, Generic[P]):
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
    def prepare(self, seed: int, tell: Tell) -> tuple[P, IntArray]:
        """Trains models, and lets the ILP solver answer the test inputs; also returns the numbers of these inputs."""

    @abstractmethod
    def rows(self, prepared: P) -> list[Measured]:
        """Lets every method answer, timed in turns."""

    @abstractmethod
    def findings(self, prepared: P) -> dict[str, Any]:
        """Returns the other sections of the results, of the first seed; `about` has more facts."""

    @property
    def runs_each(self) -> int:
        """How often each seed measures a time."""
        return max(1, round(self.runs / self.seeds))

    def measuring(self, seed: int, tell: Tell) -> Measuring:
        """Returns how one seed measures."""
        return Measuring(self.solver, self.time_limit, self.runs_each, seed, tell)

    def run(self, tell: Tell = tell_nobody) -> dict[str, Any]:
        """Runs everything, and returns the content of `results.json`."""
        measured: list[list[Measured]] = []
        tests: list[IntArray] = []
        found: dict[str, Any] = {}
        for n in range(self.seeds):
            prepared, numbers = self.prepare(self.seed + n, _for_seed(tell, n, self.seeds))
            measured.append(self.rows(prepared))
            tests.append(numbers)
            found = found or self.findings(prepared)
        rows = over_seeds(measured, tests, self.seed)
        return found | {"about": self.about() | found["about"] | {"answered_by": rows[0]["answered_by"]}, "rows": rows}

    def about(self) -> dict[str, Any]:
        """Describes the run: versions and settings."""
        return {
            **machine(),
            "source": self.source,
            "synthetic": self.synthetic,
            "solver": self.solver,
            "solver_version": package_version(package_of(self.solver) or "hasten"),
            "time_limit": self.time_limit,
            "runs": self.runs_each * self.seeds,
            "seed": self.seed,
            "seeds": self.seeds,
        }


def _for_seed(tell: Tell, n: int, of: int) -> Tell:
    """Returns a function that tells the number of the seed before each stage, where there are several."""

    def tell_which(stage: str, share: float | None, note: str = "", /) -> None:
        tell(f"Seed {n + 1} of {of}: {stage}", share, note)

    return tell if of == 1 else tell_which

"""How answers are measured: F1 against a reference, validity, exact match, and CPU time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TypeVar

import numpy as np

from hasten.errors import SolverTooSmall
from hasten.model.batch import Batch
from hasten.model.solution import Solution, Solutions
from hasten.solvers import Solver
from hasten.support.arrays import BoolArray, IntArray
from hasten.tasks.entity_relation.names import Model

T = TypeVar("T")
REPEATS = 10  # of what takes milliseconds, so that one run is not all noise


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a results table; the keys of `results.json`. Times are of the whole test set."""

    model: Model
    beam: int | None
    theta: float | None
    entity_f1_gold: float
    relation_f1_gold: float
    entity_f1_ilp: float
    relation_f1_ilp: float
    validity: float
    exact_match: float
    proved: float
    solver_calls: int
    costs_computed: float
    time_ms: float
    time_ms_std: float
    features_ms: float | None  # None where features and inference are one
    inference_ms: float | None
    table: str = "ours"  # where the paper has it: "1", "2", or it is ours
    note: str = ""

    def as_dict(self) -> dict[str, object]:
        """Returns the row for JSON."""
        return asdict(self)


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


def timed(run: Callable[[], T], n_runs: int, repeats: int = REPEATS) -> tuple[T, Timing]:
    """Runs something once to warm up and then measures its CPU time `n_runs` times, each the mean of some repeats."""
    result = run()
    times = []
    for _ in range(n_runs):
        begin = time.process_time()
        for _ in range(repeats):
            result = run()
        times.append(1000.0 * (time.process_time() - begin) / repeats)
    return result, Timing(tuple(times))


def times_faster(ours: Callable[[], object], theirs: Callable[[], object], n: int) -> float:
    """Returns how many times faster ours is than theirs: the median of `n` ratios, run in turns on a busy machine."""
    ratios = []
    for _ in range(n):
        begin = time.process_time()
        ours()
        middle = time.process_time()
        theirs()
        ratios.append((time.process_time() - middle) / max(middle - begin, 1e-9))
    return float(np.median(ratios))


def solve_in_turn(
    solver: Solver, large: Solver, batch: Batch, progress: Callable[[float], None] = lambda share: None
) -> tuple[Solutions, float, int]:
    """Solves problem after problem; those that are too large for the solver's licence go to another, `large`.

    Returns the answers, CPU milliseconds, and how many were too large.
    """
    answers: list[Solution] = []
    n_too_large = 0
    problems = [batch[p] for p in range(len(batch))]
    begin = time.process_time()
    for n, problem in enumerate(problems):
        try:
            answers.append(solver.solve(problem))
        except SolverTooSmall:
            answers.append(large.solve(problem))
            n_too_large += 1
        if n % 50 == 0:
            progress(n / len(problems))
    elapsed = 1000.0 * (time.process_time() - begin)
    return Solutions.of(batch, answers), elapsed, n_too_large


def finite(theta: float) -> float | None:
    """Returns theta for JSON, which has no infinity: None stands for computing every cost."""
    return theta if math.isfinite(theta) else None


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """What answers are compared with: gold labels and the black box's own answers."""

    gold: IntArray  # flat
    ilp: Solutions
    is_entity: BoolArray  # (variables,)
    no_entity: int  # the labels that F1 does not count; -1 for none
    no_relation: int

    def f1(self, labels: IntArray, against: IntArray) -> tuple[float, float]:
        """Returns the micro F1 of entities and of relations, the labels for "nothing" not counted."""
        scores = []
        for chosen, nothing in ((self.is_entity, self.no_entity), (~self.is_entity, self.no_relation)):
            ours, theirs = labels[chosen], against[chosen]
            right = np.count_nonzero((ours == theirs) & (theirs != nothing))
            named = np.count_nonzero((ours != nothing) & (ours >= 0)) + np.count_nonzero(theirs != nothing)
            scores.append(2.0 * right / named if named else 1.0)
        return scores[0], scores[1]

    def exact(self, found: Solutions) -> BoolArray:
        """Which answers are the black box's: the same labels, or as good ones."""
        at = self.ilp.batch.variable_at
        same = np.logical_and.reduceat(np.append(found.labels == self.ilp.labels, True), at[:-1])
        with np.errstate(invalid="ignore"):
            close = np.abs(found.cost - self.ilp.cost) <= 1e-6 * np.maximum(1.0, np.abs(self.ilp.cost))
        return same | (found.valid & close)

    def row(
        self,
        model: Model,
        found: Solutions,
        features: Timing | None,
        inference: Timing,
        *,
        beam: int | None = None,
        theta: float | None = None,
        solver_calls: int = 0,
        table: str = "ours",
        note: str = "",
    ) -> Row:
        """Measures answers; `features` None means that the time of inference holds both."""
        total = inference if features is None else features + inference
        gold, ilp = self.f1(found.labels, self.gold), self.f1(found.labels, self.ilp.labels)
        return Row(
            model, beam, theta, *gold, *ilp,
            validity=float(found.valid.mean()),
            exact_match=float(self.exact(found).mean()),
            proved=float(found.proved.mean()),
            solver_calls=solver_calls,
            costs_computed=float(found.n_costs.sum() / max(1, found.batch.variable_at[-1])),
            time_ms=total.mean,
            time_ms_std=total.std,
            features_ms=None if features is None else features.mean,
            inference_ms=None if features is None else inference.mean,
            table=table,
            note=note,
        )  # fmt: skip

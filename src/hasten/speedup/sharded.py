"""Fitting a speedup to shards: the heuristic by parameter mixing, all decisions on what the shards held out, merged.

Whether weights should guide the search, how far it agrees with the black box, and theta are measured on the held-out
problems of all shards together: counts add up, so that this is what one process with all of them would find.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hasten.errors import ProblemError
from hasten.learning.mixing import Mixing, Mixture, Shards, fit_shards, merged
from hasten.learning.targets import Answers
from hasten.model.batch import Batch
from hasten.model.solution import Solutions
from hasten.speedup.audit import Agreement, Counters
from hasten.speedup.calibration import disagreeing
from hasten.speedup.guidance import ENOUGH
from hasten.speedup.mode import Mode
from hasten.speedup.state import Memory
from hasten.support.arrays import FloatArray

if TYPE_CHECKING:
    from hasten.speedup.predictor import Speedup

HELD = 0.1  # of each shard


@dataclass(frozen=True, slots=True, eq=False)
class Sharded:
    """What fitting to shards found: what was mixed, the problems held out, and how often the search agrees on them."""

    mixture: Mixture
    held_out: Batch  # nobody learned from them: `Speedup.calibrate` takes them
    agreement: Agreement
    guided: bool


@dataclass(frozen=True, slots=True, eq=False)
class Labelling:
    """Problems of a shard, answered by the black box where they are."""

    speedup: Speedup
    problems: Batch

    def __call__(self) -> tuple[Batch, Answers]:
        """Returns the problems with their answers."""
        batch = self.problems.resolved()
        return batch, self.speedup._exact(batch)[0]


def fit_to_shards(speedup: Speedup, shards: Shards, mixing: str = Mixing.EVENLY) -> Sharded:
    """Learns the heuristic of a speedup from shards, and forgets all that it counted."""
    if speedup.mode == Mode.LEARNED or speedup.gate is not None:
        raise ProblemError("Shards teach the heuristic alone, neither tables nor a gate. Use fit, or another mode.")
    learner = speedup._quiet_learner()
    mixture = fit_shards(learner, shards, mixing=mixing)
    held, labels = merged(shards.held_out())
    truth = Solutions.scored(held, labels) if len(held) else None

    def n_wrong(weights: FloatArray | None) -> int:
        if truth is None:
            return 0
        return int(disagreeing(speedup._search_by(weights)(held, n_jobs=speedup.n_jobs), truth).sum())

    wrong = {guided: n_wrong(learner.weights if guided else None) for guided in (True, False)}
    guided = not speedup.enforce if speedup.guided is None else speedup.guided
    if speedup.guided is None and len(held) >= ENOUGH // 10:
        guided = wrong[True] < wrong[False]
    n_labelled = learner.trace[0].n_examples + learner.state.n_skipped + len(held)
    counters = Counters(labelled=n_labelled, updates=learner.n_mistakes)
    with speedup._lock:
        speedup._kept = Memory(np.random.default_rng(speedup.seed), guided, learner, counters)
    return Sharded(mixture, held, Agreement.of(len(held) - wrong[guided], len(held)), guided)

"""The unlabeled sentences with the black box's answers, and what is learned from them (paper §4 and §5).

The answers are proved where that is possible and the solver's elsewhere. Most sentences teach learners; the
rest, which nothing was learned from, calibrate theta. No gold label is seen here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

import numpy as np

from hasten.learning.learner import Learner
from hasten.model.batch import Batch
from hasten.model.solution import Solutions
from hasten.proof.certifier import Certifier
from hasten.search.beam import BeamSearch
from hasten.solvers import make_solver
from hasten.solvers.failures import OnError
from hasten.speedup.black_box import solve_open
from hasten.speedup.calibration import Calibration, Calibrator
from hasten.support.progress import Tell
from hasten.tasks.entity_relation.tagger import better_of
from hasten.tasks.evaluation.methods import timed


@dataclass(frozen=True, slots=True, eq=False)
class LearningSet:
    """Unlabeled sentences as a batch with the black box's answers; how long proving these took."""

    batch: Batch
    answers: Solutions
    proving_ms: float
    epochs: int
    seed: int
    n_fresh: int  # sentences, the last ones, that the black box was not trained on
    _learners: dict[tuple[int, int, bool], Learner] = field(default_factory=dict)
    _chosen: dict[int, BeamSearch] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        batch: Batch,
        *,
        epochs: int,
        seed: int,
        tell: Tell,
        n_fresh: int | None = None,
        jobs: int = 1,
    ) -> LearningSet:
        """Lets the black box label sentences, which are then learned from in their order.

        The last `n_fresh`, by default all, are those that the black box was not trained on. `jobs` threads share the
        proofs; these are kernels, which no lock holds back.
        """
        tell("Labelling the unlabeled text", None)
        Certifier()(batch.select(np.arange(min(len(batch), 100))))  # loads the kernels
        proved, proving_ms = timed(lambda: Certifier()(batch, n_jobs=jobs))
        answers, _ = solve_open(
            proved,
            cache(partial(make_solver, "highs")),
            lambda done, of: tell("Labelling the unlabeled text", done / of),
            OnError.RAISE,
        )
        return cls(batch, answers, proving_ms, epochs, seed, len(batch) if n_fresh is None else n_fresh)

    @property
    def n_learned(self) -> int:
        """How many of the sentences are learned from; the rest, up to 5,000 fresh ones, are for calibration."""
        return len(self.batch) - min(len(self.batch) // 5, 5000, self.n_fresh)

    def learner(self, width: int, *, n: int | None = None, paper: bool = False) -> Learner:
        """Returns a learner that has learned from the first `n` sentences; with `paper`, by Algorithm 1 as listed."""
        n = self.n_learned if n is None else n
        key = (width, n, paper)
        if key not in self._learners:
            settings: dict[str, Any] = {"epochs": self.epochs, "progress": False}
            learner = (
                Learner.paper(width, **settings)
                if paper
                else Learner(width, enforce=False, seed=self.seed, **settings, look_ahead=False)
            )
            labels = self.answers.labels[: self.batch.variable_at[n]]
            self._learners[key] = learner.fit(self.batch.select(np.arange(n)), labels)
        return self._learners[key]

    def speedup(self, width: int, *, n: int | None = None, paper: bool = False) -> BeamSearch:
        """Returns the paper's speedup search: a beam guided by what such a learner learned, and by nothing else."""
        return BeamSearch(width, self.learner(width, n=n, paper=paper).weights, enforce=False)

    def chosen(self, width: int) -> BeamSearch:
        """Returns our speedup search, or the one by costs alone where that agrees with more answers held out."""
        if width not in self._chosen:
            held = np.arange(self.n_learned, len(self.batch))
            some, truth = self.batch.select(held), self.answers.select(held)
            learned = self.speedup(width)
            self._chosen[width] = better_of(learned, replace(learned, weights=None), some, truth)
        return self._chosen[width]

    def calibrate(self, search: BeamSearch) -> Calibration:
        """Chooses theta for a search on the sentences that nothing was learned from."""
        held_out = np.arange(self.n_learned, len(self.batch))
        return Calibrator(seed=self.seed).theta(search, self.batch.select(held_out))

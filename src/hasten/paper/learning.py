"""The unlabeled sentences with the black box's answers, and the speedups that learn from them (paper §4 and §5).

The answers are proved where that is possible and the solver's elsewhere. Most sentences teach; the rest calibrate
theta. No gold label is seen here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
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
from hasten.speedup.parts import Search
from hasten.speedup.predictor import Speedup
from hasten.support.progress import Tell, tell_nobody
from hasten.tasks.evaluation.measuring import timed

LABELLING = "Labelling the unlabeled text"
MOST_HELD_OUT = 5000


@dataclass(frozen=True, slots=True, eq=False)
class LearningSet:
    """Unlabeled sentences as a batch with the black box's answers; how long proving these took."""

    batch: Batch
    answers: Solutions
    proving_ms: float
    epochs: int
    seed: int
    n_fresh: int  # sentences, the last ones, that the black box was not trained on
    _learned: dict[tuple[int, int, bool], Speedup] = field(default_factory=dict)

    @classmethod
    def of(
        cls, batch: Batch, *, epochs: int, seed: int = 0, n_fresh: int | None = None, jobs: int = 1,
        time_limit: float = math.inf, tell: Tell = tell_nobody,
    ) -> LearningSet:  # fmt: skip
        """Lets the black box label sentences, which are then learned from in their order.

        The last `n_fresh`, by default all, are those that the black box was not trained on. `jobs` threads share the
        proofs; `time_limit` is for each call of the solver.
        """
        tell(LABELLING, None)
        Certifier()(batch.select(np.arange(min(len(batch), 100))))  # loads the kernels
        proved, proving_ms = timed(lambda: Certifier()(batch, n_jobs=jobs))
        solver = partial(make_solver, "highs", time_limit=None if math.isinf(time_limit) else time_limit)
        answers, _ = solve_open(proved, cache(solver), lambda done, of: tell(LABELLING, done / of), OnError.RAISE)
        return cls(batch, answers, proving_ms, epochs, seed, len(batch) if n_fresh is None else n_fresh)

    @property
    def n_learned(self) -> int:
        """How many of the sentences are learned from; the rest, up to 5,000 fresh ones, are held out."""
        return len(self.batch) - min(len(self.batch) // 5, MOST_HELD_OUT, self.n_fresh)

    def learned(self, width: int, *, n: int | None = None, paper: bool = False) -> Speedup:
        """Returns a speedup that learned from the first `n` sentences; with `paper`, by Algorithm 1 as listed.

        Ours tries on a tenth of them whether its weights should guide the search at all.
        """
        n = self.n_learned if n is None else n
        key = (width, n, paper)
        if key not in self._learned:
            how: dict[str, Any] = {"epochs": self.epochs, "progress": False}
            ours = Learner(width, enforce=False, look_ahead=False, seed=self.seed, **how)
            learner = Learner.paper(width, **how) if paper else ours
            guided = True if paper else None
            answer = Search(width, enforce=False, look_ahead=False, guided=guided, learner=learner)
            speedup = Speedup.paper(self.batch.structures[0].schema, answer=answer, seed=self.seed)
            labels = self.answers.labels[: self.batch.variable_at[n]]
            self._learned[key] = speedup.fit(self.batch.select(np.arange(n)), labels)
        return self._learned[key]

    def search(self, width: int, *, n: int | None = None, paper: bool = False) -> BeamSearch:
        """Returns the paper's speedup search: a beam guided by learned weights, and by nothing else."""
        return BeamSearch(width, self.learned(width, n=n, paper=paper).heuristic.weights, enforce=False)

    def chosen(self, width: int) -> BeamSearch:
        """Returns our speedup's search: guided by learned weights, or by costs alone where these did better."""
        search = self.learned(width).search
        assert isinstance(search, BeamSearch)
        return search

    def calibrate(self, search: BeamSearch) -> Calibration:
        """Chooses theta for a search on the sentences that nothing was learned from."""
        held_out = np.arange(self.n_learned, len(self.batch))
        return Calibrator(seed=self.seed).theta(search, self.batch.select(held_out))

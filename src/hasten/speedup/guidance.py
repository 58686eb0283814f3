"""Whether learned weights should guide a search: learn from most problems, try on the others.

A search that enforces the constraints, and looks ahead, may do better without them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hasten.learning.learner import Learner
from hasten.learning.targets import Answers, read_answers
from hasten.model.batch import Batch
from hasten.model.solution import Solutions
from hasten.search.searcher import Searcher
from hasten.speedup.calibration import disagreeing
from hasten.support.arrays import FloatArray

ENOUGH = 100  # problems from which on a tenth can be held out


def learn_and_try(
    learner: Learner,
    batch: Batch,
    answers: Answers,
    search: Callable[[FloatArray | None], Searcher],
    *,
    seed: int = 0,
    n_jobs: int = 1,
) -> bool:
    """Learns from all but a tenth of the problems; says if the search gets more of that tenth right.

    `search` gives the search with some weights, or with none.
    """
    labels, usable = read_answers(batch, answers)
    labels[np.repeat(np.isin(np.arange(len(batch)), usable, invert=True), batch.n_variables)] = -1
    held = np.sort(np.random.default_rng(seed).permutation(usable)[: len(usable) // 10])
    kept = np.setdiff1d(np.arange(len(batch)), held)
    learner.fit(batch.select(kept), labels[batch.places(kept)])
    some = batch.select(held)
    truth = Solutions.scored(some, labels[batch.places(held)])

    def n_wrong(weights: FloatArray | None) -> int:
        return int(disagreeing(search(weights)(some, n_jobs=n_jobs), truth).sum())

    return n_wrong(learner.weights) < n_wrong(None)

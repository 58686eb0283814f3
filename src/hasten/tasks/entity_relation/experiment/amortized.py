"""Amortized inference on the test sentences: the predecessor of the paper's idea, beside ours.

It remembers the black box's answers to unlabeled sentences, as a speedup learns from them, and answers a test sentence
only where a theorem proves that one of them is its answer (`hasten.speedup.amortized`); the rest is left to inference.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from hasten.model.solution import Solutions
from hasten.proof.certifier import Certifier
from hasten.speedup.amortized import Amortizer
from hasten.speedup.calibration import disagreeing
from hasten.support.progress import steps
from hasten.tasks.entity_relation.experiment.lessons import Lessons
from hasten.tasks.entity_relation.experiment.trial import Trial

MOST_FOR_CONES = 2000  # sentences that are remembered for cones, whose linear programs take long
TURNS = 5


def amortized(trial: Trial, lessons: Lessons) -> list[dict[str, Any]]:
    """Share answered, answers that are not the black box's, and CPU time of lookups, beside that of proofs."""
    found = []
    for name in steps(trial.tell, "Measuring amortized inference", ("exact", "margins", "cones")):
        n = min(lessons.n_learned, MOST_FOR_CONES) if name == "cones" else lessons.n_learned
        amortizer = Amortizer(margins=name == "margins", cones=name == "cones")
        amortizer.learn(lessons.answers.select(np.arange(n)))
        answers, lookup = _timed(lambda amortizer=amortizer: amortizer(trial.batch))  # type: ignore[misc]
        _, proof = _timed(lambda: Certifier()(trial.batch))
        wrong = disagreeing(answers, trial.reference.ilp) & answers.valid
        found.append(
            {
                "theorem": name,
                "learned_from": n,
                "remembered": len(amortizer),
                "answered": float(answers.valid.mean()),
                "wrong": int(wrong.sum()),
                "lookup_ms": lookup,
                "proof_ms": proof,
            }
        )
    return found


def _timed(run: Callable[[], Solutions]) -> tuple[Solutions, float]:
    """Returns what something found, and the median of its CPU milliseconds."""
    found, times = run(), []
    for _ in range(TURNS):
        begin = time.process_time()
        run()
        times.append(1000 * (time.process_time() - begin))
    return found, float(np.median(times))

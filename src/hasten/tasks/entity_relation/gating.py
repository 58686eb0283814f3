"""A gate for the relations of sentences: trained on the black box's answers, and kept only where it pays.

To guess a relation takes about as long as to compute the costs of the linear black box that comes with the package, so
there it rarely pays; whether it does is measured, on the sentences that calibrate it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hasten.learning.gate import Gate
from hasten.model.batch import Batch
from hasten.model.solution import Solutions
from hasten.proof.certifier import Certifier
from hasten.speedup.calibration import Calibration, Calibrator
from hasten.speedup.gated import GatedSearch
from hasten.support.arrays import IntArray
from hasten.tasks.entity_relation.scoring.black_box import LinearScorer
from hasten.tasks.entity_relation.scoring.cheap import relation_features
from hasten.tasks.entity_relation.scoring.text import Text

PAYS = 0.9  # of the time that computing every cost takes: what a gate may take at most
TURNS = 5  # in which both are timed, alternating


@dataclass(frozen=True, slots=True, eq=False)
class TrainedGate:
    """A gate for relations, how much doubt it allows and why, and what it takes of the time of a certified answer."""

    gate: Gate
    chosen: Calibration
    time: float

    @property
    def pays(self) -> bool:
        """Whether answers by it take less time than certified ones, at a risk that was met."""
        return self.chosen.met and self.chosen.max_doubt > 0 and self.time <= PAYS

    def __str__(self) -> str:
        chosen = self.chosen
        if not chosen.met:
            return f"No gate was within a risk of {chosen.risk:.2g} on {chosen.table[0].n:,} sentences held out."
        return (
            f"A gate computes {chosen.share:.0%} of the relations' costs, changes {chosen.changed:.2%} of the answers "
            f"(at most {chosen.limit:.2%}, with confidence {chosen.confidence:.0%}) and takes {self.time:.2f} of the "
            f"time of certified answers: {'search mode uses it' if self.pays else 'it does not pay, and is not used'}."
        )


def train_gate(
    scorer: LinearScorer,
    text: Text,
    batch: Batch,
    answers: Solutions,
    held: IntArray,
    *,
    risk: float,
    seed: int,
) -> TrainedGate:
    """Trains a gate on all sentences but those `held`, calibrates it on these, and times it on some of these."""
    kept = np.setdiff1d(np.arange(len(batch)), held)
    gate = Gate({"relation": relation_features(text)}, seed=seed).fit(batch.select(kept), answers.select(kept))
    chosen = Calibrator(risk).max_doubt(GatedSearch(gate), batch.select(held), answers.select(held))
    some = batch.select(held[:2000])
    search, ids = GatedSearch(gate, chosen.max_doubt), held[:2000]
    lazy = Batch.build(batch.structures, some.structure, scorer.lazy(text), ids)
    return TrainedGate(gate, chosen, _ratio(lambda: search(lazy), lambda: Certifier()(lazy)))


def _ratio(ours: Callable[[], object], theirs: Callable[[], object]) -> float:
    """Returns what ours takes of the CPU time of theirs: the median of some turns."""
    ratios = []
    for turn in range(TURNS + 1):
        begin = time.process_time()
        ours()
        middle = time.process_time()
        theirs()
        if turn:  # the first compiles and plans
            ratios.append((middle - begin) / max(time.process_time() - middle, 1e-9))
    return float(np.median(ratios))

"""The paper's experiment (§5), whole: train a black box, let it label unlabeled text, learn, compare.

70% of the labelled sentences train the black box, 30% test (`Trial`). Its answers on the unlabeled sentences,
found by proof and where that fails by the solver, teach the speedup classifier (`Lessons`). Every row of the
results is measured on the test sentences: accuracy against gold labels and against the black box, validity, and
CPU time in one thread with features included. `results.json` is what `run` returns; `report.py` draws it.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any

from hasten.errors import CorpusError
from hasten.model.batch import Batch
from hasten.model.solution import Solutions
from hasten.search.beam import BeamSearch, greedy
from hasten.search.constrained import ConstrainedSearch
from hasten.search.reduced import ReducedSearch
from hasten.solvers import package_of
from hasten.solvers.failures import OnError
from hasten.speedup.black_box import prove_or_solve
from hasten.support.environment import package_version, processor
from hasten.support.progress import Tell, steps, tell_nobody
from hasten.tasks.entity_relation.data.corpora import Corpora
from hasten.tasks.entity_relation.data.corpus import Sentence, split
from hasten.tasks.entity_relation.experiment import findings
from hasten.tasks.entity_relation.experiment.lessons import Lessons
from hasten.tasks.entity_relation.experiment.measure import Row, finite
from hasten.tasks.entity_relation.experiment.paper import PAPER_ROWS, PAPER_THETAS
from hasten.tasks.entity_relation.experiment.trial import Trial
from hasten.tasks.entity_relation.names import Model, Training
from hasten.tasks.entity_relation.scoring.training import train_black_box
from hasten.tasks.entity_relation.task import EntityRelationTask


@dataclass(frozen=True)
class Experiment:
    """What to run: labelled and unlabeled sentences, and how."""

    labelled: Sequence[Sentence]
    unlabeled: Sequence[Sentence]
    task: EntityRelationTask = field(default_factory=EntityRelationTask)
    black_box: str = Training.STRUCTURED
    solver: str = "highs"
    runs: int = 5
    seed: int = 0
    epochs: int = 5
    source: str = ""  # what the corpora are called in the report
    synthetic: bool = False

    def __post_init__(self) -> None:
        if self.black_box not in list(Training):
            raise CorpusError(f"A black box is {Training.choices()}, not {self.black_box!r}.")
        if self.runs < 1 or self.epochs < 1:
            raise CorpusError(f"Give at least one run and one epoch, not {self.runs} and {self.epochs}.")
        for what, sentences, least in (("labelled", self.labelled, 10), ("unlabeled", self.unlabeled, 10)):
            if len(sentences) < least:
                raise CorpusError(
                    f"Got {len(sentences)} {what} sentences that can be used; the experiment needs {least}. "
                    "Labelled ones have types and a relation, unlabeled ones two spans or more."
                )

    @classmethod
    def on(cls, corpora: Corpora, **settings: Any) -> Experiment:
        """Returns the experiment on these corpora."""
        return cls(corpora.labelled, corpora.unlabeled, source=corpora.source, synthetic=corpora.synthetic, **settings)

    def run(self, tell: Tell = tell_nobody) -> dict[str, Any]:
        """Runs everything and returns what `results.json` holds."""
        train, test = split(self.labelled, 0.7, self.seed)
        model = train_black_box(self.black_box, train, self.task, seed=self.seed, tell=tell)
        trial = Trial.of(self.task, model, test, solver=self.solver, runs=self.runs, tell=tell)
        lessons = Lessons.of(self.task, model, self.unlabeled, epochs=self.epochs, seed=self.seed, tell=tell)
        rows = measure_table_1(trial, lessons) + measure_ours(trial, lessons)
        table_2, calibrations = measure_table_2(trial, lessons)
        return {
            "about": self.about(trial, lessons),
            "rows": [row.as_dict() for row in rows + table_2],
            "paper": list(PAPER_ROWS),
            "calibration": calibrations,
            "theta_sweep": findings.theta_sweep(trial, lessons),
            "learning_curve": findings.learning_curve(trial, lessons),
            "by_size": findings.by_size(trial),
            "proofs": findings.proofs(trial, lessons),
            "structures": findings.structures(lessons),
            "weights": findings.weights(lessons),
            "examples": findings.examples(trial, lessons),
        }

    def about(self, trial: Trial, lessons: Lessons) -> dict[str, Any]:
        """Says what was run, on what."""
        n_entities = trial.text.n_entities
        return {
            "hasten": package_version("hasten"),
            "python": platform.python_version(),
            "machine": processor(),
            "source": self.source,
            "synthetic": self.synthetic,
            "black_box": self.black_box,
            "solver": self.solver,
            "solver_version": package_version(package_of(self.solver) or "hasten"),
            "n_learned": lessons.n_learned,
            "runs": self.runs,
            "seed": self.seed,
            "n_train": len(self.labelled) - len(trial.sentences),
            "n_test": len(trial.sentences),
            "n_unlabeled": len(self.unlabeled),
            "entities_per_sentence": float(n_entities.mean()),
            "max_entities": int(n_entities.max()),
            "entity_labels": list(self.task.entity_labels),
            "relation_labels": list(self.task.relation_labels),
            "cost_scale": trial.scale,
            "proved_unlabeled": float(lessons.answers.proved.mean()),
            "label_unlabeled_ms": lessons.proving.mean,
            "too_large_for_solver": trial.n_too_large,
        }


def measure_table_1(trial: Trial, lessons: Lessons) -> list[Row]:
    """The paper's Table 1, with its algorithm as listed."""

    def speedup(width: int) -> Row:
        search, note = lessons.speedup(width, paper=True), "Algorithm 1: step 1, last weights"
        return trial.measure(Model.PAPER_SPEEDUP, search, learned=True, beam=width, table="1", note=note)

    return _measured(
        trial,
        "Measuring the paper's Table 1",
        lambda: trial.measure_ilp(table="1"),
        lambda: trial.measure(Model.GREEDY, greedy(), table="1", note="greedy, constraints ignored"),
        lambda: trial.measure(Model.CONSTRAINED, ConstrainedSearch(), table="1", note="arc consistency"),
        *(partial(speedup, width) for width in (1, 2)),
    )


def measure_ours(trial: Trial, lessons: Lessons) -> list[Row]:
    """Our rows: better learning, enforced tables, look-ahead, elimination, proof."""

    def speedup(width: int) -> Row:
        search, note = lessons.speedup(width), "averaged weights, step from the costs"
        return trial.measure(Model.SPEEDUP, search, learned=True, beam=width, note=note)

    def enforced(width: int) -> Row:
        return trial.measure(Model.ENFORCED, BeamSearch(width), beam=width, note="forbidden tuples left out")

    def reduced(width: int) -> Row:
        return trial.measure(Model.REDUCED, ReducedSearch(width), beam=width, note="over what elimination leaves")

    def certified() -> Row:
        calls: list[int] = []

        def search(batch: Batch) -> Solutions:
            answers, n_calls = prove_or_solve(batch, lambda: trial.solver, on_error=OnError.RAISE)
            calls.append(n_calls)
            return answers

        row = trial.measure(Model.CERTIFIED, search, note="proved, or solved")
        return replace(row, solver_calls=calls[-1])

    return _measured(
        trial,
        "Measuring our rows",
        *(partial(speedup, width) for width in (1, 2)),
        *(partial(enforced, width) for width in (1, 2, 4)),
        lambda: trial.measure(Model.LOOK_AHEAD, BeamSearch(2, look_ahead=True), beam=2),
        *(partial(reduced, width) for width in (1, 2)),
        certified,
    )


def _measured(trial: Trial, stage: str, *rows: Callable[[], Row]) -> list[Row]:
    return [measure() for measure in steps(trial.tell, stage, rows)]


def measure_table_2(trial: Trial, lessons: Lessons) -> tuple[list[Row], list[dict[str, Any]]]:
    """The paper's Table 2, costs skipped by theta: the paper's, scaled to our costs, and ours; and how ours was chosen.

    Enforced tables already say what learned weights would, so such a search has none.
    """
    rows, calibrations = [], []
    for width, theta in steps(trial.tell, "Measuring the paper's Table 2", list(product((1, 2), PAPER_THETAS))):
        search = replace(lessons.speedup(width), theta=theta * trial.scale)
        note = f"theta {theta:g} of the paper times the cost scale"
        rows.append(trial.measure_lazily(Model.SPEEDUP, search, table="2", note=note))
    for width, enforce in steps(trial.tell, "Calibrating theta", list(product((1, 2, 4), (False, True)))):
        search = BeamSearch(width, enforce=True) if enforce else lessons.speedup(width)
        chosen = lessons.calibrate(search)
        search = replace(search, theta=chosen.theta)
        changed_test = trial.changed(search)
        note = f"θ changed {chosen.changed:.1%} of unlabeled answers, {changed_test:.1%} here"
        rows.append(trial.measure_lazily(Model.calibrated(enforce), search, table="2", note=note))
        calibrations.append(
            {
                "width": width,
                "enforce": enforce,
                "theta": finite(chosen.theta),
                "changed": chosen.changed,
                "changed_test": changed_test,
                "limit": chosen.limit,
                "share": chosen.share,
                "times_faster_than_greedy": trial.times_faster_than_greedy(search),
            }
        )
    return rows, calibrations

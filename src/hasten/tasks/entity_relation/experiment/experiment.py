"""The paper's experiment (§5), whole: train a black box, let it label unlabeled text, learn, compare.

70% of the labelled sentences train the black box, 30% test (`Trial`), or as published lists say (`Split`). Its answers
on the unlabeled sentences, found by proof and where that fails by the solver, teach the speedup classifier
(`Lessons`). Every row of the results is measured on the test sentences: accuracy against gold labels and against the
black box, validity, and CPU time in one thread with features included (`contenders`). With several seeds all of this is
done for each: another split, another training, another order of the unlabeled text. `results.json` is what `run`
returns; `report.py` draws it.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from hasten.errors import CorpusError
from hasten.solvers import package_of
from hasten.support.environment import package_version, processor
from hasten.support.progress import Tell, tell_nobody
from hasten.tasks.entity_relation.data.corpora import Corpora
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.data.split import Split, parts_of
from hasten.tasks.entity_relation.experiment import contenders, findings
from hasten.tasks.entity_relation.experiment.amortized import amortized
from hasten.tasks.entity_relation.experiment.lessons import Lessons
from hasten.tasks.entity_relation.experiment.measure import Measured, Row, over_seeds
from hasten.tasks.entity_relation.experiment.paper import PAPER_ROWS, is_papers_corpus
from hasten.tasks.entity_relation.experiment.trial import Trial
from hasten.tasks.entity_relation.names import Model, Training
from hasten.tasks.entity_relation.scoring.text import Text, intern
from hasten.tasks.entity_relation.scoring.training import train_black_box
from hasten.tasks.entity_relation.task import EntityRelationTask
from hasten.tasks.experiment.resampling import Resamples

LEAST = 10  # sentences of each kind


@dataclass(frozen=True)
class Experiment:
    """What to run: labelled and unlabeled sentences, and how."""

    labelled: Sequence[Sentence]
    unlabeled: Sequence[Sentence]
    task: EntityRelationTask = field(default_factory=EntityRelationTask)
    black_box: str = Training.STRUCTURED
    solver: str = "highs"
    runs: int = 5  # of each measurement, shared by the seeds; each has one at least
    seed: int = 0
    seeds: int = 1  # how many, from `seed` on
    epochs: int = 5  # of learning
    split: Split | None = None  # as published; drawn if None
    source: str = ""  # what the corpora are called in the report
    synthetic: bool = False

    def __post_init__(self) -> None:
        if self.black_box not in list(Training):
            raise CorpusError(f"A black box is {Training.choices()}, not {self.black_box!r}.")
        for what, n in (("run", self.runs), ("epoch", self.epochs), ("seed", self.seeds)):
            if n < 1:
                raise CorpusError(f"Give at least one {what}, not {n}.")
        for what, sentences in (("labelled", self.labelled), ("unlabeled", self.unlabeled)):
            if len(sentences) < LEAST:
                raise CorpusError(
                    f"Got {len(sentences)} {what} sentences that can be used; the experiment needs {LEAST}. "
                    "Labelled ones have types and a relation, unlabeled ones two spans or more."
                )
        self._check_labels()
        if self.split is not None:
            self.split.apply(self.labelled)  # ids that are not there are refused now

    @classmethod
    def on(cls, corpora: Corpora, *, induce: bool = False, **settings: Any) -> Experiment:
        """Returns the experiment on these corpora; with `induce`, the task has their labels and argument types."""
        if induce:
            settings["task"] = EntityRelationTask.induced(corpora.labelled)
        return cls(corpora.labelled, corpora.unlabeled, source=corpora.source, synthetic=corpora.synthetic, **settings)

    def _check_labels(self) -> None:
        """Refuses labels that the task does not have."""
        types, relations = set(self.task.entity_labels), set(self.task.arguments)
        for sentence in self.labelled:
            unknown = [name for name in sentence.types or () if name not in types]
            unknown += [name for _, _, name in sentence.relations or () if name not in relations]
            if unknown:
                raise CorpusError(
                    f"Sentence {sentence.id!r} has the label {unknown[0]!r}, which the task lacks: its types are "
                    f"{', '.join(self.task.entity_labels)}, its relations {', '.join(self.task.arguments)}. To take "
                    "the labels from the corpus: --induce on the command line, induce=True in Python."
                )

    @property
    def runs_each(self) -> int:
        """How often each seed measures a time."""
        return max(1, round(self.runs / self.seeds))

    @cached_property
    def text(self) -> Text:
        """The unlabeled text as numbers: they depend on no black box, so all seeds share them."""
        return intern(self.unlabeled)

    def run(self, tell: Tell = tell_nobody) -> dict[str, Any]:
        """Runs everything and returns what `results.json` holds. Curves, sizes and examples are of the first seed."""
        measured: list[list[Measured]] = []
        tests: list[list[int]] = []
        found: dict[str, Any] = {}
        for seed in range(self.seed, self.seed + self.seeds):
            trial, lessons, test = self.trial(seed, _for_seed(tell, seed - self.seed, self.seeds))
            chosen = contenders.calibrate_all(trial, lessons)
            every = [
                *contenders.table_1(trial, lessons),
                *contenders.table_2(trial, lessons),
                *contenders.calibrated(trial, chosen),
                *contenders.ours(trial),
            ]
            measured.append(trial.measure(every, "Measuring all rows in turns"))
            tests.append(test)
            if seed == self.seed:
                found = self.findings(trial, lessons) | {"calibration": [each.as_dict() for each in chosen]}
        resamples = Resamples.of([np.array(test) for test in tests], self.seed)
        rows = [over_seeds(each, resamples) for each in zip(*measured, strict=True)]
        compare_with_greedy(found["calibration"], rows)
        found["about"]["answered_by"] = dict(rows[0].answered_by)
        return found | {"rows": [row.as_dict() for row in rows]}

    def trial(self, seed: int, tell: Tell) -> tuple[Trial, Lessons, list[int]]:
        """Trains a black box; returns the test sentences, what is learned, and the numbers of these sentences."""
        train, test = parts_of(self.labelled, self.split, seed)
        sentences = [self.labelled[n] for n in train]
        model = train_black_box(self.black_box, sentences, self.task, seed=seed, tell=tell)
        trial = Trial.of(
            self.task,
            model,
            [self.labelled[n] for n in test],
            solver=self.solver,
            runs=self.runs_each,
            seed=seed,
            tell=tell,
        )
        order = None if seed == self.seed else np.random.default_rng(seed).permutation(len(self.unlabeled))
        tell("Scoring the unlabeled text", None)
        lessons = Lessons.of(self.task, model, self.text, epochs=self.epochs, seed=seed, tell=tell, order=order)
        return trial, lessons, test

    def findings(self, trial: Trial, lessons: Lessons) -> dict[str, Any]:
        """Returns what the report shows beyond its tables."""
        papers = not self.synthetic and is_papers_corpus(self.labelled)
        return {
            "about": self.about(trial, lessons) | {"papers_corpus": papers},
            "paper": [dict(row) for row in PAPER_ROWS] if papers else [],
            "as_printed": findings.as_printed(trial, lessons),
            "theta_sweep": findings.theta_sweep(trial, lessons),
            "learning_curve": findings.learning_curve(trial, lessons),
            "baselines": findings.baselines(trial),
            "by_size": findings.by_size(trial),
            "proofs": findings.proofs(trial, lessons),
            "structures": findings.structures(lessons),
            "amortized": amortized(trial, lessons),
            "weights": findings.weights(lessons),
            "examples": findings.examples(trial, lessons),
        }

    def about(self, trial: Trial, lessons: Lessons) -> dict[str, Any]:
        """Says what was run, on what; what is measured here is of the first seed."""
        n_entities = trial.text.n_entities
        n_train, n_test = (len(part) for part in parts_of(self.labelled, self.split, self.seed))
        return {
            "hasten": package_version("hasten"),
            "python": platform.python_version(),
            "machine": processor(),
            "source": self.source,
            "synthetic": self.synthetic,
            "black_box": self.black_box,
            "solver": self.solver,
            "solver_version": package_version(package_of(self.solver) or "hasten"),
            "runs": self.runs_each * self.seeds,
            "seed": self.seed,
            "seeds": self.seeds,
            "split": list(self.split.files) if self.split else [],
            "epochs": self.epochs,
            "n_train": n_train,
            "n_test": n_test,
            "n_left_out": len(self.labelled) - n_train - n_test,
            "n_unlabeled": len(self.unlabeled),
            "n_learned": lessons.n_learned,
            "entities_per_sentence": float(n_entities.mean()),
            "max_entities": int(n_entities.max()),
            "entity_labels": list(self.task.entity_labels),
            "relation_labels": list(self.task.relation_labels),
            "cost_scale": trial.scale,
            "proved_unlabeled": float(lessons.answers.proved.mean()),
            "label_unlabeled_ms": lessons.proving_ms,
        }


def compare_with_greedy(calibrations: Sequence[dict[str, Any]], rows: Sequence[Row]) -> None:
    """Adds how many times as fast as greedy search each calibrated search is: by their rows, which took turns."""
    times = {(row.model, row.beam): row.time_ms for row in rows if row.table != "2" or row.relative_theta is None}
    for each in calibrations:
        mine = times[Model.calibrated(each["enforce"]), each["width"]]
        each["times_faster_than_greedy"] = times[Model.GREEDY, None] / mine if mine else None


def _for_seed(tell: Tell, n: int, of: int) -> Tell:
    """Returns what tells, before each stage, which seed it is of, where there are several."""
    if of == 1:
        return tell

    def tell_which(stage: str, share: float | None, note: str = "", /) -> None:
        tell(f"Seed {n + 1} of {of}: {stage}", share, note)

    return tell_which

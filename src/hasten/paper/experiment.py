"""The paper's experiment (§5): train a black box, let it label unlabeled text, learn, compare.

70% of the labelled sentences train the black box, 30% test (`TestSet`), or as published lists or files say (`Split`).
Its answers on the unlabeled sentences and on those that trained it, found by proof and where that fails by the solver,
teach the speedup classifier (`LearningSet`); where nothing is unlabeled, a fifth of the training sentences is set aside
for that. On the paper's corpus it is the unlabeled text alone, as in the paper. Every row of the results is measured on
the test sentences: accuracy against gold labels and against the black box, validity, and CPU time in one thread with
features included (`methods`). With several seeds all of this is done for each: another split, another training,
another order of the unlabeled text. `run` returns the content of `results.json`; `report.py` draws it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from hasten.errors import CorpusError
from hasten.paper import analyses, methods
from hasten.paper.learning import LearningSet
from hasten.paper.methods import PAPER_ROWS
from hasten.paper.test_set import SCORES, SentenceTestSet
from hasten.solvers import package_of
from hasten.support.environment import package_version
from hasten.support.progress import Tell, tell_nobody
from hasten.tasks.entity_relation.data.corpora import Corpora, is_papers_corpus
from hasten.tasks.entity_relation.data.corpus import Sentence, split
from hasten.tasks.entity_relation.data.split import Files, Split, parts_of
from hasten.tasks.entity_relation.names import Model, Training
from hasten.tasks.entity_relation.scoring.gold import Unreachable
from hasten.tasks.entity_relation.scoring.text import Text, intern
from hasten.tasks.entity_relation.scoring.training import train_black_box
from hasten.tasks.entity_relation.task import EntityRelationTask
from hasten.tasks.evaluation.methods import Measuring
from hasten.tasks.evaluation.results import Measured, Row, machine, over_seeds

LEAST = 10  # sentences of each kind
TAUGHT = 0.8  # of the training sentences: what the black box is trained on where no text is unlabeled


@dataclass(frozen=True)
class Experiment:
    """Labelled and unlabeled sentences, and how to run the experiment on them."""

    labelled: Sequence[Sentence]
    unlabeled: Sequence[Sentence]
    task: EntityRelationTask = field(default_factory=EntityRelationTask)
    black_box: str = Training.STRUCTURED
    solver: str = "highs"
    time_limit: float = 60.0  # seconds of each call of the solver
    runs: int = 5  # of each measurement, shared by the seeds; each has one at least
    seed: int = 0
    seeds: int = 1  # how many, from `seed` on
    epochs: int = 5  # of learning
    jobs: int = 1  # threads that label the unlabeled text; everything that is compared is timed in one
    split: Split | Files | None = None  # as published; drawn if None
    source: str = ""  # what the corpora are called in the report
    synthetic: bool = False
    induce: bool = False  # take each seed's task from its training sentences

    def __post_init__(self) -> None:
        if self.black_box not in list(Training):
            raise CorpusError(f"A black box is {Training.choices()}, not {self.black_box!r}.")
        for what, n in (("run", self.runs), ("epoch", self.epochs), ("seed", self.seeds)):
            if n < 1:
                raise CorpusError(f"Give at least one {what}, not {n}.")
        least = LEAST if self.unlabeled else 2 * LEAST
        if len(self.labelled) < least:
            raise CorpusError(
                f"Got {len(self.labelled)} labelled sentences that can be used; the experiment needs {least}"
                f"{'' if self.unlabeled else ', without unlabeled ones'}. They have spans, types and relations."
            )
        if 0 < len(self.unlabeled) < LEAST:
            raise CorpusError(
                f"Got {len(self.unlabeled)} unlabeled sentences that can be used; the experiment needs {LEAST}, or "
                "none, to set some of the labelled ones aside. They have two spans or more."
            )
        self._check_labels()
        if self.split is not None:
            self.split.apply(self.labelled)  # ids that are not there are refused now

    @classmethod
    def on(
        cls, corpora: Corpora, *, induce: bool | None = None, no_relation: str | None = None, **settings: Any
    ) -> Experiment:
        """Returns the experiment on these corpora.

        With `induce`, the task has their labels and argument types; None does so where the paper's task lacks a label.
        """
        settings.setdefault("split", None)
        if corpora.files is not None:
            if settings["split"] is not None:
                raise CorpusError("The test sentences come in a file of their own. Leave out --split, or that file.")
            settings["split"] = corpora.files
        task = EntityRelationTask.fitting(corpora.labelled, induce=induce, no_relation=no_relation)
        return cls(
            corpora.labelled,
            corpora.unlabeled,
            task=task,
            induce=bool(induce) or not task.is_papers,
            source=corpora.source,
            synthetic=corpora.synthetic,
            **settings,
        )

    def _check_labels(self) -> None:
        """Refuses labels that the task does not have."""
        if unknown := self.task.lacks(self.labelled):
            raise CorpusError(
                f"Sentence {unknown[0]!r} has the label {unknown[1]!r}, which the task lacks: its types are "
                f"{', '.join(self.task.entity_labels)}, its relations {', '.join(self.task.arguments)}. To take "
                "the labels from the corpus: --induce on the command line, induce=True in Python."
            )

    @property
    def runs_each(self) -> int:
        """How often each seed measures a time."""
        return max(1, round(self.runs / self.seeds))

    @cached_property
    def papers(self) -> bool:
        """Whether this is the paper's own corpus."""
        return not self.synthetic and is_papers_corpus(self.labelled)

    @cached_property
    def text(self) -> Text:
        """The unlabeled text as numbers: they depend on no black box, so all seeds share them."""
        return intern(self.unlabeled)

    def run(self, tell: Tell = tell_nobody) -> dict[str, Any]:
        """Runs everything and returns `results.json`. Curves, sizes and examples are of the first seed."""
        measured: list[list[Measured]] = []
        tests: list[Any] = []
        found: dict[str, Any] = {}
        for seed in range(self.seed, self.seed + self.seeds):
            test_set, learning_set, test = self.prepare(seed, _for_seed(tell, seed - self.seed, self.seeds))
            test_set.how.tell("Learning the speedups", None)
            calibrated, chosen = methods.calibrated(test_set, learning_set)
            every = [
                *methods.table_1(test_set, learning_set),
                *methods.table_2(test_set, learning_set),
                *calibrated,
                *methods.ours(test_set),
            ]
            measured.append(test_set.measure(every, "Measuring all rows in turns"))
            tests.append(np.array(test))
            if seed == self.seed:
                found = self.findings(test_set, learning_set) | {"calibration": chosen}
        rows = over_seeds(measured, tests, SCORES, self.seed)
        compare_with_greedy(found["calibration"], rows)
        found["about"]["answered_by"] = rows[0]["answered_by"]
        return found | {"rows": rows}

    def prepare(self, seed: int, tell: Tell) -> tuple[SentenceTestSet, LearningSet, list[int]]:
        """Trains a black box; returns the test sentences, the learning set, and the numbers of the test sentences."""
        parts = parts_of(self.labelled, self.split, seed)
        sentences = [self.labelled[n] for n in parts.train]
        taught, fresh = (sentences, self.unlabeled) if self.unlabeled else split(sentences, TAUGHT, seed)
        task = EntityRelationTask.induced(taught, no_relation=self.task.no_relation) if self.induce else self.task
        model = train_black_box(self.black_box, taught, task, seed=seed, tell=tell)
        how = Measuring(self.solver, self.time_limit, self.runs_each, seed, tell)
        test_set = SentenceTestSet.of(task, model, [self.labelled[n] for n in parts.test], how)
        tell("Scoring the unlabeled text", None)
        drawn = np.random.default_rng(seed)
        if self.papers:
            text, order = self.text, None if seed == self.seed else drawn.permutation(len(self.unlabeled))
        else:  # sentences that the black box was not trained on come last: they calibrate
            text, n = intern([*taught, *fresh]), len(taught)
            order = np.concatenate([drawn.permutation(n), n + drawn.permutation(len(fresh))])
        batch = task.batch(text.n_entities, model.costs(text)[0])
        learning_set = LearningSet.of(
            batch if order is None else batch.select(order),
            epochs=self.epochs,
            seed=seed,
            n_fresh=len(fresh),
            jobs=self.jobs,
            time_limit=self.time_limit,
            tell=tell,
        )
        return test_set, learning_set, parts.test

    def findings(self, test_set: SentenceTestSet, learning_set: LearningSet) -> dict[str, Any]:
        """Returns the sections of the report beyond its tables."""
        return {
            "about": self.about(test_set, learning_set) | {"papers_corpus": self.papers},
            "paper": [dict(row) for row in PAPER_ROWS] if self.papers else [],
            "theta_sweep": analyses.theta_sweep(test_set, learning_set),
            "learning_curve": analyses.learning_curve(test_set, learning_set),
            "baselines": analyses.baselines(test_set),
            "by_size": analyses.by_size(test_set),
            "proofs": analyses.proofs(test_set, learning_set),
            "structures": analyses.structures(learning_set),
            "amortized": analyses.amortized(test_set, learning_set),
            "weights": analyses.weights(learning_set),
            "examples": analyses.examples(test_set, learning_set),
        }

    def about(self, test_set: SentenceTestSet, learning_set: LearningSet) -> dict[str, Any]:
        """Describes the run: versions, settings and sizes; measured figures are of the first seed."""
        n_entities = test_set.text.n_entities
        train, test, _ = parts_of(self.labelled, self.split, self.seed)
        unreachable = Unreachable.of([self.labelled[n] for n in test], test_set.task)
        return {
            **machine(),
            "source": self.source,
            "synthetic": self.synthetic,
            "black_box": self.black_box,
            "solver": self.solver,
            "solver_version": package_version(package_of(self.solver) or "hasten"),
            "time_limit": self.time_limit,
            "runs": self.runs_each * self.seeds,
            "seed": self.seed,
            "seeds": self.seeds,
            "split": list(self.split.files) if self.split else [],
            "epochs": self.epochs,
            "n_train": len(train) if self.unlabeled else len(train) - learning_set.n_fresh,
            "n_test": len(test),
            "n_left_out": len(self.labelled) - len(train) - len(test),
            "n_unlabeled": len(learning_set.batch),
            "n_fresh": learning_set.n_fresh,
            "n_learned": learning_set.n_learned,
            "entities_per_sentence": float(n_entities.mean()),
            "max_entities": int(n_entities.max()),
            "entity_labels": list(test_set.task.entity_labels),
            "relation_labels": list(test_set.task.relation_labels),
            "induced": self.induce,
            "held_out": not self.unlabeled,
            "unreachable": unreachable.as_dict() | {"in_words": str(unreachable)},
            "cost_scale": test_set.scale,
            "proved_unlabeled": float(learning_set.answers.proved.mean()),
            "label_unlabeled_ms": learning_set.proving_ms,
        }


def compare_with_greedy(calibrations: Sequence[Row], rows: Sequence[Row]) -> None:
    """Adds how many times as fast as greedy search each calibrated search is: by their rows, which took turns."""
    times = {
        (row["model"], row["beam"]): row["time_ms"]
        for row in rows
        if row["table"] != "2" or row["relative_theta"] is None
    }
    for each in calibrations:
        mine = times[Model.calibrated(each["enforce"]), each["width"]]
        each["times_faster_than_greedy"] = times[Model.GREEDY, None] / mine if mine else None


def _for_seed(tell: Tell, n: int, of: int) -> Tell:
    """Returns a function that tells the number of the seed before each stage, where there are several."""
    if of == 1:
        return tell

    def tell_which(stage: str, share: float | None, note: str = "", /) -> None:
        tell(f"Seed {n + 1} of {of}: {stage}", share, note)

    return tell_which

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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from hasten.errors import CorpusError
from hasten.paper import analyses, methods
from hasten.paper.methods import PAPER_ROWS, LearningSet, SentenceTestSet
from hasten.support.arrays import IntArray
from hasten.tasks.entity_relation.data.corpora import Corpora, Files, Split, is_papers_corpus, parts_of
from hasten.tasks.entity_relation.data.corpus import Sentence, split
from hasten.tasks.entity_relation.extraction import train_black_box
from hasten.tasks.entity_relation.scoring.gold import Unreachable
from hasten.tasks.entity_relation.task import BlackBox, EntityRelationTask
from hasten.tasks.evaluation.study import Measured, Measuring, Study

LEAST = 10  # sentences of each kind
TAUGHT = 0.8  # of the training sentences: what the black box is trained on where no text is unlabeled


@dataclass(frozen=True)
class Experiment(Study):
    """Labelled and unlabeled sentences, and how to run the experiment on them."""

    labelled: Sequence[Sentence]
    unlabeled: Sequence[Sentence]
    task: EntityRelationTask = field(default_factory=EntityRelationTask)
    black_box: str = BlackBox.STRUCTURED
    epochs: int = 5  # of learning
    jobs: int = 1  # threads that label the unlabeled text; everything that is compared is timed in one
    split: Split | Files | None = None  # as published; drawn if None
    induce: bool = False  # take each seed's task from its training sentences

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.black_box not in list(BlackBox):
            raise CorpusError(f"A black box is {BlackBox.choices()}, not {self.black_box!r}.")
        if self.epochs < 1:
            raise CorpusError(f"Give at least one epoch, not {self.epochs}.")
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
        if unknown := self.task.lacks(self.labelled):
            raise CorpusError(unknown)
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

    @cached_property
    def papers(self) -> bool:
        """Whether this is the paper's own corpus."""
        return not self.synthetic and is_papers_corpus(self.labelled)

    def once(self, how: Measuring) -> tuple[list[Measured], IntArray, Callable[[], dict[str, Any]]]:
        """Trains a black box, lets it label the unlabeled text, and measures every row, all timed in turns."""
        seed, progress = how.seed, how.progress
        parts = parts_of(self.labelled, self.split, seed)
        sentences = [self.labelled[n] for n in parts.train]
        taught, fresh = (sentences, self.unlabeled) if self.unlabeled else split(sentences, TAUGHT, seed)
        task = EntityRelationTask.induced(taught, no_relation=self.task.no_relation) if self.induce else self.task
        model = train_black_box(self.black_box, taught, task, seed=seed, progress=progress)
        test_set = SentenceTestSet.of(task, model, [self.labelled[n] for n in parts.test], how)
        progress("Scoring the unlabeled text", None)
        drawn = np.random.default_rng(seed)
        if self.papers:
            text = model.read(self.unlabeled)
            order = None if seed == self.seed else drawn.permutation(len(self.unlabeled))
        else:  # sentences that the black box was not trained on come last: they calibrate
            text, n = model.read([*taught, *fresh]), len(taught)
            order = np.concatenate([drawn.permutation(n), n + drawn.permutation(len(fresh))])
        batch = task.batch(text.n_entities, model.costs(text)[0])
        learning_set = LearningSet.of(
            batch if order is None else batch.select(order),
            epochs=self.epochs,
            seed=seed,
            n_fresh=len(fresh),
            jobs=self.jobs,
            time_limit=self.time_limit,
            progress=progress,
        )
        progress("Learning the speedups", None)
        every = [
            *methods.table_1(test_set, learning_set),
            *methods.table_2(test_set, learning_set),
            *methods.ours(test_set),
        ]

        def findings() -> dict[str, Any]:
            return {
                "about": self._facts(test_set, learning_set),
                "paper": [dict(row) for row in PAPER_ROWS] if self.papers else [],
                "theta_sweep": analyses.theta_sweep(test_set, learning_set),
                "learning_curve": analyses.learning_curve(test_set, learning_set),
                "by_size": analyses.by_size(test_set),
                "proofs": analyses.proofs(test_set, learning_set),
                "weights": analyses.weights(learning_set),
                "examples": analyses.examples(test_set, learning_set),
            }

        return test_set.measure(every, "Measuring all rows in turns"), np.array(parts.test), findings

    def _facts(self, test_set: SentenceTestSet, learning_set: LearningSet) -> dict[str, Any]:
        """Describes corpora and sizes; measured figures are of the first seed."""
        train, test, _ = parts_of(self.labelled, self.split, self.seed)
        unreachable = Unreachable.of([self.labelled[n] for n in test], test_set.task)
        return {
            "black_box": self.black_box,
            "papers_corpus": self.papers,
            "split": list(self.split.files) if self.split else [],
            "epochs": self.epochs,
            "n_train": len(train) if self.unlabeled else len(train) - learning_set.n_fresh,
            "n_test": len(test),
            "n_unlabeled": len(learning_set.batch),
            "n_learned": learning_set.n_learned,
            "entity_labels": list(test_set.task.entity_labels),
            "relation_labels": list(test_set.task.relation_labels),
            "unreachable": unreachable.as_dict(),
            "cost_scale": test_set.scale,
            "proved_unlabeled": float(learning_set.answers.proved.mean()),
        }

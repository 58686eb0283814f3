"""Problems from text: the test sentences of a labelled corpus, with the costs of models trained on the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hasten.bench.families import TASK, sentence_problems
from hasten.errors import CorpusError
from hasten.model.problem import Problem
from hasten.support.progress import tell_nobody
from hasten.tasks.entity_relation.data.corpora import Corpora
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.data.split import Split, parts_of
from hasten.tasks.entity_relation.names import Training
from hasten.tasks.entity_relation.scoring.text import intern
from hasten.tasks.entity_relation.scoring.training import train_black_box
from hasten.tasks.entity_relation.task import EntityRelationTask


@dataclass(frozen=True, slots=True)
class Source:
    """A labelled corpus: who trains and who tests, and the task that its labels make."""

    train: Sequence[Sentence]
    test: Sequence[Sentence]
    task: EntityRelationTask = TASK

    @classmethod
    def of(
        cls,
        corpora: Corpora,
        lists: Split | None = None,
        *,
        induce: bool | None = None,
        no_relation: str | None = None,
        seed: int = 0,
    ) -> Source:
        """Returns the corpus as files or lists divide it, or drawn; labels that the paper lacks are its own."""
        if lists is not None and corpora.files is not None:
            raise CorpusError("The test sentences come in a file of their own. Leave out --split, or that file.")
        parts = parts_of(corpora.labelled, lists or corpora.files, seed)
        train, test = ([corpora.labelled[n] for n in numbers] for numbers in (parts.train, parts.test))
        task = EntityRelationTask.fitting(corpora.labelled, induce=induce, no_relation=no_relation)
        if not task.is_papers:
            task = EntityRelationTask.induced(train, no_relation=no_relation)
        return cls(train, test, TASK if task.is_papers and no_relation is None else task)


def corpus_problems(source: Source) -> dict[str, list[Problem]]:
    """Returns the test sentences of a corpus with the costs of two models, trained on the other sentences."""
    text = intern(source.test)
    found = {}
    for training in Training:
        scorer = train_black_box(training, source.train, source.task, seed=0, tell=tell_nobody)
        found[f"corpus {training}"] = sentence_problems(text.n_entities, scorer.costs(text)[0], source.task)
    return found

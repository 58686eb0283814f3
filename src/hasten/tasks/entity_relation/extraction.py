"""Entities and relations as a `Task`: for a cascade, and for `hasten compare`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hasten.errors import CorpusError
from hasten.model.batch import Batch
from hasten.support.progress import Tell
from hasten.tasks.entity_relation.data.corpus import JOINT, Relation, Sentence
from hasten.tasks.entity_relation.data.formats import read_corpus
from hasten.tasks.entity_relation.data.formats.jsonl import from_object, to_json
from hasten.tasks.entity_relation.names import Training
from hasten.tasks.entity_relation.scoring.black_box import LinearScorer
from hasten.tasks.entity_relation.scoring.features import intern
from hasten.tasks.entity_relation.scoring.training import train_black_box
from hasten.tasks.entity_relation.task import EntityRelationTask, ordered_pairs, variable_names
from hasten.tasks.task import Model, Task


@dataclass(frozen=True, eq=False)
class ExtractionModel(Model[Sentence]):
    """A linear model of types and relations, under the constraints of its task."""

    task: EntityRelationTask
    scorer: LinearScorer

    def batch(self, texts: Sequence[Sentence]) -> Batch:
        """Returns sentences as problems with all their costs."""
        text = intern(texts)
        return self.task.batch(text.n_entities, self.scorer.costs(text)[0])

    def gold(self, text: Sentence) -> Sequence[str]:
        """Returns the type of each span and the label of each ordered pair."""
        if text.types is None or text.relations is None:
            raise CorpusError(f"Sentence {text.id!r} has no labels. Give its types and its relations.")
        related = text.joint_labels()
        return [*text.types, *(related.get(pair, self.task.no_relation) for pair in ordered_pairs(len(text.spans)))]

    def label(self, text: Sentence, labels: Sequence[str]) -> Sentence:
        """Returns the sentence with these types and relations."""
        n, relations = len(text.spans), list[Relation]()
        for (source, target), label in zip(ordered_pairs(n), labels[n:], strict=True):
            if label != self.task.no_relation:
                relations += [(source, target, name) for name in label.split(JOINT)]
        return replace(text, types=tuple(labels[:n]), relations=tuple(relations))

    def names(self, text: Sentence) -> Sequence[str]:
        """Returns the words of each span and pair."""
        return variable_names([" ".join(text.tokens[start:end]) for start, end in text.spans])

    @property
    def null_labels(self) -> frozenset[str]:
        """The label of unrelated pairs."""
        return frozenset({self.task.no_relation})


@dataclass(frozen=True)
class Extraction(Task[Sentence]):
    """Types of spans and relations between them; types, relations and constraints are those of the labelled text."""

    training: str = Training.STRUCTURED  # or Training.INDEPENDENT
    title: str = "Entities and relations"

    def read(self, path: str) -> Iterator[Sentence]:
        """Reads sentences in any format of ours."""
        return read_corpus(path)

    def train(self, texts: Sequence[Sentence], *, seed: int, tell: Tell) -> ExtractionModel:
        """Trains the linear model."""
        task = EntityRelationTask.induced(texts)
        return ExtractionModel(task, train_black_box(self.training, texts, task, seed=seed, tell=tell))

    def to_json(self, text: Sentence) -> Any:
        """Returns a sentence as JSON has it, without its labels."""
        return to_json(text.unlabeled())

    def of_json(self, text: Sentence, answer: Any) -> Sentence:
        """Returns a sentence with the `types` and `relations` of an answer."""
        if not isinstance(answer, dict) or not {"types", "relations"} <= set(answer):
            raise CorpusError(f"An answer should be an object with 'types' and 'relations', not {answer!r:.80}.")
        spans = [list(span) for span in text.spans]
        labels = {key: answer[key] for key in ("types", "relations")}
        found = from_object({"id": text.id, "tokens": list(text.tokens), "spans": spans} | labels, text.id)
        return replace(text, types=found.types, relations=found.relations)

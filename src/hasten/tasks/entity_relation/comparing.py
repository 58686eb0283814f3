"""Entities and relations as a task like any other: what `tasks.evaluation.comparison` and `tasks.evaluation` need.

The paper's own experiment is richer (`hasten.paper`); this is its task, through the interface that
all tasks share: `hasten compare hasten.tasks.entity_relation.comparing:EntityRelations CORPUS --out DIRECTORY`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isqrt

from hasten.model.batch import Batch
from hasten.support.progress import Tell
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.data.formats import read_corpus
from hasten.tasks.entity_relation.explain import variable_names
from hasten.tasks.entity_relation.names import Training
from hasten.tasks.entity_relation.scoring.black_box import LinearScorer
from hasten.tasks.entity_relation.scoring.text import intern
from hasten.tasks.entity_relation.scoring.training import train_black_box
from hasten.tasks.entity_relation.task import EntityRelationTask, ordered_pairs
from hasten.tasks.task import Counts, Model, Task
from hasten.tasks.text.words import Vocabulary

NOTHING = "none"  # the type of a span that is not an entity


@dataclass(frozen=True, eq=False)
class EntityRelationModel(Model[Sentence]):
    """A trained black box: the types of spans, and the relations between them."""

    task: EntityRelationTask
    scorer: LinearScorer
    words: Vocabulary = field(default_factory=Vocabulary)

    @property
    def scores(self) -> Sequence[str]:
        """The F1 of entities and of relations; labels for "nothing" do not count."""
        return "entity F1", "relation F1"

    @property
    def null_labels(self) -> frozenset[str]:
        """The labels for "nothing"."""
        return frozenset({NOTHING, self.task.no_relation})

    def batch(self, texts: Sequence[Sentence]) -> Batch:
        """Returns sentences as problems with all their costs."""
        text = intern(texts, self.words)
        return self.task.batch(text.n_entities, self.scorer.costs(text)[0])

    def gold(self, text: Sentence) -> Sequence[str]:
        """Returns the types of the spans, then the relation of each ordered pair."""
        relations = {(source, target): name for source, target, name in text.relations or ()}
        pairs = ordered_pairs(len(text.spans))
        return [*(text.types or ()), *(relations.get(pair, self.task.no_relation) for pair in pairs)]

    def names(self, text: Sentence) -> Sequence[str]:
        """Returns the words of each span, and of each pair."""
        return variable_names([" ".join(text.tokens[first:last]) for first, last in text.spans])

    def count(self, labels: Sequence[str | None], against: Sequence[str | None]) -> Counts:
        """Counts entities and relations that are the same."""
        n = isqrt(len(against))
        return [
            _named(labels[:n], against[:n], NOTHING),
            _named(labels[n:], against[n:], self.task.no_relation),
        ]

    def items(self, labels: Sequence[str | None]) -> Mapping[str, set[tuple[Hashable, str]]]:
        """Returns spans with their types, and pairs with their relations."""
        n = isqrt(len(labels))
        known = [
            (place, label) for place, label in enumerate(labels) if label not in self.null_labels and label is not None
        ]
        pairs = ordered_pairs(n)
        relations = {(pairs[place - n], label) for place, label in known if place >= n}
        return {"type": {(place, label) for place, label in known if place < n}, "relation": set(relations)}

    def facts(self) -> Mapping[str, object]:
        """Returns its labels."""
        return {"entity_labels": list(self.task.entity_labels), "relation_labels": list(self.task.relation_labels)}


def _named(labels: Sequence[str | None], against: Sequence[str | None], nothing: str) -> tuple[float, float]:
    """Returns how many labels both sides name alike, and how many either side names."""
    right = sum(mine == theirs != nothing for mine, theirs in zip(labels, against, strict=True))
    return right, sum(label not in (nothing, None) for label in (*labels, *against))


@dataclass(frozen=True)
class EntityRelations(Task[Sentence]):
    """Joint entities and relations, with the labels that the corpus shows."""

    black_box: str = Training.STRUCTURED
    title: str = "Joint entities and relations"

    def read(self, path: str) -> Iterator[Sentence]:
        """Reads the sentences of a corpus that have gold labels."""
        return (each for each in read_corpus(path) if each.types is not None and each.relations is not None)

    def train(self, texts: Sequence[Sentence], *, seed: int, tell: Tell) -> EntityRelationModel:
        """Trains a black box."""
        task = EntityRelationTask.induced(texts)
        return EntityRelationModel(task, train_black_box(self.black_box, texts, task, seed=seed, tell=tell))

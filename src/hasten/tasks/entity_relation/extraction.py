"""Entities and relations as a `Task`: for a cascade, and for `hasten compare`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from hasten.errors import CorpusError, ProblemError
from hasten.model.batch import Batch
from hasten.support import forms
from hasten.support.checks import brief
from hasten.support.forms import Tensors, reading
from hasten.support.terminal import Progress
from hasten.tasks.entity_relation.data.corpus import JOINT, Relation, Sentence
from hasten.tasks.entity_relation.data.formats import read_corpus
from hasten.tasks.entity_relation.data.formats.jsonl import from_object, to_json
from hasten.tasks.entity_relation.scoring import black_box, training
from hasten.tasks.entity_relation.task import BlackBox, EntityRelationTask, ordered_pairs, variable_names
from hasten.tasks.task import Model, Task

NEURAL = (BlackBox.NEURAL, BlackBox.NEURAL_STRUCTURED, BlackBox.NEURAL_LIKELIHOOD)
Box = Any  # a `LinearScorer` or a `NeuralScorer`: only it can score what it has read


def train_black_box(
    box: str, sentences: Sequence[Sentence], task: EntityRelationTask, *, seed: int, progress: Progress
) -> Box:
    """Trains one of the black boxes of `BlackBox`."""
    if box in NEURAL:
        from hasten.tasks.entity_relation.neural.training import train_neural

        return train_neural(box, sentences, task, seed=seed, progress=progress)
    return training.train_black_box(box, sentences, task, seed=seed, progress=progress)


def read_black_box(path: str | os.PathLike[str], tensors: Tensors, about: Mapping[str, str]) -> Box:
    """Makes a black box of what a file holds, and refuses what cannot be one."""
    if about.get("training") in NEURAL:
        from hasten.tasks.entity_relation.neural.black_box import NeuralScorer, check_encoder

        check_encoder(path, about)
        with reading(path):
            return NeuralScorer.of_tensors(tensors, about)
    black_box.check_versions(path, about)
    with reading(path):
        return black_box.LinearScorer.of_tensors(tensors, about)


@dataclass(frozen=True, eq=False)
class ExtractionModel(Model[Sentence]):
    """A model of types and relations, under the constraints of its task."""

    task: EntityRelationTask
    scorer: Box

    def batch(self, texts: Sequence[Sentence]) -> Batch:
        """Returns sentences as problems with all their costs."""
        text = self.scorer.read(texts)
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

    def content(self) -> tuple[Tensors, Any]:
        """Returns what a file holds of it."""
        return self.scorer.tensors(), {"task": self.task.settings(), "scorer": self.scorer.about()}

    @property
    def null_labels(self) -> frozenset[str]:
        """The label of unrelated pairs."""
        return frozenset({self.task.no_relation})


@dataclass(frozen=True)
class Extraction(Task[Sentence]):
    """Types of spans and relations between them; types, relations and constraints are those of the labelled text.

    `training` is the model, a `BlackBox`: linear by default; "neural" needs the extra of that name.
    """

    training: str = BlackBox.STRUCTURED
    title: str = "Entities and relations"

    def __post_init__(self) -> None:
        if self.training not in list(BlackBox):
            raise ProblemError(f"A black box is {BlackBox.choices()}, not {brief(self.training)}.")
        if self.training in NEURAL:
            import_module("hasten.tasks.entity_relation.neural")  # a missing extra is found before anybody is asked

    def read(self, path: str) -> Iterator[Sentence]:
        """Reads sentences in any format of ours."""
        return read_corpus(path)

    def train(self, texts: Sequence[Sentence], *, seed: int, progress: Progress) -> ExtractionModel:
        """Trains the model."""
        task = EntityRelationTask.induced(texts)
        return ExtractionModel(task, train_black_box(self.training, texts, task, seed=seed, progress=progress))

    def to_json(self, text: Sentence) -> Any:
        """Returns a sentence as our JSON lines have it."""
        return to_json(text)

    def of_json(self, found: Any) -> Sentence:
        """Returns the sentence that an object stands for."""
        if not isinstance(found, dict):
            raise CorpusError(f"A sentence should be an object, not {found!r:.80}.")
        return from_object(found, "")

    def check_labelled(self, text: Sentence) -> None:
        """Refuses a sentence without types or relations."""
        if not text.annotated:
            raise CorpusError(f"Sentence {text.id!r} should have 'types' and 'relations'; [] where there are none.")

    def of_content(self, path: Path, tensors: Tensors, about: Any) -> ExtractionModel:
        """Makes a model of what a file holds."""
        held = forms.fitted(about, _About, "its model")
        return ExtractionModel(EntityRelationTask.of_settings(held.task), read_black_box(path, tensors, held.scorer))


class _About(msgspec.Struct, forbid_unknown_fields=True):
    task: Any
    scorer: dict[str, str]

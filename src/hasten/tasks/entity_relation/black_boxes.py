"""The black boxes of the task by name: linear ones, and neural ones, whose packages are imported when asked for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from hasten.model.costs import Scorer
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.progress import Tell
from hasten.support.tensors import Tensors, reading
from hasten.tasks.entity_relation.data.columns import Columns
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.names import BlackBox
from hasten.tasks.entity_relation.scoring import black_box, training
from hasten.tasks.entity_relation.task import EntityRelationTask
from hasten.tasks.text.words import Vocabulary


class Text(Protocol):
    """Sentences as a black box reads them."""

    @property
    def n_entities(self) -> IntArray:
        """The number of spans of each sentence."""
        ...


class Box(Protocol):
    """A trained black box: sentences in, costs out."""

    @property
    def entity_labels(self) -> tuple[str, ...]:
        """The types that it scores."""
        ...

    @property
    def relation_labels(self) -> tuple[str, ...]:
        """The relations that it scores; the last stands for none."""
        ...

    def read(self, sentences: Columns | Iterable[Sentence], vocabulary: Vocabulary | None = None, /) -> Any:
        """Returns sentences as it reads them, a `Text`."""
        ...

    def costs(self, text: Any, /) -> tuple[FloatArray, IntArray]:
        """Returns the costs of every variable of every sentence, flat, and where each sentence's start."""
        ...

    def lazy(self, text: Any, /) -> Scorer:
        """Returns a scorer of the variables of a text."""
        ...

    def tensors(self) -> Tensors:
        """Returns what a file holds of it."""
        ...

    def about(self) -> dict[str, str]:
        """Returns what a file says of it."""
        ...


def train_black_box(box: str, sentences: Sequence[Sentence], task: EntityRelationTask, *, seed: int, tell: Tell) -> Box:
    """Trains one of the black boxes of `BlackBox`."""
    if _is_neural(box):
        from hasten.tasks.entity_relation.neural.training import train_neural

        return train_neural(box, sentences, task, seed=seed, tell=tell)
    return training.train_black_box(box, sentences, task, seed=seed, tell=tell)


def read_black_box(path: str | os.PathLike[str], tensors: Tensors, about: Mapping[str, str]) -> Box:
    """Makes a black box of what a file holds, and refuses what cannot be one."""
    if _is_neural(about.get("training", "")):
        from hasten.tasks.entity_relation.neural.black_box import NeuralScorer, check_encoder

        check_encoder(path, about)
        with reading(path):
            return NeuralScorer.of_tensors(tensors, about)
    black_box.check_versions(path, about)
    with reading(path):
        return black_box.LinearScorer.of_tensors(tensors, about)


def _is_neural(box: str) -> bool:
    return box in (BlackBox.NEURAL, BlackBox.NEURAL_STRUCTURED, BlackBox.NEURAL_LIKELIHOOD)

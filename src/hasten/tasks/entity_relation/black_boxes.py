"""The black boxes of the task by name: linear ones, and neural ones, whose packages are imported when asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from hasten.support.forms import Tensors, reading
from hasten.support.terminal import Tell
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.names import BlackBox
from hasten.tasks.entity_relation.scoring import black_box, training
from hasten.tasks.entity_relation.task import EntityRelationTask

NEURAL = (BlackBox.NEURAL, BlackBox.NEURAL_STRUCTURED, BlackBox.NEURAL_LIKELIHOOD)
Box = Any  # a `LinearScorer` or a `NeuralScorer`: only it can score what it has read


def train_black_box(box: str, sentences: Sequence[Sentence], task: EntityRelationTask, *, seed: int, tell: Tell) -> Box:
    """Trains one of the black boxes of `BlackBox`."""
    if box in NEURAL:
        from hasten.tasks.entity_relation.neural.training import train_neural

        return train_neural(box, sentences, task, seed=seed, tell=tell)
    return training.train_black_box(box, sentences, task, seed=seed, tell=tell)


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

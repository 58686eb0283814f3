"""Sequence labelling as a task: what `tasks.evaluation.comparison` needs of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hasten.support.progress import Tell
from hasten.tasks.tagging.corpus import Tagged
from hasten.tasks.tagging.formats import read_tagged
from hasten.tasks.tagging.model import TagModel
from hasten.tasks.task import Task


@dataclass(frozen=True)
class Tagging(Task[Tagged]):
    """Tags for words, under rules; `rules.read_rule` says how these are written."""

    rules: tuple[str, ...] = ()
    bio: bool = False  # an entity's I-x must follow its B-x or I-x
    epochs: int = 8
    format: str = "auto"
    column: str | int | None = None
    title: str = "Sequence labelling"

    def read(self, path: str) -> Iterator[Tagged]:
        """Reads tagged sentences."""
        return read_tagged(path, self.format, self.column)

    def train(self, texts: Sequence[Tagged], *, seed: int, tell: Tell) -> TagModel:
        """Trains an averaged perceptron."""
        return TagModel.train(texts, self.rules, bio=self.bio, epochs=self.epochs, seed=seed, tell=tell)

"""The methods that a task needs to get the experiment, the report and the command line (`docs/new-task.md`).

A `Task` reads texts and trains a `Model`; a model turns texts into problems, and says what their gold labels are. What
it gets: `tasks.evaluation.comparison` lets greedy search, beams, a speedup, the task's own baselines, certified answers
and an ILP solver label the same test texts, timed in turns; `tasks.evaluation.comparison` shows that as a page.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from hasten.errors import HastenError
from hasten.model.batch import Batch
from hasten.model.solution import Solutions
from hasten.support.forms import Tensors
from hasten.support.terminal import Progress

Text = TypeVar("Text")  # one input with its gold labels, whatever a task makes of it
Baseline = Callable[[Batch], Solutions]
Counts = Sequence[tuple[float, float]]  # for each score: what both sides name alike, and what either side names


class Model(ABC, Generic[Text]):
    """A trained model: texts in, problems out."""

    @abstractmethod
    def batch(self, texts: Sequence[Text]) -> Batch:
        """Returns the texts as problems with all their costs; that is timed as computing features."""

    @abstractmethod
    def gold(self, text: Text) -> Sequence[str]:
        """Returns the gold label of each variable, in the order of the problem; the schema may lack some."""

    @abstractmethod
    def names(self, text: Text) -> Sequence[str]:
        """Returns what each variable is called in a report, such as its word."""

    @property
    def scores(self) -> Sequence[str]:
        """The scores that `count` counts for, by name."""
        return ("accuracy",)

    @property
    def null_labels(self) -> frozenset[str]:
        """Labels that say nothing, such as "O": a report does not draw them."""
        return frozenset()

    def count(self, labels: Sequence[str | None], against: Sequence[str | None]) -> Counts:
        """Counts, for one text and each of `scores`, what is needed for an F1; by default, for the share of labels.

        None is the label of a variable without an answer.
        """
        right = sum(mine == theirs is not None for mine, theirs in zip(labels, against, strict=True))
        return [(right, 2 * len(against))]

    def items(self, labels: Sequence[str | None]) -> Mapping[str, set[tuple[Hashable, str]]]:
        """Returns what an evaluation compares of one text: places with their labels, for each kind of place.

        By default, every variable with its label.
        """
        return {"label": {(place, label) for place, label in enumerate(labels) if label is not None}}

    def label(self, text: Text, labels: Sequence[str]) -> Text:
        """Returns a text with these labels, which `gold` reads again; a cascade needs it."""
        raise HastenError(f"{type(self).__name__} has no `label`, so its answers cannot be put on a text. Write it.")

    def content(self) -> tuple[Tensors, Any] | None:
        """Returns what a file holds of it: tensors, and what JSON can say. None: a cascade trains it again instead."""
        return None

    def baselines(self) -> Mapping[str, Baseline]:
        """Returns the task's own ways to answer, by name, to be compared with ours."""
        return {}

    def facts(self) -> Mapping[str, object]:
        """Returns what a report should say of the model, by name."""
        return {}


class Task(ABC, Generic[Text]):
    """A task: a name, a reader of its corpora, and a trainer."""

    title: str

    @abstractmethod
    def read(self, path: str) -> Iterator[Text]:
        """Reads labelled texts from a file."""

    def to_json(self, text: Text) -> Any:
        """Returns a text, with the labels that it has, as JSON can say it; by default, the text itself.

        Black boxes behind HTTP or in another process get it, and journals hold it.
        """
        return text

    def of_json(self, found: Any) -> Text:
        """Returns the text that JSON says, with the labels that it has."""
        return cast(Text, found)

    def check_labelled(self, text: Text) -> None:
        """Refuses a text without labels, which a black box should have given."""

    def of_content(self, path: Path, tensors: Tensors, about: Any) -> Model[Text]:
        """Makes a model of its `content`, which a file holds; what cannot be one is a `Misfit`."""
        raise HastenError(f"{type(self).__name__} has no `of_content`, so {path} cannot be read. Write it.")

    @abstractmethod
    def train(self, texts: Sequence[Text], *, seed: int, progress: Progress) -> Model[Text]:
        """Trains a model on labelled texts."""

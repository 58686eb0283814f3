"""A trained tagger: costs of tags and of their pairs, rules, in one file; it tags streams of any length."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from hasten.errors import ModelError, ProblemError
from hasten.model.batch import Batch
from hasten.model.solution import Solutions, Source, Status
from hasten.search.beam import BeamSearch
from hasten.speedup.parts import Limits, TextMode
from hasten.speedup.predictor import Speedup
from hasten.support import forms
from hasten.support.checks import check_limit, check_width
from hasten.support.files import output_directory
from hasten.support.forms import format_of, load_tensors, reading, save_tensors
from hasten.support.terminal import Progress, no_progress
from hasten.tasks.evaluation.scores import Evaluation, evaluate
from hasten.tasks.tagging.corpus import Tagged
from hasten.tasks.tagging.model import TagModel

FORMAT = "hasten.sequence-tagger/1"
CHUNK = 256  # sentences tagged together


@dataclass(frozen=True, slots=True)
class Prediction:
    """A sentence with its tags, and how they came about.

    Where the rules leave no tags, or no time was left to find some, the sentence has none, and `reason` says why.
    """

    sentence: Tagged
    proved: bool
    source: Source
    reason: str = ""

    @property
    def tags(self) -> tuple[str, ...] | None:
        """The tags, None if there are none."""
        return self.sentence.tags


@dataclass(frozen=True)
class SequenceTagger:
    """Tags the words of sentences, under rules for each sentence as a whole.

    Mode "certified" proves each answer or asks the solver; mode "search" trusts a beam of `width`, which keeps the
    rules but may miss the best tags.
    """

    model: TagModel
    mode: str = TextMode.CERTIFIED
    width: int = 8
    solver: str = "highs"
    time_limit: float | None = field(default=None, compare=False)  # seconds for a sentence; not saved

    def __post_init__(self) -> None:
        check_width(self.width)
        check_limit("time_limit", self.time_limit)
        if self.mode not in list(TextMode):
            raise ProblemError(f"A tagger's mode is {TextMode.choices()}, not {self.mode!r}.")

    @classmethod
    def train(
        cls,
        sentences: Iterable[Tagged],
        rules: Sequence[str] = (),
        *,
        bio: bool = False,
        epochs: int = 8,
        seed: int = 0,
        progress: Progress = no_progress,
    ) -> SequenceTagger:
        """Trains on tagged sentences; sentences without tags teach nothing.

        `rules` are written as `hasten.tasks.tagging.rules` says; with `bio`, an I-x must follow its B-x or I-x.
        """
        return cls(TagModel.train(list(sentences), rules, bio=bio, epochs=epochs, seed=seed, progress=progress))

    @property
    def tags(self) -> tuple[str, ...]:
        """All tags that it knows."""
        return self.model.tags

    def with_rules(self, rules: Sequence[str], *, bio: bool = False) -> SequenceTagger:
        """Returns the same tagger under other rules, which needs no training."""
        return replace(self, model=self.model.with_rules(rules, bio=bio))

    def predict(self, sentences: Iterable[Tagged | Sequence[str]]) -> Iterator[Prediction]:
        """Tags sentences, given as `Tagged` or as lists of words; any number of them, in constant memory."""
        answer = self._answerer()
        stream = (_sentence(each, n) for n, each in enumerate(sentences))
        while chunk := list(islice(stream, CHUNK)):
            for sentence, found in zip(chunk, answer(self.model.batch(chunk)), strict=True):
                if found.values is None:
                    reason = found.reason or _why(found.status)
                    yield Prediction(sentence.untagged(), found.proved, found.source, reason)
                elif self.model.impossible(sentence):
                    yield Prediction(sentence.untagged(), True, found.source, _why(Status.INFEASIBLE))
                else:
                    tagged = replace(sentence, tags=tuple(found.names))
                    yield Prediction(tagged, found.proved, found.source, found.reason)

    def _answerer(self) -> Callable[[Batch], Solutions]:
        """Returns what answers batches in this mode; it makes the solver once, where it needs one."""
        if self.mode == TextMode.SEARCH:
            return BeamSearch(self.width)
        return Speedup(self.model.schema, solver=self.solver, limits=Limits(self.time_limit)).predict

    def evaluate(self, sentences: Iterable[Tagged], *, progress: Progress = no_progress) -> Evaluation:
        """Compares its tags with those that the sentences have."""
        known = (each for each in sentences if each.tags is not None)
        return evaluate(self.model, known, answer=self._answerer(), progress=progress)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file, whole or not at all; a tagger that is there already is replaced."""
        path = Path(path)
        check_place(path)
        tensors, about = self.model.content()
        said = json.dumps(about | {"mode": str(self.mode), "width": self.width})
        with output_directory(path.parent):
            save_tensors(path, FORMAT, tensors, {"tagger": said})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SequenceTagger:
        """Reads what `save` wrote."""
        tensors, about = load_tensors(path, FORMAT, "tagger")
        with reading(path):
            settings = forms.read_json(about.get("tagger", ""), "its settings", dict[str, Any])
            mode = forms.fitted(settings.pop("mode", None), str, "its mode")
            width = forms.fitted(settings.pop("width", None), forms.Count, "its width")
            return cls(TagModel.of_tensors(tensors, settings, path), mode, width)


def _sentence(given: Tagged | Sequence[str], number: int) -> Tagged:
    if isinstance(given, Tagged):
        return given
    if isinstance(given, str):
        raise ProblemError(f"Sentence {number} is the string {given[:40]!r}. Give a list of its words.")
    return Tagged(str(number), tuple(given))


def _why(status: Status) -> str:
    return "No tags keep all rules in this sentence." if status is Status.INFEASIBLE else str(status)


def check_place(path: Path) -> None:
    """Refuses a place that holds something else than a tagger, which may be replaced."""
    if os.path.lexists(path) and format_of(path) != FORMAT:
        raise ModelError(f"{path} is there already, and is not a tagger. Choose another place.")

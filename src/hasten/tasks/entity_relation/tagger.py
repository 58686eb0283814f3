"""A trained labeller of text, in one file: a black box that scores sentences, and the speedup that answers them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from hasten.errors import ModelError, ProblemError
from hasten.search.beam import BeamSearch
from hasten.speedup.parts import Certified, Limits, Search, TextMode, Trust, as_answer, search_of
from hasten.speedup.persistence import content, of_content
from hasten.speedup.predictor import Speedup
from hasten.speedup.skipping import problems_needed
from hasten.support import forms
from hasten.support.checks import brief, check_number
from hasten.support.files import output_directory
from hasten.support.forms import Tensors, digest_of, format_of, load_tensors, reading, save_tensors
from hasten.support.terminal import Progress, no_progress
from hasten.tasks.entity_relation.data.corpus import Sentence, split
from hasten.tasks.entity_relation.extraction import Box, read_black_box, train_black_box
from hasten.tasks.entity_relation.labelling import Labelled, Labeller
from hasten.tasks.entity_relation.task import BlackBox, EntityRelationTask

FORMAT = "hasten.tagger/4"
KIND = "labeller of entities and relations"  # as errors call it: a tagger is what `hasten tag` trains
MAX_NODES = 20_000  # of branching, before the solver is asked
SPEEDUP = "speedup/"  # begins the names of what a file holds of the speedup
LEARNING_LIMIT = 2.0  # seconds for a sentence that is only learned from


@dataclass(frozen=True, eq=False)
class Tagger:
    """Labels the entities and relations of sentences.

    In mode "certified" its speedup proves each answer or asks the solver. In mode "search" it trusts a beam, guided by
    the learned heuristic where that helps, which skips the features of decisions by theta.
    """

    task: EntityRelationTask
    scorer: Box
    speedup: Speedup
    note: str = field(default="", repr=False)  # what theta rests on, in words; not saved

    def __post_init__(self) -> None:
        for ours, theirs in (
            (self.task.entity_labels, self.scorer.entity_labels),
            (self.task.relation_labels, self.scorer.relation_labels),
        ):
            if ours != theirs:
                raise ModelError(f"The task has the labels {ours}, the black box {theirs}. They must agree.")

    @classmethod
    def train(
        cls,
        labelled: Sequence[Sentence],
        unlabeled: Sequence[Sentence] = (),
        *,
        task: EntityRelationTask | None = None,
        black_box: str = BlackBox.STRUCTURED,
        width: int = 2,
        risk: float = 0.01,
        seed: int = 0,
        progress: Progress = no_progress,
    ) -> Tagger:
        """Trains a black box on labelled sentences, then fits a speedup to what it says of these and of unlabeled ones.

        Without a task it is the paper's where the labels are, and taken from the labelled sentences where they are not.
        The `black_box` is one of `BlackBox`; `width` is that of the beam in search mode. A tenth of the sentences, new
        to the black box where there is enough text, calibrates theta, which may change a share `risk` of the answers.
        """
        if black_box not in list(BlackBox):
            raise ProblemError(f"A black box is {BlackBox.choices()}, not {brief(black_box)}.")
        check_number("risk", risk)
        search, task = Search(width), task or EntityRelationTask.fitting(labelled)
        taught, fresh = labelled, unlabeled
        if not unlabeled and _n_held_out(len(labelled)) >= problems_needed(risk):
            fresh, taught = split(labelled, _n_held_out(len(labelled)) / len(labelled), seed)
        scorer = train_black_box(black_box, taught, task, seed=seed, progress=progress)
        text = scorer.read([*taught, *fresh])
        progress("Scoring the text to learn from", None)
        batch = task.batch(text.n_entities, scorer.costs(text)[0])
        progress("Learning the speedup", None)
        limits, trust = Limits(LEARNING_LIMIT, max_nodes=MAX_NODES), Trust(audit=0.0, min_agreement=None)
        speedup = Speedup(task.schema, answer=search, trust=trust, limits=limits, seed=seed)
        cut = len(batch) - min(_n_held_out(len(batch)), len(fresh) or len(batch))
        speedup.fit(batch.select(np.arange(cut)))
        note = ""
        if len(batch) - cut >= problems_needed(risk):
            progress("Calibrating theta", None)
            chosen = speedup.calibrate(batch.select(np.arange(cut, len(batch))), risk=risk)
            search = replace(search, theta=chosen.theta)
            note = f"Search mode: {' '.join(str(chosen).splitlines()[:2])}."
        speedup.set_params(answer=Certified(search=search), limits=Limits(max_nodes=MAX_NODES))
        return cls(task, scorer, speedup, note)

    @property
    def searches(self) -> bool:
        """Whether it trusts the search."""
        return isinstance(self.speedup.answer, Search)

    def asking(self, mode: str | None = None, **settings: Any) -> Tagger:
        """Returns a labeller in another mode, or with other settings of its speedup, such as `limits__time_limit`."""
        speedup = deepcopy(self.speedup, {id(self.task.schema): self.task.schema})
        if mode is not None:
            if mode not in list(TextMode):
                raise ProblemError(f"A labeller's mode is {TextMode.choices()}, not {mode!r}.")
            search = search_of(as_answer(speedup.answer))
            speedup.answer = search if mode == TextMode.SEARCH else Certified(search=search)
        return replace(self, speedup=speedup.set_params(**settings))

    def beam(self, width: int | None = None, theta: float | None = None) -> BeamSearch:
        """Returns the beam of search mode, or one of another width or theta."""
        given = {name: value for name, value in {"width": width, "theta": theta}.items() if value is not None}
        search = replace(search_of(as_answer(self.speedup.answer)), reduce=False, **given)  # type: ignore[arg-type]
        found = self.asking(answer=search).speedup.search
        assert isinstance(found, BeamSearch)
        return found

    def label(self, sentences: Iterable[Sentence]) -> Iterator[Labelled]:
        """Labels sentences, a chunk at a time; any number of them, in constant memory."""
        return Labeller(self).each(sentences)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file, whole or not at all; a tagger that is there already is replaced."""
        path = Path(path)
        check_place(path)
        with output_directory(path.parent):
            save_tensors(path, FORMAT, *self._content())

    @property
    def digest(self) -> str:
        """A hash of everything that can change an answer."""
        return digest_of(*self._content())

    def _content(self) -> tuple[Tensors, dict[str, str]]:
        """Returns what a file holds: tensors, and what is said about them."""
        tensors, about = content(self.speedup)
        kept = {f"black_box/{name}": tensor for name, tensor in self.scorer.tensors().items()}
        kept |= {SPEEDUP + name: tensor for name, tensor in tensors.items()}
        said = self.scorer.about() | {SPEEDUP + name: each for name, each in about.items()}
        return kept, said | {"task": json.dumps(self.task.settings())}

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Tagger:
        """Reads what `save` wrote."""
        tensors, about = load_tensors(path, FORMAT, KIND)
        mine: Any = [
            {name.removeprefix(SPEEDUP): each for name, each in kept.items() if name.startswith(SPEEDUP)}
            for kept in (tensors, about)
        ]
        others = {name: each for name, each in tensors.items() if not name.startswith(SPEEDUP)}
        weights = {name.removeprefix("black_box/"): each for name, each in others.items()}
        scorer = read_black_box(path, weights, about)
        with reading(path):
            task = EntityRelationTask.of_settings(forms.read_json(about.get("task", ""), "its task"))
        speedup = of_content(Speedup, Path(path), tuple(mine), task.schema)
        with reading(path):
            return cls(task, scorer, speedup)


def _n_held_out(n: int) -> int:
    """Returns how many of `n` sentences calibrate theta: a tenth; the others are learned from."""
    return min(n - n * 9 // 10, n - 1)


def check_place(path: Path) -> None:
    """Refuses a place that holds something else than a labeller, which may be replaced."""
    if os.path.lexists(path) and not (format_of(path) or "").startswith("hasten.tagger/"):
        raise ModelError(f"{path} is there already, and is not a {KIND}. Choose another place.")

"""A trained labeller of text: black box, heuristic and all, in one file; it labels streams of any length."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from hasten.errors import ModelError, ProblemError
from hasten.learning.gate import Gate
from hasten.learning.heuristic import Heuristic
from hasten.learning.learner import Learner
from hasten.model.batch import Batch
from hasten.model.solution import STATUSES, WITHOUT_ANSWER, Solutions, Status, numbered
from hasten.search.beam import BeamSearch
from hasten.search.theta import FORCED, theta_in_words
from hasten.solvers import make_solver
from hasten.solvers.failures import warn_of_failures
from hasten.speedup.black_box import prove_or_solve
from hasten.speedup.calibration import GATE_CONFIDENCE, Calibration, Calibrator, disagreeing, problems_needed
from hasten.speedup.gated import GatedSearch
from hasten.speedup.mode import TextMode
from hasten.speedup.parts import Limits
from hasten.support import forms
from hasten.support.checks import check_limit, check_number, check_width
from hasten.support.files import output_directory
from hasten.support.progress import Tell, tell_nobody
from hasten.support.tensors import Tensors, digest_of, format_of, load_tensors, reading, save_tensors
from hasten.tasks.entity_relation.data.corpus import Sentence, split
from hasten.tasks.entity_relation.data.formats.jsonl import Row
from hasten.tasks.entity_relation.gating import train_gate
from hasten.tasks.entity_relation.labelling import Answers, Labelled, all_in_words, chunks
from hasten.tasks.entity_relation.names import Training
from hasten.tasks.entity_relation.scoring import native
from hasten.tasks.entity_relation.scoring.black_box import LinearScorer, check_versions
from hasten.tasks.entity_relation.scoring.cheap import relation_features
from hasten.tasks.entity_relation.scoring.text import Text, Vocabulary
from hasten.tasks.entity_relation.scoring.training import train_black_box
from hasten.tasks.entity_relation.task import EntityRelationTask

FORMAT = "hasten.tagger/1"
KIND = "labeller of entities and relations"  # as errors call it: a tagger is what `hasten tag` trains
MAX_WORDS = 200_000  # words remembered between chunks
MAX_NODES = 20_000  # of branching, before the solver is asked
LEARNING_LIMIT = 2.0  # seconds for a sentence that is only learned from
PLAIN_IS_BETTER = "Search mode goes by costs alone: the learned heuristic was no better on sentences held out."


@dataclass(frozen=True)
class Tagger:
    """Labels the entities and relations of sentences.

    Mode "certified" proves each answer or asks the solver; mode "search" trusts a beam of `width`, guided by the
    learned heuristic, that skips the features of decisions by `theta`; or, where it has one, a `gate` that guesses
    relations which it doubts less than `max_doubt`.
    """

    task: EntityRelationTask
    scorer: LinearScorer
    heuristic: Heuristic
    width: int = 2
    theta: float = math.inf
    mode: str = TextMode.CERTIFIED
    solver: str = "highs"
    gate: Gate | None = None
    max_doubt: float = 0.0
    time_limit: float | None = field(default=None, compare=False)  # seconds for a sentence; not saved
    about_theta: str = field(default="", compare=False, repr=False)  # what theta rests on, in words; not saved
    about_gate: str = field(default="", compare=False, repr=False)  # whether a gate pays, in words; not saved

    def __post_init__(self) -> None:
        check_width(self.width)
        check_number("theta", self.theta)
        check_limit("time_limit", self.time_limit)
        if self.mode not in list(TextMode):
            raise ProblemError(f"A labeller's mode is {TextMode.choices()}, not {self.mode!r}.")
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
        induce: bool | None = None,
        black_box: str = Training.STRUCTURED,
        width: int = 2,
        risk: float = 0.01,
        seed: int = 0,
        tell: Tell = tell_nobody,
    ) -> Tagger:
        """Trains a black box on labelled sentences, then a heuristic on what it says of these and of unlabeled ones.

        The task may be given; else it is the paper's where the labels are, and taken from the labelled sentences where
        they are not; `induce` says which. Where nothing is unlabeled and there is enough text to calibrate theta, a
        tenth of the labelled sentences is held out for that.
        """
        if induce and task is not None:
            raise ProblemError("Give a task, or let it be induced from the labelled sentences, not both.")
        task = task or EntityRelationTask.fitting(labelled, induce=induce)
        taught, fresh = labelled, unlabeled
        if not unlabeled and n_held_out(len(labelled)) >= problems_needed(risk):
            fresh, taught = split(labelled, n_held_out(len(labelled)) / len(labelled), seed)
        scorer = train_black_box(black_box, taught, task, seed=seed, tell=tell)
        text = Vocabulary().intern([*taught, *fresh])
        tell("Scoring the text to learn from", None)
        batch = task.batch(text.n_entities, scorer.costs(text)[0])
        answers, _ = prove_or_solve(
            batch,
            cache(partial(make_solver, "highs")),
            limits=Limits(LEARNING_LIMIT, max_nodes=MAX_NODES),
            progress=lambda done, of: tell("Labelling the text to learn from", done / of),
        )
        tell("Learning the heuristic", None)
        cut = len(batch) - min(n_held_out(len(batch)), len(fresh) or len(batch))
        learner = Learner(width, enforce=False, seed=seed, progress=False, look_ahead=False)
        learner.fit(batch.select(np.arange(cut)), answers.labels[: batch.variable_at[cut]])
        held = np.arange(cut, len(batch))
        learned, plain = BeamSearch(width, learner.weights), BeamSearch(width)
        search = better_of(learned, plain, batch.select(held), answers.select(held))
        heuristic = learner.heuristic
        if search.weights is None:
            heuristic = replace(heuristic, weights=np.zeros_like(learner.weights))
        chosen = None
        if len(batch) - cut >= 2:
            tell("Calibrating theta", None)
            chosen = Calibrator(risk, seed=seed).theta(search, batch.select(held))
        theta = math.inf if chosen is None else chosen.theta
        tagger = cls(task, scorer, heuristic, width, theta, about_theta=explain_theta(chosen, len(batch), risk))
        if search.weights is None:
            tagger = replace(tagger, about_theta=f"{tagger.about_theta} {PLAIN_IS_BETTER}")
        if len(batch) - cut < gate_needs(risk):
            return tagger
        tell("Training a gate", None)
        trained = train_gate(scorer, text, batch, answers, held, risk=risk, seed=seed)
        if trained.pays:
            tagger = replace(tagger, gate=trained.gate, max_doubt=trained.chosen.max_doubt)
        return replace(tagger, about_gate=str(trained))

    def label(self, sentences: Iterable[Sentence]) -> Iterator[Labelled]:
        """Labels sentences, a chunk at a time; any number of them, in constant memory."""
        label = Labeller(self)
        for chunk in chunks(sentences):
            yield from label(chunk).labelled()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file, whole or not at all; a tagger that is there already is replaced."""
        path = Path(path)
        check_place(path)
        with output_directory(path.parent):
            save_tensors(path, FORMAT, *self._content())

    @property
    def digest(self) -> str:
        """Changes with whatever can change an answer: all that a file holds, the solver and the time limit."""
        tensors, about = self._content()
        return digest_of(tensors, about | {"solver": self.solver, "time_limit": str(self.time_limit)})

    def _content(self) -> tuple[Tensors, dict[str, str]]:
        """Returns what a file holds: tensors, and what is said about them."""
        settings = {
            "entity_labels": list(self.task.entity_labels),
            "arguments": {name: sorted(map(list, pairs)) for name, pairs in self.task.arguments.items()},
            "no_relation": self.task.no_relation,
            "features": self.task.features,
            "both_ways": sorted(map(list, self.task.both_ways)),
            "width": self.width,
            "theta": self.theta,
            "mode": self.mode,
        }
        tensors = {f"black_box/{name}": tensor for name, tensor in self.scorer.tensors().items()}
        tensors |= {f"heuristic/{name}": tensor for name, tensor in self.heuristic.tensors().items()}
        if self.gate is not None:
            settings["max_doubt"], settings["gate_rows"] = self.max_doubt, self.gate.n_rows
            tensors |= {f"gate/{name}": tensor for name, tensor in self.gate.tensors().items()}
        return tensors, self.scorer.about() | {"tagger": json.dumps(settings)}

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Tagger:
        """Reads what `save` wrote."""
        tensors, about = load_tensors(path, FORMAT, KIND)
        check_versions(path, about)
        with reading(path):
            settings = forms.read_json(about.get("tagger", ""), "its settings")
            _SETTINGS(settings, "its settings")
            scorer = LinearScorer.of_tensors(_part(tensors, "black_box/"), about)
            task = EntityRelationTask(
                settings["entity_labels"],
                {name: set(map(tuple, pairs)) for name, pairs in settings["arguments"].items()},
                no_relation=settings["no_relation"],
                features=settings["features"],
                both_ways=set(map(tuple, settings.get("both_ways", ()))),
            )
            heuristic = Heuristic.of_tensors(task.schema, _part(tensors, "heuristic/"))
            gate = None
            if "gate_rows" in settings:
                gate = Gate({"relation": None}, n_rows=settings["gate_rows"])
                gate.learn_from_tensors(task.schema, _part(tensors, "gate/"))
            parts = ("black_box/", "heuristic/") if gate is None else ("black_box/", "heuristic/", "gate/")
            rest = {name: each for name, each in tensors.items() if not name.startswith(parts)}
            forms.check_tensors(rest, {})
            theta, max_doubt = float(settings["theta"]), float(settings.get("max_doubt", 0.0))
            how = {"mode": settings["mode"], "gate": gate, "max_doubt": max_doubt}
            return cls(task, scorer, heuristic, settings["width"], theta, **how)


class Labeller:
    """Labels chunks of sentences, one after the other; remembers the words, and the solver, in between."""

    def __init__(self, tagger: Tagger) -> None:
        self.tagger = tagger
        self.vocabulary = Vocabulary()
        self.solver = cache(partial(make_solver, tagger.solver))

    def __call__(self, rows: Sequence[Row | Sentence]) -> Answers:
        """Labels sentences that fit into memory together (`chunks`)."""
        if self.vocabulary.size > MAX_WORDS:
            self.vocabulary = Vocabulary()
        tagger, text = self.tagger, self.vocabulary.intern(rows)
        if tagger.mode == TextMode.SEARCH:
            found = search(tagger, text)
        else:
            batch = tagger.task.batch(text.n_entities, tagger.scorer.costs(text)[0])
            found, _ = prove_or_solve(batch, self.solver, limits=Limits(tagger.time_limit, max_nodes=MAX_NODES))
            warn_of_failures(found)
        labels = list[Any](all_in_words(tagger.task, found.labels, text.n_entities))
        without = np.isin(found.status, numbered(*WITHOUT_ANSWER)) & ~found.valid
        for p in np.flatnonzero(without).tolist():
            if STATUSES[found.status[p]] is not Status.FAILED:
                raise ProblemError(f"Sentence {rows[p].id!r} has no valid labelling: {STATUSES[found.status[p]]}")
            labels[p] = None
        return Answers(rows, labels, found, tagger.mode == TextMode.CERTIFIED)


def search(tagger: Tagger, text: Text) -> Solutions:
    """Searches sentences without proving anything: by the gate, if there is one, or by the beam."""
    if tagger.gate is not None:
        gate = tagger.gate.seeing({"relation": relation_features(text)})
        return GatedSearch(gate, tagger.max_doubt)(tagger.task.batch(text.n_entities, tagger.scorer.lazy(text)))
    lean, sizes = tagger.task.lean, text.n_entities
    beam = BeamSearch(tagger.width, tagger.task.folded(tagger.heuristic.weights), theta=tagger.theta)
    n_labels = sizes * len(lean.entity_labels) + sizes * (sizes - 1) * len(lean.relation_labels)
    return native.search(tagger.scorer, text, lean.batch(sizes, np.zeros(n_labels.sum())), beam)


_SETTINGS = forms.record(
    {
        "entity_labels": forms.many(forms.text),
        "arguments": forms.table_of(forms.many(forms.row(forms.text, forms.text))),
        "no_relation": forms.text,
        "features": forms.text,
        "both_ways": forms.many(forms.row(forms.text, forms.text)),
        "width": forms.whole(1),
        "theta": forms.number(0),
        "mode": forms.text,
        "max_doubt": forms.number(0, 1),
        "gate_rows": forms.whole(1, 2**28),
    },
    optional=("both_ways", "max_doubt", "gate_rows"),
)


def _part(tensors: Tensors, prefix: str) -> Tensors:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def better_of(learned: BeamSearch, plain: BeamSearch, held: Batch, answers: Solutions) -> BeamSearch:
    """Returns the learned search, unless the plain one agrees with more of the answers."""
    wrong = [int(disagreeing(search(held), answers).sum()) for search in (learned, plain)]
    return plain if wrong[1] < wrong[0] else learned


def n_held_out(n: int) -> int:
    """Returns how many of so many sentences calibrate theta: a tenth; the others are learned from."""
    return min(n - n * 9 // 10, n - 1)


def gate_needs(risk: float) -> int:
    """Returns how many sentences the calibration of a gate needs: fewer prove too little even if none is changed."""
    return math.ceil(math.log1p(-GATE_CONFIDENCE) / math.log1p(-risk))


def explain_theta(chosen: Calibration | None, n: int, risk: float) -> str:
    """Says which theta was chosen from `n` sentences, or why none was."""
    needed = 10 * problems_needed(risk) - 9  # a tenth of them, rounded up, is enough
    if n < needed:
        return (
            f"Theta was not calibrated, so that search mode computes every cost: a risk of {risk:.2g} needs {needed:,} "
            f"sentences to learn from, and there were {n:,}."
        )
    if chosen is None or math.isinf(chosen.theta):
        return f"No theta was within a risk of {risk:.2g}, so that search mode computes every cost."
    theta = theta_in_words(chosen.theta, digits=3)
    if chosen.theta == FORCED:
        theta += ", which skips a cost only where the constraints leave no choice"
    return (
        f"Theta for search mode: {theta}. On {chosen.table[0].n:,} sentences held out it computed {chosen.share:.0%} "
        f"of the costs and changed {chosen.changed:.2%} of the answers; on sentences like them it changes at most "
        f"{chosen.limit:.2%}, with confidence {chosen.confidence:.0%}."
    )


def check_place(path: Path) -> None:
    """Refuses a place that holds something else than a labeller, which may be replaced."""
    if os.path.lexists(path) and format_of(path) != FORMAT:
        raise ModelError(f"{path} is there already, and is not a {KIND}. Choose another place.")

"""Precision, recall and F1 of each label with intervals, and which labels are taken for which others.

Sentences are added one by one and only counts are kept, so that any number of them can be evaluated. Intervals are by
the bootstrap: a sentence counts as often as it is drawn, which for each resample is a Poisson variable of mean 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from hasten.errors import CorpusError
from hasten.model.batch import Batch
from hasten.model.solution import Solutions, Source
from hasten.solvers import make_solver
from hasten.speedup.black_box import prove_or_solve
from hasten.support.arrays import FloatArray
from hasten.support.environment import package_version
from hasten.support.progress import Tell, tell_nobody
from hasten.tasks.evaluation.comparison import in_words
from hasten.tasks.evaluation.results import N_RESAMPLES, tails
from hasten.tasks.task import Model

Item = tuple[Hashable, str]  # a place, and its label
Items = Mapping[str, set[Item]]  # by kind of place, such as "type" and "relation"

CHUNK = 256  # sentences whose draws are made together
RIGHT, FOUND, GOLD = range(3)  # what is counted of a label


class Score(NamedTuple):
    """How well a label is found; each number with its interval. None where nothing says."""

    label: str
    n_gold: int
    n_found: int
    n_right: int
    precision: float | None
    recall: float | None
    f1: float | None
    intervals: Mapping[str, tuple[float, float]]

    def as_dict(self) -> dict[str, Any]:
        """Returns it for JSON."""
        return self._asdict() | {"intervals": {name: list(limits) for name, limits in self.intervals.items()}}


@dataclass(frozen=True, slots=True)
class Kind:
    """The labels of one kind of place: each for itself, all together (micro), and what was taken for what."""

    labels: list[Score]
    micro: Score
    macro_f1: float | None
    confused: Counter[tuple[str | None, str | None]]  # (gold, found), None where there is no label

    def as_dict(self) -> dict[str, Any]:
        """Returns it for JSON."""
        pairs = [{"gold": gold, "found": found, "n": n} for (gold, found), n in self.confused.most_common()]
        labels = [score.as_dict() for score in self.labels]
        return {"micro": self.micro.as_dict(), "macro_f1": self.macro_f1, "labels": labels, "confused": pairs}


@dataclass(slots=True)
class Tally:
    """What answers have in common with gold labels, sentence by sentence."""

    kinds: tuple[str, ...]
    seed: int = 0
    n: int = 0  # sentences
    n_exact: int = 0  # all of whose labels are right
    _rng: np.random.Generator = field(init=False)
    _numbers: dict[str, dict[str, int]] = field(init=False)  # of each label, by kind
    _totals: dict[str, FloatArray] = field(init=False)  # (labels, 3)
    _drawn: dict[str, FloatArray] = field(init=False)  # (labels, 3, resamples)
    _confused: dict[str, Counter[tuple[str | None, str | None]]] = field(init=False)
    _waiting: list[tuple[Items, Items]] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)
        self._numbers = {kind: {} for kind in self.kinds}
        self._totals = {kind: np.zeros((0, 3)) for kind in self.kinds}
        self._drawn = {kind: np.zeros((0, 3, N_RESAMPLES)) for kind in self.kinds}
        self._confused = {kind: Counter() for kind in self.kinds}

    def add(self, gold: Items, found: Items) -> None:
        """Adds a sentence: its gold items and those of the answer, for each kind."""
        self.n += 1
        self.n_exact += all(gold[kind] == found[kind] for kind in self.kinds)
        for kind in self.kinds:
            self._confused[kind].update(confusions(gold[kind], found[kind]))
        self._waiting.append((gold, found))
        if len(self._waiting) == CHUNK:
            self._draw()

    def result(self) -> dict[str, Kind]:
        """Returns the scores of each kind."""
        self._draw()
        return {kind: self._kind(kind) for kind in self.kinds}

    def _draw(self) -> None:
        """Adds the sentences that wait to the totals, and to each resample as often as it draws them."""
        draws = self._rng.poisson(1.0, (len(self._waiting), N_RESAMPLES)).astype(float)
        for kind in self.kinds:
            numbers = self._numbers[kind]
            cells: Counter[tuple[int, int, int]] = Counter()  # (sentence, label, what)
            for n, (gold, found) in enumerate(self._waiting):
                for items, what in ((gold[kind] & found[kind], RIGHT), (found[kind], FOUND), (gold[kind], GOLD)):
                    for _, label in items:
                        cells[n, numbers.setdefault(label, len(numbers)), what] += 1
            counts = np.zeros((len(self._waiting), len(numbers), 3))
            for place, times in cells.items():
                counts[place] = times
            self._totals[kind] = _grown(self._totals[kind], len(numbers)) + counts.sum(axis=0)
            drawn = np.tensordot(counts, draws, axes=(0, 0))
            self._drawn[kind] = _grown(self._drawn[kind], len(numbers)) + drawn
        self._waiting.clear()

    def _kind(self, kind: str) -> Kind:
        totals, drawn, numbers = self._totals[kind], self._drawn[kind], self._numbers[kind]
        labels = [_score(label, totals[numbers[label]], drawn[numbers[label]]) for label in sorted(numbers)]
        known = [score.f1 for score in labels if score.f1 is not None and score.n_gold]
        macro = float(np.mean(known)) if known else None
        return Kind(labels, _score("all", totals.sum(axis=0), drawn.sum(axis=0)), macro, self._confused[kind])


def confusions(gold: set[Item], found: set[Item]) -> Counter[tuple[str | None, str | None]]:
    """Counts, place by place, which gold label was taken for which other; None where there is no label."""
    counts: Counter[tuple[str | None, str | None]] = Counter((label, label) for _, label in gold & found)
    missed, wrong = by_place(gold - found), by_place(found - gold)
    for place in missed.keys() | wrong.keys():
        ours, theirs = sorted(missed.get(place, ())), sorted(wrong.get(place, ()))
        for n in range(max(len(ours), len(theirs))):
            counts[ours[n] if n < len(ours) else None, theirs[n] if n < len(theirs) else None] += 1
    return counts


def by_place(items: set[Item]) -> dict[Hashable, list[str]]:
    """Returns the labels of each place."""
    places: dict[Hashable, list[str]] = {}
    for place, label in items:
        places.setdefault(place, []).append(label)
    return places


def _grown(array: FloatArray, n: int) -> FloatArray:
    """Returns an array with as many rows as there are labels by now."""
    return np.concatenate([array, np.zeros((n - len(array), *array.shape[1:]))])


def _score(label: str, total: FloatArray, drawn: FloatArray) -> Score:
    right, found, gold = (int(count) for count in total)
    shares = {
        "precision": (right, found, drawn[RIGHT], drawn[FOUND]),
        "recall": (right, gold, drawn[RIGHT], drawn[GOLD]),
        "f1": (2 * right, found + gold, 2 * drawn[RIGHT], drawn[FOUND] + drawn[GOLD]),
    }
    values, intervals = {}, {}
    for name, (some, of, drawn_some, drawn_of) in shares.items():
        values[name] = some / of if of else None
        told = drawn_of > 0
        if of and told.any():
            limits = np.percentile(drawn_some[told] / drawn_of[told], tails())
            intervals[name] = float(limits[0]), float(limits[1])
    return Score(label, gold, found, right, values["precision"], values["recall"], values["f1"], intervals)


class Unreachable(Protocol):
    """Gold labels that no answer can have: as a sentence, and as data."""

    def as_dict(self) -> dict[str, Any]:
        """Returns it for JSON."""
        ...


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Scores of each kind of label, and what is known of the answers."""

    kinds: dict[str, Kind]
    n: int  # sentences
    n_exact: int
    n_valid: int
    n_proved: int
    n_by_solver: int
    n_failed: int
    unreachable: Unreachable

    def as_dict(self, **about: Any) -> dict[str, Any]:
        """Returns it for JSON, with what else is to be said about it."""
        of = max(1, self.n)
        return {
            "about": {"hasten": package_version("hasten"), **about},
            "n": self.n,
            "exact": self.n_exact / of,
            "valid": self.n_valid / of,
            "proved": self.n_proved / of,
            "n_by_solver": self.n_by_solver,
            "n_failed": self.n_failed,
            "unreachable": self.unreachable.as_dict() | {"in_words": str(self.unreachable)},
            "kinds": {name: kind.as_dict() for name, kind in self.kinds.items()},
        }


Text = TypeVar("Text")
Answer = Callable[[Batch], Solutions]

CHUNK = 256  # texts answered together
MOST = 8  # labels that are named


@dataclass(slots=True)
class OutOfReach:
    """Texts whose gold labels no answer can have, and labels that the model has never seen."""

    n_texts: int = 0
    unknown: Counter[str] = field(default_factory=Counter)

    def add(self, batch: Batch, p: int, gold: Sequence[str]) -> None:
        """Looks at the gold labels of a problem."""
        problem = batch[p]
        kinds = problem.structure.kinds
        unknown = [label for label, kind in zip(gold, kinds, strict=True) if label not in kind.places]
        self.unknown.update(unknown)
        if unknown:
            self.n_texts += 1
            return
        labels = np.array([kind.places[label] for label, kind in zip(gold, kinds, strict=True)], dtype=np.int64)
        self.n_texts += not problem.check(labels).valid

    def as_dict(self) -> dict[str, Any]:
        """Returns it for JSON."""
        return {"n_texts": self.n_texts, "unknown": dict(self.unknown.most_common())}

    def __str__(self) -> str:
        if not self.n_texts:
            return "All gold labels can be reached."
        named = ", ".join(f"{name} ({n:,})" for name, n in self.unknown.most_common(MOST))
        lost = f" Labels that the model has never seen, each a lost point: {named}." if named else ""
        what = "the gold labels of one text" if self.n_texts == 1 else f"the gold labels of {self.n_texts:,} texts"
        return f"No answer can have all of {what}: they break the rules, or the model lacks them.{lost}"


def evaluate(
    model: Model[Text], texts: Iterable[Text], *, answer: Answer | None = None, seed: int = 0, tell: Tell = tell_nobody
) -> Evaluation:
    """Lets a model answer texts, any number of them, and compares that with their gold labels.

    `answer` is how: by default certified, that is, proved, or solved by HiGHS.
    """
    answer = answer or partial(_certified, cache(partial(make_solver, "highs")))
    tally, reach = Tally(tuple(model.items(())), seed), OutOfReach()
    counts: Counter[str] = Counter()
    stream = iter(texts)
    while chunk := list(islice(stream, CHUNK)):
        found = answer(model.batch(chunk))
        for p, text in enumerate(chunk):
            gold = list(model.gold(text))
            tally.add(model.items(gold), model.items(in_words(found, p)))
            reach.add(found.batch, p, gold)
            one = found[p]
            counts.update(
                valid=one.valid, proved=one.proved, solver=one.source is Source.SOLVER, failed=one.values is None
            )
        tell("Answering", None, f"{tally.n:,}")
    if not tally.n:
        raise CorpusError("There is nothing to evaluate on. Give texts with gold labels.")
    tell("Comparing", None)
    return Evaluation(
        tally.result(),
        tally.n,
        tally.n_exact,
        n_valid=counts["valid"],
        n_proved=counts["proved"],
        n_by_solver=counts["solver"],
        n_failed=counts["failed"],
        unreachable=reach,
    )


def _certified(solver: Callable[[], Any], batch: Batch) -> Solutions:
    return prove_or_solve(batch, solver)[0]

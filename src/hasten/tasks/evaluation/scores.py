"""Precision, recall and F1 of each label with intervals, and which labels are taken for which others.

Sentences are added one by one and only counts are kept, so that any number of them can be evaluated. Intervals are by
the bootstrap: a sentence counts as often as it is drawn, which for each resample is a Poisson variable of mean 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import islice, zip_longest
from operator import itemgetter
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
from hasten.tasks.evaluation.study import N_RESAMPLES, tails
from hasten.tasks.task import Model

Item = tuple[Hashable, str]  # a place, and its label
Items = Mapping[str, set[Item]]  # by kind of place, such as "type" and "relation"
Text = TypeVar("Text")
Answer = Callable[[Batch], Solutions]

CHUNK = 256  # texts answered together
MOST = 8  # labels that are named


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
    """Counts of what answers have in common with gold labels, added sentence by sentence."""

    kinds: tuple[str, ...]
    seed: int = 0
    n: int = 0  # sentences
    n_exact: int = 0  # all of whose labels are right
    _rng: np.random.Generator = field(init=False)
    _counts: dict[str, dict[str, FloatArray]] = field(init=False)  # by kind and label: (3, 1 + resamples)
    _confused: dict[str, Counter[tuple[str | None, str | None]]] = field(init=False)

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)
        self._counts = {kind: {} for kind in self.kinds}
        self._confused = {kind: Counter() for kind in self.kinds}

    def add(self, gold: Items, found: Items) -> None:
        """Adds a sentence: its gold items and those of the answer, for each kind."""
        self.n += 1
        self.n_exact += all(gold[kind] == found[kind] for kind in self.kinds)
        drawn = np.append(1, self._rng.poisson(1.0, N_RESAMPLES))  # as it is, and how often each resample draws it
        for kind in self.kinds:
            self._confused[kind].update(confusions(gold[kind], found[kind]))
            for what, items in enumerate((gold[kind] & found[kind], found[kind], gold[kind])):
                for _, label in items:
                    self._counts[kind].setdefault(label, np.zeros((3, 1 + N_RESAMPLES)))[what] += drawn

    def result(self) -> dict[str, Kind]:
        """Returns the scores of each kind."""
        return {kind: self._kind(kind) for kind in self.kinds}

    def _kind(self, kind: str) -> Kind:
        counts = self._counts[kind]
        labels = [_score(label, counts[label]) for label in sorted(counts)]
        known = [score.f1 for score in labels if score.f1 is not None and score.n_gold]
        micro = _score("all", sum(counts.values(), np.zeros((3, 1 + N_RESAMPLES))))
        return Kind(labels, micro, float(np.mean(known)) if known else None, self._confused[kind])


def confusions(gold: set[Item], found: set[Item]) -> Counter[tuple[str | None, str | None]]:
    """Counts, place by place, which gold label was taken for which other; None where there is no label."""
    counts: Counter[tuple[str | None, str | None]] = Counter((label, label) for _, label in gold & found)
    places: dict[Hashable, tuple[list[str], list[str]]] = {}
    for side, items in enumerate((gold - found, found - gold)):
        for place, label in sorted(items, key=itemgetter(1)):
            places.setdefault(place, ([], []))[side].append(label)
    for missed, wrong in places.values():
        counts.update(zip_longest(missed, wrong))
    return counts


def _score(label: str, counts: FloatArray) -> Score:
    """Returns the scores of a label, from its counts as they are and as each resample has them."""
    right, found, gold = counts
    shares = {"precision": (right, found), "recall": (right, gold), "f1": (2 * right, found + gold)}
    values, limits = {}, {}
    for name, (some, of) in shares.items():
        values[name] = float(some[0] / of[0]) if of[0] else None
        drawn = of[1:] > 0
        if of[0] and drawn.any():
            low, high = np.percentile(some[1:][drawn] / of[1:][drawn], tails())
            limits[name] = float(low), float(high)
    return Score(label, int(gold[0]), int(found[0]), int(right[0]), **values, intervals=limits)


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
    solver = cache(partial(make_solver, "highs"))
    tally, reach, counts = Tally(tuple(model.items(())), seed), OutOfReach(), Counter[str]()
    stream = iter(texts)
    while chunk := list(islice(stream, CHUNK)):
        batch = model.batch(chunk)
        found = prove_or_solve(batch, solver)[0] if answer is None else answer(batch)
        for p, text in enumerate(chunk):
            gold, one = list(model.gold(text)), found[p]
            tally.add(model.items(gold), model.items(in_words(found, p)))
            reach.add(found.batch, p, gold)
            is_solvers, failed = one.source is Source.SOLVER, one.values is None
            counts.update(n_valid=one.valid, n_proved=one.proved, n_by_solver=is_solvers, n_failed=failed)
        tell("Answering", None, f"{tally.n:,}")
    if not tally.n:
        raise CorpusError("There is nothing to evaluate on. Give texts with gold labels.")
    tell("Comparing", None)
    return Evaluation(tally.result(), tally.n, tally.n_exact, unreachable=reach, **counts)

"""How good a model of any task is: its scores, and precision, recall and F1 of each label, all with intervals.

What the gold labels ask for that no answer can give is counted: labels that the model lacks, and texts whose gold
labels break its rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from typing import Any, TypeVar

import numpy as np

from hasten.errors import CorpusError
from hasten.model.solution import Solutions
from hasten.solvers import make_solver
from hasten.speedup.black_box import prove_or_solve
from hasten.support.arrays import FloatArray
from hasten.support.progress import Tell, tell_nobody
from hasten.tasks.experiment.comparison import in_words
from hasten.tasks.experiment.resampling import CONFIDENCE, Resamples, f1_of
from hasten.tasks.task import Model

Text = TypeVar("Text")
Interval = tuple[float, float]

MOST_LABELS = 24  # of a confusion picture


@dataclass(frozen=True, slots=True)
class LabelScore:
    """How well one label is found."""

    label: str
    n_gold: int
    precision: float
    recall: float
    f1: float
    interval: Interval  # of F1


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What came of comparing answers with gold labels."""

    n_texts: int
    n_variables: int
    scores: dict[str, float]
    intervals: dict[str, Interval]
    labels: tuple[LabelScore, ...]  # the most frequent first
    confusions: dict[tuple[str, str], int]  # (gold, found): how often, the most frequent first
    valid: float  # share of texts whose answer breaks no constraint
    unanswered: int  # texts without an answer, such as those whose rules leave none
    unknown: dict[str, int]  # gold labels that the model lacks: how often
    unreachable: int  # texts whose gold labels no answer can have: unknown labels, or broken rules

    def as_dict(self) -> dict[str, Any]:
        """Returns it for JSON."""
        found = asdict(self)
        found["confusions"] = [[gold, mine, n] for (gold, mine), n in self.confusions.items()]
        return found

    def __str__(self) -> str:
        named = (
            f"{name} {value:.3f} ({self.intervals[name][0]:.3f}–{self.intervals[name][1]:.3f})"
            for name, value in self.scores.items()
        )
        return f"{', '.join(named)} on {self.n_texts:,} texts"


def evaluate(
    model: Model[Text], texts: Sequence[Text], *, solver: str = "highs", seed: int = 0, tell: Tell = tell_nobody
) -> Evaluation:
    """Lets a model answer texts, certified, and compares that with their gold labels."""
    if not texts:
        raise CorpusError("There is nothing to evaluate on. Give texts with gold labels.")
    tell("Answering", 0.0)
    found, _ = prove_or_solve(
        model.batch(texts),
        cache(partial(make_solver, solver)),
        progress=lambda done, of: tell("Answering", done / of),
    )
    tell("Comparing", None)
    return compared(model, texts, found, seed)


def compared(model: Model[Text], texts: Sequence[Text], found: Solutions, seed: int = 0) -> Evaluation:
    """Compares answers with gold labels."""
    gold = [list(model.gold(text)) for text in texts]
    mine = [in_words(found, p) for p in range(len(texts))]
    resamples = Resamples.of([np.arange(len(texts))], seed)
    counts = np.array([model.count(ours, theirs) for ours, theirs in zip(mine, gold, strict=True)], dtype=np.float64)
    limits = [(float(low), float(high)) for low, high in resamples.intervals([counts])]
    pairs = Counter(pair for ours, theirs in zip(mine, gold, strict=True) for pair in zip(theirs, ours, strict=True))
    known = {label for kind in _kinds(found) for label in kind}
    return Evaluation(
        n_texts=len(texts),
        n_variables=sum(map(len, gold)),
        scores=dict(zip(model.scores, f1_of(counts.sum(axis=0)).tolist(), strict=True)),
        intervals=dict(zip(model.scores, limits, strict=True)),
        labels=_of_labels(gold, mine, resamples),
        confusions={(theirs, ours or "no answer"): n for (theirs, ours), n in pairs.most_common() if theirs != ours},
        valid=float(found.valid.mean()),
        unanswered=sum(bool(ours) and None in ours for ours in mine),
        unknown=dict(Counter(label for labels in gold for label in labels if label not in known).most_common()),
        unreachable=sum(not _reachable(found, p, labels) for p, labels in enumerate(gold)),
    )


def _kinds(found: Solutions) -> list[tuple[str, ...]]:
    return [kind.labels for structure in found.batch.structures for kind in set(structure.kinds)]


def _reachable(found: Solutions, p: int, gold: Sequence[str]) -> bool:
    """Whether an answer could have these labels."""
    problem = found.batch[p]
    kinds = problem.structure.kinds
    if any(label not in kind.places for label, kind in zip(gold, kinds, strict=True)):
        return False
    labels = np.array([kind.places[label] for label, kind in zip(gold, kinds, strict=True)], dtype=np.int64)
    return bool(problem.check(labels).valid)


def _of_labels(
    gold: Sequence[Sequence[str]], mine: Sequence[Sequence[str | None]], resamples: Resamples
) -> tuple[LabelScore, ...]:
    """Returns how well each label is found, with resampled intervals."""
    often = Counter(label for labels in gold for label in labels)
    every = [*dict(often.most_common()), *sorted({label for each in mine for label in each if label} - often.keys())]
    place = {label: i for i, label in enumerate(every)}
    counts: FloatArray = np.zeros((len(gold), len(every), 3))  # right, in gold, found
    for p, (theirs, ours) in enumerate(zip(gold, mine, strict=True)):
        for wanted, got in zip(theirs, ours, strict=True):
            counts[p, place[wanted], 1] += 1
            if got is not None:
                counts[p, place[got], 2] += 1
                counts[p, place[wanted], 0] += wanted == got
    both = np.stack([counts[..., 0], counts[..., 1] + counts[..., 2]], axis=-1)
    limits = resamples.intervals([both])
    right, in_gold, named = counts.sum(axis=0).T
    with np.errstate(invalid="ignore"):
        precision, recall = np.nan_to_num(right / named), np.nan_to_num(right / in_gold)
    f1 = f1_of(both.sum(axis=0))
    return tuple(
        LabelScore(
            label, int(in_gold[i]), float(precision[i]), float(recall[i]), float(f1[i]),
            (float(limits[i][0]), float(limits[i][1])),
        )
        for i, label in enumerate(every)
    )  # fmt: skip


__all__ = ["CONFIDENCE", "Evaluation", "LabelScore", "compared", "evaluate"]

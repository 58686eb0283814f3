"""A version of the student: a model of the task, how sure it is, and what it may promise; frozen together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple

import numpy as np

from hasten.cascade.confidence import Confidence, groups_of
from hasten.cascade.promise import Promise, promise
from hasten.model.batch import Batch
from hasten.proof.certifier import Certifier
from hasten.sums.margins import min_marginals
from hasten.support.arrays import BoolArray, FloatArray, IntArray
from hasten.support.progress import Tell
from hasten.tasks.task import Model, Task, Text

SEEN = 3  # one of so many answers that are held out fits the confidence, the others test the promise


class Guesses(NamedTuple):
    """A student's answers: the names of all labels by text, None without a valid labelling; and how sure it is."""

    labels: list[list[str] | None]
    log_p: FloatArray  # logarithm of the probability that the answer is the black box's


@dataclass(frozen=True, eq=False)
class Student(Generic[Text]):
    """A version, by its name: what it answers, how sure it is, and what it promises."""

    name: str
    model: Model[Text]
    confidence: Confidence
    promise: Promise
    n_taught: int  # answers of the black box that it learned from

    def __call__(self, texts: Sequence[Text]) -> Guesses:
        """Answers texts: the best labelling of each, proved to be that for its model."""
        found = _answered(self.model, texts)
        log_p = self.confidence.log_probability(found.batch, found.groups, found.margin)
        return Guesses(found.names, np.where(found.valid, log_p, -np.inf))

    def right(self, texts: Sequence[Text], labels: Sequence[Sequence[str] | None]) -> BoolArray:
        """Tells which labellings are those of the texts, as the black box labelled them."""
        return np.array([mine == list(self.model.gold(text)) for mine, text in zip(labels, texts, strict=True)], bool)

    def sure(self, guesses: Guesses) -> BoolArray:
        """Tells which answers it gives."""
        return np.asarray(guesses.log_p >= self.promise.threshold)

    def coverage(self, held: Sequence[Text]) -> float:
        """Returns the share of texts that it answers, of those that would test its promise."""
        tested = [text for n, text in enumerate(held) if n % SEEN]
        return float(self.sure(self(tested)).mean()) if tested else 0.0


class _Answered(NamedTuple):
    batch: Batch
    names: list[list[str] | None]
    valid: BoolArray
    groups: IntArray  # of each variable, and its margin
    margin: FloatArray


def _answered(model: Model[Text], texts: Sequence[Text]) -> _Answered:
    batch = model.batch(texts).resolved()
    best = Certifier()(batch)
    labels = np.maximum(best.labels, 0)
    names = [answer.names if answer.values is not None else None for answer in best]
    groups = groups_of(batch, labels, model.null_labels)
    return _Answered(batch, names, np.asarray(best.valid), groups, min_marginals(batch).margin)


def train(task: Task[Text], taught: Sequence[Text], name: str, seed: int, tell: Tell) -> Student[Text]:
    """Trains a version on the black box's answers; it promises nothing yet."""
    model = task.train(taught, seed=seed, tell=tell)
    return Student(name, model, Confidence(np.zeros((0, 3))), Promise.none(), len(taught))


def calibrate(student: Student[Text], held: Sequence[Text], risk: float, confidence: float) -> Student[Text]:
    """Returns a version with its confidence fitted, and its promise tested, on answers that it did not learn from.

    They must be of inputs drawn at random, in the order in which they came: one of three fits, the others test.
    """
    found = _answered(student.model, held)
    gold = [list(student.model.gold(text)) for text in held]
    same = [_same(mine, theirs) for mine, theirs in zip(found.names, gold, strict=True)]
    right, seen = np.array([all(each) for each in same], dtype=bool), np.arange(len(held)) % SEEN == 0
    of_seen, flat = np.repeat(seen, found.batch.n_variables), np.array([x for each in same for x in each], dtype=bool)
    fitted = Confidence.fit(found.groups[of_seen], found.margin[of_seen], flat[of_seen])
    log_p = np.where(found.valid, fitted.log_probability(found.batch, found.groups, found.margin), -np.inf)
    tested = promise(risk, confidence, (log_p[seen], right[seen]), (log_p[~seen], right[~seen]))
    return replace(student, confidence=fitted, promise=tested)


def _same(mine: Sequence[str] | None, theirs: Sequence[str]) -> list[bool]:
    return [False] * len(theirs) if mine is None else [a == b for a, b in zip(mine, theirs, strict=True)]

"""A version of the student: a model of the task, how sure it is, and what it may promise; frozen together.

The margin of a variable is how much more the best answer with another label there costs, exactly (a min-marginal). For
each kind of variable, and apart for labels that say nothing (no relation, outside), a logistic model gives the
probability that the label is the black box's from the margin and its logarithm. The product over the variables is the
probability of the whole answer. The smallest margin says nearly as much; the sum of margins says nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Generic, NamedTuple

import numpy as np

from hasten.cascade.promise import WHOLE, Promise, promise
from hasten.errors import ProblemError
from hasten.model.batch import Batch
from hasten.proof.certifier import Certifier
from hasten.sums.margins import min_marginals
from hasten.support.arrays import BoolArray, FloatArray, IntArray, ints
from hasten.tasks.task import Model, Text

SEEN = 3  # one of so many answers that are held out fits the confidence, the others test the promise
FLOOR, CEILING = 1e-3, 1e6  # of margins: ties, and labels without an alternative
RIDGE, STEPS = 1.0, 50


@dataclass(frozen=True, eq=False)
class Confidence:
    """The logistic models, by group of variables: (n_groups, 3) weights of 1, the margin and its logarithm."""

    weights: FloatArray

    @classmethod
    def fit(cls, groups: IntArray, margin: FloatArray, right: BoolArray) -> Confidence:
        """Fits a model to each group of variables: their margins, and which labels were the black box's."""
        n_groups = int(groups.max(initial=-1)) + 1
        fitted = [_fit(_features(margin[groups == g]), right[groups == g]) for g in range(n_groups)]
        return cls(np.array(fitted).reshape(n_groups, 3))

    @classmethod
    def none(cls) -> Confidence:
        """Returns that of a student which was not compared with a black box: it is never sure."""
        return cls(np.zeros((0, 3)))

    def log_probability(self, variable_at: IntArray, groups: IntArray, margin: FloatArray) -> FloatArray:
        """Returns the logarithm of the probability that each whole answer is the black box's."""
        known = groups < len(self.weights)
        score = (_features(margin) * self.weights[np.where(known, groups, 0)]).sum(axis=1) if len(self.weights) else 0.0
        each = np.where(known, -np.logaddexp(0.0, -score), -np.inf)
        n = len(variable_at) - 1
        return np.asarray(np.bincount(np.repeat(np.arange(n), np.diff(variable_at)), each, n), dtype=np.float64)


class Guesses(NamedTuple):
    """A student's answers to texts: the group and the exact margin of each variable, and how sure that makes it."""

    labels: list[list[str] | None]  # the names of all labels by text, None without a valid labelling
    kinds: list[tuple[str, ...]]  # of the variables of each text
    variable_at: IntArray  # text `n` has the variables `variable_at[n]:variable_at[n + 1]`
    groups: IntArray
    margin: FloatArray
    log_p: FloatArray  # logarithm of the probability that the answer is the black box's


@dataclass(frozen=True, eq=False)
class Student(Generic[Text]):
    """A version, by its name: what it answers, how sure it is, what it promises, and how many answers taught it."""

    name: str
    model: Model[Text]
    n_taught: int
    confidence: Confidence = field(default_factory=Confidence.none)
    promise: Promise = field(default_factory=Promise)

    def __call__(self, texts: Sequence[Text]) -> Guesses:
        """Answers texts: the best labelling of each, proved to be that for its model, and how sure it is."""
        batch = self.model.batch(texts).resolved()
        best = Certifier()(batch)
        labels = [answer.names if answer.values is not None else None for answer in best]
        groups = groups_of(batch, np.maximum(best.labels, 0), self.model.null_labels)
        of_structures = [tuple(kind.name for kind in each.kinds) for each in batch.structures]
        kinds = [of_structures[s] for s in batch.structure.tolist()]
        margin = min_marginals(batch).margin
        log_p = self.confidence.log_probability(batch.variable_at, groups, margin)
        log_p[[each is None for each in labels]] = -np.inf
        return Guesses(labels, kinds, batch.variable_at, groups, margin, log_p)

    def same(self, answer: Text, labels: Sequence[str] | None, kinds: Sequence[str]) -> list[bool]:
        """Tells for each variable of a text whether the black box labelled it likewise."""
        theirs = self.model.gold(answer)
        if labels is None or len(theirs) != len(labels):
            return [False] * len(kinds)
        return [a == b for a, b in zip(labels, theirs, strict=True)]

    def wrong(self, answer: Text, labels: Sequence[str] | None, kinds: Sequence[str]) -> list[str]:
        """Returns the kinds of variables of a text that the black box labelled otherwise, and `WHOLE` if any."""
        return _wrong(self.same(answer, labels, kinds), kinds)

    def sure(self, guesses: Guesses) -> BoolArray:
        """Tells which answers it gives."""
        return np.asarray(guesses.log_p >= self.promise.threshold)

    def coverage(self, held: Sequence[Text]) -> float:
        """Returns the share of texts that it answers, of those that would test its promise."""
        tested = [text for n, text in enumerate(held) if n % SEEN]
        return float(self.sure(self(tested)).mean()) if tested else 0.0

    def calibrated(self, held: Sequence[Text], risks: Mapping[str, float], confidence: float) -> Student[Text]:
        """Returns this version with its confidence fitted, and its promise tested, on answers that it did not see.

        They must be of inputs drawn at random, in the order in which they came: one of three fits, the others test.
        """
        found = self(held)
        if unknown := set(risks).difference({WHOLE}, *found.kinds):
            known = ", ".join([WHOLE, *sorted(set().union(*found.kinds))])
            raise ProblemError(f"There is no risk of {min(unknown)!r}: the task has {known}.")
        same = list(map(self.same, held, found.labels, found.kinds))
        wrong = [_wrong(*each) for each in zip(same, found.kinds, strict=True)]
        right = np.array([[name not in each for name in risks] for each in wrong], dtype=bool).reshape(-1, len(risks))
        seen = np.arange(len(held)) % SEEN == 0
        of_seen, flat = np.repeat(seen, np.diff(found.variable_at)), np.array(list(chain(*same)), dtype=bool)
        fitted = Confidence.fit(found.groups[of_seen], found.margin[of_seen], flat[of_seen])
        log_p = fitted.log_probability(found.variable_at, found.groups, found.margin)
        log_p[[each is None for each in found.labels]] = -np.inf
        tested = promise(risks, confidence, (log_p[seen], right[seen]), (log_p[~seen], right[~seen]))
        return replace(self, confidence=fitted, promise=tested)


def _wrong(same: Sequence[bool], kinds: Sequence[str]) -> list[str]:
    wrong = dict.fromkeys(kind for kind, right in zip(kinds, same, strict=True) if not right)
    return [WHOLE, *wrong] if wrong else []


def groups_of(batch: Batch, labels: IntArray, silent: Collection[str]) -> IntArray:
    """Returns the group of each variable of a batch: its kind, and whether its label says nothing."""
    kinds = list(batch.structures[0].schema.variables.values()) if batch.structures else []
    number = {kind.name: n for n, kind in enumerate(kinds)}
    most = max((len(kind.labels) for kind in kinds), default=0)
    nothing = np.zeros((len(kinds), most + 1), dtype=bool)
    for n, kind in enumerate(kinds):
        nothing[n, : len(kind.labels)] = [label in silent for label in kind.labels]
    numbers = [ints(number[kind.name] for kind in each.kinds) for each in batch.structures]
    flat = np.concatenate([ints(()), *(numbers[s] for s in batch.structure.tolist())])
    return np.asarray(2 * flat + nothing[flat, labels])


def _features(margin: FloatArray) -> FloatArray:
    margin = np.clip(margin, 0.0, CEILING)
    return np.stack([np.ones_like(margin), margin, np.log(margin + FLOOR)], axis=1)


def _fit(x: FloatArray, right: BoolArray) -> FloatArray:
    """Returns the weights of a logistic regression, by Newton's method; a ridge keeps all but the constant small."""
    if not len(x):
        return np.zeros(3)
    mean, scale = x.mean(axis=0), x.std(axis=0) + 1e-9
    mean[0], scale[0] = 0.0, 1.0
    z, ridge, w = (x - mean) / scale, np.diag([1e-3, RIDGE, RIDGE]), np.zeros(3)
    for _ in range(STEPS):
        p = 1 / (1 + np.exp(-np.clip(z @ w, -30, 30)))
        step = np.linalg.solve((z * (p * (1 - p))[:, None]).T @ z + ridge, z.T @ (right - p) - ridge @ w)
        w += np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-9:
            break
    found = w / scale
    found[0] -= (found[1:] * mean[1:]).sum()
    return np.asarray(found)

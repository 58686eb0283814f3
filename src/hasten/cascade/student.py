"""A version of the student: a model of the task, how sure it is, and what it may promise; frozen together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Generic, NamedTuple

import numpy as np

from hasten.cascade.confidence import Confidence, groups_of
from hasten.cascade.promise import WHOLE, Promise, promise
from hasten.errors import ProblemError
from hasten.proof.certifier import Certifier
from hasten.sums.margins import min_marginals
from hasten.support.arrays import BoolArray, FloatArray, IntArray
from hasten.tasks.task import Model, Text

SEEN = 3  # one of so many answers that are held out fits the confidence, the others test the promise


class Guesses(NamedTuple):
    """A student's answers: the names of all labels by text, None without a valid labelling; and how sure it is."""

    labels: list[list[str] | None]
    kinds: list[tuple[str, ...]]  # of the variables of each text
    log_p: FloatArray  # logarithm of the probability that the answer is the black box's


class Margins(NamedTuple):
    """A model's answers, and what its confidence comes from: the group and the margin of each variable."""

    labels: list[list[str] | None]
    kinds: list[tuple[str, ...]]
    variable_at: IntArray  # text `n` has the variables `variable_at[n]:variable_at[n + 1]`
    groups: IntArray
    margin: FloatArray

    def guesses(self, confidence: Confidence) -> Guesses:
        """Returns the answers with how sure they are."""
        log_p = confidence.log_probability(self.variable_at, self.groups, self.margin)
        return Guesses(self.labels, self.kinds, np.where([each is None for each in self.labels], -np.inf, log_p))


@dataclass(frozen=True, eq=False)
class Student(Generic[Text]):
    """A version, by its name: what it answers, how sure it is, what it promises, and how many answers taught it."""

    name: str
    model: Model[Text]
    n_taught: int
    confidence: Confidence = field(default_factory=Confidence.none)
    promise: Promise = field(default_factory=Promise)

    def __call__(self, texts: Sequence[Text]) -> Guesses:
        """Answers texts: the best labelling of each, proved to be that for its model."""
        return self.margins(texts).guesses(self.confidence)

    def margins(self, texts: Sequence[Text]) -> Margins:
        """Answers texts, with exact margins of all variables."""
        batch = self.model.batch(texts).resolved()
        best = Certifier()(batch)
        labels = [answer.names if answer.values is not None else None for answer in best]
        groups = groups_of(batch, np.maximum(best.labels, 0), self.model.null_labels)
        of_structures = [tuple(kind.name for kind in each.kinds) for each in batch.structures]
        kinds = [of_structures[s] for s in batch.structure.tolist()]
        return Margins(labels, kinds, batch.variable_at, groups, min_marginals(batch).margin)

    def same(self, answers: Sequence[Text], guesses: Guesses | Margins) -> list[list[bool]]:
        """Tells for each variable of each text whether the black box labelled it likewise."""
        found = []
        for answer, mine, kinds in zip(answers, guesses.labels, guesses.kinds, strict=True):
            theirs = self.model.gold(answer)
            fits = mine is not None and len(theirs) == len(mine)
            found.append([a == b for a, b in zip(mine or (), theirs, strict=True)] if fits else [False] * len(kinds))
        return found

    def wrong(self, answers: Sequence[Text], guesses: Guesses) -> list[list[str]]:
        """Returns the kinds of variables of each text that the black box labelled otherwise, and `WHOLE` if any."""
        return [_wrong(*each) for each in zip(self.same(answers, guesses), guesses.kinds, strict=True)]

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
        found = self.margins(held)
        if unknown := set(risks).difference({WHOLE}, *found.kinds):
            known = ", ".join([WHOLE, *sorted(set().union(*found.kinds))])
            raise ProblemError(f"There is no risk of {min(unknown)!r}: the task has {known}.")
        same = self.same(held, found)
        wrong = [_wrong(*each) for each in zip(same, found.kinds, strict=True)]
        right = np.array([[name not in each for name in risks] for each in wrong], dtype=bool).reshape(-1, len(risks))
        seen = np.arange(len(held)) % SEEN == 0
        of_seen, flat = np.repeat(seen, np.diff(found.variable_at)), np.array(list(chain(*same)), dtype=bool)
        fitted = Confidence.fit(found.groups[of_seen], found.margin[of_seen], flat[of_seen])
        log_p = found.guesses(fitted).log_p
        tested = promise(risks, confidence, (log_p[seen], right[seen]), (log_p[~seen], right[~seen]))
        return replace(self, confidence=fitted, promise=tested)


def _wrong(same: Sequence[bool], kinds: Sequence[str]) -> list[str]:
    wrong = dict.fromkeys(kind for kind, right in zip(kinds, same, strict=True) if not right)
    return [WHOLE, *wrong] if wrong else []

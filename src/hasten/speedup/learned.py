"""Learned mode: answers by learned tables, proved for these.

It keeps the black box's answers, and chooses anew when there are half as many new ones as before. When audits ended the
trust, answers since then alone are tried; if that agrees with them better, all older answers are forgotten.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import replace

import numpy as np

from hasten.errors import NotFittedError
from hasten.learning.targets import Answers, read_answers
from hasten.model.batch import Batch
from hasten.model.solution import Solutions, same_labels
from hasten.speedup.choosing import Choice, Examples, Inference, answer, choose, doubted
from hasten.speedup.parts import Certified, Learned, Search
from hasten.speedup.state import AFRESH, State
from hasten.speedup.strategy import CertifiedStrategy, SearchStrategy
from hasten.support.arrays import BoolArray, IntArray
from hasten.support.terminal import show_progress

log = logging.getLogger(__name__)
PART, TRUSTED_PART = 64, 1024  # problems that it takes at a time while it learns: not trusted, trusted


class LearnedStrategy(CertifiedStrategy):
    """Learned tables answer; with `learn`, the black box is also asked where it would teach most."""

    what = "learned method"
    has_answers = True

    @property
    def fitted(self) -> bool:
        """Whether it has learned, or learns as it works."""
        return self.speedup.learn or self.ready

    @property
    def ready(self) -> bool:
        """Whether it has chosen how to answer."""
        return self.state.choice is not None

    @property
    def choice(self) -> Choice:
        """How it answers, and why."""
        with self.state.lock:
            if self.state.choice is not None:
                return self.state.choice
        raise NotFittedError("This speedup has learned no tables yet. Call fit with answer='learned', or learn=True.")

    @property
    def inference(self) -> Inference:
        """How problems are answered, given a choice."""
        return Inference(self.speedup.limits, self.speedup.n_jobs)

    def answer(self, batch: Batch) -> Solutions:
        """Answers problems; while it learns, some at a time."""
        parts, at = list[Solutions](), 0
        while at < len(batch) or not parts:
            n = len(batch) if not self.speedup.learn else TRUSTED_PART if self.trusted else PART
            some = batch if at == 0 and n >= len(batch) else batch.select(range(at, min(at + n, len(batch))))
            parts.append(super().answer(some))
            at += max(n, 1)
        return parts[0] if len(parts) == 1 else Solutions.joined(batch, parts)

    def find(self, batch: Batch) -> Solutions:
        """Answers as was chosen."""
        return answer(self.choice, batch.resolved(), self.inference)

    def doubts(self, found: Solutions) -> BoolArray:
        """Tells where tables that were learned from other answers say something else."""
        return doubted(self.choice, found, self.inference) if self.speedup.learn else super().doubts(found)

    def agrees(self, found: Solutions, exact: Solutions) -> BoolArray:
        """Tells which answers are the black box's: the costs alone do not tell which labelling it finds cheap."""
        return same_labels(found.batch, found.values, exact.values)

    def learn(self, batch: Batch, answers: Answers, now: bool = False) -> None:
        """Keeps answers to learn from, and chooses anew how to answer when there are enough new ones, or now.

        Choosing takes a while; the lock is not held meanwhile, so that others can go on with what was learned before.
        """
        state, replay = self.state, self.state.replay
        with state.lock:
            state.counts["labelled"] += replay.add(batch, answers)
            if not replay.kept or not (now or replay.due):
                return
            since, before = replay.n_since, state.choice
            known, recent = replay.taken(), None
            if since is not None and since >= AFRESH:
                replay.n_since = None
                if before is not None and since < len(replay.kept):
                    recent = replay.taken(since)
            replay.learned(len(known[0]))
        if recent is not None and before is not None and self._is_better_afresh(before, *recent):
            note = f"The black box seems to have changed: all but its last {len(recent[0])} answers are forgotten."
            log.info("%s", note)
            with state.lock:
                while len(replay.kept) > len(recent[0]):
                    replay.kept.popleft()
                state.note(note)
            known = recent
        choice = self._choose(*known, np.arange(len(known[0])))
        with state.lock:
            state.adopt(choice, self.speedup.trust.min_agreement)

    def fit(self, batch: Batch, answers: Answers, calls: int) -> State:
        """Returns a state that has chosen how to answer."""
        labels, usable = read_answers(batch, answers)
        choice = self._choose(batch, labels, usable)
        new, level = State(counts=Counter(solver_calls=calls, labelled=len(usable))), self.speedup.trust.min_agreement
        new.adopt(choice, None)
        if self.speedup.learn:
            new.replay.add(batch, labels)
            new.replay.learned(len(usable))
        held = choice.agreement.get(choice.method)
        if held is not None and level is not None and held.high < level:
            log.warning(
                "What was learned agrees with the black box on %.3f of %d answers held out, surely less than "
                "min_agreement=%g: audits will end the trust in it. Learn from more answers, declare more factors, or "
                "lower min_agreement.",
                *(held.estimate, held.n, level),
            )
        return new

    def _choose(self, batch: Batch, labels: IntArray, usable: IntArray) -> Choice:
        speedup, examples = self.speedup, Examples(batch, labels, usable)
        timeless = replace(speedup.limits, time_limit=None, call_limit=None)  # learning must not depend on the clock
        with show_progress(quiet=not speedup.progress) as tell:
            inference = self.inference._replace(limits=timeless)
            return choose(speedup.schema, examples, inference, seed=speedup.seed, tell=tell)

    def _is_better_afresh(self, before: Choice, batch: Batch, labels: IntArray) -> bool:
        """Whether learning from recent answers alone agrees with them better than what was learned before them."""
        found = answer(before, batch, self.inference).values
        choice = self._choose(batch, labels, np.arange(len(batch)))
        held = choice.agreement.get(choice.method)
        return held is not None and bool(held.estimate * held.n > same_labels(batch, found, labels).sum() + 1)


STRATEGIES = {Certified: CertifiedStrategy, Learned: LearnedStrategy, Search: SearchStrategy}

"""Learning from shards at the same time: iterative parameter mixing (McDonald, Hall and Mann 2010).

Each epoch, every shard makes one pass of Algorithm 1 over its own problems, from the same weights; what they end with
is mixed, a weighted mean, and that is what all of them start the next epoch from. With one shard this is the sequential
algorithm, to the last bit. `docs/theory.md` states what is left of the mistake bound.

The averaged learner averages over the weights after each example, of every shard: a shard that starts with the sum S
of all weights so far, and ends with S_i, has added S_i - S. The lazy average keeps `drift` in place of the sum, with
S = n w - drift.

Where the shards are is up to `Shards`: here, in threads, or on a cluster (`hasten.ray`). A shard keeps nothing from
pass to pass, so that one that is lost can be asked again elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from hasten.errors import ProblemError
from hasten.kernels.learning.algorithm_1 import Weights
from hasten.learning.heuristic import Heuristic
from hasten.learning.learner import Epoch, Learner, default_step
from hasten.learning.targets import Answers, read_answers
from hasten.model.batch import Batch, as_batch
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.checks import check_whole


class Mixing(StrEnum):
    """How much each shard counts in the mean."""

    EVENLY = "evenly"
    BY_MISTAKES = "by mistakes"  # one that made no mistake has nothing to add


Lessons = tuple[Batch | Iterable[Problem], Answers]  # problems with the black box's answers
Source = Lessons | Callable[[], Lessons]  # or what reads them, where they are needed


class Turn(NamedTuple):
    """What a shard starts a pass with."""

    weights: Weights
    rng: np.random.Generator  # of the order of its problems
    forbidden: IntArray  # problems whose answers the enforced constraints forbid, as far as is known


class Passed(NamedTuple):
    """What a shard ends a pass with."""

    turn: Turn
    epoch: Epoch


class About(NamedTuple):
    """What there is to know of a shard before the first pass."""

    schema: Schema | None  # None if it is empty
    step: float
    n_skipped: int  # problems without a usable answer


@runtime_checkable
class Shards(Protocol):
    """Where the shards are, and who makes their passes."""

    def about(self) -> Sequence[About]:
        """Describes each shard."""
        ...

    def learn(self, learner: Learner, step: float, turns: Sequence[Turn]) -> Sequence[Passed]:
        """Makes one pass over each shard."""
        ...

    def held_out(self) -> Sequence[tuple[Batch, IntArray]]:
        """Returns the problems of each shard that nobody learns from, with their answers."""
        ...


class Shard:
    """One shard, in the process that has its problems; a share `held`, drawn by `seed`, is kept from learning."""

    def __init__(self, source: Source, held: float = 0.0, seed: int | Sequence[int] = 0) -> None:
        problems, answers = source() if callable(source) else source
        self.batch = as_batch(problems).resolved()
        self.labels, usable = read_answers(self.batch, answers)
        self.n_skipped = len(self.batch) - len(usable)
        drawn = np.random.default_rng(seed).permutation(usable)[: int(held * len(usable))]
        self.held, self.usable = np.sort(drawn), np.setdiff1d(usable, drawn)

    def held_out(self) -> tuple[Batch, IntArray]:
        """Returns the problems that nobody learns from, with their answers."""
        return self.batch.select(self.held), self.labels[self.batch.places(self.held)]

    def about(self) -> About:
        """Describes it."""
        if not len(self.batch):
            return About(None, 1.0, 0)
        schema = self.batch.structures[0].schema
        taught = self.batch
        if self.held.size:
            taught = self.batch.select(np.setdiff1d(np.arange(len(self.batch)), self.held))
        return About(schema, default_step(taught), self.n_skipped)

    def learn(self, learner: Learner, step: float, turn: Turn) -> Passed:
        """Makes one pass."""
        mine = replace(learner, progress=False)
        mine.state.step, mine.state.rng = step, turn.rng
        mine.state.weights = weights = deepcopy(turn.weights)
        usable = np.setdiff1d(self.usable, turn.forbidden) if turn.forbidden.size else self.usable
        epoch, left = mine.pass_over(self.batch, self.labels, usable)
        forbidden = np.setdiff1d(self.usable, left) if len(left) < len(self.usable) else turn.forbidden
        return Passed(Turn(weights, turn.rng, forbidden), epoch)


class LocalShards:
    """Shards of this process; `n_jobs` threads make their passes, which are kernels.

    Of each shard a share `held` is kept from learning, drawn by `seed` and the number of the shard.
    """

    def __init__(self, sources: Iterable[Source], n_jobs: int = 1, held: float = 0.0, seed: int = 0) -> None:
        check_whole("n_jobs", n_jobs, least=1)
        self.n_jobs = n_jobs
        self.shards = [Shard(source, held, (seed, i)) for i, source in enumerate(sources)]

    def held_out(self) -> Sequence[tuple[Batch, IntArray]]:
        """Returns the problems of each shard that nobody learns from, with their answers."""
        return [shard.held_out() for shard in self.shards]

    def about(self) -> Sequence[About]:
        """Describes each shard."""
        return [shard.about() for shard in self.shards]

    def learn(self, learner: Learner, step: float, turns: Sequence[Turn]) -> Sequence[Passed]:
        """Makes one pass over each shard."""
        with ThreadPoolExecutor(self.n_jobs) as threads:
            waiting = [
                threads.submit(shard.learn, learner, step, turn) for shard, turn in zip(self.shards, turns, strict=True)
            ]
            return [each.result() for each in waiting]


@dataclass(frozen=True)
class Mixture:
    """What was learned from shards: a learner that goes on like any other, and what the theorem bounds."""

    learner: Learner
    n_shards: int
    weighted_mistakes: float  # over all epochs, the mistakes of each shard times its share in the mean

    def mistake_bound(self, margin: float) -> float:
        """Returns the bound on `weighted_mistakes`, for the level margin of some unit vector: that of Theorem 1."""
        return self.learner.mistake_bound(margin)


def fit_shards(
    learner: Learner, shards: Shards | Sequence[Source], *, mixing: str = Mixing.EVENLY, n_jobs: int = 1
) -> Mixture:
    """Learns from scratch, from all shards at the same time, until an epoch makes no mistake.

    learner
        How to learn; it has learned afterwards. Without a step of its own it takes that of the first shard.
    shards
        Problems with answers, a pair each, or functions that return one; or where they are.
    mixing
        "evenly", the default, or "by mistakes".
    n_jobs
        Threads that share shards of this process.
    """
    if mixing not in list(Mixing):
        raise ProblemError(f"Mix {' or '.join(repr(each.value) for each in Mixing)}, not {mixing!r}.")
    there = shards if isinstance(shards, Shards) else LocalShards(shards, n_jobs)
    about = there.about()
    step = _begin(learner, about)
    state = learner.state
    assert state.weights is not None
    weights, n = state.weights, len(about)
    rngs = [np.random.default_rng(learner.seed if i == 0 else [learner.seed, i]) for i in range(n)]
    turns = [Turn(weights, rng, np.zeros(0, dtype=np.int64)) for rng in rngs]
    weighted = 0.0
    for _ in range(learner.epochs):
        began = time.perf_counter()
        passed = there.learn(learner, step, turns)
        mistakes = np.array([each.epoch.n_mistakes for each in passed], dtype=float)
        share = _shares(mistakes, mixing)
        weighted += float(share @ mistakes)
        weights = mix(weights, [each.turn.weights for each in passed], share)
        turns = [each.turn._replace(weights=weights) for each in passed]
        state.weights = weights
        state.trace.append(_together([each.epoch for each in passed], weights, time.perf_counter() - began))
        if not mistakes.any():
            break
    state.n_forbidden = sum(each.forbidden.size for each in turns)
    state.rng = turns[0].rng
    return Mixture(learner, n, weighted)


def merged(parts: Sequence[tuple[Batch, IntArray]]) -> tuple[Batch, IntArray]:
    """Puts the problems of several shards together, in order, with their answers."""
    batch = Batch.of([part[p] for part, _ in parts for p in range(len(part))])
    return batch, np.concatenate([labels for _, labels in parts] or [np.zeros(0, dtype=np.int64)])


def mix(before: Weights, after: Sequence[Weights], share: FloatArray) -> Weights:
    """Mixes what passes from the same weights ended with; `share` is how much each counts, and sums to 1."""
    if len(after) == 1:
        return after[0]
    w = share @ np.stack([each.w for each in after])
    if all((each.w == before.w).all() for each in after):
        w = before.w.copy()  # not what rounding would make of it
    n_before = int(before.n_examples[0])
    added = sum((_sum(each) - _sum(before) for each in after), np.zeros_like(w))
    n = n_before + sum(int(each.n_examples[0]) - n_before for each in after)
    blind = sum(int(each.n_blind[0] - before.n_blind[0]) for each in after) + int(before.n_blind[0])
    drift = n * w - (_sum(before) + added)
    radius = np.max([each.radius for each in after], axis=0)
    return Weights(w, drift, np.array([n]), np.array([blind]), radius)


def _sum(weights: Weights) -> FloatArray:
    """Returns the sum of the weights after each example."""
    total: FloatArray = float(weights.n_examples[0]) * weights.w - weights.drift
    return total


def _begin(learner: Learner, about: Sequence[About]) -> float:
    """Begins anew, and returns the step."""
    schemas = [each.schema for each in about if each.schema is not None]
    if not schemas:
        raise ProblemError("There is nothing to learn from: all shards are empty.")
    if any(each.digest != schemas[0].digest for each in schemas):
        raise ProblemError("These shards have problems of different schemas. Learn from each on its own.")
    learner.start(Heuristic.zeros(schemas[0]))
    step = learner.step if learner.step is not None else next(each.step for each in about if each.schema is not None)
    learner.state.step = float(step)
    learner.state.n_skipped = sum(each.n_skipped for each in about)
    return float(step)


def _shares(mistakes: FloatArray, mixing: str) -> FloatArray:
    share: FloatArray = mistakes / max(1.0, mistakes.sum())
    if mixing == Mixing.BY_MISTAKES and mistakes.any():
        return share
    return np.full(len(mistakes), 1 / len(mistakes))


def _together(epochs: Sequence[Epoch], weights: Weights, seconds: float) -> Epoch:
    """Returns what the passes of all shards did, as one epoch; it took as long as the longest, and the mixing."""
    return Epoch(
        sum(each.n_examples for each in epochs),
        sum(each.n_lost for each in epochs),
        sum(each.n_wrong for each in epochs),
        sum(each.n_blind for each in epochs),
        epochs[0].step,
        float(np.linalg.norm(weights.w)),
        max(each.radius_phi for each in epochs),
        max(each.radius_g for each in epochs),
        seconds,
    )

"""Learning from shards at the same time: iterative parameter mixing (McDonald, Hall and Mann 2010).

Every shard makes a pass of Algorithm 1 over its own problems, from the same weights; all of them go on from the mean of
the weights that they end with. With one shard this is the sequential algorithm, to the last
bit. `docs/theory.md` states what is left of the mistake bound.

A mean over n shards counts each mistake an n-th as much, and so takes n times as long to get anywhere. The averaged
learner therefore has *momentum*: a share of 1 - 1/n of each move is made once more in the next round, and so on. All in
all a mistake counts as much as in sequence; but moves that the next round takes back cancel, as in the mean. There are
several `rounds` in an epoch for that. Algorithm 1, which the bound is of, has no momentum.

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
from functools import reduce
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from hasten.errors import ProblemError
from hasten.learning.algorithm_1 import Weights
from hasten.learning.heuristic import Heuristic
from hasten.learning.learner import Epoch, Learner, default_step
from hasten.learning.targets import Answers, read_answers
from hasten.model.batch import Batch, as_batch
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.checks import check_number, check_whole

ROUNDS = 16  # of an epoch


Labelled = tuple[Batch | Iterable[Problem], Answers]  # problems with the black box's answers
Source = Labelled | Callable[[], Labelled]  # or a function that reads them, where they are needed


class Turn(NamedTuple):
    """The start of a shard's pass."""

    weights: Weights
    rng: np.random.Generator  # of the order of its problems
    forbidden: IntArray  # problems whose answers the enforced constraints forbid, as far as is known
    found: IntArray  # problems found so in this epoch, which are left out from the next on
    round: int  # which part of the epoch's order this pass is over
    rounds: int


class Passed(NamedTuple):
    """The end of a shard's pass: weights, the dice after this epoch, and problems that turned out forbidden."""

    turn: Turn
    epoch: Epoch


class About(NamedTuple):
    """A shard before the first pass."""

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
        mine, rng = replace(learner, progress=False, shuffle=False), deepcopy(turn.rng)
        mine.state.step, mine.state.rng = step, rng
        mine.state.weights = weights = deepcopy(turn.weights)
        usable = np.setdiff1d(self.usable, turn.forbidden) if turn.forbidden.size else self.usable
        order = rng.permutation(usable) if learner.shuffle and len(usable) > 1 else usable
        piece = np.array_split(order, turn.rounds)[turn.round]
        epoch, left = mine.pass_over(self.batch, self.labels, piece)
        forbidden = np.setdiff1d(piece, left)
        return Passed(turn._replace(weights=weights, rng=rng, found=forbidden), epoch)


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
    """The result of learning from shards: a learner that goes on like any other, and its mistakes."""

    learner: Learner
    n_shards: int
    mean_mistakes: float  # over all epochs, the mistakes of a shard, on average

    def mistake_bound(self, margin: float) -> float:
        """Returns the bound on `mean_mistakes`, for the level margin of some unit vector: that of Theorem 1."""
        return self.learner.mistake_bound(margin)


def fit_shards(
    learner: Learner,
    shards: Shards | Sequence[Source],
    *,
    rounds: int = ROUNDS,
    momentum: float | None = None,
    n_jobs: int = 1,
) -> Mixture:
    """Learns from scratch, from all shards at the same time, until an epoch makes no mistake.

    learner
        How to learn; it has learned afterwards. Without a step of its own it takes the default one of the first shard.
    shards
        Problems with answers, a pair each, or functions that return one; or where they are.
    rounds
        How often an epoch is mixed, at least 1.
    momentum
        The share of each move that is made once more in the next round, from 0 to less than 1. None, the default, is
        1 - 1/n for n shards where the learner averages, and none where it is Algorithm 1.
    n_jobs
        Threads that share shards of this process.
    """
    check_whole("rounds", rounds, least=1)
    if momentum is not None:
        check_number("momentum", momentum)
        if not 0 <= momentum < 1:
            raise ProblemError(f"momentum must be at least 0 and less than 1, got {momentum}.")
    there = shards if isinstance(shards, Shards) else LocalShards(shards, n_jobs)
    about = there.about()
    step = _begin(learner, about)
    state, n, mistakes = learner.state, len(about), 0
    if momentum is None:
        momentum = 1 - 1 / n if learner.averaged else 0.0
    assert state.weights is not None
    move = np.zeros_like(state.weights.w)
    rngs = [np.random.default_rng(learner.seed if i == 0 else [learner.seed, i]) for i in range(n)]
    nothing = np.zeros(0, dtype=np.int64)
    turns = [Turn(state.weights, rng, nothing, nothing, 0, rounds) for rng in rngs]
    for _ in range(learner.epochs):
        epochs: list[Epoch] = []
        for round in range(rounds):
            began = time.perf_counter()
            passed = there.learn(learner, step, [turn._replace(round=round) for turn in turns])
            before, ended = state.weights, [each.turn.weights for each in passed]
            state.weights = mix(before, ended, momentum * move)
            move = state.weights.w - before.w
            turns = [_mixed(turn, each.turn, state.weights) for turn, each in zip(turns, passed, strict=True)]
            together = reduce(Epoch.then, [each.epoch for each in passed])
            epochs.append(together.ended(state.weights, time.perf_counter() - began))
        turns = [_next(turn, each.turn) for turn, each in zip(turns, passed, strict=True)]
        state.trace.append(reduce(Epoch.then, epochs))
        mistakes += state.trace[-1].n_mistakes
        if not state.trace[-1].n_mistakes:
            break
    state.n_forbidden = sum(each.forbidden.size for each in turns)
    state.rng = turns[0].rng
    return Mixture(learner, n, mistakes / n)


def _mixed(turn: Turn, passed: Turn, weights: Weights) -> Turn:
    """Returns what a shard starts the next round with; its order is still that of this epoch."""
    return turn._replace(weights=weights, found=np.union1d(turn.found, passed.found))


def _next(turn: Turn, passed: Turn) -> Turn:
    """Returns what a shard starts the next epoch with: another order, without what turned out forbidden."""
    return turn._replace(rng=passed.rng, forbidden=np.union1d(turn.forbidden, turn.found), found=turn.found[:0])


def merged(parts: Sequence[tuple[Batch, IntArray]]) -> tuple[Batch, IntArray]:
    """Puts the problems of several shards together, in order, with their answers."""
    batch = Batch.of([part[p] for part, _ in parts for p in range(len(part))])
    return batch, np.concatenate([labels for _, labels in parts] or [np.zeros(0, dtype=np.int64)])


def mix(before: Weights, after: Sequence[Weights], more: FloatArray) -> Weights:
    """Returns the mean of the weights that passes from the same weights ended with, moved by `more` besides."""
    if len(after) == 1 and not more.any():
        return after[0]
    share = np.full(len(after), 1 / len(after))
    w = before.w + share @ np.stack([each.w - before.w for each in after]) + more
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
    step = next(each.step for each in about if each.schema is not None) if learner.step is None else learner.step
    learner.state.step = float(step)
    learner.state.n_skipped = sum(each.n_skipped for each in about)
    return float(step)

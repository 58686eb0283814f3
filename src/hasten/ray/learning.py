"""Learning from shards on Ray: an actor for each shard keeps its problems, and makes its passes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import ray

from hasten.learning.learner import Learner
from hasten.learning.mixing import About, Passed, Shard, Source, Turn
from hasten.model.batch import Batch
from hasten.ray.predicting import n_workers
from hasten.speedup.predictor import Speedup
from hasten.speedup.sharded import HELD, Labelling
from hasten.support.arrays import IntArray


class RayShards:
    """Shards on a cluster. An actor that is lost is made again elsewhere, and its pass as well.

    `cores` is what each takes of the cluster; None, the default, is one, or less where there are fewer than shards.
    """

    def __init__(self, sources: Iterable[Source], held: float = 0.0, seed: int = 0, cores: float | None = None) -> None:
        every = list(sources)
        if cores is None:
            cores = min(1.0, n_workers() / max(1, len(every)))
        actor = ray.remote(num_cpus=cores, max_restarts=-1, max_task_retries=-1)(_Actor)
        self.actors: list[Any] = [actor.remote(source, held, (seed, i)) for i, source in enumerate(every)]

    def about(self) -> Sequence[About]:
        """Describes each shard."""
        return list(ray.get([actor.about.remote() for actor in self.actors]))

    def learn(self, learner: Learner, step: float, turns: Sequence[Turn]) -> Sequence[Passed]:
        """Makes one pass over each shard."""
        told = ray.put(learner)
        passes = zip(self.actors, turns, strict=True)
        return list(ray.get([actor.learn.remote(told, step, turn) for actor, turn in passes]))

    def held_out(self) -> Sequence[tuple[Batch, IntArray]]:
        """Returns the problems of each shard that nobody learns from, with their answers."""
        return list(ray.get([actor.held_out.remote() for actor in self.actors]))


class _Actor(Shard):
    """A shard in an actor."""


def shards(speedup: Speedup, batches: Iterable[Batch], *, held: float = HELD, cores: float | None = None) -> RayShards:
    """Returns shards for `Speedup.fit_shards`, labelled by its black box where they are (`RayShards`)."""
    return RayShards([Labelling(speedup, batch) for batch in batches], held, speedup.seed, cores)

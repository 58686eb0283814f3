"""Answering files and datasets on Ray Data: a pool of actors, each of which loads the model once.

Actors are told which shards to answer; they read these from where they are, and write the answers where they belong.
So no record passes through Ray's own memory or the driver, and an actor, a node or the driver that is lost costs the
shards that it was at.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import ray
import ray.data
from ray.data import ActorPoolStrategy, Dataset
from ray.exceptions import RayError

from hasten import errors
from hasten.errors import HastenError, ProblemError, WorkerError
from hasten.model.structure import Structure
from hasten.scale import places, shards
from hasten.scale.run import DEFAULT, Here, Job, Receipt, Run, Sharding, predict_shards
from hasten.scale.shards import Shard
from hasten.scale.work import Answerer, Chunk, FlatWork, Work, warm_once_per_node
from hasten.speedup.predictor import Speedup
from hasten.support.terminal import Tell, tell_nobody
from hasten.tasks.entity_relation.labelling import Labeller
from hasten.tasks.entity_relation.tagger import Tagger

HERE: dict[str, Any] = {
    "include_dashboard": False,
    "_node_ip_address": "127.0.0.1",
    "_system_config": {"worker_niceness": 0},  # as one process has it: Ray's workers give way to all others
}
ATTEMPTS = 5  # at a shard whose actors die, before the run is given up

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def predict(
    source: Dataset | Paths,
    model: Tagger | Speedup | str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    structures: Mapping[str, Structure] | None = None,
    workers: int | None = None,
    ordered: bool = False,
    how: Sharding = DEFAULT,
    tell: Tell = tell_nobody,
) -> Run | Dataset:
    """Answers files into a directory, as a `Run` that can be resumed; or a dataset, as a dataset.

    source
        Files of JSON lines or Parquet, directories of them or patterns, here or at URLs that every node can read; or
        a Ray dataset with the same columns.
    model
        A tagger, or the file of one, for sentences; a fitted speedup, with the `structures` of its problems by name,
        for flat problems.
    out
        The directory, or URL, that every node can write: answers, `manifest.json` and `bad.jsonl`. For files only.
    workers
        Actors, each on a core of its own. None, the default, takes all cores of the cluster.
    ordered
        Whether a dataset keeps its order. The answers to files always have theirs: that of the parts by name, and
        `Run.merge` puts them into one file.
    how
        How files are cut into shards.
    """
    work: Work
    if isinstance(model, Speedup):
        work = FlatWork(model, structures or {})
    elif structures is not None:
        raise ProblemError("Structures belong to flat problems, which a Speedup answers. Give one as the model.")
    else:
        work = Labeller(model if isinstance(model, Tagger) else Tagger.load(model))
    if isinstance(source, Dataset):
        if out is not None:
            raise ProblemError("A dataset is answered by a dataset: leave out `out`, and write what comes back.")
        if ordered:
            source.context.execution_options.preserve_order = True
        how_many = _n_workers(workers)
        return _mapped(source, _RowActor, work, how_many, batch_size=shards.ROWS, batch_format="pyarrow")
    if out is None:
        raise ProblemError("Say where the answers to files go: out=, a directory or URL that every node can write.")
    return predict_shards(work, source, out, how=how, engine=OnRay(workers), tell=tell)


def _n_workers(workers: int | None) -> int:
    """Returns how many actors there can be: as many as wanted, or as there are cores."""
    connect()
    return workers or max(1, int(ray.cluster_resources().get("CPU", 1)))


def connect(address: str | None = None, cores: int | None = None) -> bool:
    """Connects to a cluster, or starts Ray on this machine, reachable from here alone; tells whether it had to.

    Without an address it is the cluster that RAY_ADDRESS names, as in Ray's own jobs.
    """
    logging.getLogger("ray.data").setLevel(logging.ERROR)  # ours says more
    if ray.is_initialized():
        return False
    address = address or os.environ.get("RAY_ADDRESS")
    try:
        if address:
            ray.init(address, log_to_driver=False, logging_level="warning")
        else:
            ray.init("local", num_cpus=cores, log_to_driver=False, logging_level="warning", **HERE)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise WorkerError(
            f"Cannot connect to Ray ({error}). Check the address, or start it: ray start --head"
        ) from error
    return True


@dataclass
class OnRay(Here):
    """Answers shards on a cluster, or on this machine; a connection that was there before is used, and stays."""

    jobs: int = field(default=1, init=False)
    workers: int | None = None
    address: str | None = None
    cores: int | None = None
    ours: bool = field(default=False, init=False)

    def begin(self) -> None:
        """Connects."""
        self.ours = connect(self.address, self.cores)

    def end(self) -> None:
        """Ends the connection, and a Ray that was started for it, which takes a second or two."""
        if self.ours:
            ray.shutdown()

    def __call__(self, job: Job, todo: Sequence[Shard], /) -> Iterator[Receipt]:
        """Answers shards."""
        if not todo:
            return
        n = min(_n_workers(self.workers), len(todo))
        shards = ray.data.from_items([json.dumps(shard) for shard in todo], override_num_blocks=len(todo))
        answered = _mapped(shards, _ShardActor, Attempted(job, secrets.token_hex(8)), n, batch_size=1)
        try:
            for row in answered.iter_rows():
                if row["error"]:
                    raise getattr(errors, row["error"])(row["said"])
                yield msgspec.json.decode(row["said"], type=Receipt)
        except RayError as error:
            first = str(error).strip().splitlines()[-1]
            raise WorkerError(
                f"Ray gave up on the run: {first} What is finished is kept; run it again to resume."
            ) from error


class Attempted(NamedTuple):
    """A job that counts how often a run begins each shard: Ray would begin one that kills its actor for ever."""

    job: Job
    run: str

    def __call__(self, shard: Shard) -> Receipt:
        """Answers a shard, unless that was done, or tried too often."""
        if receipt := self.job.finished(shard):
            return receipt
        place = places.join(self.job.out, f"part-{shard.number:05d}.attempt")
        run, _, n = (places.read(place) or b"").decode().partition(" ")
        begun = int(n) if run == self.run else 0
        if begun >= ATTEMPTS:
            raise WorkerError(
                f"{begun} workers died over {shard.file}, lines {shard.line + 1:,} to {shard.line + shard.n:,}. If "
                "memory ran out, use fewer workers or smaller shards; if not, one of these records kills them."
            )
        places.write(place, f"{self.run} {begun + 1}".encode())
        receipt = self.job(shard)
        places.remove(place)
        return receipt


class _ShardActor:
    """Answers shards; an error of ours is returned, to be raised in the driver."""

    def __init__(self, job: Any) -> None:
        self.job: Attempted = ray.get(job)
        warm_once_per_node(self.job.job.work)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[str]]:
        said, error = [], []
        for shard in batch["item"]:
            try:
                said.append(msgspec.json.encode(self.job(Shard(*json.loads(str(shard))))).decode())
                error.append("")
            except HastenError as raised:
                said.append(str(raised))
                error.append(type(raised).__name__)
        return {"said": said, "error": error}


class _RowActor:
    """Answers rows, some at a time; one that is bad has only its id, if it has one, and `failed`, the reason."""

    def __init__(self, work: Any) -> None:
        self.work: Work = ray.get(work)
        warm_once_per_node(self.work)

    def __call__(self, batch: Any) -> Any:
        rows = [shards.of_row(row) for row in batch.to_pylist()]
        found = Answerer(self.work, set_aside=True, as_lines=False)(Chunk("the dataset", 0, rows))
        answers, reasons = iter(found.records), {each.line: each.reason for each in found.bad}
        every = (
            {"id": str(row.get("id", "")), "failed": reasons[n]} if n in reasons else next(answers)
            for n, row in enumerate(rows)
        )
        return shards.table(every, self.work.kind)


def _mapped(source: Dataset, actor: Any, thing: object, n: int, **how: Any) -> Dataset:
    """Maps a dataset by up to `n` actors, each made of the same thing; one that is lost is made again elsewhere."""
    source.context.enable_progress_bars = False  # ours says more
    pool = ActorPoolStrategy(min_size=1, max_size=n, initial_size=n)
    return source.map_batches(actor, fn_constructor_args=(ray.put(thing),), compute=pool, num_cpus=1, **how)

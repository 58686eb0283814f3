"""Answering files and datasets on Ray: a task for each shard, in workers that hold the model.

A task gets a description of its shard; it reads the records and writes the answers itself. So no record passes through
Ray's object store or the driver, and losing a worker, a node or the driver costs only the shards under way.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import islice
from typing import Any

import ray
import ray.data
from ray.data import Dataset
from ray.exceptions import RayError, RayTaskError

from hasten.errors import HastenError, ProblemError, WorkerError
from hasten.model.structure import Structure
from hasten.scale import shards
from hasten.scale.run import DEFAULT, Engine, Job, Receipt, ShardedRun, Sharding, predict_shards
from hasten.scale.shards import Shard
from hasten.scale.work import Chunk, FlatWork, PieceAnswerer, RecordWork
from hasten.speedup.predictor import Speedup
from hasten.support.terminal import Progress, no_progress
from hasten.tasks.entity_relation.labelling import Labeller
from hasten.tasks.entity_relation.tagger import Tagger

LOCAL: dict[str, Any] = {  # settings of Ray on this machine alone
    "include_dashboard": False,
    "_node_ip_address": "127.0.0.1",
    "_system_config": {"worker_niceness": 0},  # by default, Ray's workers yield to all other processes
}
ATTEMPTS = 5  # at a shard whose workers die, before the run fails

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
Held = list[Any]  # a reference to an object of Ray, in a list, so that Ray passes the reference itself


def predict(
    source: Dataset | Paths,
    model: Tagger | Speedup | str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    structures: Mapping[str, Structure] | None = None,
    workers: int | None = None,
    how: Sharding = DEFAULT,
    progress: Progress = no_progress,
) -> ShardedRun | Dataset:
    """Answers files into a directory, as a run that can be resumed; or a dataset, as a dataset.

    source
        Files, directories or patterns of JSON lines or Parquet, as paths or URLs that every node can read; or a Ray
        dataset with the same columns.
    model
        A tagger or its file, for sentences; a fitted speedup, with the `structures` of its problems by name, for flat
        problems.
    out
        A directory or URL that every node can write, for answers, `manifest.json` and `bad.jsonl`. For files only.
    workers
        Number of shards answered at a time, each on its own core. None, the default, uses all cores of the cluster.
    how
        How files are cut into shards.
    """
    work: RecordWork
    if isinstance(model, Speedup):
        work = FlatWork(model, structures or {})
    elif structures is not None:
        raise ProblemError("Structures belong to flat problems, which a Speedup answers. Give one as the model.")
    else:
        work = Labeller(model if isinstance(model, Tagger) else Tagger.load(model))
    if isinstance(source, Dataset):
        if out is not None:
            raise ProblemError(
                "A dataset is answered by a dataset: leave out `out`, and write the dataset that is returned."
            )
        connect()
        answer = partial(_answer_rows, held=[ray.put(work)])
        return source.map_batches(
            answer, batch_size=shards.ROWS, batch_format="pyarrow", num_cpus=1, concurrency=workers
        )
    if out is None:
        raise ProblemError("Say where the answers to files go: out=, a directory or URL that every node can write.")
    return predict_shards(work, source, out, how=how, engine=on_ray(workers), progress=progress)


def connect(address: str | None = None, cores: int | None = None) -> bool:
    """Connects to a cluster, or starts Ray for this machine alone; returns False if Ray was connected already.

    Without an address it connects to RAY_ADDRESS, as Ray's own jobs do.
    """
    logging.getLogger("ray.data").setLevel(logging.ERROR)  # our messages say more
    if ray.is_initialized():
        return False
    address = address or os.environ.get("RAY_ADDRESS")
    try:
        if address:
            ray.init(address, log_to_driver=False, logging_level="warning")
        else:
            ray.init("local", num_cpus=cores, log_to_driver=False, logging_level="warning", **LOCAL)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise WorkerError(
            f"Cannot connect to Ray ({error}). Check the address, or start it: ray start --head"
        ) from error
    return True


def on_ray(workers: int | None = None, address: str | None = None, cores: int | None = None) -> Engine:
    """Returns an engine that answers shards on a cluster, or on this machine; it uses a connection if there is one."""

    def answer(job: Job, todo: Sequence[Shard]) -> Iterator[Receipt]:
        connect(address, cores)
        held, left = [ray.put(job)], iter(todo)
        n = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        waiting = {_answer.remote(held, shard): shard for shard in islice(left, n)}
        while waiting:
            (done,), _ = ray.wait(list(waiting))
            shard = waiting.pop(done)
            yield _result(done, shard)
            waiting |= {_answer.remote(held, shard): shard for shard in islice(left, 1)}

    return answer


def _result(done: Any, shard: Shard) -> Receipt:
    try:
        receipt: Receipt = ray.get(done)
        return receipt
    except RayTaskError as error:
        if isinstance(error.cause, HastenError):
            raise error.cause from None
        raise
    except RayError as error:
        raise WorkerError(
            f"{ATTEMPTS} workers died over {shard.file}, lines {shard.line + 1:,} to {shard.line + shard.n:,}. If "
            "memory ran out, use fewer workers or smaller shards; if not, one of these records kills them. Finished "
            "shards are kept; run it again to resume."
        ) from error


@lru_cache(1)
def _of(reference: Any) -> Any:
    """Returns an object of Ray, which this process keeps, with its caches, for the next shard."""
    return ray.get(reference)


@ray.remote(num_cpus=1, max_retries=ATTEMPTS - 1)
def _answer(held: Held, shard: Shard) -> Receipt:
    """Answers a shard; Ray starts the task again elsewhere if its worker dies."""
    receipt: Receipt = _of(held[0])(shard)
    return receipt


def _answer_rows(batch: Any, held: Held) -> Any:
    """Answers rows; a bad row gets its id, if it has one, and the reason as `failed`."""
    work: RecordWork = _of(held[0])
    rows = [shards.of_row(row) for row in batch.to_pylist()]
    found = PieceAnswerer(work, set_aside=True, as_lines=False)(Chunk("the dataset", 0, rows))
    answers, reasons = iter(found.records), {each.line: each.reason for each in found.bad}
    records = (
        {"id": str(row.get("id", "")), "failed": reasons[n]} if n in reasons else next(answers)
        for n, row in enumerate(rows)
    )
    return shards.table(records, work.kind)

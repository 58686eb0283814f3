"""Answering files shard by shard into a directory, so that a run can be resumed.

The directory holds the plan, `manifest.json`, and for each finished shard its answers, `part-00000.jsonl` or
`.parquet`, and a *receipt*, `part-00000.receipt.json`, with a digest of the answers, counts and bad records. The worker
that answers a shard writes both, whole, and the receipt last. So a shard with a receipt is finished, whichever process
is killed. A second run keeps the shards whose answers agree with their receipts, and answers the others; it is refused
if the model, the settings or the input have changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from hasten.errors import CorpusError, ModelError, WriteError
from hasten.scale import shards, storage
from hasten.scale.shards import Shard
from hasten.scale.work import BadRecord, Counts, PieceAnswerer, RecordWork
from hasten.speedup.audit import Agreement
from hasten.speedup.state import Counters
from hasten.support.checks import brief, check_whole
from hasten.support.terminal import Pace, Progress, no_progress
from hasten.support.workers import in_processes

FORMAT = "hasten.run/3"
BAD_SHOWN = 5  # bad records in an error message


class Receipt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The record of a finished shard."""

    shard: int
    job: str  # digest of the model and its settings
    input: str  # digest of the shard
    digest: str  # of the answers
    counts: dict[str, int]
    bad: list[BadRecord]
    kept: bool = False  # whether an earlier run finished the shard


class SignedReceipt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A receipt as it is written, with its own digest: a damaged one does not count."""

    receipt: msgspec.Raw
    sha256: str


@dataclass(frozen=True)
class Job:
    """The work of a run, sent to each worker once; it answers shards."""

    work: RecordWork
    out: str
    suffix: str  # of the files of answers
    max_line: int
    digest: str  # of the work

    def path(self, shard: int) -> str:
        """Returns the file of the answers to a shard."""
        return storage.join(self.out, f"part-{shard:05d}{self.suffix}")

    def __call__(self, shard: Shard) -> Receipt:
        """Answers a shard that is not finished yet."""
        if receipt := self.finished(shard):
            return receipt
        counts, bad = Counts(), list[BadRecord]()
        self.work.begin(shard.number)

        def answers() -> Iterator[Any]:
            answerer = PieceAnswerer(self.work, set_aside=True, as_lines=self.suffix != ".parquet")
            for found in map(answerer, shards.read(shard, self.max_line, bad)):
                counts.update(found.counts)
                bad.extend(found.bad)
                yield found.records

        with storage.writing(self.path(shard.number)) as part:
            if self.suffix == ".parquet":
                shards.write(part, answers(), self.work.kind)
            else:
                with open(part, "wb") as file:
                    file.writelines(answers())
            digest = storage.digest(str(part))
        bad.sort(key=lambda each: each.line)
        receipt = Receipt(shard.number, self.digest, shard.digest, digest, dict(counts), bad)
        content = msgspec.Raw(msgspec.json.encode(receipt))
        signed = SignedReceipt(content, hashlib.sha256(content).hexdigest())
        storage.write(self._receipt(shard.number), msgspec.json.encode(signed))
        return receipt

    def finished(self, shard: Shard) -> Receipt | None:
        """Returns the receipt of a finished shard, if its answers are there and whole."""
        try:
            signed = msgspec.json.decode(storage.read(self._receipt(shard.number)), type=SignedReceipt)
            receipt = msgspec.json.decode(signed.receipt, type=Receipt)
        except (ValueError, RecursionError):
            return None
        if hashlib.sha256(signed.receipt).hexdigest() != signed.sha256:
            return None
        if (receipt.shard, receipt.job, receipt.input) != (shard.number, self.digest, shard.digest):
            return None
        is_whole = storage.digest(self.path(shard.number)) == receipt.digest
        if not is_whole or any(each.file != shard.file for each in receipt.bad):
            return None
        return msgspec.structs.replace(receipt, kept=True)

    def _receipt(self, shard: int) -> str:
        return storage.join(self.out, f"part-{shard:05d}.receipt.json")


Engine = Callable[[Job, Sequence[Shard]], Iterator[Receipt]]  # answers shards, in any order


def on_this_machine(jobs: int = 1) -> Engine:
    """Returns an engine that answers shards in processes of this machine."""
    return partial(in_processes, jobs=jobs)


@dataclass(frozen=True)
class Sharding:
    """How files are cut into shards, and answers are written.

    format
        Format of the answers: "jsonl" or "parquet".
    size
        Number of records in a shard, at least 1. A run is resumed shard by shard.
    max_bad
        Number of bad records that are set aside in `bad.jsonl`; more are an error.
    max_line
        Longest line to read, in bytes; a longer one is a bad record.
    """

    format: str = "jsonl"
    size: int = 20_000  # some seconds of work
    max_bad: int = 1000
    max_line: int = 64_000_000

    def __post_init__(self) -> None:
        check_whole("size", self.size, least=1)
        check_whole("max_bad", self.max_bad)
        check_whole("max_line", self.max_line, least=1)
        if self.format not in ("jsonl", "parquet"):
            raise CorpusError(f"There is no format {brief(self.format)} for answers. Choose jsonl or parquet.")


DEFAULT = Sharding()


@dataclass(frozen=True)
class ShardedRun:
    """A finished run: the files of its answers, counts over all shards, and the bad records."""

    out: str
    files: tuple[str, ...]  # the answers, in the order of the input
    counts: Counts
    bad: tuple[BadRecord, ...]
    n_kept: int  # number of shards that an earlier run had finished

    @property
    def counters(self) -> Counters:
        """The counters of a speedup."""
        return Counters.from_dict(self.counts)

    @property
    def agreement(self) -> Agreement:
        """The agreement that audits found, over all shards."""
        audits = self.counts["audits"]
        return Agreement.of(audits - self.counts["disagreements"], audits)

    def merge(self, target: str | os.PathLike[str]) -> None:
        """Writes all answers to one file, in the order of the input."""
        path = storage.plain(target)
        suffix = Path(path).suffix
        if not self.files or suffix != Path(self.files[0]).suffix:
            raise WriteError(f"{path} does not end like the answers in {self.out}. Give it the same ending.")
        with storage.writing(path) as part:
            if suffix == ".parquet":
                shards.merge(part, self.files)
            else:
                with open(part, "wb") as file:
                    for each in self.files:
                        with storage.reading(each) as source:
                            shutil.copyfileobj(source, file, 1 << 20)


def predict_shards(
    work: RecordWork,
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    how: Sharding = DEFAULT,
    engine: Engine | None = None,
    progress: Progress = no_progress,
) -> ShardedRun:
    """Answers the records of files or URLs into a directory, and keeps the shards that are finished there."""
    directory = storage.plain(out)
    if how.format == "parquet":
        shards.columns(work.kind)  # fails now if pyarrow is missing
    progress("Reading the input", None)
    todo = list(shards.plan(storage.find(paths), how.size))
    job = Job(work, directory, f".{how.format}", how.max_line, work.digest)
    manifest = Manifest(FORMAT, job.digest, how.format, how.max_line, how.size, todo)
    manifest.begin(directory)
    run = _run(job, todo, engine or on_this_machine(), how.max_bad, progress)
    bad = [json.dumps(each._asdict()) + "\n" for each in run.bad]
    storage.write(storage.join(directory, "bad.jsonl"), "".join(bad).encode())
    finished = {"counts": dict(run.counts), "bad": len(run.bad), "parts": [Path(each).name for each in run.files]}
    msgspec.structs.replace(manifest, finished=finished).write(directory)
    return run


def _run(job: Job, todo: Sequence[Shard], engine: Engine, max_bad: int, progress: Progress) -> ShardedRun:
    counts, bad, n_kept = Counts(), list[BadRecord](), 0
    n_lines, done, before, pace = sum(shard.n for shard in todo), 0, 0, Pace()
    for receipt in engine(job, todo):
        counts.update(receipt.counts)
        bad += receipt.bad
        n_kept += receipt.kept
        done += todo[receipt.shard].n
        before += todo[receipt.shard].n if receipt.kept else 0
        progress("Answering records", done / max(1, n_lines), pace.words(done, n_lines, before))
        if len(bad) > max_bad:
            shown = "\n".join(f"  {each}" for each in sorted(bad)[:BAD_SHOWN])
            raise CorpusError(
                f"More than {max_bad:,} records could not be answered, among them\n{shown}\n"
                "Correct the input, or allow more: --max-bad on the command line, max_bad= in Python."
            )
    place_of = {file: n for n, file in enumerate(dict.fromkeys(shard.file for shard in todo))}
    bad.sort(key=lambda each: (place_of[each.file], each.line))
    files = tuple(job.path(shard.number) for shard in todo)
    return ShardedRun(job.out, files, counts, tuple(bad), n_kept)


_ELSEWHERE = "Choose another directory for a new run."


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The plan of a run and, at the end, its outcome."""

    format: str
    model: str
    answers: str
    max_line: int
    shard_size: int
    shards: list[Shard]
    finished: dict[str, Any] | None = None

    def write(self, out: str) -> None:
        """Writes the manifest into the directory of a run."""
        storage.write(storage.join(out, "manifest.json"), msgspec.json.format(msgspec.json.encode(self), indent=1))

    def begin(self, out: str) -> None:
        """Begins a run in a directory, or checks that the run begun there is the same."""
        path = storage.join(out, "manifest.json")
        content = storage.read(path)
        if not content:
            if storage.files_at(out):
                raise WriteError(f"{out} is not empty, and holds no run of ours. Choose another directory.")
            self.write(out)
            return
        try:
            found = msgspec.json.decode(content)
            if isinstance(found, dict) and found.get("format") != FORMAT:
                raise ModelError(f"{path} was written by another version of hasten. {_ELSEWHERE}")
            begun = msgspec.convert(found, Manifest)
        except (ValueError, RecursionError) as error:
            raise ModelError(f"{path} is damaged: {error}. {_ELSEWHERE}") from None
        for key in ("model", "answers", "max_line", "shard_size"):
            if getattr(begun, key) != getattr(self, key):
                name = "format of answers" if key == "answers" else key
                raise ModelError(f"The run in {out} was begun with another {name}. {_ELSEWHERE}")
        if begun.shards != self.shards:
            if [shard.file for shard in begun.shards] == [shard.file for shard in self.shards]:
                raise shards.changed(next(a.file for a, b in zip(begun.shards, self.shards, strict=True) if a != b))
            raise CorpusError(f"The run in {out} was begun with other files, or they have changed. {_ELSEWHERE}")

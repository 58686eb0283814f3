"""Answering files shard by shard into a directory, so that a run can be resumed.

The directory holds `manifest.json`, that is the plan; for each shard that is finished its answers, `part-00000.jsonl`
or `.parquet`, and a *receipt*, `part-00000.receipt.json`: a digest of the answers, what was counted, what was bad. Both
are written whole, the receipt last, by whoever answered the shard. So at any moment what has a receipt is finished,
whoever is killed; a run that starts again keeps what agrees with its receipt, and answers the rest. A run with another
model, other settings or other input is refused.
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
from hasten.scale import places, shards
from hasten.scale.shards import Shard
from hasten.scale.work import Answerer, Bad, Counts, Work
from hasten.speedup.audit import Agreement
from hasten.speedup.state import Counters
from hasten.support.checks import brief, check_whole
from hasten.support.terminal import Pace, Progress, no_progress
from hasten.support.workers import in_processes

FORMAT = "hasten.run/3"
NAMED = 5  # bad records that an error names


class Receipt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The record of a finished shard."""

    shard: int
    job: str  # digest of what was done
    input: str  # digest of what it was done with
    digest: str  # of the answers
    counts: dict[str, int]
    bad: list[Bad]
    kept: bool = False  # whether it was done before, and is only verified now


@dataclass(frozen=True)
class Job:
    """The work of a run, sent to each worker once: it answers shards."""

    work: Work
    out: str
    suffix: str  # of the files with answers
    max_line: int
    digest: str  # of the work

    def path(self, shard: int) -> str:
        """Returns where the answers to a shard go."""
        return places.join(self.out, f"part-{shard:05d}{self.suffix}")

    def __call__(self, shard: Shard) -> Receipt:
        """Answers a shard, unless that was done."""
        if receipt := self.finished(shard):
            return receipt
        counts, bad = Counts(), list[Bad]()
        self.work.begin(shard.number)

        def answered() -> Iterator[Any]:
            answerer = Answerer(self.work, set_aside=True, as_lines=self.suffix != ".parquet")
            for found in map(answerer, shards.read(shard, self.max_line, bad)):
                counts.update(found.counts)
                bad.extend(found.bad)
                yield found.records

        place = self.path(shard.number)
        with places.writing(place) as part:
            if self.suffix == ".parquet":
                shards.write(part, answered(), self.work.kind)
            else:
                with open(part, "wb") as file:
                    file.writelines(answered())
            digest = places.digest(str(part)) or ""
        bad.sort(key=lambda each: each.line)
        receipt = Receipt(shard.number, self.digest, shard.digest, digest, dict(counts), bad)
        said = msgspec.json.encode(receipt)  # with a digest of all it says: one that is damaged does not count
        signed = {"receipt": msgspec.Raw(said), "sha256": hashlib.sha256(said).hexdigest()}
        places.write(self._receipt(shard.number), msgspec.json.encode(signed))
        return receipt

    def finished(self, shard: Shard) -> Receipt | None:
        """Returns the receipt of a shard whose answers are there and whole."""
        try:
            signed = msgspec.json.decode(places.read(self._receipt(shard.number)) or b"", type=dict[str, msgspec.Raw])
            said, sha256 = signed["receipt"], msgspec.json.decode(signed["sha256"])
            receipt = msgspec.json.decode(said, type=Receipt)
        except (KeyError, ValueError, RecursionError):
            return None
        if hashlib.sha256(said).hexdigest() != sha256:
            return None
        if (receipt.shard, receipt.job, receipt.input) != (shard.number, self.digest, shard.digest):
            return None
        whole = places.digest(self.path(shard.number)) == receipt.digest
        if not whole or any(each.file != shard.file for each in receipt.bad):
            return None
        return msgspec.structs.replace(receipt, kept=True)

    def _receipt(self, shard: int) -> str:
        return places.join(self.out, f"part-{shard:05d}.receipt.json")


Engine = Callable[[Job, Sequence[Shard]], Iterator[Receipt]]  # answers shards in any order, here or elsewhere


def here(jobs: int = 1) -> Engine:
    """Returns what answers shards in processes of this machine."""
    return partial(in_processes, jobs=jobs)


@dataclass(frozen=True)
class Sharding:
    """How files are cut into shards.

    format
        Of the answers: "jsonl" or "parquet".
    size
        Records of a shard, at least 1. A run is resumed shard by shard.
    max_bad
        Records that may be set aside; more are an error. They are listed in `bad.jsonl`.
    max_line
        Longest line that is read, in bytes; a longer one is bad.
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
class Run:
    """A finished run: where its answers are, counters over all shards, and the records that were set aside."""

    out: str
    files: tuple[str, ...]  # the answers, in the order of the input
    counts: Counts
    bad: tuple[Bad, ...]
    n_kept: int  # shards that were finished before

    @property
    def counters(self) -> Counters:
        """The counters, as a speedup has them."""
        return Counters.from_dict(self.counts)

    @property
    def agreement(self) -> Agreement:
        """How often audits agreed, over all shards."""
        audits = self.counts["audits"]
        return Agreement.of(audits - self.counts["disagreements"], audits)

    def merge(self, target: str | os.PathLike[str]) -> None:
        """Puts all answers into one file, in the order of the input."""
        place = places.plain(target)
        suffix = Path(place).suffix
        if not self.files or suffix != Path(self.files[0]).suffix:
            raise WriteError(f"{place} does not end like the answers in {self.out}. Give it the same ending.")
        with places.writing(place) as part:
            if suffix == ".parquet":
                shards.merge(part, self.files)
            else:
                with open(part, "wb") as file:
                    for each in self.files:
                        with places.reading(each) as source:
                            shutil.copyfileobj(source, file, 1 << 20)


def predict_shards(
    work: Work,
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    how: Sharding = DEFAULT,
    engine: Engine | None = None,
    progress: Progress = no_progress,
) -> Run:
    """Answers the records of files, or URLs, into a directory; what was done there before is kept."""
    place = places.plain(out)
    if how.format == "parquet":
        shards.columns(work.kind)  # pyarrow that is missing is told now
    progress("Reading the input", None)
    todo = list(shards.plan(places.find(paths), how.size))
    job = Job(work, place, f".{how.format}", how.max_line, work.digest)
    manifest = Manifest(FORMAT, job.digest, how.format, how.max_line, how.size, todo)
    _agree(place, manifest)
    run = _run(job, todo, engine or here(), how.max_bad, progress)
    bad = [json.dumps(each._asdict()) + "\n" for each in run.bad]
    places.write(places.join(place, "bad.jsonl"), "".join(bad).encode())
    finished = {"counts": dict(run.counts), "bad": len(run.bad), "parts": [Path(each).name for each in run.files]}
    msgspec.structs.replace(manifest, finished=finished).write(place)
    return run


def _run(job: Job, todo: Sequence[Shard], engine: Engine, max_bad: int, progress: Progress) -> Run:
    counts, bad, n_kept = Counts(), list[Bad](), 0
    n_lines, done, before, pace = sum(shard.n for shard in todo), 0, 0, Pace()
    for receipt in engine(job, todo):
        counts.update(receipt.counts)
        bad += receipt.bad
        n_kept += receipt.kept
        done += todo[receipt.shard].n
        before += todo[receipt.shard].n if receipt.kept else 0
        progress("Answering records", done / max(1, n_lines), pace.words(done, n_lines, before))
        if len(bad) > max_bad:
            named = "\n".join(f"  {each}" for each in sorted(bad)[:NAMED])
            raise CorpusError(
                f"More than {max_bad:,} records could not be answered, among them\n{named}\n"
                "Mend the input, or allow more: --max-bad on the command line, max_bad= in Python."
            )
    place_of = {file: n for n, file in enumerate(dict.fromkeys(shard.file for shard in todo))}
    bad.sort(key=lambda each: (place_of[each.file], each.line))
    files = tuple(job.path(shard.number) for shard in todo)
    return Run(job.out, files, counts, tuple(bad), n_kept)


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The plan of a run and, once it is finished, its outcome."""

    format: str
    model: str
    answers: str
    max_line: int
    shard_size: int
    shards: list[Shard]
    finished: dict[str, Any] | None = None

    def write(self, out: str) -> None:
        """Writes it into the directory of the run."""
        places.write(places.join(out, "manifest.json"), msgspec.json.format(msgspec.json.encode(self), indent=1))


_ELSEWHERE = "Choose another directory for a new run."


def _agree(out: str, manifest: Manifest) -> None:
    """Begins a run, or sees that the one begun there is the same."""
    place = places.join(out, "manifest.json")
    said = places.read(place)
    if said is None:
        if not places.is_empty(out):
            raise WriteError(f"{out} is not empty, and holds no run of ours. Choose another directory.")
        places.make_directory(out)
        manifest.write(out)
        return
    try:
        found = msgspec.json.decode(said)
        if isinstance(found, dict) and found.get("format") != FORMAT:
            raise ModelError(f"{place} was written by another version of hasten. {_ELSEWHERE}")
        begun = msgspec.convert(found, Manifest)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{place} is damaged: {error}. {_ELSEWHERE}") from None
    for key in ("model", "answers", "max_line", "shard_size"):  # must be the same when a run goes on
        if getattr(begun, key) != getattr(manifest, key):
            name = "format of answers" if key == "answers" else key
            raise ModelError(f"The run in {out} was begun with another {name}. {_ELSEWHERE}")
    if begun.shards != manifest.shards:
        if [shard.file for shard in begun.shards] == [shard.file for shard in manifest.shards]:
            raise shards.changed(next(a.file for a, b in zip(begun.shards, manifest.shards, strict=True) if a != b))
        raise CorpusError(f"The run in {out} was begun with other files, or they have changed. {_ELSEWHERE}")

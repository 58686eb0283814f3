"""Answering records: a piece of them is read, answered as one batch, and written.

A record is a line of JSON or a row of Parquet. One that cannot be read or answered is *bad*: an error, or set aside
with its line and the reason. `predict_stream` answers a stream of sentences in order, in constant memory, by one
process or several; it is the work of `hasten predict`. JSON lines go to the workers as blocks of bytes, and come back
as the bytes to write, so that this process only passes them on. Sentences of other formats are read in this process.
`FlatWork` answers flat problems: a record has the name of a structure and a cost for each label.
"""

from __future__ import annotations

import gc
import hashlib
import json
import math
import os
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from hasten.errors import CorpusError, NoAnswerError, ProblemError
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.structure import Structure
from hasten.speedup.predictor import Speedup
from hasten.support.terminal import Pace, Progress, no_progress
from hasten.support.workers import in_processes
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.data.formats import format_of, read_corpus
from hasten.tasks.text.lines import MAX_LINE, AnyPath, Block, Faults, called, parse_object, read_blocks, write_blocks

RECORD_ERRORS = (CorpusError, ProblemError, NoAnswerError)  # caused by a record; other errors end the work

Record = dict[str, Any]
Counts = Counter[str]  # sums over records, by name, so that the counts of pieces add up
WORDS = 50_000  # in the sentences of a piece that are read in this process


class Items(NamedTuple):
    """The items of a piece; the `Columns` of sentences have the same names."""

    values: Sequence[Any]
    numbers: Sequence[int]  # of their records
    refused: Sequence[tuple[int, CorpusError]] = ()  # the numbers of bad records, and their errors

    def part(self, start: int, stop: int) -> Items:
        """Returns a range of the items."""
        return Items(self.values[start:stop], self.numbers[start:stop])


class RecordWork(Protocol):
    """Reads the records of a piece, answers them as one batch, and encodes the answers."""

    kind: str  # "text" or "flat", for the columns of Parquet files

    @property
    def digest(self) -> str:
        """A digest of all that an answer depends on."""
        ...

    def begin(self, shard: int) -> None:
        """Begins a shard; random numbers depend on its number alone."""
        ...

    def read(self, piece: Any) -> Any:
        """Returns the `Items` of a piece."""
        ...

    def answer(self, items: Any) -> tuple[list[Any], Counts]:
        """Returns an answer for each item, in order, and counts."""
        ...

    def encode(self, records: Sequence[Any]) -> bytes:
        """Returns answers as lines of JSON."""
        ...


class BadRecord(NamedTuple):
    """A record that could not be answered: its file, its line or row (from 1), and the reason."""

    file: str
    line: int
    reason: str

    @property
    def place(self) -> str:
        """The file and the line."""
        return f"{self.file}, line {self.line}"

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


class Chunk(NamedTuple):
    """Some decoded records of a file, numbered from `first`: rows of a table, or sentences."""

    file: str
    first: int
    records: Sequence[Any]

    def entries(self) -> Iterator[tuple[int, Any]]:
        """Yields the records with their numbers."""
        return enumerate(self.records, self.first)


Piece = Block | Chunk  # the records of a file that are read, answered and written together


class PieceAnswers(NamedTuple):
    """The answers to a piece, in order, as bytes of JSON lines or as records; its bad records."""

    records: Any
    counts: Counts
    bad: list[BadRecord]


@dataclass(frozen=True)
class PieceAnswerer:
    """Answers pieces; sent to each worker once. A bad record is an error that names its line, or is set aside."""

    work: RecordWork
    set_aside: bool = False
    as_lines: bool = True  # whether answers are encoded as JSON lines

    def __call__(self, piece: Piece) -> PieceAnswers:
        """Answers a piece."""
        with _without_cycles():
            return self._answer(piece, self.work.read(piece))

    def _answer(self, piece: Piece, items: Items) -> PieceAnswers:
        bad = [BadRecord(piece.file, number, str(error)) for number, error in items.refused]
        if bad and not self.set_aside:
            raise CorpusError(str(bad[0])) from items.refused[0][1]
        try:
            records, counts = self.work.answer(items)
        except RECORD_ERRORS:
            if not self.set_aside:
                raise
            records, counts = list[Any](), Counts()
            for n, number in enumerate(items.numbers):
                try:
                    more, counted = self.work.answer(items.part(n, n + 1))
                except RECORD_ERRORS as error:
                    bad.append(BadRecord(piece.file, number, str(error)))
                else:
                    records += more
                    counts += counted
        bad.sort(key=lambda each: each.line)
        return PieceAnswers(self.work.encode(records) if self.as_lines else records, counts, bad)


def predict_stream(
    work: RecordWork,
    source: AnyPath,
    target: AnyPath,
    *,
    format: str = "auto",
    max_line: int = MAX_LINE,
    faults: Faults | None = None,
    jobs: int = 1,
    progress: Progress = no_progress,
) -> Counts:
    """Answers the sentences of one file into another, and returns counts; `"-"` is standard input or output.

    format, max_line
        Of the input: a format that `hasten convert` reads, and the longest line, in characters.
    faults
        Collects bad records; by default, the first one is an error.
    jobs
        Number of processes. Answers do not depend on it.
    """
    faults = faults or Faults()
    counts, pace = Counts(), Pace()
    pieces = read_pieces(source, format, max_line, faults)

    def lines() -> Iterator[bytes]:
        for done in answer_stream(work, pieces, jobs=jobs, set_aside=faults.skip):
            for bad in done.bad:
                faults.meet(CorpusError(bad.reason), bad.place)
            counts.update(done.counts)
            progress("Labelling sentences", None, pace.words(counts["problems"]))
            yield done.records
        if not counts["problems"] and not faults.n:
            raise CorpusError(f"{called(source)} has no sentence. Check that it is the right file.")

    try:
        write_blocks(target, lines())
    except CorpusError:
        if source != "-" and os.path.isfile(source):  # reads on, for an error that counts all bad records
            deque(read_corpus(source, format, max_line), maxlen=0)
        raise
    return counts


def read_pieces(
    path: AnyPath, format: str = "auto", max_line: int = MAX_LINE, faults: Faults | None = None
) -> Iterator[Piece]:
    """Reads a corpus in pieces: blocks of JSON lines as they are, decoded sentences of other formats."""
    format = format_of(path, format)
    if format == "jsonl":
        yield from read_blocks(path, max_line)
        return
    first, sentences, size = 1, list[Sentence](), 0
    for sentence in read_corpus(path, format, max_line, faults=faults):
        sentences.append(sentence)
        size += 1 + len(sentence.tokens)
        if size >= WORDS:
            yield Chunk(called(path), first, sentences)
            first, sentences, size = first + len(sentences), [], 0
    if sentences:
        yield Chunk(called(path), first, sentences)


@contextmanager
def _without_cycles() -> Iterator[None]:
    """Pauses garbage collection, which takes a fifth of the time: a piece makes many objects, but no cycles."""
    paused = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if paused:
            gc.enable()


def answer_stream(
    work: RecordWork, pieces: Iterable[Piece], *, jobs: int = 1, set_aside: bool = False
) -> Iterator[PieceAnswers]:
    """Yields the answers to pieces as JSON lines, in order; they do not depend on the number of jobs."""
    return in_processes(PieceAnswerer(work, set_aside), pieces, jobs)


class FlatProblem(NamedTuple):
    """A problem with its id and the name of its structure."""

    id: str
    structure: str
    problem: Problem


@dataclass(eq=False)
class FlatWork:
    """Answers problems of named structures.

    Each shard is answered by a fresh copy of the speedup, which draws its audits by the seed and the number of the
    shard; so answers, counters and audits do not depend on the workers.
    """

    speedup: Speedup
    structures: Mapping[str, Structure]
    _copy: Speedup = field(init=False, repr=False)  # for the current shard

    kind = "flat"

    def __post_init__(self) -> None:
        if self.speedup.learn:
            raise ProblemError("A speedup that learns as it works cannot be copied to shards. Set learn=False.")
        if not self.structures:
            raise ProblemError("Flat problems need structures: name at least one.")
        for shape in self.structures.values():  # fails now if the speedup cannot answer
            self.speedup.for_shard(0).predict(shape.batch(np.zeros((1, shape.n_labels))))
        self.begin(0)

    def __reduce__(self) -> tuple[Any, ...]:
        return FlatWork, (self.speedup, dict(self.structures))

    @property
    def digest(self) -> str:
        """A digest of all that an answer depends on."""
        digest = hashlib.sha256(self.speedup.digest.encode())
        for name in sorted(self.structures):
            digest.update(f"{name} {self.structures[name].schema.digest}".encode())
            digest.update(self.structures[name].graph.buffer.tobytes())
        return digest.hexdigest()

    def begin(self, shard: int) -> None:
        """Begins a shard; random numbers depend on its number alone."""
        self._copy = self.speedup.for_shard(shard)

    def read(self, piece: Piece) -> Items:
        """Reads problems."""
        problems, numbers, refused = list[FlatProblem](), list[int](), list[tuple[int, CorpusError]]()
        for number, entry in piece.entries():
            try:
                record = parse_object(entry) if isinstance(entry, str | bytes) else entry
                problems.append(self._read(record, str(number)))
                numbers.append(number)
            except RECORD_ERRORS as error:
                refused.append((number, CorpusError(str(error))))
        return Items(problems, numbers, refused)

    def _read(self, record: Record, default_id: str) -> FlatProblem:
        name = record.get("structure")
        if name is None and len(self.structures) == 1:
            name = next(iter(self.structures))
        if not isinstance(name, str) or name not in self.structures:
            names = ", ".join(sorted(self.structures))
            raise CorpusError(f"There is no structure {str(name)[:60]!r}. There are {names}.")
        costs = record.get("costs")
        if not isinstance(costs, list):
            raise CorpusError("'costs' should be a list of numbers, one for each label.")
        if not isinstance(record.get("id", ""), str):
            raise CorpusError("'id' should be a string. Put it in quotes.")
        return FlatProblem(record.get("id", default_id), name, self.structures[name].problem(costs))

    def answer(self, items: Items) -> tuple[list[Record], Counts]:
        """Returns answers, and the counters of the speedup."""
        if not items.values:
            return [], Counts()
        before = Counts(self._copy.counters.as_dict())
        answers = self._copy.predict(Batch.of([each.problem for each in items.values]))
        counts = Counts(self._copy.counters.as_dict())
        counts.subtract(before)
        records = []
        for (id, structure, _), found in zip(items.values, answers, strict=True):
            record: Record = {"id": id, "structure": structure}
            if found.values is not None:
                record |= {"labels": found.names, "cost": float(found.cost) if math.isfinite(found.cost) else None}
            record |= {"proved": bool(found.proved), "source": found.source.value, "status": found.status.value}
            records.append(record | ({"failed": found.reason} if found.reason else {}))
        counts["failed"] = sum("failed" in record for record in records)
        return records, counts

    def encode(self, records: Sequence[Record]) -> bytes:
        """Returns answers as lines of JSON."""
        return "".join(json.dumps(record) + "\n" for record in records).encode()

"""The work on records: some at a time are read, answered as one batch, and written, by whoever has the time.

A record is a line of JSON or a row of Parquet. One that cannot be read or answered is *bad*: an error, or set aside
with its place and the reason. `predict_stream` answers a stream of sentences in order, in constant memory, by one
process or several: what `hasten predict` does. JSON lines go to the workers in blocks as they stand in the file, and
come back as they will be written, so that this process only passes them on. Sentences of other formats are read here.
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

FAULTS = (CorpusError, ProblemError, NoAnswerError)  # of a record; all other errors are no fault of its own

Record = dict[str, Any]
Counts = Counter[str]  # what was done, by name; sums over records, so those of many pieces add up exactly
PIECE = 50_000  # words of sentences that are read here and answered together


class Items(NamedTuple):
    """The items of a piece; the `Columns` of sentences have the same names."""

    values: Sequence[Any]
    numbers: Sequence[int]  # of the record that each was read from
    refused: Sequence[tuple[int, CorpusError]] = ()  # the numbers of the other records, and what is wrong with them

    def part(self, start: int, stop: int) -> Items:
        """Returns some of them."""
        return Items(self.values[start:stop], self.numbers[start:stop])


class Work(Protocol):
    """Reads the records of a piece, answers them as one batch, and writes the answers."""

    kind: str  # "text" or "flat": which columns Parquet files have

    @property
    def digest(self) -> str:
        """Changes with whatever can change an answer."""
        ...

    def begin(self, shard: int) -> None:
        """Begins a shard: what is drawn from now on depends on its number alone."""
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


class Bad(NamedTuple):
    """A record that could not be answered: where it stands, from line 1 (or row 1) on, and why."""

    file: str
    line: int
    reason: str

    @property
    def place(self) -> str:
        """Where it stands, in words."""
        return f"{self.file}, line {self.line}"

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


class Chunk(NamedTuple):
    """Some records of a file that are read already, numbered from `first`: rows of a table, or sentences."""

    file: str
    first: int
    records: Sequence[Any]

    def entries(self) -> Iterator[tuple[int, Any]]:
        """Yields the records with their numbers."""
        return enumerate(self.records, self.first)


Piece = Block | Chunk  # of a file; what is read, answered and written together


class Answered(NamedTuple):
    """The answers to a piece, in order, as lines of a file or as records; what could not be answered."""

    records: Any
    counts: Counts
    bad: list[Bad]


@dataclass(frozen=True)
class Answerer:
    """Answers pieces; sent to each worker once. What is bad is an error that says where it stands, or is set aside."""

    work: Work
    set_aside: bool = False
    as_lines: bool = True  # whether answers become the lines of a file, or stay records

    def __call__(self, piece: Piece) -> Answered:
        """Answers a piece."""
        with _without_cycles():
            return self._answer(piece, self.work.read(piece))

    def _answer(self, piece: Piece, items: Items) -> Answered:
        bad = [Bad(piece.file, number, str(error)) for number, error in items.refused]
        if bad and not self.set_aside:
            raise CorpusError(str(bad[0])) from items.refused[0][1]
        try:
            records, counts = self.work.answer(items)
        except FAULTS:
            if not self.set_aside:
                raise
            records, counts = list[Any](), Counts()
            for n, number in enumerate(items.numbers):
                try:
                    more, counted = self.work.answer(items.part(n, n + 1))
                except FAULTS as error:
                    bad.append(Bad(piece.file, number, str(error)))
                else:
                    records += more
                    counts += counted
        bad.sort(key=lambda each: each.line)
        return Answered(self.work.encode(records) if self.as_lines else records, counts, bad)


class Reading(NamedTuple):
    """How sentences are read: their format, the longest line, and what becomes of those that cannot be used."""

    format: str = "auto"
    max_line: int = MAX_LINE
    faults: Faults | None = None


def predict_stream(
    work: Work,
    source: AnyPath,
    target: AnyPath,
    reading: Reading | None = None,
    *,
    jobs: int = 1,
    progress: Progress = no_progress,
) -> Counts:
    """Answers the sentences of one file into another, and returns what was done; `"-"` is standard input or output."""
    format, max_line, given = reading or Reading()
    faults = given or Faults()
    counts, pace = Counts(), Pace()
    pieces = read_pieces(source, format, max_line, faults)

    def labelled() -> Iterator[bytes]:
        for done in answer_stream(work, pieces, jobs=jobs, set_aside=faults.skip):
            for bad in done.bad:
                faults.meet(CorpusError(bad.reason), bad.place)
            counts.update(done.counts)
            progress("Labelling sentences", None, pace.words(counts["problems"]))
            yield done.records
        if not counts["problems"] and not faults.n:
            raise CorpusError(f"{called(source)} has no sentence. Check that it is the right file.")

    try:
        write_blocks(target, labelled())
    except CorpusError:
        if source != "-" and os.path.isfile(source):  # says how many others there are
            deque(read_corpus(source, format, max_line), maxlen=0)
        raise
    return counts


def read_pieces(
    path: AnyPath, format: str = "auto", max_line: int = MAX_LINE, faults: Faults | None = None
) -> Iterator[Piece]:
    """Reads a corpus, some sentences at a time: JSON lines as they are, sentences of any other format."""
    format = format_of(path, format)
    if format == "jsonl":
        yield from read_blocks(path, max_line)
        return
    at, some, size = 1, list[Sentence](), 0
    for sentence in read_corpus(path, format, max_line, faults=faults):
        some.append(sentence)
        size += 1 + len(sentence.tokens)
        if size >= PIECE:
            yield Chunk(called(path), at, some)
            at, some, size = at + len(some), [], 0
    if some:
        yield Chunk(called(path), at, some)


@contextmanager
def _without_cycles() -> Iterator[None]:
    """Pauses the search for cyclic garbage, a fifth of the time: a piece makes many objects, and no cycles of them."""
    paused = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if paused:
            gc.enable()


def answer_stream(work: Work, pieces: Iterable[Piece], *, jobs: int = 1, set_aside: bool = False) -> Iterator[Answered]:
    """Yields the answers to pieces as lines of JSON, in order; they do not depend on the number of jobs."""
    return in_processes(Answerer(work, set_aside), pieces, jobs)


class Named(NamedTuple):
    """A problem with its id, and the name of its structure."""

    id: str
    structure: str
    problem: Problem


@dataclass(eq=False)
class FlatWork:
    """Answers problems of the structures given by name.

    Each shard is answered by a copy of the speedup as it was given, which draws its audits by its seed and the number
    of the shard: so answers, counters and audits depend neither on who answers which shard, nor on how many do.
    """

    speedup: Speedup
    structures: Mapping[str, Structure]
    _mine: Speedup = field(init=False, repr=False)  # for the shard at hand

    kind = "flat"

    def __post_init__(self) -> None:
        if self.speedup.learn:
            raise ProblemError("A speedup that learns as it works cannot be copied to shards. Set learn=False.")
        if not self.structures:
            raise ProblemError("Flat problems need structures: name at least one.")
        for shape in self.structures.values():  # a speedup that cannot answer is refused now
            self.speedup.for_shard(0).predict(shape.batch(np.zeros((1, shape.n_labels))))
        self.begin(0)

    def __reduce__(self) -> tuple[Any, ...]:
        return FlatWork, (self.speedup, dict(self.structures))

    @property
    def digest(self) -> str:
        """Changes with whatever can change an answer."""
        digest = hashlib.sha256(self.speedup.digest.encode())
        for name in sorted(self.structures):
            digest.update(f"{name} {self.structures[name].schema.digest}".encode())
            digest.update(self.structures[name].graph.buffer.tobytes())
        return digest.hexdigest()

    def begin(self, shard: int) -> None:
        """Begins a shard: what is drawn from now on depends on its number alone."""
        self._mine = self.speedup.for_shard(shard)

    def read(self, piece: Piece) -> Items:
        """Reads problems."""
        problems, numbers, refused = list[Named](), list[int](), list[tuple[int, CorpusError]]()
        for number, entry in piece.entries():
            try:
                record = parse_object(entry) if isinstance(entry, str | bytes) else entry
                problems.append(self._read(record, str(number)))
                numbers.append(number)
            except FAULTS as error:
                refused.append((number, CorpusError(str(error))))
        return Items(problems, numbers, refused)

    def _read(self, record: Record, default_id: str) -> Named:
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
        return Named(record.get("id", default_id), name, self.structures[name].problem(costs))

    def answer(self, items: Items) -> tuple[list[Record], Counts]:
        """Returns answers, and the counters of the speedup."""
        if not items.values:
            return [], Counts()
        before = Counts(self._mine.counters.as_dict())
        answers = self._mine.predict(Batch.of([each.problem for each in items.values]))
        counts = Counts(self._mine.counters.as_dict())
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

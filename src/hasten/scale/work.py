"""What is done with records: read one by one, answered some at a time, by whoever has the time.

A record is an object of JSON or a row of Parquet. One that cannot be read or answered is *bad*: an error, or set aside
with its place and the reason.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from hasten.errors import CorpusError, NoAnswerError, ProblemError
from hasten.tasks.text.objects import parse_object

CHUNK = 512  # records answered together
FAULTS = (CorpusError, ProblemError, NoAnswerError)  # of a record; all other errors are no fault of its own

Record = dict[str, Any]
Counts = Counter[str]  # what was done, by name; sums over records, so those of many pieces add up exactly


class Work(Protocol):
    """Reads records and answers them."""

    kind: str  # "text" or "flat": which columns Parquet files have

    @property
    def digest(self) -> str:
        """Changes with whatever can change an answer."""
        ...

    def warm(self) -> None:
        """Compiles, or loads, the kernels that answers need."""
        ...

    def begin(self, shard: int) -> None:
        """Begins a shard: what is drawn from now on depends on its number alone."""
        ...

    def read(self, record: Any, default_id: str) -> Any:
        """Returns what a record stands for; one that is not right is a `HastenError`."""
        ...

    def answer(self, items: Sequence[Any]) -> tuple[list[Record], Counts]:
        """Returns a record for each thing that was read, in order, and counts."""
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
    """Some records of a file, each with its number: lines of JSON, or what was read of them already."""

    file: str
    numbers: Sequence[int]
    records: Sequence[Any]


class Answered(NamedTuple):
    """The answers to a chunk, in order, and what could not be answered."""

    records: list[Record]
    counts: Counts
    bad: list[Bad]


def answer(work: Work, chunk: Chunk, *, set_aside: bool = False) -> Answered:
    """Answers a chunk. What is bad is an error that says where it stands, or is set aside."""
    items, places, bad = [], [], []
    for number, record in zip(chunk.numbers, chunk.records, strict=True):
        try:
            found = parse(record) if isinstance(record, str | bytes) else record
            items.append(work.read(found, str(number)))
            places.append(number)
        except FAULTS as error:
            if not set_aside:
                raise CorpusError(str(Bad(chunk.file, number, str(error)))) from error
            bad.append(Bad(chunk.file, number, str(error)))
    try:
        return Answered(*work.answer(items), bad)
    except FAULTS:
        if not set_aside or not items:
            raise
    records, counts = [], Counts()
    for number, item in zip(places, items, strict=True):
        try:
            more, counted = work.answer([item])
        except FAULTS as error:
            bad.append(Bad(chunk.file, number, str(error)))
        else:
            records += more
            counts += counted
    return Answered(records, counts, sorted(bad, key=lambda each: each.line))


def parse(line: str | bytes) -> Record:
    """Returns the object of JSON that a line is."""
    if isinstance(line, bytes):
        try:
            line = line.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise CorpusError("The line is not utf-8 text. Convert the file.") from None
    return parse_object(line)


def as_lines(records: Iterable[Record]) -> Iterator[str]:
    """Yields records as lines of JSON."""
    for record in records:
        yield json.dumps(record) + "\n"

"""What is done with records: some at a time are read, answered as one batch, and written, by whoever has the time.

A record is a line of JSON or a row of Parquet. One that cannot be read or answered is *bad*: an error, or set aside
with its place and the reason.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import hasten.kernels
from hasten.errors import CorpusError, NoAnswerError, ProblemError
from hasten.tasks.text.lines import Block

try:
    import fcntl
except ImportError:  # without locks each compiles for itself
    fcntl = None  # type: ignore[assignment]

FAULTS = (CorpusError, ProblemError, NoAnswerError)  # of a record; all other errors are no fault of its own

Record = dict[str, Any]
Counts = Counter[str]  # what was done, by name; sums over records, so those of many pieces add up exactly


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

    def warm(self) -> None:
        """Compiles, or loads, the kernels that answers need."""
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
    """The answers to a piece, in order, and what could not be answered."""

    records: list[Any]
    counts: Counts
    bad: list[Bad]


def answer_all(work: Work, pieces: Iterable[Piece], *, set_aside: bool = False) -> Iterator[Answered]:
    """Answers pieces in order; a thread reads the next one while kernels, which need no lock, answer this one."""
    stream = ((piece, work.read(piece)) for piece in pieces)
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, stream, None)
        while (read := coming.result()) is not None:
            coming = pool.submit(next, stream, None)
            yield _answer(work, *read, set_aside)


def answer(work: Work, piece: Piece, *, set_aside: bool = False) -> Answered:
    """Answers a piece. What is bad is an error that says where it stands, or is set aside."""
    return _answer(work, piece, work.read(piece), set_aside)


def _answer(work: Work, piece: Piece, items: Items, set_aside: bool) -> Answered:
    bad = [Bad(piece.file, number, str(error)) for number, error in items.refused]
    if bad and not set_aside:
        raise CorpusError(str(bad[0])) from items.refused[0][1]
    try:
        return Answered(*work.answer(items), bad)
    except FAULTS:
        if not set_aside:
            raise
    records, counts = list[Any](), Counts()
    for n, number in enumerate(items.numbers):
        try:
            more, counted = work.answer(items.part(n, n + 1))
        except FAULTS as error:
            bad.append(Bad(piece.file, number, str(error)))
        else:
            records += more
            counts += counted
    return Answered(records, counts, sorted(bad, key=lambda each: each.line))


def warm_once_per_node(work: Work) -> None:
    """Lets a work compile, or load, the kernels it needs: the first of this node alone, then the others all at once."""
    with _first_alone(os.path.dirname(hasten.kernels.__file__)):
        work.warm()


@contextmanager
def _first_alone(name: str) -> Iterator[None]:
    """Holds a lock of all processes of a user on this node: the first for itself, the others together after it."""
    if fcntl is None:
        yield
        return
    user = os.getuid()
    short = hashlib.sha256(f"{user} {name}".encode()).hexdigest()[:16]
    file = os.open(Path(tempfile.gettempdir()) / f"hasten-{short}.lock", os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(file, fcntl.LOCK_SH)
        yield
    finally:
        os.close(file)

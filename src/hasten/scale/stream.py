"""A stream of sentences, answered in order, in constant memory, by one process or several (`--jobs`).

JSON lines go to the workers in blocks as they stand in the file, and come back as they will be written, so that this
process only passes them on: turning text into sentences and back takes as long as labelling them. Sentences of other
formats are read here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from hasten.scale.work import CHUNK, Bad, Chunk, Counts, Work, answer, as_lines
from hasten.support.workers import in_processes
from hasten.tasks.entity_relation.data.formats import format_of, read_corpus
from hasten.tasks.text.blocks import Block, read_blocks
from hasten.tasks.text.lines import MAX_LINE, AnyPath, Faults, called

Piece = Block | Chunk  # of a stream


class Written(NamedTuple):
    """The answers to some records as lines of JSON, and what could not be answered."""

    lines: str
    counts: Counts
    bad: list[Bad]


@dataclass(frozen=True)
class Answer:
    """Answers lines with lines; sent to each worker once."""

    work: Work
    set_aside: bool = False

    def __call__(self, piece: Piece) -> Written:
        """Answers a chunk, or the lines of a block chunk by chunk."""
        lines, counts, bad = list[str](), Counts(), list[Bad]()
        for chunk in _chunks(piece):
            found = answer(self.work, chunk, set_aside=self.set_aside)
            lines.extend(as_lines(found.records))
            counts.update(found.counts)
            bad.extend(found.bad)
        return Written("".join(lines), counts, bad)


def _chunks(piece: Piece) -> Iterator[Chunk]:
    if isinstance(piece, Chunk):
        yield piece
        return
    numbered = piece.lines()
    while some := list(islice(numbered, CHUNK)):
        numbers, lines = zip(*some, strict=True)
        yield Chunk(piece.file, numbers, lines)


def answer_stream(work: Work, pieces: Iterable[Piece], *, jobs: int = 1, set_aside: bool = False) -> Iterator[Written]:
    """Yields the answers to pieces, in order; they do not depend on the number of jobs."""
    return in_processes(Answer(work, set_aside), pieces, jobs)


def read_pieces(
    path: AnyPath, format: str = "auto", max_line: int = MAX_LINE, faults: Faults | None = None, **how: str
) -> Iterator[Piece]:
    """Reads a corpus, some sentences at a time: JSON lines as they are, sentences of any other format."""
    format = format_of(path, format, **how)
    if format == "jsonl":
        yield from read_blocks(path, max_line)
        return
    sentences = read_corpus(path, format, max_line, faults=faults)
    at = 0
    while some := list(islice(sentences, CHUNK)):
        yield Chunk(called(path), range(at + 1, at + 1 + len(some)), some)
        at += len(some)

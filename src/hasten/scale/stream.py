"""A stream of sentences, answered in order, in constant memory, by one process or several (`--jobs`).

JSON lines go to the workers as they stand, and come back as they will be written, so that this process only passes them
on: turning text into sentences and back takes as long as labelling them. Sentences of other formats are read here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from hasten.scale.work import CHUNK, Bad, Chunk, Counts, Work, answer, as_lines
from hasten.support.workers import in_processes
from hasten.tasks.entity_relation.data.formats import format_of, read_corpus
from hasten.tasks.text.lines import MAX_LINE, AnyPath, Faults, called, open_lines


class Written(NamedTuple):
    """The answers to some records as lines of JSON, and what could not be answered."""

    lines: str
    counts: Counts
    bad: list[Bad]


@dataclass(frozen=True)
class Answer:
    """Answers chunks of lines with lines; sent to each worker once."""

    work: Work
    set_aside: bool = False

    def __call__(self, chunk: Chunk) -> Written:
        """Answers a chunk."""
        found = answer(self.work, chunk, set_aside=self.set_aside)
        return Written("".join(as_lines(found.records)), found.counts, found.bad)


def answer_stream(work: Work, chunks: Iterable[Chunk], *, jobs: int = 1, set_aside: bool = False) -> Iterator[Written]:
    """Yields the answers to chunks, in order; they do not depend on the number of jobs."""
    return in_processes(Answer(work, set_aside), chunks, jobs)


def read_chunks(
    path: AnyPath, format: str = "auto", max_line: int = MAX_LINE, faults: Faults | None = None, **how: str
) -> Iterator[Chunk]:
    """Reads a corpus, some sentences at a time: the lines of JSON as they are, sentences of any other format."""
    format = format_of(path, format, **how)
    if format == "jsonl":
        yield from _line_chunks(path, max_line)
        return
    sentences = read_corpus(path, format, max_line, faults=faults)
    at = 0
    while some := list(islice(sentences, CHUNK)):
        yield Chunk(called(path), range(at + 1, at + 1 + len(some)), some)
        at += len(some)


def _line_chunks(path: AnyPath, max_line: int) -> Iterator[Chunk]:
    with open_lines(path, max_line) as lines:
        numbered = ((lines.number, line) for line in lines if not line.isspace())
        while some := list(islice(numbered, CHUNK)):
            numbers, texts = zip(*some, strict=True)
            yield Chunk(called(path), numbers, texts)

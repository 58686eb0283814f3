"""A stream of sentences, answered in order, in constant memory, by one process or several: what `hasten predict` does.

JSON lines go to the workers in blocks as they stand in the file, and come back as they will be written, so that this
process only passes them on. Sentences of other formats are read here.
"""

from __future__ import annotations

import gc
import os
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from hasten.errors import CorpusError
from hasten.scale.work import Answered, Bad, Chunk, Counts, Piece, Work, answer, answer_all
from hasten.support.progress import Pace, Tell, tell_nobody
from hasten.support.workers import in_processes
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.data.formats import format_of, read_corpus
from hasten.tasks.text.lines import MAX_LINE, AnyPath, Faults, called, read_blocks
from hasten.tasks.text.objects import write_blocks

REMEDY = "Name it: --format, one of"
PIECE = 50_000  # words of sentences that are read here and answered together


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
    tell: Tell = tell_nobody,
) -> Counts:
    """Answers the sentences of one file into another, and returns what was done; `"-"` is standard input or output."""
    format, max_line, given = reading or Reading()
    faults = given or Faults()
    counts, pace = Counts(), Pace()
    pieces = read_pieces(source, format, max_line, faults, remedy=REMEDY)

    def labelled() -> Iterator[bytes]:
        for done in answer_stream(work, pieces, jobs=jobs, set_aside=faults.skip):
            for bad in done.bad:
                faults.meet(CorpusError(bad.reason), bad.place)
            counts.update(done.counts)
            tell("Labelling sentences", None, pace.words(counts["problems"]))
            yield done.lines
        if not counts["problems"] and not faults.n:
            raise CorpusError(f"{called(source)} has no sentence. Check that it is the right file.")

    try:
        write_blocks(target, labelled())
    except CorpusError:
        if source != "-" and os.path.isfile(source):  # says how many others there are
            deque(read_corpus(source, format, max_line, remedy=REMEDY), maxlen=0)
        raise
    return counts


def read_pieces(
    path: AnyPath, format: str = "auto", max_line: int = MAX_LINE, faults: Faults | None = None, **how: str
) -> Iterator[Piece]:
    """Reads a corpus, some sentences at a time: JSON lines as they are, sentences of any other format."""
    format = format_of(path, format, **how)
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


class Written(NamedTuple):
    """The answers to a piece as lines of JSON, and what could not be answered."""

    lines: bytes
    counts: Counts
    bad: list[Bad]


@dataclass(frozen=True)
class Answer:
    """Answers lines with lines; sent to each worker once."""

    work: Work
    set_aside: bool = False

    def __call__(self, piece: Piece) -> Written:
        """Answers a piece."""
        with without_cycles():
            return self.written(answer(self.work, piece, set_aside=self.set_aside))

    def written(self, found: Answered) -> Written:
        """Returns answers as they will stand in the file."""
        return Written(self.work.encode(found.records), found.counts, found.bad)


@contextmanager
def without_cycles() -> Iterator[None]:
    """Pauses the search for cyclic garbage, a fifth of the time: a piece makes many objects, and no cycles of them."""
    paused = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if paused:
            gc.enable()


def answer_stream(work: Work, pieces: Iterable[Piece], *, jobs: int = 1, set_aside: bool = False) -> Iterator[Written]:
    """Yields the answers to pieces, in order; they do not depend on the number of jobs."""
    do = Answer(work, set_aside)
    if jobs > 1:
        return in_processes(do, pieces, jobs)
    return _answered_here(do, pieces)


def _answered_here(do: Answer, pieces: Iterable[Piece]) -> Iterator[Written]:
    with without_cycles():
        yield from map(do.written, answer_all(do.work, pieces, set_aside=do.set_aside))

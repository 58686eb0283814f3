"""What `hasten predict` does: a stream of sentences in, labelled lines out."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from hasten.errors import CorpusError
from hasten.scale.pace import Pace
from hasten.scale.stream import answer_stream, read_pieces
from hasten.scale.text import TextWork
from hasten.scale.work import Counts
from hasten.support.progress import Tell, tell_nobody
from hasten.tasks.entity_relation.data.formats import read_corpus
from hasten.tasks.entity_relation.tagger import Tagger
from hasten.tasks.text.lines import MAX_LINE, AnyPath, Faults
from hasten.tasks.text.objects import write_lines

REMEDY = "Name it: --format, one of"


class Reading(NamedTuple):
    """How sentences are read: their format, the longest line, and what becomes of those that cannot be used."""

    format: str = "auto"
    max_line: int = MAX_LINE
    faults: Faults | None = None


def predict_stream(
    tagger: Tagger,
    source: AnyPath,
    target: AnyPath,
    reading: Reading | None = None,
    *,
    jobs: int = 1,
    tell: Tell = tell_nobody,
) -> Counts:
    """Labels the sentences of one file into another, and returns what was done; `"-"` is standard input or output."""
    format, max_line, given = reading or Reading()
    faults = given or Faults()
    counts, pace = Counts(), Pace()
    pieces = read_pieces(source, format, max_line, faults, remedy=REMEDY)

    def labelled() -> Iterator[str]:
        for done in answer_stream(TextWork(tagger), pieces, jobs=jobs, set_aside=faults.skip):
            for bad in done.bad:
                faults.meet(CorpusError(bad.reason), bad.place)
            counts.update(done.counts)
            tell("Labelling sentences", None, pace.words(counts["problems"]))
            yield done.lines

    try:
        write_lines(target, labelled())
    except CorpusError:
        if source != "-" and os.path.isfile(source):  # says how many others there are
            deque(read_corpus(source, format, max_line, remedy=REMEDY), maxlen=0)
        raise
    return counts

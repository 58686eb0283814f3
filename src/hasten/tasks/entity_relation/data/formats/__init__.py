"""The files that sentences come in, one format a module; `read_corpus` reads them all.

Every reader is a generator and holds one sentence at a time. `tasks.text.lines` opens files, packed or not, and adds to
every error the file and the line it is about.

Imports the sentences of the room around it, `tasks.text`, `hasten.support` and `hasten.errors`.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator

from hasten.errors import CorpusError
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.data.formats.brat import read_brat
from hasten.tasks.entity_relation.data.formats.conll04 import read_conll04
from hasten.tasks.entity_relation.data.formats.jsonl import read_jsonl, write_jsonl
from hasten.tasks.entity_relation.data.formats.recognise import recognise
from hasten.tasks.entity_relation.data.formats.records import read_dygie, read_records
from hasten.tasks.entity_relation.data.formats.spacy_docs import read_spacy
from hasten.tasks.entity_relation.data.formats.tables import read_conll2003, read_conllu, read_gmb
from hasten.tasks.text.lines import MAX_LINE, AnyPath, Faults, called

__all__ = [
    "FORMATS",
    "format_of",
    "read_brat",
    "read_conll04",
    "read_conll2003",
    "read_conllu",
    "read_corpus",
    "read_dygie",
    "read_gmb",
    "read_jsonl",
    "read_records",
    "read_spacy",
    "recognise",
    "write_jsonl",
]

FORMATS: dict[str, Callable[[AnyPath, int, Faults | None], Iterator[Sentence]]] = {
    "jsonl": read_jsonl,
    "conll04": read_conll04,
    "conll2003": read_conll2003,
    "gmb": read_gmb,
    "conllu": read_conllu,
    "brat": read_brat,
    "dygie": read_dygie,
    "records": read_records,
    "spacy": read_spacy,
}


def read_corpus(
    path: AnyPath,
    format: str = "auto",
    max_line: int = MAX_LINE,
    *,
    remedy: str = "Name it: format= one of",
    faults: Faults | None = None,
) -> Iterator[Sentence]:
    """Reads a corpus in any of `FORMATS`; `"auto"` tells which by `recognise`.

    `remedy` is what to do where that cannot tell; the names of the formats follow it. A line of more than `max_line`
    characters is an error. An entry that cannot be used is an error too; with `Faults(skip=True)` it is passed over.
    """
    found = format_of(path, format, remedy=remedy)
    return _telling_of_others(FORMATS[found], path, max_line, faults or Faults())


def format_of(path: AnyPath, format: str = "auto", *, remedy: str = "Name it: format= one of") -> str:
    """Returns the format that a corpus has, or is said to have; an error if nobody can tell, or it is none of ours."""
    if format == "auto":
        found = recognise(path)
        if found is None:
            raise CorpusError(f"Cannot tell the format of {called(path)}. {remedy} {', '.join(FORMATS)}.")
        format = found
    if format not in FORMATS:
        raise CorpusError(f"There is no corpus format {format!r}. Choose one of {', '.join(FORMATS)}, or auto.")
    return format


def _telling_of_others(
    read: Callable[[AnyPath, int, Faults | None], Iterator[Sentence]], path: AnyPath, max_line: int, faults: Faults
) -> Iterator[Sentence]:
    """Reads a file; where an entry is refused, says how many others are."""
    n_before = faults.n
    try:
        yield from read(path, max_line, faults)
    except CorpusError as error:
        if faults.n == n_before or path == "-" or not os.path.isfile(path):
            raise
        every = Faults(skip=True)
        try:
            deque(read(path, max_line, every), maxlen=0)
        except CorpusError:
            raise error from None
        others = f" So are {every.n - 1:,} others of the file." if every.n > 1 else ""
        raise CorpusError(
            f"{error}{others} To pass over what cannot be used: --skip-bad on the command line, faults= in Python."
        ) from None

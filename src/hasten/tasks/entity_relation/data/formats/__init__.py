"""The files that sentences come in, one format a module; `read_corpus` reads them all.

Every reader is a generator and holds one sentence at a time. `tasks.text.lines` opens files, packed or not, and adds to
every error the file and the line it is about. Which format a file has is told by what is in it; its name only helps
where that says too little. JSON is told apart by its keys. Standard input is looked at without taking anything from it.

Imports the sentences of the room around it, `tasks.text`, `hasten.support` and `hasten.errors`.
"""

from __future__ import annotations

import json
import os
import re
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from hasten.errors import CorpusError
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.data.formats.documents import PACKED, annotations_in, read_brat, read_spacy
from hasten.tasks.entity_relation.data.formats.jsonl import read_jsonl, write_jsonl
from hasten.tasks.entity_relation.data.formats.records import PARQUET, first_bytes, read_dygie, read_records
from hasten.tasks.entity_relation.data.formats.tables import (
    GMB_HEADER,
    read_conll04,
    read_conll2003,
    read_conllu,
    read_gmb,
)
from hasten.tasks.text.lines import MAX_LINE, AnyPath, Faults, called, open_lines, peek_line

__all__ = [
    "FORMATS", "format_of", "read_brat", "read_conll04", "read_conll2003", "read_conllu", "read_corpus", "read_dygie",
    "read_gmb", "read_jsonl", "read_records", "read_spacy", "recognise", "write_jsonl",
]  # fmt: skip

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
LOOKED_AT = 200  # lines of a JSON document
KEYS = re.compile(r'"(\w+)"\s*:\s*(\[\s*\{|.)')


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
    read, faults = FORMATS[format_of(path, format, remedy=remedy)], faults or Faults()

    def sentences() -> Iterator[Sentence]:
        n_before = faults.n
        try:
            yield from read(path, max_line, faults)
        except CorpusError as error:  # where an entry is refused, says how many others are
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

    return sentences()


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


def recognise(path: AnyPath) -> str | None:
    """Tells the format of a corpus; None if nothing says."""
    if path == "-":
        first = peek_line()
        if first is None:
            return None
        return _of_lines([first]) if first else "jsonl"
    if os.path.isdir(path):
        if not annotations_in(path):
            raise CorpusError(
                f"{path} is a directory. Name a file in it. Of directories, those with .ann files are read."
            )
        return "brat"
    name = os.path.basename(os.fspath(path)).lower()
    if name.endswith(".ann"):
        return "brat"
    if not os.path.isfile(path) and ".jsonl" in name:
        return "jsonl"
    if os.path.exists(path) and not os.path.isfile(path):  # a pipe can be read only once; a missing file says so
        return None
    begins = first_bytes(path)
    if begins.startswith(PARQUET):
        return "records"
    if begins.startswith(PACKED) and not begins.isascii():
        return "spacy"
    with open_lines(path, encoding="latin-1") as lines:
        some = [line for _, line in zip(range(LOOKED_AT), lines, strict=False) if not line.isspace()]
    found = _of_lines(some)
    if found is None and (".jsonl" in name or ".corp" in name):
        return "jsonl" if ".jsonl" in name else "conll04"
    return found


def _of_lines(lines: list[str]) -> str | None:
    """Tells the format by the first lines that are not blank, read as latin-1."""
    first = lines[0].rstrip("\r\n").removeprefix("\xef\xbb\xbf") if lines else ""  # a byte order mark
    if first.startswith(("{", "[")):
        return _of_json(first, "".join(lines))
    if first == ",".join(GMB_HEADER):
        return "gmb"
    if re.match(r"T\d+\t\S+ \d+ \d+", first):
        return "brat"
    rows = [line.rstrip("\r\n") for line in lines if not line.startswith("#")]
    if rows and len(rows[0].split("\t")) == 10:
        return "conllu"
    if len(first.split("\t")) == 9:
        return "conll04"
    return "conll2003" if len(first.split()) == 4 else None


def _of_json(first: str, text: str) -> str:
    """Tells whose JSON it is by the keys of its first object, which may be cut short."""
    try:
        found: Any = json.loads(first)
        found = found[0] if isinstance(found, list) and found else found
        values = found if isinstance(found, dict) else {}
    except (ValueError, RecursionError):
        values = {}
    if not values:
        values = {
            key: [{}] if begin.startswith("[") and begin.endswith("{") else None for key, begin in KEYS.findall(text)
        }
    tokens = values.get("tokens")
    of_objects = isinstance(tokens, list) and bool(tokens) and isinstance(tokens[0], dict)
    if "paragraphs" in values or "ents" in values or of_objects:
        return "spacy"
    if "sentences" in values or ("sentence" in values and "ner" in values):
        return "dygie"
    if "spans" in values and first.startswith("{"):
        return "jsonl"
    if {"entities", "ner_tags", "tags", "ner", "labels", "words", "spans", "data"} & values.keys():
        return "records"
    return "jsonl"

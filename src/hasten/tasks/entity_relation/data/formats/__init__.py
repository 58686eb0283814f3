"""The files that sentences come in; `read_corpus` reads them all.

Every reader takes the `Lines` of an open file, and holds one sentence or document at a time. `tasks.text.lines` opens
files, packed or not, and adds to every error the file and the line it is about. Which format a file has is told by what
is in it; its name only helps where that says too little. JSON is told apart by its keys. Standard input is looked at
without taking anything from it.

Imports the sentences of the room around it, `tasks.text`, `hasten.support` and `hasten.errors`.
"""

from __future__ import annotations

import json
import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hasten.errors import CorpusError
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.data.formats import objects, tables
from hasten.tasks.entity_relation.data.formats.brat import brat
from hasten.tasks.entity_relation.data.formats.jsonl import jsonl, write_jsonl
from hasten.tasks.text.lines import MAX_LINE, AnyPath, Faults, Lines, called, open_lines, peek_line

__all__ = ["FORMATS", "format_of", "read_corpus", "recognise", "write_jsonl"]

FORMATS: dict[str, Callable[[Lines], Iterator[Sentence]]] = {
    "jsonl": jsonl,
    "conll04": tables.conll04,
    "conll2003": tables.conll2003,
    "gmb": tables.gmb,
    "conllu": tables.conllu,
    "brat": brat,
    "dygie": objects.objects(objects.dygie),
    "records": objects.objects(objects.record),
    "spacy": objects.objects(objects.spacy),
}
ENCODINGS = {"gmb": "cp1252"}  # a superset of latin-1's letters; the file has its quotes
LOOKED_AT = 200  # lines of a JSON document
KEYS = re.compile(r'"(\w+)"\s*:\s*(\[\s*\{|.)')


def read_corpus(
    path: AnyPath, format: str = "auto", max_line: int = MAX_LINE, *, faults: Faults | None = None
) -> Iterator[Sentence]:
    """Reads a corpus in any of `FORMATS`; `"auto"` tells which by `recognise`.

    A line of more than `max_line` characters is an error. An entry that cannot be used is an error too; with
    `Faults(skip=True)` it is passed over.
    """
    format, faults = format_of(path, format), faults or Faults()

    def read(faults: Faults) -> Iterator[Sentence]:
        reader = FORMATS[format]
        if format == "spacy" and objects.begins(path, objects.PACKED):
            reader = objects.read_docbin
        files: Sequence[AnyPath] = annotations_in(path) if format == "brat" else []
        for file in files or [path]:
            with open_lines(file, max_line, ENCODINGS.get(format, "utf-8-sig"), faults) as lines:
                yield from reader(lines)

    def sentences() -> Iterator[Sentence]:
        n_before = faults.n
        try:
            yield from read(faults)
        except CorpusError as error:  # where an entry is refused, says how many others are
            if faults.n == n_before or path == "-" or not os.path.isfile(path):
                raise
            every = Faults(skip=True)
            try:
                deque(read(every), maxlen=0)
            except CorpusError:
                raise error from None
            others = f" So are {every.n - 1:,} others of the file." if every.n > 1 else ""
            raise CorpusError(
                f"{error}{others} To pass over what cannot be used: --skip-bad on the command line, faults= in Python."
            ) from None

    return sentences()


def format_of(path: AnyPath, format: str = "auto") -> str:
    """Returns the format that a corpus has, or is said to have; an error if nobody can tell, or it is none of ours."""
    if format == "auto":
        found = recognise(path)
        if found is None:
            raise CorpusError(
                f"Cannot tell the format of {called(path)}. Name it: --format, as of hasten convert, or format= in "
                f"Python, one of {', '.join(FORMATS)}. Plain text will not do: "
                "sentences come with their entities marked (docs/corpora.md)."
            )
        format = found
    if format not in FORMATS:
        raise CorpusError(f"There is no corpus format {format!r}. Choose one of {', '.join(FORMATS)}, or auto.")
    return format


def annotations_in(path: AnyPath) -> list[Path]:
    """Returns the `.ann` files of a directory, by name."""
    return sorted(Path(path).glob("*.ann")) if path != "-" and os.path.isdir(path) else []


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
    if objects.begins(path, objects.PARQUET):
        return "records"
    if objects.begins(path, objects.PACKED):
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
    if first == ",".join(tables.GMB_HEADER):
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
    if "ents" in values or of_objects:
        return "spacy"
    if "sentences" in values or ("sentence" in values and "ner" in values):
        return "dygie"
    if "spans" in values and first.startswith("{"):
        return "jsonl"
    if {"entities", "ner_tags", "tags", "ner", "labels", "words", "spans", "data"} & values.keys():
        return "records"
    return "jsonl"

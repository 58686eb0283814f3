"""The files that sentences come in, one format a module; `read_corpus` reads them all.

Every reader is a generator and holds one sentence at a time. `lines` opens files, packed or not, and adds to every
error the file and the line it is about.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from hasten.errors import CorpusError
from hasten.tasks.entity_relation.corpus import Sentence
from hasten.tasks.entity_relation.formats.conll04 import read_conll04
from hasten.tasks.entity_relation.formats.conll2003 import read_conll2003
from hasten.tasks.entity_relation.formats.gmb import HEADER as GMB_HEADER
from hasten.tasks.entity_relation.formats.gmb import read_gmb
from hasten.tasks.entity_relation.formats.jsonl import read_jsonl, write_jsonl
from hasten.tasks.entity_relation.formats.lines import AnyPath, open_lines

__all__ = ["FORMATS", "read_conll04", "read_conll2003", "read_corpus", "read_gmb", "read_jsonl", "write_jsonl"]

FORMATS: dict[str, Callable[[AnyPath], Iterator[Sentence]]] = {
    "jsonl": read_jsonl,
    "conll04": read_conll04,
    "conll2003": read_conll2003,
    "gmb": read_gmb,
}


def read_corpus(path: AnyPath, format: str = "auto") -> Iterator[Sentence]:
    """Reads a corpus in any of `FORMATS`; `"auto"` tells which from the name, or else from the first line."""
    if format == "auto":
        format = _recognise(path)
    if format not in FORMATS:
        raise CorpusError(f"There is no corpus format {format!r}. Choose one of {', '.join(FORMATS)}, or auto.")
    return FORMATS[format](path)


def _recognise(path: AnyPath) -> str:
    name = os.path.basename(os.fspath(path)).lower()
    if path == "-" or ".jsonl" in name:
        return "jsonl"
    if ".corp" in name:
        return "conll04"
    if os.path.isfile(path) or not os.path.exists(path):  # a pipe can be read only once; a missing file says so
        with open_lines(path, encoding="latin-1") as lines:
            first = next((line.rstrip("\r\n") for line in lines if not line.isspace()), "")
        if first.startswith("{"):
            return "jsonl"
        if first == ",".join(GMB_HEADER):
            return "gmb"
        if len(first.split("\t")) == 9:
            return "conll04"
        if len(first.split()) == 4:
            return "conll2003"
    raise CorpusError(f"Cannot tell the format of {path}. Name it: format= one of {', '.join(FORMATS)}.")

"""Which format a file has, told by what is in it; its name only helps where that says too little.

JSON is told apart by its keys, so that it does not matter what a file is called. Standard input is looked at without
taking anything from it.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any

from hasten.errors import CorpusError
from hasten.tasks.entity_relation.data.formats.brat import annotations_in
from hasten.tasks.entity_relation.data.formats.records import PARQUET, first_bytes
from hasten.tasks.entity_relation.data.formats.spacy_docs import PACKED
from hasten.tasks.entity_relation.data.formats.tables import GMB_HEADER
from hasten.tasks.text.lines import AnyPath, open_lines, peek_line

LOOKED_AT = 200  # lines of a JSON document
KEYS = re.compile(r'"(\w+)"\s*:\s*(\[\s*\{|.)')


def recognise(path: AnyPath) -> str | None:
    """Tells the format of a corpus; None if nothing says."""
    if path == "-":
        first = peek_line()
        if first is None:
            return None
        return format_of([first]) if first else "jsonl"
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
    found = format_of(some)
    if found is None and (".jsonl" in name or ".corp" in name):
        return "jsonl" if ".jsonl" in name else "conll04"
    return found


def format_of(lines: list[str]) -> str | None:
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
    if "paragraphs" in values or "ents" in values or _is_list_of(values.get("tokens"), dict):
        return "spacy"
    if "sentences" in values or ("sentence" in values and "ner" in values):
        return "dygie"
    if "spans" in values and first.startswith("{"):
        return "jsonl"
    if {"entities", "ner_tags", "tags", "ner", "labels", "words", "spans", "data"} & values.keys():
        return "records"
    return "jsonl"


def _is_list_of(value: object, kind: type) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], kind)

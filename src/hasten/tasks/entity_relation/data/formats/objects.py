"""Objects in files, whatever they stand for: JSON lines, one JSON document, or a Parquet table.

A document may be a list of objects, an object that holds one list under `data`, or a single object. Parquet needs
pyarrow; the names of its numbered classes are taken from what Hugging Face `datasets` notes in such files.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from hasten.errors import CorpusError
from hasten.tasks.text.lines import AnyPath, Faults, Lines, called, open_lines
from hasten.tasks.text.objects import load_json

Object = dict[str, Any]
PARQUET = b"PAR1"  # how such a file begins
ROWS = 1000  # of a table that are held at a time


def read_objects(path: AnyPath, max_line: int, faults: Faults | None) -> Iterator[tuple[Lines, str, Object]]:
    """Yields the objects of a file, each with the lines that it is read from and the number of its line or entry."""
    if first_bytes(path).startswith(PARQUET):
        yield from _of_table(path, faults)
        return
    with open_lines(path, max_line, faults=faults) as lines:
        first = next((line for line in lines if not line.isspace()), "")
        if is_object(first):
            yield from _of_lines(first, lines)
            return
        document = load_json(first + "".join(lines))
        found = document.get("data", document) if isinstance(document, dict) else document
        for number, each in enumerate(found if isinstance(found, list) else [found], start=1):
            lines.entry_number = number
            with lines.entry():
                if not isinstance(each, dict):
                    raise CorpusError("Expected a JSON object. Write a list of objects, or one object a line.")
                yield lines, str(number), each


def _of_lines(first: str, lines: Lines) -> Iterator[tuple[Lines, str, Object]]:
    number = lines.number
    yield lines, str(number), load_json(first)
    for line in lines:
        if not line.isspace():
            with lines.entry():
                each = load_json(line)
                if not isinstance(each, dict):
                    raise CorpusError("Expected a JSON object. Write one object a line.")
                yield lines, str(lines.number), each


def is_object(line: str) -> bool:
    """Whether a line is a whole JSON object."""
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def first_bytes(path: AnyPath) -> bytes:
    """Returns how a file begins; nothing of what cannot be looked at twice."""
    if path == "-" or not os.path.isfile(path):
        return b""
    with open(path, "rb") as file:
        return file.read(8)


def _of_table(path: AnyPath, faults: Faults | None) -> Iterator[tuple[Lines, str, Object]]:
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise CorpusError(
            f"{called(path)} is a Parquet file, which needs pyarrow: pip install hasten[parquet]. "
            "Or write it as JSON lines."
        ) from None
    lines = Lines(io.StringIO(), 1, faults, called(path))
    try:
        with parquet.ParquetFile(os.fspath(path)) as table:
            names = class_names(table.schema_arrow.metadata or {})
            number = 0
            for batch in table.iter_batches(ROWS):
                for row in batch.to_pylist():
                    number += 1
                    lines.entry_number = number
                    with lines.entry():
                        yield lines, str(number), named(row, names)
    except CorpusError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise CorpusError(f"{called(path)}: The table cannot be read ({error}). Write it again.") from error


def class_names(metadata: Mapping[bytes, bytes]) -> dict[str, list[str]]:
    """Returns the names of the classes of each column that Hugging Face `datasets` stores as numbers."""
    try:
        features = json.loads(metadata.get(b"huggingface", b"{}"))["info"]["features"]
        columns = {name: feature.get("feature", feature) for name, feature in features.items()}
        return {name: inner["names"] for name, inner in columns.items() if isinstance(inner.get("names"), list)}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def named(row: Object, names: Mapping[str, list[str]]) -> Object:
    """Returns a row with the names of its numbered classes."""
    for column, known in names.items():
        values = row.get(column)
        if isinstance(values, list) and all(type(each) is int and 0 <= each < len(known) for each in values):
            row[column] = [known[each] for each in values]
    return row

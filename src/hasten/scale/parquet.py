"""Records in Parquet files. `docs/scale.md` lists the columns."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from hasten.errors import CorpusError, HastenError
from hasten.scale.places import reading
from hasten.scale.work import Record

ROWS = 1024  # of a row group that is written, and of what is read at a time

PAIRS = {"spans": ("start", "end"), "relations": ("source", "target", "name")}  # lists of structs with these fields


def pieces(file: str, size: int) -> Iterator[tuple[int, int, int, int]]:
    """Yields consecutive row groups that have about `size` rows together: first, last plus one, rows before, rows."""
    with reading(file) as stream:
        about = _open(file, stream).metadata
        counts = [about.row_group(i).num_rows for i in range(about.num_row_groups)]
    start = before = n = 0
    for i, count in enumerate(counts):
        n += count
        if n >= size or i == len(counts) - 1:
            yield start, i + 1, before, n
            start, before, n = i + 1, before + n, 0


def rows(file: str, start: int, stop: int) -> Iterator[list[Record]]:
    """Yields the rows of some row groups as records, some at a time."""
    with reading(file) as stream:
        groups = list(range(start, stop))
        for batch in _open(file, stream).iter_batches(ROWS, row_groups=groups):
            yield [of_row(row) for row in batch.to_pylist()]


def of_row(row: Record) -> Record:
    """Returns a row as a record of JSON: no field that is null, lists in place of structs."""
    record = {key: value for key, value in row.items() if value is not None}
    for key in PAIRS.keys() & record.keys():
        if isinstance(record[key], list):
            record[key] = [list(each.values()) if isinstance(each, dict) else each for each in record[key]]
    return record


def to_row(record: Record) -> Record:
    """Returns a record as a row."""
    row = dict(record)
    for key, fields in PAIRS.items():
        if key in row:
            row[key] = [dict(zip(fields, each, strict=True)) for each in row[key]]
    return row


def table(records: Iterable[Any], kind: str) -> Any:
    """Returns answers as an Arrow table with the columns of their kind."""
    rows = [to_row(msgspec.json.decode(msgspec.json.encode(each))) for each in records]
    return _arrow().Table.from_pylist(rows, schema=columns(kind))


def write(part: Path, pieces: Iterable[Iterable[Any]], kind: str) -> None:
    """Writes answers to a file, those of a piece as a row group."""
    with _parquet().ParquetWriter(part, columns(kind)) as writer:
        for records in pieces:
            writer.write_table(table(records, kind))


def merge(part: Path, files: Iterable[str]) -> None:
    """Puts files of the same columns together into one, in order."""
    with ExitStack() as stack:
        writer = None
        for file in files:
            with reading(file) as stream:
                whole = _open(file, stream)
                writer = writer or stack.enter_context(_parquet().ParquetWriter(part, whole.schema_arrow))
                for group in range(whole.num_row_groups):
                    writer.write_table(whole.read_row_group(group))


def columns(kind: str) -> Any:
    """Returns the columns of answers: sentences ("text") or flat problems ("flat")."""
    pa = _arrow()
    text, words, whole = pa.string(), pa.list_(pa.string()), pa.int64()
    if kind == "flat":
        fields = {"id": text, "structure": text, "labels": words, "cost": pa.float64(), "proved": pa.bool_()}
        return pa.schema(fields | {"source": text, "status": text, "failed": text})
    spans = pa.list_(pa.struct({"start": whole, "end": whole}))
    relations = pa.list_(pa.struct({"source": whole, "target": whole, "name": text}))
    fields = {"id": text, "tokens": words, "spans": spans, "pos": words, "types": words, "relations": relations}
    return pa.schema(fields | {"proved": pa.bool_(), "optimal": pa.bool_(), "failed": text})


def _open(file: str, stream: Any) -> Any:
    try:
        return _parquet().ParquetFile(stream)
    except HastenError:
        raise
    except Exception as error:  # Arrow has many kinds
        raise CorpusError(
            f"{os.fspath(file)} is not a Parquet file, or is damaged ({error}). Write it again."
        ) from error


def _arrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise CorpusError("Parquet files need pyarrow, which is not installed: pip install hasten[parquet]") from None
    return pyarrow


def _parquet() -> Any:
    _arrow()
    import pyarrow.parquet

    return pyarrow.parquet

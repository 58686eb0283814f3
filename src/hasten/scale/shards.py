"""Shards: pieces of files that are answered on their own; Parquet files.

A shard is a range of bytes that holds whole lines of a file of JSON lines, or some row groups of a Parquet file. A
packed file (`.gz`) cannot be read from the middle, so it is one shard. The plan lists all shards with digests of their
content. Making it reads all files once, in a hundredth of the time that answering takes; so a later run can tell
whether its input has changed, and each line has its number from the beginning. `docs/scale.md` lists the columns.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec
import numpy as np

from hasten.errors import CorpusError, HastenError
from hasten.scale.storage import digest as digest_of
from hasten.scale.storage import reading
from hasten.scale.work import BadRecord, Chunk, Piece, Record
from hasten.tasks.text.lines import BLOCK as PIECE
from hasten.tasks.text.lines import Block

BLOCK = 1 << 22  # bytes read at a time
ROWS = 1024  # of a Parquet file that are read and written at a time
PAIRS = {"spans": ("start", "end"), "relations": ("source", "target", "name")}  # lists of structs with these fields


class Shard(NamedTuple):
    """A piece of a file: bytes or row groups `start` to `stop`, or all of a packed file."""

    number: int
    file: str
    start: int
    stop: int
    line: int  # number of lines, or rows, of the file before it
    n: int  # number of its own lines, or rows
    digest: str  # of its bytes; for Parquet and packed files, of the file

    @property
    def packed(self) -> bool:
        """Whether it is a packed file."""
        return self.file.endswith(".gz")


def plan(files: Iterable[str], size: int) -> Iterator[Shard]:
    """Yields the shards of files, in order; each but the last of a file has `size` lines or rows."""
    number = 0
    for file in files:
        for shard in _scan(file, size):
            yield shard._replace(number=number)
            number += 1


def _scan(file: str, size: int) -> Iterator[Shard]:
    if file.endswith(".parquet"):
        digest = digest_of(file)
        yield from (Shard(0, file, *piece, digest) for piece in _row_groups(file, size))
    elif file.endswith(".gz"):
        yield Shard(0, file, 0, 0, 0, _count_lines(file), digest_of(file))
    elif file.endswith((".jsonl", ".json", ".ndjson")):
        with reading(file) as stream:
            yield from _cut(file, stream, size)
    else:
        raise CorpusError(f"{file} ends in neither .jsonl, .jsonl.gz nor .parquet. Run `hasten convert` on it first.")


def _cut(file: str, stream: IO[bytes], size: int) -> Iterator[Shard]:
    """Cuts a file into pieces of `size` lines, and digests them, block by block."""
    start = at = line = n = 0  # bytes before the shard, and before the block; lines before the shard, and in it
    digest = hashlib.sha256()
    ended = True  # whether the last block ended with a line feed
    while block := stream.read(BLOCK):
        ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n")) + 1
        done = taken = 0  # bytes and lines of the block in finished shards
        while len(ends) - taken >= size - n:
            taken += size - n
            cut = int(ends[taken - 1])
            digest.update(block[done:cut])
            yield Shard(0, file, start, at + cut, line, size, digest.hexdigest())
            start, line, n, done, digest = at + cut, line + size, 0, cut, hashlib.sha256()
        digest.update(block[done:])
        n += len(ends) - taken
        at += len(block)
        ended = block.endswith(b"\n")
    if at > start:
        yield Shard(0, file, start, at, line, n + (not ended), digest.hexdigest())


def _count_lines(file: str) -> int:
    n, ended = 0, True
    with _unpacked(file) as stream:
        while block := stream.read(BLOCK):
            n += block.count(b"\n")
            ended = block.endswith(b"\n")
    return n + (not ended)


@contextmanager
def _unpacked(file: str) -> Iterator[Any]:
    with reading(file) as raw, gzip.GzipFile(fileobj=raw) as stream:
        try:
            yield stream
        except (EOFError, zlib.error) as error:
            raise CorpusError(f"{file}: The file is damaged ({error}). Fetch it again, or pack it again.") from None


def read(shard: Shard, max_line: int, bad: list[BadRecord]) -> Iterator[Piece]:
    """Reads a shard, some records at a time; appends lines of more than `max_line` bytes to `bad`."""
    if shard.file.endswith(".parquet"):
        at = shard.line + 1
        with reading(shard.file) as stream:
            groups = list(range(shard.start, shard.stop))
            for batch in _open(shard.file, stream).iter_batches(ROWS, row_groups=groups):
                yield Chunk(shard.file, at, [of_row(row) for row in batch.to_pylist()])
                at += batch.num_rows
    elif shard.packed:
        with _unpacked(shard.file) as stream:
            yield from _blocks(shard, stream, max_line, bad)
    else:
        with reading(shard.file) as stream:
            stream.seek(shard.start)
            yield from _blocks(shard, stream, max_line, bad)


def _blocks(shard: Shard, stream: IO[bytes], max_line: int, bad: list[BadRecord]) -> Iterator[Block]:
    """Yields the lines of a shard, some at a time, and checks their digest."""
    lines, first, size, digest = list[bytes](), shard.line + 1, 0, hashlib.sha256()
    for number in range(shard.line + 1, shard.line + shard.n + 1):
        line = stream.readline(max_line + 1)
        digest.update(line)
        if len(line) > max_line and not line.endswith(b"\n"):
            reason = f"The line has more than {max_line:,} bytes. Allow longer ones, or cut it."
            bad.append(BadRecord(shard.file, number, reason))
            while line and not line.endswith(b"\n"):
                line = stream.readline(BLOCK)
                digest.update(line)
            line = b"\n"  # keeps the numbers of the others
        lines.append(line)
        size += len(line)
        if size >= PIECE or number == shard.line + shard.n:
            yield Block(shard.file, first, b"".join(lines), max_line + 1)
            lines, first, size = [], number + 1, 0
    if not shard.packed and digest.hexdigest() != shard.digest:
        raise changed(shard.file)


def changed(file: str) -> CorpusError:
    """Returns the error for an input file that has changed."""
    return CorpusError(f"{file} has changed since this run began. Choose another directory for a new run.")


def _row_groups(file: str, size: int) -> Iterator[tuple[int, int, int, int]]:
    """Yields ranges of row groups with about `size` rows: first, last plus one, rows before, rows."""
    with reading(file) as stream:
        about = _open(file, stream).metadata
        counts = [about.row_group(i).num_rows for i in range(about.num_row_groups)]
    start = before = n = 0
    for i, count in enumerate(counts):
        n += count
        if n >= size or i == len(counts) - 1:
            yield start, i + 1, before, n
            start, before, n = i + 1, before + n, 0


def of_row(row: Record) -> Record:
    """Returns a row as a JSON record, without null fields and with lists in place of structs."""
    record = {key: value for key, value in row.items() if value is not None}
    for key in PAIRS.keys() & record.keys():
        if isinstance(record[key], list):
            record[key] = [list(each.values()) if isinstance(each, dict) else each for each in record[key]]
    return record


def table(records: Iterable[Any], kind: str) -> Any:
    """Returns answers as an Arrow table with the columns of their kind."""
    rows = [msgspec.json.decode(msgspec.json.encode(each)) for each in records]
    for row in rows:
        for key, fields in PAIRS.items():
            if key in row:
                row[key] = [dict(zip(fields, each, strict=True)) for each in row[key]]
    return _arrow().Table.from_pylist(rows, schema=columns(kind))


def write(part: Path, pieces: Iterable[Iterable[Any]], kind: str) -> None:
    """Writes answers to a file, a row group for each piece."""
    with _parquet().ParquetWriter(part, columns(kind)) as writer:
        for records in pieces:
            writer.write_table(table(records, kind))


def merge(part: Path, files: Iterable[str]) -> None:
    """Concatenates files of the same columns."""
    with ExitStack() as stack:
        writer = None
        for file in files:
            with reading(file) as stream:
                whole = _open(file, stream)
                writer = writer or stack.enter_context(_parquet().ParquetWriter(part, whole.schema_arrow))
                for group in range(whole.num_row_groups):
                    writer.write_table(whole.read_row_group(group))


def columns(kind: str) -> Any:
    """Returns the Arrow schema of answers to sentences ("text") or flat problems ("flat")."""
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
    except Exception as error:  # Arrow raises many kinds
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

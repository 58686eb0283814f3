"""A journal of a lifetime: what the black box was asked and answered, audits, versions, feedback, in one SQLite file.

Rows are appended in transactions. `write` returns once its rows survive the death of the process, also by kill -9 (a
power failure may cost the last of them, never the file). One process writes, any number may read meanwhile. Rows that
are written together share a record of the table, up to `PACK` bytes: that costs a third less than a record for each.
Imports `hasten.support`.
"""

from __future__ import annotations

import math
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from hasten.errors import MissingExtra, ModelError, ProblemError, WriteError
from hasten.support.checks import check_number, check_path, check_whole
from hasten.support.files import whole

KINDS = "asked", "audit", "given", "version", "promotion", "feedback", "note"
OURS = 0x4853544E  # of SQLite files: "HSTN"
MIGRATIONS = (  # from each version of the file to the next; 0 is an empty one
    "CREATE TABLE row (number INTEGER PRIMARY KEY, time REAL NOT NULL, kind TEXT NOT NULL, data BLOB NOT NULL)",
    "ALTER TABLE row ADD COLUMN n INTEGER NOT NULL DEFAULT 1",  # rows in a record; where n > 1 their data is a list
)
LAST = "SELECT coalesce(max(number), 0) FROM row"  # a record has the number of its last row
APPEND = f"INSERT INTO row (number, n, time, kind, data) VALUES (({LAST}) + ?1, ?1, ?2, ?3, ?4)"
LEAST_BYTES = PACK = 2**16
ROW_BYTES = 32  # that a record takes beside its data, at least
LEFT = 0.9  # of its bound is what a file keeps when old rows are dropped, so that this happens rarely
WAL_BYTES, PAGE = 16 * 2**20, 4096
AT_ONCE = 100  # records
PATIENCE = 10.0  # seconds to wait for another process that writes


class Row(NamedTuple):
    """A row: its number, from 1 and never used again; when it was written, in seconds since 1970; kind and data."""

    number: int
    time: float
    kind: str
    data: Any


class Journal:
    """An append-only journal in a file, which is made if it is not there. It may be used by several threads.

    max_bytes
        The file drops its oldest rows to stay below; at least 65,536. Up to 16 MiB not yet moved there lie beside it.
        Rows written together are never dropped by their own writing. None is no bound.
    max_age
        Seconds after which rows are dropped, about. None keeps them.
    given
        Whether a cascade notes the answers that its student gave, too, so that suspect ones can be replayed.
    read_only
        Only reads a file that is there, also while another process writes it.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        max_bytes: int | None = None,
        max_age: float | None = None,
        given: bool = False,
        read_only: bool = False,
    ) -> None:
        if max_bytes is not None:
            check_whole("max_bytes", max_bytes, least=LEAST_BYTES, most=None)
        if max_age is not None:
            check_number("max_age", max_age)
        self.path, self.max_bytes, self.max_age, self.given = Path(check_path(path)), max_bytes, max_age, given
        self._room = 0.0  # bytes that may be written before the bounds are looked at again
        self._lock, self._writer = threading.Lock(), None if read_only else self._connection("rwc")
        if self._writer is not None:
            try:
                with self._told():
                    self._prepare(self._writer)
            except BaseException:
                self._writer.close()
                raise
        else:
            with self._reader():
                pass  # a file that is none of ours is refused now

    def write(self, rows: Iterable[tuple[str, Any]]) -> int:
        """Appends rows, each a kind and its data, all or none; returns the number of the last row of the journal.

        Data is what msgpack has: None, numbers, text, bytes, and lists and mappings of these.
        """
        now, records = time.time(), list(_records(rows))
        with self._lock, self._told():
            if self._writer is None:
                raise ProblemError(f"{self.path} was opened to read, or is closed. Open it to write.")
            with _transaction(self._writer) if len(records) > 1 else nullcontext():
                for n, kind, data in records:
                    self._writer.execute(APPEND, (n, now, kind, data))
            (last,) = self._writer.execute(LAST).fetchone()
            self._room -= sum([ROW_BYTES + len(data) for _, _, data in records])
            if self._room <= 0:
                self._drop_old(self._writer, last - sum([n for n, _, _ in records]), now)
        return int(last)

    def rows(self, kind: str | None = None, since: int = 0, last: int | None = None) -> Iterator[Row]:
        """Yields rows, oldest first: of one kind or all, after the number `since`, and only the `last` of them."""
        among, decode = "FROM row WHERE number > ? AND kind = coalesce(?, kind) ORDER BY number", msgspec.msgpack.decode
        with self._reader() as reader:
            left = last or 0
            for number, n in reader.execute(f"SELECT number, n {among} DESC LIMIT ?", (since, kind, left)).fetchall():
                if left <= n:
                    since = max(since, number - left)
                    break
                left -= n
            query = f"SELECT number, n, time, kind, data {among} LIMIT ?"
            while last != 0 and (found := reader.execute(query, (since, kind, AT_ONCE)).fetchall()):
                for number, n, when, each, data in found:  # no reader stays open for long
                    content = decode(data, type=list) if n > 1 else [decode(data)]
                    known = max(0, since - (number - n))
                    yield from (Row(number - n + k + 1, when, each, content[k]) for k in range(known, n))
                    since = number

    def counts(self) -> Counter[str]:
        """Returns how many rows there are of each kind."""
        with self._reader() as reader:
            return Counter(dict(reader.execute("SELECT kind, sum(n) FROM row GROUP BY kind")))

    def export(self, path: str | os.PathLike[str], kind: str | None = None, since: int = 0) -> int:
        """Writes rows as JSON lines, or as Parquet where the name says so; returns how many.

        In JSON bytes are base64, and numbers that are not finite null. In Parquet data is a column of JSON.
        """
        path, n = Path(check_path(path)), 0
        with whole(path) as part:
            if path.suffix == ".parquet":
                return self._export_parquet(part, kind, since)
            with open(part, "wb") as file:
                for row in self.rows(kind, since):
                    file.write(msgspec.json.encode(row._asdict()) + b"\n")
                    n += 1
        return n

    def _export_parquet(self, part: Path, kind: str | None, since: int) -> int:
        try:
            import pyarrow as pa
            from pyarrow import parquet
        except ImportError:
            raise MissingExtra("Parquet needs pyarrow: pip install hasten[parquet]") from None
        schema = pa.schema(
            [("number", pa.int64()), ("time", pa.timestamp("us", "UTC")), ("kind", pa.string()), ("data", pa.string())]
        )
        rows, n = self.rows(kind, since), 0
        with parquet.ParquetWriter(part, schema) as writer:
            while some := [row for row, _ in zip(rows, range(AT_ONCE), strict=False)]:
                columns = {name: [getattr(row, name) for row in some] for name in Row._fields}
                columns["time"] = [datetime.fromtimestamp(each, UTC) for each in columns["time"]]
                columns["data"] = [msgspec.json.encode(each).decode() for each in columns["data"]]
                writer.write_table(pa.table(columns, schema=schema))
                n += len(some)
        return n

    def close(self) -> None:
        """Closes the file. Nothing is lost without."""
        with self._lock:
            if self._writer is not None:
                self._writer.close()
            self._writer = None

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Journal({str(self.path)!r})"

    def _connection(self, mode: str) -> sqlite3.Connection:
        if mode == "ro" and not self.path.is_file():
            raise ModelError(f"There is no journal {self.path}.")
        try:
            return sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode={mode}",
                uri=True,
                timeout=PATIENCE,
                isolation_level=None,
                check_same_thread=False,
            )
        except sqlite3.Error as error:
            raise WriteError(f"{self.path} cannot be opened: {error}. Check the path and its rights.") from None

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        with self._told(), closing(self._connection("ro")) as reader:
            if self._check_version(reader) < len(MIGRATIONS):
                raise ModelError(f"{self.path} is empty, or of an older hasten. Open it once to write.")
            yield reader

    def _prepare(self, writer: sqlite3.Connection) -> None:
        """Makes the tables of a new file, or brings those of an older one up to date."""
        version = self._check_version(writer)
        if not version:
            writer.execute(f"PRAGMA page_size = {PAGE}")
            writer.execute("PRAGMA auto_vacuum = INCREMENTAL")
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("PRAGMA synchronous = NORMAL")
        writer.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
        writer.execute(f"PRAGMA wal_autocheckpoint = {WAL_BYTES // PAGE}")
        if version < len(MIGRATIONS):
            with _transaction(writer):
                for step in MIGRATIONS[self._check_version(writer) :]:  # unless another process was faster
                    writer.execute(step)
                writer.execute(f"PRAGMA application_id = {OURS}")
                writer.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")

    def _check_version(self, connection: sqlite3.Connection) -> int:
        """Returns the version of a file; refuses one that is none of ours, or of a newer hasten."""
        (owner,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (n_tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if owner != OURS and (owner or version or n_tables):
            raise ModelError(f"{self.path} is a SQLite file, but no journal of hasten. Name another file.")
        if version > len(MIGRATIONS):
            raise ModelError(f"{self.path} was written by a newer hasten (format {version}). Update hasten.")
        return int(version)

    def _drop_old(self, writer: sqlite3.Connection, before: int, now: float) -> None:
        """Drops the oldest rows, up to the number `before`, where the bounds ask for it."""
        if self.max_age is not None:
            oldest = writer.execute("SELECT time FROM row ORDER BY number LIMIT 1").fetchone()
            if oldest is not None and oldest[0] < now - self.max_age / LEFT:
                query = "SELECT number FROM row WHERE time >= ? ORDER BY number LIMIT 1"
                kept = writer.execute(query, (now - self.max_age,)).fetchone()
                self._drop(writer, min(before, kept[0] - 1) if kept else before)
        most, used = self.max_bytes or math.inf, self._used(writer)
        while used > most:
            oldest = writer.execute("SELECT number FROM row ORDER BY number LIMIT 1").fetchone()
            if oldest is None or oldest[0] > before:
                break
            self._drop(writer, min(before, oldest[0] + int((before - oldest[0]) * (1 - LEFT * most / used))))
            used = self._used(writer)
        self._room = 0.0 if self.max_age is not None else (most - used) / 2  # pages are at least half full

    @staticmethod
    def _used(writer: sqlite3.Connection) -> int:
        pages, free, size = (
            writer.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)

    @staticmethod
    def _drop(writer: sqlite3.Connection, upto: int) -> None:
        writer.execute("DELETE FROM row WHERE number <= ?", (upto,))
        writer.executescript("PRAGMA incremental_vacuum")  # `execute` would free a single page
        writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turns errors of SQLite into ours, which name the file."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise WriteError(f"{self.path}: {error}. Check the disk, the rights, and who else has it open.") from None
        except (sqlite3.DatabaseError, msgspec.DecodeError) as error:
            raise ModelError(
                f"{self.path} is no journal, or is damaged: {error}. Name another file, or move it away and start anew."
            ) from None


def _records(rows: Iterable[tuple[str, Any]]) -> Iterator[tuple[int, str, bytes]]:
    """Yields records of rows: how many rows of one kind, and their data."""
    kind, parts, size = "", list[bytes](), 0
    for each, data in rows:
        if each not in KINDS:
            raise ProblemError(f"A journal has no rows of kind {each!r}. There are {', '.join(KINDS)}.")
        part = msgspec.msgpack.encode(data)
        size += len(part)
        if parts and (each != kind or size > PACK):
            yield _record(kind, parts)
            parts, size = [], len(part)
        kind = each
        parts.append(part)
    if parts:
        yield _record(kind, parts)


def _record(kind: str, parts: list[bytes]) -> tuple[int, str, bytes]:
    n = len(parts)
    return n, kind, parts[0] if n == 1 else b"".join([b"\xdd", n.to_bytes(4, "big"), *parts])  # a list of msgpack


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise

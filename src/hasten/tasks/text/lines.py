"""The lines of a file, unpacked and counted, so that an error can say where it is.

Files may be plain, gzipped, or a zip archive with one file in it; which of them is seen from their first bytes, not
from their name. A reader raises `CorpusError` with the reason alone; `open_lines` puts the file and the line before
it, and does the same for files that are damaged or missing. No line is read that is longer than a limit, so that a
file without line ends, or a packed one that unpacks to no end, cannot fill the memory.

`read_blocks` reads many lines at a time, for a process that hands them out to others: cutting text into lines would be
most of what that process does.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import lzma
import os
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple, TextIO

from hasten.errors import CorpusError
from hasten.support.checks import check_whole

AnyPath = str | os.PathLike[str]

MAX_LINE = 64_000_000  # characters
FAULTS_SHOWN = 5
BLOCK = 1 << 18  # bytes read at a time
BYTES = 4  # of a character, at most

_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, gzip.BadGzipFile, csv.Error, UnicodeDecodeError)


class PlacedError(CorpusError):
    """An error that says already where it is."""


class Faults:
    """Entries of files that were refused: passed over and counted with `skip`, and else raised."""

    def __init__(self, skip: bool = False) -> None:
        self.skip = skip
        self.n = 0
        self.first: list[str] = []  # some of them, in words

    def meet(self, error: CorpusError, place: str) -> None:
        """Counts an entry that is refused, or raises the reason."""
        self.n += 1
        if not self.skip:
            raise PlacedError(f"{place}: {error}") from error
        if len(self.first) < FAULTS_SHOWN:
            self.first.append(f"{place}: {error}")

    def __str__(self) -> str:
        return f"Passed over {self.n:,} {'entry' if self.n == 1 else 'entries'} that cannot be used. " + (
            " ".join(self.first) + (" …" if self.n > len(self.first) else "")
        )


class Lines:
    """The lines of a stream; `number` is that of the line last read, from 1."""

    def __init__(self, stream: TextIO, max_line: int, faults: Faults | None = None, name: str = "") -> None:
        self.number = 0
        self.entry_number = 0  # of a list or table, whose lines say nothing; from 1
        self.faults = faults or Faults()
        self._name = name
        self._read = stream.readline
        self._max_line = max_line

    @property
    def place(self) -> str:
        """The place that was read last, in words."""
        if self.entry_number:
            return f"{self._name}, entry {self.entry_number}"
        return f"{self._name}, line {self.number}" if self.number else self._name

    @contextmanager
    def entry(self) -> Iterator[None]:
        """Surrounds what is made of one entry of the file: what is wrong with it is raised, or passed over."""
        try:
            yield
        except PlacedError:
            raise
        except CorpusError as error:
            self.faults.meet(error, self.place)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._read(self._max_line + 1)
        if not line:
            raise StopIteration
        self.number += 1
        if len(line) > self._max_line:
            raise too_long(self._max_line)
        return line


def too_long(max_line: int) -> CorpusError:
    """Returns the error of a line that is longer than allowed."""
    return CorpusError(
        f"The line has more than {max_line:,} characters. If it should, allow longer ones: "
        "--max-line on the command line, max_line= in Python."
    )


@contextmanager
def open_lines(
    path: AnyPath, max_line: int = MAX_LINE, encoding: str = "utf-8-sig", faults: Faults | None = None
) -> Iterator[Lines]:
    """Opens a file for its lines; whatever goes wrong while they are read is raised with its place."""
    check_whole("max_line", max_line, least=1)
    lines = Lines(io.StringIO(), max_line)
    with open_bytes(path, lambda: lines.place, encoding) as raw, ExitStack() as stack:
        text = io.TextIOWrapper(raw, encoding=encoding)
        stack.callback(text.detach)  # what we did not open we do not close
        lines = Lines(text, max_line, faults, called(path))
        yield lines


@contextmanager
def open_bytes(path: AnyPath, place: Callable[[], str], encoding: str = "utf-8-sig") -> Iterator[Any]:
    """Opens a file for its bytes, unpacked; what goes wrong while they are read is raised with the `place` reached."""
    if "\0" in os.fspath(path):
        raise CorpusError(f"{os.fspath(path)!r}: A name holds no null character. Check the path.")
    with ExitStack() as stack:
        try:
            raw: Any = standard_input() if path == "-" else stack.enter_context(open(path, "rb"))
            yield _unpack(raw, stack)
        except PlacedError:
            raise
        except (CorpusError, *_DAMAGE, OSError) as error:
            raise CorpusError(f"{place() or called(path)}: {_explain(error, encoding)}") from error


def check_readable(path: AnyPath) -> None:
    """Refuses a file that is not there, or cannot be opened, before anything else is done."""
    if path == "-" or (os.path.exists(path) and not os.path.isfile(path)):
        return  # a pipe can be read only once; a directory may hold annotations
    with open_lines(path):
        pass


def called(path: AnyPath) -> str:
    """Returns what a file is called in errors."""
    return "standard input" if path == "-" else os.fspath(path)


def standard_input() -> Any:
    """Returns the bytes that come in, or says that nothing does."""
    if sys.stdin is None:
        raise CorpusError("Standard input is closed. Name a file, or send one there.")
    return sys.stdin.buffer


def peek_line() -> str | None:
    """Returns the first line of standard input that is not blank, as latin-1, and leaves everything there to read.

    "" if there is nothing; None if it cannot be seen: in a zip archive, or where less than a line has come so far.
    """
    data = _peek(standard_input())
    if data.startswith(b"PK\x03\x04"):
        return None
    if data.startswith(b"\x1f\x8b"):
        try:
            data = zlib.decompressobj(wbits=31).decompress(data)
        except zlib.error:  # the reader will say so
            return None
    text = data.decode("latin-1").lstrip()
    line, end, _ = text.partition("\n")
    return line if end or not line or line.startswith("{") else None


def _peek(raw: Any) -> bytes:
    """Returns the next bytes of a stream, at least one if there is any, and leaves them there."""
    if hasattr(raw, "peek"):
        return bytes(raw.peek(1))
    if not raw.seekable():
        return b""
    here, data = raw.tell(), raw.read(io.DEFAULT_BUFFER_SIZE)
    raw.seek(here)
    return bytes(data)


def _explain(error: Exception, encoding: str) -> str:
    if isinstance(error, CorpusError):
        return str(error)
    if isinstance(error, UnicodeDecodeError):
        return f"After this line come bytes that are not {encoding} text. Convert the file."
    if isinstance(error, _DAMAGE):
        return f"The file is damaged ({error}). Fetch it again, or pack it again."
    if isinstance(error, IsADirectoryError):
        return "This is a directory. Name a file in it."
    return f"Cannot be read ({getattr(error, 'strerror', None) or error}). Check the path."


def _unpack(raw: Any, stack: ExitStack) -> Any:
    first = _peek(raw)
    if first.startswith(b"\x1f\x8b"):
        return stack.enter_context(gzip.GzipFile(fileobj=raw))
    if first.startswith(b"PK\x03\x04"):
        try:
            return _open_archive(raw, stack)
        except (RuntimeError, NotImplementedError) as error:  # a password, or a way to pack that Python does not know
            raise CorpusError(f"The archive cannot be opened ({error}). Pack it again, or unpack it.") from error
    return raw


def _open_archive(raw: Any, stack: ExitStack) -> Any:
    archive = stack.enter_context(zipfile.ZipFile(raw if raw.seekable() else io.BytesIO(raw.read())))
    names = [name for name in archive.namelist() if not name.startswith("__MACOSX/") and not name.endswith("/")]
    if len(names) != 1:
        raise CorpusError(f"The archive holds {len(names)} files. Pack one, or unpack it.")
    return stack.enter_context(archive.open(names[0]))


class Block(NamedTuple):
    """Some whole lines of a file; `first` is the number of the first one, from 1."""

    file: str
    first: int
    data: bytes
    max_line: int = MAX_LINE

    def entries(self) -> Iterator[tuple[int, str | bytes]]:
        """Yields the lines that are not blank, with their numbers; as bytes if some of the block are not utf-8 text."""
        may_be_long = len(self.data) > self.max_line
        for number, line in enumerate(self._split(), self.first):
            if may_be_long and len(line) > self.max_line:
                raise _too_long(self.file, number, self.max_line)
            if line and not line.isspace():
                yield number, line

    def _split(self) -> Sequence[str | bytes]:
        try:
            return self.data.decode().split("\n")
        except UnicodeDecodeError:
            return self.data.split(b"\n")


def read_blocks(path: AnyPath, max_line: int = MAX_LINE) -> Iterator[Block]:
    """Reads the lines of a file, or of standard input (`"-"`), a block at a time."""
    check_whole("max_line", max_line, least=1)
    name, first, rest = called(path), 1, bytearray()
    with open_bytes(path, lambda: f"{name}, line {first}" if first > 1 else name) as stream:
        mark = codecs.BOM_UTF8  # may stand at the beginning
        while data := stream.read(BLOCK):
            data, mark = data.removeprefix(mark), b""
            cut = _last_end(data)
            if cut:
                block = _with_line_feeds(bytes(rest + data[:cut]))
                yield Block(name, first, block, max_line)
                first, rest = first + block.count(b"\n"), bytearray(data[cut:])
            else:
                rest += data
                if len(rest) > BYTES * max_line:
                    raise _too_long(name, first, max_line)
    if rest:
        yield Block(name, first, _with_line_feeds(bytes(rest)), max_line)


def _too_long(file: str, line: int, max_line: int) -> PlacedError:
    return PlacedError(f"{file}, line {line}: {too_long(max_line)}")


def _last_end(data: bytes) -> int:
    """Returns where the last line that is whole ends; 0 if none does."""
    # A carriage return at the very end is left: a line feed may follow.
    return data.rfind(b"\n") + 1 or data.rfind(b"\r", 0, -1) + 1


def _with_line_feeds(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data

"""The lines of a file, unpacked and counted, so that an error can say where it is; objects of JSON, one a line.

Files may be plain, gzipped, or a zip archive with one file in it; which of them is seen from their first bytes, not
from their name. A reader raises `CorpusError` with the reason alone; `open_lines` puts the file and the line before
it, and does the same for files that are damaged or missing. No line is read that is longer than a limit, so that a
file without line ends, or a packed one that unpacks to no end, cannot fill the memory. `read_blocks` reads many lines
at a time, for a process that hands them out to others: cutting text into lines would be most of what that process does.
What is written appears whole or not at all.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import lzma
import os
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TextIO, TypeVar

import msgspec

from hasten.errors import CorpusError
from hasten.support.checks import check_whole
from hasten.support.files import output_directory, whole
from hasten.support.terminal import standard_output

T = TypeVar("T")
AnyPath = str | os.PathLike[str]

MAX_LINE = 64_000_000  # characters
FAULTS_SHOWN = 5
BLOCK = 1 << 18  # bytes read at a time
BYTES = 4  # of a character, at most
TOO_LONG = (
    "The line has more than {:,} characters. If it should, allow longer ones: --max-line on the command line, "
    "max_line= in Python."
)

GZIP, ZIP = b"\x1f\x8b", b"PK\x03\x04"  # how packed files begin
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

    def __init__(self, stream: TextIO, max_line: int, faults: Faults | None = None, path: AnyPath = "") -> None:
        self.path = os.fspath(path)
        self.number = 0
        self.entry_number = 0  # of a list or table, whose lines say nothing; from 1
        self.faults = faults or Faults()
        self._read = stream.readline
        self._max_line = max_line

    @property
    def place(self) -> str:
        """The place that was read last, in words."""
        name = called(self.path)
        if self.entry_number:
            return f"{name}, entry {self.entry_number}"
        return f"{name}, line {self.number}" if self.number else name

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
            raise CorpusError(TOO_LONG.format(self._max_line))
        return line


@contextmanager
def open_lines(
    path: AnyPath, max_line: int = MAX_LINE, encoding: str = "utf-8-sig", faults: Faults | None = None
) -> Iterator[Lines]:
    """Opens a file for its lines; whatever goes wrong while they are read is raised with its place."""
    check_whole("max_line", max_line, least=1)
    lines = Lines(io.StringIO(), max_line)
    with _open_bytes(path, lambda: lines.place, encoding) as raw, ExitStack() as stack:
        text = io.TextIOWrapper(raw, encoding=encoding)
        stack.callback(text.detach)  # what we did not open we do not close
        lines = Lines(text, max_line, faults, path)
        yield lines


@contextmanager
def _open_bytes(path: AnyPath, place: Callable[[], str], encoding: str = "utf-8-sig") -> Iterator[Any]:
    """Opens a file for its bytes, unpacked; what goes wrong while they are read is raised with the `place` reached."""
    if "\0" in os.fspath(path):
        raise CorpusError(f"{os.fspath(path)!r}: A name holds no null character. Check the path.")
    if not os.fspath(path):
        raise CorpusError("The name of a file is empty. Name one, or - for standard input.")
    with ExitStack() as stack:
        try:
            raw: Any = _standard_input() if path == "-" else stack.enter_context(open(path, "rb"))
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


def _standard_input() -> Any:
    if sys.stdin is None:
        raise CorpusError("Standard input is closed. Name a file, or send one there.")
    return sys.stdin.buffer


def peek_line() -> str | None:
    """Returns the first line of standard input that is not blank, as latin-1, and leaves everything there to read.

    "" if there is nothing; None if it cannot be seen: in a zip archive, or where less than a line has come so far.
    """
    data = _peek(_standard_input())
    if data.startswith(ZIP):
        return None
    if data.startswith(GZIP):
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
        return f"The bytes that follow are not {encoding.removesuffix('-sig')} text. Convert the file, or name another."
    if isinstance(error, _DAMAGE):
        return f"The file is damaged ({error}). Fetch it again, or pack it again."
    if isinstance(error, IsADirectoryError):
        return "This is a directory. Name a file in it."
    return f"Cannot be read ({getattr(error, 'strerror', None) or error}). Check the path."


def _unpack(raw: Any, stack: ExitStack) -> Any:
    first = _peek(raw)
    if first.startswith(GZIP):
        return stack.enter_context(gzip.GzipFile(fileobj=raw))
    if not first.startswith(ZIP):
        return raw
    try:
        archive = stack.enter_context(zipfile.ZipFile(raw if raw.seekable() else io.BytesIO(raw.read())))
        names = [name for name in archive.namelist() if not name.startswith("__MACOSX/") and not name.endswith("/")]
        if len(names) != 1:
            raise CorpusError(f"The archive holds {len(names)} files. Pack one, or unpack it.")
        return stack.enter_context(archive.open(names[0]))
    except (RuntimeError, NotImplementedError) as error:  # a password, or a way to pack that Python does not know
        raise CorpusError(f"The archive cannot be opened ({error}). Pack it again, or unpack it.") from error


class Block(NamedTuple):
    """Some whole lines of a file; `first` is the number of the first one, from 1."""

    file: str
    first: int
    data: bytes
    max_line: int = MAX_LINE

    def entries(self) -> Iterator[tuple[int, str | bytes]]:
        """Yields the lines that are not blank, with their numbers; as bytes if some of the block are not utf-8 text."""
        may_be_long = len(self.data) > self.max_line
        try:
            lines: Sequence[str | bytes] = self.data.decode().split("\n")
        except UnicodeDecodeError:
            lines = self.data.split(b"\n")
        for number, line in enumerate(lines, self.first):
            if may_be_long and len(line) > self.max_line:
                raise _too_long(self.file, number, self.max_line)
            if line and not line.isspace():
                yield number, line

    def decoded(self, decoder: msgspec.json.Decoder[T]) -> list[T] | None:
        """Returns its lines, decoded all at once; None if it cannot be seen that each is an object.

        A line feed between two braces is not within an object, nor within a string.
        """
        data, n = self.data, self.data.count(b"\n")
        if not (data.startswith(b"{") and data.endswith(b"}\n") and data.count(b"}\n{") == n - 1):
            return None
        try:
            if not data.isascii():
                data.decode()  # refuses what is not UTF-8
            found = decoder.decode_lines(data) if len(data) <= self.max_line else []
        except (ValueError, RecursionError):
            return None
        return found if len(found) == n else None


def read_blocks(path: AnyPath, max_line: int = MAX_LINE) -> Iterator[Block]:
    """Reads the lines of a file, or of standard input (`"-"`), a block at a time."""
    check_whole("max_line", max_line, least=1)
    name, first, rest = called(path), 1, bytearray()
    with _open_bytes(path, lambda: f"{name}, line {first}" if first > 1 else name) as stream:
        mark = codecs.BOM_UTF8  # may stand at the beginning
        while data := stream.read(BLOCK):
            data, mark = data.removeprefix(mark), b""
            # A carriage return at the very end is left: a line feed may follow.
            cut = data.rfind(b"\n") + 1 or data.rfind(b"\r", 0, -1) + 1  # where the last line that is whole ends
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
    return PlacedError(f"{file}, line {line}: {TOO_LONG.format(max_line)}")


def _with_line_feeds(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


def load_json(line: str | bytes) -> Any:
    """Returns what a line of JSON stands for, whether it is decoded already or not."""
    try:
        line = line if isinstance(line, str) else line.decode("utf-8-sig")
        return json.loads(line)
    except json.JSONDecodeError as error:
        raise CorpusError(f"Not JSON ({error.msg} at column {error.colno}). Write one object a line.") from error
    except UnicodeDecodeError:
        raise CorpusError("The line is not utf-8 text. Convert the file.") from None
    except ValueError:
        raise CorpusError("A number has thousands of digits. Write smaller ones.") from None
    except RecursionError:
        raise CorpusError("The object is nested too deep. Write lists of strings and numbers.") from None


def parse_object(line: str | bytes) -> dict[str, Any]:
    """Returns the object that a line of JSON is, whether it is decoded already or not."""
    found = load_json(line)
    if not isinstance(found, dict):
        raise CorpusError("Expected a JSON object with tokens and spans. Write one object a line.")
    return found


def short(value: object) -> str:
    """Returns a value in few words, for an error."""
    try:
        return json.dumps(value)[:60]
    except RecursionError:
        return "something nested deep"


def fitted(value: Any, kind: Any, said: str) -> Any:
    """Returns a value that JSON says as one of a type, as msgspec converts it; an error begins with what is `said`."""
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, RecursionError):
        raise CorpusError(f"{said}, not {short(value)}.") from None


def write_objects(path: AnyPath, objects: Iterable[Mapping[str, object]]) -> int:
    """Writes one JSON object a line, and returns how many."""
    return write_blocks(path, ((json.dumps(each) + "\n").encode() for each in objects))


def write_blocks(path: AnyPath, blocks: Iterable[bytes]) -> int:
    """Writes bytes one after the other, and returns how many times.

    The file appears whole or not at all. A name that ends in `.gz` is compressed; `"-"` is standard output.
    """
    with ExitStack() as stack:
        if path == "-":
            out = stack.enter_context(standard_output())
            return sum(out.write(block.decode()) >= 0 for block in blocks)
        stack.enter_context(output_directory(Path(path).parent))
        stream: Any = stack.enter_context(open(stack.enter_context(whole(Path(path))), "wb"))
        if Path(path).suffix == ".gz":  # the same sentences give the same bytes
            stream = stack.enter_context(gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0))
        return sum(stream.write(block) >= 0 for block in blocks)

"""A file as blocks of whole lines, for a process that hands lines out to others.

Cutting text into lines is left to whoever gets a block: it would be most of what that process does. Lines end as in
`open_lines`: with a line feed, a carriage return, or both.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hasten.support.checks import check_whole
from hasten.tasks.text.lines import MAX_LINE, AnyPath, PlacedError, called, open_bytes, too_long

BLOCK = 1 << 20  # bytes read at a time
BYTES = 4  # of a character, at most


class Block(NamedTuple):
    """Some whole lines of a file; `first` is the number of the first one, from 1."""

    file: str
    first: int
    data: bytes
    max_line: int = MAX_LINE

    def lines(self) -> Iterator[tuple[int, str | bytes]]:
        """Yields the lines that are not blank, with their numbers; as bytes if some of the block are not utf-8 text."""
        for number, line in enumerate(self._split(), self.first):
            if len(line) > self.max_line:
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

"""The text of a file: unpacked, of bounded length, with the number of the line that is being read."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

from hasten.errors import ProgramError

MAX_BYTES = 1_000_000_000
_CHUNK = 1 << 20


class Text:
    """Lines and words of a file; `number` is the line last read from, from 1."""

    def __init__(self, name: str, text: str, path: str = "") -> None:
        self.name = name
        self.path = path  # where it is, unpacked; "" if nowhere
        self.text = text
        self.number = 0

    def lines(self) -> Iterator[str]:
        """Yields one line after the other."""
        for line in self.text.splitlines():
            self.number += 1
            yield line

    def words(self) -> Iterator[str]:
        """Yields one word after the other, whatever the line."""
        for line in self.lines():
            yield from line.split()


class Words:
    """Words that are taken one by one, each of a kind."""

    def __init__(self, text: Text) -> None:
        self._words = text.words()

    def word(self, what: str) -> str:
        """Returns the next word."""
        try:
            return next(self._words)
        except StopIteration:
            raise ProgramError(f"The file ends where {what} should be. Is it whole?") from None

    def whole(self, what: str, least: int = 0, most: int = 2**62) -> int:
        """Returns the next word as a whole number within limits."""
        word = self.word(what)
        return as_whole(word, what, least, most)

    def number(self, what: str) -> float:
        """Returns the next word as a number."""
        return as_number(self.word(what), what)

    def end(self) -> None:
        """Refuses what is left."""
        for word in self._words:
            raise ProgramError(f"Nothing should come after the end, but there is {shown(word)}.")


def as_whole(word: str, what: str, least: int = 0, most: int = 2**62) -> int:
    """Returns a word as a whole number within limits."""
    try:
        value = int(word) if len(word) < 30 else most + 1
    except ValueError:
        raise ProgramError(f"{what} must be a whole number, not {shown(word)}.") from None
    if not least <= value <= most:
        raise ProgramError(f"{what} must be from {least:,} to {most:,}, not {shown(word)}.")
    return value


def as_number(word: str, what: str) -> float:
    """Returns a word as a number."""
    try:
        value = float(word)
    except ValueError:
        raise ProgramError(f"{what} must be a number, not {shown(word)}.") from None
    if value != value:
        raise ProgramError(f"{what} must be a number, not nan.")
    return value


def shown(word: str) -> str:
    """Returns a word as errors show it."""
    return repr(word if len(word) <= 40 else word[:40] + "…")


def open_text(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> Text:
    """Reads a file, gzipped or not, up to a limit."""
    name = os.fspath(path)
    if "\0" in name:
        raise ProgramError(f"{name!r}: a name holds no null character. Check the path.")
    try:
        data = _unpacked(name, max_bytes)
    except IsADirectoryError:
        raise ProgramError(f"{name}: this is a directory. Name a file in it.") from None
    except (OSError, EOFError, zlib.error) as error:
        if isinstance(error, gzip.BadGzipFile | EOFError | zlib.error):
            raise ProgramError(f"{name}: the file is damaged ({error}). Fetch it again, or pack it again.") from None
        raise ProgramError(f"{name}: cannot be read ({error.strerror or error}). Check the path.") from None
    if b"\0" in data[:4096]:
        raise ProgramError(f"{name}: this is not text. Name a file in one of the formats.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    return Text(Path(name).name, text, name)


def _unpacked(name: str, max_bytes: int) -> bytes:
    """Returns the bytes of a file, never more than a limit."""
    with open(name, "rb") as raw:
        packed = raw.peek(2)[:2] == b"\x1f\x8b"
        stream = gzip.GzipFile(fileobj=raw) if packed else raw
        parts, size = [], 0
        while chunk := stream.read(_CHUNK):
            size += len(chunk)
            if size > max_bytes:
                raise ProgramError(
                    f"{name}: it holds more than {max_bytes:,} bytes{', unpacked' if packed else ''}. "
                    "If it should, allow more: max_bytes."
                )
            parts.append(chunk)
    return b"".join(parts)

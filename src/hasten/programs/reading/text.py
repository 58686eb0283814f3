"""The text of a file, streamed: unpacked, of bounded size, with the line number of every error; strict numbers.

Every reader holds a line at a time, so a small packed file cannot fill the memory.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from hasten.errors import ProgramError

MAX_BYTES = 1_000_000_000
MAX_RATIO = 50  # to which a file may be packed, if it has more than `MANY_BYTES`
MANY_BYTES = 2_000_000
MAX_LINE = 32_000_000  # letters
_WORD = re.compile(r"[^ \t\n\r\f\v]+")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?)", re.IGNORECASE)


def _as_latin_1(error: UnicodeError) -> tuple[str, int]:
    """Decodes bytes that are not UTF-8, as older programs write them."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("latin-1"), error.end


codecs.register_error("hasten.latin-1", _as_latin_1)


class Text:
    """A file, read line by line or word by word; `number` is the line last read from, from 1."""

    def __init__(self, path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> None:
        self.path, self.max_bytes = os.fspath(path), max_bytes
        self.name, self.number = Path(self.path).name, 0
        self._reading: Generator[str] | None = None
        self._words = self._all_words()

    def lines(self) -> Iterator[str]:
        """Yields one line after the other."""
        self._reading = self._read()
        return self._reading

    def close(self) -> None:
        """Closes the file, wherever its lines were left."""
        if self._reading is not None:
            self._reading.close()

    def _read(self) -> Generator[str]:
        with (
            _opened(self.path) as (stream, packed),
            io.TextIOWrapper(cast(IO[bytes], stream), "utf-8-sig", "hasten.latin-1") as lines,
        ):
            number = 0
            while line := lines.readline(MAX_LINE):
                number += 1
                self.number = number
                self._check_size(stream.tell(), packed)
                if len(line) == MAX_LINE:
                    raise ProgramError(f"It is longer than {MAX_LINE:,} letters. Break the line.")
                if "\0" in line:
                    raise ProgramError("This is not text. Name a file in one of the formats.")
                yield line

    def _check_size(self, size: int, packed: int) -> None:
        """Refuses a file that is too large, or that was packed to next to nothing, after some bytes of it."""
        if size > self.max_bytes:
            unpacked = ", unpacked" if packed else ""
            raise ProgramError(
                f"It holds more than {self.max_bytes:,} bytes{unpacked}. If it should, allow more: max_bytes."
            )
        if packed and size > max(MANY_BYTES, MAX_RATIO * packed):
            raise ProgramError(f"It unpacks to more than {MAX_RATIO} times its size. If it should, unpack it first.")

    def _all_words(self) -> Iterator[str]:
        for line in self.lines():
            for found in _WORD.finditer(line):
                yield found.group()

    def word(self, what: str) -> str:
        """Returns the next word, whatever the line."""
        word = next(self._words, None)
        if word is None:
            raise ProgramError(f"The file ends where {what} should be. Is it whole?")
        return word

    def whole(self, what: str, least: int = 0, most: int = 2**62) -> int:
        """Returns the next word as a whole number within limits."""
        return as_whole(self.word(what), what, least, most)

    def real(self, what: str) -> float:
        """Returns the next word as a number."""
        return as_number(self.word(what), what)

    def end(self) -> None:
        """Refuses words that are left."""
        for word in self._words:
            raise ProgramError(f"Nothing should come after the end, but there is {shown(word)}.")


def split(line: str) -> list[str]:
    """Returns the words of a line."""
    return _WORD.findall(line)


def as_whole(word: str, what: str, least: int = 0, most: int = 2**62) -> int:
    """Returns a word as a whole number within limits."""
    if not _WHOLE.fullmatch(word):
        raise ProgramError(f"{what} must be a whole number, not {shown(word)}.")
    value = int(word) if len(word) < 30 else most + 1
    if not least <= value <= most:
        raise ProgramError(f"{what} must be from {least:,} to {most:,}, not {shown(word)}.")
    return value


def as_number(word: str, what: str) -> float:
    """Returns a word as a number, in ASCII digits; Python would also read `1_0` and the digits of other scripts."""
    if not _NUMBER.fullmatch(word):
        raise ProgramError(f"{what} must be a number, not {shown(word)}.")
    return float(word)


def shown(word: str) -> str:
    """Returns a word as errors show it."""
    return repr(word if len(word) <= 40 else word[:40] + "…")


@contextmanager
def _opened(path: str) -> Iterator[tuple[IO[bytes] | gzip.GzipFile, int]]:
    """Opens a file, gzipped or not; yields its bytes, unpacked, and its packed size, 0 if it is not packed."""
    try:
        with open(path, "rb") as raw:
            if raw.peek(2)[:2] != b"\x1f\x8b":
                yield raw, 0
                return
            with gzip.GzipFile(fileobj=raw) as stream:
                yield stream, os.fstat(raw.fileno()).st_size
    except IsADirectoryError:
        raise ProgramError("This is a directory. Name a file in it.") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ProgramError(f"The file is damaged ({error}). Fetch it again, or pack it again.") from None
    except (OSError, ValueError) as error:  # a name with a null character is a ValueError
        raise ProgramError(
            f"It cannot be read ({getattr(error, 'strerror', None) or error}). Check the path."
        ) from None

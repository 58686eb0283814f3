"""What is printed: text that does nothing to a terminal, and an output that may be full, closed, or read no further."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from hasten.errors import WriteError
from hasten.support.files import unwritable

if TYPE_CHECKING:
    from rich.console import Console


def printable(text: object) -> str:
    r"""Returns text with its control characters spelled out, so that a file cannot tell a terminal what to do.

    >>> printable("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(text))


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a stream goes to a terminal; None is one that was closed before Python began."""
    return stream is not None and stream.isatty()


_DRAWN_ON: list[Console] = []


@contextmanager
def drawing_on(console: Console) -> Iterator[None]:
    """Says for as long as it lasts that something, such as a bar, is drawn on a console again and again."""
    _DRAWN_ON.append(console)
    try:
        yield
    finally:
        _DRAWN_ON.remove(console)


def drawn_on() -> Console | None:
    """Returns the terminal that something is being drawn on; what is printed there stands above that."""
    return next((console for console in reversed(_DRAWN_ON) if console.is_terminal), None)


@contextmanager
def standard_output() -> Iterator[TextIO]:
    """Gives standard output, and sees that all arrives."""
    if sys.stdout is None:
        raise WriteError("Standard output is closed. Name a file, or open it.")
    with all_printed():
        yield sys.stdout


@contextmanager
def all_printed() -> Iterator[None]:
    """Sees that what is printed arrives; if it cannot be written, that is an error of ours.

    Where nobody reads any more, BrokenPipeError says so.
    """
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except WriteError:
        raise
    except OSError as error:
        if error.filename is not None:  # of a file, not of what is printed
            raise
        with suppress(OSError, ValueError):  # Python would try once more as it ends; not every output is a file
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
        if isinstance(error, BrokenPipeError):
            raise
        raise unwritable(Path("Standard output"), error) from error

"""Printing: text that does nothing to a terminal, an output that may be full or closed, and progress.

Progress is a bar for each stage of a long command in a terminal, and a line for each stage elsewhere. Functions that
take long call a `Progress` and know nothing of terminals. A stage begins when it is first named, and ends when another
is.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TextIO, TypeVar

from hasten.errors import WriteError
from hasten.support.files import unwritable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import TaskID


def printable(text: object) -> str:
    r"""Returns text with its control characters spelled out, so that a file cannot tell a terminal what to do.

    >>> printable("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(text))


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a stream goes to a terminal; None is one that was closed before Python began."""
    return stream is not None and stream.isatty()


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


T = TypeVar("T")


class Progress(Protocol):
    """A callback that reports how far the work has come."""

    def __call__(self, stage: str, share: float | None, note: str = "", /) -> None:
        """Reports a stage, the share of it that is done (None if it is not known), and a note."""
        ...


def no_progress(stage: str, share: float | None, note: str = "", /) -> None:
    """Reports nothing."""


def steps(progress: Progress, stage: str, things: Sequence[T]) -> Iterator[T]:
    """Yields things one by one, as a stage, and reports how many are done."""
    for n, thing in enumerate(things):
        progress(stage, n / len(things))
        yield thing
    progress(stage, 1.0)


@contextmanager
def show_progress(console: Console | None = None, quiet: bool = False) -> Iterator[Progress]:
    """Yields a `Progress` that is shown on a console, by default on standard error."""
    if quiet:
        yield no_progress
        return
    from rich import console as consoles  # takes long to load
    from rich import progress as bars

    console = console or consoles.Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(console)
    else:
        words = bars.TextColumn("{task.description}", markup=False)
        columns = bars.SpinnerColumn(), words, bars.BarColumn(), bars.TimeElapsedColumn()
        with bars.Progress(*columns, console=console, transient=True) as progress:  # logs and prints stand above it
            yield _Bars(progress)


class _Lines:
    """A line for each stage, when it begins."""

    def __init__(self, console: Console) -> None:
        self.console, self.stage = console, ""

    def __call__(self, stage: str, share: float | None, note: str = "", /) -> None:
        if stage != self.stage:
            self.stage = stage
            self.console.print(stage, markup=False, highlight=False, soft_wrap=True)


class _Bars:
    """A bar for each stage; one that is over stays full, with the time that it took."""

    def __init__(self, progress: Bars) -> None:
        self.progress, self.stage = progress, ""
        self.bar: TaskID | None = None

    def __call__(self, stage: str, share: float | None, note: str = "", /) -> None:
        if self.bar is None or stage != self.stage:
            if self.bar is not None:
                self.progress.update(self.bar, total=1.0, completed=1.0)
            self.stage, self.bar = stage, self.progress.add_task(stage, total=None)
        total, shown = None if share is None else 1.0, f"{stage}: {note}" if note else stage
        self.progress.update(self.bar, total=total, completed=share or 0.0, description=shown)


@dataclass
class Pace:
    """How fast work that began when this was made goes, and how long it will take, in words."""

    began: float = field(default_factory=time.monotonic)

    def words(self, done: int, of: int | None = None, before: int = 0) -> str:
        """Returns how many are done, how many a second, and the time left; `before` were done when it began."""
        seconds = time.monotonic() - self.began
        rate = (done - before) / seconds if seconds > 0 else 0.0
        words = f"{done:,}" if of is None else f"{done:,} of {of:,}"
        if rate <= 0:
            return words
        words += f", {rate:,.0f} a second"
        return words if of is None else f"{words}, {duration((of - done) / rate)} left"


def duration(seconds: float) -> str:
    """Returns a time in words, by its largest unit and the next."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"

"""How far a long command has come: a bar for each of its stages in a terminal, a line for each anywhere else.

What does the work is given a `Tell` and knows nothing of terminals. A stage begins when it is first named, and ends
when another is.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from hasten.support.terminal import drawing_on

T = TypeVar("T")


class Tell(Protocol):
    """Is told how far the work has come."""

    def __call__(self, stage: str, share: float | None, note: str = "", /) -> None:
        """Says which stage it is at, the share of it that is done, None where nobody knows, and more in words."""
        ...


def tell_nobody(stage: str, share: float | None, note: str = "", /) -> None:
    """Tells nobody."""


def steps(tell: Tell, stage: str, things: Sequence[T]) -> Iterator[T]:
    """Goes through things one by one, as a stage, and tells how many are done."""
    for n, thing in enumerate(things):
        tell(stage, n / len(things))
        yield thing
    tell(stage, 1.0)


@contextmanager
def show_progress(console: Console, quiet: bool = False) -> Iterator[Tell]:
    """Gives something to tell, and shows what it is told on a console until the end."""
    if quiet:
        yield tell_nobody
    elif not console.is_terminal:
        yield _Lines(console)
    else:
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
        with drawing_on(console), Progress(*columns, console=console, transient=True) as progress:
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

    def __init__(self, progress: Progress) -> None:
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

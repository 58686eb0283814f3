"""Progress: a bar for each stage in a terminal, a line for each anywhere else."""

from __future__ import annotations

import io
import sys

from rich.console import Console

from hasten.support.terminal import show_progress, steps


class Flushed(io.StringIO):
    """A stream that remembers what had come through whenever it was flushed."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def flush(self) -> None:
        self.seen.append(self.getvalue())


def test_without_a_terminal_each_stage_is_one_plain_line_told_at_once():
    stream = Flushed()
    with show_progress(Console(file=stream, width=20)) as progress:
        progress("Reading [a] file with a long name", None)
        progress("Reading [a] file with a long name", 0.5, "half of it")
        assert stream.seen[-1] == "Reading [a] file with a long name\n"
        assert list(steps(progress, "Counting to 3", [1, 2, 3])) == [1, 2, 3]
    assert stream.getvalue() == "Reading [a] file with a long name\nCounting to 3\n"


def test_in_a_terminal_each_stage_has_a_bar_of_its_own():
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    with show_progress(console) as progress:
        progress("First", 1.0)
        progress("Second", 0.25, "a quarter")
        bars = progress.progress
        first, second = bars.tasks
        assert (first.description, first.finished) == ("First", True)
        assert (second.description, second.finished, second.percentage) == ("Second: a quarter", False, 25)
        progress("Second", 0.75)
        assert (second.description, second.percentage) == ("Second", 75)
        progress("Third", None)
        assert second.finished
        third = bars.tasks[2]
        assert (third.total, third.finished) == (None, False)
        assert third.elapsed is not None


def test_a_warning_stands_above_a_bar():
    """As that of compiling: what is written to a terminal that something else draws on is drawn over."""
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    with show_progress(console) as progress:
        progress("Doubling", None)
        print("compiling", file=sys.stderr)
    assert console.file.getvalue().count("compiling\n") == 1


def test_quiet_shows_nothing():
    for force_terminal in (False, True):
        console = Console(file=io.StringIO(), force_terminal=force_terminal)
        with show_progress(console, quiet=True) as progress:
            progress("First", 0.5, "more")
        assert console.file.getvalue() == ""

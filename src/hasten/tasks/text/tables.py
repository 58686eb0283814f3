"""Sentences as tables: a token a line, its columns between tabs or blanks, a blank line between sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import NamedTuple

from hasten.tasks.text.lines import MAX_LINE, AnyPath, Faults, Lines, open_lines

Cells = list[str]


class Table(NamedTuple):
    """The rows of one sentence; `lines` are those of the file, which stand behind its last row."""

    lines: Lines
    id: str  # from a comment; else the number of the sentence, from 1
    rows: list[Cells]


def read_tables(
    path: AnyPath,
    split: Callable[[str], Cells | None],
    max_line: int = MAX_LINE,
    faults: Faults | None = None,
    *,
    comments: bool = False,
) -> Iterator[Table]:
    """Reads the tables of a file. `split` cuts a line into cells, refuses it, or passes over it with None.

    With `comments`, lines that begin with # are none of the table, and `# sent_id = x` names it. Lines that begin with
    -DOCSTART- are passed over.
    """
    with open_lines(path, max_line, faults=faults) as lines:
        number, id, rows = 1, "", list[Cells]()
        for line in chain(lines, ("",)):
            text = line.rstrip("\r\n")
            if comments and text.startswith("#"):
                name, _, value = text[1:].partition("=")
                id = value.strip() if name.strip() == "sent_id" else id
            elif text.strip():
                cells = None if text.startswith("-DOCSTART-") else split(text)
                rows += [] if cells is None else [cells]
            elif rows:
                yield Table(lines, id or str(number), rows)
                number, id, rows = number + 1, "", []

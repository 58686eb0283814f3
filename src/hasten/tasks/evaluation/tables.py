"""Numbers as text, and tables of rows: for a page, for the terminal, and in Markdown.

A table is plain rows, and columns that say how a cell of a row is written. Missing numbers are a dash.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.markup import escape as escape_markup
from rich.table import Table

from hasten.support.words import Html, join, tag

Entry = Mapping[str, Any]  # one object of results.json
Cell = Callable[[Entry], str]
Line = tuple[Entry, str]  # a row, and how it stands out: "", "best", or "paper" for a figure that is not ours

DASH = "–"


def number(value: object) -> float | None:
    """Returns a finite number, or None."""
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if known else None  # type: ignore[arg-type]


def text(value: object) -> str:
    """Returns any value as text."""
    return DASH if value is None or value == "" else str(value)


def fixed(value: object, digits: int = 3) -> str:
    """Returns a number with so many digits."""
    known = number(value)
    return DASH if known is None else f"{known:,.{digits}f}"


def whole(value: object) -> str:
    """Returns a count."""
    return fixed(value, 0)


def percent(value: object, digits: int = 1) -> str:
    """Returns a share as a percentage."""
    known = number(value)
    return DASH if known is None else f"{100 * known:.{digits}f}%"


def short(value: object) -> str:
    """Returns a number with as many digits as its size needs: a time, or a ratio."""
    known = number(value) or 0.0
    return fixed(value, 0 if known >= 100 else 1 if known >= 2 else 2)


def times(value: object) -> str:
    """Returns how many times."""
    return DASH if number(value) is None else f"{short(value)}×"


def counted(n: object, thing: str) -> str:
    """Returns how many things there are, as one says it."""
    return f"{whole(n)} {thing}{'' if number(n) == 1 else 's'}"


def any_value(value: object) -> str:
    """Returns a value of any type as text."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {any_value(each)}" for name, each in value.items()) or DASH
    if isinstance(value, list | tuple):
        return ", ".join(text(each) for each in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return DASH if number(value) is None else f"{value:,.4g}" if isinstance(value, float) else f"{value:,}"
    return text(value)


def limits(row: Entry, key: str) -> str:
    """Returns the interval of a score, if there is one."""
    known = [number(limit) for limit in (row.get("interval") or row.get("intervals") or {}).get(key) or ()]
    return f"{known[0]:.2f}–{known[1]:.2f}" if len(known) == 2 and None not in known else ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its head, the cells, what stands in small print below them, its group, and what it means."""

    head: str
    cell: Cell
    below: Cell = lambda row: ""
    group: str = ""
    meaning: str = ""


def column(head: str, key: str, write: Callable[[object], str] = text, **more: Any) -> Column:
    """Returns the column of one key of the rows."""
    return Column(head, lambda row: write(row.get(key)), **more)


def score(head: str, key: str, **more: Any) -> Column:
    """Returns the column of a score, its deviation over seeds and its interval below."""

    def below(row: Entry) -> str:
        std = number((row.get("std") or {}).get(key))
        return "\n".join(filter(None, ["" if std is None else f"± {std:.3f}", limits(row, key)]))

    return Column(head, lambda row: fixed(row.get(key)), below, **more)


def html_table(columns: Sequence[Column], lines: Sequence[Line], kind: str = "") -> Html:
    """Returns a table for a page, without columns that would be empty; the first column names the rows."""
    first, *others = columns
    others = [each for each in others if any(each.cell(row) not in ("", DASH) for row, _ in lines)]
    groups = Counter(each.group for each in (first, *others))  # in their order
    above = [tag("th", group, class_="group" if group else "", colspan=n) for group, n in groups.items()]
    heads = [tag("th", first.head, title=first.meaning, class_="name")]
    heads += [tag("th", each.head, title=each.meaning) for each in others]
    body, last = [], ("", "")
    for row, stands_out in lines:
        name, note = first.cell(row), first.below(row)
        small = tag("span", note, class_="note") if note and (name, note) != last else None  # said once
        cells = [tag("th", name, small, class_="name", scope="row")]
        for each in others:
            written, below = each.cell(row), each.below(row)
            small = tag("span", below, class_="below") if below else None
            cells.append(tag("td", written, small, class_="dash" if written == DASH else ""))
        body.append(tag("tr", cells, class_=stands_out))
        last = name, note
    head = tag("thead", tag("tr", above) if len(groups) > 1 else None, tag("tr", heads))
    return tag("div", tag("table", head, tag("tbody", body), class_=kind), class_="scroll")


def meanings(columns: Sequence[Column]) -> Html:
    """Returns what the columns mean."""
    said = [(", ".join(filter(None, [each.group, each.head])), each.meaning) for each in columns if each.meaning]
    each = [tag("div", tag("dt", name), tag("dd", meaning)) for name, meaning in said]
    return join(tag("h3", "What the columns say"), tag("dl", each, class_="columns"))


def terminal_table(columns: Sequence[Column], lines: Sequence[Line], title: str = "") -> Table:
    """Returns a table for the terminal; small print is left out."""
    table = Table(title=escape_markup(title) or None, title_justify="left", title_style="italic", header_style="bold")
    table.box, table.padding, table.pad_edge = None, (0, 1, 0, 0), False
    for n, each in enumerate(columns):
        table.add_column(each.head, justify="right" if n else "left", no_wrap=True, vertical="bottom")
    styles = {"best": "bold", "paper": "dim italic"}
    for row, kind in lines:
        cells = [each.cell(row) for each in columns]
        table.add_row(*(escape_markup("" if cell == DASH else cell) for cell in cells), style=styles.get(kind))
    return table


def markdown_table(columns: Sequence[Column], rows: Iterable[Entry]) -> str:
    """Returns a table for a page of the documentation."""
    lines = [[each.head for each in columns], ["---"] + ["---:"] * (len(columns) - 1)]
    lines += [[each.cell(row) for each in columns] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)

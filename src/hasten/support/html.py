"""HTML and SVG elements whose text is escaped, and small cards for notebooks.

A card has no colours of its own, only shades of the text's, so that it is readable on light and dark pages alike.
Whatever it is given, it stays small: texts are cut to `MOST_LETTERS`, tables to `MOST_ROWS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice

import numpy as np

from hasten.support.terminal import printable

MOST_ROWS = 12
MOST_LETTERS = 100
EMPTY = ("meta", "path", "rect", "circle", "polyline")  # elements without content

STYLE = """
.hasten{font-size:13px;line-height:1.5;max-width:100%;overflow-x:auto}
.hasten b{font-weight:600}
.hasten p{margin:2px 0 6px}
.hasten .soft{opacity:.65}
.hasten table{border-collapse:collapse;margin:6px 0 10px;font-size:inherit;color:inherit}
.hasten th,.hasten td{padding:3px 14px 3px 0;text-align:left;vertical-align:top;background:none;color:inherit}
.hasten th{font-weight:400;opacity:.65;border-bottom:1px solid}
.hasten td{border-bottom:1px solid rgba(128,128,128,.25)}
.hasten .number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
""".replace("\n", "")


class Html(str):
    """Text that is HTML already, and is not escaped again."""

    __slots__ = ()


def tag(name: str, *children: object, **attributes: object) -> Html:
    """Returns an element; its children are joined as `join` does.

    A trailing underscore of an attribute's name is dropped (`class_`), other ones are hyphens. Attributes that are None
    or "" are left out; a float has one digit, as coordinates do.
    """
    named = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{f"{value:.1f}" if isinstance(value, float) else escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None and value != ""
    )
    return Html(f"<{name}{named}/>" if name in EMPTY else f"<{name}{named}>{join(*children)}</{name}>")


def join(*children: object) -> Html:
    """Returns children side by side: text is escaped, HTML is not, lists are joined, None is left out."""
    parts = []
    for child in children:
        if isinstance(child, Html):
            parts.append(child)
        elif isinstance(child, Iterable) and not isinstance(child, str):
            parts.append(join(*child))
        elif child is not None:
            parts.append(Html(escape(str(child))))
    return Html("".join(parts))


def card(title: str, *parts: str | tuple[Sequence[str], Iterable[Sequence[object]], int]) -> str:
    """Returns sentences, and tables of a header, rows and how many there are, under a title."""
    children = [tag("style", Html(STYLE)), tag("p", tag("b", shown(title)))]
    for part in parts:
        if isinstance(part, str):
            children.append(tag("p", shown(part, 3 * MOST_LETTERS)))
        elif part[2]:
            children.append(_table(*part))
    return tag("div", children, class_="hasten")


def _table(header: Sequence[str], rows: Iterable[Sequence[object]], n: int) -> Html:
    first = list(islice(rows, MOST_ROWS))
    classes = ["number" if all(is_number(row[c]) for row in first) else "" for c in range(len(header))]

    def line(name: str, cells: Sequence[object]) -> Html:
        return tag("tr", [tag(name, shown(cell), class_=c) for cell, c in zip(cells, classes, strict=True)])

    more = tag("p", f"… and {n - len(first):,} more", class_="soft") if n > len(first) else None
    return join(tag("table", line("th", header), [line("td", row) for row in first]), more)


def shown(value: object, most: int = MOST_LETTERS) -> str:
    """Returns a value as text, cut where it is long; numbers as people write them."""
    if is_number(value):
        return f"{value:,}" if isinstance(value, int | np.integer) else f"{value:,.6g}"
    words = printable(str(value))
    return words if len(words) <= most else words[: most - 1] + "…"


def is_number(value: object) -> bool:
    """Whether a value is a number, and not yes or no."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)

"""Small pieces of HTML for notebooks: a card with sentences and tables, escaped, short, in the page's own colours.

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


def card(title: str, *parts: str) -> str:
    """Returns parts under a title, with how they look."""
    return f'<div class="hasten"><style>{STYLE}</style><p><b>{text(title)}</b></p>{"".join(parts)}</div>'


def sentence(words: str) -> str:
    """Returns a sentence, which may be longer than other texts."""
    return f"<p>{text(words, 3 * MOST_LETTERS)}</p>"


def table(header: Sequence[str], rows: Iterable[Sequence[object]], n: int) -> str:
    """Returns the first of `n` rows and, below them, how many more there are; nothing if there are none."""
    if not n:
        return ""
    shown = list(islice(rows, MOST_ROWS))
    right = [all(is_number(row[c]) for row in shown) for c in range(len(header))]
    lines = [_row("th", header, right), *(_row("td", row, right) for row in shown)]
    more = f'<p class="soft">… and {n - len(shown):,} more</p>' if n > len(shown) else ""
    return f"<table>{''.join(lines)}</table>{more}"


def text(value: object, most: int = MOST_LETTERS) -> str:
    """Returns something as escaped text, cut where it is long; numbers as people write them."""
    if is_number(value):
        return f"{value:,}" if isinstance(value, int | np.integer) else f"{value:,.6g}"
    words = printable(str(value))
    return escape(words if len(words) <= most else words[: most - 1] + "…")


def is_number(value: object) -> bool:
    """Whether something is a number, and not yes or no."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _row(tag: str, cells: Sequence[object], right: Sequence[bool]) -> str:
    classes = [' class="number"' if number else "" for number in right]
    return f"<tr>{''.join(f'<{tag}{c}>{text(cell)}</{tag}>' for cell, c in zip(cells, classes, strict=True))}</tr>"

"""Figures that reports share: a chart with its legend and caption, and how answers were proved."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from hasten.tasks.report.charts import Axis, Point, Series, draw, drawable, legend
from hasten.tasks.report.formatting import Entry, number, text

WRITABLE = 0.06  # a bar's part of at least this share has room for a number


def point(x: Any, y: Any, title: str, label: str = "") -> Point:
    """Returns a point, its title filled in; without one of its numbers it has no place."""
    if not all(drawable(Axis(""), value) for value in (x, y)):
        return Point(math.nan, math.nan, "")
    return Point(float(x), float(y), title.format(x=x, y=y), label)


def figure(
    title: str, x: Axis, y: Axis, series: Sequence[Series], caption: str, *, below: str = "", wide: bool = False
) -> str:
    """Returns a chart with its legend and caption; it is drawn twice, for the style to choose by the room there is."""
    sizes = ((1000, 440), (380, 520)) if wide else ((460, 300), (340, 270))
    kind = '"wide numbered"' if below else "wide" if wide else ""
    broad, narrow = (draw(title, x, y, series, width=w, height=h) for w, h in sizes)
    return (
        f"<figure{' class=' + kind if kind else ''}><h3>{escape(title)}</h3>{'' if below else legend(series)}"
        f'<div class="broad">{broad}</div><div class="narrow">{narrow}</div>{below}'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def how_proved(proofs: Sequence[Entry]) -> str:
    """Which step of the certifier was enough: a bar for the test sentences, another for the unlabeled ones."""
    steps = [key for key in proofs[0] if key != "sentences"]
    counts = [{step: int(number(row.get(step)) or 0) for step in steps} for row in proofs]
    colours = {step: colour for colour, step in enumerate(steps, 1) if any(row[step] for row in counts)}
    keys = "".join(f'<li><i class="key c{colour}"></i>{escape(step)}</li>' for step, colour in colours.items())
    bars = []
    for row, count in zip(proofs, counts, strict=True):
        total = sum(count.values())
        parts = (
            f'<i class="c{colour}" style="flex-grow:{count[step]}" title="{count[step]:,} {escape(step)}">'
            f"{f'{count[step] / total:.0%}' if count[step] > WRITABLE * total else ''}</i>"
            for step, colour in colours.items()
            if count[step]
        )
        bars.append(f'<p>{total:,} {text(row.get("sentences"))} sentences</p><div class="stack">{"".join(parts)}</div>')
    caption = "Each step is taken only where the one before left something open. Hover for numbers."
    return (
        f'<figure class="wide"><h3>How the answers were proved</h3><ul class="legend">{keys}</ul>{"".join(bars)}'
        f"<figcaption>{caption}</figcaption></figure>"
    )

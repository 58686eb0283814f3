"""Charts as inline SVG: no scripts, no fonts, no files; colours come from the page's style.

A chart is series of points over two axes. An axis is linear, logarithmic (a zero then stands apart, at its
low end), or "near one": stretched so that 0.9, 0.99 and 1 stand well apart. Series differ in colour and in
marker, so that neither alone must be told apart; every point says its numbers when it is hovered over.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from hasten.search.theta import FORCED
from hasten.tasks.evaluation.page import Entry, number, text

Box = tuple[float, float, float, float]  # left, top, right, bottom

NEAR_ONE = 0.004  # how far from 1 the "near one" axis ends its stretch
LETTER = 7.6  # the width of a letter of a label, about
LEFT, RIGHT, TOP, BOTTOM = 72.0, 16.0, 14.0, 50.0  # margins
DIGITS = ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7))  # the marks of a log axis: as few as give three


@dataclass(frozen=True, slots=True)
class Point:
    """A point, what it says when hovered over, the label beside it, if any, and whether its mark is hollow."""

    x: float
    y: float
    title: str
    label: str = ""
    hollow: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one colour (1 to 6) and its marker, filled or hollow, joined by a line, whole or dashed, or by none.

    A series without marks is a line to compare others with.
    """

    name: str
    points: Sequence[Point]
    colour: int = 1
    line: bool = True
    hollow: bool = False
    dashed: bool = False
    marks: bool = True


@dataclass(frozen=True, slots=True)
class Axis:
    """What an axis says, and its kind: "linear", "log" or "near one"."""

    label: str
    kind: str = "linear"


@dataclass(frozen=True, slots=True)
class Scale:
    """Where values stand between two pixels. `low`, `high` and `zero` are values after `bent`."""

    kind: str
    low: float
    high: float
    zero: float  # where a log scale has its zero
    start: float
    stop: float

    @classmethod
    def over(cls, kind: str, values: Iterable[float], start: float, stop: float) -> Scale:
        """Returns the scale that holds these values, with some air."""
        every = list(values) or [0.0, 1.0]
        known = [value for value in every if kind != "log" or value > 0.0] or [1.0]
        low, high = (bent(kind, value) for value in (min(known), max(known)))
        if kind == "linear":
            step = _step(low, high)
            low, high = step * math.floor(low / step + 1e-9), step * math.ceil(high / step - 1e-9)
            high = high if high > low else low + step
        else:
            air = 0.06 * (high - low) or 0.2
            low, high = low - air, high + air
        zero = low - 0.07 * (high - low)
        first = zero - 0.03 * (high - low) if kind == "log" and min(every) <= 0.0 else low
        return cls(kind, first, high, zero, start, stop)

    def __call__(self, value: float) -> float:
        """Returns the pixel of a value."""
        at = self.zero if self.kind == "log" and value <= 0.0 else bent(self.kind, value)
        return self.start + (self.stop - self.start) * (at - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Returns the values to mark."""
        if self.kind == "linear":
            step = _step(self.low, self.high)
            n = round((self.high - self.low) / step)
            return [round(self.low + i * step, 10) for i in range(n + 1)]
        if self.kind == "near one":
            marks = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0)
            return [mark for mark in marks if self.low <= bent(self.kind, mark) <= self.high]
        powers = range(math.floor(self.low), math.ceil(self.high) + 1)
        found: list[float] = []
        for digits in DIGITS:
            every = (digit * 10.0**power for power in powers for digit in digits)
            found = [mark for mark in every if max(self.low, self.zero) < math.log10(mark) <= self.high]
            if len(found) >= 3:
                break
        return [0.0, *found] if self.low < self.zero else found


def bent(kind: str, value: float) -> float:
    """Returns a value as its axis lays it out evenly."""
    if kind == "log":
        return math.log10(value)
    return -math.log10(1.0 + NEAR_ONE - min(value, 1.0)) if kind == "near one" else value


def draw(title: str, x: Axis, y: Axis, series: Sequence[Series], *, width: int = 460, height: int = 300) -> str:
    """Returns a chart as an SVG element; `title` is what a screen reader says."""
    series = [
        replace(each, points=[point for point in each.points if drawable(x, point.x) and drawable(y, point.y)])
        for each in series
    ]
    points = [point for each in series for point in each.points]
    if not points:
        return '<p class="empty">Nothing was measured for this figure.</p>'
    right, bottom = width - RIGHT, height - BOTTOM
    across = Scale.over(x.kind, (point.x for point in points), LEFT, right)
    up = Scale.over(y.kind, (point.y for point in points), bottom, TOP)
    parts = [
        f'<svg class="chart" role="img" viewBox="0 0 {width} {height}" aria-label="{escape(title)}">',
        *_grid(across, up, right, bottom),
        f'<text class="axis" x="{(LEFT + right) / 2:.1f}" y="{height - 8}">{escape(x.label)}</text>',
        f'<text class="axis" transform="translate(13 {(TOP + bottom) / 2:.1f}) rotate(-90)">{escape(y.label)}</text>',
    ]
    taken: list[Box] = []
    for each in series:
        at = [(across(point.x), up(point.y)) for point in each.points]
        taken += [(px - 5, py - 5, px + 5, py + 5) for px, py in at if each.marks]
        if each.line and len(at) > 1:
            joined = [px_py for px_py, p in zip(at, each.points, strict=True) if x.kind != "log" or p.x > 0.0]
            path = " ".join(f"{px:.1f},{py:.1f}" for px, py in joined)
            kind = "line dashed" if each.dashed else "line"
            parts.append(f'<polyline class="{kind}" style="stroke:var(--c{each.colour})" points="{path}"/>')
    marks, names = [], []
    for each in series:
        for point in each.points if each.marks else ():
            px, py = across(point.x), up(point.y)
            marks.append(
                f"<g><title>{escape(point.title)}</title>{marker(each.colour, px, py, each.hollow or point.hollow)}</g>"
            )
            if point.label:
                names.append(_label(point.label, px, py, taken, right, bottom))
    parts += [*names, *marks]  # marks cover the lines that lead to them
    return "".join([*parts, "</svg>"])


def legend(series: Iterable[Series]) -> str:
    """Returns the names of series with their markers."""
    items = (
        f'<li><svg class="key" viewBox="0 0 26 14" aria-hidden="true">{_sample(each)}</svg>{escape(each.name)}</li>'
        for each in series
        if each.points
    )
    return f'<ul class="legend">{"".join(items)}</ul>'


def _sample(series: Series) -> str:
    kind = "line dashed" if series.dashed else "line"
    line = f'<path class="{kind}" style="stroke:var(--c{series.colour})" d="M1 7H25"/>' if series.line else ""
    return line + (marker(series.colour, 13, 7, series.hollow) if series.marks else "")


def marker(colour: int, x: float, y: float, hollow: bool = False) -> str:
    """Returns the marker of a colour: each has its own shape."""
    paint = f"fill:var(--card);stroke:var(--c{colour})" if hollow else f"fill:var(--c{colour})"
    style = f'class="mark" style="{paint}"'
    shapes = {
        2: f'<rect {style} x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8"/>',
        3: f'<path {style} d="M{x:.1f} {y - 5.2:.1f}l5 9h-10z"/>',
        4: f'<path {style} d="M{x:.1f} {y - 5.6:.1f}l5.6 5.6-5.6 5.6-5.6-5.6z"/>',
        5: f'<path {style} d="M{x:.1f} {y + 5.2:.1f}l5-9h-10z"/>',
        6: f'<path {style} d="M{x - 1.8:.1f} {y - 5.4:.1f}h3.6v3.6h3.6v3.6h-3.6v3.6h-3.6v-3.6h-3.6v-3.6h3.6z"/>',
    }
    return shapes.get(colour, f'<circle {style} cx="{x:.1f}" cy="{y:.1f}" r="4.4"/>')


def drawable(axis: Axis, value: object) -> bool:
    """Whether an axis has a place for a value."""
    return (
        isinstance(value, int | float)
        and math.isfinite(value)
        and abs(value) < FORCED
        and (axis.kind != "log" or value >= 0.0)
    )


def _step(low: float, high: float) -> float:
    raw = (high - low) / 5.0 or max(abs(high), 1.0) / 5.0
    power = 10.0 ** math.floor(math.log10(raw))
    return power * next(digit for digit in (1.0, 2.0, 2.5, 5.0, 10.0) if digit * power >= raw * (1.0 - 1e-9))


def _grid(across: Scale, up: Scale, right: float, bottom: float) -> list[str]:
    parts = []
    for at, value in ((up(value), value) for value in up.ticks()):
        parts.append(f'<path class="grid" d="M{LEFT} {at:.1f}H{right}"/>')
        parts.append(f'<text class="tick end" x="{LEFT - 8}" y="{at + 4:.1f}">{value:,.10g}</text>')
    for at, value in ((across(value), value) for value in across.ticks()):
        parts.append(f'<path class="grid" d="M{at:.1f} {TOP}V{bottom}"/>')
        parts.append(f'<text class="tick" x="{at:.1f}" y="{bottom + 17}">{value:,.10g}</text>')
    return parts


def _label(text: str, x: float, y: float, taken: list[Box], right: float, bottom: float) -> str:
    """Returns a label right of, left of, above or below its point: the first of these that covers the least."""
    wide = LETTER * len(text) + 2
    places = [(x + 8 + wide / 2, y), (x - 8 - wide / 2, y), (x, y - 14), (x, y + 14), (x, y - 28), (x, y + 28)]
    boxes = [(mx - wide / 2, my - 6, mx + wide / 2, my + 6) for mx, my in places]
    inside = [box for box in boxes if box[0] > LEFT and box[2] <= right and box[1] >= TOP - 8 and box[3] <= bottom]
    if not inside:
        return ""
    best = min(inside, key=lambda box: sum(_overlap(box, other) for other in taken))
    taken.append(best)
    return f'<text class="name" x="{(best[0] + best[2]) / 2:.1f}" y="{best[1] + 10:.1f}">{escape(text)}</text>'


def _overlap(one: Box, other: Box) -> float:
    """Returns the area that two boxes share."""
    across = min(one[2], other[2]) - max(one[0], other[0])
    up = min(one[3], other[3]) - max(one[1], other[1])
    return across * up if across > 0 and up > 0 else 0.0


WRITABLE = 0.06  # a bar's part of at least this share has room for a number


def point(x: Any, y: Any, title: str, label: str = "") -> Point:
    """Returns a point, its title filled in; without one of its numbers it has no place."""
    if not all(drawable(Axis(""), value) for value in (x, y)):
        return Point(math.nan, math.nan, "")
    return Point(float(x), float(y), title.format(x=x, y=y), label)


def figure(title: str, x: Axis, y: Axis, series: Sequence[Series], caption: str, *, wide: bool = False) -> str:
    """Returns a chart with its legend and caption; it is drawn twice, for the style to choose by the room there is."""
    sizes = ((1000, 440), (380, 520)) if wide else ((460, 300), (340, 270))
    broad, narrow = (draw(title, x, y, series, width=w, height=h) for w, h in sizes)
    return (
        f"<figure{' class=wide' if wide else ''}><h3>{escape(title)}</h3>{legend(series)}"
        f'<div class="broad">{broad}</div><div class="narrow">{narrow}</div>'
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

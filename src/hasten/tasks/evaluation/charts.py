"""Charts as inline SVG: no scripts, no fonts, no files; colours come from the page's style.

A chart is series of points over two axes. An axis is linear, logarithmic (a zero then stands apart, at its low end), or
"near one": stretched so that 0.9, 0.99 and 1 stand well apart. Series differ in colour and in marker, so that neither
alone must be told apart; every point says its name and numbers when it is hovered over. A missing number has no point.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

from hasten.kernels.search.nodes import FORCED
from hasten.support.words import Html, tag
from hasten.tasks.evaluation.page import number

NEAR_ONE = 0.004  # how far from 1 the "near one" axis ends its stretch
LETTER = 7.6  # the width of a letter of a label, about
LEFT, RIGHT, TOP, BOTTOM = 72.0, 16.0, 14.0, 50.0  # margins
DIGITS = ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7))  # the ticks of a log axis: as few as give three
MARKERS = (  # of the colours 1 to 6
    "m-4.4 0a4.4 4.4 0 1 0 8.8 0a4.4 4.4 0 1 0 -8.8 0z",
    "m-4 -4h8v8h-8z",
    "m0 -5.2l5 9h-10z",
    "m0 -5.6l5.6 5.6-5.6 5.6-5.6-5.6z",
    "m0 5.2l5-9h-10z",
    "m-1.8 -5.4h3.6v3.6h3.6v3.6h-3.6v3.6h-3.6v-3.6h-3.6v-3.6h3.6z",
)

Box = tuple[float, float, float, float]  # left, top, right and bottom of what something covers


class Point(NamedTuple):
    """A point, the label beside it, if any, its name if the series has another, and whether its mark is hollow."""

    x: Any
    y: Any
    label: str = ""
    name: str = ""
    hollow: bool = False


class Series(NamedTuple):
    """Points of one colour (1 to 6) and its marker, joined by a line, solid or dashed, or by none.

    A series without marks is a line to compare others with.
    """

    name: str
    points: Sequence[Point]
    colour: int = 1
    line: bool = True
    hollow: bool = False
    dashed: bool = False
    marks: bool = True

    def path(self, shape: Any, **place: object) -> Html:
        """Returns its line, of any shape."""
        style = f"stroke:var(--c{self.colour})"
        return tag(shape, class_="line dashed" if self.dashed else "line", style=style, **place)

    def marker(self, x: float, y: float, hollow: bool = False) -> Html:
        """Returns its marker."""
        paint = f"var(--c{self.colour})"
        style = f"fill:var(--card);stroke:{paint}" if hollow or self.hollow else f"fill:{paint}"
        return tag("path", class_="mark", style=style, d=f"M{x:.1f} {y:.1f}{MARKERS[(self.colour - 1) % 6]}")


class Axis(NamedTuple):
    """The label of an axis, and its kind: "linear", "log" or "near one"."""

    label: str
    kind: str = "linear"

    def holds(self, value: object) -> bool:
        """Whether the axis has a place for a value."""
        known = number(value)
        return known is not None and abs(known) < FORCED and (self.kind != "log" or known >= 0.0)

    def bend(self, value: float) -> float:
        """Returns a value as the axis lays it out evenly."""
        if self.kind == "log":
            return math.log10(value)
        return -math.log10(1.0 + NEAR_ONE - min(value, 1.0)) if self.kind == "near one" else value


@dataclass(frozen=True, slots=True)
class Scale:
    """Where the values of an axis stand between two pixels. `low`, `high` and `zero` are bent values."""

    axis: Axis
    low: float
    high: float
    zero: float  # where a log scale has its zero
    start: float
    stop: float

    @classmethod
    def over(cls, axis: Axis, values: Iterable[float], start: float, stop: float) -> Scale:
        """Returns the scale that holds these values, with some air."""
        every = list(values) or [0.0, 1.0]
        known = [value for value in every if axis.kind != "log" or value > 0.0] or [1.0]
        low, high = axis.bend(min(known)), axis.bend(max(known))
        if axis.kind == "linear":
            step = _step(low, high)
            low, high = step * math.floor(low / step + 1e-9), step * math.ceil(high / step - 1e-9)
            high = high if high > low else low + step
        else:
            air = 0.06 * (high - low) or 0.2
            low, high = low - air, high + air
        zero = low - 0.07 * (high - low)
        first = zero - 0.03 * (high - low) if axis.kind == "log" and min(every) <= 0.0 else low
        return cls(axis, first, high, zero, start, stop)

    def __call__(self, value: float) -> float:
        """Returns the pixel of a value."""
        at = self.zero if self.axis.kind == "log" and value <= 0.0 else self.axis.bend(value)
        return self.start + (self.stop - self.start) * (at - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Returns the values to mark."""
        if self.axis.kind == "linear":
            step = _step(self.low, self.high)
            return [round(self.low + i * step, 10) for i in range(round((self.high - self.low) / step) + 1)]
        if self.axis.kind == "near one":
            known = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0)
            return [mark for mark in known if self.low <= self.axis.bend(mark) <= self.high]
        found: list[float] = []
        for digits in DIGITS:
            every = product(range(math.floor(self.low), math.ceil(self.high) + 1), digits)
            marks = (digit * 10.0**power for power, digit in every)
            found = [mark for mark in marks if max(self.low, self.zero) < math.log10(mark) <= self.high]
            if len(found) >= 3:
                break
        return [0.0, *found] if self.low < self.zero else found


def _step(low: float, high: float) -> float:
    raw = (high - low) / 5.0 or max(abs(high), 1.0) / 5.0
    power = 10.0 ** math.floor(math.log10(raw))
    return power * next(digit for digit in (1.0, 2.0, 2.5, 5.0, 10.0) if digit * power >= raw * (1.0 - 1e-9))


def figure(title: str, x: Axis, y: Axis, series: Sequence[Series], caption: str, *, wide: bool = False) -> Html:
    """Returns a chart with its legend and caption; it is drawn twice, for the style to choose by the room there is."""
    sizes = {"broad": (1000, 440), "narrow": (380, 520)} if wide else {"broad": (460, 300), "narrow": (340, 270)}
    legend = []
    for each in [each for each in series if each.points]:
        sample = each.path("path", d="M1 7H25") if each.line else None, each.marker(13, 7) if each.marks else None
        legend.append(tag("li", tag("svg", sample, class_="key", viewBox="0 0 26 14", aria_hidden="true"), each.name))
    drawn = [tag("div", draw(title, x, y, series, *size), class_=kind) for kind, size in sizes.items()]
    parts = tag("h3", title), tag("ul", legend, class_="legend"), drawn, tag("figcaption", caption)
    return tag("figure", *parts, class_="wide" if wide else None)


def draw(title: str, x: Axis, y: Axis, series: Sequence[Series], width: int, height: int) -> Html:
    """Returns a chart as an SVG element; `title` is what a screen reader says."""
    known = [[point for point in each.points if x.holds(point.x) and y.holds(point.y)] for each in series]
    if not any(known):
        return tag("p", "Nothing was measured for this figure.", class_="empty")
    flat = [(float(point.x), float(point.y)) for points in known for point in points]
    right, bottom = width - RIGHT, height - BOTTOM
    across, up = Scale.over(x, (a for a, _ in flat), LEFT, right), Scale.over(y, (b for _, b in flat), bottom, TOP)
    grid, lines, marks, labels, taken = [], [], [], list[Html | None](), list[Box]()
    for value in up.ticks():
        grid.append(tag("path", class_="grid", d=f"M{LEFT} {up(value):.1f}H{right}"))
        grid.append(tag("text", f"{value:,.10g}", class_="tick end", x=LEFT - 8, y=up(value) + 4))
    for value in across.ticks():
        grid.append(tag("path", class_="grid", d=f"M{across(value):.1f} {TOP}V{bottom}"))
        grid.append(tag("text", f"{value:,.10g}", class_="tick", x=across(value), y=bottom + 17))
    grid.append(_label_of(x, (LEFT + right) / 2, height - 8))
    grid.append(_label_of(y, 13, (TOP + bottom) / 2, " rotate(-90)"))
    for each, points in zip(series, known, strict=True):
        at = [(across(float(point.x)), up(float(point.y))) for point in points]
        path = [f"{px:.1f},{py:.1f}" for (px, py), point in zip(at, points, strict=True)
                if x.kind != "log" or point.x > 0.0]  # fmt: skip
        lines.append(each.path("polyline", points=" ".join(path)) if each.line and len(at) > 1 else None)
        for point, (px, py) in zip(points, at, strict=True) if each.marks else ():
            said = f"{point.name or each.name}. {x.label}: {point.x:,.4g}, {y.label}: {point.y:,.4g}"
            marks.append((point.label, px, py, tag("g", tag("title", said), each.marker(px, py, point.hollow))))
            taken.append((px - 5, py - 5, px + 5, py + 5))
    labels = [_label(text, px, py, taken, (LEFT, TOP - 8, right, bottom)) for text, px, py, _ in marks]
    return tag(
        "svg", grid, lines, labels, [mark for *_, mark in marks],  # marks cover the lines that lead to them
        class_="chart", role="img", viewBox=f"0 0 {width} {height}", aria_label=title,
    )  # fmt: skip


def _label_of(axis: Axis, x: float, y: float, turned: str = "") -> Html:
    words = axis.label + " (log)" * (axis.kind == "log")
    return tag("text", words, class_="axis", transform=f"translate({x:.1f} {y:.1f}){turned}")


def _label(text: str, x: float, y: float, taken: list[Box], room: Box) -> Html | None:
    """Returns a label right of, left of, above or below its point: the first of these that covers nothing.

    None if every place is taken: a label over another is not read, and the mark says its name.
    """
    wide = LETTER * len(text) + 2
    aside = 8 + wide / 2
    places = [(x + aside, y), (x - aside, y), (x, y - 14), (x, y + 14), (x, y - 27), (x, y + 27)]
    places += [(x + way * aside, y + up) for up in (-11, 11, -22, 22) for way in (1, -1)]
    for mx, my in places if text else ():
        box = mx - wide / 2, my - 6, mx + wide / 2, my + 6
        inside = box[0] > room[0] and box[1] >= room[1] and box[2] <= room[2] and box[3] <= room[3]
        if inside and not any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in taken):
            taken.append(box)
            return tag("text", text, class_="name", x=mx, y=my + 4)
    return None


def how_proved(proofs: Mapping[str, Mapping[str, object]]) -> Html:
    """Returns which step of the certifier was enough: a bar for each kind of inputs, without steps that proved none."""
    counts = {name: {part: int(number(n) or 0) for part, n in parts.items()} for name, parts in proofs.items()}
    names = dict.fromkeys(part for parts in counts.values() for part in parts)
    colours = {part: 1 + n % 6 for n, part in enumerate(names) if any(each.get(part) for each in counts.values())}
    keys = [tag("li", tag("i", class_=f"key c{colour}"), part) for part, colour in colours.items()]
    shown = []
    for name, parts in counts.items():
        total = sum(parts.values())
        stack = [
            tag("i", f"{n / total:.0%}" if n > 0.06 * total else None, class_=f"c{colours[part]}",
                style=f"flex-grow:{n}", title=f"{n:,} {part}")
            for part, n in parts.items() if n
        ]  # fmt: skip
        shown += [tag("p", f"{total:,} {name}"), tag("div", stack, class_="stack")]
    caption = "Each step is taken only where the one before left something open. Hover for numbers."
    title, legend = tag("h3", "How the answers were proved"), tag("ul", keys, class_="legend")
    return tag("figure", title, legend, shown, tag("figcaption", caption), class_="wide")


def time_by_size(sizes: Sequence[Mapping[str, Any]], unit: str) -> Html:
    """Returns how the time of each method grows with the size of inputs."""
    colours = {"ILP": 5, "certified": 1, "greedy search": 2, "beam 2": 3}
    keys = dict.fromkeys(key for row in sizes for key in row if key not in (unit, "sentences"))
    series = [Series(key, [Point(row.get(unit), row.get(key)) for row in sizes], colours.get(key, 6)) for key in keys]
    x, y = Axis(f"{unit} of an input"), Axis("µs per input, inference", "log")
    caption = "Inference from given costs in batches, models built before. Large inputs are few."
    return figure("Time against size", x, y, series, caption)

"""The figures of the report as inline SVG: no scripts, no fonts, no files; colours come from the page's style.

A chart is series of points over two axes. An axis is linear, logarithmic (a zero then stands apart, at its
low end), or "near one": stretched so that 0.9, 0.99 and 1 stand well apart. Series differ in colour and in
marker, so that neither alone must be told apart; every point says its numbers when it is hovered over.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

Entry = Mapping[str, Any]  # one object of results.json

NEAR_ONE = 0.004  # how far from 1 the "near one" axis ends its stretch
LETTER = 6.7  # the width of a letter of a label, about
LEFT, RIGHT, TOP, BOTTOM = 72.0, 16.0, 14.0, 50.0  # margins
DIGITS = ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7))  # the marks of a log axis: as few as give three
WIDTHS = (1, 2)  # beam widths of the curves; each its own colour


@dataclass(frozen=True, slots=True)
class Point:
    """A point, what it says when hovered over, and the label beside it, if any."""

    x: float
    y: float
    title: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one colour (1 to 6) and one marker, joined by a line or not."""

    name: str
    points: Sequence[Point]
    colour: int = 1
    line: bool = True


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
    taken: list[tuple[float, float, float, float]] = []
    for each in series:
        at = [(across(point.x), up(point.y)) for point in each.points]
        taken += [(px - 5, py - 5, px + 5, py + 5) for px, py in at]
        if each.line and len(at) > 1:
            joined = [px_py for px_py, p in zip(at, each.points, strict=True) if x.kind != "log" or p.x > 0.0]
            path = " ".join(f"{px:.1f},{py:.1f}" for px, py in joined)
            parts.append(f'<polyline class="line" style="stroke:var(--c{each.colour})" points="{path}"/>')
    for each in series:
        for point in each.points:
            px, py = across(point.x), up(point.y)
            parts.append(f"<g><title>{escape(point.title)}</title>{marker(each.colour, px, py)}</g>")
            if point.label:
                parts.append(_label(point.label, px, py, taken, right, bottom))
    return "".join([*parts, "</svg>"])


def legend(series: Iterable[Series]) -> str:
    """Returns the names of series with their markers."""
    items = (
        f'<li><svg class="key" viewBox="0 0 14 14" aria-hidden="true">{marker(each.colour, 7, 7)}</svg>'
        f"{escape(each.name)}</li>"
        for each in series
        if each.points
    )
    return f'<ul class="legend">{"".join(items)}</ul>'


def marker(colour: int, x: float, y: float) -> str:
    """Returns the marker of a colour: each has its own shape."""
    style = f'class="mark" style="fill:var(--c{colour})"'
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
        and abs(value) < 1e300
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


def _label(
    text: str, x: float, y: float, taken: list[tuple[float, float, float, float]], right: float, bottom: float
) -> str:
    """Places a label where it covers nothing; without such a place, hovering must do."""
    long = LETTER * len(text)
    for left, middle in ((x + 9, y), (x - 9 - long, y), (x - long / 2, y - 13), (x - long / 2, y + 14)):
        box = left, middle - 6, left + long, middle + 6
        if box[0] < LEFT + 2 or box[2] > right or box[1] < TOP - 8 or box[3] > bottom:
            continue
        if all(box[2] < b[0] or b[2] < box[0] or box[3] < b[1] or b[3] < box[1] for b in taken):
            taken.append(box)
            return f'<text class="name" x="{left:.1f}" y="{middle + 4:.1f}">{escape(text)}</text>'
    return ""


# -- the figures ----------------------------------------------------------------------------------------------


def draw_figures(results: Entry) -> str:
    """Returns every figure whose numbers there are, as HTML."""
    sections: tuple[tuple[str, Callable[[Any], str]], ...] = (
        ("rows", time_against_accuracy),
        ("learning_curve", learning_curve),
        ("theta_sweep", theta_sweep),
        ("by_size", time_by_size),
        ("structures", distinct_outputs),
    )
    shown = "".join(figure(results[key]) for key, figure in sections if results.get(key))
    return f'<div class="figures">{shown}</div>' if shown else '<p class="empty">Nothing to draw.</p>'


def time_against_accuracy(rows: Sequence[Entry]) -> str:
    """Every row: how long it takes, and how near it comes to the ILP."""
    points: dict[str, list[Point]] = {name: [] for name in FAMILIES}
    for row in rows:
        name = f"{row.get('model')} {row.get('beam') or ''}".strip()
        said = f"{name}: {{x:.1f}} ms, relation F1 {{y:.3f}}"
        label = "" if row.get("table") == "2" else name
        points[family(row)].append(_point(row.get("time_ms"), row.get("relation_f1_ilp"), said, label))
    series = [Series(name, points[name], colour, line=False) for name, colour in FAMILIES.items()]
    return _figure(
        "Time against accuracy",
        Axis("CPU ms of the whole test set, features included (log)", "log"),
        Axis("relation F1 against the ILP", "near one"),
        series,
        "Up and to the left is better. The upright axis is stretched towards 1, where methods differ. Numbers "
        "after names are beam widths; points without a name say theirs when hovered over.",
        wide=True,
    )


FAMILIES = {  # with their colours
    "ILP": 5,
    "certified": 1,
    "constraints within the search": 3,
    "learned speedup": 4,
    "costs skipped": 6,
    "the paper’s searches": 2,
}


def family(row: Entry) -> str:
    """Returns the family that a row is drawn with."""
    model = str(row.get("model"))
    if model in ("ILP", "certified"):
        return model
    if row.get("table") == "2":
        return "costs skipped"
    if row.get("table") == "1":
        return "the paper’s searches"
    return "learned speedup" if model.startswith("speedup") else "constraints within the search"


def learning_curve(curve: Sequence[Entry]) -> str:
    """What more unlabeled sentences teach."""
    x = Axis("unlabeled sentences learned from (log)", "log")
    return "".join(
        _figure(f"Learning curve: {name}", x, Axis(name), _by_width(curve, "n", key), caption)
        for key, name, caption in (
            ("exact_match", "exact match with the ILP", "No gold label is used: the solver’s answers teach."),
            ("relation_f1_ilp", "relation F1 against the ILP", "The same runs, measured by relations."),
        )
    )


def theta_sweep(sweep: Sequence[Entry]) -> str:
    """What skipping costs saves, and what it loses."""
    x = Axis("θ in units of the cost scale (log)", "log")
    return "".join(
        _figure(f"Sweep of θ: {name}", x, Axis(name, kind), _by_width(sweep, "relative_theta", key), caption)
        for key, name, kind, caption in (
            ("costs_computed", "share of costs computed", "linear", "θ = 0, set apart, trusts the heuristic alone."),
            ("time_ms", "CPU ms, end to end", "linear", "Features are extracted only where a cost is needed."),
            ("relation_f1_ilp", "relation F1 against the ILP", "near one", "Stretched towards 1."),
            ("relation_f1_gold", "relation F1 against gold", "linear", "What a user of the model would notice."),
        )
    )


def time_by_size(sizes: Sequence[Entry]) -> str:
    """How time grows with the number of entities."""
    colours = {"ilp": 5, "search": 2, "beam 2": 3, "certified": 1}
    names = list(dict.fromkeys(key for row in sizes for key in row if key not in ("entities", "sentences")))
    series = []
    for name in names:
        shown = {"ilp": "ILP", "search": "greedy search"}.get(name, name)
        points = []
        for row in sizes:
            said = f"{shown}, {{x:.0f}} entities: {{y:,.1f}} µs (mean of {row.get('sentences')} sentences)"
            points.append(_point(row.get("entities"), row.get(name), said))
        series.append(Series(shown, points, colours.get(name, 4)))
    y = Axis("µs per sentence, inference (log)", "log")
    caption = "Inference from given costs. Large sentences are few: hover for how many."
    return _figure("Time against size", Axis("entities in the sentence"), y, series, caption)


def distinct_outputs(found: Entry) -> str:
    """How few distinct outputs occur."""
    curve: Sequence[Entry] = found.get("curve") or ()
    distinct = [_point(row.get("n"), row.get("distinct"), "{x:,.0f} sentences: {y:,.0f}") for row in curve]
    new = [_point(row.get("n"), row.get("n"), "{x:,.0f} sentences") for row in curve]
    said = [
        f"{found[key]:,} {what}"
        for key, what in (("distinct", "distinct outputs"), ("for_half", "cover half"), ("for_ninety", "cover 90%"))
        if isinstance(found.get(key), int)
    ]
    return _figure(
        "How few distinct outputs occur",
        Axis("unlabeled sentences (log)", "log"),
        Axis("distinct outputs (log)", "log"),
        [Series("distinct outputs", distinct), Series("if each were new", new, 5)],
        f"Of the answers to all unlabeled sentences: {', '.join(said)}." if said else "",
    )


def draw_weights(rows: Sequence[Entry]) -> str:
    """Returns the strongest learned weights in words, with bars to the left and right of zero."""
    known = [row for row in rows if drawable(Axis(""), row.get("weight"))]
    if not known:
        return '<p class="empty">No weight was learned.</p>'
    most = max(abs(row["weight"]) for row in known) or 1.0
    lines = []
    for row in sorted(known, key=lambda row: -float(row["weight"])):
        value = float(row["weight"])
        side, sign = ("plus", "+") if value >= 0 else ("minus", "−")
        bar = f'<i class="{side}" style="width:{50 * abs(value) / most:.1f}%"></i>'
        lines.append(f'<tr><th>{in_words(row)}</th><td>{sign}{abs(value):.2f}</td><td class="bar">{bar}</td></tr>')
    return f'<table class="weights"><tbody>{"".join(lines)}</tbody></table>'


def in_words(row: Entry) -> str:
    """Returns a feature as source, relation, target, "any" in an open place."""
    labels = {str(role): escape(str(label)) for role, label in (row.get("labels") or {}).items()}
    if "relation" in labels and labels.keys() <= {"source", "relation", "target"}:
        open_one = '<span class="dash">any</span>'
        source, target = (labels.get(end, open_one) for end in ("source", "target"))
        return f"{source} <em>{labels['relation']}</em> {target}"
    named = ", ".join(f"{escape(role)} {label}" for role, label in labels.items())
    return f"{escape(str(row.get('factor')))}: {named}"


def _by_width(rows: Sequence[Entry], x: str, y: str) -> list[Series]:
    return [
        Series(
            f"beam {beam}",
            [
                _point(row.get(x), row.get(y), f"beam {beam} at {{x:,.4g}}: {{y:.3f}}")
                for row in rows
                if row.get("beam") == beam
            ],
            colour,
        )
        for colour, beam in enumerate(WIDTHS, 1)
    ]


def _point(x: Any, y: Any, title: str, label: str = "") -> Point:
    """Returns a point, its title filled in; without one of its numbers it has no place."""
    if not all(drawable(Axis(""), value) for value in (x, y)):
        return Point(math.nan, math.nan, "")
    return Point(float(x), float(y), title.format(x=x, y=y), label)


def _figure(title: str, x: Axis, y: Axis, series: Sequence[Series], caption: str, *, wide: bool = False) -> str:
    chart = draw(title, x, y, series, width=1000, height=440) if wide else draw(title, x, y, series)
    return (
        f"<figure{' class=wide' if wide else ''}><h3>{escape(title)}</h3>{legend(series)}"
        f'<div class="scroll">{chart}</div><figcaption>{escape(caption)}</figcaption></figure>'
    )

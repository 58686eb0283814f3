"""Drawing a trace: all of it in one small picture, then the lines that tell each step.

Someone who has never heard of beam search, of a lost gold node, of theta or of bounds should understand them from here.
Pictures are SVG and HTML that need nothing else: no scripts, no fonts, no network; for day, night, phone and paper.
Whatever text comes in is escaped, control characters included. No colour is the only sign of anything.
"""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from hasten.kernels.tolerance import TOLERANCE
from hasten.support.terminal import printable
from hasten.support.words import amount, count
from hasten.trace.events import MOST_STEPS, REFERENCE, Candidate, ProofStep, Trace, belief_lines, step_lines

WIDE, GAP = 772.0, 16.0  # width of a page, and between pictures
LETTER, WIDER = 0.58, 0.61  # width of a letter, in units of its height; of one of a typewriter
HIGH, LEFT, RIGHT, TOP, BOTTOM = 250.0, 58.0, 12.0, 14.0, 46.0  # the picture of a proof: its height and margins

STYLE = """
.hasten-seen{--card:#fff;--ink:#1b1f24;--soft:#5b6470;--faint:#dfe2e6;--kept:#0b62a8;--gold:#8a6500;--lost:#b84a00;
--shade:#eef4fa;--glow:#fdf6e3;background:var(--card);color:var(--ink);padding:16px;border-radius:8px;
font:14px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
@media screen and (prefers-color-scheme:dark){.hasten-seen{--card:#1b1f25;--ink:#e8eaed;--soft:#a0a8b4;
--faint:#3a414b;--kept:#6db8f5;--gold:#e2bd48;--lost:#ff9d5c;--shade:#22303e;--glow:#362e18}}
.hasten-seen h3{font-size:18px;line-height:1.3;margin:0 0 8px}.hasten-seen p{margin:4px 0 10px;max-width:76ch}
.hasten-seen .soft{color:var(--soft)}
.hasten-seen svg{display:block;max-width:100%;height:auto}
.hasten-seen ul.signs{list-style:none;display:flex;flex-wrap:wrap;gap:2px 18px;margin:6px 0 14px;padding:0;
font-size:13px;color:var(--soft)}.hasten-seen ul.signs li{display:flex;align-items:center;gap:6px;margin:0}
.hasten-seen ul.signs svg{flex:none}
.hasten-seen figure{margin:12px 0;border-top:1px solid var(--faint);padding-top:8px;break-inside:avoid}
.hasten-seen .wide{overflow-x:auto}.hasten-seen .wide svg{max-width:none}
.hasten-seen text{fill:var(--ink);font-size:12px;font-family:inherit}.hasten-seen .t-soft{fill:var(--soft)}
.hasten-seen .t-small{font-size:11px}.hasten-seen .t-bold{font-weight:650}
.hasten-seen .t-title{font-size:16px;font-weight:650}.hasten-seen .t-kept{fill:var(--kept)}
.hasten-seen .t-gold{fill:var(--gold);font-weight:700}
.hasten-seen .t-mono{font-family:ui-monospace,Menlo,Consolas,monospace}.hasten-seen .end{text-anchor:end}
.hasten-seen .middle{text-anchor:middle}.hasten-seen .edge{fill:none;stroke:var(--soft);stroke-width:1;opacity:.55}
.hasten-seen .edge.on{stroke:var(--kept);stroke-width:2.2;opacity:1}
.hasten-seen .edge.gold{stroke:var(--gold);stroke-width:2.2;opacity:1;stroke-dasharray:5 3}
.hasten-seen .rule{fill:none;stroke:var(--faint)}.hasten-seen .dash{fill:none;stroke:var(--soft);stroke-dasharray:4 4}
.hasten-seen .dot{fill:var(--kept)}
.hasten-seen .dot.off{fill:none;stroke:var(--soft);stroke-width:1.2}.hasten-seen .dot.out{fill:var(--faint)}
.hasten-seen .ring{fill:none;stroke:var(--gold);stroke-width:2}
.hasten-seen .cross{fill:none;stroke:var(--lost);stroke-width:2.6;stroke-linecap:round}
.hasten-seen .band{fill:var(--shade)}.hasten-seen .space{fill:var(--glow)}
.hasten-seen .bound{fill:none;stroke:var(--kept);stroke-width:2}
.hasten-seen .best{fill:none;stroke:var(--lost);stroke-width:2;stroke-dasharray:7 3}
.hasten-seen .square{fill:var(--lost)}
@media print{.hasten-seen{padding:0;font-size:10.5pt;
background:#fff}.hasten-seen .wide{overflow:visible}.hasten-seen .wide svg{max-width:100%}}
""".replace("\n", "")


class Picture(NamedTuple):
    """A drawing: SVG elements, the size that they take, and a title for screen readers."""

    body: str
    width: float
    height: float
    title: str

    def svg(self, more: str = "") -> str:
        """Returns it as an element of a page, which has the style."""
        size = f'width="{self.width:.0f}" height="{self.height:.0f}" viewBox="0 0 {self.width:.0f} {self.height:.0f}"'
        return f'<svg {more}role="img" aria-label="{escape(self.title)}" {size}>{self.body}</svg>'


def escape(words: str) -> str:
    """Returns text as HTML and SVG may hold it; control characters, which they may not, are spelled out."""
    return html.escape(printable(words))


def on_a_page(*parts: str) -> str:
    """Returns parts of a page with the style that they need."""
    return f'<div class="hasten-seen"><style>{STYLE}</style>{"".join(parts)}</div>'


def paragraphs(sentences: Iterable[str]) -> str:
    """Returns sentences as paragraphs of a page."""
    return "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)


def _text(x: float, y: float, words: str, style: str = "", more: str = "", *, room: float = math.inf) -> str:
    """Returns text at a place, cut where it does not fit its room; hovering over it shows all."""
    shown, hint = words, ""
    if len(words) * LETTER * 12 > room:
        shown = words[: max(1, int(room / (LETTER * 12)) - 1)] + "…"
        hint = f"<title>{escape(words)}</title>"
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" {more}>{hint}{escape(shown)}</text>'


def _titled(title: str, sentences: Iterable[str]) -> tuple[str, float]:
    """Returns a title and sentences below it; and where the next line goes."""
    body, y = _text(0, 16, title, "t-title", room=WIDE), 39.0
    for sentence in sentences:
        for line in textwrap.wrap(printable(sentence), int(WIDE / (LETTER * 11))):
            body, y = body + _text(0, y, line, "t-soft"), y + 17
        y += 4
    return body, y - 8


def _path(style: str, d: str) -> str:
    return f'<path class="{style}" d="{d}"/>'


def _edge(x1: float, y1: float, x2: float, y2: float, style: str = "") -> str:
    bend, x, y = (x2 - x1) / 2, x2 - x1, y2 - y1
    return _path(f"edge {style}", f"M{x1:.1f} {y1:.1f}c{bend:.1f} 0 {bend:.1f} {y:.1f} {x:.1f} {y:.1f}")


def _cross(x: float, y: float, r: float) -> str:
    return _path("cross", f"M{x - r:.1f} {y - r:.1f}l{2 * r:.1f} {2 * r:.1f}m0 {-2 * r:.1f}l{-2 * r:.1f} {2 * r:.1f}")


def _circle(x: float, y: float, r: float, style: str = "", kind: str = "dot") -> str:
    return f'<circle class="{kind} {style}" cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}"/>'


def _rect(style: str, x: float, y: float, width: float, height: float) -> str:
    return f'<rect class="{style}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'


SEARCH_SIGNS = (
    (_circle(11, 7, 4.5), "kept in the beam"),
    (_circle(11, 7, 3.5, "off"), "pruned: outside the beam"),
    (_circle(11, 7, 2.5, "out"), "ruled out by a constraint"),
    (_path("edge on", "M1 7h20"), "the way to the answer"),
)
REFERENCE_SIGNS = (
    (_circle(11, 7, 3.5) + _circle(11, 7, 6, kind="ring"), "agrees with the reference so far"),
    (_cross(11, 7, 4), "the reference is lost here"),
)
THETA_SIGN = (
    _rect("band", 2, 0, 18, 14) + _text(11, 11, "θ", "t-small middle t-kept"),
    "costs skipped: gap above theta",
)
PROOF_SIGNS = (
    (_path("best", "M0 7h22") + _rect("square", 7, 3, 8, 8), "the best labelling so far"),
    (_path("bound", "M0 7h22") + _circle(11, 7, 4), "the bound: nothing costs less"),
    (_rect("space", 1, 1, 20, 12), "still open"),
)


def _pictures(trace: Trace) -> tuple[list[tuple[str, str]], list[Picture], list[str]]:
    """Returns the key of a trace's pictures, the pictures, that of all steps first, and how it ended in sentences."""
    shown, n = trace.shown(MOST_STEPS), len(trace.steps)
    cards = [draw_lines(step_lines(trace, t)) for t in shown]
    if trace.proof_steps:
        signs, overview = [*PROOF_SIGNS], draw_bounds(trace.proof_steps)
        cards += [draw_lines(belief_lines(trace))] if trace.beliefs else []
    else:
        signs, overview = [*SEARCH_SIGNS], draw_beams(trace, way_to_answer(trace))
        signs += REFERENCE_SIGNS if trace.reference is not None else ()
        signs += [THETA_SIGN] if trace.theta < math.inf else []
    left_out = [f"{count(n - len(shown), 'step')} of {n:,} not drawn one by one."] if n > len(shown) else []
    return signs, [overview, *cards], left_out + trace.summary()


def section(trace: Trace) -> str:
    """Returns a trace, explained, as a part of a page that has the style already."""
    signs, (overview, *cards), summary = _pictures(trace)
    key = (f'<li><svg width="22" height="14">{sign}</svg>{escape(words)}</li>' for sign, words in signs)
    return (
        f"<h3>{escape(trace.title)}</h3>{paragraphs(trace.explained)}"
        f'<ul class="signs">{"".join(key)}</ul><div class="wide">{overview.svg()}</div>'
        f"{''.join(f'<figure>{each.svg()}</figure>' for each in cards)}{paragraphs(summary)}"
    )


def svg(trace: Trace) -> str:
    """Returns a trace as one SVG file, a picture below the other."""
    signs, (overview, *cards), summary = _pictures(trace)
    lead, y = _titled(trace.title, trace.explained)
    x = 0.0
    for sign, words in signs:
        room = 42 + len(words) * LETTER * 12
        if x and x + room > WIDE:
            x, y = 0.0, y + 20
        lead += f'<g transform="translate({x:.0f} {y:.0f})">{sign}{_text(28, 11, words, "t-soft")}</g>'
        x += room
    end, height = _titled("How it ended", summary)
    pictures = [Picture(lead, WIDE, y + 20, ""), overview, *cards, Picture(end, WIDE, height, "")]
    body, y = f'<style>{STYLE}</style><rect width="100%" height="100%" style="fill:var(--card)"/>', GAP
    for each in pictures:
        body += f'<svg x="{GAP:.0f}" y="{y:.0f}" width="{each.width:.0f}" height="{each.height:.0f}">{each.body}</svg>'
        y += each.height + GAP
    whole = Picture(body, max(WIDE, overview.width) + 2 * GAP, y, trace.title)
    return whole.svg('xmlns="http://www.w3.org/2000/svg" class="hasten-seen" ')


def way_to_answer(trace: Trace) -> list[Candidate]:
    """Returns, for each step of a search, the candidate on the way to the answer; none without an answer."""
    way: list[Candidate] = []
    node = 0 if trace.choice is None else trace.choice.node
    for step in reversed(trace.search_steps if trace.labels is not None else []):
        way.insert(0, step.kept[node])
        node = way[0].node
    return way


def draw_beams(trace: Trace, answer: Sequence[Candidate]) -> Picture:
    """Returns a whole search in small: a column for each step, a dot for each candidate, the best at the top."""
    steps = trace.search_steps
    columns = [step.shown(64) for step in steps]
    tallest = max(map(len, columns), default=1) + 1.2  # with the gap at the beam's edge
    step_x, step_y = min(56.0, (WIDE - 40) / max(1, len(steps))), max(3.0, min(15.0, 280.0 / tallest))
    r, height = max(1.2, min(4.0, 0.36 * step_y, 0.36 * step_x)), 36 + step_y * tallest
    heads, lines, dots = [], [], []
    before: dict[int, tuple[float, float]] = {}  # where the nodes of the step before are
    for t, (step, column) in enumerate(zip(steps, columns, strict=True)):
        x, places = 20 + step_x * (t + 0.5), dict[int, tuple[float, float]]()
        if step.skipped:
            heads.append(_rect("band", x - step_x / 2, 2, step_x, height - 10))
        if len(steps) <= 30 or t % 5 == 4 or step.skipped:
            style = "t-kept" if step.skipped else "t-soft"
            heads.append(_text(x, 14, "θ" if step.skipped else str(t + 1), f"t-small middle {style}"))
        for place, each in enumerate(column):
            y = 24 + step_y * (place if each.kept else place + 1.2)
            if each.kept:
                places[len(places)] = x, y
                if each.node in before:
                    lines.append((_way(each, answer[t:]), _edge(*before[each.node], x, y, _way(each, answer[t:]))))
            dots.append(_dot(x, y, r, each))
            if each.good:
                dots += [_circle(x, y, r + 2, kind="ring"), "" if each.kept else _cross(x, y, max(4.0, r))]
        before = places
    lines.sort()  # the ways to the answer and to the reference over the others
    title = f"The whole search: {count(len(steps), 'step')}, the best candidates at the top"
    body = "".join([*heads, *(line for _, line in lines), *dots])
    return Picture(body, max(200.0, 40 + step_x * len(steps)), height, title)


def draw_lines(told: Iterable[str]) -> Picture:
    """Returns lines as they are printed, the first of them a heading."""
    heading, *rest = told
    body, y = _text(0, 14, heading, "t-bold", room=WIDE), 33.0
    for line in rest:
        style = "t-gold" if line.endswith(REFERENCE) else "t-kept" if line.startswith("  kept") else "t-soft"
        for part in textwrap.wrap(line, int(WIDE / (WIDER * 12)), subsequent_indent="    ") or [""]:
            body += _text(0, y, part, f"t-mono {style}", 'xml:space="preserve"')
            y += 17
    return Picture(body, WIDE, y - 6, heading)


def _dot(x: float, y: float, r: float, each: Candidate) -> str:
    style, size = ("", r) if each.kept else ("out", 0.6 * r) if each.ruled_out else ("off", 0.8 * r)
    return _circle(x, y, size, style)


def _way(each: Candidate, answer: Sequence[Candidate]) -> str:
    """Returns the style of the way to a candidate, given the rest of the way to the answer."""
    return "on" if answer and each is answer[0] else "gold" if each.good else ""


def draw_bounds(steps: Sequence[ProofStep]) -> Picture:
    """Returns the bound and the best labelling over the steps of a proof, until they meet."""
    known = [value for each in steps for value in (each.cost, each.bound) if math.isfinite(value)] or [0.0, 1.0]
    size, apart = max(abs(known[0]), 1.0), max(known) - min(known)
    air = 0.08 * apart if apart > TOLERANCE * size else 0.1 * size  # less is rounding: it would fill the picture
    low, high = min(known) - air, max(known) + air
    width = min(WIDE, max(340.0, LEFT + RIGHT + 52 * len(steps)))
    right, bottom, across = width - RIGHT, HIGH - BOTTOM, (width - RIGHT - LEFT) / len(steps)

    def x(n: float) -> float:
        return LEFT + across * (n + 0.5)

    def y(value: float) -> float:
        return bottom - (bottom - TOP) * (value - low) / (high - low)

    parts, r = [], min(4.0, max(1.5, 0.3 * across))
    for value in _ticks(low, high):
        parts.append(_path("rule", f"M{LEFT} {y(value):.1f}H{right}"))
        parts.append(_text(LEFT - 8, y(value) + 4, amount(value), "t-small t-soft end"))
    for n, each in enumerate(steps):
        if math.isfinite(each.cost - each.bound) and each.cost - each.bound > TOLERANCE * size:
            parts.append(_rect("space", x(n - 0.5), y(each.cost), across, y(each.bound) - y(each.cost)))
        if len(steps) <= 20 or n % 10 == 9:
            parts.append(_text(x(n), bottom + 16, str(n + 1), "t-small t-soft middle"))
    for style, values in (("best", [each.cost for each in steps]), ("bound", [each.bound for each in steps])):
        places = [(n, x(n), y(value)) for n, value in enumerate(values) if math.isfinite(value)]
        points = " ".join(f"{a:.1f},{b:.1f}" for _, a, b in places)
        parts.append(f'<polyline class="{style}" points="{points}"/>')
        for n, a, b in places:
            mark = _circle(a, b, r) if style == "bound" else _rect("square", a - r, b - r, 2 * r, 2 * r)
            parts.append(f"<g><title>{escape(f'{n + 1}. {steps[n].text}')}</title>{mark}</g>")
    for name, group in groupby(range(len(steps)), key=lambda n: steps[n].step):
        first, *rest = group
        start, end = x(first - 0.42), x((rest or [first])[-1] + 0.42)
        parts.append(_path("rule", f"M{start:.1f} {bottom + 23:.1f}H{end:.1f}"))
        if end - start > 4.5 * len(name):
            parts.append(_text((start + end) / 2, bottom + 38, name, "t-small t-soft middle"))
    return Picture("".join(parts), width, HIGH, "The bound and the best labelling over the steps of the proof")


def _ticks(low: float, high: float) -> list[float]:
    """Returns round numbers between two limits."""
    raw = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(raw))
    step = power * next(digit for digit in (1.0, 2.0, 2.5, 5.0, 10.0) if digit * power >= raw * (1 - 1e-9))
    first, last = math.ceil(low / step), math.floor(high / step)
    return [round(n * step, 12) + 0.0 for n in range(first, last + 1)] if last - first < 20 else []

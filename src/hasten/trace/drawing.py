"""Drawing a trace: all of it in one small picture, then a card for each event.

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
from hasten.trace.events import MOST_STEPS, Candidate, ProofStep, SearchStep, Trace, small

WIDE, GAP, LETTER = 772.0, 16.0, 0.58  # width of a page, between pictures; of a letter, in units of its height
CARD, ROW, BOX, LABEL = 378.0, 20.0, 74.0, 122.0  # width of a card, height of a row, a node's box, where labels start
COLUMNS = {"path cost": 256.0, "heuristic": 312.0, "priority": 371.0}  # where the numbers of a candidate end
HIGH, LEFT, RIGHT, TOP, BOTTOM = 250.0, 58.0, 12.0, 14.0, 46.0  # the picture of a proof: its height and margins
MOST_CANDIDATES, MOST_VARIABLES = 12, 12
ROUND = ' rx="4"'  # corners

STYLE = """
.hasten-seen{--card:#fff;--ink:#1b1f24;--soft:#5b6470;--faint:#dfe2e6;--kept:#0b62a8;--gold:#8a6500;--lost:#b84a00;
--shade:#eef4fa;--glow:#fdf6e3;background:var(--card);color:var(--ink);padding:16px;border-radius:8px;
font:14px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
@media screen and (prefers-color-scheme:dark){.hasten-seen{--card:#1b1f25;--ink:#e8eaed;--soft:#a0a8b4;
--faint:#3a414b;--kept:#6db8f5;--gold:#e2bd48;--lost:#ff9d5c;--shade:#22303e;--glow:#362e18}}
.hasten-seen h3{font-size:18px;line-height:1.3;margin:0 0 8px}.hasten-seen p{margin:4px 0 10px;max-width:76ch}
.hasten-seen .soft{color:var(--soft)}.hasten-seen figure{margin:0;padding:0;background:none;border:0}
.hasten-seen svg{display:block;max-width:100%;height:auto}
.hasten-seen ul.signs{list-style:none;display:flex;flex-wrap:wrap;gap:2px 18px;margin:6px 0 14px;padding:0;
font-size:13px;color:var(--soft)}.hasten-seen ul.signs li{display:flex;align-items:center;gap:6px;margin:0}
.hasten-seen ul.signs svg{flex:none}
.hasten-seen .cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,340px),1fr));gap:14px;
margin:10px 0}
.hasten-seen .cards figure{border:1px solid var(--faint);border-radius:8px;padding:10px 12px;break-inside:avoid}
.hasten-seen .wide{overflow-x:auto}.hasten-seen .wide svg{max-width:none}
.hasten-seen text{fill:var(--ink);font-size:12px;font-family:inherit}.hasten-seen .t-soft{fill:var(--soft)}
.hasten-seen .t-small{font-size:11px}.hasten-seen .t-bold{font-weight:650}
.hasten-seen .t-title{font-size:16px;font-weight:650}.hasten-seen .t-kept{fill:var(--kept)}
.hasten-seen .t-gold{fill:var(--gold);font-weight:700}
.hasten-seen .t-out{fill:var(--soft);text-decoration:line-through}.hasten-seen .end{text-anchor:end}
.hasten-seen .middle{text-anchor:middle}.hasten-seen .edge{fill:none;stroke:var(--soft);stroke-width:1;opacity:.55}
.hasten-seen .edge.on{stroke:var(--kept);stroke-width:2.2;opacity:1}
.hasten-seen .edge.gold{stroke:var(--gold);stroke-width:2.2;opacity:1;stroke-dasharray:5 3}
.hasten-seen .rule{fill:none;stroke:var(--faint)}.hasten-seen .dash{fill:none;stroke:var(--soft);stroke-dasharray:4 4}
.hasten-seen .box{fill:var(--shade);stroke:var(--kept)}
.hasten-seen .glow{fill:var(--glow);stroke:var(--gold);stroke-dasharray:4 3}.hasten-seen .dot{fill:var(--kept)}
.hasten-seen .dot.off{fill:none;stroke:var(--soft);stroke-width:1.2}.hasten-seen .dot.out{fill:var(--faint)}
.hasten-seen .ring{fill:none;stroke:var(--gold);stroke-width:2}
.hasten-seen .cross{fill:none;stroke:var(--lost);stroke-width:2.6;stroke-linecap:round}
.hasten-seen .band{fill:var(--shade)}.hasten-seen .space{fill:var(--glow)}
.hasten-seen .bound{fill:none;stroke:var(--kept);stroke-width:2}
.hasten-seen .best{fill:none;stroke:var(--lost);stroke-width:2;stroke-dasharray:7 3}
.hasten-seen .square{fill:var(--lost)}
@media print{.hasten-seen{padding:0;font-size:10.5pt;
background:#fff}.hasten-seen .wide{overflow:visible}.hasten-seen .wide svg{max-width:100%}
.hasten-seen .cards{grid-template-columns:repeat(2,minmax(0,1fr));gap:10px}}
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


def _text(x: float, y: float, words: str, style: str = "", *, room: float = math.inf, size: float = 12.0) -> str:
    """Returns text at a place, cut where it does not fit its room; hovering over it shows all."""
    shown, hint = words, ""
    if len(words) * LETTER * size > room:
        shown = words[: max(1, int(room / (LETTER * size)) - 1)] + "…"
        hint = f"<title>{escape(words)}</title>"
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{hint}{escape(shown)}</text>'


def _paragraph(words: str, y: float, room: float, style: str = "") -> tuple[str, float]:
    """Returns words in lines that fit their room, the first at `y`; and where the next line goes."""
    lines = textwrap.wrap(printable(words), max(8, int(room / (LETTER * 11))))
    return "".join(_text(0, y + 17 * n, line, style) for n, line in enumerate(lines)), y + 17 * len(lines)


def _titled(title: str, sentences: Iterable[str]) -> tuple[str, float]:
    """Returns a title and sentences below it; and where the next line goes."""
    body, y = _text(0, 16, title, "t-title", room=WIDE, size=16), 39.0
    for sentence in sentences:
        lines, y = _paragraph(sentence, y, WIDE, "t-soft")
        body, y = body + lines, y + 4
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


def _rect(style: str, x: float, y: float, width: float, height: float, more: str = "") -> str:
    return f'<rect class="{style}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"{more}/>'


SEARCH_SIGNS = (
    (_circle(11, 7, 4.5), "kept in the beam"),
    (_circle(11, 7, 3.5, "off"), "pruned: outside the beam"),
    (_circle(11, 7, 2.5, "out"), "ruled out by a constraint"),
    (_path("edge on", "M1 7h20"), "the way to the answer"),
)
REFERENCE_SIGNS = (
    (_circle(11, 7, 3.5) + _circle(11, 7, 6, kind="ring"), "agrees with the reference so far (★)"),
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
    shown, n, answer = trace.shown(MOST_STEPS), len(trace.steps), way_to_answer(trace)
    cards = [draw_step(trace, t, answer) for t in shown]
    if trace.proof_steps:
        signs, overview = [*PROOF_SIGNS], draw_bounds(trace.proof_steps)
        cards += [draw_beliefs(trace)] if trace.beliefs else []
    else:
        signs, overview = [*SEARCH_SIGNS], draw_beams(trace, answer)
        signs += REFERENCE_SIGNS if trace.reference is not None else ()
        signs += [THETA_SIGN] if trace.theta < math.inf else []
    left_out = [f"{count(n - len(shown), 'step')} of {n:,} not drawn one by one."] if n > len(shown) else []
    return signs, [overview, *cards], left_out + trace.summary()


def section(trace: Trace) -> str:
    """Returns a trace, explained, as a part of a page that has the style already."""
    signs, (overview, *cards), summary = _pictures(trace)
    key = (f'<li><svg width="22" height="14">{sign}</svg>{escape(words)}</li>' for sign, words in signs)
    narrow = "".join(f"<figure>{each.svg()}</figure>" for each in cards if each.width < WIDE)
    wide = "".join(f'<div class="wide">{each.svg()}</div>' for each in cards if each.width >= WIDE)
    return (
        f"<h3>{escape(trace.title)}</h3>{paragraphs(trace.explained)}"
        f'<ul class="signs">{"".join(key)}</ul><div class="wide">{overview.svg()}</div>'
        f'<div class="cards">{narrow}</div>{wide}{paragraphs(summary)}'
    )


def svg(trace: Trace) -> str:
    """Returns a trace as one SVG file: wide pictures in rows of their own, others side by side."""
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
    body, x, y, row, widest = [], GAP, GAP, 0.0, max(WIDE, overview.width)
    for each in pictures:
        if x > GAP and (x + each.width > widest + GAP + 1 or each is cards[0]):
            x, y, row = GAP, y + row + GAP, 0.0
        size = f'width="{each.width:.0f}" height="{each.height:.0f}"'
        body.append(f'<svg x="{x:.0f}" y="{y:.0f}" {size}>{each.body}</svg>')
        x, row = x + each.width + GAP, max(row, each.height)
    ground = f'<style>{STYLE}</style><rect width="100%" height="100%" style="fill:var(--card)"/>'
    whole = Picture(ground + "".join(body), widest + 2 * GAP, y + row + GAP, trace.title)
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


def draw_step(trace: Trace, t: int, answer: Sequence[Candidate]) -> Picture:
    """Returns one step as a card."""
    step = trace.steps[t]
    lost = trace.lost is not None and trace.lost.step == t
    about, y = _paragraph(step.facts(trace) + (". The reference is lost." if lost else "."), 32, CARD, "t-small t-soft")
    head = _text(0, 14, f"{t + 1}. {step.name}", "t-bold", room=CARD)
    if isinstance(step, ProofStep):
        rows, y = _paragraph(step.text, y + 4, CARD)
        for each in step.messages[:2]:
            moved = f"{'+' if each.amount > 0 else ''}{amount(each.amount)}"
            told = f"message: {each.variable} = {each.label} {moved}, from {each.factor}"
            row, y = _paragraph(told, y, CARD, "t-small t-soft")
            rows += row
        return Picture(head + about + rows, CARD, y, f"Step {t + 1}, {step.step}: {step.text}")
    rows, y = _candidates(trace, t, y + 6, answer)
    kept = ", ".join(each.label for each in step.kept) or "nothing"
    return Picture(head + about + rows, CARD, y, f"Step {t + 1}, {step.name}: {kept} kept")


def _candidates(trace: Trace, t: int, y: float, answer: Sequence[Candidate]) -> tuple[str, float]:
    """Returns the beam on the left, its candidates on the right, the best first, and the beam's edge."""
    step: SearchStep = trace.steps[t]
    shown = step.shown(MOST_CANDIDATES)
    every = [each for others in trace.search_steps for each in others.candidates]
    plain = not any(small(each.heuristic + each.look_ahead, each.path_cost) for each in every)
    columns = {"path cost": COLUMNS["priority"]} if plain and not step.skipped else COLUMNS
    parts = [_text(x, y, name, "t-small t-soft end") for name, x in columns.items()]
    y += 16
    top, edged = y, False
    nodes = {node: top + ROW * place for place, node in enumerate(sorted({each.node for each in shown})[:8])}
    for each in shown:
        if not each.kept and not edged:
            parts.append(_path("dash", f"M{LABEL + 72} {y - 8}H{CARD}"))
            parts.append(_text(LABEL, y - 4, "beam’s edge", "t-small t-soft"))
            y, edged = y + 14, True
        if each.node in nodes and not each.ruled_out:
            parts.append(_edge(BOX, nodes[each.node] - 4, LABEL - 14, y - 4, _way(each, answer[t:])))
        parts += [_rect("glow", LABEL - 20, y - 14, CARD - LABEL + 20, 18, ROUND)] if each.good else []
        parts.append(_dot(LABEL - 10, y - 4, 4.0, each))
        parts += [_cross(LABEL - 10, y - 4, 4)] if each.good and not each.kept else []
        style = "t-gold" if each.good else "t-out" if each.ruled_out else "" if each.kept else "t-soft"
        style = "t-bold t-kept" if not style and _way(each, answer[t:]) else style
        parts.append(_text(LABEL, y, f"★ {each.label}" if each.good else each.label, style, room=98))
        if each.ruled_out:
            parts.append(_text(LABEL + 98, y, each.ruled_out, "t-small t-soft", room=CARD - LABEL - 98, size=10))
        else:
            cost = "skipped" if step.skipped else amount(each.path_cost)
            added = amount(small(each.heuristic + each.look_ahead, each.path_cost))
            numbers, shade = (cost, added, amount(each.priority)), "" if each.kept else " t-soft"
            for number, x in zip(numbers, columns.values(), strict=False):
                parts.append(_text(x, y, number, f"t-small end{shade}"))
        y += ROW
    for node, at in nodes.items():
        parent = trace.search_steps[t - 1].kept[node] if t else None
        way = "no variable is labelled yet" if parent is None else ", ".join(trace.path(t - 1, parent))
        name = "start" if parent is None else f"{node + 1} {parent.label}"
        inside = _rect("box", 0, at - 13, BOX, 17, ROUND) + _text(5, at, name, "t-small", room=BOX - 8, size=11)
        parts.append(f"<g><title>{escape(way)}</title>{inside}</g>")
    if len(shown) < len(step.candidates):
        parts.append(_text(LABEL, y, f"… and {len(step.candidates) - len(shown):,} more candidates", "t-small t-soft"))
        y += ROW
    return "".join(parts), max(y, top + ROW * len(nodes)) - 6


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


def draw_beliefs(trace: Trace) -> Picture:
    """Returns the costs of labels before and after all messages, the cheapest of each variable first."""
    body, y = _paragraph(
        "A message moves cost from a table to the labels that it concerns, or back. The total of no labelling changes, "
        "but the sum of each variable’s cheapest label comes closer to the cost of the best labelling. Shown are costs "
        "as given → with all messages, the cheapest label first.", 34, WIDE, "t-soft",
    )  # fmt: skip
    groups, y = [list(group) for _, group in groupby(trace.beliefs, key=lambda each: each.variable)], y + 4
    for group in groups[:MOST_VARIABLES]:
        labels = [
            f"{each.label} {amount(each.cost)} → {'out' if each.belief == math.inf else amount(each.belief)}"
            for each in sorted(group, key=lambda each: each.belief)
        ]
        body += _text(0, y, group[0].variable, room=180) + _text(190, y, ", ".join(labels), "t-small", room=WIDE - 190)
        y += 18
    if len(groups) > MOST_VARIABLES:
        body += _text(0, y, f"… and {count(len(groups) - MOST_VARIABLES, 'variable')} more", "t-soft")
        y += 18
    return Picture(_text(0, 14, "What messages did", "t-bold") + body, WIDE, y, "What messages did")


def _ticks(low: float, high: float) -> list[float]:
    """Returns round numbers between two limits."""
    raw = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(raw))
    step = power * next(digit for digit in (1.0, 2.0, 2.5, 5.0, 10.0) if digit * power >= raw * (1 - 1e-9))
    first, last = math.ceil(low / step), math.floor(high / step)
    return [round(n * step, 12) + 0.0 for n in range(first, last + 1)] if last - first < 20 else []

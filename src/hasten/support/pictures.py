"""Pictures as SVG and HTML that need nothing else: no scripts, no fonts, no network; for day, night, phone and paper.

Whatever text comes in is escaped here, control characters included. Colours have names (`STYLE`), and none of them is
the only sign of anything.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hasten.support.terminal import printable

WIDE = 772.0  # the width of a page
LETTER = 0.58  # the width of a letter, about, in units of its height

STYLE = """
.hasten-seen{--card:#fff;--ink:#1b1f24;--soft:#5b6470;--faint:#dfe2e6;--kept:#0b62a8;--gold:#8a6500;--lost:#b84a00;
--shade:#eef4fa;--glow:#fdf6e3;background:var(--card);color:var(--ink);padding:16px;border-radius:8px;
font:14px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
@media screen and (prefers-color-scheme:dark){.hasten-seen{--card:#1b1f25;--ink:#e8eaed;--soft:#a0a8b4;--faint:#3a414b;
--kept:#6db8f5;--gold:#e2bd48;--lost:#ff9d5c;--shade:#22303e;--glow:#362e18}}
.hasten-seen h3{font-size:18px;line-height:1.3;margin:0 0 8px}
.hasten-seen h4{font-size:15px;margin:20px 0 6px}
.hasten-seen p{margin:4px 0 10px;max-width:76ch}
.hasten-seen .soft{color:var(--soft)}
.hasten-seen figure{margin:0;padding:0;background:none;border:0}
.hasten-seen svg{display:block;max-width:100%;height:auto}
.hasten-seen ul.signs{list-style:none;display:flex;flex-wrap:wrap;gap:2px 18px;margin:6px 0 14px;padding:0;
font-size:13px;color:var(--soft)}
.hasten-seen ul.signs li{display:flex;align-items:center;gap:6px;margin:0}
.hasten-seen ul.signs svg{flex:none}
.hasten-seen .cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,340px),1fr));gap:14px;
margin:10px 0}
.hasten-seen .cards figure{border:1px solid var(--faint);border-radius:8px;padding:10px 12px;break-inside:avoid}
.hasten-seen .cards p.more{align-self:center;text-align:center;margin:0;color:var(--soft)}
.hasten-seen .wide{overflow-x:auto}
.hasten-seen .wide svg{max-width:none}
.hasten-seen table{border-collapse:collapse;font-size:13px;margin:6px 0 12px;color:inherit}
.hasten-seen th,.hasten-seen td{padding:3px 14px 3px 0;text-align:left;vertical-align:top;background:none;color:inherit;
border-bottom:1px solid var(--faint);font-weight:400;white-space:normal}
.hasten-seen th{color:var(--soft)}
.hasten-seen .number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.hasten-seen .least{font-weight:700;color:var(--kept)}
.hasten-seen text{fill:var(--ink);font-size:12px;font-family:inherit}
.hasten-seen .t-soft{fill:var(--soft)}
.hasten-seen .t-small{font-size:11px}
.hasten-seen .t-bold{font-weight:650}
.hasten-seen .t-title{font-size:16px;font-weight:650}
.hasten-seen .t-kept{fill:var(--kept)}
.hasten-seen .t-gold{fill:var(--gold);font-weight:700}
.hasten-seen .t-lost{fill:var(--lost);font-weight:700}
.hasten-seen .t-out{fill:var(--soft);text-decoration:line-through}
.hasten-seen .end{text-anchor:end}
.hasten-seen .middle{text-anchor:middle}
.hasten-seen .edge{fill:none;stroke:var(--soft);stroke-width:1;opacity:.55}
.hasten-seen .edge.on{stroke:var(--kept);stroke-width:2.2;opacity:1}
.hasten-seen .edge.gold{stroke:var(--gold);stroke-width:2.2;opacity:1;stroke-dasharray:5 3}
.hasten-seen .rule{fill:none;stroke:var(--faint)}
.hasten-seen .dash{fill:none;stroke:var(--soft);stroke-dasharray:4 4}
.hasten-seen .box{fill:var(--shade);stroke:var(--kept)}
.hasten-seen .glow{fill:var(--glow);stroke:var(--gold);stroke-dasharray:4 3}
.hasten-seen .dot{fill:var(--kept)}
.hasten-seen .dot.off{fill:none;stroke:var(--soft);stroke-width:1.2}
.hasten-seen .dot.out{fill:var(--faint)}
.hasten-seen .ring{fill:none;stroke:var(--gold);stroke-width:2}
.hasten-seen .cross{fill:none;stroke:var(--lost);stroke-width:2.6;stroke-linecap:round}
.hasten-seen .band{fill:var(--shade)}
.hasten-seen .space{fill:var(--glow)}
.hasten-seen .bound{fill:none;stroke:var(--kept);stroke-width:2}
.hasten-seen .best{fill:none;stroke:var(--lost);stroke-width:2;stroke-dasharray:7 3}
.hasten-seen .square{fill:var(--lost)}
@media print{.hasten-seen{padding:0;font-size:10.5pt;background:#fff}.hasten-seen .wide{overflow:visible}
.hasten-seen .wide svg{max-width:100%}
.hasten-seen .cards{grid-template-columns:repeat(2,minmax(0,1fr));gap:10px}}
""".replace("\n", "")


def escape(words: str) -> str:
    """Returns text as HTML and SVG may hold it; control characters, which they may not, are spelled out."""
    return html.escape(printable(words))


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing: SVG elements, and the size that they take."""

    body: str
    width: float
    height: float
    title: str  # what a screen reader says

    def svg(self) -> str:
        """Returns it as an element of a page, which knows the style."""
        size = f'width="{self.width:.0f}" height="{self.height:.0f}" viewBox="0 0 {self.width:.0f} {self.height:.0f}"'
        return f'<svg role="img" aria-label="{escape(self.title)}" {size}>{self.body}</svg>'


@dataclass(frozen=True, slots=True)
class Page:
    """What was done, for people: explained, with a key, in one picture, step by step, and how it ended."""

    title: str
    explained: Sequence[str]
    signs: Sequence[tuple[str, str]]  # and what they mean
    overview: Picture | None
    details: str  # the steps, as HTML
    pictures: Sequence[Picture]  # the steps, for an SVG file
    summary: Sequence[str]

    def section(self) -> str:
        """Returns it as a part of a page that has the style already."""
        return "".join(
            [
                f"<h3>{escape(self.title)}</h3>",
                paragraphs(self.explained),
                key(self.signs),
                f'<div class="wide">{self.overview.svg()}</div>' if self.overview else "",
                self.details,
                paragraphs(self.summary),
            ]
        )

    def svg(self) -> str:
        """Returns it as one SVG file."""
        parts = [
            lines_picture(self.title, self.explained, WIDE),
            key_picture(self.signs, WIDE),
            *([replace(self.overview, width=max(WIDE, self.overview.width))] if self.overview else []),
            *self.pictures,
            lines_picture("How it ended", self.summary, WIDE),
        ]
        return one_below_the_other(parts, self.title)


def on_a_page(*parts: str) -> str:
    """Returns parts of a page with the style that they need."""
    return f'<div class="hasten-seen"><style>{STYLE}</style>{"".join(parts)}</div>'


def one_below_the_other(pictures: Sequence[Picture], title: str) -> str:
    """Returns pictures as one SVG file: wide ones in rows of their own, others side by side."""
    gap = 16.0
    widest = max((each.width for each in pictures), default=0.0)
    body, x, y, row = [], gap, gap, 0.0
    for each in pictures:
        if x > gap and x + each.width > widest + gap + 1:
            x, y, row = gap, y + row + gap, 0.0
        body.append(
            f'<svg x="{x:.0f}" y="{y:.0f}" width="{each.width:.0f}" height="{each.height:.0f}">{each.body}</svg>'
        )
        x, row = x + each.width + gap, max(row, each.height)
    width, height = widest + 2 * gap, y + row + gap
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="hasten-seen" role="img" aria-label="{escape(title)}" '
        f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"><style>{STYLE}</style>'
        f'<rect width="100%" height="100%" style="fill:var(--card)"/>{"".join(body)}</svg>'
    )


def text(x: float, y: float, words: str, style: str = "", *, room: float | None = None, size: float = 12.0) -> str:
    """Returns text at a place, cut where it does not fit its room; hovering over it shows all."""
    shown, hint = words, ""
    if room is not None and len(words) * LETTER * size > room:
        shown = words[: max(1, int(room / (LETTER * size)) - 1)] + "…"
        hint = f"<title>{escape(words)}</title>"
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{hint}{escape(shown)}</text>'


def wrapped(words: str, room: float, size: float = 12.0) -> list[str]:
    """Returns words in lines that fit their room."""
    lines, letters = [""], max(8, int(room / (LETTER * size * 0.92)))
    for word in words.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > letters:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return lines


def cross(x: float, y: float, r: float = 5.0) -> str:
    """Returns a cross."""
    d = 2 * r
    return f'<path class="cross" d="M{x - r:.1f} {y - r:.1f}l{d:.1f} {d:.1f}m0 {-d:.1f}l{-d:.1f} {d:.1f}"/>'


def dot(x: float, y: float, r: float, style: str = "") -> str:
    """Returns a dot."""
    return f'<circle class="dot {style}" cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}"/>'


def ring(x: float, y: float, r: float) -> str:
    """Returns a ring around a dot."""
    return f'<circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}"/>'


def box(x: float, y: float, width: float, height: float, style: str) -> str:
    """Returns a box with round corners."""
    return f'<rect class="{style}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="4"/>'


def edge(x1: float, y1: float, x2: float, y2: float, style: str = "") -> str:
    """Returns a curve from left to right."""
    bend, x, y = (x2 - x1) / 2, x2 - x1, y2 - y1
    return f'<path class="edge {style}" d="M{x1:.1f} {y1:.1f}c{bend:.1f} 0 {bend:.1f} {y:.1f} {x:.1f} {y:.1f}"/>'


def key(signs: Iterable[tuple[str, str]]) -> str:
    """Returns signs, drawn around (11, 7), and what they mean, as a list."""
    items = (
        f'<li><svg width="22" height="14" viewBox="0 0 22 14" aria-hidden="true">{sign}</svg>{escape(words)}</li>'
        for sign, words in signs
    )
    return f'<ul class="signs">{"".join(items)}</ul>'


def key_picture(signs: Sequence[tuple[str, str]], width: float) -> Picture:
    """Returns the same as a picture."""
    body, x, y = [], 0.0, 0.0
    for sign, words in signs:
        room = 30 + len(words) * LETTER * 12
        if x and x + room > width:
            x, y = 0.0, y + 20
        body.append(f'<g transform="translate({x:.0f} {y:.0f})">{sign}{text(28, 11, words, "t-soft")}</g>')
        x += room + 12
    return Picture("".join(body), width, y + 20, "Key to the signs")


def lines_picture(title: str, sentences: Iterable[str], width: float) -> Picture:
    """Returns a title and sentences as a picture."""
    body, y = [text(0, 16, title, "t-title", room=width, size=16)], 22.0
    for sentence in sentences:
        for line in wrapped(sentence, width):
            y += 17
            body.append(text(0, y, line, "t-soft"))
        y += 4
    return Picture("".join(body), width, y + 8, title)


def paragraphs(sentences: Iterable[str]) -> str:
    """Returns sentences as paragraphs."""
    return "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)

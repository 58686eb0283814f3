"""Pictures as SVG and HTML that need nothing else: no scripts, no fonts, no network; for day, night, phone and paper.

Whatever text comes in is escaped here, control characters included. Colours have names (`STYLE`), and none of them is
the only sign of anything.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hasten.support.terminal import printable

WIDE = 772.0  # the width of a page
GAP = 16.0  # between pictures
LETTER = 0.58  # the width of a letter, about, in units of its height

STYLE = """
.hasten-seen{--card:#fff;--ink:#1b1f24;--soft:#5b6470;--faint:#dfe2e6;--kept:#0b62a8;--gold:#8a6500;--lost:#b84a00;
--shade:#eef4fa;--glow:#fdf6e3;background:var(--card);color:var(--ink);padding:16px;border-radius:8px;
font:14px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
@media screen and (prefers-color-scheme:dark){.hasten-seen{--card:#1b1f25;--ink:#e8eaed;--soft:#a0a8b4;--faint:#3a414b;
--kept:#6db8f5;--gold:#e2bd48;--lost:#ff9d5c;--shade:#22303e;--glow:#362e18}}
.hasten-seen h3{font-size:18px;line-height:1.3;margin:0 0 8px}
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
.hasten-seen .wide{overflow-x:auto}
.hasten-seen .wide svg{max-width:none}
.hasten-seen text{fill:var(--ink);font-size:12px;font-family:inherit}
.hasten-seen .t-soft{fill:var(--soft)}
.hasten-seen .t-small{font-size:11px}
.hasten-seen .t-bold{font-weight:650}
.hasten-seen .t-title{font-size:16px;font-weight:650}
.hasten-seen .t-kept{fill:var(--kept)}
.hasten-seen .t-gold{fill:var(--gold);font-weight:700}
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
    title: str  # for screen readers

    def svg(self, more: str = "") -> str:
        """Returns it as an element of a page, which has the style."""
        size = f'width="{self.width:.0f}" height="{self.height:.0f}" viewBox="0 0 {self.width:.0f} {self.height:.0f}"'
        return f'<svg {more}role="img" aria-label="{escape(self.title)}" {size}>{self.body}</svg>'


@dataclass(frozen=True, slots=True)
class Page:
    """A trace for people: explained, with a key, in one picture, step by step, and how it ended."""

    title: str
    explained: Sequence[str]
    signs: Sequence[tuple[str, str]]  # drawn around (11, 7), and their meaning
    overview: Picture
    cards: Sequence[Picture]
    summary: Sequence[str]

    def section(self) -> str:
        """Returns it as a part of a page that has the style already."""
        signs = (f'<li><svg width="22" height="14">{sign}</svg>{escape(words)}</li>' for sign, words in self.signs)
        cards = "".join(f"<figure>{each.svg()}</figure>" for each in self.cards if each.width < WIDE)
        wide = "".join(f'<div class="wide">{each.svg()}</div>' for each in self.cards if each.width >= WIDE)
        return "".join(
            [
                f"<h3>{escape(self.title)}</h3>{paragraphs(self.explained)}",
                f'<ul class="signs">{"".join(signs)}</ul><div class="wide">{self.overview.svg()}</div>',
                f'<div class="cards">{cards}</div>{wide}{paragraphs(self.summary)}',
            ]
        )

    def svg(self) -> str:
        """Returns it as one SVG file: wide pictures in rows of their own, others side by side."""
        lead, y = _lines(self.title, self.explained)
        x = 0.0
        for sign, words in self.signs:
            room = 42 + len(words) * LETTER * 12
            if x and x + room > WIDE:
                x, y = 0.0, y + 20
            lead += f'<g transform="translate({x:.0f} {y:.0f})">{sign}{text(28, 11, words, "t-soft")}</g>'
            x += room
        end, height = _lines("How it ended", self.summary)
        pictures = [Picture(lead, WIDE, y + 20, ""), self.overview, *self.cards, Picture(end, WIDE, height, "")]
        body, x, y, row, widest = [], GAP, GAP, 0.0, max(WIDE, self.overview.width)
        for each in pictures:
            if x > GAP and (x + each.width > widest + GAP + 1 or each is self.cards[0]):
                x, y, row = GAP, y + row + GAP, 0.0
            size = f'width="{each.width:.0f}" height="{each.height:.0f}"'
            body.append(f'<svg x="{x:.0f}" y="{y:.0f}" {size}>{each.body}</svg>')
            x, row = x + each.width + GAP, max(row, each.height)
        ground = f'<style>{STYLE}</style><rect width="100%" height="100%" style="fill:var(--card)"/>'
        whole = Picture(ground + "".join(body), widest + 2 * GAP, y + row + GAP, self.title)
        return whole.svg('xmlns="http://www.w3.org/2000/svg" class="hasten-seen" ')


def on_a_page(*parts: str) -> str:
    """Returns parts of a page with the style that they need."""
    return f'<div class="hasten-seen"><style>{STYLE}</style>{"".join(parts)}</div>'


def paragraphs(sentences: Iterable[str]) -> str:
    """Returns sentences as paragraphs of a page."""
    return "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)


def text(x: float, y: float, words: str, style: str = "", *, room: float | None = None, size: float = 12.0) -> str:
    """Returns text at a place, cut where it does not fit its room; hovering over it shows all."""
    shown, hint = words, ""
    if room is not None and len(words) * LETTER * size > room:
        shown = words[: max(1, int(room / (LETTER * size)) - 1)] + "…"
        hint = f"<title>{escape(words)}</title>"
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{hint}{escape(shown)}</text>'


def paragraph(words: str, y: float, room: float, style: str = "") -> tuple[str, float]:
    """Returns words in lines that fit their room, the first at `y`; and where the next line goes."""
    lines = textwrap.wrap(printable(words), max(8, int(room / (LETTER * 11))))
    return "".join(text(0, y + 17 * n, line, style) for n, line in enumerate(lines)), y + 17 * len(lines)


def _lines(title: str, sentences: Iterable[str]) -> tuple[str, float]:
    """Returns a title and sentences below it; and where the next line goes."""
    body, y = text(0, 16, title, "t-title", room=WIDE, size=16), 39.0
    for sentence in sentences:
        lines, y = paragraph(sentence, y, WIDE, "t-soft")
        body, y = body + lines, y + 4
    return body, y - 8


def path(style: str, d: str) -> str:
    """Returns a line."""
    return f'<path class="{style}" d="{d}"/>'


def edge(x1: float, y1: float, x2: float, y2: float, style: str = "") -> str:
    """Returns a curve from left to right."""
    bend, x, y = (x2 - x1) / 2, x2 - x1, y2 - y1
    return path(f"edge {style}", f"M{x1:.1f} {y1:.1f}c{bend:.1f} 0 {bend:.1f} {y:.1f} {x:.1f} {y:.1f}")


def cross(x: float, y: float, r: float) -> str:
    """Returns a cross."""
    d = 2 * r
    return path("cross", f"M{x - r:.1f} {y - r:.1f}l{d:.1f} {d:.1f}m0 {-d:.1f}l{-d:.1f} {d:.1f}")


def dot(x: float, y: float, r: float, style: str = "", kind: str = "dot") -> str:
    """Returns a dot."""
    return f'<circle class="{kind} {style}" cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}"/>'


def ring(x: float, y: float, r: float) -> str:
    """Returns a ring around a dot."""
    return dot(x, y, r, kind="ring")


def rect(style: str, x: float, y: float, width: float, height: float, more: str = "") -> str:
    """Returns a rectangle."""
    return f'<rect class="{style}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"{more}/>'


def box(style: str, x: float, y: float, width: float, height: float) -> str:
    """Returns a rectangle with round corners."""
    return rect(style, x, y, width, height, ' rx="4"')

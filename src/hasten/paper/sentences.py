"""Sentences drawn as labelled graphs: words in a line, spans coloured by their type, relations as arcs.

One drawing per labelling, all with the same layout, so that eyes can compare them. What differs from the
ILP's answer is drawn in the warning colour and said in words; a relation that is missing is a dashed arc.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from hasten.tasks.entity_relation.names import Labeller
from hasten.tasks.evaluation.page import GREY, key_of, label_colours

NAMES: Mapping[str, str] = {
    Labeller.GREEDY: "Greedy search",
    Labeller.SPEEDUP: "Speedup search",
    Labeller.ILP: "ILP",
    Labeller.GOLD: "Gold labels",
}
REFERENCE = Labeller.ILP
NOTHING = "none"  # the type of a span that is not an entity
PAD, GAP, STEP, WORD, BELOW = 7.0, 5.0, 21.0, 26.0, 22.0


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the words and the spans of a sentence stand."""

    words: tuple[tuple[float, float, str], ...]  # left, width, word
    spans: tuple[tuple[float, float], ...]  # left, right
    width: float


@dataclass(frozen=True, slots=True)
class Arc:
    """A relation to draw: `state` is "same", "other" (not what the ILP says) or "missing"."""

    source: int
    target: int
    label: str
    state: str

    @property
    def ends(self) -> tuple[int, int]:
        """The left and the right span."""
        return min(self.source, self.target), max(self.source, self.target)


def draw_examples(examples: Sequence[Mapping[str, Any]], types: Iterable[str]) -> str:
    """Returns sentences with a key to the colours of their types, as HTML."""
    known = list(types)
    for example in examples:
        for labelling in (example.get("labels") or {}).values():
            known += [str(name) for name in labelling.get("types") or ()]
    colours = label_colours(known, {NOTHING})
    return key_of(colours) + "".join(draw_example(each, colours) for each in examples)


def draw_example(example: Mapping[str, Any], colours: Mapping[str, str]) -> str:
    """Returns one sentence with all its labellings, as HTML."""
    tokens = [str(token) for token in example.get("tokens") or ()]
    spans = [(int(first), int(last)) for first, last in example.get("spans") or ()]
    labels: Mapping[str, Mapping[str, Any]] = example.get("labels") or {}
    violations: Mapping[str, Sequence[str]] = example.get("violations") or {}
    phrases = [" ".join(tokens[first:last]) for first, last in spans]
    reference = labels.get(REFERENCE)
    arcs = {name: arcs_of(labelling, reference) for name, labelling in labels.items()}
    layout = lay_out(tokens, spans, colours, [arc for each in arcs.values() for arc in each])
    tallest = max((max(levels(layout, each), default=0) for each in arcs.values()), default=0)
    panels = []
    for name in sorted(labels, key=lambda name: list(NAMES).index(name) if name in NAMES else len(NAMES)):
        said = [] if reference is None else differences(labels[name], reference, phrases)
        broken = list(dict.fromkeys(in_words(each, phrases) for each in violations.get(name) or ()))
        drawing = draw_labelling(layout, labels[name], reference, arcs[name], tallest, colours)
        panels.append(_panel(name, drawing, said, broken))
    columns = "four" if layout.width <= 250 else "two" if layout.width <= 530 else "one"
    return f'<article class="sentence"><div class="panels {columns}">{"".join(panels)}</div></article>'


def lay_out(
    tokens: Sequence[str], spans: Sequence[tuple[int, int]], types: Iterable[str], arcs: Iterable[Arc] = ()
) -> Layout:
    """Returns where everything stands, with room for the longest type below a span and for labels of arcs."""
    widest = max((1.12 * text_width(name, 11) for name in types), default=0.0)
    apart: dict[int, float] = {}  # how far the middle of a span must be from that of the span before it
    for arc in arcs:
        if arc.ends[1] == arc.ends[0] + 1:
            apart[arc.ends[1]] = max(apart.get(arc.ends[1], 0.0), text_width(arc.label, 11.5) + 48)
    starts = {first: (i, last) for i, (first, last) in enumerate(spans)}
    words, boxes = [], [(0.0, 0.0)] * len(spans)
    x, t = 2.0, 0
    while t < len(tokens):
        i, last = starts.get(t, (-1, t + 1))
        widths = [text_width(token, 15) for token in tokens[t:last]]
        inner = sum(widths) + GAP * (len(widths) - 1)
        room = inner if i < 0 else max(inner + 2 * PAD, widest + 8)
        if i > 0:
            x = max(x, sum(boxes[i - 1]) / 2 + apart.get(i, 0.0) - room / 2)
        left = x + (room - inner) / 2
        for token, width in zip(tokens[t:last], widths, strict=True):
            words.append((left, width, token))
            left += width + GAP
        if i >= 0:
            boxes[i] = x, x + room
        x, t = x + room + GAP, max(last, t + 1)
    return Layout(tuple(words), tuple(boxes), x - GAP + 2)


def text_width(text: str, size: float) -> float:
    """Returns about how wide a text is: drawings stretch it to just this."""
    narrow, wide = "iljtfrI.,:;'!|()[] ", "mwMW@%"
    units = sum(0.31 if c in narrow else 0.86 if c in wide else 0.68 if c.isupper() else 0.55 for c in text)
    return size * units


def arcs_of(labelling: Mapping[str, Any], reference: Mapping[str, Any] | None) -> list[Arc]:
    """Returns the relations of a labelling, and those of the ILP that it lacks."""
    ours, theirs = _relations(labelling), _relations(reference) if reference is not None else None
    if theirs is None:
        return [Arc(*pair, label, "same") for pair, label in ours.items()]
    arcs = [Arc(*pair, label, "same" if theirs.get(pair) == label else "other") for pair, label in ours.items()]
    return arcs + [Arc(*pair, label, "missing") for pair, label in theirs.items() if pair not in ours]


def levels(layout: Layout, arcs: Sequence[Arc]) -> list[int]:
    """Returns how high each arc runs: above all that it would cross or cover."""
    found = [0] * len(arcs)
    placed: list[tuple[float, float, int]] = []
    for n in sorted(range(len(arcs)), key=lambda n: (arcs[n].ends[1] - arcs[n].ends[0], arcs[n].ends)):
        ends = [sum(layout.spans[end]) / 2 for end in arcs[n].ends]
        half = max((ends[1] - ends[0]) / 2, text_width(arcs[n].label, 11.5) / 2 + 10)
        left, right = sum(ends) / 2 - half, sum(ends) / 2 + half
        found[n] = 1 + max((level for a, b, level in placed if a < right - 1 and left + 1 < b), default=0)
        placed.append((left, right, found[n]))
    return found


def draw_labelling(
    layout: Layout,
    labelling: Mapping[str, Any],
    reference: Mapping[str, Any] | None,
    arcs: Sequence[Arc],
    tallest: int,
    colours: Mapping[str, str],
) -> str:
    """Returns the words of a sentence with one labelling, as an SVG element."""
    base = STEP * tallest + 16
    height = base + WORD + BELOW
    parts = [
        f'<svg class="graph" role="img" aria-label="{escape(_sentence(layout))}" '
        f'width="{layout.width:.0f}" height="{height:.0f}" viewBox="0 0 {layout.width:.0f} {height:.0f}">'
    ]
    types = list(labelling.get("types") or ())
    wanted = types if reference is None else list(reference.get("types") or ())
    for i, (left, right) in enumerate(layout.spans):
        name = str(types[i]) if i < len(types) else ""
        colour = colours.get(name, GREY)
        other = " other" if i < len(wanted) and wanted[i] != name else ""
        parts.append(
            f'<rect class="span{other}" x="{left:.1f}" y="{base:.1f}" width="{right - left:.1f}" '
            f'height="{WORD}" rx="6" style="--tint:{colour}"/>'
            f'<text class="type{other}" x="{(left + right) / 2:.1f}" y="{base + WORD + 15:.1f}" '
            f'style="--tint:{colour}">{escape(name)}</text>'
        )
    parts += [
        f'<text class="word" x="{left:.1f}" y="{base + 18:.1f}" textLength="{width:.1f}" '
        f'lengthAdjust="spacingAndGlyphs">{escape(word)}</text>'
        for left, width, word in layout.words
    ]
    at = _attach(layout, arcs)
    for n, (arc, level) in enumerate(zip(arcs, levels(layout, arcs), strict=True)):
        parts.append(_draw_arc(arc, at[n, 0], at[n, 1], base, base - 4 - STEP * level))
    return "".join([*parts, "</svg>"])


def differences(labelling: Mapping[str, Any], reference: Mapping[str, Any], phrases: Sequence[str]) -> list[str]:
    """Says in words how a labelling differs from the ILP's."""
    said = [
        f"“{phrase}” is {ours}; the ILP says {theirs}"
        for phrase, ours, theirs in zip(
            phrases, labelling.get("types") or (), reference.get("types") or (), strict=False
        )
        if ours != theirs
    ]
    ours, theirs = _relations(labelling), _relations(reference)
    for pair in sorted(ours.keys() | theirs.keys()):
        if ours.get(pair) != theirs.get(pair):
            arrow = " → ".join(f"“{phrases[end]}”" for end in pair)
            here, there = ours.get(pair, "no relation"), theirs.get(pair, "no relation")
            said.append(f"{arrow}: {here}; the ILP says {there}")
    return said


def in_words(violation: str, phrases: Sequence[str]) -> str:
    """Returns a violation with the words of the sentence in place of the numbers of variables."""
    pairs = [(i, j) for i in range(len(phrases)) for j in range(i + 1, len(phrases))]
    arrows = [f"“{phrases[a]}” → “{phrases[b]}”" for i, j in pairs for a, b in ((i, j), (j, i))]
    names = [f"“{phrase}”" for phrase in phrases] + arrows

    def name(found: re.Match[str]) -> str:
        number = int(found[1])
        return names[number] if number < len(names) else found[0]

    text = re.sub(r"\bvariable (\d+)", name, violation)
    return re.sub(r"\b(source|target|forward|backward|relation)=", r"\1 ", text.removeprefix("args: "))


def _relations(labelling: Mapping[str, Any]) -> dict[tuple[int, int], str]:
    return {(int(a), int(b)): str(label) for a, b, label in labelling.get("relations") or ()}


def _sentence(layout: Layout) -> str:
    return " ".join(word for _, _, word in layout.words)


def _attach(layout: Layout, arcs: Sequence[Arc]) -> dict[tuple[int, int], float]:
    """Returns where each arc meets its source (0) and target (1): side by side, so that few arcs cross."""
    at: dict[tuple[int, int], float] = {}
    for i, (left, right) in enumerate(layout.spans):
        here = []
        for n, arc in enumerate(arcs):
            for end, (span, other) in enumerate(((arc.source, arc.target), (arc.target, arc.source))):
                if span == i:  # first those to the left, nearest first; then to the right, farthest first
                    here.append((other > i, -other, -n if other > i else n, n, end))
        step = min(14.0, (right - left - 8) / max(1, len(here)))
        for place, (*_, n, end) in enumerate(sorted(here)):
            at[n, end] = (left + right) / 2 + step * (place - (len(here) - 1) / 2)
    return at


def _draw_arc(arc: Arc, source: float, target: float, base: float, top: float) -> str:
    bend = 8.0 if target > source else -8.0
    wide = text_width(arc.label, 11.5) + 8
    middle, tip = (source + target) / 2, base - 1.5
    title = f"{arc.label}, which only the ILP has" if arc.state == "missing" else arc.label
    return (
        f'<g class="arc {arc.state}"><title>{escape(title)}</title>'
        f'<path d="M{source:.1f} {base:.1f}V{top + 8:.1f}q0 -8 {bend} -8H{target - bend:.1f}'
        f'q{bend} 0 {bend} 8V{base - 6:.1f}"/>'
        f'<path class="tip" d="M{target:.1f} {tip:.1f}l-4 -7.5h8z"/>'
        f'<rect x="{middle - wide / 2:.1f}" y="{top - 7:.1f}" width="{wide:.1f}" height="14"/>'
        f'<text x="{middle:.1f}" y="{top + 4:.1f}">{escape(arc.label)}</text></g>'
    )


def _panel(name: str, drawing: str, said: Sequence[str], broken: Sequence[str]) -> str:
    if name == REFERENCE:
        state = '<span class="state">the reference</span>'
    elif said:
        state = f'<span class="state warn">{len(said)} difference{"s" if len(said) > 1 else ""}</span>'
    else:
        state = '<span class="state">as the ILP</span>'
    notes = [f"<li>{escape(each)}</li>" for each in said]
    notes += [f'<li class="warn">Violation: {escape(each)}</li>' for each in broken]
    listed = f"<ul>{''.join(notes)}</ul>" if notes else ""
    return (
        f'<section class="panel"><h4>{escape(NAMES.get(name, name))} {state}</h4>'
        f'<div class="scroll">{drawing}</div>{listed}</section>'
    )

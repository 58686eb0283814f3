"""The drawings of the report, each from its section of `results.json`: charts, weights as bars, sentences as graphs.

A graph has the words in a line, spans coloured by their type, relations as arcs. There is one per labelling, all with
the same layout, so that eyes can compare them. What differs from the ILP's answer is drawn in the warning colour and
said in words; a relation that is missing is a dashed arc.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, NamedTuple

from hasten.support.words import Html, join, tag
from hasten.tasks.entity_relation.names import Labeller, Model
from hasten.tasks.evaluation.charts import Axis, Point, Series, figure, how_proved
from hasten.tasks.evaluation.comparison import time_by_size
from hasten.tasks.evaluation.page import GREY, Entry, empty, key_of, label_colours, name_of, number

FAMILIES: Mapping[str, tuple[Model, ...]] = {  # of rows, with the models of each; their numbers are colours
    "certified": (Model.CERTIFIED,),
    "Algorithm 1 as listed": (Model.PAPER_SPEEDUP,),
    "constraints within the search": (Model.ENFORCED, Model.LOOK_AHEAD, Model.REDUCED),
    "our learning": (Model.SPEEDUP,),
    "the ILP and the paper’s baselines": (Model.ILP, Model.GREEDY, Model.CONSTRAINED),
    "calibrated theta": (Model.CALIBRATED, Model.CALIBRATED_ENFORCED),
}
NAMED: Mapping[tuple[str, object], str] = {  # rows whose name stands beside their point
    (Model.ILP, None): "ILP",
    (Model.CERTIFIED, None): "certified",
    (Model.GREEDY, None): "greedy search",
    (Model.PAPER_SPEEDUP, 2): "Algorithm 1, b=2",
    (Model.SPEEDUP, 2): "averaged, b=2",
}
ILP_F1 = "relation F1 against the ILP"


def draw_figures(results: Entry) -> Html:
    """Returns every figure whose numbers there are."""
    sections: dict[str, Callable[[Any], Html]] = {
        "learning_curve": lambda curve: _learning_curve(curve, results.get("baselines") or ()),
        "theta_sweep": _theta_sweep,
        "by_size": lambda sizes: time_by_size(sizes, "entities"),
        "structures": _distinct_outputs,
        "proofs": lambda rows: how_proved({
            f"{row.get('sentences')} sentences": {step: n for step, n in row.items() if step != "sentences"}
            for row in rows
        }),
    }  # fmt: skip
    shown = [draw(results[key]) for key, draw in sections.items() if results.get(key)]
    return tag("div", shown, class_="figures") if shown else empty("Nothing to draw.")


def time_against_accuracy(rows: Sequence[Entry], paper: Sequence[Entry] = ()) -> Html:
    """Returns the time of every row, and how near it comes to the ILP. Five are named, the others when hovered over."""
    if not rows:
        return Html()
    known = {model for models in FAMILIES.values() for model in models}
    series = [
        Series(name, [_of_row(row) for row in rows if row.get("model") in models], colour, line=False)
        for colour, (name, models) in enumerate(FAMILIES.items(), 1)
    ]
    series.append(Series("others", [_of_row(row) for row in rows if row.get("model") not in known], 3, line=False))
    theirs = [_of_row(row)._replace(label="") for row in paper]
    series.append(Series("the same in the paper", theirs, 5, line=False, hollow=True))
    x, y = Axis("CPU ms of the whole test set, features included", "log"), Axis(ILP_F1, "near one")
    caption = "Up and to the left is better. The upright axis is stretched towards 1, where methods differ. Hover for "
    caption += "names. The paper’s times are of another machine." if paper else "names."
    return figure("Time against accuracy", x, y, series, caption, wide=True)


def _of_row(row: Entry) -> Point:
    theta = number(row.get("relative_theta"))
    name = name_of(row) if theta is None else f"{name_of(row)} θ={theta:g}"
    label = "" if row.get("theta") is not None else NAMED.get((str(row.get("model")), row.get("beam")), "")
    return Point(row.get("time_ms"), row.get("relation_f1_ilp"), label, name)


def _by_width(rows: Sequence[Entry], x: str, y: str) -> list[Series]:
    """Returns a line for each model and beam: models differ in colour, beams in their marks."""
    series = []
    for model, beam in dict.fromkeys((row.get("model"), row.get("beam")) for row in rows):
        mine = [row for row in rows if (row.get("model"), row.get("beam")) == (model, beam)]
        points, narrow = [Point(row.get(x), row.get(y)) for row in mine], beam == 1
        colour = 2 if model == Model.PAPER_SPEEDUP else 4
        series.append(Series(name_of(mine[0]), points, colour, hollow=narrow, dashed=narrow))
    return series


def _learning_curve(curve: Sequence[Entry], baselines: Sequence[Entry] = ()) -> Html:
    """Returns how more unlabeled sentences help, and what searches reach that learn nothing."""
    x = Axis("unlabeled sentences learned from", "log")
    known = [n for n in (number(row.get("n")) for row in curve) if n is not None] or [1.0]
    ends, shown = (min(known), max(known)), []
    for key, name, caption in (
        ("exact_match", "exact match with the ILP", "No gold label is used: the solver’s answers teach. Lines without "
         "marks learn nothing."),
        ("relation_f1_ilp", ILP_F1, "The same runs, measured by relations."),
    ):  # fmt: skip
        flat = [
            Series(name_of(row), [Point(n, row.get(key)) for n in ends], 5 if row.get("model") == Model.GREEDY else 3,
                   dashed=row.get("beam") == 1, marks=False)
            for row in baselines
        ]  # fmt: skip
        shown.append(figure(f"Learning curve: {name}", x, Axis(name), _by_width(curve, "n", key) + flat, caption))
    return join(shown)


def _theta_sweep(sweep: Sequence[Entry]) -> Html:
    """Returns what skipping costs saves, and what it loses."""
    x = Axis("θ in units of the cost scale", "log")
    return join([
        figure(f"Sweep of θ: {name}", x, Axis(name, kind), _by_width(sweep, "relative_theta", key), caption)
        for key, name, kind, caption in (
            ("costs_computed", "share of costs computed", "linear", "θ = 0, set apart, trusts the heuristic alone."),
            ("time_ms", "CPU ms, end to end", "linear", "Features are extracted only where a cost is needed."),
            ("relation_f1_ilp", ILP_F1, "near one", "Stretched towards 1."),
            ("relation_f1_gold", "relation F1 against gold", "linear", "What a user of the model would notice."),
        )
    ])  # fmt: skip


def _distinct_outputs(found: Entry) -> Html:
    """Returns how few distinct outputs occur."""
    curve: Sequence[Entry] = found.get("curve") or ()
    distinct = [Point(row.get("n"), row.get("distinct")) for row in curve]
    new = [Point(row.get("n"), row.get("n")) for row in curve]
    keys = {"distinct": "distinct outputs", "for_half": "cover half", "for_ninety": "cover 90%"}
    said = [f"{found[key]:,} {what}" for key, what in keys.items() if isinstance(found.get(key), int)]
    series = [Series("distinct outputs", distinct), Series("if each were new", new, 5)]
    caption = f"Of the answers to all unlabeled sentences: {', '.join(said)}." if said else ""
    x, y = Axis("unlabeled sentences", "log"), Axis("distinct outputs", "log")
    return figure("How few distinct outputs occur", x, y, series, caption)


def draw_weights(rows: Sequence[Entry]) -> Html:
    """Returns the strongest learned weights in words, with bars to the left and right of zero."""
    known = [(value, row) for value, row in ((number(row.get("weight")), row) for row in rows) if value is not None]
    if not known:
        return empty("No weight was learned.")
    most = max(abs(value) for value, _ in known) or 1.0
    lines = []
    for value, row in sorted(known, key=lambda each: -each[0]):
        bar = tag("i", class_="plus" if value >= 0 else "minus", style=f"width:{50 * abs(value) / most:.1f}%")
        sign = "+" if value >= 0 else "−"
        labels: Mapping[str, object] = row.get("labels") or {}
        if "relation" in labels and labels.keys() <= {"source", "relation", "target"}:  # "any" in an open place
            source, target = (labels.get(end, tag("span", "any", class_="dash")) for end in ("source", "target"))
            feature = join(source, " ", tag("em", labels["relation"]), " ", target)
        else:
            feature = join(f"{row.get('factor')}: ", ", ".join(f"{role} {label}" for role, label in labels.items()))
        cells = tag("th", feature), tag("td", f"{sign}{abs(value):.2f}"), tag("td", bar, class_="bar")
        lines.append(tag("tr", cells))
    return tag("table", tag("tbody", lines), class_="weights")


NAMES: Mapping[str, str] = {
    Labeller.GREEDY: "Greedy search",
    Labeller.SPEEDUP: "Speedup search",
    Labeller.ILP: "ILP",
    Labeller.GOLD: "Gold labels",
}
NOTHING = "none"  # the type of a span that is not an entity
PAD, GAP, STEP, WORD, BELOW = 7.0, 5.0, 21.0, 26.0, 22.0


class Arc(NamedTuple):
    """A relation to draw: `state` is "same", "other" (not what the ILP says) or "missing"."""

    source: int
    target: int
    label: str
    state: str

    @property
    def ends(self) -> tuple[int, int]:
        """The left and the right span."""
        return min(self.source, self.target), max(self.source, self.target)


class Labelling(NamedTuple):
    """The types of the spans, and the relations between them."""

    types: list[str]
    relations: dict[tuple[int, int], str]

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Labelling:
        """Reads a labelling of results.json."""
        relations = {(int(a), int(b)): str(label) for a, b, label in data.get("relations") or ()}
        return cls([str(name) for name in data.get("types") or ()], relations)

    def arcs(self, reference: Labelling) -> list[Arc]:
        """Returns the relations, and those of the ILP that are missing."""
        ours, theirs = self.relations, reference.relations
        arcs = [Arc(*pair, name, "same" if theirs.get(pair) == name else "other") for pair, name in ours.items()]
        return arcs + [Arc(*pair, name, "missing") for pair, name in theirs.items() if pair not in ours]

    def differences(self, reference: Labelling, phrases: Sequence[str]) -> list[str]:
        """Says in words how it differs from the ILP's."""
        types = zip(phrases, self.types, reference.types, strict=False)
        said = [f"“{phrase}” is {ours}; the ILP says {theirs}" for phrase, ours, theirs in types if ours != theirs]
        for pair in sorted(self.relations.keys() | reference.relations.keys()):
            ours, theirs = (each.get(pair, "no relation") for each in (self.relations, reference.relations))
            if ours != theirs:
                said.append(f"{' → '.join(f'“{phrases[end]}”' for end in pair)}: {ours}; the ILP says {theirs}")
        return said


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the words and the spans of a sentence stand."""

    words: tuple[tuple[float, float, str], ...]  # left, width, word
    spans: tuple[tuple[float, float], ...]  # left, right
    width: float

    def middle(self, span: int) -> float:
        """Returns the middle of a span."""
        return sum(self.spans[span]) / 2


def draw_examples(examples: Sequence[Mapping[str, Any]], types: Iterable[str]) -> Html:
    """Returns sentences with a key to the colours of their types."""
    every = [Labelling.of(each) for example in examples for each in (example.get("labels") or {}).values()]
    colours = label_colours([*types, *(name for each in every for name in each.types)], {NOTHING})
    return join(key_of(colours), [_draw_example(each, colours) for each in examples])


def _draw_example(example: Mapping[str, Any], colours: Mapping[str, str]) -> Html:
    tokens = [str(token) for token in example.get("tokens") or ()]
    spans = [(int(first), int(last)) for first, last in example.get("spans") or ()]
    phrases = [" ".join(tokens[first:last]) for first, last in spans]
    labels = {name: Labelling.of(each) for name, each in (example.get("labels") or {}).items()}
    arcs = {name: each.arcs(labels.get(Labeller.ILP, each)) for name, each in labels.items()}
    layout = lay_out(tokens, spans, colours, [arc for each in arcs.values() for arc in each])
    tallest = max((max(levels(layout, each), default=0) for each in arcs.values()), default=0)
    panels = []
    for name in sorted(labels, key=lambda name: list(NAMES).index(name) if name in NAMES else len(NAMES)):
        reference = labels.get(Labeller.ILP, labels[name])
        said = labels[name].differences(reference, phrases)
        violations = (example.get("violations") or {}).get(name) or ()
        broken = dict.fromkeys(f"Violation: {in_words(each, phrases)}" for each in violations)
        how = "the reference" if name == Labeller.ILP else "as the ILP"
        how = f"{len(said)} difference{'s' if len(said) > 1 else ''}" if said else how
        state = tag("span", how, class_="state warn" if said else "state")
        notes = [tag("li", each) for each in said] + [tag("li", each, class_="warn") for each in broken]
        marked = list(zip_longest(labels[name].types, reference.types, fillvalue=""))
        drawing = _draw_labelling(layout, marked, arcs[name], tallest, colours)
        panels.append(
            tag("section", tag("h4", NAMES.get(name, name), " ", state), tag("div", drawing, class_="scroll"),
                tag("ul", notes) if notes else None, class_="panel")
        )  # fmt: skip
    columns = "four" if layout.width <= 250 else "two" if layout.width <= 530 else "one"
    return tag("article", tag("div", panels, class_=f"panels {columns}"), class_="sentence")


def lay_out(
    tokens: Sequence[str], spans: Sequence[tuple[int, int]], types: Iterable[str], arcs: Iterable[Arc] = ()
) -> Layout:
    """Returns where everything stands, with room for the longest type below a span and for labels of arcs."""
    widest = max((1.12 * _width(name, 11) for name in types), default=0.0)
    apart: dict[int, float] = {}  # how far the middle of a span must be from that of the span before it
    for arc in arcs:
        if arc.ends[1] == arc.ends[0] + 1:
            apart[arc.ends[1]] = max(apart.get(arc.ends[1], 0.0), _width(arc.label, 11.5) + 48)
    starts = {first: (i, last) for i, (first, last) in enumerate(spans)}
    words, boxes = [], [(0.0, 0.0)] * len(spans)
    x, t = 2.0, 0
    while t < len(tokens):
        i, last = starts.get(t, (-1, t + 1))
        widths = [_width(token, 15) for token in tokens[t:last]]
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


def _width(text: str, size: float) -> float:
    """Returns about how wide a text is: drawings stretch it to just this."""
    narrow, wide = "iljtfrI.,:;'!|()[] ", "mwMW@%"
    units = sum(0.31 if c in narrow else 0.86 if c in wide else 0.68 if c.isupper() else 0.55 for c in text)
    return size * units


def levels(layout: Layout, arcs: Sequence[Arc]) -> list[int]:
    """Returns how high each arc runs: above all that it would cross or cover."""
    found = [0] * len(arcs)
    placed: list[tuple[float, float, int]] = []
    for n in sorted(range(len(arcs)), key=lambda n: (arcs[n].ends[1] - arcs[n].ends[0], arcs[n].ends)):
        first, last = (layout.middle(end) for end in arcs[n].ends)
        half = max((last - first) / 2, _width(arcs[n].label, 11.5) / 2 + 10)
        left, right = (first + last) / 2 - half, (first + last) / 2 + half
        found[n] = 1 + max((level for a, b, level in placed if a < right - 1 and left + 1 < b), default=0)
        placed.append((left, right, found[n]))
    return found


def _draw_labelling(
    layout: Layout, types: Sequence[tuple[str, str]], arcs: Sequence[Arc], tallest: int, colours: Mapping[str, str]
) -> Html:
    """Returns the words of a sentence with one labelling, as an SVG element; types that the ILP lacks are marked."""
    base = STEP * tallest + 16
    width, height = round(layout.width), round(base + WORD + BELOW)
    parts = []
    for i, (left, right) in enumerate(layout.spans):
        name, wanted = types[i] if i < len(types) else ("", "")
        other, tint = "" if name == wanted else " other", f"--tint:{colours.get(name, GREY)}"
        box = {"x": left, "y": base, "width": right - left, "height": WORD, "rx": 6}
        below = {"x": (left + right) / 2, "y": base + WORD + 15}
        parts.append(tag("rect", class_=f"span{other}", style=tint, **box))
        parts.append(tag("text", name, class_=f"type{other}", style=tint, **below))
    for left, wide, word in layout.words:
        stretch: dict[str, object] = {"textLength": wide, "lengthAdjust": "spacingAndGlyphs"}
        parts.append(tag("text", word, class_="word", x=left, y=base + 18, **stretch))
    at = _attach(layout, arcs)
    for n, (arc, level) in enumerate(zip(arcs, levels(layout, arcs), strict=True)):
        parts.append(_draw_arc(arc, at[n, 0], at[n, 1], base, base - 4 - STEP * level))
    said = " ".join(word for _, _, word in layout.words)
    size: dict[str, object] = {"width": width, "height": height, "viewBox": f"0 0 {width} {height}"}
    return tag("svg", parts, class_="graph", role="img", aria_label=said, **size)


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


def _attach(layout: Layout, arcs: Sequence[Arc]) -> dict[tuple[int, int], float]:
    """Returns where each arc meets its source (0) and target (1): side by side, so that few arcs cross."""
    at: dict[tuple[int, int], float] = {}
    for i, (left, right) in enumerate(layout.spans):
        here = []
        for n, arc in enumerate(arcs):
            for end, (span, other) in enumerate(((arc.source, arc.target), (arc.target, arc.source))):
                if span == i:  # first arcs to the left, nearest first; then to the right, farthest first
                    here.append((other > i, -other, -n if other > i else n, n, end))
        step = min(14.0, (right - left - 8) / max(1, len(here)))
        for place, (*_, n, end) in enumerate(sorted(here)):
            at[n, end] = layout.middle(i) + step * (place - (len(here) - 1) / 2)
    return at


def _draw_arc(arc: Arc, source: float, target: float, base: float, top: float) -> Html:
    bend = 8.0 if target > source else -8.0
    wide, middle = _width(arc.label, 11.5) + 8, (source + target) / 2
    title = f"{arc.label}, which only the ILP has" if arc.state == "missing" else arc.label
    line = f"M{source:.1f} {base:.1f}V{top + 8:.1f}q0 -8 {bend} -8H{target - bend:.1f}q{bend} 0 {bend} 8V{base - 6:.1f}"
    return tag(
        "g", tag("title", title), tag("path", d=line),
        tag("path", class_="tip", d=f"M{target:.1f} {base - 1.5:.1f}l-4 -7.5h8z"),
        tag("rect", x=middle - wide / 2, y=top - 7, width=wide, height=14),
        tag("text", arc.label, x=middle, y=top + 4), class_=f"arc {arc.state}",
    )  # fmt: skip

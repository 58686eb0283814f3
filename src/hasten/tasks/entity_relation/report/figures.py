"""The figures of the report, each from its section of `results.json`; and the learned weights as bars."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from hasten.tasks.entity_relation.names import BySize, Model
from hasten.tasks.entity_relation.report.charts import Axis, Point, Series, draw, drawable, legend
from hasten.tasks.entity_relation.report.formatting import Entry, number, text

WIDTHS = (1, 2)  # beam widths of the curves; each its own colour
WRITABLE = 0.06  # a bar's part of at least this share has room for a number
FAMILIES: Mapping[str, int] = {  # with their colours
    Model.ILP: 5,
    Model.CERTIFIED: 1,
    "constraints within the search": 3,
    "learned speedup": 4,
    "costs skipped": 6,
    "the paper’s searches": 2,
}


def draw_figures(results: Entry) -> str:
    """Returns every figure whose numbers there are, as HTML."""
    sections: tuple[tuple[str, Callable[[Any], str]], ...] = (
        ("rows", time_against_accuracy),
        ("learning_curve", learning_curve),
        ("theta_sweep", theta_sweep),
        ("by_size", time_by_size),
        ("structures", distinct_outputs),
        ("proofs", how_proved),
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


def family(row: Entry) -> str:
    """Returns the family that a row is drawn with."""
    model = str(row.get("model"))
    if model in (Model.ILP, Model.CERTIFIED):
        return model
    if row.get("table") == "2":
        return "costs skipped"
    if row.get("table") == "1":
        return "the paper’s searches"
    return "learned speedup" if model in (Model.SPEEDUP, Model.PAPER_SPEEDUP) else "constraints within the search"


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
    colours: Mapping[str, int] = {BySize.ILP: 5, BySize.GREEDY: 2, BySize.BEAM: 3, BySize.CERTIFIED: 1}
    names_shown: Mapping[str, str] = {BySize.ILP: "ILP", BySize.GREEDY: "greedy search"}
    names = list(dict.fromkeys(key for row in sizes for key in row if key not in ("entities", "sentences")))
    series = []
    for name in names:
        shown = names_shown.get(name, name)
        points = []
        for row in sizes:
            said = f"{shown}, {{x:.0f}} entities: {{y:,.1f}} µs (mean of {row.get('sentences')} sentences)"
            points.append(_point(row.get("entities"), row.get(name), said))
        series.append(Series(shown, points, colours.get(name, 4)))
    y = Axis("µs per sentence, inference (log)", "log")
    caption = "Inference from given costs. Large sentences are few: hover for how many."
    return _figure("Time against size", Axis("entities in the sentence"), y, series, caption)


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
    """Returns a chart with its legend and caption; a wide one is drawn twice, for the style to choose by the room."""
    if wide:
        broad, narrow = (draw(title, x, y, series, width=w, height=h) for w, h in ((1000, 440), (380, 460)))
        chart = f'<div class="broad">{broad}</div><div class="narrow">{narrow}</div>'
    else:
        chart = draw(title, x, y, series)
    return (
        f"<figure{' class=wide' if wide else ''}><h3>{escape(title)}</h3>{legend(series)}{chart}"
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )

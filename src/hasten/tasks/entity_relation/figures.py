"""The figures of the report: which series of `results.json` are drawn over which axes, and what they say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from hasten.tasks.entity_relation.charts import Axis, Point, Series, draw, drawable, legend

Entry = Mapping[str, Any]

WIDTHS = ((1, 1), (2, 2))  # beam width, colour


def draw_figures(results: Entry) -> str:
    """Returns all figures, as HTML."""
    sections: tuple[tuple[str, Callable[[Any], str]], ...] = (
        ("rows", time_against_accuracy),
        ("learning_curve", learning_curve),
        ("theta_sweep", theta_sweep),
        ("by_size", time_by_size),
        ("structures", distinct_structures),
    )
    shown = "".join(figure(results[key]) for key, figure in sections if results.get(key))
    return f'<div class="figures">{shown}</div>' if shown else '<p class="empty">Nothing to draw.</p>'


def time_against_accuracy(rows: Sequence[Entry]) -> str:
    """Every row: how long it takes, and how near it comes to the ILP."""
    families = (
        ("ILP", 5, lambda row: row["model"] == "ILP"),
        ("certified", 1, lambda row: row["model"] == "certified"),
        ("constraints within the search", 3, lambda row: "beam" in row["model"]),
        ("learned speedup, every cost", 4, lambda row: row["model"] == "speedup" and row.get("theta") is None),
        ("learned speedup, costs skipped", 6, lambda row: row.get("table") == "2"),
        ("the paper’s searches", 2, lambda row: True),
    )
    points: dict[str, list[Point]] = {name: [] for name, _, _ in families}
    for row in rows:
        family = next(name for name, _, holds in families if holds(row))
        beam = f" {row['beam']}" if row.get("beam") else ""
        points[family].append(
            _point(
                row.get("time_ms"),
                row.get("relation_f1_ilp"),
                f"{row['model']}{beam}: {{x:.1f}} ms, relation F1 {{y:.3f}}",
                "" if row.get("table") == "2" else f"{row['model']}{beam}",
            )
        )
    series = [Series(name, points[name], colour, line=False) for name, colour, _ in families]
    chart = draw(
        "Time against accuracy",
        Axis("CPU ms of the whole test set, features included (log)", "log"),
        Axis("relation F1 against the ILP", "near one"),
        series,
        width=940,
        height=420,
    )
    return _figure(
        "Time against accuracy",
        chart,
        series,
        "Up and to the left is better. The upright axis is stretched towards 1, where the methods differ. "
        "Numbers are beam widths; points without a name say theirs when hovered over.",
        wide=True,
    )


def learning_curve(curve: Sequence[Entry]) -> str:
    """What more unlabeled sentences teach."""
    shown = []
    for key, name in (("exact_match", "exact match with the ILP"), ("relation_f1_ilp", "relation F1 against the ILP")):
        series = [
            Series(
                f"beam {beam}",
                [
                    _point(row.get("n"), row.get(key), f"beam {beam}, {{x:,.0f}} sentences: {{y:.3f}}")
                    for row in curve
                    if row.get("beam") == beam
                ],
                colour,
            )
            for beam, colour in WIDTHS
        ]
        title = f"Learning: {name}"
        chart = draw(title, Axis("unlabeled sentences learned from (log)", "log"), Axis(name), series)
        shown.append(_figure(title, chart, series, "No gold label is used: the solver’s own answers teach."))
    return "".join(shown)


def theta_sweep(sweep: Sequence[Entry]) -> str:
    """What skipping costs saves and loses."""
    shown = []
    for key, name, kind, caption in (
        ("costs_computed", "share of costs computed", "linear", "θ = 0 trusts the heuristic alone."),
        ("relation_f1_ilp", "relation F1 against the ILP", "near one", "Stretched towards 1."),
        ("time_ms", "CPU ms, end to end", "linear", "Features are extracted only where a cost is needed."),
    ):
        series = [
            Series(
                f"beam {beam}",
                [
                    _point(row.get("relative_theta"), row.get(key), f"beam {beam}, θ {{x:.3g}}: {{y:.3f}}")
                    for row in sweep
                    if row.get("beam") == beam
                ],
                colour,
            )
            for beam, colour in WIDTHS
        ]
        title = f"θ sweep: {name}"
        chart = draw(title, Axis("θ in units of the cost scale (log)", "log"), Axis(name, kind), series)
        shown.append(_figure(title, chart, series, caption))
    return "".join(shown)


def time_by_size(sizes: Sequence[Entry]) -> str:
    """How time grows with the number of entities."""
    names = list(dict.fromkeys(key for row in sizes for key in row if key not in ("entities", "sentences")))
    colours = {"ilp": 5, "certified": 1, "search": 2, "beam 2": 3}
    spare = iter((4, 6) * len(names))
    series = [
        Series(
            {"ilp": "ILP", "search": "greedy search"}.get(name, name),
            [
                _point(
                    row.get("entities"),
                    row.get(name),
                    f"{name}, {{x:.0f}} entities: {{y:,.1f}} µs ({row.get('sentences')} sentences)",
                )
                for row in sizes
            ],
            colours[name] if name in colours else next(spare),
        )
        for name in names
    ]
    chart = draw(
        "Time against size",
        Axis("entities in the sentence"),
        Axis("µs per sentence, inference (log)", "log"),
        series,
    )
    return _figure("Time against size", chart, series, "From given costs. Large sentences are few.")


def distinct_structures(found: Entry) -> str:
    """How few distinct outputs occur."""
    curve: Sequence[Entry] = found.get("curve") or ()
    last = curve[-1]["n"] if curve else None
    series = [
        Series(
            "distinct outputs",
            [_point(row.get("n"), row.get("distinct"), "{x:,.0f} sentences: {y:,.0f} distinct") for row in curve],
        ),
        Series(
            "if each were new",
            [_point(row.get("n"), row.get("n"), "{x:,.0f} sentences") for row in curve],
            5,
        ),
    ]
    said = [
        f"{found['distinct']:,} outputs cover all {last:,} sentences" if found.get("distinct") and last else "",
        f"{found['for_half']:,} cover half of them" if found.get("for_half") else "",
        f"{found['for_ninety']:,} cover 90%" if found.get("for_ninety") else "",
    ]
    caption = "; ".join(each for each in said if each)
    chart = draw(
        "How few distinct outputs occur",
        Axis("unlabeled sentences (log)", "log"),
        Axis("distinct outputs (log)", "log"),
        series,
    )
    return _figure("How few distinct outputs occur", chart, series, f"{caption}." if caption else "")


def _point(x: object, y: object, title: str, label: str = "") -> Point:
    """Returns a point, its title filled in; one that cannot be drawn has no place."""
    known = [value if drawable(Axis(""), value) else None for value in (x, y)]
    if None in known:
        return Point(float("nan"), float("nan"), "")
    return Point(float(known[0]), float(known[1]), title.format(x=known[0], y=known[1]), label)  # type: ignore


def _figure(title: str, chart: str, series: Sequence[Series], caption: str, *, wide: bool = False) -> str:
    kind = ' class="wide"' if wide else ""
    return (
        f"<figure{kind}><h3>{escape(title)}</h3>{legend(series)}<div class=\"scroll\">{chart}</div>"
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )

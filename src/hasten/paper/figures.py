"""The figures of the report, each from its section of `results.json`; and the learned weights as bars."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hasten.support.words import Html, join, tag
from hasten.tasks.entity_relation.names import Model
from hasten.tasks.evaluation.charts import Axis, Point, Series, figure, how_proved
from hasten.tasks.evaluation.comparison_page import time_by_size
from hasten.tasks.evaluation.page import empty, name_of
from hasten.tasks.evaluation.tables import Entry, number

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

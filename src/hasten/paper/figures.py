"""The drawings of the report, each from its section of `results.json`: charts, and weights as bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hasten.support.words import Html, join, tag
from hasten.tasks.entity_relation.task import Model
from hasten.tasks.evaluation.charts import Axis, Point, Series, figure, how_proved, time_by_size
from hasten.tasks.evaluation.page import Column, Entry, Line, empty, find, html_table, name_of, number

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
    curve, sweep = (results.get(key) or () for key in ("learning_curve", "theta_sweep"))
    sizes, proofs = (results.get(key) or () for key in ("by_size", "proofs"))
    steps = {
        f"{row.get('sentences')} sentences": {step: n for step, n in row.items() if step != "sentences"}
        for row in proofs
    }
    shown = [
        _learning_curve(curve, results.get("rows") or ()) if curve else None,
        _theta_sweep(sweep) if sweep else None,
        time_by_size(sizes, "entities") if sizes else None,
        how_proved(steps) if steps else None,
    ]
    return tag("div", shown, class_="figures") if any(shown) else empty("Nothing to draw.")


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


def _learning_curve(curve: Sequence[Entry], rows: Sequence[Entry]) -> Html:
    """Returns how more unlabeled sentences help, and what searches reach that learn nothing."""
    x, y = Axis("unlabeled sentences learned from", "log"), Axis("exact match with the ILP")
    known = [n for n in (number(row.get("n")) for row in curve) if n is not None] or [1.0]
    flat = [
        Series(name_of(row), [Point(n, row.get("exact_match")) for n in (min(known), max(known))], colour, marks=False)
        for row, colour in ((find(rows, Model.GREEDY), 5), (find(rows, Model.ENFORCED, 2), 3))
        if row
    ]
    caption = "No gold label is used: the solver’s answers teach. Lines without marks learn nothing."
    return figure("Learning curve", x, y, _by_width(curve, "n", "exact_match") + flat, caption)


def _theta_sweep(sweep: Sequence[Entry]) -> Html:
    """Returns what skipping costs saves, and what it loses."""
    x = Axis("θ in units of the cost scale", "log")
    return join([
        figure(f"Sweep of θ: {name}", x, Axis(name, kind), _by_width(sweep, "relative_theta", key), caption)
        for key, name, kind, caption in (
            ("costs_computed", "share of costs computed", "linear", "θ = 0, set apart, trusts the heuristic alone."),
            ("relation_f1_ilp", ILP_F1, "near one", "Stretched towards 1."),
        )
    ])  # fmt: skip


def draw_weights(rows: Sequence[Entry]) -> Html:
    """Returns the strongest learned weights in words, with bars to the left and right of zero."""
    known: list[Line] = [(row, "") for row in rows if number(row.get("weight")) is not None]
    if not known:
        return empty("No weight was learned.")
    known.sort(key=lambda line: -float(line[0]["weight"]))
    most = max(abs(float(row["weight"])) for row, _ in known) or 1.0

    def bar(row: Entry) -> Html:
        share = float(row["weight"]) / most
        kind = "plus" if share >= 0 else "minus"
        return tag("span", tag("i", class_=kind, style=f"width:{50 * abs(share):.1f}%"), class_="bar")

    def feature(row: Entry) -> str:
        labels: Mapping[str, object] = row.get("labels") or {}
        return ", ".join(f"{role} {label}" for role, label in labels.items())

    columns = (
        Column("labels", feature),
        Column("weight", lambda row: f"{float(row['weight']):+.2f}".replace("-", "−")),
        Column("", bar),
    )
    return html_table(columns, known, "weights")

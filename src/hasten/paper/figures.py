"""The figures of the report, each from its section of `results.json`; and the learned weights as bars."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape
from typing import Any

from hasten.tasks.entity_relation.names import BySize, Model
from hasten.tasks.evaluation.charts import Axis, Point, Series, drawable, figure, how_proved, point
from hasten.tasks.evaluation.page import Entry, number

WIDTHS = (1, 2)  # beam widths of the curves; the first has hollow marks and dashed lines
FAMILIES: Mapping[str, int] = {  # with their colours
    "the ILP and the paper’s baselines": 5,
    "certified": 1,
    "constraints within the search": 3,
    "Algorithm 1 as listed": 2,
    "our learning": 4,
    "calibrated theta": 6,
}
PAPER = "the same in the paper"
NAMED: Mapping[tuple[str, object], str] = {
    (Model.ILP, None): "ILP",
    (Model.CERTIFIED, None): "certified",
    (Model.GREEDY, None): "greedy search",
    (Model.PAPER_SPEEDUP, 2): "Algorithm 1, b=2",
    (Model.SPEEDUP, 2): "averaged, b=2",
}


def draw_figures(results: Entry) -> str:
    """Returns every figure whose numbers there are, as HTML."""
    sections: tuple[tuple[str, Callable[[Any], str]], ...] = (
        ("learning_curve", lambda curve: learning_curve(curve, results.get("baselines") or ())),
        ("theta_sweep", theta_sweep),
        ("by_size", time_by_size),
        ("structures", distinct_outputs),
        ("proofs", how_proved),
    )
    shown = "".join(draw(results[key]) for key, draw in sections if results.get(key))
    return f'<div class="figures">{shown}</div>' if shown else '<p class="empty">Nothing to draw.</p>'


def time_against_accuracy(rows: Sequence[Entry], paper: Sequence[Entry] = ()) -> str:
    """Every row: how long it takes, and how near it comes to the ILP. Five are named, the others when hovered over."""
    if not rows:
        return ""
    groups: dict[str, list[Entry]] = {name: [] for name in FAMILIES}
    for row in rows:
        groups[family(row)].append(row)
    series = [
        Series(name, [_of_row(row, named(row)) for row in groups[name]], colour, line=False)
        for name, colour in FAMILIES.items()
    ]
    series.append(Series(PAPER, [_of_row(row) for row in paper], 5, line=False, hollow=True))
    return figure(
        "Time against accuracy",
        Axis("CPU ms of the whole test set, features included (log)", "log"),
        Axis("relation F1 against the ILP", "near one"),
        series,
        "Up and to the left is better. The upright axis is stretched towards 1, where methods differ. Hover for names."
        + (" The paper’s times are of another machine." if paper else ""),
        wide=True,
    )


def named(row: Entry) -> str:
    """Returns the name of a row that stands beside its point; nothing for most rows."""
    if row.get("theta") is not None:
        return ""
    return NAMED.get((str(row.get("model")), row.get("beam")), "")


def family(row: Entry) -> str:
    """Returns the family that a row is drawn with."""
    model = str(row.get("model"))
    if model in (Model.ILP, Model.GREEDY, Model.CONSTRAINED):
        return "the ILP and the paper’s baselines"
    if model == Model.CERTIFIED:
        return "certified"
    if model in (Model.CALIBRATED, Model.CALIBRATED_ENFORCED):
        return "calibrated theta"
    if model == Model.PAPER_SPEEDUP:
        return "Algorithm 1 as listed"
    return "our learning" if model == Model.SPEEDUP else "constraints within the search"


def row_name(row: Entry) -> str:
    """Returns what tells a row from the others: its model, beam and theta."""
    return f"{row.get('model')} {_settings(row)}".rstrip()


def _settings(row: Entry) -> str:
    beam, printed = number(row.get("beam")), number(row.get("relative_theta"))
    return " ".join(["" if beam is None else f"b={beam:.0f}", "" if printed is None else f"θ={printed:g}"]).strip()


def _of_row(row: Entry, label: str = "") -> Point:
    said = row_name(row).replace("{", "{{").replace("}", "}}")
    return point(row.get("time_ms"), row.get("relation_f1_ilp"), f"{said}, {{x:.1f}} ms, F1 {{y:.3f}}", label)


def learning_curve(curve: Sequence[Entry], baselines: Sequence[Entry] = ()) -> str:
    """What more unlabeled sentences teach, and what searches reach that learn nothing."""
    x, flat = Axis("unlabeled sentences learned from (log)", "log"), partial(_flat, baselines)
    return "".join(
        figure(f"Learning curve: {name}", x, Axis(name), _by_width(curve, "n", key) + flat(curve, key), caption)
        for key, name, caption in (
            ("exact_match", "exact match with the ILP", "No gold label is used: the solver’s answers teach. Lines "
             "without marks learn nothing."),
            ("relation_f1_ilp", "relation F1 against the ILP", "The same runs, measured by relations."),
        )
    )  # fmt: skip


def _flat(baselines: Sequence[Entry], curve: Sequence[Entry], key: str) -> list[Series]:
    """Returns a line across the figure for each search that learns nothing."""
    known = [float(row["n"]) for row in curve if drawable(Axis("", "log"), row.get("n"))]
    if not known:
        return []
    series = []
    for row in baselines:
        model, beam = str(row.get("model")), row.get("beam")
        points = [point(n, row.get(key), "") for n in (min(known), max(known))]
        colour = 5 if model == Model.GREEDY else 3
        series.append(Series(row_name(row), points, colour, dashed=beam == WIDTHS[0], marks=False))
    return series


def theta_sweep(sweep: Sequence[Entry]) -> str:
    """What skipping costs saves, and what it loses."""
    x = Axis("θ in units of the cost scale (log)", "log")
    return "".join(
        figure(f"Sweep of θ: {name}", x, Axis(name, kind), _by_width(sweep, "relative_theta", key), caption)
        for key, name, kind, caption in (
            ("costs_computed", "share of costs computed", "linear", "θ = 0, set apart, trusts the heuristic alone."),
            ("time_ms", "CPU ms, end to end", "linear", "Features are extracted only where a cost is needed."),
            ("relation_f1_ilp", "relation F1 against the ILP", "near one", "Stretched towards 1."),
            ("relation_f1_gold", "relation F1 against gold", "linear", "What a user of the model would notice."),
        )
    )


def time_by_size(sizes: Sequence[Entry]) -> str:
    """How time grows with the number of entities; the ILP has a line for each solver that answered."""
    colours: Mapping[str, int] = {BySize.ILP: 5, BySize.GREEDY: 2, BySize.BEAM: 3, BySize.CERTIFIED: 1}
    by = list(dict.fromkeys(str(row.get("ilp_by") or "") for row in sizes))
    series = []
    for key in dict.fromkeys(key for row in sizes for key in row if key not in ("entities", "sentences", "ilp_by")):
        for solver in by if key == BySize.ILP else ("",):
            mine = [row for row in sizes if key != BySize.ILP or str(row.get("ilp_by") or "") == solver]
            ilp = f"ILP ({solver})" if solver else "ILP"
            name = ilp if key == BySize.ILP else "greedy search" if key == BySize.GREEDY else key
            points = []
            for row in mine:
                said = f"{name}, {{x:.0f}} entities: {{y:,.1f}} µs (mean of {row.get('sentences')} sentences)"
                points.append(point(row.get("entities"), row.get(key), said))
            series.append(Series(name, points, colours.get(key, 4), hollow=bool(solver) and solver != by[0]))
    y = Axis("µs per sentence, inference (log)", "log")
    caption = "Inference from given costs, models built before. Large sentences are few."
    return figure("Time against size", Axis("entities in the sentence"), y, series, caption)


def distinct_outputs(found: Entry) -> str:
    """How few distinct outputs occur."""
    curve: Sequence[Entry] = found.get("curve") or ()
    distinct = [point(row.get("n"), row.get("distinct"), "{x:,.0f} sentences: {y:,.0f}") for row in curve]
    new = [point(row.get("n"), row.get("n"), "{x:,.0f} sentences") for row in curve]
    said = [
        f"{found[key]:,} {what}"
        for key, what in (("distinct", "distinct outputs"), ("for_half", "cover half"), ("for_ninety", "cover 90%"))
        if isinstance(found.get(key), int)
    ]
    return figure(
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
    """Returns a line for each model and beam: models differ in colour, beams in their marks."""
    colours: Mapping[str, int] = {Model.PAPER_SPEEDUP: 2, Model.SPEEDUP: 4}
    series = []
    for model, beam in dict.fromkeys((str(row.get("model") or Model.SPEEDUP), row.get("beam")) for row in rows):
        mine = [row for row in rows if (str(row.get("model") or Model.SPEEDUP), row.get("beam")) == (model, beam)]
        name = row_name({"model": model, "beam": beam})
        said = name.replace("{", "{{").replace("}", "}}")
        points = [point(row.get(x), row.get(y), f"{said} at {{x:,.4g}}: {{y:.3f}}") for row in mine]
        series.append(Series(name, points, colours.get(model, 1), hollow=beam == WIDTHS[0], dashed=beam == WIDTHS[0]))
    return series

"""The results of a comparison as a page: what matters first, a table, figures, and texts with their labels.

Nothing is measured here, and nothing is asked of the task: all that is shown stands in `results.json`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape as escape_markup
from rich.table import Table

from hasten.support.files import write_whole
from hasten.tasks.evaluation.charts import Axis, Series, figure, how_proved, point
from hasten.tasks.evaluation.page import (
    CERTIFIED,
    COMMON,
    GREY,
    ILP,
    MEASURED,
    Column,
    Entry,
    Facts,
    counted,
    fixed,
    head,
    how_sure,
    how_timed,
    key_of,
    label_colours,
    meanings,
    number,
    page,
    percent,
    ratio,
    results_table,
    score_of,
    solvers_in_words,
    solvers_of,
    text,
    what_was_run,
    whole,
)

KNOWN: Facts = {
    **COMMON,
    "n_train": ("labelled texts to train on", whole),
    "n_test": ("labelled texts to test on", whole),
    "variables": ("variables of all test texts", whole),
    "max_variables": ("variables of a test text, at most", whole),
}
COLOURS = {ILP: 5, CERTIFIED: 1, "greedy search": 2, "beam search": 3, "speedup": 4}


def write_report(results: Entry, path: Path) -> None:
    """Writes the page, whole or not at all."""
    write_whole(Path(path), render(results).encode("utf-8", "replace"))


def render(results: Entry) -> str:
    """Returns the page for what `Comparison.run` returned."""
    about: Entry = results.get("about") or {}
    rows: list[Entry] = list(results.get("rows") or ())
    title = str(results.get("title") or "A comparison")
    scores = [str(name) for name in results.get("scores") or ()]
    sections = (
        ("Table", table(rows, scores, about)),
        ("Figures", figures(results, rows)),
        ("Texts", texts(results.get("examples") or ())),
        ("What was run", what_was_run(about, KNOWN)),
    )
    return page(f"hasten: {title}", headline(title, rows, scores, about), sections, about)


def find(rows: Sequence[Entry], model: str) -> Entry:
    """Returns the first row of a model; an empty one if there is none."""
    return next((row for row in rows if row.get("model") == model), {})


def baselines_of(rows: Sequence[Entry]) -> list[Entry]:
    """Returns the rows of the task's own baselines."""
    return [row for row in rows if row.get("model") not in COLOURS]


def headline(title: str, rows: Sequence[Entry], scores: Sequence[str], about: Entry) -> str:
    """The few numbers that matter, and on what they were measured."""
    ilp, certified, n_test = find(rows, ILP), find(rows, CERTIFIED), about.get("n_test")
    tiles = [
        (fixed(certified.get("exact_match"), 3), "exact match", "certified answers that are the ILP’s"),
        (
            whole(certified.get("solver_calls")),
            "solver calls",
            f"for {counted(n_test, 'text')}: {percent(certified.get('proved'))} proved without",
        ),
        (ratio(ilp, certified, "inference_ms"), "faster inference", f"certified, against {solvers_of(about)}"),
        (ratio(ilp, certified, "time_ms"), "faster end to end", "the same, with feature extraction"),
        *(_of_baseline(row, certified) for row in baselines_of(rows)[:1]),
        *((fixed(certified.get(f"{name} gold"), 3), text(name), "against gold labels") for name in scores[-1:]),
    ]
    lead = (
        f"{text(about.get('source') or 'A corpus without a name')}: a model trained on "
        f"{counted(about.get('n_train'), 'labelled text')}, tested on {whole(n_test)}. "
        f"{how_timed(about)}"
    )
    return head(title, lead, tiles, about)


def _of_baseline(baseline: Entry, certified: Entry) -> tuple[str, str, str]:
    """How the task's own method compares: its speed where it is exact, else how often it is."""
    name, exact = text(baseline.get("model")), number(baseline.get("exact_match"))
    if exact is not None and exact < 1.0:
        return fixed(exact, 3), f"exact match of {name}", "the task’s own method, which is not exact here"
    return ratio(baseline, certified, "inference_ms"), f"as fast as {name}", "certified, inference"


def table(rows: Sequence[Entry], scores: Sequence[str], about: Entry) -> str:
    """Every row, and what its columns say."""
    if not rows:
        return '<p class="empty">No rows were measured.</p>'
    ilp = find(rows, ILP)
    columns = [
        *(
            Column(
                f"Against {short}",
                escape(name),
                f"{escape(name[:1].upper() + name[1:])} against {long}.",
                score_of(f"{name} {key}"),
            )
            for short, long, key in (("gold", "gold labels", "gold"), ("ILP", "the ILP’s answers", "ilp"))
            for name in scores
        ),
        *(column for column in MEASURED if column.group != "Costs"),  # all are computed
    ]
    gold = "Gold labels may break the rules; then no valid answer has them all."
    return f"<p>{how_sure(about, 'text')} {gold}</p>{results_table(rows, columns, ilp)}{meanings(columns)}"


def figures(results: Entry, rows: Sequence[Entry]) -> str:
    """Time against accuracy, time against size, and how answers were proved."""
    shown = [time_against_exactness(rows), time_by_size(results.get("by_size") or ())]
    proofs: Mapping[str, Any] = results.get("proofs") or {}
    if any(proofs.values()):
        shown.append(how_proved([{"sentences": "test", **proofs}]))
    return f'<div class="figures">{"".join(shown)}</div>'


def time_against_exactness(rows: Sequence[Entry]) -> str:
    """Every row: how long it takes, and how often it has the ILP's answer."""
    series = []
    for row in rows:
        model, beam = str(row.get("model")), number(row.get("beam"))
        name = model if beam is None else f"{model} b={beam:.0f}"
        said = name.replace("{", "{{").replace("}", "}}")
        at = point(row.get("inference_ms"), row.get("exact_match"), f"{said}, {{x:.2f}} ms, exact {{y:.3f}}", name)
        series.append(Series(name, [at], COLOURS.get(model, 6), line=False))
    x, y = Axis("CPU ms of the whole test set, inference (log)", "log"), Axis("exact match with the ILP", "near one")
    return figure("Time against exactness", x, y, series, "Up and to the left is better.")


def time_by_size(sizes: Sequence[Entry]) -> str:
    """How long a text takes alone, over its number of variables."""
    series = []
    for key in dict.fromkeys(key for row in sizes for key in row if key not in ("variables", "texts")):
        said = str(key).replace("{", "{{").replace("}", "}}")
        points = [
            point(row.get("variables"), row.get(key), f"{said}, {{x:.0f}} variables: {{y:,.1f}} µs") for row in sizes
        ]
        series.append(Series(str(key), points, COLOURS.get(str(key), 6)))
    x, y = Axis("variables of the text"), Axis("µs per text, one by one (log)", "log")
    return figure("Time against size", x, y, series, "Median time of texts given one at a time, costs computed before.")


def texts(examples: Sequence[Entry]) -> str:
    """Test texts with the labels that each method gives them."""
    if not examples:
        return '<p class="empty">No short text on which the methods differ was kept.</p>'
    null_labels = {str(label) for each in examples for label in each.get("null_labels") or ()}
    known = [
        str(label)
        for each in examples
        for labels in (each.get("labels") or {}).values()
        for label in labels
        if label is not None
    ]
    colours = label_colours(sorted(set(known)), null_labels)
    loud = {name: colour for name, colour in colours.items() if name not in null_labels}
    return (
        "<p>Test texts on which greedy search goes wrong. What differs from the ILP’s answer is orange.</p>"
        + key_of(loud)
        + "".join(_text(each, colours, null_labels) for each in examples)
    )


def _text(example: Entry, colours: Mapping[str, str], null_labels: set[str]) -> str:
    names = [str(name) for name in example.get("names") or ()]
    labels: Mapping[str, Sequence[str | None]] = example.get("labels") or {}
    reference = labels.get(ILP) or [None] * len(names)
    lines = []
    for who, mine in labels.items():
        chips = [
            _chip(name, label, theirs, colours, null_labels)
            for name, label, theirs in zip(names, mine, reference, strict=False)
        ]
        broken = dict.fromkeys(str(each) for each in (example.get("violations") or {}).get(who) or ())
        said = "".join(f'<li class="warn">{escape(each)}</li>' for each in broken)
        lines.append(
            f'<div class="panel"><h4>{escape(who)}</h4><p class="chips">{" ".join(chips)}</p>'
            f"{f'<ul>{said}</ul>' if said else ''}</div>"
        )
    return f'<article class="sentence"><div class="panels two">{"".join(lines)}</div></article>'


def _chip(name: str, label: str | None, theirs: str | None, colours: Mapping[str, str], null_labels: set[str]) -> str:
    """Returns a variable with its label, marked where the reference has another."""
    other = " other" if label != theirs else ""
    if label in null_labels and not other:
        return f'<span class="chip quiet">{escape(name)}</span>'
    shown = "no answer" if label is None else label
    tint = colours.get(shown, GREY)
    return f'<span class="chip{other}" style="--tint:{tint}">{escape(name)}<small>{escape(shown)}</small></span>'


CAPTION = (
    "b: beam width; valid, exact: share of texts that break no constraint, that have the ILP's answer; CPU ms: "
    "inference on the whole test set in one thread, costs given, all rows timed in turns; times faster than the ILP."
)


def show_comparison(results: Entry, console: Console) -> None:
    """Prints every row of a comparison."""
    about, rows, scores = results["about"], results["rows"], [str(name) for name in results["scores"]]
    what = counted(about["n_test"], "test text")
    console.print(f"{what}, ILP by {solvers_in_words(about)}", style="bold", highlight=False, markup=False)
    table = _table(
        "model", "b", *(f"{name}\nto gold" for name in scores), "valid", "exact", "proved", "CPU\nms", "times\nfaster"
    )
    ilp = number(find(rows, ILP).get("inference_ms"))
    for row in rows:
        took = number(row.get("inference_ms"))
        table.add_row(
            escape_markup(str(row["model"])),
            "" if row.get("beam") is None else str(row["beam"]),
            *(_with_interval(row, f"{name} gold") for name in scores),
            *(f"{row[key]:.3f}" for key in ("validity", "exact_match", "proved")),
            "" if took is None else _short(took),
            "" if not took or ilp is None else _short(ilp / took),
            style="bold" if row["model"] == CERTIFIED else None,
        )
    console.print(table)
    console.print(CAPTION, style="dim", highlight=False)


def _table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    for n, name in enumerate(columns):
        table.add_column(name, justify="right" if n else "left", no_wrap=True, vertical="bottom")
    return table


def _with_interval(row: Entry, key: str) -> str:
    low, high = (row.get("interval") or {}).get(key) or (row[key], row[key])
    return f" {row[key]:.3f} {low:.2f}–{high:.2f}".replace(" 0.", " .").replace("–0.", "–.").strip()


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}"

"""The results of a comparison as a page and in the terminal. All that is shown stands in `results.json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console

from hasten.support.words import Html, join, tag
from hasten.tasks.evaluation import page
from hasten.tasks.evaluation.charts import Axis, Point, Series, figure, how_proved
from hasten.tasks.evaluation.page import empty, find, name_of
from hasten.tasks.evaluation.tables import (
    Column,
    Entry,
    Line,
    column,
    counted,
    fixed,
    html_table,
    limits,
    meanings,
    number,
    percent,
    score,
    short,
    terminal_table,
    text,
    times,
    whole,
)

COLOURS = {"ILP": 5, "certified": 1, "greedy search": 2, "beam search": 3, "beam 2": 3, "speedup": 4}
CAPTION = (
    "b: beam width; valid, exact: share of texts that break no constraint, that have the ILP's answer; CPU ms: "
    "inference on the whole test set in one thread, costs given, all rows timed in turns; times faster than the ILP."
)


def render(results: Entry) -> str:
    """Returns the page for the results of `Comparison.run`."""
    about: Entry = results.get("about") or {}
    rows = page.with_ratios(results.get("rows") or ())
    scores = [str(name) for name in results.get("scores") or ()]
    lead = (
        f"{text(about.get('source') or 'A corpus without a name')}: a model trained on "
        f"{counted(about.get('n_train'), 'labelled text')}, tested on {whole(about.get('n_test'))}. "
        f"{page.how_timed(about)}"
    )
    sections = {
        "Speed and accuracy": _figures(results, rows),
        "Texts": _texts(results.get("examples") or ()),
        "Table": _table(rows, scores, about),
        "What was run": page.what_was_run(about),
    }
    title = str(results.get("title") or "A comparison")
    return page.page(title, lead, _tiles(rows, scores, about), sections, about)


def _tiles(rows: Sequence[Entry], scores: Sequence[str], about: Entry) -> Iterator[page.Tile]:
    certified, n_test = find(rows, "certified"), counted(about.get("n_test"), "text")
    yield fixed(certified.get("exact_match")), "exact match", "certified answers that are the ILP’s"
    proved = f"for {n_test}: {percent(certified.get('proved'))} proved without"
    yield whole(certified.get("solver_calls")), "solver calls", proved
    faster, against = times(certified.get("times_faster_inference")), f"certified, against {page.solvers_of(about)}"
    yield faster, "faster inference", against
    yield times(certified.get("times_faster")), "faster end to end", "the same, with feature extraction"
    for baseline in [row for row in rows if row.get("model") not in COLOURS][:1]:  # the task's own
        name, exact = text(baseline.get("model")), number(baseline.get("exact_match"))
        if exact is not None and exact < 1.0:
            yield fixed(exact), f"exact match of {name}", "the task’s own method, which is not exact here"
        else:
            yield times(page.ratio(baseline, certified, "inference_ms")), f"as fast as {name}", "certified, inference"
    for name in scores[-1:]:
        yield fixed(certified.get(f"{name} gold")), name, "against gold labels"


def _lines(rows: Sequence[Entry]) -> list[Line]:
    return [(row, "best" if row.get("model") == "certified" else "") for row in rows]


def _table(rows: Sequence[Entry], scores: Sequence[str], about: Entry) -> Html:
    if not rows:
        return empty("No rows were measured.")
    columns = [
        score(name, f"{name} {key}", group=f"Against {against}",
              meaning=f"{name[:1].upper()}{name[1:]} against {theirs}.")
        for against, theirs, key in (("gold", "gold labels", "gold"), ("ILP", "the ILP’s answers", "ilp"))
        for name in scores
    ]  # fmt: skip
    columns += [column for column in page.MEASURED if column.group != "Costs"]  # all are computed
    gold = "Gold labels may break the rules; then no valid answer has them all."
    shown = html_table([page.model_column(), column("beam", "beam", whole), *columns], _lines(rows))
    return join(tag("p", f"{page.how_sure(about, 'text')} {gold}"), shown, meanings(columns))


def _figures(results: Entry, rows: Sequence[Entry]) -> Html:
    """Returns time against accuracy, time against size, and how answers were proved."""
    accuracy = []
    for row in rows:
        point = Point(row.get("inference_ms"), row.get("exact_match"), name_of(row))
        accuracy.append(Series(name_of(row), [point], COLOURS.get(str(row.get("model")), 6), line=False))
    ms, exact = Axis("CPU ms of the whole test set, inference", "log"), Axis("exact match with the ILP", "near one")
    shown = [
        figure("Time against exactness", ms, exact, accuracy, "Up and to the left is better."),
        time_by_size(results.get("by_size") or (), "variables"),
    ]
    proofs: Mapping[str, object] = results.get("proofs") or {}
    if any(proofs.values()):
        shown.append(how_proved({"test texts": proofs}))
    return tag("div", shown, class_="figures")


def time_by_size(sizes: Sequence[Entry], unit: str) -> Html:
    """Returns how time grows with the size of inputs; the ILP has a line for each solver that answered."""
    solvers = list(dict.fromkeys(row.get("ilp_by") for row in sizes))
    series = []
    for key in dict.fromkeys(key for row in sizes for key in row if key not in (unit, "sentences", "ilp_by")):
        for solver in solvers if key == "ilp" else [None]:
            mine = [row for row in sizes if key != "ilp" or row.get("ilp_by") == solver]
            points = [Point(row.get(unit), row.get(key)) for row in mine]
            name = {"ilp": f"ILP ({solver})" if solver else "ILP", "search": "greedy search"}.get(key, key)
            colour = COLOURS.get("ILP" if key == "ilp" else name, 6)
            series.append(Series(name, points, colour, hollow=bool(solver) and solver != solvers[0]))
    x, y = Axis(f"{unit} of an input"), Axis("µs per input, inference", "log")
    caption = "Inference from given costs in batches, models built before. Large inputs are few."
    return figure("Time against size", x, y, series, caption)


def _texts(examples: Sequence[Entry]) -> Html:
    """Returns test texts with the labels that each method gives them."""
    if not examples:
        return empty("No short text on which the methods differ was kept.")
    null_labels = {str(label) for each in examples for label in each.get("null_labels") or ()}
    every = {label for each in examples for labels in (each.get("labels") or {}).values() for label in labels}
    colours = page.label_colours(sorted(str(label) for label in every if label is not None), null_labels)
    articles = []
    for example in examples:
        labels: Mapping[str, Sequence[str | None]] = example.get("labels") or {}
        names = [str(name) for name in example.get("names") or ()]
        reference = labels.get("ILP") or [None] * len(names)
        panels = []
        for who, mine in labels.items():
            chips: list[object] = []
            for name, label, theirs in zip(names, mine, reference, strict=False):
                quiet, shown = label in null_labels and label == theirs, "no answer" if label is None else str(label)
                kind = "chip quiet" if quiet else "chip" if label == theirs else "chip other"
                tint = f"--tint:{colours.get(shown, page.GREY)}"
                chips += [tag("span", name, None if quiet else tag("small", shown), class_=kind, style=tint), " "]
            broken = dict.fromkeys(str(each) for each in (example.get("violations") or {}).get(who) or ())
            said = tag("ul", [tag("li", each, class_="warn") for each in broken]) if broken else None
            panels.append(tag("div", tag("h4", who), tag("p", chips, class_="chips"), said, class_="panel"))
        articles.append(tag("article", tag("div", panels, class_="panels two"), class_="sentence"))
    return join(
        tag("p", "Test texts on which greedy search goes wrong. What differs from the ILP’s answer is orange."),
        page.key_of({name: colour for name, colour in colours.items() if name not in null_labels}),
        articles,
    )


def show_comparison(results: dict[str, Any], console: Console) -> None:
    """Prints every row of a comparison."""
    about, rows = results["about"], page.with_ratios(results["rows"])
    what = counted(about["n_test"], "test text")
    console.print(f"{what}, ILP by {page.solvers_of(about)}", style="bold", highlight=False, markup=False)

    def with_interval(name: str) -> Column:  # side by side, without the zeros before their points
        def cell(row: Entry) -> str:
            shown = f" {fixed(row.get(f'{name} gold'))} {limits(row, f'{name} gold')}"
            return shown.replace(" 0.", " .").replace("–0.", "–.").strip()

        return Column(f"{name}\nto gold", cell)

    columns = [
        column("model", "model"),
        column("b", "beam", whole),
        *(with_interval(str(name)) for name in results["scores"]),
        column("valid", "validity", fixed),
        column("exact", "exact_match", fixed),
        column("proved", "proved", fixed),
        column("CPU\nms", "inference_ms", short),
        column("times\nfaster", "times_faster_inference", short),
    ]
    console.print(terminal_table(columns, _lines(rows)))
    console.print(CAPTION, style="dim", highlight=False)

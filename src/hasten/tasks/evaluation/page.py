"""Results as text: numbers, tables for a page and the terminal, and the layout of every page.

A table is plain rows, and columns that say how a cell of a row is written. Missing numbers are a dash. A page has a
title, the few numbers that matter, sections, and what was run; no scripts, no network. `page.html` is its skeleton and
`page.css` its style: on paper, on a phone, by day and by night; in hues that the colour-blind can tell apart.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from rich.markup import escape as escape_markup
from rich.table import Table

from hasten.support.files import write_whole
from hasten.support.words import Html, join, tag

Entry = Mapping[str, Any]  # one object of results.json
Cell = Callable[[Entry], str]
Line = tuple[Entry, str]  # a row, and how it stands out: "", "best", or "paper" for a figure that is not ours

DASH = "–"


def number(value: object) -> float | None:
    """Returns a finite number, or None."""
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if known else None  # type: ignore[arg-type]


def text(value: object) -> str:
    """Returns any value as text."""
    return DASH if value is None or value == "" else str(value)


def fixed(value: object, digits: int = 3) -> str:
    """Returns a number with so many digits."""
    known = number(value)
    return DASH if known is None else f"{known:,.{digits}f}"


def whole(value: object) -> str:
    """Returns a count."""
    return fixed(value, 0)


def percent(value: object, digits: int = 1) -> str:
    """Returns a share as a percentage."""
    known = number(value)
    return DASH if known is None else f"{100 * known:.{digits}f}%"


def short(value: object) -> str:
    """Returns a number with as many digits as its size needs: a time, or a ratio."""
    known = number(value) or 0.0
    return fixed(value, 0 if known >= 100 else 1 if known >= 2 else 2)


def times(value: object) -> str:
    """Returns how many times."""
    return DASH if number(value) is None else f"{short(value)}×"


def counted(n: object, thing: str) -> str:
    """Returns how many things there are, as one says it."""
    return f"{whole(n)} {thing}{'' if number(n) == 1 else 's'}"


def any_value(value: object) -> str:
    """Returns a value of any type as text."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {any_value(each)}" for name, each in value.items()) or DASH
    if isinstance(value, list | tuple):
        return ", ".join(text(each) for each in value) or DASH
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return DASH if number(value) is None else f"{value:,.4g}" if isinstance(value, float) else f"{value:,}"
    return text(value)


def limits(row: Entry, key: str) -> str:
    """Returns the interval of a score, if there is one."""
    known = [number(limit) for limit in (row.get("interval") or row.get("intervals") or {}).get(key) or ()]
    return f"{known[0]:.2f}–{known[1]:.2f}" if len(known) == 2 and None not in known else ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its head, the cells, what stands in small print below them, its group, and what it means."""

    head: str
    cell: Cell
    below: Cell = lambda row: ""
    group: str = ""
    meaning: str = ""


def column(head: str, key: str, write: Callable[[object], str] = text, **more: Any) -> Column:
    """Returns the column of one key of the rows."""
    return Column(head, lambda row: write(row.get(key)), **more)


def score(head: str, key: str, **more: Any) -> Column:
    """Returns the column of a score, its deviation over seeds and its interval below."""

    def below(row: Entry) -> str:
        std = number((row.get("std") or {}).get(key))
        return "\n".join(filter(None, ["" if std is None else f"± {std:.3f}", limits(row, key)]))

    return Column(head, lambda row: fixed(row.get(key)), below, **more)


def html_table(columns: Sequence[Column], lines: Sequence[Line], kind: str = "") -> Html:
    """Returns a table for a page, without columns that would be empty; the first column names the rows."""
    first, *others = columns
    others = [each for each in others if any(each.cell(row) not in ("", DASH) for row, _ in lines)]
    groups = Counter(each.group for each in (first, *others))  # in their order
    above = [tag("th", group, class_="group" if group else "", colspan=n) for group, n in groups.items()]
    heads = [tag("th", first.head, title=first.meaning, class_="name")]
    heads += [tag("th", each.head, title=each.meaning) for each in others]
    body, last = [], ("", "")
    for row, stands_out in lines:
        name, note = first.cell(row), first.below(row)
        small = tag("span", note, class_="note") if note and (name, note) != last else None  # said once
        cells = [tag("th", name, small, class_="name", scope="row")]
        for each in others:
            written, below = each.cell(row), each.below(row)
            small = tag("span", below, class_="below") if below else None
            cells.append(tag("td", written, small, class_="dash" if written == DASH else ""))
        body.append(tag("tr", cells, class_=stands_out))
        last = name, note
    head = tag("thead", tag("tr", above) if len(groups) > 1 else None, tag("tr", heads))
    return tag("div", tag("table", head, tag("tbody", body), class_=kind), class_="scroll")


def meanings(columns: Sequence[Column]) -> Html:
    """Returns what the columns mean."""
    said = [(", ".join(filter(None, [each.group, each.head])), each.meaning) for each in columns if each.meaning]
    each = [tag("div", tag("dt", name), tag("dd", meaning)) for name, meaning in said]
    return join(tag("h3", "What the columns say"), tag("dl", each, class_="columns"))


def terminal_table(columns: Sequence[Column], lines: Sequence[Line], title: str = "") -> Table:
    """Returns a table for the terminal; small print is left out."""
    table = Table(title=escape_markup(title) or None, title_justify="left", title_style="italic", header_style="bold")
    table.box, table.padding, table.pad_edge = None, (0, 1, 0, 0), False
    for n, each in enumerate(columns):
        table.add_column(each.head, justify="right" if n else "left", no_wrap=True, vertical="bottom")
    styles = {"best": "bold", "paper": "dim italic"}
    for row, kind in lines:
        cells = [each.cell(row) for each in columns]
        table.add_row(*(escape_markup("" if cell == DASH else cell) for cell in cells), style=styles.get(kind))
    return table


HUES = ("var(--c1)", "var(--c3)", "var(--c4)", "var(--c6)")  # of the page's style; --c2 warns
GREY = "var(--c5)"  # for labels that say nothing

SYNTHETIC = tag(
    "p", tag("strong", "Synthetic data."), " These sentences were generated by a program. They show how the methods ",
    "compare on them; they say nothing about real text.", class_="synthetic",
)  # fmt: skip
Tile = tuple[str, str, str]  # a number, what it is, and how it was measured


def write_page(page: str, path: Path) -> None:
    """Writes a page, whole or not at all."""
    write_whole(Path(path), page.encode("utf-8", "replace"))


def page(
    title: str, lead: str, tiles: Iterable[Tile], sections: Mapping[str, Html], about: Entry, data: str = "results.json"
) -> str:
    """Returns a page; sections without content are left out. `data` is the file that it was made from."""
    folder = files("hasten.tasks.evaluation")
    skeleton, style = (folder.joinpath(name).read_text(encoding="utf-8") for name in ("page.html", "page.css"))
    keys = {name: name.lower().replace(" ", "-") for name, body in sections.items() if body}
    synthetic = bool(about.get("synthetic"))
    return Template(skeleton).substitute(
        title=join(f"hasten: {title}{', synthetic' if synthetic else ''}"),
        style=style,
        heading=join(title),
        warning=SYNTHETIC if synthetic else "",
        lead=join(lead),
        tiles=join([
            tag("li", tag("b", value), tag("span", what, class_="what"), tag("span", how, class_="how"))
            for value, what, how in tiles
        ]),
        links=join([tag("a", name, href=f"#{key}") for name, key in keys.items()]),
        sections=join([tag("section", tag("h2", name), sections[name], id=key) for name, key in keys.items()]),
        version=join(text(about.get("hasten"))),
        data=join(data),
    )  # fmt: skip


def empty(words: str) -> Html:
    """Returns a sentence in place of something that was not measured."""
    return tag("p", words, class_="empty")


def label_colours(labels: Iterable[str], null_labels: Container[str] = ()) -> dict[str, str]:
    """Returns a colour of its own for every label; grey for those that say nothing.

    Four have the hues of the figures. More have hues evenly spread, but for orange, which warns; every other one is
    darker, so that neighbours differ.
    """
    known = list(dict.fromkeys(labels))
    named = [name for name in known if name not in null_labels]
    hues = [round((50 + 320 * i / len(named)) % 360, 1) for i in range(len(named))]
    spread = [f"hsl({hue} 65% var(--{'deep' if i % 2 else 'light'}))" for i, hue in enumerate(hues)]
    chosen = dict(zip(named, HUES if len(named) <= len(HUES) else spread, strict=False))
    return chosen | {name: GREY for name in known if name in null_labels}


def key_of(colours: Mapping[str, str]) -> Html:
    """Returns a legend of labels and their colours."""
    each = [tag("li", tag("span", class_="swatch", style=f"--tint:{tint}"), name) for name, tint in colours.items()]
    return tag("ul", each, class_="legend")


def what_was_run(about: Entry) -> Html:
    """Returns everything that `about` says, by its keys."""
    named = [(key.removeprefix("n_").replace("_", " "), any_value(value)) for key, value in about.items()]
    return tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in named], class_="about")


def _spread(row: Entry) -> str:
    """Returns the standard deviation of a row's time, with the digits of its mean."""
    mean, std = number(row.get("time_ms")), number(row.get("time_ms_std"))
    return "" if std is None or mean is None else f"± {std:,.{0 if mean >= 100 else 1 if mean >= 2 else 2}f}"


SENTENCES, TIME, FASTER = "Sentences", "CPU ms", "Times faster"
MEASURED: tuple[Column, ...] = (  # columns of every row, whatever the task
    column("valid", "validity", fixed, group=SENTENCES, meaning="Share whose answer breaks no constraint."),
    column("exact", "exact_match", fixed, group=SENTENCES,
           meaning="Share with the ILP’s answer, or a valid one that costs the same."),
    column("proved", "proved", fixed, group=SENTENCES,
           meaning="Share proved optimal without the solver. Only certified tries."),
    column("solver", "solver_calls", whole, group=SENTENCES,
           meaning="Number of sentences for which the ILP solver was called."),
    column("share", "costs_computed", lambda value: percent(value, 0), group="Costs",
           meaning="Share of variables whose costs (features and scores) were computed."),
    column("total", "time_ms", short, below=_spread, group=TIME,
           meaning="Features and inference for the whole test set: mean ± standard deviation of the runs."),
    column("features", "features_ms", short, group=TIME,
           meaning="Feature extraction and scoring alone; no figure where costs are computed on demand."),
    column("inference", "inference_ms", short, group=TIME, meaning="Inference alone, costs given."),
    column("overall", "times_faster", times, group=FASTER, meaning="The ILP’s total time over this row’s."),
    column("inference", "times_faster_inference", times, group=FASTER,
           meaning="The ILP’s inference time over this row’s."),
)  # fmt: skip


def find(rows: Iterable[Entry], model: str, beam: int | None = None) -> Entry:
    """Returns the first row of a model that computes every cost; an empty one if there is none."""
    wanted = model, beam, None
    return next((row for row in rows if (row.get("model"), row.get("beam"), row.get("theta")) == wanted), {})


def name_of(row: Entry) -> str:
    """Returns the model of a row, with its beam width."""
    beam = number(row.get("beam"))
    return text(row.get("model")) if beam is None else f"{text(row.get('model'))} b={beam:.0f}"


def with_ratios(rows: Iterable[Entry]) -> list[Entry]:
    """Returns rows with the number of times that they are faster than the ILP's row."""
    rows = list(rows)
    keys, ilp = {"times_faster": "time_ms", "times_faster_inference": "inference_ms"}, find(rows, "ILP")
    return [{**row, **{name: ratio(ilp, row, key) for name, key in keys.items()}} for row in rows]


def ratio(slow: Entry, fast: Entry, key: str) -> float | None:
    """Returns how many times faster one row is than another."""
    above, below = number(slow.get(key)), number(fast.get(key))
    return None if above is None or below is None or below <= 0.0 else above / below


def model_column() -> Column:
    """Returns the column that names the rows; in small print a note."""

    def note(row: Entry) -> str:
        built = number(row.get("building_ms"))
        made = "" if built is None else f"its models made before, in {short(built)} ms"
        return "; ".join(filter(None, [str(row.get("note") or ""), made]))

    return Column("model", lambda row: text(row.get("model")), note)


def tiles(rows: Sequence[Entry], certified: Entry, about: Entry, thing: str) -> Iterable[Tile]:
    """Returns what certified answers are, and how much faster than the ILP's."""
    ilp, proved, n = find(rows, "ILP"), number(certified.get("proved")), number(about.get("n_test"))
    yield fixed(certified.get("exact_match")), "exact match", "certified answers that are the ILP’s"
    said = f"for {counted(n, thing)}: {percent(proved)} proved without"
    yield whole(certified.get("solver_calls")), "solver calls", said
    faster = times(ratio(ilp, certified, "inference_ms"))
    yield faster, "faster inference", f"certified, against {solvers_of(about)}, costs given"
    yield times(ratio(ilp, certified, "time_ms")), "faster end to end", "the same, with feature extraction"


def solvers_of(about: Entry) -> str:
    """Returns the ILP solver, and how many sentences another had to answer in its place."""
    answered = about.get("answered_by") or {about.get("solver"): about.get("n_test")}
    names = [text(name) if len(answered) < 2 else f"{name} ({counted(n, 'sentence')})" for name, n in answered.items()]
    return " and ".join(names)


def how_sure(about: Entry, thing: str, more: str = "") -> str:
    """Returns what the deviations and the intervals of a table are."""
    seeds = number(about.get("seeds")) or 1
    means = f"Figures are means over {counted(seeds, 'seed')}{more}, ± their standard deviation. " if seeds > 1 else ""
    return (
        f"{means}Below each score is its 95% interval: {thing}s drawn anew with replacement, 1,000 times. All rows "
        f"were timed in turns, each {thing} once in a fresh order."
    )


def how_timed(about: Entry) -> str:
    """Returns how often all was done, and what the times are of."""
    seeds, runs = number(about.get("seeds")) or 1, number(about.get("runs"))
    again = f"All of it was done {whole(seeds)} times, with other seeds each time. " if seeds > 1 else ""
    mean = "of one run" if runs == 1 else f"the mean of {whole(runs)} runs"
    return f"{again}Times are CPU time of the whole test set in one thread, {mean}."

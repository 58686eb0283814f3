"""What pages are made of: numbers as text, colours of labels, tables, and a page without scripts or network.

`page.css` is how it looks: on paper, on a phone, by day and by night; in hues that the colour-blind can tell apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any

Entry = Mapping[str, Any]  # one object of results.json

ILP, CERTIFIED = "ILP", "certified"  # models of rows that are compared with, and that stand out
BEST = ' class="best"'
DASH = '<span class="dash">–</span>'


def text(value: object) -> str:
    """Returns any value, escaped; a dash for None."""
    return DASH if value is None or value == "" else escape(str(value))


def number(value: object) -> float | None:
    """Returns a finite number, or None."""
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if known else None  # type: ignore[arg-type]


def fixed(value: object, digits: int) -> str:
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


def spread(row: Entry) -> str:
    """Returns the mean of the time and its standard deviation."""
    mean, std = number(row.get("time_ms")), number(row.get("time_ms_std"))
    if mean is None:
        return DASH
    digits = 0 if mean >= 100 else 1 if mean >= 10 else 2
    more = "" if std is None else f' <span class="std">± {std:,.{digits}f}</span>'
    return f"{mean:,.{digits}f}{more}"


def scored(row: Entry, key: str) -> str:
    """Returns an F1 and, below it, its standard deviation over seeds, if there are several, and its interval."""
    mean = fixed(row.get(key), 3)
    std = number((row.get("std") or {}).get(key))
    limits = [number(limit) for limit in (row.get("interval") or {}).get(key) or ()]
    more = "" if std is None else f'<span class="below">± {std:.3f}</span>'
    known = len(limits) == 2 and None not in limits
    below = f'<span class="below">{limits[0]:.2f}–{limits[1]:.2f}</span>' if known else ""
    return f"{mean}{more}{below}"


def counted(n: object, thing: str) -> str:
    """Returns how many things there are, as one says it."""
    return f"{whole(n)} {thing}" if number(n) == 1 else f"{whole(n)} {thing}s"


def solvers_of(about: Entry) -> str:
    """Returns who answered for the ILP: the solver, and how many sentences another had to answer in its place."""
    answered = about.get("answered_by") or {}
    if len(answered) < 2:
        return text(next(iter(answered), about.get("solver")))
    return " and ".join(f"{text(name)} ({whole(n)} sentences)" for name, n in answered.items())


def solvers_in_words(about: Entry) -> str:
    """Returns who answered for the ILP, as plain text."""
    answered = about.get("answered_by") or {about.get("solver"): about.get("n_test")}
    return " and ".join(f"{name} ({n:,.0f})" if len(answered) > 1 else str(name) for name, n in answered.items())


def ratio(slow: Entry, fast: Entry, key: str) -> str:
    """Returns how many times faster one row is than another."""
    above, below = number(slow.get(key)), number(fast.get(key))
    if above is None or below is None or below <= 0.0:
        return DASH
    return times(above / below)


def times(value: object) -> str:
    """Returns how many times."""
    known = number(value)
    if known is None:
        return DASH
    return f"{known:,.0f}×" if known >= 100 else f"{known:.1f}×" if known >= 2 else f"{known:.2f}×"


HUES = ("var(--c1)", "var(--c3)", "var(--c4)", "var(--c6)")  # of the page's style; --c2 warns
GREY = "var(--c5)"  # for labels that say nothing


def label_colours(labels: Iterable[str], null_labels: Container[str] = ()) -> dict[str, str]:
    """Returns a colour of its own for every label; grey for those that say nothing.

    Four have the hues of the figures. More have hues evenly spread, but for orange, which warns; every other one is
    darker, so that neighbours differ.
    """
    known = list(dict.fromkeys(labels))
    named = [name for name in known if name not in null_labels]
    if len(named) <= len(HUES):
        chosen = dict(zip(named, HUES, strict=False))
    else:
        hues = [round((50 + 320 * i / len(named)) % 360, 1) for i in range(len(named))]
        chosen = {
            name: f"hsl({hue} 65% var(--{'deep' if i % 2 else 'light'}))"
            for i, (name, hue) in enumerate(zip(named, hues, strict=True))
        }
    return chosen | {name: GREY for name in known if name in null_labels}


def key_of(colours: Mapping[str, str]) -> str:
    """Returns a legend of labels and their colours."""
    items = "".join(
        f'<li><span class="swatch" style="--tint:{colour}"></span>{escape(name)}</li>'
        for name, colour in colours.items()
    )
    return f'<ul class="legend">{items}</ul>'


Shown = Callable[[object], str]  # how a fact is shown
Facts = Mapping[str, tuple[str, Shown]]  # what `about` may hold, by key: its name, and how it is shown

SYNTHETIC = (
    '<p class="synthetic"><strong>Synthetic data.</strong> These sentences were generated by a program. They '
    "show how the methods compare on them; they say nothing about real text.</p>"
)


def page(
    title: str, headline: str, sections: Iterable[tuple[str, str]], about: Entry, data: str = "results.json"
) -> str:
    """Returns a page: its title, what stands on top, and its sections by name; those without content are left out.

    `data` is the file that it was made from.
    """
    style = files("hasten.tasks.evaluation").joinpath("page.css").read_text(encoding="utf-8")
    names = [(name, name.lower().replace(" ", "-"), body) for name, body in sections if body]
    links = "".join(f'<a href="#{key}">{name}</a>' for name, key, _ in names)
    bodies = "".join(f'<section id="{key}"><h2>{name}</h2>{body}</section>' for name, key, body in names)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}{', synthetic' if about.get('synthetic') else ''}</title>"
        f"<style>{style}</style></head><body><main>{headline}<nav>{links}</nav>{bodies}"
        f"<footer>Written by hasten {text(about.get('hasten'))} from {escape(data)}, which holds every number "
        "of this page.</footer></main></body></html>\n"
    )


def head(title: str, lead: str, tiles: Iterable[tuple[str, str, str]], about: Entry) -> str:
    """Returns what stands on top: the title, what was done in a few words, and the few numbers that matter.

    A tile is a number, what it is, and how it was measured. `lead` and the tiles are HTML, escaped already.
    """
    shown = "".join(
        f'<li><b>{value}</b><span class="what">{what}</span><span class="how">{how}</span></li>'
        for value, what, how in tiles
    )
    return (
        '<header><p class="eyebrow">hasten · learning to speed up structured prediction</p>'
        f"<h1>{escape(title)}</h1>{SYNTHETIC if about.get('synthetic') else ''}"
        f'<p class="lead">{lead}</p><ul class="tiles">{shown}</ul></header>'
    )


def what_was_run(about: Entry, known: Facts) -> str:
    """Everything that `about` says, in words and with units; what has no words of its own, by its key."""
    lines = []
    for key, value in about.items():
        name, shown = known.get(key, (key.replace("_", " "), any_value))
        lines.append(f"<div><dt>{escape(name)}</dt><dd>{shown(value)}</dd></div>")
    return f'<dl class="about">{"".join(lines)}</dl>'


def any_value(value: object) -> str:
    """Returns whatever a value is, as text."""
    if isinstance(value, list | tuple):
        return ", ".join(text(each) for each in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return whole(value)
    if isinstance(value, float):
        return DASH if number(value) is None else f"{value:,.4g}"
    return text(value)


def counts(value: object) -> str:
    """Returns how many there are of each."""
    known = value if isinstance(value, Mapping) else {}
    return ", ".join(f"{text(name)} {whole(n)}" for name, n in known.items()) or DASH


def milliseconds(value: object) -> str:
    """Returns a time with its unit."""
    known = fixed(value, 1)
    return known if known == DASH else f"{known} ms"


COMMON: Facts = {  # facts of every task's results
    "hasten": ("hasten", text),
    "python": ("Python", text),
    "machine": ("processor", text),
    "source": ("corpora", text),
    "synthetic": ("synthetic sentences", any_value),
    "solver": ("ILP solver", text),
    "solver_version": ("version of the solver’s package", text),
    "answered_by": ("test sentences answered, by solver", counts),
    "runs": ("runs of each measurement", whole),
    "seed": ("first seed", text),
    "seeds": ("seeds", whole),
    "epochs": ("passes over the text learned from, at most", whole),
    "n_train": ("labelled sentences to train on", whole),
    "n_test": ("labelled sentences to test on", whole),
    "n_learned": ("unlabeled sentences learned from", whole),
}


Cell = Callable[[Entry, Entry], str]  # of a row, given the ILP's row

SENTENCES, TIME, FASTER = "Sentences", "CPU ms", "Times faster"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its group and head, what it means, and its cell for a row, given the ILP's row."""

    group: str
    head: str
    meaning: str
    cell: Cell


def number_of(key: str, digits: int = 3) -> Cell:
    """Returns the cell of a plain number."""
    return lambda row, ilp: fixed(row.get(key), digits)


def score_of(key: str) -> Cell:
    """Returns the cell of a score, with its deviation and its interval."""
    return lambda row, ilp: scored(row, key)


MEASURED = (  # what is measured of every row, whatever the task
    Column(SENTENCES, "valid", "Share of sentences whose answer breaks no constraint.", number_of("validity")),
    Column(SENTENCES, "exact", "Share of sentences with the ILP’s answer, or one that costs the same.",
           number_of("exact_match")),
    Column(SENTENCES, "proved", "Share of sentences proved optimal without the solver. Only certified tries.",
           number_of("proved")),
    Column(SENTENCES, "solver", "Number of sentences for which the ILP solver was called.",
           lambda row, ilp: whole(row.get("solver_calls"))),
    Column("Costs", "share", "Share of variables whose costs (features and scores) were computed.",
           lambda row, ilp: percent(row.get("costs_computed"), 0)),
    Column(TIME, "total", "Features and inference for the whole test set: mean ± standard deviation of the runs.",
           lambda row, ilp: spread(row)),
    Column(TIME, "features", "Feature extraction and scoring alone; no figure where costs are computed on demand.",
           number_of("features_ms", 2)),
    Column(TIME, "inference", "Inference alone, costs given.", number_of("inference_ms", 2)),
    Column(FASTER, "overall", "The ILP’s total time over this row’s.",
           lambda row, ilp: ratio(ilp, row, "time_ms")),
    Column(FASTER, "inference", "The ILP’s inference time over this row’s.",
           lambda row, ilp: ratio(ilp, row, "inference_ms")),
)  # fmt: skip


def head_of(columns: Sequence[Column], *more: str) -> str:
    """Returns the head of a table; `more` are heads, as HTML, between that of the beam and the columns."""
    groups = {group: sum(column.group == group for column in columns) for group in dict.fromkeys(
        column.group for column in columns)}  # fmt: skip
    above = "".join(f'<th colspan="{n}" class="group">{group}</th>' for group, n in groups.items())
    below = "".join(f'<th title="{escape(column.meaning)}">{column.head}</th>' for column in columns)
    return (
        '<thead><tr><th rowspan="2" class="model">model</th><th rowspan="2" title="Beam width">beam</th>'
        f"{''.join(more)}{above}</tr><tr>{below}</tr></thead>"
    )


def line_of(name: str, cells: Sequence[str], kind: str = "ours") -> str:
    """Returns a line of a table."""
    shown = "".join(f"<td>{cell}</td>" for cell in cells)
    return f'<tr class="{kind}"><th class="model" scope="row">{name}</th>{shown}</tr>'


def meanings(columns: Sequence[Column]) -> str:
    """Returns what the columns say."""
    each = "".join(f"<div><dt>{column.group}, {column.head}</dt><dd>{column.meaning}</dd></div>" for column in columns)
    return f'<h3>What the columns say</h3><dl class="columns">{each}</dl>'


def solving(row: Entry, made: str) -> str:
    """Says how long each solver took, where there were several, and that making what is `made` was timed apart."""
    by = row.get("solving_ms") or {}
    parts = [f"{name} {fixed(ms, 0)} ms" for name, ms in by.items()] if len(by) > 1 else []
    if number(row.get("building_ms")) is not None:
        parts.append(f"its {made} made before, in {fixed(row.get('building_ms'), 1)} ms")
    return ", ".join(parts)


def results_table(
    rows: Sequence[Entry],
    columns: Sequence[Column],
    ilp: Entry,
    *,
    leading: Sequence[Column] = (),
    below: Callable[[Entry], tuple[Entry, Entry] | None] = lambda row: None,
) -> str:
    """Returns the rows of results as a table, without columns that would be empty.

    `leading` columns stand beside the beam. `below` gives the paper's row for one of ours, and its ILP's.
    """
    columns = [column for column in columns if any(column.cell(row, ilp) != DASH for row in rows)]
    bodies, last = [], ("", "")
    for row in rows:
        model = str(row.get("model"))
        said = str(row.get("note") or ""), solving(row, "models" if model == ILP else "plans")
        note = "; ".join(each for each in said if each)
        shown = f'<span class="note">{text(note)}</span>' if note and (model, note) != last else ""
        lines = line_of(f"{text(model)}{shown}", [whole(row.get("beam")), *_cells(row, ilp, leading, columns)])
        if (theirs := below(row)) is not None:
            lines += line_of("in the paper", ["", *_cells(*theirs, leading, columns)], "paper")
        bodies.append(f"<tbody{BEST if model == CERTIFIED else ''}>{lines}</tbody>")
        last = model, note
    heads = [f'<th rowspan="2" title="{escape(column.meaning)}">{column.head}</th>' for column in leading]
    return f'<div class="scroll"><table>{head_of(columns, *heads)}{"".join(bodies)}</table></div>'


def _cells(row: Entry, ilp: Entry, *groups: Sequence[Column]) -> list[str]:
    return [column.cell(row, ilp) for columns in groups for column in columns]


def plain_table(rows: Sequence[Entry], columns: Sequence[tuple[str, Callable[[Entry], str]]]) -> str:
    """Returns a table of heads and cells, without columns that would be empty."""
    shown = [(head, cell) for head, cell in columns if any(cell(row) != DASH for row in rows)]
    heads = "".join(f"<th>{head}</th>" for head, _ in shown)
    lines = "".join(f"<tr>{''.join(f'<td>{cell(row)}</td>' for _, cell in shown)}</tr>" for row in rows)
    return (
        f'<div class="scroll"><table class="plain"><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table></div>'
    )


def how_sure(about: Entry, thing: str, more: str = "") -> str:
    """Says what the deviations and the intervals of a table are."""
    seeds = number(about.get("seeds")) or 1
    of_seeds = (
        f"Figures are means over {counted(seeds, 'seed')}{more}, ± their standard deviation. " if seeds > 1 else ""
    )
    return (
        f"{of_seeds}Below each score is its 95% interval: {thing}s drawn anew with replacement, 1,000 times. All rows "
        f"were timed in turns, each {thing} once in a fresh order."
    )


def how_timed(about: Entry) -> str:
    """Says how often all was done, and what times are of."""
    seeds, runs = number(about.get("seeds")) or 1, number(about.get("runs"))
    again = f"All of it was done {whole(seeds)} times, with other seeds each time. " if seeds > 1 else ""
    mean = "of one run" if runs == 1 else f"the mean of {whole(runs)} runs"
    return f"{again}Times are CPU time of the whole test set in one thread, {mean}."

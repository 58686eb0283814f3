"""An evaluation in the terminal and as a page: scores in tables, and which labels are taken for which."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from hasten.support.files import write_whole
from hasten.support.terminal import printable
from hasten.support.words import Html, count, join, tag
from hasten.tasks.evaluation.page import Tile, page, what_was_run, write_page
from hasten.tasks.evaluation.scores import Evaluation
from hasten.tasks.evaluation.tables import (
    Column,
    Entry,
    Line,
    column,
    fixed,
    html_table,
    limits,
    percent,
    score,
    terminal_table,
    text,
    whole,
)

MOST_LABELS = 24  # of a picture; the rarest share a row
NOTHING, OTHERS = "no label", "other labels"


COLUMNS = [
    Column("label", lambda row: printable(str(row["label"]))),
    *(column(name, f"n_{name}", whole) for name in ("gold", "found", "right")),
    *(score(head, head.lower()) for head in ("precision", "recall", "F1")),
]


def _lines(kind: Entry) -> list[Line]:
    return [*((each, "") for each in kind["labels"]), ({**kind["micro"], "label": "all (micro)"}, "best")]


def show_evaluation(found: Evaluation, console: Console) -> None:
    """Prints the scores of each label, and what else is known of the answers."""
    interval = Column("95% of F1", lambda row: limits(row, "f1"))
    for name, kind in found.kinds.items():
        console.print(terminal_table([*COLUMNS, interval], _lines(msgspec.to_builtins(kind)), f"every {name}"))
    console.print(
        f"{count(found.n, 'sentence')}: {found.n_exact / found.n:.1%} right in every label, "
        f"{found.n_valid / found.n:.1%} valid, {found.n_proved / found.n:.1%} proved, "
        f"{found.n_by_solver:,} by the solver.",
        highlight=False,
    )
    console.print(printable(found.unreachable["in_words"]), highlight=False, soft_wrap=True, markup=False)


def write_evaluation(found: dict[str, Any], out: Path) -> tuple[Path, Path]:
    """Writes the same as JSON, and as a page with a picture of what is confused; returns both paths."""
    data, shown = out / "evaluation.json", out / "evaluation.html"
    write_whole(data, json.dumps(found, indent=1).encode())
    write_page(render(found), shown)
    return data, shown


def render(found: Entry) -> str:
    """Returns the page for the content of `evaluation.json`."""
    about, kinds = found["about"], found["kinds"]
    tiles: list[Tile] = [
        (fixed(kind["micro"]["f1"]), f"F1 of every {name}", limits(kind["micro"], "f1")) for name, kind in kinds.items()
    ]
    tiles.append((percent(found["exact"]), "of the sentences are right in every label", "compared with gold"))
    tiles.append((percent(found["valid"]), "of the answers keep every constraint", text(about.get("mode"))))
    lead = (
        f"{whole(found['n'])} labelled sentences of {text(about.get('source'))}, answered by the model "
        f"{text(about.get('model'))}. Intervals are 95% intervals by the bootstrap over sentences."
    )
    said = (found.get("unreachable") or {}).get("in_words")
    macro = "Macro F1, the mean over labels that have gold"
    sections = {
        f"Every {name}": join(html_table(COLUMNS, _lines(kind)), tag("p", f"{macro}: {fixed(kind['macro_f1'])}."))
        for name, kind in kinds.items()
    }
    sections |= {f"What {name} is taken for what": _confusion(kind["confused"]) for name, kind in kinds.items()}
    sections |= {"Gold that cannot be reached": tag("p", said) if said else Html()}
    sections |= {"What was run": what_was_run(about)}
    return page("Evaluation", lead, tiles, sections, about, "evaluation.json")


def _confusion(pairs: Sequence[Entry]) -> Html:
    """Returns a table: a row for each gold label, a column for each found, darker the larger its share of the row."""
    if not pairs:
        return Html()
    often: Counter[str] = Counter()
    for each in pairs:
        often.update({label: int(each["n"]) for label in {each["gold"], each["found"]} if label is not None})
    common = {label for label, _ in often.most_common(MOST_LABELS)}
    grid: Counter[tuple[str, str]] = Counter()
    for each in pairs:
        gold, found = (
            NOTHING if label is None else label if label in common else OTHERS
            for label in (each["gold"], each["found"])
        )
        grid[gold, found] += int(each["n"])
    names = [*sorted(common), *([OTHERS] if len(often) > len(common) else []), NOTHING]
    rows = []
    for gold in names:
        total, cells = sum(grid[gold, found] for found in names), list[Html]()
        for found in names:
            if not (n := grid[gold, found]):
                cells.append(tag("td"))
                continue
            share, hue = n / total, "--c3" if gold == found else "--c2"
            tint = f"background:color-mix(in srgb, var({hue}) {8 + 92 * share:.0f}%, transparent)"
            said = f"{gold} found as {found}: {n:,} ({share:.0%} of its row)"
            cells.append(tag("td", whole(n), class_="dark" if share >= 0.6 else "", style=tint, title=said))
        rows.append(tag("tr", tag("th", gold, class_="name"), cells))
    heads = tag("tr", tag("th"), [tag("th", tag("span", name)) for name in names])
    said = (
        "A row is a gold label, a column what was found in its place; numbers are counts, and a cell is darker the "
        "larger its share of the row."
    )
    table = tag("table", tag("thead", heads), tag("tbody", rows), class_="confusion")
    return join(tag("p", said), tag("div", table, class_="scroll"))

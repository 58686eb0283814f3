"""The figures of a run as tables for the terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from hasten.bench.families import FAMILIES
from hasten.bench.peers import OWN
from hasten.bench.run import Measurement, Results

TEXT_COLUMNS = ("microseconds", "entity accuracy", "relation F1", "valid")


def show(results: Results, console: Console | None = None) -> None:
    """Prints a table for each family: time a problem, and how many times as long as hasten that is."""
    console = console or wide_console()
    for family in dict.fromkeys(found.family for found in results.measurements):
        console.print(family_table(results, family))
    if results.text is not None:
        console.print(text_table(results.text))


def wide_console() -> Console:
    """Returns the terminal; where there is none, lines are as long as tables need."""
    console = Console()
    return console if console.is_terminal else Console(width=180)


def family_table(results: Results, family: str) -> Table:
    """Returns the table of one family."""
    about = FAMILIES[family].about if family in FAMILIES else "real costs"
    unit = FAMILIES[family].unit if family in FAMILIES else ""
    table = Table(title=f"{family}: {about}", caption="time a problem, × hasten's, × hasten's in batches")
    table.add_column("")
    sizes = list(dict.fromkeys(found.size for found in results.measurements if found.family == family))
    for size in sizes:
        table.add_column(f"{size} {unit}" if size else "all", justify="right")
    for peer in results.peers:
        cells = [cell(results, results.of(family, size, peer)) for size in sizes]
        table.add_row(peer, *cells)
    return table


def cell(results: Results, found: Measurement | None) -> str:
    """Returns what there is to say of one measurement."""
    if found is None:
        return ""
    if not found.seconds:
        return found.status
    parts = [duration(found.mean)]
    if found.peer not in OWN:
        parts += [times(results.ratio(found, own)) for own in OWN]
    if found.status != "ok":
        parts.append(f"[red]{found.status} {found.n_wrong}[/red]")
    if found.n_solved < len(found.seconds):
        parts.append(f"({found.n_solved} of {len(found.seconds)} solved)")
    if found.peer in OWN and found.by.get("solver"):
        parts.append(f"({found.by['solver']} by HiGHS)")
    return " ".join(parts)


def markdown(results: Results) -> str:
    """Returns all tables for a page of the documentation."""
    parts = []
    for family in dict.fromkeys(found.family for found in results.measurements):
        sizes = list(dict.fromkeys(found.size for found in results.measurements if found.family == family))
        unit = f" ({FAMILIES[family].unit})" if family in FAMILIES else ""
        about = FAMILIES[family].about if family in FAMILIES else "the costs of a trained model"
        rows = [[f"{family}{unit}", *(str(size or "all") for size in sizes)], ["---"] + ["---:"] * len(sizes)]
        rows += [
            [peer, *(plain_cell(results, results.of(family, size, peer)) for size in sizes)] for peer in results.peers
        ]
        parts.append(f"**{family}**: {about}.\n\n" + _lines(rows))
    if results.text is not None:
        rows = [["", *TEXT_COLUMNS], ["---"] + ["---:"] * len(TEXT_COLUMNS)]
        for row in results.text["rows"]:
            rows.append([str(row["name"]), *(number(row.get(name)) for name in TEXT_COLUMNS)])
        parts.append(f"**search on text**: {results.text['about']}.\n\n" + _lines(rows))
    return "\n\n".join(parts) + "\n"


def plain_cell(results: Results, found: Measurement | None) -> str:
    """Returns a time and, for a peer, how many times that is of hasten's in batches."""
    if found is None or not found.seconds:
        return found.status if found is not None else ""
    cell = duration(found.mean)
    if found.peer not in OWN:
        ratio = times(results.ratio(found, "hasten batch"))
        cell += f" ({ratio})" if ratio != "-" else ""
    if found.n_solved < len(found.seconds):
        cell += f", {found.n_solved} of {len(found.seconds)} solved"
    return cell


def _lines(rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def text_table(text: Mapping[str, Any]) -> Table:
    """Returns the comparison of searches on text."""
    table = Table(title=f"search on text: {text['about']}")
    table.add_column("")
    for name in TEXT_COLUMNS:
        table.add_column(name, justify="right")
    for row in text["rows"]:
        cells = [number(row.get(name)) for name in TEXT_COLUMNS]
        table.add_row(str(row["name"]), *cells)
    return table


def number(value: object) -> str:
    """Writes a figure with three digits, and nothing for none."""
    return f"{value:.3g}" if isinstance(value, float) else str(value or "")


def duration(seconds: float) -> str:
    """Writes a time with three digits and a fitting unit."""
    if math.isnan(seconds):
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def times(ratio: float) -> str:
    """Writes a ratio."""
    if math.isnan(ratio):
        return "-"
    return f"{ratio:.0f}×" if ratio >= 10 else f"{ratio:.2g}×"

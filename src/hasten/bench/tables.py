"""The results of a run: tables for the terminal and in Markdown, and a page with plots."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from hasten.bench.families import FAMILIES
from hasten.bench.peers import OWN
from hasten.bench.run import Measurement, Results
from hasten.support.environment import package_version
from hasten.tasks.evaluation.charts import Axis, Point, Series, figure
from hasten.tasks.evaluation.page import head, page

TEXT_COLUMNS = ("microseconds", "entity accuracy", "relation F1", "valid")


class Shown(NamedTuple):
    """A table: its name and what it is about, the heads of its columns, and its rows."""

    name: str
    about: str
    heads: list[str]
    rows: list[list[str]]


def tables_of(results: Results) -> Iterator[Shown]:
    """Yields a table for each family, time a problem and how many times hasten's that is; then that of searches."""
    for family in dict.fromkeys(found.family for found in results.measurements):
        known = FAMILIES.get(family)
        sizes = list(dict.fromkeys(found.size for found in results.measurements if found.family == family))
        heads = [f"{size} {known.unit}" if size and known else "all" for size in sizes]
        rows = [[peer, *(cell(results, results.of(family, size, peer)) for size in sizes)] for peer in results.peers]
        yield Shown(family, known.about if known else "the costs of a trained model", ["", *heads], rows)
    if results.text is not None:
        rows = [[str(row["name"]), *(number(row.get(name)) for name in TEXT_COLUMNS)] for row in results.text["rows"]]
        yield Shown("search on text", results.text["about"], ["", *TEXT_COLUMNS], rows)


def show(results: Results, console: Console | None = None) -> None:
    """Prints the tables."""
    console = console or wide_console()
    for shown in tables_of(results):
        table = Table(title=f"{shown.name}: {shown.about}")
        for n, name in enumerate(shown.heads):
            table.add_column(name, justify="right" if n else "left")
        for row in shown.rows:
            table.add_row(*row)
        console.print(table)
    console.print("Time a problem, × hasten's, × hasten's in batches.", style="dim", highlight=False)


def markdown(results: Results) -> str:
    """Returns the tables for a page of the documentation."""
    parts = []
    for shown in tables_of(results):
        lines = [shown.heads, ["---"] + ["---:"] * (len(shown.heads) - 1), *shown.rows]
        parts.append(f"**{shown.name}**: {shown.about}.\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines))
    return "\n\n".join(parts) + "\n"


def wide_console() -> Console:
    """Returns the terminal; where there is none, lines are as long as tables need."""
    console = Console()
    return console if console.is_terminal else Console(width=180)


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
        parts.append(f"{found.status} {found.n_wrong}")
    if found.n_solved < len(found.seconds):
        parts.append(f"({found.n_solved} of {len(found.seconds)} solved)")
    if found.peer in OWN and found.by.get("solver"):
        parts.append(f"({found.by['solver']} by HiGHS)")
    return " ".join(parts)


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


def render(results: Results) -> str:
    """Returns a page that draws time against size, log-log, for each family measured at two sizes or more."""
    families = dict.fromkeys(found.family for found in results.measurements)
    drawn = [draw_family(results, family) for family in families if family in FAMILIES]
    lead = "Processor time a problem, of one thread. Hollow marks: some were not solved in time."
    body = f'<div class="figures">{"".join(drawn)}</div>'
    about = {"hasten": package_version("hasten")}
    return page("hasten: peers", head("Time against size", lead, (), about), [("Families", body)], about, "peers.json")


def draw_family(results: Results, family: str) -> str:
    """Returns the figure of a family; straight lines are powers of the size, which the legend names."""
    series = []
    for n, peer in enumerate(results.peers):
        found = [
            each
            for each in results.measurements
            if (each.family, each.peer, each.status) == (family, peer, "ok") and each.seconds
        ]
        solved = [each for each in found if each.n_solved == len(each.seconds)]
        slope = slope_through([each.size for each in solved], [each.mean for each in solved])
        name = peer if math.isnan(slope) else f"{peer} ({slope:.1f})"
        points = [
            Point(each.size, 1e3 * each.mean, f"{peer}, {each.size}: {duration(each.mean)}", hollow=each not in solved)
            for each in found
        ]
        series.append(Series(name, points, 1 + n % 6, dashed=n >= 6))
    if len({point.x for each in series for point in each.points}) < 2:
        return ""
    known = FAMILIES[family]
    x, y = Axis(f"{known.unit} (log)", "log"), Axis("milliseconds a problem (log)", "log")
    return figure(family, x, y, series, f"{known.about}. In brackets: the power of the size that the time grows by.")


def slope_through(sizes: Sequence[int], means: Sequence[float]) -> float:
    """Returns the slope of the least-squares line through the logarithms; nan for a single size."""
    if len(sizes) < 2:
        return math.nan
    return float(np.polyfit(np.log(sizes), np.log(means), 1)[0])

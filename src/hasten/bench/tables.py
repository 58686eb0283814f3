"""The results of a run: tables for the terminal and in Markdown, and a page with plots."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from rich.console import Console

from hasten.bench.families import FAMILIES
from hasten.bench.peers import OWN
from hasten.support.environment import package_version
from hasten.support.words import Html, join, tag
from hasten.tasks.evaluation.charts import Axis, Point, Series, figure
from hasten.tasks.evaluation.page import Column, Entry, Line, column, html_table, markdown_table, page, terminal_table


def _tables(results: Entry) -> Iterator[tuple[str, list[Column], list[Line]]]:
    """Yields the title, the columns and the rows of each family: time a problem and how many times hasten's that is."""
    for family in dict.fromkeys(row["family"] for row in results["measurements"]):
        known, mine = FAMILIES.get(family), [row for row in results["measurements"] if row["family"] == family]
        sizes = dict.fromkeys(row["size"] for row in mine)
        heads = [(f"{size} {known.unit}" if size and known else "all", str(size)) for size in sizes]
        rows: list[Line] = [
            ({"peer": peer} | {str(row["size"]): cell(row) for row in mine if row["peer"] == peer}, "")
            for peer in results["peers"]
        ]
        columns = [column("", "peer"), *(column(head, size) for head, size in heads)]
        yield f"{family}: {known.about if known else 'the costs of a trained model'}", columns, rows


def show(results: Entry, console: Console | None = None) -> None:
    """Prints the tables."""
    console = console or wide_console()
    for title, columns, rows in _tables(results):
        console.print(title, style="italic", highlight=False, markup=False)
        console.print(terminal_table(columns, rows))
    console.print("Time a problem, × hasten's, × hasten's in batches.", style="dim", highlight=False)


def markdown(results: Entry) -> str:
    """Returns the tables for a page of the documentation."""
    parts = [(title, markdown_table(columns, [row for row, _ in rows])) for title, columns, rows in _tables(results)]
    return "\n\n".join(f"**{title}**\n\n{table}" for title, table in parts) + "\n"


def wide_console() -> Console:
    """Returns the terminal; where there is none, lines are as long as tables need."""
    console = Console()
    return console if console.is_terminal else Console(width=180)


def cell(row: Entry) -> str:
    """Returns one measurement in words."""
    if not row["seconds"]:
        return str(row["status"])
    parts = [duration(row["mean"])]
    if row["peer"] not in OWN:
        parts += [times(row["ratio"][own]) for own in OWN]
    if row["status"] != "ok":
        parts.append(f"{row['status']} {row['n_wrong']}")
    if row["n_solved"] < len(row["seconds"]):
        parts.append(f"({row['n_solved']} of {len(row['seconds'])} solved)")
    if row["peer"] in OWN and row["by"].get("solver"):
        parts.append(f"({row['by']['solver']} by HiGHS)")
    return " ".join(parts)


def duration(seconds: float) -> str:
    """Returns a time with three digits and a fitting unit."""
    if math.isnan(seconds):
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def times(ratio: float) -> str:
    """Returns a ratio."""
    if math.isnan(ratio):
        return "-"
    return f"{ratio:.0f}×" if ratio >= 10 else f"{ratio:.2g}×"


def render(results: Entry) -> str:
    """Returns a page with all tables, and time against size, log-log, of each family measured at two sizes or more."""
    families = dict.fromkeys(row["family"] for row in results["measurements"])
    drawn = [_draw_family(results, family) for family in families if family in FAMILIES]
    lead = "Processor time a problem, of one thread. Hollow marks: some were not solved in time."
    sections = {"Families": tag("div", drawn, class_="figures")} if any(drawn) else {}
    tables = [(tag("p", title), html_table(columns, rows)) for title, columns, rows in _tables(results)]
    sections["Time a problem, × hasten's, × hasten's in batches"] = join(*tables)
    return page("Time against size", lead, (), sections, {"hasten": package_version("hasten")}, "peers.json")


def _draw_family(results: Entry, family: str) -> Html:
    """Returns the figure of a family; straight lines are powers of the size, which the legend names."""
    series, sizes = [], set()
    for n, peer in enumerate(results["peers"]):
        every = (row for row in results["measurements"] if (row["family"], row["peer"]) == (family, peer))
        found = [row for row in every if row["status"] == "ok" and row["seconds"]]
        points = [Point(row["size"], 1e3 * row["mean"], hollow=row["n_solved"] < len(row["seconds"])) for row in found]
        filled = [point for point in points if not point.hollow]
        slope = slope_through([point.x for point in filled], [point.y for point in filled])
        name = peer if math.isnan(slope) else f"{peer} ({slope:.1f})"
        series.append(Series(name, points, 1 + n % 6, dashed=n >= 6))
        sizes |= {point.x for point in points}
    known = FAMILIES[family]
    x, y = Axis(known.unit, "log"), Axis("milliseconds a problem", "log")
    caption = f"{known.about}. In brackets: the power of the size that the time grows by."
    return figure(family, x, y, series, caption) if len(sizes) > 1 else Html()


def slope_through(sizes: Sequence[float], means: Sequence[float]) -> float:
    """Returns the slope of the least-squares line through the logarithms; nan for a single size."""
    return math.nan if len(sizes) < 2 else float(np.polyfit(np.log(sizes), np.log(means), 1)[0])

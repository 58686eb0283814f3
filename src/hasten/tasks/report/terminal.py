"""A comparison for the terminal, narrow enough for eighty columns."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hasten.tasks.report.comparison import CERTIFIED, ILP, find
from hasten.tasks.report.formatting import Entry, counted, number, solvers_in_words

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
            escape(str(row["model"])),
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

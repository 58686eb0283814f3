"""The results of the paper's experiment for the terminal, narrow enough for eighty columns."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from hasten.speedup.calibration import theta_in_words
from hasten.tasks.entity_relation.names import Model
from hasten.tasks.entity_relation.report.formatting import Entry

NUMBERS = ("entity\nF1", "rel.\nF1", "rel.F1\nto ILP", "valid", "exact", "costs", "CPU\nms", "times\nfaster")


def show_results(results: Entry, console: Console) -> None:
    """Prints every row, and how the calibrated searches compare with greedy search."""
    about = results["about"]
    what = "synthetic sentences" if about["synthetic"] else "sentences"
    table = Table(
        title=f"{about['n_test']:,} test {what}, {about['black_box']} black box, ILP by {about['solver']}",
        caption="b: beam width; θ: gap above which costs are skipped, forced: only where there is no choice; F1 "
        "against gold and against the ILP; valid, exact: share of sentences that break no constraint, that have the "
        "ILP's answer; costs: share computed; CPU ms: of the whole test set in one thread, features included; times "
        "faster than the ILP",
        caption_justify="left",
        box=None,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        header_style="bold",
    )
    table.add_column("model", no_wrap=True, vertical="bottom")
    for name in ("b", "θ", *NUMBERS):
        table.add_column(name, justify="right", no_wrap=True, vertical="bottom")
    ilp = results["rows"][0]["time_ms"]
    for row in results["rows"]:
        table.add_row(
            row["model"],
            "" if row["beam"] is None else str(row["beam"]),
            "" if row["theta"] is None else theta_in_words(row["theta"], digits=3),
            *(f"{row[key]:.3f}" for key in ("entity_f1_gold", "relation_f1_gold", "relation_f1_ilp")),
            f"{row['validity']:.2f}",
            f"{row['exact_match']:.3f}",
            f"{row['costs_computed']:.0%}",
            _short(row["time_ms"]),
            _short(ilp / row["time_ms"]) if row["time_ms"] else "",
            style="bold" if row["model"] == Model.CERTIFIED else None,
        )
    console.print(table)
    for line in side_by_side(results):
        console.print(line, highlight=False)


def side_by_side(results: Entry) -> Iterator[str]:
    """Says how many times as fast as greedy search the searches are that skip costs by calibration, run in turns."""
    yield "Times as fast as greedy search, end to end, both run in turns:"
    for enforce in (False, True):
        chosen = [each for each in results["calibration"] if each["enforce"] == enforce]
        yield f"  {Model.calibrated(enforce)}: " + ", ".join(
            f"{each['times_faster_than_greedy']:.2f} (b={each['width']})" for each in chosen
        )


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.1f}"

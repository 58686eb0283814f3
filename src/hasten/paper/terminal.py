"""The results of the paper's experiment for the terminal, narrow enough for eighty columns."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hasten.paper.tables import find, find_paper
from hasten.search.theta import theta_in_words
from hasten.tasks.entity_relation.names import Model
from hasten.tasks.evaluation.page import Entry, counted, number, solvers_in_words

SCORES = ("entity_f1_gold", "relation_f1_gold", "relation_f1_ilp")
COLUMNS = {  # and their widths
    "b": 1, "θ": 6, "entity\nF1": 6, "rel.\nF1": 5, "rel.F1\nto ILP": 6, "valid": 5, "exact": 5, "costs": 5,
    "CPU\nms": 5, "times\nfaster": 6,
}  # fmt: skip
STORY = {"solver's\nanswer": 8, "valid": 6, "relation\nF1": 8, "inference\nms": 9, "with\nfeatures": 8}
TABLES = {
    "1": "Table 1 of the paper: every cost computed",
    "2": "Table 2 of the paper: costs skipped by θ",
    "ours": "Our own: constraints within the search, and proof",
}
CAPTION = (
    "b: beam width; θ: gap above which costs are skipped, forced: only where there is no choice; F1 against gold and "
    "against the ILP; valid, exact: share of sentences that break no constraint, that have the ILP's answer; costs: "
    "share computed; CPU ms: of the whole test set in one thread, features included, all rows timed in turns; times "
    "faster than the ILP. Algorithm 1: the paper's preset, step 1 and last weights. Averaged: our learning. The report "
    "has intervals."
)


def show_results(results: Entry, console: Console) -> None:
    """Prints every row, the paper's figures below those that are its own."""
    about, rows, paper = results["about"], results["rows"], results.get("paper") or ()
    what = counted(about["n_test"], "synthetic test sentence" if about["synthetic"] else "test sentence")
    n_seeds = number(about.get("seeds")) or 1
    what += f" with each of {n_seeds:.0f} seeds" if n_seeds > 1 else ""
    console.print(
        f"{what}, {about['black_box']} black box, ILP by {solvers_in_words(about)}",
        style="bold", highlight=False, markup=False,
    )  # fmt: skip
    for key, title in TABLES.items():
        table = _table(title, COLUMNS)
        for row in (row for row in rows if row["table"] == key):
            table.add_row(*_cells(row, rows[0]), style="bold" if row["model"] == Model.CERTIFIED else None)
            theirs = find_paper(row, paper)
            if theirs is not None:
                named = {**theirs, "model": "  in the paper", "beam": None}
                table.add_row(*_cells(named, find(paper, Model.ILP)), style="dim italic")
        if table.rows:
            console.print(table)
    console.print(CAPTION, style="dim", highlight=False)
    for line in side_by_side(results):
        console.print(line, highlight=False, markup=False)


def show_story(results: Entry, console: Console) -> None:
    """Prints the story in a few lines: solver, certified answers, greedy search, and a learned search."""
    about, rows = results["about"], results["rows"]
    ilp, certified, greedy = (find(rows, model) for model in (Model.ILP, Model.CERTIFIED, Model.GREEDY))
    shown = {"ILP solver": ilp, "hasten, certified": certified, "learned search, b=2": find(rows, Model.SPEEDUP, 2)}
    what = counted(about["n_test"], "synthetic test sentence" if about["synthetic"] else "test sentence")
    same = "all" if certified["exact_match"] == 1.0 else f"{certified['exact_match']:.1%}"
    proved = "all" if certified["proved"] == 1.0 else f"{certified['proved']:.1%}"
    slow, fast = ilp["inference_ms"], certified["inference_ms"]
    faster = f", {_short(slow / fast)} times as fast" if fast else ""
    for line in (
        f"{what}. {solvers_in_words(about)}: {_short(slow)} ms. hasten: {_short(fast)} ms{faster}.",
        f"Of hasten's answers {same} are the solver's, {proved} proved without it.",
        f"Greedy search is as fast, but {1 - greedy['validity']:.0%} of its answers break a constraint.",
    ):
        console.print(line, highlight=False, markup=False)
    table = _table(
        "", {"solver's\nanswer": 8, "valid": 6, "relation\nF1": 8, "inference\nms": 9, "with features\nms": 13}
    )
    for name, row in (shown | {"greedy search": greedy}).items():
        shares = (f"{row[key]:.1%}" for key in ("exact_match", "validity"))
        times = (_short(row[key]) for key in ("inference_ms", "time_ms"))
        style = "bold" if row is certified else None
        table.add_row(name, *shares, f"{row['relation_f1_gold']:.3f}", *times, style=style)
    console.print(table)


def _table(title: str, columns: dict[str, int]) -> Table:
    table = Table(title=escape(title) or None, title_justify="left", title_style="italic", header_style="bold")
    table.box, table.padding, table.pad_edge = None, (0, 1, 0, 0), False
    table.add_column("model", no_wrap=True, vertical="bottom", width=20)
    for name, width in columns.items():
        table.add_column(name, justify="right", no_wrap=True, vertical="bottom", width=width)
    return table


def _names(row: Entry) -> tuple[str, str, str]:
    """Returns model, beam and theta: the paper's as printed, ours in words where it is not a number."""
    theta = row["theta"] if "theta" in row else row.get("relative_theta")
    beam = row.get("beam")
    return row["model"], "" if beam is None else str(beam), "" if theta is None else theta_in_words(theta, digits=3)


def _cells(row: Entry, ilp: Entry) -> list[str]:
    """Returns the cells of a row; those that the paper does not report stay empty."""
    shown = {key: number(row.get(key)) for key in (*SCORES, "validity", "exact_match", "costs_computed", "time_ms")}
    digits = {"validity": ".2f", "costs_computed": ".0%"}
    scores = ["" if value is None else f"{value:{digits.get(key, '.3f')}}" for key, value in shown.items()][:-1]
    took, slowest = shown["time_ms"], number(ilp.get("time_ms"))
    return [
        *_names(row), *scores, "" if took is None else _short(took), _short(slowest / took) if took and slowest else "",
    ]  # fmt: skip


def side_by_side(results: Entry) -> Iterator[str]:
    """Says how many times as fast as greedy search the calibrated searches are, by their rows."""
    yield "Times as fast as greedy search, end to end, by the rows above:"
    for enforce in (False, True):
        chosen = [each for each in results["calibration"] if each["enforce"] == enforce]
        yield f"  {Model.calibrated(enforce)}: " + ", ".join(
            f"{each['times_faster_than_greedy']:.2f} (b={each['width']})" for each in chosen
        )
    few = [each for each in results["calibration"] if each.get("too_little")]
    if few:
        held_out = counted(few[0]["n_held_out"], "sentence")
        yield f"Too little text to calibrate θ: {held_out} held out. Nothing is skipped."


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.1f}"

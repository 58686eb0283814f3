"""Results of any task for the terminal, narrow enough for eighty columns."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hasten.tasks.report.comparison import CERTIFIED, ILP, find
from hasten.tasks.report.formatting import Entry, counted, number, solvers_in_words

MOST_LABELS, MOST_CONFUSIONS = 40, 10
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


def show_evaluation(found: Entry, console: Console) -> None:
    """Prints scores, the labels, what is confused, and what could not be right."""
    for name, value in found["scores"].items():
        low, high = found["intervals"][name]
        console.print(f"{name} {value:.4f}  [95%: {low:.4f} to {high:.4f}]", highlight=False, markup=False)
    n = counted(found["n_texts"], "text")
    console.print(f"{n}, {found['valid']:.1%} of the answers valid", highlight=False, markup=False)
    table = _table("label", "in gold", "precision", "recall", "F1", "95% interval")
    for each in found["labels"][:MOST_LABELS]:
        low, high = each["interval"]
        figures = (f"{each[key]:.3f}" for key in ("precision", "recall", "f1"))
        table.add_row(escape(each["label"]), f"{each['n_gold']:,}", *figures, f"{low:.3f}–{high:.3f}")
    console.print(table)
    if len(found["labels"]) > MOST_LABELS:
        console.print(f"and {counted(len(found['labels']) - MOST_LABELS, 'rarer label')}", highlight=False)
    if found["confusions"]:
        confused = (f"{gold} as {mine} {n:,}" for gold, mine, n in found["confusions"][:MOST_CONFUSIONS])
        console.print(f"Most confused: {', '.join(confused)}.", highlight=False, markup=False)
    for line in warnings(found):
        console.print(line, style="yellow", highlight=False, markup=False)


def warnings(found: Entry) -> list[str]:
    """Returns what no answer could have right, in words."""
    said = []
    if found["unknown"]:
        names = ", ".join(f"{name} ({n:,})" for name, n in list(found["unknown"].items())[:MOST_CONFUSIONS])
        said.append(f"Gold labels that the model has never seen, each a lost point: {names}.")
    if found["unreachable"]:
        what = counted(found["unreachable"], "text")
        said.append(f"{what}: the gold labels break the rules or are not the model's, so that no answer has them all.")
    if found["unanswered"]:
        said.append(f"{counted(found['unanswered'], 'text')} without an answer: no labels keep all rules.")
    return said


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

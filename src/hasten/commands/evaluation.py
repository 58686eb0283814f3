"""How an evaluation is shown and written: for `hasten evaluate`, and for `hasten train` on text held out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from hasten.commands.common import console
from hasten.support.files import write_whole
from hasten.support.terminal import printable
from hasten.support.words import count

if TYPE_CHECKING:
    from hasten.tasks.evaluation.scores import Evaluation, Score


def show_evaluation(found: Evaluation) -> None:
    """Prints the scores of each label, and what else is known of the answers."""
    for name, kind in found.kinds.items():
        table = Table(title=f"every {name}", title_justify="left")
        table.add_column("label", overflow="fold")
        for column in ("gold", "found", "precision", "recall", "F1", "95% of F1"):
            table.add_column(column, justify="right")
        rows = [*kind.labels, kind.micro] if len(kind.labels) > 1 else kind.labels
        for score in rows:
            table.add_row(*_cells(score), style="bold" if score is kind.micro else None)
        console.print(table)
    console.print(
        f"{count(found.n, 'sentence')}: {found.n_exact / found.n:.1%} right in every label, "
        f"{found.n_valid / found.n:.1%} valid, {found.n_proved / found.n:.1%} proved, "
        f"{found.n_by_solver:,} by the solver.",
        highlight=False,
    )
    console.print(escape(printable(found.unreachable)), highlight=False, soft_wrap=True)


def _cells(score: Score) -> list[str]:
    shares = ["–" if each is None else f"{each:.3f}" for each in (score.precision, score.recall, score.f1)]
    limits = score.intervals.get("f1")
    name = escape(printable(score.label))
    return [
        name,
        f"{score.n_gold:,}",
        f"{score.n_found:,}",
        *shares,
        f"{limits[0]:.2f}–{limits[1]:.2f}" if limits else "",
    ]


def write_evaluation(found: dict[str, Any], out: Path) -> None:
    """Writes the same as JSON, and as a page with a picture of what is confused."""
    from hasten.tasks.evaluation.evaluation_page import render

    write_whole(out / "evaluation.json", json.dumps(found, indent=1).encode())
    write_whole(out / "evaluation.html", render(found).encode("utf-8", "replace"))
    written = " and ".join(
        f"[bold]{escape(printable(out / name))}[/]" for name in ("evaluation.json", "evaluation.html")
    )
    console.print(f"Wrote {written}", soft_wrap=True)

"""Tables of results: columns in groups, each with its meaning; cells that compare a row with the ILP's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from hasten.tasks.report.formatting import Entry, fixed, number, percent, ratio, scored, spread, whole

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

"""The tables of the report: the paper's two with its figures under ours, our own rows, and how theta was chosen."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

from hasten.search.beam import FORCED
from hasten.speedup.calibration import theta_in_words
from hasten.tasks.entity_relation.names import Model
from hasten.tasks.entity_relation.report.formatting import (
    DASH,
    Entry,
    fixed,
    number,
    percent,
    ratio,
    spread,
    text,
    times,
    whole,
)

BEST = ' class="best"'


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its group and head, what it means, and its cell for a row, given the ILP's row."""

    group: str
    head: str
    meaning: str
    cell: Callable[[Entry, Entry], str]


def _number(key: str, digits: int = 3) -> Callable[[Entry, Entry], str]:
    return lambda row, ilp: fixed(row.get(key), digits)


GOLD, ILP, SENTENCES, TIME, FASTER = "F1 against gold", "F1 against ILP", "Sentences", "CPU ms", "Times faster"
COLUMNS = (
    Column(GOLD, "entity", "Micro F1 of entity types against the annotators; “none” does not count.",
           _number("entity_f1_gold")),
    Column(GOLD, "relation", "Micro F1 of relations against the annotators; “no relation” does not count.",
           _number("relation_f1_gold")),
    Column(ILP, "entity", "F1 of entity types against the ILP’s answers: what speed costs.",
           _number("entity_f1_ilp")),
    Column(ILP, "relation", "F1 of relations against the ILP’s answers.", _number("relation_f1_ilp")),
    Column(SENTENCES, "valid", "Share of sentences whose answer breaks no constraint.", _number("validity")),
    Column(SENTENCES, "exact", "Share of sentences with the ILP’s answer, or one that costs the same.",
           _number("exact_match")),
    Column(SENTENCES, "proved", "Share of sentences proved optimal without the solver. Only certified tries.",
           _number("proved")),
    Column(SENTENCES, "solver", "Number of sentences for which the ILP solver was called.",
           lambda row, ilp: whole(row.get("solver_calls"))),
    Column("Costs", "share", "Share of variables whose costs (features and scores) were computed.",
           lambda row, ilp: percent(row.get("costs_computed"), 0)),
    Column(TIME, "total", "Features and inference for the whole test set: mean ± standard deviation of the runs.",
           lambda row, ilp: spread(row)),
    Column(TIME, "features", "Feature extraction and scoring alone; no figure where costs are computed on demand.",
           _number("features_ms", 2)),
    Column(TIME, "inference", "Inference alone, costs given.", _number("inference_ms", 2)),
    Column(FASTER, "overall", "The ILP’s total time over this row’s; in the paper’s rows, over the paper’s ILP.",
           lambda row, ilp: ratio(ilp, row, "time_ms")),
    Column(FASTER, "inference", "The ILP’s inference time over this row’s.",
           lambda row, ilp: ratio(ilp, row, "inference_ms")),
)  # fmt: skip


def tables(rows: Sequence[Entry], paper: Sequence[Entry], about: Entry, calibrations: Sequence[Entry] = ()) -> str:
    """The paper's two tables, its figures under ours, and our own rows."""
    if not rows:
        return '<p class="empty">No rows were measured.</p>'
    scale = number(about.get("cost_scale")) or 1.0
    first = [row for row in rows if row.get("table") == "1"]
    second = [row for row in rows if row.get("table") == "2"]
    ours = [row for row in rows if row.get("table") not in ("1", "2")]
    reference = [row for row in [find(rows, Model.ILP)] if row]
    meanings = "".join(
        f"<div><dt>{column.group}, {column.head}</dt><dd>{column.meaning}</dd></div>" for column in COLUMNS
    )
    return (
        _table("Table 1: every cost computed", "The paper’s searches, with its algorithm as listed.", first,
               paper, rows, scale)
        + _table("Table 2: costs skipped", "Where the gap between the heuristic’s candidates exceeds θ, costs are "
                 f"not computed. The paper’s θ is multiplied by the scale of our costs, {fixed(scale, 2)}; ours is "
                 f"calibrated on unlabeled sentences. {fastest(rows, calibrations)}", second, paper, rows, scale)
        + _table("Our rows", "Better learning, constraints within the search, and proof. Every cost computed.",
                 reference + ours if ours else [], (), rows, scale)
        + f'<h3>What the columns say</h3><dl class="columns">{meanings}</dl>'
    )  # fmt: skip


def find_paper(row: Entry, paper: Iterable[Entry], scale: float) -> Entry | None:
    """Returns the paper's row for one of ours: the same table, model and beam, and theta up to the scale."""
    model = row.get("model")
    wanted = row.get("table"), Model(model).in_paper if model in list(Model) else model, row.get("beam")
    ours = number(row.get("theta"))
    for theirs in paper:
        if (theirs.get("table"), theirs.get("model"), theirs.get("beam")) == wanted:
            theta = number(theirs.get("theta"))
            if theta is None or ours is None:
                if theta is ours:
                    return theirs
            elif math.isclose(ours, theta * scale, rel_tol=1e-6, abs_tol=1e-12):
                return theirs
    return None


def _table(
    title: str, said: str, chosen: Sequence[Entry], paper: Sequence[Entry], rows: Sequence[Entry], scale: float
) -> str:
    """Returns a table without the columns that would be empty, or hold the same trifle everywhere."""
    if not chosen:
        return ""
    ilp, theirs_ilp = find(rows, Model.ILP), find(paper, Model.ILP)
    columns = [
        column
        for column in COLUMNS
        if any(column.cell(row, ilp) != DASH for row in chosen) and not (paper and column.head in ("proved", "solver"))
    ]
    with_theta = any("theta" in row and row["theta"] is not None for row in chosen)
    bodies, last = [], ("", "")
    for row in chosen:
        note = str(row.get("note") or "")
        here = str(row.get("model")), note
        shown = f'<span class="note">{text(note)}</span>' if note and here != last else ""
        cells = [whole(row.get("beam")), *([theta_of(row, scale)] if with_theta else [])]
        cells += [column.cell(row, ilp) for column in columns]
        lines, last = _line(f"{text(row.get('model'))}{shown}", cells), here
        theirs = find_paper(row, paper, scale)
        if theirs is not None:
            cells = ["", *([fixed(theirs.get("theta"), 2)] if with_theta else [])]
            cells += [column.cell(theirs, theirs_ilp) for column in columns]
            lines += _line("in the paper", cells, "paper")
        bodies.append(f"<tbody{BEST if row.get('model') == Model.CERTIFIED else ''}>{lines}</tbody>")
    return (
        f'<h3>{title}</h3><p>{said}</p><div class="scroll"><table>{_head(columns, with_theta)}'
        f"{''.join(bodies)}</table></div>"
    )


def _line(name: str, cells: Sequence[str], kind: str = "ours") -> str:
    shown = "".join(f"<td>{cell}</td>" for cell in cells)
    return f'<tr class="{kind}"><th class="model" scope="row">{name}</th>{shown}</tr>'


def _head(columns: Sequence[Column], with_theta: bool) -> str:
    groups = {group: sum(column.group == group for column in columns) for group in dict.fromkeys(
        column.group for column in columns)}  # fmt: skip
    theta = '<th rowspan="2" title="The gap above which costs are skipped">θ</th>' if with_theta else ""
    above = "".join(f'<th colspan="{n}" class="group">{group}</th>' for group, n in groups.items())
    below = "".join(f'<th title="{escape(column.meaning)}">{column.head}</th>' for column in columns)
    return (
        '<thead><tr><th rowspan="2" class="model">model</th><th rowspan="2" title="Beam width">beam</th>'
        f"{theta}{above}</tr><tr>{below}</tr></thead>"
    )


def find(rows: Iterable[Entry], model: str, beam: int | None = None) -> Entry:
    """Returns the first row of a model that computes every cost; an empty one if there is none."""
    wanted = model, beam, None
    return next((row for row in rows if (row.get("model"), row.get("beam"), row.get("theta")) == wanted), {})


def theta_of(row: Entry, scale: float) -> str:
    """Returns theta, in words where it is not a plain number."""
    theta = number(row.get("theta"))
    if theta is None:
        return '<span title="Every cost is computed">all</span>'
    if theta == FORCED:
        return f'<span title="Skips a cost only where the constraints leave no choice">{theta_in_words(theta)}</span>'
    return f'<span title="{theta / scale:.3g} times the scale of the costs">{theta:.2f}</span>'


def fastest(rows: Sequence[Entry], calibrations: Sequence[Entry]) -> str:
    """Says how the fastest calibrated search compares with greedy search: the paper's headline.

    Measured side by side, where that was done: their rows, timed one after the other, may tell another ratio.
    """
    greedy, ilp = find(rows, Model.GREEDY), find(rows, Model.ILP)
    calibrated = Model.calibrated(False), Model.calibrated(True)
    timed = [row for row in rows if row.get("model") in calibrated and number(row.get("time_ms"))]
    if not timed or not greedy or not ilp:
        return ""
    known = {
        (Model.calibrated(bool(each.get("enforce"))), each.get("width")): number(each.get("times_faster_than_greedy"))
        for each in calibrations
    }
    ratios = [known.get((row["model"], row.get("beam"))) or 0.0 for row in timed]
    if any(ratios):
        best, value = max(zip(timed, ratios, strict=True), key=lambda each: each[1])
        said = (
            f"{text(best.get('model'))} at beam {whole(best.get('beam'))}, is {times(value)} as fast as unconstrained "
            "greedy search, end to end, both run in turns."
        )
    else:
        best = min(timed, key=lambda row: float(row["time_ms"]))
        said = (
            f"{text(best.get('model'))} at beam {whole(best.get('beam'))}, takes {fixed(best.get('time_ms'), 1)} ms; "
            f"unconstrained greedy search takes {fixed(greedy.get('time_ms'), 1)} ms, "
            f"{ratio(greedy, best, 'time_ms')} as long."
        )
    return (
        f"The fastest calibrated search, {said} Their relation F1 against gold: "
        f"{fixed(best.get('relation_f1_gold'), 3)} and {fixed(greedy.get('relation_f1_gold'), 3)}; the ILP’s: "
        f"{fixed(ilp.get('relation_f1_gold'), 3)}."
    )


def calibration(results: Entry) -> str:
    """How theta was chosen, and what it did to the test sentences."""
    rows: Sequence[Entry] = results.get("calibration") or ()
    scale = number((results.get("about") or {}).get("cost_scale")) or 1.0
    columns: tuple[tuple[str, Callable[[Entry], str]], ...] = (
        ("beam", lambda row: whole(row.get("width"))),
        ("constraints", lambda row: "enforced" if row.get("enforce") else "learned"),
        ("θ", lambda row: theta_of(row, scale)),
        ("costs computed", lambda row: percent(row.get("share"))),
        ("changed, unlabeled", lambda row: percent(row.get("changed"), 2)),
        ("upper limit", lambda row: percent(row.get("limit"), 2)),
        ("changed, test", lambda row: percent(row.get("changed_test"), 2)),
        ("as fast as greedy", lambda row: times(row.get("times_faster_than_greedy"))),
    )
    shown = [(head, cell) for head, cell in columns if any(cell(row) != DASH for row in rows)]
    heads = "".join(f"<th>{head}</th>" for head, _ in shown)
    lines = "".join(f"<tr>{''.join(f'<td>{cell(row)}</td>' for _, cell in shown)}</tr>" for row in rows)
    forced = theta_in_words(FORCED).capitalize()
    side_by_side = (
        " The last column, end to end on the test set, is the median of many runs in turns: on a busy machine it is "
        "steadier than the ratio of two rows’ times."
    )
    return (
        "<h3>How θ was calibrated</h3><p>On unlabeled sentences: the smallest θ that changes few answers of the "
        f"same search with every cost, with confidence. “{forced}” skips a cost only where the "
        "constraints leave no choice. The upper limit, at 95% confidence, is for sentences like those that θ was "
        "chosen on. The test sentences are not quite like them: each has a relation, which unlabeled ones need not "
        "have, so that θ may change more of their answers."
        f"{side_by_side if shown and shown[-1] == columns[-1] else ''}</p>"
        f'<div class="scroll"><table class="plain"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
        if rows
        else ""
    )

"""The tables of the report: the paper's two, its figures below its own methods; our rows; how theta was chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

from hasten.search.beam import FORCED
from hasten.speedup.calibration import theta_in_words
from hasten.tasks.entity_relation.names import Model
from hasten.tasks.entity_relation.report.formatting import (
    DASH,
    Entry,
    counted,
    fixed,
    number,
    percent,
    ratio,
    scored,
    spread,
    text,
    times,
    whole,
)

BEST = ' class="best"'
FIGURES = (
    "The paper’s figures stand below the rows that are its own methods: the ILP, its two searches, and Algorithm 1 as "
    "listed. Its times are of another machine and of other software: compare ratios, which are to its own ILP."
)
NO_FIGURES = "The paper’s figures are left out: they are of another corpus."


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its group and head, what it means, and its cell for a row, given the ILP's row."""

    group: str
    head: str
    meaning: str
    cell: Callable[[Entry, Entry], str]


def _number(key: str, digits: int = 3) -> Callable[[Entry, Entry], str]:
    return lambda row, ilp: fixed(row.get(key), digits)


def _score(key: str) -> Callable[[Entry, Entry], str]:
    return lambda row, ilp: scored(row, key)


GOLD, ILP, SENTENCES, TIME, FASTER = "F1 against gold", "F1 against ILP", "Sentences", "CPU ms", "Times faster"
COLUMNS = (
    Column(GOLD, "entity", "Micro F1 of entity types against the annotators; “none” does not count.",
           _score("entity_f1_gold")),
    Column(GOLD, "relation", "Micro F1 of relations against the annotators; “no relation” does not count.",
           _score("relation_f1_gold")),
    Column(ILP, "entity", "F1 of entity types against the ILP’s answers: what speed costs.",
           _score("entity_f1_ilp")),
    Column(ILP, "relation", "F1 of relations against the ILP’s answers.", _score("relation_f1_ilp")),
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
    Column(FASTER, "overall", "The ILP’s total time over this row’s.",
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
        (f"<p>{FIGURES if paper else NO_FIGURES} {how_sure(about)}</p>")
        + _table("Table 1: every cost computed", "The paper’s searches; its algorithm as listed, and ours.", first,
                 paper, rows, scale)
        + _table("Table 2: costs skipped", "Where the gap between the heuristic’s candidates exceeds θ, costs are "
                 f"not computed. The paper’s θ is multiplied by the scale of our costs, {fixed(scale, 2)}; ours is "
                 f"calibrated on unlabeled sentences. {fastest(rows, calibrations)}", second, paper, rows, scale)
        + _table("Our rows", "Constraints within the search, and proof. Every cost computed.",
                 reference + ours if ours else [], (), rows, scale)
        + f'<h3>What the columns say</h3><dl class="columns">{meanings}</dl>'
    )  # fmt: skip


def find_paper(row: Entry, paper: Iterable[Entry]) -> Entry | None:
    """Returns the paper's row for one of ours: the same table, model and beam, and theta as it is printed."""
    same = ("table", "model", "beam", "relative_theta")  # an older version's rows lack the last
    return next((theirs for theirs in paper if all(theirs.get(key, "") == row.get(key) for key in same)), None)


def solving(row: Entry) -> str:
    """Says how long each solver took, where there were several, and that building models was timed apart."""
    by = row.get("solving_ms") or {}
    parts = [f"{name} {fixed(ms, 0)} ms" for name, ms in by.items()] if len(by) > 1 else []
    if number(row.get("building_ms")) is not None:
        what = "models" if row.get("model") == Model.ILP else "plans"
        parts.append(f"its {what} made before, in {fixed(row.get('building_ms'), 1)} ms")
    return ", ".join(parts)


def how_sure(about: Entry) -> str:
    """Says what the spreads and the intervals of the tables are."""
    seeds = number(about.get("seeds")) or 1
    of_seeds = (
        f"Figures are means over {counted(seeds, 'seed')} (splits, training and order of the text), ± their standard "
        "deviation; theta is the median. "
        if seeds > 1
        else ""
    )
    return (
        f"{of_seeds}Below each F1 is its 95% interval: sentences drawn anew with replacement, 1,000 times. "
        "All rows were timed in turns, each sentence once in a fresh order."
    )


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
        note = "; ".join(each for each in (str(row.get("note") or ""), solving(row)) if each)
        here = str(row.get("model")), note
        shown = f'<span class="note">{text(note)}</span>' if note and here != last else ""
        cells = [whole(row.get("beam")), *([theta_of(row, scale)] if with_theta else [])]
        cells += [column.cell(row, ilp) for column in columns]
        lines, last = _line(f"{text(row.get('model'))}{shown}", cells), here
        theirs = find_paper(row, paper)
        if theirs is not None:
            cells = ["", *([fixed(theirs.get("relative_theta"), 2)] if with_theta else [])]
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
    theta, printed = number(row.get("theta")), number(row.get("relative_theta"))
    if theta is not None and printed is not None:
        return f'<span title="The paper’s {printed:g} times the scale of the costs">{theta:.2f}</span>'
    if theta is None:
        return '<span title="Every cost is computed">all</span>'
    if theta == FORCED:
        return f'<span title="Skips a cost only where the constraints leave no choice">{theta_in_words(theta)}</span>'
    return f'<span title="{theta / scale:.3g} times the scale of the costs">{theta:.2f}</span>'


def fastest(rows: Sequence[Entry], calibrations: Sequence[Entry]) -> str:
    """Says how the fastest calibrated search compares with greedy search, by their rows: the paper's headline."""
    greedy, ilp = find(rows, Model.GREEDY), find(rows, Model.ILP)
    skipping = {
        (Model.calibrated(bool(each.get("enforce"))), each.get("width"))
        for each in calibrations
        if number(each.get("theta")) is not None
    }
    timed = [row for row in rows if (row.get("model"), row.get("beam")) in skipping and number(row.get("time_ms"))]
    if not timed or not greedy or not ilp:
        return ""
    best = min(timed, key=lambda row: float(row["time_ms"]))
    return (
        f"The fastest calibrated search, {text(best.get('model'))} at beam {whole(best.get('beam'))}, is "
        f"{ratio(greedy, best, 'time_ms')} as fast as unconstrained greedy search, end to end. Their relation F1 "
        f"against gold: {fixed(best.get('relation_f1_gold'), 3)} and {fixed(greedy.get('relation_f1_gold'), 3)}; the "
        f"ILP’s: {fixed(ilp.get('relation_f1_gold'), 3)}."
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
    few = [row for row in rows if row.get("too_little")]
    too_little = (
        f"<p>There was too little text to calibrate on: {counted(few[0].get('n_held_out'), 'sentence')} held out. So "
        "every cost is computed in these rows.</p>"
        if few
        else ""
    )
    return (
        "<h3>How θ was calibrated</h3><p>On unlabeled sentences that nothing was learned from: the smallest θ that "
        f"changes few answers of the same search with every cost, with confidence. “{forced}” skips a cost only where "
        "the constraints leave no choice. The upper limit, at 95% confidence, is for sentences like those that θ was "
        "chosen on. The test sentences are not quite like them: each has a relation, which unlabeled ones need not "
        "have, so that θ may change more of their answers. A dash: nothing is skipped, and nothing can change. With "
        "several seeds, this is the first.</p>"
        f'{too_little}<div class="scroll"><table class="plain"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
        if rows
        else ""
    )

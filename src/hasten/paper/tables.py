"""The tables of the report: the paper's two, its figures below its own methods; our rows; how theta was chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from hasten.search.theta import FORCED, theta_in_words
from hasten.tasks.entity_relation.names import Model
from hasten.tasks.evaluation.page import (
    MEASURED,
    Column,
    Entry,
    counted,
    fixed,
    how_sure,
    meanings,
    number,
    percent,
    plain_table,
    ratio,
    results_table,
    score_of,
    text,
    times,
    whole,
)

FIGURES = (
    "The paper’s figures stand below the rows that are its own methods: the ILP, its two searches, and Algorithm 1 as "
    "listed. Its times are of another machine and of other software: compare ratios, which are to its own ILP."
)
SEEDS = " (splits, training and order of the text; theta is the median)"
NO_FIGURES = "The paper’s figures are left out: they are of another corpus."


GOLD, ILP = "F1 against gold", "F1 against ILP"
COLUMNS = (
    Column(GOLD, "entity", "Micro F1 of entity types against the annotators; “none” does not count.",
           score_of("entity_f1_gold")),
    Column(GOLD, "relation", "Micro F1 of relations against the annotators; “no relation” does not count.",
           score_of("relation_f1_gold")),
    Column(ILP, "entity", "F1 of entity types against the ILP’s answers: what speed costs.",
           score_of("entity_f1_ilp")),
    Column(ILP, "relation", "F1 of relations against the ILP’s answers.", score_of("relation_f1_ilp")),
    *MEASURED,
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
    return (
        (f"<p>{FIGURES if paper else NO_FIGURES} {how_sure(about, 'sentence', SEEDS)}</p>")
        + _table("Table 1: every cost computed", "The paper’s searches; its algorithm as listed, and ours.", first,
                 paper, rows, scale)
        + _table("Table 2: costs skipped", "Where the gap between the heuristic’s candidates exceeds θ, costs are "
                 f"not computed. The paper’s θ is multiplied by the scale of our costs, {fixed(scale, 2)}; ours is "
                 f"calibrated on unlabeled sentences. {fastest(rows, calibrations)}", second, paper, rows, scale)
        + _table("Our rows", "Constraints within the search, and proof. Every cost computed.",
                 reference + ours if ours else [], (), rows, scale)
        + meanings(COLUMNS)
    )  # fmt: skip


def find_paper(row: Entry, paper: Iterable[Entry]) -> Entry | None:
    """Returns the paper's row for one of ours: the same table, model and beam, and theta as it is printed."""
    same = ("table", "model", "beam", "relative_theta")  # an older version's rows lack the last
    return next((theirs for theirs in paper if all(theirs.get(key, "") == row.get(key) for key in same)), None)


def _table(
    title: str, said: str, chosen: Sequence[Entry], paper: Sequence[Entry], rows: Sequence[Entry], scale: float
) -> str:
    """Returns a table of some rows, the paper's figures below its own methods."""
    if not chosen:
        return ""
    ilp, theirs_ilp = find(rows, Model.ILP), find(paper, Model.ILP)
    columns = [column for column in COLUMNS if not (paper and column.head in ("proved", "solver"))]
    theta = Column("", "θ", "The gap above which costs are skipped", lambda row, ilp: _theta(row, scale))

    def below(row: Entry) -> tuple[Entry, Entry] | None:
        theirs = find_paper(row, paper)
        return None if theirs is None else (theirs, theirs_ilp)

    leading = [theta] if any(row.get("theta") is not None for row in chosen) else []
    return f"<h3>{title}</h3><p>{said}</p>{results_table(chosen, columns, ilp, leading=leading, below=below)}"


def _theta(row: Entry, scale: float) -> str:
    """Returns our theta, or the paper's as it is printed."""
    return theta_of(row, scale) if "theta" in row else fixed(row.get("relative_theta"), 2)


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
        f"{too_little}{plain_table(rows, columns)}"
        if rows
        else ""
    )

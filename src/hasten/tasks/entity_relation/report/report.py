"""The results of the paper's experiment as one HTML page that needs nothing else: no scripts, no network.

`results.json` holds the numbers (see `docs/results.md`); this page shows them: what matters first, then the
paper's tables with its figures beside ours, figures, learned weights in words, and sentences as graphs.
Nothing is measured here. What is missing from the results is missing from the page, or a dash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from hasten.support.files import write_whole
from hasten.tasks.entity_relation.names import Model, Training
from hasten.tasks.entity_relation.report.amortized import amortized
from hasten.tasks.entity_relation.report.differs import why_ours_differs
from hasten.tasks.entity_relation.report.figures import draw_figures, draw_weights
from hasten.tasks.entity_relation.report.graphs import draw_examples
from hasten.tasks.entity_relation.report.tables import calibration, find, tables
from hasten.tasks.entity_relation.report.traces import draw_traces
from hasten.tasks.report.formatting import (
    Entry,
    counted,
    fixed,
    number,
    percent,
    ratio,
    solvers_of,
    text,
    whole,
)
from hasten.tasks.report.page import COMMON, Facts, any_value, head, milliseconds, page, what_was_run

BLACK_BOXES: Mapping[str, str] = {
    Training.STRUCTURED: "a black box trained with inference in the loop",
    Training.INDEPENDENT: "a black box of independently trained classifiers",
}


def write_report(results: Entry, path: Path) -> None:
    """Writes the page, whole or not at all."""
    write_whole(Path(path), render(results).encode("utf-8", "replace"))


def render(results: Entry) -> str:
    """Returns the page for what `Experiment.run` returned."""
    about: Entry = results.get("about") or {}
    rows: list[Entry] = list(results.get("rows") or ())
    calibrations: list[Entry] = list(results.get("calibration") or ())
    sections = (
        ("Tables", tables(rows, list(results.get("paper") or ()), about, calibrations) + calibration(results)),
        ("Why ours differs", why_ours_differs(results)),
        ("Amortized inference", amortized(results)),
        ("Figures", draw_figures(results)),
        ("Learned weights", weights(results.get("weights") or ())),
        ("Sentences", sentences(results.get("examples") or (), about)),
        ("What was run", what_was_run(about, KNOWN)),
    )
    return page("hasten: entities and relations", headline(rows, about), sections, about)


def headline(rows: Sequence[Entry], about: Entry) -> str:
    """The few numbers that matter, and on what they were measured."""
    ilp, certified, speedup = find(rows, Model.ILP), find(rows, Model.CERTIFIED), find(rows, Model.SPEEDUP, 2)
    n_test, solver = about.get("n_test"), solvers_of(about)
    tiles = (
        (fixed(certified.get("exact_match"), 3), "exact match", "certified answers that are the ILP’s"),
        (fixed(certified.get("validity"), 3), "validity", "certified answers that break no constraint"),
        (
            whole(left_to_solver(certified, n_test)),
            "solver calls",
            f"for {whole(n_test)} sentences: {percent(certified.get('proved'))} proved without",
        ),
        (ratio(ilp, certified, "inference_ms"), "faster inference", f"certified, against {solver}, costs given"),
        (ratio(ilp, certified, "time_ms"), "faster end to end", "the same, with feature extraction"),
        (
            fixed(speedup.get("relation_f1_ilp"), 3),
            "relation F1 against the ILP",
            "the learned search alone, averaged weights, beam 2",
        ),
    )
    calibrates = (number(about.get("n_unlabeled")) or 0) - (number(about.get("n_learned")) or 0)
    learned = f"a speedup learned from its answers to {whole(about.get('n_learned'))} sentences without labels"
    learned += f" ({whole(calibrates)} more calibrate θ)" if calibrates > 0 else ""
    n_seeds = number(about.get("seeds")) or 1
    seeds = f" All of it was done {whole(n_seeds)} times, with other seeds each time." if n_seeds > 1 else ""
    n_runs = number(about.get("runs"))
    runs = "of one run" if n_runs == 1 else f"the mean of {whole(n_runs)} runs"
    black_box = BLACK_BOXES.get(str(about.get("black_box")), f"a black box ({text(about.get('black_box'))})")
    lead = (
        f"{text(about.get('source') or 'A corpus without a name')}: {black_box} on "
        f"{counted(about.get('n_train'), 'labelled sentence')}, {learned}, both tested on {whole(n_test)}.{seeds} "
        f"Times are CPU time of the whole test set in one thread, {runs}."
    )
    return head("Joint entities and relations", lead, tiles, about)


def left_to_solver(certified: Entry, n_test: object) -> int | None:
    """How many sentences the certified row left to the solver: as counted, or as its proofs imply."""
    calls, proved, n = number(certified.get("solver_calls")), number(certified.get("proved")), number(n_test)
    if calls is None or proved is None or n is None:
        return None
    return max(int(calls), round((1.0 - proved) * n))


def weights(rows: Sequence[Entry]) -> str:
    """The strongest learned weights."""
    return (
        "<p>What the speedup search (beam 2) learned from the black box’s answers alone. A positive weight "
        "draws the search towards a combination, a negative one away from it, in the unit of the costs.</p>"
        + draw_weights(rows)
    )


def sentences(examples: Sequence[Entry], about: Entry) -> str:
    """Test sentences as graphs, one drawing per method."""
    if not examples:
        return '<p class="empty">No sentence on which the methods differ was kept.</p>'
    return (
        "<p>Test sentences on which greedy search goes wrong. What differs from the ILP’s answer is orange; "
        "a dashed arc is a relation that the ILP has and this answer lacks.</p>"
    ) + (draw_examples(examples, [str(name) for name in about.get("entity_labels") or ()]) + draw_traces(examples))


def _in_words(value: object) -> str:
    return text(value.get("in_words")) if isinstance(value, Mapping) else text(None)


KNOWN: Facts = {  # what `about` holds: its name, and how it is shown
    **COMMON,
    "black_box": ("black box", text),
    "split": ("lists of ids that say who trains and tests", lambda value: any_value(value) or "none: drawn"),
    "n_left_out": ("labelled sentences set aside", whole),
    "papers_corpus": ("the paper’s own corpus", any_value),
    "n_unlabeled": ("sentences without labels to learn from, and to calibrate on", whole),
    "n_fresh": ("of them, those that the black box was not trained on", whole),
    "induced": ("labels and argument types taken from the training sentences", any_value),
    "held_out": ("labelled sentences set aside as unlabeled ones", any_value),
    "unreachable": ("gold that the training sentences never showed", _in_words),
    "entities_per_sentence": ("entities in a test sentence, on average", lambda value: fixed(value, 2)),
    "max_entities": ("entities in a test sentence, at most", whole),
    "entity_labels": ("types of entities", any_value),
    "relation_labels": ("relations", any_value),
    "cost_scale": ("scale of the costs: median gap of the two best labels", lambda value: fixed(value, 2)),
    "proved_unlabeled": ("unlabeled sentences proved without a solver", percent),
    "label_unlabeled_ms": ("time to prove them all, costs given", milliseconds),
}

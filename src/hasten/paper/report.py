"""The results of the paper's experiment as one HTML page that needs nothing else: no scripts, no network.

`results.json` holds the numbers (see `docs/results.md`); this page shows them: what matters first, then the
paper's tables with its figures beside ours, figures, learned weights in words, and sentences as graphs.
Nothing is measured here. What is missing from the results is missing from the page, or a dash.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from hasten.paper.figures import draw_figures, draw_weights, time_against_accuracy
from hasten.paper.sentences import draw_examples
from hasten.paper.tables import calibration, find, tables
from hasten.support.files import write_whole
from hasten.tasks.entity_relation.names import Model, Training
from hasten.tasks.evaluation.page import (
    COMMON,
    Entry,
    Facts,
    any_value,
    counted,
    fixed,
    head,
    how_timed,
    milliseconds,
    number,
    page,
    percent,
    plain_table,
    ratio,
    solvers_of,
    text,
    what_was_run,
    whole,
)
from hasten.trace.events import Trace
from hasten.trace.pictures import on_a_page

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
    paper: list[Entry] = list(results.get("paper") or ())
    sections = (
        ("Speed and accuracy", time_against_accuracy(rows, paper)),
        ("Sentences", sentences(results.get("examples") or (), about)),
        ("Tables", tables(rows, paper, about, calibrations) + calibration(results)),
        ("Figures", draw_figures(results)),
        ("Amortized inference", amortized(results)),
        ("Learned weights", weights(results.get("weights") or ())),
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
    black_box = BLACK_BOXES.get(str(about.get("black_box")), f"a black box ({text(about.get('black_box'))})")
    lead = (
        f"{text(about.get('source') or 'A corpus without a name')}: {black_box} on "
        f"{counted(about.get('n_train'), 'labelled sentence')}, {learned}, both tested on {whole(n_test)}. "
        f"{how_timed(about)}"
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


NAMES: Mapping[str, str] = {
    "exact": "exact: costs moved only in the answer’s favour",
    "margins": "margins: they moved against it by less than all others cost more",
    "cones": "cones: sums of past problems with one answer",
}
COLUMNS: tuple[tuple[str, Callable[[Entry], str]], ...] = (
    ("theorem", lambda row: text(NAMES.get(str(row.get("theorem")), row.get("theorem")))),
    ("learned from", lambda row: whole(row.get("learned_from"))),
    ("remembered", lambda row: whole(row.get("remembered"))),
    ("answered", lambda row: percent(row.get("answered"))),
    ("wrong", lambda row: whole(row.get("wrong"))),
    ("lookups, ms", lambda row: fixed(row.get("lookup_ms"), 1)),
    ("proofs, ms", lambda row: fixed(row.get("proof_ms"), 1)),
)


def amortized(results: Entry) -> str:
    """The table, with what it means."""
    rows = results.get("amortized") or ()
    if not rows:
        return '<p class="empty">Amortized inference was not measured.</p>'
    return (
        "<p>The predecessor of the paper’s idea (Srikumar, Kundu and Roth 2012; Kundu, Srikumar and Roth 2013) "
        "remembers the black box’s answers to unlabeled sentences, up to 1,024 of each size, and answers a test "
        "sentence where a theorem proves that one of them is its answer. Times are CPU time of the whole test set, "
        "costs given: of looking everything up, and of proving everything without it.</p>"
        f"{plain_table(rows, COLUMNS)}"
    )


def draw_traces(examples: Sequence[Mapping[str, Any]]) -> str:
    """Returns the examples that have traces, each to be unfolded; nothing if none has."""
    drawn = [drawing for drawing in map(_draw, examples) if drawing]
    if not drawn:
        return ""
    return (
        '<h3>Step by step</h3><p class="unfold">How greedy search and the learned search label a sentence, where they '
        "lose the ILP’s answer, and how that answer is proved. Click on a sentence to unfold it.</p>" + "".join(drawn)
    )


def _draw(example: Mapping[str, Any]) -> str:
    """Returns one example; nothing if its traces are missing, or not what `to_dict` wrote."""
    try:
        traces = example["traces"]
        parts = [Trace.from_dict(each).section() for each in (*traces["searches"], traces["proof"])]
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError):
        return ""
    words = " ".join(str(token) for token in example.get("tokens") or ())
    bodies = "".join(f'<div class="part">{part}</div>' for part in parts)
    return f'<details class="trace"><summary>{escape(words)}</summary>{on_a_page(bodies)}</details>'

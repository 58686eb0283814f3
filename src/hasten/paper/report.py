"""The results of the paper's experiment as one HTML page that needs nothing else: no scripts, no network.

`results.json` holds the numbers (see `docs/results.md`); this page shows them: the plot and sentences as graphs first,
then the paper's tables with its figures beside ours, curves, and learned weights in words. Nothing is measured here. A
section or a number that is missing from the results is missing from the page, or a dash.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hasten.paper.figures import draw_figures, draw_weights, time_against_accuracy
from hasten.paper.sentences import draw_examples
from hasten.paper.tables import amortized, calibration, tables
from hasten.support.words import Html, join, tag
from hasten.tasks.entity_relation.names import BlackBox, Model
from hasten.tasks.evaluation import page
from hasten.tasks.evaluation.tables import Entry, counted, fixed, number, percent, text, times, whole
from hasten.trace.drawing import on_a_page
from hasten.trace.events import Trace

FROM_VECTORS = "times begin with the encoder’s word vectors, which take far longer"
BLACK_BOXES: Mapping[str, str] = {
    BlackBox.STRUCTURED: "a black box trained with inference in the loop",
    BlackBox.INDEPENDENT: "a black box of independently trained classifiers",
    BlackBox.NEURAL: f"a neural black box trained on each label alone ({FROM_VECTORS})",
    BlackBox.NEURAL_STRUCTURED: f"a neural black box trained with inference in the loop ({FROM_VECTORS})",
    BlackBox.NEURAL_LIKELIHOOD: f"a neural black box trained by likelihood ({FROM_VECTORS})",
}
WEIGHTS = (
    "What the speedup search (beam 2) learned from the black box’s answers alone. A positive weight draws the "
    "search towards a combination, a negative one away from it, in the unit of the costs."
)
GRAPHS = (
    "Test sentences on which greedy search goes wrong. What differs from the ILP’s answer is orange; a dashed arc "
    "is a relation that the ILP has and this answer lacks."
)
STEPS = (
    "How greedy search and the learned search label a sentence, where they lose the ILP’s answer, and how that "
    "answer is proved. Click on a sentence to unfold it."
)


def write_report(results: Entry, path: Path) -> None:
    """Writes the page, whole or not at all."""
    page.write_page(render(results), path)


def render(results: Entry) -> str:
    """Returns the page for the results of `Experiment.run`."""
    about: Entry = results.get("about") or {}
    rows: list[Entry] = list(results.get("rows") or ())
    paper: list[Entry] = list(results.get("paper") or ())
    calibrations: list[Entry] = list(results.get("calibration") or ())
    facts = dict(about)
    for key, shown in (("proved_unlabeled", percent), ("label_unlabeled_ms", lambda ms: f"{fixed(ms, 1)} ms")):
        if number(facts.get(key)) is not None:
            facts[key] = shown(facts[key])
    if isinstance(facts.get("unreachable"), Mapping):
        facts["unreachable"] = facts["unreachable"].get("in_words")
    if facts.get("split") == []:
        facts["split"] = "none: drawn"
    sections = {
        "Speed and accuracy": time_against_accuracy(rows, paper),
        "Sentences": _sentences(results.get("examples") or (), about),
        "Tables": join(tables(rows, paper, about, calibrations), calibration(results)),
        "Figures": draw_figures(results),
        "Amortized inference": amortized(results),
        "Learned weights": join(tag("p", WEIGHTS), draw_weights(results.get("weights") or ())),
        "What was run": page.what_was_run(facts),
    }
    calibrates = (number(about.get("n_unlabeled")) or 0) - (number(about.get("n_learned")) or 0)
    black_box = BLACK_BOXES.get(str(about.get("black_box")), f"a black box ({text(about.get('black_box'))})")
    lead = (
        f"{text(about.get('source') or 'A corpus without a name')}: {black_box} on "
        f"{counted(about.get('n_train'), 'labelled sentence')}, a speedup learned from its answers to "
        f"{whole(about.get('n_learned'))} sentences without labels"
        f"{f' ({whole(calibrates)} more calibrate θ)' if calibrates > 0 else ''}, both tested on "
        f"{whole(about.get('n_test'))}. {page.how_timed(about)}"
    )
    return page.page("Joint entities and relations", lead, _tiles(rows, about), sections, about)


def _tiles(rows: Sequence[Entry], about: Entry) -> Iterator[page.Tile]:
    ilp, certified, speedup = (page.find(rows, *key) for key in ((Model.ILP,), (Model.CERTIFIED,), (Model.SPEEDUP, 2)))
    yield fixed(certified.get("exact_match")), "exact match", "certified answers that are the ILP’s"
    yield fixed(certified.get("validity")), "validity", "certified answers that break no constraint"
    calls, proved = (number(certified.get(key)) for key in ("solver_calls", "proved"))
    n = number(about.get("n_test"))
    if calls is not None and proved is not None and n is not None:
        calls = max(calls, round((1.0 - proved) * n))  # as counted, or as its proofs imply
    yield whole(calls), "solver calls", f"for {whole(n)} sentences: {percent(proved)} proved without"
    faster = times(page.ratio(ilp, certified, "inference_ms"))
    yield faster, "faster inference", f"certified, against {page.solvers_of(about)}, costs given"
    yield times(page.ratio(ilp, certified, "time_ms")), "faster end to end", "the same, with feature extraction"
    alone = "the learned search alone, averaged weights, beam 2"
    yield fixed(speedup.get("relation_f1_ilp")), "relation F1 against the ILP", alone


def _sentences(examples: Sequence[Entry], about: Entry) -> Html:
    """Returns test sentences as graphs, one drawing per method, and those that have traces step by step."""
    if not examples:
        return page.empty("No sentence on which the methods differ was kept.")
    unfolding = []
    for example in examples:
        try:
            traces = example["traces"]
            parts = [Html(Trace.from_dict(each).section()) for each in (*traces["searches"], traces["proof"])]
        except (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError):  # missing, or damaged
            continue
        words = " ".join(str(token) for token in example.get("tokens") or ())
        bodies = Html(on_a_page(*(tag("div", part, class_="part") for part in parts)))
        unfolding.append(tag("details", tag("summary", words), bodies, class_="trace"))
    drawn = draw_examples(examples, [str(name) for name in about.get("entity_labels") or ()])
    steps = [tag("h3", "Step by step"), tag("p", STEPS, class_="unfold"), unfolding] if unfolding else []
    return join(tag("p", GRAPHS), drawn, steps)

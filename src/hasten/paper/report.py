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
from hasten.paper.tables import amortized, calibration, find, tables
from hasten.support.html import Html, join, tag
from hasten.tasks.entity_relation.names import BlackBox, Model
from hasten.tasks.evaluation.page import (
    COMMON,
    Facts,
    Tile,
    any_value,
    empty,
    how_timed,
    page,
    ratio,
    solvers_of,
    what_was_run,
    write_page,
)
from hasten.tasks.evaluation.tables import DASH, Entry, counted, fixed, number, percent, text, times, whole
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
KNOWN: Facts = {  # keys of `about`: their names, and how they are written
    **COMMON,
    "split": ("lists of ids that say who trains and tests", lambda value: any_value(value) or "none: drawn"),
    "n_left_out": ("labelled sentences set aside", whole),
    "papers_corpus": ("the paper’s own corpus", any_value),
    "n_unlabeled": ("sentences without labels to learn from, and to calibrate on", whole),
    "n_fresh": ("of them, those that the black box was not trained on", whole),
    "induced": ("labels and argument types taken from the training sentences", any_value),
    "held_out": ("labelled sentences set aside as unlabeled ones", any_value),
    "unreachable": ("gold that the training sentences never showed",
                    lambda value: text(value.get("in_words") if isinstance(value, Mapping) else None)),
    "entities_per_sentence": ("entities in a test sentence, on average", lambda value: fixed(value, 2)),
    "max_entities": ("entities in a test sentence, at most", whole),
    "entity_labels": ("types of entities", any_value),
    "relation_labels": ("relations", any_value),
    "cost_scale": ("scale of the costs: median gap of the two best labels", lambda value: fixed(value, 2)),
    "proved_unlabeled": ("unlabeled sentences proved without a solver", percent),
    "label_unlabeled_ms": ("time to prove them all, costs given",
                           lambda value: DASH if number(value) is None else f"{fixed(value, 1)} ms"),
}  # fmt: skip


def write_report(results: Entry, path: Path) -> None:
    """Writes the page, whole or not at all."""
    write_page(render(results), path)


def render(results: Entry) -> str:
    """Returns the page for the results of `Experiment.run`."""
    about: Entry = results.get("about") or {}
    rows: list[Entry] = list(results.get("rows") or ())
    calibrations: list[Entry] = list(results.get("calibration") or ())
    paper: list[Entry] = list(results.get("paper") or ())
    sections = {
        "Speed and accuracy": time_against_accuracy(rows, paper),
        "Sentences": sentences(results.get("examples") or (), about),
        "Tables": join(tables(rows, paper, about, calibrations), calibration(results)),
        "Figures": draw_figures(results),
        "Amortized inference": amortized(results),
        "Learned weights": weights(results.get("weights") or ()),
        "What was run": what_was_run(about, KNOWN),
    }
    return page("Joint entities and relations", lead(about), tiles(rows, about), sections, about)


def lead(about: Entry) -> str:
    """Says what was done, in a few sentences."""
    calibrates = (number(about.get("n_unlabeled")) or 0) - (number(about.get("n_learned")) or 0)
    learned = f"a speedup learned from its answers to {whole(about.get('n_learned'))} sentences without labels"
    learned += f" ({whole(calibrates)} more calibrate θ)" if calibrates > 0 else ""
    black_box = BLACK_BOXES.get(str(about.get("black_box")), f"a black box ({text(about.get('black_box'))})")
    return (
        f"{text(about.get('source') or 'A corpus without a name')}: {black_box} on "
        f"{counted(about.get('n_train'), 'labelled sentence')}, {learned}, both tested on "
        f"{whole(about.get('n_test'))}. {how_timed(about)}"
    )


def tiles(rows: Sequence[Entry], about: Entry) -> Iterator[Tile]:
    """Yields the few numbers that matter."""
    ilp, certified, speedup = find(rows, Model.ILP), find(rows, Model.CERTIFIED), find(rows, Model.SPEEDUP, 2)
    n_test, proved = about.get("n_test"), percent(certified.get("proved"))
    yield fixed(certified.get("exact_match")), "exact match", "certified answers that are the ILP’s"
    yield fixed(certified.get("validity")), "validity", "certified answers that break no constraint"
    calls = whole(left_to_solver(certified, n_test))
    yield calls, "solver calls", f"for {whole(n_test)} sentences: {proved} proved without"
    faster = times(ratio(ilp, certified, "inference_ms"))
    yield faster, "faster inference", f"certified, against {solvers_of(about)}, costs given"
    yield times(ratio(ilp, certified, "time_ms")), "faster end to end", "the same, with feature extraction"
    alone = "the learned search alone, averaged weights, beam 2"
    yield fixed(speedup.get("relation_f1_ilp")), "relation F1 against the ILP", alone


def left_to_solver(certified: Entry, n_test: object) -> int | None:
    """Returns how many sentences the certified row left to the solver: as counted, or as its proofs imply."""
    calls, proved, n = number(certified.get("solver_calls")), number(certified.get("proved")), number(n_test)
    if calls is None or proved is None or n is None:
        return None
    return max(int(calls), round((1.0 - proved) * n))


def weights(rows: Sequence[Entry]) -> Html:
    """Returns the strongest learned weights."""
    said = (
        "What the speedup search (beam 2) learned from the black box’s answers alone. A positive weight draws the "
        "search towards a combination, a negative one away from it, in the unit of the costs."
    )
    return join(tag("p", said), draw_weights(rows))


def sentences(examples: Sequence[Entry], about: Entry) -> Html:
    """Returns test sentences as graphs, one drawing per method, and some of them step by step."""
    if not examples:
        return empty("No sentence on which the methods differ was kept.")
    said = (
        "Test sentences on which greedy search goes wrong. What differs from the ILP’s answer is orange; a dashed arc "
        "is a relation that the ILP has and this answer lacks."
    )
    drawn = draw_examples(examples, [str(name) for name in about.get("entity_labels") or ()])
    return join(tag("p", said), drawn, draw_traces(examples))


def draw_traces(examples: Sequence[Entry]) -> Html:
    """Returns the examples that have traces, each to be unfolded; nothing if none has."""
    drawn = [drawing for drawing in map(_draw_trace, examples) if drawing]
    said = (
        "How greedy search and the learned search label a sentence, where they lose the ILP’s answer, and how that "
        "answer is proved. Click on a sentence to unfold it."
    )
    return join(tag("h3", "Step by step"), tag("p", said, class_="unfold"), drawn) if drawn else Html()


def _draw_trace(example: Entry) -> Html:
    """Returns one example; nothing if its traces are missing, or not what `to_dict` wrote."""
    try:
        traces = example["traces"]
        parts = [Html(Trace.from_dict(each).section()) for each in (*traces["searches"], traces["proof"])]
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError):
        return Html()
    words = " ".join(str(token) for token in example.get("tokens") or ())
    bodies = Html(on_a_page(*(tag("div", part, class_="part") for part in parts)))
    return tag("details", tag("summary", words), bodies, class_="trace")

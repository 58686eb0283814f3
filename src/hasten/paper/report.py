"""The results of the paper's experiment: one HTML page that needs nothing else, and tables in the terminal.

`results.json` holds the numbers (see `docs/results.md`); the page shows them: the plot and sentences as graphs first,
then the paper's two tables with its figures below its own methods, our rows, curves, and learned weights in words.
Nothing is measured here. A section or a number that is missing from the results is missing from the page, or a dash.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console

from hasten.kernels.search.nodes import FORCED, theta_in_words
from hasten.paper.figures import draw_figures, draw_weights, time_against_accuracy
from hasten.support.words import Html, join, tag
from hasten.tasks.entity_relation.task import BlackBox, Model
from hasten.tasks.evaluation import examples, page
from hasten.tasks.evaluation.page import Cell, Column, Entry, Line, column
from hasten.trace.drawing import on_a_page
from hasten.trace.events import Trace

FIGURES = (
    "The paper’s figures stand below the rows that are its own methods: the ILP, its two searches, and Algorithm 1 as "
    "listed. Its times are of another machine and of other software: compare ratios, which are to its own ILP."
)
NO_FIGURES = "The paper’s figures are left out: they are of another corpus."
SEEDS = " (splits, training and order of the text; theta is the median)"
GOLD, ILP = "F1 against gold", "F1 against ILP"
COLUMNS = (
    page.score("entity", "entity_f1_gold", group=GOLD,
          meaning="Micro F1 of entity types against the annotators; “none” does not count."),
    page.score("relation", "relation_f1_gold", group=GOLD,
          meaning="Micro F1 of relations against the annotators; “no relation” does not count."),
    page.score("entity", "entity_f1_ilp", group=ILP,
          meaning="F1 of entity types against the ILP’s answers: what speed costs."),
    page.score("relation", "relation_f1_ilp", group=ILP, meaning="F1 of relations against the ILP’s answers."),
    *page.MEASURED,
)  # fmt: skip
TITLES = {
    "1": ("Table 1 of the paper: every cost computed", "The paper’s searches; its algorithm as listed, and ours."),
    "2": ("Table 2 of the paper: costs skipped by θ", "Where the gap between the heuristic’s candidates exceeds θ, "
          "costs are not computed. The paper’s θ is multiplied by the scale of our costs; ours is calibrated on "
          "unlabeled sentences."),
    "ours": ("Our rows", "Constraints within the search, and proof. Every cost computed."),
}  # fmt: skip
CAPTION = (
    "b: beam width; θ: gap above which costs are skipped; costs: share computed; CPU ms of the whole test set in one "
    "thread, features included, all rows timed in turns. The report says more of each."
)


def find_paper(row: Entry, paper: Iterable[Entry]) -> Entry | None:
    """Returns the paper's row for one of ours: the same table, model and beam, and theta as it is printed."""
    same = ("table", "model", "beam", "relative_theta")
    return next((theirs for theirs in paper if all(theirs.get(key) == row.get(key) for key in same)), None)


def _lines(rows: Sequence[Entry], paper: Sequence[Entry], key: str) -> list[Line]:
    """Returns the rows of a table, the paper's below its own methods, each with its ratios."""
    paper, lines = page.with_ratios(paper), list[Line]()
    for row in page.with_ratios(rows):
        if (row.get("table") if row.get("table") in ("1", "2") else "ours") == key:
            lines.append((row, "best" if row.get("model") == Model.CERTIFIED else ""))
            theirs = find_paper(row, paper)
            if theirs is not None:
                lines.append(({**theirs, "model": "in the paper", "beam": None, "theta": None}, "paper"))
    return lines


def tables(rows: Sequence[Entry], paper: Sequence[Entry], about: Entry) -> Html:
    """Returns the paper's two tables, its figures under ours, and our own rows."""
    if not rows:
        return page.empty("No rows were measured.")
    theta = Column("θ", _theta_of, _in_units(page.number(about.get("cost_scale")) or 1.0))
    parts = [tag("p", f"{FIGURES if paper else NO_FIGURES} {page.how_sure(about, 'sentence', SEEDS)}")]
    for key, (title, said) in TITLES.items():
        lines = _lines(rows, paper, key)
        columns = [each for each in COLUMNS if not (paper and each.head in ("proved", "solver"))]
        leading = [page.model_column(), column("beam", "beam", page.whole), *([theta] if key == "2" else [])]
        more = f" {_fastest(rows)}" if key == "2" else ""
        if key == "ours":
            lines = [line for line in _lines(rows, (), "1") if line[0].get("model") == Model.ILP] + lines
        if lines:
            parts += [tag("h3", title), tag("p", said + more), page.html_table([*leading, *columns], lines)]
    return join(parts, page.meanings(COLUMNS))


def _theta_of(row: Entry) -> str:
    """Returns theta, in words where it is not a plain number; the paper's as it is printed."""
    theta = page.number(row.get("theta"))
    if theta is None:
        printed = row.get("relative_theta")
        return "all" if printed is None else page.fixed(printed, 2)
    return theta_in_words(theta) if theta == FORCED else f"{theta:.2f}"


def _in_units(scale: float) -> Cell:
    """Returns what writes a row's theta in units of the cost scale."""

    def written(row: Entry) -> str:
        theta = page.number(row.get("theta"))
        return "" if theta is None or theta == FORCED else f"{theta / scale:.3g} × scale"

    return written


def _fastest(rows: Sequence[Entry]) -> str:
    """Says how the fastest calibrated search compares with greedy search, by their rows: the paper's headline."""
    greedy, ilp = page.find(rows, Model.GREEDY), page.find(rows, Model.ILP)
    calibrated = (Model.CALIBRATED, Model.CALIBRATED_ENFORCED)
    skipping = [row for row in rows if row.get("model") in calibrated and row.get("theta") is not None]
    timed = [row for row in skipping if page.number(row.get("time_ms"))]
    if not timed or not greedy or not ilp:
        return ""
    best = min(timed, key=lambda row: float(row["time_ms"]))
    f1 = [page.fixed(row.get("relation_f1_gold")) for row in (best, greedy, ilp)]
    return (
        f"The fastest calibrated search, {page.name_of(best)}, is "
        f"{page.times(page.ratio(greedy, best, 'time_ms'))} as fast as unconstrained greedy search, end to end. Their "
        f"relation F1 against gold: {f1[0]} and {f1[1]}; the ILP’s: {f1[2]}."
    )


def show_results(results: Entry, console: Console) -> None:
    """Prints every row, the paper's figures below its own methods."""
    about, rows, paper = results["about"], results["rows"], results.get("paper") or ()
    seeds = page.number(about.get("seeds")) or 1
    what = f"{_tested(about)}{f' with each of {seeds:.0f} seeds' if seeds > 1 else ''}"
    said = f"{what}, {about['black_box']} black box, ILP by {page.solvers_of(about)}"
    console.print(said, style="bold", highlight=False, markup=False)
    columns = [
        column("model", "model"),
        column("b", "beam", page.whole),
        Column("θ", lambda row: _theta_of(row).replace("all", "")),
        column("rel.\nF1", "relation_f1_gold", page.fixed),
        column("rel.F1\nto ILP", "relation_f1_ilp", page.fixed),
        column("valid", "validity", lambda value: page.fixed(value, 2)),
        column("exact", "exact_match", page.fixed),
        column("costs", "costs_computed", lambda value: page.percent(value, 0)),
        column("CPU\nms", "time_ms", page.short),
        column("times\nfaster", "times_faster", page.short),
    ]
    for key, (title, _) in TITLES.items():
        if lines := _lines(rows, paper, key):
            console.print(page.terminal_table(columns, lines, title))
    console.print(CAPTION, style="dim", highlight=False)
    console.print(_fastest(rows), highlight=False, markup=False)


def _tested(about: Entry) -> str:
    return page.counted(about["n_test"], "synthetic test sentence" if about["synthetic"] else "test sentence")


def show_story(results: Entry, console: Console) -> None:
    """Prints the story in a few lines: solver, certified answers, greedy search, and a learned search."""
    about, rows = results["about"], results["rows"]
    ilp, certified, greedy = (page.find(rows, model) for model in (Model.ILP, Model.CERTIFIED, Model.GREEDY))
    slow, fast = (page.short(row["inference_ms"]) for row in (ilp, certified))
    same, proved = (
        "all" if certified[key] == 1.0 else page.percent(certified[key]) for key in ("exact_match", "proved")
    )
    faster = page.times(page.ratio(ilp, certified, "inference_ms"))
    for line in (
        f"{_tested(about)}. {page.solvers_of(about)}: {slow} ms. hasten: {fast} ms, {faster} as fast.",
        f"Of hasten's answers {same} are the solver's, {proved} proved without it.",
        f"Greedy search takes {page.short(greedy['inference_ms'])} ms, but {1 - greedy['validity']:.0%} of its answers "
        "break a constraint.",
    ):
        console.print(line, highlight=False, markup=False)
    learned = page.find(rows, Model.SPEEDUP, 2)
    shown = {"ILP solver": ilp, "hasten, certified": certified, "learned search, b=2": learned, "greedy search": greedy}
    columns = [
        column("", "name"),
        column("solver's\nanswer", "exact_match", page.percent),
        column("valid", "validity", page.percent),
        column("relation\nF1", "relation_f1_gold", page.fixed),
        column("inference\nms", "inference_ms", page.short),
        column("with features\nms", "time_ms", page.short),
    ]
    lines: list[Line] = [({**row, "name": name}, "best" if row is certified else "") for name, row in shown.items()]
    console.print(page.terminal_table(columns, lines))


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
    facts = dict(about)
    if page.number(facts.get("proved_unlabeled")) is not None:
        facts["proved_unlabeled"] = page.percent(facts["proved_unlabeled"])
    if isinstance(facts.get("unreachable"), Mapping):
        facts["unreachable"] = facts["unreachable"].get("in_words")
    sections = {
        "Speed and accuracy": time_against_accuracy(rows, paper),
        "Sentences": _sentences(results.get("examples") or ()),
        "Tables": tables(rows, paper, about),
        "Figures": draw_figures(results),
        "Learned weights": join(tag("p", WEIGHTS), draw_weights(results.get("weights") or ())),
        "What was run": page.what_was_run(facts),
    }
    calibrates = (page.number(about.get("n_unlabeled")) or 0) - (page.number(about.get("n_learned")) or 0)
    black_box = BLACK_BOXES.get(str(about.get("black_box")), f"a black box ({page.text(about.get('black_box'))})")
    lead = (
        f"{page.text(about.get('source') or 'A corpus without a name')}: {black_box} on "
        f"{page.counted(about.get('n_train'), 'labelled sentence')}, a speedup learned from its answers to "
        f"{page.whole(about.get('n_learned'))} sentences without labels"
        f"{f' ({page.whole(calibrates)} more calibrate θ)' if calibrates > 0 else ''}, both tested on "
        f"{page.whole(about.get('n_test'))}. {page.how_timed(about)}"
    )
    return page.page("Joint entities and relations", lead, _tiles(rows, about), sections, about)


def _tiles(rows: Sequence[Entry], about: Entry) -> Iterator[page.Tile]:
    certified, speedup = page.find(rows, Model.CERTIFIED), page.find(rows, Model.SPEEDUP, 2)
    yield from page.tiles(rows, certified, about, "sentence")
    yield page.fixed(certified.get("validity")), "validity", "certified answers that break no constraint"
    alone = "the learned search alone, averaged weights, beam 2"
    yield page.fixed(speedup.get("relation_f1_ilp")), "relation F1 against the ILP", alone


def _sentences(found: Sequence[Entry]) -> Html:
    """Returns test sentences with the labels of each method, and those that have traces step by step."""
    unfolding = []
    for example in found:
        try:
            traces = example["traces"]
            parts = [Html(Trace.from_dict(each).section()) for each in (*traces["searches"], traces["proof"])]
        except (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError):  # missing, or damaged
            continue
        words = " ".join(str(word) for word, _ in example.get("words") or ())
        bodies = Html(on_a_page(*(tag("div", part, class_="part") for part in parts)))
        unfolding.append(tag("details", tag("summary", words), bodies, class_="trace"))
    steps = [tag("h3", "Step by step"), tag("p", STEPS, class_="unfold"), unfolding] if unfolding else []
    return join(examples.draw(found), steps)

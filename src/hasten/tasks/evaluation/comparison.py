"""Any task from top to bottom: train, let methods answer test texts in turns, compare with gold and ILP, make a page.

Some labelled texts train the model, and the others test; a `Speedup` learns from the training texts, not from their
labels (the paper's Algorithm 1, averaged). With several seeds all of this is done for each. `Comparison.run` returns
plain data, for `results.json`; `render` makes a page of it, `show_comparison` prints it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

from hasten.errors import CorpusError
from hasten.learning.learner import Learner
from hasten.model.batch import Batch
from hasten.model.solution import Solutions
from hasten.proof.certifier import Certifier
from hasten.search.beam import BeamSearch, greedy
from hasten.speedup.parts import Search
from hasten.speedup.predictor import Speedup
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.words import Html, join, tag
from hasten.tasks.evaluation import examples, page
from hasten.tasks.evaluation.charts import Axis, Point, Series, figure, how_proved, time_by_size
from hasten.tasks.evaluation.measuring import Ilp, Method, TestSet, in_words
from hasten.tasks.evaluation.page import Column, Entry, Line, column
from hasten.tasks.evaluation.study import Measured, Measuring, Study
from hasten.tasks.task import Baseline, Model, Task

ILP, CERTIFIED, GREEDY, BEAM, SPEEDUP = "ILP", "certified", "greedy search", "beam search", "speedup"
LEAST = 4  # texts
SHARE = 0.7  # of them that train
WIDTHS = (2, 8)


@dataclass(frozen=True)
class Comparison(Study):
    """A task, its labelled texts, and how to compare methods on them.

    `test` are the texts to test on; without it, 70% of the texts train and the rest test, drawn by the seed.
    """

    task: Task[Any]
    texts: Sequence[Any]
    test: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        least = min(len(self.texts), LEAST if self.test is None else len(self.test))
        if least < (LEAST if self.test is None else 1):
            raise CorpusError(f"Got {len(self.texts)} labelled texts; a comparison needs {LEAST} at least. Give more.")

    def once(self, how: Measuring) -> tuple[list[Measured], IntArray, Callable[[], dict[str, Any]]]:
        """Trains a model and a speedup, lets the ILP solver answer the test texts, and measures every method."""
        if self.test is not None:
            train, test, numbers = self.texts, self.test, np.arange(len(self.test))
        else:
            order = np.random.default_rng(how.seed).permutation(len(self.texts))
            cut = min(max(1, round(SHARE * len(order))), len(order) - 1)
            numbers = np.sort(order[cut:])
            train, test = ([self.texts[n] for n in some] for some in (order[:cut], numbers))
        model = self.task.train(train, seed=how.seed, progress=how.progress)
        how.progress("Learning the speedup", None)
        batch = model.batch(train)
        learner = Learner(WIDTHS[0], enforce=False, look_ahead=False, epochs=5, seed=how.seed)
        answer = Search(WIDTHS[0], enforce=False, look_ahead=False, guided=True, learner=learner)
        speedup = Speedup.paper(batch.structures[0].schema, answer=answer).fit(batch)
        ilp = Ilp(self.solver, self.time_limit)
        tests = TextTestSet(ilp.answer(model.batch(test), how.progress), ilp, how, model, test, speedup)

        def findings() -> dict[str, Any]:
            batch = tests.batch
            sizes = {"n_train": len(train), "n_test": len(batch), "variables": int(batch.labels_at[-1])}
            most = {"max_variables": int(batch.n_variables.max(initial=0))}
            return {
                "title": self.task.title,
                "scores": list(model.scores),
                "about": sizes | most | dict(model.facts()),
                "proofs": proved_by(batch),
                "by_size": tests.times_by_size(),
                "examples": tests.examples(),
            }

        return tests.rows(), numbers, findings


class Inputs(NamedTuple):
    """The test texts in some order, and their problems."""

    texts: Sequence[Any]
    batch: Batch


@dataclass(frozen=True, eq=False)
class TextTestSet(TestSet):
    """The test texts of one seed, the trained model, and a speedup that learned from its answers."""

    model: Model[Any]
    texts: Sequence[Any]
    speedup: Speedup

    @property
    def scores(self) -> list[str]:
        """The keys of a row's scores: each against gold labels, then each against the ILP."""
        return [f"{name} {against}" for against in ("gold", "ilp") for name in self.model.scores]

    def counts(self, answers: Solutions) -> FloatArray:
        """Returns the counts of each text, against gold labels and against the ILP."""
        found = []
        for p, given in enumerate(self.texts):
            mine, ilps = (in_words(each, p) for each in (answers, self.answers))
            found.append([each for theirs in (self.model.gold(given), ilps) for each in self.model.count(mine, theirs)])
        return np.array(found, dtype=np.float64).reshape(len(self.texts), len(self.scores), 2)

    def shuffled(self, rng: np.random.Generator | None) -> Inputs:
        """Returns the texts in a fresh order."""
        if rng is None:
            return Inputs(self.texts, self.batch)
        order = rng.permutation(len(self.texts))
        return Inputs([self.texts[n] for n in order], self.batch.select(order))

    def problems(self, inputs: Inputs) -> Batch:
        """Returns texts as problems."""
        return replace(inputs.batch)

    def features(self, inputs: Inputs) -> object:
        """Computes the costs of texts."""
        return self.model.batch(inputs.texts)

    def rows(self) -> list[Measured]:
        """Returns a row for each method, all timed in turns."""

        def method(name: str, search: Baseline, note: str, beam: int | None = None) -> Method:
            def ready(inputs: Inputs) -> Callable[[], Solutions]:
                batch = self.problems(inputs)
                return lambda: search(batch)

            return Method(name, ready, about={"beam": beam, "note": note})

        every = [
            self.by_ilp(ILP),
            method(GREEDY, greedy(), "constraints ignored"),
            *(method(BEAM, BeamSearch(width), "forbidden tuples left out", width) for width in WIDTHS),
            method(SPEEDUP, self.speedup.predict, "learned from answers, constraints ignored", WIDTHS[0]),
            *(method(name, baseline, "the task’s own") for name, baseline in self.model.baselines().items()),
            self.certified(CERTIFIED, note="proved, or solved"),
        ]
        return self.measure(every, "Measuring all rows in turns")

    def times_by_size(self) -> list[dict[str, Any]]:
        """Returns the microseconds that a text takes, by its number of variables, in eight classes of size."""
        n_variables = self.batch.n_variables
        bounds = np.unique(np.percentile(n_variables, np.linspace(0, 100, 9)[1:-1]).astype(np.int64))
        group = np.searchsorted(bounds, n_variables)
        mean = np.bincount(group, n_variables) / np.maximum(1, np.bincount(group))
        searches: dict[str, Baseline] = {CERTIFIED: Certifier(), GREEDY: greedy(), **self.model.baselines()}
        return self.by_size(searches, np.round(mean[group], 1), "variables")

    def examples(self) -> list[dict[str, Any]]:
        """Returns some short texts on which greedy search does not find the ILP's answer, labelled by each method."""
        baselines = {name: baseline(self.batch) for name, baseline in self.model.baselines().items()}
        known = {GREEDY: greedy()(self.batch), SPEEDUP: self.speedup.predict(self.batch)} | baselines

        def about(p: int) -> dict[str, Any]:
            names, gold = list(self.model.names(self.texts[p])), list(self.model.gold(self.texts[p]))
            return {"names": names, "null_labels": sorted(self.model.null_labels), "gold": gold}

        return examples.choose(GREEDY, known | {ILP: self.answers}, about)


def proved_by(batch: Batch) -> dict[str, int]:
    """Returns how many problems each step of the certifier proved, and how many it left open."""
    counts = {str(step): n for step, n in Certifier().report(batch).proved_by.items()}
    return counts | {"left open": len(batch) - sum(counts.values())}


COLOURS = {ILP: 5, CERTIFIED: 1, GREEDY: 2, BEAM: 3, SPEEDUP: 4}
CAPTION = (
    "b: beam width; valid, exact: share of texts that break no constraint, that have the ILP's answer; CPU ms: "
    "inference on the whole test set in one thread, costs given, all rows timed in turns; times faster than the ILP."
)


def render(results: Entry) -> str:
    """Returns the page for the results of `Comparison.run`."""
    about: Entry = results.get("about") or {}
    rows = page.with_ratios(results.get("rows") or ())
    scores = [str(name) for name in results.get("scores") or ()]
    lead = (
        f"{page.text(about.get('source') or 'A corpus without a name')}: a model trained on "
        f"{page.counted(about.get('n_train'), 'labelled text')}, tested on {page.whole(about.get('n_test'))}. "
        f"{page.how_timed(about)}"
    )
    sections = {
        "Speed and accuracy": _figures(results, rows),
        "Texts": examples.draw(results.get("examples") or ()),
        "Table": _table(rows, scores, about),
        "What was run": page.what_was_run(about),
    }
    title = str(results.get("title") or "A comparison")
    return page.page(title, lead, _tiles(rows, scores, about), sections, about)


def _tiles(rows: Sequence[Entry], scores: Sequence[str], about: Entry) -> Iterator[page.Tile]:
    certified = page.find(rows, CERTIFIED)
    yield from page.tiles(rows, certified, about, "text")
    for baseline in [row for row in rows if row.get("model") not in COLOURS][:1]:  # the task's own
        name, exact = page.text(baseline.get("model")), page.number(baseline.get("exact_match"))
        if exact is not None and exact < 1.0:
            yield page.fixed(exact), f"exact match of {name}", "the task’s own method, which is not exact here"
        else:
            yield (
                page.times(page.ratio(baseline, certified, "inference_ms")),
                f"as fast as {name}",
                "certified, inference",
            )
    for name in scores[-1:]:
        yield page.fixed(certified.get(f"{name} gold")), name, "against gold labels"


def _lines(rows: Sequence[Entry]) -> list[Line]:
    return [(row, "best" if row.get("model") == CERTIFIED else "") for row in rows]


def _table(rows: Sequence[Entry], scores: Sequence[str], about: Entry) -> Html:
    if not rows:
        return page.empty("No rows were measured.")
    columns = [
        page.score(name, f"{name} {key}", group=f"Against {against}",
              meaning=f"{name[:1].upper()}{name[1:]} against {theirs}.")
        for against, theirs, key in (("gold", "gold labels", "gold"), ("ILP", "the ILP’s answers", "ilp"))
        for name in scores
    ]  # fmt: skip
    columns += [column for column in page.MEASURED if column.group != "Costs"]  # all are computed
    gold = "Gold labels may break the rules; then no valid answer has them all."
    shown = page.html_table([page.model_column(), column("beam", "beam", page.whole), *columns], _lines(rows))
    return join(tag("p", f"{page.how_sure(about, 'text')} {gold}"), shown, page.meanings(columns))


def _figures(results: Entry, rows: Sequence[Entry]) -> Html:
    """Returns time against accuracy, time against size, and how answers were proved."""
    accuracy = []
    for row in rows:
        point = Point(row.get("inference_ms"), row.get("exact_match"), page.name_of(row))
        accuracy.append(Series(page.name_of(row), [point], COLOURS.get(str(row.get("model")), 6), line=False))
    ms, exact = Axis("CPU ms of the whole test set, inference", "log"), Axis("exact match with the ILP", "near one")
    shown = [
        figure("Time against exactness", ms, exact, accuracy, "Up and to the left is better."),
        time_by_size(results.get("by_size") or (), "variables"),
    ]
    proofs: Mapping[str, object] = results.get("proofs") or {}
    if any(proofs.values()):
        shown.append(how_proved({"test texts": proofs}))
    return tag("div", shown, class_="figures")


def show_comparison(results: dict[str, Any], console: Console) -> None:
    """Prints every row of a comparison."""
    about, rows = results["about"], page.with_ratios(results["rows"])
    what = page.counted(about["n_test"], "test text")
    console.print(f"{what}, ILP by {page.solvers_of(about)}", style="bold", highlight=False, markup=False)

    def with_interval(name: str) -> Column:  # side by side, without the zeros before their points
        def cell(row: Entry) -> str:
            shown = f" {page.fixed(row.get(f'{name} gold'))} {page.limits(row, f'{name} gold')}"
            return shown.replace(" 0.", " .").replace("–0.", "–.").strip()

        return Column(f"{name}\nto gold", cell)

    columns = [
        column("model", "model"),
        column("b", "beam", page.whole),
        *(with_interval(str(name)) for name in results["scores"]),
        column("valid", "validity", page.fixed),
        column("exact", "exact_match", page.fixed),
        column("proved", "proved", page.fixed),
        column("CPU\nms", "inference_ms", page.short),
        column("times\nfaster", "times_faster_inference", page.short),
    ]
    console.print(page.terminal_table(columns, _lines(rows)))
    console.print(CAPTION, style="dim", highlight=False)

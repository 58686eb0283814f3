"""Precision, recall and F1 of each label with intervals, which labels are taken for which, and a page of all that.

Sentences are added one by one and only counts are kept, so that any number of them can be evaluated. Intervals are by
the bootstrap: a sentence counts as often as it is drawn, which for each resample is a Poisson variable of mean 1.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice, zip_longest
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from rich.console import Console

from hasten.errors import CorpusError
from hasten.model.batch import Batch
from hasten.model.solution import Solutions, Source
from hasten.solvers import make_solver
from hasten.speedup.black_box import prove_or_solve
from hasten.support.arrays import FloatArray
from hasten.support.environment import package_version
from hasten.support.files import write_whole
from hasten.support.terminal import Progress, no_progress, printable
from hasten.support.words import Html, count, join, tag
from hasten.tasks.evaluation import page
from hasten.tasks.evaluation.measuring import in_words
from hasten.tasks.evaluation.page import Column, Entry, Line, column
from hasten.tasks.evaluation.study import N_RESAMPLES, TAILS
from hasten.tasks.task import Model

Item = tuple[Hashable, str]  # a place, and its label
Items = Mapping[str, set[Item]]  # by kind of place, such as "type" and "relation"
Confused = Counter[tuple[str | None, str | None]]  # (gold, found), None where there is no label
Text = TypeVar("Text")

CHUNK = 256  # texts answered together
MOST = 8  # labels that are named


class Score(msgspec.Struct, frozen=True):
    """How well a label is found; each number with its interval. None where nothing says."""

    label: str
    n_gold: int
    n_found: int
    n_right: int
    precision: float | None
    recall: float | None
    f1: float | None
    intervals: dict[str, list[float]]


class Kind(msgspec.Struct):
    """The labels of one kind of place: each for itself, all together (micro), and what was taken for what."""

    micro: Score
    macro_f1: float | None
    labels: list[Score]
    confused: list[dict[str, Any]]  # gold, found, n


class Tally:
    """Counts of what answers have in common with gold labels, added sentence by sentence."""

    def __init__(self, kinds: Iterable[str], seed: int = 0) -> None:
        self.kinds = tuple(kinds)
        self.n = self.n_exact = 0  # sentences, and those all of whose labels are right
        self._rng = np.random.default_rng(seed)
        self._counts: dict[str, dict[str, FloatArray]] = {kind: {} for kind in self.kinds}  # of labels: (3, 1 + draws)
        self._confused: dict[str, Confused] = {kind: Counter() for kind in self.kinds}

    def add(self, gold: Items, found: Items) -> None:
        """Adds a sentence: its gold items and those of the answer, for each kind."""
        self.n += 1
        self.n_exact += all(gold[kind] == found[kind] for kind in self.kinds)
        drawn = np.append(1, self._rng.poisson(1.0, N_RESAMPLES))  # as it is, and how often each resample draws it
        for kind in self.kinds:
            self._confused[kind].update(confusions(gold[kind], found[kind]))
            for what, items in enumerate((gold[kind] & found[kind], found[kind], gold[kind])):
                for _, label in items:
                    self._counts[kind].setdefault(label, np.zeros((3, 1 + N_RESAMPLES)))[what] += drawn

    def result(self) -> dict[str, Kind]:
        """Returns the scores of each kind."""
        kinds = {}
        for kind, counts in self._counts.items():
            labels = [_score(label, counts[label]) for label in sorted(counts)]
            known = [score.f1 for score in labels if score.f1 is not None and score.n_gold]
            micro = _score("all", sum(counts.values(), np.zeros((3, 1 + N_RESAMPLES))))
            pairs = self._confused[kind].most_common()
            confused = [{"gold": gold, "found": found, "n": n} for (gold, found), n in pairs]
            kinds[kind] = Kind(micro, float(np.mean(known)) if known else None, labels, confused)
        return kinds


def confusions(gold: set[Item], found: set[Item]) -> Confused:
    """Counts, place by place, which gold label was taken for which other; None where there is no label."""
    counts: Confused = Counter((label, label) for _, label in gold & found)
    places: dict[Hashable, tuple[list[str], list[str]]] = {}
    for side, items in enumerate((gold - found, found - gold)):
        for place, label in sorted(items, key=itemgetter(1)):
            places.setdefault(place, ([], []))[side].append(label)
    for missed, wrong in places.values():
        counts.update(zip_longest(missed, wrong))
    return counts


def _score(label: str, counts: FloatArray) -> Score:
    """Returns the scores of a label, from its counts as they are and as each resample has them."""
    right, found, gold = counts
    values, limits = {}, {}
    for name, some, of in (("precision", right, found), ("recall", right, gold), ("f1", 2 * right, found + gold)):
        values[name] = float(some[0] / of[0]) if of[0] else None
        drawn = of[1:] > 0
        if of[0] and drawn.any():
            limits[name] = np.percentile(some[1:][drawn] / of[1:][drawn], TAILS).tolist()
    return Score(label, int(gold[0]), int(found[0]), int(right[0]), **values, intervals=limits)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Scores of each kind of label, and what is known of the answers."""

    kinds: dict[str, Kind]
    n: int  # sentences
    n_exact: int
    n_valid: int
    n_proved: int
    n_by_solver: int
    n_failed: int
    unreachable: dict[str, Any]  # gold labels that no answer can have; `in_words` says it

    def as_dict(self, **about: Any) -> dict[str, Any]:
        """Returns it for JSON, with what else is to be said about it."""
        of = max(1, self.n)
        return {
            "about": {"hasten": package_version("hasten"), **about},
            "n": self.n,
            "exact": self.n_exact / of,
            "valid": self.n_valid / of,
            "proved": self.n_proved / of,
            "n_by_solver": self.n_by_solver,
            "n_failed": self.n_failed,
            "unreachable": self.unreachable,
            "kinds": msgspec.to_builtins(self.kinds),
        }


def evaluate(
    model: Model[Text],
    texts: Iterable[Text],
    *,
    answer: Callable[[Batch], Solutions] | None = None,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Evaluation:
    """Lets a model answer texts, any number of them, and compares that with their gold labels.

    `answer` is how: by default certified, that is, proved, or solved by HiGHS.
    """
    solver = cache(partial(make_solver, "highs"))
    tally, counts, unknown, n_lost = Tally(model.items(()), seed), Counter[str](), Counter[str](), 0
    stream = iter(texts)
    while chunk := list(islice(stream, CHUNK)):
        batch = model.batch(chunk)
        found = prove_or_solve(batch, solver)[0] if answer is None else answer(batch)
        for p, given in enumerate(chunk):
            gold, one, problem = list(model.gold(given)), found[p], found.batch[p]
            tally.add(model.items(gold), model.items(in_words(found, p)))
            places = [kind.places.get(label, -1) for label, kind in zip(gold, problem.structure.kinds, strict=True)]
            unknown.update(label for label, place in zip(gold, places, strict=True) if place < 0)
            n_lost += -1 in places or not problem.check(np.array(places, dtype=np.int64)).valid
            is_solvers, failed = one.source is Source.SOLVER, one.values is None
            counts.update(n_valid=one.valid, n_proved=one.proved, n_by_solver=is_solvers, n_failed=failed)
        progress("Answering", None, f"{tally.n:,}")
    if not tally.n:
        raise CorpusError("There is nothing to evaluate on. Give texts with gold labels.")
    progress("Comparing", None)
    said = "All gold labels can be reached."
    if n_lost:
        what = "the gold labels of one text" if n_lost == 1 else f"the gold labels of {n_lost:,} texts"
        said = f"No answer can have all of {what}: they break the rules, or the model lacks them."
        named = ", ".join(f"{name} ({n:,})" for name, n in unknown.most_common(MOST))
        said += f" Labels that the model has never seen, each a lost point: {named}." if named else ""
    unreachable = {"n_texts": n_lost, "unknown": dict(unknown.most_common()), "in_words": said}
    return Evaluation(tally.result(), tally.n, tally.n_exact, unreachable=unreachable, **counts)


MOST_LABELS = 24  # of a picture; the rarest share a row
NOTHING, OTHERS = "no label", "other labels"


COLUMNS = [
    Column("label", lambda row: printable(str(row["label"]))),
    *(column(name, f"n_{name}", page.whole) for name in ("gold", "found", "right")),
    *(page.score(head, head.lower()) for head in ("precision", "recall", "F1")),
]


def _lines(kind: Entry) -> list[Line]:
    return [*((each, "") for each in kind["labels"]), ({**kind["micro"], "label": "all (micro)"}, "best")]


def show_evaluation(found: Evaluation, console: Console) -> None:
    """Prints the scores of each label, and what else is known of the answers."""
    interval = Column("95% of F1", lambda row: page.limits(row, "f1"))
    for name, kind in found.kinds.items():
        console.print(page.terminal_table([*COLUMNS, interval], _lines(msgspec.to_builtins(kind)), f"every {name}"))
    console.print(
        f"{count(found.n, 'sentence')}: {found.n_exact / found.n:.1%} right in every label, "
        f"{found.n_valid / found.n:.1%} valid, {found.n_proved / found.n:.1%} proved, "
        f"{found.n_by_solver:,} by the solver.",
        highlight=False,
    )
    console.print(printable(found.unreachable["in_words"]), highlight=False, soft_wrap=True, markup=False)


def write_evaluation(found: dict[str, Any], out: Path) -> tuple[Path, Path]:
    """Writes the same as JSON, and as a page with a picture of what is confused; returns both paths."""
    data, shown = out / "evaluation.json", out / "evaluation.html"
    write_whole(data, json.dumps(found, indent=1).encode())
    page.write_page(render(found), shown)
    return data, shown


def render(found: Entry) -> str:
    """Returns the page for the content of `evaluation.json`."""
    about, kinds = found["about"], found["kinds"]
    tiles: list[page.Tile] = [
        (page.fixed(kind["micro"]["f1"]), f"F1 of every {name}", page.limits(kind["micro"], "f1"))
        for name, kind in kinds.items()
    ]
    tiles.append((page.percent(found["exact"]), "of the sentences are right in every label", "compared with gold"))
    tiles.append((page.percent(found["valid"]), "of the answers keep every constraint", page.text(about.get("mode"))))
    lead = (
        f"{page.whole(found['n'])} labelled sentences of {page.text(about.get('source'))}, answered by the model "
        f"{page.text(about.get('model'))}. Intervals are 95% intervals by the bootstrap over sentences."
    )
    said = (found.get("unreachable") or {}).get("in_words")
    macro = "Macro F1, the mean over labels that have gold"
    sections = {
        f"Every {name}": join(
            page.html_table(COLUMNS, _lines(kind)), tag("p", f"{macro}: {page.fixed(kind['macro_f1'])}.")
        )
        for name, kind in kinds.items()
    }
    sections |= {f"What {name} is taken for what": _confusion(kind["confused"]) for name, kind in kinds.items()}
    sections |= {"Gold that cannot be reached": tag("p", said) if said else Html()}
    sections |= {"What was run": page.what_was_run(about)}
    return page.page("Evaluation", lead, tiles, sections, about, "evaluation.json")


def _confusion(pairs: Sequence[Entry]) -> Html:
    """Returns a table: a row for each gold label, a column for each found, darker the larger its share of the row."""
    if not pairs:
        return Html()
    often: Counter[str] = Counter()
    for each in pairs:
        often.update({label: int(each["n"]) for label in {each["gold"], each["found"]} if label is not None})
    common = {label for label, _ in often.most_common(MOST_LABELS)}
    grid: dict[str, Counter[str]] = {}
    for each in pairs:
        gold, found = (
            NOTHING if label is None else label if label in common else OTHERS
            for label in (each["gold"], each["found"])
        )
        grid.setdefault(gold, Counter())[found] += int(each["n"])
    names = [*sorted(common), *([OTHERS] if len(often) > len(common) else []), NOTHING]

    def taken_for(found: str) -> Column:
        def cell(row: Entry) -> str:
            gold, n = row["gold"], row["found"][found]
            share, hue = n / row["found"].total(), "--c3" if gold == found else "--c2"
            style = f"background:color-mix(in srgb, var({hue}) {8 + 92 * share:.0f}%, transparent)"
            said = f"{gold} found as {found}: {n:,} ({share:.0%} of its row)"
            return tag("b", page.whole(n), class_="dark" if share >= 0.6 else "", style=style, title=said) if n else ""

        return Column(tag("span", found), cell)

    lines: list[Line] = [({"gold": gold, "found": grid[gold]}, "") for gold in names if gold in grid]
    said = (
        "A row is a gold label, a column what was found in its place; numbers are counts, and a cell is darker the "
        "larger its share of the row."
    )
    return join(tag("p", said), page.html_table([column("", "gold"), *map(taken_for, names)], lines, "confusion"))

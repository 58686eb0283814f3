"""Runs the families and the peers in rounds, checks that all agree, and shows the results as tables and a page.

In every round all peers take turns, so that a disturbance of the machine meets them alike; of a problem's processor
times the least counts. Models are built beforehand. A slow peer answers fewer problems: its ratio to hasten counts only
the problems that both solved. A measurement is a plain row: one peer on the problems of one size. A corpus adds its
test sentences, with the costs of models trained on its other sentences.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from hasten.bench.families import FAMILIES, TASK, sentence_problems
from hasten.bench.peers import OWN, PEERS, PeerFailed, TimedAnswer, Worker
from hasten.errors import HastenError
from hasten.kernels.tolerance import TOLERANCE
from hasten.model.problem import Problem
from hasten.support.environment import describe_machine, package_version
from hasten.support.files import write_whole
from hasten.support.terminal import no_progress
from hasten.support.words import Html, join, tag
from hasten.tasks.entity_relation.data.corpora import Corpora, parts_of
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.scoring.features import intern
from hasten.tasks.entity_relation.scoring.training import train_black_box
from hasten.tasks.entity_relation.task import EntityRelationTask, Training
from hasten.tasks.evaluation import page
from hasten.tasks.evaluation.charts import Axis, Point, Series, figure
from hasten.tasks.evaluation.page import Column, Entry, Line, column

Report = Callable[[str], None]
Row = dict[str, Any]
Round = Sequence[TimedAnswer]  # a peer's answers to the first problems
ProblemSet = tuple[str, int, Sequence[Problem]]  # a family, a size, and its problems


@dataclass(frozen=True, slots=True)
class Settings:
    """The families, sizes and peers to measure, and for how long.

    None: all families, their own sizes, all installed peers. hasten itself is always measured.
    """

    families: Sequence[str] | None = None
    sizes: Sequence[int] | None = None
    peers: Sequence[str] | None = None
    n: int = 100  # problems of each size
    rounds: int = 3
    budget: float = 1.0  # seconds of a peer for the problems of one size, in one round
    time_limit: float = 5.0  # seconds of a peer for one problem
    seed: int = 0

    def problem_sets(self, corpus: Corpora | None) -> Iterator[ProblemSet]:
        """Yields the problems of each family and size, then those of a corpus."""
        for family in _choose("family", self.families, FAMILIES).values():
            for size in self.sizes or family.sizes:
                yield family.name, size, family.problems(size, self.n, self.seed)
        if corpus is not None:
            for name, problems in _corpus_problems(corpus, self.seed).items():
                yield name, 0, problems

    def installed(self, report: Report) -> list[str]:
        """Returns the peers that are installed; reports the others."""
        chosen = dict(PEERS) if self.peers is None else _choose("peer", (*OWN, *self.peers), PEERS)
        missing = {name: peer.package for name, peer in chosen.items() if not peer.installed}
        if missing:
            packages = " ".join(dict.fromkeys(map(str, missing.values())))
            report(f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed: pip install {packages}")
        return [name for name in chosen if name not in missing]


QUICK: dict[str, Any] = {"n": 10, "rounds": 2, "budget": 0.3, "time_limit": 2.0, "sizes": [4]}


def main(
    settings: Settings, out: Path | None = Path("results/peers"), corpus: Corpora | None = None, report: Report = print
) -> dict[str, Any]:
    """Measures, prints tables, and writes `peers.json` and `peers.html` into the directory `out`."""
    _choose("family", settings.families, FAMILIES)
    names = settings.installed(report)
    workers = {name: Worker(name, settings.time_limit) for name in names}
    try:
        measurements = _measure_all(settings.problem_sets(corpus), workers, settings, report)
    finally:
        for worker in workers.values():
            worker.close()
    results = {
        "machine": describe_machine(),
        "settings": asdict(settings),
        "measurements": measurements,
        "peers": {name: {"about": PEERS[name].about, "version": PEERS[name].version} for name in names},
    }
    show(results)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write_whole(out / "peers.json", json.dumps(results, indent=1).encode())
        page.write_page(render(results), out / "peers.html")
        report(f"Wrote {out / 'peers.html'}.")
    return results


def _measure_all(
    sets: Iterator[ProblemSet], workers: Mapping[str, Worker], settings: Settings, report: Report
) -> list[Row]:
    measurements: list[Row] = []
    too_slow: set[tuple[str, str]] = set()  # family and peer
    for family, size, problems in sets:
        found = _measure_set(problems, workers, {name for name in workers if (family, name) in too_slow}, settings)
        for name, row in found.items():
            row |= {"family": family, "size": size, "peer": name}
            row["ratio"] = {own: ratio(row, found[own]) if own in found else None for own in OWN}
            if row["seconds"] and not row["n_solved"]:
                too_slow.add((family, name))
        measurements += found.values()
        parts = (f"{name} {1e3 * row['mean']:.3g} ms" if row["seconds"] else f"{name} {row['status']}"
                 for name, row in found.items())  # fmt: skip
        report(f"{family} {size or ''}: {', '.join(parts)}")
    return measurements


def _measure_set(
    problems: Sequence[Problem], workers: Mapping[str, Worker], too_slow: set[str], settings: Settings
) -> dict[str, Row]:
    """Measures the peers on some problems."""
    rounds: dict[str, list[Round]] = {name: [] for name in workers}
    failed = {name: PeerFailed("slow", "It solved nothing of a smaller size within the limits.") for name in too_slow}
    for turn in range(settings.rounds):
        for name, worker in workers.items():
            mine = rounds[name]
            if name in failed or (turn and not all(each.optimal for each in mine[0])):  # a second try is no faster
                continue
            most = len(mine[0]) if turn else len(problems)
            if not turn and name == "hasten batch" and rounds.get("hasten"):
                most = len(rounds["hasten"][0])
            try:
                if not turn:
                    worker.load(problems)
                mine.append(worker.measure(settings.budget, most))
            except PeerFailed as error:
                failed[name] = error
    best = references(problems, [each for of_peer in rounds.values() for each in of_peer])
    rows = {name: summarise(problems, [] if name in failed else rounds[name], best) for name in workers}
    for name, failure in failed.items():
        rows[name] |= {"status": failure.status, "note": failure.why}
    return rows


def references(problems: Sequence[Problem], rounds: Sequence[Round]) -> list[float]:
    """Returns the least cost of each problem that any peer found a valid labelling for; inf if none did."""
    best = [math.inf] * len(problems)
    for answers in rounds:
        for p, answer in enumerate(answers):
            best[p] = min(best[p], _true_cost(problems[p], answer.labels))
    return best


def _true_cost(problem: Problem, labels: Any) -> float:
    """Returns the cost of a labelling as we count it; inf if there is none, or it breaks a constraint."""
    return problem.total(labels) if labels is not None and problem.check(labels).valid else math.inf


def summarise(problems: Sequence[Problem], rounds: Sequence[Round], best: Sequence[float]) -> Row:
    """Checks a peer's answers against the best known, and keeps its least times."""
    answers = list(zip(*rounds, strict=False))  # to each problem that every round came to

    def is_wrong(p: int, answer: TimedAnswer) -> bool:
        cost = _true_cost(problems[p], answer.labels)
        worse = cost > best[p] and cost - best[p] > TOLERANCE * max(1.0, abs(best[p]))
        return (answer.labels is not None and cost == math.inf) or (answer.optimal and worse)

    wrong = [p for p, given in enumerate(answers) if any(is_wrong(p, each) for each in given)]
    solved = [all(each.optimal for each in given) and p not in wrong for p, given in enumerate(answers)]
    seconds = [min(each.seconds for each in given) for given in answers]
    return {
        "status": "wrong" if wrong else "ok",
        "note": f"Not the optimum: problems {wrong[:5]}." if wrong else "",
        "n_problems": len(problems),
        "n_solved": sum(solved),  # proved optimal within the limits
        "n_wrong": len(wrong),
        "seconds": seconds,  # the least time of each problem
        "solved": solved,
        "by": dict(sorted(Counter(given[0].source for given in answers).items())),
        "mean": float(np.mean(seconds)) if seconds else None,  # a problem that reached a limit counts with that
    }


def ratio(theirs: Row, ours: Row) -> float | None:
    """Returns a peer's time divided by hasten's, on the problems that both solved."""
    if theirs["status"] != "ok" or ours["status"] != "ok":
        return None
    rows = zip(theirs["seconds"], theirs["solved"], ours["seconds"], ours["solved"], strict=False)
    both = [(their, our) for their, they_solved, our, we_solved in rows if they_solved and we_solved]
    return float(sum(their for their, _ in both) / sum(our for _, our in both)) if both else None


def _choose(noun: str, wanted: Sequence[str] | None, known: Mapping[str, Any]) -> dict[str, Any]:
    for name in wanted or ():
        if name not in known:
            raise HastenError(f"There is no {noun} {name!r}. There are {', '.join(known)}.")
    return {name: known[name] for name in wanted or known}


def split_of(corpora: Corpora, seed: int = 0) -> tuple[list[Sentence], list[Sentence]]:
    """Returns the sentences of a corpus for training and for testing: as its files divide it, or at random."""
    parts = parts_of(corpora.labelled, corpora.files, seed)
    train, test = ([corpora.labelled[n] for n in numbers] for numbers in (parts.train, parts.test))
    return train, test


def _corpus_problems(corpora: Corpora, seed: int) -> dict[str, list[Problem]]:
    """Returns the test sentences of a corpus with the costs of two models, trained on the other sentences."""
    train, test = split_of(corpora, seed)
    fitting = EntityRelationTask.fitting(corpora.labelled)
    task, text, found = TASK if fitting.is_papers else EntityRelationTask.induced(train), intern(test), {}
    for training in Training:
        scorer = train_black_box(training, train, task, seed=0, progress=no_progress)
        found[f"corpus {training}"] = sentence_problems(text.n_entities, scorer.costs(text)[0], task)
    return found


def _tables(results: Entry) -> Iterator[tuple[str, list[Column], list[Line]]]:
    """Yields the title, the columns and the rows of each family: the time of a problem, and its ratio to hasten's."""
    for family in dict.fromkeys(row["family"] for row in results["measurements"]):
        known, mine = FAMILIES.get(family), [row for row in results["measurements"] if row["family"] == family]
        sizes = dict.fromkeys(row["size"] for row in mine)
        heads = [(f"{size} {known.unit}" if size and known else "all", str(size)) for size in sizes]
        rows: list[Line] = [
            ({"peer": peer} | {str(row["size"]): cell(row) for row in mine if row["peer"] == peer}, "")
            for peer in results["peers"]
        ]
        columns = [column("", "peer"), *(column(head, size) for head, size in heads)]
        yield f"{family}: {known.about if known else 'the costs of a trained model'}", columns, rows


MEANING = "Time of a problem, its ratio to hasten's, its ratio to hasten's in batches"


def show(results: Entry, console: Console | None = None) -> None:
    """Prints the tables."""
    console = console or wide_console()
    for title, columns, rows in _tables(results):
        console.print(f"\n{title}", style="italic", highlight=False, markup=False)
        console.print(page.terminal_table(columns, rows))
    console.print(f"\n{MEANING}.", style="dim", highlight=False)


def wide_console() -> Console:
    """Returns the terminal; an output that is no terminal gets lines as long as tables need."""
    console = Console()
    return console if console.is_terminal else Console(width=180)


def cell(row: Entry) -> str:
    """Returns a measurement as text."""
    if not row["seconds"]:
        return str(row["status"])
    parts = [duration(row["mean"])]
    if row["peer"] not in OWN:
        parts += [page.times(row["ratio"][own]) for own in OWN]
    if row["status"] != "ok":
        parts.append(f"{row['status']} {row['n_wrong']}")
    if row["n_solved"] < len(row["seconds"]):
        parts.append(f"({row['n_solved']} of {len(row['seconds'])} solved)")
    if row["peer"] in OWN and row["by"].get("solver"):
        parts.append(f"({row['by']['solver']} by HiGHS)")
    return " ".join(parts)


def duration(seconds: float) -> str:
    """Returns a time with three digits and a fitting unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def render(results: Entry) -> str:
    """Returns a page with all tables, and a log-log plot of time against size for each family of several sizes."""
    families = dict.fromkeys(row["family"] for row in results["measurements"])
    drawn = [_draw_family(results, family) for family in families if family in FAMILIES]
    lead = "Processor time a problem, of one thread. Hollow marks: some were not solved in time."
    sections = {"Families": tag("div", drawn, class_="figures")} if any(drawn) else {}
    tables = [(tag("p", title), page.html_table(columns, rows)) for title, columns, rows in _tables(results)]
    sections[MEANING] = join(*tables)
    return page.page("Time against size", lead, (), sections, {"hasten": package_version("hasten")}, "peers.json")


def _draw_family(results: Entry, family: str) -> Html:
    series, known = [], FAMILIES[family]
    for n, peer in enumerate(results["peers"]):
        points = [
            Point(row["size"], 1e3 * row["mean"], hollow=row["n_solved"] < len(row["seconds"]))
            for row in results["measurements"]
            if (row["family"], row["peer"], row["status"]) == (family, peer, "ok") and row["seconds"]
        ]
        series.append(Series(peer, points, 1 + n % 6, dashed=n >= 6))
    if len({point.x for each in series for point in each.points}) < 2:
        return Html()
    return figure(family, Axis(known.unit, "log"), Axis("milliseconds a problem", "log"), series, known.about)

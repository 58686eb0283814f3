"""Runs the families and the peers, round after round, checks that all of them agree, and shows the results.

Every round asks every peer in turn, so that a disturbance of the machine meets them alike; of a problem's processor
times the least counts. Models are built beforehand. A peer that needs long answers fewer problems: its ratio to hasten
counts only problems that both solved. A measurement is a plain row: one peer on the problems of one size. Problems from
text are the test sentences of a labelled corpus, with the costs of models trained on the others. The results are tables
for the terminal, and a page with plots.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from hasten.bench.families import FAMILIES, TASK, sentence_problems
from hasten.bench.peers import OWN, PEERS, PeerFailed, Round, Worker
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
Set = tuple[str, int, Sequence[Problem]]  # a family, a size, and its problems


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

    def problem_sets(self, corpus: Corpora | None) -> Iterator[Set]:
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
    """Measures, prints tables, and writes `peers.json` and `peers.html` into the directory `out`.

    `corpus` adds the family "corpus", the test sentences of a labelled corpus with the costs of models trained on the
    others.
    """
    _choose("family", settings.families, FAMILIES)
    names = settings.installed(report)
    measurements = _measure_all(settings.problem_sets(corpus), names, settings, report)
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


def _measure_all(sets: Iterator[Set], names: Sequence[str], settings: Settings, report: Report) -> list[Row]:
    """Measures every peer on every set of problems, each peer in a process of its own."""
    measurements: list[Row] = []
    workers = {name: Worker(name, settings.time_limit) for name in names}
    slow: set[tuple[str, str]] = set()
    try:
        for family, size, problems in sets:
            found = _measure_set(problems, workers, {name for name in names if (family, name) in slow}, settings)
            for name, row in found.items():
                row |= {"family": family, "size": size, "peer": name}
                row["ratio"] = {own: ratio(row, found[own]) if own in found else None for own in OWN}
                if row["seconds"] and not row["n_solved"]:
                    slow.add((family, name))
            measurements += found.values()
            told = (f"{name} {1e3 * row['mean']:.3g} ms" if row["seconds"] else f"{name} {row['status']}"
                    for name, row in found.items())  # fmt: skip
            report(f"{family} {size or ''}: {', '.join(told)}")
    finally:
        for worker in workers.values():
            worker.close()
    return measurements


def _measure_set(
    problems: Sequence[Problem], workers: dict[str, Worker], slow: set[str], settings: Settings
) -> dict[str, Row]:
    """Measures the peers on some problems; workers that ended are started anew."""
    rounds: dict[str, list[Round]] = {name: [] for name in workers}
    failed = {name: PeerFailed("slow", "It solved nothing of a smaller size within the limits.") for name in slow}

    def attempt(name: str, do: Callable[[Worker], None]) -> None:
        try:
            do(workers[name])
        except PeerFailed as error:
            failed[name] = error
            if error.status in ("hangs", "crashed"):
                workers[name].close()
                workers[name] = Worker(name, settings.time_limit)

    for name in workers:
        if name not in failed:
            attempt(name, lambda worker: worker.load(problems))
    for turn in range(settings.rounds):
        for name, before in rounds.items():
            if name in failed or (turn and not all(before[0].optimal)):  # in time, or once is enough
                continue
            most = len(before[0].seconds) if turn else len(problems)
            if not turn and name == "hasten batch" and rounds.get("hasten"):
                most = len(rounds["hasten"][0].seconds)
            attempt(name, lambda worker, before=before, most=most: before.append(worker.measure(settings.budget, most)))  # type: ignore[misc]
    best = references(problems, [found for before in rounds.values() for found in before])
    return {
        name: summarise([], [Round()], []) | {"status": failed[name].status, "note": failed[name].why}
        if name in failed
        else summarise(problems, before, best)
        for name, before in rounds.items()
    }


def references(problems: Sequence[Problem], rounds: Sequence[Round]) -> list[float]:
    """Returns the least cost of each problem that any peer found a valid labelling for; inf if none did."""
    best = [math.inf] * len(problems)
    for found in rounds:
        for p, labels in enumerate(found.labels):
            best[p] = min(best[p], _true_cost(problems[p], labels))
    return best


def _true_cost(problem: Problem, labels: Any) -> float:
    """Returns the cost of a labelling by our own count; inf if there is none, or it breaks a constraint."""
    return problem.total(labels) if labels is not None and problem.check(labels).valid else math.inf


def summarise(problems: Sequence[Problem], rounds: Sequence[Round], best: Sequence[float]) -> Row:
    """Checks a peer's answers against the best known, and keeps its least times."""
    n = min(len(found.seconds) for found in rounds)
    wrong = set()
    for found in rounds:
        for p in range(n):
            cost = _true_cost(problems[p], found.labels[p])
            invalid = found.labels[p] is not None and cost == math.inf
            worse = found.optimal[p] and cost > best[p] and cost - best[p] > TOLERANCE * max(1.0, abs(best[p]))
            if invalid or worse:
                wrong.add(p)
    solved = [all(found.optimal[p] for found in rounds) and p not in wrong for p in range(n)]
    seconds = [min(found.seconds[p] for found in rounds) for p in range(n)]
    sources = rounds[0].sources[:n]
    return {
        "status": "wrong" if wrong else "ok",
        "note": f"Not the optimum: problems {sorted(wrong)[:5]}." if wrong else "",
        "n_problems": len(problems),
        "n_solved": sum(solved),  # to proved optimality, within the limits
        "n_wrong": len(wrong),
        "seconds": seconds,  # the least time of each problem that it came to
        "solved": solved,
        "by": {source: sources.count(source) for source in sorted(set(sources))},
        "mean": float(np.mean(seconds)) if seconds else None,  # one that ran into a limit counts with that
    }


def ratio(theirs: Row, ours: Row) -> float | None:
    """Returns how many times as long a peer takes as hasten, on the problems that both solved."""
    both = [solved == (True, True) for solved in zip(theirs["solved"], ours["solved"], strict=False)]
    if not any(both) or theirs["status"] != "ok" or ours["status"] != "ok":
        return None
    sums = [sum(second for second, mine in zip(row["seconds"], both, strict=False) if mine) for row in (theirs, ours)]
    return float(sums[0] / sums[1])


def _choose(what: str, wanted: Sequence[str] | None, known: Mapping[str, Any]) -> dict[str, Any]:
    for name in wanted or ():
        if name not in known:
            raise HastenError(f"There is no {what} {name!r}. There are {', '.join(known)}.")
    return {name: known[name] for name in wanted or known}


def split_of(corpora: Corpora, seed: int = 0) -> tuple[list[Sentence], list[Sentence]]:
    """Returns the sentences of a corpus that train, and those that test: as its files divide it, or drawn."""
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
    """Yields the title, the columns and the rows of each family: time a problem and how many times hasten's that is."""
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


def show(results: Entry, console: Console | None = None) -> None:
    """Prints the tables."""
    console = console or wide_console()
    for title, columns, rows in _tables(results):
        console.print(title, style="italic", highlight=False, markup=False)
        console.print(page.terminal_table(columns, rows))
    console.print("Time a problem, × hasten's, × hasten's in batches.", style="dim", highlight=False)


def wide_console() -> Console:
    """Returns the terminal; where there is none, lines are as long as tables need."""
    console = Console()
    return console if console.is_terminal else Console(width=180)


def cell(row: Entry) -> str:
    """Returns one measurement in words."""
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
    """Returns a page with all tables, and time against size, log-log, of each family measured at two sizes or more."""
    families = dict.fromkeys(row["family"] for row in results["measurements"])
    drawn = [_draw_family(results, family) for family in families if family in FAMILIES]
    lead = "Processor time a problem, of one thread. Hollow marks: some were not solved in time."
    sections = {"Families": tag("div", drawn, class_="figures")} if any(drawn) else {}
    tables = [(tag("p", title), page.html_table(columns, rows)) for title, columns, rows in _tables(results)]
    sections["Time a problem, × hasten's, × hasten's in batches"] = join(*tables)
    return page.page("Time against size", lead, (), sections, {"hasten": package_version("hasten")}, "peers.json")


def _draw_family(results: Entry, family: str) -> Html:
    """Returns time against size, for a family of several sizes."""
    series, known = [], FAMILIES[family]
    for n, peer in enumerate(results["peers"]):
        every = (row for row in results["measurements"] if (row["family"], row["peer"]) == (family, peer))
        found = [row for row in every if row["status"] == "ok" and row["seconds"]]
        points = [Point(row["size"], 1e3 * row["mean"], hollow=row["n_solved"] < len(row["seconds"])) for row in found]
        series.append(Series(peer, points, 1 + n % 6, dashed=n >= 6))
    if len({point.x for each in series for point in each.points}) < 2:
        return Html()
    return figure(family, Axis(known.unit, "log"), Axis("milliseconds a problem", "log"), series, known.about)

"""Runs the families and the peers, round after round, and checks that all of them agree.

Every round asks every peer in turn, so that a disturbance of the machine meets them alike; of a problem's
processor times the least counts. Models are built beforehand. A peer that needs long answers fewer problems:
its ratio to hasten counts only problems that both solved.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hasten.bench.families import FAMILIES, Family
from hasten.bench.peers import OWN, PEERS
from hasten.bench.worker import PeerFailed, Round, Worker
from hasten.errors import HastenError
from hasten.kernels.tolerance import TOLERANCE
from hasten.model.problem import Problem
from hasten.support.environment import describe_machine
from hasten.support.files import write_whole

if TYPE_CHECKING:
    from hasten.bench.text import Source

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Settings:
    """How long to measure."""

    n: int = 100  # problems of each size
    rounds: int = 3
    budget: float = 1.0  # seconds of a peer for the problems of one size, in one round
    time_limit: float = 5.0  # seconds of a peer for one problem
    seed: int = 0


QUICK = Settings(n=10, rounds=2, budget=0.3, time_limit=2.0)


@dataclass(frozen=True, slots=True)
class Measurement:
    """One peer on the problems of one size."""

    family: str
    size: int
    peer: str
    status: str  # "ok", "not installed", "too large", "wrong", "slow", "crashed", "hangs", "failed"
    note: str = ""
    n_problems: int = 0
    n_solved: int = 0  # to proved optimality, within the limits
    n_wrong: int = 0
    seconds: tuple[float, ...] = ()  # the least time of each problem that it came to
    solved: tuple[bool, ...] = ()
    by: Mapping[str, int] = field(default_factory=dict)  # how many each step answered
    inner: float | None = None  # seconds a problem, in the peer's own search alone

    @property
    def mean(self) -> float:
        """Seconds a problem; one that ran into a limit counts with that."""
        return float(np.mean(self.seconds)) if self.seconds else math.nan


@dataclass(frozen=True, slots=True)
class Results:
    """A whole run."""

    machine: Mapping[str, object]
    settings: Settings
    measurements: tuple[Measurement, ...]
    peers: Mapping[str, Mapping[str, object]]
    text: Mapping[str, Any] | None = None  # search, and Vowpal Wabbit's: see hasten.bench.text

    def of(self, family: str, size: int, peer: str) -> Measurement | None:
        """Returns a measurement."""
        for found in self.measurements:
            if (found.family, found.size, found.peer) == (family, size, peer):
                return found
        return None

    def ratio(self, found: Measurement, own: str = "hasten") -> float:
        """Returns how many times as long a peer takes as hasten, on the problems that both solved."""
        ours = self.of(found.family, found.size, own)
        if ours is None or ours.status != "ok" or found.status != "ok":
            return math.nan
        both = [
            (theirs, us)
            for theirs, us, a, b in zip(found.seconds, ours.seconds, found.solved, ours.solved, strict=False)
            if a and b
        ]
        return sum(theirs for theirs, _ in both) / sum(us for _, us in both) if both else math.nan

    def to_json(self) -> str:
        """Returns everything that was measured, with the ratios."""
        said = asdict(self)
        for found, written in zip(self.measurements, said["measurements"], strict=True):
            written["mean"] = found.mean
            written["median"] = float(np.median(found.seconds)) if found.seconds else math.nan
            written["ratio"] = {own: self.ratio(found, own) for own in OWN}
        return json.dumps(_finite(said), indent=1)


@dataclass(frozen=True, slots=True)
class Choice:
    """What to measure. None is the default: all families, their own sizes, all installed peers, all problems."""

    families: Sequence[str] | None = None
    sizes: Sequence[int] | None = None
    peers: Sequence[str] | None = None
    n: int | None = None  # problems of each size


def main(
    choice: Choice,
    out: Path | None = Path("results/peers"),
    corpus: Source | None = None,
    *,
    quick: bool = False,
    seed: int = 0,
    report: Report = print,
) -> Results:
    """Measures, prints tables, and writes `peers.json`, `peers.md` and `peers.html` into the directory `out`.

    `corpus` adds the family "corpus", the test sentences of a labelled corpus with the costs of models trained on the
    others. With it, and in a full run, searches are compared with Vowpal Wabbit's.
    """
    from hasten.bench import tables

    families, n = choice.families, choice.n
    base = QUICK if quick else Settings()
    settings = Settings(n or base.n, base.rounds, base.budget, base.time_limit, seed)
    chosen = _choose("family", families, FAMILIES)
    names = []
    for name in _choose("peer", choice.peers, PEERS):
        if PEERS[name].installed:
            names.append(name)
        elif choice.peers is not None:
            report(f"{name} is not installed: pip install {PEERS[name].distribution}")
    jobs = [
        (family, size)
        for family in chosen.values()
        for size in (choice.sizes or (family.quick if quick and not families else family.sizes))
    ]
    sources: list[tuple[str, int, list[Problem]]] = []
    if corpus is not None:
        from hasten.bench.text import corpus_problems

        for name, problems in corpus_problems(corpus).items():
            sources.append((name, 0, problems if n is None and not quick else problems[: settings.n]))
    measurements = measure_all(jobs, sources, names, settings, report)
    compared = None
    if corpus is not None or (families is None and not quick):
        from hasten.bench.text import compare_searches

        compared = compare_searches(corpus, seed=seed, quick=quick, report=report)
    about = {name: {"about": PEERS[name].about, "version": PEERS[name].version} for name in names}
    results = Results(describe_machine(), settings, tuple(measurements), about, compared)
    tables.show(results)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write_whole(out / "peers.json", results.to_json().encode())
        write_whole(out / "peers.md", tables.markdown(results).encode())
        write_whole(out / "peers.html", tables.render(results).encode("utf-8", "replace"))
        report(f"Wrote {out / 'peers.html'}.")
    return results


def measure_all(
    jobs: Sequence[tuple[Family, int]],
    sources: Sequence[tuple[str, int, list[Problem]]],
    names: Sequence[str],
    settings: Settings,
    report: Report,
) -> list[Measurement]:
    """Measures every peer on every family and size, each peer in a process of its own."""
    measurements: list[Measurement] = []
    workers = {name: Worker(name, settings.time_limit) for name in names}
    slow: set[tuple[str, str]] = set()
    try:
        drawn = ((family.name, size, None, family) for family, size in jobs)
        given = ((name, size, problems, None) for name, size, problems in sources)
        for name, size, problems, family in (*drawn, *given):
            if problems is None and family is not None:
                problems = family.problems(size, settings.n, settings.seed)
            found = _measure_size(name, size, problems or [], names, workers, slow, settings)
            slow |= {(name, each.peer) for each in found if each.seconds and not each.n_solved}
            measurements += found
            report(_line(name, size, found))
    finally:
        for worker in workers.values():
            worker.close()
    return measurements


def _measure_size(
    family: str,
    size: int,
    problems: list[Problem],
    names: Sequence[str],
    workers: dict[str, Worker],
    slow: set[tuple[str, str]],
    settings: Settings,
) -> list[Measurement]:
    """Measures the peers on some problems, and removes the workers that ended."""
    rounds: dict[str, list[Round]] = {}
    failed: dict[str, PeerFailed] = {}

    def attempt(name: str, do: Callable[[Worker], None]) -> None:
        try:
            do(workers[name])
        except PeerFailed as error:
            failed[name] = error
            if error.status in ("hangs", "crashed"):
                workers.pop(name).close()
                workers[name] = Worker(name, settings.time_limit)

    for name in names:
        if (family, name) in slow:
            failed[name] = PeerFailed("slow", "It solved nothing of a smaller size within the limits.")
        else:
            attempt(name, lambda worker: worker.load(problems))
    for turn in range(settings.rounds):
        for name in names:
            if name in failed:
                continue
            before = rounds.setdefault(name, [])
            if turn and not all(before[0].optimal):
                continue  # it ran into its limit: once is enough
            most = len(before[0].seconds) if turn else len(problems)
            if not turn and name == "hasten batch" and rounds.get("hasten"):
                most = len(rounds["hasten"][0].seconds)

            def run(worker: Worker, before: list[Round] = before, most: int = most) -> None:
                before.append(worker.measure(settings.budget, most))

            attempt(name, run)
    best = references(problems, [found for before in rounds.values() for found in before])
    return [
        _unmeasured(family, size, name, failed[name])
        if name in failed
        else summarise(family, size, name, problems, rounds[name], best)
        for name in names
    ]


def references(problems: Sequence[Problem], rounds: Sequence[Round]) -> list[float]:
    """Returns the least cost of each problem that any peer found a valid labelling for; inf if none did."""
    best = [math.inf] * len(problems)
    for found in rounds:
        for p, labels in enumerate(found.labels):
            best[p] = min(best[p], true_cost(problems[p], labels))
    return best


def true_cost(problem: Problem, labels: Any) -> float:
    """Returns what a labelling costs by our own count; inf if there is none, or it breaks a constraint."""
    if labels is None or not problem.check(labels).valid:
        return math.inf
    return problem.total(labels)


def summarise(
    family: str,
    size: int,
    name: str,
    problems: Sequence[Problem],
    rounds: Sequence[Round],
    best: Sequence[float],
) -> Measurement:
    """Checks a peer's answers against the best known, and keeps its least times."""
    n = min(len(found.seconds) for found in rounds)
    wrong = set()
    for found in rounds:
        for p in range(n):
            cost = true_cost(problems[p], found.labels[p])
            invalid = found.labels[p] is not None and cost == math.inf
            worse = found.optimal[p] and cost > best[p] and cost - best[p] > TOLERANCE * max(1.0, abs(best[p]))
            if invalid or worse:
                wrong.add(p)
    solved = tuple(all(found.optimal[p] for found in rounds) and p not in wrong for p in range(n))
    seconds = tuple(min(found.seconds[p] for found in rounds) for p in range(n))
    sources = rounds[0].sources[:n]
    inner = [found.inner / len(found.seconds) for found in rounds if found.inner is not None]
    return Measurement(
        family,
        size,
        name,
        "wrong" if wrong else "ok",
        f"Not the optimum: problems {sorted(wrong)[:5]}." if wrong else "",
        len(problems),
        sum(solved),
        len(wrong),
        seconds,
        solved,
        {source: sources.count(source) for source in sorted(set(sources))},
        min(inner) if inner else None,
    )


def _unmeasured(family: str, size: int, name: str, why: PeerFailed) -> Measurement:
    return Measurement(family, size, name, why.status, str(why))


def _line(family: str, size: int, found: Sequence[Measurement]) -> str:
    parts = [
        f"{each.peer} {1e3 * each.mean:.3g} ms" if each.seconds else f"{each.peer} {each.status}" for each in found
    ]
    return f"{family} {size or ''}: " + ", ".join(parts)


def _choose(what: str, wanted: Sequence[str] | None, known: Mapping[str, Any]) -> dict[str, Any]:
    if wanted is None:
        return dict(known)
    for name in wanted:
        if name not in known:
            raise HastenError(f"There is no {what} {name!r}. There are {', '.join(known)}.")
    return {name: known[name] for name in wanted}


def _finite(said: Any) -> Any:
    """Returns data with None for what JSON cannot say."""
    if isinstance(said, dict):
        return {str(key): _finite(value) for key, value in said.items()}
    if isinstance(said, list | tuple):
        return [_finite(value) for value in said]
    if isinstance(said, float) and not math.isfinite(said):
        return None
    return said

"""Compares answers with the truth, by enumeration in exact arithmetic, on random small problems of many families.

    python tests/campaign/proofs.py --count 2000 --seed 0 [--family heavy] [--first 417]
    python tests/campaign/proofs.py --replay [results/fuzz/heavy-0-417.json]

A trial is some problems and some settings, drawn from the seed and its number alone. What the answers claim must hold:
a proved one is an optimum, what is called infeasible is, a bound is not above the optimum, what is called valid is
valid and costs what it says, alone as in a batch. A trial that fails is made as small as it gets and written to
`results/fuzz`; copied to `tests/campaign/cases` it is a test from then on. Trials run in processes of their own: where
one ends its process, its number is told, and `--family F --first N --count 1` repeats it.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import traceback
from collections import Counter
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from constants import lowered
from demand import answer_on_demand
from families import FAMILIES as GENERAL
from problems import Described, build_all, read, write
from shrinking import shrunk
from steps import CONSTANTS, SETTINGS
from steps import FAMILIES as OF_STEPS
from truth import Truth, complaint, search_complaint

from hasten.model.batch import ONLY
from hasten.proof.certifier import Certifier
from hasten.proof.improve import IMPROVING, Improvement
from hasten.proof.look import LOOKING
from hasten.proof.outcome import OPEN, OUTCOME
from hasten.proof.report import solutions_of
from hasten.proof.steps import prove
from hasten.search.beam import BeamSearch, ConstrainedSearch, greedy

CASES = Path(__file__).parent / "cases"
RESULTS = Path("results/fuzz")
SIZE = 24  # problems of a trial
SECONDS = 120  # of the processor, for one trial: a machine that pauses does not count
ERROR, FAILED = "an error: ", "failed"
BATCH = 1100  # trials for each process
FAMILIES = GENERAL | OF_STEPS
EVERY, SLICES = 6, 4  # problems of a trial of which one is improved, and how far
SEARCHES = {"beam": BeamSearch, "reduced": partial(BeamSearch, reduce=True), "constrained": ConstrainedSearch}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=2000, help="problems of each family")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the first trial; the families take turns")
    parser.add_argument("--family", choices=FAMILIES, action="append")
    parser.add_argument("--replay", nargs="*", type=Path, help="repeat the trials in these files, or all that are kept")
    parser.add_argument("--worker", type=int, help="run that many trials in this process")
    options = parser.parse_args()
    families = options.family or list(FAMILIES)
    if options.replay is not None:
        sys.exit(replay(options.replay or sorted(CASES.glob("*.json"))))
    if options.worker:
        work(families, options.seed, range(options.first, options.first + options.worker))
        return
    n_trials = -(-options.count // SIZE) * len(families)
    print(f"seed {options.seed}, {n_trials * SIZE} problems of {len(families)} families", flush=True)
    failures, counts = 0, Counter[str]()
    end = options.first + n_trials
    for first in range(options.first, end, BATCH):
        failures += run_batch(families, options.seed, first, min(first + BATCH, end), counts)
        said = ", ".join(f"{n} {what}" for what, n in sorted(counts.items()) if what != FAILED)
        print(f"{min(first + BATCH, end) - options.first} trials: {said}; {failures} failed", flush=True)
    sys.exit(1 if failures else 0)


def run_batch(families: list[str], seed: int, first: int, end: int, counts: Counter[str]) -> int:
    """Runs some trials in a process; goes on after one that ends it. Returns how many failed."""
    failures = 0
    while first < end:
        command = [sys.executable, __file__, "--seed", str(seed), "--first", str(first), "--worker", str(end - first)]
        command += [word for family in families for word in ("--family", family)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        lines = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
        for line in lines:
            if len(line) == 2:
                counts.update(read_counts(line[1]))
                failures += FAILED in line[1]
        if done.returncode:
            failures += 1
            number = int(lines[-1][0]) if lines else first
            family = families[number % len(families)]
            print(f"{family}: trial {number} of seed {seed} ended the process: {done.returncode}", flush=True)
        first = int(lines[-1][0]) + 1 if lines else end
    return failures


def read_counts(said: str) -> dict[str, int]:
    """Reads what a worker counted: `proved=20 open=4`."""
    return {what: int(n) for what, n in (pair.split("=") for pair in said.split())}


def work(families: list[str], seed: int, numbers: range) -> None:
    """Runs trials; writes those that fail, made small."""
    for name in SEARCHES:  # compiles what is needed, before time is limited
        any_trial = draw_trial("anything", 0, 0)
        failure(any_trial | {"settings": any_trial["settings"] | {"start": "beam", "search": [name, {}]}})
    for number in numbers:
        print(number, end="", flush=True)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        family = families[number % len(families)]
        trial = draw_trial(family, seed, number)
        counts = Counter(problems=len(trial["problems"]))
        wrong = failure(trial, counts)
        if wrong is not None:
            counts[FAILED] += 1
            path = RESULTS / f"{family}-{seed}-{number}.json"
            print(f"{family}: trial {number} of seed {seed}: {wrong}", file=sys.stderr, flush=True)
            signal.setitimer(signal.ITIMER_PROF, 0)
            small = made_small(trial, wrong)
            write(path, small)
            print(f"made small in {path}: {small['wrong']}", file=sys.stderr, flush=True)
        print("", " ".join(f"{what}={n}" for what, n in counts.items()), flush=True)


def made_small(trial: Described, wrong: str) -> Described:
    """Returns a trial made small, with what is wrong then."""
    small = shrunk(trial, lambda each: kind_of(failure(each)) == kind_of(wrong))
    return small | {"wrong": failure(small)}


def kind_of(wrong: str | None) -> str | None:
    """Returns the name of an error; a false claim is as good as another."""
    if wrong is None or not wrong.startswith(ERROR):
        return None if wrong is None else "claim"
    return wrong.splitlines()[-1].split(":")[0]


def draw_trial(family: str, seed: int, number: int) -> Described:
    """Draws settings and problems; some of them differ in their costs alone."""
    draw = Random(f"{family} {seed} {number}")
    join = draw.choice((None, None, 0, 0, 1, 8, 64, 1024, 10**6))
    problems: list[Described] = []
    while len(problems) < SIZE:
        described = FAMILIES[family](draw)
        n = draw.choice((2, 8, 14))
        problems += [described] + [described | {"costs": again(draw, described["costs"])} for _ in range(n - 1)]
    settings = {
        "max_join": join,
        "max_sweeps": draw.choice((1, 3, 100)),
        "max_nodes": draw.choice((0, 1, 5, 50, None, None)),
        "start": draw.choice((None, None, "beam", "greedy")),
        "n_jobs": draw.choice((1, 1, 1, 2)),  # threads take longer than such problems
        "search": draw_search(draw),
    }
    for name, choices in SETTINGS.get(family, {}).items():
        settings[name] = draw.choice(choices)
    settings["constants"] = {name: draw.choice(choices) for name, choices in CONSTANTS.get(family, {}).items()}
    return {"settings": settings, "problems": problems[:SIZE]}


def draw_search(draw: Random) -> list[Any]:
    """Draws a search: its name and its settings."""
    name = draw.choice(list(SEARCHES))
    if name == "constrained":
        return [name, {}]
    settings = {"width": draw.choice((1, 2, 5)), "look_ahead": draw.random() < 0.5}
    return [name, settings]


def again(draw: Random, costs: list[list[float]]) -> list[list[float]]:
    """Returns costs of the same magnitudes for other labels."""
    flat = [x for each in costs for x in each]
    draw.shuffle(flat)
    signs = (1, 1, -1)
    numbers = iter([x if x == np.inf else x * draw.choice(signs) for x in flat])
    return [[next(numbers) for _ in each] for each in costs]


def failure(trial: Described, counts: Counter[str] | None = None) -> str | None:
    """Returns what is wrong with the answers of a trial, if something is."""
    try:
        with lowered(trial["settings"].get("constants", {})):
            return _failure(trial, Counter() if counts is None else counts)
    except Exception:
        return ERROR + traceback.format_exc()[-1500:].rstrip()


def _failure(trial: Described, counts: Counter[str]) -> str | None:
    settings, problems = trial["settings"], build_all(trial["problems"])
    truths = Truth.of_all(trial["problems"])
    n_jobs = settings["n_jobs"]
    certifier = Certifier(settings["max_join"], settings["max_sweeps"], settings["max_nodes"])
    starts = {"beam": BeamSearch(), "greedy": greedy()}
    found = starts[settings["start"]](problems) if settings["start"] else None
    name, options = settings["search"]
    search = SEARCHES[name](**options)
    runs = [
        (complaint, certifier, certifier(problems, found, n_jobs=n_jobs)),
        (complaint, Certifier(), Certifier()(problems, n_jobs=n_jobs)),
        (search_complaint, search, search(problems, n_jobs=n_jobs)),
    ]
    for judge, ask, answers in runs:
        for p, (problem, truth) in enumerate(zip(problems, truths, strict=True)):
            answer = answers[p]
            wrong = judge(truth, answer)
            given = () if ask is not certifier or found is None else (found[p],)
            alone = ask(problem, *given)
            if wrong is None and said(alone) != said(answer):
                wrong = f"alone {said(alone)}, in a batch {said(answer)}"
            if wrong is not None:
                return f"problem {p}, {ask}: {wrong}"
            if ask is certifier:
                counts[answer.status.name.lower()] += 1
    for p in range(0, len(problems), EVERY):
        wrong = complaint(truths[p], improved(problems[p], settings["max_join"]))
        if wrong is not None:
            return f"problem {p}, improved: {wrong}"
    for p, answer in answer_on_demand(trial["problems"], certifier, mends=settings["start"] is None).items():
        wrong = complaint(truths[p], answer)
        if wrong is not None:
            return f"problem {p}, on demand, {certifier}: {wrong}"
    return None


def improved(problem: Any, max_join: int | None) -> Any:
    """Returns the answer of a few slices of improvement right after looking, whatever other steps would do."""
    work = Certifier(max_join)._work_on(problem.batch.resolved(), None, 1)
    prove(work, ONLY, (LOOKING,))
    if work.proofs.facts[OUTCOME, 0] == OPEN and work.taking(IMPROVING, ONLY).size:
        improvement = Improvement(work, 0)
        for _ in range(SLICES):
            improvement.go(np.inf)
    return solutions_of(problem.batch.resolved(), work.proofs).only(problem)


def said(answer: Any) -> tuple[Any, ...]:
    """Returns what an answer says, to be compared; a search may not know some costs."""
    labels = None if answer.values is None else answer.values.tolist()
    return labels, answer.status.name, answer.source.name, answer.valid, repr(answer.cost), repr(answer.bound)


def replay(paths: list[Path]) -> int:
    """Repeats kept trials, with their settings and with others; returns how many fail."""
    failures = 0
    for path in paths:
        trial = read(path)
        wrong = failure(trial)
        for other in range(20):
            settings = draw_trial("leftovers", 0, other)["settings"]
            for described in trial["problems"]:
                wrong = wrong or failure({"settings": settings, "problems": [described]})
        failures += wrong is not None
        print(f"{path.name}: {wrong or 'holds'}", flush=True)
    return failures


if __name__ == "__main__":
    main()

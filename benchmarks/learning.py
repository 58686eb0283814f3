"""Measures learning: Algorithm 1's speed with the share of each part, and what the heuristic is worth.

    python benchmarks/learning.py --out results/learning.json

The problems are made here: entity-relation sentences with a planted truth, as log-probabilities or as scores
in the tens. Labels are the certifier's answers. Everything runs on one thread, after a warm-up that compiles.
The share of the search is that of the same passes with the weights held at what was learned. Times are the
process's own, so that what else runs on the machine matters less.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from hasten.kernels.search import nodes
from hasten.learning import algorithm_1 as learn
from hasten.learning.learner import STEP, Learner, default_step
from hasten.model.batch import Batch
from hasten.model.solution import Solutions
from hasten.model.structure import Structure
from hasten.proof.certifier import Certifier
from hasten.search.beam import BeamSearch
from hasten.solvers import make_solver
from hasten.tasks.entity_relation.task import EntityRelationTask, ordered_pairs

TASK = EntityRelationTask(features="both")
NO_RELATION = len(TASK.arguments)  # its number
SHARES = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0]  # of the median gap, as a step


class Corpus(NamedTuple):
    """A kind of made-up corpus: how strongly the truth shows in the scores, and the scores' scale."""

    name: str
    entity: float  # added to the true entity label's score; the noise has a deviation of 1
    relation: float
    none: float  # added to every NoRel
    scale: float
    log: bool  # costs are -log softmax of the scores, instead of minus the scores


CORPORA = [
    Corpus("log-probabilities, peaked", 3.0, 3.0, 2.0, 1.5, True),
    Corpus("log-probabilities, flat", 2.0, 2.0, 1.0, 1.0, True),
    Corpus("scores in the tens", 3.0, 2.0, 1.0, 10.0, False),
]


def sentences(shape: Structure, corpus: Corpus, n: int, rng: np.random.Generator) -> np.ndarray:
    """Returns costs, a row for each sentence."""
    first = shape.graph.first
    n_entities = sum(kind.name == "entity" for kind in shape.kinds)
    types = rng.choice(4, size=(n, n_entities), p=[0.35, 0.3, 0.25, 0.1])
    fits = np.full((4, 4), NO_RELATION)
    for r, pairs in enumerate(TASK.arguments.values()):
        for source, target in pairs:
            fits[TASK.entity_labels.index(source), TASK.entity_labels.index(target)] = r
    score = rng.normal(size=(n, shape.n_labels))
    every = np.arange(n)
    for e in range(n_entities):
        score[every, first[e] + types[:, e]] += corpus.entity
    related = rng.random((n, n_entities, n_entities)) < 0.4
    for v, (a, b) in enumerate(ordered_pairs(n_entities), start=n_entities):
        chosen = np.where(related[:, a, b], fits[types[:, a], types[:, b]], NO_RELATION)
        if a > b:  # one direction at most
            other = related[:, b, a] & (fits[types[:, b], types[:, a]] != NO_RELATION)
            chosen = np.where(other, NO_RELATION, chosen)
        score[:, first[v + 1] - 1] += corpus.none
        score[every, first[v] + chosen] += corpus.relation
    score *= corpus.scale
    if not corpus.log:
        return -score
    parts = np.split(score, first[1:-1], axis=1)
    return np.hstack([np.logaddexp.reduce(part, axis=1, keepdims=True) - part for part in parts])


def exact_match(found: Solutions, answers: Solutions) -> float:
    """Returns the share of problems labelled exactly like the answers."""
    wrong = np.add.reduceat(found.labels != answers.labels, found.batch.variable_at[:-1])
    return float((wrong == 0).mean())


def seconds(run: Callable[[], Any], repeats: int = 3) -> float:
    """Returns the processor time of the shortest of some runs."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        run()
        times.append(time.process_time() - began)
    return min(times)


def measure_speed(batch: Batch, answers: Solutions, width: int, epochs: int) -> dict[str, Any]:
    """Times `epochs` passes, and the same passes with the weights held fixed, which is the search alone."""
    settings = {"width": width, "epochs": epochs}
    learner = Learner(**settings, enforce=False, look_ahead=False)
    learning = seconds(lambda: learner.fit(batch, answers), repeats=3)
    order = np.random.default_rng(0).permutation(len(batch))
    options = nodes.Options(width, math.inf, False, False)
    learned, outcome = learner.state.weights, np.zeros(len(batch), dtype=np.int64)
    assert learned is not None

    def search() -> None:
        learn.learn_range(
            batch.pool, batch.structure, batch.cost, batch.cost_at, batch.table, batch.table_at,
            batch.variable_at, answers.labels, options, 0.0, order, learned, outcome,
        )  # fmt: skip

    searching = seconds(search) * len(learner.trace)
    full = seconds(lambda: BeamSearch(width, learner.weights, enforce=False)(batch))
    seen = sum(epoch.n_examples for epoch in learner.trace)
    return {
        "width": width,
        "epochs": len(learner.trace),
        "seconds": learning,
        "problems_per_second": seen / learning,
        "microseconds_per_problem": learning / seen * 1e6,
        "search_share": min(1.0, searching / learning),
        "update_share": max(0.0, 1 - searching / learning),
        "full_search_microseconds": full / len(batch) * 1e6,
        "mistakes_per_epoch": [epoch.n_mistakes for epoch in learner.trace],
        "lost_per_epoch": [epoch.n_lost for epoch in learner.trace],
        "blind_per_epoch": [epoch.n_blind for epoch in learner.trace],
        "step": learner.state.step,
        "norm": learner.trace[-1].norm,
        "radius_phi": learner.radius_phi,
        "radius_g": learner.radius_g,
    }


def measure_worth(
    train: Batch, answers: Solutions, held_out: Batch, truth: Solutions, width: int, epochs: int
) -> list[dict[str, Any]]:
    """Compares searches with and without weights, by exact match with the answers and by validity."""
    rows = []
    for enforce in (False, True):
        learners = {
            "none": None,
            "paper (step 1, last)": Learner.paper(width, enforce=enforce, epochs=epochs),
            "default": Learner(width, enforce=enforce, epochs=epochs, look_ahead=False),
        }
        for name, learner in learners.items():
            weights = None if learner is None else learner.fit(train, answers).weights
            found = BeamSearch(width, weights, enforce=enforce)(held_out)
            rows.append(
                {
                    "width": width,
                    "enforce": enforce,
                    "weights": name,
                    "exact": exact_match(found, truth),
                    "valid": float(found.valid.mean()),
                }
            )
    return rows


def measure_steps(
    train: Batch, answers: Solutions, held_out: Batch, truth: Solutions, width: int, epochs: int
) -> list[dict[str, float]]:
    """Learns with steps around the default one: how sharp is the rule?"""
    rows = []
    for share in SHARES:
        step = default_step(train) * share / STEP
        learner = Learner(width, step=step, epochs=epochs, enforce=False, look_ahead=False).fit(train, answers)
        found = BeamSearch(width, learner.weights, enforce=False)(held_out)
        rows.append({"share": share, "step": step, "width": width, "exact": exact_match(found, truth)})
    return rows


def main() -> None:
    """Runs everything and prints tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--problems", type=int, default=30_000)
    parser.add_argument("--held-out", type=int, default=5_000)
    parser.add_argument("--entities", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--widths", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--solver-sample", type=int, default=200, help="problems to time HiGHS on; 0 for none")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    console = Console(width=110)
    shape, results = TASK.structure(given.entities), []
    for corpus in CORPORA:
        rng = np.random.default_rng(0)
        train = shape.batch(sentences(shape, corpus, given.problems, rng))
        held_out = shape.batch(sentences(shape, corpus, given.held_out, rng))
        for width in given.widths:  # compile
            few = train.select(range(10))
            Learner(width, epochs=1, enforce=False, look_ahead=False).fit(few, Certifier()(few))
            BeamSearch(width)(few)
        began = time.process_time()
        answers = Certifier()(train)
        answering = time.process_time() - began
        truth = Certifier()(held_out)
        result: dict[str, Any] = {
            "corpus": corpus._asdict(),
            "problems": given.problems,
            "entities": given.entities,
            "step": default_step(train),
            "answers_seconds": answering,
            "answers_proved": float(answers.proved.mean()),
        }
        if given.solver_sample:
            highs = make_solver("highs")
            highs.solve(train[0])
            began = time.process_time()
            for p in range(given.solver_sample):
                highs.solve(train[p])
            result["highs_seconds_per_problem"] = (time.process_time() - began) / given.solver_sample
        result["speed"] = [measure_speed(train, answers, width, given.epochs) for width in given.widths]
        result["worth"] = [
            row for width in given.widths for row in measure_worth(train, answers, held_out, truth, width, given.epochs)
        ]
        few = train.select(range(min(6_000, given.problems)))
        labelled = Certifier()(few)
        result["steps"] = [measure_steps(few, labelled, held_out, truth, width, given.epochs) for width in given.widths]
        results.append(result)
        show(console, result)
    if given.out:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps(results, indent=1) + "\n")


def show(console: Console, result: dict[str, Any]) -> None:
    """Prints what was measured on one corpus."""
    n, name = result["problems"], result["corpus"]["name"]
    console.print(
        f"\n[bold]{name}[/]: {n:,} problems of {result['entities']} entities, step {result['step']:.4g}; "
        f"answers by the certifier in {result['answers_seconds']:.2f} s "
        f"({n / result['answers_seconds']:,.0f} a second, {result['answers_proved']:.2%} proved)"
        + (
            f"; HiGHS would take {result['highs_seconds_per_problem'] * n:,.0f} s"
            if "highs_seconds_per_problem" in result
            else ""
        )
    )
    speed = Table(
        "width",
        "epochs",
        "seconds",
        "problems/s",
        "µs each",
        "answers",
        "search",
        "update",
        "mistakes",
        "blind",
    )
    for row in result["speed"]:
        total = row["seconds"] + result["answers_seconds"]
        shares = [
            result["answers_seconds"],
            row["seconds"] * row["search_share"],
            row["seconds"] * row["update_share"],
        ]
        speed.add_row(
            str(row["width"]),
            str(row["epochs"]),
            f"{row['seconds']:.2f}",
            f"{row['problems_per_second']:,.0f}",
            f"{row['microseconds_per_problem']:.2f}",
            *(f"{share / total:.0%}" for share in shares),
            f"{row['mistakes_per_epoch'][0]:,} → {row['mistakes_per_epoch'][-1]:,}",
            f"{row['blind_per_epoch'][-1] / max(1, row['mistakes_per_epoch'][-1]):.0%}",
        )
    console.print(speed)
    worth = Table("width", "tables", "weights", "exact match", "valid")
    for row in result["worth"]:
        worth.add_row(
            str(row["width"]),
            "enforced" if row["enforce"] else "ignored",
            row["weights"],
            f"{row['exact']:.3f}",
            f"{row['valid']:.3f}",
        )
    console.print(worth)
    steps = Table("width", *map(str, SHARES), title="Exact match, tables ignored, by step (share of the median gap)")
    for sweep in result["steps"]:
        steps.add_row(str(sweep[0]["width"]), *(f"{row['exact']:.3f}" for row in sweep))
    console.print(steps)


if __name__ == "__main__":
    main()

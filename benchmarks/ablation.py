"""Which switches of the search raise its agreement with the black box, and what each costs in time.

    python benchmarks/ablation.py                                    # synthetic problems
    python benchmarks/ablation.py --corpus CONLL04 --unlabeled MORE  # and real costs

Each way of searching learns what it learns from one set of problems, labelled by proof, and is measured on
another: how often its answer costs what the optimum costs (an invalid answer never does), and the time of one
thread. The last line of each table is the certifier, which is always right.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from hasten.kernels.tolerance import TOLERANCE
from hasten.learning.learner import Learner
from hasten.model.batch import Batch
from hasten.model.solution import Solutions
from hasten.model.structure import Structure
from hasten.proof.certifier import Certifier
from hasten.search.beam import BeamSearch
from hasten.support.terminal import no_progress
from hasten.tasks.entity_relation.task import EntityRelationTask, Training

TASK = EntityRelationTask(features="both")
WIDTHS = (1, 2, 4, 8)


def synthetic(rng: np.random.Generator, n: int, noise: float, sizes: Sequence[int] = (2, 3, 4, 5, 6)) -> Batch:
    """Returns problems with a planted valid labelling, preferred by 1, and noise of a standard deviation."""
    n_entities = rng.choice(sizes, n)
    parts = []
    for n_entity in n_entities:
        types = rng.choice(4, n_entity, p=(0.3, 0.3, 0.2, 0.2))
        cost = np.zeros((n_entity, 4))
        cost[np.arange(n_entity), types] -= 1
        parts.append(cost.ravel())
        for i, j in combinations(range(n_entity), 2):
            pair = np.zeros((2, 6))
            fits = [
                (way, r)
                for way, (a, b) in enumerate(((i, j), (j, i)))
                for r, joined in enumerate(TASK.arguments.values())
                if (TASK.entity_labels[types[a]], TASK.entity_labels[types[b]]) in joined
            ]
            chosen = [5, 5]
            if fits and rng.random() < 0.6:
                way, r = fits[rng.integers(len(fits))]
                chosen[way] = r
            pair[[0, 1], chosen] -= 1
            parts.append(pair.ravel())
    costs = np.concatenate(parts)
    return TASK.batch(n_entities, costs + rng.normal(size=costs.size) * noise)


def real(corpus: Path, unlabeled: Path | None, training: str) -> tuple[Batch, Batch]:
    """Returns problems to learn from and to measure on, with costs from a trained black box."""
    from hasten.tasks.entity_relation.data.corpus import Sentence, split
    from hasten.tasks.entity_relation.data.formats import read_corpus
    from hasten.tasks.entity_relation.scoring.features import intern
    from hasten.tasks.entity_relation.scoring.training import train_black_box

    sentences = [sentence for sentence in read_corpus(corpus) if sentence.relations]
    train, test = split(sentences, 0.7)  # as `hasten reproduce` does
    scorer = train_black_box(training, train, TASK, seed=0, progress=no_progress)
    learn = list(read_corpus(unlabeled)) if unlabeled else train

    def problems(some: Sequence[Sentence]) -> Batch:
        text = intern([sentence for sentence in some if len(sentence.spans) > 1])
        return TASK.batch(text.n_entities, scorer.costs(text)[0])

    return problems(learn), problems(test)


@lru_cache
def early(n_entities: int) -> Structure:
    """Returns the structure whose search assigns each relation as soon as its entities are."""
    entities = range(n_entities)
    pair = {both: n_entities + 2 * k for k, both in enumerate(combinations(entities, 2))}
    shape = TASK.structure(n_entities).with_rules(())
    shape.search_order([v for j in entities for v in (j, *(pair[i, j] + way for i in range(j) for way in (0, 1)))])
    return shape


def interleaved(batch: Batch) -> Batch:
    """Returns the same problems, searched in the order of `early`."""
    shapes = tuple(early(math.isqrt(shape.n_variables)) for shape in batch.structures)
    return replace(batch, structures=shapes)


@dataclass(frozen=True)
class Way:
    """One way of searching: its switches, and how it learns (None: it does not)."""

    name: str
    search: dict[str, Any]
    learner: Callable[[int], Learner] | None = None
    interleaved: bool = False
    reduced: bool = False


def ways() -> list[Way]:
    """Returns the ways to compare."""

    def learner(enforce: bool = True, **switches: Any) -> Callable[[int], Learner]:
        return lambda width: Learner(width, enforce=enforce, **switches, look_ahead=False)

    free, ahead = {"enforce": False}, {"look_ahead": True}
    return [
        Way("nothing", free),
        Way("paper: weights, step 1", free, lambda width: Learner.paper(width)),
        Way("weights", free, learner(enforce=False)),
        Way("tables", {}),
        Way("tables + weights", {}, learner()),
        Way("look-ahead", ahead),
        Way("look-ahead + weights", ahead, learner(look_ahead=True)),
        Way("tables, relations early", {}, interleaved=True),
        Way("look-ahead, relations early", ahead, interleaved=True),
        Way("reduced", {"look_ahead": False}, reduced=True),
        Way("reduced + look-ahead", ahead, reduced=True),
    ]


def measure(learn: Batch, test: Batch, repeats: int) -> list[dict[str, Any]]:
    """Returns a record per way and width."""
    certifier = Certifier()
    answers, truth = certifier(learn), certifier(test)
    early_test = interleaved(test)
    records = []
    for way in ways():
        batch = early_test if way.interleaved else test
        for width in WIDTHS:
            weights = None
            if way.learner is not None:
                weights = way.learner(width).fit(learn, answers).weights
            search = (
                BeamSearch(width, **way.search, reduce=True)
                if way.reduced
                else BeamSearch(width, weights, **way.search)
            )
            found = search(batch)
            micros = best_time(lambda search=search, batch=batch: search(batch), repeats) / len(test) * 1e6
            records.append(
                {
                    "way": way.name,
                    "width": width,
                    "match": float(matches(found, truth).mean()),
                    "valid": float(found.valid.mean()),
                    "micros": micros,
                }
            )
    micros = best_time(lambda: certifier(test), repeats) / len(test) * 1e6
    proved = float(truth.proved.mean())
    records.append({"way": "certify", "width": 0, "match": proved, "valid": 1.0, "micros": micros})
    return records


def matches(found: Solutions, truth: Solutions) -> np.ndarray:
    """Tells which answers cost what the optimum costs."""
    return found.valid & (found.cost - truth.cost <= TOLERANCE * np.maximum(1, np.abs(truth.cost)))


def best_time(run: Callable[[], object], repeats: int) -> float:
    """Returns the shortest of some times, after a run that compiles."""
    run()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return min(times)


def show(name: str, records: list[dict[str, Any]], console: Console) -> None:
    """Prints a table: a line per way, and for each width the match and the microseconds a problem."""
    table = Table("search", *(f"b={width}" for width in WIDTHS), *(f"µs b={width}" for width in WIDTHS), title=name)
    for way in dict.fromkeys(record["way"] for record in records):
        mine = [record for record in records if record["way"] == way]
        room = [""] * (len(WIDTHS) - len(mine))
        table.add_row(way, *(f"{r['match']:.3f}" for r in mine), *room, *(f"{r['micros']:.1f}" for r in mine), *room)
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, help="a labelled corpus, such as CoNLL04")
    parser.add_argument("--unlabeled", type=Path, help="sentences to learn from; by default the training part")
    parser.add_argument("--problems", type=int, default=2000, help="synthetic problems to measure on")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, help="where to write all figures")
    given = parser.parse_args()
    console, results = Console(width=120), {}
    rng = np.random.default_rng(0)
    sets: dict[str, Callable[[], tuple[Batch, Batch]]] = {
        f"synthetic, noise {noise}": lambda noise=noise: (
            synthetic(rng, 5000, noise),
            synthetic(rng, given.problems, noise),
        )
        for noise in (0.3, 0.6, 1.0)
    }
    sets["synthetic, 8 to 12 entities, noise 0.6"] = lambda: (
        synthetic(rng, 1000, 0.6, (8, 10, 12)),
        synthetic(rng, given.problems // 4, 0.6, (8, 10, 12)),
    )
    if given.corpus:
        for training in (Training.INDEPENDENT, Training.STRUCTURED):
            sets[f"{given.corpus.name}, {training}"] = lambda training=training: real(
                given.corpus, given.unlabeled, training
            )
    for name, make in sets.items():
        learn, test = make()
        results[name] = measure(learn, test, given.repeats)
        show(f"{name}: {len(learn)} problems to learn from, {len(test)} to measure on", results[name], console)
    if given.json:
        given.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

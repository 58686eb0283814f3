"""The black boxes of the paper's task, linear and neural, on the paper's split: F1 against gold, over seeds.

    python benchmarks/neural.py --corpus CONLL04 [--seeds 5] [--boxes structured neural ...] [--out FILE]

As `hasten reproduce` does: for each seed 70% of the labelled sentences train and 30% test; answers are certified.
Intervals are 95% bootstraps over test sentences, of means over seeds; two boxes are compared on the same
draws. "valid" is the share of sentences whose cheapest labels, each variable's alone, break no constraint.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from hasten import Certifier
from hasten.paper.methods import Reference
from hasten.search.beam import greedy
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.terminal import no_progress, show_progress
from hasten.tasks.entity_relation.data.corpora import Corpora, parts_of
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.extraction import train_black_box
from hasten.tasks.entity_relation.scoring.gold import gold
from hasten.tasks.entity_relation.task import BlackBox, EntityRelationTask
from hasten.tasks.evaluation.study import f1_of

TASK = EntityRelationTask(features="triples")
N_DRAWS = 2000


def reference(test: list[Sentence]) -> Reference:
    names = TASK.entity_labels, TASK.relation_labels
    labels = np.concatenate([gold(each, *names, lost=True) for each in test])
    is_entity = np.concatenate([np.arange(len(each.spans) ** 2) < len(each.spans) for each in test])
    return Reference(labels, is_entity, names[0].index("none"), len(names[1]) - 1)


def measure(box: str, labelled: list[Sentence], seed: int) -> dict[str, object]:
    """Trains on one split; returns counts of each test sentence, (sentences, entity and relation, both and either)."""
    parts = parts_of(labelled, None, seed)
    train, test = ([labelled[n] for n in numbers] for numbers in (parts.train, parts.test))
    begin = time.perf_counter()
    model = train_black_box(box, train, TASK, seed=seed, progress=no_progress)
    seconds = time.perf_counter() - begin
    text = model.read(test)
    batch = TASK.batch(text.n_entities, model.costs(text)[0])
    found, known = Certifier()(batch), reference(test)
    each = np.add.reduceat(known.named(found.values, known.gold), batch.variable_at[:-1])
    valid = float(greedy()(batch).valid.mean())
    return {"counts": each.tolist(), "test": list(parts.test), "valid": valid, "seconds": seconds}


def drawn_f1(results: list[dict[str, object]], n_labelled: int) -> FloatArray:
    """Returns F1 of entities and of relations, means over seeds, for draws of sentences: (draws, 2)."""
    weight = np.random.default_rng(0).poisson(1.0, size=(N_DRAWS, n_labelled)).astype(float)
    means = []
    for each in results:
        test: IntArray = np.array(each["test"])
        counts = np.array(each["counts"])
        means.append(f1_of(np.tensordot(weight[:, test], counts, axes=1)))
    return np.mean(means, axis=0)


def f1(results: list[dict[str, object]]) -> FloatArray:
    return np.array([f1_of(np.array(each["counts"]).sum(axis=0)) for each in results])


def interval(values: FloatArray) -> str:
    low, high = np.percentile(values, [2.5, 97.5])
    return f"{low:+.3f} to {high:+.3f}" if low < 0 else f"{low:.3f} to {high:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--boxes", nargs="+", default=[str(each) for each in BlackBox])
    parser.add_argument("--out", type=Path, help="Keeps what was measured, and goes on from there.")
    args = parser.parse_args()
    labelled = list(Corpora.read(args.corpus).labelled)
    known = json.loads(args.out.read_text()) if args.out and args.out.exists() else {}
    with show_progress(Console(stderr=True)) as progress:
        for seed in range(args.seeds):
            for box in args.boxes:
                if f"{box} {seed}" not in known:
                    progress(f"Seed {seed}: {box}", None)
                    known[f"{box} {seed}"] = measure(box, labelled, seed)
                    if args.out:
                        args.out.write_text(json.dumps(known))
    results = {box: [known[f"{box} {seed}"] for seed in range(args.seeds)] for box in args.boxes}
    draws = {box: drawn_f1(each, len(labelled)) for box, each in results.items()}
    table = Table("black box", "entity F1", "relation F1", "95%", "valid alone", "seconds")
    for box, each in results.items():
        mean, deviation = f1(each).mean(axis=0), f1(each).std(axis=0, ddof=1) if args.seeds > 1 else (0.0, 0.0)
        table.add_row(
            box,
            f"{mean[0]:.3f} ± {deviation[0]:.3f}",
            f"{mean[1]:.3f} ± {deviation[1]:.3f}",
            interval(draws[box][:, 1]),
            f"{np.mean([one['valid'] for one in each]):.1%}",
            f"{np.mean([one['seconds'] for one in each]):.0f}",
        )
    Console(width=120).print(table)
    for box in args.boxes[1:]:
        first = args.boxes[0]
        difference = f1(results[box]).mean(axis=0)[1] - f1(results[first]).mean(axis=0)[1]
        limits = interval(draws[box][:, 1] - draws[first][:, 1])
        Console(width=120).print(f"Relation F1, {box} less {first}: {difference:+.3f} ({limits})", highlight=False)
    if BlackBox.NEURAL in args.boxes[1:]:
        for box in set(args.boxes) & {BlackBox.NEURAL_STRUCTURED, BlackBox.NEURAL_LIKELIHOOD}:
            difference = f1(results[box]).mean(axis=0)[1] - f1(results[BlackBox.NEURAL]).mean(axis=0)[1]
            limits = interval(draws[box][:, 1] - draws[BlackBox.NEURAL][:, 1])
            Console(width=120).print(f"Relation F1, {box} less neural: {difference:+.3f} ({limits})", highlight=False)


if __name__ == "__main__":
    main()

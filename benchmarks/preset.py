"""What the paper's preset hangs on: the figures behind "Why ours differs" in docs/results.md.

    python benchmarks/preset.py --corpus CONLL04 --unlabeled MORE --unlabeled MORE

Three questions, for each of the two black boxes. How often is greedy search valid, if the black box is trained on fewer
sentences and so no better than the paper's? And what becomes of Algorithm 1 as listed (step 1, last weights, the text
in its order) if only its step, its averaging or the order changes? And what do the
paper's thetas do as they are printed?
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from hasten.learning.learner import Learner
from hasten.paper.methods import LearningSet, SentenceTestSet
from hasten.search.beam import BeamSearch, greedy
from hasten.support.terminal import no_progress
from hasten.tasks.entity_relation.data.corpora import Corpora
from hasten.tasks.entity_relation.data.corpus import Sentence, split
from hasten.tasks.entity_relation.scoring.features import Text, intern
from hasten.tasks.entity_relation.scoring.training import train_black_box
from hasten.tasks.entity_relation.task import EntityRelationTask, Training
from hasten.tasks.evaluation.study import Measuring

ANY_GAP = 5e-324  # as a theta: skips where there is any gap, which is how the paper defines 0
SIZES = (100, 300, 1009)  # of training
CHANGES: dict[str, dict[str, Any]] = {
    "as listed": {},
    "averaged": {"averaged": True},
    "shuffled": {"shuffle": True},
    "step 0.16": {"step": 0.16},
    "step 0.04": {"step": 0.04},
    "step 0.04, averaged": {"step": 0.04, "averaged": True},
}


def test_set_of(training: Training, train: list[Sentence], test: list[Sentence], solver: str) -> SentenceTestSet:
    """Trains a black box, and lets a solver answer the test sentences."""
    task = EntityRelationTask()
    model = train_black_box(training, train, task, seed=0, progress=no_progress)
    return SentenceTestSet.of(task, model, test, Measuring(solver))


def show_sizes(
    training: Training, train: list[Sentence], test: list[Sentence], solver: str, console: Console
) -> SentenceTestSet:
    """Prints how valid greedy search is by the number of training sentences; returns the last test_set, with all."""
    table = Table("trained on", "ILP entity F1", "ILP relation F1", "greedy valid", "cost scale", title=str(training))
    for n in [size for size in SIZES if size < len(train)] + [len(train)]:
        test_set = test_set_of(training, train[:n], test, solver)
        entity, relation = test_set.reference.f1(test_set.answers.labels, test_set.reference.gold)
        valid = greedy()(test_set.batch).valid.mean()
        table.add_row(f"{n:,}", f"{entity:.3f}", f"{relation:.3f}", f"{valid:.2f}", f"{test_set.scale:.1f}")
    console.print(table)
    return test_set


def learning_set_of(test_set: SentenceTestSet, text: Text, epochs: int) -> LearningSet:
    """Lets the black box label the unlabeled text."""
    batch = test_set.task.batch(text.n_entities, test_set.model.costs(text)[0])
    return LearningSet.of(batch, epochs=epochs)


def show_changes(test_set: SentenceTestSet, text: Text, epochs: int, console: Console) -> None:
    """Prints what each change of the listing does, against gold."""
    learning_set = learning_set_of(test_set, text, epochs)
    some = learning_set.batch.select(np.arange(learning_set.n_learned))
    labels = learning_set.answers.labels[: some.variable_at[-1]]
    table = Table("Algorithm 1", "b", "relation F1", "valid", "mistakes in the last pass")
    for width in (1, 2):
        for name, change in CHANGES.items():
            learner = Learner.paper(width, epochs=epochs, **change).fit(some, labels)
            found = BeamSearch(width, learner.weights, enforce=False)(test_set.batch)
            _, relation = test_set.reference.f1(found.labels, test_set.reference.gold)
            mistakes = learner.trace[-1].n_mistakes
            table.add_row(name, str(width), f"{relation:.3f}", f"{found.valid.mean():.2f}", f"{mistakes:,}")
    console.print(table)


def show_as_printed(test_set: SentenceTestSet, text: Text, epochs: int, console: Console) -> None:
    """Prints what Algorithm 1 as listed does with the paper's thetas as printed; theta 0 by its definition (§4.1)."""
    learning_set = learning_set_of(test_set, text, epochs)
    reference = test_set.reference
    table = Table("b", "theta", "whole weights", "entity F1", "relation F1", "valid", "costs computed")
    for width, theta in product((1, 2), (ANY_GAP, 0.25, 0.5)):
        search = replace(learning_set.search(width, paper=True), theta=theta)
        whole = "yes" if (search.weights == np.round(search.weights)).all() else "no"
        found = test_set.search_lazily(search)
        entity, relation = reference.f1(found.labels, reference.gold)
        share = found.n_costs.sum() / test_set.batch.variable_at[-1]
        shown = f"{entity:.3f}", f"{relation:.3f}", f"{found.valid.mean():.2f}", f"{share:.0%}"
        table.add_row(str(width), "0" if theta == ANY_GAP else str(theta), whole, *shown)
    console.print(table)
    for n, name in enumerate(test_set.task.entity_labels):
        alike = reference.f1(np.where(reference.is_entity, n, reference.gold), reference.gold)[0]
        console.print(f"Entity F1 if all entities were {name}: {alike:.3f}")


def main() -> None:
    """Measures both black boxes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--unlabeled", type=Path, action="append", default=[])
    parser.add_argument("--solver", default="highs")
    parser.add_argument("--epochs", type=int, default=5)
    given = parser.parse_args()
    console = Console()
    corpora = Corpora.read(given.corpus, given.unlabeled)
    train, test = split(corpora.labelled, 0.7, 0)
    text = intern(corpora.unlabeled)
    for training in Training:
        test_set = show_sizes(training, train, test, given.solver, console)
        show_changes(test_set, text, given.epochs, console)
        show_as_printed(test_set, text, given.epochs, console)


if __name__ == "__main__":
    main()

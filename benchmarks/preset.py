"""What the paper's preset hangs on: the figures behind "Why ours differs" in docs/results.md.

    python benchmarks/preset.py --corpus CONLL04 --unlabeled MORE --unlabeled MORE

Two questions, for each of the two black boxes. How often is greedy search valid, if the black box is trained on fewer
sentences and so no better than the paper's? And what becomes of Algorithm 1 as listed (step 1, last weights, the text
in its order) if only its step, its averaging or the order changes?
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from hasten.learning.learner import Learner
from hasten.search.beam import BeamSearch, greedy
from hasten.support.progress import tell_nobody
from hasten.tasks.entity_relation.data.corpora import Corpora
from hasten.tasks.entity_relation.data.corpus import Sentence, split
from hasten.tasks.entity_relation.experiment.lessons import Lessons
from hasten.tasks.entity_relation.experiment.trial import Trial
from hasten.tasks.entity_relation.names import Training
from hasten.tasks.entity_relation.scoring.text import Text, intern
from hasten.tasks.entity_relation.scoring.training import train_black_box
from hasten.tasks.entity_relation.task import EntityRelationTask

SIZES = (100, 300, 1009)  # of training
CHANGES: dict[str, dict[str, Any]] = {
    "as listed": {},
    "averaged": {"averaged": True},
    "shuffled": {"shuffle": True},
    "step 0.16": {"step": 0.16},
    "step 0.04": {"step": 0.04},
    "step 0.04, averaged": {"step": 0.04, "averaged": True},
}


def trial_of(training: Training, train: list[Sentence], test: list[Sentence], solver: str) -> Trial:
    """Trains a black box, and lets a solver answer the test sentences."""
    task = EntityRelationTask()
    model = train_black_box(training, train, task, seed=0, tell=tell_nobody)
    return Trial.of(task, model, test, solver=solver, runs=1, tell=tell_nobody)


def show_sizes(training: Training, train: list[Sentence], test: list[Sentence], solver: str, console: Console) -> Trial:
    """Prints how valid greedy search is by the number of training sentences; returns the last trial, with all."""
    table = Table("trained on", "ILP entity F1", "ILP relation F1", "greedy valid", "cost scale", title=str(training))
    for n in [size for size in SIZES if size < len(train)] + [len(train)]:
        trial = trial_of(training, train[:n], test, solver)
        entity, relation = trial.reference.f1(trial.reference.ilp.labels, trial.reference.gold)
        valid = greedy()(trial.batch).valid.mean()
        table.add_row(f"{n:,}", f"{entity:.3f}", f"{relation:.3f}", f"{valid:.2f}", f"{trial.scale:.1f}")
    console.print(table)
    return trial


def show_changes(trial: Trial, text: Text, epochs: int, console: Console) -> None:
    """Prints what each change of the listing does, against gold."""
    lessons = Lessons.of(trial.task, trial.model, text, epochs=epochs, seed=0, tell=tell_nobody)
    some = lessons.batch.select(np.arange(lessons.n_learned))
    labels = lessons.answers.labels[: some.variable_at[-1]]
    table = Table("Algorithm 1", "b", "relation F1", "valid", "mistakes in the last pass")
    for width in (1, 2):
        for name, change in CHANGES.items():
            learner = Learner.paper(width, epochs=epochs, progress=False, **change).fit(some, labels)
            found = BeamSearch(width, learner.weights, enforce=False)(trial.batch)
            _, relation = trial.reference.f1(found.labels, trial.reference.gold)
            mistakes = learner.trace[-1].n_mistakes
            table.add_row(name, str(width), f"{relation:.3f}", f"{found.valid.mean():.2f}", f"{mistakes:,}")
    console.print(table)


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
        show_changes(show_sizes(training, train, test, given.solver, console), text, given.epochs, console)


if __name__ == "__main__":
    main()

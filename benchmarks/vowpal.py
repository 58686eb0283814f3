"""Search on text: hasten's searches beside Vowpal Wabbit's, by time a sentence and accuracy against gold labels.

    python benchmarks/vowpal.py [CORPUS]

Vowpal Wabbit has the paper's task (`--search_task entity_relation`), learned from gold labels by imitation: it labels
entities and then relations greedily, with the argument constraints enforced. It is given the features that our model
has, extracted and written out beforehand. It knows one relation a pair, so it is given, and both are judged by, the
relations from the earlier entity to the later. It knows the paper's labels and no others.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from hasten import Batch, BeamSearch, Certifier, Solutions
from hasten.bench.families import TASK
from hasten.bench.run import split_of
from hasten.kernels.search.nodes import FORCED
from hasten.search.beam import greedy
from hasten.support.arrays import IntArray
from hasten.support.terminal import no_progress
from hasten.tasks.entity_relation.data.corpora import Corpora
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.scoring import black_box
from hasten.tasks.entity_relation.scoring.features import MAX_FEATURES, Text, intern, variable_features
from hasten.tasks.entity_relation.scoring.gold import gold
from hasten.tasks.entity_relation.scoring.training import N_BUCKETS, train_black_box
from hasten.tasks.entity_relation.task import Training
from hasten.tasks.evaluation.page import column, terminal_table

# Vowpal Wabbit's numbers of the labels.
VW_ENTITY = {"none": 1, "person": 2, "organization": 3, "location": 4}
VW_RELATION = {"LiveIn": 5, "OrgBasedIn": 6, "LocatedAt": 7, "WorkFor": 8, "Kill": 9, "NoRel": 10}
VW_TRAINING = "-b 22 --search 10 --search_task entity_relation --constraints --search_alpha 1e-8 --passes 10 -k"
ENTITIES, RELATIONS = TASK.entity_labels, TASK.relation_labels
NO_RELATION = len(RELATIONS) - 1
COLUMNS = ("microseconds", "entity accuracy", "relation F1", "valid")


def searches(train: list[Sentence], test: list[Sentence]) -> tuple[list[dict[str, Any]], list[IntArray]]:
    """Returns a row for each of our searches, from costs, from interned text and from words; and the gold labels."""
    truth = [gold(each, ENTITIES, RELATIONS, lost=True) for each in test]
    text, scorer = (
        intern(test),
        train_black_box(Training.STRUCTURED, train, TASK, seed=0, progress=no_progress),
    )
    batch = TASK.batch(text.n_entities, scorer.costs(text)[0])
    rows = list[dict[str, Any]]()

    def measure(name: str, found: Solutions, from_text: Callable[[Text], object], ways: dict[str, Any]) -> None:
        ways |= {"from interned text": partial(from_text, text), "from words": lambda: from_text(intern(test))}
        judged = judge(truth, split_labels(batch, found.labels))
        for what, run in ways.items():
            each = 1e6 * best_time(run) / len(test)
            rows.append({"name": f"hasten {name}, {what}", "microseconds": each, **judged})

    def eager(search: Any, read: Text) -> Any:
        return search(TASK.batch(read.n_entities, scorer.costs(read)[0]))

    def skipping(read: Text) -> Solutions:
        empty = np.zeros(scorer.cost_at(read)[-1])
        return black_box.search(scorer, read, TASK.batch(read.n_entities, empty), BeamSearch(1, theta=FORCED))

    every: dict[str, Any] = {"greedy": greedy(), "beam 1": BeamSearch(1), "beam 2": BeamSearch(2)}
    for name, search in (every | {"certifier": Certifier()}).items():
        measure(name, search(batch), partial(eager, search), {"costs given": partial(search, batch)})
    measure("beam 1, skipping costs", skipping(text), skipping, {})
    return rows, truth


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, nargs="?", help="the paper's corpus; made-up news if there is none")
    parser.add_argument("--sentences", type=int, default=1500, help="made-up sentences")
    given = parser.parse_args()
    corpora = Corpora.read(given.corpus) if given.corpus else Corpora.made_up(given.sentences)
    train, test = split_of(corpora)
    rows, truth = searches(train, test)
    if find_spec("vowpalwabbit"):
        rows += vowpal_wabbit(train, test, truth)
    else:
        print("Vowpal Wabbit is not installed: pip install vowpalwabbit")
    columns = [column(name, name, lambda value: f"{value:.3g}") for name in COLUMNS]
    Console(width=120).print(terminal_table([column("", "name"), *columns], [(row, "") for row in rows]))


def split_labels(batch: Batch, labels: IntArray) -> list[IntArray]:
    """Returns the labels of each problem of a batch."""
    return [labels[start:end] for start, end in pairwise(batch.variable_at)]


def best_time(run: Callable[[], object], rounds: int = 5) -> float:
    """Returns the least seconds of a few runs, after one that does not count.

    Of the clock's time and the processor's the smaller counts: on a busy machine the clock counts others'
    work too, and the processor counts both threads of a program that has two, as Vowpal Wabbit.
    """
    run()
    least = math.inf
    for _ in range(rounds):
        started = time.perf_counter(), time.process_time()
        run()
        least = min(least, time.perf_counter() - started[0], time.process_time() - started[1])
    return least


def judge(truth: Sequence[IntArray], found: Sequence[IntArray]) -> dict[str, float]:
    """Returns the accuracy on entities, F1 on relations from earlier to later ones, and the valid share."""
    right = total = true_positive = predicted = actual = valid = 0
    nothing = NO_RELATION
    for labels, answer in zip(truth, found, strict=True):
        n = int(np.sqrt(len(labels)))
        right += int((labels[:n] == answer[:n]).sum())
        total += n
        forward, ours = labels[n::2], answer[n::2]
        true_positive += int(((forward == ours) & (forward != nothing)).sum())
        predicted += int((ours != nothing).sum())
        actual += int((forward != nothing).sum())
        valid += all(
            ours[p] == nothing or fits(answer[i], ours[p], answer[j])
            for p, (i, j) in enumerate(combinations(range(n), 2))
        )
    return {
        "entity accuracy": right / max(1, total),
        "relation F1": 2 * true_positive / max(1, predicted + actual),
        "valid": valid / max(1, len(truth)),
    }


def fits(source: int, relation: int, target: int) -> bool:
    """Whether a relation may join two types."""
    joined = ENTITIES[source], ENTITIES[target]
    return joined in TASK.arguments[RELATIONS[relation]]


def vowpal_wabbit(
    train: Sequence[Sentence],
    test: Sequence[Sentence],
    truth: Sequence[IntArray],
    repeats: int = 20,
) -> list[dict[str, Any]]:
    """Trains and times Vowpal Wabbit's search."""
    from vowpalwabbit import Workspace

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "train").write_text(write_examples(train))
        examples = write_examples(test)
        (place / "test").write_text(examples)
        (place / "many").write_text(examples * repeats)
        model, tested = place / "model", f"-t --quiet -i {place / 'model'}"
        _run(Workspace, f"--quiet {VW_TRAINING} --cache_file {place / 'cache'} -d {place / 'train'} -f {model}")
        _run(Workspace, f"{tested} -d {place / 'test'} -p {place / 'said'}")
        found = read_answers((place / "said").read_text(), [len(sentence.spans) for sentence in test])
        rows = []
        for what, extra in (("from text", ""), ("from its cache", f"--cache_file {place / 'many.cache'}")):
            once = best_time(partial(_run, Workspace, f"{tested} -d {place / 'test'}"))
            many = best_time(partial(_run, Workspace, f"{tested} -d {place / 'many'} {extra}"))
            each = (many - once) / (len(test) * (repeats - 1))  # without starting and loading the model
            rows.append({"name": f"vowpal wabbit, {what}", "microseconds": 1e6 * each, **judge(truth, found)})
        return rows


def _run(workspace: Any, options: str) -> None:
    workspace(options).finish()


def write_examples(sentences: Sequence[Sentence]) -> str:
    """Writes sentences as Vowpal Wabbit reads them: a line an entity and a pair, then a blank line."""
    text: Text = intern(sentences)
    lines = []
    for s, sentence in enumerate(sentences):
        n, labels = len(sentence.spans), gold(sentence, ENTITIES, RELATIONS)
        rows, counts = np.zeros((n * n, MAX_FEATURES), np.int64), np.zeros(n * n, np.int64)
        for v in range(n * n):
            counts[v] = variable_features(text, s, v, N_BUCKETS - 1, rows[v])
        tags = [(v, f"{VW_ENTITY[ENTITIES[labels[v]]]} 1.0 E_{v}|e") for v in range(n)]
        for p, (i, j) in enumerate(combinations(range(n), 2)):
            v = n + 2 * p
            tags.append((v, f"{VW_RELATION[RELATIONS[labels[v]]]} 1.0 R_{i}_{j}|r"))
        lines += [" ".join([tag, *map(str, rows[v, : counts[v]].tolist())]) for v, tag in tags]
        lines.append("")
    return "\n".join(lines) + "\n"


def read_answers(said: str, n_entities: Sequence[int]) -> list[IntArray]:
    """Reads Vowpal Wabbit's answers, a line for each sentence, as labels of ours; nothing goes backward."""
    entity = {number: ENTITIES.index(name) for name, number in VW_ENTITY.items()}
    relation = {number: RELATIONS.index(name) for name, number in VW_RELATION.items()}
    lines = [line.split() for line in said.splitlines() if line.strip()]
    answers = []
    for n, line in zip(n_entities, lines, strict=True):
        labels = np.full(n * n, NO_RELATION, dtype=np.int64)
        labels[:n] = [entity[int(word)] for word in line[:n]]
        labels[n::2] = [relation[int(word)] for word in line[n : n + n * (n - 1) // 2]]
        answers.append(labels)
    return answers


if __name__ == "__main__":
    main()

"""Real and synthetic text: problems with a trained model's costs, and searches against Vowpal Wabbit's.

Vowpal Wabbit has the same task (`--search_task entity_relation`), learned from gold labels by imitation: it
labels entities and then relations greedily, with the argument constraints enforced. It is given the features
that our model has, extracted and written out beforehand. It knows one relation a pair, so it is given, and
both are judged by, the relations from the earlier entity to the later. It knows the paper's labels and no others: on a
corpus that has labels of its own, our searches are compared with each other.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from hasten.bench.families import TASK, sentence_problems
from hasten.errors import CorpusError
from hasten.jit import driver
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.solution import Solutions
from hasten.proof.certifier import Certifier
from hasten.search.beam import BeamSearch, greedy
from hasten.search.theta import FORCED
from hasten.support.arrays import IntArray
from hasten.support.progress import tell_nobody
from hasten.tasks.entity_relation.data.corpora import Corpora
from hasten.tasks.entity_relation.data.corpus import Sentence, split
from hasten.tasks.entity_relation.data.split import Split, parts_of
from hasten.tasks.entity_relation.data.synthetic import generate
from hasten.tasks.entity_relation.names import Training
from hasten.tasks.entity_relation.scoring import native
from hasten.tasks.entity_relation.scoring.features import MAX_FEATURES, variable_features
from hasten.tasks.entity_relation.scoring.gold import gold
from hasten.tasks.entity_relation.scoring.text import Text, intern
from hasten.tasks.entity_relation.scoring.training import N_BUCKETS, train_black_box
from hasten.tasks.entity_relation.task import EntityRelationTask

# Vowpal Wabbit's numbers of the labels.
VW_ENTITY = {"none": 1, "person": 2, "organization": 3, "location": 4}
VW_RELATION = {"LiveIn": 5, "OrgBasedIn": 6, "LocatedAt": 7, "WorkFor": 8, "Kill": 9, "NoRel": 10}
VW_TRAINING = "-b 22 --search 10 --search_task entity_relation --constraints --search_alpha 1e-8 --passes 10 -k"
ENTITIES, RELATIONS = TASK.entity_labels, TASK.relation_labels
NO_RELATION = len(RELATIONS) - 1

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Source:
    """A labelled corpus: who trains and who tests, and the task that its labels make."""

    train: Sequence[Sentence]
    test: Sequence[Sentence]
    task: EntityRelationTask = TASK

    @classmethod
    def of(
        cls,
        corpora: Corpora,
        lists: Split | None = None,
        *,
        induce: bool | None = None,
        no_relation: str | None = None,
        seed: int = 0,
    ) -> Source:
        """Returns the corpus as files or lists divide it, or drawn; labels that the paper lacks are its own."""
        if lists is not None and corpora.files is not None:
            raise CorpusError("The test sentences come in a file of their own. Leave out --split, or that file.")
        parts = parts_of(corpora.labelled, lists or corpora.files, seed)
        train, test = ([corpora.labelled[n] for n in numbers] for numbers in (parts.train, parts.test))
        task = EntityRelationTask.fitting(corpora.labelled, induce=induce, no_relation=no_relation)
        if not task.is_papers:
            task = EntityRelationTask.induced(train, no_relation=no_relation)
        return cls(train, test, TASK if task.is_papers and no_relation is None else task)

    @classmethod
    def made_up(cls, n: int, seed: int) -> Source:
        """Returns synthetic news, its sentences with relations."""
        return cls(*split([sentence for sentence in generate(n, seed) if sentence.relations], 0.7, seed))


def corpus_problems(source: Source) -> dict[str, list[Problem]]:
    """Returns the test sentences of a corpus with the costs of two models, trained on the other sentences."""
    text = intern(source.test)
    found = {}
    for training in Training:
        scorer = train_black_box(training, source.train, source.task, seed=0, tell=tell_nobody)
        found[f"corpus {training}"] = sentence_problems(text.n_entities, scorer.costs(text)[0], source.task)
    return found


def compare_searches(
    source: Source | None, *, seed: int = 0, quick: bool = False, report: Report = print
) -> dict[str, Any]:
    """Compares searches with Vowpal Wabbit's on time a sentence and on accuracy against the gold labels."""
    title = "synthetic news" if source is None else "the corpus"
    source = source or Source.made_up(300 if quick else 1500, seed)
    train, test, task = source.train, source.test, source.task
    truth = [gold(sentence, task.entity_labels, task.relation_labels, lost=True) for sentence in test]
    text, scorer = intern(test), train_black_box(Training.STRUCTURED, train, task, seed=0, tell=tell_nobody)
    n, rows = len(test), list[dict[str, Any]]()
    batch = task.batch(text.n_entities, scorer.costs(text)[0])
    lazy = BeamSearch(1, theta=FORCED)

    def measure(name: str, found: Solutions, from_text: Callable[[Text], object], ways: dict[str, Any]) -> None:
        ways |= {"from interned text": partial(from_text, text), "from words": lambda: from_text(intern(test))}
        judged = judge(truth, split_labels(batch, found.labels), task)
        for what, run in ways.items():
            rows.append({"name": f"hasten {name}, {what}", "microseconds": 1e6 * best_time(run) / n, **judged})

    def eager(search: Any, read: Text) -> Solutions:
        found: Solutions = search(task.batch(read.n_entities, scorer.costs(read)[0]))
        return found

    def skipping(read: Text) -> Solutions:
        empty = np.zeros(scorer.cost_at(read)[-1])
        return native.search(scorer, read, task.batch(read.n_entities, empty), lazy)

    searches: dict[str, Any] = {
        "greedy": greedy(),
        "beam 1": BeamSearch(1),
        "beam 2": BeamSearch(2),
        "certifier": Certifier(),
    }
    for name, search in searches.items():
        measure(name, search(batch), partial(eager, search), {"costs given": partial(search, batch)})
    measure("beam 1, skipping costs", skipping(text), skipping, {})
    if task is TASK:
        rows += vowpal_wabbit(train, test, truth, quick, report)
    entities = f"{text.n_entities.mean():.1f} entities each"
    about = f"{title}, {len(train)} sentences to train and {n} to test, {entities}"
    return {"about": about, "rows": rows}


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


def judge(truth: Sequence[IntArray], found: Sequence[IntArray], task: EntityRelationTask = TASK) -> dict[str, float]:
    """Returns the accuracy on entities, F1 on relations from earlier to later ones, and the valid share."""
    right = total = true_positive = predicted = actual = valid = 0
    nothing = len(task.relation_labels) - 1
    for labels, answer in zip(truth, found, strict=True):
        n = int(np.sqrt(len(labels)))
        right += int((labels[:n] == answer[:n]).sum())
        total += n
        forward, ours = labels[n::2], answer[n::2]
        true_positive += int(((forward == ours) & (forward != nothing)).sum())
        predicted += int((ours != nothing).sum())
        actual += int((forward != nothing).sum())
        valid += all(
            ours[p] == nothing or fits(task, answer[i], ours[p], answer[j])
            for p, (i, j) in enumerate(combinations(range(n), 2))
        )
    return {
        "entity accuracy": right / max(1, total),
        "relation F1": 2 * true_positive / max(1, predicted + actual),
        "valid": valid / max(1, len(truth)),
    }


def fits(task: EntityRelationTask, source: int, relation: int, target: int) -> bool:
    """Whether a relation may join two types."""
    joined = task.entity_labels[source], task.entity_labels[target]
    return joined in task.arguments[task.relation_labels[relation]]


def vowpal_wabbit(
    train: Sequence[Sentence],
    test: Sequence[Sentence],
    truth: Sequence[IntArray],
    quick: bool,
    report: Report,
) -> list[dict[str, Any]]:
    """Trains and times Vowpal Wabbit's search; says how to install it where it is missing."""
    try:
        from vowpalwabbit import Workspace
    except ImportError:
        report("Vowpal Wabbit is not installed: pip install vowpalwabbit")
        return []
    repeats = 4 if quick else 20
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
        rows, counts = sentence_features(text, s, N_BUCKETS - 1)
        tags = [(v, f"{VW_ENTITY[ENTITIES[labels[v]]]} 1.0 E_{v}|e") for v in range(n)]
        for p, (i, j) in enumerate(combinations(range(n), 2)):
            v = n + 2 * p
            tags.append((v, f"{VW_RELATION[RELATIONS[labels[v]]]} 1.0 R_{i}_{j}|r"))
        lines += [" ".join([tag, *map(str, rows[v, : counts[v]].tolist())]) for v, tag in tags]
        lines.append("")
    return "\n".join(lines) + "\n"


@driver
def sentence_features(text: Text, sentence: int, mask: int) -> tuple[IntArray, IntArray]:
    """Returns the rows of every variable of a sentence, and how many each has."""
    n = text.span_at[sentence + 1] - text.span_at[sentence]
    rows, counts = np.zeros((n * n, MAX_FEATURES), np.int64), np.zeros(n * n, np.int64)
    for v in range(n * n):
        counts[v] = variable_features(text, sentence, v, mask, rows[v])
    return rows, counts


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

"""Trains the black box, in the two ways that the paper's question needs (paper §5).

*Independent*: multinomial logistic regression on each variable. *Structured*: inference in the loop; the
best joint answer of the current weights, under the constraints and with the gold labels made dearer by a
margin, is compared with the gold one, and only where the two differ do weights move. Such a black box leans
on the constraints: without them its labels contradict each other more often, which is the paper's regime.

Both take AdaGrad steps and return the average of the weights over all steps; a seed fixes every number.
"""

from collections.abc import Sequence
from math import exp, sqrt
from typing import NamedTuple

import numpy as np

from hasten.errors import CorpusError
from hasten.jit import driver
from hasten.proof.certifier import Certifier
from hasten.support.arrays import BoolArray, FloatArray, IntArray, offsets
from hasten.support.terminal import Progress, no_progress
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.scoring.black_box import LinearScorer, all_variables, check_n_buckets, score_variables
from hasten.tasks.entity_relation.scoring.features import MAX_FEATURES, Text, intern, variable_features
from hasten.tasks.entity_relation.scoring.gold import gold
from hasten.tasks.entity_relation.task import EntityRelationTask, Training
from hasten.tasks.text.words import Averaged

Tables = tuple[Averaged, ...]  # of entities and of relations

TRAINING = "Training the black box"
N_BUCKETS = 2**17
RATE, DECAY = 0.1, 0.02  # of variables trained alone
IMPORTANCE = 3.0  # how often a related pair counts there, so that the many unrelated ones do not drown it
MARGIN = 10.0  # by which gold labels must win with inference in the loop
AT_ONCE = 4  # sentences answered together there
UNRELATED = 0.3  # how often the pairs of a sentence without any relation are learned from: all would drown the others
FEW_NODES = 200  # of branching: before the first step all costs are equal, and nothing is worth proving


@driver
def learn_alone(
    text: Text,
    problem_ids: IntArray,
    variable_ids: IntArray,
    labels: IntArray,
    importance: FloatArray,
    step: int,
    table: Averaged,
) -> None:
    """Takes one step of logistic regression for each variable, in the order given."""
    weights, squares, lag = table
    rows = np.empty(MAX_FEATURES, np.int64)
    n_buckets, n_labels = weights.shape
    slope = np.empty(n_labels)
    for example in range(len(labels)):
        problem, variable = problem_ids[example], variable_ids[example]
        n = variable_features(text, problem, variable, n_buckets - 1, rows)
        slope[:] = 0.0
        for k in range(n):
            for label in range(n_labels):
                slope[label] += weights[rows[k], label]
        largest, total = slope.max(), 0.0
        for label in range(n_labels):
            slope[label] = exp(slope[label] - largest)
            total += slope[label]
        gold_label = labels[example]
        for label in range(n_labels):
            slope[label] = importance[gold_label] * (slope[label] / total - (label == gold_label))
        for k in range(n):
            for label in range(n_labels):
                row = rows[k]
                gradient = slope[label] + DECAY * weights[row, label]
                squares[row, label] += gradient * gradient
                change = -RATE * gradient / sqrt(squares[row, label])
                weights[row, label] += change
                lag[row, label] += (step + example) * change


@driver
def learn_together(
    text: Text,
    problem_ids: IntArray,
    variable_ids: IntArray,
    labels: IntArray,
    found: IntArray,
    is_entity: bool,
    step: int,
    table: Averaged,
) -> None:
    """Moves the weights of every variable of one kind whose found label is not the gold one."""
    weights, squares, lag = table
    rows = np.empty(MAX_FEATURES, np.int64)
    n_buckets = len(weights)
    for example in range(len(labels)):
        problem, variable = problem_ids[example], variable_ids[example]
        of_this_kind = (variable < text.span_at[problem + 1] - text.span_at[problem]) == is_entity
        if not of_this_kind or labels[example] == found[example]:
            continue
        n = variable_features(text, problem, variable, n_buckets - 1, rows)
        for k in range(n):
            for label, sign in ((labels[example], 1.0), (found[example], -1.0)):
                squares[rows[k], label] += 1.0
                change = sign / sqrt(squares[rows[k], label])
                weights[rows[k], label] += change
                lag[rows[k], label] += step * change


class Lessons(NamedTuple):
    """Labelled sentences as numbers: a text, and the sentence of each variable, its place there and its label."""

    text: Text
    problem_ids: IntArray
    variable_ids: IntArray
    labels: IntArray
    is_entity: BoolArray
    related: BoolArray  # which sentences have a relation


def train_black_box(
    training: str,
    sentences: Sequence[Sentence],
    task: EntityRelationTask,
    *,
    epochs: int | None = None,
    n_buckets: int = N_BUCKETS,
    seed: int,
    progress: Progress = no_progress,
) -> LinearScorer:
    """Trains the black box of a task, in one of the ways of `Training`."""
    check_n_buckets(n_buckets)
    progress(TRAINING, 0.0)
    names = task.entity_labels, task.relation_labels
    labels = [gold(sentence, *names) for sentence in sentences]
    if not any(each.size for each in labels):
        raise CorpusError("There is nothing to learn from. Give labelled sentences that have entities.")
    text, related = intern(sentences), np.array([bool(sentence.relations) for sentence in sentences])
    problem_ids, variable_ids = all_variables(text)
    is_entity = variable_ids < text.n_entities[problem_ids]
    lessons = Lessons(text, problem_ids, variable_ids, np.concatenate(labels), is_entity, related)
    tables, random = tuple(Averaged.of(n_buckets, len(each)) for each in names), np.random.default_rng(seed)
    if training == Training.INDEPENDENT:
        steps = _train_alone(lessons, tables, epochs or 8, random, progress)
    else:
        steps = _train_together(lessons, tables, task, epochs or 10, random, progress)
    entity, relation = (table.mean(n).astype(np.float32) for table, n in zip(tables, steps, strict=True))
    return LinearScorer(*names, entity, relation, training)


def _train_alone(
    lessons: Lessons, tables: Tables, epochs: int, random: np.random.Generator, progress: Progress
) -> tuple[int, int]:
    """Trains each variable alone; costs are minus log-probabilities. Returns the steps of each table."""
    importance = [np.ones(tables[0].weights.shape[1]), np.full(tables[1].weights.shape[1], IMPORTANCE)]
    importance[1][-1] = 1.0
    examples = np.flatnonzero(lessons.is_entity), np.flatnonzero(~lessons.is_entity)
    for epoch in range(epochs):
        for table, mine, counts in zip(tables, examples, importance, strict=True):
            order = random.permutation(mine)
            learned = lessons.problem_ids[order], lessons.variable_ids[order], lessons.labels[order]
            learn_alone(lessons.text, *learned, counts, epoch * len(order), table)
        progress(TRAINING, (epoch + 1) / epochs)
    return epochs * len(examples[0]), epochs * len(examples[1])


def _train_together(
    lessons: Lessons,
    tables: Tables,
    task: EntityRelationTask,
    epochs: int,
    random: np.random.Generator,
    progress: Progress,
) -> tuple[int, int]:
    """Trains with inference in the loop, some sentences at a time; costs are minus scores. Returns the steps.

    A sentence without relations always teaches types, and with probability `UNRELATED` that nothing is related in it.
    """
    text, problem_ids, variable_ids, labels, is_entity, related = lessons
    certifier, step, first = Certifier(max_nodes=FEW_NODES), 0, offsets(text.n_variables)
    n_labels = np.where(is_entity, len(task.entity_labels), len(task.relation_labels))
    for epoch in range(epochs):
        counts = related | (random.random(len(related)) < UNRELATED)
        order = random.permutation(np.flatnonzero(text.n_entities))
        for some in np.split(order, range(AT_ONCE, len(order), AT_ONCE)):
            examples = np.concatenate([np.arange(first[p], first[p + 1]) for p in some])
            where = problem_ids[examples], variable_ids[examples]
            costs = score_variables(text, tables[0].weights, tables[1].weights, False, *where)
            costs[np.cumsum(n_labels[examples]) - n_labels[examples] + labels[examples]] += MARGIN
            found = certifier(task.lean.batch(text.n_entities[some], costs)).labels
            for kind, table in zip((True, False), tables, strict=True):
                mine = np.flatnonzero(kind | counts[where[0]])
                learned = where[0][mine], where[1][mine], labels[examples[mine]], found[mine]
                learn_together(text, *learned, kind, step, table)
            step += 1
        progress(TRAINING, (epoch + 1) / epochs)
    return step, step

"""Trains the black box, in the two ways that the paper's question needs (paper §5).

*Independent*: multinomial logistic regression on each variable. *Structured*: inference in the loop; the
best joint answer of the current weights, under the constraints and with the gold labels made dearer by a
margin, is compared with the gold one, and only where the two differ do weights move. Such a black box leans
on the constraints: without them its labels contradict each other more often, which is the paper's regime.

Both take AdaGrad steps and return the average of the weights over all steps; a seed fixes every number.
"""

from collections.abc import Callable, Sequence
from math import exp, sqrt

import numpy as np

from hasten.errors import CorpusError, ProblemError
from hasten.jit import driver
from hasten.proof.certifier import Certifier
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.terminal import Tell, tell_nobody
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.names import Training
from hasten.tasks.entity_relation.scoring.black_box import LinearScorer, all_variables, check_n_buckets, score_variables
from hasten.tasks.entity_relation.scoring.features import MAX_FEATURES, Text, intern, variable_features
from hasten.tasks.entity_relation.scoring.gold import gold
from hasten.tasks.entity_relation.task import EntityRelationTask
from hasten.tasks.text.words import Averaged

Infer = Callable[[IntArray, FloatArray, IntArray], IntArray]  # (n_entities, costs, cost_at) -> flat labels

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


def _gold_of(sentences: Sequence[Sentence], entity_labels: Sequence[str], relation_labels: Sequence[str]) -> IntArray:
    every = [gold(sentence, entity_labels, relation_labels) for sentence in sentences]
    if not any(labels.size for labels in every):
        raise CorpusError("There is nothing to learn from. Give labelled sentences that have entities.")
    return np.concatenate(every)


def train_black_box(
    training: str, sentences: Sequence[Sentence], task: EntityRelationTask, *, seed: int, tell: Tell
) -> LinearScorer:
    """Trains the black box of a task, in one of the ways of `Training`."""
    certifier, labels = Certifier(max_nodes=FEW_NODES), (task.entity_labels, task.relation_labels)

    def infer(n_entities: IntArray, costs: FloatArray, cost_at: IntArray) -> IntArray:
        return certifier(task.lean.batch(n_entities, costs)).labels

    tell("Training the black box", 0.0)
    if training == Training.INDEPENDENT:
        return train_independent(sentences, *labels, seed=seed, tell=tell)
    return train_structured(sentences, *labels, infer, seed=seed, tell=tell)


def train_independent(
    sentences: Sequence[Sentence],
    entity_labels: Sequence[str],
    relation_labels: Sequence[str],
    *,
    epochs: int = 8,
    n_buckets: int = N_BUCKETS,
    seed: int = 0,
    tell: Tell = tell_nobody,
) -> LinearScorer:
    """Trains each variable alone; costs are minus log-probabilities."""
    check_n_buckets(n_buckets)
    text, random = intern(sentences), np.random.default_rng(seed)
    labels = _gold_of(sentences, entity_labels, relation_labels)
    problem_ids, variable_ids = all_variables(text)
    is_entity = variable_ids < text.n_entities[problem_ids]
    counts = np.full(len(relation_labels), IMPORTANCE)
    counts[-1] = 1.0
    tables = (
        (Averaged.of(n_buckets, len(entity_labels)), np.flatnonzero(is_entity), np.ones(len(entity_labels))),
        (Averaged.of(n_buckets, len(relation_labels)), np.flatnonzero(~is_entity), counts),
    )
    for epoch in range(epochs):
        for table, examples, counts in tables:
            order = random.permutation(examples)
            learned = problem_ids[order], variable_ids[order], labels[order]
            learn_alone(text, *learned, counts, epoch * len(order), table)
        tell("Training the black box", (epoch + 1) / epochs)
    entity, relation = (table.mean(epochs * len(examples)).astype(np.float32) for table, examples, _ in tables)
    return LinearScorer(tuple(entity_labels), tuple(relation_labels), entity, relation, Training.INDEPENDENT)


def train_structured(
    sentences: Sequence[Sentence],
    entity_labels: Sequence[str],
    relation_labels: Sequence[str],
    infer: Infer,
    *,
    epochs: int = 10,
    n_buckets: int = N_BUCKETS,
    seed: int = 0,
    tell: Tell = tell_nobody,
) -> LinearScorer:
    """Trains with inference in the loop, some sentences at a time; costs are minus scores.

    A sentence without relations always teaches types, and with probability `UNRELATED` that nothing is related in it.
    `infer(n_entities, costs, cost_at)` returns the cheapest valid labels of these sentences, flat.
    """
    check_n_buckets(n_buckets)
    text, random = intern(sentences), np.random.default_rng(seed)
    labels = _gold_of(sentences, entity_labels, relation_labels)
    problem_ids, variable_ids = all_variables(text)
    first = np.concatenate([[0], np.cumsum(text.n_variables)])
    n_labels = np.where(variable_ids < text.n_entities[problem_ids], len(entity_labels), len(relation_labels))
    entity, relation = (Averaged.of(n_buckets, len(labels)) for labels in (entity_labels, relation_labels))
    has_relation = np.array([bool(sentence.relations) for sentence in sentences])
    step = 0
    for epoch in range(epochs):
        counts = has_relation | (random.random(len(sentences)) < UNRELATED)
        order = random.permutation(np.flatnonzero(text.n_entities))
        for some in np.split(order, range(AT_ONCE, len(order), AT_ONCE)):
            examples = np.concatenate([np.arange(first[p], first[p + 1]) for p in some])
            where = problem_ids[examples], variable_ids[examples]
            costs = score_variables(text, entity.weights, relation.weights, False, *where)
            costs[np.cumsum(n_labels[examples]) - n_labels[examples] + labels[examples]] += MARGIN
            n = text.n_entities[some]
            sizes = n * len(entity_labels) + n * (n - 1) * len(relation_labels)
            found = np.asarray(infer(n, costs, np.concatenate([[0], np.cumsum(sizes)])), np.int64)
            if found.shape != examples.shape or (found < 0).any() or (found >= n_labels[examples]).any():
                raise ProblemError(
                    f"Inference did not return a label for each of {len(examples)} variables. "
                    "Return label numbers, the variables of one sentence after those of the other."
                )
            for is_entity, table in ((True, entity), (False, relation)):
                mine = np.flatnonzero(is_entity | counts[where[0]])
                learned = where[0][mine], where[1][mine], labels[examples[mine]], found[mine]
                learn_together(text, *learned, is_entity, step, table)
            step += 1
        tell("Training the black box", (epoch + 1) / epochs)
    of_entities, of_relations = (table.mean(step).astype(np.float32) for table in (entity, relation))
    return LinearScorer(tuple(entity_labels), tuple(relation_labels), of_entities, of_relations, Training.STRUCTURED)

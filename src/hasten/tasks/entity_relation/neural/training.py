"""Trains the neural black box in three ways (paper §5; `docs/theory.md` has the losses).

*neural*: the cross-entropy of each type and each relation alone. *neural-structured*: the structured hinge; no valid
joint answer may score more than gold, even with a margin for each of its labels that is not gold. *neural-likelihood*:
minus the log-probability of gold among all valid answers, summed exactly; sentences with more spans than `MOST_SUMMED`
are trained as variables alone. All take AdamW steps whose size falls to zero; a seed fixes what is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from hasten.errors import CorpusError
from hasten.proof.certifier import Certifier
from hasten.sums import marginals
from hasten.support.arrays import BoolArray, IntArray, offsets
from hasten.support.terminal import Progress
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.neural.black_box import NeuralScorer, flat
from hasten.tasks.entity_relation.neural.encoder import vectors_of
from hasten.tasks.entity_relation.neural.network import Network, NeuralText
from hasten.tasks.entity_relation.scoring.gold import gold
from hasten.tasks.entity_relation.task import BlackBox, EntityRelationTask

EPOCHS = 12
AT_ONCE = 16  # sentences of a step
RATE, DECAY = 1e-3, 1e-2
WARM_UP = 50  # steps whose size grows, at most a tenth of all
LARGEST_SLOPE = 5.0  # of all weights together
MARGIN = 1.0
FEW_NODES = 200  # of branching: early scores are not worth a long proof

MOST_SUMMED = 7  # spans: 4^7 typings of a sentence

Loss = Callable[[EntityRelationTask, Tensor, Tensor, IntArray, IntArray], Tensor]


def train_neural(
    training: str, sentences: Sequence[Sentence], task: EntityRelationTask, *, seed: int, progress: Progress
) -> NeuralScorer:
    """Trains a network on labelled sentences."""
    known = [sentence for sentence in sentences if sentence.spans]
    if not known:
        raise CorpusError("There is nothing to learn from. Give labelled sentences that have entities.")
    text, labels = NeuralText.of(known), [gold(each, task.entity_labels, task.relation_labels) for each in known]
    loss = LOSSES[BlackBox(training)]
    progress("Encoding the sentences", None)
    vectors_of(text.words)  # which keeps them
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        network = Network(len(task.entity_labels), len(task.relation_labels)).train()
        drawn = np.random.default_rng(seed)
        optimizer = torch.optim.AdamW(network.parameters(), RATE, weight_decay=DECAY)
        n_steps = EPOCHS * -(-len(known) // AT_ONCE)
        warm_up = min(WARM_UP, 1 + n_steps // 10)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min(1.0, (step + 1) / warm_up) * (1 - step / n_steps)
        )
        for epoch in range(EPOCHS):
            progress("Training the black box", epoch / EPOCHS)
            order = drawn.permutation(len(known))
            for some in np.split(order, range(AT_ONCE, len(order), AT_ONCE)):
                n = text.n_entities[some]
                types, relations = network(text.select(some.tolist()))
                mean = loss(task.lean, types, relations, n, np.concatenate([labels[p] for p in some])) / len(some)
                optimizer.zero_grad()
                mean.backward()
                torch.nn.utils.clip_grad_norm_(network.parameters(), LARGEST_SLOPE)
                optimizer.step()
                schedule.step()
    weights = {name: each.detach().numpy().copy() for name, each in network.state_dict().items()}
    return NeuralScorer(task.entity_labels, task.relation_labels, weights, training)


def alone(task: EntityRelationTask, types: Tensor, relations: Tensor, n_entities: IntArray, labels: IntArray) -> Tensor:
    """Returns the cross-entropy of each variable."""
    is_type = torch.from_numpy(are_types(n_entities))
    known = torch.from_numpy(labels)
    of_types = cross_entropy(types, known[is_type], reduction="sum")
    return of_types + cross_entropy(relations, known[~is_type], reduction="sum")


def hinge(task: EntityRelationTask, types: Tensor, relations: Tensor, n_entities: IntArray, labels: IntArray) -> Tensor:
    """Returns by how much the best answer scores more than gold, a margin added for each label that is not gold."""
    scores, right = flat(types, relations, n_entities), places(task, n_entities, labels)
    cost = -scores.detach().double().numpy()
    cost[right] += MARGIN  # as good as a margin for all others, less a constant
    found = Certifier(max_nodes=FEW_NODES)(task.batch(n_entities, cost)).values
    n_wrong = int((found != labels).sum())
    return scores[places(task, n_entities, found)].sum() - scores[right].sum() + MARGIN * n_wrong


def likelihood(
    task: EntityRelationTask, types: Tensor, relations: Tensor, n_entities: IntArray, labels: IntArray
) -> Tensor:
    """Returns minus the log-probability of gold; of wide sentences, of each variable alone."""
    wide = n_entities > MOST_SUMMED
    of_types, of_relations = np.repeat(wide, n_entities), np.repeat(wide, n_entities * (n_entities - 1))
    of_labels = np.repeat(wide, n_entities**2)
    loss = alone(task, types[of_types], relations[of_relations], n_entities[wide], labels[of_labels])
    n, known = n_entities[~wide], labels[~of_labels]
    scores = flat(types[~of_types], relations[~of_relations], n)
    found = marginals(task.batch(n, -scores.detach().double().numpy()))
    expected = torch.from_numpy(found.label).to(scores)
    constant = float(found.log_partition.sum()) - float(scores.detach() @ expected)
    return loss + scores @ expected + constant - scores[places(task, n, known)].sum()


def are_types(n_entities: IntArray) -> BoolArray:
    """Tells which variables of sentences, flat, are types of spans."""
    n, first = n_entities**2, offsets(n_entities**2)[:-1]
    found: BoolArray = np.arange(n.sum()) - np.repeat(first, n) < np.repeat(n_entities, n)
    return found


def places(task: EntityRelationTask, n_entities: IntArray, labels: IntArray) -> IntArray:
    """Returns where, among all labels of sentences, those of a labelling are."""
    sizes = np.where(are_types(n_entities), len(task.entity_labels), len(task.relation_labels))
    return offsets(sizes)[:-1] + labels


LOSSES: dict[BlackBox, Loss] = {
    BlackBox.NEURAL: alone,
    BlackBox.NEURAL_STRUCTURED: hinge,
    BlackBox.NEURAL_LIKELIHOOD: likelihood,
}

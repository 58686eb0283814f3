"""Trains the neural black box, in three ways: each variable alone, by a hinge with inference in the loop, by likelihood.

*neural*: the cross-entropy of each type and each relation. *neural-structured*: the structured hinge; the best joint
answer of the current scores, under the constraints and with a margin for each label that is not gold, must not score
more than gold. All take AdamW steps whose size falls to zero, over batches of sentences; a seed fixes what is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from hasten.errors import CorpusError
from hasten.proof.certifier import Certifier
from hasten.support.arrays import IntArray
from hasten.support.progress import Tell
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.names import BlackBox
from hasten.tasks.entity_relation.neural.black_box import NeuralScorer, flat
from hasten.tasks.entity_relation.neural.network import Network, NeuralText
from hasten.tasks.entity_relation.scoring.gold import gold
from hasten.tasks.entity_relation.task import EntityRelationTask

EPOCHS = 12
AT_ONCE = 16  # sentences of a step
RATE, DECAY = 1e-3, 1e-2
WARM_UP = 50  # steps whose size grows
LARGEST_SLOPE = 5.0  # of all weights together
MARGIN = 1.0
FEW_NODES = 200  # of branching: early scores are not worth a long proof

Loss = Callable[[Tensor, IntArray, IntArray], Tensor]  # (scores in the order of a batch, spans, gold labels) -> sum


def train_neural(
    training: str, sentences: Sequence[Sentence], task: EntityRelationTask, *, seed: int, tell: Tell
) -> NeuralScorer:
    """Trains a network on labelled sentences."""
    known = [sentence for sentence in sentences if sentence.spans]
    if not known:
        raise CorpusError("There is nothing to learn from. Give labelled sentences that have entities.")
    text, labels = NeuralText.of(known), [gold(each, task.entity_labels, task.relation_labels) for each in known]
    loss = LOSSES[BlackBox(training)](task)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        network = Network(len(task.entity_labels), len(task.relation_labels)).train()
        drawn = np.random.default_rng(seed)
        optimizer = torch.optim.AdamW(network.parameters(), RATE, weight_decay=DECAY)
        n_steps = EPOCHS * -(-len(known) // AT_ONCE)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min(1.0, (step + 1) / WARM_UP) * (1 - step / n_steps)
        )
        for epoch in range(EPOCHS):
            tell("Training the black box", epoch / EPOCHS)
            order = drawn.permutation(len(known))
            for some in np.split(order, range(AT_ONCE, len(order), AT_ONCE)):
                n = text.n_entities[some]
                scores = flat(*network(text.select(some.tolist())), n)
                mean = loss(scores, n, np.concatenate([labels[p] for p in some])) / len(some)
                optimizer.zero_grad()
                mean.backward()
                torch.nn.utils.clip_grad_norm_(network.parameters(), LARGEST_SLOPE)
                optimizer.step()
                schedule.step()
    weights = {name: each.detach().numpy().copy() for name, each in network.state_dict().items()}
    return NeuralScorer(task.entity_labels, task.relation_labels, weights, training)

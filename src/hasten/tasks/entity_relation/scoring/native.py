"""Searching text without leaving compiled code: features are extracted for the variables a search asks for.

The general lazy search (`hasten.search`) asks a Python scorer, in waves, for the costs of many problems at once:
right for a large model. Here a cost takes less than a microsecond, so each sentence is searched to its end, and
the costs that its search wants are computed on the spot.
"""

from __future__ import annotations

import numpy as np

from hasten.jit import driver, keep, kernel
from hasten.kernels.layout import BatchArrays, Instance, instance_of
from hasten.kernels.search import loop, nodes
from hasten.model.batch import Batch
from hasten.model.solution import Solutions
from hasten.search.beam import BeamSearch
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.parallel import in_parallel
from hasten.tasks.entity_relation.names import Training
from hasten.tasks.entity_relation.scoring.black_box import LinearScorer, Model, score_variable
from hasten.tasks.entity_relation.scoring.features import MAX_FEATURES
from hasten.tasks.entity_relation.scoring.text import Text


@kernel
def search_sentence(
    text: Text,
    model: Model,
    sentence: int,
    instance: Instance,
    weights: FloatArray,
    options: nodes.Options,
    space: nodes.Beam,
) -> bool:
    """Searches one sentence; computes the costs that the search is blocked for, and goes on. False at a dead end."""
    graph, cost, _ = instance
    loop.begin(instance, options, nodes.NOW, space)
    outcome, n_nodes, t = loop.advance(instance, weights, options, nodes.NOW, space, 1, 0)
    while outcome == loop.BLOCKED:
        for s in range(t if n_nodes == 1 else 0, min(t + 1, graph.order.size)):
            v = graph.order[s]
            if space.known[v] == nodes.WANTED:
                score_variable(text, model, sentence, v, cost, graph.first[v])
        outcome, n_nodes, t = loop.advance(instance, weights, options, nodes.NOW, space, n_nodes, t)
    return bool(outcome == loop.DONE)


@driver
def search_text(
    text: Text,
    model: Model,
    batch: BatchArrays,
    weights: FloatArray,
    options: nodes.Options,
    sentences: IntArray,
    found: nodes.Found,
) -> None:
    """Searches some sentences."""
    n = nodes.largest(batch, sentences, options.width)
    floats, ints = np.zeros(nodes.n_floats(n)), np.zeros(nodes.n_ints(n), dtype=np.int64)
    space = nodes.beam_in(floats, ints, n)
    for p in sentences:
        done = search_sentence(text, model, p, instance_of(batch, p), weights, options, space)
        nodes.write_answer(batch, p, space, done, found)
    keep((floats, ints))


def search(model: LinearScorer, text: Text, batch: Batch, how: BeamSearch, *, n_jobs: int = 1) -> Solutions:
    """Searches every sentence of a text, computing only the costs that the search asks for.

    `batch` is the text's: it gives the structures. Costs that were never computed leave the answer's `cost` nan.
    """
    n = len(batch)
    labels = np.empty(batch.variable_at[-1], dtype=np.int64)
    found = nodes.Found(labels, np.empty(n, dtype=bool), np.empty(n, dtype=np.int64))
    cost = np.zeros(batch.cost_at[-1])
    arrays = batch.arrays._replace(cost=cost)
    weights, options = how.prepared(batch)

    def run(start: int, stop: int) -> None:
        rows = np.empty(MAX_FEATURES, np.int64)
        ours = Model(model.entity_weights, model.relation_weights, model.training == Training.INDEPENDENT, rows)
        search_text(text, ours, arrays, weights, options, batch.order[start:stop], found)

    in_parallel(run, n, n_jobs)
    return Solutions.scored(batch, *found, cost)

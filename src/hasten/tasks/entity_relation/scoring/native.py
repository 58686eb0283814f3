"""Searching text without leaving compiled code: features are extracted for the variables a search asks for.

The general lazy search (`hasten.search`) asks a Python scorer, in waves, for the costs of many problems at once:
right for a large model. Here a cost takes less than a microsecond, so each sentence is searched to its end, and
the costs that its search wants are computed on the spot.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import driver, keep, kernel
from hasten.kernels import search as beam
from hasten.kernels.layout import BatchArrays, Instance, instance_of
from hasten.model.batch import Batch
from hasten.model.solution import Solutions
from hasten.search.beam import BeamSearch
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.parallel import in_parallel
from hasten.tasks.entity_relation.names import Training
from hasten.tasks.entity_relation.scoring.black_box import LinearScorer, WeightArray, score_variable
from hasten.tasks.entity_relation.scoring.features import MAX_FEATURES
from hasten.tasks.entity_relation.scoring.text import Text


class Model(NamedTuple):
    """A trained black box, and scratch space for one variable's features."""

    entity_weights: WeightArray
    relation_weights: WeightArray
    normalised: bool
    rows: IntArray


@kernel
def search_sentence(
    text: Text,
    model: Model,
    sentence: int,
    instance: Instance,
    weights: FloatArray,
    options: beam.Options,
    space: beam.Beam,
) -> bool:
    """Searches one sentence; computes the costs that the search is blocked for, and goes on. False at a dead end."""
    graph, cost, _ = instance
    beam.begin(instance, options, beam.NOW, space)
    outcome, n_nodes, t = beam.advance(instance, weights, options, beam.NOW, space, 1, 0)
    while outcome == beam.BLOCKED:
        for s in range(t if n_nodes == 1 else 0, min(t + 1, graph.order.size)):
            v = graph.order[s]
            if space.known[v] == beam.WANTED:
                score_variable(
                    text, model.entity_weights, model.relation_weights, model.normalised,
                    sentence, v, model.rows, cost, graph.first[v],
                )  # fmt: skip
        outcome, n_nodes, t = beam.advance(instance, weights, options, beam.NOW, space, n_nodes, t)
    return bool(outcome == beam.DONE)


@driver
def search_text(
    text: Text,
    model: Model,
    batch: BatchArrays,
    weights: FloatArray,
    options: beam.Options,
    sentences: IntArray,
    found: beam.Found,
) -> None:
    """Searches some sentences."""
    n = beam.largest(batch, sentences, options.width)
    floats, ints = np.zeros(beam.n_floats(n)), np.zeros(beam.n_ints(n), dtype=np.int64)
    space = beam.beam_in(floats, ints, n)
    for p in sentences:
        done = search_sentence(text, model, p, instance_of(batch, p), weights, options, space)
        beam.write_answer(batch, p, space, done, found)
    keep((floats, ints))


def search(model: LinearScorer, text: Text, batch: Batch, how: BeamSearch, *, n_jobs: int = 1) -> Solutions:
    """Searches every sentence of a text, computing only the costs that the search asks for.

    `batch` is the text's: it gives the structures. Costs that were never computed leave the answer's `cost` nan.
    """
    n = len(batch)
    labels = np.empty(batch.variable_at[-1], dtype=np.int64)
    found = beam.Found(labels, np.empty(n, dtype=bool), np.empty(n, dtype=np.int64))
    cost = np.zeros(batch.cost_at[-1])
    arrays = batch.arrays._replace(cost=cost)
    weights, options = how.prepared(batch)

    def run(start: int, stop: int) -> None:
        rows = np.empty(MAX_FEATURES, np.int64)
        ours = Model(model.entity_weights, model.relation_weights, model.training == Training.INDEPENDENT, rows)
        search_text(text, ours, arrays, weights, options, batch.order[start:stop], found)

    in_parallel(run, n, n_jobs)
    return Solutions.scored(batch, *found, cost)

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
from hasten.kernels.layout import BatchArrays, Graph, Instance, instance_of, labels_of
from hasten.model.batch import Batch
from hasten.model.solution import Solutions
from hasten.search.beam import BeamSearch
from hasten.support.arrays import BoolArray, FloatArray, IntArray
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
def score(text: Text, model: Model, sentence: int, graph: Graph, v: int, cost: FloatArray) -> None:
    """Computes the costs of one variable."""
    score_variable(
        text, model.entity_weights, model.relation_weights, model.normalised,
        sentence, v, model.rows, cost, graph.first[v],
    )  # fmt: skip


@kernel
def score_wanted(text: Text, model: Model, sentence: int, graph: Graph, known: IntArray, cost: FloatArray) -> None:
    """Computes the costs that a search wants."""
    for v in range(graph.order.size):
        if known[v] == beam.WANTED:
            score(text, model, sentence, graph, v, cost)


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
    """Searches one sentence; false at a dead end.

    This is `beam.advance` with the costs that it would block for computed on the spot: to return and resume
    costs more than they do.
    """
    if options.width == 1 and not options.ahead:
        return walk_sentence(text, model, sentence, instance, weights, options, space)
    graph, cost, table = instance
    nodes, scratch, known = space
    n_nodes = 1
    for v in range(graph.order.size):
        known[v] = beam.UNKNOWN
    beam.begin(graph, cost, options, known, nodes)
    for t in range(graph.order.size):
        beam.expand(graph, cost, table, weights, options, known, nodes, n_nodes, t, scratch)
        n_best, gap = beam.rank_by_heuristic(graph, n_nodes, t, options.width, scratch)
        skip = options.theta == 0.0 or gap > options.theta
        if not skip and not beam.settle(graph, cost, True, known, nodes, n_nodes, t):
            score_wanted(text, model, sentence, graph, known, cost)
            beam.settle(graph, cost, True, known, nodes, n_nodes, t)
        beam.add_costs(graph, cost, options.enforce, known, nodes.g, n_nodes, t, scratch)
        if not skip:
            n_best = beam.rank_by_priority(graph, n_nodes, t, options.width, options.spread, scratch)
        n_nodes = min(n_best, options.width)
        if n_nodes == 0:
            return False
        beam.keep_best(graph, cost, table, options, known, nodes, n_nodes, t, scratch)
    if n_nodes == 1 or options.theta == np.inf:
        return True
    outcome = beam.choose(graph, cost, options, True, known, nodes, n_nodes)
    if outcome == beam.BLOCKED:
        score_wanted(text, model, sentence, graph, known, cost)
        outcome = beam.choose(graph, cost, options, True, known, nodes, n_nodes)
    return bool(outcome == beam.DONE)


@kernel
def walk_sentence(
    text: Text,
    model: Model,
    sentence: int,
    instance: Instance,
    weights: FloatArray,
    options: beam.Options,
    space: beam.Beam,
) -> bool:
    """Searches one sentence with one node: the walk of `hasten.kernels.search.walk`, its costs computed on the spot."""
    graph, cost, table = instance
    known, walker = space.known, beam.start_walk(graph, space, beam.UNKNOWN)
    path, weight = 0.0, 0.0
    for t in range(graph.order.size):
        k = graph.order[t]
        beam.expand_one(graph, table, weights, options.enforce, walker, t, weight)
        chosen = beam.choose_unseen(graph, options, k, walker)
        if chosen == beam.UNSEEN:
            score(text, model, sentence, graph, k, cost)
            known[k] = beam.KNOWN
            chosen = beam.choose_one(graph, cost, options.enforce, k, path, walker)
        if chosen == beam.NONE:
            return False
        path, weight = beam.assign_one(graph, cost, known, walker, k, chosen, path)
    return True


@driver
def search_text(
    text: Text,
    model: Model,
    batch: BatchArrays,
    weights: FloatArray,
    options: beam.Options,
    sentences: IntArray,
    labels: IntArray,
    done: BoolArray,
    n_costs: IntArray,
) -> None:
    """Searches some sentences."""
    n = beam.largest(batch, sentences, options.width)
    floats, ints = np.zeros(beam.n_floats(n)), np.zeros(beam.n_ints(n), dtype=np.int64)
    space = beam.beam_in(floats, ints, n)
    for p in sentences:
        instance, mine = instance_of(batch, p), labels_of(batch, labels, p)
        done[p] = search_sentence(text, model, p, instance, weights, options, space)
        n_costs[p] = 0
        for v in range(mine.size):
            mine[v] = space.nodes.labels[0, v] if done[p] else -1
            n_costs[p] += space.known[v] == beam.KNOWN
    keep((floats, ints))


def search(model: LinearScorer, text: Text, batch: Batch, how: BeamSearch, *, n_jobs: int = 1) -> Solutions:
    """Searches every sentence of a text, computing only the costs that the search asks for.

    `batch` is the text's: it gives the structures. Costs that were never computed leave the answer's `cost` nan.
    """
    n = len(batch)
    labels = np.empty(batch.variable_at[-1], dtype=np.int64)
    done, n_costs = np.empty(n, dtype=bool), np.empty(n, dtype=np.int64)
    cost = np.zeros(batch.cost_at[-1])
    arrays = batch.arrays._replace(cost=cost)
    weights, options = how.prepared(batch)

    def run(start: int, stop: int) -> None:
        rows = np.empty(MAX_FEATURES, np.int64)
        ours = Model(model.entity_weights, model.relation_weights, model.training == Training.INDEPENDENT, rows)
        search_text(text, ours, arrays, weights, options, batch.order[start:stop], labels, done, n_costs)

    in_parallel(run, n, n_jobs)
    return Solutions.scored(batch, labels, done, n_costs, cost)

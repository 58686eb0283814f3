"""Searching text without leaving compiled code: features are extracted for the variables a search asks for.

The general lazy search (`hasten.search`) asks a Python scorer, in waves, for the costs of many problems at once:
right for a large model. Here a cost takes less than a microsecond, so each sentence is searched to its end, and
the costs that its search wants are computed on the spot.
"""

from __future__ import annotations

import numpy as np

from hasten.graph import BoolArray, FloatArray, Graph, IntArray, Pool, view
from hasten.jit import driver, kernel
from hasten.kernels import beam
from hasten.problem import Batch
from hasten.search import BeamSearch, as_solutions, in_parallel
from hasten.solution import Solutions
from hasten.tasks.entity_relation.black_box import LinearScorer, WeightArray, score_variable
from hasten.tasks.entity_relation.features import MAX_FEATURES
from hasten.tasks.entity_relation.text import Text


@kernel
def search_sentence(
    text: Text,
    entity_weights: WeightArray,
    relation_weights: WeightArray,
    normalised: bool,
    sentence: int,
    graph: Graph,
    cost: FloatArray,
    table: FloatArray,
    weights: FloatArray,
    options: beam.Options,
    known: IntArray,
    nodes: beam.Nodes,
    scratch: beam.Scratch,
    rows: IntArray,
) -> bool:
    """Searches one sentence; writes the costs that it computes where they belong. False at a dead end."""
    for v in range(graph.order.size):
        known[v] = beam.UNKNOWN
    beam.begin(graph, cost, options, known, nodes)
    outcome, n_nodes, t = beam.advance(
        graph, cost, table, weights, options, True, known, nodes, 1, 0, False, scratch
    )
    while outcome == beam.BLOCKED:
        for s in range(min(t + 1, graph.order.size)):
            v = graph.order[s]
            if known[v] == beam.WANTED:
                score_variable(
                    text, entity_weights, relation_weights, normalised, sentence, v, rows, cost, graph.first[v]
                )
        outcome, n_nodes, t = beam.advance(
            graph, cost, table, weights, options, True, known, nodes, n_nodes, t, True, scratch
        )
    return bool(outcome == beam.DONE)


@driver
def search_text(
    text: Text,
    entity_weights: WeightArray,
    relation_weights: WeightArray,
    normalised: bool,
    pool: Pool,
    structure: IntArray,
    cost: FloatArray,
    cost_at: IntArray,
    table: FloatArray,
    table_at: IntArray,
    variable_at: IntArray,
    weights: FloatArray,
    options: beam.Options,
    begin_at: int,
    end_at: int,
    labels: IntArray,
    done: BoolArray,
    n_costs: IntArray,
) -> None:
    """Searches sentences `begin_at:end_at`."""
    n_variables, n_rows, n_labels = beam.largest(pool, structure, begin_at, end_at)
    nodes = beam.make_nodes(options.width, n_variables, n_rows)
    scratch = beam.make_scratch(options.width, n_variables, n_rows, n_labels)
    known = np.empty(n_variables, dtype=np.int64)
    rows = np.empty(MAX_FEATURES, np.int64)
    for p in range(begin_at, end_at):
        graph = view(pool, structure[p])
        done[p] = search_sentence(
            text,
            entity_weights,
            relation_weights,
            normalised,
            p,
            graph,
            cost[cost_at[p] : cost_at[p + 1]],
            table[table_at[p] :],
            weights,
            options,
            known,
            nodes,
            scratch,
            rows,
        )
        n_costs[p] = 0
        for v in range(graph.order.size):
            labels[variable_at[p] + v] = nodes.labels[0, v] if done[p] else -1
            n_costs[p] += known[v] == beam.KNOWN


def search(model: LinearScorer, text: Text, batch: Batch, how: BeamSearch, *, n_jobs: int = 1) -> Solutions:
    """Searches every sentence of a text, computing only the costs that the search asks for.

    `batch` is the text's: it gives the structures. Costs that were never computed leave the answer's `cost` nan.
    """
    n = len(batch)
    labels = np.empty(batch.variable_at[-1], dtype=np.int64)
    done, n_costs = np.empty(n, dtype=bool), np.empty(n, dtype=np.int64)
    cost = np.zeros(batch.cost_at[-1])
    weights, options = how.prepared(batch)

    def run(start: int, stop: int) -> None:
        search_text(
            text, model.entity_weights, model.relation_weights, model.training == "independent",
            batch.pool, batch.structure, cost, batch.cost_at, batch.table, batch.table_at, batch.variable_at,
            weights, options, start, stop, labels, done, n_costs,
        )  # fmt: skip

    in_parallel(run, n, n_jobs)
    return as_solutions(batch, labels, done, n_costs, cost)

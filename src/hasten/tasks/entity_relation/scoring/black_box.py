"""The black box of the task: a linear scorer over hashed features, eager over a text or lazy over requests.

A label's score is the sum of the weights of the variable's features; its cost is minus that score or, for a
model trained on each variable alone, minus its log-probability. One kernel serves both forms, so that a cost
that a search asks for is bit for bit the cost that an ILP solver was given.

The general lazy search (`hasten.search`) asks a Python scorer, in waves, for the costs of many problems at once: right
for a large model. Here a cost takes less than a microsecond, so `search` searches each sentence to its end in compiled
code, and computes the costs that it wants on the spot.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from math import exp, log
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hasten.errors import ModelError
from hasten.jit import driver, keep, kernel
from hasten.kernels.layout import BatchArrays, Instance, instance_of
from hasten.kernels.search import loop, nodes
from hasten.model.batch import Batch
from hasten.model.costs import Scorer
from hasten.model.solution import Solutions
from hasten.search.beam import BeamSearch
from hasten.support import forms
from hasten.support.arrays import FloatArray, IntArray, plain
from hasten.support.clock import in_parallel
from hasten.support.forms import Tensors
from hasten.tasks.entity_relation.data.columns import Columns
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.scoring import features
from hasten.tasks.entity_relation.scoring.features import (
    MAX_FEATURES,
    Text,
    intern,
    pair_of,
    relation_rows,
    relation_values,
    variable_features,
)
from hasten.tasks.entity_relation.task import Training
from hasten.tasks.text.words import Vocabulary

WeightArray = npt.NDArray[np.float32]

FORMAT_VERSION = 1


class Model(NamedTuple):
    """The weights of a trained black box, and scratch space for one variable's features."""

    entity_weights: WeightArray | FloatArray
    relation_weights: WeightArray | FloatArray
    normalised: bool  # whether costs are minus log probabilities
    rows: IntArray
    values: IntArray  # of the relation asked for last, the same both ways; behind them its sentence, its pair, how many


@kernel
def rows_of(text: Text, model: Model, sentence: int, variable: int, mask: int) -> int:
    """Writes the rows of a variable's features; returns how many. A pair's two relations are mostly wanted in turn."""
    first, values = text.span_at[sentence], model.values
    relation = variable - (text.span_at[sentence + 1] - first)
    if relation < 0:
        return int(variable_features(text, sentence, variable, mask, model.rows))
    if values[MAX_FEATURES] != sentence or values[MAX_FEATURES + 1] != relation // 2:
        left, right = pair_of(text.span_at[sentence + 1] - first, relation)
        values[MAX_FEATURES], values[MAX_FEATURES + 1] = sentence, relation // 2
        values[MAX_FEATURES + 2] = relation_values(text, sentence, left, right, values)
    n = values[MAX_FEATURES + 2]
    relation_rows(values, n, relation % 2, mask, model.rows)
    return int(n)


@kernel
def score_variable(text: Text, model: Model, sentence: int, variable: int, costs: FloatArray, at: int) -> int:
    """Writes the costs of one variable's labels at `costs[at:]`; returns where they end."""
    n_entities, rows = text.span_at[sentence + 1] - text.span_at[sentence], model.rows
    weights = model.entity_weights if variable < n_entities else model.relation_weights
    n_buckets, n_labels = weights.shape
    n, label = rows_of(text, model, sentence, variable, n_buckets - 1), 0
    while label + 4 <= n_labels:  # sums stay in registers
        a = b = c = d = 0.0
        for k in range(n):
            row = rows[k]
            a -= weights[row, label]
            b -= weights[row, label + 1]
            c -= weights[row, label + 2]
            d -= weights[row, label + 3]
        costs[at + label], costs[at + label + 1], costs[at + label + 2], costs[at + label + 3] = a, b, c, d
        label += 4
    while label + 2 <= n_labels:
        a = b = 0.0
        for k in range(n):
            row = rows[k]
            a -= weights[row, label]
            b -= weights[row, label + 1]
        costs[at + label], costs[at + label + 1] = a, b
        label += 2
    if label < n_labels:
        a = 0.0
        for k in range(n):
            a -= weights[rows[k], label]
        costs[at + label] = a
    if model.normalised:
        smallest = np.inf
        for label in range(n_labels):
            smallest = min(smallest, costs[at + label])
        total = 0.0
        for label in range(n_labels):
            total += exp(smallest - costs[at + label])
        shift = log(total) - smallest
        for label in range(n_labels):
            costs[at + label] += shift
    return int(at + n_labels)


@driver
def score_variables(
    text: Text,
    entity_weights: WeightArray | FloatArray,
    relation_weights: WeightArray | FloatArray,
    normalised: bool,
    problem_ids: IntArray,
    variable_ids: IntArray,
) -> FloatArray:
    """Returns the costs of the variables asked for, one after the other."""
    size = 0
    for request in range(len(problem_ids)):
        n_entities = text.span_at[problem_ids[request] + 1] - text.span_at[problem_ids[request]]
        size += (entity_weights if variable_ids[request] < n_entities else relation_weights).shape[1]
    costs = np.empty(size)
    rows, values = np.empty(MAX_FEATURES, np.int64), np.full(MAX_FEATURES + 3, -1, np.int64)
    model = Model(entity_weights, relation_weights, normalised, rows, values)
    at = 0
    for request in range(len(problem_ids)):
        at = score_variable(text, model, problem_ids[request], variable_ids[request], costs, at)
    return costs


@dataclass(frozen=True, slots=True, eq=False)
class LinearScorer:
    """A trained black box. Row `r` of a table has the weights, one per label, of features that hash to it."""

    entity_labels: tuple[str, ...]
    relation_labels: tuple[str, ...]
    entity_weights: WeightArray  # (n_buckets, n_entity_labels)
    relation_weights: WeightArray  # (n_buckets, n_relation_labels)
    training: str  # a `Training`: costs are minus log-probabilities if independent, minus scores if structured

    def __post_init__(self) -> None:
        for labels, weights in (
            (self.entity_labels, self.entity_weights),
            (self.relation_labels, self.relation_weights),
        ):
            check_n_buckets(len(weights))
            if weights.shape[1:] != (len(labels),) or len(set(labels)) != len(labels):
                raise ModelError(
                    f"Got weights of shape {weights.shape} for the labels {labels}. "
                    "Give one column for each label, and each label once."
                )
            if weights.dtype != np.float32 or not weights.flags.c_contiguous or not np.isfinite(weights).all():
                raise ModelError("Weights must be finite float32 numbers, stored row by row.")
        if self.training not in list(Training):
            raise ModelError(f"Training {self.training!r} is unknown. It is {Training.choices()}.")
        object.__setattr__(self, "entity_weights", plain(self.entity_weights))
        object.__setattr__(self, "relation_weights", plain(self.relation_weights))

    def __reduce__(self) -> tuple[Any, ...]:  # made anew, so that weights read from a mapped file are plain, too
        return LinearScorer, tuple(getattr(self, each.name) for each in fields(self))

    @staticmethod
    def read(sentences: Columns | Iterable[Sentence], vocabulary: Vocabulary | None = None) -> Text:
        """Returns sentences as numbers."""
        return intern(sentences, vocabulary)

    def cost_at(self, text: Text) -> IntArray:
        """Returns where each sentence's costs start; sentence `p` owns `cost_at[p]:cost_at[p + 1]`."""
        n = text.n_entities
        at = np.zeros(len(n) + 1, np.int64)
        np.cumsum(n * len(self.entity_labels) + n * (n - 1) * len(self.relation_labels), out=at[1:])
        return at

    def costs(self, text: Text) -> tuple[FloatArray, IntArray]:
        """Returns the costs of every variable of every sentence, flat, and where each sentence's start."""
        return self.lazy(text)(*all_variables(text)), self.cost_at(text)

    def lazy(self, text: Text) -> Scorer:
        """Returns `scorer(problem_ids, variable_ids)`: the costs of those variables, one after the other."""
        model = self.entity_weights, self.relation_weights, self.training == Training.INDEPENDENT

        def scorer(problem_ids: IntArray, variable_ids: IntArray) -> FloatArray:
            return np.asarray(score_variables(text, *model, problem_ids, variable_ids))

        return scorer

    def tensors(self) -> Tensors:
        """Returns what a file holds of it."""
        return {"entity_weights": self.entity_weights, "relation_weights": self.relation_weights}

    def about(self) -> dict[str, str]:
        """Returns what a file says of it."""
        return {
            "version": str(FORMAT_VERSION),
            "features": str(features.VERSION),
            "entity_labels": json.dumps(self.entity_labels),
            "relation_labels": json.dumps(self.relation_labels),
            "training": self.training,
        }

    @classmethod
    def of_tensors(cls, tensors: Tensors, about: Mapping[str, str]) -> LinearScorer:
        """Makes a model of what `tensors` and `about` returned; what cannot be one is a `Misfit`."""
        labels = (
            forms.read_json(about.get(f"{of}_labels", ""), f"{of}_labels", forms.Names) for of in ("entity", "relation")
        )
        entity_labels, relation_labels = map(tuple, labels)
        forms.check_tensors(
            tensors,
            {
                "entity_weights": forms.Array("float32", (None, len(entity_labels))),
                "relation_weights": forms.Array("float32", (None, len(relation_labels))),
            },
        )
        weights = tensors["entity_weights"], tensors["relation_weights"]
        return cls(entity_labels, relation_labels, *weights, about.get("training", ""))


def check_versions(path: str | os.PathLike[str], about: Mapping[str, str]) -> None:
    """Refuses a file whose weights are for other features than ours."""
    versions = (about.get("version"), about.get("features"))
    if versions != (str(FORMAT_VERSION), str(features.VERSION)):
        raise ModelError(
            f"{os.fspath(path)} was written by another version of hasten (format and features {versions}). "
            "Train the black box again."
        )


def check_n_buckets(n_buckets: int) -> None:
    """Refuses a number of rows that the low bits of a hash cannot number."""
    if n_buckets < 1 or n_buckets & (n_buckets - 1):
        raise ModelError(f"Got {n_buckets} rows of weights. Give a power of two, such as 131072.")


def all_variables(text: Text) -> tuple[IntArray, IntArray]:
    """Returns the sentence and the number, within that sentence, of every variable of a text."""
    n = text.n_variables
    first = np.cumsum(n) - n
    return np.repeat(np.arange(len(n)), n), np.arange(n.sum()) - np.repeat(first, n)


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
        rows, values = np.empty(MAX_FEATURES, np.int64), np.full(MAX_FEATURES + 3, -1, np.int64)
        normalised = model.training == Training.INDEPENDENT
        ours = Model(model.entity_weights, model.relation_weights, normalised, rows, values)
        search_text(text, ours, arrays, weights, options, batch.order[start:stop], found)

    in_parallel(run, n, n_jobs)
    return Solutions.scored(batch, *found, cost)

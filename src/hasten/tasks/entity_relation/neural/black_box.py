"""The trained network as a black box: costs of a text, and what a file holds of it.

A cost is minus a label's log-probability where the network was trained on each variable alone, and minus its score
where it was trained on whole sentences. The encoder reads a sentence whole, so that a cost asked for alone takes as
long as all of them: `lazy` computes all costs of a text once, and hands them out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from hashlib import sha256
from importlib.resources import files
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hasten.errors import ModelError
from hasten.model.costs import Scorer
from hasten.support import forms
from hasten.support.arrays import FloatArray, IntArray, offsets, ranges
from hasten.support.forms import Tensors
from hasten.tasks.entity_relation.data.columns import Columns
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.neural.encoder import NAME, PACKAGE
from hasten.tasks.entity_relation.neural.network import Network, NeuralText
from hasten.tasks.entity_relation.task import BlackBox
from hasten.tasks.text.words import Vocabulary

FORMAT_VERSION = 1
AT_ONCE = 64  # sentences that are scored together


@dataclass(frozen=True, eq=False)
class NeuralScorer:
    """A trained neural black box."""

    entity_labels: tuple[str, ...]
    relation_labels: tuple[str, ...]
    weights: Tensors  # of the network, by name
    training: str  # a `BlackBox`

    def __reduce__(self) -> tuple[Any, ...]:
        return NeuralScorer, tuple(getattr(self, each.name) for each in fields(self))

    @cached_property
    def network(self) -> Network:
        """The network, ready to score."""
        network = Network(len(self.entity_labels), len(self.relation_labels))
        network.load_state_dict({name: torch.from_numpy(each.copy()) for name, each in self.weights.items()})
        return network.eval().requires_grad_(False)

    @staticmethod
    def read(sentences: Columns | Iterable[Sentence], vocabulary: Vocabulary | None = None) -> NeuralText:
        """Returns sentences as the network reads them, which needs no vocabulary."""
        return NeuralText.of(sentences)

    def costs(self, text: NeuralText) -> tuple[FloatArray, IntArray]:
        """Returns the costs of every variable of every sentence, flat, and where each sentence's start."""
        n = text.n_entities
        at = offsets(n * len(self.entity_labels) + n * (n - 1) * len(self.relation_labels))
        cost = np.empty(at[-1])
        order = sorted(np.flatnonzero(n).tolist(), key=lambda p: len(text.words[p]))
        for start in range(0, len(order), AT_ONCE):
            some = order[start : start + AT_ONCE]
            with torch.inference_mode():
                types, relations = (each.double() for each in self.network(text.select(some)))
                if self.training == BlackBox.NEURAL:
                    types, relations = torch.log_softmax(types, dim=-1), torch.log_softmax(relations, dim=-1)
            cost[ranges(at[some], np.diff(at)[some])] = -flat(types, relations, n[some]).numpy()
        return cost, at

    def lazy(self, text: NeuralText) -> Scorer:
        """Returns `scorer(problem_ids, variable_ids)`: the costs of those variables, one after the other."""
        n, (cost, at) = text.n_entities, self.costs(text)
        n_types, n_relations = len(self.entity_labels), len(self.relation_labels)

        def scorer(problem_ids: IntArray, variable_ids: IntArray) -> FloatArray:
            spans = n[problem_ids]
            before, after = np.minimum(variable_ids, spans), np.maximum(variable_ids - spans, 0)
            sizes = np.where(variable_ids < spans, n_types, n_relations)
            return cost[ranges(at[problem_ids] + before * n_types + after * n_relations, sizes)]

        return scorer

    def tensors(self) -> Tensors:
        """Returns what a file holds of it."""
        return self.weights

    def about(self) -> dict[str, str]:
        """Returns what a file says of it."""
        return {
            "version": str(FORMAT_VERSION),
            "encoder": NAME,
            "encoder_digest": encoder_digest(),
            "entity_labels": json.dumps(self.entity_labels),
            "relation_labels": json.dumps(self.relation_labels),
            "training": self.training,
        }

    @classmethod
    def of_tensors(cls, tensors: Tensors, about: Mapping[str, str]) -> NeuralScorer:
        """Makes a model of what `tensors` and `about` returned; what cannot be one is a `Misfit`."""
        labels = (
            forms.read_json(about.get(f"{of}_labels", ""), f"{of}_labels", forms.Names) for of in ("entity", "relation")
        )
        entity_labels, relation_labels = map(tuple, labels)
        expected = Network(len(entity_labels), len(relation_labels)).state_dict()
        forms.check_tensors(
            tensors, {name: forms.Array("float32", tuple(each.shape)) for name, each in expected.items()}
        )
        return cls(entity_labels, relation_labels, tensors, about.get("training", ""))


def check_encoder(path: str | os.PathLike[str], about: Mapping[str, str]) -> None:
    """Refuses a file whose network read another encoder's vectors."""
    given = about.get("version"), about.get("encoder"), about.get("encoder_digest")
    if given != (str(FORMAT_VERSION), NAME, encoder_digest()):
        raise ModelError(
            f"{os.fspath(path)} was trained on another encoder, or by another version of hasten ({given[1]}, format "
            f"{given[0]}). Train the black box again."
        )


def encoder_digest() -> str:
    """Returns a digest of the encoder's configuration and of the beginning of its weights, where their layout is."""
    directory = files(PACKAGE) / "model"
    digest = sha256((directory / "config.json").read_bytes())
    with (directory / "model.safetensors").open("rb") as weights:
        digest.update(weights.read(2**20))
    return digest.hexdigest()


def flat(types: Tensor, relations: Tensor, n_entities: IntArray) -> Tensor:
    """Returns scores of types and of relations in the order of a batch: sentence by sentence."""
    n = n_entities.tolist()
    of_types = torch.split(types, n)
    of_relations = torch.split(relations, [each * (each - 1) for each in n])
    parts = [part.flatten() for pair in zip(of_types, of_relations, strict=True) for part in pair]
    return torch.cat([types.new_zeros(0), *parts])  # of no sentence, too

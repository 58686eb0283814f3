"""A trained model of tags: what each tag costs at each word, what each pair of neighbours costs, and rules.

The problem of a sentence is a chain, a variable for each word; the rules that count become rows.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from hasten.errors import CorpusError, ModelError, SchemaError
from hasten.model.batch import Batch
from hasten.model.schema import Schema
from hasten.model.solution import Solutions
from hasten.model.structure import Structure
from hasten.support import forms
from hasten.support.arrays import FloatArray
from hasten.support.forms import Tensors
from hasten.support.terminal import Progress, no_progress
from hasten.support.threads import Cache
from hasten.tasks.tagging.corpus import Tagged, from_object, read_tagged, tags_of, to_json
from hasten.tasks.tagging.rules import Count, Never, Rules, read_rule
from hasten.tasks.tagging.training import VERSION, read, train_weights, viterbi, word_costs
from hasten.tasks.task import Baseline, Counts, Model, Task
from hasten.tasks.text import tables
from hasten.tasks.text.words import Vocabulary

N_BUCKETS = 2**16
KEPT = 200_000  # words of all structures that are kept


@dataclass(frozen=True, eq=False)
class TagModel(Model[Tagged]):
    """Costs of tags and of their pairs, with rules: `Rules.of` reads them."""

    tags: tuple[str, ...]
    weights: npt.NDArray[np.float32]  # (n_buckets, n_tags)
    pairs: npt.NDArray[np.float32]  # (n_tags, n_tags)
    rules: Rules

    def __post_init__(self) -> None:
        n_buckets, n = len(self.weights), len(self.tags)
        if not n or len(set(self.tags)) != n:
            raise ModelError(f"Got the tags {self.tags}. Give at least one, and each once.")
        if n_buckets < 1 or n_buckets & (n_buckets - 1) or self.weights.shape != (n_buckets, n):
            raise ModelError(
                f"Got weights of shape {self.weights.shape} for {n} tags. Give a power of two of rows, a column a tag."
            )
        if self.pairs.shape != (n, n):
            raise ModelError(f"Got weights of tag pairs of shape {self.pairs.shape} for {n} tags.")

    @classmethod
    def train(
        cls,
        sentences: Sequence[Tagged],
        rules: Sequence[str] = (),
        *,
        bio: bool = False,
        epochs: int = 8,
        n_buckets: int = N_BUCKETS,
        seed: int = 0,
        progress: Progress = no_progress,
    ) -> TagModel:
        """Learns weights from tagged sentences; with `bio`, tags in IOB1 are read as BIO.

        While it learns, the rules about neighbours hold, and those that count over a sentence do not.
        """
        if bio:
            sentences = [_in_bio(sentence) for sentence in sentences]
        tags = tags_of(sentences)
        found = Rules.of(tags, rules, bio=bio)  # bad ones are refused now
        known = [sentence for sentence in sentences if sentence.tags is not None]
        place = {tag: i for i, tag in enumerate(tags)}
        text = read([sentence.words for sentence in known], n_buckets)
        gold = np.array([place[tag] for sentence in known for tag in sentence.tags or ()], dtype=np.int64)
        words, pairs = train_weights(
            text, gold, found.forbidden, n_buckets, epochs=epochs, seed=seed, progress=progress
        )
        return cls(tags, words.astype(np.float32), pairs.astype(np.float32), found)

    def with_rules(self, rules: Sequence[str], *, bio: bool = False) -> TagModel:
        """Returns the same model under other rules."""
        return replace(self, rules=Rules.of(self.tags, rules, bio=bio))

    @cached_property
    def follow(self) -> FloatArray:
        """The cost of each pair of neighbouring tags, inf where it is forbidden."""
        return self.rules.forbidden + self.rules.prices - self.pairs.astype(np.float64)

    @cached_property
    def schema(self) -> Schema:
        """The kinds of a sentence's problem: tags, their pairs, and the rules that count."""
        schema = Schema()
        tag = schema.variable("tag", self.tags)
        schema.factor("follow", left=tag, right=tag).set_table(self.follow)
        for n, rule in enumerate(self.rules.counts):
            name = rule.text if rule.text not in schema.rules else f"{rule.text} ({n})"
            schema.rule(name, tag=rule.tags, **rule.limits)
        return schema

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary()

    @cached_property
    def _structures(self) -> Cache[tuple[int, tuple[str, ...]], Structure]:
        return Cache(KEPT)

    def structure(self, n_words: int, rules: tuple[str, ...] = ()) -> Structure:
        """Returns the structure of sentences of some length, with rules of their own."""
        if (known := self._structures.get((n_words, rules))) is not None:
            return known
        shape, tag = self.schema.structure(), self.schema.variables["tag"]
        words, follow = [shape.add(tag) for _ in range(n_words)], self.schema.factors["follow"]
        for left, right in pairwise(words):
            shape.connect(follow, left=left, right=right)
        for rule in [read_rule(text, self.tags) for text in rules]:
            if isinstance(rule, Count) and words:  # without words there is nothing to count: `impossible` tells
                terms = [(word, name) for word in words for name in rule.tags]
                shape.rule(rule.text, terms, **rule.limits)
            elif isinstance(rule, Never):
                for left, right in pairwise(words):
                    terms = [(left, name) for name in rule.after] + [(right, name) for name in rule.tags]
                    shape.rule(rule.text, terms, at_most=1, price=rule.price)
        self._structures.put((n_words, rules), shape, 1 + n_words)
        return shape

    def impossible(self, sentence: Tagged) -> bool:
        """Whether a sentence has no words, and rules of its own that ask for some."""
        rules = [read_rule(text, self.tags) for text in sentence.rules] if not sentence.words else []
        return any(isinstance(rule, Count) and rule.low > 0 and rule.price is None for rule in rules)

    def batch(self, texts: Sequence[Tagged]) -> Batch:
        """Returns sentences as problems with all their costs."""
        keys = [(len(sentence.words), sentence.rules) for sentence in texts]
        number = {key: n for n, key in enumerate(dict.fromkeys(keys))}
        numbers, structures = np.array([number[key] for key in keys], dtype=np.int64), list[Structure]()
        for key in number:
            try:
                structures.append(self.structure(*key))
            except SchemaError as error:  # of its rules
                raise CorpusError(f"Sentence {texts[keys.index(key)].id!r}: {error}") from None
        return Batch.build(structures, numbers, self.costs(texts).ravel())

    def costs(self, texts: Sequence[Tagged]) -> FloatArray:
        """Returns what each tag costs at each word of all sentences, (n_words, n_tags)."""
        text = read([sentence.words for sentence in texts], len(self.weights), self._vocabulary)
        costs = word_costs(text.rows, self.weights)
        if self.rules.bio:
            costs[text.first[:-1][np.diff(text.first) > 0]] += self.rules.first
        return costs

    def gold(self, text: Tagged) -> Sequence[str]:
        """Returns the tags of a sentence, in BIO where that is a rule."""
        return _in_bio(text).tags or () if self.rules.bio else text.tags or ()

    def label(self, text: Tagged, labels: Sequence[str]) -> Tagged:
        """Returns the sentence with these tags."""
        return replace(text, tags=tuple(labels))

    def names(self, text: Tagged) -> Sequence[str]:
        """Returns the words of a sentence."""
        return text.words

    @property
    def null_labels(self) -> frozenset[str]:
        """The tag of words outside of entities, where tags are BIO."""
        return frozenset({"O"} if self.is_bio else ())

    @cached_property
    def is_bio(self) -> bool:
        """Whether the tags are those of entities: then entities are scored, not words alone."""
        return tables.is_bio(self.tags)

    @property
    def scores(self) -> Sequence[str]:
        """Accuracy, and the F1 of entities where tags are BIO."""
        return ("accuracy", "entity F1") if self.is_bio else ("accuracy",)

    def count(self, labels: Sequence[str | None], against: Sequence[str | None]) -> Counts:
        """Counts words with the same tag, and entities that are the same."""
        found = list(super().count(labels, against))
        if self.is_bio:
            mine, theirs = tables.entities(labels), tables.entities(against)
            found.append((len(mine & theirs), len(mine) + len(theirs)))
        return found

    def items(self, labels: Sequence[str | None]) -> Mapping[str, set[tuple[Hashable, str]]]:
        """Returns words with their tags, and where tags are BIO, entities with their types."""
        found: dict[str, set[tuple[Hashable, str]]] = {"tag": set(super().items(labels)["label"])}
        if self.is_bio:
            found["entity"] = {((start, end), name) for start, end, name in tables.entities(labels)}
        return found

    def baselines(self) -> Mapping[str, Baseline]:
        """Returns Viterbi's algorithm, which knows nothing of rules that count."""
        return {"Viterbi": self.viterbi}

    def viterbi(self, batch: Batch) -> Solutions:
        """Returns the cheapest tags of all sentences, rules that count left aside."""
        found = viterbi(batch.label_costs.reshape(-1, len(self.tags)), batch.labels_at, self.follow)
        return Solutions.scored(batch, batch.values(found))

    def facts(self) -> Mapping[str, object]:
        """Returns its tags and rules."""
        rules = [*(["no I-x but after B-x or I-x"] if self.rules.bio else []), *self.rules.texts]
        return {"tags": list(self.tags), "rules": rules or ["none"]}

    def gold_broken(self, sentences: Sequence[Tagged]) -> int:
        """Returns how many sentences have gold tags that break the rules, or that the model lacks."""
        place = {tag: i for i, tag in enumerate(self.tags)}
        gold = (self.gold(sentence) for sentence in sentences)
        return sum(
            any(tag not in place for tag in tags) or bool(self.rules.broken([place[tag] for tag in tags], self.tags))
            for tags in gold
        )

    def content(self) -> tuple[Tensors, dict[str, Any]]:
        """Returns what a file holds of it: tensors, and what is said about them."""
        rules = {"rules": list(self.rules.texts), "bio": self.rules.bio}
        return {"weights": self.weights, "pairs": self.pairs}, {"features": VERSION, "tags": list(self.tags)} | rules

    @classmethod
    def of_tensors(cls, tensors: Tensors, about: Mapping[str, Any], path: str | os.PathLike[str]) -> TagModel:
        """Makes a model of what `content` returned; what cannot be one is a `Misfit`."""
        forms.fitted(about, _About, "its settings")
        if about["features"] != VERSION:
            raise ModelError(f"{os.fspath(path)} was written by another version of hasten. Train the tagger again.")
        tags = tuple(about["tags"])
        shapes = {"weights": (None, len(tags)), "pairs": (len(tags), len(tags))}
        forms.check_tensors(tensors, {name: forms.Array("float32", shape) for name, shape in shapes.items()})
        return cls(tags, tensors["weights"], tensors["pairs"], Rules.of(tags, about["rules"], bio=about["bio"]))


@dataclass(frozen=True)
class Tagging(Task[Tagged]):
    """Tags for words, under rules; as `rules.read_rule` reads them."""

    rules: tuple[str, ...] = ()
    bio: bool = False  # an entity's I-x must follow its B-x or I-x
    epochs: int = 8
    format: str = "auto"
    column: str | int | None = None
    title: str = "Sequence labelling"

    def read(self, path: str) -> Iterator[Tagged]:
        """Reads tagged sentences."""
        return read_tagged(path, self.format, self.column)

    def train(self, texts: Sequence[Tagged], *, seed: int, progress: Progress) -> TagModel:
        """Trains an averaged perceptron."""
        return TagModel.train(texts, self.rules, bio=self.bio, epochs=self.epochs, seed=seed, progress=progress)

    def to_json(self, text: Tagged) -> Any:
        """Returns a sentence as an object of our JSON lines."""
        return to_json(text)

    def of_json(self, found: Any) -> Tagged:
        """Returns the sentence that an object stands for."""
        if not isinstance(found, dict):
            raise CorpusError(f"A sentence should be an object, not {found!r:.80}.")
        return from_object(found, "tags", "")

    def check_labelled(self, text: Tagged) -> None:
        """Refuses a sentence without tags."""
        if text.tags is None:
            raise CorpusError(f"Sentence {text.id!r} should have 'tags', one a word.")

    def of_content(self, path: Path, tensors: Tensors, about: Any) -> TagModel:
        """Makes a model of what a file holds."""
        return TagModel.of_tensors(tensors, about, path)


def _in_bio(sentence: Tagged) -> Tagged:
    """Returns a sentence whose entities all begin with B-x, also where its tags are IOB1."""
    return replace(sentence, tags=None if sentence.tags is None else tables.to_bio(sentence.tags))


class _About(msgspec.Struct, forbid_unknown_fields=True):
    features: forms.Count
    tags: forms.Names
    rules: list[str]
    bio: bool

"""Sentences with entity candidates (paper, section 5).

The spans of the entities are given; the task is to label each span with a type and each ordered pair of spans
with a relation. A sentence without types or relations is unlabeled: the speedup learns from such text.
`formats` reads sentences from files.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

from hasten.errors import CorpusError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence and its entity candidates, with their labels where these are known."""

    id: str
    tokens: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]  # half-open token ranges, in text order
    pos: tuple[str, ...] | None = None  # one per token
    types: tuple[str, ...] | None = None  # one per span; None where unlabeled
    relations: tuple[tuple[int, int, str], ...] | None = None  # source span, target span, name; likewise

    def __post_init__(self) -> None:
        if fault := self._fault():
            raise CorpusError(f"Sentence {self.id!r}: {fault}")

    def unlabeled(self) -> Sentence:
        """Returns the sentence without its types and relations."""
        return replace(self, types=None, relations=None)

    def _fault(self) -> str | None:
        n_tokens, n_spans = len(self.tokens), len(self.spans)
        if "" in self.tokens:
            return f"Token {self.tokens.index('')} is empty. Leave it out."
        if self.pos is not None and len(self.pos) != n_tokens:
            return f"Got {len(self.pos)} POS tags for {n_tokens} tokens. Give one each, or none at all."
        if self.types is not None and len(self.types) != n_spans:
            return f"Got {len(self.types)} types for {n_spans} spans. Give one each, or none at all."
        for start, end in self.spans:
            if not 0 <= start < end <= n_tokens:
                return f"Span [{start}, {end}) does not fit {n_tokens} tokens. Give first and last plus one."
        for (start, end), (later, _) in pairwise(self.spans):
            if end > later:
                return f"Span [{start}, {end}) overlaps the next, at {later}. Give disjoint spans in order."
        pairs = set()
        for source, target, name in self.relations or ():
            if source == target or not (0 <= source < n_spans and 0 <= target < n_spans):
                return f"{name} joins spans {source} and {target}. Name two different ones of {n_spans}, from 0."
            if (source, target) in pairs:
                return f"Two relations go from span {source} to span {target}. Keep one of them."
            pairs.add((source, target))
        return None


def induce_arguments(sentences: Iterable[Sentence]) -> dict[str, set[tuple[str, str]]]:
    """Returns which (source type, target type) each relation joins in the labelled sentences."""
    arguments: dict[str, set[tuple[str, str]]] = {}
    for sentence in sentences:
        if sentence.types is not None:
            for source, target, name in sentence.relations or ():
                arguments.setdefault(name, set()).add((sentence.types[source], sentence.types[target]))
    return arguments


def split(things: Iterable[T], fraction: float, seed: int = 0) -> tuple[list[T], list[T]]:
    """Shuffles sentences, or their numbers, and returns the first `fraction` and the rest, always so by the seed."""
    if not 0 <= fraction <= 1:
        raise CorpusError(f"Cannot split off a fraction of {fraction}. Give a number from 0 to 1.")
    shuffled = list(things)
    random.Random(seed).shuffle(shuffled)
    cut = round(fraction * len(shuffled))
    return shuffled[:cut], shuffled[cut:]

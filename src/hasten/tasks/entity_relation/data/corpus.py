"""Sentences with entity candidates (paper, section 5).

The spans of the entities are given; the task is to label each span with a type and each ordered pair of spans
with a relation. A sentence without types or relations is unlabeled: the speedup learns from such text.
`formats` reads sentences from files.

Spans may overlap or lie within each other. A pair may have several relations: to a model, which gives each pair one
label, they are one *joint* label, their names joined by ` + `.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

from hasten.errors import CorpusError

T = TypeVar("T")
Span = tuple[int, int]
Relation = tuple[int, int, str]

JOINT = " + "  # joins the names of several relations of one pair


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence and its entity candidates, with their labels where these are known."""

    id: str
    tokens: tuple[str, ...]
    spans: tuple[Span, ...]  # half-open token ranges, sorted, each once
    pos: tuple[str, ...] | None = None  # one per token
    types: tuple[str, ...] | None = None  # one per span; None where unlabeled
    relations: tuple[Relation, ...] | None = None  # source span, target span, name; likewise

    def __post_init__(self) -> None:
        if fault := self._fault():
            raise CorpusError(f"Sentence {self.id!r}: {fault}")

    @property
    def annotated(self) -> bool:
        """Whether its types and its relations are known, though these may be none."""
        return self.types is not None and self.relations is not None

    def unlabeled(self) -> Sentence:
        """Returns the sentence without its types and relations."""
        return replace(self, types=None, relations=None)

    def without(self, name: str) -> Sentence:
        """Returns the sentence without its relations of a name: a corpus's own word for none."""
        kept = tuple(each for each in self.relations or () if each[2] != name)
        return self if self.relations is None or len(kept) == len(self.relations) else replace(self, relations=kept)

    def joint_labels(self) -> dict[tuple[int, int], str]:
        """Returns the label of each related pair: the name of its relation, or of several, joined."""
        names: dict[tuple[int, int], list[str]] = {}
        for source, target, name in self.relations or ():
            names.setdefault((source, target), []).append(name)
        return {pair: JOINT.join(sorted(each)) for pair, each in names.items()}

    def _fault(self) -> str | None:
        n_tokens, n_spans = len(self.tokens), len(self.spans)
        if isinstance(self.tokens, str):
            return f"The tokens are the string {self.tokens!r:.60}. Give a list of them."
        if "" in self.tokens:
            return f"Token {self.tokens.index('')} is empty. Leave it out."
        if self.pos is not None and len(self.pos) != n_tokens:
            return f"Got {len(self.pos)} POS tags for {n_tokens} tokens. Give one each, or none at all."
        if self.types is not None and len(self.types) != n_spans:
            return f"Got {len(self.types)} types for {n_spans} spans. Give one each, or none at all."
        for start, end in self.spans:
            if not 0 <= start < end <= n_tokens:
                return f"Span [{start}, {end}) does not fit {n_tokens} tokens. Give first and last plus one."
        for one, other in pairwise(self.spans):
            if one == other:
                return f"Two spans are [{one[0]}, {one[1]}). Keep one of them."
            if one > other:
                return f"Span [{one[0]}, {one[1]}) comes before [{other[0]}, {other[1]}). Sort them by their starts."
        seen = set()
        for relation in self.relations or ():
            source, target, name = relation
            if not (0 <= source < n_spans and 0 <= target < n_spans):
                return f"{name} joins spans {source} and {target}. Name two different ones of {n_spans}, from 0."
            if source == target:
                return f"{name} joins span {source} to itself, which no label can say. Leave it out."
            if JOINT in name:
                return f"The relation {name!r} has {JOINT!r} in its name, which joins several names. Rename it."
            if relation in seen:
                return f"{name} goes from span {source} to span {target} twice. Keep one of them."
            seen.add(relation)
        return None


def in_order(
    id: str,
    tokens: Sequence[str],
    spans: Sequence[Span],
    *,
    pos: Sequence[str] | None = None,
    types: Sequence[str] | None = None,
    relations: Iterable[Relation] | None = None,
) -> Sentence:
    """Builds a sentence from spans in any order, of which a copy is dropped, as is a relation said twice."""
    if types is not None and len(types) != len(spans):
        return Sentence(id, tuple(tokens), tuple(spans), types=tuple(types))  # which is refused
    found: dict[Span, str] = {}
    for n, span in enumerate(spans):
        name = "" if types is None else types[n]
        if found.setdefault(span, name) != name:
            raise CorpusError(
                f"Sentence {id!r}: Span [{span[0]}, {span[1]}) has the types {found[span]!r} and {name!r}. A span has "
                "one type: keep one, or join them into a type of their own."
            )
    number = {span: n for n, span in enumerate(sorted(found))}
    places = {n: number[span] for n, span in enumerate(spans)}  # a relation that joins something else is refused below
    return Sentence(
        id,
        tuple(tokens),
        tuple(number),
        None if pos is None else tuple(pos),
        None if types is None else tuple(found[span] for span in number),
        None
        if relations is None
        else tuple(dict.fromkeys((places.get(s, s), places.get(t, t), name) for s, t, name in relations)),
    )


def cut(document: Sentence, starts: Iterable[int]) -> Iterator[Sentence]:
    """Yields a document's sentences, which begin at these tokens; never within a span, or between two related ones."""
    across = list(document.spans)
    for source, target, _ in document.relations or ():
        ends = (*document.spans[source], *document.spans[target])
        across.append((min(ends), max(ends)))
    n_tokens = len(document.tokens)
    kept = [at for at in starts if 0 < at < n_tokens and not any(start < at < end for start, end in across)]
    for n, (first, end) in enumerate(pairwise([0, *kept, n_tokens] if n_tokens else ())):
        inside = {n: k for k, n in enumerate(n for n, span in enumerate(document.spans) if first <= span[0] < end)}
        yield Sentence(
            f"{document.id}-{n}" if kept else document.id,
            document.tokens[first:end],
            tuple((start - first, stop - first) for start, stop in (document.spans[n] for n in inside)),
            pos=document.pos and document.pos[first:end],
            types=document.types and tuple(document.types[n] for n in inside),
            relations=document.relations
            and tuple((inside[s], inside[t], name) for s, t, name in document.relations if s in inside),
        )


def induce_arguments(sentences: Iterable[Sentence]) -> dict[str, set[tuple[str, str]]]:
    """Returns which (source type, target type) each label of pairs joins in the labelled sentences."""
    arguments: dict[str, set[tuple[str, str]]] = {}
    for sentence in sentences:
        if sentence.types is not None:
            for (source, target), name in sentence.joint_labels().items():
                arguments.setdefault(name, set()).add((sentence.types[source], sentence.types[target]))
    return arguments


def induce_both(sentences: Iterable[Sentence]) -> set[tuple[str, str]]:
    """Returns which labels a pair has at once, one each way, in the labelled sentences; whichever way is forward."""
    both = set()
    for sentence in sentences:
        labels = sentence.joint_labels()
        for (source, target), name in labels.items():
            if (target, source) in labels:
                both |= {(name, labels[target, source]), (labels[target, source], name)}
    return both


def split(things: Iterable[T], fraction: float, seed: int = 0) -> tuple[list[T], list[T]]:
    """Shuffles sentences, or their numbers, and returns the first `fraction` and the rest, always so by the seed."""
    if not 0 <= fraction <= 1:
        raise CorpusError(f"Cannot split off a fraction of {fraction}. Give a number from 0 to 1.")
    shuffled = list(things)
    random.Random(seed).shuffle(shuffled)
    cut = round(fraction * len(shuffled))
    return shuffled[:cut], shuffled[cut:]

"""Labels sentences block by block: lines in, columns of words and spans, one batch of problems, labelled lines out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hasten.errors import ProblemError
from hasten.model.solution import SOURCES, STATUSES, WITHOUT_ANSWER, Solutions, Source, Status, numbered
from hasten.speedup.predictor import Speedup
from hasten.support.arrays import BoolArray, IntArray, offsets
from hasten.tasks.entity_relation.data.columns import Columns, Row
from hasten.tasks.entity_relation.data.corpus import JOINT, Relation, Sentence
from hasten.tasks.entity_relation.data.formats.jsonl import Line, encode_lines
from hasten.tasks.entity_relation.task import EntityRelationTask
from hasten.tasks.text.words import Vocabulary

if TYPE_CHECKING:
    from hasten.tasks.entity_relation.tagger import Tagger

AT_ONCE = 512  # sentences of a stream of objects that are labelled together, at most

Labels = tuple[tuple[str, ...], tuple[Relation, ...]]  # types of spans, and the relations that there are


@dataclass(frozen=True)
class Labelled:
    """One labelled sentence, and how its labels came about.

    Where the solver failed, `reason` says why, and the sentence has the best labels known without it, or none. Where
    time was up, or nothing is proved in search mode, nobody knows whether they are `optimal`.
    """

    sentence: Sentence
    proved: bool
    source: Source
    reason: str = ""
    valid: bool = True
    optimal: bool = True


class Answers(NamedTuple):
    """The answers to some sentences; `labels` is None where there are none, because the solver failed."""

    rows: Sequence[Row]
    labels: Sequence[Labels | None]
    found: Solutions
    late: BoolArray  # which may be improved, because time was up

    def counts(self) -> Counter[str]:
        """Counts what was done, by name."""
        found = self.found
        by = np.bincount(found.source, minlength=len(SOURCES)).tolist()
        counts = Counter({f"by_{source.name.lower()}": n for source, n in zip(SOURCES, by, strict=True) if n})
        proved, late, failed = int(found.proved.sum()), int(self.late.sum()), len(found.reasons)
        counts.update(problems=len(found), proved=proved, late=late, failed=failed)
        return counts

    def lines(self) -> list[Line]:
        """Returns the labelled sentences as lines of a file (`docs/corpora.md`)."""
        lines = [
            Line(row.id, row.tokens, row.spans, row.pos, labels and labels[0], labels and labels[1], proved)
            for row, labels, proved in zip(self.rows, self.labels, self.found.proved.tolist(), strict=True)
        ]
        for p in np.flatnonzero(self.late).tolist():
            lines[p].optimal = False
        for p, reason in self.found.reasons.items():
            lines[p].failed = reason
        return lines

    def labelled(self, sentences: Sequence[Sentence]) -> Iterator[Labelled]:
        """Yields the labelled sentences, for people."""
        found = self.found
        for p, (sentence, labels) in enumerate(zip(sentences, self.labels, strict=True)):
            types, relations = labels or (None, None)
            yield Labelled(
                replace(sentence, types=types, relations=relations),
                bool(found.proved[p]) and labels is not None,
                SOURCES[found.source[p]],
                found.reasons.get(p, ""),
                bool(found.valid[p]) and labels is not None,
                STATUSES[found.status[p]].optimal and labels is not None,
            )


class Labeller:
    """Reads, labels and writes blocks of sentences: the work of `hasten.scale` on text.

    The words that it remembers from one block to the next, and its speedup's counters, stay in its process.
    """

    kind = "text"

    def __init__(self, tagger: Tagger) -> None:
        self.tagger = tagger
        self.vocabulary = Vocabulary()

    def __reduce__(self) -> tuple[Any, ...]:
        return Labeller, (self.tagger,)

    @cached_property
    def _speedup(self) -> Speedup:
        return self.tagger.speedup.for_shard(0)

    @property
    def digest(self) -> str:
        """Changes with whatever can change an answer."""
        return self.tagger.digest

    def begin(self, shard: int) -> None:
        """Begins a shard; nothing is drawn here."""

    def read(self, piece: Any) -> Columns:
        """Reads sentences; one thread may read while another answers."""
        return Columns.read(piece, self.vocabulary)

    def answer(self, items: Columns) -> tuple[list[Line], Counter[str]]:
        """Returns the labelled sentences as lines, and counts."""
        lines, counts = list[Line](), Counter[str]()
        for chunk in items.chunks():
            answers = self.label(chunk)
            lines += answers.lines()
            counts.update(answers.counts())
        return lines, counts

    def encode(self, records: Sequence[Line]) -> bytes:
        """Returns answers as lines of JSON."""
        return encode_lines(records)

    def label(self, sentences: Columns) -> Answers:
        """Labels sentences that fit into memory together."""
        task, scorer, searches = self.tagger.task, self.tagger.scorer, self.tagger.searches
        text = scorer.read(sentences)
        found = self._speedup.predict(
            task.batch(text.n_entities, scorer.lazy(text) if searches else scorer.costs(text)[0])
        )
        labels: list[Any] = all_in_words(task, found.labels, text.n_entities)
        without = np.isin(found.status, numbered(*WITHOUT_ANSWER)) & ~found.valid
        for p in np.flatnonzero(without).tolist():
            labels[p], status = None, STATUSES[found.status[p]]
            if status is not Status.FAILED:
                raise ProblemError(f"Sentence {sentences.rows[p].id!r} has no valid labels: {status}")
        late = np.zeros(len(found), dtype=bool) if searches else ~found.optimal
        late[list(found.reasons)] = False
        return Answers(sentences.rows, labels, found, late)

    def each(self, sentences: Iterable[Sentence]) -> Iterator[Labelled]:
        """Labels a stream of sentences of any length."""
        stream = iter(sentences)
        while some := list(islice(stream, AT_ONCE)):
            for chunk in Columns.of(some, self.vocabulary).chunks():
                yield from self.label(chunk).labelled([some[n] for n in chunk.numbers])


def in_words(task: EntityRelationTask, labels: IntArray, n_entities: int) -> Labels:
    """Returns a labelling's entity types, and the relations that there are as (source, target, name)."""
    return all_in_words(task, labels, np.array([n_entities]))[0]


def all_in_words(task: EntityRelationTask, labels: IntArray, n_entities: IntArray) -> list[Labels]:
    """Returns the types and relations of many sentences, whose labels are flat, one sentence after the other."""
    span_at, variable_at = offsets(n_entities), offsets(n_entities**2)
    of_spans = np.arange(span_at[-1]) + np.repeat(variable_at[:-1] - span_at[:-1], n_entities)
    types = tuple(map(task.entity_labels.__getitem__, labels[of_spans].tolist()))
    found: list[Labels] = [(types[start:end], ()) for start, end in pairwise(span_at.tolist())]
    relations: dict[int, list[Relation]] = {}
    related = labels != len(task.relation_labels) - 1
    related[of_spans] = False
    places = np.flatnonzero(related)
    names = [label.split(JOINT) for label in task.relation_labels]
    arguments = _arguments(places, variable_at, n_entities)
    for (p, source, target), label in zip(arguments, labels[places].tolist(), strict=True):
        relations.setdefault(p, []).extend((source, target, name) for name in names[label])
    for p, mine in relations.items():
        found[p] = found[p][0], tuple(mine)
    return found


def _arguments(places: IntArray, variable_at: IntArray, n_entities: IntArray) -> Iterator[tuple[int, int, int]]:
    """Yields the sentence, the source and the target of each relation variable, given by its place."""
    sentence = np.searchsorted(variable_at, places, side="right") - 1
    n = n_entities[sentence]
    pair, backward = np.divmod(places - variable_at[sentence] - n, 2)

    def pairs_before(left: IntArray) -> IntArray:
        return left * (2 * n - left - 1) // 2

    left = (n - 0.5 - np.sqrt((n - 0.5) ** 2 - 2 * pair)).astype(np.int64)  # may be off by one
    left -= pairs_before(left) > pair
    left += pairs_before(left + 1) <= pair
    right = left + 1 + pair - pairs_before(left)
    source, target = np.where(backward, right, left), np.where(backward, left, right)
    return zip(sentence.tolist(), source.tolist(), target.tolist(), strict=True)

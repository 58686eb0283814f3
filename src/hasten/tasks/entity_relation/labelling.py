"""Labels in words, of many sentences at a time: as records for files, or as sentences for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from hasten.model.solution import SOURCES, STATUSES, Solutions, Source
from hasten.support.arrays import BoolArray, IntArray
from hasten.tasks.entity_relation.data.corpus import JOINT, Relation, Sentence, Spanned, offsets
from hasten.tasks.entity_relation.data.formats.jsonl import Row, to_json
from hasten.tasks.entity_relation.task import EntityRelationTask

CHUNK_WORDS = 100_000  # of the sentences labelled together, at most,
CHUNK_VARIABLES = 50_000  # and their variables

S = TypeVar("S", bound=Spanned)


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


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """The answers to some sentences, a list for each property; `labels` is None where the solver failed without any."""

    rows: Sequence[Row | Sentence]
    labels: Sequence[tuple[tuple[str, ...], tuple[Relation, ...]] | None]
    found: Solutions
    certified: bool  # whether optima were asked for

    @property
    def late(self) -> BoolArray:
        """Which answers may be improved, because time was up."""
        late = ~self.found.optimal if self.certified else np.zeros(len(self.found), dtype=bool)
        late[list(self.found.reasons)] = False
        return late

    def counts(self) -> Counter[str]:
        """Returns what was done, by name."""
        found = self.found
        by = np.bincount(found.source, minlength=len(SOURCES)).tolist()
        counts = Counter({f"by_{source.name.lower()}": n for source, n in zip(SOURCES, by, strict=True) if n})
        counts.update(problems=len(found), proved=int(found.proved.sum()), late=int(self.late.sum()))
        counts.update(failed=len(found.reasons))
        return counts

    def records(self) -> list[dict[str, Any]]:
        """Returns the labelled sentences as objects of a file (`docs/corpora.md`)."""
        proved, reasons, records = self.found.proved.tolist(), self.found.reasons, []
        for row, labels, sure in zip(self.rows, self.labels, proved, strict=True):
            record = to_json(row, *(labels or ()))
            if labels is None:
                record.pop("types", None), record.pop("relations", None)
            record["proved"] = sure
            records.append(record)
        for p in np.flatnonzero(self.late).tolist():
            records[p]["optimal"] = False
        for p, reason in reasons.items():
            records[p]["failed"] = reason
        return records

    def labelled(self) -> Iterator[Labelled]:
        """Yields the labelled sentences, for people."""
        found = self.found
        for p, (sentence, labels) in enumerate(zip(self.rows, self.labels, strict=True)):
            assert isinstance(sentence, Sentence)
            types, relations = labels or (None, None)
            yield Labelled(
                replace(sentence, types=types, relations=relations),
                bool(found.proved[p]) and labels is not None,
                SOURCES[found.source[p]],
                found.reasons.get(p, ""),
                bool(found.valid[p]) and labels is not None,
                STATUSES[found.status[p]].optimal and labels is not None,
            )


def chunks(sentences: Iterable[S]) -> Iterator[list[S]]:
    """Yields sentences in groups that fit into memory, however many words and spans they have."""
    chunk, n_words, n_variables = list[S](), 0, 0
    for sentence in sentences:
        chunk.append(sentence)
        n_words += len(sentence.tokens)
        n_variables += len(sentence.spans) ** 2
        if n_words + len(chunk) >= CHUNK_WORDS or n_variables >= CHUNK_VARIABLES:
            yield chunk
            chunk, n_words, n_variables = [], 0, 0
    if chunk:
        yield chunk


def in_words(
    task: EntityRelationTask, labels: IntArray, n_entities: int
) -> tuple[tuple[str, ...], tuple[Relation, ...]]:
    """Returns a labelling's entity types, and the relations that there are as (source, target, name)."""
    return next(all_in_words(task, labels, np.array([n_entities])))


def all_in_words(
    task: EntityRelationTask, labels: IntArray, n_entities: IntArray
) -> Iterator[tuple[tuple[str, ...], tuple[Relation, ...]]]:
    """Yields the same of many sentences; `labels` are flat, those of one sentence after those of the other."""
    span_at, variable_at = offsets(n_entities), offsets(n_entities**2)
    of_spans = np.arange(span_at[-1]) + np.repeat(variable_at[:-1] - span_at[:-1], n_entities)
    types = [task.entity_labels[i] for i in labels[of_spans].tolist()]
    related = labels != len(task.relation_labels) - 1
    related[of_spans] = False
    relations: dict[int, list[Relation]] = {}
    for p, source, target, label in _arguments(np.flatnonzero(related), variable_at, n_entities, labels):
        names = task.relation_labels[label].split(JOINT)
        relations.setdefault(p, []).extend((source, target, name) for name in names)
    ends = span_at.tolist()
    for p in range(len(n_entities)):
        yield tuple(types[ends[p] : ends[p + 1]]), tuple(relations.get(p, ()))


def _arguments(
    places: IntArray, variable_at: IntArray, n_entities: IntArray, labels: IntArray
) -> Iterator[tuple[int, int, int, int]]:
    """Yields the sentence, the source, the target and the label of each relation variable, given by its place."""
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
    return zip(sentence.tolist(), source.tolist(), target.tolist(), labels[places].tolist(), strict=True)

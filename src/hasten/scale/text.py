"""Sentences, answered by a tagger: records as in `docs/corpora.md`, with `proved`, and `failed` if the solver did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

from hasten.scale.work import Counts, Record
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.data.formats.jsonl import Encoder, Row, Rows, read_rows
from hasten.tasks.entity_relation.data.synthetic import generate
from hasten.tasks.entity_relation.labelling import chunks
from hasten.tasks.entity_relation.tagger import Labeller, Tagger


class TextWork:
    """Labels sentences; the words that it remembers from one piece to the next stay in its process."""

    kind = "text"

    def __init__(self, tagger: Tagger) -> None:
        self.tagger = tagger

    def __reduce__(self) -> tuple[Any, ...]:
        return TextWork, (self.tagger,)

    @cached_property
    def _label(self) -> Labeller:
        return Labeller(self.tagger)

    @cached_property
    def _encode(self) -> Encoder:
        return Encoder()

    @property
    def digest(self) -> str:
        """Changes with whatever can change an answer."""
        return self.tagger.digest

    def warm(self) -> None:
        """Labels some made-up sentences, which takes the kernels that others take."""
        self._label(list(generate(8, seed=0, labelled=False)))

    def begin(self, shard: int) -> None:
        """Begins a shard; nothing is drawn here."""

    def read(self, entries: Iterable[tuple[int, Any]]) -> Rows:
        """Returns sentences."""
        return read_rows(entries)

    def answer(self, items: Sequence[Row | Sentence]) -> tuple[list[Record], Counts]:
        """Returns sentences with their labels."""
        records, counts = list[Record](), Counts()
        for chunk in chunks(items):
            answers = self._label(chunk)
            records += answers.records()
            counts.update(answers.counts())
        return records, counts

    def encode(self, records: Iterable[Record]) -> Iterator[str]:
        """Yields answers as lines of JSON."""
        return map(self._encode, records)

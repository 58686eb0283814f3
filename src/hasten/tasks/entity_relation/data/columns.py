"""Many sentences at a time, column by column: the lines of a block, decoded and checked together.

msgspec decodes each line and checks the types of its fields. Tokens and parts of speech stay as they are spelled
there, and become rows of numbers (`tasks.text.words`); how spans fit tokens is checked on arrays, all sentences at
once. A line that fails is read again as a `Sentence`, which says what is wrong, or sorts its spans.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress
from typing import Annotated, Any, Protocol

import msgspec
import numpy as np

from hasten.errors import CorpusError
from hasten.support.arrays import BoolArray, IntArray, offsets
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.data.formats.jsonl import from_object
from hasten.tasks.text.lines import Block, parse_object
from hasten.tasks.text.words import HashArray, Vocabulary, as_json

MOST_WORDS = 100_000  # of the sentences that are answered together
MOST_VARIABLES = 50_000  # likewise: a type for each span, a relation for each ordered pair

Place = Annotated[int, msgspec.Meta(ge=0, le=2**40)]  # fits an array of 64-bit numbers


class Row(msgspec.Struct, gc=False, omit_defaults=True):
    """A sentence as a line of a file has it. A field that is not there is None; null is refused."""

    tokens: msgspec.Raw
    spans: list[tuple[Place, Place]]
    id: str = None  # type: ignore[assignment]
    pos: msgspec.Raw = None  # type: ignore[assignment]
    types: list[str] = None  # type: ignore[assignment]
    relations: list[tuple[Place, Place, str]] = None  # type: ignore[assignment]

    @classmethod
    def of(cls, sentence: Sentence) -> Row:
        """Returns the row of a sentence, without its labels."""
        pos = None if sentence.pos is None else msgspec.Raw(as_json(sentence.pos))
        return cls(msgspec.Raw(as_json(sentence.tokens)), list(sentence.spans), sentence.id, pos)  # type: ignore[arg-type]


_LINES = msgspec.json.Decoder(Row)


class Piece(Protocol):
    """Some entries of a file, numbered: lines of JSON, the objects they stand for, or sentences."""

    first: int

    def entries(self) -> Iterable[tuple[int, Any]]:
        """Returns the entries that are not blank."""
        ...


def _row(entry: Any) -> Row:
    """Returns the row of a sentence, of a line, which is UTF-8, or of an object, which comes from a table."""
    if isinstance(entry, Sentence):
        return Row.of(entry)
    line = entry.decode() if isinstance(entry, bytes) else entry
    return msgspec.json.decode(line if isinstance(line, str) else msgspec.json.encode(line), type=Row)


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Sentences side by side, and the entries of a file that are none."""

    rows: Sequence[Row]
    numbers: Sequence[int]  # of the entries that they were read from
    n_words: IntArray
    columns: HashArray  # of all words
    n_spans: IntArray
    spans: IntArray  # (all of them, 2)
    refused: Sequence[tuple[int, CorpusError]] = ()

    @classmethod
    def of(cls, sentences: Sequence[Sentence], vocabulary: Vocabulary | None = None) -> Columns:
        """Lays out sentences."""
        return cls._laid_out([Row.of(sentence) for sentence in sentences], range(len(sentences)), vocabulary)[0]

    @classmethod
    def read(cls, piece: Piece, vocabulary: Vocabulary | None = None) -> Columns:
        """Reads a piece of a file. An entry that is no sentence is refused, with the reason."""
        doubts = list[tuple[int, Any]]()
        rows = piece.decoded(_LINES) if isinstance(piece, Block) else None
        numbers: Sequence[int] = range(piece.first, piece.first + len(rows or ()))
        if rows is None:
            rows, numbers = [], []
            for number, entry in piece.entries():
                try:
                    rows.append(_row(entry))
                    numbers.append(number)
                except (ValueError, RecursionError):  # msgspec's errors, and text that is not UTF-8
                    doubts.append((number, entry))
        for number, row in zip(numbers, rows, strict=True):
            if row.id is None:
                row.id = str(number)
        found, doubtful = cls._laid_out(rows, numbers, vocabulary)
        if not doubts and not doubtful.any():
            return found
        doubts += [(numbers[n], msgspec.json.encode(rows[n])) for n in np.flatnonzero(doubtful).tolist()]
        kept = dict(zip(compress(numbers, ~doubtful), compress(rows, ~doubtful), strict=True))
        refused = list[tuple[int, CorpusError]]()
        for number, entry in doubts:
            try:
                record = parse_object(entry) if isinstance(entry, str | bytes) else entry
                kept[number] = Row.of(from_object(record, str(number)))
            except CorpusError as error:
                refused.append((number, error))
        order = sorted(kept)
        found, _ = cls._laid_out([kept[number] for number in order], order, vocabulary)
        return replace(found, refused=sorted(refused, key=lambda each: each[0]))

    @classmethod
    def _laid_out(
        cls, rows: Sequence[Row], numbers: Sequence[int], vocabulary: Vocabulary | None
    ) -> tuple[Columns, BoolArray]:
        """Lays out rows, and tells which of them a `Sentence` would not take as they are, or has relations to check."""
        words, tags = [row.tokens for row in rows], [row.pos for row in rows]
        tokens = (vocabulary or Vocabulary()).read(words, tags)
        n_spans = np.array([len(row.spans) for row in rows], np.int64)
        bounds = chain.from_iterable(chain.from_iterable([row.spans for row in rows]))
        spans = np.fromiter(bounds, np.int64, 2 * n_spans.sum()).reshape(-1, 2)
        odd = [bool(row.relations) or (row.types is not None and len(row.types) != len(row.spans)) for row in rows]
        doubtful = np.array(odd, dtype=bool) | tokens.odd | (tokens.counts < 0) | (tokens.n_tags != tokens.counts)
        owner, (start, end) = np.repeat(np.arange(len(rows)), n_spans), spans.T
        doubtful[owner[(start >= end) | (end > tokens.counts[owner])]] = True
        ordered = (start[1:] > start[:-1]) | ((start[1:] == start[:-1]) & (end[1:] > end[:-1]))
        doubtful[owner[1:][~ordered & (owner[1:] == owner[:-1])]] = True
        return cls(rows, numbers, tokens.counts, tokens.columns, n_spans, spans), doubtful

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, start: int, stop: int) -> Columns:
        """Returns some of the sentences."""
        some, words, spans = slice(start, stop), offsets(self.n_words), offsets(self.n_spans)
        return Columns(
            self.rows[some],
            self.numbers[some],
            self.n_words[some],
            self.columns[words[start] : words[stop]],
            self.n_spans[some],
            self.spans[spans[start] : spans[stop]],
        )

    def chunks(self) -> Iterator[Columns]:
        """Yields the sentences in groups that fit into memory, however many words and spans they have."""
        load = np.zeros(len(self) + 1)
        np.cumsum(self.n_words / MOST_WORDS + self.n_spans**2 / MOST_VARIABLES, out=load[1:])
        start = 0
        while start < len(self):
            stop = max(start + 1, int(np.searchsorted(load, load[start] + 1, side="right")) - 1)
            yield self if stop - start == len(self) else self.part(start, stop)
            start = stop
